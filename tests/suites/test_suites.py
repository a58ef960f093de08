"""Other people's suites, unmodified, against `leveret serve`: every pass that expected.json records must still be one.

One test here for each test there, so that the counts are theirs. `python tests/suites/record.py` makes the record anew, beside RabbitMQ.
"""

import checks
import pytest
import record
import suites

RECORD = record.load()
PASSES = [(suite, test) for suite, tests in RECORD.items() for test, outcome in tests.items() if outcome["leveret"] == checks.PASSED]


@pytest.mark.parametrize("suite, test", PASSES, ids=lambda value: value)
def test_passes(runs, suite, test):
    assert runs.of(suite)[0].get(test, "it did not run") == checks.PASSED


@pytest.mark.parametrize("suite", suites.SUITES)
def test_everything_that_ran_is_recorded(runs, suite):
    assert sorted(set(runs.of(suite)[0]) - set(RECORD[suite])) == []


@pytest.mark.parametrize("suite", suites.SUITES)
def test_the_broker_wrote_no_traceback(runs, suite):
    assert "Traceback" not in runs.of(suite)[1], runs.of(suite)[1][-4000:]


def test_what_differs_from_rabbitmq_has_a_reason():
    assert [(suite, test) for suite, test, outcome in record.differences(RECORD) if not outcome.get("reason")] == []


@pytest.mark.parametrize("suite", suites.SUITES)
def test_leveret_passes_as_many_as_rabbitmq(suite):
    passes = {kind: sum(outcome[kind] == checks.PASSED for outcome in RECORD[suite].values()) for kind in ("rabbitmq", "leveret")}
    assert passes["leveret"] >= passes["rabbitmq"] > 0
