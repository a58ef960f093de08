"""Values of AMQP 1.0 (part 1, Types): every primitive in every encoding, described values, arrays of any element.

    value = constructor data          constructor = code | 0x00 descriptor constructor        (section 1.2)

Values decode to None, bool, int (long), float (double), str (string), bytes (binary), list and dict (map). What has no type of its own in
Python is a tuple that begins with the name of its type, so that it is written as it was read: ("uint", 5), ("symbol", "amqp:open:list"),
("timestamp", milliseconds), ("uuid", 16 octets), ("char", "x"), ("decimal64", 8 octets), ("described", descriptor, value),
("array", name, [values without the tuple]); an array of described values has ("described", descriptor, name) in the place of the name.
A map's key that Python would take for another one is a tuple too: ("boolean", True) and ("double", 1.0) beside 1.

Values are checked to the last octet: what does not fit is a ProtocolError, amqp:decode-error. Nothing nests deeper than DEPTH_MAX, and
nothing is made that is larger than its octets, times a factor: an array of elements that have none is bounded by EMPTY_MAX.
"""

import struct

from ..errors import SYNTAX_ERROR, ProtocolError
from ..shim import const
from .spec_1_0 import PRIMITIVES

DEPTH_MAX = const(16)  # levels of lists, maps, arrays and descriptors
VALUES_MAX = const(20480)  # values in a performative: each takes up to a microsecond
EMPTY_MAX = const(1024)  # elements of an array whose elements have no octets: true, false, null, uint 0, empty lists

_DESCRIBED = const(0x00)
_SMALL_ULONG = const(0x53)
_BY_CODE = {code: (name, category, width) for code, name, category, width in PRIMITIVES}
_FIXED = {
    "ubyte": ">B",
    "ushort": ">H",
    "uint": ">I",
    "ulong": ">Q",
    "byte": ">b",
    "short": ">h",
    "int": ">i",
    "long": ">q",
    "float": ">f",
    "double": ">d",
    "timestamp": ">q",
}
_SMALL = {"uint": ">B", "ulong": ">B", "int": ">b", "long": ">b"}  # the encodings of one octet
_WIDTHS = (0, 0, 0, 0, 0, 1, 2, 4, 8, 16)  # octets of values, by the first half of their constructors (section 1.2)
_NOTHING = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0}
_CODES: "dict" = {}  # name of a type that was written: its (width, code)s, the smallest first
NATIVE = ("null", "boolean", "long", "double", "string", "binary", "list", "map", "array")


def bad(text):
    """Raise the error of a value that cannot be read."""
    raise ProtocolError(SYNTAX_ERROR, text)


# Reading


def decode(buffer, at, end, depth=1):
    """The value whose constructor stands at `at` of `buffer` (bytes-like, read up to `end`): (value, position behind it)."""
    if at < end and depth <= DEPTH_MAX and buffer[at] in _BY_CODE:  # as constructor has it: a map may have thousands of them
        type_, at = buffer[at], at + 1
    else:
        type_, at = constructor(buffer, at, end, depth)
    return wrapped(type_, buffer, at, end, depth)


def constructor(buffer, at, end, depth):
    """A code, or ("described", descriptor, code) of any depth up to DEPTH_MAX: (it, position behind it)."""
    if depth > DEPTH_MAX:
        bad("a value more than %d levels deep" % DEPTH_MAX)
    if at >= end:
        bad("a value is missing: the octets end where its constructor would stand")
    code = buffer[at]
    at += 1
    if code == _DESCRIBED:
        if depth < DEPTH_MAX and end - at > 2 and buffer[at] == _SMALL_ULONG and buffer[at + 2] in _BY_CODE:  # nearly all: without calls
            return ("described", ("ulong", buffer[at + 1]), buffer[at + 2]), at + 3
        descriptor, at = decode(buffer, at, end, depth + 1)
        code, at = constructor(buffer, at, end, depth + 1)
        return ("described", descriptor, code), at
    if code not in _BY_CODE:
        bad("unknown constructor octet 0x%02x" % code)
    return code, at


def wrapped(type_, buffer, at, end, depth):
    """The data of a constructor, in the tuple that names what Python has no type for: (value, position behind it)."""
    if isinstance(type_, tuple):
        value, at = wrapped(type_[2], buffer, at, end, depth + 1)
        return ("described", type_[1], value), at
    value, at = data(type_, buffer, at, end, depth)
    name = _BY_CODE[type_][0]
    return (value if name in NATIVE else (name, value)), at


def data(code, buffer, at, end, depth):
    """The data behind a primitive's code: (value without a tuple, position behind it)."""
    name, category, width = _BY_CODE[code]
    if category == "fixed":
        if width == 0:
            return ([] if name == "list" else _NOTHING[code]), at
        if width > end - at:
            bad("a %s of %d octets where %d are left" % (name, width, end - at))
        return fixed(code, name, width, buffer, at), at + width
    size, at = number(name, width, buffer, at, end)
    if size > end - at:
        bad("a %s of %d octets where %d are left" % (name, size, end - at))
    end = at + size
    if category == "variable":
        octets = bytes(buffer[at:end])
        return (octets if name == "binary" else text_of(name, octets)), end
    count, at = number(name, width, buffer, at, end)
    if category == "array":
        return array(buffer, at, end, count, depth), end
    if count > end - at:
        bad("a %s of %d values in %d octets" % (name, count, end - at))
    items, at = several(buffer, at, end, count, depth + 1)
    if at != end:
        bad("a %s has %d octets behind its %d values" % (name, end - at, count))
    return (items if name == "list" else pairs(items)), end


def number(name, width, buffer, at, end):
    """A size or a count of `width` octets: (it, position behind it)."""
    if width > end - at:
        bad("a %s ends inside its size" % name)
    return (buffer[at] if width == 1 else struct.unpack_from(">I", buffer, at)[0]), at + width


def fixed(code, name, width, buffer, at):
    """The value of an encoding of fixed width, 1 or more, whose octets are there."""
    if name == "boolean":
        if buffer[at] > 1:
            bad("a boolean of octet 0x%02x" % buffer[at])
        return buffer[at] == 1
    if name == "char":
        return character(struct.unpack_from(">I", buffer, at)[0])
    if name not in _FIXED:
        return bytes(buffer[at : at + width])  # decimals and uuid
    return struct.unpack_from(_SMALL[name] if width == 1 and name in _SMALL else _FIXED[name], buffer, at)[0]


def character(point):
    """A char by its code point (section 1.6.16)."""
    if point > 0x10FFFF or 0xD800 <= point < 0xE000:
        bad("a char of 0x%x, which is no character" % point)
    return chr(point)


def text_of(name, octets):
    """A string, which is UTF-8, or a symbol, which is ASCII (sections 1.6.20, 1.6.21)."""
    try:
        text = str(octets, "utf-8")
    except UnicodeError:
        bad("a %s is not UTF-8" % name)
    if name == "symbol" and len(octets) and max(octets) > 127:
        bad("a symbol is not ASCII")
    return text


def several(buffer, at, end, count, depth):
    """`count` values one behind the other: (list, position behind them)."""
    items = []
    for _ in range(count):
        item, at = decode(buffer, at, end, depth)
        items.append(item)
    return items, at


def pairs(items):
    """A map of keys and values in turns (section 1.6.23): no key comes twice."""
    if len(items) & 1:
        bad("a map of %d values: a key has none" % len(items))
    table: "dict" = {}
    for place in range(0, len(items), 2):
        key = items[place]
        if isinstance(key, bool):
            key = ("boolean", key)
        elif isinstance(key, float):
            key = ("double", key)
        count = len(table)
        try:
            table[key] = items[place + 1]
        except TypeError:
            bad("a map's key is a list, a map or an array, which is not served")
        if len(table) == count:
            bad("a map has the key %r twice" % (key,))
    return table


def array(buffer, at, end, count, depth):
    """The elements of an array between their constructor at `at` and `end`, which they fill: ("array", name, values)."""
    type_, at = constructor(buffer, at, end, depth + 1)
    code = type_
    while isinstance(code, tuple):
        code = code[2]
    if count > (end - at if _BY_CODE[code][2] else EMPTY_MAX):
        bad("an array of %d elements in %d octets" % (count, end - at))
    values = []
    for _ in range(count):
        value, at = data(code, buffer, at, end, depth + 1)
        values.append(value)
    if at != end:
        bad("an array has %d octets behind its %d elements" % (end - at, count))
    return ("array", named(type_), values)


def named(type_):
    """A constructor with the name of its type in the place of its code."""
    return ("described", type_[1], named(type_[2])) if isinstance(type_, tuple) else _BY_CODE[type_][0]


def count(buffer, at, end, most):
    """How many values there are between `at` and `end`, with those within others, or more than `most`: a walk that makes none of them. What
    cannot be read ends it. The mark of a described value counts too; arrays whose elements are not of fixed width or texts count as their
    octets."""
    total = 0
    while at < end and total <= most:
        code = buffer[at]
        at += 1
        total += 1
        group = code >> 4
        if group < 10:
            at += _WIDTHS[group]
            continue
        width = 4 if group & 1 else 1
        if end - at < 2 * width:
            break
        size = struct.unpack_from(">I", buffer, at)[0] if width == 4 else buffer[at]
        if group < 12:
            at += width + size
        elif group < 14:
            at += 2 * width
        else:
            place = at + 2 * width
            is_plain = place < end and 0x40 <= buffer[place] < 0xC0
            total += (struct.unpack_from(">I", buffer, at + 4)[0] if width == 4 else buffer[at + 1]) if is_plain else size
            at += width + size
    return total


def end_of_list(buffer, at, end):
    """The position behind a described list at `at`, whose descriptor is a ulong or a symbol; `end`: it is none, or does not end before."""
    if end - at < 3 or buffer[at] != _DESCRIBED or buffer[at + 1] not in (_SMALL_ULONG, 0x80, 0xA3):
        return end
    at += 3 if buffer[at + 1] == _SMALL_ULONG else 10 if buffer[at + 1] == 0x80 else 3 + buffer[at + 2]
    if at + 5 > end or buffer[at] not in (0xC0, 0xD0):
        return end
    size = 2 + buffer[at + 1] if buffer[at] == 0xC0 else 5 + struct.unpack_from(">I", buffer, at + 1)[0]
    return min(at + size, end)


# Writing


def encode(value):
    """A value with its constructor, in the smallest encoding. Raises ValueError for what AMQP 1.0 cannot hold."""
    if isinstance(value, str):  # the commonest first
        octets = value.encode("utf-8")
        if len(octets) < 256:
            return bytes((0xA1, len(octets))) + octets
    if value is None:
        return b"\x40"
    if isinstance(value, tuple) and value[0] == "described":
        return b"\x00" + encode(value[1]) + encode(value[2])
    if not isinstance(value, tuple):
        name, plain = type_of(value), value
    else:
        name, plain = value[0], value if value[0] == "array" else value[1]
    if name == "boolean":
        return b"\x41" if plain else b"\x42"
    if name in ("uint", "ulong") and plain == 0:
        return b"\x43" if name == "uint" else b"\x44"
    if name == "list" and not plain:
        return b"\x45"
    code, octets = elements(name, (plain,))
    return bytes((code,)) + octets


def name_of(value):
    """The name of a value's type."""
    return value[0] if isinstance(value, tuple) else type_of(value)


def type_of(value):
    """The type of what stands without a tuple."""
    if isinstance(value, str):
        return "string"
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "long"), (float, "double"), (list, "list"), (dict, "map")):
        if isinstance(value, kind):
            return name
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "binary"
    raise ValueError("AMQP 1.0 cannot hold %r" % (value,))


def elements(name, values):
    """Values of one type: (the code of the smallest encoding with octets of its own that holds each, their data one behind the other)."""
    codes = _CODES.get(name)
    if codes is None:
        codes = sorted([(width, code) for code, each, _, width in PRIMITIVES if each == name and (width or name == "null")])
        if not codes:
            raise ValueError("AMQP 1.0 has no type %r" % (name,))
        _CODES[name] = codes
    category = _BY_CODE[codes[0][1]][1]
    if category == "fixed":
        if name in _SMALL:
            least, most = (0, 255) if name[0] == "u" else (-128, 127)
            width, code = codes[0 if all(least <= value <= most for value in values) else 1]
        else:
            width, code = codes[0]
        return code, b"".join([fixed_octets(name, width, value) for value in values])
    if category == "variable":
        datas = [variable_octets(name, value) for value in values]
        width, code = codes[0 if all(len(octets) <= 255 for octets in datas) else 1]
        return code, b"".join([struct.pack(">I" if width == 4 else ">B", len(octets)) + octets for octets in datas])
    contents = [content(name, value) for value in values]
    width, code = codes[0 if all(count <= 255 and len(octets) <= 254 for count, octets in contents) else 1]
    return code, b"".join([struct.pack(">II" if width == 4 else ">BB", len(octets) + width, count) + octets for count, octets in contents])


def content(name, value):
    """(count, octets) of a list, a map or an array, the array's with its constructor."""
    if name == "list":
        return len(value), b"".join([encode(each) for each in value])
    if name == "map":
        return 2 * len(value), b"".join([encode(key) + encode(value[key]) for key in value])
    _, type_, values = value
    head = b""
    while isinstance(type_, tuple):
        head += b"\x00" + encode(type_[1])
        type_ = type_[2]
    code, octets = elements(type_, values)
    return len(values), head + bytes((code,)) + octets


def variable_octets(name, value):
    """The octets of a binary, a string or a symbol."""
    octets = bytes(value) if name == "binary" else value.encode("utf-8")
    if name == "symbol" and len(octets) != len(value):
        raise ValueError("a symbol is ASCII: %r" % (value,))
    return octets


def fixed_octets(name, width, value):
    """The octets of an encoding of fixed width. Raises ValueError for a number that does not fit."""
    if width == 0:
        return b""
    if name == "boolean":
        return b"\x01" if value else b"\x00"
    if name == "char":
        return struct.pack(">I", ord(value))
    if name not in _FIXED:
        if len(value) != width:
            raise ValueError("a %s has %d octets: %r" % (name, width, value))
        return bytes(value)
    if name not in ("float", "double"):
        # MicroPython's struct cuts a number that does not fit.
        least = 0 if name[0] == "u" else -1 << 8 * width - 1
        if not least <= value < least + (1 << 8 * width):
            raise ValueError("a %s of %d octets cannot hold %d" % (name, width, value))
    return struct.pack(_SMALL[name] if width == 1 and name in _SMALL else _FIXED[name], value)
