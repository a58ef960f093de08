"""Messages that another family published, as 0-9-1 delivers them: as far as class basic can express them (core/broker/crossing.py).

A build of one family does without it.
"""

from ..broker import crossing
from ..memory import layout
from ..message import reading
from . import frame, properties


def reworked(broker, message):
    """(properties, pieces of the body) of a message: octets, with the broker's annotations over them, and [(position, octets)] of the body
    part, None: all of it. Where they take more octets than a delivery may have, they come without headers of the publisher, or else of the
    broker: a number of 1.0 may have one octet, and nine here."""
    tables = broker.tables
    octets, pieces = crossing.once(broker, message, False, ("0-9-1",), as_basic)
    changes = reading.annotations_of(tables, message)
    if changes:
        octets = properties.merge(octets, changes)
    size_max = reading.properties_room(broker.limits, tables.messages[message + layout.MESSAGE_ROUTE])
    if len(octets) <= size_max:
        return octets, pieces
    given = of_basic(crossing.told(tables, message)[0])
    for table in (given, changes):
        if len(octets) > size_max and table.pop("headers", None):
            octets = merged(given, changes)
    return octets, pieces


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
