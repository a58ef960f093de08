"""The sections of a message of AMQP 1.0 (section 3.2), read no further than the broker has to know.

    header | delivery-annotations | message-annotations | properties | application-properties | body | footer, each at most once, in order
    body = data, one or more | amqp-sequence, one or more | amqp-value          (a message without any body is taken as well)
    section = 0x00 descriptor value

The store has a message in two parts, both octet for octet its publisher's, whose sum is the message. The *properties part* goes up to the
body, and where the body begins with a data section it has the head of that section too (descriptor, constructor, size). The *body part* is
what follows. So the body part of a message with one data section and nothing behind it is its payload: this is so exactly where the
properties part ends with a data head whose size is that of the body part (`data_head`).
"""

import struct

from ..errors import CONTENT_TOO_LARGE, SYNTAX_ERROR, ProtocolError
from ..memory import layout
from ..message.formats import AMQP_1_0
from ..shim import const
from . import composites, types
from .spec_1_0 import PRIMITIVES

if False:  # for the type checker alone
    from typing import Any

HEADER = const(0x70)
DELIVERY_ANNOTATIONS = const(0x71)
MESSAGE_ANNOTATIONS = const(0x72)
PROPERTIES = const(0x73)
APPLICATION_PROPERTIES = const(0x74)
DATA = const(0x75)
SEQUENCE = const(0x76)
VALUE = const(0x77)
FOOTER = const(0x78)

NAMES = {
    0x70: ("header", "list"),
    0x71: ("delivery-annotations", "map"),
    0x72: ("message-annotations", "map"),
    0x73: ("properties", "list"),
    0x74: ("application-properties", "map"),
    0x75: ("data", "binary"),
    0x76: ("amqp-sequence", "list"),
    0x77: ("amqp-value", "*"),
    0x78: ("footer", "map"),
}
_BY_SYMBOL = {"amqp:%s:%s" % NAMES[code]: code for code in NAMES}
_SYMBOL_MAX = const(64)  # octets of a section's descriptor
VALUES_MAX = const(4096)  # values in a section before the body: rules read them for each message
BY_CODE = {code: (name, category, width) for code, name, category, width in PRIMITIVES}


def bad(text):
    """Raise the error of a message that cannot be read."""
    raise ProtocolError(SYNTAX_ERROR, text)


def split(octets, at, end, whole=True, size_max=0):
    """Where the properties part of the message that begins at `at` of `octets` ends: (position of the body part, kind, lifetime), the last
    two as layout.MESSAGE_KIND and MESSAGE_LIFETIME.

    None: it does not end before `end`; so never when `whole`, which says that the message ends at `end`. `size_max`: octets that the
    properties part may have, 0: any. Raises ProtocolError for sections out of order, doubled or malformed, and for what is too large. The
    body is checked, too, when `whole`; else it is body.begun's to check.
    """
    start = at
    kind = AMQP_1_0
    lifetime = layout.NONE
    last = 0
    is_at_body = whole
    part: "Any" = None
    while at < end:
        is_at_body = False
        part = descriptor(octets, at, end)
        if part is None:
            break
        code, value = part
        check_order(code, last)
        if code > DATA:
            is_at_body = True
            break
        part = head(code, octets, value, end)
        if part is None:
            break
        behind = part[1] + part[2]
        if code == DATA:
            at = part[1]
            last = DATA
            is_at_body = True
            break
        if behind > end:
            break
        if behind - value > VALUES_MAX and types.count(octets, value, behind, VALUES_MAX) > VALUES_MAX:
            raise ProtocolError(CONTENT_TOO_LARGE, "the section %s of a message has more than %d values" % (NAMES[code][0], VALUES_MAX))
        if code == HEADER:
            kind, lifetime = described(octets, value, behind)
        else:
            check(code, octets, value, behind)
            if code == DELIVERY_ANNOTATIONS:
                kind |= layout.KIND_FOR_US
        at = behind
        last = code
        is_at_body = whole
    size = (at if is_at_body else end) - start
    if 0 < size_max < size:
        raise ProtocolError(CONTENT_TOO_LARGE, "%d octets or more before a message's body; this broker takes %d" % (size, size_max))
    if is_at_body:
        if whole:
            check_body(octets, at, end, part[2] if last == DATA else layout.NONE)
        return at, kind, lifetime
    if whole:
        bad("a message ends inside a section")
    return None


def check_body(octets, at, end, size):
    """Check a body part that is whole. `size`: what the data head in front of it tells, NONE: there is none."""
    if size == end - at or size == layout.NONE and at == end:
        return
    from .body import Body  # few messages need it

    checked = Body(size)
    checked.feed(octets, at, end)
    checked.end()


def descriptor(octets, at, end):
    """The descriptor at `at`: (code of the section, position behind it), or None where it goes on behind `end`."""
    if octets[at] != 0:
        bad("a section begins with octet 0x%02x, which begins no descriptor" % octets[at])
    if at + 3 > end:
        return None
    form = octets[at + 1]
    at += 2
    if form == 0x53:
        code = octets[at]
        at += 1
    elif form == 0x80:
        if at + 8 > end:
            return None
        code = struct.unpack_from(">Q", octets, at)[0]
        at += 8
    elif form in (0xA3, 0xB3):
        width = 1 if form == 0xA3 else 4
        if at + width > end:
            return None
        size, at = types.number("symbol", width, octets, at, end)
        if size > _SYMBOL_MAX:
            bad("a section's descriptor of %d octets" % size)
        if at + size > end:
            return None
        symbol = types.text_of("symbol", bytes(octets[at : at + size]))
        if symbol not in _BY_SYMBOL:
            bad("a message has no section %s" % composites.shown(symbol))
        return _BY_SYMBOL[symbol], at + size
    else:
        bad("a section's descriptor has the constructor 0x%02x, which is neither ulong nor symbol" % form)
    if code not in NAMES:
        bad("a message has no section with the descriptor 0x%x" % code)
    return code, at


def check_order(code, last):
    """Raise for a section at a place where it may not stand. `last`: the code of the section before it, 0: there is none."""
    if code == last:
        if code not in (DATA, SEQUENCE):
            bad("a message has two sections %s" % NAMES[code][0])
    elif code < last or last >= DATA and code != FOOTER:
        bad("the section %s stands behind %s" % (NAMES[code][0], NAMES[last][0]))


def head(code, octets, at, end):
    """The constructor at `at` of a section's value, of which octets up to `end` are there: (constructor, position behind its size, octets
    from there), or None where they end before it is known. Of all sections but amqp-value; raises for a constructor that is not the
    section's type."""
    if at >= end:
        return None
    name, type_ = NAMES[code]
    form = octets[at]
    row: "Any" = BY_CODE.get(form)
    if row is None or row[0] != type_:
        bad("the section %s is a %s, and not what the constructor 0x%02x begins" % (name, type_, form))
    at += 1
    if form == 0x45:
        return form, at, 0
    if at + row[2] > end:
        return None
    size, at = types.number(type_, row[2], octets, at, end)
    return form, at, size


def described(octets, at, end):
    """(kind, lifetime) that the header says whose list is between `at` and `end`."""
    fields = fields_of(HEADER, octets, at, end)
    kind = AMQP_1_0
    if fields["durable"]:
        kind |= layout.KIND_DURABLE
    if fields["first-acquirer"]:  # true of the first alone (section 3.2.1)
        kind |= layout.KIND_FOR_US
    if fields["priority"] is not None:
        kind |= layout.KIND_HAS_PRIORITY | fields["priority"] << layout.KIND_PRIORITY
    ttl = fields["ttl"]
    if ttl is None:
        return kind, layout.NONE
    return kind, ttl if ttl <= layout.MASK else -2 - ttl // 1000


def fields_of(code, octets, at, end):
    """The fields by name of a section that is a list (header, properties), whose list is between `at` and `end`."""
    value, _ = types.decode(octets, at, end, 2)
    pair: "Any" = composites.composite(("described", ("ulong", code), value))
    return pair[1]


def check(code, octets, at, end):
    """Check the value between `at` and `end` of a section that is no header, before the body."""
    name = NAMES[code][0]
    if code == PROPERTIES:
        fields = fields_of(code, octets, at, end)
        for field in ("message-id", "correlation-id"):
            if types.name_of(fields[field]) not in _IDENTIFIERS:
                bad("properties.%s is a message-id, and not %s" % (field, composites.shown(fields[field])))
        for field in ("to", "reply-to"):
            if types.name_of(fields[field]) not in ("null", "string"):
                bad("properties.%s is an address, and not %s" % (field, composites.shown(fields[field])))
        return
    taken = _KEYS[code == APPLICATION_PROPERTIES]
    table, _ = types.decode(octets, at, end, 2)
    for key in table:
        if types.name_of(key) not in taken:
            bad("a key of %s is a %s, and not %s" % (name, taken[0], composites.shown(key)))


_IDENTIFIERS = ("null", "string", "binary", "ulong", "uuid")
_KEYS = (("symbol", "ulong", "string"), ("string", "symbol"))  # of annotations, of application-properties; only the first is the text's own


def place_of(octets, wanted):
    """(position of the section, of its value, behind it) of a section before the body in a properties part (bytes) that was checked; None
    where it has none."""
    at, end = 0, len(octets)
    while at < end:
        code, value = descriptor(octets, at, end)
        if code > wanted or code >= DATA:
            return None
        _, start, size = head(code, octets, value, end)
        if code == wanted:
            return at, value, start + size
        at = start + size
    return None


def data_head(octets):
    """(position, size it tells) of the data head that a properties part (bytes) ends with; None where it ends with none."""
    at, end = 0, len(octets)
    while at < end:
        code, value = descriptor(octets, at, end)
        _, start, size = head(code, octets, value, end)
        if code == DATA:
            return at, size
        at = start + size
    return None


def address(octets):
    """(to, subject, user-id) of a properties part (bytes) that was checked: texts or None, bytes or None."""
    place = place_of(octets, PROPERTIES)
    if place is None:
        return None, None, None
    form, at, _ = head(PROPERTIES, octets, place[1], place[2])
    width = BY_CODE[form][2]
    count = int.from_bytes(octets[at : at + width], "big")
    at += width
    fields = [None, None, None, None]  # message-id, user-id, to, subject
    for number in range(min(count, 4)):
        fields[number], at = types.decode(octets, at, place[2])
    return fields[2], fields[3], fields[1]


def expiry(octets):
    """The absolute-expiry-time of a properties part (bytes) that was checked: milliseconds since 1970, or None."""
    place = place_of(octets, PROPERTIES)
    return None if place is None else fields_of(PROPERTIES, octets, place[1], place[2])["absolute-expiry-time"]


def copies(octets, size_max):
    """The further routing keys that a publisher gives in the annotation x-cc (RabbitMQ), for Incoming.copies. Raises ValueError for another
    value than a list of strings, or more than `size_max` octets of them."""
    place = place_of(octets, MESSAGE_ANNOTATIONS)
    if place is None:
        return b""
    keys = types.decode(octets, place[1], place[2], 2)[0].get(("symbol", "x-cc"), [])
    if not isinstance(keys, list) or [key for key in keys if not isinstance(key, str)]:
        raise ValueError("the annotation x-cc is a list of strings, and not %s" % composites.shown(keys))
    parts = []
    for key in keys:
        key = key.encode("utf-8")
        parts += [bytes((len(key) >> 8 & 255, len(key) & 255)), key]
    listed = b"".join(parts)
    if len(listed) > size_max:
        raise ValueError("x-cc has %d octets of routing keys with two for each; this broker takes %d" % (len(listed), size_max))
    return listed


def utf8(octets):
    """Octets as text without octet 0, as short strings of 0-9-1 have it; None where they are none."""
    try:
        text = str(octets, "utf-8")
    except UnicodeError:
        return None
    return None if "\x00" in text else text


def text_of(key):
    """The key of a map as text; None where it is neither string nor symbol."""
    if isinstance(key, tuple) and key[0] == "symbol":
        return key[1]
    return key if isinstance(key, str) else None
