"""Messages between AMQP 0-9-1 and 1.0, both ways, as RabbitMQ 4 maps them: properties, types of headers, bodies (core/SPEC.md)."""

from peer import Peer, new_broker, taken
from sections_1_0 import head_of, message, publish, received_from

from leveret.core.amqp_0_9 import deliver, field_table
from leveret.core.amqp_1_0 import composites, convert, sections
from leveret.core.amqp_1_0.properties import facts
from leveret.core.outcomes import TAKEN

UUID = ("uuid", bytes(range(16)))
URN = "urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f"


def crossed(octets, **limits):
    """What a receiver of 0-9-1 gets of a message of 1.0: (properties, body)."""
    broker = new_broker(**limits)
    peer = Peer(broker)
    peer.declare("q")
    assert publish(broker, "", "q", octets) == TAKEN
    ((given, body),) = taken(peer, "q")
    assert broker.counters["internal_errors"] == 0
    return given, body


def crossed_back(given, body=b"x", noted=None):
    """What a receiver of 1.0 gets of a message of 0-9-1: (facts, octets of the body)."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    peer.publish("q", body, given=given)
    octets = received_from(broker, "q")
    at, _, _ = sections.split(octets, 0, len(octets))
    return facts(octets, 0, at), octets[at:]


def test_a_receiver_of_1_0_gets_the_octets_of_a_publisher_of_1_0():
    broker = new_broker()
    Peer(broker).declare("q")
    for octets in (
        message(b"abc", header={"durable": False}, noted={"x-a": 1}, properties={"message-id": UUID}, application={"a": ("ubyte", 1)}),
        message(b"abc", b"def"),
        message((sections.VALUE, {"a": [1]}), (sections.FOOTER, {("symbol", "sum"): b"\x00"})),
        message((sections.SEQUENCE, [1]), (sections.SEQUENCE, [])),
        message(),
        bytes.fromhex("00a310616d71703a6865616465723a6c697374c00705415004404243008000000000000000 75b000000001ff"),
    ):
        broker.queues["q"].purge()
        assert publish(broker, "", "q", octets) == TAKEN
        assert received_from(broker, "q") == octets


def test_properties_of_1_0_for_0_9_1():
    given, body = crossed(
        message(
            b"abc",
            header={"durable": True, "priority": 7, "ttl": 60000},
            noted={"x-basic-type": "kind", "x-opt-a": ("symbol", "b"), "other": 1, "x-exchange": "e"},
            properties={
                "message-id": UUID,
                "correlation-id": ("ulong", 1 << 63),
                "user-id": b"guest",
                "to": "/queues/q",
                "subject": "s",
                "reply-to": "/queues/a%20b",
                "content-type": "text/plain",
                "content-encoding": "gzip",
                "creation-time": 5999,
                "absolute-expiry-time": 1,
                "group-id": "g",
                "group-sequence": 3,
                "reply-to-group-id": "r",
            },
        )
    )
    assert body == b"abc"
    assert given == {
        "delivery_mode": 2,
        "priority": 7,
        "expiration": "60000",
        "type": "kind",
        "headers": {"x-opt-a": "b"},
        "message_id": URN,
        "correlation_id": "9223372036854775808",
        "user_id": "guest",
        "reply_to": "a b",
        "content_type": "text/plain",
        "content_encoding": "gzip",
        "timestamp": 5,
        "app_id": "g",
    }


def test_what_is_no_short_string_is_a_header_or_nothing():
    long = "x" * 256
    given, _ = crossed(
        message(
            b"",
            properties={
                "message-id": b"\xff",
                "correlation-id": long,
                "user-id": b"\xff",
                "subject": "s",
                "reply-to": long,
                "content-type": long,
                "group-id": long,
                "creation-time": -1,
            },
            application={long: 1},
        )
    )
    assert given == {"type": "s", "user_id": b"\xff", "headers": {"x-message-id": b"\xff", "x-correlation-id": long}}


def test_types_of_application_properties_for_0_9_1():
    broker = new_broker()
    Peer(broker).declare("q")
    application = {
        "null": None,
        "true": True,
        "ubyte": ("ubyte", 255),
        "ushort": ("ushort", 65535),
        "uint": ("uint", 0xFFFFFFFF),
        "ulong": ("ulong", (1 << 63) - 1),
        "above": ("ulong", 1 << 63),
        "byte": ("byte", -1),
        "short": ("short", -2),
        "int": ("int", -3),
        "long": -4,
        "float": ("float", 1.5),
        "double": 2.5,
        "decimal": ("decimal32", b"abcd"),
        "char": ("char", "c"),
        "time": ("timestamp", 1999),
        "past": ("timestamp", -1),
        "uuid": UUID,
        "binary": b"\xfe",
        "string": "s",
        "symbol": ("symbol", "y"),
        "list": [1, ("decimal64", b"abcdefgh"), {"a": ("ubyte", 1), 5: 6}],
        "array": ("array", "symbol", ["a", "b"]),
        "described": ("described", ("ulong", 1), 2),
    }
    publish(broker, "", "q", message(b"", application=application))
    expected = {
        "null": "V",
        "true": "t01",
        "ubyte": "Bff",
        "ushort": "uffff",
        "uint": "iffffffff",
        "ulong": "l7fffffffffffffff",
        "byte": "bff",
        "short": "sfffe",
        "int": "Ifffffffd",
        "long": "lfffffffffffffffc",
        "float": "f3fc00000",
        "double": "d4004000000000000",
        "char": b"S" + b"\0\0\0\x01c",
        "time": "T0000000000000001",
        "uuid": b"S" + b"\0\0\0\x2d" + URN.encode(),
        "binary": "S00000001fe",
        "string": b"S" + b"\0\0\0\x01s",
        "symbol": b"S" + b"\0\0\0\x01y",
        "list": b"A" + b"\0\0\0\x12l\0\0\0\0\0\0\0\x01F\0\0\0\x04\x01aB\x01",
        "array": b"A" + b"\0\0\0\x0cS\0\0\0\x01aS\0\0\0\x01b",
    }
    for name in expected:
        if isinstance(expected[name], str):  # letter and hex
            expected[name] = expected[name][0].encode() + bytes.fromhex(expected[name][1:])
    assert encoded_headers(broker) == expected


def encoded_headers(broker):
    """{header: its octets with the letter} that receivers of 0-9-1 get of the message at the head of the queue."""
    octets = deliver.reworked_properties(broker, head_of(broker, "q"))
    assert octets[:2] == b"\x20\x00"
    found = {}
    at = 6
    while at < len(octets):
        name = octets[at + 1 : at + 1 + octets[at]].decode()
        start = at + 1 + octets[at]
        _, at = field_table.value(octets, start, len(octets), 1)
        found[name] = octets[start:at]
    return found


def test_bodies_of_1_0_for_0_9_1():
    value = (sections.VALUE, "text")
    footer = (sections.FOOTER, {})
    for parts, body, type_ in (
        ((b"abc",), b"abc", None),
        ((b"",), b"", None),
        ((), b"", None),
        ((footer,), b"", None),
        ((b"abc", footer), b"abc", None),
        ((b"abc", b"", b"def", footer), b"abcdef", None),
        ((b"", b"", b"def"), b"def", None),
        ((b"", b""), b"", None),
        ((value,), message(value), "amqp-1.0"),
        ((value, footer), message(value, footer), "amqp-1.0"),
        (((sections.SEQUENCE, [1]), (sections.SEQUENCE, [2])), message((sections.SEQUENCE, [1]), (sections.SEQUENCE, [2])), "amqp-1.0"),
        ((b"x" * 9000, b"y" * 300, b"z"), b"x" * 9000 + b"y" * 300 + b"z", None),
    ):
        given, came = crossed(message(*parts))
        assert came == body, parts
        assert given.get("type") == type_


def test_a_body_of_many_sections_goes_through_a_small_send_buffer():
    octets = message(*[bytes((number & 255,)) * 37 for number in range(1000)])
    _, body = crossed(octets, receive_buffer_size=8192, arena_size=1 << 18)
    assert body == b"".join([bytes((number & 255,)) * 37 for number in range(1000)])


def test_headers_that_are_too_large_for_a_delivery_are_left_out():
    """A ulong of 0 has one octet in 1.0, and nine in a field table: a queue must not wait for room that there never is."""
    octets = message(b"x", properties={"subject": "s"}, application={"a": [("ulong", 0)] * 220})
    assert len(octets) < 256
    given, body = crossed(octets, send_buffer_size=2048)
    assert (given, body) == ({"type": "s"}, b"x")
    given, body = crossed(octets, send_buffer_size=4096)
    assert given["headers"] == {"a": [0] * 220}


def test_properties_of_0_9_1_for_1_0():
    found, body = crossed_back(
        {
            "content_type": "text/plain",
            "content_encoding": "ü",
            "headers": {"a": 1, "x-b": {"c": [None]}, "CC": ["q"], "l": [1], "t": ("T", 3), "s": ("S", b"\xff"), "n": "\x00"},
            "delivery_mode": 2,
            "priority": 0,
            "correlation_id": "c",
            "reply_to": "a b",
            "expiration": "5000000000",
            "message_id": URN,
            "timestamp": 0xFFFFFFFFFFFFFFFF,
            "type": "kind",
            "user_id": "guest",
            "app_id": "app",
        },
        b"body",
    )
    assert body == b"body"
    header = found["header"]
    assert (header["durable"], header["priority"], header["ttl"]) == (True, 0, 0xFFFFFFFF)
    assert found["message-annotations"] == {
        ("symbol", "x-b"): {("symbol", "c"): [None]},
        ("symbol", "x-cc"): ["q"],
        ("symbol", "x-basic-type"): "kind",
        ("symbol", "x-exchange"): "",
        ("symbol", "x-routing-key"): "q",
    }
    properties = {name: value for name, value in found["properties"].items() if value is not None}
    assert properties == {
        "message-id": UUID,
        "user-id": b"guest",
        "reply-to": "/queues/a%20b",
        "correlation-id": "c",
        "content-type": "text/plain",
        "creation-time": (1 << 63) - 1,
        "group-id": "app",
    }
    assert found["application-properties"] == {"a": ("int", 1), "t": ("timestamp", 3000), "s": b"\xff", "n": b"\x00"}


def test_encoded_sections_of_0_9_1_are_a_body_again():
    """RabbitMQ's type amqp-1.0: what left as a value comes back as one; what is no body is data."""
    for body, is_body in (
        (message((sections.VALUE, "text"), (sections.FOOTER, {})), True),
        (message(b"a", b"b"), True),
        (message((sections.SEQUENCE, [1]), (sections.SEQUENCE, [2])), True),
        (message((sections.VALUE, 1), (sections.VALUE, 2)), False),
        (message(b"abc")[:-1], False),
        (message(b"abc", application={"a": 1}), False),
        (b"text", False),
        (b"", False),
    ):
        found, came = crossed_back({"type": "amqp-1.0"}, body)
        if not is_body:
            assert came == body
        else:
            broker = new_broker()
            peer = Peer(broker)
            peer.declare("q")
            peer.publish("q", body, given={"type": "amqp-1.0"})
            assert received_from(broker, "q").endswith(body) and message(body) not in received_from(broker, "q")


def test_headers_are_written_as_composites_are():
    for fields in ({}, {"durable": False}, {"priority": 0}, {"ttl": 0}, {"durable": True, "ttl": 255, "priority": 255}, {"ttl": 70000}):
        for failed in (0, 1, 300):
            given = dict(fields)
            if failed:
                given["delivery-count"] = failed
            assert convert.header(fields, failed, 0) == composites.write("header", given)


def test_what_is_not_there_is_no_section():
    assert set(crossed_back({})[0]) == {"header", "message-annotations"}
    assert crossed_back({}, b"")[1] == b""
    assert crossed_back({}, bytes(300))[1] == bytes(300)
