"""A subscription of AMQP 0-10 with acquire-mode not-acquired, beside its verbs (message.subscribe, message.acquire):
what it passes by, when it ends, its credit, and where what it acquires stands in the session's list."""

from peer_0_10 import Peer, new_broker
from test_poison import pass_time

from leveret.core.amqp_0_10 import browsing
from leveret.core.memory.invariants import check

ALL = 0xFFFFFFFF


def browser(peer, destination="b", messages=ALL, octets=ALL, number=0):
    """A subscription that browses the queue q, with credit."""
    peer.do("message_subscribe", number, queue="q", destination=destination, accept_mode=0, acquire_mode=1)
    for unit, value in ((0, messages), (1, octets)):
        peer.do("message_flow", number, destination=destination, unit=unit, value=value)


def filled(count, **given):
    """(broker, peer) with messages "0", "1", ... in the queue q."""
    broker = new_broker(**given)
    peer = Peer(broker)
    peer.do("queue_declare", queue="q")
    for number in range(count):
        peer.publish(b"%d" % number)
    peer.all()
    return broker, peer


def bodies(peer):
    return [body for _, body in peer.transfers()]


def acquired(peer, *ranges):
    """The ranges that message.acquire answers."""
    peer.do("message_acquire", transfers=list(ranges))
    ((fields),) = [each[1] for each in peer.all() if each[0] == "execution_result"]
    return fields


def held(broker, peer):
    """The ids of the session's unsettled transfers, in its list's order."""
    (session,) = peer.connection.sessions()
    tables, ids = broker.tables, []
    entry = tables.channels[session.handle + browsing.layout.CHANNEL_UNSETTLED_HEAD]
    while entry != browsing.layout.NONE:
        ids.append(browsing.numbers.of(session, entry))
        entry = tables.entries[entry + browsing.layout.ENTRY_NEXT]
    return ids


def test_what_is_acquired_stands_at_the_place_of_its_transfer():
    """message.acquire in any order; session 5.6.2: ids go up along the list of what is unsettled."""
    for order in ((2, 0, 1, 3), (3, 2, 1, 0), (0, 1, 2, 3), (1, 3, 0, 2)):
        broker, peer = filled(4)
        browser(peer)
        assert bodies(peer) == [b"0", b"1", b"2", b"3"] and broker.queues["q"].message_count() == 4
        for at, id_ in enumerate(order):
            acquired(peer, (id_, id_))
            assert held(broker, peer) == sorted(order[: at + 1]), order
            check(broker.tables)
        assert broker.queues["q"].message_count() == 0 and broker.queues["q"].unsettled_count() == 4
        peer.do("message_accept", transfers=[(0, 3)])
        broker.run()
        assert broker.queues["q"].unsettled_count() == 0


def test_those_of_a_range_that_others_have_are_not_acquired():
    broker, peer = filled(3)
    browser(peer)
    assert len(bodies(peer)) == 3
    other = Peer(broker, name=b"other")
    other.subscribe(messages=1)
    assert bodies(other) == [b"0"]
    acquired(peer, (0, 1))
    assert held(broker, peer) == [1] and broker.queues["q"].message_count() == 1
    acquired(peer, (0, 1))
    assert held(broker, peer) == [1], "what was asked for once is known no more"


def test_credit_of_messages_and_of_octets_bounds_what_is_seen_and_more_goes_on_where_it_was():
    broker, peer = filled(5)
    browser(peer, messages=2)
    assert bodies(peer) == [b"0", b"1"]
    pass_time(broker, 500)
    assert bodies(peer) == []
    peer.do("message_flow", destination="b", unit=0, value=2)
    pass_time(broker, 200)
    assert bodies(peer) == [b"2", b"3"]
    peer.do("message_flow", destination="b", unit=0, value=5)
    pass_time(broker, 200)
    assert bodies(peer) == [b"4"]
    peer.publish(b"new")
    pass_time(broker, 200)
    assert bodies(peer) == [b"new"]


def test_no_octets_are_no_credit_and_a_message_that_is_larger_waits_for_more():
    broker = new_broker()
    peer = Peer(broker)
    peer.do("queue_declare", queue="q")
    peer.publish(b"x" * 500)
    browser(peer, octets=50)
    pass_time(broker, 300)
    assert bodies(peer) == []
    peer.do("message_flow", destination="b", unit=1, value=5000)
    pass_time(broker, 300)
    assert bodies(peer) == [b"x" * 500]


def test_a_queue_that_goes_ends_it_and_a_cancel_does():
    broker, peer = filled(1)
    browser(peer)
    protocol = peer.connection.session
    assert bodies(peer) == [b"0"] and len(protocol.browsing) == 1
    peer.do("message_cancel", destination="b")
    pass_time(broker, 300)
    assert protocol.browsing == []
    broker, peer = filled(1)
    browser(peer)
    protocol = peer.connection.session
    assert bodies(peer) == [b"0"]
    other = Peer(broker, name=b"other")
    other.do("queue_delete", queue="q")
    pass_time(broker, 300)
    peer.connection.tick(broker.now)
    assert protocol.browsing == [] and "q" not in broker.queues
    check(broker.tables)


def test_so_many_transfers_are_remembered_and_the_oldest_forgotten():
    kept = browsing.BROWSED_MAX
    broker, peer = filled(3)
    (session,) = peer.connection.sessions()
    browser(peer)
    assert len(bodies(peer)) == 3
    for number in range(3, kept):
        session.browsed[100000 + number] = session.browsed[2]
    peer.publish(b"last")
    pass_time(broker, 300)
    assert bodies(peer) == [b"last"] and len(session.browsed) == kept and 0 not in session.browsed and 1 in session.browsed


def test_places_go_around_at_30_bits():
    _, peer = filled(0)
    browser(peer)
    (made,) = peer.connection.session.browsing
    made.passed = {0: 5}
    near = browsing.layout.MASK
    assert made.has_passed(0, 5) and made.has_passed(0, 4) and not made.has_passed(0, 6) and not made.has_passed(1, 5)
    assert made.has_passed(0, near) and not made.has_passed(0, 6 + (near >> 1))
