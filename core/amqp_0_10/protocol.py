"""AMQP 0-10 on one connection: frames in, controls, turns, the end (contract.Protocol). What goes out is in sending.py.

States: states.CONNECTION, whose actions are in handshake.py. A frame is taken when it is whole, which it can be in the receive buffer
(max-frame-size); one that has to wait stays where it is and is read again.
"""

from .. import states
from ..errors import FRAME_ERROR, RESOURCE_ERROR, ProtocolError
from ..memory import layout
from ..shim import const
from . import browsing, frame, handshake, hot_row, sessions, structs, watch
from .sending import Sending
from .session import WAITING_MAX
from .spec_0_10 import HEADER
from .states import CONNECTION

if False:  # for the type checker alone
    from typing import Any

FRAMES_A_TURN = const(64)  # that are taken before others have their turn
FRAME_MAX = const(65535)  # what the size of a frame can say
CONTROL = const(64)  # octets of a control that has begun and is not whole, beside its own


class Protocol(Sending):
    """AMQP 0-10 on a `connection` that begins with its header."""

    has_intake = False
    container_id = ""  # what a peer's connections have in common is not said here (core/broker/local.py)

    def __init__(self, connection):
        Sending.__init__(self, connection)
        limits = self.broker.limits
        self.receive = connection.receive
        self.frame_max_in = min(limits.frame_size_max, self.receive.size, FRAME_MAX)
        self.channel_max = limits.channel_max
        self.hot = hot_row.row(self.broker.tables)  # the hot path; None: all goes frame by frame
        self.heartbeat_ms = 0
        self.login: "Any" = None  # the log-in that is going on
        self.attached: "dict" = {}  # sessions by channel
        self.controls: "dict" = {}  # octets of controls in several frames, by channel
        self.held: "Any" = None  # the session whose complete message finds no room, or waits for the log
        self.leaving: "list" = []  # sessions that have ended and have not given back all they held
        self.browsing: "list" = []  # subscriptions that browse and have credit (browsing.py)
        self.waiting = False  # a whole frame waits for room in the broker or in the send buffer
        self.unfinished = 0  # messages that have begun (contract.Protocol)
        self.content_moved = self.broker.now

    @property
    def closing(self):
        """True once this side or the peer has said that the connection ends (contract.Protocol)."""
        return self.state in ("closing", "ended")

    # What comes in

    def process(self):
        """Take all frames that are whole; stop at what is incomplete or must wait, or when it is the turn of others."""
        connection = self.connection
        tables = self.broker.tables
        tables.begin_turn()
        if self.held is not None:
            session = self.held
            self.held = None
            session.guarded(session.complete)
        left = FRAMES_A_TURN
        if self.state == "start" and self.held is None:
            self.receive.start += len(HEADER)
            self.step("header")
        while self.held is None and self.state != "login" and connection.state == "served":
            if left == 0 or tables.state[layout.STATE_LEFT] <= 0:
                connection.wait_for_turn()
                break
            left -= 1
            if self.hot is not None and self.state == "open":
                answer = hot_row.ingest(self)
                if answer == layout.INCOMPLETE:
                    self.waiting = False
                    break
                if answer == layout.TURN_OVER:
                    continue
            if not self.one_frame():
                break
        if connection.closed:
            return
        connection.reading = self.held is None and not self.waiting and self.state != "login"
        for session in self.attached.values():
            if session.timeout_s:
                sessions.of(self.broker).note(session)
        self.flush()
        browsing.look(self)

    def one_frame(self):
        """Take the next frame; false when it is not whole, or must wait."""
        receive = self.receive
        self.waiting = False
        head = frame.read(receive.octets, receive.start, receive.end, self.frame_max_in)
        if head is None:
            return False
        flags, type_, _, channel, at, end = head
        if not self.may_take(type_, channel):
            self.waiting = True
            return False
        start = receive.start
        receive.start = end  # first: an end of the connection empties the buffer, and behind an error stands the peer's answer to it
        process = self.control_frame if type_ == frame.CONTROL else self.command_frame
        if process(channel, flags, type_, receive.octets, at, end) is not False:
            return True
        if self.connection.state == "served":
            receive.start = start
        self.waiting = True
        if self.connection.has_turn and self.held is None and self.connection not in self.broker.held:
            self.broker.counters["held"] += 1
            self.broker.held.append(self.connection)
        return False

    def may_take(self, type_, channel):
        """False when what a frame asks for wants an answer, and answers wait in a number that is enough; or when as many commands of its
        session wait for the log, which has us go on."""
        if self.replies:
            self.flush()
        session = self.attached.get(channel) if type_ == frame.COMMAND else None
        if session is not None and session.waiting_count() >= WAITING_MAX:
            session.write_waiting()
            if session.waiting_count() >= WAITING_MAX:
                return False
        return len(self.replies) < 2 * len(self.attached) + 2

    def control_frame(self, channel, flags, type_, octets, at, end):
        """A frame of a control: false when it must wait."""
        whole = flags & frame.WHOLE == frame.WHOLE
        before = self.controls.get(channel)
        if (before is None) != bool(flags & frame.FIRST_FRAME) or flags & frame.ONLY_SEGMENT != frame.ONLY_SEGMENT:
            raise ProtocolError(FRAME_ERROR, "a control's frame with flags 0x%02x on channel %d" % (flags, channel))
        payload = (before or b"") + bytes(octets[at:end])
        size = len(payload)
        if not whole:
            size += sum([len(self.controls[each]) + CONTROL for each in self.controls if each != channel])
        if size > self.broker.limits.argument_size_max:
            raise ProtocolError(RESOURCE_ERROR, "a control of more than %d octets, or several" % self.broker.limits.argument_size_max, True)
        if not whole and not flags & frame.LAST_FRAME:
            self.controls[channel] = payload
            return True
        name, fields = structs.control(payload)
        if self.process_control(name, channel, fields) is False:
            return False
        self.controls.pop(channel, None)
        return True

    def process_control(self, name, channel, fields):
        """A control: false when it must wait."""
        session = self.attached.get(channel)
        if name[:14] == "session_detach" and session is not None and fields["name"] != session.name:
            session = None  # of another session than the one that is attached here
        if session is None or self.state != "open" or name[:10] == "connection":
            return self.step(name, channel, fields)
        return session.guarded(session.step, name, fields)

    def command_frame(self, channel, flags, type_, octets, at, end):
        """A frame of a command, of a header or of a body: false when it must wait."""
        session = self.attached.get(channel)
        if session is None or self.state != "open":
            return self.step("command", channel, {})
        return session.guarded(session.step, "command", flags, type_, octets, at, end)

    def step(self, input_, *given):
        """Let the connection do what CONNECTION says of an input: what the action answers."""
        return states.step(self, CONNECTION, handshake, input_, self, *given)

    # Time, and the end

    def tick(self):
        """Time passes: see watch.py."""
        return watch.tick(self)

    def fail(self, condition, text):
        """The connection ends for an error: a close with its code where the peer can hear it."""
        self.step("error", condition, text)

    def shut(self, text):
        """Close from our side without an error of the peer's."""
        self.step("shut", text)

    def lost(self):
        """The peer has gone."""
        self.broker.tables.begin_turn()
        self.release_all()

    def release_all(self):
        """Give back what all sessions hold."""
        self.held = None
        self.outgoing.abandon(self)
        for session in list(self.attached.values()):
            session.lose()
        self.attached = {}

    def sessions(self):
        """Those that are attached (contract.Session)."""
        return [each for each in self.attached.values() if not each.closing]
