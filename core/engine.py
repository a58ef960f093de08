"""The engine: the hot functions of hot.py and ingest.py bound to one broker's tables, so that a call names only what changes.

`Plain` has them as they stand. `chosen` is what tables are made with; the program that starts a broker may put another class there before
(leveret.c_accel does: the same functions in C over the same memory). Whatever makes a buffer that the functions get keeps `octets(view)` or
`integers(table)` of it and gives that: in C the look-up of an address costs more than a call.
"""

from . import hot, ingest


class Plain:
    """The functions in Python. `turn`: deliveries of one queue before the next one has its turn; `ingests`: whether `ingest` is of use."""

    name = "plain Python"
    turn = 32
    ingests = True

    def __init__(self, tables):
        self.tables = tables

    def octets(self, view):
        """What functions get for a buffer of octets."""
        return view

    def integers(self, table):
        """What functions get for a table of integers."""
        return table

    def ingest(self, numbers, source):
        """See ingest.py."""
        tables = self.tables
        return ingest.ingest(tables.arena, tables.blocks, tables.messages, tables.entries, tables.queues, tables.channels, tables.consumers,
                             tables.state, tables.routes, tables.route_octets, tables.route_targets, numbers, source)

    def pump(self, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end):
        """See hot.pump."""
        tables = self.tables
        return hot.pump(tables.arena, tables.blocks, tables.messages, tables.entries, tables.queues, tables.channels, tables.consumers,
                        tables.state, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end)

    def append(self, message, source, start, size):
        """See hot.append."""
        tables = self.tables
        hot.append(tables.arena, tables.blocks, tables.messages, tables.state, message, source, start, size)

    def put_body(self, left, frame_size_max, channel_number, target, at, end):
        """See hot.put_body."""
        tables = self.tables
        return hot.put_body(tables.arena, tables.blocks, tables.state, left, frame_size_max, channel_number, target, at, end)


chosen = Plain
