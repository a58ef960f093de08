"""Bodies and properties come out octet for octet as they went in (4.2.6, 4.2.5.5)."""

import hashlib
import random
import struct

import pamqp.encode
import pytest
from amqp_tables import PROPERTIES
from amqp_wire import BODY, Typed, encode_properties, encode_table, frame, header, longstr, method, shortstr

SIZES = (0, 1, 2, 511, 512, 513, 4087, 4088, 4089, 131063, 131064, 131065, 1 << 20)


def body_of(size):
    return random.Random(size).randbytes(size)


def there_and_back(peer, body, properties=b"\0\0"):
    """Published, got: a Content."""
    queue = peer.declare_queue(exclusive=True)
    peer.publish("", queue, body, properties)
    peer.send(method(1, "basic.get", queue=queue, no_ack=True))
    got = peer.read_content("basic.get-ok")
    peer.call("queue.delete-ok", 1, "queue.delete", queue=queue)
    return got


@pytest.mark.parametrize("size", SIZES)
def test_a_body_of_any_size(raw, size):
    assert there_and_back(raw, body_of(size)).body == body_of(size)


@pytest.mark.parametrize("size", SIZES)
def test_a_body_of_any_size_in_small_frames(connect, size):
    got = there_and_back(connect(frame_max=4096), body_of(size))
    assert got.body == body_of(size)
    assert not got.body_frame_sizes or max(got.body_frame_sizes) <= 4088


def test_8_megabytes_by_get_and_by_delivery(connect, name):
    body = body_of(8 << 20)
    peer = connect(timeout_s=30)
    assert hashlib.sha256(there_and_back(peer, body).body).digest() == hashlib.sha256(body).digest()
    queue = peer.declare_queue(exclusive=True)
    peer.call("basic.consume-ok", 1, "basic.consume", queue=queue, no_ack=True)
    peer.publish("", queue, body)
    assert hashlib.sha256(peer.read_content("basic.deliver").body).digest() == hashlib.sha256(body).digest()


def test_published_in_large_frames_consumed_in_small_ones_and_the_other_way_round(connect, name):
    large, small = connect(), connect(frame_max=4096)
    for publisher, consumer in ((large, small), (small, large)):
        queue = consumer.declare_queue(exclusive=True)
        consumer.call("basic.consume-ok", 1, "basic.consume", queue=queue, no_ack=True)
        publisher.publish("", queue, body_of(50000))
        assert consumer.read_content("basic.deliver").body == body_of(50000)


def test_a_body_in_frames_of_odd_sizes(raw):
    queue = raw.declare_queue(exclusive=True)
    body = body_of(3000)
    raw.send(method(1, "basic.publish", routing_key=queue) + header(1, 3000))
    at = 0
    for size in (1, 2, 700, 1, 1296, 999, 1):
        raw.send(frame(BODY, 1, body[at : at + size]))
        at += size
    raw.send(method(1, "basic.get", queue=queue, no_ack=True))
    assert raw.read_content("basic.get-ok").body == body


VALUES = {
    "content_type": "application/json",
    "content_encoding": "utf-8",
    "headers": {"a": 1},
    "delivery_mode": 2,
    "priority": 9,
    "correlation_id": "c" * 255,
    "reply_to": "r",
    "expiration": "60000",
    "message_id": "m",
    "timestamp": 2**40,
    "type": "t",
    "user_id": "guest",
    "app_id": "\u96f7\u5154",
    "cluster_id": "k",
}


@pytest.mark.parametrize("property_name", [row[0] for row in PROPERTIES])
def test_each_property_alone(raw, property_name):
    octets = encode_properties({property_name: VALUES[property_name]})
    assert there_and_back(raw, b"x", octets).properties == octets


def test_all_fourteen_together_and_none(raw):
    octets = encode_properties(VALUES)
    assert len(VALUES) == 14 and octets[:2] == b"\xff\xfc"
    assert there_and_back(raw, b"x", octets).properties == octets
    assert there_and_back(raw, b"x", b"\0\0").properties == b"\0\0"


def test_every_pair_of_properties(raw):
    """Each flag bit is looked at by itself."""
    names = [row[0] for row in PROPERTIES]
    queue = raw.declare_queue(exclusive=True)
    sent = []
    for first in range(len(names)):
        for second in range(first + 1, len(names)):
            octets = encode_properties({names[first]: VALUES[names[first]], names[second]: VALUES[names[second]]})
            sent.append(octets)
            raw.publish("", queue, b"%d" % len(sent), octets)
    raw.call("basic.consume-ok", 1, "basic.consume", queue=queue, no_ack=True)
    assert [raw.read_content("basic.deliver").properties for _ in sent] == sent


def test_empty_values_are_not_absent_values(raw):
    empty = {"content_type": "", "headers": {}, "delivery_mode": 1, "priority": 0, "message_id": "", "timestamp": 0}
    octets = encode_properties(empty)
    assert there_and_back(raw, b"x", octets).properties == octets


FIELDS = {
    "boolean": True,
    "signed 8": Typed("b", -128),
    "unsigned 8": Typed("B", 255),
    "signed 16": Typed("s", -32768),
    "unsigned 16": Typed("u", 65535),
    "signed 32": Typed("I", -(2**31)),
    "unsigned 32": Typed("i", 2**32 - 1),
    "signed 64": Typed("l", -(2**63)),
    "float": Typed("f", 1.5),
    "double": Typed("d", -0.1),
    "decimal": Typed("D", (2, 314)),
    "long string": "s" * 300,
    "bytes": Typed("x", b"\0\xff"),
    "time": Typed("T", 2**33),
    "void": None,
    "array": [1, "two", None, [3, [4]], {"five": 5}, False],
    "table": {"a": {"b": {"c": {}}}},
    "empty string": "",
    "empty array": [],
    "\u96f7\u5154": "a name of any letters",
    "n" * 255: "a long name",
    "not UTF-8": Typed("S", b"\xff\xfe"),
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_header_of_every_field_type(raw, field):
    octets = encode_properties({"headers": {field: FIELDS[field]}})
    assert there_and_back(raw, b"x", octets).properties == octets


def test_headers_of_all_types_keep_their_order(raw):
    octets = encode_properties({"headers": FIELDS, "priority": 1})
    assert there_and_back(raw, b"x", octets).properties == octets
    octets = encode_properties({"headers": dict(reversed(FIELDS.items()))})
    assert there_and_back(raw, b"x", octets).properties == octets


def test_a_name_twice_in_a_table_is_kept_by_leveret(raw, broker):
    """The publisher's octets are kept as they are; RabbitMQ 3.10 keeps them too as long as nothing has to read them."""
    table = longstr(shortstr("a") + b"I\0\0\0\1" + shortstr("a") + b"I\0\0\0\2")
    octets = encode_properties({"headers": table})
    assert there_and_back(raw, b"x", octets).properties == octets


def test_headers_of_16_kilobytes(raw):
    octets = encode_properties({"headers": {"h%d" % number: "v" * 100 for number in range(150)}})
    assert 15000 < len(octets) < 20000
    assert there_and_back(raw, b"x", octets).properties == octets


def test_routing_keys_and_exchange_names_of_any_octets_come_back(raw):
    queue = raw.declare_queue(exclusive=True)
    raw.call("queue.bind-ok", 1, "queue.bind", queue=queue, exchange="amq.fanout")
    for key in ("", "k" * 255, "\u20ac.\u96f7", "a b\tc", "#.*"):
        raw.publish("amq.fanout", key, b"x")
        raw.send(method(1, "basic.get", queue=queue, no_ack=True))
        got = raw.read_content("basic.get-ok")
        assert (got["exchange"], got["routing_key"]) == ("amq.fanout", key)


def test_one_message_in_many_queues_is_the_same_in_each(raw, name):
    raw.call("exchange.declare-ok", 1, "exchange.declare", exchange=name, type="fanout", auto_delete=True)
    queues = [raw.declare_queue(exclusive=True) for _ in range(8)]
    for queue in queues:
        raw.call("queue.bind-ok", 1, "queue.bind", queue=queue, exchange=name)
    octets, body = encode_properties(VALUES), body_of(20000)
    raw.publish(name, "k", body, octets)
    for queue in queues:
        raw.send(method(1, "basic.get", queue=queue, no_ack=True))
        got = raw.read_content("basic.get-ok")
        assert (got.body, got.properties) == (body, octets)


def test_a_redelivery_is_the_same_message(raw):
    queue = raw.declare_queue(exclusive=True)
    octets, body = encode_properties(VALUES), body_of(9999)
    raw.publish("", queue, body, octets)
    for turn in range(3):
        raw.send(method(1, "basic.get", queue=queue))
        got = raw.read_content("basic.get-ok")
        assert (got.body, got.properties, got["redelivered"]) == (body, octets, turn > 0)
        raw.send(method(1, "basic.nack", delivery_tag=turn + 1, requeue=True))
        raw.wait_for_count(queue, 1)


def test_a_return_gives_everything_back(raw):
    octets, body = encode_properties(VALUES), body_of(200000)
    raw.publish("amq.direct", "t.nobody", body, octets, mandatory=True)
    got = raw.read_content("basic.return")
    assert (got.body, got.properties) == (body, octets)


def test_a_thousand_messages_of_mixed_sizes_keep_their_order(raw):
    queue = raw.declare_queue(exclusive=True)
    raw.call("basic.consume-ok", 1, "basic.consume", queue=queue, no_ack=True)
    source = random.Random(7)
    sizes = [source.choice((0, 1, 10, 200, 600, 3000)) for _ in range(1000)]
    for start in range(0, 1000, 50):
        for number in range(start, start + 50):
            raw.publish("", queue, struct.pack(">I", number) + bytes(sizes[number]), {"message_id": str(number)})
        for number in range(start, start + 50):
            got = raw.read_content("basic.deliver")
            assert got.body == struct.pack(">I", number) + bytes(sizes[number])
            assert got.properties == encode_properties({"message_id": str(number)})


def test_encode_table_of_this_file_is_what_clients_send():
    """The hand encoder against pamqp, an independent one."""
    plain = {"b": True, "i": 70000, "n": None, "s": "text", "t": {"x": [70001]}}  # in order of names: pamqp sorts them
    assert encode_table(plain)[4:] == pamqp.encode.field_table(plain)[4:]
