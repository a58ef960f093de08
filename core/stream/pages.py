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
from ..log.message_record import size_of
from ..log.read_back import Damaged, Walk
from ..log.settled_positions import Settled
from ..memory import hot, layout
from .stream import DROPS_TURN

TURN_MESSAGES = 512  # that a window has at most, beside the last of a turn
TURN_OCTETS = 1 << 18

FREE_PART = 8  # windows leave an eighth of every pool free, and where others use more of it, WINDOW_PART of each window's own size
WINDOW_PART = 4

# Results of reading on, beside octets of a message.
NOT_NOW = -1
LOST = -2


class Window:
    """Messages of a stream in memory: offsets from `first` up to, and not with, `end`; entries from `head` to `tail`, linked by ENTRY_NEXT.

    `chunk`, `number`, `offset`, `skip`: where the log continues behind them, while that chunk is in that segment.
    """

    def __init__(self, offset):
        self.first = self.end = offset
        self.head = self.tail = layout.NONE
        self.chunk = layout.NONE
        self.number = self.offset = self.skip = 0


class StreamPages(chunk_index.Paged):
    """The index of one stream, and its windows."""

    def __init__(self, tables, pager, stream):
        chunk_index.Paged.__init__(self, tables, pager)
        self.stream = stream
        self.windows = []
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
        tables, writer, offset = self.tables, self.pager.log, self.stream.next_offset() - 1
        if tables.chunk_pool[2] == 0 and self.head != layout.NONE:
            self.tighten()
            if tables.chunk_pool[2] == 0 and tables.chunks[self.tail + chunk_index.OFFSET] != chunk_index.unwritten(writer.group):
                self.let_go(self.position(self.head) + tables.chunks[self.head + chunk_index.SPAN])
        if tables.chunk_pool[2] == 0 and self.head == layout.NONE:
            self.pager.journal.settle_range(self.stream, offset, offset + 1, 1, writer.current().number)
            self.let_go(offset + 1)
            return
        made = self.add(self.tail, writer.current().number, writer.group, skip, offset, tables.size_of(message), 0, False)
        if made != layout.NONE:
            writer.marks.append((self, made))
        self.came(self.tail, tables.messages[message + layout.MESSAGE_ARRIVED])
        self.trim()

    def came(self, chunk, arrived):
        """A message of a chunk came at that time."""
        chunks = self.tables.chunks
        chunks[chunk + chunk_index.NEWEST] = max(chunks[chunk + chunk_index.NEWEST], arrived)

    def trim(self):
        """Retention by octets; and memory holds no more than it should."""
        stream = self.stream
        most = stream.drops_max
        while most > 0 and self.octets > stream.size_max and stream.message_count() > 1 and stream.may_drop_first():
            most -= 1
            self.let_go(stream.first_offset + 1)
        stream.charge(stream.drops_max - most)
        self.shrink(0)

    def is_full(self, block_total):
        """True when a publisher must wait: for messages in memory to be written, or for a place in the index that no stream can free."""
        stream = self.stream
        self.shrink(block_total)
        if stream.head() != layout.NONE and stream.held_from() >= stream.durable_offset and stream.over_share(block_total):
            return True
        if not self.is_short():
            return False
        if self.chunk_total > self.tight_total:
            self.tighten()
        if self.is_short() and self.head != layout.NONE and self.chunk_total > 1:
            end = self.position(self.head) + self.tables.chunks[self.head + chunk_index.SPAN]
            if end <= stream.free_offset():
                self.let_go(end)
        return self.full()

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
        while self.over_half(block_total) and self.give_first():
            pass

    def give_first(self):
        """Drop the oldest message from memory: false when it is not written yet, or there is none."""
        stream = self.stream
        if stream.head() == layout.NONE or stream.held_from() >= stream.durable_offset:
            return False
        entry = stream.pop()
        for consumer in stream.consumers:
            if consumer.cursor == entry:
                consumer.cursor = layout.NONE
        self.stream.drop(entry)
        return True

    def over_half(self, block_total):
        """True when the messages in memory, with so many more blocks, would take more of a pool than is free beyond the quarter of it that
        is left to others: a second quarter for every reader that is behind, however many streams there are."""
        stream, state, limits = self.stream, self.tables.state, self.pager.broker.limits
        queues = self.tables.queues
        held = queues[stream.handle + layout.QUEUE_LENGTH]
        return (
            queues[stream.handle + layout.QUEUE_BLOCKS] + block_total > state[layout.POOL_BLOCKS + 2] - block_count(limits) // 4
            or held >= state[layout.POOL_ENTRIES + 2] - limits.entry_count_max // 4
            or held >= state[layout.POOL_MESSAGES + 2] - limits.message_count_max // 4
        )

    def give_memory(self, block_total):
        """Release messages from memory that can be read again, until a message of so many blocks has room."""
        while not self.tables.has_room(block_total, 2) and self.give_first():
            pass
        for window in list(self.windows):
            if window.head != layout.NONE and not self.tables.has_room(block_total, 2):
                self.close(window)

    def give_way(self):
        """Release messages from memory beyond an eighth of the arena: true when any were released."""
        blocks = self.tables.queues[self.stream.handle + layout.QUEUE_BLOCKS]
        while self.keeps_much() and self.give_first():
            pass
        for window in list(self.windows):
            if window.head != layout.NONE and self.keeps_much():
                self.close(window)
        return self.tables.queues[self.stream.handle + layout.QUEUE_BLOCKS] < blocks

    def keeps_much(self):
        """True when the stream has more than an eighth of the arena."""
        return self.tables.queues[self.stream.handle + layout.QUEUE_BLOCKS] * FREE_PART > block_count(self.pager.broker.limits)

    # Retention

    def let_go(self, end):
        """Drop the messages before the offset `end`."""
        stream = self.stream
        before, size = stream.first_offset, None
        while stream.head() != layout.NONE and stream.held_from() < end:
            entry = stream.pop()
            size = self.tables.size_of(self.tables.entries[entry + layout.ENTRY_MESSAGE])
            self.stream.drop(entry)
        while self.head != layout.NONE and self.position(self.head) < end:
            self.settle_before(self.head, end, size if end == before + 1 else None)
        self.begin_at(end)
        stream.dropped += stream.first_offset - before
        self.tables.counts["retained_out"] += stream.first_offset - before
        for window in self.windows:
            self.forget(window, stream.first_offset)
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

    # Windows

    def bring(self, consumer):
        """Have a reader's cursor stand on the message at its offset, read from the log: false when the caller must try again later."""
        stream = self.stream
        self.prune()
        chunk, start = layout.NONE, stream.held_from()
        if consumer.cursor_offset < start:
            near = [window.chunk for window in self.windows if window.end == consumer.cursor_offset] + [layout.NONE]
            chunk = self.chunk_with(consumer.cursor_offset, near[0])
        if chunk != layout.NONE:
            start = min(self.position(chunk), start)
        if consumer.cursor_offset < start:
            self.jump(consumer.cursor_offset, start)
        offset = consumer.cursor_offset
        if offset >= stream.held_from():
            consumer.cursor, consumer.cursor_offset = stream.at(offset)
            return True
        window = self.window_for(offset)
        if window.end == offset:
            size = self.fill(window, chunk, TURN_OCTETS)
            if size < 0:
                return False
            self.fill_on(window, TURN_OCTETS - size)
        self.stand(consumer, window)
        return True

    def stand(self, consumer, window):
        """Put a reader's cursor on its entry, where the window has it: after a hole it may be elsewhere."""
        entry, at = window.head, window.first
        while entry != layout.NONE and at < consumer.cursor_offset:
            entry = self.tables.entries[entry + layout.ENTRY_NEXT]
            at += 1
        consumer.cursor = entry if at == consumer.cursor_offset else layout.NONE

    def window_for(self, offset):
        """The window that has an offset, or that ends there with few messages, or a new one."""
        for window in self.windows:
            if window.first <= offset < window.end:
                return window
        for window in self.windows:
            if window.end == offset and offset - window.first < TURN_MESSAGES // 2:
                return window
        window = Window(offset)
        self.windows.append(window)
        return window

    def prune(self):
        """Free all messages of windows except those in front of a reader."""
        for window in list(self.windows):
            lowest = None
            for consumer in self.stream.consumers:
                if window.first <= consumer.cursor_offset <= window.end and (lowest is None or consumer.cursor_offset < lowest):
                    lowest = consumer.cursor_offset
            if lowest is None:
                self.close(window)
            else:
                self.forget(window, lowest)

    def forget(self, window, end):
        """Free a window's messages before the offset `end`."""
        while window.head != layout.NONE and window.first < end:
            entry = window.head
            window.head = self.tables.entries[entry + layout.ENTRY_NEXT]
            window.first += 1
            self.stream.drop(entry)
        if window.head == layout.NONE:
            window.tail = layout.NONE
            window.first = window.end

    def close(self, window):
        """Free a window; readers that stand in it will ask again."""
        for consumer in self.stream.consumers:
            if window.first <= consumer.cursor_offset < window.end:
                consumer.cursor = layout.NONE
        self.forget(window, window.end)
        self.windows.remove(window)

    def fill_on(self, window, octets_max):
        """Continue with the chunks behind the one that a window was filled from: a reader of packs gets whole turns."""
        chunks = self.tables.chunks
        while window.chunk != layout.NONE and octets_max > 0 and window.end - window.first < TURN_MESSAGES:
            chunk = chunks[window.chunk + chunk_index.NEXT]
            if (
                chunk == layout.NONE
                or self.position(chunk) != window.end
                or window.end >= self.stream.held_from()
                or chunks[chunk + chunk_index.OFFSET] < 0
            ):
                return
            size = self.fill(window, chunk, octets_max)
            if size <= 0:
                return
            octets_max -= size

    def fill(self, window, chunk, octets_max):
        """Read on behind a window, at most to the end of its chunk: octets, 0 when all was lost; below 0: nothing could be read now."""
        chunks, pager = self.tables.chunks, self.pager
        if chunks[chunk + chunk_index.OFFSET] < 0:
            pager.journal.promised = pager.log.appended  # the message is being copied: have it written now
            return NOT_NOW
        segment = pager.log.by_number.get(chunks[chunk + chunk_index.SEGMENT])
        stop = self.stop_of(window, chunk)
        if segment is None:
            self.lose(chunk, window.end, stop)
            self.jump(window.end, stop)
            return 0
        pager.reader.known = {}
        walk = Walk(pager.reader, segment.number, chunks[chunk + chunk_index.OFFSET], chunks[chunk + chunk_index.SKIP], segment.size)
        if window.chunk == chunk and window.number == segment.number:
            walk.offset, walk.skip = window.offset, window.skip
        window.chunk, window.number, window.offset, window.skip = chunk, segment.number, walk.offset, walk.skip
        first, octets, size = window.end, 0, 0
        while size >= 0 and window.end < stop and window.end - window.first < TURN_MESSAGES and octets < octets_max:
            try:
                size = self.read_next(window, walk, chunk, stop)
            except OSError as error:
                if not pager.give_up("segment %d cannot be read: %r" % (segment.number, error)):
                    break
                walk.pass_over()
                size = 0
            except Damaged as error:
                pager.broker.log("%s: what stream '%s' has there is passed over" % (error, self.stream.name))
                walk.pass_over()
                size = 0
            octets += max(size, 0)
        return octets if window.end > first or size == LOST else NOT_NOW

    def stop_of(self, window, chunk):
        """The offset up to which a window may be filled from a chunk: messages already in memory are not read again."""
        stop = min(self.position(chunk) + self.tables.chunks[chunk + chunk_index.SPAN], self.stream.held_from())
        for other in self.windows:
            if other is not window and window.end <= other.first < other.end:
                stop = min(stop, other.first)
        return stop

    def read_next(self, window, walk, chunk, stop):
        """Read the next message of a walk if it is the window's next: its octets; 0: it is not; NOT_NOW: there is no room; LOST."""
        chunks, stream = self.tables.chunks, self.stream
        end = self.position(chunk) + chunks[chunk + chunk_index.SPAN]
        if walk.offset > chunks[chunk + chunk_index.END] or not walk.next():
            self.lose(chunk, window.end, end)
            self.jump(window.end, min(end, stop))
            return LOST
        heads = walk.heads()
        for identity, position in walk.places(heads[0]):
            if identity == stream.id_in_log and window.end <= position < end and (self.holes is None or not self.holes.has(position)):
                if position > window.end:
                    to = min(position, stop)
                    self.lose(chunk, window.end, to)
                    self.jump(window.end, to)
                    if window.head != layout.NONE or position >= stop:
                        return LOST
                    window.first = window.end = position
                size = size_of(heads)
                if not self.has_place(window, self.tables.blocks_for(size)):
                    self.pager.tries = 0  # it could be read
                    return NOT_NOW
                self.enter(window, self.pager.message_of(walk, heads), position)
                self.pager.tries = 0
                window.offset, window.skip = walk.offset, walk.skip
                return size + 1
        return 0

    def has_place(self, window, block_total):
        """True when a window may have a message more: its first one wherever there is room for it."""
        state, limits = self.tables.state, self.pager.broker.limits
        if window.head != layout.NONE:
            count = window.end - window.first
            return (
                may_grow(state[layout.POOL_BLOCKS + 2] - block_total, block_count(limits), count * block_total)
                and may_grow(state[layout.POOL_MESSAGES + 2], limits.message_count_max, count)
                and may_grow(state[layout.POOL_ENTRIES + 2], limits.entry_count_max, count)
            )
        if not self.tables.has_room(block_total, 2):
            self.give_memory(block_total)
            self.pager.broker.make_room(block_total)
        return self.tables.has_room(block_total, 2)

    def enter(self, window, message, position):
        """Put a message at the end of a window."""
        tables, stream = self.tables, self.stream
        entries = tables.entries
        entry = hot.allocate(entries, tables.state, layout.POOL_ENTRIES, layout.ENTRY_WIDTH)
        entries[entry + layout.ENTRY_MESSAGE] = message
        entries[entry + layout.ENTRY_NEXT] = layout.NONE
        entries[entry + layout.ENTRY_POSITION] = position & layout.MASK
        entries[entry + layout.ENTRY_QUEUE] = stream.handle
        entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE
        tables.queues[stream.handle + layout.QUEUE_BLOCKS] += tables.messages[message + layout.MESSAGE_BLOCKS]
        if window.tail == layout.NONE:
            window.head = entry
        else:
            entries[window.tail + layout.ENTRY_NEXT] = entry
        window.tail = entry
        window.end = position + 1

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


def may_grow(left, most, held):
    """True when a window that holds so much of a pool of `most` may have more of the `left`."""
    return left * FREE_PART > most or left > held * WINDOW_PART
