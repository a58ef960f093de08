"""Performatives and other composite values of AMQP 1.0 (section 1.4, the tables of parts 2 to 5), and the frames around them (2.3)."""

from leveret.core.amqp_1_0 import composites, frame, types
from leveret.core.amqp_1_0.spec_1_0 import COMPOSITES
from leveret.core.errors import FRAME_ERROR, SYNTAX_ERROR, ProtocolError


def refused(octets):
    """The text of the error that reading a composite value comes to."""
    try:
        pair = composites.read(octets, 0, len(octets))
    except ProtocolError as error:
        assert error.condition == SYNTAX_ERROR
        return error.text
    raise AssertionError("read as %r" % (pair,))


def test_fields_come_by_name_and_those_left_out_have_their_defaults_2_7_1():
    octets = b"\x00\x53\x10\xc0\x0b\x05\xa1\x01c\x40\x70\x00\x00\x10\x00\x40"
    octets = octets[:4] + bytes((len(octets) - 4 + 2,)) + b"\x05" + octets[6:] + b"\x52\x1e"
    octets = b"\x00\x53\x10\xc0\x0d\x05\xa1\x01c\x40\x70\x00\x00\x10\x00\x40\x52\x1e"
    name, fields, at = composites.read(octets, 0, len(octets))
    assert (name, at) == ("open", len(octets))
    assert fields["container-id"] == "c" and fields["hostname"] is None and fields["max-frame-size"] == 4096
    assert fields["channel-max"] == 65535 and fields["idle-time-out"] == 30
    assert fields["offered-capabilities"] == [] and fields["properties"] is None and len(fields) == 10


def test_trailing_fields_that_are_null_are_not_written_1_4():
    assert composites.write("accepted", {}) == b"\x00\x53\x24\x45"
    assert composites.write("end", {"error": None}) == b"\x00\x53\x17\x45"
    assert (
        composites.write("begin", {"next-outgoing-id": 0, "incoming-window": 5, "outgoing-window": 6})
        == b"\x00\x53\x11\xc0\x07\x04\x40\x43\x52\x05\x52\x06"
    )


def test_a_symbolic_descriptor_is_as_good_as_its_code_1_3():
    octets = b"\x00\xa3\x14amqp:detach:list\x20\x20\x20\x20"
    octets = b"\x00\xa3\x10amqp:detach:list\xc0\x03\x02\x43\x41"
    name, fields, _ = composites.read(octets, 0, len(octets))
    assert name == "detach" and fields == {"handle": 0, "closed": True, "error": None}


def test_fields_that_may_be_multiple_are_lists_1_4():
    for given in (["a"], ["a", "b"]):
        octets = composites.write("open", {"container-id": "c", "offered-capabilities": given})
        assert composites.read(octets, 0, len(octets))[1]["offered-capabilities"] == given
    one = types.encode(("described", ("ulong", 0x40), [("symbol", "PLAIN")]))  # a single value without an array
    assert composites.read(one, 0, len(one))[1] == {"sasl-server-mechanisms": ["PLAIN"]}


def test_composite_values_hold_others():
    source = {"address": "q", "outcomes": ["amqp:accepted:list"], "default-outcome": ("modified", {"delivery-failed": True})}
    given = {"name": "l", "handle": 1, "role": True, "source": ("source", source), "target": ("coordinator", {})}
    octets = composites.write("attach", given)
    name, fields, _ = composites.read(octets, 0, len(octets))
    assert name == "attach" and fields["source"][0] == "source" and fields["target"] == ("coordinator", {"capabilities": []})
    assert fields["source"][1]["address"] == "q" and fields["source"][1]["expiry-policy"] == "session-end"
    assert fields["source"][1]["default-outcome"][1]["delivery-failed"] is True
    assert (fields["snd-settle-mode"], fields["rcv-settle-mode"]) == (2, 0)
    closing = composites.write("close", {"error": {"condition": "amqp:not-found", "description": "no queue 'q'"}})
    assert composites.read(closing, 0, len(closing))[1]["error"]["condition"] == "amqp:not-found"


# A value of each type of field, as `read` gives it.
SAMPLES = {
    "string": "text",
    "uint": 4000000000,
    "ushort": 60000,
    "ulong": 1 << 60,
    "ubyte": 7,
    "boolean": True,
    "binary": b"\x00\x01",
    "symbol": "amqp:symbol",
    "timestamp": 1311704463521,
    "map": {("symbol", "key"): ("uint", 5)},
    "*": "an address",
    "sender-settle-mode": 1,
    "receiver-settle-mode": 1,
    "terminus-durability": 2,
    "terminus-expiry-policy": "never",
    "sasl-code": 3,
    "error": {"condition": "amqp:internal-error", "description": "text", "info": None},
}


def test_every_field_of_every_composite_value_is_written_and_read_back():
    for _, name, fields in COMPOSITES:
        given = {}
        for title, type_, _, multiple, _ in fields:
            given[title] = [SAMPLES[type_], SAMPLES[type_]] if multiple else SAMPLES[type_]
        octets = composites.write(name, given)
        assert composites.read(octets, 0, len(octets)) == (name, given, len(octets)), name


def test_what_the_tables_do_not_allow_is_refused_with_the_name_of_the_field():
    for fields, reason in (
        ([], "open without its field container-id"),
        ([None], "open without its field container-id"),
        ([("symbol", "c")], "open.container-id is a value of type string"),
        (["c", None, 5], "open.max-frame-size is a value of type uint, and not 5"),
        (["c", None, None, ("uint", 5)], "open.channel-max is a value of type ushort"),
        (["c", None, None, None, None, "en"], "open.outgoing-locales is a value of type symbol"),
        (["c", None, None, None, None, ("array", "string", ["en"])], "an array of symbol, and not of string"),
        (["c"] + [None] * 8 + [[]], "open.properties is a value of type map"),
        (["c"] + [None] * 10, "at most 10 fields"),
    ):
        assert reason in refused(types.encode(("described", ("ulong", 0x10), fields))), reason
    assert "is one of (0, 1, 2), and not 3" in refused(types.encode(("described", ("ulong", 0x12), ["l", ("uint", 0), True, ("ubyte", 3)])))
    assert "is a list" in refused(types.encode(("described", ("ulong", 0x10), {})))
    assert "end.error is a value of type error" in refused(
        types.encode(("described", ("ulong", 0x17), [("described", ("ulong", 0x24), [])]))
    )
    for value in (
        None,
        [],
        ("ulong", 0x10),
        ("described", ("ulong", 0x99), []),
        ("described", "open", []),
        ("described", ("symbol", "amqp:lost:list"), []),
    ):
        assert "a composite value was expected" in refused(types.encode(value))


def test_what_is_written_wrongly_is_our_own_mistake():
    for name, given in (("open", {}), ("open", {"container-id": "c", "colour": 1}), ("colour", {})):
        try:
            composites.write(name, given)
        except (ValueError, KeyError):
            continue
        raise AssertionError(name)


def test_frames_are_read_when_they_are_whole_2_3_1():
    body = composites.write("close", {})
    octets = b"??" + frame.write(frame.AMQP, 7, body) + b"more"
    for end in range(2, 2 + 8 + len(body)):
        assert frame.read(octets, 2, end, 512) is None
    assert frame.read(octets, 2, len(octets), 512) == (frame.AMQP, 7, 10, 10 + len(body))
    assert frame.read(frame.write(frame.AMQP, 0, b""), 0, 8, 512) == (frame.AMQP, 0, 8, 8)  # it keeps the connection alive
    extended = b"\x00\x00\x00\x0d\x03\x01\x00\x00XXXXb"
    assert frame.read(extended, 0, len(extended), 512) == (frame.SASL, 0, 12, 13)


def test_frames_that_cannot_be_are_refused_by_their_header_2_3_1():
    for octets, reason in (
        (b"\x00\x00\x00\x07", "a frame of 7 octets"),
        (b"\x00\x00\x02\x01", "513 octets where at most 512"),
        (b"\x00\x00\x00\x08\x01\x00\x00\x00", "a body at octet 4 of a frame of 8"),
        (b"\x00\x00\x00\x08\x03\x00\x00\x00", "a body at octet 12 of a frame of 8"),
        (b"\x00\x00\x00\x08\x02\x02\x00\x00", "type 0x02"),
    ):
        try:
            frame.read(octets, 0, len(octets), 512)
        except ProtocolError as error:
            assert error.condition == FRAME_ERROR and reason in error.text, error.text
            continue
        raise AssertionError(octets)
