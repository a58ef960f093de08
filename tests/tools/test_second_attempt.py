"""The second attempt of `dev.py test`: what fails twice has failed, what passes alone is told, and both attempts have the same seeds."""

import os
import sys
import tempfile

import pytest

from leveret.tools.devtool import environment, legs, second_attempt, seeds, unsteady
from leveret.tools.devtool.legs import Leg
from leveret.tools.devtool.outcomes import Outcome

FAILS_ONCE = """
import os
import pytest

class TestPlaces:
    @pytest.mark.parametrize("place", ["a::b/c.py", "[d]"])
    def test_once(self, place):
        mark = "failed " + place.replace("/", "-")
        if not os.path.exists(mark):
            open(mark, "w").close()
            raise AssertionError("only this once")
"""
FAILS = "def test_always(): assert 0\n"
PASSES = "def test_good(): pass\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(source, CI=...) -> exit status of a whole run with one leg over one file."""
    monkeypatch.setattr(legs, "ROOT", str(tmp_path))
    monkeypatch.setattr(environment, "LOGS", str(tmp_path))
    monkeypatch.setenv(unsteady.VARIABLE, str(tmp_path / "kept" / "unsteady.json"))
    for name in seeds.NAMES:
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setattr(legs, "LEGS", (Leg("small", "CPython", paths=("tests",), minutes_max=1),))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    (tmp_path / "tests").mkdir()

    def make(source):
        (tmp_path / "tests" / "test_it.py").write_text(source)
        return legs.run(sys.executable, [])

    return make


def test_a_test_that_fails_once_is_counted_as_passed_and_named_everywhere(run, tmp_path, capsys):
    assert run(FAILS_ONCE + PASSES) == 0
    told = capsys.readouterr().out
    name = "unsteady: tests/test_it.py::TestPlaces::test_once[[d]] (failed once, passed alone)"
    line = next(line for line in told.split("\n") if line.startswith("small: "))
    table, verdict = told.split("leg  ", 1)[1].split("VERDICT: passed")
    assert line.startswith("small: ok, 3 passed, 0 failed, 0 skipped") and name in line and name in table and name in verdict
    assert told.endswith("\n3 passed, 0 failed\n")
    assert "only this once" in told and "only this once" in (tmp_path / "small.log").read_text()


def test_a_test_that_fails_twice_has_failed_beside_one_that_is_unsteady(run, capsys):
    assert run(FAILS_ONCE + FAILS + PASSES) == 1
    told = capsys.readouterr().out
    assert "VERDICT: FAILED\n  small: 1 failed\n  unsteady: tests/test_it.py::TestPlaces::test_once" in told
    assert told.endswith("\n3 passed, 1 failed\n") and "test_always (failed once" not in told


def test_more_failures_than_a_few_have_no_second_attempt(run, tmp_path, capsys):
    once = (
        'import os, pytest\n@pytest.mark.parametrize("n", range(%d))\n'
        'def test_n(n):\n    assert os.path.exists(str(n)), open(str(n), "w")\n'
    )
    assert run(once % (second_attempt.FAILURES_MAX + 1)) == 1
    assert capsys.readouterr().out.endswith("\n0 passed, 6 failed\n") and not (tmp_path / "small.second.log").exists()
    for mark in range(second_attempt.FAILURES_MAX + 1):
        (tmp_path / str(mark)).unlink()
    assert run(once % second_attempt.FAILURES_MAX) == 0


def test_what_is_skipped_the_second_time_has_failed(run, capsys):
    assert run(FAILS_ONCE.replace("if not", "if os.path.exists(mark): pytest.skip('no')\n        if not")) == 1
    assert capsys.readouterr().out.endswith("\n0 passed, 2 failed\n")


def test_an_error_at_a_tests_end_fails_it_and_counts_once(run, capsys):
    fixture = "import pytest\n@pytest.fixture\ndef f():\n    yield\n    raise OSError\n"
    assert run(fixture + "def test_a(f): assert 0\ndef test_b(f): pass\n") == 1
    assert capsys.readouterr().out.endswith("\n0 passed, 2 failed\n")


def test_a_file_that_cannot_be_imported_is_not_tried_again(run, tmp_path):
    assert run("import there_is_no_such_module\n") == 1
    assert not (tmp_path / "small.second.log").exists()


def test_a_leg_that_is_stopped_for_its_time_is_not_run_again(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(legs, "LEGS", (Leg("small", "CPython", paths=("tests",), minutes_max=0.05),))
    assert run("import time\ndef test_a(): assert 0\ndef test_b(): time.sleep(60)\n") == 1
    assert "was stopped" in capsys.readouterr().out and not (tmp_path / "small.second.log").exists()


def test_a_command_is_not_run_again(run, tmp_path, monkeypatch, capsys):
    command = ("-c", "open('count', 'a').write('x'); print('1 passed, 1 failed'); raise SystemExit(1)")
    monkeypatch.setattr(legs, "LEGS", (Leg("small", "CPython", command=command, minutes_max=1),))
    assert run("") == 1
    assert (tmp_path / "count").read_text() == "x" and capsys.readouterr().out.endswith("\n1 passed, 1 failed\n")


def test_both_attempts_have_the_seeds_that_the_run_says(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LEVERET_FUZZ_SEED", "7")
    names = list(seeds.NAMES)
    assert (
        run(
            "import os\ndef test_seeds():\n    told = ' '.join(n + '=' + os.environ[n] for n in %r)\n"
            "    open('seeds', 'a').write(told + '\\n')\n    assert 0\n" % names
        )
        == 1
    )
    first, second = (tmp_path / "seeds").read_text().splitlines()
    assert first == second and "LEVERET_FUZZ_SEED=7 " in first
    assert "seeds: " + first + "\n" in capsys.readouterr().out


def test_what_a_leg_leaves_among_the_temporary_files_is_removed_however_it_ends(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "place"))
    (tmp_path / "place").mkdir()
    source = "import os, tempfile\ndef test_a():\n    open('where', 'a').write(tempfile.mkdtemp() + '\\n')\n    %s\n"
    for ending in ("assert 0", "os.kill(os.getpid(), 9)"):
        assert run(source % ending) == 1
    places = (tmp_path / "where").read_text().split()
    assert len(places) == 3 and all(place.startswith(str(tmp_path / "place") + os.sep) for place in places)
    assert not list((tmp_path / "place").iterdir())


def test_seeds_differ_from_run_to_run():
    assert seeds.choose({}) != seeds.choose({})
    assert list(seeds.choose({})) == list(seeds.NAMES)


def test_nothing_is_tried_again_when_the_record_and_the_count_disagree():
    outcome = Outcome(failed=2)
    outcome.failures = ["one"]
    assert not second_attempt.deserved(outcome, 1)
