"""Dispositions (section 2.7.6): of the peer's deliveries by us, of ours by the peer, each about a range of delivery-ids of its session.

The receiver names the outcome of a delivery. With rcv-settle-mode first it settles with the outcome; with second it leaves the delivery
unsettled, the sender settles, and only then the receiver does. We, as the receiver, answer in the order of publishes, when the log is
durable (Promises). As the sender we settle deliveries with an unsettled outcome of the receiver, when the log is durable up to the outcome.
"""

from ..broker.numbered import entry_from, number_of, tail_number
from ..errors import PRECONDITION_FAILED, ProtocolError
from ..memory import layout, serial
from ..outcomes import ACCEPTED, FAILS, MODIFIED, REFUSED, REJECTED, RELEASED, TAKEN, UNROUTABLE
from ..parts import needed
from ..wire.holding import NO_ROOM, NOT_YET, WRITTEN
from . import hot_out, modified
from .bounds import FLOW_ROOM
from .conditions import INVALID_FIELD, SessionError, error_of

_EMPTY: "dict" = {}
SETTLE_ROOM = 512  # octets of a disposition with an error
RANGES_MAX = 16  # that wait for us to settle them before we read no more of the peer

# The outcomes for the peer of the broker's answers to a publish (section 3.4).
STATES: "dict" = {TAKEN: ("accepted", {}), UNROUTABLE: ("released", {})}
REFUSALS = {"condition": "amqp:resource-limit-exceeded", "description": "a queue that the message goes to takes no more"}


# Of the peer's deliveries, by us


class Run:
    """Deliveries of a link in a row that the engine accepted and that have no answer yet: `number` of the first answer, `first` its
    delivery-id."""

    def __init__(self, link, number, first, count):
        self.link = link
        self.number = number
        self.first = first
        self.count = count


def write(session):
    """Write the dispositions that may be sent now; one of wire/holding.py's answers."""
    settle = write_settled(session)
    if settle == NO_ROOM:
        return NO_ROOM
    promises = session.promises
    for first, last, outcome in promises.runs():
        number = first
        while True:
            run = session.answers[number]
            is_run = isinstance(run, Run)
            end = (number + run.count - 1) & layout.MASK if is_run else range_from(session, number, last)
            if session.connection.send.room() < SETTLE_ROOM:
                return NO_ROOM
            if is_run:
                tell_run(session, run)
            else:
                tell(session, number, end, outcome)
            promises.answered(end)
            if end == last:
                break
            number = (end + 1) & layout.MASK
    return NOT_YET if promises.waiting or settle == NOT_YET else WRITTEN


def range_from(session, number, last):
    """The last of the deliveries from answer `number` to `last` that fits into one disposition."""
    answers = session.answers
    delivery = answers[number]
    while number != last and delivery.error is None:
        following = answers[(number + 1) & layout.MASK]
        alike = (
            not isinstance(following, Run)
            and following.error is None
            and following.state == delivery.state
            and following.second == delivery.second
            and following.settled == delivery.settled
        )
        if not alike or following.number != serial.after(delivery.number, 1):
            break
        delivery = following
        number = (number + 1) & layout.MASK
    return number


def tell(session, number, last, outcome):
    """Write the disposition of the answers from `number` to `last`, and settle their deliveries where the disposition does."""
    delivery = session.answers[number]
    first = delivery.number
    error = delivery.error
    if outcome == REFUSED:
        state = ("rejected", {"error": REFUSALS if error is None else error_of(error.condition, error.text)})
    else:
        state = STATES[outcome] if delivery.state is None else delivery.state
    settles = not delivery.second
    is_open = not delivery.settled
    while True:
        delivery = session.answers.pop(number)
        if settles:
            delivery.link.settle(delivery)
        if number == last:
            break
        number = (number + 1) & layout.MASK
    if is_open:
        put(session, True, first, delivery.number, settles, state)


def put_now(session, first, count):
    """Write `accepted`, settled, of so many deliveries that the engine has just accepted; false: something goes before it, or it waits for
    the log."""
    if not may_accept(session) or session.connection.send.room() < SETTLE_ROOM:
        return False
    put(session, True, first, serial.after(first, count - 1), True, STATES[TAKEN])
    return True


def may_accept(session):
    """True when an outcome may be written at once: nothing goes before it, and it waits for no log."""
    return not (session.promises.journal is not None or session.answers or session.settled or session.session.replies)


def tell_run(session, run):
    """Write the disposition `accepted` of a run, and settle it."""
    del session.answers[run.number]
    put(session, True, run.first, serial.after(run.first, run.count - 1), True, STATES[TAKEN])
    run.link.in_runs -= run.count
    run.link.give_credit()


def put(session, role, first, last, settled, state):
    """Write a disposition."""
    session.connection.send.write(hot_out.disposition(session.number, role, first, last, settled, state))


def by_sender(session, fields):
    """Forget deliveries that the peer has sent, and settles."""
    if not fields["settled"]:
        return True  # a delivery state of the sender's own: without effect here
    received = session.received
    first, count = fields["first"], count_of(fields)
    numbers = received if count > len(received) else [serial.after(first, each) for each in range(count)]
    for number in [each for each in numbers if each in received and 0 <= serial.distance(first, each) < count]:
        delivery = received[number]
        delivery.settled = True
        if delivery.link.delivery is not delivery:
            delivery.link.settle(delivery)
    return True


def count_of(fields):
    """How many delivery-ids a disposition names. Raises for a range that ends before it begins."""
    last = fields["first"] if fields["last"] is None else fields["last"]
    count = serial.distance(fields["first"], last) + 1
    if count < 1:
        raise SessionError(INVALID_FIELD, "a disposition from %d to %d (section 2.7.6)" % (fields["first"], last))
    return count


# Of our deliveries, by the peer


def by_receiver(session, fields):
    """Process outcomes of our deliveries, which the peer may settle with them. False: the disposition needs further turns."""
    count_of(fields)
    state = fields["state"]
    if isinstance(state, tuple) and state[0] == "transactional-state":
        return needed("amqp_1_0.transactions", "transactions of AMQP 1.0").retire(session, fields)
    outcome = outcome_of(session, state)
    if outcome is None and not fields["settled"]:
        return True  # `received`, or no state: the delivery is not at its end
    first = fields["first"]
    last = first if fields["last"] is None else fields["last"]
    if not fields["settled"] and len(session.settled) >= RANGES_MAX and not goes_on(session.settled, first, name_only(state)):
        return False
    tables = session.broker.tables
    entry = entry_from(session, first if session.settling is None else session.settling, last)
    while entry != layout.NONE:
        if tables.state[layout.STATE_LEFT] <= 0:
            session.settling = number_of(session, entry)
            return session.session.go_on_later()
        entry = settle_run(session, entry, last, outcome, modified.asked(state))
    session.settling = None
    if not fields["settled"]:
        settle_for(session, first, last, state)
    return True


def outcome_of(session, state):
    """The broker's outcome for a delivery state (section 3.4), None: the state is no outcome."""
    if state is None:
        return None
    if not isinstance(state, tuple) or len(state) != 2 or not isinstance(state[1], dict):
        raise SessionError(INVALID_FIELD, "a disposition with a state that is none (section 3.4)")
    name, given = state
    if name == "accepted":
        return ACCEPTED
    if name == "rejected":
        return REJECTED | FAILS
    if name == "released":
        return RELEASED
    if name == "modified":
        return MODIFIED | FAILS if given["delivery-failed"] else RELEASED
    if name == "received":
        return None
    raise SessionError(PRECONDITION_FAILED, "a disposition with the state %s, which is not served" % name)


def settle_run(session, entry, last, outcome, given):
    """Settle entries from one on as far as the turn and the range go, those with one outcome: the next entry, NONE: none is left.
    `given`: the outcome's fields for each message by itself (modified.py), or None."""
    tables = session.broker.tables
    entries = tables.entries
    link = session.link_of(entry) if outcome is None or given else None
    chosen = outcome if outcome is not None else RELEASED if link is None else link.default
    if outcome is None and link is not None:
        given = link.default_given
    end = entry
    cost = session.broker.consumers.look_cost() * (modified.LOOKS if given else 1)
    left = tables.state[layout.STATE_LEFT] - cost
    behind = entries[entry + layout.ENTRY_NEXT]
    if given:
        try:
            chosen = modified.come_to(session, entry, given, chosen)
        except ProtocolError as error:
            if error.hard or link is None:
                raise
            link.step("error", error.condition, error.text)  # its deliveries go back
            return layout.NONE
    while not given and behind != layout.NONE and left > 0 and serial.distance(number_of(session, behind), last) >= 0:
        if outcome is None and session.link_of(behind) is not link:
            break
        end = behind
        left -= cost
        behind = entries[behind + layout.ENTRY_NEXT]
    tables.state[layout.STATE_LEFT] = left
    session.broker.consumers.settle(session, entry, end, chosen)
    if behind == layout.NONE or serial.distance(number_of(session, behind), last) < 0:
        return layout.NONE
    return behind


# Settled by us, on the peer's word


def settle_for(session, first, last, state):
    """Settle deliveries whose outcome the peer has left to us to settle, once the log has the outcome. No disposition names deliveries that
    were not sent yet."""
    newest = tail_number(session)
    if serial.distance(newest, last) > 0:
        last = newest
    if serial.distance(1, first) < 0 and newest <= layout.MASK:
        first = 1  # the delivery-id of the first delivery
    if serial.distance(first, last) < 0:
        return
    journal = session.broker.journal
    needs = 0 if journal is None else journal.promise()
    state = name_only(state)
    if goes_on(session.settled, first, state) and (session.settled[-1][3] == needs or len(session.settled) >= RANGES_MAX):
        first = session.settled.pop()[0]
    session.settled.append((first, last, state, needs))
    session.wants_to_write()


def goes_on(ranges, first, state):
    """True when deliveries from `first` on lie behind the last of `ranges`, (first, last, state as name_only has it, ...), and have the
    same state."""
    return len(ranges) > 0 and ranges[-1][2] == state and serial.after(ranges[-1][1], 1) == first


def name_only(state):
    """A delivery state without the peer's fields, which the broker does not keep."""
    return None if state is None else (state[0], _EMPTY)


def write_settled(session):
    """Write the settlements that follow the peer's outcomes; one of wire/holding.py's answers."""
    count, answer = 0, WRITTEN
    for first, last, state, number in session.settled:
        if not session.session.is_durable(number):
            answer = NOT_YET
            break
        if session.connection.send.room() < SETTLE_ROOM + FLOW_ROOM:
            answer = NO_ROOM
            break
        put(session, False, first, last, True, state)
        count += 1
    session.settled = session.settled[count:]
    return answer
