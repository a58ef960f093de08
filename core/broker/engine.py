"""The engine: the hot functions of hot.py and publish.py bound to one broker's tables, so that a call names only what changes.

`Plain` calls them in Python. `chosen` is what tables are made with; the program that starts a broker may put another class there before
(leveret.c_accel does: the same functions in C over the same memory). The owner of a buffer calls `octets(view)` or `integers(table)` once
and gives the result to the functions: in C the look-up of an address costs more than a call.

These functions are neutral. Functions that read or write a family's octets are in its row (`row`).
"""

from ..memory import hot, layout
from ..memory.send_buffer import SendBuffer
from . import publish

if False:  # for the type checker alone
    from typing import Any


class Plain:
    """The functions in Python. `turn`: deliveries of one queue before the next one has its turn; `ingests`: whether rows are to `ingest`.

    `deliveries`: in one round of the broker, of those that no rule checks: some milliseconds' work; `effort`: publishes and settlements in
    one turn of a connection, as STATE_LEFT counts them: as long.
    """

    name = "plain Python"
    turn = 32
    deliveries = 512
    effort = 1000
    ingests = True
    limits = 0  # bits of QUEUE_LIMITS for what this engine does and Python does elsewhere
    read_window: "Any" = None  # what Windows.read_record calls, where the engine has that
    drop_window: "Any" = None  # what Windows.forget calls: (the first entry, how many go) -> the first that stays, or NONE
    read_on: "Any" = None  # the same for Pager.bring_chunk: (messages, octets) of what follows in the record that a walk stands in

    def __init__(self, tables):
        self.tables = tables
        self.rows: dict = {}
        self.records: "Any" = None  # log/flat_records.py, once there is a log: boards without one do not carry it
        self.turns = self.left = self.done = self.idle = 0
        self.touched = None  # the send buffer that was touched last; the one before is its `next_touched`

    def send_buffer(self, size):
        """A SendBuffer."""
        return SendBuffer(size, self)

    def collect_touched(self):
        """The slots (numbers that the port's loop has assigned) of the send buffers that were written to since the last call."""
        slots = []
        buffer = self.touched
        self.touched = None
        while buffer is not None:
            buffer.is_touched = False
            if buffer.slot is not None:
                slots.append(buffer.slot)
            buffer = buffer.next_touched
        return slots

    def see_queue(self, queue):
        """A queue's rules, its pages or its consumers have changed."""

    def see_consumer(self, consumer):
        """A consumer has its `prefix_at`: it can be delivered to."""

    def see_way(self, user, exchange):
        """A route of the user with this number through an exchange was looked up."""

    def see_names(self, exchange_name, names):
        """The way of messages to an exchange depends on the headers with these names (bytes) and on CC."""

    def forget_ways(self):
        """An exchange, binding or queue was made or removed."""

    def begin_round(self, turns, deliveries):
        """Begin a round: active queues have up to `turns` turns, with up to `deliveries` deliveries in all."""
        self.turns = turns
        self.left = deliveries

    def next_turn(self):
        """The active queue (a handle) that is to have its turn in queue/turns.py; NONE: there is none, or the round is over.

        Of that turn `done` deliveries are made already; the last `idle` consumers could not take one.
        """
        if self.turns <= 0 or self.left <= 0:
            return layout.NONE
        self.turns -= 1
        return hot.next_active(self.tables.queues, self.tables.state)

    def turned(self, count):
        """A turn has made so many deliveries."""
        self.left -= count

    def octets(self, view):
        """The argument that functions get for a buffer of octets."""
        return view

    def integers(self, table):
        """The argument that functions get for a table of integers."""
        return table

    def row(self, form):
        """The functions of the hot path that are a family's own, made of `form`: a class that takes tables (contract.HotRow)."""
        if form not in self.rows:
            self.rows[form] = form(self.tables)
        return self.rows[form]

    def append(self, message, source, start, size):
        """See hot.append."""
        tables = self.tables
        hot.append(tables.arena, tables.blocks, tables.messages, tables.state, message, source, start, size)

    def log_records(self):
        """flat_records.py: an import statement makes heap each time that it is carried out."""
        if self.records is None:
            from ..log import flat_records

            self.records = flat_records
        return self.records

    def write_pushed(self, target, at, segment, runs):
        """See flat_records.write_pushed; `target` is a view of octets."""
        tables = self.tables
        return self.log_records().write_pushed(
            tables.arena,
            tables.blocks,
            tables.messages,
            tables.entries,
            tables.queues,
            tables.state,
            target,
            at,
            segment,
            runs,
        )

    def gather_settled(self, runs, most):
        """See flat_records.gather_settled."""
        return self.log_records().gather_settled(self.tables.entries, self.tables.state, runs, most)

    def live_in(self, entry, end, segment, live, most):
        """See flat_records.live_in."""
        return self.log_records().live_in(self.tables.messages, self.tables.entries, entry, end, segment, live, most)

    def publish_kept(self, channel, message):
        """See kept.publish_kept."""
        from . import kept  # boards without transactions do not carry it

        return kept.publish_kept(self.tables, channel, message)

    # Methods on all messages of a queue, or on all deliveries of a channel

    def purge(self, queue, most):
        """Drop ready entries of a queue from the head, `most` at most."""
        tables = self.tables
        tables.queues[queue + layout.QUEUE_RETURNED] = layout.NONE
        entry = tables.queues[queue + layout.QUEUE_HEAD]
        while entry != layout.NONE and most > 0:
            most -= 1
            hot.unlink_ready(tables.messages, tables.entries, tables.queues, queue, entry)
            hot.drop(tables.blocks, tables.messages, tables.entries, tables.queues, tables.state, entry)
            entry = tables.queues[queue + layout.QUEUE_HEAD]

    def expire(self, queue):
        """See hot.expire."""
        tables = self.tables
        return hot.expire(tables.blocks, tables.messages, tables.entries, tables.queues, tables.state, queue)

    def disown(self, channel, consumer):
        """Detach a channel's deliveries from a consumer: from now on they belong to the channel alone."""
        entries, none, owner, behind = self.tables.entries, layout.NONE, layout.ENTRY_CONSUMER, layout.ENTRY_NEXT  # near: there may be many
        entry = self.tables.channels[channel + layout.CHANNEL_UNSETTLED_HEAD]
        while entry != none:
            if entries[entry + owner] == consumer:
                entries[entry + owner] = none
            entry = entries[entry + behind]

    def drop_held(self, channel, queue, most):
        """Drop a channel's unsettled entries of a queue, `most` of them at most: how many."""
        tables = self.tables
        entry = tables.channels[channel + layout.CHANNEL_UNSETTLED_HEAD]
        count = 0
        while entry != layout.NONE and count < most:
            behind = tables.entries[entry + layout.ENTRY_NEXT]
            if tables.entries[entry + layout.ENTRY_QUEUE] == queue:
                hot.unhold(tables.entries, tables.queues, tables.channels, tables.consumers, tables.state, channel, entry)
                hot.drop(tables.blocks, tables.messages, tables.entries, tables.queues, tables.state, entry)
                count += 1
            entry = behind
        return count

    def reach(self, channel, tag, most):
        """See hot.reach."""
        return hot.reach(self.tables.entries, self.tables.channels, channel, tag, most)

    def reach_back(self, entry, most):
        """See hot.reach_back."""
        return hot.reach_back(self.tables.entries, entry, most)

    def find_tag(self, channel, tag):
        """See hot.find_tag."""
        return hot.find_tag(self.tables.entries, self.tables.channels, self.tables.state, channel, tag)

    def leave(self, channel, entry, most):
        """See hot.leave."""
        tables = self.tables
        hot.leave(tables.entries, tables.queues, tables.channels, tables.consumers, channel, entry, most)

    def settle(self, channel, first, last, how):
        """See publish.settle_all."""
        tables = self.tables
        return publish.settle_all(
            tables.blocks,
            tables.messages,
            tables.entries,
            tables.queues,
            tables.channels,
            tables.consumers,
            tables.state,
            channel,
            first,
            last,
            how,
        )


chosen: "Any" = Plain
