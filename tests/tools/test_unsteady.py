"""Unsteady tests are remembered over runs (tools/devtool/unsteady.py): what is forgiven once is not forgiven again soon."""

import datetime
import os
import subprocess

import pytest
from test_second_attempt import FAILS_ONCE, PASSES, run

from leveret.tools.devtool import environment, unsteady

TODAY = datetime.date(2026, 11, 22)
__all__ = ["run"]  # the fixture


@pytest.fixture
def remember(tmp_path):
    return lambda *names, excused=(): unsteady.remember(names, str(tmp_path / "kept" / "file.json"), dict(excused), TODAY)


def forget_marks(directory):
    """Have the tests of FAILS_ONCE fail once more."""
    for mark in directory.glob("failed *"):
        mark.unlink()


def test_a_test_that_is_unsteady_in_two_runs_fails_the_second(run, tmp_path, capsys):
    assert run(FAILS_ONCE + PASSES) == 0
    forget_marks(tmp_path)
    assert run(FAILS_ONCE + PASSES) == 1
    told = capsys.readouterr().out
    assert "VERDICT: FAILED\n  tests/test_it.py::TestPlaces::test_once[a::b/c.py] was unsteady 1 runs ago and is so again" in told
    assert told.endswith("\n3 passed, 2 failed\n")


def test_a_steady_run_between_does_not_make_it_forgotten(run, tmp_path):
    assert [run(FAILS_ONCE), run(FAILS_ONCE)] == [0, 0]
    forget_marks(tmp_path)
    assert run(FAILS_ONCE) == 1


def test_so_many_runs_later_it_is_forgotten_and_not_one_earlier(remember):
    for between, fails in ((unsteady.RUNS - 1, True), (unsteady.RUNS, False)):
        name = f"after {between}"
        assert remember(name) == []
        for _ in range(between):
            assert remember() == []
        assert bool(remember(name)) == fails, between


def test_another_test_that_is_unsteady_is_none_that_repeats(remember):
    assert [remember("a"), remember("b"), remember("c", "d")] == [[], [], []]
    assert [line.split()[0] for line in remember("e", "d", "a")] == ["d", "a"]


def test_one_that_is_excused_does_not_fail_until_its_day_is_over(remember):
    day = datetime.timedelta(days=1)
    assert remember("a") == []
    assert remember("a", excused={"a": ("a reason", TODAY)}) == []
    assert remember("a", excused={"a": ("a reason", TODAY + day), "b": ("of another", TODAY)}) == []
    assert len(remember("a", excused={"a": ("a reason", TODAY - day)})) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"runs": 1}', '{"runs": "x", "unsteady": {}}', '{"runs": 1, "unsteady": ["a"]}'])
def test_a_broken_memory_is_an_empty_one(remember, tmp_path, text):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file.json").write_text(text)
    assert remember("a") == [] and len(remember("a")) == 1


@pytest.mark.parametrize(
    "entry",
    [
        'name = "a"\nuntil = 2026-12-01',
        'name = "a"\nreason = " "\nuntil = 2026-12-01',
        'name = "a"\nreason = "r"',
        'name = "a"\nreason = "r"\nuntil = "soon"',
    ],
)
def test_an_excuse_has_a_reason_and_a_day(tmp_path, entry):
    path = tmp_path / "unsteady.toml"
    path.write_text("[[test]]\n" + entry + "\n")
    with pytest.raises(ValueError, match="an entry has a name, a reason"):
        unsteady.read_excused(str(path))
    path.write_text('[[test]]\nname = "a"\nreason = "r"\nuntil = 2026-12-01\n')
    assert unsteady.read_excused(str(path)) == {"a": ("r", datetime.date(2026, 12, 1))}


def test_the_committed_excuses_name_tests_that_are_there_and_end_within_a_month():
    for name, (_, until) in unsteady.read_excused().items():
        assert os.path.exists(os.path.join(environment.ROOT, name.split("::")[0])), name
        assert until <= datetime.date.today() + datetime.timedelta(days=31), name


def test_ci_keeps_the_memory_in_its_own_checkout_and_developers_in_theirs(monkeypatch):
    """CI tests a copy that is thrown away; .cache is no part of the tree."""
    monkeypatch.delenv(unsteady.VARIABLE, raising=False)
    assert unsteady.place() == os.path.join(environment.ROOT, ".cache", "unsteady.json")
    with open(os.path.join(environment.ROOT, ".ci", "run"), encoding="utf-8") as file:
        script = file.read()
    lines = script[script.index("mkdir -p .cache") :].split("\n")[:3]
    assert script.index("mkdir -p .cache") < script.index('cd "$copy/leveret"')
    said = subprocess.run(["bash", "-c", "\n".join(lines[1:]) + "\nenv"], capture_output=True, text=True, cwd="/").stdout
    assert f"\n{unsteady.VARIABLE}=//.cache/unsteady.json\n" in said
