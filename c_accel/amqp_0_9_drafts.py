"""The drafts' row of the hot path in C: the form of core/amqp_0_9/drafts/hot_row_quicker.py that the engine in C gives their sessions."""

from leveret.core import limits
from leveret.core.amqp_0_9.drafts.hot_row_quicker import JMS, Asked
from leveret.core.memory import layout

from ._hot import ffi, lib

GROWTH = 4096  # octets that a publish may take beyond those of a receive buffer, as frames of 0-9-1


class Row:
    """As core/amqp_0_9/drafts/hot_row_quicker.py has it."""

    name = "amqp_0_9_drafts"

    def __init__(self, engine):
        self.engine = engine
        self.scratch = ffi.NULL  # one for all sessions, made with the first

    def of(self, session):
        """The row of one session."""
        if not self.scratch:
            self.scratch = ffi.new("uint8_t[]", session.receive.size + GROWTH)
        return Own(self, session)


class Own:
    """A session's row. `wire` is what C calls by itself."""

    takes_in = pack = read_stream = see_get = see_requests = None
    wire = lib.leveret_drafts_wire()

    def __init__(self, row, session):
        self.engine = row.engine
        self.session = session
        self.asked = Asked()
        self.tickets = None  # that C knows
        self.scratch = row.scratch
        self.draft = ffi.new("leveret_draft *")
        self.draft.scratch, self.draft.scratch_size = row.scratch, len(row.scratch)
        self.draft.is_short = session.framing.number_size == 1

    def ingest(self, numbers, source):
        """See core/amqp_0_9/drafts/hot_row_quicker.py."""
        if self.tickets is not self.session.tickets:
            self.tickets = self.session.tickets
            for number, ticket in self.tickets.items():
                self.draft.may_write[number] = "write" in ticket.rights
        if self.engine.burying is None:
            answer = lib.leveret_drafts_ingest(self.engine.pointers, numbers, source, self.draft)
        else:
            answer = self.engine.burying.run(lib.leveret_drafts_ingest, numbers, source, self.draft)
        if answer == layout.ASK_ROUTE:
            self.asked.octets, self.asked.end = ffi.buffer(self.scratch, self.draft.asked)[:], self.draft.asked
        return answer

    def see_consumer(self, consumer):
        """A consumer is delivered to from now on: by C, where it is one of class jms."""
        if consumer.class_id != JMS:
            return
        number = consumer.channel.number
        consumer.prefix = memoryview(bytearray((self.draft.is_short, number >> 8, number & 255)) + consumer.names)
        consumer.prefix_at = self.engine.octets(consumer.prefix)
        consumer.frame_size_max = self.session.frame_size_max
        consumer.row = self
        self.engine.see_consumer(consumer)

    def deliver(self, consumer, most):
        """See core/amqp_0_9/drafts/hot_row_quicker.py."""
        if consumer.class_id != JMS:
            return 0
        state, send = self.engine.tables.state, self.session.send
        before = state[layout.STATE_DELIVERED]
        send.room()
        given: tuple = consumer.handle, most, consumer.prefix_at, len(consumer.prefix), consumer.frame_size_max
        given += send.address, send.end, send.size - limits.REPLY_ROOM, ffi.NULL
        if self.engine.burying is None:
            send.wrote(self.wire.pump(self.engine.pointers, *given))
        else:
            send.wrote(self.engine.burying.run(self.wire.pump, *given))
        return (state[layout.STATE_DELIVERED] - before) & layout.MASK
