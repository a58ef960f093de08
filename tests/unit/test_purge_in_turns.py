"""queue.purge and queue.delete of many messages take several turns of a connection (0-9-1 sections 1.7.2.7 and 1.7.2.9).

No peer holds the loop: a turn drops `effort` messages at most, here TURN. Others have their turn in between; what the client asks next
waits, and the reply comes, with the number of messages, when all have gone.
"""

from memory_store import MemoryStore, durable_broker
from peer import Peer, encoded, idle, new_broker
from test_settling_in_turns import COUNT, ROOM, TURN, names, rounds, say

PURGE = encoded("queue_purge", 1, 0, "q", False)
DELETE = encoded("queue_delete", 1, 0, "q", False, False, False)
BOTH = ((PURGE, "queue_purge_ok"), (DELETE, "queue_delete_ok"))


def prepared(arguments=None, **options):
    """A broker whose turns are short, a peer, and another one that has published COUNT messages to queue q."""
    broker = new_broker(**ROOM)
    peer, other = Peer(broker), Peer(broker)
    other.declare("other")
    other.declare("q", arguments=arguments, **options)
    for number in range(COUNT):
        other.publish("q", b"%d" % number)
    broker.tables.engine.effort = TURN
    broker.tables.begin_turn()
    return broker, peer, other


def left(broker):
    return broker.queues["q"].message_count()


def test_the_reply_comes_with_the_whole_number_when_all_has_gone():
    for arguments in (None, {"x-max-priority": 3}, {"x-group-key": "k"}, {"x-message-ttl": 100000}, {"x-max-length": 1000}):
        for octets, reply in BOTH:
            broker, peer, _ = prepared(arguments)
            say(peer, octets)
            assert COUNT - TURN <= left(broker) < COUNT and bytes(peer.connection.pending()) == b"", arguments
            assert rounds(broker) >= COUNT // TURN - 1
            assert peer.expect(reply) == [COUNT], (arguments, reply)
            counter = "purged" if reply == "queue_purge_ok" else "dropped_with_queue"
            assert broker.counters[counter] == COUNT and ("q" in broker.queues) == (reply == "queue_purge_ok")


def test_a_stream_too():
    broker, peer, other = prepared({"x-queue-type": "stream"}, durable=True)
    say(peer, PURGE)
    assert 0 < left(broker) < COUNT
    rounds(broker)
    assert peer.expect("queue_purge_ok") == [COUNT] and left(broker) == 0
    assert broker.queues["q"].next_offset() == COUNT


def test_a_second_one_begins_at_nothing():
    """What the first one has counted is not told again; several methods of one read are taken in their order."""
    broker, peer, other = prepared()
    say(peer, PURGE, PURGE, encoded("queue_declare", 1, 0, "q", True, False, False, False, False, {}), DELETE)
    rounds(broker)
    assert [(name, given) for name, _, given in peer.frames()] == [
        ("queue_purge_ok", [COUNT]),
        ("queue_purge_ok", [0]),
        ("queue_declare_ok", ["q", 0, 0]),
        ("queue_delete_ok", [0]),
    ]


def test_others_have_their_turn_in_between():
    for octets, reply in BOTH:
        broker, peer, other = prepared()
        say(peer, octets)
        say(other, encoded("queue_declare", 1, 0, "other", True, False, False, False, False, {}))
        assert other.expect("queue_declare_ok") == ["other", 0, 0] and 0 < left(broker)
        rounds(broker)
        assert peer.expect(reply) == [COUNT]


def test_a_purge_ends_while_others_publish_faster_than_it_drops():
    """It drops as many as there were when it began."""
    broker, peer, other = prepared()
    say(peer, PURGE)
    for _ in range(COUNT // TURN + 2):
        for _ in range(2 * TURN):
            other.publish("q", b"later")
        broker.run()
    rounds(broker)
    assert peer.expect("queue_purge_ok") == [COUNT] and left(broker) == (COUNT // TURN + 2) * 2 * TURN


def test_what_comes_while_a_queue_is_deleted_goes_with_it_and_is_counted():
    broker, peer, other = prepared()
    say(peer, DELETE)
    other.publish("q", b"later")
    rounds(broker)
    assert peer.expect("queue_delete_ok") == [COUNT + 1]


def test_a_consumer_that_comes_meanwhile_does_not_stop_a_delete_that_has_begun():
    """if-unused was looked at when it began; the consumer is told (RabbitMQ's consumer cancel)."""
    broker, peer, other = prepared()
    say(peer, encoded("queue_delete", 1, 0, "q", True, False, False))
    say(other, encoded("basic_consume", 1, 0, "q", "c", False, True, False, True, {}))
    rounds(broker)
    assert "queue_delete_ok" in names(peer) and "q" not in broker.queues and not broker.counters["internal_errors"]


def test_a_connection_that_is_lost_in_the_middle_leaves_the_rest():
    for octets, _ in BOTH:
        broker, peer, other = prepared()
        say(peer, octets)
        there = left(broker)
        peer.connection.finish()
        rounds(broker)
        assert left(broker) == there > 0
        say(other, PURGE)
        rounds(broker)
        assert other.expect("queue_purge_ok") == [there]


def test_a_channel_that_fails_in_the_middle_leaves_the_rest_and_the_next_one_counts_anew():
    """A consumer's time-out closes it from our side (section 1.5.2.5)."""
    for octets, reply in BOTH:
        broker, peer, other = prepared()
        say(peer, octets)
        there = left(broker)
        session = peer.connection.session
        session.shut_channel(session.channels[1], 406, "late")
        rounds(broker)
        assert left(broker) == there > 0 and names(peer) == ["channel_close"]
        say(peer, encoded("channel_close_ok", 1), encoded("channel_open", 1, ""), octets)
        rounds(broker)
        assert [(name, given[:1]) for name, _, given in peer.frames()] == [("channel_open_ok", [b""]), (reply, [there])]


def test_a_queue_that_somebody_deletes_in_the_middle_is_answered_with_what_has_gone():
    for octets, reply in BOTH:
        broker, peer, other = prepared()
        say(peer, octets)
        gone = COUNT - left(broker)
        broker.drop_queue(broker.queues["q"])
        rounds(broker)
        assert peer.expect(reply) == [gone]


def test_all_that_is_purged_or_deleted_leaves_nothing():
    for octets, _ in BOTH:
        broker, peer, other = prepared()
        say(peer, octets)
        rounds(broker)
        gone = broker.tables.queue_pool[2]
        assert idle(broker)[:3] == idle(new_broker(**ROOM))[:3] and gone == broker.limits.queue_count_max - (
            2 if "q" in broker.queues else 1
        )


def test_with_a_log_the_reply_says_that_all_of_it_is_durable():
    """After a power cut behind the reply nothing of it comes back, also where it took several turns; and while the log cannot be written
    a delete waits."""
    for octets, reply in BOTH:
        store = MemoryStore()
        broker = durable_broker(store, **ROOM)[0]
        peer, other = Peer(broker), Peer(broker)
        other.declare("q", durable=True)
        for _ in range(COUNT):
            other.publish("q", b"x", given={"delivery_mode": 2})
        broker.tables.engine.effort = TURN
        broker.tables.begin_turn()
        say(peer, octets)
        assert 0 < left(broker) < COUNT
        rounds(broker)
        broker.tick(broker.now + 200, 0)
        broker.run()
        assert peer.expect(reply) == [COUNT]
        again = durable_broker(store.cut(), **ROOM)[0]
        assert "q" not in again.queues or again.queues["q"].message_count() == 0


def test_a_log_that_breaks_in_the_middle_has_it_wait_and_it_goes_on():
    for octets, reply in BOTH:
        store = MemoryStore()
        broker = durable_broker(store, **ROOM)[0]
        peer, other = Peer(broker), Peer(broker)
        other.declare("q", durable=True)
        for _ in range(COUNT):
            other.publish("q", b"x", given={"delivery_mode": 2})
        broker.tables.engine.effort = TURN
        broker.tables.begin_turn()
        say(peer, octets)
        store.sync_fails = True
        for _ in range(30):
            broker.tick(broker.now + 200, 0)
            broker.run()
        assert bytes(peer.connection.pending()) == b"" and not broker.behind
        store.sync_fails = False
        for _ in range(30):
            broker.tick(broker.now + 200, 0)
            broker.run()
        assert peer.expect(reply) == [COUNT]
