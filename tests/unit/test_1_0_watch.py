"""What time, and a peer that does not read, do to a connection of AMQP 1.0."""

from peer_1_0 import Peer, data, declare, error_in, new_broker, performative

from leveret.core.outcomes import nobody


def ready(**limits):
    """A peer with a session, and a queue."""
    broker = new_broker(**limits)
    declare(broker)
    return Peer(broker)


def tick(peer, now):
    """Time passes."""
    peer.broker.tick(now, 0)
    peer.connection.tick(now)


def test_a_peer_that_does_not_log_in_goes():
    for opens in (False, True):
        peer = Peer(new_broker(), opens=False)
        if opens:
            peer.log_in()
        tick(peer, peer.broker.limits.login_timeout_ms + 1)
        assert peer.connection.closed or peer.connection.ending


def test_a_delivery_that_nobody_settles_ends_its_session():
    """consumer_timeout_ms, as on 0-9-1."""
    peer = ready(consumer_timeout_ms=5000)
    peer.sender()
    peer.send(0, b"x")
    peer.frames()
    peer.receiver()
    assert len(peer.messages()) == 1
    for now in (1000, 3000, 6500):
        peer.give(b"\x00\x00\x00\x08\x02\x00\x00\x00")
        tick(peer, now)
    assert error_in(peer.frames(), "end")[0] == "amqp:precondition-failed"
    assert peer.broker.queues["q"].message_count() == 1 and peer.broker.counters["settle_timeouts"] == 1


def test_a_message_that_goes_no_further_ends_its_connection():
    """content_timeout_ms."""
    peer = ready(content_timeout_ms=1000)
    peer.sender()
    octets = data(b"x" * 100)
    peer.give(performative("transfer", 0, octets[:60], handle=0, delivery_id=0, delivery_tag=b"t", more=True))
    tick(peer, 900)
    assert peer.frames() == []
    tick(peer, 1100)
    assert error_in(peer.frames(), "close")[0] == "amqp:resource-limit-exceeded"


def test_a_close_of_ours_that_is_not_answered():
    peer = ready()
    peer.connection.close("bye")
    assert error_in(peer.frames(), "close") == ("amqp:connection:forced", "Connection forced: bye")
    tick(peer, 4000)
    assert peer.connection.closed or peer.connection.ending


def test_a_peer_that_asks_and_does_not_read_is_read_no_further():
    """Replies that wait are few: frames that want one stay in the receive buffer."""
    peer = ready()
    flow = {"next_incoming_id": 0, "incoming_window": 9, "next_outgoing_id": 0, "outgoing_window": 9}
    for octets in (
        performative("flow", echo=True, **flow),
        performative("attach", name="a", handle=0, role=False, target=("target", {"address": "/none"}), initial_delivery_count=0)
        + performative("detach", handle=0, closed=True),
        performative("begin", 1, next_outgoing_id=0, incoming_window=1, outgoing_window=1) + performative("end", 1),
    ):
        peer = ready()
        peer.collect()
        taken = 0
        for _ in range(3000):
            taken += peer.give(octets)
        session = peer.connection.session
        assert len(session.replies) < 10 and len(peer.connection.pending()) <= peer.broker.limits.send_buffer_size, len(session.replies)
        found = len(peer.frames())
        assert found > 3 and peer.broker.counters["internal_errors"] == 0
        assert peer.connection.reading


def test_a_publisher_that_does_not_read_its_outcomes_is_kept_within_its_credit():
    peer = ready()
    peer.sender()
    for number in range(200):
        peer.send(number, b"")
    session = peer.connection.session.mapped[0]
    assert len(session.answers) <= 64 and len(session.received) <= 64
    assert error_in(peer.frames(), "detach")[0] == "amqp:link:transfer-limit-exceeded"


def test_dispositions_that_are_left_to_us_and_not_read_are_few():
    peer = ready()
    for _ in range(2000):
        peer.settle(1, ("accepted", {}), settled=False)
    session = peer.connection.session.mapped.get(0)
    assert session is None or len(session.settled) <= 256
    assert peer.broker.counters["internal_errors"] == 0


def test_a_link_gives_back_in_turns_what_stands_behind_the_deliveries_of_another():
    peer = ready()
    peer.sender()
    for number in range(60):
        peer.send(number, b"x")
        peer.frames()
    peer.receiver(name="a", handle=1, credit=30)
    assert len(peer.messages()) == 30
    peer.receiver(name="b", handle=2, credit=30)
    assert len(peer.messages()) == 30
    peer.broker.tables.engine.effort = 7
    peer.give(performative("detach", handle=2, closed=True))
    for _ in range(40):
        peer.collect()
    assert [each[0] for each in peer.frames()] == ["detach"]
    queue = peer.broker.queues["q"]
    assert queue.message_count() == 30 and queue.unsettled_count() == 30 and peer.connection.has_turn


def test_publishes_to_many_queues_leave_turns_to_others():
    peer = ready(queue_count_max=40, queue_share_max=40, binding_count_max=100, binding_share_max=100)
    for number in range(20):
        declare(peer.broker, "f%d" % number)
        peer.broker.topology.bind(nobody, "f%d" % number, "amq.fanout", b"", {})
    peer.sender("/exchanges/amq.fanout")
    peer.broker.tables.engine.effort = 50
    octets = b"".join(
        [performative("transfer", 0, data(b""), handle=0, delivery_id=each, delivery_tag=b"%d" % each, settled=True) for each in range(9)]
    )
    peer.connection.writable()[: len(octets)] = octets
    peer.connection.received(len(octets))
    assert not peer.connection.has_turn and peer.broker.queues["f0"].message_count() == 3
    peer.collect()
    for _ in range(9):
        peer.broker.run()
    assert peer.broker.queues["f19"].message_count() == 9


def test_a_session_that_leaves_with_many_deliveries_goes_in_turns():
    peer = ready()
    peer.sender()
    for number in range(100):
        peer.send(number, b"x")
        peer.collect()
    peer.frames()
    peer.receiver(credit=100)
    assert len(peer.messages()) == 100
    peer.broker.tables.engine.effort = 9
    for octets, answer in ((performative("detach", handle=1, closed=True), "detach"), (performative("end"), "end")):
        peer.give(octets)
        for _ in range(60):
            peer.collect()
        assert [each[0] for each in peer.frames()] == [answer]
    queue = peer.broker.queues["q"]
    assert queue.message_count() == 100 and queue.unsettled_count() == 0
