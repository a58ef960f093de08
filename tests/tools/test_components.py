"""What a machine may or may not have is found by running or finding it, told by its name, and brought by one line (tools/components.py)."""

import os

import pytest

from leveret.tools import components
from leveret.tools.components import Component, apt_line, excuse, java_version, missing_packages, missing_sentence, shared_folder


@pytest.fixture
def program(tmp_path, monkeypatch):
    """program(name, script): puts a program on a PATH that has nothing else but the shell's."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def make(name, script, where=folder):
        where.mkdir(exist_ok=True, parents=True)
        path = where / name
        path.write_text("#!/bin/sh\n" + script + "\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.mark.parametrize(
    "script, version",
    [
        ("echo 'openjdk version \"17.0.9\" 2023-10-17' >&2", 17),
        ("echo 'java version \"1.8.0_392\"' >&2", 8),
        ("echo 'openjdk version \"21\" 2023'", 21),
        ("echo 'openjdk version \"17.0.9\"' >&2; exit 1", 0),
        ("echo nothing", 0),
    ],
)
def test_the_version_of_java_is_what_java_says(program, script, version):
    program("java", script)
    assert java_version() == version
    assert components.JAVA.present() == (version >= 17) and not components.JDK.present()


def test_java_is_that_of_java_home_where_there_is_one(program, tmp_path, monkeypatch):
    assert java_version() == 0
    program("java", "echo 'openjdk version \"11\"'")
    program("java", "echo 'openjdk version \"19\"'", tmp_path / "home" / "bin")
    assert java_version() == 11
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java_version() == 19
    program("java", "echo 'openjdk version \"17\"'", tmp_path / "home" / "bin")
    assert components.JAVA.present() and not components.JDK.present()
    program("javac", "exit 0")
    assert components.JDK.present()


def test_micropython_is_there_when_it_is_new_enough(program):
    assert not components.MICROPYTHON.present() and not components.MICROPYTHON_32.present()
    for told, there in (("1 24", True), ("1 23", False), ("2 0", True), ("words", False)):
        program("micropython", "echo '%s'" % told)
        assert components.MICROPYTHON.present() == there, told


def test_a_32_bit_micropython_counts_by_its_largest_number(program):
    program("micropython", "echo 9223372036854775807")
    assert not components.MICROPYTHON_32.present()
    program("micropython32", "echo 2147483647")
    assert components.MICROPYTHON_32.present()
    program("micropython32", "echo 2147483648")
    assert not components.MICROPYTHON_32.present()
    program("micropython", "echo 2147483647")
    assert components.MICROPYTHON_32.present(), "under its usual name too"


def test_a_program_that_is_on_the_path_is_there(program):
    assert not components.NODE.present() and not components.C_COMPILER.present()
    program("node", "")
    program("clang", "")
    assert components.NODE.present() and components.C_COMPILER.present() and components.CLANG.present()


def fake(name, there, packages=(), words=None, **given):
    return Component(name, words or (name.lower(),), f"{name}'s tests are left out", lambda: there, packages, **given)


def test_what_is_missing_is_told_with_the_one_line_that_brings_it(monkeypatch):
    one, two = fake("One", False, ("p1", "p2"), ("one", "uno")), fake("Two", False, ("p3",))
    monkeypatch.setattr(components, "ALL", (one, fake("Here", True, ("p4",)), fake("Elsewhere", False), two))
    assert missing_packages() == ["p1", "p2", "p3"]
    assert missing_sentence() == (
        "Missing here: One, Two; the tests that want them are left out. All of them: sudo apt-get install -y p1 p2 p3"
    )
    assert excuse("needs UNO to run") is one and excuse("no two here") is two
    assert excuse("here is not the reason") is None and excuse("nothing of that") is None
    monkeypatch.setattr(components, "ALL", (fake("Here", True, ("p4",)), fake("Elsewhere", False)))
    assert missing_packages() == [] and missing_sentence() == ""


def test_a_component_says_what_is_left_out_without_it_and_how_it_comes():
    assert fake("One", False, ("p1", "p2")).sentence() == (
        "One is missing, so One's tests are left out; install it with: sudo apt-get install -y p1 p2"
    )
    assert fake("One", False, ("p1",), install="magic").sentence().endswith("; install it with: magic")
    assert fake("One", False).sentence() == "One is missing, so One's tests are left out"
    assert apt_line(("a", "b")) == "sudo apt-get install -y a b"


def test_the_shared_folder_is_beside_the_clone_or_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv(components.SHARED_VARIABLE, str(tmp_path))
    assert shared_folder() == str(tmp_path) and components.SHARED.present()
    monkeypatch.setenv(components.SHARED_VARIABLE, str(tmp_path / "nowhere"))
    assert not components.SHARED.present()
    monkeypatch.delenv(components.SHARED_VARIABLE)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(components.__file__))))
    assert os.path.realpath(shared_folder()) == os.path.join(os.path.dirname(root), "shared") or shared_folder().endswith("shared")
