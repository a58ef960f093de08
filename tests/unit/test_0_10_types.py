"""Values of AMQP 0-10 as octets (section 3, "Formal Notation": types by their codes), both ways, at every cut, and what does not fit."""

from leveret.core.amqp_0_10 import types
from leveret.core.errors import ProtocolError

# The octet of the type, the octets of the value, the value within a map (with the letters of its kind), the value of a field.
IN_A_MAP = (
    ("bin8", b"\x00\xfe", b"\xfe", b"\xfe"),
    ("int8", b"\x01\xfe", ("b", -2), -2),
    ("uint8", b"\x02\xfe", ("B", 254), 254),
    ("char", b"\x04\xe9", "\xe9", b"\xe9"),
    ("boolean", b"\x08\x01", True, True),
    ("bin16", b"\x10\x01\x02", b"\x01\x02", b"\x01\x02"),
    ("int16", b"\x11\xff\xfe", ("s", -2), -2),
    ("uint16", b"\x12\xff\xfe", ("u", 65534), 65534),
    ("bin32", b"\x20\x01\x02\x03\x04", b"\x01\x02\x03\x04", b"\x01\x02\x03\x04"),
    ("int32", b"\x21\xff\xff\xff\xfe", ("I", -2), -2),
    ("uint32", b"\x22\xff\xff\xff\xfe", ("i", 4294967294), 4294967294),
    ("float", b"\x23\x3f\xc0\x00\x00", ("f", 1.5), 1.5),
    ("char-utf32", b"\x27\x00\x01\xf4\x07", "\U0001f407", 0x1F407),
    ("bin64", b"\x30" + b"12345678", b"12345678", b"12345678"),
    ("int64", b"\x31" + b"\xff" * 7 + b"\xfe", ("l", -2), -2),
    ("uint64", b"\x32" + bytes(7) + b"\x09", ("l", 9), 9),
    ("double", b"\x33\x3f\xf8" + bytes(6), 1.5, 1.5),
    ("datetime", b"\x38" + bytes(4) + b"\x65\x00\x00\x00", ("T", 0x65000000), 0x65000000),
    ("bin128", b"\x40" + bytes(range(16)), bytes(range(16)), bytes(range(16))),
    ("uuid", b"\x48" + bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f", bytes(range(16))),
    ("bin256", b"\x50" + bytes(32), bytes(32), bytes(32)),
    ("bin512", b"\x60" + bytes(64), bytes(64), bytes(64)),
    ("bin1024", b"\x70" + bytes(128), bytes(128), bytes(128)),
    ("vbin8", b"\x80\x02ab", b"ab", b"ab"),
    ("str8-latin", b"\x84\x02\xa4\xe9", "\u20ac\xe9", "\u20ac\xe9"),
    ("str8", b"\x85\x02\xc3\xa9", "\xe9", "\xe9"),
    ("str8-utf16", b"\x86\x06\x00\xe9\xd8\x3d\xdc\x07", "\xe9\U0001f407", "\xe9\U0001f407"),
    ("vbin16", b"\x90\x00\x02ab", b"ab", b"ab"),
    ("str16-latin", b"\x94\x00\x01\xbd", "\u0153", "\u0153"),
    ("str16", b"\x95\x00\x01a", "a", "a"),
    ("str16-utf16", b"\x96\x00\x02\x00a", "a", "a"),
    ("vbin32", b"\xa0\x00\x00\x00\x02ab", b"ab", b"ab"),
    ("map", b"\xa8\x00\x00\x00\x08\x00\x00\x00\x01\x01k\x08\x00", {"k": False}, {"k": False}),
    ("list", b"\xa9\x00\x00\x00\x06\x00\x00\x00\x01\x02\x07", [("B", 7)], [("B", 7)]),
    ("array", b"\xaa\x00\x00\x00\x07\x02\x00\x00\x00\x02\x07\x08", [("B", 7), ("B", 8)], [("B", 7), ("B", 8)]),
    ("void", b"\xf0", None, None),
)
# What a value of the shared form is written as, where that is not the type that it was read from.
OTHERWISE = ("bin8", "char", "bin16", "bin32", "char-utf32", "bin64", "uint64", "bin128", "uuid", "bin256", "bin512", "bin1024", "vbin8")
OTHERWISE += ("str8-latin", "str8", "str8-utf16", "vbin16", "str16-latin", "str16-utf16", "array")


def a_map(*entries):
    """The octets of a map of these entries, (key, octets of type and value)."""
    octets = b"".join([bytes((len(key),)) + key + value for key, value in entries])
    return (len(octets) + 4).to_bytes(4, "big") + len(entries).to_bytes(4, "big") + octets


def refusal(name, octets):
    """The sentence with which the octets of a field are refused, or None."""
    try:
        types.read(name, octets, 0, len(octets), True)
    except ProtocolError as error:
        return str(error)
    return None


def test_every_type_has_its_code_and_its_octets():
    """Table of section 3: alone as a field, and behind its code within a map; what is shared with other families is written back alike."""
    for name, octets, shared, field in IN_A_MAP:
        whole = a_map((b"key", octets))
        assert types.read("map", b"xx" + whole + b"yy", 2, 2 + len(whole), True) == ({"key": shared}, 2 + len(whole)), name
        if name not in ("void", "boolean"):
            assert types.read(name, octets, 1, len(octets), True) == (field, len(octets)), name
        if name not in OTHERWISE:
            assert types.write("map", {"key": shared}) == whole, name
        else:
            again = types.write("map", {"key": shared})
            assert types.read("map", again, 0, len(again), True)[0] == {"key": shared}, name


def test_octets_that_end_early_are_refused_at_every_cut():
    for name, octets, _, _ in IN_A_MAP:
        for end in range(1, len(octets)):
            assert refusal("map", a_map((b"k", octets[:end]))) is not None, (name, end)
        assert refusal("map", a_map((b"k", octets), (b"l", b"\xf0"))) is None, name
        assert "behind its values" in refusal(
            "map", a_map((b"k", octets))[:3] + bytes((len(octets) + 7,)) + a_map((b"k", octets))[4:] + b"z"
        )


def test_what_does_not_fit_is_refused_with_its_reason():
    for name, octets, words in (
        ("map", a_map((b"k", b"\xf0"), (b"k", b"\xf0")), "the key 'k' twice"),
        ("map", a_map((b"k", b"\x99")), "unknown type 0x99"),
        ("map", b"\x00\x00\x00\x04\x00\x00\x00\x01", "a map of 1 values in 0 octets"),
        ("map", b"\x00\x00\x00\x02\x00\x00", "a map of 2 octets"),
        ("map", a_map((b"k", b"\x85\x02\xc3\x28")), "is not UTF-8"),
        ("map", a_map((b"k", b"\x86\x01a")), "UTF-16 text of 1 octets"),
        ("map", a_map((b"k", b"\x86\x02\xd8\x3d")), "half a pair"),
        ("map", a_map((b"k", b"\x27\x00\x00\xd8\x00")), "is no character"),
        ("map", a_map((b"k", b"\x27\x00\x11\x00\x00")), "is no character"),
        ("array", b"\x00\x00\x00\x04\x02\x00\x00\x00", "an array of 4 octets"),
        ("array", b"\x00\x00\x00\x05\x02\x00\x00\x00\x01", "an array of 1 values in 0 octets"),
        ("array", b"\x00\x00\x00\x05\xf0\x00\x00\x04\x01", "an array of 1025 values in 0 octets"),
        ("array", b"\x00\x00\x00\x07\x02\x00\x00\x00\x01\x07\x08", "an array has 1 octets behind its values"),
        ("sequence-set", b"\x00\x07" + bytes(7), "a sequence-set of 7 octets"),
        ("sequence-set", b"\x00\x08\x00\x00\x00\x01\x80\x00\x00\x01", "a range from 1 to 2147483649"),
        ("str8", b"\x03ab", "a str8 of 3 octets where 2 are left"),
    ):
        assert words in (refusal(name, octets) or ""), (name, words, refusal(name, octets))
    assert types.read("array", b"\x00\x00\x00\x05\xf0\x00\x00\x04\x00", 0, 9)[0] == [None] * 1024
    assert types.read("sequence-set", b"\x00\x08\xff\xff\xff\xff\x7f\xff\xff\xfe", 0, 10)[0] == [(0xFFFFFFFF, 0x7FFFFFFE)], "they wrap"


def test_every_border_of_the_characters():
    """Section 3.2.2 (char-utf32): Unicode's, of which 0xD800 to 0xDFFF are halves of pairs, and none is above 0x10FFFF."""
    for number, is_one in ((0, 1), (0x5800, 1), (0xD7FF, 1), (0xD800, 0), (0xDFFF, 0), (0xE000, 1), (0x10FFFF, 1), (0x110000, 0)):
        whole = a_map((b"k", b"\x27" + number.to_bytes(4, "big")))
        assert (refusal("map", whole) is None) == bool(is_one), number
        if is_one:
            assert types.read("map", whole, 0, len(whole), False)[0] == {"k": chr(number)}


def test_values_nest_as_deep_as_the_bound_and_no_deeper():
    for depth, fits in ((types.DEPTH_MAX, True), (types.DEPTH_MAX + 1, False)):
        as_maps, as_lists = b"\xf0", b"\xf0"
        for _ in range(depth - 2):
            as_maps = b"\xa8" + a_map((b"k", as_maps))
            inner = (1).to_bytes(4, "big") + as_lists
            as_lists = b"\xa9" + len(inner).to_bytes(4, "big") + inner
        arrays = b"\xf0"
        for value in (as_maps, as_lists):
            assert (refusal("map", a_map((b"k", value))) is None) == fits, depth
        arrays = b"\xaa\x00\x00\x00\x06\x02\x00\x00\x00\x01\x07"  # whose items are a level of their own
        for _ in range(depth - 3):
            arrays = b"\xa8" + a_map((b"k", arrays))
        assert (refusal("map", a_map((b"k", arrays))) is None) == fits, depth


def test_an_empty_map_or_list_may_have_no_count():
    """As Qpid's peers write it."""
    for name, value in (("map", {}), ("list", []), ("array", [])):
        assert types.read(name, bytes(4), 0, 4) == (value, 4)


def test_what_is_too_long_for_its_type_is_not_written():
    for name, value in (("str8", "x" * 256), ("vbin8", bytes(256))):
        try:
            types.write(name, value)
        except ValueError:
            continue
        raise AssertionError(name)
    assert types.write("str8", "x" * 255)[:2] == b"\xffx"
    long = types.write("map", {"k": "x" * 65536})
    assert long[10:11] == b"\xa0", "a text too long for str16 is octets"
