"""Field tables and arrays (0-9-1 section 4.2.5.5), with the type letters as RabbitMQ and its clients use them (core/SPEC.md).

    long size | name shortstr, type octet, value | name, type, value | ...

Values decode to bool, int, float, str (longstr that is UTF-8), bytes, list, dict, None; a decimal (D) to float, a timestamp (T) to the
tuple ("T", seconds), so that it is never taken for a number.
Tables are checked to the last octet: a size that does not fit, an unknown letter or more than DEPTH_MAX levels is a ProtocolError.
"""

import struct

from ..errors import SYNTAX_ERROR, ProtocolError
from ..shim import const

DEPTH_MAX = const(8)

# Letter -> (size, struct format); the variable ones are S x A F V.
_FIXED = {
    0x74: (1, ">B"),
    0x62: (1, ">b"),
    0x42: (1, ">B"),
    0x73: (2, ">h"),
    0x75: (2, ">H"),
    0x49: (4, ">i"),
    0x69: (4, ">I"),
    0x6C: (8, ">q"),
    0x4C: (8, ">q"),
    0x66: (4, ">f"),
    0x64: (8, ">d"),
    0x54: (8, ">Q"),
    0x44: (5, ""),
}
_BOOL = const(0x74)
_DECIMAL = const(0x44)
_TIMESTAMP = const(0x54)
_LONGSTR = const(0x53)
_BYTES = const(0x78)
_ARRAY = const(0x41)
_TABLE = const(0x46)
_VOID = const(0x56)


def bad(text):
    """Raise the syntax error of section 4.2.5.5 for a table that cannot be read."""
    raise ProtocolError(SYNTAX_ERROR, text)


def text_of(octets):
    """A longstr as str when it is UTF-8, else as bytes."""
    try:
        return str(octets, "utf-8")
    except UnicodeError:
        return octets


def size_at(buffer, at, end):
    """The long at `at`, checked to leave that many octets before `end`."""
    if at + 4 > end:
        bad("a table field ends inside its size")
    size = struct.unpack_from(">I", buffer, at)[0]
    if size > end - at - 4:
        bad("a table field of %d octets where %d are left" % (size, end - at - 4))
    return size


def decode(buffer, at, end):
    """The table whose size stands at `at` of `buffer` (bytes-like, read up to `end`): (dict, position behind it)."""
    size = size_at(buffer, at, end)
    at += 4
    return pairs(buffer, at, at + size, 1), at + size


def pairs(buffer, at, end, depth):
    """The pairs between `at` and `end` as a dict; a name that comes twice has its last value."""
    if depth > DEPTH_MAX:
        bad("a field table more than %d levels deep" % DEPTH_MAX)
    table = {}
    while at < end:
        size = buffer[at]
        if at + 1 + size >= end:
            bad("a field table ends inside a field name")
        try:
            name = str(bytes(buffer[at + 1 : at + 1 + size]), "utf-8")
        except UnicodeError:
            bad("a field name is not UTF-8")
        table[name], at = value(buffer, at + 1 + size, end, depth)
    return table


def value(buffer, at, end, depth):
    """One typed value at `at`: (value, position behind it)."""
    letter = buffer[at]
    at += 1
    if letter in _FIXED:
        size, form = _FIXED[letter]
        if at + size > end:
            bad("a table field ends inside its value")
        if letter == _DECIMAL:
            return struct.unpack_from(">i", buffer, at + 1)[0] / 10 ** buffer[at], at + 5
        number = struct.unpack_from(form, buffer, at)[0]
        if letter == _TIMESTAMP:
            return ("T", number), at + size
        return (number != 0 if letter == _BOOL else number), at + size
    if letter == _VOID:
        return None, at
    if letter not in (_LONGSTR, _BYTES, _ARRAY, _TABLE):
        bad("unknown field type octet 0x%02x" % letter)
    size = size_at(buffer, at, end)
    at += 4
    if letter == _TABLE:
        return pairs(buffer, at, at + size, depth + 1), at + size
    if letter == _ARRAY:
        return items(buffer, at, at + size, depth + 1), at + size
    octets = bytes(buffer[at : at + size])
    return (text_of(octets) if letter == _LONGSTR else octets), at + size


def behind(buffer, at, end):
    """The position behind the typed value at `at`, of a table that was decoded before."""
    letter = buffer[at]
    if letter in _FIXED:
        return at + 1 + _FIXED[letter][0]
    return at + 1 if letter == _VOID else at + 5 + size_at(buffer, at + 1, end)


def items(buffer, at, end, depth):
    """The values of an array between `at` and `end` as a list."""
    if depth > DEPTH_MAX:
        bad("a field array more than %d levels deep" % DEPTH_MAX)
    array = []
    while at < end:
        item, at = value(buffer, at, end, depth)
        array.append(item)
    return array


def encode(table):
    """A dict as a field table with its size. str and bytes become S and x, int I or l, float d, bool t, None V, list A, dict F;
    a tuple (letter, number) forces the letter, as ("T", seconds), or ("S", bytes) for a longstr of any octets."""
    body = b"".join([shortstr(name) + encode_value(table[name]) for name in table])
    return struct.pack(">I", len(body)) + body


def encode_value(item):
    """One value with its type letter. Raises ValueError for a type that tables do not have."""
    if item is None:
        return b"V"
    if item is True or item is False:
        return b"t\x01" if item else b"t\x00"
    if isinstance(item, int):
        if -0x80000000 <= item < 0x80000000:
            return b"I" + struct.pack(">i", item)
        return b"l" + struct.pack(">q", item)
    if isinstance(item, float):
        return b"d" + struct.pack(">d", item)
    if isinstance(item, str):
        return sized(b"S", item.encode("utf-8"))
    if isinstance(item, (bytes, bytearray)):
        return sized(b"x", bytes(item))
    if isinstance(item, dict):
        return b"F" + encode(item)
    if isinstance(item, list):
        return sized(b"A", b"".join([encode_value(each) for each in item]))
    if isinstance(item, tuple) and len(item) == 2 and item[0] == "S":
        return sized(b"S", item[1])
    if isinstance(item, tuple) and len(item) == 2 and len(item[0]) == 1 and ord(item[0]) in _FIXED and item[0] != "D":
        return item[0].encode() + struct.pack(_FIXED[ord(item[0])][1], item[1])
    raise ValueError("a field table cannot hold %r" % (item,))


def sized(letter, octets):
    """A variable value: letter, long size, octets."""
    return letter + struct.pack(">I", len(octets)) + octets


def shortstr(text):
    """A short string with its size octet (section 4.2.5.3). Raises ValueError above 255 octets."""
    octets = text if isinstance(text, bytes) else text.encode("utf-8")
    if len(octets) > 255:
        raise ValueError("a short string has at most 255 octets; this one has %d" % len(octets))
    return bytes((len(octets),)) + octets
