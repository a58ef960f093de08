"""A peer that takes nothing of what waits for it is ended after send_timeout_ms, whatever it sends; RabbitMQ 3.10 does so after 30 s."""

from peer import Peer, encoded, new_broker

from leveret.core.amqp_0_9.frame import HEARTBEAT_FRAME

LIMIT = 30000


def stuck(address="192.0.2.7", no_ack=False, **limits):
    """(broker, what it has been told, a peer with a delivery that waits to be sent since the moment 0)."""
    broker = new_broker(**limits)
    told = []
    broker.inform = lambda text, *given: told.append(text)
    broker.tick(0, 0)
    peer = Peer(broker)
    peer.connection.address = address
    peer.declare("q")
    peer.give(encoded("basic_consume", 1, 0, "q", "t", False, no_ack, False, False, {}))
    peer.frames()
    Peer(broker).publish("q", b"x" * 100)
    broker.run()
    assert len(peer.connection.pending()) > 100
    peer.connection.tick(0)
    return broker, told, peer


def at(broker, peer, now):
    """True while the connection is there at `now` ms."""
    broker.tick(now, now // 1000)
    peer.connection.tick(now)
    return not peer.connection.closed


def test_a_peer_that_takes_nothing_is_ended_and_its_deliveries_go_back_though_it_sends_heartbeats():
    broker, told, peer = stuck()
    for now in range(0, LIMIT + 1, 5000):
        assert at(broker, peer, now), now
        peer.give(HEARTBEAT_FRAME)
    assert not at(broker, peer, LIMIT + 1)
    broker.run()
    assert broker.queues["q"].message_count() == 1 and broker.queues["q"].unsettled_count() == 0
    assert any("has taken nothing for 30000 ms of what waits for it (limit send_timeout_ms)" in text for text in told), told


def test_one_octet_is_enough():
    broker, _, peer = stuck()
    for now in range(0, 10 * LIMIT, LIMIT):
        assert at(broker, peer, now) and len(peer.connection.pending()) > 20, now
        peer.connection.sent(1)


def test_a_peer_for_which_nothing_waits_may_take_as_long_as_it_likes():
    broker, _, peer = stuck()
    peer.frames()
    assert at(broker, peer, LIMIT - 1) and at(broker, peer, 5 * LIMIT)
    Peer(broker).publish("q", b"x")
    broker.run()
    assert len(peer.connection.pending()) and at(broker, peer, 5 * LIMIT + 1), "what has waited for a moment alone"
    assert at(broker, peer, 6 * LIMIT) and not at(broker, peer, 6 * LIMIT + 2)


def test_a_line_that_is_away_and_a_peer_that_the_broker_does_not_read_are_waited_for():
    for address, reading in (("", True), ("192.0.2.7", False)):
        broker, _, peer = stuck(address)
        peer.connection.reading = reading
        assert at(broker, peer, 1) and at(broker, peer, 10 * LIMIT), (address, reading)


def test_the_limit_is_the_limit_and_0_is_for_ever():
    broker, _, peer = stuck(send_timeout_ms=1000)
    assert at(broker, peer, 1000) and not at(broker, peer, 1001)
    broker, _, peer = stuck(send_timeout_ms=0)
    assert at(broker, peer, 1) and at(broker, peer, 1 << 28)


def test_the_next_tick_is_due_before_the_limit_has_passed():
    """Without heartbeats a session asks for no tick within the hour: the port must come back all the same."""
    broker, _, peer = stuck(no_ack=True)
    broker.tick(10000, 10)
    assert peer.connection.tick(10000) == LIMIT - 10000 + 1
    peer.frames()
    assert peer.connection.tick(10000) == LIMIT
