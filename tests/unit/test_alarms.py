"""ports/alarms.py: who is told the time when, and that what is put in again and again does not pile up."""

from leveret.ports.alarms import Alarms


def test_a_slot_is_due_at_its_time_and_once():
    alarms = Alarms(3)
    alarms.set(0, 500)
    alarms.set(2, 200)
    assert alarms.due(199) == set()
    assert alarms.due(200) == {2}
    assert alarms.due(499) == set()
    assert alarms.due(700) == {0} and alarms.due(10000) == set()


def test_a_time_can_be_moved_both_ways():
    alarms = Alarms(2)
    alarms.set(0, 500)
    alarms.set(0, 900)
    alarms.set(1, 900)
    alarms.set(1, 300)
    assert alarms.due(500) == {1}
    alarms.set(1, 600)
    assert alarms.due(899) == {1}
    assert alarms.due(900) == {0} and alarms.due(10000) == set()


def test_soon_is_the_next_time_whatever_was_set():
    alarms = Alarms(2)
    alarms.set(0, 5000)
    alarms.soon.add(0)
    assert alarms.due(1) == {0}
    assert alarms.due(2) == set() and alarms.due(5000) == {0}


def test_a_slot_that_is_free_is_due_no_more_and_neither_is_its_next_owner():
    alarms = Alarms(2)
    alarms.set(0, 100)
    alarms.soon.add(0)
    alarms.forget(0)
    assert alarms.due(50) == set()
    alarms.set(0, 300)
    assert alarms.due(100) == set() and alarms.due(299) == set() and alarms.due(300) == {0}


def test_what_is_set_for_ever_does_not_grow():
    """A slot that is busy for hours: each tick answers something else."""
    alarms = Alarms(4)
    for turn in range(2000):
        alarms.set(3, 1000000 - turn)
        alarms.set(1, turn + 60000)
    assert len(alarms.heap) <= 2 * 4
    assert alarms.due(1000000 - 2000) == {1} and alarms.due(1000000 - 1999) == {3}
