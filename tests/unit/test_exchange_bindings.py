"""exchange.bind and exchange.unbind (RabbitMQ's exchange to exchange bindings): routing, cycles, and what goes with what."""

from peer import Peer, encoded, idle, new_broker

from leveret.core.broker import topology
from leveret.core.exchange.base import identity


def exchange(peer, name, type_="fanout", auto_delete=False, internal=False, arguments=None):
    peer.ask("exchange_declare", "exchange_declare_ok", 0, name, type_, False, False, auto_delete, internal, False, arguments or {})


def bind(peer, destination, source, key="", arguments=None):
    peer.ask("exchange_bind", "exchange_bind_ok", 0, destination, source, key, False, arguments or {})


def unbind(peer, destination, source, key="", arguments=None):
    peer.ask("exchange_unbind", "exchange_unbind_ok", 0, destination, source, key, False, arguments or {})


def queue(peer, name, source, key=""):
    peer.declare(name)
    peer.ask("queue_bind", "queue_bind_ok", 0, name, source, key, False, {})


def arrived(peer, *names):
    """How many messages each queue had; they are purged."""
    return [peer.ask("queue_purge", "queue_purge_ok", 0, name, False)[0] for name in names]


def refused(broker, name, *arguments):
    """(code, text) of a method that closes the channel."""
    peer = Peer(broker)
    peer.give(encoded(name, 1, *arguments))
    return tuple(peer.expect("channel_close")[:2])


def test_a_message_goes_through_two_exchanges():
    """The source matches its binding key, the destination its own; the delivery names the exchange that was published to."""
    peer = Peer(new_broker())
    exchange(peer, "in", "topic")
    exchange(peer, "out", "direct")
    bind(peer, "out", "in", "a.#")
    queue(peer, "q", "out", "a.b")
    for key in ("a.b", "a.c", "b"):
        peer.publish(key, b"x", "in")
    assert arrived(peer, "q") == [1]
    peer.publish("a.b", b"x", "in")
    peer.give(encoded("basic_get", 1, 0, "q", True))
    assert peer.contents()[0][1][2:4] == ["in", "a.b"]


def test_cycles_end_and_each_queue_gets_one_copy():
    peer = Peer(new_broker())
    for name in ("a", "b", "c"):
        exchange(peer, name)
        queue(peer, "q" + name, name)
        peer.ask("queue_bind", "queue_bind_ok", 0, "all", name, "", False, {}) if name != "a" else queue(peer, "all", "a")
    for destination, source in (("b", "a"), ("c", "b"), ("a", "c"), ("a", "a"), ("c", "a")):
        bind(peer, destination, source)
    peer.publish("k", b"x", "a")
    assert arrived(peer, "qa", "qb", "qc", "all") == [1, 1, 1, 1]
    peer.publish("k", b"x", "c")
    assert arrived(peer, "qa", "qb", "qc", "all") == [1, 1, 1, 1]


def test_a_binding_stays_one_and_unbind_is_idempotent():
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer, "a", "direct")
    exchange(peer, "b")
    queue(peer, "q", "b")
    for _ in range(2):
        bind(peer, "b", "a", "k")
    assert broker.topology.binding_count == 2
    assert not broker.exchanges["a"].plain
    for _ in range(2):
        unbind(peer, "b", "a", "k")
    assert broker.topology.binding_count == 1
    assert broker.exchanges["a"].plain, "without bindings to exchanges the short way of routing is back"
    peer.publish("k", b"x", "a")
    assert arrived(peer, "q") == [0]
    unbind(peer, "none", "a", "k")
    unbind(peer, "b", "none", "k")


def test_bindings_that_are_refused():
    broker = new_broker()
    exchange(Peer(broker), "here")
    default = (403, "ACCESS_REFUSED - operation not permitted on the default exchange")
    for method in ("exchange_bind", "exchange_unbind"):
        assert refused(broker, method, 0, "here", "", "", False, {}) == default
        assert refused(broker, method, 0, "", "here", "", False, {}) == default
    for destination, source, missing in (("here", "gone", "gone"), ("gone", "here", "gone"), ("gone", "lost", "lost")):
        assert refused(broker, "exchange_bind", 0, destination, source, "", False, {}) == (
            404,
            "NOT_FOUND - no exchange '%s' in vhost '/'" % missing,
        )


def test_deleting_a_destination_takes_its_bindings_and_auto_delete_sources_along():
    """RabbitMQ: auto-delete looks at the bindings of which the exchange is the source; the chain goes one by one."""
    broker = new_broker()
    peer = Peer(broker)
    for name in ("a", "b", "c"):
        exchange(peer, name, auto_delete=True)
    exchange(peer, "d")
    for destination, source in (("b", "a"), ("c", "b"), ("d", "c")):
        bind(peer, destination, source)
    peer.ask("exchange_delete", "exchange_delete_ok", 0, "d", False, False)
    assert [name for name in ("a", "b", "c", "d") if name in broker.exchanges] == [] and broker.topology.binding_count == 0


def test_a_cycle_of_auto_delete_exchanges_goes_in_one_go():
    broker = new_broker()
    before = idle(broker)
    peer = Peer(broker)
    for name in ("a", "b"):
        exchange(peer, name, auto_delete=True)
    queue(peer, "q", "b")
    for destination, source in (("b", "a"), ("a", "b"), ("a", "a")):
        bind(peer, destination, source)
    peer.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False)
    assert "a" in broker.exchanges and "b" in broker.exchanges, "both are still sources"
    peer.ask("exchange_delete", "exchange_delete_ok", 0, "a", False, False)
    assert "a" not in broker.exchanges and "b" not in broker.exchanges and broker.topology.binding_count == 0
    peer.connection.received(0)
    assert idle(broker) == before


def test_being_a_destination_does_not_keep_an_exchange():
    """if-unused and auto-delete: in use means being the source of a binding."""
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer, "source")
    exchange(peer, "target", auto_delete=True)
    bind(peer, "target", "source")
    assert refused(broker, "exchange_delete", 0, "source", True, False) == (
        406,
        "PRECONDITION_FAILED - exchange 'source' in vhost '/' in use",
    )
    queue(peer, "q", "target")
    peer.ask("queue_unbind", "queue_unbind_ok", 0, "q", "target", "", {})
    assert "target" not in broker.exchanges and broker.topology.binding_count == 0
    peer.ask("exchange_delete", "exchange_delete_ok", 0, "source", True, False)


def test_an_internal_exchange_gets_messages_from_exchanges_only():
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer, "inner", internal=True)
    exchange(peer, "outer")
    bind(peer, "inner", "outer")
    queue(peer, "q", "inner")
    peer.publish("k", b"x", "outer")
    assert arrived(peer, "q") == [1]


def test_bindings_between_exchanges_count_on_the_share_of_who_makes_them():
    """binding_share_max, 506."""
    broker = new_broker(binding_share_max=8)
    peer = Peer(broker)
    for name in ("a", "b"):
        exchange(peer, name, "direct")
    for number in range(8):
        bind(peer, "b", "a", str(number))
    peer.give(encoded("exchange_bind", 1, 0, "b", "a", "8", False, {}))
    assert peer.frames()[0][2][0] == 506
    assert broker.topology.binding_count == 8
    Peer(broker).ask("exchange_delete", "exchange_delete_ok", 0, "b", False, False)
    assert broker.topology.binding_count == 0


def test_bindings_of_all_connections_together_have_a_limit():
    """binding_count_max, 506: exactly so many, whoever makes them; one that goes leaves its place to another."""
    broker = new_broker(binding_count_max=10, binding_share_max=6)
    peers = [Peer(broker), Peer(broker)]
    for name in ("a", "b"):
        exchange(peers[0], name, "direct")
    for number in range(10):
        bind(peers[number // 6], "b", "a", str(number))
    assert broker.topology.binding_count == 10
    for peer in peers[1:]:
        peer.give(encoded("exchange_bind", 1, 0, "b", "a", "10", False, {}))
        code, text = peer.frames()[0][2][:2]
        assert code == 506 and "this broker holds 10 bindings at most" in text, (code, text)
    assert broker.topology.binding_count == 10
    peers[0].ask("exchange_unbind", "exchange_unbind_ok", 0, "b", "a", "0", False, {})
    third = Peer(broker)
    bind(third, "b", "a", "10")
    assert broker.topology.binding_count == 10


def test_a_queue_that_goes_takes_its_bindings_along():
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer, "a", "direct")
    queue(peer, "q", "a", "k")
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "a", "l", False, {})
    peer.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False)
    assert broker.topology.binding_count == 0 and not broker.exchanges["a"].bindings


def test_what_has_many_bindings_is_deleted_in_turns():
    """Section 1.7.2.9 and 1.6.2.3: the answer comes when all is gone, others are served meanwhile, and what was counted is given back."""
    before, topology.BINDINGS_A_TURN = topology.BINDINGS_A_TURN, 4
    try:
        for what, arguments in (("queue", ("q", False, False, False)), ("exchange", ("x", False, False))):
            ask = encoded(what + "_delete", 1, 0, *arguments)
            broker = new_broker()
            peer, other = Peer(broker), Peer(broker)
            exchange(peer, "x", "topic")
            peer.declare("q")
            for each in range(19):
                peer.ask("queue_bind", "queue_bind_ok", 0, "q", "x", "k%d" % each, False, {})
            peer.connection.writable()[: len(ask)] = ask
            left = []
            peer.connection.received(len(ask))
            for _ in range(40):
                left.append(broker.topology.binding_count)
                broker.run()
            assert peer.frames()[0][0] == what + "_delete_ok"
            assert broker.topology.binding_count == 0 and len(set(left)) >= 4, left
            assert arguments[0] not in broker.queues if what == "queue" else arguments[0] not in broker.exchanges
            other.declare("q2")
    finally:
        topology.BINDINGS_A_TURN = before


def test_the_arguments_of_a_binding_count_for_fifteen_octets_whatever_their_size():
    """With the NUL that MicroPython puts behind them they fill one block of its heap."""
    short, long = (identity(Destination, b"k", {"x": "v" * size}) for size in (1, 5000))
    assert len(short[3]) == len(long[3]) == 15 and short != long
    assert identity(Destination, b"k", {}) == (False, b"q", b"k", b"")
    assert identity(Destination, b"k", {"a": 1, "b": 2}) == identity(Destination, b"k", {"b": 2, "a": 1})


class Destination:
    is_exchange = False
    name = b"q"
