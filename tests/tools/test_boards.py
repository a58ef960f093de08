"""Every board's file can be read, says what the tools need, and names files that there are; a wrong one is one clear sentence."""

import os
import re
import subprocess
import sys

import pytest

from leveret.tools import board, boards

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROMISED = (
    "esp32",
    "esp32_c3",
    "esp32_c6",
    "esp32_p4",
    "esp32_s3",
    "esp32_spiram",
    "pico_2_w",
    "pico_w",
    "pyboard_d",
    "raspberry_pi",
    "stm32f4",
    "stm32h7",
    "teensy_41",
    "unix",
)


def test_the_promised_boards_are_there():
    assert tuple(boards.names()) == PROMISED


@pytest.mark.parametrize("name", PROMISED)
def test_a_board_can_be_read_and_its_files_are_there(name):
    board = boards.load(name)
    assert board.heap_size > 0 and board.machines
    files = board.files()
    assert "core/connection/connection.py" in files and "core/memory/hot.py" in files
    assert all(os.path.isfile(os.path.join(boards.ROOT, path)) for path in files)


def test_what_a_board_does_not_carry_is_not_among_its_files():
    files = boards.load("pico_w").files()
    assert "core/exchange/types/topic.py" in files
    assert "core/exchange/types/lossy.py" not in files
    assert "core/management/requests.py" not in files


GOOD = {
    "description": "a board",
    "interpreter": "micropython",
    "machines": ["x"],
    "heap_size": 1,
    "flash_size": 1,
    "code_heap": 1,
    "code": "mpy",
    "network": "none",
    "limits": {},
    "carries": {"dialects": [], "exchanges": [], "rules": [], "parts": []},
}


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"colour": "red"}, "there is no field 'colour'"),
        ({"heap_size": "big"}, "heap_size is 'big'; it must be of type int"),
        ({"code": "tape"}, "code is 'tape'; it must be one of mpy, romfs, frozen, wheel"),
        ({"carries": {"dialects": [], "exchanges": ["telepathy"], "rules": [], "parts": []}}, "carries.exchanges: there is no 'telepathy'"),
        ({"carries": {"dialects": [], "exchanges": [], "rules": []}}, "carries.parts is missing"),
        (
            {"carries": {"dialects": ["amqp_1_0"], "exchanges": [], "rules": [], "parts": ["bridge"]}},
            "carries.parts: bridge goes with the dialect amqp_0_9",
        ),
    ],
)
def test_a_wrong_field_is_named(changes, said):
    boards.check(GOOD)
    with pytest.raises(ValueError) as caught:
        boards.check(dict(GOOD, **changes))
    assert said in str(caught.value)


def test_a_board_that_there_is_not():
    with pytest.raises(boards.BoardError) as caught:
        boards.load("abacus")
    assert "there is no board 'abacus'; there are esp32," in str(caught.value)


def test_a_board_carries_the_families_that_it_names():
    files = {choice: boards.load("esp32_s3").speaking(choice).files() for choice in boards.CHOICES}
    both = set(files["both"])
    assert both >= set(files["amqp_0_9"]) and both >= set(files["amqp_1_0"])
    assert not [path for path in files["amqp_0_9"] if "amqp_1_0" in path]
    assert not [path for path in files["amqp_1_0"] if "amqp_0_9" in path or path.startswith("ports/bridge")]
    assert "core/amqp_1_0/transactions.py" in files["amqp_1_0"] and "core/amqp_0_9/exact.py" in both


def test_the_choices_of_a_board_are_in_a_table():
    loaded = boards.load("esp32")
    loaded.sizes = {"amqp_0_9": [loaded.code_heap, 130_000, 5_000], "amqp_1_0": [loaded.heap_size, 200_000, 9_000]}
    head, first, second = list(board.lines_of_dialects(loaded))[-3:]
    assert first.split() == ["amqp_0_9", f"{loaded.code_heap:,}", "130,000", "5,000", f"{loaded.free():,}"]
    assert second.split()[0] == "amqp_1_0" and "does not fit" in second and "does not fit" not in first and "a connection" in head


def test_the_files_that_the_page_copies_for_a_board_that_only_publishes_are_a_whole_client(tmp_path):
    """boards/README.md, "A board that only publishes": nothing that the client imports is missing there."""
    with open(os.path.join(ROOT, "boards", "README.md"), encoding="utf-8") as page:
        lines = re.search(r"mkdir -p client/lib/leveret\n(cp --parents(?:.*\\\n)*.*)\n", page.read()).group(1)
    (tmp_path / "leveret").mkdir()
    subprocess.run(["bash", "-c", lines.replace(" client/lib/leveret", ' "$0"/leveret'), tmp_path], cwd=ROOT, check=True)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import leveret.ports.client as client; print(client.__file__)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, tmp_path], capture_output=True, text=True)
    assert done.stdout.startswith(str(tmp_path)), done.stderr
