"""Messages for receivers of AMQP 1.0: the octets before the body part of any message of the store (sections.py), as RabbitMQ 4 maps it.

A publisher's sections are not written again where nothing more has to be said; delivery-annotations are for the next node alone (section
3.2), and end here. core/SPEC.md lists the losses of conversions.
"""

import struct

from ..broker import crossing
from ..memory import layout
from ..message import reading
from ..message.annotations import FAILED, GONE
from ..message.formats import AMQP_1_0
from . import addresses, body, composites, modified, sections, types
from .exact import ENCODED

MAP_8 = 0xC1
MAP_32 = 0xD1
CHANGED = layout.KIND_ANNOTATED | layout.KIND_FOR_US  # any of these: a receiver gets other sections than those of the publisher
TTL_MAX = 0xFFFFFFFF
MILLISECONDS_MAX = 0x7FFFFFFFFFFFFFFF


def head_for_1_0(broker, message, failed=0, noted=None):
    """The octets before the body part of a message: a receiver gets them, then layout.MESSAGE_BODY octets of the body.

    `failed`: deliveries that failed before this one, for delivery-count. `noted`: more annotations of the message, by symbol, as types.py
    has values; a stream's offset.
    """
    tables = broker.tables
    kind = tables.messages[message + layout.MESSAGE_KIND]
    if kind & layout.KIND_FORMAT != AMQP_1_0:
        return converted(broker, message, failed, noted)
    octets = tables.properties_of(message)
    passed = passed_ms(broker, message)
    if not (kind & CHANGED or failed or noted or passed):
        return octets
    given = reading.annotations_of(tables, message) if kind & layout.KIND_ANNOTATED else {}
    failed += given.get(FAILED, 0)
    changes = noted_of(given, tables.messages[message + layout.MESSAGE_ARRIVED]) if given else {}
    if noted:
        changes.update(noted)
    ttl = GONE if is_endless(broker, message) else None
    return rewritten(octets, failed, passed, ttl, changes, modified.told_in(given), bool(kind & layout.KIND_ACQUIRED))


def passed_ms(broker, message):
    """Milliseconds of its lifetime that a message has spent here: never more than is true, and up to a second less."""
    messages = broker.tables.messages
    if messages[message + layout.MESSAGE_LIFETIME] == layout.NONE:
        return 0
    return max(broker.seconds - messages[message + layout.MESSAGE_ARRIVED] - 1, 0) * 1000


def is_endless(broker, message):
    """True for a message whose publisher's ttl no longer holds: a dead letter."""
    messages = broker.tables.messages
    return messages[message + layout.MESSAGE_LIFETIME] == layout.NONE and bool(
        messages[message + layout.MESSAGE_KIND] & layout.KIND_ANNOTATED
    )


def rewritten(octets, failed, passed, ttl, changes, delivery_annotations=b"", acquired=False):
    """A properties part (bytes) as its receiver gets it. `passed`: milliseconds off its ttl; `ttl` GONE: it has none any more; `changes`:
    annotations by symbol, with values as types.py has them, GONE: none; `delivery_annotations`: the section of that name, b"": none;
    `acquired`: true where another link has had the message (section 3.2.1)."""
    at, end = 0, len(octets)
    parts = []
    kept = 0  # what is not in `parts` yet begins here
    is_header_done = not failed
    while at < end:
        code, value = sections.descriptor(octets, at, end)
        if code > sections.HEADER and not is_header_done:
            parts.append(header({}, failed, 0))
            is_header_done = True
        if code > sections.HEADER and delivery_annotations:
            parts += [octets[kept:at], delivery_annotations]
            kept = at
            delivery_annotations = b""
        if code > sections.MESSAGE_ANNOTATIONS:
            break
        _, start, size = sections.head(code, octets, value, end)
        behind = start + size
        if code == sections.HEADER:
            fields = sections.fields_of(code, octets, value, behind)
            is_header_done = True
            is_first = fields["first-acquirer"]
            fields["first-acquirer"] = is_first and not (failed or acquired)
            if fields["first-acquirer"] != is_first or failed or fields["ttl"] is not None and (passed or ttl is GONE):
                if ttl is GONE:
                    fields["ttl"] = None
                parts.append(header(fields, failed, passed))
                kept = behind
        elif code == sections.DELIVERY_ANNOTATIONS:
            parts.append(octets[kept:at])
            kept = behind
        elif changes:
            parts.append(octets[kept:at])
            parts.append(annotations(changes, octets, value, behind))
            kept = behind
            changes = None
        at = behind
    if not is_header_done:
        parts.append(header({}, failed, 0))
    if delivery_annotations:
        parts += [octets[kept:at], delivery_annotations]
        kept = at
    if changes:
        parts.append(octets[kept:at])
        parts.append(annotations(changes))
        kept = at
    if not parts:
        return octets
    parts.append(octets[kept:])
    return b"".join(parts)


def header(fields, failed, passed):
    """The section header out of its fields, as composites.py writes it."""
    durable, priority, ttl = fields.get("durable"), fields.get("priority"), fields.get("ttl")
    if ttl is not None:
        ttl = min(max(ttl - passed, 0), TTL_MAX)
    items = [
        b"\x40" if durable is None else b"\x41" if durable else b"\x42",
        b"\x40" if priority is None else bytes((0x50, priority)),
        uint(ttl),
        b"\x41" if fields.get("first-acquirer") else b"\x40",
        uint(min((fields.get("delivery-count") or 0) + failed, TTL_MAX) or None),
    ]
    while items and items[-1] == b"\x40":
        items.pop()
    if not items:
        return b"\x00\x53\x70\x45"
    octets = b"".join(items)
    return bytes((0, 0x53, sections.HEADER, 0xC0, len(octets) + 1, len(items))) + octets


def uint(value):
    """A uint, or null for None, with its constructor."""
    if value is None:
        return b"\x40"
    if value < 256:
        return bytes((0x52, value)) if value else b"\x43"
    return b"\x70" + struct.pack(">I", value)


def annotations(changes, octets=b"", at=0, end=0):
    """The section message-annotations: the pairs of the map at `at` of `octets`, octet for octet, with `changes` over them."""
    parts = []
    count = 0
    if end:
        form, at, _ = sections.head(sections.MESSAGE_ANNOTATIONS, octets, at, end)
        at += 1 if form == MAP_8 else 4
        while at < end:
            start = at
            key, at = types.decode(octets, at, end)
            _, at = types.decode(octets, at, end)
            if sections.text_of(key) not in changes:
                parts.append(octets[start:at])
                count += 2
    for name in changes:
        if changes[name] is not GONE:
            parts.append(types.encode(("symbol", name)) + types.encode(changes[name]))
            count += 2
    return map_section(sections.MESSAGE_ANNOTATIONS, count, b"".join(parts))


def map_section(code, count, pairs):
    """A section that is a map, out of its pairs, of which `count` is twice the number."""
    size = len(pairs)
    if size <= 254 and count <= 255:
        return bytes((0, 0x53, code, MAP_8, size + 1, count)) + pairs
    return bytes((0, 0x53, code, MAP_32)) + struct.pack(">II", size + 4, count) + pairs


# The broker's annotations of a message


def annotations_of(broker, message):
    """The broker's annotations of a message, by symbol, as types.py has values."""
    changes = crossing.annotations_of(broker.tables, message)
    return noted_of(changes, broker.tables.messages[message + layout.MESSAGE_ARRIVED]) if changes else {}


def noted_of(changes, arrived=None):
    """The annotations of a message out of those of the store (core/message/annotations.py). `arrived`: seconds since layout.EPOCH, when a
    dead letter died last, if that is known."""
    headers = changes.get("headers") or {}
    noted: "dict" = modified.noted_in(changes) if modified.NAME in changes else {}
    for name in headers:
        value = headers[name]
        if name in noted:
            continue
        if name == "x-death" and isinstance(value, list):
            noted["x-opt-deaths"] = deaths_of(value, arrived)
        elif name == "CC":
            noted["x-cc"] = value if value is GONE else typed(value)
        elif name.startswith("x-"):
            noted[name] = value if value is GONE else typed(value)
    return noted


def deaths_of(deaths, arrived):
    """The annotation x-opt-deaths out of the list that 0-9-1 receivers get as x-death, the last death first."""
    maps = []
    for place, death in enumerate(deaths):
        if not isinstance(death, dict):
            continue
        first = milliseconds(death.get("time"))
        last = first if place or arrived is None else 1000 * (arrived + layout.EPOCH)
        table: "dict" = {}
        expiration = death.get("original-expiration")
        if isinstance(expiration, str) and expiration.isdigit():
            table[("symbol", "ttl")] = ("uint", min(int(expiration), TTL_MAX))
        table[("symbol", "queue")] = text_or_none(death.get("queue"))
        table[("symbol", "reason")] = ("symbol", str(death.get("reason")))
        table[("symbol", "count")] = ("ulong", number_of(death.get("count")))
        table[("symbol", "first-time")] = ("timestamp", first)
        table[("symbol", "last-time")] = ("timestamp", max(first, last))
        table[("symbol", "exchange")] = text_or_none(death.get("exchange"))
        keys = [text_or_none(key) for key in death.get("routing-keys") or ()]
        table[("symbol", "routing-keys")] = ("array", "string", [key for key in keys if key is not None])
        maps.append(table)
    return ("array", "map", maps)


def number_of(value):
    """A number that perhaps has its letter, at least 0."""
    if isinstance(value, tuple):
        value = value[1]
    return max(value, 0) if isinstance(value, int) else 0


def milliseconds(value):
    """A time of 0-9-1, ("T", seconds), in milliseconds; one that is too far away is the last."""
    return min(number_of(value) * 1000, MILLISECONDS_MAX)


def text_or_none(value):
    """A text out of one, or out of ("S", octets); None where it is none."""
    if isinstance(value, tuple):
        value = value[1]
    if isinstance(value, bytes):
        return sections.utf8(value)
    return value if isinstance(value, str) else None


# Messages of class basic


_NAMES = {"b": "byte", "B": "ubyte", "s": "short", "u": "ushort", "I": "int", "i": "uint", "f": "float"}
_WIDE = {"Q": "ulong", "U": "uuid", "c": "char"}


def typed(value):
    """A value of a field table, with its letter, as types.py has it."""
    if isinstance(value, tuple):
        letter, value = value
        if letter in _NAMES:
            return (_NAMES[letter], value)
        if letter == "T":
            return ("timestamp", min(value * 1000, MILLISECONDS_MAX))
        if letter in _WIDE:
            return (_WIDE[letter], value)
        return value  # l, L, d, S
    if isinstance(value, dict):
        return {symbol_of(name): typed(value[name]) for name in value}
    if isinstance(value, list):
        return [typed(each) for each in value]
    if isinstance(value, str) and "\x00" in value:
        return value.encode("utf-8")
    return value


def symbol_of(name):
    """The key of a map: a symbol, which is ASCII, else a string."""
    return ("symbol", name) if is_ascii(name) else name


def is_ascii(text):
    """True for a text that can be a symbol."""
    return len(text.encode("utf-8")) == len(text)


def converted(broker, message, failed, noted):
    """The octets before the body of a message of another family. The body of one of the type amqp-1.0 is sections, where they are some."""
    tables = broker.tables
    messages = tables.messages
    kind = messages[message + layout.MESSAGE_KIND]
    exchange, key = reading.names_of(broker.tables, message)
    changes = annotations_of(broker, message)
    if changes or noted:  # a message of its own
        given, _ = crossing.neutral_of(tables, message, True)
        changes.update(named_by(exchange, key))
        if noted:
            changes.update(noted)
        sectioned, type_ = sections_of(given, changes), given.get("type")
    else:

        def convert(given):
            return sections_of(given, named_by(exchange, key)), given.get("type")

        (sectioned, type_), _ = crossing.once(broker, message, True, ("1.0", exchange, key), convert)
    fields = {
        "durable": kind & layout.KIND_DURABLE != 0,
        "priority": kind >> layout.KIND_PRIORITY & 255 if kind & layout.KIND_HAS_PRIORITY else None,
        "ttl": reading.expiration_of(broker.tables, message),
    }
    annotated = reading.annotations_of(tables, message) if kind & layout.KIND_ANNOTATED else {}
    octets = header(fields, failed + annotated.get(FAILED, 0), passed_ms(broker, message)) + modified.told_in(annotated) + sectioned
    size = messages[message + layout.MESSAGE_BODY]
    if type_ == ENCODED and body.is_body(size, crossing.reader(tables, message)):
        return octets
    if size < 256:
        return octets + bytes((0, 0x53, sections.DATA, 0xA0, size))
    return octets + b"\x00\x53\x75\xb0" + struct.pack(">I", size)


def named_by(exchange, key):
    """The annotations that say where a message was published."""
    return {"x-exchange": exchange, "x-routing-key": key if sections.utf8(key) is None else sections.utf8(key)}


def sections_of(given, changes):
    """message-annotations, properties and application-properties of the properties of class basic (core/broker/crossing.py)."""
    noted, pairs = {}, {}
    headers = given.get("headers") or {}
    for name in headers:
        value = headers[name]
        if name.startswith("x-"):
            if is_ascii(name):
                noted[name] = typed(value)
        elif name == "CC":
            noted["x-cc"] = typed(value)
        elif not isinstance(value, (dict, list)):
            pairs[name] = typed(value)
    if given.get("type") is not None:
        noted["x-basic-type"] = given["type"]
    noted.update(changes)
    if "x-opt-deaths" in noted:
        noted["x-death"] = GONE
    parts = [annotations(noted)] if noted else []
    fields = fields_of(given)
    if fields:
        parts.append(composites.write("properties", fields))
    if pairs:
        octets = b"".join([types.encode(name) + types.encode(pairs[name]) for name in pairs])
        parts.append(map_section(sections.APPLICATION_PROPERTIES, 2 * len(pairs), octets))
    return b"".join(parts)


BEYOND = (("subject", "subject"), ("group_sequence", "group-sequence"), ("expiry_ms", "absolute-expiry-time"))


def fields_of(given):
    """The fields of the section properties out of the properties of class basic."""
    fields = {}
    for name, field in (("message_id", "message-id"), ("correlation_id", "correlation-id")):
        if given.get(name) is not None:
            fields[field] = identifier(given[name])
    if given.get("user_id") is not None:
        fields["user-id"] = octets_of(given["user_id"])
    if given.get("address") is not None:
        fields["reply-to"] = given["address"]
    elif isinstance(given.get("reply_to"), str):
        fields["reply-to"] = addresses.queue_address(given["reply_to"])
    for name, field in (("content_type", "content-type"), ("content_encoding", "content-encoding")):
        if isinstance(given.get(name), str) and is_ascii(given[name]):
            fields[field] = given[name]
    if given.get("timestamp") is not None:
        fields["creation-time"] = min(given["timestamp"] * 1000 + given.get("milliseconds", 0), MILLISECONDS_MAX)
    if isinstance(given.get("app_id"), str):
        fields["group-id"] = given["app_id"]
    for name, field in BEYOND:
        if given.get(name) is not None:
            fields[field] = given[name]
    return fields


def octets_of(text):
    """A short string's octets: class basic's are octets where they are no UTF-8."""
    return text.encode("utf-8") if isinstance(text, str) else text


def identifier(text):
    """A message-id out of a short string: urn:uuid: and 32 digits are a uuid."""
    if not isinstance(text, str):
        return text
    digits = text[9:].replace("-", "")
    if text.startswith("urn:uuid:") and len(text) == 45 and len(digits) == 32:
        try:
            return ("uuid", bytes([int(digits[at : at + 2], 16) for at in range(0, 32, 2)]))
        except ValueError:
            return text
    return text


def merged(octets, changes):
    """See properties.merge."""
    return rewritten(octets, 0, 0, changes.get("expiration"), noted_of(changes))
