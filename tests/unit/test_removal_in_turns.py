"""What a queue holds that is removed goes in turns, whoever removes it: queue.delete, its last consumer (auto-delete), its connection
(exclusive), time (x-expires).

Its name is free and queue.delete is answered at once; a round drops `effort` messages at most, here TURN. Nothing is routed to the queue
any more, so nobody who publishes keeps it alive.
"""

from memory_store import durable_broker
from peer import Peer, content, encoded, new_broker
from test_purge_in_turns import DELETE, logged
from test_settling_in_turns import COUNT, ROOM, TURN, say

from leveret.core.broker.guard import AGAIN_MS
from leveret.core.broker.topology import BINDINGS_A_TURN
from leveret.core.queue.dead_letters import LETTERS_MAX


def pools(broker):
    """Blocks, messages, entries, queues, bindings that are free."""
    state = broker.tables.state
    return [state[2], state[5], state[8], broker.tables.queue_pool[2], -broker.topology.binding_count]


def made(arguments=None, **flags):
    """A broker with queue q, two peers, and what its pools had before."""
    broker = new_broker(waiting_count_max=2 * COUNT, **ROOM)
    peer, other = Peer(broker), Peer(broker)
    before = pools(broker)
    other.declare("q", arguments=arguments, **flags)
    return broker, peer, other, before


def short(broker):
    """Turns are short from now on."""
    broker.tables.engine.effort = TURN
    broker.tables.begin_turn()


def goes_in_turns(broker, before, turn=2 * TURN):
    """The messages of the queue, which was just removed, go by and by, until everything is as `before`: the rounds that took."""
    rounds, most = 0, 0
    while broker.jobs or broker.has_active() or pools(broker) != before:
        entries = broker.tables.state[8]
        broker.tick(broker.now + 60, 0)
        broker.run()
        most = max(most, broker.tables.state[8] - entries)
        rounds += 1
        assert rounds < 100
    assert most <= turn and not broker.counters["internal_errors"], most
    return rounds


def test_what_is_ready_in_a_queue_that_is_deleted():
    broker, peer, other, before = made()
    for _ in range(COUNT):
        other.publish("q", b"x")
    short(broker)
    say(other, DELETE)
    assert other.expect("queue_delete_ok") == [COUNT] and "q" not in broker.queues
    assert goes_in_turns(broker, before) >= COUNT // TURN - 1
    assert broker.counters["dropped_with_queue"] == COUNT


def test_what_is_ready_in_a_queue_whose_last_consumer_ends():
    broker, peer, other, before = made(auto_delete=True)
    for _ in range(COUNT):
        other.publish("q", b"x")
    other.ask("basic_qos", "basic_qos_ok", 0, 1, False)
    other.consume("q")
    short(broker)
    say(other, encoded("basic_cancel", 1, "c", True))
    assert "q" not in broker.queues
    assert goes_in_turns(broker, before) >= COUNT // TURN - 1
    assert broker.counters["dropped_with_queue"] == COUNT


def test_what_is_ready_in_a_queue_that_nobody_uses():
    broker, peer, other, before = made({"x-expires": 1500})
    for _ in range(COUNT):
        other.publish("q", b"x")
    short(broker)
    while "q" in broker.queues:
        broker.tick(broker.now + 500, 0)
    assert goes_in_turns(broker, before) >= COUNT // TURN - 1
    assert broker.counters["dropped_with_queue"] == COUNT and broker.counters["queues_expired"] == 1


def test_what_is_ready_or_unsettled_in_the_exclusive_queues_of_a_connection():
    """Together they have a turn, not each one."""
    broker = new_broker(**ROOM)
    peer = Peer(broker)
    before = pools(broker)
    for name in ("a", "b", "c", "d", "e"):
        peer.declare(name, exclusive=True)
        for _ in range(COUNT // 5):
            peer.publish(name, b"x")
    peer.ask("basic_qos", "basic_qos_ok", 0, 3, False)
    peer.consume("a")
    short(broker)
    peer.connection.finish()
    assert [name for name in broker.queues if name != "leveret.poison"] == []
    assert goes_in_turns(broker, before) >= COUNT // TURN - 1
    assert broker.counters["dropped_with_queue"] == COUNT


def test_what_is_unsettled():
    """With a consumer that is told, or was cancelled before; its channel goes on, and its next queue is another one."""
    for cancelled in (False, True):
        broker, peer, other, before = made()
        for _ in range(COUNT):
            other.publish("q", b"x")
        peer.consume("q")
        assert broker.queues["q"].unsettled_count() == COUNT
        if cancelled:
            peer.ask("basic_cancel", "basic_cancel_ok", "c", False)
        short(broker)
        say(other, DELETE)
        assert other.expect("queue_delete_ok") == [0]
        assert goes_in_turns(broker, before) >= COUNT // TURN - 1
        assert broker.counters["dropped_with_queue"] == COUNT
        assert peer.declare("q") == ["q", 0, 0]


def test_what_a_client_settles_or_gives_back_meanwhile():
    """It is no dead letter, and is delivered to nobody."""
    for octets, settled in (
        (encoded("basic_ack", 1, COUNT, False), 1),
        (encoded("basic_nack", 1, COUNT, True, True), 0),
        (encoded("basic_nack", 1, COUNT, False, False), 1),
    ):
        broker, peer, other, before = made({"x-dead-letter-exchange": "amq.fanout", "x-delivery-limit": 2})
        for _ in range(COUNT):
            other.publish("q", b"x")
        peer.consume("q")
        short(broker)
        say(other, DELETE)
        say(peer, octets)
        goes_in_turns(broker, before)
        assert broker.counters["dropped_with_queue"] == COUNT - settled and broker.counters["dead_lettered"] == 0


def test_what_waits_for_a_moment():
    broker, peer, other, before = made()
    flags = (False, False, False, False, False)
    other.ask("exchange_declare", "exchange_declare_ok", 0, "later", "x-delayed-message", *flags, {"x-delayed-type": "fanout"})
    other.ask("queue_bind", "queue_bind_ok", 0, "q", "later", "", False, {})
    for _ in range(COUNT):
        other.publish("", b"x", "later", {"headers": {"x-delay": 1000000}})
    short(broker)
    say(other, DELETE)
    assert goes_in_turns(broker, before) >= COUNT // TURN - 1
    assert broker.counters["dropped_with_queue"] == COUNT


def test_dead_letters_that_wait_for_room():
    broker, peer, other, before = made({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    other.declare("dead", arguments={"x-max-length": 1, "x-overflow": "block"})
    for _ in range(COUNT):
        other.publish("q", b"x")
    peer.consume("q")
    peer.give(encoded("basic_nack", 1, COUNT, True, False))
    waiting = len(list(broker.dead_letters.all(broker)))
    short(broker)
    say(other, DELETE)
    say(other, encoded("queue_delete", 1, 0, "dead", False, False, True))
    goes_in_turns(broker, before, LETTERS_MAX)
    assert broker.counters["dropped_with_queue"] == COUNT and waiting == COUNT - 1


def test_many_bindings_go_in_turns_too():
    for way in ("auto_delete", "exclusive"):
        broker = new_broker(binding_count_max=2000, binding_share_max=2000, **ROOM)
        peer = Peer(broker)
        before = pools(broker)
        peer.declare("q", **{way: True})
        peer.consume("q")
        for each in range(2 * BINDINGS_A_TURN + 5):
            peer.give(encoded("queue_bind", 1, 0, "q", "amq.direct", "k%d" % each, True, {}))
        if way == "exclusive":
            peer.connection.finish()
        else:
            say(peer, encoded("basic_cancel", 1, "c", True))
        assert broker.topology.binding_count > BINDINGS_A_TURN
        goes_in_turns(broker, before)
        assert "q" not in broker.queues


def test_who_publishes_does_not_keep_it_alive():
    broker, peer, other, before = made()
    for _ in range(COUNT):
        other.publish("q", b"x")
    short(broker)
    say(other, DELETE)
    while broker.jobs:
        say(peer, content(1, "", "q", b"x") * 2 * TURN)
        broker.run()
    assert pools(broker) == before and broker.counters["unroutable"] > 0


def test_its_name_is_another_queues_at_once():
    broker, peer, other, before = made()
    for _ in range(COUNT):
        other.publish("q", b"x")
    short(broker)
    say(other, DELETE)
    assert peer.declare("q", arguments={"x-max-length": 3}) == ["q", 0, 0]
    peer.publish("q", b"new")
    while broker.jobs:
        broker.run()
    assert broker.queues["q"].message_count() == 1


def test_with_a_log_nothing_of_it_comes_back_and_its_segments_go():
    broker, peer, other, store = logged()
    say(other, DELETE)
    assert broker.jobs and "q" not in broker.queues
    broker.journal.finish()
    assert "q" not in durable_broker(store.cut(), **ROOM)[0].queues
    while broker.jobs:
        broker.run()
    broker.tick(broker.now + 2000, 0)
    broker.run()
    assert sum([segment.live for segment in broker.journal.log.segments]) == 0
    again = durable_broker(store.cut(), **ROOM)[0]
    assert "q" not in again.queues and pools(again)[:3] == pools(new_broker(**ROOM))[:3]


def test_a_removal_that_raises_is_tried_again():
    """Each step once: before the name is free the queue is there as it was, and from then on a job has it."""
    for place, is_there in (("forget_queue", True), ("end_some", False)):
        broker, _, other, before = made(exclusive=True)
        other.publish("q", b"x")

        def fails(found):
            raise MemoryError

        setattr(broker.topology, place, fails)
        other.connection.received(0)
        assert ("q" in broker.queues) is is_there and not broker.jobs and len(broker.guard.jobs) == 1
        assert other.connection not in broker.connections
        delattr(broker.topology, place)
        for _ in range(AGAIN_MS // 50 + 2):
            broker.tick(broker.now + 60, 0)
            broker.run()
        assert pools(broker) == before and not broker.queues and not broker.jobs and not broker.guard.jobs
        assert broker.counters["internal_errors"] == 1
