"""AMQP 0-10, class session: ids of commands go around at 2**32 in sessions that live beyond their transport."""

from memory_store import MemoryStore
from peer_0_10 import control, new_broker
from same_random import Random
from test_0_10_sessions import ROOM, cut, durable, lasting, sent

from leveret.core.amqp_0_10.ranges import Ranges
from leveret.core.memory import layout
from leveret.core.memory.serial import after


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


def test_a_set_without_another_is_what_taking_out_each_range_leaves():
    """Ranges.without takes one step a range: of a session with hundreds of refused ranges a record was written in 25 ms."""
    random = Random(17)
    for _ in range(300):
        begin = after(0, -random.choice((0, 20, 30)))
        some, others, left = Ranges(), Ranges(), Ranges()
        for set_, most in ((some, 4), (others, 6)):
            for _ in range(random.below(most)):
                first = after(begin, random.below(40))
                set_.add(first, after(first, random.below(8)))
        left.runs = [list(run) for run in some.runs]
        for first, last in others.runs:
            left.remove(first, last)
        assert some.without(others).runs == left.runs, (some.runs, others.runs)
