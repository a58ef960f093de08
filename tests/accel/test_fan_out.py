"""Persistent messages to several queues of the log: taken where those to one are, one record each, and all of it is read back."""

import pytest
from peer import content, encoded
from test_same import Pair, Side

from leveret.core.amqp_0_9.session import Session
from leveret.core.memory import layout

PERSISTENT = {"delivery_mode": 2}
DURABLE = ("one", "two", "three")
COUNT = 7


def fanning(**limits):
    """A connection whose amq.fanout leads to three queues in the log and one that is not; the way is known."""
    pair = Pair(durable=True, **limits)
    pair.both(lambda side: side.connect(0))
    names = DURABLE[:2] + ("fleeting",) + DURABLE[2:]
    octets = [encoded("queue_declare", 1, 0, name, False, name in DURABLE, False, False, False, {}) for name in names]
    octets += [encoded("queue_bind", 1, 0, name, "amq.fanout", "", False, {}) for name in names] + [encoded("confirm_select", 1, False)]
    for each in octets + [content(1, "amq.fanout", "", b"0")]:
        pair.give(0, each)
        pair.both(lambda side: side.broker.run())
        pair.both(lambda side: side.take(0, 10000))
    return pair


def counts(broker):
    return {name: broker.queues[name].message_count() for name in broker.queues}


def test_all_queues_get_them_and_all_of_it_comes_back(monkeypatch):
    pair = fanning()
    before = [side.broker.journal.log.appended for side in pair.sides]
    with monkeypatch.context() as patch:
        patch.setattr(Session, "one_frame", lambda self: pytest.fail("a publish was taken frame by frame"))
        pair.give(0, b"".join([content(1, "amq.fanout", "", b"%d" % each * 50 * each, PERSISTENT) for each in range(COUNT)]))
    assert [side.broker.journal.log.appended - each for side, each in zip(pair.sides, before)] == [COUNT] * len(pair.sides)
    assert counts(pair.sides[0].broker) == dict.fromkeys((*DURABLE, "fleeting"), COUNT + 1)
    pair.give(0, content(1, "", "two", b"alone", PERSISTENT))
    for side in pair.sides:
        assert sum([segment.live for segment in side.broker.journal.log.segments]) == 3 * COUNT + 1
    pair.both(lambda side: side.broker.run())
    for _ in range(3):  # one was transient
        pair.give(0, encoded("basic_get", 1, 0, "three", True))
        pair.both(lambda side: side.broker.run())
        pair.both(lambda side: side.take(0, 10000))
    pair.both(lambda side: side.broker.run())
    for side in pair.sides:
        again = Side(type(side.broker.tables.engine), durable=True, store=side.store)
        assert counts(again.broker) == {"one": COUNT, "two": COUNT + 1, "three": COUNT - 2}
        message = again.broker.tables.entries[again.broker.queues["three"].head() + layout.ENTRY_MESSAGE]
        assert again.broker.tables.octets(message, 0, again.broker.tables.size_of(message)).endswith(b"2" * 100)


def test_one_that_finds_no_room_in_the_log_goes_nowhere():
    pair = fanning()
    for side in pair.sides:
        side.broker.journal.log.gathered_max = 300
    for _ in range(3):
        pair.give(0, content(1, "amq.fanout", "", b"x" * 200, PERSISTENT))
    broker = pair.sides[0].broker
    assert set(counts(broker).values()) == {2}
    for _ in range(4):
        pair.both(lambda side: side.broker.run())
        pair.give(0, b"")
    assert set(counts(broker).values()) == {4}
