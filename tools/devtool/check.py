"""`dev.py check`: what can be said about the tree without running it. Ends with `N passed, N failed`.

Checks: style (ruff); types (mypy); that core/ stays inside its laws (rooms and imports, constructs that MicroPython lacks, length of
functions); that every source file opens with a docstring and is not too long; that what hides a fault (noqa, type: ignore, except
Exception) has its reason behind it; that no name is one of words.WORDS; that generated files are current. It reads sources with `ast`; it
does not import them.
"""

import ast
import functools
import importlib.metadata
import io
import os
import re
import subprocess
import sys
import tempfile
import tokenize
import tomllib

from . import audit, locks, words

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE_FOLDERS = ("core", "ports", "c_accel", "tools", "firmware", "boards")
SHIM_IMPORTS = ("io", "micropython", "sys", "gc", "mmap", "re")
FUNCTION_LINES_MAX = 60
OWN_FILES_MAX = 10
FILE_LINES_MAX = 600
SOURCES = (".c", ".h", ".mjs", ".py")
LONG_FILES: dict = {  # those that are longer still, and how long they may be until they are split: a number here only gets less
}


def files_of(ends, *folders):
    """Paths relative to ROOT, sorted, of the files whose names end so."""
    paths = []
    for folder in folders:
        for directory, below, names in os.walk(os.path.join(ROOT, folder)):
            below[:] = [name for name in below if not name.startswith((".", "__pycache__", "node_modules"))]
            paths += [os.path.relpath(os.path.join(directory, name), ROOT) for name in names if name.endswith(ends)]
    return sorted(paths)


def python_files(*folders):
    """Paths relative to ROOT, sorted."""
    return files_of(".py", *folders)


def parse(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return ast.parse(file.read(), path)


@functools.cache
def core_imports():
    """The modules that core/ may import: the names in the law's own sentence in core/DESIGN.md."""
    with open(os.path.join(ROOT, "core", "DESIGN.md"), encoding="utf-8") as file:
        law = re.search(r"imports nothing outside itself but ([^.]+)\.", file.read())
    return tuple(re.findall(r"`(\w+)`", law.group(1) if law else ""))


def line_of(node):
    """Where a node stands; 0: nowhere (a module, an operator)."""
    return getattr(node, "lineno", 0)


def is_unrun(node):
    """True for `if False:`: both interpreters compile nothing of it, and mypy reads it."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Constant) and node.test.value is False


def import_faults(path, tree):
    """core/ imports only what it may, and its own files only relatively; what no interpreter runs (`if False:`), for the type checker."""
    allowed = core_imports() + (SHIM_IMPORTS if path == os.path.join("core", "shim.py") else ())
    unrun = [node for each in tree.body if is_unrun(each) for node in each.body]
    for node in ast.walk(tree):
        if node in unrun and isinstance(node, ast.ImportFrom) and node.module == "typing":
            continue
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        for name in names:
            if name not in allowed:
                yield f"{path}:{line_of(node)}: core/ may not import {name}"


def private_import_faults(path, tree):
    """An underscore constant is compiled away by MicroPython: another file cannot import it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name.startswith("_"):
                    yield f"{path}:{node.lineno}: {alias.name} begins with an underscore and cannot be imported on MicroPython"


def _arguments_fault(node):
    return "positional-only arguments" if getattr(node, "args", None) and node.args.posonlyargs else ""


def _display_fault(node):
    return "a * inside a display" if any(isinstance(item, ast.Starred) for item in node.elts) else ""


def _dict_fault(node):
    return "a ** inside a display" if None in node.keys else ""


def _class_fault(node):
    return "a metaclass" if node.keywords else ""


FORBIDDEN = {
    ast.Match: lambda node: "match",
    ast.FunctionDef: _arguments_fault,
    ast.Lambda: _arguments_fault,
    ast.AsyncFunctionDef: lambda node: "async",
    ast.List: _display_fault,
    ast.Tuple: _display_fault,
    ast.Set: _display_fault,
    ast.Dict: _dict_fault,
    ast.ClassDef: _class_fault,
}


def construct_faults(path, tree):
    """core/ uses nothing that MicroPython cannot compile."""
    for node in ast.walk(tree):
        look = FORBIDDEN.get(type(node))
        fault = look(node) if look else ""
        # `first, *rest = values` is a Tuple display too, but a target: MicroPython has it.
        if fault and not isinstance(getattr(node, "ctx", None), ast.Store):
            yield f"{path}:{line_of(node)}: {fault} is not for core/"


@functools.cache
def rooms():
    """{folder of core/: (the rooms that it may import, the file to read first)}, as the README.md of each folder says."""
    laws = {}
    for name in sorted(os.listdir(os.path.join(ROOT, "core"))):
        if os.path.isdir(os.path.join(ROOT, "core", name)) and not name.startswith("_") and python_files(os.path.join("core", name)):
            path = os.path.join(ROOT, "core", name, "README.md")
            text = ""
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    text = file.read()
            law = re.search(r"May import: ([a-z_0-9, ]+)\. Read first: `([a-z_0-9./]+)`\.", text)
            laws[name] = None if law is None else (() if law[1] == "no other room" else tuple(law[1].split(", ")), law[2])
    return laws


def room_of(path):
    """The room of a file of core/; '' for core's own files."""
    parts = path.split(os.sep)
    return parts[1] if len(parts) > 2 else ""


def imported_rooms(path, tree):
    """(line, room) of every relative import in a file of core/ that leaves its room."""
    folder = path.split(os.sep)[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = folder[1 : len(folder) - (node.level - 1)]
            for module in [node.module] if node.module else [alias.name for alias in node.names]:
                room = (base + module.split("."))[0]
                if room in rooms() and room != room_of(path):
                    yield node.lineno, room


def door_faults(path, tree):
    """A room imports the rooms that its README.md names; core's own files import none."""
    own = room_of(path)
    allowed = (rooms()[own] or ((),))[0] if own else ()
    for line, room in imported_rooms(path, tree):
        if room not in allowed:
            yield f"{path}:{line}: may not import the room {room} (core/{own + '/' if own else ''}README.md says what it may)"


def unsaid(room):
    """Files of a room that its README.md does not list."""
    folder = os.path.join("core", room)
    with open(os.path.join(ROOT, folder, "README.md"), encoding="utf-8") as page:
        listed = re.findall(r"^\| `([\w/.]+)` \| .+ \|$", page.read(), re.MULTILINE)
    files = [os.path.relpath(path, folder).replace(os.sep, "/") for path in python_files(folder)]
    return [name for name in files if not name.endswith("__init__.py") and name not in listed]


def room_faults():
    """Each room says what it is for, what it may import and where to begin; imports have one direction; core/ has few files of its own."""
    own = [path for path in python_files("core") if not room_of(path)]
    if len(own) > OWN_FILES_MAX:
        yield f"core/ has {len(own)} files of its own (at most {OWN_FILES_MAX})"
    for name, law in rooms().items():
        if law is None:
            yield f"core/{name}/README.md: has no sentence `May import: ROOMS. Read first: `FILE`.`"
        elif not os.path.exists(os.path.join(ROOT, "core", name, law[1])):
            yield f"core/{name}/README.md: {law[1]} is to be read first and is not there"
        else:
            yield from (f"core/{name}/README.md: there is no room {each}" for each in law[0] if each not in rooms())
            yield from (f"core/{name}/README.md: does not say what {each} has" for each in unsaid(name))
    families = {name for name in rooms() if os.path.exists(os.path.join(ROOT, "core", name, "family.py"))} - {"wire"}
    for name, law in rooms().items():
        for each in sorted(families & set(law[0] if law else ())):
            yield f"core/{name}/README.md: no room may import {each}, which is a family's: core/wire/README.md"
    below = {name: set(law[0]) for name, law in rooms().items() if law is not None}
    while below:
        lowest = {name for name, others in below.items() if not others & set(below)}
        if not lowest:
            yield f"core/: these rooms may import each other in a circle: {', '.join(sorted(below))}"
            return
        below = {name: others for name, others in below.items() if name not in lowest}


def length_faults(path, tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            lines = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{path}:{node.lineno}: {node.name} has {lines} lines (at most {FUNCTION_LINES_MAX})"


def file_length_faults():
    """No source file is longer than somebody reads at once; what still is does not grow."""
    sizes = {}
    for path in files_of(SOURCES, *SOURCE_FOLDERS, "tests"):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            sizes[path.replace(os.sep, "/")] = sum(1 for _ in file)
    for path, lines in sizes.items():
        most = LONG_FILES.get(path, FILE_LINES_MAX)
        if lines > most:
            yield f"{path}: has {lines} lines (at most {most}): split it by subject"
    for path in LONG_FILES:
        if sizes.get(path, 0) <= FILE_LINES_MAX:
            yield f"tools/devtool/check.py: {path} is not longer than {FILE_LINES_MAX} lines any more: take it out of LONG_FILES"


def core_faults():
    yield from room_faults()
    for path in python_files("core"):
        tree = parse(path)
        for look in (import_faults, private_import_faults, construct_faults, door_faults, length_faults):
            yield from look(path, tree)


def package_faults():
    """Every folder with sources is a package in pyproject.toml: what is not named there is not in the wheel."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        setuptools = tomllib.load(file)["tool"]["setuptools"]
    folders = {os.path.dirname(path) for path in python_files("core", "ports", "c_accel", "tools")} - {os.path.join("tools", "devtool")}
    for folder in sorted(folders):
        name = "leveret." + folder.replace(os.sep, ".")
        if name not in setuptools["packages"] or setuptools["package-dir"].get(name) != folder.replace(os.sep, "/"):
            yield f"pyproject.toml: {name} is not among the packages, or its package-dir is not {folder}"


def docstring_faults():
    for path in python_files(*SOURCE_FOLDERS, "tests"):
        tree = parse(path)
        if tree.body and ast.get_docstring(tree) is None:
            yield f"{path}: does not open with a docstring"


def word_faults():
    """Names in the product that name no object (words.py)."""
    for path in python_files(*SOURCE_FOLDERS):
        yield from words.word_faults(path, parse(path))


def ruff_faults():
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--output-format", "concise", "--no-cache", "."], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode != 0:
        yield from (done.stdout + done.stderr).strip().split("\n")


MARKED = re.compile(r"# (?:noqa|type: ignore)\b")
REASON = r"(?!noqa|type:)\w"
NOQA = r"# noqa: [A-Z]+[0-9]+(?:, [A-Z]+[0-9]+)* - " + REASON
REASONED = re.compile(NOQA + "|" + r"# type: ignore\[[a-z-]+(?:, [a-z-]+)*\]  (?:# " + REASON + "|" + NOQA + ")")


def reason_faults(path, source):
    """Marks that hide a fault have their reason behind them: `# noqa: E402 - REASON`, `# type: ignore[misc]  # REASON`, and behind what
    catches everything (Exception, BaseException, or nothing is named) a comment."""
    comments = {
        token.start[0]: token.string for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.COMMENT
    }
    for line, comment in comments.items():
        if MARKED.search(comment) and not REASONED.match(comment):
            yield f"{path}:{line}: has no reason behind its mark: # noqa: RULE - REASON, or # type: ignore[RULE]  # REASON"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(each is None or getattr(each, "id", "") in ("Exception", "BaseException") for each in caught):
                if node.lineno not in comments:
                    yield f"{path}:{node.lineno}: catches everything, and has no comment that says why"


def unreasoned():
    """`reason_faults` of every source file."""
    for path in python_files(*SOURCE_FOLDERS, "tests"):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            yield from reason_faults(path, file.read())


# MicroPython's own modules, out of micropython-esp32-stubs: its other stubs would stand before the standard library's.
DEVICE_STUBS = ("esp32.pyi", "machine.pyi", "micropython.pyi", "network.pyi", "vfs.pyi", "_mpy_shed")


def link(target, path):
    """A symbolic link at `path`, whatever was there."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.islink(path) or os.readlink(path) != target:
        if os.path.lexists(path):
            os.remove(path)
        os.symlink(target, path)


def type_messages(*paths):
    """The messages of mypy about files and folders below `.cache/types`, where `leveret` is ROOT: a namespace package of top-level folders
    is found under no other name. Each is one line, with a path below ROOT."""
    base = os.path.join(ROOT, ".cache", "types")
    link(ROOT, os.path.join(base, "leveret"))
    stubs = importlib.metadata.distribution("micropython-esp32-stubs")
    for name in DEVICE_STUBS:
        link(str(stubs.locate_file(name)), os.path.join(base, name))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", os.path.join(ROOT, "pyproject.toml"), "--no-error-summary", *paths],
        cwd=base,
        capture_output=True,
        text=True,
    )
    return [line.removeprefix("leveret/") for line in (done.stdout + done.stderr).splitlines()]


def type_faults():
    """The errors of mypy."""
    return type_messages(*["leveret/" + folder for folder in SOURCE_FOLDERS])


def generated_faults():
    # generate_spec.py: the leg "shared"
    for name in ("readme", "layout", "refusals", "settings", "states", "conversions"):
        done = subprocess.run(
            [sys.executable, os.path.join("tools", "generate_%s.py" % name), "--check"], cwd=ROOT, capture_output=True, text=True
        )
        if done.returncode != 0:
            yield from (done.stdout + done.stderr).strip().split("\n")


def viper_faults():
    """The hot functions have a viper form, and mpy-cross takes it for every board's architecture."""
    from .. import generate_viper

    with tempfile.TemporaryDirectory(prefix="leveret-viper-") as directory:
        for architecture in generate_viper.ARCHITECTURES:
            try:
                generate_viper.write(directory, architecture)
            except generate_viper.NotViper as error:
                yield str(error)
                return
            except subprocess.CalledProcessError as error:
                yield f"mpy-cross refuses the viper form for {architecture}: {(error.stdout + error.stderr).strip()}"


CLASSES = (10, 20, 30, 40, 50, 60, 85, 90)  # of 0-9-1, with their methods in two shorts; and the octet that ends its frames
FRAME_END = 0xCE
BUFFERS = ("source", "target", "octets", "buffer", "header", "payload")
FRAME_PARTS = (7, 8, 12, 20)  # octets of a frame's head, of a frame beside its payload, of a content header, of its frame
FAMILY_NAMES = re.compile(r"^(basic|channel|connection|exchange|queue|confirm|tx)_(publish|deliver|get|ack|nack|open|close|consume)(_ok)?$")
FAMILY_FIELDS = ("CHANNEL_NUMBER", "STATE_FRAME_MAX", "STATE_NUMBERS")  # of core/memory/layout.py: numbers that are on the wire
FAMILY_C = re.compile(
    r"0xCE\b|END_OCTET|CLASS_BASIC|BASIC_[A-Z]+|\bput_frame\b|[!=]= ?(?:%s)\b|\b(?:%s)\b(?! =)"
    % ("|".join(map(str, CLASSES)), "|".join(FAMILY_FIELDS))
)
C_OF_A_CLIENT = ("perf.c", "perf.h")  # `leveret perf` is a client


def families():
    """Rooms of core/ that are a family of protocols."""
    return {name for name in rooms() if os.path.exists(os.path.join(ROOT, "core", name, "family.py"))} - {"wire"}


def is_number(node, numbers):
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value in numbers


def is_octet(node):
    """True for source[...] and the like: buffers of octets, as the hot functions call them."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in BUFFERS


def octet_fault(node):
    """The family's octets that a node knows, in words, else ''."""
    if is_number(node, (FRAME_END,)):
        return "0xCE ends a frame"
    if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
        if FRAME_END in node.value:
            return "0xCE ends a frame"
        if b"x-" in node.value:
            return "a header by its octets, and not by its format (core/message/formats.py)"
        if len(node.value) >= 4 and node.value[0] == 0 and node.value[1] in CLASSES and node.value[2] == 0:
            return "a class and a method"
    if isinstance(node, ast.Compare) and is_octet(node.left) and any(is_number(each, CLASSES) for each in node.comparators):
        return "the number of a class or a method"
    if isinstance(node, ast.Assign) and is_octet(node.targets[0]) and is_number(node.value, CLASSES):
        return "the number of a class or a method"
    if isinstance(node, (ast.BinOp, ast.Compare)) and "frame_size_max" in names_in(node):
        if any(is_number(each, FRAME_PARTS) for each in ast.walk(node)):
            return "octets of a frame beside its payload"
    name = node.name if isinstance(node, ast.FunctionDef) else node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    if name in FAMILY_FIELDS and not isinstance(node.ctx, ast.Store):
        return "a field that is a family's own"
    return "a method of a family" if FAMILY_NAMES.match(name) or name in ("put_frame", "shortstr") else ""


def names_in(node):
    """Names and attributes in an expression."""
    return {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in ast.walk(node)}


def octet_faults():
    """Nothing outside a family's room of core/, and its files of c_accel/, knows its octets."""
    for path in python_files("core"):
        if room_of(path) not in families():
            yield from octets_known(path, parse(path))
    folder = os.path.join(ROOT, "c_accel")
    for name in sorted(os.listdir(folder)):
        if name.endswith((".c", ".h")) and not name.startswith(tuple(families())) and name not in C_OF_A_CLIENT:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    word = FAMILY_C.search(line)
                    if word is not None:
                        yield f"c_accel/{name}:{number}: octets of a family belong into its own files: {word[0]}"


def octets_known(path, tree):
    for node in ast.walk(tree):
        fault = octet_fault(node)
        if fault:
            yield f"{path}:{line_of(node)}: {fault}: octets of a family belong into its room"


CHECKS = (
    ("style (ruff)", ruff_faults),
    ("types (mypy)", type_faults),
    ("core/ keeps its laws", core_faults),
    ("who is no family knows no family's octets", octet_faults),
    ("every folder with sources is in the package", package_faults),
    ("every file says what it is for", docstring_faults),
    ("names are nouns and verbs of the field", word_faults),
    ("no file is too long", file_length_faults),
    ("what hides a fault has its reason", unreasoned),
    ("generated files are current", generated_faults),
    ("the viper form compiles for the boards", viper_faults),
    ("the lock files have what pyproject.toml asks for", locks.faults),
)


def main():
    failed = 0
    for title, look in CHECKS:
        faults = list(look())
        failed += bool(faults)
        print(f"{title}: {'FAILED' if faults else 'ok'}")
        for fault in faults:
            print("  " + fault)
    known, unasked = audit.audited()
    failed += bool(known)
    count = len(CHECKS) + (not unasked)
    print(f"no known vulnerability (pip-audit): {f'not looked at: {unasked}' if unasked else 'FAILED' if known else 'ok'}")
    for fault in known:
        print("  " + fault)
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
