"""Transactions (part 4): what is posted, retired and acquired within one takes effect together, at its discharge, or not at all.

    declare     a message to a coordinator begins a transaction of the link's session: outcome declared, with its txn-id (section 4.2)
    posting     a transfer with transactional-state: the message is kept for the discharge (4.4.1)
    retirement  a disposition with transactional-state: the outcome is kept for the discharge (4.4.2)
    acquisition a flow whose properties have txn-id: deliveries of the link from then on go back when the transaction fails (4.4.3)
    discharge   a second message: all of it takes effect, in one group of the log, or (fail) nothing does (4.3)

A session has several at a time; each stays within its session (of the capabilities amqp:multi-txns-per-ssn, not amqp:multi-ssns-per-txn).
A transaction that no discharge ended fails with its coordinator's link. Where a queue would refuse one of the messages, the whole
discharge is rejected: amqp:transaction:rollback.
"""

import struct

from ..broker import local
from ..broker.transaction import COPIES_SIZE, Transaction, the_unsettled, whole_tag
from ..errors import CONTENT_TOO_LARGE, NOT_ALLOWED, RESOURCE_ERROR, ProtocolError
from ..memory import layout, serial
from ..message import reading
from ..outcomes import FAILS, MODIFIED, REFUSED, REJECTED, RELEASED, TAKEN, UNROUTABLE
from ..shim import const
from . import composites, dispositions, modified, types
from .bounds import MESSAGE_MAX
from .conditions import ILLEGAL_STATE, INVALID_FIELD, ROLLED_BACK, UNKNOWN_ID, LinkError, SessionError
from .link_in import IncomingLink, Rejected

if False:  # for the type checker alone
    from typing import Any

WORK_MAX = const(16)  # transactions of a session that are not discharged
WORK_SIZE = const(2)  # places of transaction_count_max that one takes beside what is kept in it
CAPABILITIES = ["amqp:local-transactions", "amqp:multi-txns-per-ssn"]
_VALUE = ("ulong", 0x77)  # descriptors of the section amqp-value
_VALUE_SYMBOL = ("symbol", "amqp:amqp-value:*")


class Work(Transaction):
    """A transaction of a session, from its declare to its discharge. `id`: its txn-id."""

    def __init__(self, session, id_):
        Transaction.__init__(self, session.broker.tables)
        self.session = session
        self.id = id_
        self.modifies: "list" = []  # (delivery tag, what its outcome asks for the message alone: modified.py)
        self.retired: "list" = []  # delivery tags of those that their receiver has settled
        self.ours: "list" = []  # the others, which we settle: (first delivery-id, last one, outcome's state)
        self.acquired: "list" = []  # delivery tags, their low 30 bits
        self.is_doomed = False  # a settled posting could not be taken, and nobody was told
        self.tallies: "dict" = {}  # handle of a queue -> [messages, octets] that it is to get
        self.is_over = False
        self.refused = 0  # messages that a queue refused when all took effect

    def answered(self, outcome):
        """A message took effect, or was refused; its sender had an answer when it was posted."""
        if outcome == REFUSED:
            self.refused += 1

    def state(self, outcome):
        """The delivery state of a posting, with its provisional outcome (section 4.4.1)."""
        return ("transactional-state", {"txn-id": self.id, "outcome": (outcome, {})})

    def find_room(self, broker):
        """True when all messages have been seen to have room. Raises when a queue would refuse one."""
        place = self.checked
        answer = Transaction.find_room(self, broker)
        while place < self.checked:
            message, copies, _ = self.publishes[place]
            self.tally(broker, message)
            place += 1
        return answer

    def tally(self, broker, message):
        """Count a message in the queues that it goes to."""
        exchange, key = reading.names_of(broker.tables, message)
        octets = broker.tables.messages[message + layout.MESSAGE_BODY]
        for queue in broker.route(exchange, key, message):
            rules = queue.rules
            if rules is None or rules.length is None or not rules.length.overflow.startswith("reject"):
                continue
            tally = self.tallies.setdefault(queue.handle, [0, 0])
            tally[0] += 1
            if rules.length.over(queue, tally[0], tally[1] + 1):
                raise Rejected(ROLLED_BACK, "queue '%s' has no place for the messages of the transaction" % queue.name[:80])
            tally[1] += octets

    def retire(self, entry, outcome, state, settled, given):
        """Keep the outcome of a delivery of ours for the discharge. `given`: what it asks for the message alone (modified.py), or None."""
        tag = whole_tag(self.tables, self.session, entry)
        if self.holds(tag):
            raise SessionError(ILLEGAL_STATE, "a delivery that is retired in its transaction already (section 4.4.2)")
        if given is not None:
            size = len(types.encode(given["message-annotations"])) // COPIES_SIZE
            if self.tables.transactions_left <= size:
                raise SessionError(RESOURCE_ERROR, "this broker keeps no more for transactions (transaction_count_max)")
            self.took(size)
            self.modifies.append((tag, given))
            if modified.discards(self.session, entry, given):
                outcome = REJECTED | FAILS if given["delivery-failed"] else REJECTED
        self.keep(tag, False, outcome)
        if settled:
            self.retired.append(tag)
            return
        number = dispositions.number_of(self.session, entry)
        first = self.ours.pop()[0] if dispositions.goes_on(self.ours, number, state) else number
        self.ours.append((first, number, state))

    def is_of_another(self, entry):
        """True for a delivery that another transaction, which is not discharged, has acquired or retired."""
        others = [work for work in self.session.works.values() if work is not self]
        tag = whole_tag(self.tables, self.session, entry) if others else 0
        return len([work for work in others if work.holds(tag) or tag & layout.MASK in work.acquired]) > 0

    def acquire(self, number):
        """A delivery was acquired within the transaction."""
        self.took(1)
        self.acquired.append(number & layout.MASK)

    def discharge(self):
        """Let all of it take effect; false: not yet, call again. Raises Rejected, with nothing done, where a queue
        would refuse a message, or a settled one was not taken when it was posted."""
        if self.is_doomed:
            raise Rejected(ROLLED_BACK, "a settled message of the transaction could not be taken (section 4.4.4.1)")
        self.modify()
        if not local.publishing(self.session.session, lambda: self.commit(View(self))):
            return False
        if self.ours:
            self.settle_ours()
        self.ended()
        return True

    def modify(self):
        """Do, once, what outcomes modified ask for single messages (modified.py). Raises Rejected."""
        waiting, self.modifies = self.modifies, []
        for tag, given in waiting:
            entry = the_unsettled(self.tables, self.session, tag)
            if entry == layout.NONE:
                continue
            try:
                modified.come_to(self.session, entry, given, MODIFIED)
            except ProtocolError as error:
                raise Rejected(error.condition, error.text) from None

    def settle_ours(self):
        """Settle the deliveries that the transaction retired and the peer left unsettled, once the discharge is durable."""
        session = self.session
        journal = session.broker.journal
        needs = 0 if journal is None else journal.promise()
        first, last, state = self.ours[0]
        if dispositions.goes_on(session.settled, first, state):
            first = session.settled.pop()[0]
        session.settled.append((first, last, state, needs))
        session.settled += [each + (needs,) for each in self.ours[1:]]
        session.wants_to_write()

    def ended(self):
        """The transaction has been discharged."""
        self.is_over = True
        self.retired, self.ours, self.acquired = [], [], []
        self.session.works.pop(self.id, None)

    def fail(self):
        """Nothing of it takes effect: what its receiver has settled comes to the default outcome of its source (section 4.4.4.2), and what
        was acquired goes back to its queue, the newest first. False: some of it is there yet, call again."""
        session, tables = self.session, self.tables
        if not self.is_over:
            self.finish(session.broker)  # a discharge that has begun to take effect comes to its end
            self.rollback(session.broker)
            self.is_over = True
        for tags, is_retired in ((self.retired, True), (self.acquired, False)):
            while tags:
                if tables.state[layout.STATE_LEFT] <= 0:
                    return False
                tables.state[layout.STATE_LEFT] -= session.broker.consumers.look_cost()
                entry = the_unsettled(tables, session, tags.pop())
                if entry != layout.NONE:
                    outcome = session.default_outcome(entry) if is_retired else RELEASED
                    session.broker.consumers.settle(session, entry, entry, outcome)
        self.ended()
        return True

    def drop(self):
        """The session ends, and gives back all its deliveries by itself."""
        if not self.is_over:
            self.finish(self.session.broker)
            self.rollback(self.session.broker)
        self.ended()


class View:
    """A session for the verbs of a commit (contract.Session)."""

    def __init__(self, work):
        session = work.session
        self.link = work
        self.session = session.session
        self.connection = session.connection
        self.handle = session.handle
        self.number = session.number
        self.consumers = session.consumers
        self.promises = session.promises
        self.closing = False


class Coordinator(IncomingLink):
    """A link whose target is a coordinator (section 4.1): its messages declare and discharge transactions."""

    def __init__(self, session, fields):
        IncomingLink.__init__(self, session, fields)
        self.works: "dict" = {}  # those declared here, by txn-id
        self.failing: "Any" = None  # the one whose discharge fails, over several turns
        self.content_max = MESSAGE_MAX

    def open(self, fields):
        """The coordinator says what it can do (section 4.1)."""
        if fields["source"] is not None:
            self.outcomes = fields["source"][1]["outcomes"]
        self.source, self.target = fields["source"], ("coordinator", {"capabilities": CAPABILITIES})
        return self.steal()

    def recover(self, fields):
        """Nothing: its messages are asked for again."""

    def payload(self, delivery, octets, at, end, whole):
        """Octets of a message."""
        if delivery.settled:
            raise LinkError(NOT_ALLOWED, "a settled message to a coordinator, which could not tell what came of it (section 4.2)")
        if len(delivery.lead) + end - at > MESSAGE_MAX:
            raise Rejected(CONTENT_TOO_LARGE, "a message of more than %d octets to a coordinator" % MESSAGE_MAX)
        self.keep(delivery, delivery.lead + bytes(octets[at:end]))
        self.delivery = delivery
        return True

    def complete(self):
        """Do what a message asks for. What is wrong with it rejects it."""
        delivery = self.delivery
        try:
            done = self.do(delivery)
        except Rejected as error:
            if not self.may_say("rejected"):  # section 4.2
                raise LinkError(error.condition, error.text) from None
            delivery.error = error
            self.end(delivery)
            self.session.answer(delivery, REFUSED)
            return
        if not done:
            self.protocol.hold(self)
            return
        if self.broker.journal is not None:
            self.session.promises.logged()
        self.answered(TAKEN)

    def do(self, delivery):
        """Declare or discharge; false: not done yet."""
        name, fields = request_of(delivery.lead)
        if name == "declare":
            if fields["global-id"] is not None:
                raise Rejected(INVALID_FIELD, "a declare with a global-id: distributed transactions are not served")
            delivery.state = ("declared", {"txn-id": self.declare()})
            return True
        id_ = fields["txn-id"]
        work = self.works.get(id_) if isinstance(id_, bytes) else None
        if work is None:
            raise unknown(self.session, id_, Rejected)
        for link in self.session.links.values():
            if link.posting() is work:
                raise LinkError(ROLLED_BACK, "a discharge while a delivery of the transaction is half sent (section 4.4.1)")
        if not (self.fail(work) if fields["fail"] else self.discharge(work)):
            return False
        return True

    def declare(self):
        """The txn-id of a new transaction."""
        session = self.session
        if len(session.works) >= WORK_MAX:
            raise Rejected(RESOURCE_ERROR, "%d transactions of the session are not discharged, and that is the most" % WORK_MAX)
        if session.broker.tables.transactions_left < WORK_SIZE:
            raise Rejected(RESOURCE_ERROR, "this broker keeps no more for transactions (transaction_count_max)")
        session.declared = (session.declared + 1) & 0xFFFFFFFF
        work = Work(session, struct.pack(">HI", session.number, session.declared))
        work.took(WORK_SIZE)
        session.works[work.id] = self.works[work.id] = work
        return work.id

    def discharge(self, work):
        """Apply a transaction's work. Returns false while some is left."""
        try:
            if not work.discharge():
                return False
        except Rejected:
            self.fail_later(work)
            raise
        del self.works[work.id]
        if work.refused:
            raise Rejected(ROLLED_BACK, "%d messages of the transaction were refused by their queues" % work.refused)
        return True

    def fail_later(self, work):
        """A transaction has failed: what it holds goes back, in this turn as far as it goes, and then in those to come."""
        if not work.fail():
            self.broker.jobs.append(Failing(self.broker, work))
        del self.works[work.id]  # last: one that raises stays, and ends with its link

    def fail(self, work):
        """Undo a transaction's work. Returns false while some is left."""
        if not work.fail():
            return False
        del self.works[work.id]
        return True

    def give_back(self):
        """Transactions that were not discharged fail with their link (section 4.2); false: not all is back yet."""
        IncomingLink.drop(self)
        while self.works:
            if not self.fail(self.works[next(iter(self.works))]):
                return False
        return True

    def drop(self):
        """The session ends."""
        IncomingLink.drop(self)
        for id_ in list(self.works):
            self.works[id_].drop()  # one that raises stays for the next attempt
            del self.works[id_]


class Failing:
    """A failed transaction of which not all is back yet: a job of the broker."""

    subject = "a transaction that failed%s"

    def __init__(self, broker, work):
        self.broker = broker
        self.failed = work

    def work(self):
        """Go on."""
        if self.failed.session.handle != layout.NONE and not self.failed.fail():
            self.broker.jobs.append(self)


def request_of(octets):
    """(declare or discharge, its fields) of a message to a coordinator. Raises Rejected."""
    at = 0
    try:
        while at < len(octets):
            section, at = types.decode(octets, at, len(octets))
            if isinstance(section, tuple) and section[0] == "described" and section[1] in (_VALUE, _VALUE_SYMBOL):
                request = composites.composite(section[2])
                if request is not None and request[0] in ("declare", "discharge") and at == len(octets):
                    return request
                break
    except ProtocolError as error:
        raise Rejected(error.condition, error.text) from None
    raise Rejected(INVALID_FIELD, "a message to a coordinator is an amqp-value of declare or discharge (section 4.2)")


def unknown(session, id_, kind):
    """The error for a txn-id that a session, or its control link, has no transaction for. Its sentence says where the transaction was
    declared, when that is elsewhere on the connection: there alone it can be used (section 4.5.7)."""
    shown = composites.shown(id_)
    for each in session.session.sessions():
        work = each.works.get(id_) if isinstance(id_, bytes) else None
        if work is not None and not work.is_over:
            if each is session:
                return kind(UNKNOWN_ID, "transaction %s was declared over another control link: discharge it over that one" % shown)
            words = "transaction %s was declared in the session on channel %d: use and discharge it in that session"
            return kind(UNKNOWN_ID, words % (shown, each.number))
    return kind(UNKNOWN_ID, "%s is the txn-id of no transaction of this session" % shown)


def work_of(session, state, kind):
    """The transaction that a transactional-state (its fields) names; raises `kind`."""
    id_ = state["txn-id"]
    work = session.works.get(id_) if isinstance(id_, bytes) else None
    if work is None or work.is_over:
        raise unknown(session, id_, kind)
    return work


# Posting


def post(link, delivery):
    """A message that is whole is kept for the discharge; one without a route is released at once (section 4.4.1).
    Who has settled it hears nothing of that: the transaction cannot be discharged any more (4.4.4.1)."""
    incoming, broker, work = link.incoming, link.broker, delivery.work
    error = None
    if work.is_over:
        error = unknown(link.session, work.id, Rejected)
    elif link.needs_queue and not broker.route(incoming.exchange, incoming.key(), incoming.message):
        error = UNROUTABLE
    if error is None:
        incoming.mandatory = False  # its sender hears of it now
        incoming.complete()
        incoming.transaction = None
        delivery.state = work.state("accepted")
        link.answered(TAKEN)
        return
    incoming.transaction = None
    incoming.abandon()
    if error == UNROUTABLE:
        broker.counters["unroutable"] += 1
        work.is_doomed = work.is_doomed or delivery.settled
        delivery.state = work.state("released")
        link.answered(TAKEN)
        return
    delivery.error = error
    link.answered(REFUSED)


# Retirement


def retire(session, fields):
    """A disposition of a receiver with transactional-state; false: it takes further turns."""
    state = fields["state"][1]
    work = work_of(session, state, SessionError)
    outcome = dispositions.outcome_of(session, state["outcome"])
    if outcome is None and not fields["settled"]:
        return True
    first = fields["first"]
    last = first if fields["last"] is None else fields["last"]
    tables = session.broker.tables
    entry = dispositions.entry_from(session, first if session.settling is None else session.settling, last)
    while entry != layout.NONE and serial.distance(dispositions.number_of(session, entry), last) >= 0:
        if tables.state[layout.STATE_LEFT] <= 0:
            session.settling = dispositions.number_of(session, entry)
            return session.session.go_on_later()
        tables.state[layout.STATE_LEFT] -= session.broker.consumers.look_cost()
        if work.is_of_another(entry):
            session.settling = None
            end_control(session, work)
            return True
        work.retire(
            entry,
            session.default_outcome(entry) if outcome is None else outcome,
            dispositions.name_only(state["outcome"]),
            fields["settled"],
            modified.asked(state["outcome"]),
        )
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    session.settling = None
    return True


def end_control(session, work):
    """The control link of a transaction ends: an outcome within it is for a delivery of another one (section 4.4.2)."""
    for link in list(session.links.values()):
        if isinstance(link, Coordinator) and link.works.get(work.id) is work:
            link.step("error", ROLLED_BACK, "an outcome for a delivery of another transaction that is not discharged (section 4.4.2)")


# Acquisition


def acquiring(session, properties):
    """The transaction that a flow's properties name (section 4.4.3), or None."""
    id_ = properties.get(("symbol", "txn-id"))
    return None if id_ is None else work_of(session, {"txn-id": id_}, LinkError)


def acquired(link, number):
    """The octets of the state of a delivery (its delivery-id) that a link makes within its transaction; none when that was discharged."""
    if link.work.is_over or link.consumer.no_ack:
        link.work = None
        return b""
    link.work.acquire(number)
    return composites.write("transactional-state", {"txn-id": link.work.id})
