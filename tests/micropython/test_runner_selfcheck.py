"""Proves that the MicroPython runner can fail: each kind of bad test file must be reported as such, and the good one must pass.

The runner is called as `dev.py test` calls it, with files written for the purpose.
"""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))

GOOD = "def test_one():\n    assert 1 + 1 == 2\n\ndef test_two():\n    import sys\n    assert sys.implementation.name == 'micropython'\n"

BAD = {
    "assert": ("def test_fails():\n    assert 1 == 2, 'one is not two'\n", "AssertionError: one is not two"),
    "exception": ("def test_raises():\n    raise KeyError('lost')\n", "KeyError: lost"),
    "exit": ("def test_leaves():\n    import sys\n    sys.exit(0)\n", "SystemExit: 0"),
    "import": ("import no_such_module\n\ndef test_never():\n    pass\n", "no module named 'no_such_module'"),
    "syntax": ("def test_never(:\n    pass\n", "cannot be read: invalid syntax"),
    "hang": ("def test_hangs():\n    while True:\n        pass\n", "not done in 5 s: it hangs"),
    "empty": ("def helper():\n    pass\n", "holds no test"),
    "hidden": ("def test_never():\n    pass\n\ndel test_never\n\ndef test_done():\n    pass\n", "written in the file but not run"),
    "generator": ("def test_yields():\n    yield 1\n    assert False\n", "it is a generator"),
    "class": ("class TestThings:\n    def test_never(self):\n        assert False\n", "a class is not run here"),
    "argument": ("def test_fixture(tmp_path):\n    pass\n", "TypeError"),
    "heap": ("HEAP_KB = 64\n\ndef test_grows():\n    bytearray(65 * 1024)\n", "MemoryError"),
}


def run(*arguments):
    return subprocess.run(
        [sys.executable, os.path.join(HERE, "run.py"), "--interpreter", "wasm", *arguments], capture_output=True, text=True, timeout=1200
    )


def test_a_good_file_passes_and_is_counted(tmp_path):
    path = tmp_path / "test_good.py"
    path.write_text(GOOD)
    answer = run(str(path))
    assert answer.stdout.splitlines()[-1] == "2 passed, 0 failed", answer.stdout + answer.stderr
    assert answer.returncode == 0


@pytest.mark.parametrize("kind", sorted(BAD))
def test_a_bad_file_is_a_failure(tmp_path, kind):
    source, said = BAD[kind]
    path = tmp_path / ("test_%s.py" % kind)
    path.write_text(source)
    answer = run("--timeout", "5", str(path))
    assert answer.stdout.splitlines()[-1].endswith(" 1 failed"), answer.stdout + answer.stderr
    assert said in answer.stdout, answer.stdout
    assert answer.returncode == 1


def test_one_bad_file_does_not_hide_the_good_one(tmp_path):
    (tmp_path / "test_good.py").write_text(GOOD)
    (tmp_path / "test_import.py").write_text(BAD["import"][0])
    answer = run(str(tmp_path / "test_import.py"), str(tmp_path / "test_good.py"))
    assert answer.stdout.splitlines()[-1] == "2 passed, 1 failed", answer.stdout + answer.stderr
    assert answer.returncode == 1


def test_a_file_that_is_not_there_is_a_failure(tmp_path):
    answer = run(str(tmp_path / "test_absent.py"))
    assert answer.stdout.splitlines()[-1] == "0 passed, 1 failed", answer.stdout + answer.stderr
    assert answer.returncode == 1
