"""Which of the places of a message are copied out of a segment that is to be freed, and when (core/log/copy_forward.py)."""

from leveret.core.bridge.ranges import Ranges
from leveret.core.log import chunk_index
from leveret.core.log.copy_forward import READ_RETRY_MS, Copies
from leveret.core.memory import layout


class Things:
    """An object with these attributes."""

    def __init__(self, **given):
        for name in given:
            setattr(self, name, given[name])


def copies(free=10, tries=0, failed_at=0, now=0):
    made = Copies()
    made.tries = tries
    made.failed_at = failed_at
    made.broker = Things(now=now)
    made.tables = Things(chunk_pool=[0, 0, free], chunks=[0] * (4 * chunk_index.WIDTH))
    return made


def test_nothing_is_copied_for_a_while_after_the_store_has_failed_to_read():
    for passed, may in ((0, False), (READ_RETRY_MS - 1, False), (READ_RETRY_MS, True)):
        assert copies(tries=1, failed_at=1000, now=1000 + passed).may_copy({}) == may, passed
    assert copies(tries=0, failed_at=1000, now=1000).may_copy({})


def test_a_copy_needs_a_place_in_the_index_for_each_chunk_and_one_more():
    here = {1: (None, [0, 1]), 2: (None, [2])}
    assert copies(free=4).may_copy(here) and not copies(free=3).may_copy(here)


def test_a_place_is_copied_where_a_chunk_still_wants_it():
    """Not in front of where the chunk begins, in a record and in its parts; not where it could not be read; not where no chunk is."""
    made = copies()
    chunks, chunk = made.tables.chunks, chunk_index.WIDTH
    for column, number in (("POSITION", 100), ("SPAN", 10), ("OFFSET", 500), ("SKIP", 3)):
        chunks[chunk + getattr(chunk_index, column)] = number
    holes = Ranges()
    holes.add(105)
    for position, record, part, wanted in (
        (100, 500, 3, True),
        (109, 600, 0, True),
        (99, 600, 0, False),
        (110, 600, 0, False),
        (101, 499, 9, False),
        (101, 500, 2, False),
        (105, 600, 0, False),
    ):
        told = made.chunk_with([chunk], holes, position, Things(record=record, part=part))
        assert told == (chunk if wanted else layout.NONE), (position, record, part, told)
    assert made.chunk_with([chunk], None, 105, Things(record=600, part=0)) == chunk
    assert made.chunk_with([], None, 105, Things(record=600, part=0)) == layout.NONE
