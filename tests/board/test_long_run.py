"""A board's firmware for a short while, as long_run.py has it for long: in the WebAssembly build, whose heap is bounded to what a board's
code leaves, and on a 32-bit `micropython` binary where there is one."""

import pytest
import toolchain  # in tests/micropython, which conftest.py has put on the path
from long_run import run

MESSAGES = 300


@pytest.mark.parametrize("name", ["esp32", "pico_w"])
def test_a_board_carries_messages_while_clients_come_and_go(name):
    """No message is lost or passes another, its heap is flat, and it stops with its store closed (`run` raises where not)."""
    try:
        toolchain.webassembly()
    except toolchain.Missing as missing:
        pytest.skip("node: %s" % missing)
    figures = run(name, MESSAGES, None, False, False, "each")
    assert figures["messages"] >= MESSAGES and figures["readings"] > 0 and figures["refused"] == 1


def test_a_board_whose_code_is_files_carries_messages_in_exactly_its_heap():
    try:
        binary = toolchain.unix_32()
    except toolchain.Missing:
        pytest.skip("there is no `micropython` binary")  # of 32 bits
    figures = run("pico_2_w", MESSAGES, [binary], False, False, "each")
    assert figures["messages"] >= MESSAGES and figures["recovered"]
