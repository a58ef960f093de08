"""A session's transaction: publishes and settlements are kept and take effect together, at the commit (0-9-1 section 1.9).

Kept contents hold their place in the arena; kept settlements leave their deliveries unsettled until the commit, and for ever after
a rollback, as the specification asks.

A commit that is long goes in turns: its family calls `commit` again until it is done: first all contents are seen to have room, then all
take effect. Meanwhile the places in queues that they need are taken out of the pool, and the log begins no group (Broker.commit), so that
all of the commit is in one: after a power cut all or nothing of it is there. Consumers may get its first messages before its last ones are
in their queues. Once it takes effect it comes to its end, also when its connection is lost or an error of ours is met.
"""

from ..errors import RESOURCE_ERROR, ProtocolError
from ..memory import layout
from ..message import reading
from ..message.route import with_copies
from ..outcomes import NO_ROOM

if False:  # for the type checker alone
    from typing import Any

COPIES_SIZE = 64  # octets of further routing keys that count as one more publish or settlement

TURN = 256  # publishes and settlements of a commit before others have their turn
EFFORT = 4  # places in queues whose effort equals one publish or settlement
COPIES_EFFORT = 16  # octets of further routing keys whose effort does
FORGOTTEN_A_TURN = 4096  # contents that one round releases
LOG_ROOM = 1 << 16  # octets of the log that a turn asks for at once
TURN_LOOKED_AT = 4096  # kept settlements that one turn checks


class Transaction:
    """Publishes and settlements of one session since its last commit or rollback; all sessions keep transaction_count_max at most."""

    def __init__(self, tables):
        self.tables = tables
        self.count = 0  # of `transactions_left`
        self.publishes = []  # (message, its further routing keys (route.with_copies), mandatory, or None: `ingest` has taken it)
        self.settlements = []  # (delivery tag, multiple, ACCEPTED, REJECTED or MODIFIED)
        self.single = set()  # delivery tags of those that are not multiple
        self.kept_to = 0  # the highest tag of those that are: to the client all up to it are settled
        self.place: "Any" = None  # (unsettled entry, count of what went with its queue) where a walk through these goes on
        self.marked = False  # all that a recover is about is marked
        self.left = 0  # of this turn
        self.checked = 0  # publishes for which room was reserved
        self.needed = 0  # places in queues for these; once the commit takes effect, for the remaining ones
        self.reserved = 0  # of these, entries that are taken out of the pool, so that nobody else has them between two turns
        self.sender: "Any" = None  # the session, from when the commit takes effect to its end
        self.done = self.settled = 0  # publishes and settlements that have taken effect
        self.error = None  # the first error since then

    def check_room(self):
        """Raise resource-error when no more may be kept."""
        if self.tables.transactions_left < 1:
            raise ProtocolError(
                RESOURCE_ERROR, "this broker keeps no more publishes and acknowledgements for commits (transaction_count_max)"
            )

    def took(self, count):
        """Count so many more as kept."""
        self.count += count
        self.tables.transactions_left -= count

    def add(self, message, copies, mandatory):
        """Keep a content that is complete, with the caller's reference; its room was reserved when it began."""
        self.publishes.append((message, copies, mandatory))  # first: what raises has kept nothing
        self.took(1 + len(copies) // COPIES_SIZE)

    def keep(self, tag, multiple, outcome):
        """Keep a settlement for the commit; `multiple`: of all deliveries up to this tag."""
        self.check_room()
        self.took(1)
        self.settlements.append((tag, multiple, outcome))
        if multiple:
            self.kept_to = max(self.kept_to, tag)
        else:
            self.single.add(tag)

    def holds(self, tag):
        """True when a kept acknowledgement covers this delivery tag: to the client it is settled."""
        return tag <= self.kept_to or tag in self.single

    def last_open(self, broker, channel):
        """The delivery tag of the last unsettled entry that no kept settlement covers; 0 when there is none: so each covers at least one,
        and there are no more of them than entries. NONE: that takes further turns."""
        tables = broker.tables
        entry = self.place_in(broker, channel)
        for _ in range(TURN_LOOKED_AT):
            if entry == layout.NONE:
                break
            tag = whole_tag(tables, channel, entry)
            if not self.holds(tag):
                return tag
            entry = layout.NONE if tag <= self.kept_to else tables.entries[entry + layout.ENTRY_PREVIOUS]
        if entry != layout.NONE:
            self.place = entry, broker.counters["dropped_with_queue"]
            return layout.NONE
        last = broker.consumers.last_unsettled(channel)
        if last != layout.NONE:
            self.kept_to = max(self.kept_to, whole_tag(tables, channel, last))  # whoever asks again need not look at them again
        return 0

    def place_in(self, broker, channel):
        """The unsettled entry where a walk to older ones goes on that takes several turns; the newest where it begins, and where some have
        gone with their queue since: perhaps that one."""
        place, self.place = self.place, None
        if place is not None and place[1] == broker.counters["dropped_with_queue"]:
            return place[0]
        return broker.consumers.last_unsettled(channel)

    def recover(self, broker, channel):
        """Requeue what no kept settlement covers, the newest first: false when that takes further turns. As in RabbitMQ the others stay for
        the commit.

        All that comes back is marked so before the first of it does: its queues deliver nothing before the last has come back.
        """
        if not self.marked:
            if not self.walk(broker, channel, self.mark):
                return False
            self.marked = True
        if not self.walk(broker, channel, self.return_marked):
            return False
        self.marked = False
        return True

    def walk(self, broker, channel, step):
        """Do `step` with each unsettled entry, from the newest to the oldest that it may be about: true when the turn was enough."""
        state = broker.tables.state
        entry = self.place_in(broker, channel)
        while entry != layout.NONE and whole_tag(broker.tables, channel, entry) > self.kept_to:
            if state[layout.STATE_LEFT] <= 0:
                self.place = entry, broker.counters["dropped_with_queue"]
                return False
            entry = step(broker, channel, entry)
            state[layout.STATE_LEFT] -= broker.consumers.look_cost()
        return True

    def mark(self, broker, channel, entry):
        """An entry is on its way back, unless a kept settlement covers it: the next one."""
        if not self.holds(whole_tag(broker.tables, channel, entry)):
            broker.tables.engine.leave(channel.handle, entry, 1)
        return broker.tables.entries[entry + layout.ENTRY_PREVIOUS]

    def return_marked(self, broker, channel, entry):
        """Requeue an entry that is marked, and those like it before it as far as the turn goes: the next one."""
        entries = broker.tables.entries
        count, before = 0, entry
        while before != layout.NONE and count < TURN and entries[before + layout.ENTRY_CONSUMER] == layout.RETURNING:
            count += 1
            before = entries[before + layout.ENTRY_PREVIOUS]
        return broker.consumers.return_some(channel, entry, count) if count else entries[entry + layout.ENTRY_PREVIOUS]

    def give_back(self):
        """Put the reserved entries back into the pool."""
        self.tables.state[layout.POOL_ENTRIES + 2] += self.reserved
        self.reserved = 0

    def clear(self):
        """Forget all but `publishes`."""
        self.sender = None
        self.give_back()
        self.settlements = []
        self.single = set()
        self.kept_to = self.checked = self.needed = self.done = self.settled = 0
        self.took(-self.count)

    def commit(self, channel):
        """Continue a commit: true when all has taken effect, in order; else call this again. At the end it raises the first error."""
        connection = channel.connection
        broker = connection.broker
        self.left = TURN
        state = broker.tables.state
        state[layout.STATE_USER] = connection.user.number
        state[layout.STATE_LOG_ROOM] = 0 if broker.journal is None else broker.journal.log.room_for(LOG_ROOM)
        if self.sender is None and not (self.find_room(broker) and self.may_begin(broker)):
            return self.left <= 0 and self.go_on_later(connection)
        self.sender = channel
        if not self.apply_part(broker):
            broker.commit = self
            return self.go_on_later(connection)
        self.end(broker)
        return True

    def go_on_later(self, connection):
        """False: the rest is for the connection's next turn, in another round of the broker."""
        self.tables.state[layout.STATE_LEFT] = 0
        connection.wait_for_turn()
        return False

    def find_room(self, broker):
        """True when all kept contents have room reserved."""
        while self.checked < len(self.publishes):
            if self.left <= 0:
                return False
            message, copies, mandatory = self.publishes[self.checked]
            count = broker.tables.engine.publish_kept(layout.NONE, message) if mandatory is None else 0
            if count:
                self.needed += count
                self.checked += 1
                self.left -= 1 + count // EFFORT
                continue
            exchange, key = names_of(broker, message, copies)
            blocks = broker.tables.messages[message + layout.MESSAGE_BLOCKS]
            targets = broker.route(exchange, key, message)
            if broker.is_full(targets, blocks, broker.journal is not None):
                return False
            self.needed += len(targets)
            self.checked += 1
            self.left -= 1 + len(targets) // EFFORT + len(copies) // COPIES_EFFORT
        return broker.has_entries(self.needed)

    def may_begin(self, broker):
        """True when the commit may take effect now: only one at a time takes effect in turns, and the log can write between two commits."""
        if not self.kept_to and len(self.publishes) + len(self.settlements) + self.needed // EFFORT <= self.left:
            return True  # the commit needs no further turn
        if broker.commit is not None:
            return False
        return broker.journal is None or broker.journal.may_hold()

    def apply_part(self, broker):
        """Apply a turn's part of what was kept, publishes first: true when nothing is left."""
        state = broker.tables.state
        if self.done < len(self.publishes):
            self.give_back()
            before = state[layout.POOL_ENTRIES + 2]
            broker.committing = True
            try:
                while self.left > 0 and self.done < len(self.publishes):
                    if not self.publish_kept(broker):
                        self.publish_next(broker)
            finally:
                self.log_pushed(broker)
                broker.committing = False
                self.needed = max(min(self.needed - max(before - state[layout.POOL_ENTRIES + 2], 0), state[layout.POOL_ENTRIES + 2]), 0)
                if self.done == len(self.publishes):
                    self.needed = 0
                self.reserved = self.needed
                state[layout.POOL_ENTRIES + 2] -= self.reserved
        while self.left > 0 and self.settled < len(self.settlements):
            self.settle_next(broker)
        return self.done >= len(self.publishes) and self.settled >= len(self.settlements)

    def publish_kept(self, broker):
        """Publish the next kept message where it needs no decision; false: publish_next is to do it."""
        message, _, mandatory = self.publishes[self.done]
        count = broker.tables.engine.publish_kept(self.sender.handle, message) if mandatory is None else 0
        if count == 0:
            self.log_pushed(broker)
            return False
        self.done += 1
        self.left -= 1 + count // EFFORT
        return True

    def log_pushed(self, broker):
        """Log what publish_kept has pushed."""
        state = broker.tables.state
        if state[layout.STATE_LOGGED_HEAD] != layout.NONE:
            try:
                broker.journal.log_pushed()
            except Exception as error:  # an error of ours: no queue keeps what the log lacks; the commit is told
                broker.journal.withdraw()
                self.failed(error)

    def publish_next(self, broker):
        """Publish the next kept message. If queues and exchanges have changed since its room was reserved, the message goes to those queues
        that have room."""
        message, copies, mandatory = self.publishes[self.done]
        self.done += 1
        left = broker.tables.state[layout.POOL_ENTRIES + 2]
        try:
            exchange, key = names_of(broker, message, copies)
            outcome = broker.publish(message, exchange, key)
            if outcome == NO_ROOM:
                targets = broker.route(exchange, key, message)
                outcome = broker.put(message, targets[: max(broker.tables.state[layout.POOL_ENTRIES + 2], 0)])
        except Exception as error:  # an error of ours: the commit is told, the others go on
            broker.tables.release(message)
            self.failed(error)
            return
        self.left -= 1 + max(left - broker.tables.state[layout.POOL_ENTRIES + 2], 0) // EFFORT + len(copies) // COPIES_EFFORT
        try:
            broker.published(self.sender, message, mandatory, outcome)
        except Exception as error:  # an error of ours: the commit is told, the others go on
            self.failed(error)

    def settle_next(self, broker):
        """Apply the next kept settlement, or as much of it as this turn has effort left for."""
        channel = self.sender
        tables = broker.tables
        tag, multiple, outcome = self.settlements[self.settled]
        left, count = self.left, 1
        self.left -= 1
        self.settled += 1
        try:
            if multiple:
                entry, count = unsettled_up_to(tables, channel, tag, left)
            else:
                entry = the_unsettled(tables, channel, tag)
            self.left -= count
            if multiple or tables.channels[channel.handle + layout.CHANNEL_PREFETCH]:
                self.left -= len(channel.consumers) // EFFORT
            if entry != layout.NONE:  # else its queue was removed meanwhile
                first = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD] if multiple else entry
                broker.consumers.settle(channel, first, entry, outcome)
            if multiple and count >= left:
                self.settled -= 1  # only now: so a settlement that raises is not repeated for ever
        except Exception as error:  # an error of ours: the commit is told, the others go on
            self.failed(error)

    def failed(self, error):
        """Remember the first error: the others take effect all the same."""
        if self.error is None:
            self.error = error

    def end(self, broker):
        """All has taken effect."""
        self.let_others(broker)
        self.publishes = []
        self.clear()
        broker.counters["commits"] += 1
        error, self.error = self.error, None
        if error is not None:
            raise error

    def let_others(self, broker):
        """Allow the log to begin a group, and the next commit to take effect in turns."""
        if broker.commit is self:
            broker.commit = None
            if broker.journal is not None:
                broker.journal.held()

    def finish(self, broker):
        """Complete at once a commit that has begun to take effect, if one has."""
        if self.sender is not None:
            self.left = layout.MASK
            while not self.apply_part(broker):
                self.left = layout.MASK
            self.end(broker)

    def rollback(self, broker):
        """Forget everything that was kept: after an error of ours in the middle of a commit, the part that has not taken effect."""
        forgotten = Forgotten(broker, [kept[0] for kept in self.publishes[self.done :]])
        self.publishes = []
        try:
            self.clear()
            self.let_others(broker)
            broker.counters["rollbacks"] += 1
        finally:
            broker.work(forgotten)


class Forgotten:
    """Kept contents to release, FORGOTTEN_A_TURN in each round of the broker."""

    subject = "a rollback%s"

    def __init__(self, broker, messages):
        self.broker = broker
        self.messages = messages

    def work(self):
        """Release some more."""
        for _ in range(min(len(self.messages), FORGOTTEN_A_TURN)):
            self.broker.tables.release(self.messages.pop())
        if self.messages:
            self.broker.jobs.append(self)


def names_of(broker, message, copies):
    """The exchange's name and the key or keys of a kept content."""
    exchange, key = reading.names_of(broker.tables, message)
    return exchange, with_copies(key, copies)


def whole_tag(tables, channel, entry):
    """The delivery tag of an unsettled entry, which has its low 30 bits."""
    low = tables.entries[entry + layout.ENTRY_TAG]
    high = tables.channels[channel.handle + layout.CHANNEL_TAG_HIGH]
    return (high if low <= tables.channels[channel.handle + layout.CHANNEL_TAG] else high - 1) << 30 | low


def the_unsettled(tables, channel, tag):
    """The unsettled entry with a delivery tag, or NONE."""
    return tables.engine.find_tag(channel.handle, tag & layout.MASK)


def unsettled_up_to(tables, channel, tag, most):
    """The last unsettled entry up to a delivery tag, of the first `most` ones, and how many there are up to it; NONE when there is none."""
    entry = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD]
    last, count = layout.NONE, 0
    while entry != layout.NONE and count < most and (tag - tables.entries[entry + layout.ENTRY_TAG]) & layout.MASK < 0x20000000:
        last = entry
        count += 1
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    return last, count
