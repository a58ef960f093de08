"""Every board's file can be read, says what the tools need, and names files that there are; a wrong one is one clear sentence."""

import os

import pytest
from leveret.tools import boards

PROMISED = ("esp32", "esp32_s3", "pico_2_w", "pico_w", "pyboard_d", "raspberry_pi", "stm32f4", "unix")


def test_the_promised_boards_are_there():
    assert tuple(boards.names()) == PROMISED


@pytest.mark.parametrize("name", PROMISED)
def test_a_board_can_be_read_and_its_files_are_there(name):
    board = boards.load(name)
    assert board.heap_size > 0 and board.machines
    files = board.files()
    assert "core/connection.py" in files and "core/hot.py" in files
    assert all(os.path.isfile(os.path.join(boards.ROOT, path)) for path in files)


def test_what_a_board_does_not_carry_is_not_among_its_files():
    files = boards.load("pico_w").files()
    assert "core/exchange_types/topic.py" in files
    assert "core/exchange_types/lossy.py" not in files
    assert "core/management.py" not in files


GOOD = {"description": "a board", "interpreter": "micropython", "machines": ["x"], "heap_size": 1, "flash_size": 1, "code_heap": 1,
        "code": "mpy", "network": "none", "limits": {}, "carries": {"dialects": [], "exchanges": [], "rules": [], "parts": []}}


@pytest.mark.parametrize("changes, said", [
    ({"colour": "red"}, "there is no field 'colour'"),
    ({"heap_size": "big"}, "heap_size is 'big'; it must be of type int"),
    ({"code": "tape"}, "code is 'tape'; it must be one of mpy, romfs, frozen, wheel"),
    ({"carries": {"dialects": [], "exchanges": ["telepathy"], "rules": [], "parts": []}}, "carries.exchanges: there is no 'telepathy'"),
    ({"carries": {"dialects": [], "exchanges": [], "rules": []}}, "carries.parts is missing"),
])
def test_a_wrong_field_is_named(changes, said):
    boards.check(GOOD)
    with pytest.raises(ValueError) as caught:
        boards.check(dict(GOOD, **changes))
    assert said in str(caught.value)


def test_a_board_that_there_is_not():
    with pytest.raises(boards.BoardError) as caught:
        boards.load("abacus")
    assert "there is no board 'abacus'; there are esp32," in str(caught.value)
