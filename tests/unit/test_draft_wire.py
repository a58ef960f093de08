"""What the client of the drafts of 2005 writes and reads by itself, value by value: "Field Tables", "Strings", "The Content Header",
and the errors of what does not fit to the last octet."""

import struct

from leveret.core.amqp_0_9 import method
from leveret.core.amqp_0_9.client.draft_wire import Wire9a5, Wire9r1, is_name, short_string, text_of
from leveret.core.errors import COMMAND_INVALID, FRAME_ERROR, SYNTAX_ERROR, ProtocolError

BOTH = (Wire9a5(), Wire9r1())


def refused(kind, call, *given):
    """What an error of `kind` says: (condition, text) or the text; None: there was none."""
    try:
        call(*given)
    except kind as error:
        return (error.condition, error.text) if kind is ProtocolError else str(error).strip("'")
    return None


def test_short_strings_have_255_octets_and_no_zeros():
    said = "a short string has 255 octets at most, and no zeros"
    assert short_string("\u00fc") == b"\x02\xc3\xbc" and short_string(b"") == b"\0" and short_string("x" * 255) == b"\xff" + b"x" * 255
    for item in ("x" * 256, "a\0b", b"\0"):
        assert refused(ValueError, short_string, item) == said
    assert text_of(b"\xc3\xbc") == "\u00fc" and text_of(b"\xff") == b"\xff"


def test_names_of_fields():
    names = ("a", "$a", "#b", "a" * 128, "Z9_#$", "", "9a", "_a", "a" * 129, "a b", "a-b")
    assert [is_name(each) for each in names] == [True] * 5 + [False] * 6


def test_every_type_of_a_table_goes_out_and_in():
    given = {"a": 5, "b": -5, "c": ("D", (2, -314)), "d": ("T", 1 << 40), "e": {"f": 1}, "g": "text", "h": "z" * 300}
    for wire in BOTH:
        octets = wire.table(given)
        assert wire.read_table(octets, 0, len(octets), 1) == (given, len(octets))
        for value in (1 << 31, -(1 << 31) - 1, True, False, None, 1.5, ("X", 1)):
            assert refused(ValueError, wire.value, value) == "a field table of AMQP %s cannot hold %r" % (wire.version, value)
        assert wire.value((1 << 31) - 1) == b"I\x7f\xff\xff\xff" and wire.value(-(1 << 31)) == b"I\x80\0\0\0"


def test_of_a_name_that_comes_twice_the_first_counts():
    pairs = b"\x01aI\0\0\0\x01" + b"\x01aI\0\0\0\x02"
    octets = struct.pack(">I", len(pairs)) + pairs
    for wire in BOTH:
        assert wire.read_table(octets, 0, len(octets), 1) == ({"a": 1}, len(octets))


def test_what_a_table_may_not_have():
    for wire in BOTH:
        unknown = b"\0\0\0\x04\x01aX\0"
        assert refused(ProtocolError, wire.read_table, unknown, 0, 8, 1) == (SYNTAX_ERROR, "a field of the unknown type 'X'")
        name = b"\0\0\0\x07\x019I\0\0\0\0"
        assert refused(ProtocolError, wire.read_table, name, 0, 11, 1) == (COMMAND_INVALID, "the field name '9'")
        for end in range(11):
            assert refused(ProtocolError, wire.read_table, b"\0\0\0\x07\x01aI\0\0\0\0"[:end], 0, end, 1) is not None
        octets = b"\0\0\0\0"
        depth = 0
        while refused(ProtocolError, wire.read_table, octets, 0, len(octets), 1) is None:
            octets = struct.pack(">I", len(octets) + 3) + b"\x01aF" + octets
            depth += 1
        assert 2 < depth < 200
        said = refused(ProtocolError, wire.read_table, octets, 0, len(octets), 1)
        assert said == (SYNTAX_ERROR, "a field table more than %d levels deep" % depth)


def test_a_short_string_with_a_zero_or_that_is_no_text_is_an_error():
    said = SYNTAX_ERROR, "a short string with a zero in it, or that is no UTF-8"
    for wire in BOTH:
        assert wire.read_field("S", b"\x02ab", 0, 3) == ("ab", 3) and wire.read_field("S", b"\0", 0, 1) == ("", 1)
        for octets in (b"\x01\0", b"\x01\xff"):
            assert refused(ProtocolError, wire.read_field, "S", octets, 0, 2) == said
        for octets in (b"", b"\x03ab"):
            assert refused(ProtocolError, wire.read_field, "S", octets, 0, len(octets)) is not None


def test_bits_share_octets_and_a_field_behind_them_begins_a_new_one():
    for wire in BOTH:
        assert wire.read("bbb", b"\x05", 0, 1) == ([True, False, True], 1)
        assert wire.read("b" * 9, b"\xff\x01", 0, 2) == ([True] * 9, 2)
        assert wire.read("bob", b"\x01\x07\x02", 0, 3) == ([True, 7, False], 3)
        assert refused(ProtocolError, wire.read, "b", b"", 0, 0) is not None


def test_arguments_fit_to_the_last_octet():
    for wire in BOTH:
        row = method.named(wire.spec.METHODS, "queue_delete_ok")
        size = struct.calcsize(">I")
        items = wire.arguments(row, b"\0\0\0\x05", 0, size)
        assert items == [5]
        said = refused(ProtocolError, wire.arguments, row, b"\0\0\0\x05xy", 0, size + 2)
        assert said == (SYNTAX_ERROR, "%s has 2 octets too many" % method.title(row))


def test_a_content_header_goes_out_and_in():
    for wire in BOTH:
        (class_id,) = [number for number in wire.spec.CONTENTS if wire.spec.CONTENTS[number][0] == "jms"]
        rows = wire.spec.CONTENTS[class_id][1]
        texts = [row[0] for row in rows if row[1] == "S"]
        given = {texts[0]: "one", texts[-1]: "two"}
        octets = wire.header(9, class_id, 2, 70000, given)
        kind, number, start, end = wire.head(octets, 0, len(octets))
        assert (kind, number, end) == (2, 9, len(octets) - 1)
        read = wire.read_header(octets, start, end)
        assert read[:3] == (class_id, 2, 70000) and wire.properties(class_id, read[3]) == given
        said = "class jms of AMQP %s has no property colour" % wire.version
        assert refused(KeyError, wire.header, 9, class_id, 0, 0, {"colour": "red"}) == said
        said = refused(ProtocolError, wire.properties, class_id, read[3] + b"xyz")
        assert said == (SYNTAX_ERROR, "a content header has 3 octets behind its last property")
        unknown = struct.pack(wire.header_form, 77, 0, 0) + b"\0\0"
        said = refused(ProtocolError, wire.read_header, unknown, 0, len(unknown))
        assert said == (FRAME_ERROR, "a content header of class 77, which has no contents")
        said = refused(ProtocolError, wire.properties, class_id, b"\xff\xff")
        flags = SYNTAX_ERROR, "property flags 0xffff, and the class has %d properties" % len(rows)
        assert len(rows) < 16 and said == flags
        none = wire.header(9, class_id, 0, 0, dict.fromkeys(given))
        assert wire.properties(class_id, wire.read_header(none, start, len(none) - 1)[3]) == {}


def test_frames_of_0_9a5_are_extended_where_they_need_it():
    """ "Extended Frame Header Wire Format": behind a meta frame; the size counts the frame's end octet."""
    wire = BOTH[0]
    assert wire.frame(3, 255, b"ab") == b"\x03\xff\0\x03ab\xce"
    assert wire.frame(3, 256, b"ab") == b"\x09\0\0\0\x03\0\x01\0" + struct.pack(">Q", 3) + b"ab\xce"
    large = wire.frame(3, 1, bytes(65535))
    assert large[:8] == b"\x09\0\0\0\x03\0\0\x01" and wire.frame(3, 1, bytes(65534))[:4] == b"\x03\x01\xff\xff"
    for octets, told in ((large, (3, 1, 16, 16 + 65535)), (wire.frame(3, 7, b"ab"), (3, 7, 4, 6))):
        assert wire.head(octets, 0, len(octets)) == told
        least = told[2]
        assert [wire.head(octets, 0, end) is None for end in range(least + 1)] == [True] * least + [False]
    meta = "a meta frame behind a meta frame, or flags in an extended header"
    for octets, text in (
        (b"\x09\x01\0\0" + bytes(12), "a meta frame whose channel or size is not 0"),
        (b"\x09\0\0\x01" + bytes(12), "a meta frame whose channel or size is not 0"),
        (b"\x09\0\0\0\x09\0\0\0" + struct.pack(">Q", 1), meta),
        (b"\x09\0\0\0\x03\x01\0\0" + struct.pack(">Q", 1), meta),
        (b"\x03\0\0\0", "a frame of size 0, where 1 is the least"),
    ):
        assert refused(ProtocolError, wire.head, octets, 0, len(octets)) == (FRAME_ERROR, text)
    assert wire.code(b"\x05\x02\0\0", 0) == 0x50002
    for octets in (b"\x05\x02\x01\0", b"\x05\x02\0\x01"):
        assert refused(ProtocolError, wire.code, octets, 0) == (FRAME_ERROR, "the reserved octets of a method are not 0")


def test_frames_of_0_9r1():
    wire = BOTH[1]
    octets = wire.frame(3, 258, b"ab")
    assert octets == b"\x03\0\x01\x02\0\0\0\x02ab\xce" and wire.head(octets, 0, len(octets)) == (3, 258, 8, 10)
    assert [wire.head(octets, 0, end) is None for end in range(9)] == [True] * 8 + [False]
    assert wire.code(b"\0\x05\0\x02", 0) == 0x50002 and wire.method_head(0x50002) == b"\0\x05\0\x02"


def test_a_string_is_short_in_0_9a5_where_it_can_be():
    old, new = BOTH
    assert old.string("ab") == b"S\x02ab" and old.string(b"a\0") == b"L\0\x02a\0" and old.string("x" * 256)[:3] == b"L\x01\0"
    assert old.string("x" * 255)[:2] == b"S\xff" and new.string("ab") == b"S\0\0\0\x02ab"
    assert old.read_string("S", b"\x02ab", 0, 3) == ("ab", 3) and old.read_string("L", b"\0\x02a\xff", 0, 4) == (b"a\xff", 4)
    assert new.read_string("S", b"\0\0\0\x02ab", 0, 6) == ("ab", 6)
