"""`dev.py check` finds what it says it finds: each law of core/ is broken once here."""

import ast
import functools
import os
import tomllib

import pytest

from leveret.tools.devtool import check, words


def faults(look, source, path="core/queue/queue.py"):
    return list(look(path.replace("/", os.sep), ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "import socket",
        "import time",
        "import os.path",
        "from random import choice",
        "import leveret.core.limits",
        "def f():\n    import asyncio",
        "import sys",
        "from micropython import const",
    ],
)
def test_core_may_not_import(source):
    assert len(faults(check.import_faults, source)) == 1


@pytest.mark.parametrize("source", ["import struct", "from array import array", "from . import limits", "from .amqp_0_9.frame import x"])
def test_core_may_import(source):
    assert faults(check.import_faults, source) == []


def test_what_no_interpreter_runs_may_import_typing():
    """`if False:` costs a board nothing; the type checker alone reads it."""
    assert faults(check.import_faults, "if False:\n    from typing import Any") == []
    assert len(faults(check.import_faults, "if True:\n    from typing import Any")) == 1
    assert len(faults(check.import_faults, "if False:\n    from os import path")) == 1


def test_only_the_shim_looks_at_the_interpreter():
    assert faults(check.import_faults, "import sys\nfrom micropython import const", "core/shim.py") == []


@pytest.mark.parametrize(
    "source",
    [
        "match x:\n    case 1: pass",
        "def f(a, /): pass",
        "a = [*b, 1]",
        "a = (*b,)",
        "a = {**b}",
        "async def f(): pass",
        "class A(metaclass=B): pass",
        "f = lambda a, /: a",
    ],
)
def test_constructs_that_micropython_lacks(source):
    assert len(faults(check.construct_faults, source)) == 1


def test_a_starred_target_and_starred_arguments_are_allowed():
    assert faults(check.construct_faults, "a, *b = c\nf(*b, **d)\nclass A(B): pass") == []


def test_an_underscore_name_is_not_imported():
    assert len(faults(check.private_import_faults, "from .layout import _WIDTH")) == 1


@pytest.mark.parametrize(
    "path, source, count",
    [
        ("core/broker/broker.py", "from ..amqp_0_9 import verbs", 1),
        ("core/broker/broker.py", "from .. import amqp_0_9", 1),
        ("core/broker/broker.py", "from ..queue.queue import Queue", 0),
        ("core/broker/broker.py", "def f():\n    from ..management.requests import answer", 1),
        ("core/queue/features/dead_letter.py", "from ...broker.broker import Broker", 1),
        ("core/queue/features/dead_letter.py", "from ...memory import layout\nfrom ..queue import Queue", 0),
        ("core/connection/connection.py", "from ..amqp_0_9.session import Session", 1),
        ("core/connection/connection.py", "from ..wire import registry", 0),
        ("core/wire/installed.py", "from ..amqp_0_9.session import Session", 1),
        ("core/amqp_0_9/verbs.py", "from .frame import x", 0),
        ("core/amqp_0_9/verbs.py", "from ..broker.broker import Broker", 0),
        ("core/limits.py", "from .memory import layout", 1),
    ],
)
def test_a_room_imports_what_its_page_says(path, source, count):
    assert len(faults(check.door_faults, source, path)) == count


def test_rooms_are_told_and_lie_one_above_the_other(monkeypatch):
    assert list(check.room_faults()) == []
    for law, word in (
        (None, "May import"),
        (((), "absent.py"), "read first"),
        ((("attic",), "queue.py"), "no room attic"),
        ((("broker",), "queue.py"), "circle"),
        ((("amqp_0_9",), "queue.py"), "a family's"),
    ):
        monkeypatch.setattr(check, "rooms", functools.partial(dict, check.rooms(), queue=law))
        assert any(word in fault for fault in check.room_faults()), word
        monkeypatch.undo()
    monkeypatch.setattr(check, "OWN_FILES_MAX", 3)
    assert "of its own" in next(check.room_faults())


def test_a_room_s_page_lists_its_files(monkeypatch):
    """A file that has come without a line in its room's README.md."""
    monkeypatch.setattr(check, "python_files", lambda *folders: [os.path.join("core", "queue", "newcomer.py")])
    assert check.unsaid("queue") == ["newcomer.py"]


def test_a_long_function_is_found():
    assert faults(check.length_faults, "def f():\n" + "    x = 1\n" * 60) == []
    assert len(faults(check.length_faults, "def f():\n" + "    x = 1\n" * 61)) == 1


@pytest.mark.parametrize(
    "source, count",
    [
        ("import a  # noqa: E402 - the path above has to be set first", 0),
        ("import a  # noqa: E402, F401 - both, for a reason", 0),
        ("import a  # noqa: E402", 1),
        ("import a  # noqa", 1),
        ("import a  # noqa: E402 -", 1),
        ("a = 1  # type: ignore[misc]  # the stub is wrong", 0),
        ("import a  # type: ignore[misc]  # noqa: E402 - the path above has to be set first", 0),
        ("import a  # type: ignore[misc]  # noqa: E402", 1),
        ("a = 1  # type: ignore[misc]", 1),
        ("a = 1  # type: ignore  # the stub is wrong", 1),
        ("try:\n    a()\nexcept Exception:  # whatever it is\n    pass", 0),
        ("try:\n    a()\nexcept Exception:\n    pass", 1),
        ("try:\n    a()\nexcept (OSError, BaseException) as error:\n    pass", 1),
        ("try:\n    a()\nexcept:\n    pass", 1),
        ("try:\n    a()\nexcept OSError:\n    pass", 0),
        ("text = '# noqa'", 0),
    ],
)
def test_what_hides_a_fault_has_its_reason_behind_it(source, count):
    assert len(list(check.reason_faults("core/a.py", source + "\n"))) == count


def test_a_file_that_is_too_long_is_found_and_one_that_is_known_to_be_may_not_grow(monkeypatch, tmp_path):
    (tmp_path / "core").mkdir()
    for name, lines in (("short.py", 600), ("long.c", 601), ("known.py", 700), ("cured.py", 600)):
        (tmp_path / "core" / name).write_text("\n" * lines)
    monkeypatch.setattr(check, "ROOT", str(tmp_path))
    monkeypatch.setattr(check, "LONG_FILES", {"core/known.py": 700, "core/cured.py": 700})
    assert [fault.split(": ")[1] for fault in check.file_length_faults()] == [
        "has 601 lines (at most 600)",
        "core/cured.py is not longer than 600 lines any more",
    ]
    (tmp_path / "core" / "known.py").write_text("\n" * 701)
    assert "core/known.py: has 701 lines (at most 700): split it by subject" in list(check.file_length_faults())


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


FAULTY = '''"""Faults of types: one against core/, one against what boards have, by name and as the firmware gets it."""

import machine

from leveret.core.queue.queue import Queue
from leveret.firmware import hardware


def count(queue: Queue):
    """None of it is there."""
    pin = hardware.module("machine", "a lamp").Pin
    return queue.message_number(), machine.Pin(1).turn_blue(), pin(2).turn_red()
'''


def test_a_fault_of_types_is_found():
    """Methods that neither core/ nor MicroPython has, in a file that knows both."""
    told = [line for line in check.type_messages("-c", FAULTY) if line.startswith("<string>:") and ": error: " in line]
    assert all("[attr-defined]" in line for line in told)
    assert [name in line for name, line in zip(("message_number", "turn_blue", "turn_red"), told, strict=True)] == [True] * 3


def test_every_port_and_the_contract_are_strictly_typed():
    """ports/ and core/wire, all of their modules: no other row of pyproject.toml takes a rule back from one of them."""
    with open(os.path.join(check.ROOT, "pyproject.toml"), "rb") as file:
        rows = tomllib.load(file)["tool"]["mypy"]["overrides"]
    strict = [row for row in rows if row.get("disallow_untyped_defs")]
    assert [row["module"] for row in strict] == [["leveret.core.wire.*", "leveret.ports.*"]]
    assert {"disallow_any_generics", "disallow_incomplete_defs", "strict_equality", "warn_return_any"} <= set(strict[0])
    assert not [row for row in rows if row is not strict[0] and (set(row) & set(strict[0])) - {"module"}]


def test_a_rule_that_hides_faults_of_types_is_only_for_what_is_not_ours():
    """No blanket: modules without errors or types are other people's, manifests get names of MicroPython's build."""
    with open(os.path.join(check.ROOT, "pyproject.toml"), "rb") as file:
        rows = tomllib.load(file)["tool"]["mypy"]["overrides"]
    hidden = [row for row in rows if {"ignore_errors", "ignore_missing_imports", "disable_error_code", "follow_imports"} & set(row)]
    names = [name for row in hidden for name in ([row["module"]] if isinstance(row["module"], str) else row["module"])]
    assert {name for name in names if name.startswith("leveret")} == {
        "leveret.boards.*",
        "leveret.c_accel._hot",
        "leveret.c_accel._perf",
    }


@pytest.mark.parametrize(
    "source",
    (
        "x = source[at] != 0xCE",
        "octets = b'\\x01\\xce'",
        "DELIVER = b'\\x00\\x3c\\x00\\x3c'",
        "if source[at + 8] != 60: pass",
        "target[at + 8] = 60",
        "fits = body + 8 <= self.frame_size_max",
        "def put_frame(target): pass",
        "def basic_publish(session): pass",
        "return b'x-publisher-id' in octets",
        "number = channels[channel + layout.CHANNEL_NUMBER]",
        "if number >= state[STATE_NUMBERS]: pass",
    ),
)
def test_octets_of_a_family_are_found_outside_its_room(source):
    assert faults(check.octets_known, source)


@pytest.mark.parametrize("source", ("seconds = 60", "x = body <= self.frame_size_max", "pair = b'\\x00\\x05queue'", "left = size - 8"))
def test_what_every_family_may_say_is_no_fault(source):
    assert faults(check.octets_known, source) == []


def test_no_neutral_file_knows_octets_of_a_family(monkeypatch):
    assert "amqp_0_9" in check.families() and "wire" not in check.families()
    assert list(check.octet_faults()) == []
    monkeypatch.setattr(check, "families", lambda: set("x"))
    told = {fault.split(":")[0] for fault in check.octet_faults()}
    assert {"core/amqp_0_9/hot_in.py", "core/amqp_0_9/hot_out.py", "c_accel/amqp_0_9_frame.h", "c_accel/amqp_0_9_ingest.c"} <= told


@pytest.mark.parametrize(
    "source",
    (
        "found = queues.get(name)",
        "def take(found): pass",
        "told = properties_of(message)",
        "def look_at(self, entry): pass",
        "for thing in things: pass",
        "queue, what = row",
        "self.found = 1",
        "def found(): pass",
        "_found = 1",
        "import queue as it",
        "try: pass\nexcept OSError as what: pass",
        "if (that := 1): pass",
    ),
)
def test_a_name_that_names_no_object_is_a_fault(source):
    assert faults(words.word_faults, source)


@pytest.mark.parametrize("source", ("queue = found", "x = self.what", "def found_queue(entry): pass", "'found'  # what it is"))
def test_other_names_and_uses_of_such_a_name_are_no_fault(source):
    assert faults(words.word_faults, source) == []
