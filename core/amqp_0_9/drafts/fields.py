"""Fields of the two drafts of 2005: their integers, strings, field tables and runs of bits.

What differs between them is a row of `Fields`: a long string's size has two octets in 0.9a5 and four in 0.9r1, and a table of 0.9a5 has a
letter for short strings and one for long ones. A table's values decode to str (bytes where it is not UTF-8), int, float (a decimal), dict,
("T", seconds); of a name that comes twice the first counts. Values that the drafts do not have are written as text, or as a number where
they are one; lists and what is nothing are left out.
"""

import struct

from ...errors import COMMAND_INVALID, SYNTAX_ERROR, ProtocolError
from ...shim import const

NAME_MAX = const(128)  # characters of a name in a table
DEPTH_MAX = const(8)
DECIMALS_MAX = const(9)
SIZES = {"o": 1, "s": 2, "l": 4, "L": 8}


class Fields:
    """One draft's. `width`: octets of a long string's size; `short`: the letter of a short string in a table, "" for none; `long`: that of
    a long one."""

    def __init__(self, width, short, long):
        self.width = width
        self.short = short
        self.long = long

    def long_string(self, octets):
        """A long string, cut to what its size can say."""
        if self.width == 2:
            octets = octets[:0xFFFF]
        return number(self.width, len(octets)) + octets

    def encode(self, codes, arguments):
        """The arguments of a method or the properties of a content, with these field codes (octets)."""
        parts = []
        bits = count = 0
        for index in range(len(arguments)):
            code, item = codes[index], arguments[index]
            if code == "b":
                bits |= (1 if item else 0) << count
                count += 1
                if count < 8 and codes[index + 1 : index + 2] == "b":
                    continue
                parts.append(bytes((bits,)))
                bits = count = 0
            elif code == "S":
                parts.append(short_string(item))
            elif code == "T":
                parts.append(self.long_string(octets_of(item)))
            elif code == "F":
                parts.append(self.table(item))
            else:
                parts.append(number(SIZES[code], item))
        return b"".join(parts)

    def table(self, pairs):
        """A field table with its size."""
        parts = []
        for name in pairs:
            octets = self.value(pairs[name])
            if octets and is_name(name):
                parts.append(short_string(name) + octets)
        body = b"".join(parts)
        return number(4, len(body)) + body

    def value(self, item):
        """A value with its letter, b"" where the draft has none for it."""
        letter = None
        if isinstance(item, tuple) and len(item) == 2:
            letter, item = item
        if isinstance(item, dict):
            return b"F" + self.table(item)
        if letter == "T":
            return b"T" + number(8, item)
        if isinstance(item, float):
            octets = decimal(item)
            if octets:
                return octets
            item = repr(item)
        if item is True or item is False:
            item = 1 if item else 0
        if isinstance(item, int):
            if -0x80000000 <= item < 0x80000000:
                return b"I" + struct.pack(">i", item)
            item = "%d" % item
        if not isinstance(item, (str, bytes)):
            return b""
        octets = octets_of(item)
        if self.short and len(octets) < 256 and 0 not in octets:
            return self.short.encode() + short_string(octets)
        return self.long.encode() + self.long_string(octets)


def number(size, item):
    """An unsigned integer of `size` octets."""
    return item.to_bytes(size, "big")


def octets_of(item):
    """A text or octets as octets."""
    return item.encode("utf-8") if isinstance(item, str) else bytes(item)


def short_string(item):
    """A short string with its size, cut to 255 octets."""
    octets = octets_of(item)[:255]
    return bytes((len(octets),)) + octets


def decimal(item):
    """A float as a decimal that is equal to it, or b""."""
    for decimals in range(DECIMALS_MAX + 1):
        scaled = item * 10**decimals
        if not -0x80000000 <= scaled < 0x80000000:
            return b""
        if int(scaled) == scaled:
            return b"D" + struct.pack(">Bi", decimals, int(scaled))
    return b""


def is_name(name):
    """True for a name that a table may have: a letter, $ or # first, then also digits and underlines."""
    if not 0 < len(name) <= NAME_MAX:
        return False
    for index in range(len(name)):
        each = name[index]
        if not ("a" <= each <= "z" or "A" <= each <= "Z" or each in "$#" or index and (each == "_" or "0" <= each <= "9")):
            return False
    return True


class Reader:
    """Reads fields from `at` to `end` of `octets`. `title`: what they are, for errors."""

    def __init__(self, fields, octets, at, end, title):
        self.fields = fields
        self.octets = octets
        self.at = at
        self.end = end
        self.title = title

    def bad(self, text):
        """Raise the syntax error of a field."""
        raise ProtocolError(SYNTAX_ERROR, "%s %s" % (self.title, text))

    def next_octets(self, size):
        """The next `size` octets."""
        at = self.at
        if at + size > self.end:
            self.bad("ends inside a field")
        self.at = at + size
        return bytes(self.octets[at : at + size])

    def number(self, size):
        """An unsigned integer of `size` octets."""
        return int.from_bytes(self.next_octets(size), "big")

    def short_string(self):
        """A short string: UTF-8 without zeros."""
        octets = self.next_octets(self.number(1))
        try:
            text = str(octets, "utf-8")
        except UnicodeError:
            self.bad("has a short string that is not UTF-8")
        if 0 in octets:
            self.bad("has a short string with a zero in it")
        return text

    def item(self, code):
        """A field that is no bit."""
        if code == "S":
            return self.short_string()
        if code == "T":
            return self.next_octets(self.number(self.fields.width))
        return self.table(1) if code == "F" else self.number(SIZES[code])

    def arguments(self, codes):
        """All fields of a method."""
        arguments = []
        bits = bit = 0
        for code in codes:
            if code == "b":
                if bit == 0:
                    bits = self.number(1)
                arguments.append(bits >> bit & 1 != 0)
                bit = (bit + 1) & 7
            else:
                bit = 0
                arguments.append(self.item(code))
        if self.at != self.end:
            self.bad("has %d octets too many" % (self.end - self.at))
        return arguments

    def table(self, depth):
        """A field table."""
        if depth > DEPTH_MAX:
            self.bad("has a field table more than %d levels deep" % DEPTH_MAX)
        size = self.number(4)
        if size > self.end - self.at:
            self.bad("ends inside a field table")
        inner = Reader(self.fields, self.octets, self.at, self.at + size, self.title)
        self.at += size
        pairs: dict = {}
        while inner.at < inner.end:
            name = inner.short_string()
            if not is_name(name):
                raise ProtocolError(COMMAND_INVALID, "%s has the field name %r" % (self.title, name[:40]))
            item = inner.value(depth)
            if name not in pairs:
                pairs[name] = item
        return pairs

    def value(self, depth):
        """A value behind its letter."""
        letter = chr(self.number(1))
        if letter in (self.fields.short, self.fields.long):
            octets = self.next_octets(self.number(1 if letter == self.fields.short else self.fields.width))
            try:
                return str(octets, "utf-8")
            except UnicodeError:
                return octets
        if letter == "I":
            return struct.unpack(">i", self.next_octets(4))[0]
        if letter == "D":
            decimals = self.number(1)
            return struct.unpack(">i", self.next_octets(4))[0] / 10**decimals
        if letter == "T":
            return "T", self.number(8)
        if letter != "F":
            self.bad("has a field of the unknown type %r" % letter)
        return self.table(depth + 1)
