"""The AMQP 0-10 client: an endpoint (core/DESIGN.md section 1) that speaks the client's side, with one session.

    client = Client(events, user="guest", password="guest")
    a port moves bytes; events.opened() -> client.command("queue_declare", {"queue": "q"}) -> events.completed(id)

Laws
- No socket, clock or randomness. What is received has one buffer, made in the constructor; what is sent is at most `send_size` octets and
  one command.
- The peer's commands are completed as soon as `events` has seen them.
- The end comes once, as `events.ended(code, text)`; `reset()` makes the client ready for a new stream.
- With `timeout_s` the session lives so long beyond its connection, as far as the peer grants it: who attaches one of the same name hears in
  `missing` which of its commands the peer has not seen, [] for a session that is new. What was sent is not kept here (transfers.py).

It does not reconnect (a port does, with core/bridge/backoff.py).
"""

from ... import states
from ...access.client_login import mechanism as mechanism_of
from ...errors import FRAME_ERROR, ProtocolError
from ...memory import serial
from ...shim import const, elapsed
from .. import frame, structs
from ..ranges import Ranges, ascending
from ..spec_0_10 import HEADER
from .events import Events
from .states import CONNECTION

if False:  # for the type checker alone
    from typing import Any

FRAME_MAX = const(65535)
PORT = const(5672)
LOGIN_REFUSED = const(320)  # reply-code of connection.close before the connection is open: how a broker says it


class Client:
    """One connection's client side. `name`: of its session (bytes); `mechanism`: PLAIN, EXTERNAL, ANONYMOUS or SCRAM-SHA-256, which has a
    `nonce` (random text in bytes, another one for each connection); `heartbeat_s`: how often we want to hear from the peer and it from us,
    0: not at all; `timeout_s`: how long the session is to live beyond the connection."""

    def __init__(
        self,
        events,
        user="guest",
        password="guest",
        virtual_host="/",
        mechanism="PLAIN",
        nonce=b"",
        name=b"leveret",
        send_size=131072,
        heartbeat_s=30,
        open_timeout_ms=10000,
        timeout_s=0,
    ):
        assert isinstance(events, Events)
        self.events = events
        self.virtual_host = virtual_host
        self.mechanism = mechanism
        self._login = mechanism_of(mechanism, user, password, nonce)
        self.name = name
        self.send_size = send_size
        self.heartbeat_s = heartbeat_s
        self.open_timeout_ms = open_timeout_ms
        self.timeout_s = timeout_s
        self._receive = memoryview(bytearray(2 * FRAME_MAX))
        self.reset()

    def reset(self):
        """Ready for a new stream."""
        self.state = "start"  # states.CONNECTION
        self.closed = False
        self.frame_max = frame.SIZE_LEAST  # octets of a frame that is sent
        self.beat_ms = 0
        self._filled = 0
        self._out: "list" = [HEADER]
        self._out_at = 0  # octets of its first piece that are gone
        self._queued = len(HEADER)
        self._parts = {}  # type of segment -> octets of it so far
        self._whole = b""  # the control that comes in several frames
        self._begun: "Any" = None  # (name, fields) of the content that is coming
        self.next_id = 0
        self.telling: "dict" = {}  # ids of commands whose completion is told
        self.missing: "list" = []  # ranges of our ids that the peer expects, of a session that has gone on; [] for a new one
        self.redirects: "list" = []  # (host, port) of the brokers that connection.redirect names, the best first
        self.expected: "Any" = None  # the id of the peer's next command
        self.done = Ranges()  # of its commands, as far as it does not know
        self.is_new = False
        self._exception: "Any" = None  # (code, text)
        self._heard_at = self._spoke_at = self._began_at = None
        self._heard = self._spoke = False

    def close(self):
        """End the connection; `ended` when the peer has answered."""
        self.step("shut", {})

    # The endpoint

    def writable(self):
        """Where received octets go."""
        return self._receive[0:0] if self.closed else self._receive[self._filled :]

    def received(self, n):
        """n octets are in `writable()`; 0: the stream has ended."""
        if self.closed:
            return
        if n == 0:
            self.finish(0, "the peer closed the stream" if self.state != "start" else "no AMQP 0-10 broker answers")
            return
        self._filled += n
        self._heard = True
        try:
            self._process()
        except ProtocolError as error:
            self.finish(0, "%s: %s" % (error.condition, error.text))
        if self.is_new and self.state in ("asking", "open"):
            self.is_new = False
            self.control("session_completed", {"commands": self.done.runs, "timely_reply": True})

    def pending(self):
        """The octets to be sent."""
        return memoryview(self._out[0])[self._out_at :] if self._out else memoryview(b"")

    def sent(self, n):
        """The first n octets of `pending()` were sent."""
        self._spoke = True
        self._out_at += n
        self._queued -= n
        if self._out and self._out_at == len(self._out[0]):
            self._out.pop(0)
            self._out_at = 0
        if self.state == "open":
            self.events.room()

    def room(self):
        """Octets that further commands should have at most now."""
        return self.send_size - self._queued

    def tick(self, now):
        """Time passes: heartbeats both ways, and a limit for opening and closing."""
        if self._began_at is None:
            self._began_at = now
        if self._heard or self._heard_at is None:
            self._heard, self._heard_at = False, now
        if self._spoke or self._spoke_at is None:
            self._spoke, self._spoke_at = False, now
        if self.closed:
            return
        if self.state != "open":
            if elapsed(now, self._began_at) > self.open_timeout_ms:
                self.finish(0, "no answer from the broker for %d ms" % self.open_timeout_ms)
        elif self.beat_ms and elapsed(now, self._heard_at) > 2 * self.beat_ms:
            self.finish(0, "nothing from the broker for %d ms" % (2 * self.beat_ms))
        elif self.beat_ms and elapsed(now, self._spoke_at) >= self.beat_ms and not self._out:
            self._spoke_at = now
            self.control("connection_heartbeat", {})

    # What goes out

    def put(self, octets):
        """Queue whole frames."""
        self._out.append(octets)
        self._queued += len(octets)

    def control(self, name, fields):
        """Send a control."""
        flags = frame.FIRST_SEGMENT | frame.LAST_SEGMENT
        self.put(frame.segment(flags, frame.CONTROL, 0, structs.write_control(name, fields), self.frame_max))

    def command(self, name, fields, header=None, has_body=False, tell=False):
        """Send a command: its id. `header`: octets of its header segment, or None; `has_body`: `body` follows; `tell`: report its
        completion."""
        flags = frame.FIRST_SEGMENT | (frame.LAST_SEGMENT if header is None and not has_body else 0)
        octets = frame.segment(flags, frame.COMMAND, 0, structs.write_command(name, fields, tell), self.frame_max)
        if header is not None:
            octets += frame.segment(0 if has_body else frame.LAST_SEGMENT, frame.HEADER, 0, header, self.frame_max)
        self.put(octets)
        id_, self.next_id = self.next_id, serial.after(self.next_id, 1)
        self._is_first = True  # of a body's frames
        if tell:
            self.telling[id_] = True
        return id_

    def body(self, octets, is_last):
        """Send octets of the content under way, at most `frame_max` less frame.HEAD."""
        flags = frame.LAST_SEGMENT | (frame.FIRST_FRAME if self._is_first else 0) | (frame.LAST_FRAME if is_last else 0)
        self._is_first = False
        self.put(frame.write(flags, frame.BODY, 0, octets))

    # What comes in

    def _process(self):
        """Every whole frame, behind the header."""
        view, at = self._receive, 0
        if self.state == "start":
            if self._filled < len(HEADER):
                return
            if bytes(view[: len(HEADER)]) != HEADER:
                self.finish(0, "the peer does not speak AMQP 0-10")
                return
            at = len(HEADER)
            self.step("header")
        while not self.closed:
            head = frame.read(view, at, self._filled, FRAME_MAX)
            if head is None:
                break
            flags, type_, _, channel, begin, at = head
            if channel:
                raise ProtocolError(FRAME_ERROR, "a frame on channel %d, where no session is" % channel)
            payload = bytes(view[begin:at])
            if type_ != frame.CONTROL:
                self.step("command", flags, type_, payload)
                continue
            self._whole += payload
            if flags & frame.LAST_FRAME:
                payload, self._whole = self._whole, b""
                self.step(*structs.control(payload))
        left = self._filled - at
        if at and left > 0:
            self._receive[:left] = bytes(view[at : at + left])
        self._filled = left

    def step(self, input_, *given):
        """Do what CONNECTION says of an input."""
        states.step(self, CONNECTION, self, input_, *given)

    def refuse(self, condition, input_, state, *given):
        """An input that the state does not allow."""
        raise ProtocolError(condition, "%s in the state %s" % (input_, state))

    def ignore(self, *given):
        """Discard an input."""

    # Controls of class connection

    def log_in(self, fields):
        """connection.start."""
        if self.mechanism not in (fields["mechanisms"] or []):
            self.finish(LOGIN_REFUSED, "the broker offers no %s log-in but %s" % (self.mechanism, " ".join(fields["mechanisms"] or [])))
            return
        given = {
            "client_properties": {"product": "Leveret"},
            "mechanism": self.mechanism,
            "response": self._login.first(),
            "locale": "en_US",
        }
        self.control("connection_start_ok", given)

    def secure(self, fields):
        """connection.secure: the mechanism goes on."""
        self.control("connection_secure_ok", {"response": self._login.next(fields["challenge"] or b"")})

    def tune(self, fields):
        """connection.tune, then connection.open."""
        if not self._login.finished(b""):
            self.finish(LOGIN_REFUSED, "the broker has not proved that it knows the password")
            return
        size = min(fields["max_frame_size"] or FRAME_MAX, FRAME_MAX)
        beat = min(max(self.heartbeat_s, fields["heartbeat_min"] or 0), fields["heartbeat_max"] or 0)
        self.beat_ms = 1000 * beat
        given = {"channel_max": fields["channel_max"], "max_frame_size": size, "heartbeat": beat}
        self.control("connection_tune_ok", given)
        self.control("connection_open", {"virtual_host": self.virtual_host})
        self.frame_max = size

    def redirected(self, fields):
        """connection.redirect: the application connects there."""
        for text in [fields["host"] or ""] + (fields["known_hosts"] or []):
            self.redirects += hosts_of(text)
        self.finish(0, "the broker redirects to %s" % (fields["host"] or ""))

    def attach(self, fields):
        """connection.open-ok: begin the session."""
        self.control("session_attach", {"name": self.name, "force": True})

    def attached(self, fields):
        """session.attached: our commands begin at 0, or where the session is."""
        if not self.timeout_s:
            self.step("begin")
            return
        self.control("session_request_timeout", {"timeout": self.timeout_s})
        self.control("session_flush", {"expected": True})

    def begin(self):
        """A new session."""
        self.point(0)
        self.events.opened()

    def go_on(self, fields):
        """session.expected: zero elements mean that the session is new."""
        self.missing = fields["commands"] or []
        if self.missing:
            self.events.opened()
        else:
            self.begin()

    def timeout(self, fields):
        """session.timeout: what the peer grants."""
        self.timeout_s = fields["timeout"] or 0

    def point(self, id_):
        """Our next command has this id."""
        self.next_id = id_
        self.control("session_command_point", {"command_id": id_, "command_offset": 0})

    def send_close(self, fields):
        """Close: connection.close. The session ends with it."""
        if self.timeout_s:
            self.control("session_request_timeout", {"timeout": 0})
        self.control("connection_close", {"reply_code": 200, "reply_text": "closed"})

    def closed_too(self, fields):
        """The peer's connection.close."""
        self.control("connection_close_ok", {})
        code = fields["reply_code"] or 0
        self.finish(0 if code == 200 else code, fields["reply_text"] or "")

    def end(self, fields):
        """Our close is answered."""
        self.finish(0, "closed")

    def finish(self, code, text):
        """The connection is over."""
        if not self.closed:
            self.state = "ended"
            self.closed = True
            if self._exception is not None:
                code, text = self._exception
            self.events.ended(code, text)

    # Controls of class session

    def command_point(self, fields):
        """session.command-point: the id of the peer's next command."""
        self.expected = fields["command_id"] or 0

    def completed(self, fields):
        """session.completed: of our commands."""
        ranges = fields["commands"] or []
        known = ascending(ranges)
        for id_ in list(self.telling):
            if known.has(id_):
                del self.telling[id_]
                self.events.completed(id_)
        if fields["timely_reply"]:
            self.control("session_known_completed", {"commands": ranges})

    def known_completed(self, fields):
        """session.known-completed: these need not be told again."""
        self.done = self.done.without(ascending(fields["commands"] or []))

    def flush(self, fields):
        """session.flush: say what is completed."""
        self.is_new = True

    def detach(self, fields):
        """The peer's session.detach, behind an exception."""
        self.control("session_detached", {"name": self.name, "code": 0})
        self.finish(0, "the broker has detached the session")

    def detached(self, fields):
        """session.detached: the peer has no such session."""
        self.finish(0, "the broker has detached the session (code %d)" % (fields["code"] or 0))

    # Commands

    def command_frame(self, flags, type_, payload):
        """A frame of a command, of a header or of a body."""
        if self.expected is None:
            raise ProtocolError(FRAME_ERROR, "a command before session.command-point")
        is_whole = bool(flags & frame.LAST_FRAME)
        is_end = is_whole and bool(flags & frame.LAST_SEGMENT)
        if type_ == frame.BODY:
            self._begin_content()
            self.events.body(payload, is_end)
        else:
            self._parts[type_] = self._parts.get(type_, b"") + payload
            if is_end and (type_ == frame.HEADER or self._begun is not None):
                self._begin_content()
                self.events.body(b"", True)
            elif is_end:
                self._no_content()
        if is_end:
            self._parts, self._begun = {}, None
            self.done.add(self.expected, self.expected)
            self.expected = serial.after(self.expected, 1)
            self.is_new = True

    def _begin_content(self):
        """All before a body has come: report it once."""
        if self._begun is None:
            name, fields, _ = structs.command(self._parts.get(frame.COMMAND, b""))
            self._begun = name, fields
            self.events.content(name, fields, self._parts.get(frame.HEADER, b""))

    def _no_content(self):
        """A command without content."""
        name, fields, _ = structs.command(self._parts.get(frame.COMMAND, b""))
        if name == "execution_exception":
            self._exception = fields["error_code"] or 0, fields["description"] or ""
        self.events.command(name, fields)


def hosts_of(text):
    """[(host, port)] of an amqp-host-url: amqp: and tcp: may stand before a host, several hosts have commas between; those of other
    transports are left out."""
    hosts = []
    for each in (text[5:] if text.startswith("amqp:") else text).split(","):
        each = each[4:] if each.startswith("tcp:") else each
        host, _, port = each.rpartition(":")
        if not port.isdigit():
            host, port = each, str(PORT)
        if host[:1] == "[" and host[-1:] == "]":
            host = host[1:-1]
        elif ":" in host:
            continue
        if host and 0 < int(port) < 65536:
            hosts.append((host, int(port)))
    return hosts
