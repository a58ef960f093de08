"""Frames of the serial link: what is put on the line is found again, anything else is not taken for a frame."""

import binascii

from leveret.core.serial_link import frame
from leveret.core.serial_link.check_32 import in_halves
from leveret.core.serial_link.frame import CALL, DATA, HEADER_SIZE, HELLO, FrameChecks, FrameWriter, remainders
from leveret.core.serial_link.stuffing import check_16

PAYLOADS = (b"", b"a", b"\x7e", b"\x7d", b"\x7d\x5e\x7e\x7e", bytes(range(256)), b"\x7e" * 256, b'{"value": {"x": 1}}' * 13)
NONCES = bytes(range(8))


def checks_of(check_size=4, nonces=NONCES, address=0, active=False):
    checks = FrameChecks(active, address)
    checks.begin(nonces, check_size)
    return checks


def FrameReader(payload_size_max, checks=None):
    return frame.FrameReader(payload_size_max, checks or checks_of())


def encoded(payload, flag_first=True, sequence=0x7E, acknowledged=0x7D, checks=None, name=DATA):
    writer = FrameWriter(256, checks or checks_of())
    writer.line_silent = flag_first
    writer.put(name, sequence, acknowledged, memoryview(payload), len(payload))
    return bytes(writer.octets[writer.start : writer.end])


def decoded(reader, line, step):
    """Frames in `line`, given to the reader `step` octets at a time."""
    found = []
    for start in range(0, len(line), step):
        piece = line[start : start + step]
        at = 0
        while at < len(piece):
            at = reader.read(piece, at, len(piece))
            if reader.size:
                found.append(bytes(reader.octets[: reader.size]))
    return found


def test_check_16_is_crc_16_x_25():
    assert check_16(b"123456789", 9, 0) == 0x906E
    assert check_16(b"456789", 6, check_16(b"123", 3, 0)) == 0x906E


def test_a_frame_on_the_line_is_written_as_the_layout_says():
    line = encoded(b"123\x7e\x7d", sequence=1, acknowledged=2)
    assert line[:11] == b"\x7e\x21\x01\x02123\x7d\x5e\x7d\x5d", line
    assert line[-1:] == b"\x7e"
    assert encoded(b"x", flag_first=False) == encoded(b"x")[1:]
    short = encoded(b"", sequence=0, acknowledged=0, checks=checks_of(2))
    assert short[:4] == b"\x7e\x01\x00\x00" and len(short) <= 9


def test_every_payload_comes_back_at_every_split():
    for check_size in (2, 4):
        checks = checks_of(check_size)
        line = b"".join([encoded(payload, index == 0, checks=checks) for index, payload in enumerate(PAYLOADS)])
        wanted = [bytes((line[1], 0x7E, 0x7D)) + payload for payload in PAYLOADS]
        for step in (1, 2, 3, 7, 64, len(line)):
            reader = FrameReader(256, checks_of(check_size))
            assert decoded(reader, line, step) == wanted, (check_size, step)
            assert reader.bad_count == 0


def test_a_flag_stands_only_between_frames():
    for payload in PAYLOADS:
        assert encoded(payload).count(b"\x7e") == 2


def test_a_frame_of_the_largest_size_fills_the_writer_at_most():
    writer = FrameWriter(256, checks_of())
    writer.put(DATA, 0x7E, 0x7E, memoryview(b"\x7e" * 256), 256)
    assert writer.end <= len(writer.octets)
    assert decoded(FrameReader(256), bytes(writer.octets[: writer.end]), 1000) == [b"\x21\x7e\x7e" + b"\x7e" * 256]


def test_no_octet_of_a_handshake_is_a_control_character():
    for name in (HELLO, CALL):
        line = encoded(bytes(range(32)), sequence=0, acknowledged=3, name=name)
        assert min(line) >= 0x20, "Ctrl-C or Ctrl-D would interrupt or reset a REPL"
        assert [frame[3:] for frame in decoded(FrameReader(256), line, 5)] == [bytes(range(32))]


def test_no_frame_of_the_active_end_has_a_ctrl_c_in_it():
    for payload in (bytes(256), bytes([3]) * 256, bytes(range(256))):
        checks = checks_of(active=True)
        line = encoded(payload, sequence=3, acknowledged=3, checks=checks)
        assert 3 not in line, "it would interrupt the broker on a board's console"
        assert [frame[3:] for frame in decoded(FrameReader(256, checks), line, 100)] == [payload]


def test_a_frame_of_another_session_or_station_is_no_frame():
    others = (checks_of(nonces=b"87654321"), checks_of(address=1), checks_of(2))
    for other in others:
        for payload in PAYLOADS:
            reader = FrameReader(256)
            assert decoded(reader, encoded(payload, checks=other), 100) == [] and reader.bad_count == 1
    for one, other in ((0, 1), (1, 2), (2, 0)):
        hello = encoded(b"hello", checks=FrameChecks(True, one), name=HELLO)
        assert len(decoded(FrameReader(256, FrameChecks(False, one)), hello, 9)) == 1
        assert decoded(FrameReader(256, FrameChecks(False, other)), hello, 9) == []


def test_without_a_session_only_a_handshake_is_a_frame():
    reader = FrameReader(256, FrameChecks(False))
    assert decoded(reader, encoded(b"data"), 100) == [] and reader.bad_count == 1
    assert len(decoded(reader, encoded(b"hello", name=HELLO), 100)) == 1


def test_every_single_bit_error_is_seen():
    for check_size in (2, 4):
        checks = checks_of(check_size)
        first, second = encoded(b"payload", checks=checks), encoded(b"another", checks=checks)
        whole = decoded(FrameReader(256, checks), first + second, 100)
        for index in range(len(first) + len(second)):
            for bit in range(8):
                line = bytearray(first + second)
                line[index] ^= 1 << bit
                reader = FrameReader(256, checks)
                found = decoded(reader, bytes(line) + b"\x7e", 1000)
                assert found == (whole[1:] if index < len(first) else whole[:1]), (check_size, index, bit, found)
                assert reader.bad_count > 0, (check_size, index, bit)


def test_a_cut_at_every_octet_loses_that_frame_and_no_other():
    good = encoded(b"first")
    for cut in range(1, len(good) - 1):
        reader = FrameReader(256)
        found = decoded(reader, good[:cut] + encoded(b"second"), 5)
        assert found == [b"\x21\x7e\x7dsecond"], cut
        assert reader.bad_count == (1 if cut > 1 else 0), cut


def test_garbage_without_end_is_held_to_one_frame_and_the_next_frame_is_found():
    reader = FrameReader(16)
    assert decoded(reader, b"REPL text, and then some \x7d\x00 more. " * 50, 100) == []
    assert reader._numbers[0] <= len(reader.octets) + 1, "the count of what was thrown away does not grow"
    assert len(reader.octets) == HEADER_SIZE + 16 + 4
    assert decoded(reader, encoded(b"after"), 100) == [b"\x21\x7e\x7dafter"]
    assert reader.bad_count == 1


def test_a_frame_that_is_too_long_is_no_frame():
    reader = FrameReader(16)
    assert decoded(reader, encoded(b"x" * 17), 100) == []
    assert reader.bad_count == 1
    assert decoded(reader, encoded(b"x" * 16), 100) == [b"\x21\x7e\x7d" + b"x" * 16]


def test_an_escape_before_a_flag_breaks_the_frame_off():
    reader = FrameReader(16)
    line = encoded(b"x")
    assert decoded(reader, line[:-1] + b"\x7d\x7e", 100) == []
    assert reader.bad_count == 1


def test_flags_alone_and_frames_too_short_are_nothing():
    reader = FrameReader(16)
    assert decoded(reader, b"\x7e" * 20, 3) == []
    assert reader.bad_count == 0
    assert decoded(reader, b"\x7e\x01\x7e\x01\x02\x7e\x01\x02\x03\x04\x7e", 3) == []
    assert reader.bad_count == 3


def test_check_16_is_that_of_x_25():
    assert check_16(b"123456789", 9, 0) == 0x906E and check_16(b"456789", 6, check_16(b"123", 3, 0)) == 0x906E


def test_check_32_in_halves_is_the_interpreters_own():
    """The form of boards, on both interpreters: for every octet, behind any check before, at any place."""
    link = remainders()
    every = bytes(range(256))
    for start, size, before in ((0, 256, 0), (0, 9, 0xFFFFFFFF), (17, 0, 0x89ABCDEF), (250, 6, 0x80000000), (1, 200, 0x7FFF8000)):
        numbers = [before & 0xFFFF, before >> 16]
        in_halves(every, start, size, numbers, link)
        assert numbers[1] << 16 | numbers[0] == binascii.crc32(every[start : start + size], before)
    numbers = [0, 0]
    in_halves(b"123456789", 0, 9, numbers, link)
    assert numbers == [0x3926, 0xCBF4], "the check value of CRC-32/ISO-HDLC"
