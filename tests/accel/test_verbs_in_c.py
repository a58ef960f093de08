"""The verbs and two families in one broker (tests/unit) with the engine in C: whose messages it leaves alone, which credit comes back."""

import pytest
import test_two_families
import test_verbs

from leveret import c_accel
from leveret.core.broker import engine

CASES = [getattr(module, name) for module in (test_two_families, test_verbs) for name in dir(module) if name.startswith("test_")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_with_the_engine_in_c(case, monkeypatch):
    made = []

    class Engine(c_accel.Engine):
        def __init__(self, *arguments):
            made.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(engine, "chosen", Engine)
    case()
    assert made
