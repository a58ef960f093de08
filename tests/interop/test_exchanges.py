"""Exchanges: declare, delete, the four types and how they route, the predeclared ones, exchange to exchange (class exchange, 3.1.3)."""

import pytest
from amqp_wire import Typed, method

TYPES = ("direct", "fanout", "topic", "headers")
PREDECLARED = {"amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic", "amq.headers": "headers", "amq.match": "headers"}


def declare(peer, exchange, kind="direct", **values):
    peer.call("exchange.declare-ok", 1, "exchange.declare", exchange=exchange, type=kind, **values)


def bind(peer, queue, exchange, routing_key="", arguments=None):
    peer.call("queue.bind-ok", 1, "queue.bind", queue=queue, exchange=exchange, routing_key=routing_key, arguments=arguments or {})


def routed(peer, exchange, routing_key, properties=b"\0\0"):
    """Whether a mandatory publish finds a queue: in confirm mode a return comes before the ack, so the ack says it all."""
    peer.call("confirm.select-ok", 1, "confirm.select")
    peer.publish(exchange, routing_key, b"probe", properties, mandatory=True)
    returned = False
    while True:
        got = peer.read_frame()
        if got.name == "basic.ack":
            return not returned
        assert got.name in ("basic.return", "header", "body"), got
        if got.name == "basic.return":
            assert got["reply_code"] == 312, got
            returned = True


@pytest.mark.parametrize("kind", TYPES)
def test_declare_is_idempotent_and_passive_finds_it(raw, name, kind):
    for _ in range(2):
        declare(raw, name, kind, durable=True)
    declare(raw, name, kind, passive=True)
    raw.call("exchange.delete-ok", 1, "exchange.delete", exchange=name)
    raw.send(method(1, "exchange.declare", exchange=name, type=kind, passive=True))
    raw.expect_channel_close(404, "NOT_FOUND - no exchange '%s' in vhost '/'" % name, method_of="exchange.declare")


def test_passive_looks_at_the_name_only(raw):
    declare(raw, "amq.direct", "topic", passive=True)
    declare(raw, "amq.direct", "no such type", passive=True)


@pytest.mark.parametrize("exchange, kind", PREDECLARED.items())
def test_predeclared_exchanges_are_there_and_durable(raw, exchange, kind):
    declare(raw, exchange, kind, durable=True)


@pytest.mark.parametrize(
    "change, argument, received, current",
    [
        ({"type": "fanout"}, "type", "fanout", "direct"),
        ({"durable": True}, "durable", "true", "false"),
        ({"auto_delete": True}, "auto_delete", "true", "false"),
        ({"internal": True}, "internal", "true", "false"),
    ],
)
def test_a_declare_that_differs_is_406_and_names_the_difference(connect, name, change, argument, received, current):
    peer = connect()
    declare(peer, name)
    values = {"exchange": name, "type": "direct"}
    values.update(change)
    peer.send(method(1, "exchange.declare", **values))
    text = "PRECONDITION_FAILED - inequivalent arg '%s' for exchange '%s' in vhost '/': received '%s' but current is '%s'"
    peer.expect_channel_close(406, text % (argument, name, received, current), method_of="exchange.declare")
    connect().call("exchange.delete-ok", 1, "exchange.delete", exchange=name)


@pytest.mark.parametrize("exchange", ["amq.mine", "amq."])
def test_the_reserved_prefix_is_403(raw, exchange):
    raw.send(method(1, "exchange.declare", exchange=exchange, type="direct"))
    text = "ACCESS_REFUSED - exchange name '%s' contains reserved prefix 'amq.*'" % exchange
    raw.expect_channel_close(403, text, method_of="exchange.declare")


def test_passive_declare_of_a_missing_reserved_name_is_404(raw):
    raw.send(method(1, "exchange.declare", exchange="amq.mine", type="direct", passive=True))
    raw.expect_channel_close(404)


@pytest.mark.parametrize(
    "name_of_method, values",
    [
        ("exchange.declare", {"type": "direct"}),
        ("exchange.delete", {}),
        ("queue.bind", {"queue": "q"}),
        ("queue.unbind", {"queue": "q"}),
    ],
)
def test_the_default_exchange_cannot_be_touched(raw, name_of_method, values):
    raw.declare_queue("q", exclusive=True)
    raw.send(method(1, name_of_method, exchange="", **values))
    raw.expect_channel_close(403, "ACCESS_REFUSED - operation not permitted on the default exchange", method_of=name_of_method)


@pytest.mark.parametrize("exchange", PREDECLARED)
def test_predeclared_exchanges_cannot_be_deleted(raw, exchange):
    raw.send(method(1, "exchange.delete", exchange=exchange))
    raw.expect_channel_close(403, "ACCESS_REFUSED - deletion of system exchange '%s' in vhost '/' not allowed" % exchange)


def test_delete_of_a_missing_exchange_is_fine(raw):
    raw.call("exchange.delete-ok", 1, "exchange.delete", exchange="t.never.was")


def test_delete_if_unused(raw, connect, name):
    queue = raw.declare_queue(exclusive=True)
    declare(raw, name)
    bind(raw, queue, name, "k")
    raw.send(method(1, "exchange.delete", exchange=name, if_unused=True))
    raw.expect_channel_close(406, "PRECONDITION_FAILED - exchange '%s' in vhost '/' in use" % name, method_of="exchange.delete")
    raw.call("channel.open-ok", 1, "channel.open")
    raw.call("queue.unbind-ok", 1, "queue.unbind", queue=queue, exchange=name, routing_key="k")
    raw.call("exchange.delete-ok", 1, "exchange.delete", exchange=name, if_unused=True)


def test_delete_takes_the_bindings_along(raw, name):
    queue = raw.declare_queue(exclusive=True)
    declare(raw, name)
    bind(raw, queue, name, "k")
    assert routed(raw, name, "k")
    raw.call("exchange.delete-ok", 1, "exchange.delete", exchange=name)
    declare(raw, name)
    assert not routed(raw, name, "k")
    raw.call("exchange.delete-ok", 1, "exchange.delete", exchange=name)


def test_deleting_the_queue_takes_the_bindings_along(raw, name):
    queue = raw.declare_queue(exclusive=True)
    declare(raw, name, "fanout")
    bind(raw, queue, name)
    assert routed(raw, name, "")
    raw.call("queue.delete-ok", 1, "queue.delete", queue=queue)
    assert not routed(raw, name, "")
    raw.call("exchange.delete-ok", 1, "exchange.delete", exchange=name, if_unused=True)


def test_auto_delete_goes_with_its_last_binding(raw, name):
    queue = raw.declare_queue(exclusive=True)
    declare(raw, name, auto_delete=True)
    declare(raw, name, passive=True)
    bind(raw, queue, name, "a")
    bind(raw, queue, name, "b")
    raw.call("queue.unbind-ok", 1, "queue.unbind", queue=queue, exchange=name, routing_key="a")
    declare(raw, name, passive=True)
    raw.call("queue.unbind-ok", 1, "queue.unbind", queue=queue, exchange=name, routing_key="b")
    raw.send(method(1, "exchange.declare", exchange=name, passive=True))
    raw.expect_channel_close(404)


def test_no_wait_declares_and_deletes_without_a_word(raw, name):
    raw.send(method(1, "exchange.declare", exchange=name, type="topic", no_wait=True))
    declare(raw, name, "topic", passive=True)
    raw.send(method(1, "exchange.delete", exchange=name, no_wait=True))
    assert raw.silent(0.1)
    raw.send(method(1, "exchange.declare", exchange=name, passive=True))
    raw.expect_channel_close(404)


def test_publish_to_a_missing_exchange_closes_the_channel(raw):
    raw.publish("t.missing", "k", b"x")
    raw.expect_channel_close(404, "NOT_FOUND - no exchange 't.missing' in vhost '/'", method_of="basic.publish")


def test_publish_to_an_internal_exchange_is_403(raw, connect, name):
    declare(raw, name, internal=True)
    raw.publish(name, "k", b"x")
    text = "ACCESS_REFUSED - cannot publish to internal exchange '%s' in vhost '/'" % name
    raw.expect_channel_close(403, text, method_of="basic.publish")
    connect().call("exchange.delete-ok", 1, "exchange.delete", exchange=name)


def test_the_default_exchange_routes_by_queue_name(raw):
    queue = raw.declare_queue(exclusive=True)
    assert routed(raw, "", queue)
    assert not routed(raw, "", queue + ".")
    assert not routed(raw, "", "")


def test_direct_routes_by_the_whole_key(raw, name):
    queue = raw.declare_queue(exclusive=True)
    for key in ("red", "", "a.*", "#", "\u00e9t\u00e9"):
        bind(raw, queue, "amq.direct", name + key)
    for key in ("red", "", "a.*", "#", "\u00e9t\u00e9"):
        assert routed(raw, "amq.direct", name + key), key
    for key in ("re", "redd", "a.b", "RED"):
        assert not routed(raw, "amq.direct", name + key), key


def test_a_message_comes_once_to_a_queue_bound_twice(raw, name):
    queue = raw.declare_queue(exclusive=True)
    declare(raw, name, "topic", auto_delete=True)
    for key in ("a.#", "a.b", "#.b", "*.*"):
        bind(raw, queue, name, key)
    raw.publish(name, "a.b", b"once")
    raw.call("basic.qos-ok", 1, "basic.qos")
    assert raw.call("queue.purge-ok", 1, "queue.purge", queue=queue)["message_count"] == 1


def test_fanout_copies_to_every_queue_whatever_the_key(raw, name):
    declare(raw, name, "fanout", auto_delete=True)
    queues = [raw.declare_queue(exclusive=True) for _ in range(5)]
    for queue in queues:
        bind(raw, queue, name, "ignored")
    raw.publish(name, "anything", b"copy")
    for queue in queues:
        raw.send(method(1, "basic.get", queue=queue, no_ack=True))
        got = raw.read_content("basic.get-ok")
        assert (got.body, got["exchange"], got["routing_key"]) == (b"copy", name, "anything")


TOPIC = [
    ("stock.usd.nyse", ["stock.usd.nyse"], ["stock.usd", "stock.usd.nyse.x", "Stock.usd.nyse", ""]),
    ("*.stock.#", ["usd.stock", "eur.stock.db", "eur.stock.db.x"], ["stock.nasdaq", "stock", "a.b.stock"]),
    ("*", ["a", "long-word_1"], ["", "a.b", "."]),
    ("#", ["", "a", "a.b.c", ".", ".."], []),
    ("a.*.c", ["a.b.c", "a..c"], ["a.c", "a.b.b.c", "a.b.c."]),
    ("a.#.c", ["a.c", "a.b.c", "a.b.b.c"], ["a", "c", "a.b", "a.c.d"]),
    ("#.#", ["", "a", "a.b"], []),
    ("#.a.#", ["a", "b.a", "a.b", "b.a.b"], ["", "b", "aa"]),
    ("*.#", ["a", "a.b", "a.b.c"], []),
    ("#.*", ["a", "a.b", "a.b.c"], []),
    ("a.#b", ["a.#b"], ["a.b", "a.xb"]),
    ("a*", ["a*"], ["ab", "a"]),
    ("", [""], ["a"]),
    ("#.b.*.#.c", ["b.x.c", "a.b.x.c", "b.x.y.z.c", "b.b.c.c"], ["b.c", "b.x", "b.c.b"]),
    ("a..b", ["a..b"], ["a.b", "a.x.b"]),
]


@pytest.mark.parametrize("pattern, matching, others", TOPIC, ids=[row[0] or "empty" for row in TOPIC])
def test_topic_patterns(raw, name, pattern, matching, others):
    """3.1.3.3: `*` is exactly one word, `#` zero or more, words are parted by dots (and may be empty)."""
    queue = raw.declare_queue(exclusive=True)
    exchange = "t.topic.%d" % TOPIC.index((pattern, matching, others))
    declare(raw, exchange, "topic", auto_delete=True)
    bind(raw, queue, exchange, pattern)
    assert [key for key in matching if not routed(raw, exchange, key)] == []
    assert [key for key in others if routed(raw, exchange, key)] == []


HEADERS = [
    (
        {"x-match": "all", "a": 1, "b": "two"},
        [{"a": 1, "b": "two"}, {"a": 1, "b": "two", "c": 3}],
        [{"a": 1}, {"a": 2, "b": "two"}, {}, None],
    ),
    ({"x-match": "any", "a": 1, "b": "two"}, [{"a": 1}, {"b": "two", "a": 5}], [{"a": 2}, {"c": 1}, {}, None]),
    ({"a": 1, "b": 2}, [{"a": 1, "b": 2}], [{"a": 1}, {"b": 2}]),
    ({"x-match": "all"}, [{}, {"a": 1}, None], []),
    ({"x-match": "any"}, [], [{}, {"a": 1}, None]),
    ({"x-match": "all", "a": None}, [{"a": 1}, {"a": "x"}, {"a": None}], [{}, {"b": 1}]),
    ({"x-match": "all", "x-ignored": 1, "a": 1}, [{"a": 1}], [{"x-ignored": 1}]),
    ({"x-match": "all", "a": True}, [{"a": True}], [{"a": False}, {"a": "true"}]),
    ({"x-match": "all", "a": ""}, [{"a": ""}], [{"a": " "}]),
]


@pytest.mark.parametrize("arguments, matching, others", HEADERS, ids=[str(number) for number in range(len(HEADERS))])
def test_headers_match(raw, name, arguments, matching, others):
    """3.1.3.4; names that begin with x- do not take part; a void value asks for presence only."""
    queue = raw.declare_queue(exclusive=True)
    declare(raw, name, "headers", auto_delete=True)
    bind(raw, queue, name, "ignored", arguments)

    def found(headers):
        return routed(raw, name, "", {} if headers is None else {"headers": headers})

    assert [headers for headers in matching if not found(headers)] == []
    assert [headers for headers in others if found(headers)] == []


def test_headers_compare_numbers_by_value_and_not_by_width(raw, name):
    queue = raw.declare_queue(exclusive=True)
    declare(raw, name, "headers", auto_delete=True)
    bind(raw, queue, name, "", {"x-match": "all", "a": Typed("b", 5)})
    assert routed(raw, name, "", {"headers": {"a": Typed("l", 5)}})


def test_a_bad_x_match_is_406(raw, connect, name):
    queue = raw.declare_queue(exclusive=True)
    raw.send(method(1, "queue.bind", queue=queue, exchange="amq.headers", arguments={"x-match": "some"}))
    raw.expect_channel_close(406, "x-match", method_of="queue.bind")


def test_bindings_with_other_arguments_are_other_bindings(raw, name):
    queue = raw.declare_queue(exclusive=True)
    declare(raw, name, "headers", auto_delete=True)
    bind(raw, queue, name, "", {"a": 1})
    bind(raw, queue, name, "", {"a": 2})
    raw.call("queue.unbind-ok", 1, "queue.unbind", queue=queue, exchange=name, arguments={"a": 1})
    assert not routed(raw, name, "", {"headers": {"a": 1}})
    assert routed(raw, name, "", {"headers": {"a": 2}})


def test_unbind_stops_the_flow_and_is_idempotent(raw, name):
    queue = raw.declare_queue(exclusive=True)
    for _ in range(2):
        bind(raw, queue, "amq.direct", name)
    assert routed(raw, "amq.direct", name)
    for _ in range(2):
        raw.call("queue.unbind-ok", 1, "queue.unbind", queue=queue, exchange="amq.direct", routing_key=name)
    assert not routed(raw, "amq.direct", name)


def test_a_route_changes_at_once_with_every_binding(raw, name):
    """The route cache may not outlive a change."""
    declare(raw, name, "topic", auto_delete=True)
    first, second = raw.declare_queue(exclusive=True), raw.declare_queue(exclusive=True)
    bind(raw, first, name, "#")
    counts = []
    for step in range(3):
        if step == 1:
            bind(raw, second, name, "a.*")
        if step == 2:
            raw.call("queue.delete-ok", 1, "queue.delete", queue=second)
        raw.publish(name, "a.b", b"x")
        raw.call("basic.qos-ok", 1, "basic.qos")
        counts.append(raw.call("queue.purge-ok", 1, "queue.purge", queue=first)["message_count"])
        if step == 1:
            assert raw.call("queue.purge-ok", 1, "queue.purge", queue=second)["message_count"] == 1
    assert counts == [1, 1, 1]


def test_the_predeclared_exchanges_route(raw, name):
    queue = raw.declare_queue(exclusive=True)
    bind(raw, queue, "amq.topic", name + ".*")
    assert routed(raw, "amq.topic", name + ".x") and not routed(raw, "amq.topic", name)
    assert not routed(raw, "amq.fanout", "")
    bind(raw, queue, "amq.fanout")
    assert routed(raw, "amq.fanout", "")
    bind(raw, queue, "amq.match", "", {name: 1})
    assert routed(raw, "amq.match", "", {"headers": {name: 1}})
    assert not routed(raw, "amq.headers", "", {"headers": {name: 1}})


def test_a_long_key_of_255_octets(raw):
    queue = raw.declare_queue(exclusive=True)
    key = ".".join(["a"] * 128)
    bind(raw, queue, "amq.topic", "#." + "a." * 126 + "a")
    assert len(key) == 255 and routed(raw, "amq.topic", key)
    bind(raw, queue, "amq.direct", "k" * 255)
    assert routed(raw, "amq.direct", "k" * 255) and not routed(raw, "amq.direct", "k" * 254)
