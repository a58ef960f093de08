"""Ways that depend on more than exchange and key are cached: through alternate exchanges and exchange bindings, by headers, by CC; and a
cached way is the one that a message without the cache would have."""

from peer import Peer, new_broker

from leveret.core.amqp_0_9.further import OCTETS_MAX
from leveret.core.broker.further import names_of
from leveret.core.memory import layout

TIMES = 4


def declare(peer, name, type_, arguments=None):
    peer.ask("exchange_declare", "exchange_declare_ok", 0, name, type_, False, False, False, False, False, arguments or {})


def queue(peer, name, exchange=None, key="", arguments=None):
    peer.ask("queue_declare", "queue_declare_ok", 0, name, False, False, False, False, False, {})
    if exchange:
        peer.ask("queue_bind", "queue_bind_ok", 0, name, exchange, key, False, arguments or {})


def counts(peer, *names):
    return [peer.ask("queue_declare", "queue_declare_ok", 0, name, True, False, False, False, False, {})[1] for name in names]


def send(peer, exchange, key, headers=None, times=TIMES):
    for _ in range(times):
        peer.publish(key, b"body", exchange, {} if headers is None else {"headers": headers})
    assert peer.frames() == []


def cached(broker):
    """The routes in the cache."""
    tables = broker.tables
    if not tables.state[layout.STATE_ROUTE_OCTETS]:
        return 0
    epoch = tables.state[layout.STATE_ROUTE_EPOCH]
    return sum([tables.routes[slot] == epoch for slot in range(0, len(tables.routes), layout.ROUTE_WIDTH)])


def test_messages_with_the_same_compared_headers_have_one_cached_way():
    broker = new_broker()
    peer = Peer(broker)
    declare(peer, "h", "headers")
    queue(peer, "all", "h", "", {"x-match": "all", "site": "a", "kind": 1})
    queue(peer, "any", "h", "", {"x-match": "any", "site": "b", "kind": 1})
    for number in range(TIMES):
        send(peer, "h", "k", {"site": "a", "kind": 1, "number": number}, 1)
    assert cached(broker) == 1 and counts(peer, "all", "any") == [TIMES, TIMES]
    send(peer, "h", "k", {"number": 1, "site": "b"})
    send(peer, "h", "k", {"site": "b", "number": 2})
    assert cached(broker) == 2 and counts(peer, "all", "any") == [TIMES, 3 * TIMES]
    send(peer, "h", "k", {"site": "c", "kind": 1})
    assert counts(peer, "all", "any") == [TIMES, 4 * TIMES]


def test_messages_that_fit_nothing_are_looked_at_each_time():
    broker = new_broker()
    peer = Peer(broker)
    declare(peer, "h", "headers")
    queue(peer, "q", "h", "", {"site": "a"})
    send(peer, "h", "", {"site": "z"})
    send(peer, "h", "", {})
    send(peer, "h", "")
    assert cached(broker) == 0 and counts(peer, "q") == [0]
    assert broker.counters["unroutable"] == 3 * TIMES


def test_a_binding_more_forgets_the_ways_by_headers():
    broker = new_broker()
    peer = Peer(broker)
    declare(peer, "h", "headers")
    queue(peer, "one", "h", "", {"site": "a"})
    send(peer, "h", "", {"site": "a", "unit": "C"})
    queue(peer, "two", "h", "", {"unit": "C"})
    send(peer, "h", "", {"site": "a", "unit": "C"})
    send(peer, "h", "", {"site": "a", "unit": "K"})
    assert counts(peer, "one", "two") == [3 * TIMES, TIMES]


def test_a_presence_and_values_of_two_types_are_told_apart():
    broker = new_broker()
    peer = Peer(broker)
    declare(peer, "h", "headers")
    queue(peer, "there", "h", "", {"x-match": "any", "n": None})
    queue(peer, "one", "h", "", {"n": 1})
    for value in (1, 1.0, "1", True, [1], {"n": 1}, None):
        send(peer, "h", "", {"n": value})
    assert counts(peer, "there", "one") == [7 * TIMES, TIMES]


def test_a_way_through_exchanges_and_alternates_is_cached_and_counted():
    broker = new_broker()
    peer = Peer(broker)
    declare(peer, "last", "fanout")
    declare(peer, "rest", "direct", {"alternate-exchange": "last"})
    declare(peer, "main", "topic", {"alternate-exchange": "rest"})
    declare(peer, "h", "headers")
    queue(peer, "q", "last")
    queue(peer, "s", "h", "", {"site": "a"})
    send(peer, "main", "k")
    broker.fold_counters()
    assert cached(broker) == 1 and counts(peer, "q") == [TIMES] and broker.counters["alternate_routed"] == 2 * TIMES
    peer.ask("exchange_bind", "exchange_bind_ok", 0, "h", "main", "#", False, {})
    assert names_of(broker, broker.exchanges["main"]) == ("site",)
    send(peer, "main", "k", {"site": "a"})
    send(peer, "main", "k", {"site": "b"})
    broker.fold_counters()
    assert counts(peer, "q", "s") == [TIMES, TIMES] and broker.counters["alternate_routed"] == 2 * TIMES


def test_keys_that_a_sender_selected_are_part_of_the_way():
    broker = new_broker()
    peer = Peer(broker)
    for name in ("a", "b", "c"):
        queue(peer, name)
    send(peer, "", "a")
    send(peer, "", "a", {"CC": ["b"]})
    send(peer, "", "a", {"CC": ["b", "c", "a"]})
    send(peer, "", "nobody", {"x": 1, "CC": ["c"]})
    assert counts(peer, "a", "b", "c") == [3 * TIMES, 2 * TIMES, 2 * TIMES] and cached(broker) == 4
    send(peer, "", "a", {"CC": ["b"], "BCC": ["c"]})
    assert counts(peer, "a", "b", "c") == [4 * TIMES, 3 * TIMES, 3 * TIMES] and cached(broker) == 4


def test_keys_that_a_sender_selected_go_with_headers_and_with_exchanges():
    broker = new_broker()
    peer = Peer(broker)
    declare(peer, "t", "topic")
    declare(peer, "h", "headers")
    queue(peer, "q", "t", "a.#")
    queue(peer, "r", "t", "b.*")
    queue(peer, "s", "h", "", {"site": "a"})
    send(peer, "t", "a.1", {"CC": ["b.1"]})
    send(peer, "t", "a.1")
    assert counts(peer, "q", "r") == [2 * TIMES, TIMES]
    send(peer, "h", "", {"CC": ["s"], "site": "a"})
    send(peer, "h", "", {"CC": ["s"], "site": "b"})
    assert counts(peer, "s") == [TIMES]


def test_a_wrong_cc_is_refused_every_time():
    broker = new_broker()
    peer = Peer(broker)
    queue(peer, "a")
    for _ in range(2):
        peer.publish("a", b"body", "", {"headers": {"CC": "b"}})
        assert peer.frames()[0][0] == "channel_close"
        peer = Peer(broker)
    assert cached(broker) == 0 and counts(peer, "a") == [0]


def test_long_fields_and_ways_by_more_than_headers_are_found_each_time():
    broker = new_broker(properties_size_max=900, receive_buffer_size=4096, send_buffer_size=4096)
    peer = Peer(broker)
    declare(peer, "h", "headers")
    declare(peer, "p", "x-property")
    queue(peer, "q", "h", "", {"x-match": "any", "site": None})
    queue(peer, "r", "p", "", {"x-match": "any", "site": None})
    send(peer, "h", "", {"site": "a" * OCTETS_MAX})
    send(peer, "p", "", {"site": "a"})
    assert counts(peer, "q", "r") == [TIMES, TIMES] and cached(broker) == 0
    assert names_of(broker, broker.exchanges["p"]) is None


def test_a_content_header_that_has_not_come_yet_changes_nothing():
    broker = new_broker()
    peer = Peer(broker, step=7)
    declare(peer, "h", "headers")
    queue(peer, "q", "h", "", {"site": "a"})
    send(peer, "h", "", {"site": "a", "CC": ["q"]})
    assert counts(peer, "q") == [TIMES]
