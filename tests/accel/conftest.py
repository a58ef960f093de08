"""The scripted client of the unit tests, and what holds in a broker after each step of the simulation."""

import os
import sys

import pytest

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
for _name in ("simulate", "unit"):
    sys.path.insert(0, os.path.join(FOLDER, _name))


@pytest.fixture(autouse=True)
def whole_tables_at_the_end():
    """No pair of brokers ends its test with a wrong number in its tables."""
    from test_same import made

    made.clear()
    yield
    for pair in made:
        pair.checks.end(pair.sides[-1].broker)
    made.clear()
