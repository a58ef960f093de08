"""A connection's session in 0-9-1: frames in, states, channels, the end. Output: sending.py; time-outs: watch.py.

States of the connection and of its channels: states.py; their actions: handshake.py and verbs.py. The session reads input frame by
frame from the receive buffer: method and header frames when they are whole, body frames as their octets come. While a content is half
written (outgoing.py), contents and acknowledgements are still taken in, but a method that wants a reply waits.
"""

from .. import limits, states
from ..errors import (
    COMMAND_INVALID,
    FRAME_ERROR,
    INTERNAL_ERROR,
    NOT_ALLOWED,
    RESOURCE_ERROR,
    SYNTAX_ERROR,
    ProtocolError,
)
from ..memory import layout
from ..message.route import exchange_of
from ..outcomes import TAKEN
from ..parts import part
from ..shim import const, table
from . import content, frame, handshake, method, replies, spec_0_9_1, verbs, watch
from .channel import Channel
from .hot_row import Row
from .sending import Sending
from .states import CHANNEL, CONNECTION

if False:  # for the type checker alone
    from typing import Any

# As in frame.py, here for speed.
_METHOD = const(1)
_HEADER = const(2)
_BODY = const(3)
_HEARTBEAT = const(8)
_BASIC = const(60)  # the class
_END = const(0xCE)
_OVERHEAD = const(8)

# Methods without a reply, which the session processes even while it cannot write.
SILENT = ("basic_publish", "basic_ack", "basic_nack", "basic_reject", "channel_close_ok", "connection_close_ok")

NUMBERS_LEAST = 4  # channel numbers that a session begins with
FRAMES_A_TURN = 64  # processed one by one before others have their turn
EFFORT = 32  # queues, consumers or bindings that a frame visits: as much effort as one more frame


class Session(Sending):
    """One session on a `connection` that begins with the protocol header (contract.Protocol). `dialect`: methods, reply codes and header of
    its version, a row as spec_0_9_1; another version is a class with another one."""

    has_intake = True
    looks_ahead = True  # its frames are those of 0-9-1: what is not for `ingest` is seen before it is asked
    most_taken = 1  # octets: there may be more
    dialect: "Any" = spec_0_9_1
    has_invalid_path = False  # for a virtual host that is not there; RabbitMQ's not-allowed is 0-9-1's
    tells_capabilities = True  # its version has the type boolean in tables
    heartbeat = frame.HEARTBEAT_FRAME
    channel_class = Channel
    verbs_beside: "dict" = {}  # methods that another version has beside those of verbs.py, or has in their place: name -> function
    # Fields that few sessions change or that are read rarely: see core/connection/connection.py.
    heartbeat_ms = 0
    login: "Any" = None  # the log-in that is going on
    leaving: "Any" = ()  # channels of a connection that closes, whose deliveries are on their way back
    body_size = 0  # of that frame
    body_channel: "Any" = None  # None: the octets are dropped
    held_since = 0  # broker.now when `held` was set
    told_blocked = False
    channel_max = 0  # as its peer has it; 0: limits.channel_max
    unfinished = 0  # contents that have begun
    patient = True  # false: incomplete contents are processed frame by frame
    effort = 0  # of the current frame, beside itself

    def __init__(self, connection):
        Sending.__init__(self, connection)
        self.hot = self.broker.tables.engine.row(Row)
        self.receive = connection.receive
        self.receive.start += len(self.dialect.HEADER)
        self.frame_size_max = self.broker.limits.frame_size_max
        self.capabilities = {}
        self.writable = ()  # names that the user is known to have the write permission for
        self.channels: "Any" = {}  # by number
        self.closing_method = 0  # class and method that a close names
        self.code = -1  # class and method of the last method frame, and its row in METHODS
        self.row: "Any" = None
        self.numbers: "Any" = None  # channel number -> record, for `ingest`; None: no channel was opened yet
        self.numbers_at = None  # the same as the engine wants it
        self.begun = 0  # contents under way frame by frame
        self.route_asked = False  # the route of the next publish was not in the cache
        self.body_left = -1  # octets to come of a body frame; 0: its end octet; -1: at a frame's begin
        self.incomplete = False  # `ingest` waits for the rest of a frame or a content
        self.content_moved = self.broker.now
        self.held: "Any" = None  # the channel whose complete content finds no room
        self.settling = layout.NONE  # in the middle of a method that takes several turns: up to which delivery tag (low 30 bits) it settles
        self.waiting = False  # a whole frame waits for room in the send buffer or in the arena
        handshake.begin(self)

    @property
    def user(self):
        """The name of the user that has logged in; "" before."""
        return "" if self.connection.user is None else self.connection.user.name

    # Frames in

    def process(self):
        """Process all whole frames; stop at a frame that is incomplete or must wait, or when the turn is over."""
        if self.held is not None:
            channel = self.held
            self.held = None
            content.complete(self, channel)
        connection = self.connection
        if self.receive.start == self.receive.end:  # it was called for what waits to be written
            self.incomplete = self.waiting = False
        else:
            self.take_frames(connection)
        if connection.closed:
            return
        connection.reading = self.held is None and not self.waiting and self.state != "login"
        if connection.reading and self.told_blocked:
            self.told_blocked = False
            self.reply(0, "connection_unblocked", ())
        self.flush()

    def take_frames(self, connection):
        """Process whole frames of our connection as `process` has it."""
        tables, receive = self.broker.tables, self.receive
        ingests = self.patient and tables.engine.ingests
        left = FRAMES_A_TURN
        tables.state[layout.STATE_LEFT] = tables.engine.effort  # as begin_turn: each turn of a connection comes here
        while self.held is None and self.state != "login" and connection.state == "served":
            taken: "Any" = False
            if ingests and self.begun == 0 and self.body_left < 0 and self.numbers is not None and self.settling < 0:
                at = receive.start
                nothing = at == receive.end
                if (  # nothing, or a method of another class than basic, is not for `ingest`, but where it logs what came before
                    nothing
                    or self.looks_ahead
                    and receive.end - at > 8
                    and receive.octets[at] == _METHOD
                    and receive.octets[at + 8] != _BASIC
                ) and tables.state[layout.STATE_LOGGED_HEAD] == layout.NONE:
                    self.incomplete = False
                    if nothing:
                        tables.state[layout.STATE_AT] = at  # as `ingest` leaves it
                        self.waiting = False
                        break
                else:
                    taken = self.ingest()
                    if taken:
                        break
            if left == 0 or tables.state[layout.STATE_LEFT] <= 0:
                connection.wait_for_turn()
                break
            if taken is None:
                continue
            left -= 1
            going_on = self.one_frame()
            if self.effort:
                left = max(left - self.effort // EFFORT, 0)
                self.effort = 0
            if not going_on:
                break

    def ingest(self):
        """Have the engine process publishes and acknowledgements that need no decision; true when the next frame is not whole: wait for the
        rest. None: ask again, because the log has received messages since, and the next one may have waited for these."""
        receive = self.receive
        tables = self.broker.tables
        state = tables.state
        state[layout.STATE_AT] = receive.start
        state[layout.STATE_END] = receive.end
        state[layout.STATE_SIZE] = receive.size
        state[layout.STATE_FRAME_MAX] = self.frame_size_max
        state[layout.STATE_NUMBERS] = len(self.numbers)
        state[layout.STATE_USER] = self.connection.user.number
        state[layout.STATE_KEEP] = self.broker.tables.transactions_left
        journal = self.broker.journal
        state[layout.STATE_LOG_ROOM] = 0 if journal is None else journal.log.room_for(2 * receive.size)
        answer = self.hot.ingest(self.numbers_at, receive.address)
        asked = layout.NONE
        try:
            while answer == layout.ASK_ROUTE and state[layout.STATE_AT] != asked:
                asked = state[layout.STATE_AT]
                if not self.find_way(asked):
                    break
                answer = self.hot.ingest(self.numbers_at, receive.address)
            receive.start = state[layout.STATE_AT]
        finally:
            message = state[layout.STATE_KEPT_HEAD]
            if message != layout.NONE:
                state[layout.STATE_KEPT_HEAD] = layout.NONE
                self.keep(message, state[layout.STATE_KEPT_CHANNEL])
        logged = state[layout.STATE_LOGGED_HEAD] != layout.NONE
        try:
            if logged:
                journal.log_pushed()
        except Exception:  # all or nothing: no queue keeps a message that the log lacks
            journal.withdraw()
            raise
        finally:
            handle = state[layout.STATE_COUNTED_HEAD]
            if handle != layout.NONE:
                state[layout.STATE_COUNTED_HEAD] = layout.NONE  # whatever comes: these are no other session's channels
                self.counted(tables, handle)
        self.route_asked = answer == layout.ASK_ROUTE
        available = receive.end - receive.start
        self.incomplete = answer == layout.INCOMPLETE and 0 < available < receive.size
        self.waiting = False
        return None if logged and answer == layout.ASK else answer == layout.INCOMPLETE and available < receive.size

    def keep(self, message, handle):
        """The engine has read contents, this one and those behind it, that the transaction of a channel is to keep; one that it cannot keep
        is nobody's."""
        tables = self.broker.tables
        channel = self.channels[tables.channels[handle + layout.CHANNEL_NUMBER]]
        failure = None
        while message != layout.NONE:
            kept, message = message, tables.messages[message + layout.MESSAGE_SEGMENT] - 1
            tables.messages[kept + layout.MESSAGE_SEGMENT] = 0
            try:
                if failure is not None:
                    tables.release(kept)
                else:
                    channel.transaction.add(kept, b"", None)
            except Exception as error:  # ours: the connection ends, and with it the transaction
                failure = error
                tables.release(kept)
        if failure is not None:
            self.connection.broke(failure)

    def process_part(self):
        """Process the octets of an incomplete content, which has not continued for a while."""
        self.incomplete = self.patient = False
        self.process()
        self.patient = True

    def find_way(self, at):
        """Cache the route of the publish at `at` of the receive buffer; false when the route needs more than a look-up."""
        octets = self.receive.octets
        size = (octets[at + 5] << 8 | octets[at + 6]) - 7
        route = bytes(octets[at + 13 : at + 13 + size])
        try:
            exchange = exchange_of(route)
        except UnicodeError:
            return False
        if exchange not in self.writable:
            return False
        further = part("amqp_0_9.further")
        cached = None if further is None else further.find(self, at, route, exchange)
        return self.broker.remember_route(self.connection.user.number, exchange, route) if cached is None else cached

    def counted(self, tables, handle):
        """The engine has counted publishes of channels in confirm mode, this one and those behind it: they are to be confirmed."""
        while handle != layout.NONE:
            channel = self.channels[tables.channels[handle + layout.CHANNEL_NUMBER]]
            if tables.channels[handle + layout.CHANNEL_COUNTED] == 2:
                channel.promises.logged()
            first = (tables.channels[handle + layout.CHANNEL_COUNTED_FROM] + 1) & layout.MASK
            channel.promises.decided(tables.channels[handle + layout.CHANNEL_PUBLISHED], TAKEN, first)
            tables.channels[handle + layout.CHANNEL_COUNTED] = 0
            self.wants_to_write(channel)
            handle = tables.channels[handle + layout.CHANNEL_NEXT_COUNTED]

    def one_frame(self):
        """Process the next frame or a piece of a body; false when it is not whole, or must wait."""
        self.waiting = False
        if self.body_left >= 0:
            return self.body_piece()
        receive = self.receive
        available = receive.end - receive.start
        if available < 7:
            return False
        octets = receive.octets
        at = receive.start
        kind = octets[at]
        number = octets[at + 1] << 8 | octets[at + 2]
        size = octets[at + 3] << 24 | octets[at + 4] << 16 | octets[at + 5] << 8 | octets[at + 6]
        if not 0 < kind <= _BODY or size > self.frame_size_max or kind != _BODY and size + _OVERHEAD > receive.size:
            self.check_frame(kind, number, size)
        if kind == _BODY:
            self.begin_body(number, size)
            receive.start += 7
            return True
        if available < size + _OVERHEAD:
            return False
        if octets[at + 7 + size] != _END:
            raise ProtocolError(FRAME_ERROR, "a frame that does not end with 0xCE but with 0x%02X" % octets[at + 7 + size])
        if kind == _METHOD and size >= 4 and not self.may_begin(number, octets, at + 7):
            self.waiting = True
            return False
        return self.whole_frame(kind, number, octets, at + 7, at + 7 + size, at + size + _OVERHEAD)

    def whole_frame(self, kind, number, octets, begin, end, behind):
        """Process a whole frame, whose payload lies between `begin` and `end`; false when it must wait. `behind`: where the next one begins
        in the receive buffer."""
        receive = self.receive
        at = receive.start
        receive.start = behind
        going_on = self.received(kind, number, octets, begin, end)
        if not going_on and self.settling >= 0:
            receive.start = at
            return False
        if self.settling >= 0:
            self.settling = layout.NONE
            self.send.feed()
        if not going_on:
            receive.start = at
            self.waiting = True
            if self.connection.has_turn:
                self.wait_for_room()
            return False
        return True

    def check_frame(self, kind, number, size):
        """Raise for a frame that cannot be (section 4.2.3); its payload has not been waited for.

        As in RabbitMQ a frame may be larger than negotiated by its overhead: some clients (amqpstorm) do not count that.
        """
        if kind == 0 or kind > _BODY and kind != _HEARTBEAT:
            raise ProtocolError(FRAME_ERROR, "unknown frame type %d" % kind)
        if size > self.frame_size_max:
            raise ProtocolError(FRAME_ERROR, "a frame of %d octets; %d were negotiated" % (size + _OVERHEAD, self.frame_size_max))
        if kind != _BODY and size + _OVERHEAD > self.receive.size:
            raise ProtocolError(
                RESOURCE_ERROR, "a method or header frame of %d octets; this broker takes %d" % (size + _OVERHEAD, self.receive.size)
            )
        if kind == _HEARTBEAT and (number or size):
            raise ProtocolError(FRAME_ERROR, "a heartbeat frame has channel 0 and no payload (section 4.2.7)")

    def may_begin(self, number, octets, at):
        """False when the method at `at` wants a reply and that cannot be written now, or too many returned contents wait on its channel."""
        code = octets[at] << 24 | octets[at + 1] << 16 | octets[at + 2] << 8 | octets[at + 3]
        if code != self.code:
            self.code = code
            self.row = method.find(self.dialect.METHODS, code)
        row = self.row
        if row is not None and row[method.NAME] in SILENT:
            channel = self.channels.get(number)
            return len(self.replies) < 2 * len(self.channels) + 2 and (
                channel is None or len(channel.returns) + len(channel.promises.waiting) // 2 < self.broker.limits.return_count_max
            )
        if self.writing:
            self.flush()  # returns and confirms go before the reply to a later method
        return not self.outgoing.active() and not self.replies and not self.writing and self.send.room() >= limits.REPLY_ROOM

    def received(self, kind, number, octets, at, end):
        """A whole frame that is not a body; false when its content has no room now."""
        if kind == _HEARTBEAT:
            return True
        if kind == _METHOD:
            return self.process_method(number, octets, at, end) is not False
        return self.act(number, "content_header", None, octets, at, end) is not False

    def process_method(self, number, octets, at, end):
        """A method frame that `may_begin` has looked up: the state's answer to it. False: it must wait for room in the broker."""
        if end - at < 4:
            raise ProtocolError(SYNTAX_ERROR, "a method frame of %d octets" % (end - at))
        code, row = self.code, self.row
        if row is None:
            raise ProtocolError(COMMAND_INVALID, "there is no class %d with a method %d" % (code >> 16, code & 0xFFFF))
        self.closing_method = code
        if not row[method.SENDER] & method.CLIENT:
            raise ProtocolError(COMMAND_INVALID, "%s is not a client's to send" % method.title(row))
        return self.act(number, row[method.NAME], row, octets, at + 4, end)

    def step(self, input_, *given):
        """Run the connection's action for an input, by the table CONNECTION. Returns the action's answer."""
        return states.step(self, CONNECTION, handshake, input_, self, *given)

    def act(self, number, input_, row, octets, at, end):
        """Run the action of the connection or a channel for a frame, by its table: false when the frame must wait. `input_`: its name in
        the table.

        A soft error closes the channel, not the connection.
        """
        if number == 0 or self.state != "open":
            return self.step("on_channel" if number else input_, number, row, octets, at, end)
        channel = self.channels.get(number)
        if channel is None:
            channel = self.channel_class(self, number)
        try:
            return self.step_of(channel, input_, row, octets, at, end)
        except ProtocolError as error:
            return self.soft(channel, error)

    def step_of(self, channel, input_, *given):
        """Run a channel's action for an input, by the table CHANNEL. Returns the action's answer."""
        return states.step(channel, CHANNEL, verbs, input_, self, channel, *given)

    def on_channel(self, channel, action, *given):
        """Run a part of a channel; a soft error in it closes the channel, not the connection."""
        try:
            return action(self, channel, *given)
        except ProtocolError as error:
            return self.soft(channel, error)

    def soft(self, channel, error):
        """Close a channel for a ProtocolError; one that is hard is raised (section 1.2 of the reference)."""
        code, hard = replies.reply_of(self.dialect, error.condition)
        if hard or error.hard:
            raise error
        self.shut_channel(channel, code, replies.reply_text(error.condition, error.text))
        return True

    def begin_body(self, number, size):
        """The first seven octets of a body frame have come."""
        self.act(number, "content_body", None, self.receive.octets, 0, size)
        channel = self.channels.get(number)
        self.body_channel = channel if channel is not None and channel.state == "body" else None
        self.body_left = self.body_size = size

    def body_piece(self):
        """Move the received octets of a body frame into its blocks; then check its end octet."""
        receive = self.receive
        size = min(self.body_left, receive.end - receive.start)
        channel = self.body_channel
        if channel is not None and channel.state != "body":
            channel = None
        if size:
            if channel is not None:
                channel.append(receive.octets, receive.start, size)
            receive.start += size
            self.body_left -= size
        if self.body_left or receive.start == receive.end:
            return False
        if receive.octets[receive.start] != _END:
            raise ProtocolError(FRAME_ERROR, "a body frame that does not end with 0xCE but with 0x%02X" % receive.octets[receive.start])
        receive.start += 1
        self.body_left = -1
        if channel is not None and channel.body_left == 0:
            content.complete(self, channel)
        return True

    def take_in(self, descriptor, most):
        """Have the engine read the next octets from the socket, when they are the rest of a body in large frames: the octets read;
        None: none now; 0: the peer has closed; -1: they are not. `took_in` is to follow."""
        if self.body_channel is None and not self.incomplete:
            return -1
        hot = self.hot
        return hot.take_in(self, descriptor) if hot.takes_in is not None and hot.takes_in(self) else -1

    def took_in(self):
        """Octets of a body have come."""
        self.content_moved = self.broker.now
        self.process()

    def hold(self, channel):
        """There is no room for a complete content: read no more from this peer until there is."""
        self.held = channel
        self.wait_for_room()

    def hold_for_log(self, channel):
        """A content waits for the log: read no more from this peer until the log has written its records."""
        self.held = channel
        self.broker.journal.wait_for(self)

    def wait_for_room(self):
        """Ask the broker to call `connection.resume` after it has delivered."""
        if self.connection.reading:
            self.held_since = self.broker.now
            self.broker.counters["held"] += 1
        if self.connection not in self.broker.held:
            self.broker.held.append(self.connection)

    def go_on_later(self):
        """False: the current method continues in the connection's next turn; until then the connection gets no deliveries."""
        self.settling = max(self.settling, 0)
        self.connection.wait_for_turn()
        return False

    # Channels

    def may_be_new(self, number):
        """Raise when a frame is for one more channel than were negotiated: as RabbitMQ counts, channels, not their numbers."""
        most = self.channel_max or self.broker.limits.channel_max
        if number and len(self.channels) >= most:
            raise ProtocolError(
                NOT_ALLOWED,
                "number of channels opened (%d) has reached the negotiated channel_max (%d)" % (len(self.channels), most),
            )

    def open_channel(self, channel):
        """channel.open (section 1.5.2.1)."""
        number = channel.number
        handle = self.broker.consumers.open_session(self.connection)
        if handle is None:
            raise ProtocolError(RESOURCE_ERROR, "this broker holds %d channels at most" % self.broker.limits.channel_count_max)
        channel.handle = handle
        self.channels[number] = channel
        self.broker.tables.channels[handle + layout.CHANNEL_NUMBER] = number
        self.broker.tables.channels[handle + layout.CHANNEL_PLAIN] = 1
        self.number_channel(number, handle)
        self.reply(number, "channel_open_ok", (b"",))

    def number_channel(self, number, handle):
        """Have `ingest` find the record of a channel by its number; NONE: no more. Numbers above channel_max are for `one_frame`."""
        if number > self.broker.limits.channel_max:
            return
        if self.numbers is None or number >= len(self.numbers):
            before = () if self.numbers is None else self.numbers
            self.numbers = table(min(max(number + 1, 2 * len(before), NUMBERS_LEAST), self.broker.limits.channel_max + 1))
            for each in range(len(self.numbers)):
                self.numbers[each] = before[each] if each < len(before) else layout.NONE
            self.numbers_at = self.broker.tables.engine.integers(self.numbers)
        self.numbers[number] = handle

    def shut_channel(self, channel, code, text):
        """Close a channel from our side; its content and deliveries end here, frames that are under way are dropped.

        Earlier publishes were accepted: their returns and confirms go before the close (section 1.8.3.9), the returns also when they have
        to wait.
        """
        closes = self.closing_method if channel.state == "open" else 0x3C0028  # basic.publish
        self.broker.counters["channel_errors"] += 1
        self.broker.inform(
            "%s: channel %d of user '%s' closed with %d %s" % (self.connection.name, channel.number, self.user, code, text), True
        )
        if channel.waits_to_write:
            self.write_waiting()
        returns = channel.returns
        channel.returns = []
        self.release_channel(channel)
        octets = self.encoded("channel_close", channel.number, (code, text, closes >> 16, closes & 0xFFFF))
        if returns:
            channel.returns = returns
            channel.last_words = octets
            self.wants_to_write(channel)
        else:
            self.write(octets)

    def release_channel(self, channel):
        """Release everything that a channel holds: it is closing from now on."""
        if channel.waits_to_write:
            channel.waits_to_write = False
            self.writing.remove(channel)
        self.step_of(channel, "release")

    # Ends

    def fail(self, condition, text):
        """The connection is closed for an error (section 1.4.2.10), behind the returns and confirms of what came before it, as far as there
        is room for them; a peer before its log-in gets no method, only the end."""
        if self.writing and condition not in (INTERNAL_ERROR, RESOURCE_ERROR):  # these may have come from writing
            self.write_waiting()
        self.step("error", condition, text)

    def shut(self, text):
        """Close from our side without an error: at once where the connection is not open yet, for a peer would not answer a method
        there."""
        self.step("shut", text)

    def close(self, code, text):
        """Send connection.close, whose answer the peer then owes."""
        self.release_all()
        self.outgoing.abandon(self)
        self.replies = []
        self.send.busy = True
        octets = self.encoded("connection_close", 0, (code, text, self.closing_method >> 16, self.closing_method & 0xFFFF))
        if self.send.room() < len(octets):
            self.replies.append(octets)
        else:
            self.send.write(octets)
        self.send.touch()
        self.connection.reading = True
        self.connection.ending_since = self.broker.now

    def release_all(self):
        """Release everything that the channels hold."""
        self.held = None
        for channel in self.channels.values():
            self.release_channel(channel)
            if channel.handle != layout.NONE:
                self.leaving = self.leaving or []
                self.leaving.append(channel)
        self.channels = {}
        self.writing = []

    def lost(self):
        """The peer has closed."""
        self.broker.tables.begin_turn()
        self.release_all()
        self.outgoing.abandon(self)

    def sessions(self):
        """The open channels."""
        return self.channels.values()

    def tick(self):
        """Time passes: see watch.py."""
        return watch.tick(self)
