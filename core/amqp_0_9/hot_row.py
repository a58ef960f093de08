"""The functions of the hot path that are 0-9-1's own, bound to one broker's tables: this family's row (core/wire/contract.pyi, HotRow)."""

from ..memory import hot
from . import hot_in, hot_out


class Row:
    """The row in Python. `name`: by which an engine knows another form of the row (c_accel/amqp_0_9.py has one in C).

    `converts`: whether `pump` delivers messages of other families, too, as far as they are simple.
    `takes_in`, and `take_in` beside it: Session's, where the engine reads from sockets; else None.
    `pack`: packed.pack for these tables where there is a quicker form of it, else None; `read_stream`: the same of
    deliver_stream.deliver_stream, for records that go out whole and as they were published. `see_get`: a function of a session, a name
    and its queue that hears of each basic.get that Python answers, where the engine answers others. `see_requests`: one of a session and a
    channel that consumes the direct reply-to from now on, where the engine takes its requests.
    """

    name = "amqp_0_9"
    converts = False
    takes_in = None
    pack = None
    read_stream = None
    see_get = None
    see_requests = None

    def __init__(self, tables):
        self.tables = tables

    def ingest(self, numbers, source):
        """See hot_in.ingest."""
        tables = self.tables
        return hot_in.ingest(
            tables.arena,
            tables.blocks,
            tables.messages,
            tables.entries,
            tables.queues,
            tables.channels,
            tables.consumers,
            tables.state,
            tables.routes,
            tables.route_octets,
            tables.route_targets,
            numbers,
            source,
        )

    def pump(self, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end):
        """See hot.pump."""
        tables = self.tables
        return hot.pump(
            tables.arena,
            tables.blocks,
            tables.messages,
            tables.entries,
            tables.queues,
            tables.channels,
            tables.consumers,
            tables.state,
            consumer,
            limit,
            prefix,
            prefix_size,
            frame_size_max,
            hot_out.size_of,
            hot_out.write,
            target,
            at,
            end,
        )

    def put_body(self, left, frame_size_max, channel_number, target, at, end):
        """See hot_out.put_body."""
        tables = self.tables
        return hot_out.put_body(tables.arena, tables.blocks, tables.state, left, frame_size_max, channel_number, target, at, end)
