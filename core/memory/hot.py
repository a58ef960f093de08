"""The hot functions: every message's way from a receive buffer to a send buffer.

Written in the viper dialect as plain Python: integers and flat arrays as arguments, `while` loops, no objects, no default arguments.
CPython and bytecode MicroPython run it as it stands; a board build marks it for viper, and C can supply the same functions.
No bounds are checked here: callers have checked every size against its buffer and every pool for room.

Arguments that return: `arena` octets of all blocks; `blocks` next block of each block; `messages entries queues channels consumers` and
`state` are the tables of layout.py. A record is its handle. -1 is none.
"""

from ..shim import const, copy, quicker
from .layout import *

_SPREAD = const(2533)  # odd: in the index of tags no channel has another's slot for the same tag, and neighbours stand far apart
_NEAR = const(2)  # deliveries at each end of a channel's list that a search reads before the index of tags


def allocate(table, state, pool, width):
    """A free record of `table`: its handle. The caller has seen that state[pool + 2] is above 0."""
    record = state[pool]
    if record >= 0:
        state[pool] = table[record]
    else:
        record = state[pool + 1]
        state[pool + 1] = record + width
    state[pool + 2] -= 1
    return record


def give(table, state, pool, record):
    """Put a record back into its pool."""
    table[record] = state[pool]
    state[pool] = record
    state[pool + 2] += 1


def new_message(messages, state, route_size, properties_size, body_size, block_total, references, arrived, kind, lifetime):
    """A message record with its blocks on account and no octets in its chain yet. The caller has checked that there is room."""
    message = allocate(messages, state, POOL_MESSAGES, MESSAGE_WIDTH)
    state[POOL_BLOCKS + 2] -= block_total
    messages[message + MESSAGE_FIRST] = -1
    messages[message + MESSAGE_LAST] = -1
    messages[message + MESSAGE_ROUTE] = route_size
    messages[message + MESSAGE_PROPERTIES] = properties_size
    messages[message + MESSAGE_BODY] = body_size
    messages[message + MESSAGE_FILLED] = 0
    messages[message + MESSAGE_BLOCKS] = block_total
    messages[message + MESSAGE_REFERENCES] = references
    messages[message + MESSAGE_ARRIVED] = arrived
    messages[message + MESSAGE_SEGMENT] = 0
    messages[message + MESSAGE_KIND] = kind
    messages[message + MESSAGE_LIFETIME] = lifetime
    return message


def append(arena, blocks, messages, state, message, source, start, size):
    """Copy `size` octets of `source` to the end of a message's chain. Its blocks are already on its account (MESSAGE_BLOCKS)."""
    block_size = state[STATE_BLOCK_SIZE]
    used = messages[message + MESSAGE_FILLED] % block_size
    messages[message + MESSAGE_FILLED] += size
    block = messages[message + MESSAGE_LAST]
    while size > 0:
        if used == 0:
            fresh = state[POOL_BLOCKS]
            if fresh >= 0:
                state[POOL_BLOCKS] = blocks[fresh]
            else:
                fresh = state[POOL_BLOCKS + 1]
                state[POOL_BLOCKS + 1] = fresh + 1
            if block >= 0:
                blocks[block] = fresh
            else:
                messages[message + MESSAGE_FIRST] = fresh
            block = fresh
        room = block_size - used
        if room > size:
            room = size
        copy(arena, block * block_size + used, source, start, room)
        start += room
        size -= room
        used = 0
    messages[message + MESSAGE_LAST] = block


def extract(arena, blocks, state, block, offset, target, at, size):
    """Copy `size` octets of a chain, from `offset` octets into `block`, to `target`. The cursor of `state` is left behind them."""
    block_size = state[STATE_BLOCK_SIZE]
    while size > 0:
        if offset >= block_size:
            offset -= block_size
            block = blocks[block]
            continue
        room = block_size - offset
        if room > size:
            room = size
        copy(target, at, arena, block * block_size + offset, room)
        at += room
        offset += room
        size -= room
    state[STATE_CURSOR_BLOCK] = block
    state[STATE_CURSOR_OFFSET] = offset


def release(blocks, messages, state, message):
    """Drop one reference to a message; the last one frees its blocks and its record."""
    left = messages[message + MESSAGE_REFERENCES] - 1
    messages[message + MESSAGE_REFERENCES] = left
    if left > 0:
        return
    first = messages[message + MESSAGE_FIRST]
    if first >= 0:
        blocks[messages[message + MESSAGE_LAST]] = state[POOL_BLOCKS]
        state[POOL_BLOCKS] = first
    state[POOL_BLOCKS + 2] += messages[message + MESSAGE_BLOCKS]
    messages[message] = state[POOL_MESSAGES]
    state[POOL_MESSAGES] = message
    state[POOL_MESSAGES + 2] += 1


def push(messages, entries, queues, state, queue, message):
    """Put a message at the tail of a queue: its entry. The caller has seen that an entry is free."""
    entry = allocate(entries, state, POOL_ENTRIES, ENTRY_WIDTH)
    tail = queues[queue + QUEUE_TAIL]
    position = queues[queue + QUEUE_POSITION]
    entries[entry + ENTRY_MESSAGE] = message
    entries[entry + ENTRY_NEXT] = -1
    entries[entry + ENTRY_PREVIOUS] = tail
    entries[entry + ENTRY_POSITION] = position
    entries[entry + ENTRY_QUEUE] = queue
    entries[entry + ENTRY_REDELIVERED] = 0
    entries[entry + ENTRY_DEADLINE] = 0
    if tail >= 0:
        entries[tail + ENTRY_NEXT] = entry
    else:
        queues[queue + QUEUE_HEAD] = entry
    queues[queue + QUEUE_TAIL] = entry
    queues[queue + QUEUE_POSITION] = (position + 1) & MASK
    queues[queue + QUEUE_LENGTH] += 1
    queues[queue + QUEUE_OCTETS] += messages[message + MESSAGE_BODY]
    queues[queue + QUEUE_BLOCKS] += messages[message + MESSAGE_BLOCKS]
    messages[message + MESSAGE_REFERENCES] += 1
    return entry


def activate(queues, state, queue):
    """Append a queue that has consumers to the list of active queues, unless it is in it."""
    if queues[queue + QUEUE_ACTIVE] or queues[queue + QUEUE_CONSUMERS] == 0:
        return
    queues[queue + QUEUE_ACTIVE] = 1
    queues[queue + QUEUE_NEXT_ACTIVE] = -1
    tail = state[STATE_ACTIVE_TAIL]
    if tail >= 0:
        queues[tail + QUEUE_NEXT_ACTIVE] = queue
    else:
        state[STATE_ACTIVE_HEAD] = queue
    state[STATE_ACTIVE_TAIL] = queue


def link_consumer(channels, consumers, channel, old, new):
    """Put `new` where `old` is among the consumers of a channel; old -1: at the end."""
    before = -1
    here = channels[channel + CHANNEL_CONSUMERS]
    while here != old:
        before = here
        here = consumers[here + CONSUMER_NEXT]
    if before < 0:
        channels[channel + CHANNEL_CONSUMERS] = new
    else:
        consumers[before + CONSUMER_NEXT] = new


def wake_below(entries, queues, channels, consumers, state, channel, entry, last):
    """The unsettled entries of a channel from `entry` to `last` are about to go: wake its consumers when that brings it below its prefetch.

    So a channel that is far above it, because that was lowered, wakes nobody with each of its acknowledgements.
    """
    prefetch = channels[channel + CHANNEL_PREFETCH]
    left = channels[channel + CHANNEL_UNSETTLED]
    if prefetch <= 0 or left < prefetch:
        return
    while True:
        left -= 1
        if left < prefetch:
            wake_channel(queues, channels, consumers, state, channel)
            return
        if entry == last:
            return
        entry = entries[entry + ENTRY_NEXT]


def wake_channel(queues, channels, consumers, state, channel):
    """Activate the queues with messages that a channel's consumers read; the first one is the last the next time."""
    first = channels[channel + CHANNEL_CONSUMERS]
    last = -1
    consumer = first
    while consumer >= 0:
        queue = consumers[consumer + CONSUMER_QUEUE]
        if queues[queue + QUEUE_LENGTH] > 0:
            activate(queues, state, queue)
        last = consumer
        consumer = consumers[consumer + CONSUMER_NEXT]
    if first != last:
        channels[channel + CHANNEL_CONSUMERS] = consumers[first + CONSUMER_NEXT]
        consumers[first + CONSUMER_NEXT] = -1
        consumers[last + CONSUMER_NEXT] = first


def next_active(queues, state):
    """Unlink the first active queue. Returns its handle, or -1."""
    queue = state[STATE_ACTIVE_HEAD]
    if queue >= 0:
        behind = queues[queue + QUEUE_NEXT_ACTIVE]
        state[STATE_ACTIVE_HEAD] = behind
        if behind < 0:
            state[STATE_ACTIVE_TAIL] = -1
        queues[queue + QUEUE_ACTIVE] = 0
    return queue


def deactivate(queues, state, queue):
    """Unlink a queue from the list of active queues, wherever it stands."""
    if queues[queue + QUEUE_ACTIVE] == 0:
        return
    queues[queue + QUEUE_ACTIVE] = 0
    behind = queues[queue + QUEUE_NEXT_ACTIVE]
    before = -1
    each = state[STATE_ACTIVE_HEAD]
    while each != queue:
        before = each
        each = queues[each + QUEUE_NEXT_ACTIVE]
    if before >= 0:
        queues[before + QUEUE_NEXT_ACTIVE] = behind
    else:
        state[STATE_ACTIVE_HEAD] = behind
    if behind < 0:
        state[STATE_ACTIVE_TAIL] = before


def unlink_ready(messages, entries, queues, queue, entry):
    """Unlink an entry from its queue's ready list (the record stays in use, the message referenced)."""
    before = entries[entry + ENTRY_PREVIOUS]
    behind = entries[entry + ENTRY_NEXT]
    if before >= 0:
        entries[before + ENTRY_NEXT] = behind
    else:
        queues[queue + QUEUE_HEAD] = behind
    if behind >= 0:
        entries[behind + ENTRY_PREVIOUS] = before
    else:
        queues[queue + QUEUE_TAIL] = before
    if queues[queue + QUEUE_RETURNED] >= 0:
        forget_returned(entries, queues, queue, entry)
    queues[queue + QUEUE_LENGTH] -= 1
    queues[queue + QUEUE_OCTETS] -= messages[entries[entry + ENTRY_MESSAGE] + MESSAGE_BODY]


def forget_returned(entries, queues, queue, entry):
    """Remove an entry from the tree of its queue's returned entries, if it is in it."""
    position = entries[entry + ENTRY_POSITION]
    node = queues[queue + QUEUE_RETURNED]
    cell = -1
    steps = 0
    while node != entry:
        if node < 0:
            return
        steps += 1
        if steps > TREE_DEEP:
            queues[queue + QUEUE_RETURNED] = -1
            return
        cell = node + TREE_HIGHER
        if (position - entries[node + ENTRY_POSITION]) & 0x20000000:
            cell = node + TREE_LOWER
        node = entries[cell]
    lower = entries[entry + TREE_LOWER]
    higher = entries[entry + TREE_HIGHER]
    while True:
        node = higher
        if lower >= 0 and (higher < 0 or lower * TREE_WEIGHT & TREE_WEIGHT_MASK >= higher * TREE_WEIGHT & TREE_WEIGHT_MASK):
            node = lower
        if cell < 0:
            queues[queue + QUEUE_RETURNED] = node
        else:
            entries[cell] = node
        if lower < 0 or higher < 0:
            return
        if node == lower:
            cell = lower + TREE_HIGHER
            lower = entries[cell]
        else:
            cell = higher + TREE_LOWER
            higher = entries[cell]


def hold(entries, queues, channels, channel, entry, consumer):
    """Put an entry, out of the ready list, on a channel's unsettled list under the channel's current delivery tag."""
    tail = channels[channel + CHANNEL_UNSETTLED_TAIL]
    entries[entry + ENTRY_TAG] = channels[channel + CHANNEL_TAG]
    entries[entry + ENTRY_CONSUMER] = consumer
    entries[entry + ENTRY_NEXT] = -1
    entries[entry + ENTRY_PREVIOUS] = tail
    if tail >= 0:
        entries[tail + ENTRY_NEXT] = entry
    else:
        channels[channel + CHANNEL_UNSETTLED_HEAD] = entry
    channels[channel + CHANNEL_UNSETTLED_TAIL] = entry
    if consumer != GOT:
        channels[channel + CHANNEL_UNSETTLED] += 1
    else:
        channels[channel + CHANNEL_GOT] += 1
    queues[entries[entry + ENTRY_QUEUE] + QUEUE_UNSETTLED] += 1


def unhold(entries, queues, channels, consumers, state, channel, entry):
    """Unlink an entry from a channel's unsettled list and return the credit to its consumer, where that is a window."""
    if channels[channel + CHANNEL_INDEXED] >= 0:
        forget_tag(entries, channels, state, channel, entry)
    before = entries[entry + ENTRY_PREVIOUS]
    behind = entries[entry + ENTRY_NEXT]
    if before >= 0:
        entries[before + ENTRY_NEXT] = behind
    else:
        channels[channel + CHANNEL_UNSETTLED_HEAD] = behind
    if behind >= 0:
        entries[behind + ENTRY_PREVIOUS] = before
    else:
        channels[channel + CHANNEL_UNSETTLED_TAIL] = before
    queues[entries[entry + ENTRY_QUEUE] + QUEUE_UNSETTLED] -= 1
    consumer = entries[entry + ENTRY_CONSUMER]
    if consumer == RETURNING:
        queues[entries[entry + ENTRY_QUEUE] + QUEUE_RETURNING] -= 1
    elif consumer != GOT:
        channels[channel + CHANNEL_UNSETTLED] -= 1
    else:
        channels[channel + CHANNEL_GOT] -= 1
    if consumer >= 0 and consumers[consumer + CONSUMER_CREDIT] != CREDIT_UNLIMITED and consumers[consumer + CONSUMER_MODE] == 0:
        consumers[consumer + CONSUMER_CREDIT] += 1


def drop(blocks, messages, entries, queues, state, entry):
    """Free an entry that is in no list, and its reference to the message. One that the log knows is put aside for the journal; from now
    on it is in no message's count (flat_records.live_in)."""
    message = entries[entry + ENTRY_MESSAGE]
    segment = messages[message + MESSAGE_SEGMENT]
    entries[entry + ENTRY_TAG] = 0
    queues[entries[entry + ENTRY_QUEUE] + QUEUE_BLOCKS] -= messages[message + MESSAGE_BLOCKS]
    release(blocks, messages, state, message)
    if segment > 0 and entries[entry + ENTRY_REDELIVERED] >= 0:
        entries[entry + ENTRY_MESSAGE] = segment
        entries[entry + ENTRY_NEXT] = state[STATE_SETTLED_LIST]
        state[STATE_SETTLED_LIST] = entry
    else:
        give(entries, state, POOL_ENTRIES, entry)
    entries[entry + ENTRY_REDELIVERED] = -1


def expire(blocks, messages, entries, queues, state, queue):
    """Drop all entries at the head of a queue whose deadline has passed (deadlines: features/expiry.py): 0. 1: the first such one is to be
    a dead letter, which Python has to make.

    Rule "expired": also let_go there and expire of queues.h; test_homes.py holds them together.
    """
    while True:
        entry = queues[queue + QUEUE_HEAD]
        if entry < 0:
            return 0
        moment = entries[entry + ENTRY_DEADLINE]
        if moment == 0:
            return 0
        if moment < 0:
            if state[STATE_UPTIME] + moment < 0:
                return 0
        elif (state[STATE_NOW] - moment - 1) & 0x20000000:
            return 0
        if queues[queue + QUEUE_LIMITS] & LIMIT_DEAD_LETTERS:
            return 1
        unlink_ready(messages, entries, queues, queue, entry)
        drop(blocks, messages, entries, queues, state, entry)
        state[STATE_EXPIRED] += 1


def settle(blocks, messages, entries, queues, channels, consumers, state, channel, last, multiple, counter):
    """Settle one unsettled entry, `last`, or (multiple) all up to it; state[counter] goes up by their number."""
    count = 0
    entry = channels[channel + CHANNEL_UNSETTLED_HEAD] if multiple else last
    while True:
        behind = entries[entry + ENTRY_NEXT]
        unhold(entries, queues, channels, consumers, state, channel, entry)
        drop(blocks, messages, entries, queues, state, entry)
        count += 1
        if entry == last:
            break
        entry = behind
    state[counter] = (state[counter] + count) & MASK


def reach(entries, channels, channel, tag, most):
    """The last of the oldest `most` unsettled entries of a channel with delivery tags (low 30 bits) up to `tag`; -1: there is none."""
    last = -1
    entry = channels[channel + CHANNEL_UNSETTLED_HEAD]
    while entry >= 0 and most > 0 and (tag - entries[entry + ENTRY_TAG]) & 0x20000000 == 0:
        last = entry
        most -= 1
        entry = entries[entry + ENTRY_NEXT]
    return last


def reach_back(entries, entry, most):
    """The oldest of `most` unsettled entries of a channel: `entry` and those before it."""
    while most > 1 and entries[entry + ENTRY_PREVIOUS] >= 0:
        most -= 1
        entry = entries[entry + ENTRY_PREVIOUS]
    return entry


def leave(entries, queues, channels, consumers, channel, entry, most):
    """The newest `most` of the unsettled entries of a channel up to `entry` are on their way back to their queues: no consumer's, and in no
    consumer's count. Entries in a row of one consumer and one queue are counted together."""
    while entry >= 0 and most > 0:
        consumer = entries[entry + ENTRY_CONSUMER]
        queue = entries[entry + ENTRY_QUEUE]
        count = most
        while most > 0 and entry >= 0 and entries[entry + ENTRY_CONSUMER] == consumer and entries[entry + ENTRY_QUEUE] == queue:
            most -= 1
            entries[entry + ENTRY_CONSUMER] = RETURNING
            entry = entries[entry + ENTRY_PREVIOUS]
        count -= most
        if consumer != RETURNING:
            queues[queue + QUEUE_RETURNING] += count
            if consumer != GOT:
                channels[channel + CHANNEL_UNSETTLED] -= count
            else:
                channels[channel + CHANNEL_GOT] -= count
            if consumer >= 0 and consumers[consumer + CONSUMER_CREDIT] != CREDIT_UNLIMITED and consumers[consumer + CONSUMER_MODE] == 0:
                consumers[consumer + CONSUMER_CREDIT] += count


def find_tag(entries, channels, state, channel, tag):
    """The unsettled entry with this delivery tag (low 30 bits), or -1. The search reads the first few from both ends: most consumers settle
    near one of them."""
    entry = channels[channel + CHANNEL_UNSETTLED_HEAD]
    other = channels[channel + CHANNEL_UNSETTLED_TAIL]
    left = _NEAR
    if state[STATE_TAG_MASK] == 0:
        left = MASK
    while entry >= 0 and entries[entry + ENTRY_TAG] != tag:
        if entries[other + ENTRY_TAG] == tag:
            return other
        if entry == other:
            return -1
        entry = entries[entry + ENTRY_NEXT]
        if entry == other:
            return -1
        other = entries[other + ENTRY_PREVIOUS]
        left -= 1
        if left == 0:
            return find_indexed(entries, channels, state, channel, tag)
    return entry


def find_indexed(entries, channels, state, channel, tag):
    """The channel's entry with a tag, by the index of tags; entries up to that one enter the index first, each once."""
    slots = state[STATE_TAGS]
    mask = state[STATE_TAG_MASK]
    chains = slots + mask + 1
    number = channel // CHANNEL_WIDTH * _SPREAD
    entry = channels[slots + ((number ^ tag) & mask)] - 1
    while entry >= 0:
        if entries[entry + ENTRY_TAG] == tag:
            return entry
        entry = channels[chains + entry // ENTRY_WIDTH] - 1
    last = channels[channel + CHANNEL_INDEXED]
    entry = entries[last + ENTRY_NEXT] if last >= 0 else channels[channel + CHANNEL_UNSETTLED_HEAD]
    while entry >= 0:
        here = entries[entry + ENTRY_TAG]
        slot = slots + ((number ^ here) & mask)
        channels[chains + entry // ENTRY_WIDTH] = channels[slot]
        channels[slot] = entry + 1
        channels[channel + CHANNEL_INDEXED] = entry
        if here == tag:
            return entry
        entry = entries[entry + ENTRY_NEXT]
    return -1


def forget_tag(entries, channels, state, channel, entry):
    """Remove an unsettled entry, which is still in its channel's list, from the index of tags if it is in it."""
    mask = state[STATE_TAG_MASK]
    chains = state[STATE_TAGS] + mask + 1
    if channels[channel + CHANNEL_INDEXED] == entry:
        channels[channel + CHANNEL_INDEXED] = entries[entry + ENTRY_PREVIOUS]
    place = state[STATE_TAGS] + ((channel // CHANNEL_WIDTH * _SPREAD ^ entries[entry + ENTRY_TAG]) & mask)
    each = channels[place] - 1
    while each >= 0:
        behind = chains + each // ENTRY_WIDTH
        if each == entry:
            channels[place] = channels[behind]
            return
        place = behind
        each = channels[place] - 1


def next_number(channels, place):
    """Count a number up by one, over two fields of 30 bits: the low ones at `place`, the high ones behind it."""
    low = (channels[place] + 1) & MASK
    channels[place] = low
    if low == 0:
        channels[place + 1] += 1


def put_number(target, at, high, low):
    """Write the 64-bit number high * 2^30 + low, big-endian."""
    target[at] = high >> 26 & 255
    target[at + 1] = high >> 18 & 255
    target[at + 2] = high >> 10 & 255
    target[at + 3] = high >> 2 & 255
    target[at + 4] = (high << 6 | low >> 24) & 255
    target[at + 5] = low >> 16 & 255
    target[at + 6] = low >> 8 & 255
    target[at + 7] = low & 255


put_number = quicker(put_number)


def pump(
    arena,
    blocks,
    messages,
    entries,
    queues,
    channels,
    consumers,
    state,
    consumer,
    limit,
    prefix,
    prefix_size,
    frame_size_max,
    size_of,
    write,
    target,
    at,
    end,
):
    """Deliver up to `limit` messages of a consumer's queue into target[at:end]: the position behind them.

    The octets are the family's: `size_of` returns how many octets a delivery takes in one piece (-1: never in one piece), `write` writes
    one. `prefix`: octets that the family has made for this consumer, and alone reads. The caller handles a delivery that does not fit in
    one piece. Drops expired messages. Stops at the first of: no credit, no message, no room, prefetch reached, a dead letter to be made.
    """
    queue = consumers[consumer + CONSUMER_QUEUE]
    channel = consumers[consumer + CONSUMER_CHANNEL]
    no_ack = consumers[consumer + CONSUMER_NO_ACK]
    while limit > 0:
        if queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES and expire(blocks, messages, entries, queues, state, queue):
            break
        entry = queues[queue + QUEUE_HEAD]
        if entry < 0 or consumers[consumer + CONSUMER_CREDIT] <= 0:
            break
        prefetch = channels[channel + CHANNEL_PREFETCH]
        if prefetch != 0 and channels[channel + CHANNEL_UNSETTLED] >= prefetch:
            break
        size = size_of(messages, entries[entry], prefix_size, frame_size_max)
        if size < 0 or at + size > end:
            break
        next_number(channels, channel + CHANNEL_TAG)
        at = write(arena, blocks, messages, entries, channels, state, entry, channel, prefix, prefix_size, frame_size_max, target, at)
        unlink_ready(messages, entries, queues, queue, entry)
        if no_ack:
            drop(blocks, messages, entries, queues, state, entry)
        else:
            hold(entries, queues, channels, channel, entry, consumer)
            if consumers[consumer + CONSUMER_CREDIT] != CREDIT_UNLIMITED:
                consumers[consumer + CONSUMER_CREDIT] -= 1
        state[STATE_DELIVERED] = (state[STATE_DELIVERED] + 1) & MASK
        limit -= 1
    return at


new_message = quicker(new_message)
append = quicker(append)
extract = quicker(extract)
push = quicker(push)
drop = quicker(drop)
settle = quicker(settle)
pump = quicker(pump)
