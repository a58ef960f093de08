"""Properties of class basic (0-9-1 section 4.2.6.1) and the reply codes."""

from leveret.core.amqp_0_9 import exact, properties, spec_0_9_1
from leveret.core.amqp_0_9.replies import reply_of, reply_text
from leveret.core.errors import ACCESS_REFUSED, FRAME_ERROR, NOT_FOUND, SYNTAX_ERROR, ProtocolError

# (properties, octets)
CASES = (
    ({}, b"\x00\x00"),
    ({"content_type": "text/plain"}, b"\x80\x00\x0atext/plain"),
    ({"headers": {}, "delivery_mode": 2}, b"\x30\x00\x00\x00\x00\x00\x02"),
    ({"headers": {"a": 1}}, b"\x20\x00\x00\x00\x00\x07\x01aI\x00\x00\x00\x01"),
    ({"priority": 9, "timestamp": 0x1122334455667788}, b"\x08\x40\x09\x11\x22\x33\x44\x55\x66\x77\x88"),
    ({"message_id": "m", "reserved": "c"}, b"\x00\x84\x01m\x01c"),
)
ALL = {
    "content_type": "a",
    "content_encoding": "b",
    "headers": {"k": [True]},
    "delivery_mode": 1,
    "priority": 0,
    "correlation_id": "c",
    "reply_to": "d",
    "expiration": "1000",
    "message_id": "e",
    "timestamp": 1,
    "type": "f",
    "user_id": "g",
    "app_id": "h",
    "reserved": "i",
}


def refusal(octets):
    """The text of the syntax error, the same from `check` and `decode`."""
    texts = []
    for function in (properties.check, properties.decode):
        try:
            function(octets, 0, len(octets))
        except ProtocolError as error:
            assert error.condition == SYNTAX_ERROR
            texts.append(error.text)
    assert len(texts) == 2 and texts[0] == texts[1]
    return texts[0]


def test_properties_are_written_and_read_back_4_2_6_1():
    for given, octets in CASES:
        assert properties.encode(given) == octets
        assert properties.decode(octets, 0, len(octets)) == given
        properties.check(octets, 0, len(octets))


def test_types_of_headers_are_kept_for_receivers_of_other_families():
    """core/amqp_0_9/exact.py: numbers by their letters, a longstr that is not UTF-8 as one, within tables and arrays too (4.2.5.5)."""
    pairs = b"\x01tS\x00\x00\x00\x01x" + b"\x01oS\x00\x00\x00\x02\xff\xfe" + b"\x01nb\xff" + b"\x01bt\x01"
    array = b"I\x00\x00\x00\x07" + b"S\x00\x00\x00\x01\xff"
    pairs += b"\x01aA" + len(array).to_bytes(4, "big") + array
    pairs += b"\x01fF" + len(pairs).to_bytes(4, "big") + pairs
    given = exact.exact(b"\x20\x00" + len(pairs).to_bytes(4, "big") + pairs)
    inner = {"t": "x", "o": ("S", b"\xff\xfe"), "n": ("b", -1), "b": True, "a": [("I", 7), ("S", b"\xff")]}
    assert given == {"headers": dict(inner, f=inner)}
    assert exact.exact(b"\x10\x00\x02") == {"delivery_mode": 2}


def test_all_fourteen_go_there_and_back():
    octets = properties.encode(ALL)
    assert octets[:2] == b"\xff\xfc"
    assert properties.decode(memoryview(octets), 0, len(octets)) == ALL


def test_one_property_or_one_header_is_what_decode_gives():
    """Whatever stands before it; a name that comes twice has its last value, a name within another value is none."""
    headers = {
        "x": "a\x01a",
        "a": 1,
        "t": {"a": 2, "deep": [{"a": 3}, "a", None]},
        "n": None,
        "yes": True,
        "f": 2.5,
        "o": b"\x01a",
        "when": ("T", 5),
        "b": "x",
    }
    for given in ({}, {"headers": {}}, {"headers": headers}, ALL, dict(ALL, headers=headers), {"content_type": "a", "headers": headers}):
        octets = properties.encode(given)
        for name in ALL:
            assert properties.field_in(octets, name) == given.get(name), (given, name)
        for name in list(headers) + ["k", "deep", "none"]:
            assert properties.header(octets, name) == given.get("headers", {}).get(name), (given, name)
    twice = b"\x20\x00\x00\x00\x00\x0e\x01aI\x00\x00\x00\x01\x01aI\x00\x00\x00\x02"
    assert properties.header(twice, "a") == 2 == properties.decode(twice, 0, len(twice))["headers"]["a"]


def test_properties_cut_anywhere_are_refused():
    octets = properties.encode(ALL)
    for end in range(len(octets)):
        assert refusal(octets[:end])


def test_the_property_that_is_cut_is_named():
    assert refusal(b"\x00\x80\x05ab") == "a content header ends inside the property message-id"


def test_octets_behind_the_last_property_are_refused():
    assert refusal(b"\x00\x00x") == "a content header has 1 octets behind its last property"


def test_flags_that_class_basic_does_not_have_are_refused():
    for flags in (b"\x00\x01", b"\x00\x02"):
        assert "does not have" in refusal(flags + b"\x00\x00")


def test_a_bad_table_in_the_headers_is_refused():
    assert refusal(b"\x20\x00\x00\x00\x00\x03\x01aZ") == "unknown field type octet 0x5a"


def test_a_property_that_is_none_is_left_out_and_an_unknown_name_is_our_own_mistake():
    assert properties.encode({"content_type": None}) == b"\x00\x00"
    try:
        properties.encode({"content-type": "a"})
    except KeyError:
        return
    raise AssertionError("encoded")


def test_conditions_have_the_codes_of_the_specification():
    assert reply_of(spec_0_9_1, NOT_FOUND) == (404, False)
    assert reply_of(spec_0_9_1, FRAME_ERROR) == (501, True)
    assert reply_of(spec_0_9_1, "something new") == (541, True)


def test_reply_texts_are_worded_and_cut_to_a_short_string():
    assert reply_text(ACCESS_REFUSED, "no") == "ACCESS_REFUSED - no"
    for size in range(230, 245):
        octets = reply_text(NOT_FOUND, "a" * size + "\u00fc\u20ac").encode("utf-8")
        assert len(octets) <= 255 and octets.startswith(b"NOT_FOUND - aaa")
