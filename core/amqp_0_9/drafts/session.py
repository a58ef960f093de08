"""The session of a connection that speaks a draft of 2005: that of 0-8 behind the draft's own frames, methods and contents.

Each method of the draft becomes the one of 0-8 that does the same, by the table METHODS_IN of its session, and each answer of 0-8 one of
the draft's, by METHODS_OUT; states, verbs, permissions, transactions and the ends are those of 0-8. What the tables cannot say is in the
functions that they name, in frames.py and in contents.py.
"""

from ...broker import getting
from ...errors import (
    CHANNEL_ERROR,
    COMMAND_INVALID,
    FRAME_ERROR,
    INTERNAL_ERROR,
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    RESOURCE_ERROR,
    SYNTAX_ERROR,
    ProtocolError,
)
from ...limits import REPLY_ROOM
from ...memory import layout
from ...message import reading
from ...parts import part
from ...queue.turns import charge_made, is_overdue
from ...shim import MICROPYTHON, const, elapsed
from ...staging import properties as shared
from ...staging import publishing
from .. import deliver, method, properties, spec_0_8, verbs
from ..filing import Filing
from ..foreign import Lead
from ..outgoing import foreign
from ..replies import reply_of
from . import contents
from .fields import Reader
from .frames import BODY, END, HEADER, HEARTBEAT, METHOD, TRACE
from .outgoing import Outgoing

if False:  # for the type checker alone
    from typing import Any

NOT_DELIVERED = const(310)
NAMES = {6: "basic", 7: "jms", 8: "file", 9: "stream"}  # classes of contents
TAG_MAX = const(0xFFFF)  # of a consumer: a short
LEAST_ROOM = const(512)  # octets beside those for replies, so that a delivery begins
NEGOTIATING = ("start", "login", "secure", "tune", "opening")  # states of a connection that is not open yet
METHOD_ROOM = const(1024)  # octets of the method of a delivery, at most

# Conditions (core/errors.py) that both drafts have a reply code for. No code of theirs says what is `precondition-failed` or
# `resource-locked` in 0-8: these close a channel with 507 (not-allowed) and 403 (access-refused).
REPLIES = (
    ("not-delivered", 310, False),
    ("content-too-large", 311, False),
    ("invalid-path", 402, True),
    ("access-refused", 403, False),
    ("not-found", 404, False),
    ("resource-locked", 403, False),
    ("precondition-failed", 507, False),
    ("frame-error", 501, True),
    ("unexpected-frame", 501, True),
    ("syntax-error", 502, True),
    ("command-invalid", 503, True),
    ("channel-error", 504, True),
    ("resource-error", 506, True),
    ("not-allowed", 507, True),
    ("not-implemented", 540, True),
    ("internal-error", 541, True),
    ("connection-forced", 541, True),
)


class Dialect:
    """What the session of 0-8 reads of a dialect: 0-8's methods, the draft's header and reply codes."""

    METHODS = spec_0_8.METHODS
    REPLIES = REPLIES

    def __init__(self, wire):
        self.HEADER = wire.HEADER
        self.VERSION = wire.VERSION


class Draft(Filing):
    """A session of one of them. `wire`: the draft's tables; `framing`, `fields`: how it writes frames and fields."""

    has_intake = looks_ahead = False
    tells_capabilities = False
    wire: "Any"
    framing: "Any"
    fields: "Any"
    # The draft's method -> function of (session, number of the channel, arguments): (0-8's, its arguments); None: it is done.
    METHODS_IN: "dict" = {}
    METHODS_OUT: "dict" = {}  # 0-8's method -> function of (session, arguments): (the draft's, its arguments); None: it is not sent
    outgoing: "Any"
    tickets: "dict" = {}
    file_id = 8
    stream_id = 9
    tags = 0  # the consumer tag that was given last
    wire_code = 0  # class << 16 | method of the last method that came
    tree: "Any" = None  # contents.Tree: a content whose contents within are coming
    root: "Any" = None  # (number of the channel, payload) of its header, once these are whole
    opening: "Any" = None  # arguments of a channel.open that is under way
    quick: "Any" = None  # hot_row.Own, where there is one
    refusal: "Any" = None  # (condition, text, broker.now) of an error of the negotiation whose answer waits
    half: "list" = []  # channels with a publish of 0.9a5 whose header is to come

    def __init__(self, connection):
        Filing.__init__(self, connection)
        self.outgoing = Outgoing()
        quick = None if MICROPYTHON else part("amqp_0_9.drafts.hot_row_quicker")
        self.quick = None if quick is None else self.broker.tables.engine.row(quick.Row).of(self)
        self.hot = self.quick

    def number_channel(self, number, handle):
        """Without a hot path the engine takes no frames of a draft."""
        if self.quick is not None:
            Filing.number_channel(self, number, handle)

    def ingest(self):
        """As of 0-9-1, but not behind a publish whose header is to come."""
        if self.half:
            self.half = [channel for channel in self.half if channel.publishing is not None and channel.state == "open"]
            if self.half:
                return False
        return Filing.ingest(self)

    def find_way(self, at):
        """As of 0-9-1, where the hot path has the publish as one of 0-9-1."""
        state, receive = self.broker.tables.state, self.receive
        end = state[layout.STATE_END]
        self.receive = self.quick.asked
        state[layout.STATE_END] = self.quick.asked.end
        try:
            return Filing.find_way(self, 0)
        finally:
            self.receive, state[layout.STATE_END] = receive, end

    # Frames in

    def one_frame(self):
        """Process the next frame or a piece of a body; false when it is not whole, or must wait."""
        self.waiting = False
        if self.root is not None:
            return self.outermost()
        if self.body_left >= 0:
            return self.body_piece()
        receive = self.receive
        octets, at = receive.octets, receive.start
        head = self.framing.head(octets, at, receive.end)
        if head is None:
            return False
        kind, number, lead, size = head
        if not 0 < kind <= HEARTBEAT:
            return self.cut("a frame of the unknown type %d" % kind)
        self.check_frame(kind, number, size)
        is_dropped = kind == BODY and size == 0 and self.framing.drops_empty
        if kind == TRACE:
            self.body_channel, self.body_left, self.body_size = None, size, size
            receive.start += lead
            return True
        if kind == BODY and not is_dropped and self.tree_of(number) is None:
            self.begin_body(number, size)
            receive.start += lead
            return True
        end = at + lead + size
        if receive.end <= end:
            return False
        if octets[end] != END[0]:
            return self.cut("a frame that does not end with 0xCE but with 0x%02X" % octets[end])
        if is_dropped or kind == HEARTBEAT:
            receive.start = end + 1
            return True
        if kind == METHOD:
            return self.method_frame(number, octets, at + lead, end)
        return self.content_frame(kind, number, octets, at + lead, end)

    def check_frame(self, kind, number, size):
        """Raise for a frame that cannot be; its payload has not been waited for."""
        if size > self.frame_size_max:
            raise ProtocolError(FRAME_ERROR, "a frame of %d octets; %d were negotiated" % (size, self.frame_size_max))
        if BODY < kind < TRACE:
            raise ProtocolError(NOT_IMPLEMENTED, "a frame of type %d: this broker has no out-of-band transport" % kind)
        if kind in (HEADER, BODY) and number == 0:
            raise ProtocolError(CHANNEL_ERROR, "a content frame on channel 0")
        if kind == HEARTBEAT and (number or size):
            raise ProtocolError(FRAME_ERROR, "a heartbeat frame has channel 0 and no payload")
        if kind != TRACE and (kind != BODY or self.tree_of(number) is not None) and size + self.framing.overhead > self.receive.size:
            raise ProtocolError(RESOURCE_ERROR, "a frame of %d octets that is no body; this broker takes %d" % (size, self.receive.size))

    # An error while the connection is negotiated ("Denial of Service Attacks"): answered after a pause, and counted as a log-in that fails

    def process(self):
        """As of 0-9-1, until there was such an error."""
        if self.refusal is None:
            Filing.process(self)
        if self.refusal is not None and self.state != "closing":
            self.connection.reading = False

    def pauses(self, condition, text):
        """Let a peer that is negotiating wait for the answer to its error, and be read no more: false where it is to be answered now, as it
        has waited for a log-in, or the connection is open. `condition`: None: there is no answer but the end."""
        if self.refusal is not None or self.state not in NEGOTIATING or self.login is not None and self.login.failure is not None:
            return False
        connection, places = self.connection, self.broker.places
        self.refusal = condition, text, self.broker.now
        connection.reading = False
        places.login_refused(connection.address, "%s: an error before its log-in or behind it: %s" % (connection.name, text))
        return True

    def fail(self, condition, text):
        """As of 0-9-1, after the pause that an error of the negotiation has."""
        if condition in (INTERNAL_ERROR, RESOURCE_ERROR) or not self.pauses(condition, text):
            Filing.fail(self, condition, text)

    def tick(self):
        """As time passes, the pause is over."""
        if self.refusal is not None and self.state != "closing" and not self.connection.closed:
            condition, text, since = self.refusal
            if elapsed(self.broker.now, since) >= self.broker.limits.login_pause_ms:
                if condition is None:
                    self.cut(text)
                else:
                    Filing.fail(self, condition, text)
                return None
        return Filing.tick(self)

    def cut(self, text):
        """A fatal protocol error: the connection ends, and nothing more is sent on it."""
        if self.pauses(None, text):
            return False
        self.broker.counters["connection_errors"] += 1
        self.broker.inform("%s: the connection of user '%s' is cut for %s" % (self.connection.name, self.user, text), True)
        self.connection.finish()
        return False

    def body_piece(self):
        """As of 0-9-1; a wrong end octet is a fatal protocol error."""
        try:
            return Filing.body_piece(self)
        except ProtocolError as error:
            if error.condition != FRAME_ERROR:
                raise
            return self.cut(error.text)

    def method_frame(self, number, octets, at, end):
        """A whole method frame; false when it must wait."""
        receive, channel = self.receive, self.channels.get(number)
        if self.is_in_content(channel):
            raise ProtocolError(FRAME_ERROR, "a method on channel %d where a content is to go on" % number)
        if self.returns:
            self.flush()  # what goes back goes before the answer to a later method
            if self.returns:
                self.waiting = True
                return False
        self.opening = None
        try:
            payload = self.payload_in(number, channel, octets, at, end)
        except ProtocolError as error:
            receive.start = end + 1
            if channel is None or self.state != "open" or channel.state == "closed":
                raise
            return True if channel.state == "closing" else self.soft(channel, error)
        if payload is None:
            receive.start = end + 1
            return True
        if not self.may_begin(number, payload, 0):
            self.waiting = True
            return False
        opening = self.opening
        going_on = self.whole_frame(METHOD, number, payload, 0, len(payload), end + 1)
        channel = self.channels.get(number)
        if going_on and opening is not None and channel is not None and channel.state == "open":
            self.on_channel(channel, self.opened, opening)
        return going_on

    def is_in_content(self, channel):
        """True while the next frame of a channel has to be one of a content."""
        state = "closed" if channel is None else channel.state
        return state in ("header", "body", "stage") or state == "open" and getattr(channel, "publishing", None) is not None

    def payload_in(self, number, channel, octets, at, end):
        """The payload of 0-8's method that a method stands for; None: it is done."""
        if end - at < 4:
            raise ProtocolError(SYNTAX_ERROR, "a method frame of %d octets" % (end - at))
        code = self.framing.code(octets, at)
        row = method.find(self.wire.METHODS, code)
        if row is None:
            raise ProtocolError(COMMAND_INVALID, "there is no class %d with a method %d" % (code >> 16, code & 0xFFFF), True)
        self.wire_code = code
        title = method.title(row)
        if not row[method.SENDER] & method.CLIENT:
            raise ProtocolError(COMMAND_INVALID, "%s is not a client's to send" % title, True)
        arguments = Reader(self.fields, octets, at + 4, end, title).arguments(row[method.FIELDS])
        into = self.METHODS_IN.get(row[method.NAME])
        if into is None:
            raise ProtocolError(NOT_IMPLEMENTED, "%s is not served" % title, True)
        if row[method.NAME][:7] not in ("connect", "channel"):
            if self.state == "closing" or channel is not None and channel.state == "closing":
                return None
            if channel is None or channel.state == "closed" or self.state != "open":
                raise ProtocolError(CHANNEL_ERROR, "%s on channel %d, which is not open" % (title, number), True)
        translated = into(self, number, arguments)
        if translated is None:
            return None
        name, arguments = translated
        try:
            return method.encode(method.named(spec_0_8.METHODS, name), number, arguments)[7:-1]
        except ValueError as error:  # a name made of two, or out of a long string
            raise ProtocolError(PRECONDITION_FAILED, "%s: %s" % (title, error)) from None

    def opened(self, session, channel, arguments):
        """A channel was opened: what else its method asked for."""

    def content_frame(self, kind, number, octets, at, end):
        """A whole content header, or a whole body frame of a content within another one; false when it must wait."""
        receive, tree = self.receive, self.tree_of(number)
        channel = self.channels.get(number)
        if kind == BODY:
            receive.start = end + 1
            return self.grown(tree.body(bytes(octets[at:end])))
        if not self.is_in_content(channel) or channel.state == "body":
            return self.whole_frame(HEADER, number, octets, at, end, end + 1)
        head = contents.Head(self, octets, at, end)
        if head.class_id != channel.class_id:
            raise ProtocolError(FRAME_ERROR, "a content header of class %d behind a method of class %d" % (head.class_id, channel.class_id))
        if tree is not None:
            receive.start = end + 1
            try:
                is_whole = tree.header(head)
            except ProtocolError as error:
                return self.soft(channel, error)
            return self.grown(is_whole)
        if head.class_id in (self.file_id, self.stream_id):
            is_file = head.class_id == self.file_id
            if is_file and head.weight:
                raise ProtocolError(NOT_IMPLEMENTED, "a file with contents within it", True)
            head.given = contents.of_file(head.given, is_file)
        if head.weight and self.tree is not None:
            raise ProtocolError(RESOURCE_ERROR, "two structured contents at a time on one connection", True)
        if not self.published(channel, head):
            receive.start = end + 1
            return True
        if head.weight:
            receive.start = end + 1
            self.tree = contents.Tree(channel, head)
            return True
        try:
            payload = contents.header_0_8(head, b"", head.class_id == self.file_id)
        except ProtocolError as error:
            receive.start = end + 1
            return self.soft(channel, error)
        return self.whole_frame(HEADER, number, payload, 0, len(payload), end + 1)

    def published(self, channel, head):
        """The header of a publish has come: false when the channel has been closed for it."""
        return True

    def tree_of(self, number):
        """The content on a channel whose contents within are coming, or None."""
        tree = self.tree
        if tree is not None:
            channel = self.channels.get(tree.number)
            if channel is not tree.channel or channel.state != "header":  # it was closed
                self.tree = tree = None
        return tree if tree is not None and tree.number == number else None

    def grown(self, is_whole):
        """A frame of the tree has come."""
        if is_whole:
            self.root = self.tree.number, self.tree.payload()
            self.tree = None
            return self.outermost()
        return True

    def outermost(self):
        """The header of the content that has others within it, as one of 0-8; false while there is no room."""
        number, payload = self.root
        channel = self.channels.get(number)
        if channel is not None and channel.state == "header":
            if self.act(number, "content_header", None, payload, 0, len(payload)) is False:
                self.waiting = True
                if self.connection.has_turn:
                    self.wait_for_room()
                return False
        self.root = None
        return True

    # Out

    def frame(self, kind, number, payload):
        """A whole frame."""
        return self.framing.lead(kind, number, len(payload)) + payload + END

    def reply(self, number, name, arguments):
        """As of 0-8, unless the draft has no such method."""
        octets = self.encoded(name, number, arguments)
        if octets:
            self.write(octets)

    def encoded(self, name, number, arguments):
        """The frame of the method that stands for 0-8's; b"": there is none."""
        out = self.METHODS_OUT.get(name)
        answer = (name, arguments) if out is None else out(self, arguments)
        return b"" if answer is None else self.method_out(number, answer[0], answer[1])

    def method_out(self, number, name, arguments):
        """The frame of one of the draft's methods."""
        row = method.named(self.wire.METHODS, name)
        arguments = arguments[: len(row[method.FIELDS])]
        code = row[method.CODE]
        payload = self.framing.method(code >> 16, code & 0xFFFF) + self.fields.encode(row[method.FIELDS], arguments)
        return self.frame(METHOD, number, payload)

    def content_out(self, number, class_id, message):
        """(frames of the header and of the contents within a message, its body) for a class of contents."""
        broker = self.broker
        tables = broker.tables
        kind = tables.messages[message + layout.MESSAGE_KIND]
        pieces = None
        if kind & layout.KIND_FORMAT:
            octets, pieces = foreign().reworked(broker, message)
        else:
            octets = reading.merged(tables, message) if kind & layout.KIND_REWORKED else tables.properties_of(message)
        given = properties.decode_all(octets)
        weight, nodes = contents.tree_of(given)
        given["destination"] = reading.names_of(tables, message)[1]  # of any octets, where a published version gave it
        body = Lead(tables, message, None if pieces is None else [each for each in pieces if each[1]])
        frames = self.header_frame(number, class_id, len(body), given, weight)
        return frames + contents.frames_of(self, class_id, number, nodes), body

    def header_frame(self, number, class_id, size, given, weight=0):
        """The frame of a content header."""
        return self.frame(HEADER, number, contents.header_out(self, class_id, weight, size, given))

    def begin_content(self, number, message, frames, body):
        """Write whole frames, then a body, now or as the peer reads."""
        self.outgoing.begin(self, number, message, frames, body)
        return True

    def deliver_messages(self, consumer, most, before):
        """Write up to `most` deliveries for a consumer beside `before` in this turn: how many."""
        if self.state == "closing":
            return 0
        if self.outgoing.active() or self.replies or self.settling >= 0:
            self.send.starve(consumer, before)
            return 0
        try:
            return self.deliver_some(consumer, most, before)
        except Exception as error:  # ours: this connection ends, the others go on
            self.connection.broke(error)
            return 0

    def deliver_some(self, consumer, most, before):
        """As `deliver`, which has looked at the connection."""
        broker, queue, send = self.broker, consumer.queue, self.send
        tables, channel, count = broker.tables, consumer.channel, 0
        while count < most and not self.outgoing.active() and broker.consumers.has_credit(consumer) and not is_overdue(queue):
            entry = queue.head()
            if entry == layout.NONE:
                break
            if send.room() < REPLY_ROOM + LEAST_ROOM and send.start != send.end:
                send.starve(consumer, count + before)
                return count
            if self.quick is not None:
                made = self.quick.deliver(consumer, most - count)
                count += made
                if made and broker.tables.engine.left <= 0:
                    return count
                if made:
                    continue
            message = tables.entries[entry + layout.ENTRY_MESSAGE]
            frames, body = self.content_out(channel.number, consumer.class_id, message)
            if deliver.refuses_header(self, consumer, contents.largest(self, frames), "the next message"):
                return count
            whole = METHOD_ROOM + len(frames) + len(body) + self.framing.overhead
            if send.room() - REPLY_ROOM < whole <= send.size // 4 and self.quick is not None:
                send.starve(consumer, count + before)
                return count
            queue.pop()
            tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + 1) & layout.MASK
            tag = int.from_bytes(deliver.count_tag(tables, channel), "big")
            came_back = tables.entries[entry + layout.ENTRY_REDELIVERED] & 255 != 0
            lead = self.delivery(consumer, tag, came_back, message) + frames
            if not consumer.no_ack:
                broker.consumers.hold(consumer, entry)
            self.outgoing.begin(self, channel.number, message, lead, body)
            if consumer.no_ack:
                queue.drop(entry)
            count += 1
            if not charge_made(broker, queue):
                break
        if self.outgoing.active():
            send.starve(consumer, count + before)
        return count

    def delivery(self, consumer, tag, came_back, message):
        """The frame of the method of a delivery."""
        raise NotImplementedError  # each subclass has its own

    def names_of(self, consumer):
        """What the method of each delivery says of its consumer, as octets."""
        raise NotImplementedError  # each subclass has its own

    def give(self, channel, queue, no_ack):
        """As of 0-8, for the draft's method that asks for one message."""
        tables = self.broker.tables
        if self.send.room() < REPLY_ROOM + LEAST_ROOM and self.send.start != self.send.end:
            return False
        entry = queue.head()
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        frames, body = self.content_out(channel.number, channel.asked, message)
        deliver.check_header(self, channel, queue, contents.largest(self, frames), "the next message")
        tag = int.from_bytes(deliver.count_tag(tables, channel), "big")
        came_back = tables.entries[entry + layout.ENTRY_REDELIVERED] & 255 != 0
        lead = self.got(channel, tag, came_back, message, queue.message_count() - 1) + frames
        getting.get(self.broker, channel, queue, no_ack)
        self.outgoing.begin(self, channel.number, message, lead, body)
        if no_ack:
            queue.drop(entry)
        return True

    def got(self, channel, tag, came_back, message, left):
        """The frame of the method of a message that was asked for."""
        raise NotImplementedError  # each subclass has its own

    def returned(self, channel, message, condition):
        """A mandatory content has no route: it goes back with the method of its class."""
        class_id = (channel.classes or {}).get(message, channel.class_id)
        self.goes_back(channel, message, class_id, NOT_DELIVERED, "no queue for it")

    def write_return(self, channel, message, class_id, code, text):
        """Write the method that a content goes back with: the draft's one code says that it was not delivered."""
        exchange, key = reading.names_of(self.broker.tables, message)
        lead = self.method_out(channel.number, NAMES[class_id] + "_bounce", (NOT_DELIVERED, text, exchange, key))
        if class_id == self.file_id:  # its sender has its octets
            given = dict(shared.fields_of(publishing.properties_of(self.broker, message), True), destination=key)
            return self.begin_content(channel.number, message, lead + self.header_frame(channel.number, class_id, 0, given), b"")
        frames, body = self.content_out(channel.number, class_id, message)
        return self.begin_content(channel.number, message, lead + frames, body)

    def shut_channel(self, channel, code, text):
        """As of 0-8; 406, for deliveries that were not settled in time, is no code of a draft."""
        Filing.shut_channel(self, channel, reply_of(self.dialect, PRECONDITION_FAILED)[0] if code == 406 else code, text)

    def cancelled(self, consumer, condition):
        """The broker has ended a consumer: no method of a draft says so, whatever its client announced to understand."""

    # What both drafts share of their methods

    def next_tag(self):
        """A consumer tag, a number of 16 bits from 1 on, that no consumer of the connection has; one whose consumer is gone comes last."""
        tag, tries = self.tags, TAG_MAX
        while tries:
            tag = tag % TAG_MAX + 1
            if not [each for each in self.channels.values() if "%d" % tag in each.consumers]:
                return tag
            tries -= 1
        raise ProtocolError(RESOURCE_ERROR, "%d consumers on one connection have all its tags" % TAG_MAX)

    def consumed(self, channel, name, class_id, no_ack, wanted, exclusive):
        """0-8's consume for a consumer whose tag is a number. `wanted`: its prefetch-count; of class file its window (octets, count), of
        class stream its rate."""
        queue = self.broker.topology.queue(verbs.current_queue(channel, name), self.connection)
        if queue.is_stream:
            raise ProtocolError(NOT_IMPLEMENTED, "a draft of 2005 reads no streams")
        channel.consuming = class_id, wanted
        given = 0, queue.name, "%d" % self.next_tag(), False
        if class_id == self.file_id:
            return "file_consume", given + (no_ack, exclusive, False)
        if class_id == self.stream_id:
            return "stream_consume", given + (exclusive, False)
        return "basic_consume", given + (no_ack, exclusive, False, {})
