"""Where the messages of a stream stand that are only in the log, by offset and by time, and what letting some of them go leaves
(core/stream/pages.py)."""

from memory_store import MemoryStore, durable_broker
from peer import Peer
from test_stream_pages import CHUNKS, COUNT, RECORD, fill, offsets, reader, rest, stream_of

from leveret.core.log import chunk_index
from leveret.core.memory import layout
from leveret.core.stream.windows import FREE_PART, WINDOW_PART, may_grow

SECONDS = 1000  # when the message 0 came (layout.EPOCH + that); each further one a second later


def column(stream, chunk, name):
    return stream.tables.chunks[chunk + name]


def spans(stream):
    """(chunk, its first offset, the offset behind it) of each chunk, in their order."""
    found = []
    chunk = stream.pages.head
    while chunk != layout.NONE:
        first = stream.pages.position(chunk)
        found.append((chunk, first, first + column(stream, chunk, chunk_index.SPAN)))
        chunk = column(stream, chunk, chunk_index.NEXT)
    return found


def sums(stream):
    """(messages, octets, chunks) of a stream, as its chunks have them, each compared with what the stream says of itself."""
    pages, whole = stream.pages, spans(stream)
    count = sum([column(stream, chunk, chunk_index.COUNT) for chunk, _, _ in whole])
    octets = sum([column(stream, chunk, chunk_index.OCTETS) for chunk, _, _ in whole])
    assert (count, octets, len(whole)) == (pages.count, pages.octets, pages.chunk_total)
    return count, octets, len(whole)


def test_every_message_is_in_the_chunk_that_has_its_offset_from_wherever_one_looks():
    broker, _, stream = stream_of()
    whole = spans(stream)
    assert len(whole) > 4 and sums(stream)[:2] == (COUNT, COUNT * RECORD)
    for chunk, first, end in whole:
        for offset in (first, (first + end) // 2, end - 1):
            assert stream.pages.chunk_with(offset) == chunk
            for near, _, _ in whole:
                assert stream.pages.chunk_with(offset, near) == chunk, (offset, near)
    assert stream.pages.chunk_with(COUNT) == layout.NONE


def test_the_log_says_when_each_message_came_and_where_a_time_begins():
    """To the message, of those that are only in the log and of those in memory too."""
    broker, _, stream = stream_of(together=1)
    for offset in range(0, spans(stream)[-1][1], 13):
        assert stream.pages.arrived_at(offset) == SECONDS + offset, offset
    for seconds in list(range(-3, COUNT + 3, 37)) + [0, 1, COUNT - 1, COUNT]:
        peer, found = reader(broker, offset=("T", layout.EPOCH + SECONDS + seconds))
        begin = min(max(seconds, 0), COUNT)
        assert offsets(found)[:1] == ([begin] if begin < COUNT else []), seconds
        peer.connection.received(0)
    assert stream.pages.arrived_at(COUNT) is None


def test_when_messages_came_is_known_by_the_chunk_where_the_log_cannot_be_read():
    broker, _, stream = stream_of(together=1)

    def read(*place):
        raise OSError(5, "input/output error")

    broker.journal.log.store.read = read
    stream.pages.pager.reader.store.read = read
    stream.pages.pager.reader.buffer = b""
    for _, first, end in spans(stream)[:3]:
        assert stream.pages.arrived_at(first) == stream.pages.arrived_at(end - 1) == SECONDS + end - 1
        assert stream.pages.offset_since(SECONDS + first) == stream.pages.offset_since(SECONDS + end - 1) == first


def test_letting_messages_go_leaves_those_behind_and_counts_each_once():
    """Up to the end of a chunk, to its middle, message by message; octets of a part of a chunk by its mean."""
    broker, _, stream = stream_of()
    whole = spans(stream)
    for end in (1, 2, whole[0][2] - 1, whole[0][2], whole[0][2] + 1, whole[2][2], (whole[3][1] + whole[3][2]) // 2, COUNT - 1):
        stream.pages.let_go(end)
        assert (stream.first_offset, stream.dropped, stream.tables.counts["retained_out"]) == (end, end, end)
        assert sums(stream)[:2] == (COUNT - end, (COUNT - end) * RECORD)
        assert stream.message_count() == COUNT - end
        other, found = reader(broker, offset=0)
        assert offsets(found)[:1] == [end]
        other.connection.received(0)
    assert stream.pages.first_position(COUNT) == COUNT - 1
    stream.pages.let_go(COUNT)
    assert sums(stream) == (0, 0, 0) and stream.message_count() == 0 and stream.pages.first_position(COUNT) == COUNT


def test_a_segment_goes_with_all_that_is_before_it():
    """But for the newest message, and for what is held."""
    broker, _, stream = stream_of()
    whole = spans(stream)
    number = column(stream, whole[2][0], chunk_index.SEGMENT)
    ends = [end for chunk, _, end in whole if column(stream, chunk, chunk_index.SEGMENT) == number]
    stream.pages.let_go_of_segment(number)
    assert stream.first_offset == ends[-1]
    stream.pages.let_go_of_segment(number)
    assert stream.first_offset == ends[-1], "it has nothing there any more"
    for chunk, _, _ in spans(stream):
        stream.pages.let_go_of_segment(column(stream, chunk, chunk_index.SEGMENT))
    assert stream.first_offset == COUNT - 1 and stream.message_count() == 1
    peer, found = reader(broker, offset="first")
    assert rest(peer, found) == [COUNT - 1]


def test_messages_that_are_too_old_go_one_by_one_or_by_the_chunk():
    """x-max-age in the log: a chunk goes when its newest message is too old; the age of a message is that of core/broker/ages.py."""
    _, _, stream = stream_of(together=1)
    whole = spans(stream)

    class Ages:
        """The ages at one second."""

        def __init__(self, now):
            self.now = now

        def age_s(self, arrived):
            return self.now - arrived

    newest = SECONDS + whole[1][2] - 1
    stream.age_max_s = 60
    stream.pages.forget_old(Ages(newest + 60))
    assert stream.first_offset == whole[0][2], "the newest of the second chunk is as old as it may be"
    stream.pages.forget_old(Ages(newest + 61))
    assert stream.first_offset == whole[1][2]
    held = stream.held_from()
    stream.pages.let_go(held)
    stream.pages.forget_old(Ages(SECONDS + held + 2 + 60))
    assert stream.first_offset == held + 2
    stream.pages.forget_old(Ages(SECONDS + COUNT + 1000))
    assert stream.message_count() == 0


def test_neighbouring_chunks_are_joined_as_far_as_they_may_go():
    """With fewer free chunks one may hold more; every message is where it was."""
    broker, _ = durable_broker(MemoryStore(), segment_size=1 << 20, size_max=1 << 24, **CHUNKS)
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    fill(peer, COUNT)
    stream = broker.queues["s"]
    before = sums(stream)
    broker.tables.chunk_pool[2] = 1
    stream.pages.tighten()
    after = sums(stream)
    assert after[:2] == before[:2] and after[2] < before[2] and stream.pages.tight_total == after[2]
    whole = spans(stream)
    assert [first for _, first, _ in whole[1:]] == [end for _, _, end in whole[:-1]] and whole[0][1] == 0 and whole[-1][2] == COUNT
    peer, found = reader(broker, offset="first")
    assert rest(peer, found) == list(range(COUNT))


def test_a_window_may_have_more_while_much_is_left_or_little_is_its_own():
    """pages.FREE_PART of a pool is anybody's; behind that WINDOW_PART times what the window has must be left."""
    most = 10 * FREE_PART
    assert may_grow(11, most, most) and not may_grow(10, most, most)
    assert may_grow(WINDOW_PART * 3 + 1, 1 << 20, 3) and not may_grow(WINDOW_PART * 3, 1 << 20, 3)


def test_a_stream_with_more_chunks_than_are_free_gives_up_its_oldest_one():
    """For the next publish: one chunk at a time, and none that holds what is not durable yet."""
    broker, _, stream = stream_of()
    whole = spans(stream)
    stream.pages.tight_total = stream.pages.chunk_total
    broker.tables.chunk_pool[2] = stream.pages.chunk_total
    assert not stream.pages.is_short() and not stream.pages.is_full(1) and stream.first_offset == 0
    broker.tables.chunk_pool[2] = stream.pages.chunk_total - 1
    assert stream.pages.is_short() and not stream.pages.is_full(1)
    assert stream.first_offset == whole[0][2] and spans(stream)[0][1:] == whole[1][1:]
    broker.tables.chunk_pool[2] = 3
    stream.free_offset = lambda: whole[1][2] - 1
    assert stream.pages.is_full(1) and stream.first_offset == whole[0][2], "it is held"
    stream.free_offset = lambda: whole[1][2]
    assert stream.pages.is_full(1) == stream.pages.full() and stream.first_offset == whole[1][2]
