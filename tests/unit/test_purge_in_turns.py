"""queue.purge of many messages takes several turns of a connection (0-9-1 section 1.7.2.7).

No peer holds the loop: a turn drops `effort` messages at most, here TURN. Others have their turn in between; what the client asks next
waits, and the reply comes, with the number of messages, when all have gone. What a removed queue holds: test_removal_in_turns.py.
"""

from memory_store import MemoryStore, durable_broker
from peer import Peer, encoded, new_broker
from test_settling_in_turns import COUNT, ROOM, TURN, names, rounds, say

PURGE = encoded("queue_purge", 1, 0, "q", False)
DELETE = encoded("queue_delete", 1, 0, "q", False, False, False)


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


def logged():
    """The same with a log, and the store that it is in."""
    store = MemoryStore()
    broker = durable_broker(store, **ROOM)[0]
    peer, other = Peer(broker), Peer(broker)
    other.declare("q", durable=True)
    for _ in range(COUNT):
        other.publish("q", b"x", given={"delivery_mode": 2})
    broker.tables.engine.effort = TURN
    broker.tables.begin_turn()
    return broker, peer, other, store


def left(broker):
    return broker.queues["q"].message_count()


def test_the_reply_comes_with_the_whole_number_when_all_has_gone():
    for arguments in (None, {"x-max-priority": 3}, {"x-group-key": "k"}, {"x-message-ttl": 100000}, {"x-max-length": 1000}):
        broker, peer, _ = prepared(arguments)
        say(peer, PURGE)
        assert COUNT - TURN <= left(broker) < COUNT and bytes(peer.connection.pending()) == b"", arguments
        assert rounds(broker) >= COUNT // TURN - 1
        assert peer.expect("queue_purge_ok") == [COUNT], arguments
        assert broker.counters["purged"] == COUNT


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
    broker, peer, other = prepared()
    say(peer, PURGE)
    say(other, encoded("queue_declare", 1, 0, "other", True, False, False, False, False, {}))
    assert other.expect("queue_declare_ok") == ["other", 0, 0] and 0 < left(broker)
    rounds(broker)
    assert peer.expect("queue_purge_ok") == [COUNT]


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


def test_a_connection_that_is_lost_in_the_middle_leaves_the_rest():
    broker, peer, other = prepared()
    say(peer, PURGE)
    there = left(broker)
    peer.connection.finish()
    rounds(broker)
    assert left(broker) == there > 0
    say(other, PURGE)
    rounds(broker)
    assert other.expect("queue_purge_ok") == [there]


def test_a_channel_that_fails_in_the_middle_leaves_the_rest_and_the_next_one_counts_anew():
    """A consumer's time-out closes it from our side (section 1.5.2.5)."""
    broker, peer, other = prepared()
    say(peer, PURGE)
    there = left(broker)
    session = peer.connection.session
    session.shut_channel(session.channels[1], 406, "late")
    rounds(broker)
    assert left(broker) == there > 0 and names(peer) == ["channel_close"]
    say(peer, encoded("channel_close_ok", 1), encoded("channel_open", 1, ""), PURGE)
    rounds(broker)
    assert [(name, given[:1]) for name, _, given in peer.frames()] == [("channel_open_ok", [b""]), ("queue_purge_ok", [there])]


def test_a_queue_that_somebody_deletes_in_the_middle_is_answered_with_what_has_gone():
    broker, peer, other = prepared()
    say(peer, PURGE)
    gone = COUNT - left(broker)
    broker.topology.drop_queue(broker.queues["q"])
    rounds(broker)
    assert peer.expect("queue_purge_ok") == [gone]


def test_with_a_log_the_reply_says_that_all_of_it_is_durable():
    """After a power cut behind the reply nothing of it comes back, also where it took several turns."""
    broker, peer, other, store = logged()
    say(peer, PURGE)
    assert 0 < left(broker) < COUNT
    rounds(broker)
    broker.tick(broker.now + 200, 0)
    broker.run()
    assert peer.expect("queue_purge_ok") == [COUNT]
    again = durable_broker(store.cut(), **ROOM)[0]
    assert again.queues["q"].message_count() == 0


def test_a_log_that_breaks_in_the_middle_has_it_wait_and_it_goes_on():
    broker, peer, other, store = logged()
    say(peer, PURGE)
    store.sync_fails = True
    for _ in range(30):
        broker.tick(broker.now + 200, 0)
        broker.run()
    assert bytes(peer.connection.pending()) == b"" and not broker.behind
    store.sync_fails = False
    for _ in range(30):
        broker.tick(broker.now + 200, 0)
        broker.run()
    assert peer.expect("queue_purge_ok") == [COUNT]
