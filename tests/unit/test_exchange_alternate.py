"""alternate-exchange (RabbitMQ): what an exchange cannot route goes there; chains, cycles, counting, and basic.return."""

from peer import Peer, encoded, new_broker

from leveret.core.exchange.registry import type_named


def exchange(peer, name, alternate=None, type_="direct"):
    peer.ask(
        "exchange_declare",
        "exchange_declare_ok",
        0,
        name,
        type_,
        False,
        False,
        False,
        False,
        False,
        {"alternate-exchange": alternate} if alternate else {},
    )


def queue(peer, name, source, key="k"):
    peer.declare(name)
    peer.ask("queue_bind", "queue_bind_ok", 0, name, source, key, False, {})


def arrived(peer, *names):
    return [peer.ask("queue_purge", "queue_purge_ok", 0, name, False)[0] for name in names]


def routed(broker):
    """The counter, with what the flat state has of it."""
    broker.fold_counters()
    return broker.counters["alternate_routed"]


def test_only_what_is_not_matched_goes_to_the_alternate():
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer, "other", type_="fanout")
    exchange(peer, "main", "other")
    queue(peer, "routed", "main")
    queue(peer, "rest", "other")
    peer.publish("k", b"x", "main", mandatory=True)
    peer.publish("nobody's", b"x", "main", mandatory=True)
    assert peer.frames() == [], "nothing is returned"
    assert arrived(peer, "routed", "rest") == [1, 1]
    assert routed(broker) == 1 and broker.counters["returned"] == 0


def test_chains_are_followed_and_cycles_end():
    broker = new_broker()
    peer = Peer(broker)
    for name, alternate in (("a", "b"), ("b", "c"), ("c", "a")):
        exchange(peer, name, alternate)
    queue(peer, "q", "c", "deep")
    peer.publish("deep", b"x", "a", mandatory=True)
    assert peer.frames() == [] and arrived(peer, "q") == [1]
    assert routed(broker) == 2
    peer.publish("nowhere", b"x", "a", mandatory=True)
    name, arguments, _, _ = peer.contents()[0]
    assert name == "basic_return" and arguments == [312, "NO_ROUTE", "a", "nowhere"]
    assert broker.counters["returned"] == 1


def test_an_alternate_that_is_not_there_is_as_none():
    peer = Peer(new_broker())
    exchange(peer, "main", "gone")
    peer.publish("k", b"x", "main", mandatory=True)
    assert peer.contents()[0][0] == "basic_return"
    exchange(peer, "gone", type_="fanout")
    queue(peer, "q", "gone")
    peer.publish("k", b"x", "main", mandatory=True)
    assert peer.frames() == [] and arrived(peer, "q") == [1]


def test_a_match_that_leads_nowhere_is_a_match():
    """As in RabbitMQ the alternate is for what matches no binding; an exchange behind a binding may still have no queue."""
    peer = Peer(new_broker())
    exchange(peer, "rest", type_="fanout")
    exchange(peer, "empty", type_="fanout")
    exchange(peer, "main", "rest")
    queue(peer, "q", "rest")
    peer.ask("exchange_bind", "exchange_bind_ok", 0, "empty", "main", "k", False, {})
    peer.publish("k", b"x", "main", mandatory=True)
    assert peer.contents()[0][0] == "basic_return" and arrived(peer, "q") == [0]


def test_a_message_that_waits_for_room_is_counted_once():
    """A full queue holds the publisher and its message is routed again: the counter moves when it is taken."""
    broker = new_broker(message_count_max=16, entry_count_max=16)
    peer = Peer(broker)
    exchange(peer, "rest", type_="fanout")
    exchange(peer, "main", "rest")
    queue(peer, "q", "rest")
    while peer.connection.reading:
        peer.publish("k", b"x", "main")
    taken = broker.queues["q"].message_count()
    for _ in range(5):
        broker.run()
    assert 0 < taken == routed(broker)
    assert arrived(Peer(broker), "q") == [taken]
    broker.run()
    assert routed(broker) == taken + 1 and broker.queues["q"].message_count() == 1


def test_the_argument_is_compared_and_checked():
    broker = new_broker()
    exchange(Peer(broker), "main", "one")
    for arguments, text in (
        ({"alternate-exchange": "two"}, "received 'two' but current is 'one'"),
        ({}, "received none but current is the value 'one' of type 'longstr'"),
    ):
        peer = Peer(broker)
        peer.give(encoded("exchange_declare", 1, 0, "main", "direct", False, False, False, False, False, arguments))
        assert peer.expect("channel_close")[:2] == [
            406,
            "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'main' in vhost '/': " + text,
        ]
    peer = Peer(broker)
    peer.give(encoded("exchange_declare", 1, 0, "new", "direct", False, False, False, False, False, {"alternate-exchange": 5}))
    assert peer.expect("channel_close")[:2] == [
        406,
        "PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in exchange 'new' in vhost '/'",
    ]


def test_an_exchange_needs_a_walk_from_its_first_message_on_where_it_draws_or_has_an_alternate():
    for type_, arguments, plain in (
        ("fanout", {}, True),
        ("fanout", {"alternate-exchange": "a"}, False),
        ("x-local-random", {}, False),
        ("x-delayed-message", {"x-delayed-type": "fanout"}, False),
    ):
        assert type_named(type_)("x", False, False, False, arguments).plain is plain, type_
