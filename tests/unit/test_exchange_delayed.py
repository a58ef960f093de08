"""x-delayed-message (RabbitMQ's plugin): header x-delay, argument x-delayed-type."""

from memory_store import MemoryStore, durable_broker
from peer import Peer, encoded, idle, new_broker
from test_queue_rules import bodies, pass_time

from leveret.core.exchange.base import delay_of
from leveret.core.stream.stream import EPOCH


def delayed(broker, arguments=None, durable=False):
    """A peer with exchange "later" (topic inside) and queue "q" bound with a.#."""
    peer = Peer(broker)
    peer.ask(
        "exchange_declare",
        "exchange_declare_ok",
        0,
        "later",
        "x-delayed-message",
        False,
        durable,
        False,
        False,
        False,
        {"x-delayed-type": "topic"},
    )
    peer.declare("q", durable=durable, arguments=arguments)
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "later", "a.#", False, {})
    return peer


def test_messages_come_when_their_time_has_come():
    """In the order of their moments; without the header at once; the inner type routes."""
    broker = new_broker()
    before = idle(broker)
    peer = delayed(broker)
    for delay, body in ((500, b"500"), (200, b"200"), (None, b"now"), (-5, b"negative"), (200, b"200 too")):
        peer.publish("a.b", body, "later", {} if delay is None else {"headers": {"x-delay": delay}})
    peer.publish("other", b"x", "later", {"headers": {"x-delay": 100}})
    assert bodies(peer, "q") == [b"now", b"negative"]
    pass_time(broker, 300)
    assert bodies(peer, "q") == [b"200", b"200 too"]
    pass_time(broker, 300)
    assert bodies(peer, "q") == [b"500"] and broker.counters["delayed"] == 3
    peer.publish("a", b"left", "later", {"headers": {"x-delay": 100000}})
    peer.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False)
    peer.connection.received(0)
    assert idle(broker) == before


def test_rules_apply_when_the_message_arrives():
    """x-message-ttl begins then; x-max-length drops the oldest then; a consumer that waits gets it."""
    broker = new_broker()
    peer = delayed(broker, {"x-message-ttl": 300, "x-max-length": 1})
    peer.publish("a", b"1", "later", {"headers": {"x-delay": 500}})
    peer.publish("a", b"2", "later", {"headers": {"x-delay": 500}})
    pass_time(broker, 600)
    assert broker.queues["q"].message_count() == 1
    pass_time(broker, 400)
    assert broker.queues["q"].message_count() == 0
    peer.consume("q")
    peer.publish("a", b"3", "later", {"headers": {"x-delay": 100}})
    pass_time(broker, 200)
    assert [each[3] for each in peer.contents()] == [b"3"]


def test_what_is_refused():
    """No inner type, an unknown one, a stream as destination."""
    for arguments in ({}, {"x-delayed-type": "x-lossy"}, {"x-delayed-type": 5}):
        peer = Peer(new_broker())
        peer.give(encoded("exchange_declare", 1, 0, "later", "x-delayed-message", False, False, False, False, False, arguments))
        assert peer.expect("channel_close")[0] == 406
    peer = delayed(new_broker())
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.give(encoded("queue_bind", 1, 0, "s", "later", "#", False, {}))
    assert peer.expect("channel_close")[0] == 406


def test_delays_survive_a_power_cut():
    """A persistent message waits on after the restart for what is left of its delay."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = delayed(broker, durable=True)
    broker.tick(0, EPOCH + 100)
    peer.publish("a", b"x", "later", {"delivery_mode": 2, "headers": {"x-delay": 10000}})
    again = new_broker()
    again.tick(0, EPOCH + 104)
    from leveret.core.recovery import opening

    opening.make_durable(again, store.cut(), "each", 100, 65536, 4096, 1 << 20)
    assert again.queues["q"].message_count() == 0
    pass_time(again, 5000)
    assert again.queues["q"].message_count() == 0
    pass_time(again, 1500)
    assert bodies(Peer(again), "q") == [b"x"]


def test_a_delay_is_a_whole_number_of_milliseconds_above_0_also_as_text():
    """The plugin takes both, and delivers at once what asks for none."""
    for delay, milliseconds in ((1, 1), ("1", 1), (250, 250), ("250", 250), (0, 0), ("0", 0), (-1, 0), ("-1", 0), (True, 0), (2.5, 0)):
        assert delay_of(delay) == milliseconds, delay
    for delay in ("", "x", "1.5", "\u00b2", None, b"7", [7], ("T", 7)):
        assert delay_of(delay) == 0, delay
