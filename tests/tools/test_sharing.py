"""The simulation of gateways that share a load (tests/measure/sharing.py): its figures of few gateways can be reckoned by hand."""

import os
import sys

import pytest

MEASURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "measure")
sys.path.append(MEASURE)

import sharing  # noqa: E402 - the path above has to be set first


def test_a_further_partition_takes_from_the_others_and_moves_nothing_between_them():
    before, after = sharing.shares(2000, 5), sharing.shares(2000, 6)
    moved = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert all(new == 5 for _, new in moved) and set(before) == set(range(5))
    assert 2000 / 6 * 0.8 < len(moved) < 2000 / 6 * 1.2


def test_rates_add_up_and_one_in_ten_sends_ten_times_as_much():
    rates = sharing.rates(2000)
    assert sum(rates) == pytest.approx(1) and max(rates) == pytest.approx(10 * min(rates))
    assert 150 < sum(each == max(rates) for each in rates) < 250


@pytest.mark.parametrize("load, drained", [(0.5, 600), (0.75, 1800), (1.0, None)])
def test_a_partition_that_was_away_has_its_backlog_to_do_beside_what_comes(load, drained):
    """Two gateways, a partition each: AWAY_S seconds of load are done with what of the capacity the load leaves, be it nothing."""
    found, highest = sharing.outage([0, 1], [0.5, 0.5], 2, load)
    assert found == drained if drained is None else found == pytest.approx(drained, abs=2)
    assert highest == pytest.approx(sharing.AWAY_S / 2)


def test_the_page_has_the_figures_of_the_program():
    with open(sharing.PAGE, encoding="utf-8") as file:
        page = file.read()
    assert sharing.BEGIN + sharing.text_of_page() + sharing.END in page


def test_a_fleet_gets_as_many_partitions_as_its_fullest_needs():
    """1,000 gateways send 10,000 messages a second: one partition of 14,286 at 70 %, two of less; unequal shares may ask for one more."""
    assert sharing.needed(1000, 14300) == 1 and sharing.needed(1000, 14200) == 2
    assert sharing.needed(1000, 5000) in (3, 4)
