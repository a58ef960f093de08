"""Ingest: publishes and settlements that need no decision, straight from a receive buffer to their queues.

Written in the viper dialect as hot.py is, with the same laws; c_accel/ingest.c has the same functions in C. `ingest` takes whole publishes
(method, content header, body frames of one channel in a row), basic.ack, nack and reject as long as nothing about them is uncommon, and
stops at the first frame that needs thought: session.py reads that one, from its first octet. Until all of a publish has been looked at
nothing is changed.

What is known flat: the channels of the connection by number (`numbers`), whether a channel takes publishes as they come (CHANNEL_PLAIN),
whether a queue does (QUEUE_PLAIN), and where a route leads for a user who may write there (the route cache, core/broker/route_cache.py).
"""

from ..memory.hot import activate, append, drop, find_tag, give_back, next_number, push, settle, take, unlink_ready, wake_below
from ..shim import const, quicker, same

_MASK = const(0x3FFFFFFF)

_MESSAGE_FIRST = const(0)
_MESSAGE_LAST = const(1)
_MESSAGE_ROUTE = const(2)
_MESSAGE_PROPERTIES = const(3)
_MESSAGE_BODY = const(4)
_MESSAGE_FILLED = const(5)
_MESSAGE_BLOCKS = const(6)
_MESSAGE_REFERENCES = const(7)
_MESSAGE_ARRIVED = const(8)
_MESSAGE_SEGMENT = const(9)
_MESSAGE_KIND = const(10)
_MESSAGE_LIFETIME = const(11)
_MESSAGE_WIDTH = const(12)
_KIND_DURABLE = const(0x10000)
_KIND_HAS_PRIORITY = const(0x80000)

_ENTRY_NEXT = const(1)
_ENTRY_QUEUE = const(4)
_ENTRY_TAG = const(6)
_ENTRY_CONSUMER = const(7)
_ENTRY_DEADLINE = const(8)

_QUEUE_HEAD = const(0)
_QUEUE_LENGTH = const(2)
_QUEUE_UNSETTLED = const(3)
_QUEUE_BLOCKS = const(4)
_QUEUE_OCTETS = const(6)
_QUEUE_PLAIN = const(7)
_QUEUE_LIMITS = const(15)
_QUEUE_TTL = const(16)
_QUEUE_LENGTH_MAX = const(17)
_QUEUE_OCTETS_MAX = const(18)

_CHANNEL_UNSETTLED_HEAD = const(0)
_CHANNEL_UNSETTLED_TAIL = const(1)
_CHANNEL_TAG_HIGH = const(4)
_CHANNEL_CONFIRM = const(6)
_CHANNEL_PUBLISHED = const(7)
_CHANNEL_PLAIN = const(10)
_CHANNEL_COUNTED = const(11)
_CHANNEL_NEXT_COUNTED = const(12)
_CHANNEL_COUNTED_FROM = const(14)

_POOL_BLOCKS = const(0)
_POOL_MESSAGES = const(3)
_POOL_ENTRIES = const(6)
_STATE_BLOCK_SIZE = const(9)
_STATE_PUBLISHED = const(12)
_STATE_SETTLED = const(14)
_STATE_SECONDS = const(18)
_STATE_COUNTED_HEAD = const(19)
_STATE_AT = const(20)
_STATE_END = const(21)
_STATE_SIZE = const(22)
_STATE_FRAME_MAX = const(23)
_STATE_NUMBERS = const(24)
_STATE_USER = const(25)
_STATE_CONTENT_MAX = const(26)
_STATE_PROPERTIES_MAX = const(27)
_STATE_ROUTE_EPOCH = const(28)
_STATE_ROUTE_SLOTS = const(29)
_STATE_ROUTE_LAST = const(30)
_STATE_LOG_ROOM = const(33)
_STATE_LOGGED_HEAD = const(34)
_STATE_LOGGED_TAIL = const(35)
_STATE_LOGGED_OCTETS = const(36)
_STATE_LOGGED_COUNT = const(37)
_STATE_NOW = const(38)
_STATE_DROPPED_HEAD = const(40)
_STATE_REJECTED = const(41)
_STATE_LOGGED_PLACES = const(43)
_STATE_DUE = const(47)
_STATE_LEFT = const(48)
_STATE_KIND = const(49)
_STATE_LIFETIME = const(50)

_ROUTE_EPOCH = const(0)
_ROUTE_USER = const(1)
_ROUTE_SIZE = const(2)
_ROUTE_OCTETS = const(3)
_ROUTE_TARGETS = const(4)
_ROUTE_COUNT = const(5)
_ROUTE_WIDTH = const(6)
_ROUTE_PROBES = const(8)

_INCOMPLETE = const(-1)
_ASK = const(-2)
_ASK_ROUTE = const(-3)
_TURN_OVER = const(-4)

_DEPTH_MAX = const(8)
_RECORD_SIZE = const(33)  # octets of a message's record before its places (log/flat_records.py), and of each place
_PLACE_SIZE = const(12)


def ingest(arena, blocks, messages, entries, queues, channels, consumers, state, routes, route_octets, route_targets, numbers, source):
    """Take what needs no thought from source[state[AT]:state[END]]; state[AT] is behind it then.

    _INCOMPLETE: the next frame, or the content that it begins, is not whole; _ASK: it needs thought; _ASK_ROUTE: only its route was not
    known; _TURN_OVER: it is for the connection's next turn (STATE_LEFT). The parameters stand in state: SIZE (octets that `source` can
    hold), FRAME_MAX, NUMBERS (length of `numbers`), USER.
    """
    end = state[_STATE_END]
    while True:
        at = state[_STATE_AT]
        if end - at < 7:
            return _INCOMPLETE
        if state[_STATE_LEFT] <= 0:
            return _TURN_OVER
        number = source[at + 1] << 8 | source[at + 2]
        if source[at] != 1 or source[at + 3] or number >= state[_STATE_NUMBERS]:
            return _ASK
        channel = numbers[number]
        size = source[at + 4] << 16 | source[at + 5] << 8 | source[at + 6]
        if channel < 0 or size < 5 or size > state[_STATE_FRAME_MAX] or size + 8 > state[_STATE_SIZE]:
            return _ASK
        if channels[channel + _CHANNEL_PLAIN] == 0:
            return _ASK
        if end - at < size + 8:
            return _INCOMPLETE
        if source[at + 7 + size] != 0xCE or source[at + 7] or source[at + 8] != 60 or source[at + 9]:
            return _ASK
        if source[at + 10] == 40:
            behind = take_publish(
                arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, source, channel, size
            )
        elif size == 13 and (source[at + 10] == 80 or source[at + 10] == 90 or source[at + 10] == 120):
            behind = take_settlement(blocks, messages, entries, queues, channels, consumers, state, source, channel)
        else:
            return _ASK
        if behind < 0:
            return behind
        state[_STATE_AT] = behind
        state[_STATE_LEFT] -= 1


def take_settlement(blocks, messages, entries, queues, channels, consumers, state, source, channel):
    """The frame of a basic.ack (80), reject (90) or nack (120) at state[AT]: the position behind it, or _ASK.

    `how`: 0 accepted, 1 refused, 2 to be requeued.
    """
    at = state[_STATE_AT] + 11
    if source[at]:
        return _ASK
    high = source[at + 1] << 18 | source[at + 2] << 10 | source[at + 3] << 2 | source[at + 4] >> 6
    low = (source[at + 4] & 63) << 24 | source[at + 5] << 16 | source[at + 6] << 8 | source[at + 7]
    multiple = source[at + 8] & 1
    how = 0
    if source[at - 1] == 90:
        how = 1 + multiple
        multiple = 0
    elif source[at - 1] == 120:
        how = 1 + (source[at + 8] >> 1 & 1)
    if multiple and high == 0 and low == 0:
        last = channels[channel + _CHANNEL_UNSETTLED_TAIL]
        if last < 0:
            return at + 10
    else:
        if high != channels[channel + _CHANNEL_TAG_HIGH] and high + 1 != channels[channel + _CHANNEL_TAG_HIGH]:
            return _ASK
        last = find_tag(entries, channels, state, channel, low)
        if last < 0:
            return _ASK
    first = last
    if multiple:
        first = channels[channel + _CHANNEL_UNSETTLED_HEAD]
        count = (entries[last + _ENTRY_TAG] - entries[first + _ENTRY_TAG]) & _MASK
        if count >= state[_STATE_LEFT]:
            return _ASK
        state[_STATE_LEFT] -= count
    return at + 10 if settle_all(blocks, messages, entries, queues, channels, consumers, state, channel, first, last, how) else _ASK


def settle_all(blocks, messages, entries, queues, channels, consumers, state, channel, first, last, how):
    """Settle the unsettled entries of a channel from `first` to `last`: 1. Accepted or refused, `first` is the oldest one or `last`.

    `how`: 0 accepted, 1 refused, 2 to be requeued. 0: one of their queues is to see them first, nothing is changed.
    """
    if how > 0 and may_return(entries, queues, first, last, 8 if how == 1 else 16) == 0:
        return 0
    wake_below(entries, queues, channels, consumers, state, channel, first, last)
    if how == 2:
        give_back(messages, entries, queues, channels, consumers, state, channel, first, last)
        return 1
    entry = first
    while True:
        queue = entries[entry + _ENTRY_QUEUE]
        if queues[queue + _QUEUE_LENGTH] > 0 or queues[queue + _QUEUE_PLAIN] == 0:
            activate(queues, state, queue)
        if entry == last:
            break
        entry = entries[entry + _ENTRY_NEXT]
    settle(
        blocks,
        messages,
        entries,
        queues,
        channels,
        consumers,
        state,
        channel,
        last,
        0 if first == last else 1,
        _STATE_REJECTED if how else _STATE_SETTLED,
    )
    return 1


def may_return(entries, queues, entry, last, asks):
    """1 when the queues of the unsettled entries from `entry` to `last` ask for no look at their return; 0: `asks` is in one's limits."""
    while True:
        queue = entries[entry + _ENTRY_QUEUE]
        if queues[queue + _QUEUE_PLAIN] == 0 or queues[queue + _QUEUE_LIMITS] & asks:
            return 0
        if entry == last:
            return 1
        entry = entries[entry + _ENTRY_NEXT]


def take_publish(arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, source, channel, size):
    """The publish whose method frame of `size` octets of payload stands at state[AT]: the position behind its content, or why not."""
    start = state[_STATE_AT]
    route = start + 13
    route_size = size - 7
    if route_size < 2:
        return _ASK
    names = 1 + source[route]
    if names >= route_size or names + 1 + source[route + names] != route_size or source[start + 6 + size] & 2:
        return _ASK
    slot = find_route(state, routes, route_octets, source, route, route_size)
    if slot < 0:
        return _ASK_ROUTE
    if queues[route_targets[routes[slot + _ROUTE_TARGETS]] + _QUEUE_PLAIN] == 0:
        return _ASK
    header = start + size + 8
    behind = header_end(state, source, start, header)
    if behind < 0:
        return behind
    body = source[header + 15] << 24 | source[header + 16] << 16 | source[header + 17] << 8 | source[header + 18]
    if check_properties(state, source, header + 19, behind - 1) == 0:
        return _ASK
    expiration = state[_STATE_LIFETIME]
    blocks_needed = (route_size + behind - header - 20 + body + state[_STATE_BLOCK_SIZE] - 1) // state[_STATE_BLOCK_SIZE]
    logged = may_push(messages, entries, queues, state, routes, route_targets, slot, expiration, blocks_needed, body)
    if logged == 0:
        return _ASK
    whole = body_end(state, source, start, behind, body)
    if whole < 0:
        return whole
    message = fill(arena, blocks, messages, state, source, route, route_size, header, behind - header - 20, body, blocks_needed)
    target = routes[slot + _ROUTE_TARGETS]
    left = routes[slot + _ROUTE_COUNT]
    state[_STATE_LEFT] -= left
    if logged == 2:
        state[_STATE_LOG_ROOM] -= blocks_needed * state[_STATE_BLOCK_SIZE] + _PLACE_SIZE * left
    while left > 0:
        entry = push(messages, entries, queues, state, route_targets[target], message)
        if queues[route_targets[target] + _QUEUE_LIMITS] > 0:
            keep_limits(blocks, messages, entries, queues, state, route_targets[target], entry, expiration)
        activate(queues, state, route_targets[target])
        if logged == 2 and queues[route_targets[target] + _QUEUE_PLAIN] == 2:
            put_aside(messages, entries, state, entry)
        target += 1
        left -= 1
    state[_STATE_PUBLISHED] = (state[_STATE_PUBLISHED] + 1) & _MASK
    if channels[channel + _CHANNEL_CONFIRM]:
        count_publish(channels, state, channel, logged)
    return whole


def header_end(state, source, start, header):
    """The position behind the content header frame at `header`, of the publish at `start`; _INCOMPLETE; or _ASK when it is not as usual."""
    left = state[_STATE_END] - header
    if left < 7:
        return _INCOMPLETE
    size = source[header + 4] << 16 | source[header + 5] << 8 | source[header + 6]
    if source[header] != 2 or source[header + 1] != source[start + 1] or source[header + 2] != source[start + 2] or source[header + 3]:
        return _ASK
    if size < 14 or size > state[_STATE_FRAME_MAX] or size - 12 > state[_STATE_PROPERTIES_MAX] or size + 8 > state[_STATE_SIZE]:
        return _ASK
    if left < size + 8:
        return _INCOMPLETE
    at = header + 7
    if source[at + size] != 0xCE or source[at] or source[at + 1] != 60 or source[at + 2] or source[at + 3]:
        return _ASK
    if source[at + 4] or source[at + 5] or source[at + 6] or source[at + 7] or source[at + 8] > 31:
        return _ASK
    if (source[at + 8] << 24 | source[at + 9] << 16 | source[at + 10] << 8 | source[at + 11]) > state[_STATE_CONTENT_MAX]:
        return _ASK
    return header + size + 8


def body_end(state, source, start, at, left):
    """The position behind the body frames at `at` that hold `left` octets; _INCOMPLETE; _ASK: not as usual, or too large for `source`."""
    if at - start + left + 8 > state[_STATE_SIZE]:
        return _ASK
    end = state[_STATE_END]
    while left > 0:
        if end - at < 7:
            return _INCOMPLETE
        size = source[at + 4] << 16 | source[at + 5] << 8 | source[at + 6]
        if source[at] != 3 or source[at + 1] != source[start + 1] or source[at + 2] != source[start + 2] or source[at + 3]:
            return _ASK
        if size == 0 or size > left or size > state[_STATE_FRAME_MAX]:
            return _ASK
        if end - at < size + 8:
            return _INCOMPLETE
        if source[at + 7 + size] != 0xCE:
            return _ASK
        at += size + 8
        left -= size
    return at


def check_properties(state, source, at, end):
    """1 for properties that are valid and ask for nothing; state[KIND] and state[LIFETIME] have what they say of the message then. 0:
    session.py is to look at them.

    As properties.walk does; besides, user-id, the direct reply queue, CC or BCC among the headers, and an expiration of no or more than
    eight digits are for session.py.
    """
    kind = 0
    lifetime = -1
    high = source[at]
    low = source[at + 1]
    if low & 0x13:
        return 0
    at += 2
    bit = 0x8000
    while bit > 2:
        if (high << 8 | low) & bit:
            size = 1
            if bit == 0x2000:
                if end - at < 4 or source[at]:
                    return 0
                size = 4 + (source[at + 1] << 16 | source[at + 2] << 8 | source[at + 3])
                if size > end - at or check_table(source, at + 4, at + size, 1) == 0:
                    return 0
            elif bit == 0x1000:
                if at < end and source[at] == 2:
                    kind |= _KIND_DURABLE
            elif bit == 0x0800:
                if at < end:
                    kind |= _KIND_HAS_PRIORITY | source[at] << 8
            elif bit == 0x0040:
                size = 8
            elif at < end:
                size = 1 + source[at]
                if bit == 0x0200 and size == 22:
                    return 0  # as long as amq.rabbitmq.reply-to
                if bit == 0x0100:
                    lifetime = digits(source, at + 1, at + size, end)
                    if lifetime < 0:
                        return 0
            at += size
            if at > end:
                return 0
        bit >>= 1
    state[_STATE_KIND] = kind
    state[_STATE_LIFETIME] = lifetime
    return 1 if at == end else 0


def digits(source, at, behind, end):
    """The number that source[at:behind] says in one to eight digits, below `end`; else -1."""
    if behind > end or behind == at or behind - at > 8:
        return -1
    found = 0
    while at < behind:
        if source[at] < 48 or source[at] > 57:
            return -1
        found = found * 10 + source[at] - 48
        at += 1
    return found


def check_table(source, at, end, depth):
    """1 when the pairs between `at` and `end` are a valid field table as field_table.pairs reads it, all names ASCII, and at the first
    level none of them CC or BCC; else 0."""
    if depth > _DEPTH_MAX:
        return 0
    while at < end:
        size = source[at]
        if end - at - 1 <= size:
            return 0
        at += 1
        if depth == 1 and (size == 2 or size == 3) and source[at + size - 1] == 67 and source[at + size - 2] == 67:
            if size == 2 or source[at] == 66:
                return 0
        behind = at + size
        while at < behind:
            if source[at] > 127:
                return 0
            at += 1
        at = value_end(source, at, end, depth)
        if at < 0:
            return 0
    return 1


def value_end(source, at, end, depth):
    """The position behind the typed value at `at` (below `end`), or -1 when it is not valid."""
    letter = source[at]
    at += 1
    size = -1
    if letter == 0x56:  # V
        size = 0
    elif letter == 0x74 or letter == 0x62 or letter == 0x42:  # t b B
        size = 1
    elif letter == 0x73 or letter == 0x75:  # s u
        size = 2
    elif letter == 0x49 or letter == 0x69 or letter == 0x66:  # I i f
        size = 4
    elif letter == 0x44:  # D
        size = 5
    elif letter == 0x6C or letter == 0x4C or letter == 0x64 or letter == 0x54:  # l L d T
        size = 8
    if size >= 0:
        return at + size if size <= end - at else -1
    if letter != 0x53 and letter != 0x78 and letter != 0x41 and letter != 0x46:  # S x A F
        return -1
    if end - at < 4 or source[at]:
        return -1
    size = source[at + 1] << 16 | source[at + 2] << 8 | source[at + 3]
    at += 4
    if size > end - at:
        return -1
    if letter == 0x46 and check_table(source, at, at + size, depth + 1) == 0:
        return -1
    if letter == 0x41 and check_array(source, at, at + size, depth + 1) == 0:
        return -1
    return at + size


def check_array(source, at, end, depth):
    """1 when the values between `at` and `end` are a valid field array; else 0."""
    if depth > _DEPTH_MAX:
        return 0
    while at < end:
        at = value_end(source, at, end, depth)
        if at < 0:
            return 0
    return 1


def route_hash(source, at, size):
    """A number below 2^28 for the octets of a route."""
    found = size
    end = at + size
    while at < end:
        found = (found & 0x3FFFF) * 2039 + source[at] * 31 + (found >> 18) & 0xFFFFFFF
        at += 1
    return found ^ found >> 13


route_hash = quicker(route_hash)


def find_route(state, routes, route_octets, source, at, size):
    """The slot of the route cache that has these octets (exchange and routing key as two short strings) for the user of state, or -1."""
    slot = state[_STATE_ROUTE_LAST]
    if is_route(state, routes, route_octets, slot, source, at, size):
        return slot
    slots = state[_STATE_ROUTE_SLOTS]
    place = route_hash(source, at, size) & (slots - 1)
    probes = _ROUTE_PROBES
    while probes > 0:
        slot = place * _ROUTE_WIDTH
        if is_route(state, routes, route_octets, slot, source, at, size):
            state[_STATE_ROUTE_LAST] = slot
            return slot
        place = (place + 1) & (slots - 1)
        probes -= 1
    return -1


def is_route(state, routes, route_octets, slot, source, at, size):
    """1 when a slot holds these octets, for this user, and is not from before the cache was emptied; else 0."""
    if routes[slot + _ROUTE_SIZE] != size or routes[slot + _ROUTE_EPOCH] != state[_STATE_ROUTE_EPOCH]:
        return 0
    if routes[slot + _ROUTE_USER] != state[_STATE_USER]:
        return 0
    return 1 if same(route_octets, routes[slot + _ROUTE_OCTETS], source, at, size) else 0


def may_push(messages, entries, queues, state, routes, route_targets, slot, expiration, block_total, body):
    """1 when there is room for a message of so many blocks, and every queue of its route takes it without a look; 2 when it has to be
    logged for one of them too, and the log has room; else 0.

    Each queue's share is at most four times what is left of blocks, messages and entries when the message has its own, as sessions see it.
    Rule "share": also Queue.over_share and may_push of publish.c; test_homes.py holds them together.
    """
    left = routes[slot + _ROUTE_COUNT]
    if state[_POOL_BLOCKS + 2] < block_total or state[_POOL_MESSAGES + 2] < 1 or state[_POOL_ENTRIES + 2] < left:
        return 0
    target = routes[slot + _ROUTE_TARGETS]
    answer = 1
    while left > 0:
        queue = route_targets[target]
        plain = queues[queue + _QUEUE_PLAIN]
        if plain == 0:
            return 0
        if plain == 2 and state[_STATE_KIND] & _KIND_DURABLE:
            if state[_STATE_LOG_ROOM] < block_total * state[_STATE_BLOCK_SIZE] + _PLACE_SIZE * routes[slot + _ROUTE_COUNT]:
                return 0
            answer = 2
        limits = queues[queue + _QUEUE_LIMITS]
        if limits & 1 == 0 and expiration >= 0:
            return 0
        if limits & 6 and fits(messages, entries, queues, queue, body) == 0:
            return 0
        held = queues[queue + _QUEUE_LENGTH] + queues[queue + _QUEUE_UNSETTLED]
        if held > 0:
            if held >= 4 * state[_POOL_ENTRIES + 2] or held >= 4 * (state[_POOL_MESSAGES + 2] - 1):
                return 0
            if queues[queue + _QUEUE_BLOCKS] + block_total > 4 * (state[_POOL_BLOCKS + 2] - block_total):
                return 0
        target += 1
        left -= 1
    return answer


def is_over(queues, queue, count, size):
    """1 when so many messages with so many octets of bodies are more than a queue may hold; else 0.

    Rule "length": also over in features/length.py and is_over of publish.c; test_homes.py holds them together.
    """
    most = queues[queue + _QUEUE_LENGTH_MAX]
    if most >= 0 and count > most:
        return 1
    most = queues[queue + _QUEUE_OCTETS_MAX]
    return 1 if most >= 0 and size > most else 0


def fits(messages, entries, queues, queue, body):
    """1 when a queue that holds only so much takes one more without a look (features/length.py).

    0 when it is to be refused, or when what has to go for it is to be a dead letter, the message itself, or one that is yet to be logged.
    """
    count = queues[queue + _QUEUE_LENGTH] + 1
    size = queues[queue + _QUEUE_OCTETS]
    limits = queues[queue + _QUEUE_LIMITS]
    if limits & 4:
        return 1 - is_over(queues, queue, count, size + 1)
    size += body
    entry = queues[queue + _QUEUE_HEAD]
    while is_over(queues, queue, count, size):
        if entry < 0 or limits & 8:
            return 0
        message = entries[entry]
        if queues[queue + _QUEUE_PLAIN] == 2 and messages[message + _MESSAGE_SEGMENT] == 0:
            if messages[message + _MESSAGE_KIND] & _KIND_DURABLE:
                return 0
        count -= 1
        size -= messages[message + _MESSAGE_BODY]
        entry = entries[entry + _ENTRY_NEXT]
    return 1


def keep_limits(blocks, messages, entries, queues, state, queue, entry, expiration):
    """A queue with limits has taken an entry: write its deadline, and let the oldest go that are too many now.

    Rule "lifetime": also write_deadline in features/expiry.py and keep_limits of publish.c; test_homes.py holds them together.
    """
    limits = queues[queue + _QUEUE_LIMITS]
    if limits & 1:
        ttl = queues[queue + _QUEUE_TTL]
        if expiration >= 0 and (ttl < 0 or expiration < ttl):
            ttl = expiration
        moment = 0
        if ttl >= 0:
            moment = (state[_STATE_NOW] + ttl) & _MASK
            if moment == 0:
                moment = 1
            if state[_STATE_DUE] == 0 or (moment - state[_STATE_DUE]) & 0x20000000:
                state[_STATE_DUE] = moment
        entries[entry + _ENTRY_DEADLINE] = moment
    if limits & 2:
        while is_over(queues, queue, queues[queue + _QUEUE_LENGTH], queues[queue + _QUEUE_OCTETS]):
            oldest = queues[queue + _QUEUE_HEAD]
            unlink_ready(messages, entries, queues, queue, oldest)
            drop(blocks, messages, entries, queues, state, oldest)
            state[_STATE_DROPPED_HEAD] += 1


def put_aside(messages, entries, state, entry):
    """Append an entry to the list of entries whose messages are to be logged. The octets of a record's head (log/flat_records.py) are
    added to the list's octets; for a further entry of the last message, the octets of one more place."""
    entries[entry + _ENTRY_CONSUMER] = -1
    tail = state[_STATE_LOGGED_TAIL]
    state[_STATE_LOGGED_TAIL] = entry
    state[_STATE_LOGGED_PLACES] += 1
    state[_STATE_LOGGED_OCTETS] += _PLACE_SIZE
    if state[_STATE_LOGGED_HEAD] < 0:
        state[_STATE_LOGGED_HEAD] = entry
    else:
        entries[tail + _ENTRY_CONSUMER] = entry
        if entries[tail] == entries[entry]:
            return
    state[_STATE_LOGGED_OCTETS] += messages[entries[entry] + _MESSAGE_FILLED] + _RECORD_SIZE
    state[_STATE_LOGGED_COUNT] += 1


def fill(arena, blocks, messages, state, source, route, route_size, header, properties_size, body, block_total):
    """A message record, without a reference yet, with its octets: route, properties behind `header`, and `body` octets in the body
    frames behind that. The caller has seen that there is room."""
    message = take(messages, state, _POOL_MESSAGES, _MESSAGE_WIDTH)
    state[_POOL_BLOCKS + 2] -= block_total
    messages[message + _MESSAGE_FIRST] = -1
    messages[message + _MESSAGE_LAST] = -1
    messages[message + _MESSAGE_ROUTE] = route_size
    messages[message + _MESSAGE_PROPERTIES] = properties_size
    messages[message + _MESSAGE_BODY] = body
    messages[message + _MESSAGE_FILLED] = 0
    messages[message + _MESSAGE_BLOCKS] = block_total
    messages[message + _MESSAGE_REFERENCES] = 0
    messages[message + _MESSAGE_ARRIVED] = state[_STATE_SECONDS]
    messages[message + _MESSAGE_SEGMENT] = 0
    messages[message + _MESSAGE_KIND] = state[_STATE_KIND]
    messages[message + _MESSAGE_LIFETIME] = state[_STATE_LIFETIME]
    append(arena, blocks, messages, state, message, source, route, route_size)
    append(arena, blocks, messages, state, message, source, header + 19, properties_size)
    at = header + 20 + properties_size
    while body > 0:
        size = source[at + 4] << 16 | source[at + 5] << 8 | source[at + 6]
        append(arena, blocks, messages, state, message, source, at + 7, size)
        at += size + 8
        body -= size
    return message


def count_publish(channels, state, channel, logged):
    """Count a publish in confirm mode, and put the channel on the list of those that have something to confirm. `logged`: 2 when the
    publish is to be logged, else 1."""
    before = channels[channel + _CHANNEL_PUBLISHED]
    next_number(channels, channel + _CHANNEL_PUBLISHED)
    if channels[channel + _CHANNEL_COUNTED] < logged:
        if channels[channel + _CHANNEL_COUNTED] == 1:
            channels[channel + _CHANNEL_COUNTED] = 2
            return
        channels[channel + _CHANNEL_COUNTED] = logged
        channels[channel + _CHANNEL_COUNTED_FROM] = before
        channels[channel + _CHANNEL_NEXT_COUNTED] = state[_STATE_COUNTED_HEAD]
        state[_STATE_COUNTED_HEAD] = channel
