"""Lays out a directory as a device's file system: what the tests find under MicroPython, on both builds.

    /lib/leveret/core, ports, firmware      the sources, .py only; not ports/spark, which runs where Java does
    /lib/*.py                               the runner's own files for the inside
    /tests/unit, /tests/memory, ...         the test files' directories as in the source tree, /tests/unit and /tests/vectors in any case

It copies; it changes no text.
"""

import os
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
INSIDE = (
    "device_runner.py",
    "heap_bound.py",
    "wasm_port.py",
    "wasm_broker.py",
    "wasm_echo.py",
    "wasm_link.py",
    "wasm_client.py",
    "wasm_uplink.py",
)
SUFFIXES = (".py", ".json")


def copy_tree(source, target, suffixes, leave_out=()):
    """Copy the files of `source` that end in one of `suffixes`; `leave_out` names directories."""
    for directory, names, files in os.walk(source):
        names[:] = [name for name in names if name not in leave_out and name != "__pycache__"]
        place = os.path.join(target, os.path.relpath(directory, source))
        os.makedirs(place, exist_ok=True)
        for name in files:
            if name.endswith(suffixes):
                shutil.copyfile(os.path.join(directory, name), os.path.join(place, name))


def make(stage, test_directories=()):
    """Fill the empty directory `stage`; each of `test_directories` is copied to /tests under its own name."""
    library = os.path.join(stage, "lib")
    copy_tree(os.path.join(ROOT, "core"), os.path.join(library, "leveret", "core"), (".py",))
    copy_tree(os.path.join(ROOT, "ports"), os.path.join(library, "leveret", "ports"), (".py",), leave_out=("spark",))
    copy_tree(os.path.join(ROOT, "firmware"), os.path.join(library, "leveret", "firmware"), (".py",))
    for name in INSIDE:
        if os.path.exists(os.path.join(HERE, name)):
            shutil.copyfile(os.path.join(HERE, name), os.path.join(library, name))
    for directory in set(test_directories) | {os.path.join(ROOT, "tests", "vectors"), os.path.join(ROOT, "tests", "unit")}:
        if os.path.isdir(directory):
            copy_tree(directory, os.path.join(stage, "tests", os.path.basename(directory)), SUFFIXES)
