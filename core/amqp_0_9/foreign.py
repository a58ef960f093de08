"""Messages that another family published, as 0-9-1 delivers them: as far as class basic can express them (core/broker/crossing.py).

A build of one family does without it.
"""

import struct

from .. import limits
from ..broker import crossing
from ..memory import hot, layout
from ..message import formats, reading
from ..queue.turns import charge_made, is_overdue, most_made
from ..shim import const
from . import frame, properties

VERSION = ("0-9-1",)  # of results of conversions: class basic is one for 0-8, 0-9, 0-9-1 and the drafts
PLAIN = (formats.AMQP_1_0, formats.AMQP_0_10)  # kinds, without what is not of the format, of messages that `deliver` writes
_TAG = ">QB"  # delivery tag and redelivered
_HEADER = ">BBHIHHQ"  # the end of basic.deliver, then a content header frame up to the property flags
_BODY = ">BBHI"  # the end of that, then the head of a body frame
_HEADER_SIZE = const(12)  # octets of a content header's payload before the property flags
_CLASS_BASIC = const(60)


def reworked(broker, message):
    """(properties, pieces of the body) of a message: octets, with the broker's annotations over them, and [(position, octets)] of the body
    part, None: all of it. Where they take more octets than a delivery may have, they come without headers of the publisher, or else of the
    broker: a number of 1.0 may have one octet, and nine here."""
    tables = broker.tables
    octets, pieces = crossing.once(broker, message, False, VERSION, as_basic)
    changes = reading.annotations_of(tables, message)
    if changes:
        octets = properties.merge(octets, changes)
    size_max = reading.properties_room(broker.limits, tables.messages[message + layout.MESSAGE_ROUTE])
    if len(octets) <= size_max:
        return octets, pieces
    given = of_basic(crossing.neutral_of(tables, message)[0])
    for table in (given, changes):
        if len(octets) > size_max and table.pop("headers", None):
            octets = merged(given, changes)
    return octets, pieces


def deliver(session, consumer, most):
    """Write up to `most` deliveries that are one frame each of method, header and body: how many. It ends at the first message that is not,
    that has annotations, or that 0-9-1 has published."""
    return deliver_each(session, consumer, most, delivery)


def deliver_each(session, consumer, most, octets_of):
    """Write up to `most` deliveries: how many. It ends at the first of which `octets_of(session, consumer, message, tag, came_back, room)`,
    the octets of a delivery that takes at most `room` of them, is None."""
    broker, queue, send = session.broker, consumer.queue, session.send
    tables = broker.tables
    entries, channels, channel = tables.entries, tables.channels, consumer.channel.handle
    most = most_made(broker, most)
    room = send.room() - limits.REPLY_ROOM
    count = 0
    while count < most and broker.consumers.has_credit(consumer) and not is_overdue(queue):
        entry = queue.head()
        if entry == layout.NONE:
            break
        low = (channels[channel + layout.CHANNEL_TAG] + 1) & layout.MASK
        high = channels[channel + layout.CHANNEL_TAG_HIGH] + (low == 0)
        came_back = entries[entry + layout.ENTRY_REDELIVERED] & 255 != 0
        octets = octets_of(session, consumer, entries[entry + layout.ENTRY_MESSAGE], high << 30 | low, came_back, room)
        if octets is None:
            break
        send.write(octets)
        room -= len(octets)
        hot.next_number(channels, channel + layout.CHANNEL_TAG)
        queue.pop()
        if consumer.no_ack:
            queue.drop(entry)
        else:
            broker.consumers.hold(consumer, entry)
        count += 1
    if count:
        tables.state[layout.STATE_DELIVERED] = (tables.state[layout.STATE_DELIVERED] + count) & layout.MASK
        charge_made(broker, queue, count)
    return count


def delivery(session, consumer, message, tag, came_back, room):
    """The octets of a delivery that takes at most `room` of them; None: see `deliver`."""
    tables = session.broker.tables
    messages = tables.messages
    if messages[message + layout.MESSAGE_KIND] & (layout.KIND_REWORKED | layout.KIND_GRAFTED) not in PLAIN:
        return None
    route, size = messages[message + layout.MESSAGE_ROUTE], messages[message + layout.MESSAGE_BODY]
    frame_max, prefix = session.frame_size_max, consumer.prefix
    if size + frame.OVERHEAD > frame_max or size > room:
        return None
    chain = tables.octets(message, 0, messages[message + layout.MESSAGE_FILLED])
    body = len(chain) - size
    octets, pieces = crossing.once(session.broker, message, False, VERSION, as_basic, chain[route:body])
    head = _HEADER_SIZE + len(octets)
    whole = len(prefix) + 10 + route + frame.OVERHEAD + head + frame.OVERHEAD + size
    if pieces is not None or head + frame.OVERHEAD > frame_max or whole > room:
        return None
    if len(octets) > reading.properties_room(session.broker.limits, route):
        return None
    number = consumer.channel.number
    return b"".join(
        (
            bytes(prefix[:3]),
            (len(prefix) + 2 + route).to_bytes(4, "big"),
            bytes(prefix[7:]),
            struct.pack(_TAG, tag, came_back),
            chain[:route],
            struct.pack(_HEADER, frame.END, frame.HEADER, number, head, _CLASS_BASIC, 0, size),
            octets,
            struct.pack(_BODY, frame.END, frame.BODY, number, size) if size else b"",
            chain[body:],
            b"\xce",
        )
    )


def of_basic(given):
    """The properties that class basic has, of those by name."""
    return {name: given[name] for name, _ in properties.PROPERTIES if name in given}


def as_basic(given):
    """Properties by name as those of class basic (bytes)."""
    return properties.encode(of_basic(given))


def merged(given, changes):
    """Properties by name as octets, with annotations over them."""
    octets = properties.encode(given)
    return properties.merge(octets, changes) if changes else octets


def header(broker, number, message):
    """Its content header frame."""
    octets, pieces = reworked(broker, message)
    return frame.content_header(number, size_of(broker.tables, message, pieces), octets)


def size_of(tables, message, pieces):
    """Octets of a body of which these pieces are delivered."""
    return tables.messages[message + layout.MESSAGE_BODY] if pieces is None else sum([size for _, size in pieces])


def lead_of(tables, message):
    """The octets of its body that are delivered, for Outgoing."""
    return Lead(tables, message, crossing.pieces(tables, message))


def content(broker, message):
    """(properties, body) of a message, both bytes."""
    octets, pieces = reworked(broker, message)
    return octets, Lead(broker.tables, message, pieces).whole()


class Lead:
    """Octets that lie in several places of a message's chain, and are read as they are wanted: lead[:size], then lead[size:]."""

    def __init__(self, tables, message, pieces):
        self.tables = tables
        self.message = message
        size = tables.messages[message + layout.MESSAGE_BODY]
        self.start = tables.size_of(message) - size
        self.pieces = [(0, size)] if pieces is None else pieces
        self.left = size_of(tables, message, pieces)

    def __len__(self):
        return self.left

    def __getitem__(self, part):
        return self.first(part.stop) if part.start is None else self.behind(part.start)

    def first(self, size):
        """The first `size` octets, which are there."""
        parts = []
        for at, length in self.pieces:
            length = min(length, size)
            parts.append(self.tables.octets(self.message, self.start + at, length))
            size -= length
            if not size:
                break
        return b"".join(parts)

    def behind(self, size):
        """This without its first `size` octets."""
        self.left -= size
        while size:
            at, length = self.pieces[0]
            if length > size:
                self.pieces[0] = (at + size, length - size)
                break
            self.pieces.pop(0)
            size -= length
        return self

    def whole(self):
        """All of them."""
        return self.first(self.left)
