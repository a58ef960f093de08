"""What a leg of `dev.py test` did, read from pytest's own record or from a runner's last line, and the complaint it deserves.

Laws: a test counts once, by the worst that was recorded of it; what left no record, ran nothing, or skipped a test without naming a
component that is really missing, is a complaint, and a leg with a complaint has failed. A test of what is not there yet (xfail with its
reason) is counted apart.
"""

import re
import xml.etree.ElementTree

from .. import components

SUMMARY = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?")
WORST_LAST = ("passed", "awaited", "skipped", "failed")


class Outcome:
    """The outcome of a leg. `complaint`: why it fails though no test failed; `left_out`: the component without which it did not run.

    `failures`: the failed tests as pytest names them; `unsteady`: those that failed once and passed alone, counted as passed.
    `awaited`: tests that fail as they are expected to, for a reason that they give. `coverage`: the sentence about it, of a leg that
    measures it.
    """

    def __init__(self, passed=0, failed=0, skipped=0, complaint="", left_out=None, seconds=0.0):
        self.passed = passed
        self.failed = failed
        self.skipped = skipped
        self.complaint = complaint
        self.left_out = left_out
        self.seconds = seconds
        self.excused = []
        self.failures = []
        self.unsteady = []
        self.awaited = 0
        self.coverage = ""

    def good(self):
        return not self.failed and not self.complaint

    def forgive(self, names):
        """Count the failed tests of these names as passed, and keep them in mind as unsteady."""
        for name in names:
            self.failures.remove(name)
            self.unsteady.append(name)
        self.failed -= len(names)
        self.passed += len(names)


def _state_of(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "awaited" if skipped.get("type") == "pytest.xfail" and skipped.get("message") else "skipped"


def _name_of(case):
    """A test as pytest takes it on its command line, from the older form of its record (junit_family=xunit1), which has the file."""
    file, names = case.get("file", ""), case.get("classname", "")
    classes = names[len(file) - len(".py") + 1 :].split(".") if len(names) > len(file) - len(".py") else []
    return "::".join([file, *classes, case.get("name", "")])


def read_cases(path):
    """{name: (state, reason of a skip)} from pytest's own record, or None when it is missing or broken."""
    try:
        nodes = list(xml.etree.ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return None
    cases: dict = {}
    for node in nodes:
        name, state = _name_of(node), _state_of(node)
        if name in cases and WORST_LAST.index(state) <= WORST_LAST.index(cases[name][0]):
            continue
        skipped = node.find("skipped")
        cases[name] = state, "" if skipped is None else skipped.get("message", "")
    return cases


def read_junit(path):
    """(Outcome, reasons of the skipped tests) from pytest's own record; a missing or broken record is a complaint."""
    cases = read_cases(path)
    if cases is None:
        return Outcome(complaint="pytest left no record of its tests"), []
    states = [state for state, _ in cases.values()]
    outcome = Outcome(states.count("passed"), states.count("failed"), states.count("skipped"))
    outcome.awaited = states.count("awaited")
    outcome.failures = [name for name, (state, _) in cases.items() if state == "failed"]
    return outcome, [reason for state, reason in cases.values() if state == "skipped"]


def read_summary(path):
    """Outcome from the last `N passed, N failed` of a log."""
    with open(path, errors="replace") as log:
        summaries = SUMMARY.findall(log.read())
    if not summaries:
        return Outcome(complaint="it ended without saying `N passed, N failed`")
    return Outcome(*(int(number or 0) for number in summaries[-1]))


def judge(outcome, status, reasons=()):
    """Add the complaint that a leg's outcome deserves."""
    for reason in reasons:
        component = components.excuse(reason)
        if component is None and not outcome.complaint:
            outcome.complaint = f"a test was skipped though nothing it names is missing: {reason or 'no reason given'}"
        elif component is not None and component not in outcome.excused:
            outcome.excused.append(component)
    if outcome.complaint:
        return outcome
    if outcome.skipped and not reasons:
        outcome.complaint = "tests were skipped without saying which component is missing"
    elif not outcome.passed and not outcome.failed:
        outcome.complaint = "it ran no test"
    elif status != 0 and not outcome.failed:
        outcome.complaint = f"it ended with exit status {status}"
    return outcome
