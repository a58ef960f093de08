"""`dev.py check` finds what it says it finds: each law of core/ is broken once here."""
import ast
import os

import pytest

from leveret.tools.devtool import check


def faults(look, source, path="core/queue.py"):
    return list(look(path.replace("/", os.sep), ast.parse(source)))


@pytest.mark.parametrize("source", [
    "import socket", "import time", "import os.path", "from random import choice", "import leveret.core.limits",
    "def f():\n    import asyncio", "import sys", "from micropython import const"])
def test_core_may_not_import(source):
    assert len(faults(check.import_faults, source)) == 1


@pytest.mark.parametrize("source", ["import struct", "from array import array", "from . import limits", "from .amqp_0_9.frame import x"])
def test_core_may_import(source):
    assert faults(check.import_faults, source) == []


def test_only_the_shim_looks_at_the_interpreter():
    assert faults(check.import_faults, "import sys\nfrom micropython import const", "core/shim.py") == []


@pytest.mark.parametrize("source", [
    "match x:\n    case 1: pass", "def f(a, /): pass", "a = [*b, 1]", "a = (*b,)", "a = {**b}", "async def f(): pass",
    "class A(metaclass=B): pass", "f = lambda a, /: a"])
def test_constructs_that_micropython_lacks(source):
    assert len(faults(check.construct_faults, source)) == 1


def test_a_starred_target_and_starred_arguments_are_allowed():
    assert faults(check.construct_faults, "a, *b = c\nf(*b, **d)\nclass A(B): pass") == []


def test_an_underscore_name_is_not_imported():
    assert len(faults(check.private_import_faults, "from .layout import _WIDTH")) == 1


@pytest.mark.parametrize("path, source, count", [
    ("core/broker.py", "from .amqp_0_9 import verbs", 1),
    ("core/broker.py", "from . import amqp_0_9", 1),
    ("core/broker.py", "from .queue import Queue", 0),
    ("core/connection.py", "from .amqp_0_9 import verbs", 0),
    ("core/amqp_0_9/verbs.py", "from ..amqp_1_0.frame import x", 1),
    ("core/amqp_0_9/verbs.py", "from .frame import x", 0),
    ("core/amqp_0_9/verbs.py", "from ..broker import Broker", 0),
])
def test_one_door_between_the_broker_and_the_wires(path, source, count):
    assert len(faults(check.door_faults, source, path)) == count


def test_a_long_function_is_found():
    assert faults(check.length_faults, "def f():\n" + "    x = 1\n" * 59) == []
    assert len(faults(check.length_faults, "def f():\n" + "    x = 1\n" * 60)) == 1


def test_the_law_names_what_core_may_import():
    assert {"struct", "array", "hashlib", "binascii"} <= set(check.core_imports())
    assert not {"os", "socket", "time", "random", "sys"} & set(check.core_imports())


def test_a_folder_that_is_no_package_is_found(monkeypatch):
    assert list(check.package_faults()) == []
    found = check.python_files("core", "ports", "tools")
    monkeypatch.setattr(check, "python_files", lambda *folders: found + [os.path.join("core", "amqp_9_9", "frame.py")])
    assert len(list(check.package_faults())) == 1


def test_the_files_of_core_are_looked_at():
    found = check.python_files("core")
    assert os.path.join("core", "limits.py") in found and os.path.join("core", "amqp_0_9", "frame.py") in found
