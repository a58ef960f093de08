"""x-consistent-hash: equal values to one queue, shares by weight, and few values that move when a binding comes or goes."""

from peer import Peer, encoded, new_broker

KEYS = 1500


def exchange(peer, arguments=None, name="hash"):
    peer.ask("exchange_declare", "exchange_declare_ok", 0, name, "x-consistent-hash", False, False, False, False, False, arguments or {})


def queue(peer, name, weight="1"):
    peer.declare(name)
    peer.ask("queue_bind", "queue_bind_ok", 0, name, "hash", weight, False, {})


def places(broker, count=KEYS):
    """The queue of each of many keys."""
    return [broker.route("hash", b"device-%d" % number, None)[0].name for number in range(count)]


def moved(before, after):
    return len([1 for index in range(len(before)) if before[index] != after[index]])


def refused(broker, name, *arguments):
    peer = Peer(broker)
    peer.give(encoded(name, 1, *arguments))
    return peer.expect("channel_close")[:2]


def test_one_message_goes_to_one_queue_and_the_same_key_to_the_same():
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer)
    for name in ("a", "b", "c"):
        queue(peer, name)
    for _ in range(4):
        for key in ("one", "two", "three"):
            peer.publish(key, b"", "hash", {"headers": {"CC": ["four", "five", "six", "seven"]}})
    counts = [peer.ask("queue_purge", "queue_purge_ok", 0, name, False)[0] for name in ("a", "b", "c")]
    assert sum(counts) == 12 and [count % 4 for count in counts] == [0, 0, 0]


def test_shares_follow_the_weights():
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer)
    for name, weight in (("a", "1"), ("b", "2"), ("c", "5")):
        queue(peer, name, weight)
    found = places(broker)
    for name, weight in (("a", 1), ("b", 2), ("c", 5)):
        share = found.count(name) * 8 / KEYS
        assert weight * 0.8 < share < weight * 1.2, (name, share)


def test_a_binding_that_comes_or_goes_moves_its_share_only():
    """1/n of the keys, all of them from or to the one that changes; afterwards everything is where it was."""
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer)
    names = ["q%d" % number for number in range(8)]
    for name in names:
        queue(peer, name)
    before = places(broker)
    peer.ask("queue_unbind", "queue_unbind_ok", 0, "q3", "hash", "1", {})
    without = places(broker)
    assert moved(before, without) == before.count("q3")
    assert KEYS / 8 * 0.7 < before.count("q3") < KEYS / 8 * 1.3
    queue(peer, "new")
    assert moved(without, places(broker)) == places(broker).count("new")
    peer.ask("queue_delete", "queue_delete_ok", 0, "new", False, False, False)
    queue(peer, "q3")
    assert places(broker) == before, "the order of bindings does not matter"


def test_places_are_the_same_in_every_run_whatever_the_nonce():
    found = []
    for nonce in (b"one", b"two"):
        broker = new_broker()
        broker.nonce = nonce
        peer = Peer(broker)
        exchange(peer)
        for name in ("a", "b", "c"):
            queue(peer, name)
        found.append(places(broker, 100))
    assert found[0] == found[1]


def test_the_header_or_the_property_that_is_hashed():
    for arguments, vary, keep in (
        ({"hash-header": "who"}, lambda number: {"headers": {"who": number}}, lambda number: {"headers": {"who": "x", "n": number}}),
        ({"hash-header": "who"}, lambda number: {"headers": {"who": "v%d" % number}}, lambda number: {}),
        ({"hash-property": "message_id"}, lambda number: {"message_id": str(number)}, lambda number: {"correlation_id": str(number)}),
        ({"hash-property": "correlation_id"}, lambda number: {"correlation_id": str(number)}, lambda number: {"message_id": str(number)}),
        ({"hash-property": "timestamp"}, lambda number: {"timestamp": number}, lambda number: {"timestamp": 7}),
    ):
        broker = new_broker()
        peer = Peer(broker)
        exchange(peer, arguments)
        for name in ("a", "b"):
            queue(peer, name)
        counts = []
        for given in (vary, keep):
            for number in range(24):
                peer.publish(str(number) if given is keep else "k", b"", "hash", given(number))
            counts.append([peer.ask("queue_purge", "queue_purge_ok", 0, name, False)[0] for name in ("a", "b")])
        assert min(counts[0]) > 2 and sum(counts[0]) == 24, (arguments, counts)
        assert sorted(counts[1]) == [0, 24], (arguments, counts)


def test_weights_of_one_queue_add_up_and_without_bindings_there_is_no_route():
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer)
    assert broker.route("hash", b"k", None) == ()
    queue(peer, "a", "1")
    queue(peer, "a", "3")
    queue(peer, "b", "1")
    assert 0.7 < places(broker).count("a") / KEYS < 0.9
    peer.ask("queue_unbind", "queue_unbind_ok", 0, "a", "hash", "3", {})
    assert 0.4 < places(broker).count("a") / KEYS < 0.6


def test_what_is_refused():
    """Texts as those of RabbitMQ's plugin."""
    broker = new_broker()
    peer = Peer(broker)
    exchange(peer)
    peer.declare("q")
    for key, text in (
        ("x", 'The binding key must be an integer: <<"x">>'),
        ("", 'The binding key must be an integer: <<"">>'),
        ("0", "The binding key must be greater than 0"),
        ("-1", "The binding key must be greater than 0"),
        ("9999999999", "The binding key must be at most 1048576"),
    ):
        assert refused(broker, "queue_bind", 0, "q", "hash", key, False, {}) == [406, "PRECONDITION_FAILED - " + text]
    for arguments, text in (
        ({"hash-header": "a", "hash-property": "message_id"}, "hash-header and hash-property are mutually exclusive"),
        ({"hash-property": "type"}, "Unsupported property: type"),
        ({"hash-header": 5}, "the argument 'hash-header' must be a longstr"),
    ):
        found = refused(broker, "exchange_declare", 0, "other", "x-consistent-hash", False, False, False, False, False, arguments)
        assert found == [406, "PRECONDITION_FAILED - " + text]
