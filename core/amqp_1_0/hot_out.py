"""Performatives that a session writes all the time, without a look at the table of fields: the octets are those of
composites.write, nulls at the end and all."""

import struct

from . import composites, frame

_FLOW = (
    "next-incoming-id",
    "incoming-window",
    "next-outgoing-id",
    "outgoing-window",
    "handle",
    "delivery-count",
    "link-credit",
    "available",
    "drain",
)
_STATES = {"accepted": b"\x00\x53\x24\x45", "released": b"\x00\x53\x26\x45"}  # outcomes without fields (section 3.4)


def uint(number):
    """A uint in its smallest encoding."""
    if number == 0:
        return b"\x43"
    return bytes((0x52, number)) if number < 256 else struct.pack(">BI", 0x70, number)


def small(channel, code, count, octets):
    """A frame with a list of `count` fields, at most 254 octets."""
    return (
        struct.pack(">IBBHBBBBBB", frame.HEADER_SIZE + 6 + len(octets), 2, frame.AMQP, channel, 0, 0x53, code, 0xC0, len(octets) + 1, count)
        + octets
    )


def disposition(channel, role, first, last, settled, state):
    """The frame of a disposition (section 2.7.6); `state`: (name, fields) or None."""
    plain = None if state is None or state[1] else _STATES.get(state[0])
    if plain is None:
        given = {"role": role, "first": first, "settled": settled, "state": state}
        if last != first:
            given["last"] = last
        return frame.write(frame.AMQP, channel, composites.write("disposition", given, True))
    range_ = uint(first) + (b"\x40" if last == first else uint(last))
    return small(channel, 0x15, 6, (b"\x41" if role else b"\x42") + range_ + (b"\x41" if settled else b"\x42") + plain + b"\x40")


def flow(channel, fields):
    """The frame of a flow (section 2.7.4); `fields` by name: numbers, and `drain`."""
    octets = b""
    for name in _FLOW:
        value = fields.get(name)
        if value is None:
            octets += b"\x40"
        elif value is True or value is False:
            octets += b"\x41" if value else b"\x42"
        else:
            octets += uint(value)
    return small(channel, 0x13, 11, octets + b"\x40\x40")  # echo, properties
