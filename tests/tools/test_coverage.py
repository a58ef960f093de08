"""The coverage of a leg is measured and told in its line (tools/devtool/coverage.py)."""

import os
import sys

import pytest

from leveret.tools.devtool import coverage, environment, legs
from leveret.tools.devtool.legs import Leg


@pytest.fixture
def leg(tmp_path, monkeypatch):
    """A leg that covers a core/ of four lines (def, if, and its two ends), of which the test runs three."""
    monkeypatch.setattr(legs, "ROOT", str(tmp_path))
    monkeypatch.setattr(environment, "LOGS", str(tmp_path))
    for folder in ("core", "ports", "tools", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\npythonpath = core\n")
    (tmp_path / "core" / "small.py").write_text("def f(x):\n    if x:\n        return 1\n    return 2\n")
    (tmp_path / "tests" / "test_it.py").write_text("import small\ndef test_f():\n    assert small.f(1) == 1\n")
    return Leg("small", "CPython", paths=("tests",), minutes_max=2, covers=True)


def outcome_of(leg):
    step = legs._run_leg(leg, sys.executable, "1/1")
    while True:
        try:
            next(step)
        except StopIteration as ended:
            return ended.value


def test_the_line_of_a_leg_says_how_many_of_the_lines_its_tests_run(leg, tmp_path, capsys):
    outcome = outcome_of(leg)
    legs._tell(leg, outcome)
    assert (outcome.passed, outcome.failed) == (1, 0)
    assert coverage.lines_of(str(tmp_path / "small.lines.json")) == {"core": (3, 4)}
    assert ", coverage: core 75 %" in capsys.readouterr().out


def test_a_leg_still_runs_and_fails_as_without_it(leg, tmp_path):
    (tmp_path / "tests" / "test_it.py").write_text("def test_f():\n    assert 0\n")
    outcome = outcome_of(leg)
    assert (outcome.passed, outcome.failed, outcome.failures) == (0, 1, ["tests/test_it.py::test_f"])


def test_without_slipcover_the_leg_runs_and_says_that_nothing_was_measured(leg, monkeypatch, capsys):
    monkeypatch.setattr(coverage, "is_installed", lambda python: False)
    outcome = outcome_of(leg)
    legs._tell(leg, outcome)
    assert outcome.good() and coverage.NOT_MEASURED in capsys.readouterr().out


def test_the_unit_leg_measures_the_product():
    assert [leg.name for leg in legs.LEGS if leg.covers] == ["unit"]
    assert all(os.path.isdir(os.path.join(environment.ROOT, folder)) for folder in coverage.FOLDERS)


def test_the_interpreter_that_runs_the_leg_is_asked(tmp_path):
    bare = tmp_path / "python"
    bare.write_text('#!/bin/sh\nexec %s -S -I "$@"\n' % sys.executable)
    bare.chmod(0o755)
    assert coverage.is_installed(sys.executable) and not coverage.is_installed(str(bare))
