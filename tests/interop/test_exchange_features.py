"""Exchange features beyond the four types, by pika: exchange to exchange, alternate exchanges, CC and BCC, headers in all corners,
consistent hash, and the types that only Leveret has.

What RabbitMQ 3.10 has natively (or by the plugin that comes with it) runs on both; the rest only on Leveret.
"""

from decimal import Decimal

import pika
import pytest
from conftest import KIND
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker, UnroutableError

only_leveret = pytest.mark.skipif(KIND != "leveret", reason="a type that RabbitMQ 3.10 does not have")


@pytest.fixture
def connection(broker):
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    yield connection
    if connection.is_open:
        connection.close()


@pytest.fixture
def channel(connection):
    channel = connection.channel()
    channel.confirm_delivery()
    return channel


def queue(channel):
    return channel.queue_declare("", exclusive=True).method.queue


def exchange(channel, name, kind="fanout", **values):
    channel.exchange_declare(name, kind, auto_delete=values.pop("auto_delete", True), **values)
    return name


def routed(channel, to, key, **properties):
    """Whether a mandatory publish finds a queue."""
    try:
        channel.basic_publish(to, key, b"probe", pika.BasicProperties(**properties), mandatory=True)
        return True
    except UnroutableError:
        return False


def count(channel, *names):
    """How many messages each queue had; they are purged."""
    return [channel.queue_purge(name).method.message_count for name in names]


def refused(connection, call, *arguments, **values):
    """(code, text) of what the broker refuses on a fresh channel."""
    with pytest.raises((ChannelClosedByBroker, ConnectionClosedByBroker)) as caught:
        getattr(connection.channel(), call)(*arguments, **values)
    return caught.value.reply_code, caught.value.reply_text


# Exchange to exchange


def test_the_capability_is_announced(connection):
    assert connection._impl.server_properties["capabilities"]["exchange_exchange_bindings"] is True


def test_exchange_to_exchange(channel, name):
    first, second, found = exchange(channel, name + "1", "topic"), exchange(channel, name + "2", "direct"), queue(channel)
    channel.exchange_bind(second, first, "a.#")
    channel.queue_bind(found, second, "a.b")
    assert routed(channel, first, "a.b") and not routed(channel, first, "a.c") and not routed(channel, first, "b")
    method, _, body = channel.basic_get(found, auto_ack=True)
    assert (method.exchange, method.routing_key, body) == (first, "a.b", b"probe")
    channel.exchange_unbind(second, first, "a.#")
    assert refused(channel.connection, "basic_get", "no.such")[0] == 404


def test_cycles_end_and_a_queue_gets_one_copy(channel, name):
    names = [exchange(channel, name + letter, auto_delete=False) for letter in "abc"]
    queues = [queue(channel) for _ in names]
    everywhere = queue(channel)
    for index in range(3):
        channel.exchange_bind(names[(index + 1) % 3], names[index])
        channel.queue_bind(queues[index], names[index])
        channel.queue_bind(everywhere, names[index])
    channel.exchange_bind(names[0], names[0])
    for start in names:
        assert routed(channel, start, "k")
    assert count(channel, everywhere, *queues) == [3, 3, 3, 3]
    for each in names:
        channel.exchange_delete(each)


def test_bind_twice_is_once_and_unbind_is_idempotent(channel, name):
    first, second, found = exchange(channel, name + "1", "direct", auto_delete=False), exchange(channel, name + "2"), queue(channel)
    channel.queue_bind(found, second)
    for _ in range(2):
        channel.exchange_bind(second, first, "k")
    assert routed(channel, first, "k")
    for _ in range(2):
        channel.exchange_unbind(second, first, "k")
    assert not routed(channel, first, "k")
    channel.exchange_unbind("t.never.was", first, "k")
    channel.exchange_unbind(second, "t.never.was", "k")
    channel.exchange_delete(first)


@pytest.mark.parametrize(
    "destination, source, code, text",
    [
        ("", "amq.fanout", 403, "ACCESS_REFUSED - operation not permitted on the default exchange"),
        ("amq.fanout", "", 403, "ACCESS_REFUSED - operation not permitted on the default exchange"),
        ("amq.fanout", "t.gone", 404, "NOT_FOUND - no exchange 't.gone' in vhost '/'"),
        ("t.gone", "amq.fanout", 404, "NOT_FOUND - no exchange 't.gone' in vhost '/'"),
        ("t.gone", "t.lost", 404, "NOT_FOUND - no exchange 't.lost' in vhost '/'"),
    ],
)
def test_bindings_that_are_refused(connection, destination, source, code, text):
    assert refused(connection, "exchange_bind", destination, source) == (code, text)


def test_auto_delete_looks_at_the_source_only(channel, connection, name):
    """a -> b -> c: when c goes, b has no binding left and goes, then a."""
    first, second = exchange(channel, name + "a"), exchange(channel, name + "b")
    third = exchange(channel, name + "c", auto_delete=False)
    channel.exchange_bind(second, first)
    channel.exchange_bind(third, second)
    channel.exchange_delete(third)
    for gone in (first, second, third):
        assert refused(connection, "exchange_declare", gone, passive=True)[0] == 404


def test_a_destination_is_not_in_use(channel, connection, name):
    source, target, found = exchange(channel, name + "s", auto_delete=False), exchange(channel, name + "t"), queue(channel)
    channel.exchange_bind(target, source)
    assert refused(connection, "exchange_delete", source, if_unused=True) == (
        406,
        "PRECONDITION_FAILED - exchange '%s' in vhost '/' in use" % source,
    )
    channel.queue_bind(found, target)
    channel.queue_unbind(found, target)
    assert refused(connection, "exchange_declare", target, passive=True)[0] == 404
    channel.exchange_delete(source, if_unused=True)


def test_deleting_the_destination_takes_the_binding_along(channel, name):
    source, target = exchange(channel, name + "s", auto_delete=False), exchange(channel, name + "t", auto_delete=False)
    channel.exchange_bind(target, source)
    channel.exchange_delete(target, if_unused=True)
    channel.exchange_delete(source, if_unused=True)


def test_internal_behind_an_exchange(channel, connection, name):
    inner, found = exchange(channel, name, internal=True), queue(channel)
    channel.queue_bind(found, inner)
    channel.exchange_bind(inner, "amq.direct", name)
    assert routed(channel, "amq.direct", name)
    channel.exchange_unbind(inner, "amq.direct", name)


# Alternate exchange


def test_alternate_exchange(channel, name):
    rest = exchange(channel, name + "rest")
    main = exchange(channel, name, "direct", arguments={"alternate-exchange": rest})
    found, others = queue(channel), queue(channel)
    channel.queue_bind(found, main, "k")
    channel.queue_bind(others, rest)
    assert routed(channel, main, "k") and routed(channel, main, "other")
    assert count(channel, found, others) == [1, 1]


def test_alternate_chain_and_cycle(channel, name):
    names = [name + letter for letter in "abc"]
    for index in range(3):
        exchange(channel, names[index], "direct", auto_delete=False, arguments={"alternate-exchange": names[(index + 1) % 3]})
    found = queue(channel)
    channel.queue_bind(found, names[2], "deep")
    assert routed(channel, names[0], "deep") and not routed(channel, names[0], "nowhere")
    for each in names:
        channel.exchange_delete(each)


def test_alternate_is_for_what_matches_no_binding(channel, name):
    """An exchange behind a binding that has no queue of its own: the message is not for the alternate."""
    rest, empty = exchange(channel, name + "rest"), exchange(channel, name + "empty", auto_delete=False)
    main, found = exchange(channel, name, "direct", arguments={"alternate-exchange": rest}), queue(channel)
    channel.queue_bind(found, rest)
    channel.exchange_bind(empty, main, "k")
    assert not routed(channel, main, "k") and routed(channel, main, "other")
    channel.exchange_delete(empty)


def test_alternate_that_is_not_there(channel, name):
    main = exchange(channel, name, auto_delete=False, arguments={"alternate-exchange": "t.not.there"})
    assert not routed(channel, main, "k")
    channel.exchange_delete(main)


def test_alternate_is_compared_and_checked(channel, connection, name):
    name = name[:40]  # the whole text fits in the 255 octets of a reply
    exchange(channel, name, auto_delete=False, arguments={"alternate-exchange": "one"})
    for arguments, difference in (
        ({"alternate-exchange": "two"}, "received 'two' but current is 'one'"),
        ({}, "received none but current is the value 'one' of type 'longstr'"),
    ):
        assert refused(connection, "exchange_declare", name, "fanout", arguments=arguments) == (
            406,
            "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange '%s' in vhost '/': %s" % (name, difference),
        )
    channel.exchange_delete(name)
    assert refused(connection, "exchange_declare", name, "fanout", arguments={"alternate-exchange": 5}) == (
        406,
        "PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in exchange '%s' in vhost '/'" % name,
    )


# CC and BCC


def test_cc_and_bcc(channel):
    first, second, third = queue(channel), queue(channel), queue(channel)
    assert routed(channel, "", first, message_id="m", headers={"CC": [second, first], "BCC": [third, "t.nobody"], "kept": 1})
    for each in (first, second, third):
        method, properties, _ = channel.basic_get(each, auto_ack=True)
        assert (method.routing_key, properties.headers, properties.message_id) == (first, {"CC": [second, first], "kept": 1}, "m")
    assert count(channel, first, second, third) == [0, 0, 0]


@pytest.mark.parametrize(
    "kind, first, second, key, copies",
    [
        ("direct", "a", "b", "a", ["b"]),
        ("topic", "a.*", "*.b", "a.x", ["x.b"]),
        ("fanout", "", "", "", ["b"]),
        ("direct", "a", "b", "c", ["b", "a"]),
    ],
)
def test_copies_by_type(channel, name, kind, first, second, key, copies):
    to, left, right = exchange(channel, name, kind), queue(channel), queue(channel)
    channel.queue_bind(left, to, first)
    channel.queue_bind(right, to, second)
    assert routed(channel, to, key, headers={"BCC": copies})
    assert count(channel, left, right) == [1, 1]


def test_an_empty_table_stays_when_bcc_was_alone(channel):
    found = queue(channel)
    assert routed(channel, "", found, headers={"BCC": ["t.nobody"]})
    assert channel.basic_get(found, auto_ack=True)[1].headers == {}


@pytest.mark.parametrize(
    "header, value, word",
    [
        ("CC", "b", "longstr"),
        ("BCC", 5, "signedint"),
        ("CC", True, "bool"),
        ("CC", {}, "table"),
    ],
)
def test_copies_that_are_no_array(channel, header, value, word):
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.basic_publish("", "k", b"", pika.BasicProperties(headers={header: value}))
    assert (caught.value.reply_code, caught.value.reply_text) == (
        406,
        'PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"%s",%s}' % (header, word),
    )


def test_what_is_no_text_among_the_copies(channel):
    found = queue(channel)
    assert routed(channel, "", "t.nobody", headers={"CC": [5, None, found]})
    assert not routed(channel, "", "t.nobody", headers={"CC": []})


# Headers


HEADERS = [
    ({}, {}, True),
    ({}, {"a": 1}, True),
    ({"x-match": "all"}, {}, True),
    ({"x-match": "any"}, {"a": 1}, False),
    ({"a": None}, {"a": 1}, True),
    ({"a": None}, {"a": None}, True),
    ({"a": None}, {}, False),
    ({"a": 1}, {"a": None}, False),
    ({"x-match": "any", "a": None}, {"a": "z"}, True),
    ({"a": 1}, {"a": True}, False),
    ({"a": True}, {"a": 1}, False),
    ({"a": "1"}, {"a": 1}, False),
    ({"a": 1}, {"a": Decimal("1.5")}, False),
    ({"a": Decimal("1.5")}, {"a": Decimal("1.5")}, True),
    ({"a": 1 << 40}, {"a": 1 << 40}, True),
    ({"a": [1, "x"]}, {"a": [1, "x"]}, True),
    ({"a": {"b": 1}}, {"a": {"b": 1}}, True),
    ({"a": {"b": 1}}, {"a": {"b": 2}}, False),
    ({"x-a": 1}, {}, True),
    ({"x-match": "any", "x-a": 1}, {"x-a": 1}, False),
    ({"x-match": "all-with-x", "x-a": 1}, {}, False),
    ({"x-match": "all-with-x", "x-a": 1}, {"x-a": 1}, True),
    ({"x-match": "any-with-x", "x-a": 1}, {"x-a": 1}, True),
    ({"x-match": "any-with-x", "x-a": 1, "b": 1}, {"b": 1}, True),
    ({"x-match": "any-with-x", "x-a": 1}, {}, False),
]


@pytest.mark.parametrize("arguments, headers, fit", HEADERS, ids=[str(number) for number in range(len(HEADERS))])
def test_headers_in_all_corners(channel, arguments, headers, fit):
    found = queue(channel)
    channel.queue_bind(found, "amq.headers", "", arguments)
    assert routed(channel, "amq.headers", "", headers=headers) == fit


@pytest.mark.parametrize(
    "value, text",
    [
        ("some", 'Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x'),
        (5, "Invalid x-match field type signedint (value 5); expected longstr"),
    ],
)
def test_x_match_that_is_refused(channel, connection, value, text):
    found = refused(connection, "queue_bind", queue(channel), "amq.headers", "", {"x-match": value})
    assert found == (406, "PRECONDITION_FAILED - " + text)


# Consistent hash (RabbitMQ: its plugin)


def test_consistent_hash_spreads_and_keeps_together(channel, name):
    to = exchange(channel, name, "x-consistent-hash")
    queues = [queue(channel) for _ in range(3)]
    for each in queues:
        channel.queue_bind(each, to, "1")
    for _ in range(2):
        for number in range(60):
            assert routed(channel, to, str(number))
    counts = count(channel, *queues)
    assert sum(counts) == 120 and min(counts) > 12 and [each % 2 for each in counts] == [0, 0, 0]


@pytest.mark.parametrize(
    "arguments, make",
    [
        ({"hash-header": "who"}, lambda number: {"headers": {"who": str(number)}}),
        ({"hash-property": "message_id"}, lambda number: {"message_id": str(number)}),
        ({"hash-property": "correlation_id"}, lambda number: {"correlation_id": str(number)}),
        ({"hash-property": "timestamp"}, lambda number: {"timestamp": number}),
    ],
)
def test_consistent_hash_of_a_header_or_property(channel, name, arguments, make):
    to = exchange(channel, name, "x-consistent-hash", arguments=arguments)
    queues = [queue(channel), queue(channel)]
    for each in queues:
        channel.queue_bind(each, to, "1")
    for number in range(40):
        assert routed(channel, to, "same", **make(number))
    assert min(count(channel, *queues)) > 5
    for number in range(10):
        assert routed(channel, to, str(number), **make(1))
    assert sorted(count(channel, *queues)) == [0, 10]


@pytest.mark.parametrize(
    "key, text",
    [
        ("x", 'The binding key must be an integer: <<"x">>'),
        ("0", "The binding key must be greater than 0"),
        ("-3", "The binding key must be greater than 0"),
    ],
)
def test_consistent_hash_weights_that_are_refused(channel, connection, name, key, text):
    to, found = exchange(channel, name, "x-consistent-hash", auto_delete=False), queue(channel)
    assert refused(connection, "queue_bind", found, to, key) == (406, "PRECONDITION_FAILED - " + text)
    channel.exchange_delete(to)


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"hash-header": "a", "hash-property": "message_id"}, "hash-header and hash-property are mutually exclusive"),
        ({"hash-property": "type"}, "Unsupported property: type"),
    ],
)
def test_consistent_hash_arguments_that_are_refused(connection, name, arguments, text):
    assert refused(connection, "exchange_declare", name, "x-consistent-hash", arguments=arguments) == (406, "PRECONDITION_FAILED - " + text)


# Types that are not there


@pytest.mark.parametrize("kind, word", [("system", "invalid"), ("x-nothing", "unknown")])
def test_unknown_types_close_the_connection(connection, name, kind, word):
    """0-9-1 section 3.1.3.5: the system exchange is optional; neither broker has one."""
    assert refused(connection, "exchange_declare", name, kind) == (503, "COMMAND_INVALID - %s exchange type '%s'" % (word, kind))


# Types that RabbitMQ 3.10 does not have


@only_leveret
def test_local_random(channel, name):
    to = exchange(channel, name, "x-local-random")
    queues = [queue(channel) for _ in range(3)]
    for each in queues:
        channel.queue_bind(each, to, "")
    for number in range(60):
        assert routed(channel, to, str(number))
    counts = count(channel, *queues)
    assert sum(counts) == 60 and min(counts) > 5


@only_leveret
def test_property_matcher_and_selector(channel, name):
    statement = "unit IN ('C', 'K') AND JMS_AMQP_ContentType LIKE 'text/%' AND NOT JMSPriority > 5"
    for kind, arguments in (
        ("x-property", {"content-type": "text/plain", "unit": "C"}),
        ("x-matcher", {"content-type": "text/*", "unit": "?"}),
        ("x-selector", {"x-selector": statement}),
    ):
        to, found = exchange(channel, name + kind, kind), queue(channel)
        channel.queue_bind(found, to, "", arguments)
        assert routed(channel, to, "k", content_type="text/plain", headers={"unit": "C"}, priority=1), kind
        assert not routed(channel, to, "k", content_type="image/png", headers={"unit": "C"}, priority=1), kind
        assert not routed(channel, to, "k", content_type="text/plain", headers={"unit": "none"}, priority=9), kind


@only_leveret
def test_a_wrong_selector_names_the_position(channel, connection, name):
    to, found = exchange(channel, name, "x-selector", auto_delete=False), queue(channel)
    assert refused(connection, "queue_bind", found, to, "", {"x-selector": "a = 'b"}) == (
        406,
        "PRECONDITION_FAILED - invalid selector at position 5: a quote ' that is not closed",
    )
    channel.exchange_delete(to)


@only_leveret
def test_lossy(channel, name):
    """The same seed loses the same messages, and the publisher does not notice."""
    passed = []
    for _ in range(2):
        to, found = exchange(channel, name, "x-lossy", arguments={"x-loss": "0.3", "x-seed": 11}), queue(channel)
        channel.queue_bind(found, to)
        for number in range(100):
            channel.basic_publish(to, "", str(number).encode(), mandatory=True)
        bodies = []
        while True:
            method, _, body = channel.basic_get(found, auto_ack=True)
            if method is None:
                break
            bodies.append(body)
        passed.append(bodies)
        channel.queue_unbind(found, to)
    assert passed[0] == passed[1] and 50 < len(passed[0]) < 90
