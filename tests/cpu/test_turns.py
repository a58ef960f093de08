"""No peer holds the loop: the CPU time of each single call (received, sent, run, tick) of every scene, at a gateway's limits.

With the C module no call may take more than LIMIT_MS, but for the rows of OVER, which say how much and why. As plain Python a sixteenth of
the load is held to the same, but for PLAIN_OVER. The time is the thread's own, a row that is over is done again up to twice, and the limit
grows with how slow the machine is just then (`slowness`).
"""

import amqp_1_0_scenes  # noqa: F401 - each of these adds its rows
import amqp_1_0_values  # noqa: F401 - as above
import definition_scenes  # noqa: F401 - as above
import log_scenes  # noqa: F401 - as above
import management_scenes  # noqa: F401 - as above
import pytest
import route_scenes  # noqa: F401 - as above
import rule_scenes  # noqa: F401 - as above
import scenes
import settlement_scenes  # noqa: F401 - as above
from crowd import Crowd, slowness

from leveret import c_accel
from leveret.core.broker import engine

LIMIT_MS = 20
ATTEMPTS = 3

# What takes longer in one call, and why it does.
OVER: dict = {}

# The same of the plain form.
PLAIN_OVER: dict = {}


def milliseconds(form, function, n):
    """The longest call of a scene, and which it was."""
    crowd = Crowd(form)
    steps = function(crowd, n)
    next(steps)
    crowd.begin()
    for _ in steps:
        raise AssertionError("a scene has one yield")
    assert crowd.calls and not crowd.broker.counters["internal_errors"]
    return 1000 * crowd.worst, crowd.where


def best(form, function, n, limit):
    """(ms, call, slowness) of the best of up to ATTEMPTS runs of a scene: the first one within the limit ends them. Other
    processes in the caches can only add to a call's time, and `slowness`, whose work is small, sees little of them."""
    took, where = milliseconds(form, function, n)
    slow = slowness()
    for _ in range(ATTEMPTS - 1):
        if took <= limit * slow:
            break
        took, where = min((took, where), milliseconds(form, function, n))
        slow = max(slow, slowness())
    return took, where, slow


def measured(form, part, over):
    """Every scene with its n divided by `part`: (name, ms, limit, slowness)."""
    table = []
    print("%-60s %7s %9s  longest call" % ("scene", "n", "ms"))
    for name, most, function in scenes.ROWS:
        n = max(most // part, 4)
        limit = over.get(name, LIMIT_MS)
        took, where, slow = best(form, function, n, limit)
        print("%-60s %7d %9.2f  %s%s" % (name, n, took, where, "" if limit == LIMIT_MS else ", may take %d" % limit), flush=True)
        table.append((name, took, limit, slow))
    return table


def judge(table):
    late = ["%s: %.1f ms of %d" % (name, took, limit) for name, took, limit, slow in table if took > limit * slow]
    assert not late, late


@pytest.mark.skipif(c_accel.lib is None, reason="a C compiler is not installed")
def test_no_call_takes_longer_than_its_turn_with_the_c_module():
    judge(measured(c_accel.Engine, 1, {name: OVER[name][0] for name in OVER}))


def test_no_call_takes_longer_than_its_turn_as_plain_python_with_a_sixteenth_of_the_load():
    judge(measured(engine.Plain, 16, PLAIN_OVER))


def test_the_rows_that_may_take_longer_are_scenes():
    names = [row[0] for row in scenes.ROWS]
    assert len(names) == len(set(names)) > 70
    assert [name for name in list(OVER) + list(PLAIN_OVER) if name not in names] == []
