"""Field tables and arrays (0-9-1 section 4.2.5.5): one list of cases for encoder and decoder, and what must be refused."""

import struct

from leveret.core.amqp_0_9 import field_table
from leveret.core.errors import SYNTAX_ERROR, ProtocolError

# (value, its octets behind the field name)
CASES = (
    (True, b"t\x01"),
    (False, b"t\x00"),
    (None, b"V"),
    (0, b"I\x00\x00\x00\x00"),
    (-1, b"I\xff\xff\xff\xff"),
    (0x7FFFFFFF, b"I\x7f\xff\xff\xff"),
    (-0x80000000, b"I\x80\x00\x00\x00"),
    (0x80000000, b"l\x00\x00\x00\x00\x80\x00\x00\x00"),
    (-0x80000001, b"l\xff\xff\xff\xff\x7f\xff\xff\xff"),
    (1.5, b"d\x3f\xf8\x00\x00\x00\x00\x00\x00"),
    ("", b"S\x00\x00\x00\x00"),
    ("gr\u00fcn", b"S\x00\x00\x00\x05gr\xc3\xbcn"),
    (b"\x00\xff", b"x\x00\x00\x00\x02\x00\xff"),
    ([], b"A\x00\x00\x00\x00"),
    ([1, "a"], b"A\x00\x00\x00\x0bI\x00\x00\x00\x01S\x00\x00\x00\x01a"),
    ({}, b"F\x00\x00\x00\x00"),
    ({"k": None}, b"F\x00\x00\x00\x03\x01kV"),
    (("T", 5), b"T\x00\x00\x00\x00\x00\x00\x00\x05"),
    (("T", 0xFFFFFFFFFFFFFFFE), b"T\xff\xff\xff\xff\xff\xff\xff\xfe"),
)

# Octets that are only read: letters that the encoder does not choose by itself.
READ_ONLY = (
    (b"b\xff", -1),
    (b"B\xff", 255),
    (b"s\xff\xfe", -2),
    (b"u\xff\xfe", 0xFFFE),
    (b"i\xff\xff\xff\xff", 0xFFFFFFFF),
    (b"L\xff\xff\xff\xff\xff\xff\xff\xff", -1),
    (b"f\x3f\x80\x00\x00", 1.0),
    (b"D\x02\x00\x00\x00\x7d", 1.25),
    (b"D\x00\xff\xff\xff\xff", -1.0),
    (b"t\x02", True),
    (b"S\x00\x00\x00\x01\xff", b"\xff"),
)


def table_of(octets):
    """A table with the one field "n" of these octets."""
    return struct.pack(">I", 2 + len(octets)) + b"\x01n" + octets


def refusal(octets, end=None):
    """The text of the syntax error that decoding ends in."""
    try:
        field_table.decode(octets, 0, len(octets) if end is None else end)
    except ProtocolError as error:
        assert error.condition == SYNTAX_ERROR
        return error.text
    raise AssertionError("decoded")


def test_values_are_written_and_read_back_4_2_5_5():
    for value, octets in CASES:
        whole = table_of(octets)
        assert field_table.encode({"n": value}) == whole, value
        found, at = field_table.decode(whole, 0, len(whole))
        assert found == {"n": value} and at == len(whole)
        assert type(found["n"]) is type(value)


def test_every_letter_is_read_4_2_5_5():
    for octets, value in READ_ONLY:
        whole = table_of(octets)
        assert field_table.decode(whole, 0, len(whole)) == ({"n": value}, len(whole)), octets


def test_tables_are_read_in_place_and_what_follows_is_left():
    octets = b"xx" + table_of(b"V") + b"tail"
    for buffer in (octets, bytearray(octets), memoryview(octets)):
        assert field_table.decode(buffer, 2, len(buffer)) == ({"n": None}, len(buffer) - 4)


def test_a_letter_can_be_chosen():
    assert field_table.encode({"n": ("B", 5)}) == table_of(b"B\x05")


def test_a_table_cut_anywhere_is_refused_4_2_5_5():
    for octets in [case[1] for case in CASES] + [case[0] for case in READ_ONLY]:
        whole = table_of(octets)
        for end in range(len(whole)):
            assert refusal(whole, end)
            if end >= 4:
                assert refusal(struct.pack(">I", end - 4) + whole[4:end]) if end > 4 else True


def test_unknown_letters_are_refused_by_number():
    assert refusal(table_of(b"Z")) == "unknown field type octet 0x5a"


def test_a_size_beyond_the_table_is_refused_before_anything_is_made():
    assert "4294967295" in refusal(table_of(b"S\xff\xff\xff\xff"))
    assert "4294967295" in refusal(b"\xff\xff\xff\xff")


def test_field_names_must_be_utf_8_4_2_5_3():
    assert refusal(b"\x00\x00\x00\x03\x01\xffV") == "a field name is not UTF-8"


def test_depth_is_bounded():
    def nested(levels):
        octets = b""
        for _ in range(levels):
            octets = struct.pack(">I", len(octets)) + octets
            if _ < levels - 1:
                octets = b"\x01n" + b"F" + octets
        return octets

    octets = nested(8)
    assert field_table.decode(octets, 0, len(octets))[1] == len(octets)
    assert refusal(nested(9)) == "a field table more than 8 levels deep"
    array = b"A\x00\x00\x00\x00"
    for _ in range(8):
        array = b"A" + struct.pack(">I", len(array)) + array
    assert refusal(table_of(array)) == "a field array more than 8 levels deep"


def test_what_a_table_cannot_hold_is_our_own_mistake():
    for value in (object(), (1, 2, 3), ("D", 1), ("Z", 1)):
        try:
            field_table.encode({"n": value})
        except ValueError:
            continue
        raise AssertionError(value)


def test_short_strings_end_at_255_octets_4_2_5_3():
    assert field_table.shortstr("a" * 255) == b"\xff" + b"a" * 255
    try:
        field_table.shortstr("\u00fc" * 128)
    except ValueError:
        return
    raise AssertionError("256 octets in a short string")
