"""Frames of the serial link: what is put on the line is found again, anything else is not taken for a frame."""

from leveret.core import link_frame
from leveret.core.link_frame import CHECK_32, HEADER_SIZE, FrameReader, FrameWriter, check_16

PAYLOADS = (b"", b"a", b"\x7e", b"\x7d", b"\x7d\x5e\x7e\x7e", bytes(range(256)), b"\x7e" * 256, b'{"value": {"x": 1}}' * 13)
KINDS = (0x01, 0x01 | CHECK_32)


def encoded(kind, payload, flag_first=True, sequence=0x7E, acknowledged=0x7D):
    writer = FrameWriter(256)
    writer.put(kind, sequence, acknowledged, memoryview(payload), len(payload), flag_first)
    return bytes(writer.octets[writer.start:writer.end])


def decoded(reader, line, step):
    """Frames in `line`, given to the reader `step` octets at a time."""
    found = []
    for start in range(0, len(line), step):
        piece = line[start:start + step]
        at = 0
        while at < len(piece):
            at = reader.take(piece, at, len(piece))
            if reader.size:
                found.append(bytes(reader.octets[:reader.size]))
    return found


def test_check_16_is_crc_16_x_25():
    assert check_16(b"123456789", 9) == 0x906E
    assert check_16(b"456789", 6, check_16(b"123", 3)) == 0x906E


def test_a_frame_on_the_line_is_written_as_the_layout_says():
    assert encoded(0x01, b"", sequence=0, acknowledged=0)[:4] == b"\x7e\x01\x00\x00"
    line = encoded(0x21, b"123\x7e\x7d", sequence=1, acknowledged=2)
    assert line[:11] == b"\x7e\x21\x01\x02123\x7d\x5e\x7d\x5d", line
    assert line[-1:] == b"\x7e"
    assert encoded(0x21, b"x", flag_first=False) == encoded(0x21, b"x")[1:]


def test_every_payload_comes_back_at_every_split():
    for kind in KINDS:
        line = b"".join([encoded(kind, payload, flag_first=index == 0) for index, payload in enumerate(PAYLOADS)])
        wanted = [bytes((kind, 0x7E, 0x7D)) + payload for payload in PAYLOADS]
        for step in (1, 2, 3, 7, 64, len(line)):
            reader = FrameReader(256)
            assert decoded(reader, line, step) == wanted, (kind, step)
            assert reader.bad_count == 0


def test_a_flag_stands_only_between_frames():
    for kind in KINDS:
        for payload in PAYLOADS:
            assert encoded(kind, payload).count(b"\x7e") == 2


def test_a_frame_of_the_largest_size_fills_the_writer_at_most():
    writer = FrameWriter(256)
    writer.put(0x3E, 0x7E, 0x7E, memoryview(b"\x7e" * 256), 256, True)
    assert writer.end <= len(writer.octets)
    assert decoded(FrameReader(256), bytes(writer.octets[:writer.end]), 1000) == [b"\x3e\x7e\x7e" + b"\x7e" * 256]


def test_every_single_bit_error_is_seen():
    good = encoded(0x01, b"payload") + encoded(0x21, b"payload")
    whole = decoded(FrameReader(256), good, len(good))
    for index in range(len(good)):
        for bit in range(8):
            line = bytearray(good)
            line[index] ^= 1 << bit
            reader = FrameReader(256)
            found = decoded(reader, bytes(line) + b"\x7e", 1000)
            assert found == (whole[1:] if index < len(good) - len(encoded(0x21, b"payload")) else whole[:1]), (index, bit, found)
            assert reader.bad_count > 0, (index, bit)


def test_a_cut_at_every_octet_loses_that_frame_and_no_other():
    good = encoded(0x21, b"first")
    for cut in range(1, len(good) - 1):
        reader = FrameReader(256)
        found = decoded(reader, good[:cut] + encoded(0x21, b"second"), 5)
        assert found == [b"\x21\x7e\x7dsecond"], cut
        assert reader.bad_count == (1 if cut > 1 else 0), cut


def test_garbage_without_end_is_held_to_one_frame_and_the_next_frame_is_found():
    reader = FrameReader(16)
    assert decoded(reader, b"REPL text, and then some \x7d\x00 more. " * 50, 100) == []
    assert reader._fill <= len(reader.octets) + 1, "the count of what was thrown away does not grow"
    assert len(reader.octets) == HEADER_SIZE + 16 + 4
    assert decoded(reader, encoded(0x21, b"after"), 100) == [b"\x21\x7e\x7dafter"]
    assert reader.bad_count == 1


def test_a_frame_that_is_too_long_is_no_frame():
    reader = FrameReader(16)
    assert decoded(reader, encoded(0x21, b"x" * 17), 100) == []
    assert reader.bad_count == 1
    assert decoded(reader, encoded(0x21, b"x" * 16), 100) == [b"\x21\x7e\x7d" + b"x" * 16]


def test_an_escape_before_a_flag_breaks_the_frame_off():
    reader = FrameReader(16)
    line = encoded(0x21, b"x")
    assert decoded(reader, line[:-1] + b"\x7d\x7e", 100) == []
    assert reader.bad_count == 1


def test_flags_alone_and_frames_too_short_are_nothing():
    reader = FrameReader(16)
    assert decoded(reader, b"\x7e" * 20, 3) == []
    assert reader.bad_count == 0
    assert decoded(reader, b"\x7e\x01\x7e\x01\x02\x7e\x01\x02\x03\x04\x7e", 3) == []
    assert reader.bad_count == 3


def test_the_table_is_the_polynomial():
    assert link_frame.CHECK_16_TABLE[1] == 0x1189 and link_frame.CHECK_16_TABLE[255] == 0x0F78
