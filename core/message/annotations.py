"""The broker's additions to a message, apart from its publisher's octets: how a dead letter died, which keys receivers must not see.

Annotations are a dict of what receivers get instead of the publisher's properties, by their names; `headers` has a dict of its own. GONE in
place of a value: receivers get none. In a message they stand behind its route, where its kind has KIND_ANNOTATED (core/memory/layout.py):

    short size of the pairs | pairs: octet size of a name, the name in UTF-8, value
    value: a letter, and for n (none), t (true), f (false), g (gone) nothing behind it; for i (whole number), l (one that has 64 bits on the
    wire, too), T (seconds since 1970), d (double) 8 octets; for S (text, perhaps not UTF-8), x (octets), a (list), m (pairs) short size,
    octets

Numbers are big-endian. Values are those that families share (README.md): also ("T", seconds), ("l", number) and ("S", octets).
"""

import struct

from ..shim import const

SIZE_MAX = const(65535)  # octets of pairs
DEPTH_MAX = const(16)
GONE = ()
FAILED = "failed"  # a number: how many deliveries had failed when the dead letter was made (AMQP 1.0's delivery-count has them)

_FORMS = {"i": ">q", "l": ">q", "T": ">Q", "d": ">d"}
_ALONE = {"n": None, "t": True, "f": False, "g": GONE}


def write(annotations):
    """Annotations as octets. Raises ValueError for more than SIZE_MAX."""
    octets = pairs_of(annotations)
    if len(octets) > SIZE_MAX:
        raise ValueError("annotations of %d octets" % len(octets))
    return short(len(octets)) + octets


def short(size):
    """A size in two octets; a larger part makes the whole too large."""
    return bytes((size >> 8 & 255, size & 255))


def pairs_of(table):
    """The pairs of a dict as octets."""
    parts = []
    for name in table:
        octets = name.encode("utf-8")
        parts.append(bytes((len(octets),)) + octets + value_of(table[name]))
    return b"".join(parts)


def value_of(item):
    """A value as octets."""
    if isinstance(item, str):
        letter, item = "S", item.encode("utf-8")
    elif isinstance(item, tuple) and item:
        letter, item = item
    elif isinstance(item, list):
        letter, item = "a", b"".join([value_of(each) for each in item])
    elif isinstance(item, dict):
        letter, item = "m", pairs_of(item)
    elif isinstance(item, bytes):
        letter = "x"
    elif isinstance(item, float):
        letter = "d"
    else:
        for letter in _ALONE:
            if item is _ALONE[letter]:
                return letter.encode()
        letter = "i"
    if letter in _FORMS:
        return letter.encode() + struct.pack(_FORMS[letter], item)
    return letter.encode() + short(len(item)) + item


def read(octets, exact=False):
    """The inverse of `write`; numbers of 64 bits and texts that are not UTF-8 are an int and bytes unless `exact`. Octets that `write`
    never gave are ValueError, IndexError or struct.error."""
    if len(octets) != 2 + (octets[0] << 8 | octets[1]):
        raise ValueError("annotations whose size is another")
    return pairs_at(octets, 2, len(octets), exact, DEPTH_MAX)


def pairs_at(octets, at, end, exact, depth):
    """The dict between `at` and `end`."""
    table = {}
    while at < end:
        behind = at + 1 + octets[at]
        name = str(octets[at + 1 : behind], "utf-8")
        table[name], at = value_at(octets, behind, exact, depth)
    return checked(table, at == end and depth > 0)


def value_at(octets, at, exact, depth):
    """(the value at `at`, the position behind it)."""
    letter = chr(octets[at])
    at += 1
    if letter in _ALONE:
        return _ALONE[letter], at
    if letter in _FORMS:
        item = struct.unpack_from(_FORMS[letter], octets, at)[0]
        return (letter, item) if letter == "T" or exact and letter == "l" else item, at + 8
    end = at + 2 + (octets[at] << 8 | octets[at + 1])
    at += 2
    if letter == "m":
        return pairs_at(octets, at, end, exact, depth - 1), end
    if letter == "a":
        items = []
        while at < end:
            item, at = value_at(octets, at, exact, depth - 1)
            items.append(item)
        return checked(items, at == end and depth > 0), end
    item = octets[at:end]
    if letter == "S":
        try:
            item = str(item, "utf-8")
        except UnicodeError:
            item = (letter, item) if exact else item
    return checked(item, letter in "Sx" and end <= len(octets)), end


def checked(value, is_valid):
    """Check that `write` can have written a value, and return it."""
    if not is_valid:
        raise ValueError("annotations that do not end where they say")
    return value


def put_over(properties, annotations):
    """Change properties (a dict by name, whose headers are a dict) to what receivers get."""
    headers = properties.get("headers")
    changes = dict(annotations)
    pairs = changes.pop("headers", None)
    change(properties, changes)
    if pairs:
        changed = change(headers or {}, pairs)
        if changed or headers is not None:
            properties["headers"] = changed
    return properties


def change(table, changes):
    """Set the names in `changes`; remove those whose value is GONE."""
    for name in changes:
        if changes[name] is not GONE:
            table[name] = changes[name]
        elif name in table:
            del table[name]
    return table
