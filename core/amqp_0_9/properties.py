"""Properties of class basic (0-9-1 section 4.2.6.1): flags and property list, as in a content header after the body size.

    short flags (bit 15 = first property ... bit 0 = another flags word follows) | the properties that are set, in order

The broker keeps these octets as the publisher sent them; they are read only where a decision needs them,
and what the broker has to say of a message is put over them when they are delivered (`merge`).
"""

import struct

from ..errors import SYNTAX_ERROR, ProtocolError
from . import field_table
from .spec_0_9_1 import PROPERTIES

_SIZES = {"o": 1, "L": 8}


def check(buffer, at, end):
    """Walk the properties between `at` and `end`: the headers (a dict), or None where there are none.

    Anything that does not fit to the last octet is ProtocolError(SYNTAX_ERROR).
    """
    return walk(buffer, at, end, None)


def decode(buffer, at, end):
    """The properties as a dict by name: str for short strings, int for numbers, dict for headers."""
    named: dict = {}
    walk(buffer, at, end, named)
    return named


def decode_all(octets):
    """The properties that are all of `octets`, as `decode` gives them."""
    return decode(octets, 0, len(octets))


def field_in(octets, name):
    """One property of those that are all of `octets`, by its name; None: there is none."""
    named: dict = {}
    walk(octets, 0, len(octets), named, name)
    return named.get(name)


def header(octets, name):
    """One header in properties (bytes) that `check` has walked, by its name; None: there is none. Values of others are not decoded."""
    if not octets[0] & 0x20 or name.encode("utf-8") not in octets:
        return None
    sought = field_table.shortstr(name)
    at = headers_at(octets)
    end = at + 4 + field_table.size_at(octets, at, len(octets))
    at += 4
    item = None
    while at < end:
        behind = at + 1 + octets[at]
        if octets[at:behind] == sought:
            item, at = field_table.value(octets, behind, end, 1)
        else:
            at = field_table.behind(octets, behind, end)
    return item


def headers_at(octets):
    """Where the size of the headers stands in properties, or would stand: behind content-type and content-encoding."""
    at = 2
    for bit in (0x80, 0x40):
        if octets[0] & bit:
            at += 1 + octets[at]
    return at


def walk(buffer, at, end, named, only=None):
    """One pass over flags and list: the headers, or None; fills `named` unless it is None. `only`: the one property to put there."""
    if at + 2 > end:
        bad("a content header ends inside its property flags")
    flags = buffer[at] << 8 | buffer[at + 1]
    if flags & 3:
        bad("property flags 0x%04x name properties that class basic does not have" % flags)
    at += 2
    mask = 0x8000
    headers = None
    for name, code in PROPERTIES:
        if flags & mask:
            size = size_of(name, code, buffer, at, end)
            if named is not None:
                if only is None or name == only:
                    named[name] = item_at(code, buffer, at, size)
            elif code == "F":
                headers = field_table.pairs(buffer, at + 4, at + size, 1)
            at += size
        mask >>= 1
    if at != end:
        bad("a content header has %d octets behind its last property" % (end - at))
    return headers


def size_of(name, code, buffer, at, end):
    """Octets of the property at `at`, checked against `end`."""
    if code == "S":
        size = 1 + buffer[at] if at < end else 1
    elif code == "F":
        size = 4 + field_table.size_at(buffer, at, end)
    else:
        size = _SIZES[code]
    if at + size > end:
        bad("a content header ends inside the property " + name.replace("_", "-"))
    return size


def item_at(code, buffer, at, size):
    """The value of a property whose size is known to fit."""
    if code == "S":
        return field_table.text_of(bytes(buffer[at + 1 : at + size]))
    if code == "F":
        return field_table.pairs(buffer, at + 4, at + size, 1)
    return buffer[at] if code == "o" else struct.unpack_from(">Q", buffer, at)[0]


def encode(given):
    """A dict by name (as `decode` gives) to flags and list. Raises KeyError for an unknown name."""
    flags = 0
    mask = 0x8000
    parts = [b""]
    left = len(given)
    for name, code in PROPERTIES:
        item = given.get(name)
        if name in given:
            left -= 1
        if item is not None:
            flags |= mask
            parts.append(encode_item(code, item))
        mask >>= 1
    if left:
        raise KeyError(
            "class basic has no property among " + ", ".join([name for name in given if name not in [row[0] for row in PROPERTIES]])
        )
    parts[0] = struct.pack(">H", flags)
    return b"".join(parts)


def encode_item(code, item):
    """One property value."""
    if code == "S":
        return field_table.shortstr(item)
    if code == "F":
        return field_table.encode(item)
    return struct.pack(">B" if code == "o" else ">Q", item)


def bad(text):
    """Raise the syntax error of section 4.2.6.1."""
    raise ProtocolError(SYNTAX_ERROR, text)


def with_header(octets, pair):
    """Properties (bytes) with one more pair (bytes, encoded) at the end of their headers table."""
    flags = octets[0] << 8 | octets[1]
    rest = at = headers_at(octets)
    size = 0
    if flags & 0x2000:
        size = struct.unpack_from(">I", octets, at)[0]
        rest = at + 4 + size
    return b"".join(
        (
            struct.pack(">H", flags | 0x2000),
            octets[2:at],
            struct.pack(">I", size + len(pair)),
            octets[rest - size : rest] if size else b"",
            pair,
            octets[rest:],
        )
    )


def merge(octets, annotations):
    """Properties (bytes) with annotations (core/message/annotations.py) over them.

    Everything else stays octet for octet as its publisher sent it.
    """
    from ..message.annotations import GONE  # a client merges nothing, and is without them

    kept = {}
    flags = octets[0] << 8 | octets[1]
    at = 2
    mask = 0x8000
    for name, code in PROPERTIES:
        if flags & mask:
            size = size_of(name, code, octets, at, len(octets))
            kept[name] = octets[at : at + size]
            at += size
        mask >>= 1
    headers = annotations.get("headers")
    if headers:
        pairs = other_pairs(kept.get("headers", b""), headers)
        pairs += [field_table.shortstr(name) + field_table.encode_value(headers[name]) for name in headers if headers[name] is not GONE]
        if pairs or "headers" in kept:
            kept["headers"] = field_table.sized(b"", b"".join(pairs))
    flags = 0
    mask = 0x8000
    parts = [b""]
    for name, code in PROPERTIES:
        item = kept.get(name)
        if name in annotations and code != "F":
            item = None if annotations[name] is GONE else encode_item(code, annotations[name])
        if item is not None:
            flags |= mask
            parts.append(item)
        mask >>= 1
    parts[0] = struct.pack(">H", flags)
    return b"".join(parts)


def other_pairs(table, names):
    """The encoded pairs of a table (with its size; may be empty) whose names are not in `names`."""
    pairs = []
    at = 4
    while at < len(table):
        start = at
        name = field_table.text_of(table[at + 1 : at + 1 + table[at]])
        at = field_table.behind(table, at + 1 + table[at], len(table))
        if name not in names:
            pairs.append(table[start:at])
    return pairs
