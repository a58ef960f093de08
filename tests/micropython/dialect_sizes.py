"""What each choice of dialects (tools/board_parts.py) takes on a board: its code is loaded in the WebAssembly build as the board carries
it, two clients of each dialect log in, have a queue made, publish and consume, and the second one's heap is counted.

    .venv/bin/python tests/micropython/dialect_sizes.py [BOARD ...]      measure and write [sizes] into the boards' files
    .venv/bin/python tests/micropython/dialect_sizes.py --bounded        the same in the heap that the code leaves, where there is room
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import dialect_scripts
import stage
import test_board_budget as budget
import toolchain

from leveret.tools import boards, flash_files, flash_images
from leveret.tools.board_parts import CHOICES, DRAFTS

HARNESS_HEAP = 8192  # octets that the test itself holds, its scripts with it


def lay_out_sources(board, staged):
    """The files that a board's manifest names and no others, as they are in the tree."""
    stage.make(staged, [budget.MEMORY])
    library = os.path.join(staged, "lib")
    shutil.rmtree(os.path.join(library, "leveret"))
    paths = flash_files.source_paths(board)
    for path in paths:
        place = os.path.join(library, "leveret", path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copyfile(os.path.join(stage.ROOT, path), place)
    budget.write_profile(board, library, paths)


def conversed(board, heap_kb=0, crossings=(), lay_out=budget.lay_out):
    """The figures of dialect_inside.py on a board, in a heap of so many KiB beside the code (0: as much as it takes), and the octets of
    its .mpy files (`mpy`). `crossings`: of dialect_scripts.py; what their receivers hear is in `heard`, by version. `lay_out`: brings the
    board's files into a folder."""
    node, package = toolchain.webassembly()
    names = board.carries["dialects"]
    with tempfile.TemporaryDirectory(prefix="leveret-dialects-") as staged:
        lay_out(board, staged)
        with open(os.path.join(staged, "lib", "board_profile.py"), "a", encoding="utf-8") as file:
            scripts = {name: [dialect_scripts.SCRIPTS[name](name[5:].encode() + each) for each in (b"a", b"b")] for name in names}
            drafts = {dialect: version for version, dialect in DRAFTS.items()}
            crossed = {each.version: (each.limits, each.steps, each.since) for each in crossings}
            file.write("SCRIPTS = %r\nDRAFTS = %r\nCROSSINGS = %r\n" % (scripts, drafts, crossed))
        # Compiled beforehand: what a compiler inside leaves behind would be taken for free memory once the board's code stands there.
        for name in ("dialect_inside", "replay"):
            place = os.path.join(staged, "tests", "memory", name)
            subprocess.run([toolchain.mpy_cross(), "-O3", "-o", place + ".mpy", place + ".py"], check=True, timeout=60)
            os.remove(place + ".py")
        library = os.path.join(staged, "lib", "leveret")
        paths = [os.path.join(folder, name) for folder, _, found in os.walk(library) for name in found if name.endswith(".mpy")]
        octets = sum([os.path.getsize(path) for path in paths])
        done = subprocess.run(
            [*node, os.path.join(stage.HERE, "run_tests.mjs"), package, staged, "/tests/memory", "dialect_inside", str(heap_kb)],
            capture_output=True,
            text=True,
            timeout=600,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
    assert lines and '"failed"' not in done.stdout, done.stdout[-3000:] + done.stderr[-2000:]
    heard = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("HEARD ")]
    return dict(json.loads(lines[0][8:]), mpy=octets, heard={version: bytes.fromhex(text) for version, text in heard})


_figures: dict = {}  # what conversed() found, by what it depends on


def figures_of(board):
    """conversed() on a board, measured once for boards that carry the same with the same limits."""
    key = repr([board.carries, board.code == "mpy", vars(board.limits)])
    if key not in _figures:
        _figures[key] = conversed(board)
    return _figures[key]


def flashed(board):
    """What the flash holds of a board's code: {"viper": octets of its files, "romfs": of its image}."""
    native = board.architecture in flash_files.MACHINE_CODE
    files = flash_files.compiled(board, native)
    return {"viper": sum([len(file.octets) for file in files]), "romfs": len(flash_images.image(board, native))}


def sizes_of(name):
    """[(choice, its table for [sizes])] of a board."""
    found: list = []
    first = None
    for choice in CHOICES:
        board = boards.load(name).speaking(choice)
        figures = figures_of(board)
        first = figures["code"] if first is None else first
        # As test_board_budget.py measures the board's own, and what others take more than that.
        heap = boards.load(name).code_heap + int((figures["code"] - first) * budget.SHARES[board.code])
        connection = max([figures[dialect] for dialect in board.carries["dialects"]])
        found.append((choice, dict({"heap": heap, "connection": connection, "mpy": figures["mpy"]}, **flashed(board))))
        print(name, *found[-1], flush=True)
    return found


def write_sizes(name, found):
    """Write what was measured into a board's file."""
    lines = ["%s = { %s }\n" % (choice, ", ".join(["%s = %d" % pair for pair in sizes.items()])) for choice, sizes in found]
    path = os.path.join(boards.BOARDS, name, "board.toml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.split("\n[sizes]\n")[0].rstrip() + "\n\n[sizes]\n" + "".join(lines))


def heap_kb(board):
    """KiB of heap that the code leaves on a board, with what the test itself holds."""
    return (board.heap_size - board.code_heap + HARNESS_HEAP) // 1024


def bounded():
    """Converse in the heap that the code leaves, on the boards without others alike, wherever a choice has room there."""
    for name in ("esp32", "pico_w", "pico_2_w", "stm32f4", "pyboard_d", "esp32_s3"):
        for choice in boards.load(name).sizes:
            board = boards.load(name).speaking(choice)
            if board.free() >= board.working_heap():
                print(name, choice, heap_kb(board), conversed(board, heap_kb(board)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--bounded"]:
        bounded()
    else:
        for each in sys.argv[1:] or budget.BOARDS:
            write_sizes(each, sizes_of(each))
