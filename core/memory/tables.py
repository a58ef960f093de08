"""The broker's flat memory: the arena of blocks and the tables of records, made once at start.

`Tables` owns them and offers what the control plane does with them; the hot functions work on the same memory.
"""

from ..limits import ROUTE_SIZE_MEAN, ROUTE_TARGETS_MEAN, block_count, route_slots, spare, tag_slots
from ..shim import octets, table
from . import hot, layout


class Tables:
    """All tables for one broker, sized by `limits`; `engine` makes what runs the hot functions on them (core/broker/engine.py)."""

    def __init__(self, limits, engine):
        count = block_count(limits)
        self.spare = spare(limits)  # (blocks, messages, entries) that no pool counts: see lend
        self.arena = octets((count + self.spare[0]) * limits.block_size)
        self.blocks = table(count + self.spare[0])
        self.messages = table(layout.MESSAGE_WIDTH * (limits.message_count_max + self.spare[1]))
        self.entries = table(layout.ENTRY_WIDTH * (limits.entry_count_max + self.spare[2]))
        self.queues = table(layout.QUEUE_WIDTH * limits.queue_count_max)
        slots = tag_slots(limits)
        self.channels = table(
            layout.CHANNEL_WIDTH * limits.channel_count_max + (slots + limits.entry_count_max + self.spare[2] if slots else 0)
        )
        self.consumers = table(layout.CONSUMER_WIDTH * limits.consumer_count_max)
        self.state = table(layout.STATE_WIDTH)
        self.state[layout.STATE_BLOCK_SIZE] = limits.block_size
        self.state[layout.STATE_TAGS] = layout.CHANNEL_WIDTH * limits.channel_count_max
        self.state[layout.STATE_TAG_MASK] = max(slots - 1, 0)
        self.block_size = limits.block_size
        self.identities = None  # what queues remember of messages that have gone by: identities.pool_of
        self.transactions_left = limits.transaction_count_max  # what channels may keep for their commits
        self.identity_count_max = limits.identity_count_max
        self.counts = {"retained_out": 0, "readers_overtaken": 0, "stream_duplicates": 0}  # what streams count; Broker.fold_counters
        # The rarely used pools have a little state of their own: first free, next fresh, left.
        self.queue_pool = table(3)
        self.channel_pool = table(3)
        self.consumer_pool = table(3)
        self.chunk_pool = table(4)  # and behind them the chunk at which copy_forward.Copies.chunks_in goes on
        self.make_chunks(limits.chunk_count_max)
        for place in (
            layout.STATE_SETTLED_LIST,
            layout.STATE_ACTIVE_HEAD,
            layout.STATE_ACTIVE_TAIL,
            layout.STATE_COUNTED_HEAD,
            layout.STATE_WAY,
            layout.STATE_KEPT_HEAD,
            layout.STATE_LOGGED_HEAD,
        ):
            self.state[place] = layout.NONE
        start_pool(self.state, layout.POOL_BLOCKS, count)
        start_pool(self.state, layout.POOL_MESSAGES, limits.message_count_max)
        start_pool(self.state, layout.POOL_ENTRIES, limits.entry_count_max)
        start_pool(self.queue_pool, 0, limits.queue_count_max)
        start_pool(self.channel_pool, 0, limits.channel_count_max)
        start_pool(self.consumer_pool, 0, limits.consumer_count_max)
        slots = route_slots(limits)
        self.routes = table(layout.ROUTE_WIDTH * slots)  # the route cache, see broker/route_cache.py
        self.route_octets = octets(ROUTE_SIZE_MEAN * slots)
        self.route_targets = table(ROUTE_TARGETS_MEAN * slots)
        self.state[layout.STATE_ROUTE_SLOTS] = slots
        self.state[layout.STATE_ROUTE_EPOCH] = 1
        self.state[layout.STATE_CONTENT_MAX] = limits.content_size_max
        self.state[layout.STATE_PROPERTIES_MAX] = limits.properties_size_max
        self.engine = engine(self)
        self.begin_turn()

    def make_chunks(self, count):
        """Make the index of the log, with `count` chunks, all free. Raises MemoryError and leaves what is there as it is."""
        self.chunks = table(layout.CHUNK_WIDTH * count)
        self.chunk_count = count
        self.chunk_pool[3] = layout.NONE
        start_pool(self.chunk_pool, 0, count)

    def begin_turn(self):
        """A connection, or a round of the broker, may do so much before others have their turn."""
        self.state[layout.STATE_LEFT] = self.engine.effort

    def blocks_for(self, size):
        """Blocks that `size` octets take."""
        return (size + self.block_size - 1) // self.block_size

    def has_room(self, block_total, entry_total):
        """True when a message of that many blocks and places in queues can be taken now."""
        state = self.state
        return (
            state[layout.POOL_BLOCKS + 2] >= block_total
            and state[layout.POOL_MESSAGES + 2] > 0
            and state[layout.POOL_ENTRIES + 2] >= entry_total
        )

    def has_spare(self, block_total, entry_total):
        """As `has_room`, with what is kept for draining a full broker."""
        self.lend(1)
        try:
            return self.has_room(block_total, entry_total)
        finally:
            self.lend(-1)

    def lend(self, times):
        """Lend (1) or take back (-1) the reserve. While it is lent a pool may read below zero; nobody else can allocate until it is repaid.
        Only for work that frees memory in its turn: other work would fill the reserve."""
        for pool, count in zip((layout.POOL_BLOCKS, layout.POOL_MESSAGES, layout.POOL_ENTRIES), self.spare):
            self.state[pool + 2] += times * count

    def new_message(self, route, properties_size, body_size, arrived, kind=0, lifetime=layout.NONE, annotations_size=0):
        """A message record with one reference and its blocks on account; `route` (bytes) is already in its chain. `kind` and `lifetime` are
        what MESSAGE_KIND and MESSAGE_LIFETIME are to be; where `annotations_size` is above 0, annotations come first of what is appended.

        The caller has seen `has_room`.
        """
        kind = kind | layout.KIND_ANNOTATED if annotations_size else kind & ~layout.KIND_ANNOTATED
        count = self.blocks_for(len(route) + annotations_size + properties_size + body_size)
        message = hot.new_message(self.messages, self.state, len(route), properties_size, body_size, count, 1, arrived, kind, lifetime)
        self.append(message, route, 0, len(route))
        return message

    def copy_content(self, source, target, skip=0):
        """Append what the publisher of message `source` sent, properties and body, without the first `skip` octets, to the chain of
        `target`."""
        messages = self.messages
        left = messages[source + layout.MESSAGE_PROPERTIES] + messages[source + layout.MESSAGE_BODY] - skip
        offset = self.properties_at(source) + skip
        block = messages[source + layout.MESSAGE_FIRST]
        while left:
            if offset >= self.block_size:
                offset -= self.block_size
                block = self.blocks[block]
                continue
            size = min(left, self.block_size - offset)
            self.append(target, self.arena, block * self.block_size + offset, size)
            offset += size
            left -= size

    def append(self, message, source, start, size):
        """Copy octets to the end of a message (see hot.append)."""
        self.engine.append(message, source, start, size)

    def release(self, message):
        """Drop one reference to a message."""
        hot.release(self.blocks, self.messages, self.state, message)

    def octets(self, message, start, size):
        """`size` octets of a message's chain from `start`, as bytes."""
        if 0 < size <= self.block_size - start:  # all of them in its first block
            at = self.messages[message] * self.block_size + start
            return bytes(self.arena[at : at + size])
        copied = bytearray(size)
        if size:
            hot.extract(self.arena, self.blocks, self.state, self.messages[message], start, memoryview(copied), 0, size)
        return bytes(copied)

    def route_of(self, message):
        """The exchange name and routing key of a message, as two short strings in a row."""
        return self.octets(message, 0, self.messages[message + layout.MESSAGE_ROUTE])

    def properties_of(self, message):
        """The property flags and list of a message, as its publisher sent them."""
        return self.octets(message, self.properties_at(message), self.messages[message + layout.MESSAGE_PROPERTIES])

    def annotations_of(self, message):
        """The annotations of a message (core/message/annotations.py); b"": it has none."""
        route = self.messages[message + layout.MESSAGE_ROUTE]
        return self.octets(message, route, self.properties_at(message) - route)

    def properties_at(self, message):
        """Where the properties begin in the chain of a message: behind its route, and annotations where it has any."""
        at = self.messages[message + layout.MESSAGE_ROUTE]
        if self.messages[message + layout.MESSAGE_KIND] & layout.KIND_ANNOTATED:
            size = self.octets(message, at, 2)
            at += 2 + (size[0] << 8 | size[1])
        return at

    def is_durable(self, message):
        """True when a message's publisher wants it to survive a restart."""
        return self.messages[message + layout.MESSAGE_KIND] & layout.KIND_DURABLE != 0

    def size_of(self, message):
        """Octets of route, annotations, properties and body."""
        return (
            self.properties_at(message) + self.messages[message + layout.MESSAGE_PROPERTIES] + self.messages[message + layout.MESSAGE_BODY]
        )


def start_pool(pool, at, count):
    """A pool whose records have never been used."""
    pool[at] = layout.NONE
    pool[at + 1] = 0
    pool[at + 2] = count


def clear(columns, record, width):
    """Set all integers of a record to 0."""
    for index in range(record, record + width):
        columns[index] = 0
