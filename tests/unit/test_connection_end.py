"""The broker ends a connection from its side: with the handshake where it is open, at once where nobody would answer (2.2.4)."""

from peer import HEADER, Peer, content, encoded, new_broker

from leveret.core.amqp_0_9 import frame

HANDSHAKE = (
    b"",
    HEADER[:3],
    HEADER,
    encoded("connection_start_ok", 0, {}, "PLAIN", b"\x00guest\x00guest", "en_US"),
    encoded("connection_tune_ok", 0, 0, 0, 0),
)


def test_a_connection_that_is_not_open_ends_at_once():
    for count in range(1, len(HANDSHAKE) + 1):
        broker = new_broker()
        peer = Peer(broker, log_in=False)
        for octets in HANDSHAKE[:count]:
            peer.give(octets[3:] if octets == HEADER else octets)
        peer.take()
        peer.inbox = b""
        assert not peer.connection.closed
        peer.connection.close("the broker is shutting down")
        assert peer.connection.closed and len(broker.connections) == 0 and len(peer.connection.pending()) == 0, count


def test_an_open_connection_is_told_once_and_waited_for():
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q", exclusive=True)
    peer.connection.close("the broker is shutting down")
    peer.connection.close("the broker is shutting down")
    assert peer.expect("connection_close")[0] == 320
    assert not peer.connection.closed and len(broker.connections) == 1
    peer.give(encoded("connection_close_ok", 0))
    assert peer.connection.closed and len(broker.connections) == 0


def test_a_connection_that_was_told_of_an_error_is_not_told_again():
    broker = new_broker()
    peer = Peer(broker)
    peer.give(encoded("connection_close_ok", 0))
    assert peer.expect("connection_close")[0] == 504
    peer.connection.close("the broker is shutting down")
    assert peer.frames() == [] and not peer.connection.closed
    peer.give(encoded("connection_close_ok", 0))
    assert peer.connection.closed


def test_what_came_before_the_end_of_a_stream_counts_and_keeps_nobody_waiting():
    """A buffer full of the smallest frames (4.2.7) and then the end: others have their turns while they are taken."""
    broker = new_broker(receive_buffer_size=65536)
    peer, other = Peer(broker), Peer(broker)
    peer.declare("q")
    octets = 4000 * frame.encode(frame.HEARTBEAT, 0, b"") + content(1, "", "q", b"last")
    view = peer.connection.writable()
    view[0 : len(octets)] = octets
    peer.connection.received(len(octets))
    peer.connection.received(0)
    assert not peer.connection.closed and len(peer.connection.writable()) == 0
    assert other.declare("q") == ["q", 0, 0], "it has not waited for 4,000 frames"
    peer.connection.received(0)
    rounds = 0
    while broker.has_active():
        broker.run()
        rounds += 1
    assert peer.connection.closed and rounds > 3 and len(broker.connections) == 1
    assert other.declare("q") == ["q", 1, 0]
