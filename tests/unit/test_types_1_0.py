"""Types of AMQP 1.0 (part 1): one list of cases for reading and writing, the encodings that only readers meet, and what must be refused."""

import struct

from leveret.core.amqp_1_0 import types
from leveret.core.amqp_1_0.spec_1_0 import PRIMITIVES
from leveret.core.errors import SYNTAX_ERROR, ProtocolError

UUID = bytes(range(16))

# (value, its octets in the smallest encoding), by the sections 1.6.1 to 1.6.24
CASES = (
    (None, b"\x40"),
    (True, b"\x41"),
    (False, b"\x42"),
    (("ubyte", 255), b"\x50\xff"),
    (("ushort", 258), b"\x60\x01\x02"),
    (("uint", 0), b"\x43"),
    (("uint", 255), b"\x52\xff"),
    (("uint", 256), b"\x70\x00\x00\x01\x00"),
    (("uint", 0xFFFFFFFF), b"\x70\xff\xff\xff\xff"),
    (("ulong", 0), b"\x44"),
    (("ulong", 0x24), b"\x53\x24"),
    (("ulong", 1 << 63), b"\x80\x80\x00\x00\x00\x00\x00\x00\x00"),
    (("byte", -128), b"\x51\x80"),
    (("short", -2), b"\x61\xff\xfe"),
    (("int", -128), b"\x54\x80"),
    (("int", 128), b"\x71\x00\x00\x00\x80"),
    (127, b"\x55\x7f"),
    (-129, b"\x81\xff\xff\xff\xff\xff\xff\xff\x7f"),
    (("float", 1.5), b"\x72\x3f\xc0\x00\x00"),
    (1.5, b"\x82\x3f\xf8\x00\x00\x00\x00\x00\x00"),
    (("decimal32", b"\x22\x50\x00\x01"), b"\x74\x22\x50\x00\x01"),
    (("decimal64", UUID[:8]), b"\x84" + UUID[:8]),
    (("decimal128", UUID), b"\x94" + UUID),
    (("char", "\u00fc"), b"\x73\x00\x00\x00\xfc"),
    (("timestamp", 1311704463521), b"\x83\x00\x00\x01\x31\x67\xad\xb8\xa1"),
    (("uuid", UUID), b"\x98" + UUID),
    (b"", b"\xa0\x00"),
    (b"\x00\xff", b"\xa0\x02\x00\xff"),
    (b"b" * 255, b"\xa0\xff" + b"b" * 255),
    (b"b" * 256, b"\xb0\x00\x00\x01\x00" + b"b" * 256),
    ("gr\u00fcn", b"\xa1\x05gr\xc3\xbcn"),
    ("\u00fc" * 128, b"\xb1\x00\x00\x01\x00" + b"\xc3\xbc" * 128),
    (("symbol", "amqp:not-found"), b"\xa3\x0eamqp:not-found"),
    (("symbol", "s" * 256), b"\xb3\x00\x00\x01\x00" + b"s" * 256),
    ([], b"\x45"),
    ([None, 1], b"\xc0\x04\x02\x40\x55\x01"),
    ([b"x" * 250], b"\xc0\xfd\x01\xa0\xfa" + b"x" * 250),
    ([b"x" * 252], b"\xc0\xff\x01\xa0\xfc" + b"x" * 252),
    ([b"x" * 253], b"\xd0\x00\x00\x01\x03\x00\x00\x00\x01\xa0\xfd" + b"x" * 253),
    ([None] * 255, b"\xd0\x00\x00\x01\x03\x00\x00\x00\xff" + b"\x40" * 255),
    ({}, b"\xc1\x01\x00"),
    ({("symbol", "a"): 1}, b"\xc1\x06\x02\xa3\x01a\x55\x01"),
    ({("boolean", True): 3}, b"\xc1\x04\x02\x41\x55\x03"),
    (("array", "symbol", ["a", "b"]), b"\xe0\x06\x02\xa3\x01a\x01b"),
    (("array", "uint", [0, 255]), b"\xe0\x04\x02\x52\x00\xff"),
    (("array", "uint", [0, 256]), b"\xe0\x0a\x02\x70\x00\x00\x00\x00\x00\x00\x01\x00"),
    (("array", "boolean", [True, False]), b"\xe0\x04\x02\x56\x01\x00"),
    (("array", "null", [None, None]), b"\xe0\x02\x02\x40"),
    (("array", "long", []), b"\xe0\x02\x00\x55"),
    (("array", "list", [[], [1]]), b"\xe0\x08\x02\xc0\x01\x00\x03\x01\x55\x01"),
    (("array", "array", [("array", "ubyte", [1]), ("array", "ubyte", [])]), b"\xe0\x09\x02\xe0\x03\x01\x50\x01\x02\x00\x50"),
    (("array", ("described", ("symbol", "d"), "ubyte"), [7]), b"\xe0\x07\x01\x00\xa3\x01d\x50\x07"),
    (("described", ("ulong", 0x24), []), b"\x00\x53\x24\x45"),
    (("described", ("symbol", "a:b"), ("described", ("ulong", 1), "x")), b"\x00\xa3\x03a:b\x00\x53\x01\xa1\x01x"),
)

# (octets, value): encodings that are read, though a smaller one is written
LARGER = (
    (b"\x56\x01", True),
    (b"\x56\x00", False),
    (b"\x70\x00\x00\x00\x00", ("uint", 0)),
    (b"\x52\x00", ("uint", 0)),
    (b"\x80\x00\x00\x00\x00\x00\x00\x00\x01", ("ulong", 1)),
    (b"\x53\x00", ("ulong", 0)),
    (b"\x71\xff\xff\xff\xff", ("int", -1)),
    (b"\x81\xff\xff\xff\xff\xff\xff\xff\xff", -1),
    (b"\xb0\x00\x00\x00\x01x", b"x"),
    (b"\xb1\x00\x00\x00\x01x", "x"),
    (b"\xb3\x00\x00\x00\x01x", ("symbol", "x")),
    (b"\xc0\x01\x00", []),
    (b"\xd0\x00\x00\x00\x04\x00\x00\x00\x00", []),
    (b"\xd1\x00\x00\x00\x06\x00\x00\x00\x02\x43\x44", {("uint", 0): ("ulong", 0)}),
    (b"\xf0\x00\x00\x00\x06\x00\x00\x00\x01\x50\x09", ("array", "ubyte", [9])),
    (b"\xe0\x02\x03\x41", ("array", "boolean", [True, True, True])),
    (b"\xe0\x02\x02\x43", ("array", "uint", [0, 0])),
    (b"\xe0\x02\x02\x45", ("array", "list", [[], []])),
)

# (octets, a piece of what the error says)
REFUSED = (
    (b"", "is missing"),
    (b"\x00", "is missing"),
    (b"\x00\x53\x24", "is missing"),
    (b"\x3f", "0x3f"),
    (b"\xff", "0xff"),
    (b"\x56\x02", "boolean of octet 0x02"),
    (b"\x70\x00\x00\x00", "uint of 4 octets where 3"),
    (b"\xa1", "inside its size"),
    (b"\xb1\x00\x00\x00", "inside its size"),
    (b"\xa1\x02x", "string of 2 octets where 1"),
    (b"\xb0\xff\xff\xff\xffx", "binary of 4294967295 octets where 1"),
    (b"\xa1\x01\xff", "not UTF-8"),
    (b"\xa3\x02\xc3\xbc", "not ASCII"),
    (b"\x73\x00\x11\x00\x00", "no character"),
    (b"\x73\x00\x00\xd8\x00", "no character"),
    (b"\xc0\x00", "inside its size"),
    (b"\xc0\x01\x01", "1 values in 0 octets"),
    (b"\xd0\x00\x00\x00\x05\xff\xff\xff\xff\x40", "4294967295 values in 1 octets"),
    (b"\xc0\x03\x01\x40\x40", "1 octets behind"),
    (b"\xc1\x02\x01\x40", "a key has none"),
    (b"\xc1\x05\x04\x43\x40\x43\x40", "twice"),
    (b"\xc1\x03\x02\x45\x40", "which is not served"),
    (b"\xe0\x03\x02\x50\x01", "2 elements in 1 octets"),
    (b"\xe0\x04\x01\x50\x01\x02", "1 octets behind"),
    (b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40", "4294967295 elements"),
    (b"\xf0\x00\x00\x00\x05\x00\x00\x04\x01\x41", "1025 elements"),
)


def refused(octets):
    """The text of the error that reading these octets comes to."""
    try:
        value = types.decode(octets, 0, len(octets))
    except ProtocolError as error:
        assert error.condition == SYNTAX_ERROR
        return error.text
    raise AssertionError("read as %r" % (value,))


def test_values_are_written_in_the_smallest_encoding_and_read_back_1_6():
    for value, octets in CASES:
        assert types.encode(value) == octets, (value, types.encode(value))
        assert types.decode(b"??" + octets + b"??", 2, 2 + len(octets)) == (value, 2 + len(octets)), value


def test_keys_that_python_takes_for_one_are_several_1_6_23():
    table = {1: 2, ("boolean", True): 3, ("double", 1.0): 4, ("ubyte", 1): 5, "1": 6, ("symbol", "1"): 7}
    octets = types.encode(table)
    assert types.decode(octets, 0, len(octets)) == (table, len(octets)) and octets[2] == 12


def test_every_encoding_is_read_1_6():
    for octets, value in LARGER:
        assert types.decode(octets, 0, len(octets)) == (value, len(octets)), octets
    read = {octets[0] for _, octets in CASES} | {octets[0] for octets, _ in LARGER}
    assert sorted(code for code, _, _, _ in PRIMITIVES if code not in read) == []


def test_what_cannot_be_read_is_refused_with_its_reason():
    for octets, reason in REFUSED:
        assert reason in refused(octets), (octets, refused(octets))


def test_a_value_that_ends_early_is_refused_wherever_it_ends():
    for _, octets in CASES:
        for size in range(len(octets)):
            refused(octets[:size])


def test_nothing_nests_deeper_than_the_limit():
    """Lists, maps, arrays, descriptors of values and of constructors: a peer cannot have this side recurse without end."""
    deep = types.DEPTH_MAX + 1
    octets = b"\x45"
    for _ in range(deep):
        octets = b"\xd0" + struct.pack(">II", len(octets) + 4, 1) + octets
    assert "levels" in refused(octets)
    octets = b"\x40"
    for _ in range(deep):
        octets = b"\xd1" + struct.pack(">II", len(octets) + 5, 2) + b"\x40" + octets
    assert "levels" in refused(octets)
    octets = b"\x40"
    for _ in range(deep):
        octets = b"\xf0" + struct.pack(">II", len(octets) + 4, 1) + octets
    assert "levels" in refused(octets)
    assert "levels" in refused(b"\x00\x40" * 10000 + b"\x40")
    assert "levels" in refused(b"\x00" * 100000)


def test_what_amqp_cannot_hold_is_our_own_mistake():
    for value in (
        object(),
        ("uint", -1),
        ("ubyte", 256),
        ("short", 32768),
        ("timestamp", -1 << 64),
        1 << 63,
        ("symbol", "gr\u00fcn"),
        ("uuid", b"short"),
        ("nothing", 1),
        ("array", "uint", [-1]),
    ):
        try:
            types.encode(value)
        except ValueError:
            continue
        raise AssertionError(value)
