"""Octets of AMQP 1.0 out of the tables of the specification, by an encoder of its own: each value in any of its encodings, performatives
with fields that make sense more often than not, types nested up to their bound and beyond."""

import struct

from leveret.core.amqp_1_0.spec_1_0 import CHOICES, COMPOSITES
from leveret.core.amqp_1_0.types import DEPTH_MAX

BY_NAME = {name: (code, fields) for code, name, fields in COMPOSITES}
PERFORMATIVES = ("open", "begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close")
OFTEN = ("attach", "flow", "transfer", "disposition", "detach")
STATES = ("accepted", "rejected", "released", "modified", "received", "declared", "transactional-state")
ADDRESSES = ("/queues/a", "/queues/b", "/exchanges/amq.topic/k", "/queues/none", "a", "$management", "/queues/%zz", "")
NUMBERS = (0, 0, 1, 1, 2, 3, 7, 40, 255, 256, 65535, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
KEYS = ("apache.org:selector-filter:string", "rabbitmq:stream-offset-spec", "lifetime-policy", "txn-id", "x-opt-a", "paired")


def sized(source, small, large, octets):
    """A value of variable width, in one of its two encodings."""
    if len(octets) < 256 and source.random() < 0.8:
        return bytes((small, len(octets))) + octets
    return bytes((large,)) + struct.pack(">I", len(octets)) + octets


def compound(source, small, large, count, octets):
    """A list or a map, in one of its two encodings."""
    if len(octets) < 255 and count < 256 and source.random() < 0.7:
        return bytes((small, len(octets) + 1, count)) + octets
    return bytes((large,)) + struct.pack(">II", len(octets) + 4, count) + octets


def text(source, value):
    """A string."""
    return sized(source, 0xA1, 0xB1, value.encode("utf-8"))


def symbol(source, value):
    """A symbol."""
    return sized(source, 0xA3, 0xB3, value.encode("ascii"))


def unsigned(source, value):
    """A uint."""
    if value == 0 and source.random() < 0.5:
        return b"\x43"
    if value < 256 and source.random() < 0.7:
        return bytes((0x52, value))
    return b"\x70" + struct.pack(">I", value)


def descriptor(source, name):
    """The descriptor of a composite value: its code, or its symbol."""
    draw = source.random()
    if draw < 0.8:
        return b"\x00\x53" + bytes((BY_NAME[name][0],))
    if draw < 0.9:
        return b"\x00\x80" + struct.pack(">Q", BY_NAME[name][0])
    return b"\x00" + symbol(source, "amqp:%s:list" % name)


def scalar(source):
    """Any primitive without a size of its own, or a short one."""
    width, codes = source.choice(
        (
            (0, (0x40, 0x41, 0x42, 0x43, 0x44, 0x45)),
            (1, (0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56)),
            (2, (0x60, 0x61)),
            (4, (0x70, 0x71, 0x72, 0x73, 0x74)),
            (8, (0x80, 0x81, 0x82, 0x83, 0x84)),
            (16, (0x94, 0x98)),
        )
    )
    if source.random() < 0.5:
        return bytes((source.choice(codes),)) + source.randbytes(width)
    made = (text(source, source.choice(("", "a", "\u00e4" * 3))), symbol(source, "s"), sized(source, 0xA0, 0xB0, source.randbytes(5)))
    return source.choice(made)


def any_value(source, depth=0):
    """Any value; some nest as deep as is allowed, and a few one level deeper."""
    draw = source.random()
    if depth == 0 and draw < 0.05:
        inner = scalar(source)
        for _ in range(DEPTH_MAX - source.choice((0, 1, 2, 3))):
            kind = source.randrange(3)
            if kind == 0:
                inner = compound(source, 0xC0, 0xD0, 1, inner)
            elif kind == 1:
                inner = compound(source, 0xC1, 0xD1, 2, b"\x40" + inner)
            else:
                inner = b"\x00" + symbol(source, "d") + inner
        return inner
    if draw < 0.6 or depth > 3:
        return scalar(source)
    count = source.randrange(4)
    if draw < 0.7:
        return compound(source, 0xC0, 0xD0, count, b"".join(any_value(source, depth + 1) for _ in range(count)))
    if draw < 0.8:
        items = b"".join(text(source, "k%d" % number) + any_value(source, depth + 1) for number in range(count))
        return compound(source, 0xC1, 0xD1, 2 * count, items)
    if draw < 0.9:
        width, code = source.choice(((0, 0x41), (0, 0x45), (1, 0x53), (4, 0x70), (8, 0x83), (16, 0x98)))
        count = source.choice((0, 1, 3, 200, 1024, 1025)) if width == 0 else count
        return compound(source, 0xE0, 0xF0, count, bytes((code,)) + source.randbytes(width * count))
    return b"\x00" + any_value(source, depth + 1) + any_value(source, depth + 1)


def field(source, owner, title, type_, multiple):
    """A field of a composite value, mostly as the table has it."""
    if source.random() < 0.03:
        return any_value(source)
    if title in ("source", "target"):
        return composite(source, source.choice((title, title, title, "coordinator" if title == "target" else title)))
    if title == "address":
        return text(source, source.choice(ADDRESSES))
    if title in ("state", "outcome", "default-outcome"):
        return composite(source, source.choice(STATES))
    if title in ("unsettled", "filter", "properties", "dynamic-node-properties", "info", "message-annotations"):
        return table(source, title)
    if title in ("incoming-window", "outgoing-window") and source.random() < 0.8:
        return unsigned(source, 1000)
    if title in ("handle", "delivery-id", "first", "last", "next-incoming-id"):
        return unsigned(source, source.choice((0, 1, 2, 3, 4, 5, 6, 7, 40, 256)))
    if type_ in BY_NAME:
        return composite(source, type_)
    base, choices = CHOICES.get(type_, (type_, NUMBERS))
    value = source.choice(choices)
    if multiple:
        items = [source.choice(("amqp:accepted:list", "queue", "topic", "ANONYMOUS-RELAY")) for _ in range(source.randrange(3))]
        octets = b"\xa3" + b"".join(bytes((len(each),)) + each.encode() for each in items)
        return compound(source, 0xE0, 0xF0, len(items), octets)
    return plain(source, base, value)


def plain(source, base, value):
    """A value of a primitive type."""
    if base == "boolean":
        return source.choice((b"\x41", b"\x42", b"\x56\x00", b"\x56\x01"))
    if base == "uint":
        return unsigned(source, value & 0xFFFFFFFF)
    if base == "ulong":
        return b"\x80" + struct.pack(">Q", value)
    if base == "ushort":
        return b"\x60" + struct.pack(">H", value & 0xFFFF)
    if base == "ubyte":
        return b"\x50" + bytes((value & 255,))
    if base == "string":
        return text(source, source.choice(("", "n", "link", "x" * 70)))
    if base == "symbol":
        return symbol(source, value if isinstance(value, str) else source.choice(("amqp:internal-error", "s", "move", "copy")))
    if base == "binary":
        return sized(source, 0xA0, 0xB0, source.choice((b"", b"t", source.randbytes(4), bytes(33))))
    return any_value(source)


def table(source, title):
    """A map for a field: of tags and states, of symbols and anything."""
    count = source.randrange(4)
    octets = b""
    for number in range(count):
        if title == "unsettled":
            octets += b"\xa0\x01" + bytes((number,)) + source.choice((b"\x40", composite(source, source.choice(STATES))))
        else:
            octets += symbol(source, KEYS[(number + source.randrange(3)) % len(KEYS)] + "abc"[number]) + any_value(source, 1)
    return compound(source, 0xC1, 0xD1, 2 * count, octets)


def composite(source, name):
    """A composite value: fields up to one of the last that it has."""
    code, fields = BY_NAME[name]
    items = []
    for title, type_, mandatory, multiple, _ in fields:
        is_there = mandatory and source.random() < 0.97 or source.random() < 0.35
        items.append(field(source, name, title, type_, multiple) if is_there else b"\x40")
    if source.random() < 0.7:
        while items and items[-1] == b"\x40":
            items.pop()
    if source.random() < 0.01:
        items.append(b"\x40")
    return descriptor(source, name) + compound(source, 0xC0, 0xD0, len(items), b"".join(items))


def framed(channel, body, type_=0, doff=2):
    """A frame."""
    return struct.pack(">IBBH", 4 * doff + len(body), doff, type_, channel) + bytes(4 * doff - 8) + body


def some_frame(source):
    """A frame with a performative."""
    name = source.choice(OFTEN if source.random() < 0.95 else PERFORMATIVES)
    payload = message(source) if name == "transfer" else b"" if source.random() < 0.99 else b"\x40"
    doff = 2 if source.random() < 0.9 else source.choice((3, 5))
    return framed(source.choice((0, 0, 0, 0, 1, 300)), composite(source, name) + payload, 0, doff)


def message(source):
    """A message, mostly one that can be read."""
    octets = b""
    if source.random() < 0.6:
        items = (
            source.choice((b"\x40", b"\x41", b"\x42")),
            source.choice((b"\x40", b"\x50\x09")),
            source.choice((b"\x40", unsigned(source, 5))),
        )
        octets += b"\x00\x53\x70" + compound(source, 0xC0, 0xD0, 3, b"".join(items))
    for code in (0x71, 0x72):
        if source.random() < 0.15:
            octets += b"\x00\x53" + bytes((code,)) + table(source, "message-annotations")
    if source.random() < 0.5:
        items = (
            source.choice((b"\x40", text(source, "m"), b"\x53\x09")),
            b"\x40",
            text(source, source.choice(ADDRESSES)),
            text(source, "k"),
        )
        octets += b"\x00\x53\x73" + compound(source, 0xC0, 0xD0, 4, b"".join(items))
    if source.random() < 0.3:
        octets += b"\x00\x53\x74" + compound(source, 0xC1, 0xD1, 2, text(source, "a") + scalar(source))
    draw = source.random()
    if draw < 0.85:
        for _ in range(source.choice((1, 1, 1, 2))):
            octets += b"\x00\x53\x75" + sized(source, 0xA0, 0xB0, source.randbytes(source.choice((0, 1, 60, 300, 1500))))
    elif draw < 0.95:
        octets += b"\x00\x53\x77" + any_value(source)
    else:
        octets += b"\x00\x53\x76" + compound(source, 0xC0, 0xD0, 1, any_value(source, 1))
    if source.random() < 0.1:
        octets += b"\x00\x53\x78" + table(source, "properties")
    return octets if source.random() < 0.97 else octets[: source.randrange(len(octets) + 1)]
