"""What holds in a broker's tables after every step: pools, lists, references and sums agree.

`check(broker)` raises Wrong with the first thing that does not. It walks everything: for tests, not for a broker that serves. Bodies that
are set into a send buffer (C, sockets) hold references that it does not see.
"""

from leveret.core import layout
from model import Wrong

NONE = layout.NONE


def check(broker):
    """Every record has an owner, and every count is what it counts."""
    entries = {}  # entry -> where it is
    unsettled = {}  # queue handle -> deliveries
    for handle, found in broker.queue_objects.items():
        if found.handle != handle or broker.queues.get(found.name) is not found:
            raise Wrong("queue '%s' is not at its record" % found.name)
        ready_list(broker, found, entries)
    for connection in broker.connections:
        for channel in connection.channels():
            if not channel.closing:
                unsettled_list(broker, channel, entries, unsettled)
    for found, entry in broker.kept_aside():
        note(entries, entry, "aside of queue '%s'" % found.name)
    windows(broker, entries)
    queue_sums(broker, entries, unsettled)
    settled = settled_list(broker)
    pool_is(broker, layout.POOL_ENTRIES, broker.limits.entry_count_max + broker.tables.spare[2], layout.ENTRY_WIDTH, broker.tables.entries,
            len(entries) + len(settled), broker.limits.entry_count_max, "entries")
    messages(broker, entries)
    active_list(broker)
    if broker.tables.state[layout.STATE_LOGGED_HEAD] != NONE:
        raise Wrong("messages that ingest took are not logged")
    rare_pools(broker)


def note(entries, entry, where):
    """An entry is in one place only."""
    if entry in entries:
        raise Wrong("entry %d is %s and %s" % (entry, entries[entry], where))
    entries[entry] = where


def ready_list(broker, found, entries):
    """The links of a queue's ready list, its length and its octets."""
    tables = broker.tables
    queues, table = tables.queues, tables.entries
    before, entry, count, octets = NONE, queues[found.handle + layout.QUEUE_HEAD], 0, 0
    while entry != NONE:
        note(entries, entry, "ready in queue '%s'" % found.name)
        if table[entry + layout.ENTRY_PREVIOUS] != before:
            raise Wrong("queue '%s': entry %d does not know the one before" % (found.name, entry))
        if table[entry + layout.ENTRY_QUEUE] != found.handle:
            raise Wrong("queue '%s': entry %d is of another queue" % (found.name, entry))
        count += 1
        octets += tables.messages[table[entry + layout.ENTRY_MESSAGE] + layout.MESSAGE_BODY]
        before, entry = entry, table[entry + layout.ENTRY_NEXT]
    for field, value, what in ((layout.QUEUE_TAIL, before, "tail"), (layout.QUEUE_LENGTH, count, "length"),
                               (layout.QUEUE_OCTETS, octets, "octets")):
        if queues[found.handle + field] != value:
            raise Wrong("queue '%s': its %s is %d, and says %d" % (found.name, what, value, queues[found.handle + field]))


def unsettled_list(broker, channel, entries, unsettled):
    """The links of a channel's unsettled list, and its length."""
    tables = broker.tables
    table, channels = tables.entries, tables.channels
    before, entry, count = NONE, channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD], 0
    while entry != NONE:
        note(entries, entry, "unsettled on channel %d of %s" % (channel.number, channel.connection.name))
        if table[entry + layout.ENTRY_PREVIOUS] != before:
            raise Wrong("channel %d: entry %d does not know the one before" % (channel.number, entry))
        queue = table[entry + layout.ENTRY_QUEUE]
        unsettled[queue] = unsettled.get(queue, 0) + 1
        count += 1
        before, entry = entry, table[entry + layout.ENTRY_NEXT]
    if channels[channel.handle + layout.CHANNEL_UNSETTLED] != count or channels[channel.handle + layout.CHANNEL_UNSETTLED_TAIL] != before:
        raise Wrong("channel %d has %d unsettled deliveries and says %d"
                    % (channel.number, count, channels[channel.handle + layout.CHANNEL_UNSETTLED]))


def windows(broker, entries):
    """What readers of streams have read back."""
    for found in broker.queues.values():
        for window in getattr(found.pages, "windows", ()) if found.is_stream else ():
            entry = window.head
            while entry != NONE:
                note(entries, entry, "in a window of stream '%s'" % found.name)
                entry = broker.tables.entries[entry + layout.ENTRY_NEXT] if entry != window.tail else NONE


def queue_sums(broker, entries, unsettled):
    """Blocks and unsettled deliveries of each queue."""
    tables = broker.tables
    blocks = {}
    for entry in entries:
        queue = tables.entries[entry + layout.ENTRY_QUEUE]
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        blocks[queue] = blocks.get(queue, 0) + tables.messages[message + layout.MESSAGE_BLOCKS]
    for handle, found in broker.queue_objects.items():
        if tables.queues[handle + layout.QUEUE_UNSETTLED] != unsettled.get(handle, 0):
            raise Wrong("queue '%s' has %d unsettled deliveries and says %d"
                        % (found.name, unsettled.get(handle, 0), tables.queues[handle + layout.QUEUE_UNSETTLED]))
        if tables.queues[handle + layout.QUEUE_BLOCKS] != blocks.get(handle, 0):
            raise Wrong("queue '%s' has %d blocks and says %d" % (found.name, blocks.get(handle, 0),
                                                                 tables.queues[handle + layout.QUEUE_BLOCKS]))


def settled_list(broker):
    """The entries that wait for the journal."""
    tables = broker.tables
    entry = tables.state[layout.STATE_SETTLED_LIST]
    found = []
    while entry != NONE:
        found.append(entry)
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    return found


def references(broker, entries):
    """message -> how many hold it."""
    tables = broker.tables
    held = {}

    def hold(message):
        if message != NONE:
            held[message] = held.get(message, 0) + 1

    for entry in entries:
        hold(tables.entries[entry + layout.ENTRY_MESSAGE])
    for connection in broker.connections:
        session = connection.session
        if session is None:
            continue
        hold(session.outgoing.message)
        for channel in session.channels.values():
            hold(channel.message)
            for each in channel.returns:
                hold(each[0])
            if channel.transaction is not None:
                for each in channel.transaction.publishes:
                    hold(each[0])
    return held


def messages(broker, entries):
    """Every message is held by as many as it says, and the pools of messages and blocks by these messages."""
    tables = broker.tables
    held = references(broker, entries)
    blocks = 0
    for message, count in held.items():
        if tables.messages[message + layout.MESSAGE_REFERENCES] != count:
            raise Wrong("message %d is held %d times and says %d" % (message, count, tables.messages[message + layout.MESSAGE_REFERENCES]))
        blocks += tables.messages[message + layout.MESSAGE_BLOCKS]
    limits = broker.limits
    pool_is(broker, layout.POOL_MESSAGES, limits.message_count_max + tables.spare[1], layout.MESSAGE_WIDTH, tables.messages, len(held),
            limits.message_count_max, "messages")
    used = limits.arena_size // limits.block_size - tables.state[layout.POOL_BLOCKS + 2]
    if used != blocks:
        raise Wrong("messages hold %d blocks, and %d are taken" % (blocks, used))


def pool_is(broker, pool, capacity, width, table, used, count_max, what):
    """A pool has lent `used` records, and its free list has the others."""
    state = broker.tables.state
    if count_max - state[pool + 2] != used:
        raise Wrong("%d %s have an owner, and %d are taken" % (used, what, count_max - state[pool + 2]))
    free, record = capacity - state[pool + 1] // width, state[pool]
    while record >= 0 and free <= capacity:
        free += 1
        record = table[record]
    if free != capacity - used:
        raise Wrong("the free list of %s has %d, and should have %d" % (what, free, capacity - used))


def active_list(broker):
    """The list of queues that may have something to deliver ends, and has those that say so."""
    tables = broker.tables
    handle, seen = tables.state[layout.STATE_ACTIVE_HEAD], []
    while handle != NONE:
        if handle in seen or handle not in broker.queue_objects:
            raise Wrong("the list of active queues does not end")
        seen.append(handle)
        handle = tables.queues[handle + layout.QUEUE_NEXT_ACTIVE]
    for handle in broker.queue_objects:
        if (handle in seen) != (tables.queues[handle + layout.QUEUE_ACTIVE] == 1):
            raise Wrong("queue '%s' does not know whether it is active" % broker.queue_objects[handle].name)


def rare_pools(broker):
    """Queues, channels and consumers."""
    tables, limits = broker.tables, broker.limits
    channels = consumers = 0
    for connection in broker.connections:
        for channel in connection.channels():
            if not channel.closing:
                channels += 1
                consumers += len(channel.consumers)
    lined_up = sum(len(found.consumers) for found in broker.queues.values())
    for what, pool, count_max, count in (("queues", tables.queue_pool, limits.queue_count_max, len(broker.queues)),
                                         ("channels", tables.channel_pool, limits.channel_count_max, channels),
                                         ("consumers", tables.consumer_pool, limits.consumer_count_max, consumers),
                                         ("consumers of queues", tables.consumer_pool, limits.consumer_count_max, lined_up)):
        if count_max - pool[2] != count:
            raise Wrong("%d %s have an owner, and %d are taken" % (count, what, count_max - pool[2]))
