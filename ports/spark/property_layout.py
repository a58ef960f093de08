"""Where the values stand inside the octets of message properties (flags and list of class basic, 0-9-1 section 4.2.6.1).

Messages of one publisher have properties of one layout: the same names, types and lengths, other values. So a layout is read once, from
one message, and serves for all whose octets are equal outside the values.
Laws: `read` never raises for what a publisher sent; what it does not understand is not taken for a value, so it has to be equal.
"""

import struct

from leveret.core.amqp_0_9.spec_0_9_1 import PROPERTIES

_FIXED = {"t": 1, "b": 1, "B": 1, "s": 2, "u": 2, "I": 4, "i": 4, "l": 8, "L": 8, "f": 4, "d": 8, "T": 8, "D": 5}
_SIZED = "SxAF"
_PROPERTY_SIZES = {"o": 1, "L": 8}


class Layout:
    """`values`: {name: (kind, start, end)}; a header's name is "headers." and its own; kind is the letter of its type."""

    def __init__(self, octets: bytes) -> None:
        self.values: dict[str, tuple[str, int, int]] = {}
        try:
            self._read(octets)
        except (IndexError, struct.error, UnicodeDecodeError):
            self.values = {}

    def _read(self, octets: bytes) -> None:
        flags, at = octets[0] << 8 | octets[1], 2
        for place, (name, code) in enumerate(PROPERTIES):
            if flags & 0x8000 >> place:
                if code == "S":
                    start, end = at + 1, at + 1 + octets[at]
                    self.values[name] = ("S", start, end)
                elif code == "F":
                    start, end = at + 4, at + 4 + struct.unpack_from(">I", octets, at)[0]
                    self._read_headers(octets, start, end)
                else:
                    start, end = at, at + _PROPERTY_SIZES[code]
                    self.values[name] = (code, start, end)
                at = end

    def _read_headers(self, octets: bytes, at: int, end: int) -> None:
        while at < end:
            start = at + 1 + octets[at]
            name, letter = "headers." + octets[at + 1 : start].decode("utf-8"), chr(octets[start])
            start += 1
            if letter in _SIZED:
                size = struct.unpack_from(">I", octets, start)[0]
                start += 4
            elif letter in _FIXED:
                size = _FIXED[letter]
            elif letter == "V":
                size = 0
            else:
                return
            self.values[name] = (letter, start, start + size)
            at = start + size
