"""Branches of distributed transactions (class dtx): what they hold, and how they come through a restart.

A branch is no session's: sessions associate with it for a while. Messages that are published in it wait for its commit as in any
transaction (core/broker/transaction.py); what is accepted in it moves from the session's unsettled deliveries to those of the branch's own
record, so that it is the branch's whatever becomes of the session.

    active     work can be done in it; `doom`: it can only be rolled back (xa-rbrollback, xa-rbtimeout), and holds nothing any more
    prepared   it waits for commit or rollback
    decided    an operator has decided (xa-heurcom, xa-heurrb), or a queue has refused a part at the commit (xa-heurmix): until dtx.forget

With a log a prepared branch is a definition: its xid, the places of what it consumed, and the places of copies of what it publishes in the
queue leveret.prepared. Both are written in one group. At a start the branch takes these places out of their queues, before anybody reads
them; its commit settles the places and publishes the messages in one group. A message that comes through a restart so has no lifetime.
"""

from .. import states
from ..broker.topology import OWN
from ..broker.transaction import Transaction
from ..errors import NOT_FOUND, RESOURCE_ERROR, ProtocolError
from ..memory import hot, layout
from ..message import reading
from ..outcomes import ACCEPTED, MODIFIED, REFUSED, TAKEN, nobody
from ..shim import const
from . import branch_requests
from .away import Away, User
from .conditions import SessionError
from .states import BRANCH

if False:  # for the type checker alone
    from typing import Any

PREPARED = OWN[1]  # the name of the queue of prepared messages
OK, RBROLLBACK, RBTIMEOUT, HEURHAZ, HEURCOM, HEURRB, HEURMIX, RDONLY = range(8)  # xa-status
KIND = "kept"  # of definitions in the log
PART = "amqp_0_10.branches"
SHARE = const(4)  # part of the records of sessions that branches leave free, as they outlive who began them
BRANCH_SIZE = const(4)  # places of transaction_count_max that a branch takes beside what is kept in it
BROUGHT_MAX = const(65536)  # messages of one queue that are read back from the log for what a prepared branch holds


class Branch(Transaction):
    """One branch. `xid`: (format, global id, branch id). It is a session to the broker (contract.Session), for its deliveries."""

    closing = False

    def __init__(self, broker, xid, user):
        Transaction.__init__(self, broker.tables)
        self.broker = broker
        self.xid = xid
        self.user = user
        self.state = "active"
        self.doom = OK
        self.outcome = OK  # of one that is decided
        self.associated: "list" = []  # sessions that work in it
        self.suspended: "list" = []  # sessions that will go on
        self.timeout_s = default_timeout_s(broker)
        self.began_s = broker.uptime_s  # of one that is doomed: since when it is
        self.refused = 0
        self.handle = layout.NONE
        self.consumers: "dict" = {}
        self.connection = self.session = Away(broker, user)
        self.watched_tag, self.watched_since = -1, 0
        self.held_in_log: "list" = []  # [id of a queue in the log, [[first position, count]]]

    def add(self, message, copies, mandatory):
        """Keep a content; one that is doomed keeps none."""
        if self.doom:
            self.tables.release(message)
        else:
            Transaction.add(self, message, copies, mandatory)

    def hold_accepted(self, session, entry):
        """A delivery is accepted in the branch: it is the branch's now; one that is doomed gives it back. Raises resource-error."""
        if self.doom:
            self.broker.consumers.settle(session, entry, entry, MODIFIED)
            return
        self.check_room()
        tables = self.tables
        self.took(1)
        hot.unhold(tables.entries, tables.queues, tables.channels, tables.consumers, tables.state, session.handle, entry)
        self.hold(entry)

    def hold(self, entry):
        """Hold an entry that is in no list."""
        tables = self.tables
        hot.next_number(tables.channels, self.handle + layout.CHANNEL_TAG)
        hot.hold(tables.entries, tables.queues, tables.channels, self.handle, entry, layout.GOT)

    def entries(self):
        """The entries that it holds."""
        return list(self.broker.consumers.unsettled_back_from(self, layout.NONE))

    def is_empty(self):
        """True when nothing was done in it."""
        return not self.publishes and self.broker.consumers.last_unsettled(self) == layout.NONE

    # The broker answers (contract.Protocol)

    def returned(self, channel, message, condition):
        """A message has no route at the commit: it is dropped, as in any transaction."""
        self.tables.release(message)

    def answered(self, channel, outcome):
        """A message took effect, or was refused."""
        if outcome == REFUSED:
            self.refused += 1


class Committing:
    """A branch and the session that commits it: the session of a Transaction.commit."""

    number = 0

    def __init__(self, branch, connection):
        self.handle = branch.handle
        self.consumers = branch.consumers
        self.session = branch
        self.connection = connection


class Branches:
    """Those of a broker."""

    def __init__(self, broker):
        self.broker = broker
        self.by_xid: "Any" = {}

    def sessions(self):
        """Those that hold deliveries (Consumers.open_sessions)."""
        leaving = self.broker.consumers.leaving
        return [each for each in self.by_xid.values() if each.handle != layout.NONE and each not in leaving]

    def make(self, xid, user):
        """A new branch. Raises resource-error."""
        branch = Branch(self.broker, xid, user)
        if self.broker.tables.transactions_left < BRANCH_SIZE:
            branch.check_room()
            raise ProtocolError(RESOURCE_ERROR, "this broker keeps no more branches (transaction_count_max)")
        places = self.broker.limits.channel_count_max
        most = places - places // SHARE
        if len(self.by_xid) >= most:
            raise ProtocolError(
                RESOURCE_ERROR, "this broker keeps %d branches at most (channel_count_max, less what it leaves for sessions)" % most
            )
        handle = self.broker.consumers.open_session()
        if handle is None:
            raise ProtocolError(RESOURCE_ERROR, "this broker holds %d sessions and branches at most" % places)
        branch.handle = handle
        branch.took(BRANCH_SIZE)
        self.by_xid[xid] = branch
        return branch

    def forget(self, branch):
        """A branch is over."""
        del self.by_xid[branch.xid]
        self.let_go(branch)
        branch.took(-branch.count)
        if branch.state != "active" and self.broker.journal is not None:
            self.broker.journal.define({"gone": KIND, "name": name_in_log(branch.xid)})

    def let_go(self, branch):
        """Give back what a branch holds: published messages are dropped, what was consumed is on its way back to its queues."""
        broker = self.broker
        if branch.handle == layout.NONE or branch in broker.consumers.leaving:
            return
        for entry in branch.entries():
            if broker.queue_objects[broker.tables.entries[entry + layout.ENTRY_QUEUE]].name == PREPARED:
                broker.consumers.settle(branch, entry, entry, ACCEPTED)
        if branch.count:
            branch.rollback(broker)
            branch.took(BRANCH_SIZE)
        broker.consumers.close_session(branch)

    def doom(self, branch, status):
        """A branch can only be rolled back: what it holds goes back now."""
        if not branch.doom:
            branch.doom = status
            branch.began_s = self.broker.uptime_s
            self.let_go(branch)

    def tick(self):
        """Branches that take too long are rolled back (dtx.set-timeout), and forgotten when nobody has asked for as long as the default
        timeout: their transaction manager is gone, and it says nothing of a branch that it has not prepared."""
        for branch in list(self.by_xid.values()):
            most = default_timeout_s(self.broker) if branch.doom else branch.timeout_s
            if not most or self.broker.uptime_s - branch.began_s <= most:
                continue
            if branch.state != "active" or branch.sender is not None:
                continue  # it is prepared, or its commit takes effect
            if not branch.doom:
                self.doom(branch, RBTIMEOUT)
            elif not branch.associated and not branch.suspended:
                self.forget(branch)

    # Prepare and commit

    def prepare(self, branch):
        """Prepare: a status; RBROLLBACK where the log's copies have no room."""
        broker = self.broker
        if broker.journal is not None and not self.keep_copies(branch):
            self.forget(branch)
            return RBROLLBACK
        states.step(branch, BRANCH, self, "prepare", branch)
        return OK

    def log_places(self, branch):
        """Log what a branch holds."""
        if self.broker.journal is not None:
            self.broker.journal.gather_settled()
            branch.held_in_log = self.places(branch)
        self.log(branch)

    def log(self, branch):
        """Log a branch."""
        if self.broker.journal is not None:
            self.broker.journal.define(self.definition(branch))

    def refuse(self, condition, input_, state, branch):
        """Raise for what a state does not allow."""
        raise SessionError(condition, "a branch that is %s cannot %s" % (state, input_))

    def keep_copies(self, branch):
        """Put a copy of each published message into the queue of prepared ones: false when there is no room for one."""
        broker = self.broker
        queue = broker.queues.get(PREPARED)
        if queue is None:
            broker.topology.check_queue_room(nobody)
            queue = broker.topology.make_queue(nobody, PREPARED, True, False, False, {})
        for message, _, _ in branch.publishes:
            copy = reading.copy_with(broker.tables, message, broker.tables.route_of(message), broker.tables.annotations_of(message))
            if copy == layout.NONE:
                return False
            try:
                if broker.put(copy, (queue,)) != TAKEN:
                    return False
            finally:
                broker.tables.release(copy)
            entry = broker.tables.queues[queue.handle + layout.QUEUE_TAIL]
            queue.unlink(entry)
            branch.hold(entry)
        return True

    def counts(self, branch):
        """(messages that a branch would publish, messages that it has consumed)."""
        if branch.handle == layout.NONE:
            return 0, 0
        entries, queues = self.broker.tables.entries, self.broker.queue_objects
        held = branch.entries()
        copies = len([1 for entry in held if queues[entries[entry + layout.ENTRY_QUEUE]].name == PREPARED])
        return max(len(branch.publishes), copies), len(held) - copies

    def places(self, branch):
        """The places that a branch holds, of queues in the log: [[id of the queue, [[first position, count], ...]], ...]."""
        broker, entries = self.broker, self.broker.tables.entries
        positions: "dict" = {}
        for entry in branch.entries():
            queue = broker.queue_objects[entries[entry + layout.ENTRY_QUEUE]]
            if queue.id_in_log and not queue.is_stream:
                position = broker.journal.position(queue, entries[entry + layout.ENTRY_POSITION])
                positions.setdefault(queue.id_in_log, []).append(position)
        places = []
        for identity in sorted(positions):
            runs: "list" = []
            for position in sorted(positions[identity]):
                if runs and runs[-1][0] + runs[-1][1] == position:
                    runs[-1][1] += 1
                else:
                    runs.append([position, 1])
            places.append([identity, runs])
        return places

    def commit(self, branch, connection):
        """Commit, as far as a turn goes: a status, or None: call again."""
        return self.committed(branch) if self.carry_out(branch, connection) else None

    def carry_out(self, branch, connection):
        """Let all of a branch take effect, as far as a turn goes: true when it has."""
        if branch.sender is None and not self.fill(branch):
            connection.wait_for_turn()
            return False
        view = branch.sender or Committing(branch, connection)
        view.connection = connection
        return branch.commit(view)

    def fill(self, branch):
        """Before the commit: all deliveries of the branch are to be settled, and messages that came through a restart to be published are
        copied out of the queue of prepared ones; false: there is no room for them now."""
        broker, tables = self.broker, self.broker.tables
        queue = broker.queues.get(PREPARED)
        if branch.state == "prepared" and not branch.publishes and queue is not None:
            for entry in reversed(branch.entries()):
                if tables.entries[entry + layout.ENTRY_QUEUE] != queue.handle:
                    continue
                message = tables.entries[entry + layout.ENTRY_MESSAGE]
                copy = reading.copy_with(tables, message, tables.route_of(message), tables.annotations_of(message))
                if copy == layout.NONE:
                    for each, _, _ in branch.publishes:
                        tables.release(each)
                    branch.publishes = []
                    return False
                branch.publishes.append((copy, b"", False))
        last = broker.consumers.last_unsettled(branch)
        branch.settlements = []
        if last != layout.NONE:
            channels, at = tables.channels, branch.handle + layout.CHANNEL_TAG
            tag = channels[at + 1] << 30 | channels[at]
            branch.settlements.append((tag, True, ACCEPTED))
            branch.kept_to = tag
        return True

    def committed(self, branch):
        """All of a branch has taken effect: its status."""
        if branch.refused:
            self.decide(branch, HEURMIX)
            return HEURMIX
        self.forget(branch)
        return OK

    def finish(self, branch):
        """Complete at once a commit that has begun to take effect."""
        branch.finish(self.broker)
        return self.committed(branch)

    def decide(self, branch, outcome):
        """A prepared branch has come to its end without its transaction manager: who asks is told, until dtx.forget."""
        branch.outcome = outcome
        self.let_go(branch)
        states.step(branch, BRANCH, self, "decide", branch)

    def by_heuristics(self, user, xid, commits):
        """An operator commits a prepared branch, or rolls it back: true when that is done, false: there is no room for it now. One that is
        not prepared is rolled back as by its time-out, and forgotten where no session works in it. Raises not-found where there is no such
        branch."""
        branch = self.by_xid.get(xid)
        if branch is not None and branch.state == "active" and branch.sender is None and not commits:
            self.doom(branch, RBROLLBACK)
            if not branch.associated and not branch.suspended:
                self.forget(branch)
            return True
        if branch is None or branch.state != "prepared":
            raise ProtocolError(NOT_FOUND, "there is no prepared branch of this xid")
        if branch.sender is not None:
            return False  # its transaction manager's commit takes effect
        if commits:
            if not self.carry_out(branch, Away(self.broker, user)) and branch.sender is None:
                return False
            branch.finish(self.broker)
        self.decide(branch, HEURMIX if branch.refused else HEURCOM if commits else HEURRB)
        return True

    # The log

    def definition(self, branch):
        """The definition of a branch that is prepared or decided."""
        return {
            "kind": KIND,
            "part": PART,
            "name": name_in_log(branch.xid),
            "xid": list(branch.xid),
            "user": branch.user.name,
            "outcome": branch.outcome,
            "decided": branch.state == "decided",
            "held": branch.held_in_log,
        }

    def definitions(self):
        """All of them."""
        for branch in list(self.by_xid.values()):
            if branch.state != "active" and self.by_xid.get(branch.xid) is branch:
                yield self.definition(branch)

    def opened(self):
        """The log is recovered: prepared branches take what they hold out of its queues."""
        queues = {queue.id_in_log: queue for queue in self.broker.queues.values() if queue.id_in_log}
        for branch in list(self.by_xid.values()):
            for identity, runs in branch.held_in_log if branch.state == "prepared" else ():
                if identity in queues:
                    self.lock(branch, queues[identity], runs)

    def lock(self, branch, queue, runs):
        """Take the messages at these positions out of a queue."""
        wanted = {position & layout.MASK: position for first, count in runs for position in range(first, first + count)}
        brought = 0
        while True:
            self.lock_ready(branch, queue, wanted)
            if not wanted or queue.pages is None or not queue.pages.count or brought > BROUGHT_MAX:
                break
            count = self.broker.journal.pager.bring(queue)
            if not count:
                break
            brought += count
        if wanted:
            self.broker.log("a prepared branch has no hold of %d messages of queue '%s' in the log" % (len(wanted), queue.name))

    def lock_ready(self, branch, queue, wanted):
        """Those that are in memory."""
        entries, entry = self.broker.tables.entries, queue.head()
        while entry != layout.NONE and wanted:
            behind = entries[entry + layout.ENTRY_NEXT]
            if wanted.pop(entries[entry + layout.ENTRY_POSITION], None) is not None:
                queue.unlink(entry)
                branch.hold(entry)
                branch.took(1)
            entry = behind


def default_timeout_s(broker):
    """The timeout of a branch for which none is set, seconds: as long as a consumer may keep a delivery; 0: none."""
    return (broker.limits.consumer_timeout_ms + 999) // 1000


def name_in_log(xid):
    """The name of a branch's definition."""
    return "0.10 xid\n%d\n%s\n%s" % (xid[0], xid[1].hex(), xid[2].hex())


def of(broker):
    """The Branches of a broker."""
    from . import sessions

    there = sessions.of(broker)
    if there.branches is None:
        there.branches = Branches(broker)
        there.requests = branch_requests.served()
    return there.branches


def restore(broker, definition):
    """Restore a branch from a definition of the log. Raises resource-error."""
    there = of(broker)
    branch = there.make(tuple(definition["xid"]), User(definition["user"]))
    branch.state = "decided" if definition["decided"] else "prepared"
    branch.outcome = definition["outcome"]
    branch.held_in_log = definition["held"]
