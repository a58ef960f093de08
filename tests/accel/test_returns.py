"""What consumers refuse and return, in both forms at once: taken where acknowledgements are, in the order and with the marks of old.

test_same.py has the same in random interleavings.
"""

import random

import pytest
from peer import assemble, content, encoded, split
from test_same import SEEDS, Pair

from leveret.core.amqp_0_9.session import Session
from leveret.core.memory import layout

COUNT = 8
DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graves"}


def consuming(arguments=None, durable=False, no_ack=False):
    """A connection that has got all of COUNT messages of queue q; a second one publishes."""
    pair = Pair(durable=durable)
    for number in range(2):
        pair.both(lambda side, number=number: side.connect(number))
    for octets in (
        encoded("queue_declare", 1, 0, "q", False, durable, False, False, False, arguments or {}),
        encoded("queue_declare", 1, 0, "graves", False, durable, False, False, False, {}),
        encoded("basic_consume", 1, 0, "q", "c", False, no_ack, False, False, {}),
    ):
        pair.give(0, octets)
        pair.both(lambda side: side.broker.run())
        pair.both(lambda side: side.take(0, 10000))
    pair.give(1, b"".join([content(1, "", "q", b"%d" % each, {"delivery_mode": 2}) for each in range(COUNT)]))
    assert got(pair) == [(each + 1, False, b"%d" % each) for each in range(COUNT)]
    return pair


def got(pair):
    """(delivery tag, redelivered, body) of what the consumer is sent now."""
    pair.both(lambda side: side.broker.run())
    return [(each[1][1], each[1][2], each[3]) for each in assemble(split(pair.both(lambda side: side.take(0, 100000)))[0])]


def say(pair, *settlements):
    """Have the consumer say this of its deliveries, all in one piece."""
    pair.give(0, b"".join([encoded(name, 1, *given) for name, *given in settlements]))


@pytest.fixture
def quick(monkeypatch):
    """Whatever is taken frame by frame from now on is a fault: `quick()`."""
    return lambda: monkeypatch.setattr(Session, "one_frame", lambda self: pytest.fail("a frame was taken by itself"))


def bodies(found, redelivered=True):
    assert all(each[1] == redelivered for each in found)
    return b"".join([each[2] for each in found])


@pytest.mark.parametrize("durable", (False, True))
@pytest.mark.parametrize(
    "settlements,again",
    (
        ([("basic_nack", 0, True, True)], b"01234567"),
        ([("basic_nack", 5, True, True)], b"01234"),
        ([("basic_nack", each, False, True) for each in range(1, COUNT + 1)], b"01234567"),
        ([("basic_reject", each, True) for each in range(COUNT, 0, -1)], b"01234567"),
        ([("basic_reject", each, True) for each in (4, 2, 7, 3)], b"1236"),
        ([("basic_ack", 2, True), ("basic_nack", 5, False, True), ("basic_reject", 3, True), ("basic_reject", 8, False)], b"24"),
        ([("basic_nack", 6, True, False), ("basic_reject", 7, False)], b""),
        ([("basic_nack", 0, True, False)], b""),
    ),
)
def test_what_is_returned_comes_again_in_its_old_order_and_says_so(quick, settlements, again, durable):
    """RabbitMQ's basic.nack; 0-9-1 section 1.8.3.14."""
    pair = consuming(durable=durable)
    quick()
    say(pair, *settlements)
    assert bodies(got(pair)) == again
    say(pair, ("basic_ack", 0, True))
    say(pair, ("basic_nack", 0, True, True), ("basic_nack", 0, True, False))  # of nothing: that is no error
    assert got(pair) == []
    for side in pair.sides:
        side.broker.fold_counters()
        left = side.broker.queues["q"]
        assert left.message_count() == left.unsettled_count() == 0
        assert side.broker.counters["redelivered"] == len(again)
        assert side.broker.counters["rejected"] + side.broker.counters["settled"] == COUNT


def test_what_is_returned_while_nobody_reads_stands_before_what_came_later(quick):
    pair = consuming()
    pair.give(0, encoded("basic_qos", 1, 0, 1, True))
    pair.give(1, content(1, "", "q", b"8") * 3)
    pair.both(lambda side: side.broker.run())
    pair.both(lambda side: side.take(0, 10000))
    quick()
    for tag in (6, 2, 4):
        say(pair, ("basic_reject", tag, True))
    assert pair.sides[0].broker.queues["q"].message_count() == 6
    assert got(pair) == []
    say(pair, ("basic_ack", 0, True))
    seen = []
    while True:
        each = got(pair)
        if not each:
            break
        seen += each
        say(pair, ("basic_ack", 0, True))
    assert [each[1:] for each in seen] == [(True, b"1"), (True, b"3"), (True, b"5")] + [(False, b"8")] * 3


@pytest.mark.parametrize("durable", (False, True))
def test_dead_letters_and_counted_returns_are_pythons_and_come_out_the_same(durable):
    pair = consuming(dict(DEAD, **{"x-delivery-limit": 1}), durable)
    say(pair, ("basic_reject", 3, False), ("basic_nack", 2, True, False), ("basic_nack", 0, True, True))
    again = got(pair)
    assert bodies(again) == b"34567"
    say(pair, ("basic_nack", again[1][0], True, True), ("basic_reject", again[2][0], False))
    assert got(pair) == []
    for side in pair.sides:
        assert side.broker.queues["graves"].message_count() == 6
        assert side.broker.counters["delivery_limit"] == 2


def test_a_dead_letter_queue_takes_what_comes_back_quickly(quick):
    """Only what it lets go of is Python's."""
    pair = consuming(DEAD)
    quick()
    say(pair, ("basic_nack", 4, True, True))
    assert bodies(got(pair)) == b"0123"


@pytest.mark.parametrize("limit,kept,durable", ((0, 0, False), (2, 2, True), (253, 253, False), (1000, 254, False)))
def test_returns_are_counted_where_acknowledgements_are_taken_until_there_are_too_many(quick, limit, kept, durable):
    """x-delivery-limit (RabbitMQ's quorum queues): Python sees a message that comes back once more than it may; an entry counts to 255."""
    pair = consuming({"x-delivery-limit": limit}, durable)
    say(pair, ("basic_ack", COUNT - 2, True))
    quick()
    for _turn in range(kept):
        say(pair, ("basic_nack", 0, True, True))
        assert [each[1:] for each in got(pair)] == [(True, b"6"), (True, b"7")]
    say(pair, ("basic_ack", COUNT + 2 * kept, False))  # the one that is left is beyond the limit with the next return
    for side in pair.sides:
        assert side.broker.counters["delivery_limit"] == 0


@pytest.mark.parametrize("durable", (False, True))
def test_one_return_too_many_among_others_is_seen_by_python_and_the_others_come_back(durable):
    pair = consuming({"x-delivery-limit": 2}, durable)
    for _turn in range(2):
        say(pair, ("basic_nack", 3 + COUNT * _turn, True, True))
        assert len(got(pair)) == (3, COUNT)[_turn]
    say(pair, ("basic_nack", 0, True, True))
    assert bodies(got(pair)) == b"34567"
    for side in pair.sides:
        assert side.broker.counters["delivery_limit"] == 3
        assert side.broker.queues["q"].unsettled_count() == 5


@pytest.mark.parametrize(
    "name,given",
    (
        ("basic_nack", (99, False, True)),
        ("basic_nack", (99, True, False)),
        ("basic_reject", (99, True)),
        ("basic_reject", (0, False)),
        ("basic_nack", (0, False, True)),
        ("basic_nack", (1 << 40, True, True)),
    ),
)
def test_a_tag_that_is_not_known_is_told(name, given):
    pair = consuming()
    say(pair, (name, *given))
    (method,), _ = split(pair.both(lambda side: side.take(0, 10000)))
    assert (method[0], method[2][0]) == ("channel_close", 406)


def test_each_return_is_counted_to_255_and_no_further(quick):
    pair = consuming()
    say(pair, ("basic_ack", COUNT - 1, True))
    quick()
    for _turn in range(300):
        say(pair, ("basic_nack", 0, True, True))
        assert [each[1:] for each in got(pair)] == [(True, b"7")]
    for side in pair.sides:
        tables = side.broker.tables
        entry = [tables.channels[each.handle + layout.CHANNEL_UNSETTLED_HEAD] for each in side.peers[0].connection.sessions()][0]
        assert tables.entries[entry + layout.ENTRY_REDELIVERED] == 255


@pytest.mark.parametrize("seed", range(SEEDS // 8))
def test_returns_in_any_order_and_number_end_in_the_order_of_coming(seed, quick):
    """Positions pass 2^30 on the way."""
    random_ = random.Random(seed)
    pair = Pair(message_count_max=4000, entry_count_max=4000, arena_size=1 << 20)
    pair.both(lambda side: side.connect(0))
    pair.give(0, encoded("queue_declare", 1, 0, "q", False, False, False, False, False, {}))

    def near_the_end(side):
        side.broker.tables.queues[side.broker.queues["q"].handle + layout.QUEUE_POSITION] = layout.MASK - 50

    pair.both(near_the_end)
    count = 120
    pair.give(0, b"".join([content(1, "", "q", b"%03d" % each) for each in range(count)]))
    pair.give(0, encoded("basic_consume", 1, 0, "q", "c", False, False, False, False, {}))
    pair.both(lambda side: side.broker.run())
    while pair.both(lambda side: side.take(0, 100000)):
        pair.both(lambda side: side.broker.run())
    quick()
    tags = list(range(1, count + 1))
    random_.shuffle(tags)
    pair.both(lambda side: setattr(side.peers[0].connection.send, "busy", True))  # nothing is delivered meanwhile
    say(pair, *[("basic_reject", tag, True) for tag in tags])
    pair.both(lambda side: setattr(side.peers[0].connection.send, "busy", False))
    assert pair.sides[0].broker.queues["q"].message_count() == count
    seen = []
    while len(seen) < count:
        again = got(pair)
        assert again
        seen += [each[2] for each in again]
    assert seen == [b"%03d" % each for each in range(count)]
