"""The broker: time, connections, publishing, and the end of queues. Neutral: it knows no wire.

A wire folder calls the verbs here; the broker calls back on a protocol and its connection: core/wire/contract.pyi says what.
Nothing here blocks: a publisher that finds no room is `held` and tried again by `run`.

Two parts of it have verbs of their own: `topology` (topology.py: exchanges, queues, bindings) and `consumers` (consumers.py: what
sessions and their consumers do). What is in a message is read with core/message/reading.py.
"""

from ..access.login_failures import Failures
from ..access.permissions import default as default_access
from ..exchange.walk import Walk, near
from ..memory import hot, layout
from ..memory.layout import EPOCH
from ..memory.tables import Tables
from ..message.route import key_of
from ..outcomes import NO_ROOM, REFUSED, TAKEN, UNROUTABLE
from ..parts import part
from ..queue import turns
from ..queue.rules import with_expiry, without_expiry
from ..shim import elapsed
from . import engine, route_cache
from .consumers import Consumers
from .counters import COUNTERS, fold
from .guard import Guard
from .places import Places
from .topology import NoPolicies, Removal, Topology

if False:  # for the type checker alone
    from typing import Any

JOBS_A_ROUND = 64  # queues that go in one `run`
TURNS = 4  # of connections whose frames are processed one by one, in one `run`

RULES_EVERY_MS = 50  # between two runs of the time-based rules of queues
DUE_QUEUES = 64  # queues that the broker checks in a millisecond for lifetimes that end between two of those runs
DUE_MAX_MS = 1000
NOTE_EVERY_MS = 1000  # between two records in the log of the offsets that readers of streams have reached

MANAGEMENT = b"amq.leveret.management"  # where core/management/requests.py is asked: no client can declare such a queue


def nothing(sentence, is_fault=False):
    """A log function that drops every sentence."""


class Broker:
    """One broker with one virtual host. `limits`: core/limits.py; `nonce`: bytes that differ from run to run; `access`:
    core/access/permissions.py, by default guest with all rights. `log`: a function that takes a sentence for the operator."""

    made_on_use: "Any"  # rows of amqp_1_0/nodes.py, where a configuration has some
    aside: "Any" = None  # `calculate(derivation, login)` of a port: passwords are calculated beside the loop (ports/password_thread.py)
    trace: "Any" = None  # a port's, while it copies messages: `delivery`, `tell_delivery` of a get, `published_by` of an operator's publish
    name = "leveret"  # the broker's name; clients see it as cluster_name, unless an operator has set that
    cluster_name: "Any" = None
    parameters: "Any" = None  # parameters.Parameters, from the first one
    virtual_host = "/"  # the name of the one that there is
    virtual_host_aliases = ()  # other names by which clients may open it

    def __init__(self, limits, nonce=b"", access=None, log=nothing):
        self.limits = limits
        self.nonce = nonce
        self.tables = Tables(limits, engine.chosen)
        self.exchanges: "Any" = {}  # by name
        self.queues: "Any" = {}
        self.queue_list: "Any" = None  # see `listed`
        self.queue_objects: "Any" = {}  # by record handle
        self.topology = Topology(self)
        self.consumers = Consumers(self)
        policies = part("broker.policies")
        self.policies: "Any" = NoPolicies() if policies is None else policies.Policies()
        self.journal: "Any" = None  # journal.Journal of a durable broker
        self.unrestored = []  # definitions of the log that could not be made again, and stay there
        self.access = default_access(limits, nonce) if access is None else access
        self.failures = Failures(limits)
        self.guard = Guard(self)
        self.jobs = []  # log-ins whose password is being calculated ...: each `run` calls `work` of one; `subject`: its name in the log
        self.log = log
        self.inform = nothing  # the same for events of connections: opened, closed; `is_fault`: an error ended the connection
        self.now = 0
        self.seconds = 0  # since 2020-01-01, for MESSAGE_ARRIVED
        self.ages = carried("broker.ages", "Ages")
        self.uptime_ms = 0  # does not wrap
        self.uptime_s = 0
        self.began_ms = None  # uptime_ms began at this `now`: the first tick
        self.rules_at = 0  # uptime at the last run of the time-based rules
        self.ended_at = 0  # uptime at the last check of lifetimes
        self.overdue: "Any" = None  # the first queue of that check with more expired messages than it had room for
        self.noted_at = 0
        self.commit = None  # the transaction that takes effect in turns
        self.committing = False  # a commit with room for all of its publishes is applying them: shares do not count
        self.pressure: "Any" = None  # core/broker/pressure.py, from when a publisher waits; False where it is not carried
        self.waiting = carried("queue.waiting", "Waiting", limits.waiting_count_max)
        self.dead_letters = carried("queue.dead_letters", "DeadLetters", self.tables)  # dead letters without room or route so far
        self.octets_max = None  # octets that the broker uses with every limit reached, where the port knows better than core/limits.py
        self.dead_letters_nested = 0  # each published for the one before
        self.connections = []
        self.held = []  # connections that are not read because a queue or the arena has no room
        self.behind = []  # connections with unprocessed frames: other connections have their turn first
        self.turns = 0  # of these, in this round
        self.places = Places(self)
        self.services = {MANAGEMENT: self.manage}  # in-process consumers of reserved addresses, by routing key of the default exchange
        self.page: "Any" = None  # a board's own answer, and all of management in a build without it (firmware/status_page.py)
        self.beyond: "Any" = None  # sessions that live beyond their connection (amqp_0_10/sessions.py)
        self.kept: "Any" = None  # what a family keeps of its peers between two connections (amqp_1_0/termini.py)
        self.local: "Any" = None  # local.Local, from the first rule about own messages
        self.growing: "Any" = None  # growing.Growing, from the first content of unknown size
        self.results: "Any" = None  # crossing.Results, from the first message that goes to receivers of another version
        self.contents: "Any" = None  # staging/contents.py, from the first content that is staged
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.bridges = {}  # name -> (uptime of the report, the bridge's report): core/bridge/requests.py

    def tick(self, now, seconds):
        """Time passes: `now` in wrapping milliseconds, `seconds` since 1970. Never raises."""
        self.pass_time(now, max(seconds - EPOCH, 0))

    def pass_time(self, now, seconds):
        """As `tick`, with `seconds` since 2020: folds flat counters, runs time-based rules. It takes no heap when nothing happens."""
        if self.began_ms is None:
            self.began_ms = self.uptime_ms + max(elapsed(now, self.now), 0)
        self.uptime_ms += max(elapsed(now, self.now), 0)
        self.now = self.tables.state[layout.STATE_NOW] = now
        self.uptime_s = self.tables.state[layout.STATE_UPTIME] = self.uptime_ms // 1000
        self.seconds = self.tables.state[layout.STATE_SECONDS] = seconds
        try:
            jump = self.ages.tick(self.seconds, self.uptime_ms)
            if jump:
                self.clock_jumped(jump)
            self.failures.tick(now)
            self.fold_counters()
            if self.uptime_ms - self.rules_at >= RULES_EVERY_MS:
                self.rules_at = self.ended_at = self.uptime_ms
                self.run_rules()
            elif self.due_in(now) == 0:
                self.ended_at = self.uptime_ms
                self.end_lifetimes()
        except Exception as error:  # an error of ours: told, and the round goes on
            self.guard.trouble("the time%s", "", error)

    def clock_jumped(self, jump_s):
        """The wall clock has jumped: ages of messages stay as they were. A log with streams records the jump."""
        self.log("the clock went %s by %d s: lifetimes and ages do not count that" % ("ahead" if jump_s > 0 else "back", abs(jump_s)))
        if self.journal is not None and [queue for queue in self.queues.values() if queue.is_stream and queue.id_in_log]:
            from ..log import definition_records

            self.journal.define(definition_records.clock_definition(self.ages))

    def fold_counters(self):
        """Add the frequent counters to the others."""
        fold(self.tables, self.counters)

    def note_readers(self):
        """Write the offsets that streams keep for their readers to the log, so that a power cut costs readers a second."""
        self.noted_at = self.uptime_ms
        for queue in self.queues.values():
            if queue.is_stream and queue.id_in_log:
                try:
                    queue.note_kept(self.journal)
                except Exception as error:  # an error of ours is this queue's alone
                    self.guard.queue_failed(queue, error)

    def watch_pressure(self):
        """Publishers wait, or have waited: log a sentence if the wait lasts."""
        if self.pressure is None:
            carried = part("broker.pressure")
            self.pressure = False if carried is None else carried.Pressure(self)
        if self.pressure:
            self.pressure.tick()

    def run_rules(self):
        """Run the time-based rules of every queue."""
        if self.held or self.pressure:
            self.watch_pressure()
        if self.journal is not None and self.uptime_ms - self.noted_at >= NOTE_EVERY_MS:
            self.note_readers()
        self.waiting.run(self)
        self.tables.state[layout.STATE_DUE] = 0
        for queue in turns.in_turn(self):
            if self.queues.get(queue.name) is not queue:
                continue  # the rules of another queue have removed this one
            try:
                if queue.rules is not None:
                    queue.rules.tick(self, queue)
                elif queue.is_stream:
                    queue.tick(self)
            except Exception as error:  # an error of ours is this queue's alone
                self.guard.queue_failed(queue, error)
        self.dead_letters.retry()
        if self.contents is not None:
            self.contents.tick()
        if self.beyond is not None:
            self.beyond.tick()
        self.guard.tick()

    def listed(self):
        """All queues in a list that stays as it is when some come or go: then another is made."""
        if self.queue_list is None:
            self.queue_list = list(self.queues.values())
        return self.queue_list

    def due_in(self, now):
        """Milliseconds from `now` until a lifetime or a delay ends or settlements go into the log, 0 when one has, at most DUE_MAX_MS."""
        left = DUE_MAX_MS
        due = self.tables.state[layout.STATE_DUE]
        if due:
            left = elapsed(due, now) + 1
        if self.waiting.heap:
            left = min(left, self.waiting.heap[0][0] - self.uptime_ms)
        if left < DUE_MAX_MS:
            left = max(left, self.ended_at + 1 + len(self.queues) // DUE_QUEUES - self.uptime_ms)
        if self.journal is not None and self.journal.rests and self.journal.settled.identities:
            left = min(left, self.journal.rest_ms())
        return max(0, min(left, DUE_MAX_MS))

    def note_due(self, moment):
        """A deadline was written: is it the earliest?"""
        state = self.tables.state
        if moment > 0 and (state[layout.STATE_DUE] == 0 or elapsed(moment, state[layout.STATE_DUE]) < 0):
            state[layout.STATE_DUE] = moment

    def end_lifetimes(self):
        """A lifetime or a delay has ended: drop expired messages, give delayed ones to their queues."""
        self.waiting.run(self)
        self.tables.state[layout.STATE_DUE] = 0
        for queue in turns.in_turn(self):
            if queue.rules is not None and queue.rules.expiry is not None and self.queues.get(queue.name) is queue:
                try:
                    queue.rules.expiry.tick(self, queue)
                except Exception as error:  # an error of ours is this queue's alone
                    self.guard.queue_failed(queue, error)

    def run(self):
        """Make all deliveries that can be made now, and let held publishers try again. Never raises."""
        tables = self.tables
        try:
            tables.state[layout.STATE_LEFT] = tables.engine.effort  # as begin_turn: each round comes here
            if self.jobs:
                self.do_jobs()
            if self.dead_letters.has_turns:
                self.dead_letters.turn(self)
            if self.consumers.leaving and self.consumers.leaving_now():
                self.consumers.let_leave()
            if self.policies.pending:
                self.policies.go_on(self)
            turns.run(self, tables.engine.deliveries)
            if self.behind:
                self.give_turns()
                turns.go_on(self)
            if self.journal is not None:
                self.journal.run_guarded()
                turns.go_on(self)
            if self.held:
                waiting = self.held
                self.held = []
                for connection in waiting:
                    self.guard.resume(connection)
                turns.go_on(self)
        except Exception as error:  # an error of ours: told, and the next round comes
            self.guard.trouble("a round%s", "", error)

    def do_jobs(self):
        """Run one part of the first job, or of some where queues go."""
        for _ in range(min(len(self.jobs), JOBS_A_ROUND)):
            job = self.jobs.pop(0)
            self.work(job)
            if not isinstance(job, Removal) or self.tables.state[layout.STATE_LEFT] <= 0:
                break  # a queue that goes is little work: with one a round, who makes and deletes many would fill the table

    def work(self, job):
        """Run one part of a job. A job that raises runs again later, behind the others."""
        try:
            job.work()
        except Exception as error:  # an error of ours: told, and tried again
            self.guard.job_failed(job, error)

    def give_turns(self):
        """Let connections with unprocessed frames continue, in turn."""
        self.turns = TURNS
        while self.behind and self.turns > 0:
            self.turns -= 1
            connection = self.behind.pop(0)
            try:
                connection.go_on()
            except Exception as error:  # an error of ours is this connection's alone
                connection.broke(error)
            if self.tables.state[layout.STATE_LEFT] <= 0:
                return  # this turn was a long one

    def activate(self, queue):
        """Mark a queue that may have something to deliver as active."""
        hot.activate(self.tables.queues, self.tables.state, queue.handle)

    def has_active(self):
        """True when `run` may have something to do: a queue with messages to deliver, a connection that waits for its turn."""
        return (
            self.tables.state[layout.STATE_ACTIVE_HEAD] != layout.NONE
            or len(self.behind) > 0
            or len(self.consumers.leaving) > 0
            and self.consumers.leaving_now()
            or self.dead_letters.until != layout.NONE
            or len(self.policies.pending) > 0
            or self.journal is not None
            and self.journal.pager.busy
        )

    # Publishing

    def publish(self, message, exchange_name, key):
        """Put a complete message on all queues its exchange chooses.

        `key` is bytes, or a tuple of keys that the sender selected (the message's own first).
        TAKEN; UNROUTABLE; NO_ROOM (nothing changed; try again); REFUSED (a queue's rule refused it). The caller keeps its own reference.
        """
        targets = near(self, exchange_name, key, message)
        if targets is None:
            return self.put_far(message, Walk(self, exchange_name, key, message))
        return self.put(message, targets)

    def put_far(self, message, walk):
        """Put a message on the queues of a Walk; a message that an x-lossy exchange dropped counts as TAKEN."""
        outcome = self.put(message, walk.queues, walk.delay_ms)
        if outcome != NO_ROOM:
            walk.used()
        return TAKEN if outcome == UNROUTABLE and walk.lost else outcome

    def put(self, message, targets, delay_ms=0):
        """Put a message on these queues, or on none of them; after `delay_ms` milliseconds."""
        if not targets:
            return UNROUTABLE
        if self.contents is not None and not self.contents.may_come(message, targets):
            return REFUSED
        if self.journal is not None:
            return self.journal.publish.put(self, message, targets, delay_ms)
        blocks = self.tables.messages[message + layout.MESSAGE_BLOCKS]
        if not self.has_entries(len(targets)) or not self.committing and self.is_full(targets, blocks, False, delay_ms):
            return NO_ROOM
        verdict = TAKEN
        expires = self.tables.messages[message + layout.MESSAGE_LIFETIME] != layout.NONE
        for queue in targets:
            if expires and not queue.is_stream:
                self.let_expire(queue)
            if self.put_on(queue, message, delay_ms) == REFUSED:
                verdict = REFUSED
            self.activate(queue)
        return verdict

    def put_on(self, queue, message, delay_ms):
        """Put a message on one queue that has room for it: TAKEN, or REFUSED by a feature."""
        if delay_ms and not queue.is_stream:
            self.delay(queue, message, delay_ms)
        elif queue.rules is None:
            queue.push(message)
        else:
            return queue.rules.accept(self, queue, message)
        return TAKEN

    def published(self, channel, message, mandatory, outcome):
        """A publish of a session has come to `outcome` (TAKEN, UNROUTABLE or REFUSED), in the order of its publishes: have it returned, or
        release it, and have it answered. The caller's reference is no more."""
        state = self.tables.state
        state[layout.STATE_PUBLISHED] = (state[layout.STATE_PUBLISHED] + 1) & layout.MASK
        if outcome == UNROUTABLE and mandatory:
            self.counters["returned"] += 1
            channel.session.returned(channel, message, outcome)
        else:
            if outcome == UNROUTABLE:
                self.counters["unroutable"] += 1
            self.tables.release(message)
        channel.session.answered(channel, outcome)

    def publish_dead_letter(self, message, exchange_name, key, circles):
        """Publish a dead letter: TAKEN, UNROUTABLE or NO_ROOM. `circles(queue name)` is true for a queue it must not come back to."""
        walk = Walk(self, exchange_name, key, message)
        walk.queues = [queue for queue in walk.queues if not circles(queue.name)]
        return self.put_far(message, walk)

    def discard(self, queue, entry, reason):
        """Drop an entry in no list, or dead-letter it where its queue has a dead letter exchange."""
        rule = None if queue.rules is None else queue.rules.dead_letter
        if rule is None or self.send_dead_letter(rule, queue, entry, reason):
            queue.drop(entry)

    def send_dead_letter(self, rule, queue, entry, reason):
        """Publish an entry's message as a dead letter: true when the entry can be dropped; else it waits, or is kept as poison."""
        try:
            if not self.dead_letters.has_turn(entry, reason):
                return False
            try:
                if rule.send(self, queue, entry, reason):
                    return True
            except MemoryError as error:  # memory may be free later
                self.guard.trouble("a dead letter of queue '%s'", queue.name, error)
            self.dead_letters.add(entry, reason)
        except Exception as error:  # an error of ours: the entry is put aside
            self.guard.rescue(queue, entry, error)
        return False

    def has_entries(self, count):
        """True when `count` entries are free, if need be after the journal has released settled entries."""
        state = self.tables.state
        if state[layout.POOL_ENTRIES + 2] < count and self.journal is not None:
            self.journal.gather_settled()
        return state[layout.POOL_ENTRIES + 2] >= count

    def is_full(self, targets, block_total, logged, delay_ms=0):
        """True when a queue takes no message of so many blocks now, the log none that is to be `logged`, or a delayed one has no place."""
        if delay_ms and not self.waiting.has_room():
            return True
        for queue in targets:
            if queue.full(block_total) and not (self.give_way() and not queue.full(block_total)):
                return True
        return logged and self.journal.log.full(block_total * self.tables.block_size)

    def delay(self, queue, message, delay_ms):
        """Give a queue a message that becomes ready in `delay_ms`."""
        entry = queue.push(message)
        hot.unlink_ready(self.tables.messages, self.tables.entries, self.tables.queues, queue.handle, entry)  # it has come to no level
        try:
            self.waiting.add(self, delay_ms, queue, entry, True)
        except Exception:  # all or nothing: the entry is in no list
            self.tables.entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE  # hot.drop is not to tell the journal
            queue.drop(entry)
            raise
        self.counters["delayed"] += 1

    def see_lifetime(self, queue, message):
        """A message has come to a queue from the log: add a rule of lifetimes to the queue when the message has one, and answer true."""
        if self.tables.messages[message + layout.MESSAGE_LIFETIME] == layout.NONE or queue.is_stream or queue.is_own:
            return False
        self.let_expire(queue)
        return True

    def let_expire(self, queue):
        """A message with an expiration comes to a queue that may have no rule of lifetimes so far: add one."""
        if queue.rules is not None and queue.rules.expires:
            return
        before = queue.rules
        queue.rules = with_expiry(before)
        try:
            queue.update_plain()
        except Exception:  # all or nothing: the next such message tries again
            queue.rules = before
            if before is not None:
                without_expiry(before)
            raise

    def entries_of(self, queue):
        """The entries of a queue: those ready, and those delivered and not settled, which may come back."""
        tables = self.tables
        entry = queue.head()
        while entry != layout.NONE:
            yield entry
            entry = tables.entries[entry + layout.ENTRY_NEXT]
        for channel in self.consumers.open_sessions():
            entry = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD]
            while entry != layout.NONE:
                if tables.entries[entry + layout.ENTRY_QUEUE] == queue.handle:
                    yield entry
                entry = tables.entries[entry + layout.ENTRY_NEXT]

    def make_room(self, block_total):
        """Have streams and queues that continue in the log release memory until `block_total` blocks have room; other streams drop their
        oldest messages above their share."""
        for queue in self.queues.values():
            if queue.is_stream:
                queue.make_room(block_total)
        if self.journal is not None:
            self.journal.pager.make_room(block_total)

    def give_way(self):
        """Ask streams to release cached messages; returns whether any were released."""
        given = False
        for queue in self.queues.values():
            if queue.is_stream and queue.pages is not None and queue.pages.give_way():
                given = True
        return given

    def route(self, exchange_name, key, message):
        """The queues for a message, each once; nothing is counted and no draw is used up. The list is not to be changed."""
        targets = near(self, exchange_name, key, message)
        return Walk(self, exchange_name, key, message).queues if targets is None else targets

    def remember_route(self, user, exchange_name, route):
        """Tell `ingest` the queues for messages of the user with this number, unless the route depends on more than exchange and key.
        `route`: both as two short strings (bytes). The user may publish there. False: the route cannot be cached."""
        exchange = self.exchanges.get(exchange_name)
        if exchange_name and (exchange is None or exchange.internal):
            return False
        if exchange_name and not (exchange.plain and exchange.by_key):
            further = part("broker.further")
            return further is not None and further.remember(self, user, exchange, route)
        if exchange_name:
            self.tables.engine.see_way(user, exchange)
        return route_cache.remember(self.tables, user, route, near(self, exchange_name, key_of(route), layout.NONE))

    def kept_aside(self):
        """(queue, entry) of each entry that is neither ready nor unsettled: it waits for a moment, for room as a dead letter, or to be
        poison."""
        for each in self.waiting.all(self):
            yield each
        for each in self.dead_letters.all(self):
            yield each
        for each in self.guard.entries_aside():
            yield each

    def purge(self, queue, most):
        """Drop ready messages of a queue: `most`, or as many as this turn has effort left for. Returns how many."""
        state = self.tables.state
        count = queue.purge(max(min(most, state[layout.STATE_LEFT]), 1))
        state[layout.STATE_LEFT] -= count
        self.counters["purged"] += count
        return count

    def manage(self, user, message, before):
        """A complete message for MANAGEMENT: (None, TAKEN), or (the `before` for the next attempt (None at first), NO_ROOM or NOT_YET);
        (None, UNROUTABLE) where this build has no management. A request takes milliseconds: its connection's turn is over, and no
        connection behind it has a turn in this round."""
        self.turns = 0
        management = part("management.requests") or self.page
        if management is None:
            return None, UNROUTABLE
        answered = management.answer(self, user, message, before)
        self.tables.state[layout.STATE_LEFT] = 0
        return answered


def carried(name, class_, *arguments):
    """An object of core/<name>'s class, or `none` where this build carries no part that uses one."""
    module = part(name)
    return none if module is None else getattr(module, class_)(*arguments)


class NoneThere:
    """Stands for delayed messages, dead letters and ages in a build without them."""

    heap = ()
    until = layout.NONE
    has_turns = False

    def tick(self, seconds, uptime_ms):
        """Reads no clock."""
        return 0

    def run(self, broker):
        """Nothing to do."""

    turn = run

    def retry(self):
        """Nothing to do."""

    def drop(self, queue, most):
        """None of a queue's."""
        return 0

    def all(self, broker):
        """None."""
        return ()

    restore = all


none = NoneThere()
