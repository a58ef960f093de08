"""A fault of ours in the middle of a verb leaves all or nothing: no consumer, no delay, no delivery that is half there (SPEC.md, "Faults of
the broker's own"); what rules and notes of one queue raise is that queue's alone, is told once, and the others go on."""

from memory_store import PERSISTENT, MemoryStore, durable_broker
from peer import Peer, content, encoded, new_broker, taken
from test_poison import WHY, Swapped, pass_time, with_sentences

from leveret.core.memory.invariants import check
from leveret.core.outcomes import nobody

STREAM = {"x-queue-type": "stream"}


def raised_by(function, *given):
    """True when a call raises WHY."""
    try:
        function(*given)
    except Exception as error:  # whatever it is, it has to be the one that the test has made
        assert error is WHY
        return True
    return False


def ready(broker, name):
    return broker.queues[name].message_count()


def test_a_consumer_that_cannot_be_lined_up_was_never_made():
    peer = Peer(new_broker())
    broker = peer.broker
    peer.declare("q")
    channel = next(broker.consumers.open_sessions())
    free = broker.tables.consumer_pool[2]
    with Swapped(broker.consumers, "line_up", WHY):
        assert raised_by(broker.consumers.subscribe, channel, "q", "c", False, False, {}, 0)
    check(broker.tables)
    assert not channel.consumers and not broker.queues["q"].consumers and broker.tables.consumer_pool[2] == free
    assert peer.consume("q") == [] and "c" in channel.consumers


def test_a_delay_that_cannot_be_noted_leaves_no_message():
    peer = Peer(new_broker())
    broker = peer.broker
    peer.declare("q")
    peer.declare_delaying("x")
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "x", "", False, {})
    free = broker.tables.state[8]
    told = with_sentences(broker)
    with Swapped(broker.waiting, "add", WHY):
        peer.publish("", b"late", "x", {"headers": {"x-delay": 5000}})
    assert broker.counters["internal_errors"] == 1 and len(told) == 1 and peer.connection.closed is False
    assert broker.counters["delayed"] == 0 and ready(broker, "q") == 0 and broker.tables.state[8] == free
    check(broker.tables)
    other = Peer(broker)
    other.publish("", b"late", "x", {"headers": {"x-delay": 5000}})
    assert broker.counters["delayed"] == 1 and ready(broker, "q") == 0
    pass_time(broker, 5200)
    assert [body for _, body in taken(other, "q")] == [b"late"]


def test_a_rule_of_lifetimes_that_cannot_be_added_is_added_by_the_next_message():
    for arguments in ({}, {"x-max-length": 9}):
        broker = new_broker()
        peer = Peer(broker)
        peer.declare("q", arguments=arguments)
        queue = broker.queues["q"]
        before = queue.rules
        with Swapped(queue, "update_plain", WHY):
            assert raised_by(broker.let_expire, queue)
        assert queue.rules is before and (before is None or not before.expires and before.expiry is None)
        broker.let_expire(queue)
        assert queue.rules.expires and queue.rules.expiry is not None
        again = queue.rules
        broker.let_expire(queue)
        assert queue.rules is again


def test_rules_that_raise_are_their_queues_alone():
    peer = Peer(new_broker())
    broker = peer.broker
    for name in ("a", "b"):
        peer.declare(name, arguments={"x-message-ttl": 1000})
        peer.publish(name, b"x")
    told = with_sentences(broker)
    with Swapped(broker.queues["a"].rules, "tick", WHY):
        broker.run_rules()
    assert broker.counters["internal_errors"] == 1 and len(told) == 1 and "queue 'a'" in told[0] and "why" in told[0]
    pass_time(broker, 2500)
    assert ready(broker, "a") == ready(broker, "b") == 0 and len(told) == 1


def test_a_lifetime_that_raises_is_its_queues_alone():
    peer = Peer(new_broker())
    broker = peer.broker
    for name in ("a", "b"):
        peer.declare(name, arguments={"x-message-ttl": 300})
        peer.publish(name, b"x")
    told = with_sentences(broker)
    with Swapped(broker.queues["a"].rules.expiry, "tick", WHY):
        broker.end_lifetimes()
    assert broker.counters["internal_errors"] == 1 and "queue 'a'" in told[0]
    pass_time(broker, 1000)
    assert ready(broker, "a") == ready(broker, "b") == 0


def given_back(arguments, swap):
    """(broker, peer) of which a consumer has gone with a delivery of the queue q while `swap(queue)` raised."""
    peer, other = Peer(new_broker()), None
    broker = peer.broker
    peer.declare("q", arguments=arguments)
    other = Peer(broker)
    peer.publish("q", b"one")
    assert len(other.consume("q")) == 1 and ready(broker, "q") == 0
    with swap(broker.queues["q"]):
        other.connection.received(0)
        broker.run()
    check(broker.tables)
    return broker, peer


def test_what_comes_back_to_rules_that_raise_comes_back():
    for name in ("came_back", "trim"):
        broker, peer = given_back({"x-max-length": 5}, lambda queue, name=name: Swapped(queue.rules, name, WHY))
        assert [body for _, body in taken(peer, "q")] == [b"one"], name
        assert broker.counters["redelivered"] == 1
        if name == "came_back":
            assert broker.counters["internal_errors"] == 1


def test_offsets_that_cannot_be_noted_are_their_streams_alone():
    broker, _ = durable_broker(MemoryStore())
    peer = Peer(broker)
    for name in ("s", "t"):
        peer.declare(name, durable=True, arguments=STREAM)
    noted = []
    broker.queues["t"].note_kept = noted.append
    told = with_sentences(broker)
    with Swapped(broker.queues["s"], "note_kept", WHY):
        broker.note_readers()
    assert noted == [broker.journal] and broker.counters["internal_errors"] == 1 and "queue 's'" in told[0]
    assert broker.noted_at == broker.uptime_ms


def test_an_offset_that_cannot_be_kept_ends_no_cancel():
    broker, _ = durable_broker(MemoryStore())
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments=STREAM)
    peer.ask("basic_qos", "basic_qos_ok", 0, 5, False)
    peer.consume("s", "reader", arguments={"x-stream-offset": "first"})
    queue = broker.queues["s"]
    with Swapped(queue, "keep", WHY):
        peer.ask("basic_cancel", "basic_cancel_ok", "reader", False)
    assert broker.counters["internal_errors"] == 1 and not queue.consumers
    check(broker.tables)


def test_a_channel_whose_consumers_cannot_end_is_tried_again():
    peer, other = Peer(new_broker()), None
    broker = peer.broker
    peer.declare("q")
    other = Peer(broker)
    peer.publish("q", b"one")
    assert len(other.consume("q")) == 1
    consumers = broker.consumers
    with Swapped(consumers, "has_left", WHY):
        other.connection.received(0)
        for _ in range(3):
            broker.run()
        assert broker.counters["internal_errors"] >= 1 and len(consumers.leaving) == 1 and ready(broker, "q") == 0
        assert not consumers.leaving_now(), "it has a pause when all have raised"
    pass_time(broker, 2000)
    assert not consumers.leaving and [body for _, body in taken(peer, "q")] == [b"one"]


def test_features_that_raise_at_recovery_are_told_and_the_queue_serves():
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments={"x-max-length": 5})
    peer.publish("q", b"one", given=PERSISTENT)
    broker.run()
    queue = broker.queues["q"]
    told = with_sentences(broker)
    (feature,) = [each for each in queue.rules.features if each is queue.rules.length]
    with Swapped(feature, "recovered", WHY):
        queue.rules.recovered(broker, queue)
    assert broker.counters["internal_errors"] == 1 and "queue 'q'" in told[0]
    assert [body for _, body in taken(peer, "q")] == [b"one"]


def test_a_connection_whose_records_cannot_be_released_is_tried_again():
    peer = Peer(new_broker())
    broker = peer.broker
    session = peer.connection.session
    told = with_sentences(broker)
    with Swapped(session, "lost", WHY):
        peer.connection.received(0)
        assert peer.connection.closed and broker.guard.ended == [peer.connection]
    assert broker.counters["internal_errors"] >= 1 and len(told) >= 1
    pass_time(broker, 5000)
    assert broker.guard.ended == [] and broker.connections == []
    Peer(broker)


def test_a_connection_that_has_no_words_for_a_fault_ends_without_them():
    peer = Peer(new_broker())
    broker = peer.broker
    with Swapped(peer.connection.session, "fail", WHY):
        peer.connection.broke(WHY)
    assert peer.connection.closed and broker.counters["internal_errors"] == 2 and broker.connections == []


def test_a_fault_of_ours_is_told_to_the_peer_in_the_protocols_words():
    for error, code in ((WHY, 541), (MemoryError(), 506)):
        peer = Peer(new_broker())
        with Swapped(peer.connection.session, "process", error):
            peer.connection.session_process = peer.connection.session.process
            peer.give(encoded("queue_declare", 1, 0, "q", False, False, False, False, False, {}))
        assert peer.expect("connection_close")[0] == code


def test_a_content_is_whole_behind_a_fault():
    """The publish that raised is nobody's, and the next connection's goes in."""
    peer = Peer(new_broker())
    broker = peer.broker
    peer.declare("q")
    with Swapped(broker, "put", WHY):
        peer.give(content(1, "", "q", b"lost"))
    check(broker.tables)
    other = Peer(broker)
    other.publish("q", b"kept")
    assert b"kept" in [body for _, body in taken(other, "q")]


def test_a_binding_that_cannot_be_made_or_removed_is_as_before():
    peer = Peer(new_broker())
    broker = peer.broker
    peer.declare("q")
    exchange, queue = broker.exchanges["amq.direct"], broker.queues["q"]
    with Swapped(exchange, "add", WHY):
        assert raised_by(broker.topology.bind, nobody, "q", "amq.direct", b"k", {})
    assert not exchange.bindings and not queue.bound
    broker.topology.bind(nobody, "q", "amq.direct", b"k", {})
    (binding,) = exchange.bindings.values()
    with Swapped(exchange, "remove", WHY):
        assert raised_by(exchange.unbind, binding)
    assert list(exchange.bindings.values()) == [binding] and list(queue.bound.values()) == [binding]
    peer.publish("k", b"one", "amq.direct")
    assert [body for _, body in taken(peer, "q")] == [b"one"]


def delayed(broker):
    """A peer with the message "late" of 2 s for the queue q; another one has no delay."""
    peer = Peer(broker)
    peer.declare("q", arguments={"x-max-length": 5})
    peer.declare_delaying("x")
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "x", "", False, {})
    peer.publish("", b"late", "x", {"headers": {"x-delay": 2000}})
    assert broker.counters["delayed"] == 1
    return peer


def test_a_delayed_message_whose_queue_cannot_take_it_is_put_aside_or_arrives_all_the_same():
    broker = new_broker()
    peer = delayed(broker)
    queue = broker.queues["q"]
    with Swapped(queue, "link", WHY):
        pass_time(broker, 2300)
    assert broker.counters["internal_errors"] == 1 and not broker.waiting.heap and ready(broker, "q") == 0
    broker = new_broker()
    peer = delayed(broker)
    told = with_sentences(broker)
    with Swapped(broker.queues["q"].rules, "arrived", WHY):
        pass_time(broker, 2300)
    assert broker.counters["internal_errors"] == 1 and "queue 'q'" in told[0]
    assert [body for _, body in taken(peer, "q")] == [b"late"]


def test_delays_that_cannot_be_read_or_noted_after_a_restart_are_over_and_messages_keep_their_order():
    from leveret.core.queue import waiting

    for name in ("names_of", "add"):
        store = MemoryStore()
        broker, _ = durable_broker(store)
        peer = Peer(broker)
        peer.declare("q", durable=True)
        peer.declare_delaying("x")
        peer.ask("queue_bind", "queue_bind_ok", 0, "q", "x", "", False, {})
        for number in range(3):
            peer.publish("", b"%d" % number, "x", {"headers": {"x-delay": 5000}, "delivery_mode": 2})
        for _ in range(5):
            broker.run()
        assert broker.counters["delayed"] == 3
        broker, _ = durable_broker(store)
        assert len(broker.waiting.heap) == 3 and ready(broker, "q") == 0
        broker.waiting.heap.sort()
        for _, _, queue, entry, _ in broker.waiting.heap:
            queue.link(entry, broker.tables.queues[queue.handle + waiting.layout.QUEUE_TAIL])
        broker.waiting.heap.clear()
        told = with_sentences(broker)
        with Swapped(waiting.reading if name == "names_of" else broker.waiting, name, WHY):
            broker.waiting.restore(broker)
        assert broker.counters["internal_errors"] == 3 and len(told) == 1 and "queue 'q'" in told[0]
        check(broker.tables)
        assert [body for _, body in taken(Peer(broker), "q")] == [b"0", b"1", b"2"], name


def test_definitions_with_values_that_json_lacks_come_back_from_their_octets():
    import json

    from leveret.core.log import definition_records

    given = {"kind": "queue", "arguments": {"t": ("l", 5), "x": b"\x00\xff", "l": [1, ("a", [b"z"])], "d": {"n": None}}}
    octets = definition_records.written(given)
    assert json.loads(octets)["arguments"] == {
        "t": ["$t", "l", 5],
        "x": ["$x", "00ff"],
        "l": ["$l", 1, ["$t", "a", ["$l", ["$x", "7a"]]]],
        "d": {"n": None},
    }
