"""The AMQP 0-9-1 client: an endpoint (core/DESIGN.md section 1) that speaks the client's side, for boards and for Linux.

    client = Client(events, user="guest", password="guest", virtual_host="/")
    channel = client.channels[1]
    a port moves bytes; events.opened() -> channel.open() -> events.replied(channel, "channel_open_ok", ...) -> channel.queue_declare("q")

Laws
- No socket, clock or randomness. Two buffers, made in the constructor; what arrives is parsed where it lies.
- A frame may be larger than the receive buffer: bodies go through it in pieces. A content above `content_size_max`, or whose header
  does not fit the receive buffer, is passed over and reported as `refused`; the connection goes on.
- The end comes once, as `events.ended(code, text)`; `reset()` makes the client ready for a new stream.
- Room for the answers that the protocol demands (close-ok, flow-ok, heartbeat, close) is kept free in the send buffer.

It does not reconnect (a port does, with core/bridge/backoff.py). It logs in with PLAIN, or with EXTERNAL where TLS has shown a certificate.
"""

from struct import unpack_from

from ... import states
from ...errors import CHANNEL_ERROR, COMMAND_INVALID, FRAME_ERROR, ProtocolError
from ...shim import const, elapsed
from .. import frame, method, spec_0_9_1
from ..field_table import text_of
from ..replies import reply_of, reply_text
from .channel import Channel
from .events import Events
from .output import Output, place
from .states import CONNECTION

_BODY = const(3)
_METHOD = const(1)
_HEADER = const(2)
_HEARTBEAT = const(8)
_END = const(0xCE)

_ANSWER_ROOM = const(32)  # octets kept free per channel, for channel.close-ok and channel.flow-ok
_CLOSE_ROOM = const(320)  # octets kept free for connection.close, a heartbeat and a basic.cancel-ok
_CLOSE_TEXT_MAX = const(120)

CAPABILITIES = {
    "publisher_confirms": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


class Client:
    """One connection's client side. Sizes in octets, `heartbeat_s` in seconds (0: none unless the broker asks; the smaller of both counts).

    `frame_size_max` is offered to the broker, at least 4096 (section 4.2.3; RabbitMQ from 4.1 on refuses less than 8192, with 530). It
    takes no memory: a frame larger than the buffers passes through them in pieces.
    `channel_count` channels exist as `channels[1]`...; `confirm_window`: most unconfirmed messages per channel.
    """

    dialect = spec_0_9_1  # methods and reply codes of its version
    version = "0-9-1"
    channel_class = Channel
    insist = False  # of connection.open
    heartbeat = frame.HEARTBEAT_FRAME
    table: tuple = CONNECTION  # its states
    decode = staticmethod(method.decode)  # of (a method's row, octets, where its arguments begin, their end): a list
    client_properties: dict = {"product": "Leveret client", "version": "0.1.0", "capabilities": CAPABILITIES}  # client-properties

    def __init__(
        self,
        events,
        user="guest",
        password="guest",
        virtual_host="/",
        receive_size=2048,
        send_size=2048,
        channel_count=1,
        frame_size_max=8192,
        content_size_max=4096,
        confirm_window=32,
        heartbeat_s=60,
        open_timeout_ms=10000,
        mechanism="PLAIN",
    ):
        assert frame_size_max >= frame.FRAME_MIN_SIZE
        kept = channel_count * _ANSWER_ROOM + _CLOSE_ROOM
        assert receive_size >= 1024 and send_size >= 1024 + kept
        assert isinstance(events, Events)
        self.events = events
        self.content_size_max = content_size_max
        assert len(user) + len(password) <= 400
        self._mechanism = mechanism
        self._login = b"" if mechanism == "EXTERNAL" else b"\x00" + user.encode("utf-8") + b"\x00" + password.encode("utf-8")
        self._virtual_host = virtual_host
        self._offered_frame_size_max = frame_size_max
        self._offered_heartbeat_s = heartbeat_s
        self._open_timeout_ms = open_timeout_ms
        self._receive = memoryview(bytearray(receive_size))
        self._nothing = self._receive[0:0]
        self.output = self.new_output(send_size, kept)
        self.channels: list = [None] + [self.channel_class(self, number, confirm_window) for number in range(1, channel_count + 1)]
        self.reset()

    def reset(self):
        """Ready for a new stream: everything of the old one is forgotten, channels are closed."""
        self.closed = False
        self.blocked = False
        self.state = "start"
        self.server_properties = {}
        self.frame_size_max = self._offered_frame_size_max
        self.heartbeat_s = 0
        self._filled = 0
        self._piece_left = 0  # octets still to come of a frame larger than the receive buffer, its end octet included
        self._piece_channel = None  # whose body they are; None: they are passed over
        self.output.reset(self._offered_frame_size_max)
        self._heard = self._spoke = False
        self._heard_at = self._spoke_at = self._state_at = None
        for channel in self.channels[1:]:
            channel.reset()
        self.output.put(self.dialect.HEADER)

    def close(self, code=200, text="closed"):
        """End the connection: connection.close, then `ended` when the broker has answered, at the latest after `open_timeout_ms`."""
        self._step("close", code, text)

    def send_close(self, code, text):
        """Say it to the broker, and discard all but its answer."""
        self._drop_channels()
        self.output.put(self.encode("connection_close", 0, (code, text, 0, 0)))

    def new_output(self, size, kept):
        """The send buffer."""
        return Output(size, kept)

    def encode(self, name, number, arguments):
        """The frame of a method, by its name."""
        return method.encode(method.named(self.dialect.METHODS, name), number, arguments)

    # The endpoint.

    def writable(self):
        """Where received octets go."""
        return self._nothing if self.closed else self._receive[self._filled :]

    def received(self, n):
        """n octets are in `writable()`; 0: the stream has ended."""
        if self.closed:
            return
        if n == 0:
            self.finish(0, "the peer closed the stream" if self.state != "start" else "no AMQP broker answers")
            return
        self._filled += n
        self._heard = True
        try:
            self._process_frames()
        except ProtocolError as error:
            self._fail(error)

    def pending(self):
        """The octets to be sent."""
        return self.output.pending()

    def sent(self, n):
        """The first n octets of `pending()` were sent."""
        self._spoke = True
        self.output.sent(n)

    def tick(self, now):
        """Time passes: send heartbeats, notice a silent broker (section 4.2.7: after two intervals), bound opening and closing."""
        if self._state_at is None:
            self._heard_at = self._spoke_at = self._state_at = now
        if self._heard:
            self._heard = False
            self._heard_at = now
        if self._spoke:
            self._spoke = False
            self._spoke_at = now
        if self.closed:
            return
        if self.state != "open":
            if elapsed(now, self._state_at) > self._open_timeout_ms:
                self.finish(0, "no answer from the broker for %d ms" % self._open_timeout_ms)
        elif self.heartbeat_s:
            if elapsed(now, self._heard_at) > self.heartbeat_s * 2000:
                self.finish(0, "no heartbeat from the broker for %d s" % (self.heartbeat_s * 2))
            elif elapsed(now, self._spoke_at) >= self.heartbeat_s * 500 and self.output.is_empty():
                self._spoke_at = now
                self.output.put(self.heartbeat)

    def answer(self, octets):
        """A frame that the protocol demands of us; without room even for that the peer does not read, and the connection ends."""
        if not self.output.answer(octets):
            self.finish(0, "the broker does not read")

    # Out of the receive buffer.

    def _process_frames(self):
        """Every whole frame, and the pieces of one that is larger than the buffer."""
        view = self._receive
        at = 0
        while not self.closed:
            if self._piece_left:
                at = self._process_piece(at)
            if self._filled - at < 8:
                break
            type_, number, size = unpack_from(">BHI", view, at)
            if size > self.frame_size_max - frame.OVERHEAD or self.state == "start":
                self._check_size(type_, size)
                if self.closed:
                    break
            end = at + 7 + size
            if end >= self._filled:
                if end - at < len(view):
                    break
                at = self._begin_piece(type_, number, size, at)
                if self._piece_left:
                    continue
                break
            if view[end] != _END:
                raise ProtocolError(FRAME_ERROR, "a frame of %d octets that does not end in 0xCE" % size)
            self._on_frame(type_, number, at + 7, end)
            at = end + 1
        left = self._filled - at
        if at and left > 0:
            place(view, 0, view[at : at + left])
        self._filled = left

    def _on_frame(self, type_, number, at, end):
        """One whole frame's payload."""
        if number == 0:
            if type_ == _METHOD:
                self._on_method(at, end)
            elif type_ != _HEARTBEAT:
                raise ProtocolError(COMMAND_INVALID, "a frame of type %d on channel 0" % type_)
            return
        if self.state == "closing":
            return
        channel = self._channel(number)
        if type_ == _METHOD:
            channel.on_method(self._receive, at, end)
        elif type_ == _BODY:
            channel.on_body(self._receive, at, end)
        elif type_ == _HEADER:
            channel.on_header(self._receive, at, end, end - at)
        else:
            raise ProtocolError(FRAME_ERROR, "a frame of type %d on channel %d" % (type_, number))

    def _channel(self, number):
        if number >= len(self.channels):
            raise ProtocolError(CHANNEL_ERROR, "channel %d; there are %d" % (number, len(self.channels) - 1))
        return self.channels[number]

    def _check_size(self, type_, size):
        """Frames above the negotiated size, and a broker that answers our protocol header with its own (section 4.2.2).

        Content headers may be larger: RabbitMQ 3.10 sends one in a single frame, whatever was negotiated.
        """
        octets = self._receive
        if type_ == 0x41 and octets[1] == 0x4D and octets[2] == 0x51 and octets[3] == 0x50 and self.state == "start":
            speaks = "the broker speaks AMQP %d-%d-%d, not %s" % (octets[5], octets[6], octets[7], self.version)
            self.finish(0, "no AMQP broker answers" if octets[4] == 2 else speaks)  # 2: 1.0's header of TLS
        elif size > self.frame_size_max - frame.OVERHEAD and type_ != _HEADER:
            raise ProtocolError(FRAME_ERROR, "a frame of %d octets; %d are the most" % (size + frame.OVERHEAD, self.frame_size_max))

    def _begin_piece(self, type_, number, size, at):
        """A frame larger than the receive buffer: bodies go on in pieces; the first octets of a header describe the content that is passed
        over."""
        view = self._receive
        if type_ == _BODY and number:
            self._piece_channel = self._channel(number)
        elif type_ == _HEADER and number:
            if at or self._filled < len(view):  # moved to the front, and the buffer full: all of it that there can be
                return at
            self._channel(number).on_header(view, 7, self._filled, size)
            self._piece_channel = None
            self._piece_left = size + 8 - self._filled
            return self._filled
        else:
            raise ProtocolError(FRAME_ERROR, "a frame of %d octets; the receive buffer has %d" % (size + 8, len(view)))
        self._piece_left = size + 1
        return at + 7

    def _process_piece(self, at):
        """Octets of the large frame; its last one is the frame end."""
        size = min(self._piece_left - 1, self._filled - at)
        if size and self._piece_channel is not None:
            self._piece_channel.on_body(self._receive, at, at + size)
        at += size
        self._piece_left -= size
        if self._piece_left == 1 and at < self._filled:
            if self._receive[at] != _END:
                raise ProtocolError(FRAME_ERROR, "a large frame that does not end in 0xCE")
            self._piece_left = 0
            at += 1
        return at

    # Channel 0.

    def _on_method(self, at, end):
        """A method of class connection: the input of that name."""
        code = unpack_from(">I", self._receive, at)[0] if end - at >= 4 else 0
        row = method.find(self.dialect.METHODS, code)
        name = row[method.NAME] if row else "method %d.%d" % (code >> 16, code & 0xFFFF)
        refused = states.find(self.table, self.state, name)[3] in ("ignore", "!command-invalid")  # not read, it may be none at all
        self._step(name, None if refused else self.decode(row, self._receive, at + 4, end))

    def _step(self, input_, *given):
        """Do what the table of states says of an input; `tick` counts the time in a state from its next call on."""
        before = self.state
        states.step(self, self.table, self, input_, *given)
        if self.state != before:
            self._state_at = None

    def refuse(self, condition, input_, state, arguments):
        """A method that the state does not allow."""
        raise ProtocolError(condition, "%s in the state %s" % (input_.replace("_", ".", 1), state))

    def ignore(self, *given):
        """Discard an input."""

    def on_start(self, arguments):
        """connection.start: log in (section 2.2.4)."""
        if self._mechanism.encode("utf-8") not in arguments[3].split(b" "):
            self.finish(0, "the broker offers no %s log-in but %s" % (self._mechanism, text_of(arguments[3])))
            return
        self.server_properties = arguments[2]
        self.output.put(self.encode("connection_start_ok", 0, (self.client_properties, self._mechanism, self._login, "en_US")))

    def on_tune(self, arguments):
        """connection.tune: the smaller of both sides' limits, 0 being none (section 1.4.2.5 of the reference)."""
        channel_max = lower(arguments[0], len(self.channels) - 1)
        self.frame_size_max = self.output.frame_size_max = lower(arguments[1], self._offered_frame_size_max)
        self.heartbeat_s = lower(arguments[2], self._offered_heartbeat_s)
        if channel_max < len(self.channels) - 1 or self.frame_size_max < frame.FRAME_MIN_SIZE:
            self.finish(0, "the broker allows %d channels and frames of %d octets" % (channel_max, self.frame_size_max))
            return
        self.output.put(self.encode("connection_tune_ok", 0, (channel_max, self.frame_size_max, self.heartbeat_s)))
        self.output.put(self.encode("connection_open", 0, (self._virtual_host, "", self.insist)))

    def on_open_ok(self, arguments):
        """connection.open-ok."""
        self.events.opened()

    def on_blocked(self, arguments):
        """connection.blocked (RabbitMQ's)."""
        self.blocked = True
        self.events.blocked(arguments[0])

    def on_unblocked(self, arguments):
        """connection.unblocked."""
        self.blocked = False
        self.events.unblocked()

    def on_close(self, arguments):
        """connection.close: answered, then the end."""
        self.output.answer(self.encode("connection_close_ok", 0, ()))
        self.finish(arguments[0], arguments[1])

    def on_close_ok(self, arguments):
        """connection.close-ok."""
        self.finish(200, "closed")

    # The end.

    def _fail(self, error):
        """The broker broke the protocol: say so to it and end; what follows in the stream cannot be trusted."""
        if self.closed:
            return
        code = reply_of(self.dialect, error.condition)[0]
        text = reply_text(error.condition, error.text)[:_CLOSE_TEXT_MAX]
        if self.state != "start":
            self.output.answer(self.encode("connection_close", 0, (code, text, 0, 0)))
        self.finish(code, text)

    def _drop_channels(self):
        for channel in self.channels[1:]:
            channel.state = "closed"
            self.output.abandon(channel)

    def finish(self, code, text):
        """Stop reading; pending octets may still be sent."""
        self.closed = True
        self.state = "ended"
        self._drop_channels()
        self.events.ended(code, text)


def lower(theirs, ours):
    """The smaller of two limits where 0 is none."""
    return theirs if ours == 0 or 0 < theirs < ours else ours
