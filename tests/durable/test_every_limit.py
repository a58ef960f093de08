"""Memory is a number: what a broker holds with every table at its limit at once is not above the sum that it printed."""

import os

from every_limit import SMALL, run, written

from leveret.core.limits import Limits
from leveret.core.memory.cpython_sizes import memory_parts

OVER = 1.05


# Steps of every_limit.py, and the parts that they fill.
FILLED = (
    ("channels", "channels"),
    ("exchanges", "exchanges"),
    ("queues", "queues"),
    ("bindings", "bindings"),
    ("consumers", "consumers"),
    ("granted", "names granted"),
    ("transactions", "transactions"),
    ("waiting", "messages that wait"),
    ("offsets", "names of readers"),
    ("bridges", "bridges' reports"),
    ("targets", "targets of AMQP 1.0"),
    ("links", "links of AMQP 1.0"),
    ("deliveries", "deliveries of AMQP 1.0"),
)
SLACK = 1 << 19  # octets that the interpreter takes at once


def test_a_broker_with_everything_at_its_limit_holds_what_it_said(tmp_path):
    """memory_parts (core/memory/cpython_sizes.py): RSS, at most 5 % over the sum and over each part, filled with what takes most."""
    path = os.path.join(tmp_path, "limits.toml")
    written(SMALL, path)
    lines = []
    said, held = run(Limits(**SMALL), ["--config", path], lines.append)
    told = "said %d, holds %d:\n%s" % (said, held, "\n".join(lines))
    print(told)
    assert held <= OVER * said, told
    steps = {name: float(size) * 1048576 for name, size, _ in [line.rsplit(None, 2) for line in lines]}
    parts = {what: size for what, size, _ in memory_parts(Limits(**SMALL))}
    for step, what in FILLED:
        assert steps[step] <= OVER * parts[what] + SLACK, (step, parts[what], told)
    assert held - steps["start, users and policies"] > 20 << 20, "it was filled\n" + told
