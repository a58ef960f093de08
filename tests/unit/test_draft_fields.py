"""Fields of the two drafts (core/amqp_0_9/drafts/fields.py) at every border: octets of each type both ways, and what is refused.

AMQP 0.9a5 "Data types" and AMQP 0-9 revision 1 section 2.2: a long string has a size of two octets in the one, of four in the other.
"""

from leveret.core.amqp_0_9.drafts.fields import DEPTH_MAX, NAME_MAX, Fields, Reader, is_name
from leveret.core.errors import ProtocolError

SHORT, LONG = Fields(2, "S", "L"), Fields(4, "", "S")


def read(fields, octets, codes):
    """Arguments, or the text of the error."""
    try:
        return Reader(fields, octets, 0, len(octets), "x").arguments(codes)
    except ProtocolError as error:
        return error.text


def pairs_of(fields, pairs):
    """A table as it comes back."""
    octets = fields.encode("F", [pairs])
    assert int.from_bytes(octets[:4], "big") == len(octets) - 4
    return read(fields, octets, "F")[0]


def test_every_type_of_an_argument_comes_back():
    for fields in (SHORT, LONG):
        for code, values in (
            ("o", (0, 1, 0xFF)),
            ("s", (0, 0x102, 0xFFFF)),
            ("l", (0, 0x1020304, 0xFFFFFFFF)),
            ("L", (0, 0x102030405060708, 0xFFFFFFFFFFFFFFFF)),
            ("S", ("", "a", "é" * 127, "a" * 255)),
            ("T", (b"", b"a", b"\x00" * 300)),
            ("F", ({}, {"a": 1})),
        ):
            for value in values:
                octets = fields.encode(code, [value])
                assert read(fields, octets, code) == [value], (code, value)
                for size in range(len(octets)):
                    assert "ends inside a field" in read(fields, octets[:size], code), (code, size)
                assert read(fields, octets + b"zz", code) == "x has 2 octets too many", code


def test_strings_are_cut_to_what_their_size_can_say():
    assert SHORT.encode("S", ["a" * 256]) == b"\xff" + b"a" * 255
    assert SHORT.encode("T", [b"a" * 65536]) == b"\xff\xff" + b"a" * 65535
    assert LONG.encode("T", [b"a" * 65536]) == b"\x00\x01\x00\x00" + b"a" * 65536


def test_bits_lie_eight_in_an_octet_the_first_lowest():
    for count in range(1, 18):
        for place in range(count):
            flags = [each == place for each in range(count)]
            octets = SHORT.encode("b" * count, flags)
            assert len(octets) == (count + 7) // 8 and octets[place // 8] == 1 << place % 8 and sum(octets) == octets[place // 8]
            assert read(SHORT, octets, "b" * count) == flags
    assert SHORT.encode("bob", [True, 7, True]) == b"\x01\x07\x01" and read(SHORT, b"\x01\x07\x01", "bob") == [True, 7, True]


def test_every_value_of_a_table():
    """What a draft has no type for is written as text, and what is no value is left out with its name."""
    for fields in (SHORT, LONG):
        for given, told in (
            (0, 0),
            (-(2**31), -(2**31)),
            (2**31 - 1, 2**31 - 1),
            (2**31, "2147483648"),
            (-(2**31) - 1, "-2147483649"),
            (True, 1),
            (False, 0),
            ("", ""),
            ("text", "text"),
            ("a" * 255, "a" * 255),
            ("a" * 256, "a" * 256),
            ("with\x00zero", "with\x00zero"),
            (b"\xff\xfe", b"\xff\xfe"),
            (("T", 0), ("T", 0)),
            (("T", 2**40), ("T", 2**40)),
            (("l", 7), 7),
            ({"b": {"c": "d"}}, {"b": {"c": "d"}}),
            (1.5, 1.5),
            (-0.25, -0.25),
        ):
            assert pairs_of(fields, {"a": given, "z": 1}) == {"a": told, "z": 1}, given
        assert pairs_of(fields, {"a": None, "b": [1], "z": 1}) == {"z": 1}
        assert pairs_of(fields, {"a": 1e300, "z": 1})["a"] == repr(1e300), "no decimal is equal to it"
    assert SHORT.encode("F", [{"a": "x" * 255}])[4:7] == b"\x01aS" and SHORT.encode("F", [{"a": "x" * 256}])[4:7] == b"\x01aL"
    assert SHORT.encode("F", [{"a": "\x00"}])[4:7] == b"\x01aL" and LONG.encode("F", [{"a": "x"}])[4:7] == b"\x01aS"
    assert SHORT.encode("F", [{"a": 1.5}])[4:] == b"\x01aD\x01\x00\x00\x00\x0f"


def test_names_of_a_table():
    """A letter, $ or # first, then also digits and underlines."""
    for name in ("a", "Z", "$", "#", "a1", "a_", "x" * NAME_MAX, "m$#"):
        assert is_name(name) and pairs_of(SHORT, {name: 1}) == {name: 1}, name
    for name in ("", "1a", "_a", "a-b", "a b", "é", "@", "[", "`", "{", "a/", "a:", "x" * (NAME_MAX + 1)):
        assert not is_name(name) and pairs_of(SHORT, {name: 1, "b": 2}) == {"b": 2}, name
    octets = b"\x00\x00\x00\x07\x011I\x00\x00\x00\x05"
    assert read(SHORT, octets, "F") == "x has the field name '1'"
    octets = b"\x00\x00\x00\x0e" + b"\x01aI\x00\x00\x00\x05" + b"\x01aI\x00\x00\x00\x06"
    assert read(SHORT, octets, "F") == [{"a": 5}], "the first of a name counts"


def test_what_cannot_be_read_is_refused_by_its_reason():
    nested = {}
    for _ in range(DEPTH_MAX - 1):
        nested = {"a": nested}
    assert pairs_of(SHORT, nested) == nested
    for code, octets, reason in (
        ("S", b"\x01\xff", "x has a short string that is not UTF-8"),
        ("S", b"\x02a\x00", "x has a short string with a zero in it"),
        ("F", b"\x00\x00\x00\x01", "x ends inside a field table"),
        ("F", b"\x00\x00\x00\x03\x01aX", "x has a field of the unknown type 'X'"),
        ("F", b"\x00\x00\x00\x02\x01a", "x ends inside a field"),
        ("F", SHORT.encode("F", [{"a": nested}]), "x has a field table more than %d levels deep" % DEPTH_MAX),
    ):
        assert read(SHORT, octets, code) == reason, octets
    assert read(LONG, b"\x00\x00\x00\x05\x01aL\x00\x00", "F") == "x has a field of the unknown type 'L'"
