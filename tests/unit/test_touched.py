"""What the port is told of send buffers (Engine.collect_touched), and reads of its own that an engine makes (Connection.take_in)."""

from peer import Peer, new_broker


class Session:
    """A session that takes octets in by itself: `counts`: what each read gives."""

    has_intake = True
    most_taken = 7

    def __init__(self, *counts):
        self.counts = list(counts)
        self.calls = []

    def take_in(self, descriptor, most):
        self.calls.append((descriptor, most))
        return self.counts.pop(0)

    def took_in(self):
        self.calls.append("took")


def test_buffers_that_were_written_to_are_told_once_where_they_have_a_slot():
    broker = new_broker()
    engine = broker.tables.engine
    peers = [Peer(broker) for _ in range(3)]
    engine.collect_touched()
    buffers = [peer.connection.send for peer in peers]
    for slot, buffer in ((4, buffers[0]), (7, buffers[1])):
        buffer.slot = slot
    assert list(engine.collect_touched()) == []
    for buffer in buffers + buffers:
        buffer.touch()
    assert sorted(engine.collect_touched()) == [4, 7]
    assert list(engine.collect_touched()) == []
    buffers[1].touch()
    assert list(engine.collect_touched()) == [7]


def test_an_engine_reads_where_the_session_wants_that_and_the_connection_is_read():
    broker = new_broker()
    connection = Peer(broker).connection
    broker.tick((broker.now + 500) & 0x3FFFFFFF, broker.seconds)
    own = connection.session
    heard = connection.last_received
    session = connection.session = Session(None, 0, 5)
    assert connection.most_taken == 7
    assert [connection.take_in(9, 100), connection.take_in(9, None)] == [None, 0] and connection.last_received == heard
    assert connection.take_in(9, None) == 5 and connection.last_received == broker.now
    assert session.calls == [(9, 100), (9, None), (9, None), "took"]
    for name, value in (("reading", False), ("gone", True), ("closed", True)):
        kept = getattr(connection, name)
        setattr(connection, name, value)
        assert connection.take_in(9, None) == -1, name
        setattr(connection, name, kept)
    session.has_intake = False
    assert connection.take_in(9, None) == -1
    connection.session = None
    assert connection.take_in(9, None) == -1 and len(session.calls) == 4
    connection.session = own


def test_a_connection_says_whether_and_where_it_is_read():
    connection = Peer(new_broker()).connection
    assert connection.is_read() and connection.in_buffer() is connection.receive
    for name, value in (("reading", False), ("gone", True), ("closed", True)):
        kept = getattr(connection, name)
        setattr(connection, name, value)
        assert not connection.is_read() and connection.in_buffer() is None and len(connection.writable()) == 0, name
        setattr(connection, name, kept)
    receive = connection.receive
    receive.start, receive.end = 0, receive.size
    assert not connection.is_read() and connection.in_buffer() is receive, "it is full"
    receive.start = 1
    assert connection.is_read()
