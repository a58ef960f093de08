"""Methods that go in turns keep to LIMIT_MS as plain Python at the whole load, not only at the sixteenth that test_turns.py has. A row
that is over is done again, as there."""

import pytest
import scenes
from test_turns import LIMIT_MS, best, judge

from leveret.core.broker import engine

NAMES = (
    "channel.close",
    "connection.close",
    "a connection that is lost",
    "basic.nack, all at once, requeued",
    "queue.purge",
    "queue.delete, all ready",
    "queue.delete, all unsettled",
    "queue.delete, all unsettled, in many channels",
    "queue.delete, of many consumers beside what is unsettled",
    "queue.delete, all delayed",
    "an auto-delete queue with many messages goes",
    "an auto-delete queue with many bindings goes",
    "a queue with many messages expires",
    "log: queue.purge",
    "log: queue.delete",
)


@pytest.mark.parametrize("name", NAMES)
def test_no_call_takes_longer_than_its_turn_as_plain_python_with_the_whole_load(name):
    [(most, function)] = [(row[1], row[2]) for row in scenes.ROWS if row[0] == name]
    took, where, slow = best(engine.Plain, function, most, LIMIT_MS)
    print("%-40s %7d %9.2f  %s" % (name, most, took, where))
    judge([(name, took, LIMIT_MS, slow)])
