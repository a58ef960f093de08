"""AMQP 0-10, class session: ids of commands go around at 2**32 in sessions that live beyond their transport."""

from memory_store import MemoryStore
from peer_0_10 import control, new_broker
from same_random import Random, seeds
from test_0_10_sessions import ROOM, cut, durable, lasting, sent

from leveret.core.amqp_0_10 import ranges as amqp_ranges
from leveret.core.amqp_0_10.ranges import ascending, overlaps
from leveret.core.memory import layout
from leveret.core.memory.serial import after, distance


def test_the_logs_bound_of_our_ids_goes_around_with_them():
    broker = durable(MemoryStore())
    peer = lasting(broker)
    session = broker.beyond.by_name[("guest", b"s")]
    channels, at = broker.tables.channels, session.handle + layout.CHANNEL_TAG
    channels[at], channels[at + 1] = layout.MASK - 9, 3
    peer.do("execution_sync")
    assert session.ids_in_log == 65536 - 10
    channels[at], channels[at + 1] = 65536 - 100, 4
    peer.give(control("session_flush", expected=True))
    assert session.ids_in_log == 2 * 65536 - 100


def test_what_is_completed_and_not_accepted_stays_with_its_session_around_the_end_of_the_ids():
    """2**31 commands behind request-timeout it seemed to be older than this, and went to somebody else too."""
    broker = new_broker(**ROOM)
    peer = lasting(broker)
    session = broker.beyond.by_name[("guest", b"s")]
    channels, at = broker.tables.channels, session.handle + layout.CHANNEL_TAG
    for half in range(8):
        channels[at], channels[at + 1] = layout.MASK - 1 if half & 1 else layout.MASK >> 1, half >> 1
        peer.do("execution_sync")
    peer.do("queue_declare", queue="q")
    peer.subscribe(accept=0)
    for number in range(4):
        peer.publish(b"%d" % number)
    assert [id_ & 0xFFFFFFFF for id_, _ in sent(peer)] == [0xFFFFFFFE, 0xFFFFFFFF, 0, 1]
    peer.give(control("session_completed", commands=[(0xFFFFFFFE, 0xFFFFFFFE)]))
    cut(peer)
    again = lasting(broker, again=True)
    assert [body for _, body in sent(again)] == [b"1", b"2", b"3"] and broker.queues["q"].unsettled_count() == 4


def listed(ranges):
    """The ids of a list of ranges, which ascend and touch nobody."""
    ids = []
    for first, last in ranges:
        assert not ids or distance(ids[-1], first) > 1, ranges
        ids += [after(first, count) for count in range(distance(first, last) + 1)]
    return ids


def test_sets_of_ranges_are_sets():
    """Ranges, against sets of numbers, around the end of the ids: merge, without, has; and in whatever order a peer has them."""
    random = Random(17)
    for _ in seeds(0, 300):
        begin = after(0, -random.choice((0, 20, 30)))
        given = []
        for most in (4, 6):
            given.append([])
            for _ in range(random.below(most)):
                first = after(begin, random.below(40))
                given[-1].append((first, after(first, random.below(8))))
        some, others = [ascending(each) for each in given]
        one, other = [set(listed(each.runs)) for each in (some, others)]
        assert one == {after(first, count) for first, last in given[0] for count in range(distance(first, last) + 1)}
        assert set(listed(some.without(others).runs)) == one - other
        assert [id_ for id_ in listed([(begin, after(begin, 50))]) if some.has(id_)] == sorted(one, key=lambda each: distance(begin, each))
        assert {id_ for _, first, last in overlaps(some.runs, others.runs) for id_ in listed([(first, last)])} == one & other
        some.merge(others)
        assert set(listed(some.runs)) == one | other


def test_a_set_of_many_ranges_costs_what_its_ranges_cost():
    """A frame has room for 8,191 ranges: against kept commands and as many runs of transfers each step is one of a range."""
    count, steps = 800, [0]
    ranges = [(2 * number, 2 * number) for number in range(count)]
    before = amqp_ranges.distance

    def counted(number, other):
        steps[0] += 1
        return before(number, other)

    amqp_ranges.distance = counted
    try:
        known = ascending(list(reversed(ranges)))
        runs = [[2 * number, 2 * number + 1, None, 0] for number in range(count)]
        assert len(overlaps(runs, known.runs)) == count
        known.merge(ascending([(2 * number + 1, 2 * number + 1) for number in range(50)]))
        assert len([1 for number in range(100) if known.has(number)]) == 100
    finally:
        amqp_ranges.distance = before
    assert steps[0] < 25 * count, steps
