"""What a form of the hot functions takes beside the broker's tables is counted before `leveret serve` starts."""

from leveret import c_accel
from leveret.core.limits import Limits
from leveret.tools import memory


def test_serve_counts_what_c_takes_and_nothing_for_plain_python(monkeypatch):
    limits = Limits()
    in_c = memory.total(limits)
    monkeypatch.setenv(c_accel.VARIABLE, "0")
    assert in_c - memory.total(limits) == c_accel.Engine.memory(limits) > 0
