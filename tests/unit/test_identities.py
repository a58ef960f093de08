"""What queues remember of messages that have gone by is bounded over the whole broker (identity_count_max), whatever peers declare."""

from peer import Peer, encoded, new_broker

MOST = 64


def fresh(*queues):
    """A broker that remembers MOST identities, and a peer that has declared these queues with these arguments."""
    broker = new_broker(identity_count_max=MOST)
    peer = Peer(broker)
    for name, arguments in queues:
        peer.declare(name, durable=True, arguments=arguments)
    return broker, peer


def identified(peer, name, identity):
    """Publish a message with an id to a queue and take out what came of it: how many messages."""
    peer.publish(name, b"x", given={"message_id": identity})
    return peer.ask("queue_purge", "queue_purge_ok", 0, name, False)[0]


def sequenced(peer, name, publisher, sequence):
    """Publish a message of a publisher to a stream."""
    peer.publish(name, b"x", given={"headers": {"x-publisher-id": publisher, "x-publisher-sequence": sequence}})


def left(broker):
    """Identities for which there is a place."""
    return broker.tables.identities.left


def test_the_queue_that_remembers_most_makes_way():
    """identity_count_max: a window of x-deduplication reserves nothing; who remembers much forgets its oldest."""
    broker, peer = fresh(("much", {"x-deduplication": 100000}), ("little", {"x-deduplication": 100000}))
    assert identified(peer, "little", "mine") == 1
    for number in range(3 * MOST):
        assert identified(peer, "much", "id%d" % number) == 1
    assert left(broker) == 0
    assert identified(peer, "little", "mine") == 0, "still known"
    assert identified(peer, "much", "id%d" % (3 * MOST - 1)) == 0, "its newest is known"
    assert identified(peer, "much", "id0") == 1, "its oldest is not"
    recent = broker.queues["much"].rules.features[0].recent
    assert len(getattr(recent, "order", recent.known)) <= 2 * MOST  # the engine in C has no list


def test_the_stream_that_knows_most_publishers_makes_way():
    """identity_count_max: x-publisher-id of one stream cannot take what another stream knows of its publishers."""
    stream = {"x-queue-type": "stream"}
    broker, peer = fresh(("much", stream), ("little", stream), ("window", {"x-deduplication": 10}))
    sequenced(peer, "little", "p", 5)
    identified(peer, "window", "mine")
    for number in range(3 * MOST):
        sequenced(peer, "much", "p%d" % number, 1)
    sequenced(peer, "little", "p", 5)
    assert broker.queues["little"].message_count() == 1, "taken once"
    assert identified(peer, "window", "mine") == 0
    count = broker.queues["much"].message_count()
    sequenced(peer, "much", "p%d" % (3 * MOST - 1), 1)
    assert broker.queues["much"].message_count() == count, "its newest publisher is known"


def test_last_values_have_half_and_further_ones_are_refused():
    """identity_count_max: the publisher gets a negative confirm; known values go on; what is consumed makes room."""
    broker, peer = fresh(("last", {"x-last-value-key": "k"}))
    peer.ask("confirm_select", "confirm_select_ok", False)
    for number in range(MOST // 2):
        peer.publish("last", b"x", given={"headers": {"k": "v%d" % number}})
    assert {each[0] for each in peer.frames()} == {"basic_ack"}
    peer.publish("last", b"x", given={"headers": {"k": "further"}})
    assert [each[0] for each in peer.frames()] == ["basic_nack"] and broker.counters["rejected_publishes"] == 1
    peer.publish("last", b"y", given={"headers": {"k": "v0"}})
    peer.publish("last", b"y")
    broker.fold_counters()
    assert {each[0] for each in peer.frames()} == {"basic_ack"} and broker.counters["replaced"] == 1
    peer.ask("queue_purge", "queue_purge_ok", 0, "last", False)
    for number in range(4):
        broker.tick(100 * number, 1700000000)
    peer.publish("last", b"x", given={"headers": {"k": "further"}})
    assert [each[0] for each in peer.frames()] == ["basic_ack"]


def test_a_queue_that_goes_gives_its_places_back():
    """identity_count_max: deleted, or without x-deduplication when the policy that asked for it is removed."""
    broker, peer = fresh(
        ("window", {"x-deduplication": 100}), ("last", {"x-last-value-key": "k"}), ("stream", {"x-queue-type": "stream"}), ("shaped", {})
    )
    broker.policies.set(broker, broker.policies.made("short", "shaped", {"deduplication": 10}))
    for number in range(5):
        identified(peer, "window", "id%d" % number)
        identified(peer, "shaped", "id%d" % number)
        peer.publish("last", b"x", given={"headers": {"k": number}})
        sequenced(peer, "stream", "p%d" % number, 1)
    assert left(broker) == MOST - 20
    broker.policies.remove(broker, "short")
    assert left(broker) == MOST - 15
    for name in ("window", "last", "stream"):
        peer.give(encoded("queue_delete", 1, 0, name, False, False, False))
    assert left(broker) == MOST and not broker.tables.identities.holders and not broker.tables.identities.values


def test_a_publish_to_a_stream_that_is_taken_back_may_come_again():
    """core/stream/publishers.py: what was seen just now and not appended after all is no duplicate when it comes again."""
    broker, peer = fresh(("s", {"x-queue-type": "stream"}))
    sequenced(peer, "s", "p", 5)
    stream = broker.queues["s"]
    stream.withdraw()
    assert stream.message_count() == 0
    sequenced(peer, "s", "p", 5)
    assert stream.message_count() == 1
    sequenced(peer, "s", "p", 5)
    assert stream.message_count() == 1 and broker.tables.counts["stream_duplicates"] == 1
