"""The bridge through faulty links: seeded runs against a Leveret and a RabbitMQ, and a bridge that is wrong, which they must find."""

import collections
import os

import pytest
from faults import run_many

RUNS = int(os.environ.get("LEVERET_FAULT_RUNS", "16"))


@pytest.mark.parametrize("kind", ["leveret", "rabbitmq"])
def test_nothing_is_missing_and_nothing_double_whatever_the_link_does(request, kind):
    node = request.getfixturevalue(kind)
    failed, runs = run_many(node, range(RUNS))
    for seed in range(RUNS, 5 * RUNS):
        if failed or told_much(runs):
            break
        more_failed, more = run_many(node, [seed])
        failed += more_failed
        runs += more
    assert not failed, "\n".join("%s %s" % (run.describe(), "; ".join(wrong)) for run, wrong in failed)
    assert told_much(runs), [run.describe() for run in runs]


def told_much(runs):
    """Every kind of fault has happened, in most of the runs, and there was something to de-duplicate."""
    faults = sum((run.faults for run in runs), collections.Counter())
    return len(faults) == 5 and sum(faults.values()) >= RUNS and sum(run.doubles for run in runs) > 0


def test_a_bridge_that_settles_before_the_confirm_is_found(leveret):
    for seed in (2, 10, 11, 14, *range(20, 80)):
        failed, _ = run_many(leveret, [seed], canary=True)
        if failed:
            assert "missing" in failed[0][1][0]
            return
    raise AssertionError("the runs do not find a bridge that loses messages")
