"""Every board's file can be read, says what the tools need, and names files that there are; a wrong one is one clear sentence."""

import ast
import functools
import os
import re
import subprocess
import sys

import pytest

from leveret.tools import board, boards
from leveret.tools.board_parts import CHOICES, DIALECTS

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
        ({"carries": {"dialects": ["amqp_0_7"], "exchanges": [], "rules": [], "parts": []}}, "carries.dialects: there is no 'amqp_0_7'"),
        (
            {"carries": {"dialects": ["amqp_0_10"], "exchanges": [], "rules": [], "parts": []}},
            "amqp_0_10 needs receive_buffer_size = 4096 in limits, which is 1024: a peer of 0-10 may send frames of that size",
        ),
        ({"sizes": {"amqp_0_9": [1, 2, 3]}}, "sizes.amqp_0_9: it must be one of amqp_0_9, amqp_0_8,"),
        ({"sizes": {"amqp_0_7": {}}}, "sizes.amqp_0_7: it must be one of amqp_0_9, amqp_0_8,"),
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
    files = {choice: boards.load("esp32_s3").speaking(choice).files() for choice in CHOICES}
    both, every = set(files["both"]), set(files["all"])
    assert both >= set(files["amqp_0_9"]) and both >= set(files["amqp_1_0"])
    assert not [path for path in files["amqp_1_0"] if "amqp_0_9" in path or path.startswith("ports/bridge")]
    assert "core/amqp_1_0/transactions.py" in files["amqp_1_0"] and "core/amqp_0_9/exact.py" in both
    for choice in DIALECTS:
        assert every >= set(files[choice])
        registered = {path for path in files[choice] if "family" in path.rpartition("/")[2]} - {"core/wire/family.py"}
        assert registered == {path for path in DIALECTS[choice] if "family" in path}, "a version comes with no other"
        sessions = {name: {path for path in DIALECTS[name] if "session" in path or "protocol" in path} for name in DIALECTS}
        assert not [name for name in DIALECTS if name != choice and sessions[name] & set(files[choice])]


# Imported late, for what a board may do without: each is asked for only where a file is there, or the peer is refused.
LATE = {
    "core/log/definition_records.py": "log",
    "core/log/flat_records.py": "log",
    "core/broker/kept.py": "transactions",
    "core/stream/subscription.py": "streams",
    "core/amqp_0_9/deliver_stream.py": "streams",
    "core/amqp_0_10/deliver_stream.py": "streams",
    "core/amqp_1_0/deliver_stream.py": "streams",
    "core/recovery/lost_offsets.py": "streams",
    "core/queue/waiting.py": "delayed",
}


@functools.cache
def imports(path):
    """[(line, path)] of what a file of core/ imports, at its head or in its functions, but for the type checker."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    skipped = {id(each) for node in tree.body if isinstance(node, ast.If) for each in ast.walk(node)}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level and id(node) not in skipped]
    return [(node.lineno, other) for node in nodes for other in boards.places(path, node)]


@pytest.mark.parametrize(
    "name, choice", [("esp32", each) for each in CHOICES] + [("pico_w", "all"), ("esp32_s3", "both"), ("esp32_s3", "all")]
)
def test_nothing_that_the_files_of_a_manifest_import_is_missing(name, choice):
    """What a part or an exchange type brings may be missing where the board has not that."""
    loaded = boards.load(name).speaking(choice)
    carried, parts = set(loaded.files()), {*loaded.carries["parts"], *loaded.carries["exchanges"]}
    for path in [path for path in carried if path.startswith("core/")]:
        for line, other in imports(path):
            assert other in carried or other in LATE and LATE[other] not in parts, (path, line, other)


def test_the_choices_of_a_board_are_in_a_table():
    loaded = boards.load("esp32")
    loaded.sizes = {
        "amqp_0_9": {"heap": loaded.code_heap, "connection": 5_000, "mpy": 130_000, "viper": 131_000, "romfs": 132_000},
        "amqp_1_0": {"heap": loaded.heap_size, "connection": 9_000, "mpy": 200_000, "viper": 201_000, "romfs": 202_000},
    }
    head, first, second = list(board.lines_of_dialects(loaded))[-3:]
    assert first.split() == ["amqp_0_9", f"{loaded.code_heap:,}", "5,000", f"{loaded.free():,}", "130,000", "131,000", "132,000"]
    assert second.split()[0] == "amqp_1_0" and "does not fit" in second and "does not fit" not in first
    assert head.split()[2:] == ["code", "connection", "stays", "free", "bytecode", "viper", "ROMFS"]


def test_connections_of_a_version_that_holds_more_are_counted():
    """The largest of those that a board carries, for every connection that it may have."""
    first, other = boards.load("esp32_s3").speaking("amqp_0_9"), boards.load("esp32_s3").speaking("amqp_0_10")
    more = other.sizes["amqp_0_10"]["connection"] - first.sizes["amqp_0_9"]["connection"]
    assert more > 0 and dict(first.memory_parts())["connections of other versions"] == 0
    assert dict(other.memory_parts())["connections of other versions"] == more * other.limits.connection_count_max


def test_the_files_that_the_page_copies_for_a_board_that_only_publishes_are_a_whole_client(tmp_path):
    """boards/README.md, "A board that only publishes": nothing that the client imports is missing there."""
    with open(os.path.join(ROOT, "boards", "README.md"), encoding="utf-8") as page:
        lines = re.search(r"mkdir -p client/lib/leveret\n(cp --parents(?:.*\\\n)*.*)\n", page.read()).group(1)
    (tmp_path / "leveret").mkdir()
    subprocess.run(["bash", "-c", lines.replace(" client/lib/leveret", ' "$0"/leveret'), tmp_path], cwd=ROOT, check=True)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import leveret.ports.client as client; print(client.__file__)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, tmp_path], capture_output=True, text=True)
    assert done.stdout.startswith(str(tmp_path)), done.stderr
