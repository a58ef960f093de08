"""The bridge through faulty links to upstreams of AMQP 1.0, 0-10, 0-9 and 0-8 (bridge_faults.py): nothing missing, nothing double;
and a bridge that is wrong, which the runs must find."""

import os

import bridge_faults
import faults
import pytest

RUNS = int(os.environ.get("LEVERET_FAULT_RUNS", "4"))


@pytest.mark.parametrize("kind", ["artemis", "broker-j", "rabbitmq", "leveret", *bridge_faults.FURTHER])
def test_nothing_is_missing_and_nothing_double_whatever_the_link_does(request, kind):
    peer = "leveret" if kind == "once" else kind.partition("-0-")[0].replace("-", "_")
    request.getfixturevalue(peer)  # skips where it cannot be had
    node, runs_of = bridge_faults.node_of(kind)
    try:
        failed, runs = faults.run_many(node, range(RUNS), kind=runs_of)
        while not failed and sum(sum(run.faults.values()) for run in runs) < RUNS <= len(runs) < 3 * RUNS:  # some struck too late
            failed, further = faults.run_many(node, [len(runs)], kind=runs_of)
            runs = [*runs, *further]
    finally:
        node.stop()
    assert not failed, "\n".join("%s %s" % (run.describe(), "; ".join(wrong)) for run, wrong in failed)
    assert sum(sum(run.faults.values()) for run in runs) >= RUNS


def test_a_bridge_that_settles_before_the_outcome_is_found(artemis):
    node, runs_of = bridge_faults.node_of("artemis")
    try:
        for seed in (2, 10, 11, 14, *range(20, 80)):
            failed, _ = faults.run_many(node, [seed], True, kind=runs_of)
            if failed:
                assert "missing" in failed[0][1][0]
                return
    finally:
        node.stop()
    raise AssertionError("the runs do not find a bridge that loses messages")
