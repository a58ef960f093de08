"""`dev.py check`: what can be said about the tree without running it. Ends with `N passed, N failed`.

Checks: style (ruff); that core/ stays inside its laws (imports, constructs that MicroPython lacks, one door between broker and wire
folders, length of functions); that every source file opens with a docstring; that generated files are current.
It reads sources with `ast`; it does not import them.
"""
import ast
import functools
import os
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE_FOLDERS = ("core", "ports", "c_accel", "tools", "firmware", "boards")
SHIM_IMPORTS = ("io", "micropython", "sys", "gc", "mmap")
FUNCTION_LINES_MAX = 60
# Files beside the wire folders that may know them: they choose the dialect, or are the client's own session.
WIRE_DOORS = ("sniff.py", "connection.py")


def python_files(*folders):
    """Paths relative to ROOT, sorted."""
    found = []
    for folder in folders:
        for directory, below, names in os.walk(os.path.join(ROOT, folder)):
            below[:] = [name for name in below if not name.startswith((".", "__pycache__", "node_modules"))]
            found += [os.path.relpath(os.path.join(directory, name), ROOT) for name in names if name.endswith(".py")]
    return sorted(found)


def parse(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return ast.parse(file.read(), path)


@functools.cache
def core_imports():
    """What core/ may import: the names in the law's own sentence in core/DESIGN.md."""
    with open(os.path.join(ROOT, "core", "DESIGN.md"), encoding="utf-8") as file:
        law = re.search(r"imports nothing outside itself but ([^.]+)\.", file.read())
    return tuple(re.findall(r"`(\w+)`", law.group(1)))


def import_faults(path, tree):
    """core/ imports only what it may, and its own files only relatively."""
    allowed = core_imports() + (SHIM_IMPORTS if path == os.path.join("core", "shim.py") else ())
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module]
        for name in names:
            if name not in allowed:
                yield f"{path}:{node.lineno}: core/ may not import {name}"


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
    ast.FunctionDef: _arguments_fault, ast.Lambda: _arguments_fault,
    ast.AsyncFunctionDef: lambda node: "async",
    ast.List: _display_fault, ast.Tuple: _display_fault, ast.Set: _display_fault,
    ast.Dict: _dict_fault, ast.ClassDef: _class_fault,
}


def construct_faults(path, tree):
    """core/ uses nothing that MicroPython cannot compile."""
    for node in ast.walk(tree):
        look = FORBIDDEN.get(type(node))
        fault = look(node) if look else ""
        # `first, *rest = values` is a Tuple display too, but a target: MicroPython has it.
        if fault and not isinstance(getattr(node, "ctx", None), ast.Store):
            yield f"{path}:{node.lineno}: {fault} is not for core/"


def wire_of(module, path, level):
    """The wire folder that `from <dots><module> import` in core file `path` reaches, or ''."""
    folder = os.path.dirname(path).split(os.sep)
    base = folder[:len(folder) - (level - 1)]
    parts = base + (module.split(".") if module else [])
    return parts[1] if len(parts) > 1 and parts[1].startswith("amqp_") else ""


def door_faults(path, tree):
    """The broker and what is below it import no wire folder; wire folders do not import each other."""
    parts = path.split(os.sep)
    own = parts[1] if len(parts) > 2 else ""
    if not own and parts[-1] in WIRE_DOORS:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            for module in [node.module] if node.module else [alias.name for alias in node.names]:
                wire = wire_of(module, path, node.level)
                if wire and wire != own:
                    yield f"{path}:{node.lineno}: may not import the wire folder {wire}"


def length_faults(path, tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= FUNCTION_LINES_MAX:
            yield f"{path}:{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines (at most {FUNCTION_LINES_MAX})"


def core_faults():
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


def ruff_faults():
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "--output-format", "concise", "--no-cache", "."],
                          cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        yield from (done.stdout + done.stderr).strip().split("\n")


def generated_faults():
    for name in ("generate_readme.py", "generate_layout.py", "generate_refusals.py"):  # generate_spec.py: the leg "shared"
        done = subprocess.run([sys.executable, os.path.join("tools", name), "--check"], cwd=ROOT, capture_output=True, text=True)
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


CHECKS = (
    ("style (ruff)", ruff_faults),
    ("core/ keeps its laws", core_faults),
    ("every folder with sources is in the package", package_faults),
    ("every file says what it is for", docstring_faults),
    ("generated files are current", generated_faults),
    ("the viper form compiles for the boards", viper_faults),
)


def main():
    failed = 0
    for title, look in CHECKS:
        faults = list(look())
        failed += bool(faults)
        print(f"{title}: {'FAILED' if faults else 'ok'}")
        for fault in faults:
            print("  " + fault)
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
