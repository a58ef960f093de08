"""Structs, controls and commands of AMQP 0-10 (spec_0_10.py) as dicts of their fields, and back.

    struct    size (0, 1, 2 or 4 octets, counting what follows) | class code, code (only where it has them) | packing flags | fields
    control   class code, code | packing flags, 2 octets | fields
    command   class code, code | session header (a struct) | packing flags, 2 octets | fields

A packing flag says of each field, the first one's the lowest bit of the first octet, that it is present; a bit is its flag alone. The
fields of a dict are all of the table's, None where they are not present, a bit True or False.
"""

import struct

from ..errors import COMMAND_INVALID, SYNTAX_ERROR, ProtocolError
from . import types
from .spec_0_10 import COMMANDS, CONTROLS, STRUCTS

_CONTROLS = {row[0]: row for row in CONTROLS}
_COMMANDS = {row[0]: row for row in COMMANDS}
_NAMED = {row[1]: row for row in CONTROLS + COMMANDS}
_STRUCTS = {row[0]: row for row in STRUCTS}
_BY_CODE = {row[1]: row for row in STRUCTS if row[1] is not None}
_SIZES = {1: ">B", 2: ">H", 4: ">I"}

RESULTS = {row[1]: row[2] for row in COMMANDS}  # name of a command -> the struct of its result, or None


# Reading


def control(octets):
    """(name, fields) of a control's segment (bytes)."""
    code, name, fields = row_of(_CONTROLS, "control", octets)
    given, at = fields_at(name, fields, 2, octets, 2, len(octets))
    check_end(name, octets, at)
    return name, given


def command(octets):
    """(name, fields, sync) of a command's segment (bytes). `sync`: its sender asks for a notification of its completion."""
    code, name, fields = row_of(_COMMANDS, "command", octets)
    header, at = read("session-header", octets, 2, len(octets))
    given, at = fields_at(name, fields, 2, octets, at, len(octets))
    check_end(name, octets, at)
    return name, given, header["sync"]


def row_of(rows, word, octets):
    """(code, name, fields) of the row for a segment."""
    if len(octets) < 2:
        types.bad("a %s of %d octets" % (word, len(octets)))
    code = octets[0] << 8 | octets[1]
    if code not in rows:
        raise ProtocolError(COMMAND_INVALID, "there is no %s with class code 0x%02x and code 0x%02x" % (word, octets[0], octets[1]))
    row = rows[code]
    return row[0], row[1], row[3]


def check_end(name, octets, at):
    """Raise for octets behind the last field."""
    if at != len(octets):
        types.bad("%s has %d octets behind its fields" % (name, len(octets) - at))


def fields_at(name, fields, width, octets, at, end, exact=False):
    """The fields whose packing flags, `width` octets, stand at `at`: (dict, position behind them)."""
    types.need("packing flags", width, at, end)
    flags = 0
    for place in range(width):
        flags |= octets[at + place] << 8 * place
    at += width
    if not width:
        flags = (1 << len(fields)) - 1
    if flags >> len(fields):
        raise ProtocolError(SYNTAX_ERROR, "%s has packing flags 0x%x and %d fields" % (name, flags, len(fields)))
    given: "dict" = {}
    for place, (title, type_) in enumerate(fields):
        is_there = flags >> place & 1
        if type_ == "bit":
            given[title] = bool(is_there)
        elif not is_there:
            given[title] = None
        elif type_ in _STRUCTS:
            given[title], at = read(type_, octets, at, end, exact)
        elif type_[-1] != "]":
            given[title], at = types.read(type_, octets, at, end, exact)
        else:
            given[title], at = types.read("array", octets, at, end, exact)
            if type_[:-2] in _STRUCTS:
                given[title] = [read(type_[:-2], struct.pack(">I", len(each)) + each, 0, len(each) + 4)[0] for each in given[title]]
    return given, at


def read(name, octets, at, end, exact=False):
    """The struct of this name at `at`: (fields, position behind it). `exact`: as types.py has it."""
    _, code, size_width, width, fields = _STRUCTS[name]
    if size_width:
        types.need(name, size_width, at, end)
        size = struct.unpack_from(_SIZES[size_width], octets, at)[0]
        at += size_width
        types.need(name, size, at, end)
        end = at + size
    if code is not None:
        types.need(name, 2, at, end)
        if octets[at] << 8 | octets[at + 1] != code:
            types.bad("a struct of class code 0x%02x and code 0x%02x where %s stands" % (octets[at], octets[at + 1], name))
        at += 2
    given, at = fields_at(name, fields, width, octets, at, end, exact)
    if size_width and at != end:
        types.bad("%s has %d octets behind its fields" % (name, end - at))
    return given, at


def each_struct(octets, at, end):
    """The structs of a header segment one behind the other: [(name or None for one that is not known, begin, end)], their sizes in them."""
    rows = []
    while at < end:
        types.need("struct", 4, at, end)
        size = struct.unpack_from(">I", octets, at)[0]
        if size < 2 or size > end - at - 4:
            types.bad("a struct of %d octets where %d are left" % (size, end - at - 4))
        row = _BY_CODE.get(octets[at + 4] << 8 | octets[at + 5])
        rows.append((None if row is None else row[0], at, at + 4 + size))
        at += 4 + size
    return rows


# Writing


def write(name, given):
    """The octets of a struct out of its fields by name; those that are left out or None are not present."""
    _, code, size_width, width, fields = _STRUCTS[name]
    octets = packed(fields, width, given)
    if code is not None:
        octets = struct.pack(">H", code) + octets
    return struct.pack(_SIZES[size_width], len(octets)) + octets if size_width else octets


def write_control(name, given):
    """The octets of a control's segment."""
    code, _, _, fields = _NAMED[name]
    return struct.pack(">H", code) + packed(fields, 2, given)


def write_command(name, given, sync=False):
    """The octets of a command's segment."""
    code, _, _, fields = _NAMED[name]
    return struct.pack(">H", code) + (b"\x01\x01" if sync else b"\x01\x00") + packed(fields, 2, given)


def packed(fields, width, given):
    """Packing flags and the fields that are present. Raises KeyError for a name that is no field's."""
    given = dict(given)
    flags = 0
    parts = []
    for place, (title, type_) in enumerate(fields):
        value = given.pop(title, None)
        if value is None or value is False and type_ == "bit":
            continue
        flags |= 1 << place
        if type_ != "bit":
            parts.append(field(type_, value))
    if given:
        raise KeyError("there is no field %s" % sorted(given)[0])
    return bytes([flags >> 8 * place & 255 for place in range(width)]) + b"".join(parts)


def field(type_, value):
    """The octets of a field; an array of structs is one of struct32."""
    if type_ in _STRUCTS:
        return write(type_, value)
    if type_[:-2] in _STRUCTS:
        return types.write("struct32[]", [write(type_[:-2], each)[4:] for each in value])
    return types.write(type_, value)
