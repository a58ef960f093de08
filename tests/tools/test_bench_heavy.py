"""The heavy rows of the bench (tests/measure/rows_heavy.py) do what they say: handshakes in full and with the session of before."""

import os
import sys

import pytest

MEASURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "measure")
sys.path += [MEASURE, os.path.join(MEASURE, os.pardir, "interop")]

import rows_heavy  # noqa: E402 - the path above has to be set first
import rows_latency  # noqa: E402 - beside the import above
from certificates import Authority  # noqa: E402 - beside the imports above


@pytest.mark.parametrize("again", (False, True))
def test_handshakes_are_counted_and_sessions_taken_up(again, tmp_path):
    authority = Authority(tmp_path)
    broker = rows_heavy.start_tls("leveret", authority, authority.issue("server", "/CN=localhost"))
    try:
        summary, cpu = rows_heavy.handshakes(broker, authority, 0.5, again)  # raises where a session is not taken up
        assert summary["received"] > 1 and summary["received_per_s"] > 1 and cpu >= 0
    finally:
        broker.stop()


def test_a_missed_goal_of_latency_is_told():
    figures = {"1000": {"50": 100, "99": 200, "99.9": 300}, "20000": {"50": 100, "99": 200, "99.9": 900}}
    slow = {rate: dict.fromkeys(rows_latency.PERCENTILES, 1000) for rate in ("1000", "20000")}
    fast = {rate: dict.fromkeys(rows_latency.PERCENTILES, 250) for rate in ("1000", "20000")}
    lines = rows_latency.table({"leveret": figures, "rabbitmq": slow, "relay": fast})
    assert [line.rsplit(" ", 1)[1] for line in lines if "goal" in line] == ["met", "met", "met", "missed"]
