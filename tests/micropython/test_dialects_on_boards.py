"""Every version of AMQP on boards: each alone and all of them together, a client logs in, has a queue made, publishes and consumes, in
MicroPython, with just the files that a board's manifest names; and in the heap that a board's code leaves.

`leveret board NAME` says which boards have room for what.
"""

import dialect_scripts
import dialect_sizes
import pytest
import test_board_budget as budget
from every_version import LIMITS
from full_messages import VERSIONS

from leveret.core.limits import ROWS
from leveret.tools import boards
from leveret.tools.board_parts import CHOICES, DIALECTS

CONNECTION_TOLERANCE = budget.CODE_TOLERANCE


def held_as_said(figures, sizes, dialects):
    """Raise AssertionError where [sizes] of a board is not what was measured."""
    for held, said in ((figures["mpy"], sizes["mpy"]), (max(figures[dialect] for dialect in dialects), sizes["connection"])):
        assert abs(held / said - 1) <= CONNECTION_TOLERANCE, "run dialect_sizes.py, then `leveret board`: %d, not %d" % (held, said)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_board_that_carries_one_version_serves_that(dialect):
    """With just the files that the smallest profile's manifest names then."""
    board = boards.load("esp32").speaking(dialect)
    assert dialect_sizes.conversed(board, lay_out=dialect_sizes.lay_out_sources)[dialect] > 0


def test_a_board_that_carries_every_version_converts_each_into_each_as_a_computer_does():
    """One message of each with all that it can have, at a receiver of each: the 49 cells of core/CONVERSIONS.md."""
    board = boards.load("esp32").speaking("all")
    limits = dict({row[0]: getattr(board.limits, row[0]) for row in ROWS}, **ROOM)
    crossings = [dialect_scripts.Crossing(version, limits) for version in VERSIONS]
    figures = dialect_sizes.conversed(board, 0, crossings)
    held_as_said(figures, board.sizes["all"], CHOICES["all"])
    for crossing in crossings:
        expected = crossing.views()
        assert len(expected) == len(VERSIONS)
        assert crossing.views(figures["heard"][crossing.version]) == expected, crossing.version


CLIENTS = len(VERSIONS) + 1
ROOM = dict(LIMITS, arena_size=65536, message_count_max=64, entry_count_max=64, connection_count_max=CLIENTS, channel_count_max=CLIENTS)


def has_room(name, choice):
    """True where a board's limits and the code of this choice fit."""
    board = boards.load(name)
    return choice in board.sizes and board.speaking(choice).free() >= board.working_heap()


def test_a_client_publishes_and_consumes_in_the_heap_that_the_code_leaves(choice="amqp_1_0"):
    """`python tests/micropython/dialect_sizes.py --bounded` does so with each version that has room."""
    board = boards.load("esp32_s3").speaking(choice)
    figures = dialect_sizes.conversed(board, dialect_sizes.heap_kb(board))
    held_as_said(figures, board.sizes[choice], CHOICES[choice])


def test_a_board_has_room_for_each_version_alone():
    assert [choice for choice in CHOICES if has_room("esp32_s3", choice)] == [*DIALECTS]
