"""CBOR (RFC 8949) to Python values: what sensors' SenML needs, and a clear refusal of everything else.

int, float, str, bytes, list, dict, True, False, None; tags: 2 and 3 (big numbers), 4 and 5 (decimal fractions, big floats), others are
passed over. Indefinite lengths are read.
Laws: every octet is used or it is a CborError; depth and sizes are checked before anything is made.
"""
import struct

DEPTH_MAX = 16
_SIZES = {24: ">B", 25: ">H", 26: ">I", 27: ">Q"}
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}
_BREAK = object()


class CborError(ValueError):
    """The text is the reason."""


def loads(octets):
    """The one value that is all of `octets`. Raises CborError."""
    try:
        value, at = _item(octets, 0, 0)
    except (IndexError, struct.error):
        raise CborError("CBOR that ends too early") from None
    if value is _BREAK or at != len(octets):
        raise CborError("CBOR with octets behind its end")
    return value


def _item(octets, at, depth):
    if depth > DEPTH_MAX:
        raise CborError(f"CBOR more than {DEPTH_MAX} levels deep")
    first = octets[at]
    kind, short, at = first >> 5, first & 31, at + 1
    if kind == 7:
        return _simple(octets, at, short)
    if short == 31 and kind in (2, 3, 4, 5):
        return _indefinite(octets, at, kind, depth)
    number, at = _number(octets, at, short)
    if kind < 2:
        return (number if kind == 0 else -1 - number), at
    if kind < 4:
        if number > len(octets) - at:
            raise CborError("CBOR that ends too early")
        return _string(octets[at:at + number], kind), at + number
    if kind == 6:
        value, at = _item(octets, at, depth + 1)
        return _tagged(number, value), at
    if number * (kind - 3) > len(octets) - at:
        raise CborError("CBOR that ends too early")
    values = []
    for _ in range(number * (kind - 3)):
        value, at = _item(octets, at, depth + 1)
        values.append(_not_break(value))
    return (values if kind == 4 else _map(values)), at


def _number(octets, at, short):
    if short < 24:
        return short, at
    if short not in _SIZES:
        raise CborError("CBOR with a reserved length")
    form = _SIZES[short]
    return struct.unpack_from(form, octets, at)[0], at + struct.calcsize(form)


def _simple(octets, at, short):
    if short in _FLOATS:
        form = _FLOATS[short]
        return struct.unpack_from(form, octets, at)[0], at + struct.calcsize(form)
    if short == 31:
        return _BREAK, at
    if short not in (20, 21, 22, 23):
        raise CborError("CBOR with an unknown simple value")
    return {20: False, 21: True}.get(short), at


def _string(octets, kind):
    if kind == 2:
        return bytes(octets)
    try:
        return bytes(octets).decode("utf-8")
    except UnicodeDecodeError:
        raise CborError("CBOR text that is not UTF-8") from None


def _indefinite(octets, at, kind, depth):
    values = []
    while True:
        value, at = _item(octets, at, depth + 1)
        if value is _BREAK:
            break
        values.append(value)
    if kind in (4, 5):
        return (values if kind == 4 else _map(values)), at
    if not all(isinstance(value, bytes if kind == 2 else str) for value in values):
        raise CborError("a CBOR string of pieces that are none")
    return (b"" if kind == 2 else "").join(values), at


def _map(values):
    if len(values) % 2:
        raise CborError("a CBOR map with a name and no value")
    try:
        return dict(zip(values[::2], values[1::2]))
    except TypeError:
        raise CborError("a CBOR map with a name that is neither text nor number") from None


def _not_break(value):
    if value is _BREAK:
        raise CborError("a CBOR break where none belongs")
    return value


def _tagged(tag, value):
    if tag in (2, 3) and isinstance(value, bytes):
        number = int.from_bytes(value, "big")
        return number if tag == 2 else -1 - number
    if tag in (4, 5) and isinstance(value, list) and len(value) == 2 and all(type(part) is int for part in value):
        exponent, mantissa = value
        if abs(exponent) > 400 or abs(mantissa) >= 2**64:
            raise CborError("a CBOR fraction outside what a double holds")
        try:
            return float(f"{mantissa}e{exponent}") if tag == 4 else mantissa * 2.0 ** exponent
        except OverflowError:
            raise CborError("a CBOR fraction outside what a double holds") from None
    return value
