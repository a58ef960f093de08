"""A bridge's figures: rates of a second, and the warning before a backlog is full (ports/bridge/meter.py, ports/bridge/README.md)."""

import types

import pytest

from leveret.ports.bridge.meter import Meter


class Bridge:
    """As much of a bridge as its meter reads."""

    def __init__(self, outbox="outbox", backlog_full="reject"):
        self.mover = types.SimpleNamespace(counters={"bridged": 0, "bridged_octets": 0})
        self.source = types.SimpleNamespace(backlog=lambda: self.backlog)
        self.settings = types.SimpleNamespace(outbox=outbox, backlog_full=backlog_full)
        self.backlog = {}
        self.said = []
        self.say = self.said.append

    def has_moved(self, messages, octets, backlog_octets=0, backlog_octets_max=0):
        self.mover.counters["bridged"] += messages
        self.mover.counters["bridged_octets"] += octets
        self.backlog = {"backlog_octets": backlog_octets, "backlog_octets_max": backlog_octets_max}


def test_rates_are_computed_once_a_second_over_the_time_that_has_passed():
    bridge = Bridge()
    meter = Meter(bridge)
    assert not meter.tick(5000), "the first call begins the second"
    bridge.has_moved(100, 3000, 500)
    assert not meter.tick(5999) and meter.rates == [0, 0, 0]
    assert meter.tick(6000) and meter.rates == [100, 3000, 500]
    assert not meter.tick(6000) and not meter.tick(6999)
    bridge.has_moved(400, 8000, 900)
    assert meter.tick(8000), "two seconds: 200, 4000 and 200 each; a new rate counts a quarter"
    assert meter.rates == [125, 3250, 425]
    assert meter.tick(9000) and meter.rates == [93.75, 2437.5, 318.75], "nothing moved and nothing grew"


def test_a_clock_that_begins_anew_ends_no_second_too_soon():
    """The clock of a board goes to 2 ** 30 - 1 and on at 0 (core/shim.py)."""
    meter = Meter(Bridge())
    assert not meter.tick(2**30 - 400) and not meter.tick(599) and meter.tick(600)


@pytest.mark.parametrize(
    "rate, octets, seconds",
    [(0, 10, None), (0.99, 10, None), (-5, 10, None), (1, 10, 90), (10, 10, 9), (10, 100, 0), (10, 150, 0), (40, 10, 2)],
)
def test_the_time_until_the_backlog_is_full(rate, octets, seconds):
    """None while it does not grow by an octet a second; never less than 0."""
    meter = Meter(Bridge())
    meter.rates[2] = rate
    assert meter.full_in_s({"backlog_octets": octets, "backlog_octets_max": 100}) == seconds
    assert meter.full_in_s({}) is None


@pytest.mark.parametrize(
    "outbox, backlog_full, end",
    [
        ("o", "drop-oldest", "the oldest go"),
        ("o", "reject", "messages stay in their queue"),
        (None, "drop-oldest", "what the stream's own retention says"),
    ],
)
def test_a_backlog_above_four_fifths_is_warned_of_once(outbox, backlog_full, end):
    bridge = Bridge(outbox, backlog_full)
    meter = Meter(bridge)
    meter.tick(0)
    moment, warned = 0, []
    for octets in (80, 81, 99, 80, 81):
        moment += 1000
        bridge.has_moved(0, 0, octets, 100)
        meter.tick(moment)
        warned.append(len(bridge.said))
    assert warned == [0, 1, 1, 1, 2]
    assert bridge.said[0] == "the backlog has 81 of 100 octets, full in 0 s as it grows now; then " + end
    bridge.has_moved(0, 0, 10**9)
    meter.tick(moment + 1000)
    assert len(bridge.said) == 2, "a backlog without a limit is never nearly full"


def test_nothing_is_said_of_the_time_of_a_backlog_that_does_not_grow():
    bridge = Bridge()
    meter = Meter(bridge)
    meter.tick(0)
    bridge.has_moved(0, 0, 100, 1000)
    meter.tick(1000)
    for at in range(2000, 60000, 1000):  # it stands still: the rate goes towards 0
        meter.tick(at)
    bridge.backlog["backlog_octets_max"] = 101
    meter.tick(60000)
    assert bridge.said == ["the backlog has 100 of 101 octets; then messages stay in their queue"]
