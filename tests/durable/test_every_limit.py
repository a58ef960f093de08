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
ONCE = 160 << 10  # octets of what a step has but once: a channel, a queue, the code of a feature that nobody used before


def test_a_broker_with_everything_at_its_limit_holds_what_it_said(tmp_path):
    """memory_parts (core/memory/cpython_sizes.py): at most 5 % over the sum (RSS) and over each part (octets of its objects), filled with
    what takes most. Allocators keep what earlier steps have freed, so that RSS says of no step what it holds."""
    path = os.path.join(tmp_path, "limits.toml")
    written(SMALL, path)
    lines = []
    said, held, since_start, steps = run(Limits(**SMALL), ["--config", path], lines.append)
    told = "said %d, holds %d:\n%s" % (said, held, "\n".join(lines))
    print(told)
    assert held <= OVER * said, told
    parts = {what: size for what, size, _ in memory_parts(Limits(**SMALL))}
    for step, what in FILLED:
        assert 0 < steps[step] <= OVER * parts[what] + ONCE, (step, parts[what], told)
    assert since_start > 20 << 20, "it was filled\n" + told
