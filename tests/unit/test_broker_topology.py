"""Exchanges, queues and bindings by frames (0-9-1 sections 1.6 and 1.7); error texts are RabbitMQ's."""

from memory_store import bodies
from peer import Peer, assemble, content, encoded, idle, new_broker

from leveret.core.memory import invariants


def refused(broker, name, *arguments, channel=1):
    """(reply method, code, text) of a method that must be refused on a fresh connection."""
    peer = Peer(broker)
    peer.give(encoded(name, channel, *arguments))
    frames = peer.frames()
    assert len(frames) == 1 and frames[0][0] in ("channel_close", "connection_close"), frames
    return frames[0][0], frames[0][2][0], frames[0][2][1]


def declare(name, type_="direct", passive=False, durable=False, auto_delete=False, internal=False, arguments=None):
    """The arguments of exchange.declare."""
    return 0, name, type_, passive, durable, auto_delete, internal, False, arguments or {}


def test_exchange_declarations_that_are_refused():
    """Section 1.6.2.1."""
    broker = new_broker()
    Peer(broker).ask("exchange_declare", "exchange_declare_ok", *declare("e"))
    for arguments, scope, code, text in (
        (declare("amq.mine"), "channel_close", 403, "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'"),
        (declare(""), "channel_close", 403, "ACCESS_REFUSED - operation not permitted on the default exchange"),
        (declare("none", passive=True), "channel_close", 404, "NOT_FOUND - no exchange 'none' in vhost '/'"),
        (declare("x", "bogus"), "connection_close", 503, "COMMAND_INVALID - unknown exchange type 'bogus'"),
        (
            declare("e", "fanout"),
            "channel_close",
            406,
            "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'e' in vhost '/': received 'fanout' but current is 'direct'",
        ),
        (
            declare("e", durable=True),
            "channel_close",
            406,
            "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'e' in vhost '/': received 'true' but current is 'false'",
        ),
        (
            declare("y" * 65),
            "channel_close",
            406,
            "PRECONDITION_FAILED - this exchange name is longer than the 64 octets that this broker takes",
        ),
    ):
        assert refused(broker, "exchange_declare", *arguments) == (scope, code, text)


def test_predeclared_exchanges_are_there_and_stay():
    """Section 3.1.3: amq.direct, amq.fanout, amq.topic, amq.headers and amq.match."""
    broker = new_broker()
    peer = Peer(broker)
    for name in ("amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"):
        peer.ask("exchange_declare", "exchange_declare_ok", *declare(name, passive=True))
        assert refused(broker, "exchange_delete", 0, name, False, False)[1] == 403


def test_routing_of_each_type():
    """Sections 3.1.3.1 to 3.1.3.4."""
    broker = new_broker()
    peer = Peer(broker)
    cases = (
        ("direct", "k", {}, (("k", {}, True), ("kk", {}, False), ("", {}, False))),
        ("fanout", "k", {}, (("k", {}, True), ("other", {}, True))),
        ("topic", "a.*.c.#", {}, (("a.b.c", {}, True), ("a.b.c.d.e", {}, True), ("a.c", {}, False), ("a.b.b.c", {}, False))),
        ("headers", "", {"x-match": "all", "a": 1, "b": None}, (("", {"a": 1, "b": "any"}, True), ("", {"a": 1}, False))),
        ("headers", "", {"x-match": "any", "a": 1, "b": "s"}, (("", {"b": "s"}, True), ("", {"a": 2}, False))),
    )
    for type_, key, arguments, messages in cases:
        peer.ask("exchange_declare", "exchange_declare_ok", *declare("ex", type_))
        peer.declare("q")
        peer.ask("queue_bind", "queue_bind_ok", 0, "q", "ex", key, False, arguments)
        for routing_key, headers, arrives in messages:
            peer.publish(routing_key, b"x", "ex", {"headers": headers})
            assert peer.ask("queue_purge", "queue_purge_ok", 0, "q", False) == [1 if arrives else 0], (type_, routing_key, headers)
        peer.ask("queue_unbind", "queue_unbind_ok", 0, "q", "ex", key, arguments)
        peer.publish(messages[0][0], b"x", "ex", {"headers": messages[0][1]})
        assert peer.ask("queue_purge", "queue_purge_ok", 0, "q", False) == [0]
        peer.ask("exchange_delete", "exchange_delete_ok", 0, "ex", True, False)


def test_a_queue_bound_twice_gets_one_copy():
    """Section 3.1.3: one message, one queue, one copy."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    for key in ("a.#", "#.b", "a.b", "*.*"):
        peer.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.topic", key, False, {})
        peer.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.topic", key, False, {})
    peer.publish("a.b", b"x", "amq.topic")
    assert peer.ask("queue_purge", "queue_purge_ok", 0, "q", False) == [1]
    assert broker.topology.binding_count == 4


def test_publishing_to_an_unknown_or_internal_exchange():
    """Section 1.8.3.8: 404 and 403 close the channel; the content that follows is dropped."""
    broker = new_broker()
    Peer(broker).ask("exchange_declare", "exchange_declare_ok", *declare("inner", internal=True))
    for exchange, code in (("none", 404), ("inner", 403)):
        peer = Peer(broker)
        peer.give(content(1, exchange, "k", b"body"))
        assert peer.expect("channel_close")[0] == code
        peer.give(encoded("channel_close_ok", 1))
        peer.ask("channel_open", "channel_open_ok", "")


def test_queue_declarations_that_are_refused():
    """Section 1.7.2.1."""
    broker = new_broker()
    owner = Peer(broker)
    owner.declare("q")
    owner.declare("mine", exclusive=True)
    locked = (
        "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in vhost '/'. It could be originally declared on "
        "another connection or the exclusive property value does not match that of the original declaration."
    )
    for arguments, code, text in (
        ((0, "amq.q", False, False, False, False, False, {}), 403, "ACCESS_REFUSED - queue name 'amq.q' contains reserved prefix 'amq.*'"),
        ((0, "none", True, False, False, False, False, {}), 404, "NOT_FOUND - no queue 'none' in vhost '/'"),
        ((0, "mine", True, False, False, False, False, {}), 405, locked),
        ((0, "mine", False, False, True, False, False, {}), 405, locked),
        (
            (0, "q", False, True, False, False, False, {}),
            406,
            "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'",
        ),
        (
            (0, "new", False, False, False, False, False, {"x-queue-type": "odd"}),
            406,
            "PRECONDITION_FAILED - invalid arg 'x-queue-type' for queue 'new' in vhost '/': this broker has classic, quorum and "
            "stream, not 'odd'",
        ),
    ):
        assert refused(broker, "queue_declare", *arguments) == ("channel_close", code, text)


def test_exclusive_queues_go_with_their_connection():
    """Section 1.7.2.1, exclusive."""
    broker = new_broker()
    before = idle(broker)
    peer = Peer(broker)
    peer.declare("mine", exclusive=True)
    peer.publish("mine", b"x")
    peer.connection.received(0)
    assert "mine" not in broker.queues and idle(broker) == before


def test_auto_delete_queues_and_exchanges_go_with_their_last_use():
    """Sections 1.7.2.1 and 1.6.2.1, auto-delete."""
    broker = new_broker()
    peer = Peer(broker)
    peer.ask("exchange_declare", "exchange_declare_ok", *declare("ex", auto_delete=True))
    peer.declare("q", auto_delete=True)
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "ex", "k", False, {})
    peer.consume("q")
    peer.ask("basic_cancel", "basic_cancel_ok", "c", False)
    assert "q" not in broker.queues and "ex" not in broker.exchanges and broker.topology.binding_count == 0


def test_what_a_queue_that_goes_with_a_closing_channel_has_delivered_goes_with_it():
    """Its record is the next queue's; nothing is put back there (seed 800592 of the simulation)."""
    for leave in (
        lambda peer: peer.ask("channel_close", "channel_close_ok", 200, "", 0, 0),
        lambda peer: peer.give(encoded("basic_ack", 1, 9, False)),  # 406
        lambda peer: peer.ask("connection_close", "connection_close_ok", 200, "", 0, 0, channel=0),
        lambda peer: peer.connection.received(0),
    ):
        broker = new_broker()
        before = idle(broker)
        peer, other = Peer(broker), Peer(broker)
        peer.declare("q", auto_delete=True)
        peer.consume("q")
        peer.publish("q", b"x")
        assert len(peer.contents()) == 1
        leave(peer)
        assert "q" not in broker.queues
        invariants.check(broker.tables)
        other.declare("new")
        assert bodies(other, "new") == []
        other.ask("queue_delete", "queue_delete_ok", 0, "new", False, False, False)
        peer.connection.received(0)
        other.connection.received(0)
        assert idle(broker) == before


def test_the_last_declared_queue_stands_for_an_empty_name():
    """Section 1.7.2.3: queue name empty; with an empty key too the key is the queue's name."""
    broker = new_broker()
    peer = Peer(broker)
    name = peer.ask("queue_declare", "queue_declare_ok", 0, "", False, False, False, False, False, {})[0]
    assert name.startswith("amq.gen-")
    peer.ask("queue_bind", "queue_bind_ok", 0, "", "amq.direct", "", False, {})
    peer.publish(name, b"x", "amq.direct")
    peer.give(encoded("basic_get", 1, 0, "", True))
    assert assemble(peer.frames())[0][3] == b"x"
    assert refused(broker, "basic_get", 0, "", True) == ("channel_close", 404, "NOT_FOUND - no previously declared queue")


def test_delete_if_unused_if_empty():
    """Section 1.7.2.9."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    peer.publish("q", b"x")
    answer = refused(broker, "queue_delete", 0, "q", False, True, False)
    assert answer[1:] == (406, "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty")
    peer.consume("q")
    assert refused(broker, "queue_delete", 0, "q", True, False, False)[1:] == (406, "PRECONDITION_FAILED - queue 'q' in vhost '/' in use")
    assert Peer(broker).ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False) == [0]
    assert Peer(broker).ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False) == [0]


def test_a_declaration_of_any_kind_is_a_use_of_a_queue():
    """x-expires: queue.declare of the same queue, and a passive one."""
    for passive in (False, True):
        broker = new_broker()
        peer = Peer(broker)
        peer.declare("q", arguments={"x-expires": 500})
        now = 0
        for _ in range(4):
            for _ in range(4):
                now += 100
                broker.tick(now, 1700000000)
            peer.ask("queue_declare", "queue_declare_ok", 0, "q", passive, False, False, False, False, {"x-expires": 500})
        assert "q" in broker.queues and broker.counters["queues_expired"] == 0
        for _ in range(8):
            now += 100
            broker.tick(now, 1700000000)
        assert "q" not in broker.queues
