"""Windows of a stream: neighbouring messages read back from the log, in memory for the readers that stand there."""

from ..limits import block_count
from ..log import chunk_index
from ..log.message_record import size_of
from ..log.read_back import HEAD_SIZE, Damaged, NotYet, Walk
from ..log.segments import GROUP
from ..memory import hot, layout

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


class Windows:
    """The windows of one stream, with the index `pages` (pages.StreamPages)."""

    def __init__(self, pages):
        self.pages = pages
        self.stream = pages.stream
        self.tables = pages.tables
        self.pager = pages.pager
        self.rows = []

    def __iter__(self):
        return iter(self.rows)

    def bring(self, consumer):
        """Set a reader's cursor to the message at its offset, read from the log: false when the caller must try again later."""
        stream = self.stream
        self.prune()
        chunk, start = layout.NONE, stream.held_from()
        if consumer.cursor_offset < start:
            near = [window.chunk for window in self.rows if window.end == consumer.cursor_offset] + [layout.NONE]
            chunk = self.pages.chunk_with(consumer.cursor_offset, near[0])
        if chunk != layout.NONE:
            start = min(self.pages.position(chunk), start)
        if consumer.cursor_offset < start:
            self.pages.jump(consumer.cursor_offset, start)
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
        for window in self.rows:
            if window.first <= offset < window.end:
                return window
        for window in self.rows:
            if window.end == offset and offset - window.first < TURN_MESSAGES // 2:
                return window
        window = Window(offset)
        self.rows.append(window)
        return window

    def prune(self):
        """Free all messages of windows except those in front of a reader."""
        for window in list(self.rows):
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
        if self.tables.engine.drop_window is not None and window.first < end:
            end = min(end, window.end)
            window.head = self.tables.engine.drop_window(window.head, end - window.first)
            window.first = end
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
        self.rows.remove(window)

    def fill_on(self, window, octets_max):
        """Continue with the chunks behind the one that a window was filled from: a reader of packs gets whole turns."""
        chunks = self.tables.chunks
        while window.chunk != layout.NONE and octets_max > 0 and window.end - window.first < TURN_MESSAGES:
            chunk = chunks[window.chunk + chunk_index.NEXT]
            if (
                chunk == layout.NONE
                or self.pages.position(chunk) != window.end
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
            self.pages.lose(chunk, window.end, stop)
            self.pages.jump(window.end, stop)
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
            except NotYet:
                break
            octets += max(size, 0)
            if size > 0 and self.tables.engine.read_window is not None and self.pages.holes is None:
                octets += self.read_record(window, walk, stop, octets_max - octets)
        return octets if window.end > first or size == LOST else NOT_NOW

    def stop_of(self, window, chunk):
        """The offset up to which a window may be filled from a chunk: messages already in memory are not read again."""
        stop = min(self.pages.position(chunk) + self.tables.chunks[chunk + chunk_index.SPAN], self.stream.held_from())
        for other in self.rows:
            if other is not window and window.end <= other.first < other.end:
                stop = min(stop, other.first)
        return stop

    def read_next(self, window, walk, chunk, stop):
        """Read the next message of a walk if it is the window's next: its octets; 0: it is not; NOT_NOW: there is no room; LOST."""
        chunks, stream = self.tables.chunks, self.stream
        end = self.pages.position(chunk) + chunks[chunk + chunk_index.SPAN]
        if walk.offset > chunks[chunk + chunk_index.END] or not walk.next():
            self.pages.lose(chunk, window.end, end)
            self.pages.jump(window.end, min(end, stop))
            return LOST
        heads = walk.heads()
        for identity, position in walk.places(heads[0]):
            if (
                identity == stream.id_in_log
                and window.end <= position < end
                and (self.pages.holes is None or not self.pages.holes.has(position))
            ):
                if position > window.end:
                    to = min(position, stop)
                    self.pages.lose(chunk, window.end, to)
                    self.pages.jump(window.end, to)
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

    def read_record(self, window, walk, stop, octets_max):
        """Have the engine read on in the record that a walk stands in, which is verified, as far as each message is the window's next and
        is there whole: octets."""
        reader = walk.reader
        type_, size = reader.known.get((walk.number, walk.offset), (0, 0))
        if type_ != GROUP or octets_max <= 0:
            return 0
        at = walk.offset + HEAD_SIZE + walk.skip
        begin = reader.at(walk.number, at, 1)
        end = min(len(reader.buffer), begin + size - walk.skip)
        limits = self.pager.broker.limits
        behind, octets = self.tables.engine.read_window(
            reader.buffer, begin, end, window, self.stream, limits, stop, TURN_MESSAGES, octets_max
        )
        walk.skip += behind - begin
        if walk.skip == size:
            walk.go_to(walk.offset + HEAD_SIZE + size)
        window.offset, window.skip = walk.offset, walk.skip
        return octets

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
            self.pages.give_memory(block_total)
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


def may_grow(left, most, held):
    """True when a window that holds so much of a pool of `most` may have more of the `left`."""
    return left * FREE_PART > most or left > held * WINDOW_PART
