"""AMQP 0-10's row of the hot path in C: what core/amqp_0_10/hot_row.py asks the engine in C for."""

from leveret.core.amqp_0_10 import frame, mapping
from leveret.core.amqp_0_10.ranges import Ranges
from leveret.core.memory import layout, serial

from ._hot import ffi, lib

FLUSHES = {"expected": False, "confirmed": False, "completed": True}  # the fields of session.flush
HEADS = 2 * frame.HEAD  # octets behind the lead of deliveries: see core/amqp_0_10/hot_row.py, lead_of


class Row:
    """As core/amqp_0_10/hot_row.py has it."""

    name = "amqp_0_10"
    converts = True

    def __init__(self, engine):
        self.engine = engine
        self.pointers = engine.pointers
        self.answers = ffi.new("leveret_amqp_0_10_answers *")

    def ingest(self, run, source):
        """Transfers of a session: see hot_in.ingest."""
        numbers = ffi.from_buffer("leveret_amqp_0_10_run *", run.numbers)
        given = (numbers, ffi.from_buffer("uint8_t[]", run.lead), ffi.from_buffer("uint8_t[]", run.way), source)
        if self.engine.burying is None:
            return lib.leveret_amqp_0_10_ingest(self.pointers, *given)
        return self.engine.burying.run(lib.leveret_amqp_0_10_ingest, *given)

    def pump(self, consumer, limit, lead, frame_max, target, at, end):
        """Deliveries to a consumer: see hot_transfers.pump."""
        given = (consumer, limit, ffi.from_buffer("uint8_t[]", lead), len(lead) - HEADS, frame_max, target, at, end)
        if self.engine.burying is None:
            return lib.leveret_amqp_0_10_pump(self.pointers, *given)
        return self.engine.burying.run(lib.leveret_amqp_0_10_pump, *given)

    def settle(self, protocol):
        """Take what the peer says of commands, in controls and message.accept of one range each, and note it as mapping.py does. Returns
        why that ended (core/memory/layout.py); TURN_OVER where something was taken, too: what follows may be for `ingest`."""
        receive, state, answers = protocol.receive, protocol.broker.tables.state, self.answers
        source, at = receive.octets, receive.start
        session = protocol.attached.get(source[at + 6] << 8 | source[at + 7])
        answers.most = 0 if session is None or session.settling is not None else session.may_run()
        if not answers.most:
            return layout.ASK
        answers.record, answers.number = session.handle, session.number
        state[layout.STATE_AT], state[layout.STATE_END] = at, receive.end
        answer = lib.leveret_amqp_0_10_settle(self.pointers, answers, receive.address)
        receive.start = state[layout.STATE_AT]
        if receive.start == at:
            return answer
        count = answers.accepted
        if count:
            first = session.expected
            session.expected = serial.after(first, count)
            session.took(first, serial.after(first, count - 1))
            done(session, first, count)
        if answers.known.is_any:
            session.guarded(session.known, set_of(answers.known))
        if answers.completed.is_any:
            session.guarded(mapping.arrived, session, set_of(answers.completed))
        if answers.flushes:
            session.guarded(mapping.flush, session, FLUSHES)
        return layout.TURN_OVER


def set_of(said):
    """The range of a leveret_amqp_0_10_said as a set."""
    made = Ranges()
    made.add(said.first, said.last)
    return made


def done(session, first, count):
    """Commands without results are done, from an id on: see Session.done."""
    journal = session.broker.journal
    if not session.undurable and (journal is None or journal.durable(journal.promise())):
        session.now_completed(first, serial.after(first, count - 1))
        session.session.wants_to_write(session)
        return
    for place in range(count):
        session.done(serial.after(first, place))
