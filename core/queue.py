"""A queue: messages in order, ready for one of its consumers.

The order is flat (records of layout.QUEUE and layout.ENTRY); the object here holds what is decided rarely: names, arguments,
consumers. A message that comes back (reject, recover, a channel that closes) goes back to where it stood, as in RabbitMQ.
"""

from . import hot, layout


class Queue:
    """One queue on the record `handle` of the queue table."""

    is_stream = False

    def __init__(self, tables, handle, name, durable, auto_delete, arguments, owner):
        self.tables = tables
        self.handle = handle
        self.name = name
        self.durable = durable
        self.auto_delete = auto_delete
        self.arguments = arguments
        self.owner = owner  # the connection it is exclusive to, or None
        self.declared_by = None  # whose share it counts on
        self.consumers = []
        self.consumer_next = 0
        self.exclusive_consumer = False
        self.active = False  # in the broker's list of queues to deliver from
        self.deleted = False
        queues = tables.queues
        for field in range(layout.QUEUE_WIDTH):
            queues[handle + field] = 0
        queues[handle + layout.QUEUE_HEAD] = layout.NONE
        queues[handle + layout.QUEUE_TAIL] = layout.NONE

    def message_count(self):
        """Messages ready (what queue.declare-ok tells)."""
        return self.tables.queues[self.handle + layout.QUEUE_LENGTH]

    def unsettled_count(self):
        """Messages delivered and not settled."""
        return self.tables.queues[self.handle + layout.QUEUE_UNSETTLED]

    def full(self, block_total):
        """True when a publisher must wait: taking `block_total` more blocks would pass the queue's share."""
        return self.over_share(block_total)

    def over_share(self, block_total):
        """True when the queue with `block_total` more blocks would be over its share: four times what is left of blocks, entries, messages.

        So one queue alone gets four fifths of the arena, two get four ninths each, and there is always something left for another.
        """
        queues = self.tables.queues
        state = self.tables.state
        held = queues[self.handle + layout.QUEUE_LENGTH] + queues[self.handle + layout.QUEUE_UNSETTLED]
        if held == 0:
            return False
        return (queues[self.handle + layout.QUEUE_BLOCKS] + block_total > 4 * state[layout.POOL_BLOCKS + 2]
                or held >= 4 * state[layout.POOL_ENTRIES + 2] or held >= 4 * state[layout.POOL_MESSAGES + 2])

    def push(self, message):
        """Take a message at the tail. The caller has seen that an entry is free."""
        tables = self.tables
        hot.push(tables.messages, tables.entries, tables.queues, tables.state, self.handle, message)

    def pop(self):
        """The entry at the head, off the ready list, or NONE."""
        tables = self.tables
        entry = tables.queues[self.handle + layout.QUEUE_HEAD]
        if entry != layout.NONE:
            hot.unlink_ready(tables.entries, tables.queues, self.handle, entry)
        return entry

    def requeue(self, entry):
        """Put an entry that is in no list back where its position says, marked as redelivered."""
        tables = self.tables
        entries, queues, queue = tables.entries, tables.queues, self.handle
        entries[entry + layout.ENTRY_REDELIVERED] = 1
        position = entries[entry + layout.ENTRY_POSITION]
        behind = queues[queue + layout.QUEUE_HEAD]
        while behind != layout.NONE and later(position, entries[behind + layout.ENTRY_POSITION]):
            behind = entries[behind + layout.ENTRY_NEXT]
        before = queues[queue + layout.QUEUE_TAIL] if behind == layout.NONE else entries[behind + layout.ENTRY_PREVIOUS]
        entries[entry + layout.ENTRY_NEXT] = behind
        entries[entry + layout.ENTRY_PREVIOUS] = before
        if before == layout.NONE:
            queues[queue + layout.QUEUE_HEAD] = entry
        else:
            entries[before + layout.ENTRY_NEXT] = entry
        if behind == layout.NONE:
            queues[queue + layout.QUEUE_TAIL] = entry
        else:
            entries[behind + layout.ENTRY_PREVIOUS] = entry
        queues[queue + layout.QUEUE_LENGTH] += 1

    def purge(self):
        """Drop all ready messages (0-9-1 section 1.7.2.7: not those delivered and unsettled): how many."""
        count = self.message_count()
        entry = self.pop()
        while entry != layout.NONE:
            self.drop(entry)
            entry = self.pop()
        return count

    def drop(self, entry):
        """Free an entry that is in no list."""
        tables = self.tables
        hot.drop(tables.blocks, tables.messages, tables.entries, tables.queues, tables.state, entry)


def later(position, other):
    """True when `position` comes behind `other`; both wrap at 2^30 and lie less than half of that apart."""
    return (position - other) & layout.MASK < 0x20000000 and position != other
