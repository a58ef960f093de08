"""What a message of AMQP 1.0 says of itself, by the names of class basic and by its own; annotations over it; bodies by chance."""

from sections_1_0 import message

from leveret.core.amqp_1_0 import body, properties, sections
from leveret.core.errors import ProtocolError
from leveret.core.message.annotations import GONE
from leveret.core.message.formats import AMQP_1_0, format_of

# header: durable; message-annotations: x-a = 1, x-cc = ["k"]; properties: message-id 1, to "/q"; application-properties: b = ubyte 2;
# data head
GOLDEN = bytes.fromhex(
    "005370c0020141005372c11404a303782d615501a304782d6363c00401a1016b005373c00803530140a1022f71005374c10602a101625002005375a003"
)


def refused(octets):
    try:
        properties.check(octets, 0, len(octets))
    except ProtocolError as error:
        return error.text
    raise AssertionError("it is valid")


def test_golden_octets_by_both_kinds_of_names():
    properties.check(b"x" + GOLDEN + b"x", 1, 1 + len(GOLDEN))
    found = properties.facts(GOLDEN, 0, len(GOLDEN))
    assert found["header"]["durable"] is True and found["header"]["priority"] is None
    assert found["message-annotations"] == {("symbol", "x-a"): 1, ("symbol", "x-cc"): ["k"]}
    assert (found["properties"]["message-id"], found["properties"]["to"]) == (("ulong", 1), "/q")
    assert found["application-properties"] == {"b": ("ubyte", 2)}
    assert properties.decode(GOLDEN, 0, len(GOLDEN)) == {"delivery_mode": 2, "headers": {"x-a": 1, "CC": ["k"], "b": 2}, "message_id": "1"}
    assert format_of(AMQP_1_0) is properties
    assert [properties.header(GOLDEN, name) for name in ("x-a", "CC", "b", "x-cc", "c")] == [1, ["k"], 2, None, None]
    assert (properties.field_in(GOLDEN, "message_id"), properties.field_in(GOLDEN, "type")) == ("1", None)


def test_what_a_conversion_noted_is_a_property():
    """A message that another broker has converted (RabbitMQ's x-basic- annotations), where its own sections do not say it."""
    noted = {"x-basic-type": "t", "x-basic-priority": ("ubyte", 3), "x-basic-delivery-mode": ("ubyte", 2), "x-basic-expiration": "5"}
    octets = message(noted=noted)
    given = {"type": "t", "priority": 3, "delivery_mode": 2, "expiration": "5"}
    assert properties.decode(octets, 0, len(octets)) == given
    octets = message(header={"durable": False, "priority": 4, "ttl": 6}, noted=noted, properties={"subject": "s"})
    assert properties.decode(octets, 0, len(octets)) == {"type": "t", "priority": 4, "delivery_mode": 1, "expiration": "6"}
    octets = message(noted={"x-basic-priority": "high", "x-basic-type": 5, "x-basic-delivery-mode": -1})
    assert properties.decode(octets, 0, len(octets)) == {}


def test_annotations_go_over_those_of_the_publisher():
    octets = message(b"", header={"ttl": 5}, noted={"x-a": 1, "x-b": ("uuid", bytes(16))}, application={"a": 1})[:-1]
    assert properties.merge(octets, {}) == octets
    merged = properties.merge(octets, {"headers": {"x-a": ("l", 2), "x-c": ["d", None]}, "expiration": GONE})
    assert merged.startswith(message(header={}) + b"\x00\x53\x72") and merged.endswith(octets[octets.index(b"\x00\x53\x74") :])
    noted = {("symbol", "x-b"): ("uuid", bytes(16)), ("symbol", "x-a"): 2, ("symbol", "x-c"): ["d", None]}
    assert properties.facts(merged, 0, len(merged))["message-annotations"] == noted
    assert properties.merge(b"", {"headers": {"x-a": "b"}}) == message(noted={"x-a": "b"})
    many = {"x-%d" % number: "v" * 200 for number in range(200)}
    merged = properties.merge(octets, {"headers": many})
    assert len(properties.facts(merged, 0, len(merged))["message-annotations"]) == 202


def test_properties_that_are_none():
    assert properties.check(b"", 0, 0) is None
    assert "ends inside a section" in refused(GOLDEN[:-1])
    assert "end before" in refused(GOLDEN + b"abc")
    assert "a message-id" in refused(message(properties={"message-id": ("uint", 1)}))
    assert "an address" in refused(message(properties={"reply-to": ("symbol", "q")}))
    assert "a key of application-properties" in refused(message(application={("uint", 1): 1}))
    assert "a key of message-annotations" in refused(b"\x00\x53\x72\xc1\x05\x02\x52\x01\x52\x01")
    assert "twice" in refused(b"\x00\x53\x74\xc1\x09\x04\xa1\x01a\x41\xa1\x01a\x41")
    assert "levels deep" in refused(message(application={"a": nested(20)}))
    properties.check(message(application={"a": nested(10)}), 0, len(message(application={"a": nested(10)})))


def nested(depth):
    return [nested(depth - 1)] if depth else None


def random_numbers(seed):
    """Numbers by chance, the same on every interpreter."""
    while True:
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        yield seed >> 8


def test_a_body_is_judged_alike_however_its_octets_come():
    """Whole, in pieces of any sizes, with octets changed: 400 bodies by chance."""
    numbers = random_numbers(7)

    def below(most):
        return next(numbers) % most

    verdicts = [0, 0]
    kinds = (
        lambda: b"x" * below(300),
        lambda: (sections.SEQUENCE, [1] * below(4)),
        lambda: (sections.VALUE, ("described", ("symbol", "a:b"), below(1000))),
        lambda: (sections.FOOTER, {}),
    )
    for _ in range(400):
        kind = kinds[below(4)]
        parts = [kind() if below(8) else kinds[below(4)]() for _ in range(1 + below(3))]
        octets = bytearray(message(*parts))
        for _ in range(below(2)):
            octets[below(len(octets))] = below(256)
        octets = bytes(octets[: len(octets) - (0 if below(3) else below(6))])
        whole = verdict(octets, [len(octets)])
        pieces = []
        while sum(pieces) < len(octets):
            pieces.append(min(1 + below(9), len(octets) - sum(pieces)))
        assert verdict(octets, pieces) == whole, (octets, pieces)
        assert body.is_body(len(octets), lambda at, most, octets=octets: octets[at : at + most]) == (whole == "" and octets != b"")
        verdicts[whole == ""] += 1
    assert min(verdicts) > 80, verdicts


def verdict(octets, pieces):
    """The text of the error that a body comes to, which comes in such pieces; "": it is one."""
    found = body.Body(-1)
    at = 0
    try:
        for size in pieces:
            found.feed(octets, at, at + size)
            at += size
        found.end()
    except ProtocolError as error:
        return error.text
    return ""


def test_a_timestamp_becomes_that_of_0_9_1_in_seconds():
    """Section 1.6.17 counts milliseconds since 1970, 0-9-1 (4.2.5.4) seconds; one before 1970 it has none for."""
    assert [properties.plain(("timestamp", ms)) for ms in (0, 999, 1000, 1700000000999)] == [("T", s) for s in (0, 0, 1, 1700000000)]
    try:
        properties.plain(("timestamp", -1))
    except ValueError as error:
        assert str(error) == "0-9-1 has no timestamp"
    else:
        raise AssertionError("0-9-1 has a timestamp before 1970")
