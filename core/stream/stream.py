"""A stream queue: a log whose messages stay after they are delivered, each at an offset that stays valid (x-queue-type=stream).

Offsets are dense, start at 0 and are never assigned twice in the stream's life; its `id` distinguishes two streams of one name.
Retention: the oldest messages are dropped when the stream would hold more than `size_max` octets (x-max-length-bytes), when they are older
than `age_max_s` (x-max-age), or when there is no room: with a log (`pages`, pages.py) on the disk, else in memory when other queues need
it; `dropped` counts them. A consumer whose place was dropped continues at the first message left, or, with x-stream-strict, is ended with
an error: never a silent jump for a consumer that counts.

The queue's own list holds the newest messages; without a log it holds all.
"""

from ..exchange.base import whole_number
from ..memory import hot, layout
from ..memory.layout import EPOCH
from ..queue.queue import Queue
from .publishers import Publishers

AGE_S_MAX = 1 << 30  # 34 years; the longest retention

AGES = {"s": 1, "m": 60, "h": 3600, "D": 86400, "M": 2592000, "Y": 31536000}


DROPS_TURN = 1000  # messages that retention drops in one turn


class Ageing:
    """The rest of what is too old in a stream: a job of the broker (`jobs`)."""

    subject = "the age of messages%s"

    def __init__(self, broker, stream):
        self.broker = broker
        self.stream = stream

    def work(self):
        """Drop some more."""
        if self.broker.queues.get(self.stream.name) is self.stream:
            self.stream.tick(self.broker)


class Stream(Queue):
    """One stream on the record `handle` of the queue table.

    `size_max`: octets of route, properties and body; `age_max_s`: seconds, 0: for ever.
    """

    is_stream = True
    type = "stream"
    delivered = layout.NONE  # the message that stands for all that is delivered and not settled
    drops_max = 64  # messages that retention by octets drops for one that comes: more only where a policy has made the stream smaller

    def __init__(self, tables, handle, name, durable, arguments, identity, limits):
        Queue.__init__(self, tables, handle, name, durable, False, arguments, None)
        self.id = identity
        self.arena_size = limits.arena_size
        self.keep_within(arguments)
        self.held_size = 0  # octets of the messages in memory; counted where there is no log
        self.counted = 0  # the next offset, when it was last asked for
        self.durable_offset = None  # None: there is no log
        self.first_offset = 0
        self.dropped = 0
        self.publishers = Publishers(tables)
        self.kept = {}  # consumer name -> next offset it wants
        self.noted = {}  # the same as the log has them
        self.hold = arguments.get("x-stream-hold")

    @property
    def following(self):
        """The next offset: QUEUE_POSITION has its low bits, also of messages that the hot path has pushed."""
        self.counted += (self.tables.queues[self.handle + layout.QUEUE_POSITION] - self.counted) & layout.MASK
        return self.counted

    @following.setter
    def following(self, offset):
        self.counted = offset
        self.tables.queues[self.handle + layout.QUEUE_POSITION] = offset & layout.MASK

    def plain_in_log(self):
        """QUEUE_PLAIN: the hot path appends, where there is a log whose index has space and nobody holds much of what is there."""
        if self.pages is None or self.pages.is_short() or self.pages.full():
            return layout.NOT_PLAIN
        return layout.PLAIN_STREAM if self.hold is None or 2 * self.size < self.size_max else layout.NOT_PLAIN

    def keep_within(self, arguments):
        """Read x-max-length-bytes and x-max-age from `arguments`."""
        self.octets_max = arguments.get("x-max-length-bytes")
        self.age_max_s = age_of(arguments.get("x-max-age", "")) or 0

    @property
    def size_max(self):
        """The most octets that it holds: never more than the log may have, or, without one, the arena."""
        most = self.arena_size if self.pages is None else self.pages.pager.log.size_max
        return most if self.octets_max is None else min(self.octets_max, most)

    @property
    def size(self):
        """Octets of route, properties and body that it holds."""
        return self.held_size if self.pages is None else self.pages.octets

    def message_count(self):
        """Messages from the first offset to the last, in memory or not."""
        return self.following - self.first_offset

    def octets(self):
        """As `size`."""
        return self.size

    def is_paging(self):
        """Never: a published message always comes to memory first."""
        return False

    def must_page(self, block_total):
        """Never."""
        return False

    def held_from(self):
        """The offset of the first message in memory; the next one's when there is none."""
        return self.following - self.tables.queues[self.handle + layout.QUEUE_LENGTH]

    def readable_offset(self):
        """The offset up to which readers may read: those messages survive a power cut."""
        return self.next_offset() if self.durable_offset is None else self.durable_offset

    def recovered(self):
        """After recovery: the offsets are the positions, all in the index: how many are missing between them (damage in the log)."""
        self.following = self.durable_offset = self.log_position + 1
        self.first_offset = self.pages.first_position(self.following)
        return self.pages.missing()

    def next_offset(self):
        """The offset that the next message gets."""
        return self.following

    def full(self, block_total):
        """Never: a stream makes room by retention; unless messages that a consumer has not settled fill all of its room, or memory is full
        of messages to be written first."""
        if self.pages is not None and self.pages.is_full(block_total):
            return True
        if self.hold is None:
            return False
        size = block_total * self.tables.block_size
        most = self.drops_max
        while self.message_count() and (self.size + size > self.size_max or self.pages is None and self.over_share(block_total)):
            if most == 0 or not self.may_drop_first():
                return True
            most -= 1
            self.drop_first()
        return False

    def make_room(self, block_total):
        """Release memory for a message of so many blocks: messages that the log has too; else, beyond the stream's share, the oldest."""
        if self.pages is not None:
            self.pages.give_memory(block_total)
            return
        while self.message_count() > 1 and self.over_share(block_total) and self.may_drop_first():
            self.drop_first()

    def free_offset(self):
        """The offset up to which no consumer holds messages."""
        if self.hold is None:
            return self.following
        for consumer in self.consumers:
            if consumer.keeps == self.hold:
                self.keep(consumer)
        return self.kept.get(self.hold, 0)

    def may_drop_first(self):
        """True when no consumer holds the oldest message."""
        return self.first_offset < self.free_offset()

    def push(self, message):
        """Append a message, unless its publisher has published it before, and drop the oldest ones that no longer fit."""
        tables = self.tables
        if self.publishers.seen(tables.properties_of(message), tables.messages[message + layout.MESSAGE_KIND]):
            tables.counts["stream_duplicates"] += 1
            return
        entry = hot.push(tables.messages, tables.entries, tables.queues, tables.state, self.handle, message)
        tables.entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE  # hot.drop is not to tell the journal
        if self.pages is None:
            self.held_size += tables.size_of(message)
            most = self.drops_max
            while most > 0 and self.message_count() > 1 and (self.size > self.size_max or self.over_share(0)) and self.may_drop_first():
                most -= 1
                self.drop_first()
            self.charge(self.drops_max - most)
        for consumer in self.consumers:
            if consumer.cursor == layout.NONE and consumer.cursor_offset == self.following - 1:
                consumer.cursor = entry

    def withdraw(self):
        """Forget the message that was pushed last: it could not be given to the log."""
        entry = self.tables.queues[self.handle + layout.QUEUE_TAIL]
        for consumer in self.consumers:
            if consumer.cursor == entry:
                consumer.cursor = layout.NONE
        message = self.tables.entries[entry + layout.ENTRY_MESSAGE]
        octets, kind = self.tables.properties_of(message), self.tables.messages[message + layout.MESSAGE_KIND]
        self.unlink(entry)
        self.drop(entry)
        self.take_back()
        self.publishers.withdraw(octets, kind)

    def take_back(self):
        """The newest message is gone again: the next one gets its offset."""
        self.following -= 1

    def charge(self, count):
        """Retention has dropped so many messages in a connection's turn."""
        self.tables.state[layout.STATE_LEFT] -= count * max(self.tables.engine.effort // DROPS_TURN, 1)

    def tick(self, broker):
        """Drop the messages older than x-max-age, in turns."""
        if self.forget_old(broker.ages):
            broker.jobs.append(Ageing(broker, self))

    def forget_old(self, ages):
        """Drop some of the messages older than x-max-age by `ages` (ages.Ages); true when there are more."""
        if not self.age_max_s:
            return False
        if self.pages is not None:
            return self.pages.forget_old(ages)
        tables = self.tables
        for _ in range(DROPS_TURN):
            if not self.message_count():
                return False
            message = tables.entries[self.head() + layout.ENTRY_MESSAGE]
            if ages.age_s(tables.messages[message + layout.MESSAGE_ARRIVED]) <= self.age_max_s or not self.may_drop_first():
                return False
            self.drop_first()
        return True

    def too_old(self, ages, most):
        """How many of the first messages, `most` at most, retention by age may drop; the first one is in memory."""
        tables, entry = self.tables, self.head()
        most = min(most, self.free_offset() - self.first_offset)
        count = 0
        while count < most and entry != layout.NONE:
            if ages.age_s(tables.messages[tables.entries[entry + layout.ENTRY_MESSAGE] + layout.MESSAGE_ARRIVED]) <= self.age_max_s:
                break
            count += 1
            entry = tables.entries[entry + layout.ENTRY_NEXT]
        return count

    def drop_first(self):
        """Retention: drop the oldest message and move the cursors that stand on it."""
        if self.pages is not None:
            self.pages.let_go(self.first_offset + 1)
            return
        tables = self.tables
        entry = self.pop()
        behind = self.head()
        self.held_size -= tables.size_of(tables.entries[entry + layout.ENTRY_MESSAGE])
        self.first_offset += 1
        self.dropped += 1
        tables.counts["retained_out"] += 1
        for consumer in self.consumers:
            if consumer.cursor == entry:
                consumer.cursor = behind
                consumer.cursor_offset = self.first_offset
                if not consumer.overtaken:
                    consumer.overtaken = True
                    tables.counts["readers_overtaken"] += 1
        self.drop(entry)

    def purge(self, most=layout.MASK):
        """Drop messages, the oldest first: `most`, or as many as are dropped in one turn; how many. Offsets go on where they were."""
        count = self.message_count()
        end = min(self.first_offset + min(most, DROPS_TURN), self.following)
        if self.pages is None:
            while self.first_offset < end:
                self.drop_first()
        elif self.first_offset < end:
            self.pages.let_go(end)
        count -= self.message_count()
        self.tables.counts["retained_out"] -= count  # retention did not drop them
        return count

    def end(self):
        """The stream goes."""
        self.publishers.end()

    # Places

    def seek(self, specification):
        """The (entry, offset) that an x-stream-offset names: "first", "last", "next", an offset, or ("T", seconds since 1970).

        An offset before the first is the first, one behind the last is next (RabbitMQ's stream queues do the same). Entry NONE: at the end.
        """
        if specification == "first":
            return self.at(self.first_offset)
        if specification == "last":
            return self.at(max(self.next_offset() - 1, self.first_offset))
        if specification == "next":
            return self.at(self.next_offset())
        if isinstance(specification, tuple):
            return self.since(specification[1])
        return self.at(min(max(specification, self.first_offset), self.next_offset()))

    def find(self, consumer):
        """Set a reader's cursor to its message where that is in memory: the hot path has appended behind a reader at the end."""
        if consumer.cursor == layout.NONE and self.held_from() <= consumer.cursor_offset < self.following:
            consumer.cursor = self.at(consumer.cursor_offset)[0]

    def at(self, offset):
        """The (entry, offset) at an offset between first and next; walked from the nearer end. Entry NONE too: it is only in the log."""
        tables = self.tables
        ahead = offset - self.held_from()
        count = tables.queues[self.handle + layout.QUEUE_LENGTH]
        if ahead < 0:
            return layout.NONE, offset
        if ahead >= count:
            return layout.NONE, self.next_offset()
        if ahead <= count // 2:
            entry = self.head()
            while ahead:
                entry = tables.entries[entry + layout.ENTRY_NEXT]
                ahead -= 1
            return entry, offset
        entry = tables.queues[self.handle + layout.QUEUE_TAIL]
        for _ in range(count - 1 - ahead):
            entry = tables.entries[entry + layout.ENTRY_PREVIOUS]
        return entry, offset

    def since(self, seconds):
        """The (entry, offset) of the first message that came at or after `seconds` since 1970."""
        tables = self.tables
        arrived = seconds - EPOCH
        entry = self.head()
        offset = self.held_from()
        if self.pages is not None:
            logged = self.pages.offset_since(arrived)
            if logged < offset:
                return layout.NONE, logged
        while entry != layout.NONE:
            message = tables.entries[entry + layout.ENTRY_MESSAGE]
            if tables.messages[message + layout.MESSAGE_ARRIVED] >= arrived:
                break
            entry = tables.entries[entry + layout.ENTRY_NEXT]
            offset += 1
        return entry, offset

    def keep(self, consumer):
        """Remember, under a consumer's name, the offset of its oldest unsettled delivery (or of its cursor)."""
        if consumer.keeps is None:
            return
        offset = consumer.cursor_offset
        entry = self.first_unsettled(consumer)
        if entry != layout.NONE:
            offset -= (offset - self.tables.entries[entry + layout.ENTRY_POSITION]) & layout.MASK
        self.kept[consumer.keeps] = offset

    def arrived_at(self, offset):
        """Seconds since 2020 at which the message at an offset came; None: there is none."""
        entry, offset = self.at(min(max(offset, self.first_offset), self.following))
        if entry != layout.NONE:
            return self.tables.messages[self.tables.entries[entry + layout.ENTRY_MESSAGE] + layout.MESSAGE_ARRIVED]
        return None if self.pages is None else self.pages.arrived_at(offset)

    def first_unsettled(self, consumer):
        """The entry of a consumer's oldest unsettled delivery, or NONE."""
        entries = self.tables.entries
        entry = self.tables.channels[consumer.channel.handle + layout.CHANNEL_UNSETTLED_HEAD]
        while entry != layout.NONE and entries[entry + layout.ENTRY_CONSUMER] != consumer.handle:
            entry = entries[entry + layout.ENTRY_NEXT]
        return entry

    def drop_settled(self):
        """Drop messages that their holder has settled, before retention would."""
        dropped = self.dropped
        while self.hold is not None and self.message_count() and self.may_drop_first():
            self.drop_first()
        self.tables.counts["retained_out"] -= self.dropped - dropped
        self.dropped = dropped

    def note_kept(self, journal):
        """Write the offsets that the stream keeps for its consumers' names to the log."""
        for consumer in self.consumers:
            self.keep(consumer)
        for name in self.kept:
            if self.noted.get(name) != self.kept[name]:
                self.noted[name] = self.kept[name]
                journal.kept(self, name)

    def names(self):
        """The names under which offsets are kept, or will be."""
        return set(self.kept).union([consumer.keeps for consumer in self.consumers if consumer.keeps is not None])


def age_of(text):
    """Seconds of an x-max-age as RabbitMQ writes it (a number and one of Y M D h m s), or None when it is not one."""
    count = whole_number(text[:-1]) if isinstance(text, str) and text[-1:] in AGES and len(text) <= 10 else None
    return min(count * AGES[text[-1]], AGE_S_MAX) or None if count else None
