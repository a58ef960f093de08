"""The legs of `dev.py test`: what each runs, what it needs, and how its outcome is judged.

Laws: each leg is a child process with its own log. A leg whose requirement is there but that ran nothing, or that skipped a test
without naming a component that is really missing, fails. A leg without its requirement is left out and says why; with CI set in the
environment that fails the run too, except for a `micropython` binary, which Debian does not have new enough.
A few failed tests of pytest have a second attempt (second_attempt.py); one that needs it again within some runs fails (unsteady.py).
All legs get the same seeds (seeds.py).
Three legs run side by side where there are two cores: the longest first, and beside two that compute one that mostly waits.
What wants ../shared (series, specifications of the workplace) is in the leg "shared" alone: every other leg is the same with nothing beside
the clone. The texts of boards are made once for all legs (kept.py).
The last line of a run is `N passed, N failed`, summed over the legs.
"""

import datetime
import os
import sys
import tempfile
import time

from .. import components, kept
from . import coverage, environment, progress, second_attempt, seeds, unsteady
from .outcomes import Outcome, judge, read_junit, read_summary

ROOT = environment.ROOT
MICROPYTHON_RUNNER = os.path.join("tests", "micropython", "run.py")
EXIT_MISSING = 2
SECOND = ".second"
# The long legs wait for clocks and other processes for more than half of their time (attack: 84 s of processor time in 217 s, bridge 76 in
# 224, serial 29 in 78): three of them use two cores.
SIDE_BY_SIDE = 3 if (os.cpu_count() or 1) > 1 else 1


class Leg:
    """One row of the table: `paths` are pytest's, or `command` is run as it stands and ends with `N passed, N failed`.

    `covers`: how much of the product its tests run is measured and told. `options`: pytest's.
    Without what it `needs` a leg is left out. What it `brings` it gets by itself where it can, and ends with EXIT_MISSING where not.
    """

    def __init__(self, name, interpreter, paths=(), command=None, needs=None, brings=None, minutes_max=50, covers=False, options=()):
        self.name = name
        self.interpreter = interpreter
        self.paths = paths
        self.command = command
        self.needs = needs
        self.brings = brings
        self.minutes_max = minutes_max
        self.covers = covers
        self.options = options
        self.processor_s: list = []  # of each attempt that has ended


# For tests that are short calls, more than a thousand of them, which log nothing and print nothing: each plugin has a part in each call,
# and asserts that tell their values are a tenth of the leg where nothing is compiled yet. The second attempt has them.
PLAIN = ("-p", "no:logging", "-p", "no:hypothesispytest", "--capture=sys", "--assert=plain")

LEGS = (
    Leg("check", "CPython", command=("-m", "leveret.tools.devtool.check")),
    Leg("unit", "CPython", paths=("tests/unit",), covers=True, options=PLAIN),
    Leg("spark", "CPython + Java", paths=("tests/spark",), needs=components.JAVA, minutes_max=60),
    Leg("interop_1_0", "CPython", paths=("tests/interop_1_0",)),
    Leg("unit-wasm", "MicroPython WASM", command=(MICROPYTHON_RUNNER, "--interpreter", "wasm"), brings=components.NODE),
    Leg("tools", "CPython", paths=("tests/tools",)),
    Leg("interop", "CPython", paths=("tests/interop",)),
    Leg("cpu", "CPython, C", paths=("tests/cpu",), needs=components.C_COMPILER),
    Leg("simulate", "CPython", paths=("tests/simulate",)),
    Leg("bridge", "CPython", paths=("tests/bridge",)),
    Leg("board", "MicroPython WASM", paths=("tests/board",), brings=components.NODE),
    Leg("micropython-interop", "MicroPython WASM", paths=("tests/micropython",), brings=components.NODE),
    Leg("attack", "CPython", paths=("tests/attack",)),
    Leg("durable", "CPython", paths=("tests/durable",)),
    Leg("accel", "CPython, C", paths=("tests/accel",), needs=components.C_COMPILER),
    Leg("package", "CPython", paths=("tests/package",), needs=components.C_COMPILER),
    Leg("suites", "CPython", paths=("tests/suites",)),
    Leg("wire", "CPython", paths=("tests/fuzz", "tests/vectors", "tests/memory")),
    Leg("http", "CPython", paths=("tests/http",)),
    Leg("serial", "CPython", paths=("tests/serial",)),
    Leg("unit-micropython", "MicroPython binary", command=(MICROPYTHON_RUNNER, "--interpreter", "unix"), needs=components.MICROPYTHON),
    Leg("shared", "CPython", paths=("tests/shared",), needs=components.SHARED),
)


def refuse_unknown(names):
    known = [leg.name for leg in LEGS]
    for name in names:
        if name not in known:
            print(f"There is no leg {name!r}; the legs are: {', '.join(known)}", file=sys.stderr)
            sys.exit(2)


def _log_of(leg, attempt=""):
    return os.path.join(environment.LOGS, leg.name + attempt + ".log")


def _record_of(leg, attempt=""):
    return os.path.join(environment.LOGS, leg.name + attempt + ".xml")


def _coverage_of(leg):
    return os.path.join(environment.LOGS, leg.name + ".lines.json")


# Legs are generators, as progress.step is: some of them are advanced in turn.


def _run(leg, command, attempt=""):
    """Exit status of a leg's command. Its temporary files are in a directory of its own, which goes with whatever was left in it."""
    with tempfile.TemporaryDirectory(prefix="leveret-test-", ignore_cleanup_errors=True) as directory:
        given = dict(environment.child_environment(), TMPDIR=directory)
        if leg.needs is not components.SHARED:
            given.pop(components.SHARED_VARIABLE, None)
        log = _log_of(leg, attempt)
        return (yield from progress.step(leg.name + attempt, command, log, leg.minutes_max * 60, given, ROOT, leg.processor_s))


def _run_pytest(leg, python, names, attempt=""):
    """Exit status of pytest over `names`; its record has each test's file (xunit1), so that the test can be named again."""
    record = _record_of(leg, attempt)
    measured = coverage.wrapper(python, _coverage_of(leg)) if leg.covers and not attempt else []
    options = leg.options if not attempt else ()
    command = [python, *measured, "-m", "pytest", "-q", "-o", "junit_family=xunit1", "--junitxml", record, *options, *names]
    return (yield from _run(leg, command, attempt))


def _run_leg(leg, python, place):
    """The leg's Outcome, with the seconds that it took. `place`: as "2/17"."""
    progress.clear()
    print(f"[{place}] {leg.name} ({leg.interpreter})", flush=True)
    began = time.monotonic()
    if leg.needs is not None and not leg.needs.present():
        return Outcome(left_out=leg.needs)
    outcome = yield from _judged(leg, python)
    outcome.seconds = time.monotonic() - began
    return outcome


def _judged(leg, python):
    record = _record_of(leg)
    for path in (record, _coverage_of(leg), _log_of(leg, SECOND)):
        if os.path.exists(path):
            os.remove(path)
    missing = [path for path in leg.paths if not os.path.isdir(os.path.join(ROOT, path))]
    if missing:
        return Outcome(complaint=f"{', '.join(missing)} is not there")
    try:
        status = yield from (_run(leg, [python, *leg.command]) if leg.command else _run_pytest(leg, python, leg.paths))
    except progress.TimedOut:
        return Outcome(complaint=f"it did not end within {leg.minutes_max} minutes and was stopped")
    if leg.brings and leg.command and status == EXIT_MISSING and not leg.brings.present():
        return Outcome(left_out=leg.brings)
    if leg.command:
        return judge(read_summary(_log_of(leg)), status)
    outcome, reasons = read_junit(record)
    if leg.covers:
        outcome.coverage = coverage.sentence(_coverage_of(leg))
    if second_attempt.deserved(outcome, status):
        again = second_attempt.make(leg.name, outcome, lambda names: _run_pytest(leg, python, names, SECOND), _record_of(leg, SECOND))
        status = yield from again
    return judge(outcome, status, reasons)


def _tell(leg, outcome):
    if outcome.left_out:
        print(f"{leg.name}: left out. {outcome.left_out.sentence()}", flush=True)
        return
    word = "ok" if outcome.good() else "FAILED"
    print(
        f"{leg.name}: {word}, {outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped, {outcome.seconds:.0f} s, "
        f"{sum(leg.processor_s):.0f} s of the processor",
        *filter(None, [f"{outcome.awaited} not served yet" if outcome.awaited else "", outcome.coverage]),
        *second_attempt.sentences(outcome),
        sep=", ",
        flush=True,
    )
    for component in outcome.excused:
        print(f"  {component.sentence()}")
    if outcome.unsteady or not outcome.good():
        _tell_failure(leg, outcome)


def _tell_failure(leg, outcome):
    """The tail of the first attempt's output, which is where a failure is told, also that of an unsteady test."""
    if outcome.complaint:
        print(f"  {outcome.complaint}")
    if os.path.exists(_log_of(leg)):
        with open(_log_of(leg), errors="replace") as file:
            for line in file.read().rstrip().split("\n")[-40:]:
                print("    " + line)
    print("  log:", *(path for path in (_log_of(leg), _log_of(leg, SECOND)) if os.path.exists(path)), flush=True)


def _table(done):
    rows = [("leg", "interpreter", "passed", "failed", "skipped", "processor s", "seconds")]
    for leg, outcome in done:
        if outcome.left_out:
            rows.append((leg.name, leg.interpreter, "-", "-", "-", "-", f"left out: {outcome.left_out.name} is missing"))
        else:
            counts = [str(number) for number in (outcome.passed, outcome.failed, outcome.skipped, round(sum(leg.processor_s)))]
            rows.append((leg.name, leg.interpreter, *counts, ", ".join((f"{outcome.seconds:.0f}", *second_attempt.sentences(outcome)))))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        names = f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}"
        numbers = "  ".join(f"{row[column]:>{widths[column]}}" for column in range(2, 6))
        print(f"{names}  {numbers}  {row[6]}")
    print(f"all legs: {sum(sum(leg.processor_s) for leg, _ in done):.0f} s of the processor")


def faults(leg, outcome, strict):
    """The sentences that make a run fail. `strict` (CI): what was left out, but for a component that may be missing, is a fault."""
    reasons = []
    missing = [component for component in (outcome.left_out, *outcome.excused) if component and not component.may_be_left_out]
    if strict and missing:
        reasons.append(f"{leg.name}: left out tests ({', '.join(component.name for component in missing)} is missing), and CI is set")
    if outcome.failed:
        reasons.append(f"{leg.name}: {outcome.failed} failed")
    if outcome.complaint:
        reasons.append(f"{leg.name}: {outcome.complaint}")
    return reasons


def _verdict(done, strict, repeats=()):
    """The exit status. `repeats`: sentences of tests that are unsteady again."""
    failures = list(repeats)
    passed, failed = 0, len(failures)
    for leg, outcome in done:
        reasons = faults(leg, outcome, strict)
        failures += reasons
        passed += outcome.passed
        # A leg that fails without a failed test still counts as one failure, so that the last line alone tells the truth.
        failed += outcome.failed or bool(reasons)
    left_out = [leg.name for leg, outcome in done if outcome.left_out]
    forgiven = [sentence for _, outcome in done for sentence in second_attempt.sentences(outcome)]
    if failures:
        print("\nVERDICT: FAILED\n" + "\n".join("  " + fault for fault in failures))
    else:
        print("\nVERDICT: passed" + (f" (left out: {', '.join(left_out)})" if left_out else ""))
    for sentence in forgiven:
        print("  " + sentence)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failures else 0


def _run_legs(chosen, python):
    """[(leg, its Outcome)], told as they end."""
    by_number = {}
    steps = [_run_leg(leg, python, f"{number}/{len(chosen)}") for number, leg in enumerate(chosen, 1)]
    for number, outcome in progress.side_by_side(steps, SIDE_BY_SIDE):
        by_number[number] = (chosen[number], outcome)
        _tell(*by_number[number])
    return [by_number[number] for number in sorted(by_number)]


def run(python, names):
    """Run the named legs, or all; the exit status."""
    chosen = [leg for leg in LEGS if not names or leg.name in names]
    chosen_seeds = seeds.choose(os.environ)
    os.environ.update(chosen_seeds)
    print(seeds.sentence(chosen_seeds), flush=True)
    sentence = components.missing_sentence()
    if sentence:
        print(sentence, flush=True)
    with tempfile.TemporaryDirectory(prefix="leveret-kept-") as directory:
        os.environ[kept.VARIABLE] = directory
        done = _run_legs(chosen, python)
        del os.environ[kept.VARIABLE]
    print()
    _table(done)
    names = [name for _, outcome in done for name in outcome.unsteady]
    repeats = unsteady.remember(names, unsteady.place(), unsteady.read_excused(), datetime.date.today())
    return _verdict(done, os.environ.get("CI", "").lower() in ("true", "1", "yes"), repeats)
