"""A few failed tests of a leg are run once more, alone and with the same seeds; what passes then is unsteady, and said aloud.

Laws: what fails twice has failed; so has what the second attempt did not run to its end or skipped. Many failures are no accident and are
not run again; neither is a leg that was stopped for its time, nor one that is a command: those do the same every time.
What was forgiven once is not forgiven again soon: unsteady.py.
"""

import os

from . import outcomes, progress

FAILURES_MAX = 5
TESTS_FAILED = 1  # pytest's exit status; above it are interruption, an inner error, wrong usage


def deserved(outcome, status):
    return status == TESTS_FAILED and 0 < len(outcome.failures) == outcome.failed <= FAILURES_MAX


def make(title, outcome, run, record):
    """A generator (progress.step) that runs the failed tests again and forgives those that pass; it returns the leg's new exit status.

    `run(names)` is such a generator: it runs pytest over the names, leaves `record`, returns its exit status, may raise progress.TimedOut.
    """
    names = list(outcome.failures)
    print(f"  {title}: {len(names)} failed; once more, alone: {', '.join(names)}", flush=True)
    if os.path.exists(record):
        os.remove(record)
    try:
        status = yield from run(names)
    except progress.TimedOut:
        print(f"  {title}: the second attempt did not end in its time and was stopped", flush=True)
        return TESTS_FAILED
    cases = outcomes.read_cases(record)
    if status > TESTS_FAILED or not cases:
        print(f"  {title}: the second attempt ended with exit status {status} and says nothing of them", flush=True)
        return TESTS_FAILED
    outcome.forgive([name for name in names if cases.get(name, ("",))[0] == "passed"])
    return status


def sentences(outcome):
    return [f"unsteady: {name} (failed once, passed alone)" for name in outcome.unsteady]
