"""The client of the two drafts of 2005: the connection. Its wire is draft_wire.py's, its channels are draft_channel.py's.

    client = Client9a5(events, user="guest", password="guest")
    events.opened() -> channel.open() -> channel.access_request() -> channel.queue_declare("q") ...

Laws beside those of client.py, which it is made of
- A frame is taken when it is whole, so frame-max is what the receive buffer can hold; a larger one is a frame error (501).
- A frame of an unknown type, or with a wrong end, ends the connection at once, and nothing more is sent ("MUST treat this as a fatal
  protocol error"). Traces are discarded; there is no out-of-band transport (540).
- 0.9a5 logs in with connection.secure-ok, 0.9r1 with connection.start-ok, or with secure-ok where the broker asks.
"""

from ...errors import FRAME_ERROR, NOT_IMPLEMENTED, SYNTAX_ERROR, ProtocolError
from .. import method
from ..field_table import text_of
from .client import Client, lower
from .draft_channel import Channel9a5, Channel9r1
from .draft_output import DraftOutput
from .draft_wire import BODY, HEADER, HEARTBEAT, METHOD, TRACE, Wire9a5, Wire9r1
from .output import place
from .states import CONNECTION

if False:  # for the type checker alone
    from typing import Any

# Actions: draft.py. Those of 0-9-1, and what the drafts have beside them.
DRAFT = (
    ("tune", "connection_secure", "tune", "on_secure"),
    ("open", "connection_unknown", "open", "ignore"),
) + CONNECTION

REPLIES = (
    ("frame-error", 501, True),
    ("unexpected-frame", 501, True),
    ("syntax-error", 502, True),
    ("command-invalid", 503, True),
    ("channel-error", 504, True),
    ("not-implemented", 540, True),
    ("internal-error", 541, True),
)


class Dialect:
    """What client.py reads of a version."""

    REPLIES = REPLIES

    def __init__(self, wire: "Any") -> None:
        self.METHODS = wire.spec.METHODS
        self.HEADER = wire.spec.HEADER
        self.VERSION = wire.spec.VERSION


class ClientOfDraft(Client):
    """What both share; the arguments are Client's."""

    wire: "Any"
    table: tuple = DRAFT
    client_properties: dict = {"product": "Leveret client", "version": "0.1.0"}

    def __init__(self, events, receive_size=65536, frame_size_max=32768, **given):
        most = receive_size - self.wire.overhead
        Client.__init__(self, events, receive_size=receive_size, frame_size_max=min(frame_size_max, most), **given)

    def new_output(self, size, kept):
        """The send buffer."""
        return DraftOutput(self.wire, size, kept)

    def decode(self, row, octets, at, end):
        """The arguments of a method."""
        return self.wire.arguments(row, octets, at, end)

    def encode(self, name, number, arguments):
        """The frame of a method, by its name."""
        return self.wire.method(name, number, arguments)

    def row(self, view, at, end):
        """(row of a method or None, its name, where its arguments begin)."""
        if end - at < 4:
            raise ProtocolError(SYNTAX_ERROR, "a method frame of %d octets" % (end - at))
        code = self.wire.code(view, at)
        row = method.find(self.dialect.METHODS, code)
        return row, row[method.NAME] if row else "method %d.%d" % (code >> 16, code & 0xFFFF), at + 4

    # Frames in

    def _process_frames(self):
        """Every whole frame."""
        view = self._receive
        at = 0
        while not self.closed:
            if self.state == "start" and self._filled - at >= 8 and bytes(view[at : at + 4]) == b"AMQP":
                octets = bytes(view[at : at + 8])  # "writes a valid protocol header to the socket and then closes it"
                self.finish(0, "the broker speaks AMQP %d-%d-%d, not %s" % (octets[5], octets[6], octets[7], self.version))
                break
            head = self.wire.head(view, at, self._filled)
            if head is None:
                break
            kind, number, start, end = head
            if not METHOD <= kind <= HEARTBEAT:
                self.finish(0, "the broker sent a frame of the unknown type %d" % kind)
                break
            if end - start > self.frame_size_max:
                raise ProtocolError(FRAME_ERROR, "a frame of %d octets; %d are the most" % (end - start, self.frame_size_max))
            if end >= self._filled:
                break
            if view[end] != 0xCE:
                self.finish(0, "the broker sent a frame that does not end with 0xCE")
                break
            self.on_frame(kind, number, start, end)
            at = end + 1
        left = self._filled - at
        if at and left > 0:
            place(view, 0, view[at : at + left])
        self._filled = left

    def on_frame(self, kind, number, at, end):
        """A whole frame's payload."""
        if BODY < kind < TRACE:
            raise ProtocolError(NOT_IMPLEMENTED, "a frame of type %d: there is no out-of-band transport" % kind)
        if kind == HEARTBEAT and (number or end > at):
            raise ProtocolError(FRAME_ERROR, "a heartbeat frame has channel 0 and no payload")
        if kind == TRACE and number and not self.wire.drops_empty:
            raise ProtocolError(FRAME_ERROR, "a trace frame on channel %d" % number)
        if kind == METHOD or kind == HEADER or kind == BODY:
            self._on_frame(kind, number, at, end)

    def _on_method(self, at, end):
        """A method of class connection."""
        row, name, at = self.row(self._receive, at, end)
        closing = self.state == "closing" and name != "connection_close_ok" and name != "connection_close"
        self._step(name, None if row is None or closing else self.decode(row, self._receive, at, end))

    # Opening

    def check_version(self, arguments):
        """True where connection.start names this draft."""
        if tuple(arguments[:2]) == self.dialect.VERSION:
            return True
        self.finish(0, "the broker speaks AMQP %d-%d, not %s" % (arguments[0], arguments[1], self.version))
        return False

    def on_secure(self, arguments):
        """connection.secure: what logs in."""
        self.output.put(self.encode("connection_secure_ok", 0, (self._login,)))

    def tuned(self, channel_max, frame_max, heartbeat):
        """(channels, frame-max, heartbeat) that both sides can do with, or None: the connection has ended."""
        channels = lower(channel_max, len(self.channels) - 1)
        self.frame_size_max = self.output.frame_size_max = lower(frame_max, self._offered_frame_size_max)
        self.heartbeat_s = lower(heartbeat, self._offered_heartbeat_s)
        if channels >= len(self.channels) - 1 and self.frame_size_max >= self.wire.least:
            return channels, self.frame_size_max, self.heartbeat_s
        self.finish(0, "the broker allows %d channels and frames of %d octets" % (channels, self.frame_size_max))
        return None


class Client9a5(ClientOfDraft):
    """The client of 0.9a5."""

    wire = Wire9a5()
    dialect: "Any" = Dialect(wire)
    version = "0.9a5"
    heartbeat = wire.heartbeat
    channel_class: "Any" = Channel9a5

    def on_start(self, arguments):
        """connection.start: [major, minor, mechanisms, locales]. The answer to it has no response: it goes with secure-ok."""
        if not self.check_version(arguments):
            return
        if self._mechanism.encode("utf-8") not in arguments[2].split(b" "):
            self.finish(0, "the broker offers no %s log-in but %s" % (self._mechanism, text_of(arguments[2])))
            return
        self.output.put(self.encode("connection_start_ok", 0, (self._mechanism, "en_US")))

    def on_tune(self, arguments):
        """connection.tune: [frame-max, channel-max, access-max, consumer-max, heartbeat, txn-limit, jms, file, stream]."""
        if not arguments[6]:
            self.finish(0, "the broker takes no messages of class jms")
            return
        tuned = self.tuned(arguments[1], arguments[0], arguments[4])
        if tuned:
            channels, frame_max, heartbeat = tuned
            given = (frame_max, channels, channels, heartbeat, True, False, False, 0)
            self.output.put(self.encode("connection_tune_ok", 0, given))
            self.output.put(self.encode("connection_open", 0, (self._virtual_host, "")))


class Client9r1(ClientOfDraft):
    """The client of 0.9r1."""

    wire = Wire9r1()
    dialect: "Any" = Dialect(wire)
    version = "0.9r1"
    heartbeat = wire.heartbeat
    channel_class: "Any" = Channel9r1

    def on_start(self, arguments):
        """connection.start: [major, minor, server-properties, mechanisms, locales]."""
        if self.check_version(arguments):
            Client.on_start(self, arguments)

    def on_tune(self, arguments):
        """connection.tune: [channel-max, frame-max, heartbeat]."""
        tuned = self.tuned(*arguments)
        if tuned:
            self.output.put(self.encode("connection_tune_ok", 0, tuned))
            self.output.put(self.encode("connection_open", 0, (self._virtual_host, "")))
