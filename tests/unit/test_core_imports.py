"""Every module of core/ can be imported, on both interpreters, whether a test uses it or not; those of CPython alone (`_quicker`) there."""

import os

import leveret.core.errors
from leveret.core.shim import MICROPYTHON

DIRECTORY_BIT = 0x4000


def modules(path, name):
    for entry in os.listdir(path):
        if os.stat(path + "/" + entry)[0] & DIRECTORY_BIT:
            if not entry.startswith("_"):
                yield from modules(path + "/" + entry, name + "." + entry)
        elif entry.endswith(".py"):
            yield name if entry == "__init__.py" else name + "." + entry[:-3]


def test_every_module_of_core_can_be_imported():
    path = leveret.core.errors.__file__.replace("\\", "/").rsplit("/", 1)[0]
    names = sorted(modules(path, "leveret.core"))
    assert "leveret.core.errors" in names
    for name in names:
        if MICROPYTHON and name.endswith("_quicker"):
            continue
        try:
            __import__(name)
        except Exception as error:  # whatever is raised is told with the module's name
            raise AssertionError("%s: %r" % (name, error)) from None
