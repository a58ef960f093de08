"""The index of what a queue has only in the log: chunks of messages that follow each other, and what each change of them leaves
(core/log/chunk_index.py)."""

from peer import new_broker

from leveret.core.log import chunk_index
from leveret.core.log.chunk_index import MESSAGES, SIZE, Paged, is_behind, unwritten
from leveret.core.log.settled_positions import PAGE, Settled
from leveret.core.memory.layout import MASK, NONE

GROUP = 7


class Segment:
    """What `landed` wants to know of a segment of the log."""

    def __init__(self, number):
        self.number = number
        self.live = self.written = 0


class Writer:
    """The segments that are there."""

    def __init__(self, *segments):
        self.by_number = {segment.number: segment for segment in segments}


def fresh():
    """An index in a broker's tables; most chunks are free."""
    return Paged(new_broker(chunk_count_max=64).tables, None)


def column(index, chunk, name):
    return index.tables.chunks[chunk + name]


def chunks(index):
    """(first position, span, messages, octets) of each chunk from the head, as each is linked both ways."""
    found, chunk, before = [], index.head, NONE
    while chunk != NONE:
        assert column(index, chunk, chunk_index.PREVIOUS) == before
        found.append(
            tuple([column(index, chunk, name) for name in (chunk_index.POSITION, chunk_index.SPAN, chunk_index.COUNT, chunk_index.OCTETS)])
        )
        before, chunk = chunk, column(index, chunk, chunk_index.NEXT)
    assert before == index.tail
    assert (index.count, index.octets) == (sum([each[2] for each in found]), sum([each[3] for each in found]))
    return found


def add(index, position, segment=1, group=GROUP, skip=0, octets=10, come_back=0, gap=False):
    return index.add(index.tail, segment, group, skip, position, octets, come_back, gap)


def test_messages_that_follow_each_other_in_a_group_are_one_chunk():
    index = fresh()
    first = add(index, 5)
    assert first != NONE and column(index, first, chunk_index.OFFSET) == column(index, first, chunk_index.END) == unwritten(GROUP)
    assert add(index, 6, skip=30) == add(index, 7, skip=60) == NONE
    assert chunks(index) == [(5, 3, 3, 30)] and column(index, first, chunk_index.SKIP) == 0


def test_another_segment_group_or_history_a_gap_or_an_earlier_position_begins_a_chunk():
    for given in ({"segment": 2}, {"group": GROUP + 1}, {"come_back": 1}, {"position": 8}, {"position": 6}, {"position": 5}):
        index = fresh()
        add(index, 5)
        add(index, 6)
        values = dict({"position": 7}, **given)
        assert add(index, **values) != NONE, given
        assert len(chunks(index)) == 2, given
    index = fresh()
    add(index, 5)
    assert add(index, 9, gap=True) == NONE and chunks(index) == [(5, 5, 2, 20)], "what lies between is settled"


def test_a_chunk_has_so_many_messages_and_octets_of_log_and_more_where_few_are_free():
    index = fresh()
    made = [add(index, position) for position in range(MESSAGES + 1)]
    assert [each != NONE for each in made] == [True] + [False] * (MESSAGES - 1) + [True]
    index = fresh()
    add(index, 0, skip=100)
    assert add(index, 1, skip=100 + SIZE - 1) == NONE and add(index, 2, skip=100 + SIZE) != NONE
    index.tables.chunk_pool[2] = index.tables.chunk_count // 2
    assert index.room() == (MESSAGES << 4, SIZE << 4)
    index.tables.chunk_pool[2] = index.tables.chunk_count
    assert index.room() == (MESSAGES, SIZE)


def test_the_index_is_full_while_a_few_chunks_are_left():
    index = fresh()
    for left, full in ((64, False), (5, False), (4, True), (0, True)):
        index.tables.chunk_pool[2] = left
        assert index.full() == full, left
    index.tables.chunk_count, index.tables.chunk_pool[2] = 160, 10
    assert index.full()
    index.tables.chunk_pool[2] = 11
    assert not index.full()


def written(index, segment, offset, *positions, **given):
    """Messages of one group that are written to a segment at an offset: their chunk, unless it was joined to the one before."""
    made = [add(index, position, segment=given.get("noted", segment.number), group=offset) for position in positions]
    chunk = [each for each in made if each != NONE][0]
    index.landed(chunk, given.get("writer", Writer(segment)), segment, offset)
    return chunk


def test_chunks_of_neighbouring_groups_are_joined_when_they_are_written():
    index, segment = fresh(), Segment(1)
    chunk = written(index, segment, 100, 1, 2)
    written(index, segment, 200, 3)
    assert chunks(index) == [(1, 3, 3, 30)]
    assert (column(index, chunk, chunk_index.OFFSET), column(index, chunk, chunk_index.END)) == (100, 200)
    written(index, segment, 300, 5)
    assert chunks(index) == [(1, 3, 3, 30), (5, 1, 1, 10)], "there is a gap"
    written(index, Segment(2), 400, 6)
    assert len(chunks(index)) == 3, "it is in another segment"
    written(index, segment, 100 + SIZE * 2, 7)
    assert len(chunks(index)) == 4


def test_a_chunk_that_landed_in_another_segment_counts_there():
    index, old, new = fresh(), Segment(1), Segment(2)
    old.live = 9
    written(index, new, 100, 1, 2, 3, noted=1, writer=Writer(old, new))
    assert (old.live, new.live, new.written) == (6, 3, 3)
    written(index, new, 200, 9, noted=5, writer=Writer(new))
    assert (old.live, new.live, new.written) == (6, 4, 4), "the segment that it was noted for has gone"
    written(index, new, 300, 20, writer=Writer(old, new))
    assert (new.live, new.written) == (4, 4), "it has been counted where it is"


def test_joining_keeps_the_newest_time_and_the_last_record():
    index, segment = fresh(), Segment(1)
    first = written(index, segment, 100, 1)
    index.tables.chunks[first + chunk_index.NEWEST] = 50
    made = add(index, 2, group=8)
    index.tables.chunks[made + chunk_index.NEWEST] = 40
    free = index.tables.chunk_pool[2]
    index.landed(made, Writer(segment), segment, 150)
    assert column(index, first, chunk_index.NEWEST) == 50 and column(index, first, chunk_index.END) == 150
    assert index.tables.chunk_pool[2] == free + 1


def test_chunks_are_taken_out_from_the_head_the_middle_and_the_tail():
    for gone in range(3):
        index = fresh()
        made = [add(index, 10 * number) for number in range(3)]
        index.last = made[gone]
        index.remove(made[gone])
        assert [each[0] for each in chunks(index)] == [10 * number for number in range(3) if number != gone]
        assert index.last == NONE
    index = fresh()
    made = [add(index, 10 * number) for number in range(2)]
    index.last = made[1]
    index.remove(made[0])
    assert index.last == made[1]
    index.remove(made[1])
    assert chunks(index) == [] and index.head == index.tail == NONE


def test_what_is_read_back_is_taken_off_the_front():
    """With the positions in front of it that nobody has."""
    index = fresh()
    chunk = add(index, MASK - 1)
    for number in range(1, 5):
        add(index, MASK - 1 + number)
    index.advance(chunk, MASK + 1, 12, 500, 60)
    assert chunks(index) == [(1, 2, 4, 38)]
    assert (column(index, chunk, chunk_index.OFFSET), column(index, chunk, chunk_index.SKIP)) == (500, 60)
    index.moved(chunk, 9)
    assert column(index, chunk, chunk_index.SKIP) == 69
    index.count_out(chunk, 3, 30)
    assert (index.count, index.octets) == (1, 8)


def test_recovery_puts_each_position_once_and_in_its_order_from_wherever_it_comes():
    for order in ([1, 2, 3, 7, 8], [7, 8, 1, 2, 3], [3, 1, 2, 8, 7], [8, 7, 3, 2, 1]):
        index = fresh()
        index.present = Settled()
        for position in (1, 2, 3, 7, 8):
            index.present.add_one(position)
        for number, position in enumerate(order):
            assert index.place(1, 100 * number, 0, position, 10) is True
            assert index.place(2, 100 * number, 0, position, 10) is False, "it was copied forward"
        found = []
        for first, span, count, octets in chunks(index):
            held = [position for position in range(first, first + span) if index.holes is None or not index.holes.has(position)]
            assert len(held) == count and octets == 10 * count
            found += held
        assert found == [1, 2, 3, 7, 8], order


def test_recovery_joins_over_positions_that_the_log_does_not_have():
    """As a hole; not over one that comes later, nor over more than a page."""
    for behind, present, joined in (
        (4, (), True),
        (4, (3,), False),
        (4, (2, 3), False),
        (PAGE + 2, (), True),
        (PAGE + 3, (), False),
        (2, (), True),
    ):
        index = fresh()
        index.present = Settled()
        for position in present:
            index.present.add_one(position)
        index.place(1, 100, 0, 1, 10)
        index.place(1, 100, 50, behind, 10)
        assert (len(chunks(index)) == 1) == joined, (behind, present)
        if joined and behind > 2:
            assert index.holes.covers(2, behind) and not index.holes.has(1) and not index.holes.has(behind)
    index = fresh()
    index.place(1, 100, 0, 1, 10)
    index.place(1, 100, 50, 3, 10)
    assert len(chunks(index)) == 2, "nobody says what the log has"
    index = fresh()
    index.place(1, 100, 50, 1, 10)
    index.place(1, 100, 50, 2, 10)
    index.place(1, 100, 20, 3, 10)
    assert len(chunks(index)) == 3, "it goes on only behind the message before"


def test_recovery_says_when_no_chunk_is_free_and_then_makes_those_longer_that_there_are():
    index = fresh()
    assert index.place(1, 100, 0, 1, 10) is True
    index.tables.chunk_pool[2] = 0
    assert index.place(1, 100 + 4 * SIZE, 0, 2, 10) is True and len(chunks(index)) == 1
    assert index.place(2, 100, 0, 3, 10) is None


def test_positions_wrap():
    for position, other, behind in (
        (1, 0, True),
        (0, 1, False),
        (5, 5, False),
        (0, MASK, True),
        (MASK, 0, False),
        (0x1FFFFFFF, 0, True),
        (0x20000000, 0, False),
    ):
        assert is_behind(position, other) == behind, (position, other)
    assert unwritten(0) == -2 and unwritten(MASK + 1) == -2 and unwritten(5) == -7
