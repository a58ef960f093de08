"""A message's record in the log: its head and its parts. Nothing else knows that (FORMAT.md has the table).

    head: short places | long arrived | short route | long annotations | long properties | long body | long kind | long lifetime
    long queue id | longlong position, for each place
    route | annotations | properties | body, so many octets each: the message's chain

`heads` are the eight numbers of a head. Kind and lifetime are the columns of a message (core/memory/layout.py); annotations are the
broker's additions to the message (core/message/annotations.py).
"""

import struct

from ..memory import layout
from ..shim import const

FORM = ">HIHIIIIi"
HEAD_SIZE = const(28)  # octets of that
PLACE = ">IQ"
PLACE_SIZE = const(12)


def heads_at(octets, at):
    """(places, arrived, octets of route, of annotations, of properties, of body, kind, lifetime) of the record at `at`."""
    return struct.unpack_from(FORM, octets, at)


def size_of(heads):
    """Octets of the message itself."""
    return heads[2] + heads[3] + heads[4] + heads[5]


def count_at(octets, at):
    """In how many places the message of the record at `at` is."""
    return octets[at] << 8 | octets[at + 1]


def place_at(octets, at, index):
    """(queue id, position) of one of the places of the record at `at`."""
    return struct.unpack_from(PLACE, octets, at + HEAD_SIZE + PLACE_SIZE * index)


def places_at(octets, at):
    """All of them."""
    return [place_at(octets, at, index) for index in range(count_at(octets, at))]


def place(identity, position):
    """A place's octets."""
    return struct.pack(PLACE, identity, position)


def route_at(at, count):
    """Where the route begins in the record at `at` with `count` places."""
    return at + HEAD_SIZE + PLACE_SIZE * count


def properties_at(at, heads):
    """Where the properties begin in the record at `at`."""
    return route_at(at, heads[0]) + heads[2] + heads[3]


def put_head(target, at, messages, message, count):
    """Write the head of the record of a message in memory, in `count` places."""
    route = messages[message + layout.MESSAGE_ROUTE]
    properties = messages[message + layout.MESSAGE_PROPERTIES]
    body = messages[message + layout.MESSAGE_BODY]
    struct.pack_into(
        FORM,
        target,
        at,
        count,
        messages[message + layout.MESSAGE_ARRIVED],
        route,
        messages[message + layout.MESSAGE_FILLED] - route - properties - body,
        properties,
        body,
        messages[message + layout.MESSAGE_KIND] & ~layout.KIND_REPLY_TO,
        messages[message + layout.MESSAGE_LIFETIME],
    )


def moved(octets, at, places):
    """The head at `at` of a record, and places (queue id, position) in place of its own: a list of octets."""
    return [struct.pack(">H", len(places)), bytes(octets[at + 2 : at + HEAD_SIZE])] + [place(*each) for each in places]
