"""Passwords are calculated beside the loop: a log-in goes on when the thread has done its part, and nobody else waits for it."""

import select
import threading
import time

import pytest
from test_sasl import Caller, names, new_broker, plain

from leveret.ports.password_thread import PasswordThread


@pytest.fixture
def broker():
    """A broker whose passwords are calculated in a thread, which ends with the test."""
    made = new_broker()
    made.aside = PasswordThread(made)
    yield made
    made.aside.close()


def done(broker, limit_s=10):
    """Wait, as the loop does, until the thread has done something; the log-ins go on then, all that one wake-up has brought."""
    assert select.select([broker.aside.pollable], [], [], limit_s)[0], "the thread has not woken the loop"
    broker.aside.accept(None)
    broker.run()
    while broker.jobs:
        broker.run()


def held(broker, monkeypatch):
    """Every calculation waits for the event that this returns."""
    gate = threading.Event()
    derivation = type(broker.access.users["u"].stored.check(b"").derivation)
    right = derivation.work

    def work(self):
        assert threading.current_thread().name == "leveret-passwords" or self.key is not None, "calculated on the loop"
        gate.wait(10)
        return right(self)

    monkeypatch.setattr(derivation, "work", work)
    return gate


def test_a_right_password_lets_in_when_the_thread_is_done_and_not_before(broker, monkeypatch):
    gate = held(broker, monkeypatch)
    caller = Caller(broker)
    assert caller.start("PLAIN", plain("u", "u-pw")) == [] and broker.jobs == []
    other = Caller(broker)
    assert names(other.start("PLAIN", plain("r", "r-pw"))) == ["connection_tune"], "RabbitMQ's hash is one SHA-256: no thread"
    gate.set()
    done(broker)
    assert names(caller.frames()) == ["connection_tune"]


def test_a_wrong_password_is_refused_after_the_pause(broker):
    caller = Caller(broker)
    assert caller.start("PLAIN", plain("u", "x")) == []
    done(broker)
    assert caller.frames() == [] and "was refused" in broker.lines[-1]
    assert names(caller.later(broker.limits.login_pause_ms)) == ["connection_close"]


def test_peers_of_a_storm_are_let_in_each(broker, monkeypatch):
    gate = held(broker, monkeypatch)
    callers = [Caller(broker) for _ in range(10)]
    for number, caller in enumerate(callers):
        assert caller.start("PLAIN", plain("u", "u-pw" if number % 3 else "x")) == []
    gate.set()
    end = time.monotonic() + 10
    logins = [caller.connection.session.login for caller in callers]
    while any(login.pause_ms is None for login in logins) and time.monotonic() < end:
        done(broker)
    assert [names(caller.frames()) for caller in callers] == [["connection_tune"] if number % 3 else [] for number in range(10)]


def test_a_peer_that_goes_meanwhile_is_passed_over(broker, monkeypatch):
    gate = held(broker, monkeypatch)
    gone, caller = Caller(broker), Caller(broker)
    gone.start("PLAIN", plain("u", "u-pw"))
    caller.start("PLAIN", plain("u", "u-pw"))
    gone.connection.finish()
    gate.set()
    while names(caller.frames()) != ["connection_tune"]:
        done(broker)
    assert broker.lines == []


def test_a_fault_of_the_calculation_is_told_as_one_of_the_log_in(broker, monkeypatch):
    derivation = type(broker.access.users["u"].stored.check(b"").derivation)

    def work(self):
        raise MemoryError

    monkeypatch.setattr(derivation, "work", work)
    caller = Caller(broker)
    caller.start("PLAIN", plain("u", "u-pw"))
    done(broker)
    assert broker.lines and caller.connection.closed or names(caller.frames()) == ["connection_close"]
    monkeypatch.undo()
    again = Caller(broker)
    again.start("PLAIN", plain("u", "u-pw"))
    done(broker)
    assert names(again.frames()) == ["connection_tune"], "the thread goes on behind a fault"


def test_the_thread_begins_with_the_first_password_and_ends_with_the_broker_at_once(monkeypatch):
    broker = new_broker()
    thread = broker.aside = PasswordThread(broker)
    assert not [each for each in threading.enumerate() if each.name == "leveret-passwords"]
    gate = held(broker, monkeypatch)
    for _ in range(5):
        Caller(broker).start("PLAIN", plain("u", "u-pw"))
    began = time.monotonic()
    threading.Timer(0.1, gate.set).start()
    thread.close()
    assert time.monotonic() - began < 5 and not [each for each in threading.enumerate() if each.name == "leveret-passwords"]
    assert len(thread._done) <= 1, "what had not begun is not calculated"
