"""AMQP 0-9-1's row of the hot path in C: the form of core/amqp_0_9/hot_row.py that the engine in C gives its sessions."""

from leveret.core import limits
from leveret.core.amqp_0_9 import spec_0_9_1
from leveret.core.memory import layout
from leveret.core.message import annotations
from leveret.core.message.route import exchange_of

from ._hot import ffi, lib

LARGE = 16384  # octets of a frame that goes from the socket to its blocks
BEGUN_LEAST = 8192  # octets of a content that is not whole for which C is asked to begin it
GOTTEN_MAX = 4  # queues from which a session gets in C: LEVERET_GOTTEN_MAX


class Row:
    """As core/amqp_0_9/hot_row.py has it. `wire` is what C calls by itself."""

    name = "amqp_0_9"
    converts = True
    wire = lib.leveret_amqp_0_9_wire()

    def __init__(self, engine):
        self.engine = engine
        self.pointers = engine.pointers
        self.round = engine.round
        self.intake = ffi.new("leveret_intake *")
        self.intake.least = LARGE
        self.numbers = ffi.new("int32_t[]", 3)
        self.reading = ffi.new("leveret_amqp_0_9_reading *")

    def ingest(self, numbers, source):
        """See core/amqp_0_9/hot_in.py."""
        if self.engine.burying is None:
            return lib.leveret_amqp_0_9_ingest(self.pointers, numbers, source)
        return self.engine.burying.run(lib.leveret_amqp_0_9_ingest, numbers, source)

    def see_get(self, session, name, queue):
        """See core/amqp_0_9/hot_row.py: the session has a row of its own from here on."""
        if session.dialect is spec_0_9_1:
            session.hot = Own(self, session)
            session.hot.see_get(session, name, queue)

    def see_requests(self, session, channel):
        """See core/amqp_0_9/hot_row.py: the session has a row of its own from here on."""
        session.hot = Own(self, session)
        session.hot.see_requests(session, channel)

    def pump(self, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end):
        """See hot.pump."""
        output = self.round.readers[consumer // layout.CONSUMER_WIDTH].output
        if self.engine.burying is None:
            return self.wire.pump(self.pointers, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end, output)
        return self.engine.burying.run(self.wire.pump, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end, output)

    def put_body(self, left, frame_size_max, channel_number, target, at, end):
        """See hot_out.put_body."""
        return lib.leveret_amqp_0_9_put_body(self.pointers, left, frame_size_max, channel_number, target, at, end)

    def takes_in(self, session):
        """See Session.takes_in. A large content that is not whole in the receive buffer is begun here, where it needs no decision."""
        connection = session.connection
        if not connection.has_turn or connection.state != "served":
            return False
        if session.incomplete and session.receive.end - session.receive.start >= BEGUN_LEAST and not self._begin(session):
            return False
        channel = session.body_channel
        if channel is None or session.body_size < LARGE or channel.state != "body":
            return False
        there = session.receive.end - session.receive.start
        return there == 0 if session.body_left >= 0 else there < 7 and channel.body_left > 0

    def _begin(self, session):
        """Have the content at the begin of the receive buffer under way: false when that is not for C."""
        if session.begun or session.state != "open" or not session.patient or session.settling >= 0 or session.numbers is None:
            return False
        session.broker.tables.begin_turn()
        session.ingest()  # gives its parameters, and takes nothing: it has taken all
        intake = self._connect(session)
        if not lib.leveret_amqp_0_9_begin(self.pointers, session.numbers_at, intake):
            return False
        lib.leveret_amqp_0_9_take_buffered(self.pointers, intake)
        session.incomplete = False
        self._go_on(session, self._have(session, intake), intake)
        return True

    def take_in(self, session, descriptor):
        """See Session.take_in. What follows a whole content is processed, too, unless Python has to look at it."""
        channel = session.body_channel
        goes_on = (
            session.begun == 1
            and session.numbers is not None
            and session.state == "open"
            and session.patient
            and session.settling < 0
            and channel.transaction is None
            and not channel.copies
        )
        if goes_on:
            session.broker.tables.begin_turn()
            session.ingest()  # gives its parameters: there is no whole frame
        intake = self._connect(session)
        intake.message = channel.message
        intake.channel = channel.handle
        intake.channel_number = channel.number
        intake.body_left = channel.body_left
        intake.frame_left = session.body_left
        intake.frame_size = session.body_size
        intake.goes_on = goes_on
        count = lib.leveret_amqp_0_9_take_in(self.pointers, intake, session.numbers_at if goes_on else ffi.NULL, descriptor)
        if self.engine.burying is not None:
            self.engine.burying.flush()
        if intake.done:
            self._have_published(session, channel)
            channel = self._have(session, intake) if intake.message >= 0 else None
        self._go_on(session, channel, intake)
        if intake.done:
            session.ingest()  # notes what C has counted
        return None if count < 0 else count

    def _go_on(self, session, channel, intake):
        """Where the intake stands: the session goes on there. `channel`: its content is under way; None: none is."""
        session.receive.start, session.receive.end = intake.start, intake.end
        session.body_channel = channel
        session.body_left = -1
        if channel is not None:
            channel.body_left = intake.body_left
            session.body_left = intake.frame_left
            session.body_size = intake.frame_size

    def _connect(self, session):
        """The intake, for the connection of this session."""
        intake, receive = self.intake, session.receive
        intake.octets = receive.address
        intake.size = receive.size
        intake.start, intake.end = receive.start, receive.end
        intake.frame_size_max = session.frame_size_max
        return intake

    def _have(self, session, intake):
        """C has begun a content: its channel, which has it under way as if verbs.publish and verbs.header had begun it."""
        channel = session.channels[intake.channel_number]
        tables = session.broker.tables
        channel.route = tables.octets(intake.message, 0, tables.messages[intake.message + layout.MESSAGE_ROUTE])
        channel.exchange = exchange_of(channel.route)
        channel.mandatory = intake.is_mandatory != 0
        if channel.copies:
            channel.copies = b""
        channel.message = intake.message
        channel.body_left = intake.body_left
        channel.state = "body"
        session.route_asked = False
        session.begun += 1
        session.unfinished += 1
        session.content_moved = session.broker.now
        return channel

    def _have_published(self, session, channel):
        """C has published the content of a channel."""
        channel.end()
        channel.body_left = 0
        session.step_of(channel, "content_end")

    def pack(self, entry, most, octets_max):
        """See core/amqp_0_9/packed.py."""
        numbers = self.numbers
        numbers[0], numbers[1], numbers[2] = entry, most, octets_max
        lib.leveret_amqp_0_9_pack_reach(self.pointers, numbers)
        body = bytearray(numbers[2])
        lib.leveret_amqp_0_9_pack(self.pointers, entry, numbers[1], ffi.from_buffer("uint8_t[]", body))
        return body, numbers[1], numbers[0]

    def read_stream(self, session, consumer, most, looks, end):
        """See core/amqp_0_9/deliver_stream.py."""
        reading, send, stream = self.reading, session.send, consumer.queue
        reading.consumer, reading.most, reading.looks = consumer.handle, most, looks
        reading.cursor, reading.offset, reading.end = consumer.cursor, consumer.cursor_offset, end
        reading.delivered, reading.large = stream.delivered, send.output.inset_least
        texts = None if consumer.filter is None else b"".join([sized(text.encode()) for text in consumer.filter])
        reading.filter = ffi.NULL if texts is None else ffi.from_buffer("uint8_t[]", texts)
        reading.filter_size, reading.unfiltered = 0 if texts is None else len(texts), consumer.unfiltered
        send.wrote(
            lib.leveret_amqp_0_9_read_stream(
                self.pointers,
                reading,
                consumer.prefix_at,
                len(consumer.prefix),
                session.frame_size_max,
                send.address,
                send.end,
                send.size - limits.REPLY_ROOM,
            )
        )
        consumer.cursor, consumer.cursor_offset = reading.cursor, reading.offset
        stream.delivered = reading.delivered
        return reading.made, reading.looked_at


class Own(Row):
    """The row of a session of which C knows more. It has sent basic.get: C answers the next ones from queues of which nothing has changed
    since, where the reply would go at once. A channel of it consumes the direct reply-to: C takes its requests."""

    def __init__(self, row, session):
        vars(self).update(vars(row))
        self.session = session
        self.getter = ffi.new("leveret_getter *")
        self.getter.output = session.send.output
        self.getter.reply_room = limits.REPLY_ROOM
        self.names = []  # as C has them
        self.seen = None
        self.asking = None  # the channel whose requests C takes
        self.requester = ffi.new("leveret_requester *")

    def see_requests(self, session, channel):
        """See core/amqp_0_9/hot_row.py. One channel is enough for a client; of several the last one's requests are C's."""
        note = annotations.write({"reply_to": channel.reply_queue})
        if len(note) > len(self.requester.note):
            return
        self.asking = channel
        self.requester.channel, self.requester.size = channel.handle, len(note)
        ffi.memmove(self.requester.note, note, len(note))

    def _as_seen(self):
        """What has to be the same for what C has to be true: queues and their rules, and the user's permissions."""
        return self.engine.changes, self.session.connection.user.number

    def see_get(self, session, name, queue):
        """See core/amqp_0_9/hot_row.py. The channel's own queue has no name here, and a use of one with x-expires is to be noted."""
        if self.seen != self._as_seen():
            self.seen, self.names = self._as_seen(), []
        octets = name.encode("utf-8")
        if not octets or octets in self.names or queue.is_stream or "x-expires" in queue.effective:
            return
        if len(self.names) == GOTTEN_MAX:
            self.names.clear()
        row = self.getter.rows[len(self.names)]
        row.queue = queue.handle
        ffi.memmove(row.name, bytes((len(octets),)) + octets, 1 + len(octets))
        self.names.append(octets)
        self.getter.count = len(self.names)

    def _may_answer(self):
        """True where a reply goes before nothing else (sending.py)."""
        session = self.session
        journal = session.broker.journal
        return (
            self.seen == self._as_seen()
            and session.state == "open"
            and not (session.writing or session.replies or session.outgoing.active())
            and session.broker.contents is None
            and (journal is None or journal.durable(session.promised))
        )

    def _may_ask(self):
        """True while the channel whose requests C takes consumes their replies."""
        channel = self.asking
        return channel is not None and channel.reply_queue is not None and self.session.channels.get(channel.number) is channel

    def ingest(self, numbers, source):
        """See core/amqp_0_9/hot_in.py."""
        if self.names and self._may_answer():
            self.pointers.getter = self.getter
        if self._may_ask():
            self.pointers.requester = self.requester
        try:
            return Row.ingest(self, numbers, source)
        finally:
            self.pointers.getter = self.pointers.requester = ffi.NULL
            if self.getter.answered:
                self.getter.answered = 0
                self.session.send.touch()


def sized(octets):
    """Octets behind their number."""
    return len(octets).to_bytes(4, "big") + octets
