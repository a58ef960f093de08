"""What a form of the hot functions remembers beside the broker's tables is bounded, and counted before `leveret serve` starts."""
import gc
import random
import tracemalloc

from leveret import c_accel
from leveret.c_accel import runs, runs_taking
from leveret.core.limits import Limits
from leveret.tools import memory
from peer import content, encoded
from test_same import Side


def publishing():
    """A broker in runs whose amq.topic takes every key, and that lets the oldest go."""
    side = Side(runs.Engine, message_count_max=4000, entry_count_max=8000, arena_size=1 << 20, route_count_max=1 << 14)
    side.connect(0)
    side.give(0, encoded("queue_declare", 1, 0, "q", False, False, False, False, False, {}))
    side.give(0, encoded("queue_bind", 1, 0, "q", "amq.topic", "#", False, {}))
    side.give(0, content(1, "amq.topic", "first", b"x"))
    return side


def test_frames_and_properties_that_runs_remembers_stay_within_what_is_told(monkeypatch):
    """Keys of every length, more of them than are remembered, whether their number or their octets are the bound."""
    for module in (runs, runs_taking):
        monkeypatch.setattr(module, "METHODS_MAX", 400)
        monkeypatch.setattr(module, "METHODS_OCTETS_MAX", 1 << 15)
    side = publishing()
    engine = side.broker.tables.engine
    random_ = random.Random(1)
    seen = 0
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1200):
            key = "%d.%s" % (number, "k" * random_.choice((1, 1, 200) if number < 500 else (1,)))
            side.give(0, content(1, "amq.topic", key, b"x", {"message_id": "%d" % number}))
            assert len(engine.methods) <= 400 and len(engine.kinds) <= runs_taking.KINDS_MAX
            assert sum(map(len, engine.methods)) <= 1 << 15
            seen = max(seen, len(engine.methods))
            if number % 100 == 99:
                side.give(0, encoded("queue_purge", 1, 0, "q", True))
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert seen == 400
    assert grown <= runs.Engine.memory(side.broker.limits), grown


def test_serve_counts_it(monkeypatch):
    limits = Limits()
    in_c = memory.total(limits)
    monkeypatch.setenv(c_accel.VARIABLE, "0")
    in_runs = memory.total(limits)
    assert in_c - c_accel.Engine.memory(limits) == in_runs - runs.Engine.memory(limits) > 0
    assert runs.Engine.memory(limits) != c_accel.Engine.memory(limits)
