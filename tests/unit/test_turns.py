"""How long a queue's turn is, and what its deliveries count as beside those of other queues (core/queue/turns.py)."""

from peer import Peer, assemble, new_broker

from leveret.core.limits import REPLY_ROOM
from leveret.core.queue import turns


class Rules:
    def __init__(self, groups):
        self.groups = groups


class Kind:
    """As much of a queue as `cost_of` looks at."""

    def __init__(self, is_stream=False, prioritised=False, rules=None, consumers=()):
        self.is_stream = is_stream
        self.prioritised = prioritised
        self.rules = rules
        self.consumers = consumers


def test_a_round_has_so_many_deliveries_of_each_kind_of_queue():
    """Of queues that all need a look 256, of those with groups 48, however many of plain queues it has."""
    for queue, count in (
        (Kind(), 256),
        (Kind(rules=Rules(None)), 256),
        (Kind(rules=Rules({})), 48),
        (Kind(prioritised=True), 32),
        (Kind(prioritised=True, consumers=[None] * 1024), 8),
    ):
        assert turns.cost_of(queue, 7 * count) == 7 and turns.cost_of(queue, 7 * count - 1) == 6, count
        assert turns.cost_of(queue, 1) == 1, "a delivery is never for nothing"


def test_a_round_has_400_deliveries_of_streams_that_python_makes():
    class Round:
        deliveries = 7 * 400

        def turned(self, count):
            self.count = count

    engine = Round()
    turns.charge_stream(engine, 10)
    assert engine.count == 60, "the turn itself counts each once"


def test_a_turn_with_a_look_at_each_message_asks_8192_consumers_at_most():
    for consumers, most in ((0, 32), (1, 32), (256, 32), (257, 31), (4096, 2), (8192, 1), (8193, 1), (20000, 1)):
        assert turns.careful_most(Kind(consumers=[None] * consumers)) == most, consumers


def test_a_large_message_is_whole_whatever_waits_in_front_of_it():
    """Its method and header go when there is room for both (0-9-1 section 4.2.6), behind any number of octets that nobody has read."""
    broker = new_broker(send_buffer_size=1024, receive_buffer_size=4096, arena_size=1 << 16)
    peer, publisher = Peer(broker), Peer(broker)
    peer.declare("q")
    peer.consume("q", "tag", no_ack=True)
    large = bytes(range(250)) * 10
    for size in range(1, 960, 2):
        publisher.publish("q", b"s" * size)
        publisher.publish("q", large, given={"message_id": "m%d" % size})
        assert peer.connection.session.send.room() >= REPLY_ROOM, "deliveries leave room for a reply"
        frames = assemble(peer.frames())
        assert [each[3] for each in frames] == [b"s" * size, large] and frames[1][2] == {"message_id": "m%d" % size}, size
    assert broker.counters["internal_errors"] == 0
