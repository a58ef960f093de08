"""The hot functions: what happens to every message between a receive buffer and a send buffer.

Written in the viper dialect as plain Python: integers and flat arrays as arguments, `while` loops, no objects, no default arguments.
CPython and bytecode MicroPython run it as it stands; a board build marks it for viper, and C can supply the same functions.
No bounds are checked here: callers have checked every size against its buffer and every pool for room.

Arguments that return: `arena` octets of all blocks; `blocks` next block of each block; `messages entries queues channels consumers` and
`state` are the tables of layout.py. A record is its handle. -1 is none.
"""

from ..shim import const, copy, quicker

_GOT = const(-2)
_RETURNING = const(-3)
_MASK = const(0x3FFFFFFF)

_MESSAGE_FIRST = const(0)
_MESSAGE_LAST = const(1)
_MESSAGE_ROUTE = const(2)
_MESSAGE_PROPERTIES = const(3)
_MESSAGE_BODY = const(4)
_MESSAGE_KIND = const(10)
_KIND_FORMAT = const(255)
_MESSAGE_FILLED = const(5)
_MESSAGE_BLOCKS = const(6)
_MESSAGE_REFERENCES = const(7)
_MESSAGE_SEGMENT = const(9)

_ENTRY_MESSAGE = const(0)
_ENTRY_NEXT = const(1)
_ENTRY_PREVIOUS = const(2)
_ENTRY_POSITION = const(3)
_ENTRY_QUEUE = const(4)
_ENTRY_REDELIVERED = const(5)
_ENTRY_TAG = const(6)
_ENTRY_CONSUMER = const(7)
_ENTRY_DEADLINE = const(8)
_ENTRY_WIDTH = const(9)

_QUEUE_HEAD = const(0)
_QUEUE_TAIL = const(1)
_QUEUE_LENGTH = const(2)
_QUEUE_UNSETTLED = const(3)
_QUEUE_BLOCKS = const(4)
_QUEUE_POSITION = const(5)
_QUEUE_OCTETS = const(6)
_QUEUE_CONSUMERS = const(8)
_QUEUE_ACTIVE = const(9)
_QUEUE_NEXT_ACTIVE = const(10)
_QUEUE_LIMITS = const(15)
_QUEUE_RETURNED = const(19)
_QUEUE_RETURNING = const(20)

_CHANNEL_UNSETTLED_HEAD = const(0)
_CHANNEL_UNSETTLED_TAIL = const(1)
_CHANNEL_UNSETTLED = const(2)
_CHANNEL_TAG = const(3)
_CHANNEL_TAG_HIGH = const(4)
_CHANNEL_PREFETCH = const(5)
_CHANNEL_CONSUMERS = const(15)
_CHANNEL_INDEXED = const(9)
_CHANNEL_WIDTH = const(16)

_CONSUMER_QUEUE = const(0)
_CONSUMER_CHANNEL = const(1)
_CONSUMER_CREDIT = const(2)
_CONSUMER_NO_ACK = const(3)
_CONSUMER_MODE = const(4)
_CONSUMER_NEXT = const(5)

_CREDIT_UNLIMITED = const(0x3FFFFFFF)

_POOL_BLOCKS = const(0)
_POOL_MESSAGES = const(3)
_POOL_ENTRIES = const(6)
_STATE_BLOCK_SIZE = const(9)
_STATE_CURSOR_BLOCK = const(10)
_STATE_CURSOR_OFFSET = const(11)
_STATE_DELIVERED = const(13)
_STATE_SETTLED_LIST = const(15)
_STATE_ACTIVE_HEAD = const(16)
_STATE_ACTIVE_TAIL = const(17)
_STATE_UPTIME = const(46)
_STATE_NOW = const(38)
_STATE_EXPIRED = const(39)
_STATE_REDELIVERED = const(42)
_STATE_TAGS = const(44)
_STATE_TAG_MASK = const(45)
_STATE_LEFT = const(48)

_STEPS = const(16)  # entries that are passed on the way to an old place: so many take as long as one settlement

_SPREAD = const(2533)  # odd: in the index of tags no channel has another's slot for the same tag, and neighbours stand far apart
_NEAR = const(2)  # deliveries at each end of a channel's list that are looked at before the index of tags


def take(table, state, pool, width):
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


def append(arena, blocks, messages, state, message, source, start, size):
    """Copy `size` octets of `source` to the end of a message's chain. Its blocks are already on its account (MESSAGE_BLOCKS)."""
    block_size = state[_STATE_BLOCK_SIZE]
    used = messages[message + _MESSAGE_FILLED] % block_size
    messages[message + _MESSAGE_FILLED] += size
    block = messages[message + _MESSAGE_LAST]
    while size > 0:
        if used == 0:
            fresh = state[_POOL_BLOCKS]
            if fresh >= 0:
                state[_POOL_BLOCKS] = blocks[fresh]
            else:
                fresh = state[_POOL_BLOCKS + 1]
                state[_POOL_BLOCKS + 1] = fresh + 1
            if block >= 0:
                blocks[block] = fresh
            else:
                messages[message + _MESSAGE_FIRST] = fresh
            block = fresh
        room = block_size - used
        if room > size:
            room = size
        copy(arena, block * block_size + used, source, start, room)
        start += room
        size -= room
        used = 0
    messages[message + _MESSAGE_LAST] = block


def extract(arena, blocks, state, block, offset, target, at, size):
    """Copy `size` octets of a chain, from `offset` octets into `block`, to `target`. The cursor of `state` is left behind them."""
    block_size = state[_STATE_BLOCK_SIZE]
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
    state[_STATE_CURSOR_BLOCK] = block
    state[_STATE_CURSOR_OFFSET] = offset


def release(blocks, messages, state, message):
    """Drop one reference to a message; the last one frees its blocks and its record."""
    left = messages[message + _MESSAGE_REFERENCES] - 1
    messages[message + _MESSAGE_REFERENCES] = left
    if left > 0:
        return
    first = messages[message + _MESSAGE_FIRST]
    if first >= 0:
        blocks[messages[message + _MESSAGE_LAST]] = state[_POOL_BLOCKS]
        state[_POOL_BLOCKS] = first
    state[_POOL_BLOCKS + 2] += messages[message + _MESSAGE_BLOCKS]
    messages[message] = state[_POOL_MESSAGES]
    state[_POOL_MESSAGES] = message
    state[_POOL_MESSAGES + 2] += 1


def push(messages, entries, queues, state, queue, message):
    """Put a message at the tail of a queue: its entry. The caller has seen that an entry is free."""
    entry = take(entries, state, _POOL_ENTRIES, _ENTRY_WIDTH)
    tail = queues[queue + _QUEUE_TAIL]
    position = queues[queue + _QUEUE_POSITION]
    entries[entry + _ENTRY_MESSAGE] = message
    entries[entry + _ENTRY_NEXT] = -1
    entries[entry + _ENTRY_PREVIOUS] = tail
    entries[entry + _ENTRY_POSITION] = position
    entries[entry + _ENTRY_QUEUE] = queue
    entries[entry + _ENTRY_REDELIVERED] = 0
    entries[entry + _ENTRY_DEADLINE] = 0
    if tail >= 0:
        entries[tail + _ENTRY_NEXT] = entry
    else:
        queues[queue + _QUEUE_HEAD] = entry
    queues[queue + _QUEUE_TAIL] = entry
    queues[queue + _QUEUE_POSITION] = (position + 1) & _MASK
    queues[queue + _QUEUE_LENGTH] += 1
    queues[queue + _QUEUE_OCTETS] += messages[message + _MESSAGE_BODY]
    queues[queue + _QUEUE_BLOCKS] += messages[message + _MESSAGE_BLOCKS]
    messages[message + _MESSAGE_REFERENCES] += 1
    return entry


def activate(queues, state, queue):
    """Put a queue that has consumers at the end of the list of those that may have something to deliver, unless it is in it."""
    if queues[queue + _QUEUE_ACTIVE] or queues[queue + _QUEUE_CONSUMERS] == 0:
        return
    queues[queue + _QUEUE_ACTIVE] = 1
    queues[queue + _QUEUE_NEXT_ACTIVE] = -1
    tail = state[_STATE_ACTIVE_TAIL]
    if tail >= 0:
        queues[tail + _QUEUE_NEXT_ACTIVE] = queue
    else:
        state[_STATE_ACTIVE_HEAD] = queue
    state[_STATE_ACTIVE_TAIL] = queue


def link_consumer(channels, consumers, channel, old, new):
    """Put `new` where `old` is among the consumers of a channel; old -1: at the end."""
    before = -1
    here = channels[channel + _CHANNEL_CONSUMERS]
    while here != old:
        before = here
        here = consumers[here + _CONSUMER_NEXT]
    if before < 0:
        channels[channel + _CHANNEL_CONSUMERS] = new
    else:
        consumers[before + _CONSUMER_NEXT] = new


def wake_below(entries, queues, channels, consumers, state, channel, entry, last):
    """The unsettled entries of a channel from `entry` to `last` are about to go: wake its consumers when that brings it below its prefetch.

    So a channel that is far above it, because that was lowered, wakes nobody with each of its acknowledgements.
    """
    prefetch = channels[channel + _CHANNEL_PREFETCH]
    left = channels[channel + _CHANNEL_UNSETTLED]
    if prefetch <= 0 or left < prefetch:
        return
    while True:
        left -= 1
        if left < prefetch:
            wake_channel(queues, channels, consumers, state, channel)
            return
        if entry == last:
            return
        entry = entries[entry + _ENTRY_NEXT]


def wake_channel(queues, channels, consumers, state, channel):
    """Activate the queues with messages that a channel's consumers read; the first one is the last the next time."""
    first = channels[channel + _CHANNEL_CONSUMERS]
    last = -1
    consumer = first
    while consumer >= 0:
        queue = consumers[consumer + _CONSUMER_QUEUE]
        if queues[queue + _QUEUE_LENGTH] > 0:
            activate(queues, state, queue)
        last = consumer
        consumer = consumers[consumer + _CONSUMER_NEXT]
    if first != last:
        channels[channel + _CHANNEL_CONSUMERS] = consumers[first + _CONSUMER_NEXT]
        consumers[first + _CONSUMER_NEXT] = -1
        consumers[last + _CONSUMER_NEXT] = first


def next_active(queues, state):
    """Take the first queue out of that list: its handle, or -1."""
    queue = state[_STATE_ACTIVE_HEAD]
    if queue >= 0:
        behind = queues[queue + _QUEUE_NEXT_ACTIVE]
        state[_STATE_ACTIVE_HEAD] = behind
        if behind < 0:
            state[_STATE_ACTIVE_TAIL] = -1
        queues[queue + _QUEUE_ACTIVE] = 0
    return queue


def deactivate(queues, state, queue):
    """Take a queue out of that list wherever it stands in it."""
    if queues[queue + _QUEUE_ACTIVE] == 0:
        return
    queues[queue + _QUEUE_ACTIVE] = 0
    behind = queues[queue + _QUEUE_NEXT_ACTIVE]
    before = -1
    each = state[_STATE_ACTIVE_HEAD]
    while each != queue:
        before = each
        each = queues[each + _QUEUE_NEXT_ACTIVE]
    if before >= 0:
        queues[before + _QUEUE_NEXT_ACTIVE] = behind
    else:
        state[_STATE_ACTIVE_HEAD] = behind
    if behind < 0:
        state[_STATE_ACTIVE_TAIL] = before


def unlink_ready(messages, entries, queues, queue, entry):
    """Take an entry out of its queue's ready list (the record stays taken, the message referenced)."""
    before = entries[entry + _ENTRY_PREVIOUS]
    behind = entries[entry + _ENTRY_NEXT]
    if before >= 0:
        entries[before + _ENTRY_NEXT] = behind
    else:
        queues[queue + _QUEUE_HEAD] = behind
    if behind >= 0:
        entries[behind + _ENTRY_PREVIOUS] = before
    else:
        queues[queue + _QUEUE_TAIL] = before
    if queues[queue + _QUEUE_RETURNED] == entry:
        queues[queue + _QUEUE_RETURNED] = -1
    queues[queue + _QUEUE_LENGTH] -= 1
    queues[queue + _QUEUE_OCTETS] -= messages[entries[entry + _ENTRY_MESSAGE] + _MESSAGE_BODY]


def requeue(messages, entries, queues, queue, entry):
    """Put an entry that is in no list back where its position says: how many others were passed on the way there.

    Positions wrap at 2^30 and lie less than half of that apart. The way there begins at what was put back last, for consumers return
    their deliveries in order or against it.
    """
    position = entries[entry + _ENTRY_POSITION]
    before = queues[queue + _QUEUE_RETURNED]
    steps = 0
    while before >= 0 and (position - entries[before + _ENTRY_POSITION]) & 0x20000000:
        before = entries[before + _ENTRY_PREVIOUS]
        steps += 1
    behind = entries[before + _ENTRY_NEXT] if before >= 0 else queues[queue + _QUEUE_HEAD]
    while behind >= 0 and (position - entries[behind + _ENTRY_POSITION]) & 0x20000000 == 0:
        before = behind
        behind = entries[behind + _ENTRY_NEXT]
        steps += 1
    entries[entry + _ENTRY_PREVIOUS] = before
    entries[entry + _ENTRY_NEXT] = behind
    if before >= 0:
        entries[before + _ENTRY_NEXT] = entry
    else:
        queues[queue + _QUEUE_HEAD] = entry
    if behind >= 0:
        entries[behind + _ENTRY_PREVIOUS] = entry
    else:
        queues[queue + _QUEUE_TAIL] = entry
    queues[queue + _QUEUE_RETURNED] = entry
    queues[queue + _QUEUE_LENGTH] += 1
    queues[queue + _QUEUE_OCTETS] += messages[entries[entry + _ENTRY_MESSAGE] + _MESSAGE_BODY]
    return steps


def hold(entries, queues, channels, channel, entry, consumer):
    """Put an entry, out of the ready list, on a channel's unsettled list under the channel's current delivery tag."""
    tail = channels[channel + _CHANNEL_UNSETTLED_TAIL]
    entries[entry + _ENTRY_TAG] = channels[channel + _CHANNEL_TAG]
    entries[entry + _ENTRY_CONSUMER] = consumer
    entries[entry + _ENTRY_NEXT] = -1
    entries[entry + _ENTRY_PREVIOUS] = tail
    if tail >= 0:
        entries[tail + _ENTRY_NEXT] = entry
    else:
        channels[channel + _CHANNEL_UNSETTLED_HEAD] = entry
    channels[channel + _CHANNEL_UNSETTLED_TAIL] = entry
    if consumer != _GOT:
        channels[channel + _CHANNEL_UNSETTLED] += 1
    queues[entries[entry + _ENTRY_QUEUE] + _QUEUE_UNSETTLED] += 1


def unhold(entries, queues, channels, consumers, state, channel, entry):
    """Take an entry off a channel's unsettled list and give its consumer the credit back, where that is a window."""
    if channels[channel + _CHANNEL_INDEXED] >= 0:
        forget_tag(entries, channels, state, channel, entry)
    before = entries[entry + _ENTRY_PREVIOUS]
    behind = entries[entry + _ENTRY_NEXT]
    if before >= 0:
        entries[before + _ENTRY_NEXT] = behind
    else:
        channels[channel + _CHANNEL_UNSETTLED_HEAD] = behind
    if behind >= 0:
        entries[behind + _ENTRY_PREVIOUS] = before
    else:
        channels[channel + _CHANNEL_UNSETTLED_TAIL] = before
    queues[entries[entry + _ENTRY_QUEUE] + _QUEUE_UNSETTLED] -= 1
    consumer = entries[entry + _ENTRY_CONSUMER]
    if consumer == _RETURNING:
        queues[entries[entry + _ENTRY_QUEUE] + _QUEUE_RETURNING] -= 1
    elif consumer != _GOT:
        channels[channel + _CHANNEL_UNSETTLED] -= 1
    if consumer >= 0 and consumers[consumer + _CONSUMER_CREDIT] != _CREDIT_UNLIMITED and consumers[consumer + _CONSUMER_MODE] == 0:
        consumers[consumer + _CONSUMER_CREDIT] += 1


def drop(blocks, messages, entries, queues, state, entry):
    """Free an entry that is in no list, and its reference to the message. One that the log knows is put aside for the journal."""
    message = entries[entry + _ENTRY_MESSAGE]
    segment = messages[message + _MESSAGE_SEGMENT]
    entries[entry + _ENTRY_TAG] = 0
    queues[entries[entry + _ENTRY_QUEUE] + _QUEUE_BLOCKS] -= messages[message + _MESSAGE_BLOCKS]
    release(blocks, messages, state, message)
    if segment > 0 and entries[entry + _ENTRY_REDELIVERED] >= 0:
        entries[entry + _ENTRY_MESSAGE] = segment
        entries[entry + _ENTRY_NEXT] = state[_STATE_SETTLED_LIST]
        state[_STATE_SETTLED_LIST] = entry
    else:
        give(entries, state, _POOL_ENTRIES, entry)


def expire(blocks, messages, entries, queues, state, queue):
    """Let go of everything at the head of a queue whose time is over (features/expiry.py says what a deadline is).

    Rule "expired": also let_go there and expire of queues.h; test_homes.py holds them together.
    """
    while True:
        entry = queues[queue + _QUEUE_HEAD]
        if entry < 0:
            return
        moment = entries[entry + _ENTRY_DEADLINE]
        if moment == 0:
            return
        if moment < 0:
            if state[_STATE_UPTIME] + moment < 0:
                return
        elif (state[_STATE_NOW] - moment - 1) & 0x20000000:
            return
        unlink_ready(messages, entries, queues, queue, entry)
        drop(blocks, messages, entries, queues, state, entry)
        state[_STATE_EXPIRED] += 1


def settle(blocks, messages, entries, queues, channels, consumers, state, channel, last, multiple, counter):
    """Settle one unsettled entry, `last`, or (multiple) all up to it: the number settled, by which state[counter] goes up."""
    count = 0
    entry = channels[channel + _CHANNEL_UNSETTLED_HEAD] if multiple else last
    while True:
        behind = entries[entry + _ENTRY_NEXT]
        unhold(entries, queues, channels, consumers, state, channel, entry)
        drop(blocks, messages, entries, queues, state, entry)
        count += 1
        if entry == last:
            break
        entry = behind
    state[counter] = (state[counter] + count) & _MASK
    return count


def give_back(messages, entries, queues, channels, consumers, state, channel, first, last):
    """Put the unsettled entries of a channel from `first` to `last` back into their queues, the newest first."""
    entry = last
    while True:
        before = entries[entry + _ENTRY_PREVIOUS]
        queue = entries[entry + _ENTRY_QUEUE]
        unhold(entries, queues, channels, consumers, state, channel, entry)
        if entries[entry + _ENTRY_REDELIVERED] & 255 < 255:
            entries[entry + _ENTRY_REDELIVERED] += 1
        state[_STATE_LEFT] -= requeue(messages, entries, queues, queue, entry) // _STEPS
        activate(queues, state, queue)
        state[_STATE_REDELIVERED] = (state[_STATE_REDELIVERED] + 1) & _MASK
        if entry == first:
            return
        entry = before


def reach(entries, channels, channel, tag, most):
    """The last of the oldest `most` unsettled entries of a channel with delivery tags (low 30 bits) up to `tag`; -1: there is none."""
    last = -1
    entry = channels[channel + _CHANNEL_UNSETTLED_HEAD]
    while entry >= 0 and most > 0 and (tag - entries[entry + _ENTRY_TAG]) & 0x20000000 == 0:
        last = entry
        most -= 1
        entry = entries[entry + _ENTRY_NEXT]
    return last


def reach_back(entries, entry, most):
    """The oldest of `most` unsettled entries of a channel: `entry` and those before it."""
    while most > 1 and entries[entry + _ENTRY_PREVIOUS] >= 0:
        most -= 1
        entry = entries[entry + _ENTRY_PREVIOUS]
    return entry


def leave(entries, queues, channels, consumers, channel, entry):
    """The unsettled entries of a channel up to `entry` are on their way back to their queues: nobody's, and counted for nobody."""
    while entry >= 0:
        consumer = entries[entry + _ENTRY_CONSUMER]
        if consumer != _RETURNING:
            entries[entry + _ENTRY_CONSUMER] = _RETURNING
            queues[entries[entry + _ENTRY_QUEUE] + _QUEUE_RETURNING] += 1
            if consumer != _GOT:
                channels[channel + _CHANNEL_UNSETTLED] -= 1
            if consumer >= 0 and consumers[consumer + _CONSUMER_CREDIT] != _CREDIT_UNLIMITED and consumers[consumer + _CONSUMER_MODE] == 0:
                consumers[consumer + _CONSUMER_CREDIT] += 1
        entry = entries[entry + _ENTRY_PREVIOUS]


def find_tag(entries, channels, state, channel, tag):
    """The unsettled entry with this delivery tag (low 30 bits), or -1. The first few looked at are from both ends: most consumers settle
    near one of them."""
    entry = channels[channel + _CHANNEL_UNSETTLED_HEAD]
    other = channels[channel + _CHANNEL_UNSETTLED_TAIL]
    left = _NEAR
    if state[_STATE_TAG_MASK] == 0:
        left = _MASK
    while entry >= 0 and entries[entry + _ENTRY_TAG] != tag:
        if entries[other + _ENTRY_TAG] == tag:
            return other
        if entry == other:
            return -1
        entry = entries[entry + _ENTRY_NEXT]
        if entry == other:
            return -1
        other = entries[other + _ENTRY_PREVIOUS]
        left -= 1
        if left == 0:
            return find_indexed(entries, channels, state, channel, tag)
    return entry


def find_indexed(entries, channels, state, channel, tag):
    """The same from the index of tags, into which come the entries up to the one asked for, each once."""
    slots = state[_STATE_TAGS]
    mask = state[_STATE_TAG_MASK]
    chains = slots + mask + 1
    number = channel // _CHANNEL_WIDTH * _SPREAD
    entry = channels[slots + ((number ^ tag) & mask)] - 1
    while entry >= 0:
        if entries[entry + _ENTRY_TAG] == tag:
            return entry
        entry = channels[chains + entry // _ENTRY_WIDTH] - 1
    last = channels[channel + _CHANNEL_INDEXED]
    entry = entries[last + _ENTRY_NEXT] if last >= 0 else channels[channel + _CHANNEL_UNSETTLED_HEAD]
    while entry >= 0:
        here = entries[entry + _ENTRY_TAG]
        slot = slots + ((number ^ here) & mask)
        channels[chains + entry // _ENTRY_WIDTH] = channels[slot]
        channels[slot] = entry + 1
        channels[channel + _CHANNEL_INDEXED] = entry
        if here == tag:
            return entry
        entry = entries[entry + _ENTRY_NEXT]
    return -1


def forget_tag(entries, channels, state, channel, entry):
    """Take an unsettled entry, which is still in its channel's list, out of the index of tags if it is in it."""
    mask = state[_STATE_TAG_MASK]
    chains = state[_STATE_TAGS] + mask + 1
    if channels[channel + _CHANNEL_INDEXED] == entry:
        channels[channel + _CHANNEL_INDEXED] = entries[entry + _ENTRY_PREVIOUS]
    place = state[_STATE_TAGS] + ((channel // _CHANNEL_WIDTH * _SPREAD ^ entries[entry + _ENTRY_TAG]) & mask)
    each = channels[place] - 1
    while each >= 0:
        behind = chains + each // _ENTRY_WIDTH
        if each == entry:
            channels[place] = channels[behind]
            return
        place = behind
        each = channels[place] - 1


def next_number(channels, place):
    """Count a number up by one, over two fields of 30 bits: the low ones at `place`, the high ones behind it."""
    low = (channels[place] + 1) & _MASK
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


def put_frame(target, at, type_, channel_number, size):
    """Write the seven octets before a frame's payload (0-9-1 section 4.2.3)."""
    target[at] = type_
    target[at + 1] = channel_number >> 8
    target[at + 2] = channel_number & 255
    target[at + 3] = size >> 24 & 255
    target[at + 4] = size >> 16 & 255
    target[at + 5] = size >> 8 & 255
    target[at + 6] = size & 255


put_frame = quicker(put_frame)


def put_content_header(arena, blocks, messages, state, message, channel_number, target, at):
    """Write a message's content header frame (class basic): the position behind it. The cursor of `state` must stand behind the route;
    it is left at the body."""
    size = messages[message + _MESSAGE_PROPERTIES]
    put_frame(target, at, 2, channel_number, size + 12)
    target[at + 7] = 0
    target[at + 8] = 60
    target[at + 9] = 0
    target[at + 10] = 0
    put_number(target, at + 11, 0, messages[message + _MESSAGE_BODY])
    extract(arena, blocks, state, state[_STATE_CURSOR_BLOCK], state[_STATE_CURSOR_OFFSET], target, at + 19, size)
    target[at + 19 + size] = 0xCE
    return at + 20 + size


def put_body(arena, blocks, state, left, frame_size_max, channel_number, target, at, end):
    """Write body frames from the cursor of `state` while there is room up to `end`: the position behind them.

    `left`: octets of body to write.
    A frame is begun only when at least 1 octet of payload fits with its 8 octets of overhead.
    """
    while left > 0 and end - at > 8:
        size = frame_size_max - 8
        if size > left:
            size = left
        if size > end - at - 8:
            size = end - at - 8
        put_frame(target, at, 3, channel_number, size)
        extract(arena, blocks, state, state[_STATE_CURSOR_BLOCK], state[_STATE_CURSOR_OFFSET], target, at + 7, size)
        target[at + 7 + size] = 0xCE
        at += 8 + size
        left -= size
    return at


def put_deliver(arena, blocks, messages, channels, state, prefix, prefix_size, channel, message, redelivered, target, at):
    """Write a basic.deliver method frame: the position behind it, the cursor of `state` behind the route.

    `prefix` is the frame up to and with the consumer tag (the frame's size is filled in here); then delivery tag, redelivered, route.
    """
    route = messages[message + _MESSAGE_ROUTE]
    size = prefix_size + 9 + route - 7
    copy(target, at, prefix, 0, prefix_size)
    target[at + 3] = size >> 24 & 255
    target[at + 4] = size >> 16 & 255
    target[at + 5] = size >> 8 & 255
    target[at + 6] = size & 255
    at += prefix_size
    put_number(target, at, channels[channel + _CHANNEL_TAG_HIGH], channels[channel + _CHANNEL_TAG])
    target[at + 8] = redelivered
    extract(arena, blocks, state, messages[message + _MESSAGE_FIRST], 0, target, at + 9, route)
    at += 9 + route
    target[at] = 0xCE
    return at + 1


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
    target,
    at,
    end,
):
    """Deliver up to `limit` messages of a consumer's queue into target[at:end]: the position behind them.

    A message is begun when its method, header and whole body fit in one piece (header and body in one frame each); what does not fit
    so, and what another family published, is left to the caller. Drops expired messages. Stops at the first of: no credit, no message, no
    room, prefetch reached.
    """
    queue = consumers[consumer + _CONSUMER_QUEUE]
    channel = consumers[consumer + _CONSUMER_CHANNEL]
    no_ack = consumers[consumer + _CONSUMER_NO_ACK]
    number = prefix[1] << 8 | prefix[2]
    while limit > 0:
        if queues[queue + _QUEUE_LIMITS] & 1:
            expire(blocks, messages, entries, queues, state, queue)
        entry = queues[queue + _QUEUE_HEAD]
        if entry < 0 or consumers[consumer + _CONSUMER_CREDIT] <= 0:
            break
        prefetch = channels[channel + _CHANNEL_PREFETCH]
        if prefetch > 0 and channels[channel + _CHANNEL_UNSETTLED] >= prefetch:
            break
        message = entries[entry + _ENTRY_MESSAGE]
        if messages[message + _MESSAGE_KIND] & _KIND_FORMAT:
            break
        body = messages[message + _MESSAGE_BODY]
        size = prefix_size + 10 + messages[message + _MESSAGE_ROUTE] + 20 + messages[message + _MESSAGE_PROPERTIES] + 8 + body
        if at + size > end or body + 8 > frame_size_max or messages[message + _MESSAGE_PROPERTIES] + 20 > frame_size_max:
            break
        next_number(channels, channel + _CHANNEL_TAG)
        at = put_deliver(
            arena,
            blocks,
            messages,
            channels,
            state,
            prefix,
            prefix_size,
            channel,
            message,
            1 if entries[entry + _ENTRY_REDELIVERED] & 255 else 0,
            target,
            at,
        )
        at = put_content_header(arena, blocks, messages, state, message, number, target, at)
        at = put_body(arena, blocks, state, body, frame_size_max, number, target, at, end)
        unlink_ready(messages, entries, queues, queue, entry)
        if no_ack:
            drop(blocks, messages, entries, queues, state, entry)
        else:
            hold(entries, queues, channels, channel, entry, consumer)
            if consumers[consumer + _CONSUMER_CREDIT] != _CREDIT_UNLIMITED:
                consumers[consumer + _CONSUMER_CREDIT] -= 1
        state[_STATE_DELIVERED] = (state[_STATE_DELIVERED] + 1) & _MASK
        limit -= 1
    return at
