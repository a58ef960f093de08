"""CPython's own forms of what method.py does to each argument: what a row's fields ask for is looked up once, and no argument is a call.

No board carries this file. Each function does what the one of its name there says. tests/accel/test_quicker.py holds the forms together.
"""

from struct import Struct

from . import field_table, method

_TEXT, _BITS, _TABLE, _LONG_TEXT, _NUMBER = range(5)
_NUMBERS = {code: Struct(form) for code, (_, form) in {"o": (1, ">B"), "s": (2, ">H"), "l": (4, ">I"), "L": (8, ">Q")}.items()}
_SIZES = [bytes((size,)) for size in range(256)]
_NO_PAIRS = bytes(4)
_EMPTY = Struct(">BHIIB").pack  # a whole frame without arguments: type, channel, size, class and method, end
_HEAD = Struct(">BHII").pack
# How many bits in an octet -> their values as bool, by the octet's lowest bits.
_BOOLS = [tuple([tuple([octet >> bit & 1 != 0 for bit in range(count)]) for octet in range(1 << count)]) for count in range(9)]

_rows: dict = {}  # id of a table of methods -> (the table, its rows by code)
_plans: dict = {}  # field codes -> as _plan


def _plan(fields):
    """How arguments of these field codes are read: (kind, of bits their values, of numbers their octets, how it
    is read)."""
    steps: list = []
    left = 0  # bits that the last octet of bits has place for
    for code in fields:
        if code == "b":
            if left:
                count = 8 - left + 1
                steps[-1] = (_BITS, _BOOLS[count], (1 << count) - 1)
            else:
                steps.append((_BITS, _BOOLS[1], 1))
                left = 8
            left -= 1
            continue
        left = 0
        if code in _NUMBERS:
            steps.append((_NUMBER, _NUMBERS[code].size, _NUMBERS[code].unpack_from))
        else:
            steps.append(({"S": _TEXT, "T": _LONG_TEXT}.get(code, _TABLE), code == "f", None))
    _plans[fields] = steps
    return steps


def find(methods, code):
    """See method.find."""
    known = _rows.get(id(methods))
    if known is None or known[0] is not methods:
        known = _rows[id(methods)] = methods, {row[method.CODE]: row for row in reversed(methods)}
    return known[1].get(code)


def decode(row, buffer, at, end):
    """See method.decode."""
    arguments: list = []
    fields = row[method.FIELDS]
    for kind, one, other in _plans.get(fields) or _plan(fields):
        if kind == _TEXT:
            begin = at + 1
            if at >= end:
                method.short(row)
            at = begin + buffer[at]
            if at > end:
                method.short(row)
            try:
                arguments.append(str(buffer[begin:at], "utf-8"))
            except UnicodeError:
                method.not_text(row)
        elif kind == _BITS:
            if at >= end:
                method.short(row)
            arguments += one[buffer[at] & other]
            at += 1
        elif kind == _NUMBER:
            if at + one > end:
                method.short(row)
            arguments.append(other(buffer, at)[0])
            at += one
        elif kind == _TABLE:
            if at + 4 <= end and buffer[at : at + 4] == _NO_PAIRS or one and at == end:
                arguments.append({})
                at = min(at + 4, end)
            else:
                pairs, at = field_table.decode(buffer, at, end)
                arguments.append(pairs)
        else:
            size = field_table.size_at(buffer, at, end)
            arguments.append(bytes(buffer[at + 4 : at + 4 + size]))
            at += 4 + size
    if at != end:
        method.too_many(row, end - at)
    return arguments


def encode(row, channel, arguments):
    """See method.encode."""
    fields = row[method.FIELDS]
    assert len(arguments) == len(fields), row[method.NAME]
    if not fields:
        return _EMPTY(1, channel, 4, row[method.CODE], 0xCE)
    parts = [b""]
    size = 4
    bits = count = 0
    for code, item in zip(fields, arguments):
        if code == "b":
            if count == 8:
                parts.append(_SIZES[bits])
                bits = count = 0
                size += 1
            bits |= (1 if item else 0) << count
            count += 1
            continue
        if count:
            parts.append(_SIZES[bits])
            bits = count = 0
            size += 1
        if code == "S":
            octets = item if isinstance(item, bytes) else item.encode("utf-8")
            if len(octets) > 255:
                octets = field_table.shortstr(octets)  # which says why not
            parts.append(_SIZES[len(octets)])
            size += 1
        elif code in _NUMBERS:
            octets = _NUMBERS[code].pack(item)
        else:
            octets = method.encode_field(code, item)
        parts.append(octets)
        size += len(octets)
    if count:
        parts.append(_SIZES[bits])
        size += 1
    parts[0] = _HEAD(1, channel, size, row[method.CODE])
    parts.append(b"\xce")
    return b"".join(parts)
