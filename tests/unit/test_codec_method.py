"""Methods and frames (0-9-1 sections 4.2.3 and 4.2.4): octets as the specification draws them, every row there and back."""

from leveret.core.amqp_0_9 import frame, method
from leveret.core.amqp_0_9.spec_0_9_1 import METHODS
from leveret.core.errors import SYNTAX_ERROR, ProtocolError

# (name, arguments, payload behind class and method id)
CASES = (
    ("connection_tune", [2047, 131072, 60], b"\x07\xff\x00\x02\x00\x00\x00\x3c"),
    ("connection_open", ["/", "", False], b"\x01/\x00\x00"),
    ("connection_close", [320, "bye", 60, 40], b"\x01\x40\x03bye\x00\x3c\x00\x28"),
    ("connection_close_ok", [], b""),
    ("channel_open_ok", [b""], b"\x00\x00\x00\x00"),
    ("queue_declare", [0, "q", False, True, False, True, False, {}], b"\x00\x00\x01q\x0a\x00\x00\x00\x00"),
    ("queue_declare_ok", ["q", 7, 1], b"\x01q\x00\x00\x00\x07\x00\x00\x00\x01"),
    ("basic_publish", [0, "e", "k", True, True], b"\x00\x00\x01e\x01k\x03"),
    ("basic_deliver", ["c", 1, True, "e", "k"], b"\x01c\x00\x00\x00\x00\x00\x00\x00\x01\x01\x01e\x01k"),
    ("basic_nack", [5, False, True], b"\x00\x00\x00\x00\x00\x00\x00\x05\x02"),
    (
        "exchange_declare",
        [0, "e", "topic", False, True, False, True, False, {"a": 1}],
        b"\x00\x00\x01e\x05topic\x0a\x00\x00\x00\x07\x01aI\x00\x00\x00\x01",
    ),
)
SAMPLES = {
    "o": 0x80,
    "s": 0xFFFE,
    "l": 0xFFFFFFFD,
    "L": 0xFFFFFFFFFFFFFFFC,
    "b": True,
    "S": "k\u00e4y",
    "T": b"\x00\xffx",
    "F": {"a": [1, {"b": "c"}]},
}


def refusal(row, octets):
    """The text of the syntax error that decoding ends in."""
    try:
        method.decode(row, octets, 0, len(octets))
    except ProtocolError as error:
        assert error.condition == SYNTAX_ERROR
        return error.text
    raise AssertionError("decoded")


def test_methods_are_written_and_read_as_drawn_4_2_4():
    for name, arguments, payload in CASES:
        row = method.named(METHODS, name)
        octets = method.encode(row, 0x0102, arguments)
        code = bytes((row[0] >> 24, row[0] >> 16 & 255, row[0] >> 8 & 255, row[0] & 255))
        size = len(payload) + 4
        assert octets == bytes((1, 1, 2, 0, 0, size >> 8, size & 255)) + code + payload + b"\xce", name
        assert method.decode(row, octets, 11, len(octets) - 1) == arguments, name


def test_every_row_goes_there_and_back_4_2_4():
    for row in METHODS:
        arguments = [SAMPLES[code] for code in row[method.FIELDS]]
        octets = method.encode(row, 1, arguments)
        assert method.decode(row, memoryview(octets), 11, len(octets) - 1) == arguments, row[method.NAME]


def test_every_row_is_found_by_its_code_and_others_are_not():
    for row in METHODS:
        assert method.find(METHODS, row[method.CODE]) is row
        assert method.named(METHODS, row[method.NAME]) is row
    for code in (0, 0x0A0009, 0x280032, 0x5A0020, 0xFFFFFFFF):
        assert method.find(METHODS, code) is None


def test_a_method_cut_anywhere_is_refused_4_2_5():
    for row in METHODS:
        octets = method.encode(row, 1, [SAMPLES[code] for code in row[method.FIELDS]])[11:-1]
        for end in range(len(octets)):
            assert refusal(row, octets[:end]), (row[method.NAME], end)


def test_octets_too_many_are_refused():
    row = method.named(METHODS, "queue_declare_ok")
    assert refusal(row, b"\x01q\x00\x00\x00\x07\x00\x00\x00\x01x") == "queue.declare-ok has 1 octets too many"


def test_a_short_string_that_is_not_utf_8_is_refused_4_2_5_3():
    assert "not UTF-8" in refusal(method.named(METHODS, "queue_declare_ok"), b"\x01\xff\x00\x00\x00\x07\x00\x00\x00\x01")


def test_runs_of_bits_fill_octets_from_the_lowest_up_4_2_5_2():
    row = (0x00010002, "test_bits", "b" * 9 + "o", 3, 0, ())
    arguments = [True, False, False, False, False, False, False, True, True, 0x55]
    octets = method.encode(row, 0, arguments)
    assert octets[11:-1] == b"\x81\x01\x55"
    assert method.decode(row, octets, 11, 14) == arguments


def test_titles_are_the_names_of_the_specification():
    assert method.title(method.named(METHODS, "connection_start_ok")) == "connection.start-ok"
    assert method.title(method.named(METHODS, "basic_get_empty")) == "basic.get-empty"


def test_frames_are_as_drawn_4_2_3():
    assert frame.encode(frame.BODY, 0x0203, b"abc") == b"\x03\x02\x03\x00\x00\x00\x03abc\xce"
    assert frame.encode(frame.HEARTBEAT, 0, b"") == frame.HEARTBEAT_FRAME
    assert frame.content_header(1, 0x010203040506, b"\x00\x00") == (
        b"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x00\x00\xce"
    )
