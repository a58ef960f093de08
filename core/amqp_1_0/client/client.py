"""The AMQP 1.0 client: an endpoint (core/DESIGN.md section 1) that speaks the client's side, for boards and for Linux.

    client = Client(events, user="guest", password="guest")
    sender = client.session.sender("readings")
    a port moves bytes; events.opened() -> sender.attach() -> events.attached(sender) -> sender.send(...) -> events.settled(...)

Laws
- No socket, clock or randomness. Two buffers, made in the constructor; a frame is never larger than the one it is read from, which the
  peer is told (max-frame-size); a message comes and goes in as many transfers as it takes.
- The end comes once, as `events.ended(condition, text)`; `reset()` makes the client ready for a new stream, with the same links.
- Room for the answers that the protocol demands (detach, close, an empty frame) is kept free in the send buffer.

It does not reconnect (a port does, with core/bridge/backoff.py).
"""

from ... import states
from ...access.client_login import mechanism as mechanism_of
from ...errors import ACCESS_REFUSED, COMMAND_INVALID, FRAME_ERROR, SYNTAX_ERROR, ProtocolError
from ...shim import const, elapsed
from .. import composites, frame
from ..spec_1_0 import HEADER_AMQP, HEADER_SASL
from .events import Events
from .output import Output, place
from .session import CHANNEL, Session, end_links
from .states import CONNECTION, SESSION

if False:  # for the type checker alone
    from typing import Any

_CLOSE_ROOM = const(512)  # octets kept free for close, an empty frame, and answers to a peer that detaches
_TEXT_MAX = const(200)
_FRAME_MAX = const(1048576)  # octets of a frame that is sent, whatever the peer takes
_EMPTY = b"\x00\x00\x00\x08\x02\x00\x00\x00"  # a frame without a body: we live (section 2.4.5)

CONDITIONS = {
    FRAME_ERROR: "amqp:connection:framing-error",
    SYNTAX_ERROR: "amqp:decode-error",
    COMMAND_INVALID: "amqp:illegal-state",
    ACCESS_REFUSED: "amqp:unauthorized-access",
}
LOGIN_CODES = (
    "",
    "the peer refuses the user or the password",
    "the peer's log-in has failed",
    "the peer's log-in has failed for good",
    "the peer's log-in has failed for now",
)
LOGIN_REFUSED = "amqp:unauthorized-access"


class Client:
    """One connection's client side. Sizes in octets.

    `hostname`: the peer's virtual host, as "vhost:name" for RabbitMQ; `mechanism`: of login.py, "" for a peer that wants no log-in;
    `nonce`: random text (bytes) for SCRAM-SHA-256, another one for each connection. `container` names this client among the peer's.
    `message_size_max`: of what is received; `window`: most unsettled messages of a Sender. `idle_ms`: the peer has to be heard in it,
    0: it may be silent; its own wish is obeyed.
    """

    def __init__(
        self,
        events,
        user="guest",
        password="guest",
        hostname=None,
        container="leveret",
        mechanism="PLAIN",
        nonce=b"",
        receive_size=2048,
        send_size=2048,
        message_size_max=4096,
        window=32,
        idle_ms=60000,
        open_timeout_ms=10000,
    ):
        assert receive_size >= frame.SIZE_MIN_MAX and send_size >= 512 + _CLOSE_ROOM
        assert isinstance(events, Events)
        self.events = events
        self.container = container
        self.message_size_max = message_size_max
        self._hostname = hostname
        self._login_name = mechanism
        self._login_given = (user, password, nonce)
        self._idle_ms = idle_ms
        self._open_timeout_ms = open_timeout_ms
        self._receive = memoryview(bytearray(receive_size))
        self._nothing = self._receive[0:0]
        self.output = Output(send_size, _CLOSE_ROOM)
        self.session = Session(self, window)
        self.state = "ended"
        self.reset()

    def reset(self):
        """Ready for a new stream: everything of the old one is forgotten, links are detached."""
        self.closed = False
        self.state = "start" if self._login_name else "header"
        self.frame_size_max = frame.SIZE_MIN_MAX  # of what we send
        self.remote: "Any" = {}  # fields of the peer's open
        self._login: "Any" = mechanism_of(self._login_name, *self._login_given) if self._login_name else None
        self._filled = 0
        self._header_due = True  # a protocol header comes next
        self._beat_ms = 0
        self._heard = self._spoke = False
        self._heard_at = self._spoke_at = self._state_at = None
        self.session.reset()
        self.output.clear()
        self.output.put(HEADER_SASL if self._login_name else HEADER_AMQP)
        if not self._login_name:
            self._say_open()

    def close(self, condition="", text="closed"):
        """End the connection: close, then `ended` when the peer has answered, at the latest after `open_timeout_ms`."""
        self._step("shut", condition, text)

    # The endpoint

    def writable(self):
        """Where received octets go."""
        return self._nothing if self.closed else self._receive[self._filled :]

    def received(self, n):
        """n octets are in `writable()`; 0: the stream has ended."""
        if self.closed:
            return
        if n == 0:
            self.finish("", "the peer closed the stream" if self.state != "start" else "no AMQP 1.0 broker answers")
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
        if self.session.streaming is not None:
            self.session.stream()

    def tick(self, now):
        """Time passes: show the peer that we live, notice a silent one, bound opening and closing (section 2.4.5)."""
        if self._state_at is None:
            self._state_at = now
        if self._heard_at is None or self._heard:
            self._heard = False
            self._heard_at = now
        if self._spoke_at is None or self._spoke:
            self._spoke = False
            self._spoke_at = now
        if self.closed:
            return
        if self.state != "open" or self.session.state != "mapped":
            if elapsed(now, self._state_at) > self._open_timeout_ms:
                self.finish("", "no answer from the broker for %d ms" % self._open_timeout_ms)
            return
        if self._idle_ms and elapsed(now, self._heard_at) > self._idle_ms * 2:
            self._say_close("amqp:resource-limit-exceeded", "local-idle-timeout expired")
            self.finish("", "nothing from the broker for %d ms" % (self._idle_ms * 2))
        elif self._beat_ms and elapsed(now, self._spoke_at) >= self._beat_ms and self.output.is_empty():
            self._spoke_at = now
            self.output.put(_EMPTY)
        self.session.go_on()

    # Out of the receive buffer

    def _process_frames(self):
        """Every whole frame, and the protocol headers between the layers."""
        view = self._receive
        at = 0
        while not self.closed:
            if self._header_due:
                if self._filled - at < 8:
                    self._check(bytes(view[at : self._filled]))
                    break
                self._on_header(bytes(view[at : at + 8]))
                at += 8
                continue
            read = frame.read(view, at, self._filled, len(view))
            if read is None:
                break
            type_, channel, body, end = read
            self._on_frame(type_, channel, body, end)
            at = end
        left = self._filled - at
        if at and left > 0:
            place(view, 0, view[at : at + left])
        self._filled = left

    def _check(self, octets):
        """The begin of a protocol header."""
        if octets[:4] != b"AMQP"[: len(octets)]:
            self.finish("", "what answers is no AMQP broker")

    def _on_header(self, octets):
        """A protocol header (section 2.2): the one that was asked for, or the version that the peer has."""
        if octets not in (HEADER_SASL, HEADER_AMQP) or (octets == HEADER_SASL) != (self.state == "start"):
            if octets[:4] == b"AMQP":
                version = (octets[5], octets[6], octets[7], octets[4])
                self.finish("", "the peer speaks AMQP %d-%d-%d, protocol %d, and not 1.0 as asked" % version)
            else:
                self.finish("", "what answers is no AMQP broker")
            return
        self._header_due = False
        self._step("header-sasl" if octets == HEADER_SASL else "header-amqp")

    def _on_frame(self, type_, channel, at, end):
        """One whole frame's body."""
        if at == end:
            return
        name, fields, behind = composites.read(self._receive, at, end)
        if (type_ == frame.SASL) != name.startswith("sasl-"):
            raise ProtocolError(FRAME_ERROR, "%s in a frame of type %d" % (name, type_))
        if type_ == frame.SASL or name in ("open", "close"):
            self._step(name, fields)
        elif self.state == "open":
            self.session.process(name, channel, fields, self._receive[behind:end])
        elif self.state != "closing":
            raise ProtocolError(COMMAND_INVALID, "%s in the state %s" % (name, self.state))

    def _step(self, input_, *given):
        """Do what CONNECTION says of an input; `tick` counts the time in a state from its next call on."""
        before = self.state
        states.step(self, CONNECTION, self, input_, *given)
        if self.state != before:
            self._state_at = None

    def refuse(self, condition, input_, state, *given):
        """A frame that the state does not allow."""
        raise ProtocolError(condition, "%s in the state %s" % (input_, state))

    def ignore(self, *given):
        """Discard an input."""

    # Log-in (part 5, section 5.3)

    def on_mechanisms(self, fields):
        """sasl-mechanisms: choose ours."""
        offered = fields["sasl-server-mechanisms"]
        if self._login_name not in offered:
            self.finish(LOGIN_REFUSED, "the broker offers no %s log-in but %s" % (self._login_name, " ".join(offered)))
            return
        given = {"mechanism": self._login_name, "initial-response": self._login.first()}
        if self._hostname:
            given["hostname"] = self._hostname
        self._say(frame.SASL, "sasl-init", given)

    def on_challenge(self, fields):
        """sasl-challenge."""
        self._say(frame.SASL, "sasl-response", {"response": self._login.next(fields["challenge"])})

    def on_outcome(self, fields):
        """sasl-outcome: logged in, or why not."""
        if fields["code"]:
            self.finish(LOGIN_REFUSED, LOGIN_CODES[fields["code"]])
            return
        if not self._login.finished(fields["additional-data"] or b""):
            self.finish(LOGIN_REFUSED, "the peer does not prove that it knows the password")
            return
        self._header_due = True
        self.output.put(HEADER_AMQP)
        self._say_open()

    def _say_open(self):
        """open (section 2.7.1)."""
        fields = {"container-id": self.container, "max-frame-size": len(self._receive), "channel-max": CHANNEL}
        if self._hostname:
            fields["hostname"] = self._hostname
        if self._idle_ms:
            fields["idle-time-out"] = self._idle_ms
        fields["properties"] = {("symbol", "product"): "Leveret client"}
        self._say(frame.AMQP, "open", fields)

    def _say(self, type_, name, fields):
        self.output.answer(frame.write(type_, CHANNEL, composites.write(name, fields)))

    def on_open(self, fields):
        """The peer's open: begin the session."""
        self.remote = fields
        # Broker-J says 0 in front of the close with which it refuses a virtual host that is not active.
        self.frame_size_max = max(frame.SIZE_MIN_MAX, min(fields["max-frame-size"], _FRAME_MAX))
        self._beat_ms = (fields["idle-time-out"] or 0) // 2
        states.step(self.session, SESSION, self.session, "map")

    # The end

    def send_close(self, condition, text):
        """close; what comes before its answer is discarded."""
        self._say_close(condition, text)

    def _say_close(self, condition, text):
        self.session.streaming = None
        fields = {"error": {"condition": condition, "description": text[:_TEXT_MAX]}} if condition else {}
        self._say(frame.AMQP, "close", fields)

    def on_close(self, fields):
        """The peer's close: answered, then the end."""
        self._say(frame.AMQP, "close", {})
        error = fields["error"] or {}
        self.finish(error.get("condition", ""), error.get("description") or "the peer closed the connection")

    def on_close_answered(self, fields):
        """The peer has answered our close."""
        error = fields["error"] or {}
        self.finish(error.get("condition", ""), error.get("description") or "closed")

    def _fail(self, error):
        """The peer broke the protocol: say so to it and end; what follows in the stream cannot be trusted."""
        if self.closed:
            return
        condition = CONDITIONS.get(error.condition, "amqp:not-allowed")
        if self.state == "open":
            try:
                self._say_close(condition, error.text)
            except ProtocolError:
                self.output.clear()  # it does not read: nothing of it would arrive
        self.finish(condition, error.text)

    def finish(self, condition, text):
        """Stop reading; pending octets may still be sent."""
        if self.closed:
            return
        self.closed = True
        self.state = "ended"
        end_links(self.session, condition, text)
        self.session.reset()
        self.events.ended(condition, text)
