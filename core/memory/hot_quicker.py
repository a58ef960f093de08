"""CPython's own forms of what hot.py does for each message and its blocks. No board carries this file.

Records are written by one call of struct, small functions are in one, and what entries in a row have in common is counted once: each call
and each field of a table costs this interpreter about as much. Blocks that lie one behind the other in the arena, as those of a large body
mostly do, are copied together. tests/accel/test_quicker.py and test_quicker_records.py hold the forms together.
"""

from array import array
from struct import Struct

from .hot import pump as plain_pump
from .hot import settle as plain_settle
from .layout import *

put_message = Struct("12i").pack_into  # all fields of a message
put_entry = Struct("6i").pack_into  # those of an entry up to ENTRY_REDELIVERED


def new_message(messages, state, route_size, properties_size, body_size, block_total, references, arrived, kind, lifetime):
    """See hot.new_message."""
    message = state[POOL_MESSAGES]
    if message >= 0:
        state[POOL_MESSAGES] = messages[message]
    else:
        message = state[POOL_MESSAGES + 1]
        state[POOL_MESSAGES + 1] = message + MESSAGE_WIDTH
    state[POOL_MESSAGES + 2] -= 1
    state[POOL_BLOCKS + 2] -= block_total
    put_message(
        messages, 4 * message, -1, -1, route_size, properties_size, body_size, 0, block_total, references, arrived, 0, kind, lifetime
    )
    return message


def append(arena, blocks, messages, state, message, source, start, size):
    """See hot.append."""
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
        at = block * block_size + used
        room = block_size - used
        if room < size:
            last = together(blocks, state, block, (size - room + block_size - 1) // block_size)
            room += (last - block) * block_size
            block = last
        if room > size:
            room = size
        arena[at : at + room] = source[start : start + room]
        start += room
        size -= room
        used = 0
    messages[message + MESSAGE_LAST] = block


def together(blocks, state, block, most):
    """Append up to `most` blocks to a chain that ends with `block`, as long as each is the next in the arena: the last of them."""
    free = state[POOL_BLOCKS]
    if free < 0:
        fresh = state[POOL_BLOCKS + 1]
        if fresh != block + 1:
            return block
        last = block + most
        blocks[block:last] = array("i", range(fresh, last + 1))
        state[POOL_BLOCKS + 1] = last + 1
        return last
    if free != block + 1:
        return block
    blocks[block] = free
    last = block + most
    while free == block + 1 and block < last:
        block = free
        free = blocks[block]
    state[POOL_BLOCKS] = free
    return block


def extract(arena, blocks, state, block, offset, target, at, size):
    """See hot.extract."""
    block_size = state[STATE_BLOCK_SIZE]
    while size > 0:
        if offset >= block_size:
            offset -= block_size
            block = blocks[block]
            continue
        start = block * block_size + offset
        room = block_size - offset
        while room < size and blocks[block] == block + 1:
            block += 1
            room += block_size
        if room > size:
            offset = block_size - room + size
            room = size
        else:
            offset = block_size
        target[at : at + room] = arena[start : start + room]
        at += room
        size -= room
    state[STATE_CURSOR_BLOCK] = block
    state[STATE_CURSOR_OFFSET] = offset


def push(messages, entries, queues, state, queue, message):
    """See hot.push."""
    entry = state[POOL_ENTRIES]
    if entry >= 0:
        state[POOL_ENTRIES] = entries[entry]
    else:
        entry = state[POOL_ENTRIES + 1]
        state[POOL_ENTRIES + 1] = entry + ENTRY_WIDTH
    state[POOL_ENTRIES + 2] -= 1
    tail = queues[queue + QUEUE_TAIL]
    position = queues[queue + QUEUE_POSITION]
    put_entry(entries, 4 * entry, message, -1, tail, position, queue, 0)
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


def store(arena, blocks, messages, entries, queues, state, queue, rows):
    """Put messages without a lifetime at the tail of a queue, as new_message, append and push of hot.py do one by one: (all its octets, of
    these route, properties and body; kind, blocks) of each."""
    block_size, seconds = state[STATE_BLOCK_SIZE], state[STATE_SECONDS]
    block, block_new = state[POOL_BLOCKS], state[POOL_BLOCKS + 1]
    message, message_new = state[POOL_MESSAGES], state[POOL_MESSAGES + 1]
    entry, entry_new = state[POOL_ENTRIES], state[POOL_ENTRIES + 1]
    tail, position = queues[queue + QUEUE_TAIL], queues[queue + QUEUE_POSITION]
    octets = block_count = 0
    for content, route_size, properties_size, body_size, kind, block_total in rows:
        first = last = -1
        whole = len(content)
        for start in range(0, whole, block_size):
            fresh = block
            if fresh >= 0:
                block = blocks[fresh]
            else:
                fresh = block_new
                block_new += 1
            if first < 0:
                first = fresh
            else:
                blocks[last] = fresh
            last = fresh
            piece = content if whole <= block_size else content[start : start + block_size]
            arena[fresh * block_size : fresh * block_size + len(piece)] = piece
        record = message
        if record >= 0:
            message = messages[record]
        else:
            record = message_new
            message_new += MESSAGE_WIDTH
        put_message(messages, 4 * record, first, last, route_size, properties_size, body_size, whole, block_total, 1, seconds, 0, kind, -1)
        place = entry
        if place >= 0:
            entry = entries[place]
        else:
            place = entry_new
            entry_new += ENTRY_WIDTH
        put_entry(entries, 4 * place, record, -1, tail, position, queue, 0)
        entries[place + ENTRY_DEADLINE] = 0
        if tail >= 0:
            entries[tail + ENTRY_NEXT] = place
        else:
            queues[queue + QUEUE_HEAD] = place
        tail = place
        position = (position + 1) & MASK
        octets += body_size
        block_count += block_total
    count = len(rows)
    state[POOL_BLOCKS], state[POOL_BLOCKS + 1] = block, block_new
    state[POOL_MESSAGES], state[POOL_MESSAGES + 1] = message, message_new
    state[POOL_ENTRIES], state[POOL_ENTRIES + 1] = entry, entry_new
    state[POOL_BLOCKS + 2] -= block_count
    state[POOL_MESSAGES + 2] -= count
    state[POOL_ENTRIES + 2] -= count
    queues[queue + QUEUE_TAIL], queues[queue + QUEUE_POSITION] = tail, position
    queues[queue + QUEUE_LENGTH] += count
    queues[queue + QUEUE_OCTETS] += octets
    queues[queue + QUEUE_BLOCKS] += block_count


def drop(blocks, messages, entries, queues, state, entry):
    """See hot.drop."""
    message = entries[entry + ENTRY_MESSAGE]
    segment = messages[message + MESSAGE_SEGMENT]
    block_total = messages[message + MESSAGE_BLOCKS]
    entries[entry + ENTRY_TAG] = 0
    queues[entries[entry + ENTRY_QUEUE] + QUEUE_BLOCKS] -= block_total
    left = messages[message + MESSAGE_REFERENCES] - 1
    messages[message + MESSAGE_REFERENCES] = left
    if left <= 0:
        first = messages[message + MESSAGE_FIRST]
        if first >= 0:
            blocks[messages[message + MESSAGE_LAST]] = state[POOL_BLOCKS]
            state[POOL_BLOCKS] = first
        state[POOL_BLOCKS + 2] += block_total
        messages[message] = state[POOL_MESSAGES]
        state[POOL_MESSAGES] = message
        state[POOL_MESSAGES + 2] += 1
    if segment > 0 and entries[entry + ENTRY_REDELIVERED] >= 0:
        entries[entry + ENTRY_MESSAGE] = segment
        entries[entry + ENTRY_NEXT] = state[STATE_SETTLED_LIST]
        state[STATE_SETTLED_LIST] = entry
    else:
        entries[entry] = state[POOL_ENTRIES]
        state[POOL_ENTRIES] = entry
        state[POOL_ENTRIES + 2] += 1
    entries[entry + ENTRY_REDELIVERED] = -1


def settle(blocks, messages, entries, queues, channels, consumers, state, channel, last, multiple, counter):
    """See hot.settle. What a queue, a consumer and the pools count is written once for entries in a row that are alike."""
    if not multiple or channels[channel + CHANNEL_INDEXED] >= 0:
        plain_settle(blocks, messages, entries, queues, channels, consumers, state, channel, last, multiple, counter)
        return
    entry = channels[channel + CHANNEL_UNSETTLED_HEAD]
    settled = 0
    behind_last = entries[last + ENTRY_NEXT]
    while entry != behind_last:
        queue = entries[entry + ENTRY_QUEUE]
        consumer = entries[entry + ENTRY_CONSUMER]
        count = block_count = 0
        while entry != behind_last and entries[entry + ENTRY_CONSUMER] == consumer and entries[entry + ENTRY_QUEUE] == queue:
            behind = entries[entry + ENTRY_NEXT]
            message = entries[entry]
            block_total = messages[message + MESSAGE_BLOCKS]
            left = messages[message + MESSAGE_REFERENCES] - 1
            segment = messages[message + MESSAGE_SEGMENT]
            messages[message + MESSAGE_REFERENCES] = left
            if left <= 0:
                first = messages[message + MESSAGE_FIRST]
                if first >= 0:
                    blocks[messages[message + MESSAGE_LAST]] = state[POOL_BLOCKS]
                    state[POOL_BLOCKS] = first
                state[POOL_BLOCKS + 2] += block_total
                messages[message] = state[POOL_MESSAGES]
                state[POOL_MESSAGES] = message
                state[POOL_MESSAGES + 2] += 1
            entries[entry + ENTRY_PREVIOUS] = -1
            entries[entry + ENTRY_TAG] = 0
            if segment > 0 and entries[entry + ENTRY_REDELIVERED] >= 0:
                entries[entry + ENTRY_MESSAGE] = segment
                entries[entry + ENTRY_NEXT] = state[STATE_SETTLED_LIST]
                state[STATE_SETTLED_LIST] = entry
            else:
                entries[entry] = state[POOL_ENTRIES]
                state[POOL_ENTRIES] = entry
                state[POOL_ENTRIES + 2] += 1
            entries[entry + ENTRY_REDELIVERED] = -1
            block_count += block_total
            count += 1
            entry = behind
        queues[queue + QUEUE_BLOCKS] -= block_count
        queues[queue + QUEUE_UNSETTLED] -= count
        if consumer == RETURNING:
            queues[queue + QUEUE_RETURNING] -= count
        else:
            channels[channel + (CHANNEL_GOT if consumer == GOT else CHANNEL_UNSETTLED)] -= count
        if consumer >= 0 and consumers[consumer + CONSUMER_CREDIT] != CREDIT_UNLIMITED and consumers[consumer + CONSUMER_MODE] == 0:
            consumers[consumer + CONSUMER_CREDIT] += count
        settled += count
    channels[channel + CHANNEL_UNSETTLED_HEAD] = entry
    if entry >= 0:
        entries[entry + ENTRY_PREVIOUS] = -1
    else:
        channels[channel + CHANNEL_UNSETTLED_TAIL] = -1
    state[counter] = (state[counter] + settled) & MASK


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
    """See hot.pump. Entries that are held one behind the other stay linked as they were in their queue."""
    queue = consumers[consumer + CONSUMER_QUEUE]
    if queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES or queues[queue + QUEUE_RETURNED] >= 0:
        return plain_pump(
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
        )
    channel = consumers[consumer + CONSUMER_CHANNEL]
    no_ack = consumers[consumer + CONSUMER_NO_ACK]
    limit = min(limit, consumers[consumer + CONSUMER_CREDIT]) if not no_ack else limit if consumers[consumer + CONSUMER_CREDIT] > 0 else 0
    prefetch = channels[channel + CHANNEL_PREFETCH]
    if prefetch != 0:
        room = prefetch - channels[channel + CHANNEL_UNSETTLED]
        limit = min(limit, room) if not no_ack else limit if room > 0 else 0
    first = last = entry = queues[queue + QUEUE_HEAD]
    tag = channels[channel + CHANNEL_TAG]
    count, octets = 0, 0
    try:
        while count < limit and entry >= 0:
            message = entries[entry]
            size = size_of(messages, message, prefix_size, frame_size_max)
            if size < 0 or at + size > end:
                break
            tag = (tag + 1) & MASK
            channels[channel + CHANNEL_TAG] = tag
            if tag == 0:
                channels[channel + CHANNEL_TAG_HIGH] += 1
            at = write(arena, blocks, messages, entries, channels, state, entry, channel, prefix, prefix_size, frame_size_max, target, at)
            octets += messages[message + MESSAGE_BODY]
            behind = entries[entry + ENTRY_NEXT]
            if no_ack:
                entries[entry + ENTRY_PREVIOUS] = -1
                drop(blocks, messages, entries, queues, state, entry)
            else:
                entries[entry + ENTRY_TAG] = tag
                entries[entry + ENTRY_CONSUMER] = consumer
                last = entry
            entry = behind
            count += 1
    finally:
        if count:
            delivered(entries, queues, channels, consumers, state, consumer, first, last, entry, count, octets)
    return at


def delivered(entries, queues, channels, consumers, state, consumer, first, last, behind, count, octets):
    """So many entries from the head of a consumer's queue have gone out, `first` to `last`, with bodies of so many octets: the next one is
    `behind`. Where they are not settled with that they are the newest of the channel's unsettled ones."""
    queue = consumers[consumer + CONSUMER_QUEUE]
    channel = consumers[consumer + CONSUMER_CHANNEL]
    queues[queue + QUEUE_HEAD] = behind
    if behind >= 0:
        entries[behind + ENTRY_PREVIOUS] = -1
    else:
        queues[queue + QUEUE_TAIL] = -1
    queues[queue + QUEUE_LENGTH] -= count
    queues[queue + QUEUE_OCTETS] -= octets
    if not consumers[consumer + CONSUMER_NO_ACK]:
        tail = channels[channel + CHANNEL_UNSETTLED_TAIL]
        entries[first + ENTRY_PREVIOUS] = tail
        entries[last + ENTRY_NEXT] = -1
        if tail >= 0:
            entries[tail + ENTRY_NEXT] = first
        else:
            channels[channel + CHANNEL_UNSETTLED_HEAD] = first
        channels[channel + CHANNEL_UNSETTLED_TAIL] = last
        channels[channel + CHANNEL_UNSETTLED] += count
        queues[queue + QUEUE_UNSETTLED] += count
        if consumers[consumer + CONSUMER_CREDIT] != CREDIT_UNLIMITED:
            consumers[consumer + CONSUMER_CREDIT] -= count
    state[STATE_DELIVERED] = (state[STATE_DELIVERED] + count) & MASK
