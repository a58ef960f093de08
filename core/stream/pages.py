"""A stream beyond memory: the places of all its messages in the log, its newest ones in memory, and windows for readers far from the end.

The index (log/chunk_index.py) has every message of a stream from the moment that the message is given to the log; OCTETS counts route,
properties and body, NEWEST is when the newest message of a chunk came. The queue's own list holds the newest messages, as far as half of
what is free beyond a quarter of memory goes; a message that is written may leave the list at any time. A reader in front of that list reads
from a *window*: neighbouring messages read back from the log, as entries in a list of their own. Readers near each other share one; no two
windows have the same message, and none is kept that no reader stands in. All of these are a cache: the stream releases them when memory is
needed, and reads them again.

A message that can no longer be read is a hole in the stream: logged, counted (log_unreadable), settled. Offsets are never assigned again: a
reader continues behind the hole, a strict one is ended with an error.
"""

from ..limits import block_count
from ..log import chunk_index
from ..log.read_back import Damaged, Walk
from ..log.settled_positions import Settled
from ..memory import layout
from .stream import DROPS_TURN
from .windows import FREE_PART, Windows


class StreamPages(chunk_index.Paged):
    """The index of one stream, and its windows."""

    def __init__(self, tables, pager, stream):
        chunk_index.Paged.__init__(self, tables, pager)
        self.stream = stream
        self.windows = Windows(self)
        self.chunk_total = 0
        self.tight_total = 0  # of these, when they were joined last

    def insert(self, before):
        """As Paged.insert, counted."""
        self.chunk_total += 1
        return chunk_index.Paged.insert(self, before)

    def remove(self, chunk):
        """As Paged.remove; no reader may return to that chunk."""
        self.chunk_total -= 1
        if self.tables.chunks[chunk + chunk_index.OFFSET] < 0:
            self.pager.log.forget_marks(self, (chunk,))
        for window in self.windows:
            if window.chunk == chunk:
                window.chunk = layout.NONE
        chunk_index.Paged.remove(self, chunk)

    def position(self, chunk):
        """The offset of a chunk's first message."""
        return self.pager.journal.position(self.stream, self.tables.chunks[chunk + chunk_index.POSITION])

    # Recovery

    def make_piece(self, contents):
        """Drop the oldest chunk of a stream, to free one for recovery: it counts the loss in `contents` (first_pass.LogContents)."""
        if self.head != layout.NONE:
            count = self.tables.chunks[self.head + chunk_index.COUNT]
            for segment in contents.segments:
                if segment.number == self.tables.chunks[self.head + chunk_index.SEGMENT]:
                    segment.live -= count
            contents.counts["messages"] -= count
            contents.counts["let_go"] += count
            self.remove(self.head)

    def first_position(self, following):
        """The offset of the first message left; `following` when there is none. A chunk may begin with a hole."""
        if self.head == layout.NONE:
            return following
        first = self.position(self.head)
        return first if self.holes is None else self.holes.behind(first)

    def begin_at(self, end):
        """The stream has nothing before the offset `end`: it begins with the first message that is there, as after a restart."""
        self.stream.first_offset = max(end, min(self.first_position(self.stream.following), self.stream.held_from()))

    def missing(self):
        """How many messages are neither there nor settled, behind the first one."""
        chunks, count = self.tables.chunks, 0
        chunk = self.head
        while chunk != layout.NONE:
            end = self.position(chunk) + chunks[chunk + chunk_index.SPAN]
            chunk = chunks[chunk + chunk_index.NEXT]
            gap_end = self.stream.following if chunk == layout.NONE else self.position(chunk)
            if end < gap_end and (self.holes is None or not self.holes.covers(end, gap_end)):
                count += gap_end - end
        return count

    # In

    def appended(self, skip, message):
        """The stream's newest message was appended to the log, `skip` octets into what is appended."""
        tables = self.tables
        arrived = tables.messages[message + layout.MESSAGE_ARRIVED]
        self.grew(skip, self.stream.next_offset() - 1, 1, tables.size_of(message), arrived)

    def grew(self, skip, first, count, octets, arrived):
        """`count` messages of so many octets, at the offsets from `first` on, were appended to the log, the first `skip` octets into what
        is appended; `arrived`: when the newest came."""
        tables, writer = self.tables, self.pager.log
        if tables.chunk_pool[2] == 0 and self.head != layout.NONE:
            self.tighten()
            if tables.chunk_pool[2] == 0 and tables.chunks[self.tail + chunk_index.OFFSET] != chunk_index.unwritten(writer.group):
                self.let_go(self.position(self.head) + tables.chunks[self.head + chunk_index.SPAN])
        if tables.chunk_pool[2] == 0 and self.head == layout.NONE:
            self.pager.journal.settle_range(self.stream, first, first + count, count, writer.current().number)
            self.let_go(first + count)
            return
        made = self.add(self.tail, writer.current().number, writer.group, skip, first, octets, 0, False, count)
        if made != layout.NONE:
            writer.gathered.marks.append((self, made))
        self.came(self.tail, arrived)
        if self.is_short():
            self.relieve()
        self.trim(count)
        stream = self.stream
        if stream.plain_in_log() != tables.queues[stream.handle + layout.QUEUE_PLAIN]:
            stream.update_plain()

    def came(self, chunk, arrived):
        """A message of a chunk came at that time."""
        chunks = self.tables.chunks
        chunks[chunk + chunk_index.NEWEST] = max(chunks[chunk + chunk_index.NEWEST], arrived)

    def trim(self, count):
        """Retention by octets, where `count` messages have come; and memory holds no more than it should."""
        stream = self.stream
        left = most = min(stream.drops_max * count, DROPS_TURN)
        while left > 0 and self.octets > stream.size_max:
            first = stream.first_offset
            end, size = self.excess(min(first + left, stream.following - 1, stream.free_offset()))
            if end <= first:
                break
            self.let_go(end, size)
            left -= end - first
        stream.charge(most - left)
        self.shrink(0)

    def excess(self, end):
        """(offset, octets): retention by octets drops the messages before that offset, at most those before `end` and of one chunk. Their
        octets where they are known, else None: the mean in their chunk says how many go."""
        stream, tables = self.stream, self.tables
        offset, over = stream.first_offset, self.octets - stream.size_max
        chunks, chunk = tables.chunks, self.head
        end = min(end, self.position(chunk) + chunks[chunk + chunk_index.SPAN])
        if offset < stream.held_from():
            count, octets = chunks[chunk + chunk_index.COUNT], max(chunks[chunk + chunk_index.OCTETS], 1)
            return min(end, offset + (over * count + octets - 1) // octets), None
        size, entry = 0, stream.head()
        while offset < end and size < over:
            size += tables.messages[tables.entries[entry + layout.ENTRY_MESSAGE] + layout.MESSAGE_FILLED]
            entry = tables.entries[entry + layout.ENTRY_NEXT]
            offset += 1
        return offset, size

    def is_full(self, block_total):
        """True when a publisher must wait: for messages in memory to be written, or for a place in the index that no stream can free."""
        stream = self.stream
        self.shrink(block_total)
        if stream.head() != layout.NONE and stream.held_from() >= stream.durable_offset and stream.over_share(block_total):
            return True
        if not self.is_short():
            return False
        self.relieve()
        return self.full()

    def relieve(self):
        """The stream has more chunks than are free: join some, else drop the oldest."""
        if self.chunk_total > self.tight_total:
            self.tighten()
        if self.is_short() and self.head != layout.NONE and self.chunk_total > 1:
            end = self.position(self.head) + self.tables.chunks[self.head + chunk_index.SPAN]
            if end <= self.stream.free_offset():
                self.let_go(end)

    def is_short(self):
        """True when the stream has more chunks than are free: after a crash the same messages may take more."""
        return self.chunk_total > self.tables.chunk_pool[2]

    def tighten(self):
        """Join neighbouring chunks of a segment as far as they may go now."""
        chunks = self.tables.chunks
        chunk = self.head
        while chunk != layout.NONE:
            behind = chunks[chunk + chunk_index.NEXT]
            if behind != layout.NONE and chunks[behind + chunk_index.OFFSET] >= 0 and self.continues(chunk, behind):
                self.join(chunk, behind)
            else:
                chunk = behind
        self.tight_total = self.chunk_total

    # Memory

    def shrink(self, block_total):
        """Drop the oldest written messages from memory, while those in memory use more than they leave free."""
        most = self.over_half(block_total)
        while most > 0 and self.give_first(most):
            most = self.over_half(block_total)

    def give_first(self, most=1):
        """Drop the oldest messages, `most` at most, from memory: false when the first is not written yet, or there is none."""
        stream = self.stream
        first = stream.held_from()
        count = min(most, stream.durable_offset - first, stream.following - first)
        if count <= 0:
            return False
        for consumer in stream.consumers:
            if first <= consumer.cursor_offset < first + count:
                consumer.cursor = layout.NONE
        self.tables.engine.purge(stream.handle, count)
        return True

    def over_half(self, block_total):
        """How many of the messages in memory (at least; 0: none) are too many: with so many more blocks they would take more of a pool than
        is free beyond the quarter of it that is left to others: a second quarter for every reader that is behind, however many streams
        there are."""
        stream, state, limits = self.stream, self.tables.state, self.pager.broker.limits
        queues = self.tables.queues
        held = queues[stream.handle + layout.QUEUE_LENGTH]
        blocks = queues[stream.handle + layout.QUEUE_BLOCKS]
        over = max(
            held + 1 - state[layout.POOL_ENTRIES + 2] + limits.entry_count_max // 4,
            held + 1 - state[layout.POOL_MESSAGES + 2] + limits.message_count_max // 4,
        )
        over_blocks = blocks + block_total - state[layout.POOL_BLOCKS + 2] + block_count(limits) // 4
        if over_blocks > 0:
            over = max(over, over_blocks * held // (blocks or 1), 1)
        return (over + 1) // 2 if over > 0 else 0

    def give_memory(self, block_total):
        """Release messages from memory that can be read again, until a message of so many blocks has room."""
        while not self.tables.has_room(block_total, 2) and self.give_first():
            pass
        for window in list(self.windows):
            if window.head != layout.NONE and not self.tables.has_room(block_total, 2):
                self.windows.close(window)

    def give_way(self):
        """Release messages from memory beyond an eighth of the arena: true when any were released."""
        blocks = self.tables.queues[self.stream.handle + layout.QUEUE_BLOCKS]
        while self.keeps_much() and self.give_first():
            pass
        for window in list(self.windows):
            if window.head != layout.NONE and self.keeps_much():
                self.windows.close(window)
        return self.tables.queues[self.stream.handle + layout.QUEUE_BLOCKS] < blocks

    def keeps_much(self):
        """True when the stream has more than an eighth of the arena."""
        return self.tables.queues[self.stream.handle + layout.QUEUE_BLOCKS] * FREE_PART > block_count(self.pager.broker.limits)

    # Retention

    def let_go(self, end, size=None):
        """Drop the messages before the offset `end`; `size`: their octets, where they are known and the messages are of one chunk."""
        stream = self.stream
        before = stream.first_offset
        count = min(end, stream.following) - stream.held_from()
        if count > 0:
            if size is None and end == before + 1:
                size = self.tables.messages[self.tables.entries[stream.head() + layout.ENTRY_MESSAGE] + layout.MESSAGE_FILLED]
            self.tables.engine.purge(stream.handle, count)
        while self.head != layout.NONE and self.position(self.head) < end:
            self.settle_before(self.head, end, size)
        self.begin_at(end)
        stream.dropped += stream.first_offset - before
        self.tables.counts["retained_out"] += stream.first_offset - before
        for window in self.windows:
            self.windows.forget(window, stream.first_offset)
        for consumer in stream.consumers:
            if consumer.cursor_offset < stream.first_offset:
                consumer.cursor, consumer.cursor_offset = stream.at(stream.first_offset)
                self.overtaken(consumer)

    def overtaken(self, consumer):
        """A reader's place is not there any more."""
        if not consumer.overtaken:
            consumer.overtaken = True
            self.tables.counts["readers_overtaken"] += 1

    def settle_before(self, chunk, end, size):
        """Settle a chunk's messages before the offset `end`; `size`: their octets where known, else by the mean of the chunk."""
        chunks = self.tables.chunks
        first = self.position(chunk)
        end = min(end, first + chunks[chunk + chunk_index.SPAN])
        count = min(self.count_between(first, end), chunks[chunk + chunk_index.COUNT])
        octets = chunks[chunk + chunk_index.OCTETS]
        if count < chunks[chunk + chunk_index.COUNT]:
            octets = min(octets, octets * count // chunks[chunk + chunk_index.COUNT] if size is None else size)
        self.pager.journal.settle_range(self.stream, first, end, count, chunks[chunk + chunk_index.SEGMENT])
        chunks[chunk + chunk_index.POSITION] = end & layout.MASK
        chunks[chunk + chunk_index.SPAN] -= end - first
        self.count_out(chunk, count, octets)
        if chunks[chunk + chunk_index.COUNT] == 0:
            self.remove(chunk)

    def count_between(self, first, end):
        """Messages at these offsets that are not known to be unreadable."""
        if self.holes is None or self.holes.end <= first:
            return end - first
        return len([each for each in range(first, end) if not self.holes.has(each)])

    def let_go_of_segment(self, number):
        """Drop the messages of a segment, and all older ones, except the newest message and held ones."""
        chunks, end = self.tables.chunks, 0
        chunk = self.head
        while chunk != layout.NONE:
            if chunks[chunk + chunk_index.SEGMENT] == number:
                end = self.position(chunk) + chunks[chunk + chunk_index.SPAN]
            chunk = chunks[chunk + chunk_index.NEXT]
        end = min(end, self.stream.next_offset() - 1, self.stream.free_offset())
        if end > self.stream.first_offset:
            self.let_go(end)

    def forget_old(self, ages, left=DROPS_TURN):
        """Drop messages older than x-max-age, chunk by chunk in the log alone; true when `left` messages and chunks were not all."""
        stream, chunks = self.stream, self.tables.chunks
        while stream.message_count() and left > 0:
            end = stream.first_offset
            if end >= stream.held_from():
                count = stream.too_old(ages, left)
                left -= max(count, 1)
                end += count
            elif self.head != layout.NONE:
                left -= 1
                if ages.age_s(chunks[self.head + chunk_index.NEWEST]) > stream.age_max_s:
                    end = min(self.position(self.head) + chunks[self.head + chunk_index.SPAN], stream.free_offset())
            if end <= stream.first_offset:
                return False
            self.let_go(end)
        return left <= 0

    # Places

    def chunk_with(self, offset, near=layout.NONE):
        """The first chunk that ends behind `offset`, looked for from the chunk `near`; NONE: all of them end before it."""
        chunks, stream = self.tables.chunks, self.stream
        chunk = near
        if chunk == layout.NONE:
            chunk = self.tail if offset - stream.first_offset > stream.next_offset() - offset else self.head
        if chunk == layout.NONE:
            return chunk
        while chunks[chunk + chunk_index.PREVIOUS] != layout.NONE and chunk_index.is_behind(chunks[chunk + chunk_index.POSITION], offset):
            chunk = chunks[chunk + chunk_index.PREVIOUS]
        while chunk != layout.NONE and chunk_index.is_behind(
            offset + 1, chunks[chunk + chunk_index.POSITION] + chunks[chunk + chunk_index.SPAN]
        ):
            chunk = chunks[chunk + chunk_index.NEXT]
        return chunk

    def heads_of(self, chunk):
        """(offset, when it came) of each message of a chunk that is written, from the log. Raises Damaged, OSError."""
        chunks, pager = self.tables.chunks, self.pager
        segment = pager.log.by_number.get(chunks[chunk + chunk_index.SEGMENT])
        if segment is None or chunks[chunk + chunk_index.OFFSET] < 0:
            return
        pager.reader.known = {}
        walk = Walk(pager.reader, segment.number, chunks[chunk + chunk_index.OFFSET], chunks[chunk + chunk_index.SKIP], segment.size)
        first = self.position(chunk)
        end = first + chunks[chunk + chunk_index.SPAN]
        while first < end and walk.offset <= chunks[chunk + chunk_index.END] and walk.next():
            heads = walk.heads()
            for identity, position in walk.places(heads[0]):
                if identity == self.stream.id_in_log and first <= position < end:
                    yield position, heads[1]
                    first = position + 1

    def offset_since(self, arrived):
        """The offset of the first message in the log that came at or after that time; where the log cannot say exactly, one before it."""
        chunks = self.tables.chunks
        chunk = self.head
        while chunk != layout.NONE and chunks[chunk + chunk_index.NEWEST] < arrived:
            chunk = chunks[chunk + chunk_index.NEXT]
        if chunk == layout.NONE:
            return self.stream.next_offset()
        try:
            for offset, came in self.heads_of(chunk):
                if came >= arrived:
                    return offset
        except (OSError, Damaged):
            pass
        return self.position(chunk)

    def arrived_at(self, offset):
        """When the message at an offset came, or the newest of those near it where the log cannot say; None: there is none."""
        chunk = self.chunk_with(offset)
        if chunk == layout.NONE:
            return None
        try:
            for position, came in self.heads_of(chunk):
                if position >= offset:
                    return came
        except (OSError, Damaged):
            pass
        return self.tables.chunks[chunk + chunk_index.NEWEST]

    # What is lost

    def lose(self, chunk, first, end):
        """The messages of a chunk from the offset `first` up to `end` cannot be read any more."""
        chunks = self.tables.chunks
        count = min(self.count_between(first, end), chunks[chunk + chunk_index.COUNT])
        if not count:
            return
        if self.holes is None:
            self.holes = Settled()
        self.holes.add(first, end)
        self.pager.journal.settle_range(self.stream, first, end, count, chunks[chunk + chunk_index.SEGMENT])
        octets = chunks[chunk + chunk_index.OCTETS] * count // chunks[chunk + chunk_index.COUNT]
        self.count_out(chunk, count, octets)
        self.pager.log.counters["log_unreadable"] += count
        self.pager.broker.log("offsets %d to %d of stream '%s' could not be read back from the log" % (first, end - 1, self.stream.name))
        if chunks[chunk + chunk_index.COUNT] == 0:
            self.remove(chunk)
        self.begin_at(self.stream.first_offset)

    def jump(self, offset, to):
        """Readers that wait at an offset continue at another one: no message is left in between."""
        for consumer in self.stream.consumers:
            if consumer.cursor == layout.NONE and consumer.cursor_offset == offset:
                consumer.cursor_offset = to
                self.overtaken(consumer)
