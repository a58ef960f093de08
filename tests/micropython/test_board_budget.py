"""The budget of each board is what MicroPython holds: its code as .mpy files, and its broker with everything at its limit.

The WebAssembly build has the 32-bit objects of the boards. Frozen and ROMFS code cannot be loaded there: what they hold of what .mpy files
hold was measured on a 32-bit unix build (FROZEN, ROMFS) and is taken from there.

Run as a program (`python tests/micropython/test_board_budget.py`) it measures the code again and writes code_heap into the boards' files.
"""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest
import stage
import toolchain

from leveret.core.limits import ROWS
from leveret.core.limits_further import ROWS as FURTHER
from leveret.tools import boards, flash_files, put_together, wear

MEMORY = os.path.join(stage.ROOT, "tests", "memory")
BOARDS = [name for name in boards.names() if boards.load(name).interpreter == "micropython"]
FROZEN = 0.214  # at most: 41,104 of 194,911, 58,320 of 274,126 octets: esp32, pico_w, 1.29-preview, gcc -m32
ROMFS = 0.505  # 85,984 of 169,360 and 94,016 of 190,896 octets: esp32 and pico_w, 1.28, gcc -m32
SHARES = {"mpy": 1.0, "romfs": ROMFS, "frozen": FROZEN}
STUBS = {"socket": "SOCK_STREAM = AF_INET = SOL_SOCKET = SO_REUSEADDR = 0\nsocket = getaddrinfo = None\n"}  # what the build lacks
CODE_TOLERANCE = 0.08  # code grows from change to change; this is where the budgets are to be looked at again
DATA_TOLERANCE = 0.05
LOG_TOLERANCE = 2560  # octets: 256 settlements that are not written yet, and the store, which the measurement has not
_measured: dict = {}  # what a board carries: its figures
# What the test's peers do not fill.
UNFILLED = ("addresses", "management", "policies", "identities", "waiting", "transactions", "offsets", "groups")


def compile_board(board, library, texts):
    """The board's files as .mpy under `library`, as `leveret flash` makes them of `texts`, its sources."""

    traced = flash_files.names_in_traces(texts)

    def one(path):
        target = os.path.join(library, "leveret", os.path.splitext(path)[0] + ".mpy")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        source = target[:-4] + ".py"
        with open(source, "w", encoding="utf-8") as file:
            file.write(texts[path])
        subprocess.run([toolchain.mpy_cross(), "-O3", "-s", traced[path], "-o", target, source], check=True, timeout=60)
        os.remove(source)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(one, [path for path in flash_files.source_paths(board) if path in texts]))


def lay_out(board, staged):
    """The board's files as on the board, its limits and modules in board_profile.py, and tests/memory."""
    stage.make(staged, [MEMORY])
    library = os.path.join(staged, "lib")
    shutil.rmtree(os.path.join(library, "leveret"))
    holders: dict = {}
    texts = flash_files.sources(board, False, holders)
    compile_board(board, library, texts)
    for path, text in put_together.stand_ins(holders).items():  # tests/memory asks there once the code is measured
        if path.startswith("core/"):
            os.makedirs(os.path.dirname(os.path.join(library, "leveret", path)), exist_ok=True)
            with open(os.path.join(library, "leveret", path), "w", encoding="utf-8") as file:
                file.write(text)
    write_profile(board, library, texts)


def write_profile(board, library, paths):
    """The board's limits and those of its modules that are files of their own, in board_profile.py, with what tests/memory wants."""
    has_further = "core/limits_further.py" in board.files()
    limits = {row[0]: getattr(board.limits, row[0]) for row in ROWS if row not in FURTHER or has_further}
    order = boards.load_order(flash_files.entries(board))
    modules = ["leveret." + os.path.splitext(path)[0].replace("/", ".") for path in order if path in paths]
    for name, text in STUBS.items():
        with open(os.path.join(library, name + ".py"), "w", encoding="utf-8") as file:
            file.write(text)
    with open(os.path.join(library, "board_profile.py"), "w", encoding="utf-8") as file:
        file.write("MODULES = %r\nLIMITS = %r\nBATCH = %d\n" % (modules, limits, wear.BATCH_OCTETS))
    for name in ("board_load.py", "load_inside.py"):
        shutil.copyfile(os.path.join(MEMORY, name), os.path.join(library, name))


def measured(board):
    """Octets that the interpreter holds, by what was made: measured once for boards that carry the same with the same limits."""
    limits = {row[0]: getattr(board.limits, row[0]) for row in ROWS}
    updates = board.code == "mpy"  # a board whose code is files carries what updates need
    key = repr((sorted(board.carries.items()), updates, sorted(limits.items())))
    if key not in _measured:
        _measured[key] = measure(board)
    return dict(_measured[key])


def measure(board):
    """Octets that the interpreter holds, by what was made."""
    node, package = toolchain.webassembly()
    with tempfile.TemporaryDirectory(prefix="leveret-budget-") as staged:
        lay_out(board, staged)
        done = subprocess.run(
            [*node, os.path.join(stage.HERE, "run_tests.mjs"), package, staged, "/tests/memory", "budget_inside", "0"],
            capture_output=True,
            text=True,
            timeout=600,
        )
    found = [line for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
    assert found and '"failed"' not in done.stdout, done.stdout[-3000:] + done.stderr[-2000:]
    return json.loads(found[0][8:])


def code_held(board, figures):
    """Takes `code` out of the figures: what the code holds in the form in which the board has it."""
    return int(figures.pop("code") * SHARES[board.code])


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_holds_what_its_budget_says(name):
    board = boards.load(name)
    figures = measured(board)
    code = code_held(board, figures)
    parts = dict(board.memory_parts())
    log = figures.pop("log") - (parts["index of the log"] if board.log_heap else 0)  # its index is made with it
    left_out = sum([parts.pop(name, 0) for name in UNFILLED])
    needed = board.memory_needed() - left_out
    held = sum(figures.values())
    print("%s: code %d held, %d said; broker %d held, %d said; log %d" % (name, code, board.code_heap, held, needed, log), figures, parts)
    assert abs(code / board.code_heap - 1) <= CODE_TOLERANCE, (
        "code_heap in boards/%s/board.toml is %d; measured %d: run this file as a program, then `leveret board %s`"
        % (name, board.code_heap, code, name)
    )
    assert abs(held / needed - 1) <= DATA_TOLERANCE, "memory_needed is %d; measured %d: %r" % (needed, held, figures)
    assert board.log_heap - LOG_TOLERANCE <= log <= board.log_heap, "the log holds %d, log_heap is %d" % (log, board.log_heap)


@pytest.mark.parametrize("name", boards.names())
def test_a_board_fits(name):
    board = boards.load(name)
    assert board.free() >= board.working_heap(), "%d octets stay free, %d are needed" % (board.free(), board.working_heap())


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_takes_the_names_that_clients_make(name):
    assert boards.load(name).limits.name_size_max >= len("ctag12.") + 32, "pika's own consumer tags: a channel, and 32 hexadecimal digits"


MESSAGES = int(os.environ.get("LEVERET_LOAD_MESSAGES", "8000"))  # a million is a matter of minutes
HARNESS_HEAP = 4096  # octets that the test's own clients hold


def test_message_after_message_in_the_heap_that_the_code_leaves():
    """4 connections, 16 queues, a 14 KB arena: no MemoryError, nothing lost, and the heap is as free afterwards as it was before."""
    board = boards.load("esp32")
    assert board.limits.connection_count_max == 4 and board.limits.queue_count_max == 16 and board.limits.arena_size == 13888
    heap_kb = (board.heap_size - board.code_heap + HARNESS_HEAP) // 1024
    node, package = toolchain.webassembly()
    with tempfile.TemporaryDirectory(prefix="leveret-load-") as staged:
        lay_out(board, staged)
        done = subprocess.run(
            [*node, os.path.join(stage.HERE, "run_load.mjs"), package, staged, str(heap_kb), str(MESSAGES)],
            capture_output=True,
            text=True,
            timeout=1200 + MESSAGES // 100,
        )
    found = [line for line in done.stdout.splitlines() if line.startswith("LOAD ")]
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    told = json.loads(found[0][5:])
    print(heap_kb, "KiB", told, done.stdout.splitlines()[0])
    assert told["failed"] == 0 and told["internal_errors"] == 0, done.stdout[-2000:]
    assert told["received"] >= MESSAGES
    assert told["free_before"] - told["free_after"] < 1024, told


def write_code_heap(name):
    """Measure a board's code and write the number into its file."""
    path = os.path.join(boards.BOARDS, name, "board.toml")
    board = boards.load(name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    number = code_held(board, measured(board))
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"^code_heap = .*", "code_heap = %d" % number, text, flags=re.MULTILINE))
    print(name, number)


if __name__ == "__main__":
    for each in BOARDS:
        write_code_heap(each)
