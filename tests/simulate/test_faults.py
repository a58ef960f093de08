"""No exception in one peer's, one queue's or one message's work ends the broker, loses what was confirmed or leaks a record: a fault is
raised at the calls that such work makes (faults.py), with a log and without.

All calls of all scenarios, with each kind of error, take an hour: `python tests/simulate/faults.py --every`. Here it is the first and the
last call of each function from each other one, errors in turn; and each function raising whenever it is called.
"""

import faults
import pytest
import scenarios
from model import Wrong

from leveret.core.broker import engine
from leveret.core.broker.guard import Guard
from leveret.core.queue.features import expiry


@pytest.fixture(scope="module")
def injected():
    """The functions of core/, wrapped."""
    made = faults.Faults()
    made.install()
    yield made
    made.remove()


def test_what_is_not_wrapped_is_named_as_it_is():
    """After a file or a function has another name, its old one would leave nothing out."""
    assert not faults.unknown()


def test_a_fault_at_each_call_costs_no_more_than_whose_call_it_was(injected):
    """ValueError, MemoryError, OSError in turn: others are served, nothing confirmed is lost, no record leaks, the next start is clean."""
    places = faults.some(injected)
    assert len(places) > 1000, len(places)
    wrong = []
    for at, (name, keeps, number) in enumerate(places):
        found = faults.one(injected, name, keeps, number, faults.ERRORS[at % len(faults.ERRORS)])
        if found:
            wrong.append((name, keeps) + found)
        else:
            assert injected.raised, "no fault at call %d of %s" % (number, name)
    assert not wrong, "\n".join(str(each) for each in wrong)


@pytest.mark.parametrize("name", sorted(scenarios.SCENARIOS))
def test_a_function_that_raises_whenever_it_is_called_does_not_either(injected, name):
    """Until it no longer does: then everything comes to rest."""
    for keeps in (True,) if name == "recovery" else (False, True):  # without a log there is none
        runs, wrong = faults.always(injected, name, keeps)
        assert runs > 30 and not wrong, "\n".join(str(each) for each in wrong)


def test_in_c_too(injected):
    """The engine in C beside the same Python: two scenarios, every 31st call."""
    c_accel = pytest.importorskip("leveret.c_accel")
    assert c_accel.lib is not None, "the C module is not there: pip install -e . builds it where there is a compiler"
    before = engine.chosen
    c_accel.install()
    try:
        for name in ("lengths", "streams"):
            count = len(faults.trail(injected, name, True))
            for number in range(1, count, 31):
                found = faults.one(injected, name, True, number, faults.ERRORS[number % len(faults.ERRORS)])
                assert not found, (name, found)
    finally:
        engine.chosen = before


def test_the_checks_see_what_they_are_for(injected, monkeypatch):
    """A guard that is missing, a message that is lost, a record that leaks: each is found by some fault."""

    def found(name, keeps):
        count = len(faults.trail(injected, name, keeps))
        return [each for each in [faults.one(injected, name, keeps, at, ValueError) for at in range(1, count, 3)] if each]

    told = Guard.trouble

    def lets_a_round_fail(guard, what, name, error):
        if what == "a round%s":
            raise error
        told(guard, what, name, error)

    assert not found("lifetimes", False)
    with monkeypatch.context() as patch:
        patch.setattr(Guard, "trouble", lets_a_round_fail)
        patch.setattr("leveret.core.broker.guard.Guard.rescue", lambda self, queue, entry, error: None)
        sentences = " ".join(each[3] for each in found("lifetimes", False))
        assert "a fault at call" in sentences or "in no list" in sentences
        assert "blocks" in sentences or "nowhere" in sentences or "in no list" in sentences, sentences

    def forgets(broker, ttl_ms):
        entry = broker.queues["q"].pop()
        if entry >= 0:
            broker.queues["q"].drop(entry)
        return 0

    with monkeypatch.context() as patch:
        patch.setattr(expiry, "deadline", forgets)
        with pytest.raises(Wrong, match="nowhere"):
            scenarios.run("lifetimes", False, lambda: injected.arm(0, ValueError), injected)
