"""How `dev.py test` judges its legs: nothing that should have run and did not may look like a success."""

import subprocess
import sys
import time

import pytest

from leveret.tools import components
from leveret.tools.devtool import legs, outcomes, progress
from leveret.tools.devtool.legs import Leg
from leveret.tools.devtool.outcomes import Outcome


def run_pytest(directory, source):
    """(Outcome as a leg would judge it) of a real pytest run over one file."""
    (directory / "test_it.py").write_text(source)
    record = str(directory / "record.xml")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(directory), "--junitxml", record, str(directory)],
        capture_output=True,
    )
    outcome, reasons = outcomes.read_junit(record)
    return outcomes.judge(outcome, done.returncode, reasons)


@pytest.fixture
def without_amqp_tools(monkeypatch):
    monkeypatch.setattr(components.AMQP_TOOLS, "find", lambda: False)


@pytest.fixture
def with_amqp_tools(monkeypatch):
    monkeypatch.setattr(components.AMQP_TOOLS, "find", lambda: True)


SKIPS = "import pytest\ndef test_a(): pass\n@pytest.mark.skip(reason={!r})\ndef test_b(): pass\n"


def test_passes_and_failures_are_counted(tmp_path):
    outcome = run_pytest(tmp_path, "def test_a(): pass\ndef test_b(): assert 0\ndef test_c(): pass\n")
    assert (outcome.passed, outcome.failed, outcome.skipped, outcome.good()) == (2, 1, 0, False)


def test_an_error_in_a_fixture_counts_as_failed(tmp_path):
    outcome = run_pytest(tmp_path, "import pytest\n@pytest.fixture\ndef f(): raise OSError\ndef test_a(f): pass\n")
    assert (outcome.passed, outcome.failed) == (0, 1)


def test_a_file_that_cannot_be_imported_fails_the_leg(tmp_path):
    outcome = run_pytest(tmp_path, "import there_is_no_such_module\n")
    assert outcome.failed == 1 and not outcome.good()


def test_a_leg_without_tests_fails(tmp_path):
    assert run_pytest(tmp_path, "").complaint == "it ran no test"


def test_a_skip_that_names_nothing_missing_fails(tmp_path, with_amqp_tools):
    assert "too slow" in run_pytest(tmp_path, SKIPS.format("too slow")).complaint
    assert "amqp-tools" in run_pytest(tmp_path, SKIPS.format("amqp-tools is missing")).complaint


def test_a_skip_for_a_missing_component_is_told_and_passes(tmp_path, without_amqp_tools):
    outcome = run_pytest(tmp_path, SKIPS.format("amqp-tools is missing"))
    assert outcome.good() and outcome.skipped == 1 and outcome.excused == [components.AMQP_TOOLS]


def test_an_expected_failure_is_a_skip_without_reason_and_fails(tmp_path):
    outcome = run_pytest(tmp_path, "import pytest\ndef test_a(): pass\n@pytest.mark.xfail\ndef test_b(): assert 0\n")
    assert outcome.complaint


def test_an_expected_failure_with_its_reason_is_counted_apart(tmp_path):
    outcome = run_pytest(tmp_path, "import pytest\ndef test_a(): pass\n@pytest.mark.xfail(reason='not yet')\ndef test_b(): assert 0\n")
    assert (outcome.passed, outcome.skipped, outcome.awaited, outcome.good()) == (1, 0, 1, True)


def test_a_record_that_is_not_there_fails(tmp_path):
    outcome, _ = outcomes.read_junit(str(tmp_path / "absent.xml"))
    assert outcome.complaint


@pytest.mark.parametrize(
    "text, passed, failed, complaint",
    [
        ("1 passed, 0 failed\nmore\n7 passed, 0 failed\n", 7, 0, False),
        ("3 passed, 2 failed\n", 3, 2, False),
        ("all is well\n", 0, 0, True),
        ("0 passed, 0 failed\n", 0, 0, True),
        ("5 passed, 0 failed, 1 skipped\n", 5, 0, True),
    ],
)
def test_the_summary_of_a_runner(tmp_path, text, passed, failed, complaint):
    log = tmp_path / "log"
    log.write_text(text)
    outcome = outcomes.judge(outcomes.read_summary(str(log)), 1 if failed else 0)
    assert (outcome.passed, outcome.failed, bool(outcome.complaint)) == (passed, failed, complaint)


def test_an_exit_status_without_a_failed_test_fails(tmp_path):
    assert outcomes.judge(Outcome(passed=3), 1).complaint == "it ended with exit status 1"


def test_ci_makes_a_left_out_leg_a_fault_but_for_what_may_be_missing():
    without_java, without_binary = Outcome(left_out=components.JAVA), Outcome(left_out=components.MICROPYTHON)
    assert legs.faults(Leg("spark", "-"), without_java, strict=False) == []
    assert len(legs.faults(Leg("spark", "-"), without_java, strict=True)) == 1
    assert legs.faults(Leg("unit-micropython", "-"), without_binary, strict=True) == []


def test_only_what_a_machine_may_lack_for_a_reason_may_be_left_out_in_ci():
    """Binaries that no package of Debian has, a module that Python 3.13 has no longer, a right, the workplace."""
    left_out = [component for component in components.ALL if component.may_be_left_out]
    assert left_out == [
        components.MICROPYTHON_32,
        components.MICROPYTHON,
        components.RABBITMQADMIN_2,
        components.TO_PYTHON_3,
        components.SMALL_DISK,
        components.SHARED,
    ]


def test_ci_makes_an_excused_skip_a_fault():
    outcome = Outcome(passed=1, skipped=1)
    outcome.excused.append(components.AMQP_TOOLS)
    assert legs.faults(Leg("interop", "-"), outcome, strict=False) == []
    assert len(legs.faults(Leg("interop", "-"), outcome, strict=True)) == 1
    outcome.excused[0] = components.MICROPYTHON
    assert legs.faults(Leg("interop", "-"), outcome, strict=True) == []


def test_the_last_line_counts_a_leg_that_failed_without_a_test(capsys):
    outcomes = (Outcome(passed=2), Outcome(complaint="it ran no test"), Outcome(passed=1, failed=3))
    done = [(Leg(str(number), "-"), outcome) for number, outcome in enumerate(outcomes)]
    assert legs._verdict(done, strict=False) == 1
    assert capsys.readouterr().out.rstrip().split("\n")[-1] == "3 passed, 4 failed"


def test_an_unknown_leg_is_refused_with_the_list(capsys):
    with pytest.raises(SystemExit) as ended:
        legs.refuse_unknown(["unit", "speed"])
    assert ended.value.code == 2 and "'speed'" in capsys.readouterr().err


def running(process):
    """True while a process lives; one that has ended and waits to be collected does not."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_child_that_outlives_its_time_is_ended_with_its_own_children(tmp_path):
    log = str(tmp_path / "log")
    with pytest.raises(progress.TimedOut):
        progress.run("sleeping", ["sh", "-c", "sleep 600 & echo $!; wait"], log, 5)
    with open(log) as file:
        grandchild = int(file.read())
    limit = time.monotonic() + 30
    while running(grandchild) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not running(grandchild)


def test_every_component_says_what_is_missing_and_the_command_that_installs_it():
    for component in components.ALL:
        told = component.sentence()
        assert component.name in told and "\n" not in told
        assert "install it with: sudo " in told or component in (
            components.SHARED,
            components.TO_PYTHON_3,
            components.RABBITMQADMIN_2,
        )  # which no package of Debian has


def test_one_line_says_everything_that_is_missing_and_installs_it(monkeypatch):
    for component in components.ALL:
        monkeypatch.setattr(component, "find", lambda component=component: component not in (components.CLANG, components.AMQP_TOOLS))
    assert components.missing_packages() == ["amqp-tools", "clang"]
    told = components.missing_sentence()
    assert told.startswith("Missing here: amqp-tools, clang;") and told.endswith("sudo apt-get install -y amqp-tools clang")
    for component in (components.CLANG, components.AMQP_TOOLS):
        monkeypatch.setattr(component, "find", lambda: True)
    assert components.missing_sentence() == ""


def test_no_leg_but_shared_is_told_where_the_workplace_is(tmp_path, monkeypatch):
    monkeypatch.setattr(legs, "ROOT", str(tmp_path))
    monkeypatch.setattr(legs.environment, "LOGS", str(tmp_path))
    monkeypatch.setenv(components.SHARED_VARIABLE, str(tmp_path))
    command = ("-c", "import os; print('%d passed, 0 failed' % (1 + ('LEVERET_SHARED' in os.environ)))")
    chosen = [Leg("other", "-", command=command), Leg("shared", "-", command=command, needs=components.SHARED)]
    ended = dict(progress.side_by_side([legs._run_leg(leg, sys.executable, "1/1") for leg in chosen], 2))
    assert [ended[number].passed for number in (0, 1)] == [1, 2]


def test_steps_run_side_by_side_and_no_more_than_were_asked_for(tmp_path):
    starts = "import sys, time, pathlib; pathlib.Path(sys.argv[1]).write_text(''); end = time.time() + 60\n"
    meets = starts + "while not pathlib.Path(sys.argv[2]).exists() and time.time() < end: time.sleep(0.05)\nsys.exit(time.time() >= end)"
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    steps = [
        progress.step(name, [sys.executable, "-c", meets, mine, other], str(tmp_path / (name + ".log")), 120)
        for name, mine, other in (("one", a, b), ("two", b, a))
    ]
    assert dict(progress.side_by_side(steps, 2)) == {0: 0, 1: 0}
    seen = []

    def step(number):
        seen.append(number)
        yield progress.Line(str(number), str(tmp_path / "none"))
        seen.append(-number)

    list(progress.side_by_side([step(number) for number in (1, 2, 3)], 1))
    assert seen == [1, -1, 2, -2, 3, -3]


def test_steps_that_are_given_up_end_their_children(tmp_path):
    log = str(tmp_path / "log")
    running_steps = progress.side_by_side([progress.step("long", ["sh", "-c", "echo $$; exec sleep 600"], log, 600), iter(())], 2)
    next(running_steps)  # the second one has ended at once
    limit = time.monotonic() + 30
    while not open(log).read().strip() and time.monotonic() < limit:
        time.sleep(0.05)
    child = int(open(log).read())
    assert running(child)
    running_steps.close()
    assert not running(child)


@pytest.mark.parametrize("value, strict", [("true", True), ("True", True), ("1", True), ("yes", True), ("false", False), ("", False)])
def test_ci_in_the_environment_makes_a_run_strict(tmp_path, monkeypatch, value, strict):
    monkeypatch.setattr(legs, "LEGS", ())
    monkeypatch.setattr(legs, "_verdict", lambda done, strict, repeats: strict)
    monkeypatch.setenv(legs.unsteady.VARIABLE, str(tmp_path / "unsteady.json"))
    monkeypatch.setattr(legs, "_table", lambda done: None)
    for name in legs.seeds.NAMES:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("CI", value)
    assert legs.run(sys.executable, []) is strict
