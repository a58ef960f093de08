"""Values of AMQP 0-10: fixed and variable types, sets of ranges, maps, lists, arrays; reading and writing.

    map    size uint32 | count uint32 | entries: key str8, type octet, value
    list   size uint32 | count uint32 | items: type octet, value
    array  size uint32 | type octet | count uint32 | values

A field's value comes plain, since the table says its type: int, float, str, bytes, dict, list; a uuid and the bin types as bytes. A value
within a map, a list or an array of a map is as families share it (core/message/README.md): with `exact` a number has the letter of its
kind, ("B", 5), without it none. What Python and the other families have no type for is bytes, a uuid within a map its text.

Values are checked to the last octet: what does not fit is a ProtocolError, syntax-error. Nothing nests deeper than DEPTH_MAX; nothing is
made that is larger than its octets, times a factor. An empty map, list or array may be size 0, without a count, as Qpid's peers write it.
"""

import struct
from binascii import hexlify

from ..errors import SYNTAX_ERROR, ProtocolError
from ..shim import const
from .spec_0_10 import TYPES

DEPTH_MAX = const(16)  # levels of maps, lists and arrays
VOIDS_MAX = const(1024)  # values without octets in an array

_BY_NAME = {name: (fixed, variable) for _, name, fixed, variable in TYPES}
_BY_CODE = {code: name for code, name, _, _ in TYPES if code is not None}
_CODES = {name: code for code, name, _, _ in TYPES if code is not None}
_FORMS = {
    "int8": ">b",
    "uint8": ">B",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "sequence-no": ">I",
    "int64": ">q",
    "uint64": ">Q",
    "datetime": ">q",
    "float": ">f",
    "double": ">d",
    "char-utf32": ">I",
}
_SIZES = {1: ">B", 2: ">H", 4: ">I"}
# Types of whole numbers within maps, by their letters (core/message/README.md).
_LETTERS = {"int8": "b", "uint8": "B", "int16": "s", "uint16": "u", "int32": "I", "uint32": "i", "int64": "l", "float": "f"}
_OF_LETTERS = {_LETTERS[name]: name for name in _LETTERS}
_OF_LETTERS.update({"Q": "uint64", "U": "uuid"})
LONG_MAX = 0x7FFFFFFFFFFFFFFF
WIDE = const(2)  # `exact` for receivers of 1.0, which has more types than class basic (core/message/README.md)


def bad(text):
    """Raise the error of a value that cannot be read."""
    raise ProtocolError(SYNTAX_ERROR, text)


# Reading


def read(name, buffer, at, end, exact=False):
    """The value of a field of this type at `at` of `buffer`, read up to `end`: (value, position behind it)."""
    if name in _FORMS:
        width = _BY_NAME[name][0]
        need(name, width, at, end)
        return struct.unpack_from(_FORMS[name], buffer, at)[0], at + width
    octets, at = octets_of(name, buffer, at, end)
    return value_of(name, octets, exact, 1), at


def need(name, width, at, end):
    """Raise for a value whose octets are not there."""
    if width > end - at:
        bad("a %s of %d octets where %d are left" % (name, width, end - at))


def octets_of(name, buffer, at, end):
    """The octets of a value, without those of its size: (bytes, position behind it)."""
    fixed, variable = _BY_NAME[name]
    if variable:
        need(name, variable, at, end)
        fixed = struct.unpack_from(_SIZES[variable], buffer, at)[0]
        at += variable
    need(name, fixed, at, end)
    return bytes(buffer[at : at + fixed]), at + fixed


def value_of(name, octets, exact, depth):
    """A value out of its octets, those of its size apart."""
    if name in _FORMS:
        value = struct.unpack(_FORMS[name], octets)[0]
        return shared(name, value, exact) if depth > 1 else value
    if name == "boolean":
        return octets[0] != 0
    if name[:3] == "str" and name[3] != "u":
        return text_of(name, octets)
    if name == "map":
        return map_of(octets, exact, depth)
    if name == "list":
        return list_of(octets, exact, depth)
    if name == "array":
        return array_of(octets, exact, depth)
    if name == "sequence-set":
        return set_of(octets)
    if name == "uuid" and depth > 1:
        return ("U", octets) if exact == WIDE else uuid_text(octets)
    if name == "char" and depth > 1:
        return ("c", chr(octets[0])) if exact == WIDE else chr(octets[0])
    if name in ("void", "bit"):
        return None
    return octets


def shared(name, value, exact):
    """A number within a map as families share it."""
    if name == "datetime":
        return ("T", max(value, 0))
    if name == "char-utf32":
        if value > 0x10FFFF or 0xD800 <= value < 0xE000:
            bad("a char-utf32 of 0x%x, which is no character" % value)
        return ("c", chr(value)) if exact == WIDE else chr(value)
    if name == "uint64" and exact == WIDE:
        return ("Q", value)
    if name == "uint64" and exact:
        return ("l", value) if value <= LONG_MAX else "%d" % value
    return (_LETTERS[name], value) if exact and name in _LETTERS else value


def text_of(name, octets):
    """A string: UTF-8, UTF-16 or ISO 8859-15, which differs from ISO 8859-1 in eight characters."""
    if name.endswith("latin"):
        return "".join([_LATIN.get(octet) or chr(octet) for octet in octets])
    if name.endswith("utf16"):
        return utf16(octets)
    try:
        return str(octets, "utf-8")
    except UnicodeError:
        return bad("a %s is not UTF-8" % name)


_LATIN = {
    0xA4: "\u20ac",
    0xA6: "\u0160",
    0xA8: "\u0161",
    0xB4: "\u017d",
    0xB8: "\u017e",
    0xBC: "\u0152",
    0xBD: "\u0153",
    0xBE: "\u0178",
}


def utf16(octets):
    """A text in UTF-16, big-endian."""
    if len(octets) & 1:
        bad("a UTF-16 text of %d octets" % len(octets))
    units = [octets[at] << 8 | octets[at + 1] for at in range(0, len(octets), 2)]
    characters = []
    at = 0
    while at < len(units):
        point = units[at]
        at += 1
        if 0xD800 <= point < 0xDC00 and at < len(units) and 0xDC00 <= units[at] < 0xE000:
            point = 0x10000 + ((point & 0x3FF) << 10 | units[at] & 0x3FF)
            at += 1
        elif 0xD800 <= point < 0xE000:
            bad("a UTF-16 text with half a pair")
        characters.append(chr(point))
    return "".join(characters)


def uuid_text(octets):
    """A uuid as text (RFC 4122, section 3)."""
    digits = str(hexlify(octets), "ascii")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def uuid_octets(text):
    """The opposite of `uuid_text`, also with urn:uuid: before it; None for another text."""
    digits = (text[9:] if text.startswith("urn:uuid:") else text).replace("-", "")
    if len(digits) != 32 or "-" not in text:
        return None
    try:
        octets = bytes([int(digits[at : at + 2], 16) for at in range(0, 32, 2)])
    except ValueError:
        return None
    return octets if uuid_text(octets) in text.lower() else None


def count_of(name, octets):
    """How many values stand in the octets of a map or a list."""
    if not octets:
        return 0
    if len(octets) < 4:
        bad("a %s of %d octets" % (name, len(octets)))
    count = struct.unpack_from(">I", octets, 0)[0]
    if count > len(octets) - 4:
        bad("a %s of %d values in %d octets" % (name, count, len(octets) - 4))
    return count


def typed(octets, at, exact, depth):
    """A value behind the octet of its type: (value, position behind it)."""
    if at >= len(octets):
        bad("a value is missing: the octets end where its type would stand")
    name = _BY_CODE.get(octets[at])
    if name is None:
        bad("unknown type 0x%02x" % octets[at])
    if depth > DEPTH_MAX:
        bad("a value more than %d levels deep" % DEPTH_MAX)
    value, at = octets_of(name, octets, at + 1, len(octets))
    return value_of(name, value, exact, depth), at


def map_of(octets, exact=False, depth=1):
    """A map out of its octets: each key once."""
    table: "dict" = {}
    at = 4
    for _ in range(count_of("map", octets)):
        key, at = octets_of("str8", octets, at, len(octets))
        name = text_of("str8", key)
        if name in table:
            bad("a map has the key %r twice" % name)
        table[name], at = typed(octets, at, exact, depth + 1)
    if octets and at != len(octets):
        bad("a map has %d octets behind its values" % (len(octets) - at))
    return table


def list_of(octets, exact, depth):
    """A list out of its octets."""
    items = []
    at = 4
    for _ in range(count_of("list", octets)):
        item, at = typed(octets, at, exact, depth + 1)
        items.append(item)
    if octets and at != len(octets):
        bad("a list has %d octets behind its values" % (len(octets) - at))
    return items


def array_of(octets, exact, depth):
    """An array out of its octets, as a list."""
    if not octets:
        return []
    if len(octets) < 5:
        bad("an array of %d octets" % len(octets))
    name = _BY_CODE.get(octets[0])
    if name is None:
        bad("unknown type 0x%02x" % octets[0])
    if depth >= DEPTH_MAX:
        bad("a value more than %d levels deep" % DEPTH_MAX)
    count = struct.unpack_from(">I", octets, 1)[0]
    if count > (VOIDS_MAX if name in ("void", "bit") else len(octets) - 5):
        bad("an array of %d values in %d octets" % (count, len(octets) - 5))
    items = []
    at = 5
    for _ in range(count):
        value, at = octets_of(name, octets, at, len(octets))
        items.append(value_of(name, value, exact, depth + 1))
    if at != len(octets):
        bad("an array has %d octets behind its values" % (len(octets) - at))
    return items


def set_of(octets):
    """A sequence-set: [(first, last)] of serial numbers, in the order in which they stand."""
    if len(octets) & 7:
        bad("a sequence-set of %d octets" % len(octets))
    ranges = []
    for at in range(0, len(octets), 8):
        first, last = struct.unpack_from(">II", octets, at)
        if (last - first) & 0xFFFFFFFF > 0x7FFFFFFF:
            bad("a sequence-set with a range from %d to %d" % (first, last))
        ranges.append((first, last))
    return ranges


# Writing


def write(name, value):
    """A field's value of this type as octets. Raises struct.error for a number that the type does not have, ValueError for what is too
    long."""
    if name in _FORMS:
        return struct.pack(_FORMS[name], value)
    if name[-2:] == "[]":
        octets = array_octets(name[:-2], value)
        name = "array"
    else:
        octets = octets_for(name, value)
    variable = _BY_NAME[name][1]
    if not variable:
        return octets
    if len(octets) >> 8 * variable:
        raise ValueError("a %s of %d octets" % (name, len(octets)))
    return struct.pack(_SIZES[variable], len(octets)) + octets


def octets_for(name, value):
    """The octets of a value behind those of its size."""
    if name in _FORMS:
        return struct.pack(_FORMS[name], value)
    if name == "boolean":
        return b"\x01" if value else b"\x00"
    if name == "map":
        parts = [write("str8", key) + typed_octets(value[key]) for key in value]
        return struct.pack(">I", len(parts)) + b"".join(parts)
    if name == "list":
        return struct.pack(">I", len(value)) + b"".join([typed_octets(each) for each in value])
    if name == "sequence-set":
        return b"".join([struct.pack(">II", first, last) for first, last in value])
    return value.encode("utf-8") if isinstance(value, str) else value


def array_octets(name, values):
    """The octets of an array of values of one type."""
    return struct.pack(">BI", _CODES[name], len(values)) + b"".join([write(name, each) for each in values])


def typed_octets(value):
    """A value as families share it (core/message/README.md), behind the octet of its type."""
    name, value = type_of(value)
    return bytes((_CODES[name],)) + write(name, value)


def type_of(value):
    """(type, value as `write` takes it) for a value as families share it."""
    if value is None:
        return "void", b""
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, tuple):
        letter, value = value
        if letter == "T":
            return "datetime", min(value, LONG_MAX)
        if letter == "d":
            return "double", value
        if letter in _OF_LETTERS:
            return _OF_LETTERS[letter], value
        if letter == "c":
            return "char-utf32", ord(value)
    if isinstance(value, int):
        return "int64", value
    if isinstance(value, float):
        return "double", value
    if isinstance(value, str):
        octets = value.encode("utf-8")
        return ("str16", octets) if len(octets) <= 0xFFFF else ("vbin32", octets)
    if isinstance(value, dict):
        return "map", value
    if isinstance(value, list):
        return "list", value
    return "vbin32", value
