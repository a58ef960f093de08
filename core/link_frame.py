"""Frames of the serial link: where one begins and ends on the line, and whether it came through whole.

    0x7E | kind | sequence | acknowledged | payload, 0 to payload_size_max octets | check, 2 or 4 octets | 0x7E

As in HDLC (RFC 1662): 0x7E (flag) stands only between frames, one is enough between two; inside a frame 0x7E and 0x7D are sent
as 0x7D and the octet with bit 0x20 turned over. The check covers everything before it, least significant octet first:
CRC-32 (as zlib), or CRC-16/X.25 where the kind has no CHECK_32 bit. HDLC rather than COBS: further octets (XON, XOFF, Ctrl-C)
can be kept off the line by the same escape, and text that others write between frames does no harm.

Laws: buffers are made in the constructors; a reader holds no more than one frame, whatever is on the line; a frame whose check
fails is counted and gone. What a frame means is not known here: see link.py.
"""

import binascii
from array import array

from .shim import const

_FLAG = const(0x7E)
_ESCAPE = const(0x7D)
_TURNED = const(0x20)

HEADER_SIZE = 3
CHECK_32 = 0x20  # bit of `kind`


def check_16_table():
    """Remainders of the reflected polynomial 0x8408 (x^16 + x^12 + x^5 + 1) for each octet."""
    remainders = array("H", bytes(512))
    for octet in range(256):
        remainder = octet
        for _ in range(8):
            remainder = (remainder >> 1) ^ 0x8408 if remainder & 1 else remainder >> 1
        remainders[octet] = remainder
    return remainders


CHECK_16_TABLE = check_16_table()


def check_16(octets, size, value=0):
    """CRC-16/X.25 of octets[0:size]; `value` is the check of what stands before them."""
    table = CHECK_16_TABLE
    value ^= 0xFFFF
    for index in range(size):
        value = (value >> 8) ^ table[(value ^ octets[index]) & 0xFF]
    return value ^ 0xFFFF


def check_size_of(kind):
    """Octets of the check that a frame of this kind carries."""
    return 4 if kind & CHECK_32 else 2


class FrameReader:
    """Finds the frames in what comes off the line.

    After `take` a `size` above 0 says that octets[0:size] are a frame (header and payload) whose check was right;
    they stay until the next `take`. `bad_count`: pieces that were no frame: damaged, too short or too long.
    """

    def __init__(self, payload_size_max):
        self.octets = memoryview(bytearray(HEADER_SIZE + payload_size_max + 4))
        self.size = 0
        self.bad_count = 0
        self._fill = 0
        self._turn = 0

    def take(self, source, at, end):
        """Read source[at:end] to the end of a frame or of the octets; returns where it stopped."""
        octets = self.octets
        room = len(octets)
        fill = self._fill
        self.size = 0
        while at < end:
            octet = source[at]
            at += 1
            if octet == _FLAG:
                self._finish(fill)
                return at
            if octet == _ESCAPE:
                self._turn = _TURNED
                continue
            if fill < room:
                octets[fill] = octet ^ self._turn
            if fill <= room:
                fill += 1
            self._turn = 0
        self._fill = fill
        return at

    def _finish(self, fill):
        """A flag has come after `fill` octets (one more than there is room for: too many)."""
        whole = self._turn == 0 and fill <= len(self.octets)
        self._fill = self._turn = 0
        if fill == 0 and whole:
            return
        check_size = check_size_of(self.octets[0])
        if whole and fill >= HEADER_SIZE + check_size and self._check_holds(fill - check_size, check_size):
            self.size = fill - check_size
        else:
            self.bad_count += 1

    def _check_holds(self, size, check_size):
        octets = self.octets
        low = octets[size] | octets[size + 1] << 8
        if check_size == 2:
            return check_16(octets, size) == low
        value = binascii.crc32(octets[:size])
        return value & 0xFFFF == low and value >> 16 == octets[size + 2] | octets[size + 3] << 8


class FrameWriter:
    """Holds one frame as it goes on the line: octets[start:end] are still to be sent."""

    def __init__(self, payload_size_max):
        self.octets = memoryview(bytearray(2 * (HEADER_SIZE + payload_size_max + 4) + 2))
        self.start = 0
        self.end = 0
        self._header = bytearray(HEADER_SIZE)
        self._check = bytearray(4)

    def put(self, kind, sequence, acknowledged, payload, payload_size, flag_first):
        """Make the frame with payload[0:payload_size]. `flag_first`: the line was silent, so close off what noise may have left there."""
        header = self._header
        header[0] = kind
        header[1] = sequence
        header[2] = acknowledged
        self.start = self.end = 0
        if flag_first:
            self.octets[0] = _FLAG
            self.end = 1
        self._stuff(header, HEADER_SIZE)
        self._stuff(payload, payload_size)
        self._stuff(self._check, self._set_check(payload, payload_size))
        self.octets[self.end] = _FLAG
        self.end += 1

    def _set_check(self, payload, payload_size):
        """Put the check of header and payload in its place; returns its size."""
        header = self._header
        check = self._check
        if header[0] & CHECK_32:
            value = binascii.crc32(payload[:payload_size], binascii.crc32(header))
            check[2] = value >> 16 & 0xFF
            check[3] = value >> 24
        else:
            value = check_16(payload, payload_size, check_16(header, HEADER_SIZE))
        check[0] = value & 0xFF
        check[1] = value >> 8 & 0xFF
        return check_size_of(header[0])

    def _stuff(self, source, size):
        octets = self.octets
        end = self.end
        for index in range(size):
            octet = source[index]
            if octet == _FLAG or octet == _ESCAPE:
                octets[end] = _ESCAPE
                end += 1
                octet ^= _TURNED
            octets[end] = octet
            end += 1
        self.end = end

    def clear(self):
        """Nothing is to be sent any more."""
        self.start = self.end = 0
