"""What the client of AMQP 1.0 reads in a message (part 3, section 3.2): its sections by either name, and bodies of every kind."""

from leveret.core.amqp_1_0 import types
from leveret.core.amqp_1_0.client.message import Message
from leveret.core.errors import ProtocolError

NAMES = (
    (0x70, "amqp:header:list", [True, 7]),
    (0x71, "amqp:delivery-annotations:map", {("symbol", "d"): "1"}),
    (0x72, "amqp:message-annotations:map", {("symbol", "m"): "2"}),
    (0x73, "amqp:properties:list", ["id"]),
    (0x74, "amqp:application-properties:map", {"a": "3"}),
    (0x75, "amqp:data:binary", b"body"),
    (0x76, "amqp:amqp-sequence:list", ["x", "y"]),
    (0x77, "amqp:amqp-value:*", "value"),
    (0x78, "amqp:footer:map", {("symbol", "f"): "4"}),
)


def message(*sections):
    """A message of (descriptor, value)."""
    made = Message(None, 0, b"", 0, True)
    made.octets = b"".join([types.encode(("described", descriptor, value)) for descriptor, value in sections])
    return made


def test_each_section_has_a_number_and_a_symbol():
    for code, name, value in NAMES:
        for descriptor in (("ulong", code), ("symbol", name)):
            assert sorted(message((descriptor, value)).read()) == [code], (name, descriptor)


def test_the_sections_of_a_message_whose_sender_writes_symbols():
    read = message(*[(("symbol", name), value) for _, name, value in NAMES if name != "amqp:data:binary" and "sequence" not in name])
    assert read.annotations == {"m": "2"} and read.application_properties == {"a": "3"} and read.body == "value"
    assert read.read()[0x71][2] == {("symbol", "d"): "1"} and read.read()[0x78][2] == {("symbol", "f"): "4"}


def test_bodies_of_many_sections_are_joined():
    """Section 3.2.6 and 3.2.7: one or more sections of data, or of sequences; 3.2.8: one value."""
    data, sequence = ("ulong", 0x75), ("ulong", 0x76)
    assert message((data, b"a")).body == b"a" and message((data, b"a"), (data, b""), (data, b"bc")).body == b"abc"
    assert message((sequence, ["a"]), (sequence, []), (sequence, ["b", "c"])).body == ["a", "b", "c"]
    assert message((("ulong", 0x77), None)).body is None and message((("ulong", 0x77), ["a"])).body == ["a"]
    refused = Message(None, 0, b"", 0, True)
    assert refused.body is None


def test_what_is_no_section_is_an_error_of_the_peer():
    others = [
        ("ulong", 0x6F),
        ("ulong", 0x79),
        ("symbol", "amqp:nothing:list"),
        ("symbol", ""),
        ("string", "amqp:header:list"),
        ("uint", 0x75),
    ]
    for descriptor in others:
        try:
            message((descriptor, [])).read()
        except ProtocolError as error:
            assert "section" in error.text
        else:
            raise AssertionError(descriptor)
