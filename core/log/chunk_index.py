"""The index of messages that are only in the log: a queue's paged tail, in chunks of neighbours.

A chunk says where in the log a run of a queue's messages begins and how many there are; the messages themselves take no memory. A chunk
lies in one segment, its positions rise, and positions missing between its first and its last one are settled (`holes`). While the record
that has them is not written OFFSET is below 0 and tells its group (`unwritten`); the log calls `landed` then, and chunks that go on where
the one before ends are joined.

    NEXT PREVIOUS  in the order of positions        POSITION  of the first message, 30 bits
    SEGMENT        number of the log's segment      SPAN      positions from the first to the last, with them
    OFFSET         of the first message's record    COUNT     messages
    SKIP           octets of its payload in front   OCTETS    of their bodies; of a stream's messages all octets
    END            offset of the last's record      COME_BACK 1: they were there before the broker started
    NEWEST         seconds since 2020 when the newest of a stream's came

Chunks take turns growing: a chunk may hold more when many are used, so that the index covers any disk (`room`).
"""

from ..memory import hot
from ..memory.layout import CHUNK_WIDTH as WIDTH
from ..memory.layout import MASK, NONE
from .settled_positions import PAGE, Settled

NEXT = 0  # in a free record: the next free record
PREVIOUS = 1
SEGMENT = 2
OFFSET = 3
SKIP = 4
END = 5
POSITION = 6
SPAN = 7
COUNT = 8
OCTETS = 9
COME_BACK = 10
NEWEST = 11

MESSAGES = 256  # of a chunk while few are used; twice as many with each eighth of the chunks that is
SIZE = 65536  # octets of log, likewise


def reserve(tables):
    """Chunks that are left for copies and transactions when no message may go beyond memory any more."""
    return max(tables.chunk_count >> 4, 4)


class Paged:
    """The places of one queue that are only in the log. `count` messages, `octets` of their bodies."""

    def __init__(self, tables, pager):
        self.tables = tables
        self.pager = pager
        self.head = NONE
        self.tail = NONE
        self.count = 0
        self.octets = 0
        self.holes = None  # settled_positions.Settled: positions within chunks that are not there
        self.last = NONE  # the chunk that `place` was in last, and where in the segment
        self.last_at = (0, 0)
        self.present = None  # settled_positions.Settled, during recovery: positions that the log has
        self.since = 0  # the second of the broker's uptime before which no lifetime has begun

    def room(self):
        """(messages, octets of log) that a chunk may hold now."""
        total = self.tables.chunk_count
        shift = (total - self.tables.chunk_pool[2]) * 8 // total
        return MESSAGES << shift, SIZE << shift

    def full(self):
        """True when there is no chunk for another message, but for a few reserved for copies and transactions."""
        return self.tables.chunk_pool[2] <= reserve(self.tables)

    def insert(self, before):
        """A new chunk behind `before` (NONE: at the head). The caller has seen that one is free."""
        chunks = self.tables.chunks
        chunk = hot.allocate(chunks, self.tables.chunk_pool, 0, WIDTH)
        behind = self.head if before == NONE else chunks[before + NEXT]
        chunks[chunk + NEXT] = behind
        chunks[chunk + PREVIOUS] = before
        if before == NONE:
            self.head = chunk
        else:
            chunks[before + NEXT] = chunk
        if behind == NONE:
            self.tail = chunk
        else:
            chunks[behind + PREVIOUS] = chunk
        return chunk

    def remove(self, chunk):
        """Remove a chunk from the index, with the messages that it still counts."""
        chunks = self.tables.chunks
        before, behind = chunks[chunk + PREVIOUS], chunks[chunk + NEXT]
        if before == NONE:
            self.head = behind
        else:
            chunks[before + NEXT] = behind
        if behind == NONE:
            self.tail = before
        else:
            chunks[behind + PREVIOUS] = before
        self.count -= chunks[chunk + COUNT]
        self.octets -= chunks[chunk + OCTETS]
        if self.last == chunk:
            self.last = NONE
        pool = self.tables.chunk_pool
        if pool[3] == chunk:
            pool[3] = behind
        chunks[chunk + SEGMENT] = NONE
        hot.give(chunks, pool, 0, chunk)

    def begin(self, before, segment, offset, skip, position, octets, come_back, count=1):
        """A new chunk with one message, or `count` in a row, behind `before`."""
        chunks = self.tables.chunks
        chunk = self.insert(before)
        chunks[chunk + SEGMENT] = segment
        chunks[chunk + OFFSET] = chunks[chunk + END] = offset
        chunks[chunk + SKIP] = skip
        chunks[chunk + POSITION] = position & MASK
        chunks[chunk + SPAN] = chunks[chunk + COUNT] = count
        chunks[chunk + OCTETS] = octets
        chunks[chunk + COME_BACK] = come_back
        chunks[chunk + NEWEST] = 0
        self.count += count
        self.octets += octets
        return chunk

    def extend(self, chunk, position, octets, count=1):
        """One more message at the end of a chunk, or `count` in a row."""
        chunks = self.tables.chunks
        chunks[chunk + SPAN] = ((position - chunks[chunk + POSITION]) & MASK) + count
        chunks[chunk + COUNT] += count
        chunks[chunk + OCTETS] += octets
        self.count += count
        self.octets += octets

    def add(self, before, segment, group, skip, position, octets, come_back, gap, count=1):
        """A message (or `count` in a row) that the log writes in `group` goes behind the chunk `before`: the chunk when it is new, else
        NONE.

        `gap`: all positions between the last of that chunk and this one are known to be settled. A message can be written after one of a
        later position: a dead letter that the queue dropped to make room for it, on the way to the same queue.
        """
        chunks = self.tables.chunks
        if (
            before != NONE
            and chunks[before + OFFSET] == unwritten(group)
            and chunks[before + SEGMENT] == segment
            and chunks[before + COME_BACK] == come_back
        ):
            follows = (chunks[before + POSITION] + chunks[before + SPAN]) & MASK == position & MASK
            messages, size = self.room()
            if (gap or follows) and chunks[before + COUNT] + count <= messages and skip - chunks[before + SKIP] < size:
                self.extend(before, position, octets, count)
                return NONE
        return self.begin(before, segment, unwritten(group), skip, position, octets, come_back, count)

    def landed(self, chunk, writer, segment, offset):
        """The record with a chunk's messages is in `segment` at `offset`; it is joined to the one before where it continues that one."""
        chunks = self.tables.chunks
        if chunks[chunk + SEGMENT] != segment.number:
            before = writer.by_number.get(chunks[chunk + SEGMENT])
            if before is not None:
                before.live -= chunks[chunk + COUNT]
            segment.live += chunks[chunk + COUNT]
            segment.written += chunks[chunk + COUNT]
            chunks[chunk + SEGMENT] = segment.number
        chunks[chunk + OFFSET] = chunks[chunk + END] = offset
        before = chunks[chunk + PREVIOUS]
        if before != NONE and self.continues(before, chunk):
            self.join(before, chunk)

    def continues(self, before, chunk):
        """True when a written chunk continues where the one before ends, and both together are not too large for one.

        Not within one group of the log: there the messages of a queue can lie in another order than their positions (see `add`).
        """
        chunks = self.tables.chunks
        offset = chunks[chunk + OFFSET]
        messages, size = self.room()
        return not (
            chunks[before + SEGMENT] != chunks[chunk + SEGMENT]
            or not 0 <= chunks[before + OFFSET] <= offset
            or chunks[before + END] >= offset
            or (chunks[before + POSITION] + chunks[before + SPAN]) & MASK != chunks[chunk + POSITION]
            or chunks[before + COME_BACK] != chunks[chunk + COME_BACK]
            or chunks[before + COUNT] + chunks[chunk + COUNT] > messages
            or chunks[chunk + END] - chunks[before + OFFSET] > size
        )

    def join(self, before, chunk):
        """Make one chunk of two that follow each other."""
        chunks = self.tables.chunks
        for field in (SPAN, COUNT, OCTETS):
            chunks[before + field] += chunks[chunk + field]
        chunks[before + END] = chunks[chunk + END]
        chunks[before + NEWEST] = max(chunks[before + NEWEST], chunks[chunk + NEWEST])
        chunks[chunk + COUNT] = chunks[chunk + OCTETS] = 0
        self.remove(chunk)

    def moved(self, chunk, size):
        """An earlier record was not written: a chunk's record moves by so many octets."""
        self.tables.chunks[chunk + SKIP] += size

    def advance(self, chunk, position, octets, offset, skip):
        """The first message of a chunk, at `position`, is no longer only in the log; the search for the next one begins at (offset,
        skip)."""
        chunks = self.tables.chunks
        ahead = ((position - chunks[chunk + POSITION]) & MASK) + 1
        chunks[chunk + POSITION] = (position + 1) & MASK
        chunks[chunk + SPAN] -= ahead
        chunks[chunk + OFFSET] = offset
        chunks[chunk + SKIP] = skip
        self.count_out(chunk, 1, octets)

    def count_out(self, chunk, count, octets):
        """A chunk has so many messages and octets less."""
        chunks = self.tables.chunks
        chunks[chunk + COUNT] -= count
        chunks[chunk + OCTETS] -= octets
        self.count -= count
        self.octets -= octets

    # Recovery

    def place(self, segment, offset, skip, position, octets):
        """A message that the log has at (segment, offset, skip): true; false when its position was there already (copied forward).

        None when no chunk is free for it.
        """
        chunks = self.tables.chunks
        before = self.chunk_before(position)
        if before != NONE and (position - chunks[before + POSITION]) & MASK < chunks[before + SPAN]:
            return False
        rises = before != NONE and before == self.last and chunks[before + SEGMENT] == segment and self.last_at < (offset, skip)
        self.last_at = (offset, skip)
        if rises and self.goes_on(before, position):
            messages, size = self.room()
            if self.tables.chunk_pool[2] == 0 or chunks[before + COUNT] < messages and offset - chunks[before + OFFSET] < size:
                self.extend(before, position, octets)
                chunks[before + END] = offset
                return True
        if self.tables.chunk_pool[2] == 0:
            return None
        self.last = self.begin(before, segment, offset, skip, position, octets, 1)
        return True

    def chunk_before(self, position):
        """The last chunk that begins at `position` or before it; NONE when all begin behind it."""
        chunks = self.tables.chunks
        chunk = self.tail
        if self.last != NONE and is_behind(chunks[chunk + POSITION], position):
            chunk = self.last
        while chunk != NONE and is_behind(chunks[chunk + POSITION], position):
            chunk = chunks[chunk + PREVIOUS]
        while chunk != NONE:
            behind = chunks[chunk + NEXT]
            if behind == NONE or is_behind(chunks[behind + POSITION], position):
                break
            chunk = behind
        return chunk

    def goes_on(self, chunk, position):
        """True when everything between a chunk's last position and this one is settled, or is nowhere in the log: then the gap is a hole
        too."""
        chunks = self.tables.chunks
        ahead = (position - chunks[chunk + POSITION] - chunks[chunk + SPAN]) & MASK
        if ahead == 0 or self.holes is not None and self.holes.covers(position - ahead, position):
            return True
        if ahead > PAGE or self.present is None:
            return False
        gap = [each for each in range(position - ahead, position) if self.holes is None or not self.holes.has(each)]
        for each in gap:
            if self.present.has(each):
                return False
        if self.holes is None:
            self.holes = Settled()
        for each in gap:
            self.holes.add(each, each + 1)
        return True


def unwritten(group):
    """The value of OFFSET while a group of the log is not written."""
    return -2 - (group & MASK)


def is_behind(position, other):
    """True when a position lies behind another of its queue; they wrap, and are less than half of that apart."""
    return 0 < (position - other) & MASK < 0x20000000
