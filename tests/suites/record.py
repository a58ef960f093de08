"""The record of what passes, expected.json, and the program that makes it anew: `python tests/suites/record.py [SUITE]...`.

Each suite is run against RabbitMQ and Leveret in the same sitting. A test whose outcome differs between the two keeps the reason that the
record gives for it; one without a reason is named at the end and has to be given one by hand.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected.json")


def load():
    """{suite: {test: {"rabbitmq": outcome, "leveret": outcome, "reason": text if they differ}}}."""
    with open(EXPECTED, encoding="utf-8") as file:
        return json.load(file)


def save(record):
    """One line for each test."""
    suites = []
    for suite, tests in record.items():
        lines = [f"    {json.dumps(test)}: {json.dumps(outcome)}" for test, outcome in tests.items()]
        suites.append(f"  {json.dumps(suite)}: {{\n" + ",\n".join(lines) + "\n  }")
    with open(EXPECTED, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(suites) + "\n}\n")


def differences(record):
    """(suite, test, outcomes) wherever the two brokers came to something else."""
    return [
        (suite, test, outcome)
        for suite, tests in record.items()
        for test, outcome in tests.items()
        if outcome["rabbitmq"] != outcome["leveret"]
    ]


def compare(name, before):
    """Run a suite against both brokers: {test: outcomes}, with the reasons of `before`."""
    import suites

    found = {kind: suites.run(name, kind)[0] for kind in ("rabbitmq", "leveret")}
    tests = {}
    for test in found["rabbitmq"] | found["leveret"]:
        tests[test] = {kind: word(found[kind].get(test, "did not run")) for kind in found}
        if tests[test]["rabbitmq"] != tests[test]["leveret"]:
            tests[test]["reason"] = before.get(test, {}).get("reason", "")
            print(f"{name} {test}\n  rabbitmq: {found['rabbitmq'].get(test)}\n  leveret: {found['leveret'].get(test)}")
    for kind in found:
        passed = sum(outcome[kind] == "passed" for outcome in tests.values())
        print(f"{name}: {kind} passes {passed} of {len(tests)}", flush=True)
    return tests


def word(outcome):
    """What of an outcome stays the same from run to run."""
    return outcome.partition(":")[0]


def main(names):
    import suites

    record = load() if os.path.exists(EXPECTED) else {}
    for name in names or suites.SUITES:
        record[name] = compare(name, record.get(name, {}))
    save(record)
    unexplained = [f"{suite} {test}" for suite, test, outcome in differences(record) if not outcome["reason"]]
    if unexplained:
        sys.exit("expected.json wants a reason for: " + ", ".join(unexplained))


if __name__ == "__main__":
    main(sys.argv[1:])
