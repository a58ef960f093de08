"""Methods of the 0-9 family (0-9-1 section 4.2.4): one decoder and one encoder, led by the rows of a spec table.

    short class-id | short method-id | arguments, in the order of the row's field codes

A run of bits fills octets from the lowest bit up. The codes are explained in spec_0_9_1.py.
"""

import struct

from ..errors import SYNTAX_ERROR, ProtocolError
from ..shim import MICROPYTHON, quicker
from . import field_table
from .frame import METHOD
from .frame import encode as encode_frame

# Places in a row of METHODS.
CODE = 0
NAME = 1
FIELDS = 2
SENDER = 3
CONTENT = 4
REPLIES = 5

CLIENT = 1
SERVER = 2

KNOWN: dict = {}  # (methods, row) by name, of rows that have been looked up; boards look again, and keep the heap

_NUMBERS = {"o": (1, ">B"), "s": (2, ">H"), "l": (4, ">I"), "L": (8, ">Q")}


def find(methods, code):
    """The row of class << 16 | method, or None. `methods` is sorted by code."""
    low = 0
    high = len(methods)
    while low < high:
        middle = (low + high) // 2
        if methods[middle][CODE] < code:
            low = middle + 1
        else:
            high = middle
    return methods[low] if low < len(methods) and methods[low][CODE] == code else None


def named(methods, name):
    """The row called `name`, as "queue_declare". Raises KeyError."""
    known = KNOWN.get(name)
    if known is not None and known[0] is methods:
        return known[1]
    for row in methods:
        if row[NAME] == name:
            if not MICROPYTHON:
                KNOWN[name] = methods, row
            return row
    raise KeyError(name)


def decode(row, buffer, at, end):
    """The arguments between `at` and `end` as a list: str for shortstr, bytes for longstr, dict for table, bool for bit, int else.

    A payload that is too short, too long or not UTF-8 in a shortstr is ProtocolError(SYNTAX_ERROR) (section 4.2.5).
    """
    arguments = []
    bit = 0
    for code in row[FIELDS]:
        if code == "b":
            if bit == 0 and at >= end:
                short(row)
            arguments.append(buffer[at] >> bit & 1 != 0)
            bit += 1
            if bit == 8:
                bit = 0
                at += 1
            continue
        if bit:
            bit = 0
            at += 1
        item, at = decode_field(row, code, buffer, at, end)
        arguments.append(item)
    if bit:
        at += 1
    if at != end:
        too_many(row, end - at)
    return arguments


def decode_field(row, code, buffer, at, end):
    """One argument that is not a bit: (value, position behind it)."""
    if code == "f" and at == end:
        return {}, at
    if code in "Ff":
        return field_table.decode(buffer, at, end)
    if code == "S":
        if at >= end or at + 1 + buffer[at] > end:
            short(row)
        octets = bytes(buffer[at + 1 : at + 1 + buffer[at]])
        try:
            return str(octets, "utf-8"), at + 1 + len(octets)
        except UnicodeError:
            not_text(row)
    if code == "T":
        size = field_table.size_at(buffer, at, end)
        return bytes(buffer[at + 4 : at + 4 + size]), at + 4 + size
    size, form = _NUMBERS[code]
    if at + size > end:
        short(row)
    return struct.unpack_from(form, buffer, at)[0], at + size


def short(row):
    """Raise: the payload ended before the last argument."""
    raise ProtocolError(SYNTAX_ERROR, "%s ends before its last argument" % title(row))


def too_many(row, count):
    """Raise: so many octets were left behind the last argument."""
    raise ProtocolError(SYNTAX_ERROR, "%s has %d octets too many" % (title(row), count))


def not_text(row):
    """Raise: a short string is no text."""
    raise ProtocolError(SYNTAX_ERROR, "%s has a short string that is not UTF-8" % title(row)) from None


def title(row):
    """The method's name as the specification writes it, as basic.publish or queue.declare-ok."""
    name = row[NAME]
    cut = name.find("_")
    return name[:cut] + "." + name[cut + 1 :].replace("_", "-")


def encode(row, channel, arguments):
    """The whole method frame. Raises ValueError or struct.error when an argument does not fit its field (our own misuse)."""
    assert len(arguments) == len(row[FIELDS]), row[NAME]
    parts = [struct.pack(">HH", row[CODE] >> 16, row[CODE] & 0xFFFF)]
    bits = 0
    count = 0
    for index in range(len(arguments)):
        code = row[FIELDS][index]
        if code == "b":
            bits |= (1 if arguments[index] else 0) << count
            count += 1
            if count < 8 and row[FIELDS][index + 1 : index + 2] == "b":
                continue
            parts.append(bytes((bits,)))
            bits = count = 0
        else:
            parts.append(encode_field(code, arguments[index]))
    return encode_frame(METHOD, channel, b"".join(parts))


def encode_field(code, item):
    """One argument that is not a bit."""
    if code == "S":
        return field_table.shortstr(item)
    if code == "T":
        return struct.pack(">I", len(item)) + item
    if code in "Ff":
        return field_table.encode(item)
    return struct.pack(_NUMBERS[code][1], item)


find = quicker(find)
decode = quicker(decode)
encode = quicker(encode)
