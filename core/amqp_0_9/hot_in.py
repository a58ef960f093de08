"""Ingest of 0-9-1 without a session: publishes, acknowledgements and refusals that need no decision, straight from a receive buffer.

Written in the viper dialect as core/memory/hot.py is, with the same laws; c_accel/amqp_0_9_ingest.c has the same functions in C. `ingest`
processes whole publishes (method, content header, body frames of one channel in a row), basic.ack, nack and reject of the common forms, and
stops at the first frame that needs a decision: session.py reads that one, from its first octet. Nothing is changed until all of a publish
has been checked. The neutral half is in core/broker/publish.py.

The flat state: the channels of the connection by number (`numbers`), and whether a channel accepts publishes as they come (CHANNEL_PLAIN).
"""

from ..broker.publish import find_route, is_named, may_push, publish, settle_all
from ..memory.hot import append, find_tag, new_message
from ..memory.layout import *
from ..shim import const, quicker

_DEPTH_MAX = const(8)


def ingest(arena, blocks, messages, entries, queues, channels, consumers, state, routes, route_octets, route_targets, numbers, source):
    """Process frames that need no decision from source[state[AT]:state[END]]; state[AT] is behind them then.

    INCOMPLETE: the next frame, or the content that it begins, is not whole; ASK: it needs a decision; ASK_ROUTE: only its route is not
    cached; TURN_OVER: it is for the connection's next turn (STATE_LEFT). The parameters stand in state: SIZE (octets that `source` can
    hold), FRAME_MAX, NUMBERS (length of `numbers`), USER.
    """
    end = state[STATE_END]
    while True:
        at = state[STATE_AT]
        if end - at < 7:
            return INCOMPLETE
        if state[STATE_LEFT] <= 0:
            return TURN_OVER
        number = source[at + 1] << 8 | source[at + 2]
        if source[at] != 1 or source[at + 3] or number >= state[STATE_NUMBERS]:
            return ASK
        channel = numbers[number]
        size = source[at + 4] << 16 | source[at + 5] << 8 | source[at + 6]
        if channel < 0 or size < 5 or size > state[STATE_FRAME_MAX] or size + 8 > state[STATE_SIZE]:
            return ASK
        if channels[channel + CHANNEL_PLAIN] == 0:
            return ASK
        if end - at < size + 8:
            return INCOMPLETE
        if source[at + 7 + size] != 0xCE or source[at + 7] or source[at + 8] != 60 or source[at + 9]:
            return ASK
        if source[at + 10] == 40:
            behind = ingest_publish(
                arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, source, channel, size
            )
        elif (
            size == 13
            and channels[channel + CHANNEL_PLAIN] == 1
            and (source[at + 10] == 80 or source[at + 10] == 90 or source[at + 10] == 120)
        ):
            behind = ingest_settlement(blocks, messages, entries, queues, channels, consumers, state, source, channel)
        else:
            return ASK
        if behind < 0:
            return behind
        state[STATE_AT] = behind
        state[STATE_LEFT] -= 1


def ingest_settlement(blocks, messages, entries, queues, channels, consumers, state, source, channel):
    """The frame of a basic.ack (80), reject (90) or nack (120) at state[AT]: the position behind it, or ASK.

    `how`: 0 accepted, 1 refused, 2 to be requeued.
    """
    at = state[STATE_AT] + 11
    if source[at]:
        return ASK
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
        last = channels[channel + CHANNEL_UNSETTLED_TAIL]
        if last < 0:
            return at + 10
    else:
        if high != channels[channel + CHANNEL_TAG_HIGH] and high + 1 != channels[channel + CHANNEL_TAG_HIGH]:
            return ASK
        last = find_tag(entries, channels, state, channel, low)
        if last < 0:
            return ASK
    first = last
    if multiple:
        first = channels[channel + CHANNEL_UNSETTLED_HEAD]
        count = (entries[last + ENTRY_TAG] - entries[first + ENTRY_TAG]) & MASK
        if count >= state[STATE_LEFT]:
            return ASK
        state[STATE_LEFT] -= count
    return at + 10 if settle_all(blocks, messages, entries, queues, channels, consumers, state, channel, first, last, how) else ASK


def ingest_publish(arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, source, channel, size):
    """The publish whose method frame of `size` octets of payload stands at state[AT]: the position behind its content, or why not."""
    start = state[STATE_AT]
    route = start + 13
    route_size = size - 7
    if route_size < 2:
        return ASK
    names = 1 + source[route]
    if names >= route_size or names + 1 + source[route + names] != route_size or source[start + 6 + size] & 2:
        return ASK
    way = state[STATE_WAY]
    state[STATE_WAY] = -1
    slot = way
    if way < 0:
        slot = find_route(state, routes, route_octets, source, route, route_size)
    if slot < 0:
        return ASK_ROUTE
    keeps = channels[channel + CHANNEL_PLAIN] - 1
    if keeps == 0 and queues[route_targets[routes[slot + ROUTE_TARGETS]] + QUEUE_PLAIN] == 0:
        return ASK
    header = start + size + 8
    behind = header_end(state, source, start, header)
    if behind < 0:
        return behind
    body = source[header + 15] << 24 | source[header + 16] << 16 | source[header + 17] << 8 | source[header + 18]
    checked = check_properties(state, source, header + 19, behind - 1)
    if checked == 0:
        return ASK
    if checked == 2 and way < 0:
        return ASK_ROUTE
    expiration = state[STATE_LIFETIME]
    blocks_needed = (route_size + behind - header - 20 + body + state[STATE_BLOCK_SIZE] - 1) // state[STATE_BLOCK_SIZE]
    logged = 1
    if keeps:
        if checked == 2 or source[start + 6 + size] & 1 or may_keep(state, channel, blocks_needed) == 0:
            return ASK
    else:
        logged = may_push(messages, entries, queues, state, routes, route_targets, slot, expiration, blocks_needed, body)
    if logged == 0 or logged == PLAIN_STREAM and is_named(source, header + 19, behind - 1):
        return ASK
    whole = body_end(state, source, start, behind, body)
    if whole < 0:
        return whole
    properties_size = behind - header - 20
    message = new_message(
        messages, state, route_size, properties_size, body, blocks_needed, keeps, state[STATE_SECONDS], state[STATE_KIND], expiration
    )
    append(arena, blocks, messages, state, message, source, route, route_size)
    append(arena, blocks, messages, state, message, source, header + 19, properties_size)
    while body > 0:
        size = source[behind + 4] << 16 | source[behind + 5] << 8 | source[behind + 6]
        append(arena, blocks, messages, state, message, source, behind + 7, size)
        behind += size + 8
        body -= size
    if keeps:
        keep(messages, state, channel, message)
    else:
        publish(blocks, messages, entries, queues, channels, state, routes, route_targets, channel, slot, message, logged)
    return whole


def may_keep(state, channel, blocks_needed):
    """1 when the transaction of a channel may keep a message of so many blocks; else 0."""
    if state[STATE_KEEP] < 1 or state[POOL_BLOCKS + 2] < blocks_needed or state[POOL_MESSAGES + 2] < 1:
        return 0
    return 1 if state[STATE_KEPT_HEAD] < 0 or state[STATE_KEPT_CHANNEL] == channel else 0


def keep(messages, state, channel, message):
    """Put a message, referenced once, on the list of those that the transaction of a channel is to have."""
    if state[STATE_KEPT_HEAD] < 0:
        state[STATE_KEPT_HEAD] = message
        state[STATE_KEPT_CHANNEL] = channel
    else:
        messages[state[STATE_KEPT_TAIL] + MESSAGE_SEGMENT] = message + 1
    state[STATE_KEPT_TAIL] = message
    state[STATE_KEEP] -= 1


def header_end(state, source, start, header):
    """The position behind the content header frame at `header`, of the publish at `start`; INCOMPLETE; or ASK when it is not as usual."""
    left = state[STATE_END] - header
    if left < 7:
        return INCOMPLETE
    size = source[header + 4] << 16 | source[header + 5] << 8 | source[header + 6]
    if source[header] != 2 or source[header + 1] != source[start + 1] or source[header + 2] != source[start + 2] or source[header + 3]:
        return ASK
    if size < 14 or size > state[STATE_FRAME_MAX] or size - 12 > state[STATE_PROPERTIES_MAX] or size + 8 > state[STATE_SIZE]:
        return ASK
    if left < size + 8:
        return INCOMPLETE
    at = header + 7
    if source[at + size] != 0xCE or source[at] or source[at + 1] != 60 or source[at + 2] or source[at + 3]:
        return ASK
    if source[at + 4] or source[at + 5] or source[at + 6] or source[at + 7] or source[at + 8] > 31:
        return ASK
    if (source[at + 8] << 24 | source[at + 9] << 16 | source[at + 10] << 8 | source[at + 11]) > state[STATE_CONTENT_MAX]:
        return ASK
    return header + size + 8


def body_end(state, source, start, at, left):
    """The position behind the body frames at `at` that hold `left` octets; INCOMPLETE; ASK: not as usual, or too large for `source`."""
    if at - start + left + 8 > state[STATE_SIZE]:
        return ASK
    end = state[STATE_END]
    while left > 0:
        if end - at < 7:
            return INCOMPLETE
        size = source[at + 4] << 16 | source[at + 5] << 8 | source[at + 6]
        if source[at] != 3 or source[at + 1] != source[start + 1] or source[at + 2] != source[start + 2] or source[at + 3]:
            return ASK
        if size == 0 or size > left or size > state[STATE_FRAME_MAX]:
            return ASK
        if end - at < size + 8:
            return INCOMPLETE
        if source[at + 7 + size] != 0xCE:
            return ASK
        at += size + 8
        left -= size
    return at


def check_properties(state, source, at, end):
    """1 for properties that are valid and need no decision, 2 when CC among the headers needs one about the way alone; state[KIND] and
    state[LIFETIME] then have the message's columns. 0: session.py must read them.

    As properties.walk does; besides, user-id, the direct reply queue, BCC among the headers, and an expiration of no or more than eight
    digits are for session.py.
    """
    checked = 1
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
                if size > end - at:
                    return 0
                checked = check_table(source, at + 4, at + size, 1)
                if checked == 0:
                    return 0
            elif bit == 0x1000:
                if at < end and source[at] == 2:
                    kind |= KIND_DURABLE
            elif bit == 0x0800:
                if at < end:
                    kind |= KIND_HAS_PRIORITY | source[at] << 8
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
    state[STATE_KIND] = kind
    state[STATE_LIFETIME] = lifetime
    return checked if at == end else 0


def digits(source, at, behind, end):
    """The number that source[at:behind] says in one to eight digits, below `end`; else -1."""
    if behind > end or behind == at or behind - at > 8:
        return -1
    number = 0
    while at < behind:
        if source[at] < 48 or source[at] > 57:
            return -1
        number = number * 10 + source[at] - 48
        at += 1
    return number


def check_table(source, at, end, depth):
    """1 when the pairs between `at` and `end` are a valid field table as field_table.pairs reads it, all names ASCII, and at the first
    level none of them BCC; 2 when one of them there is CC; else 0."""
    checked = 1
    if depth > _DEPTH_MAX:
        return 0
    while at < end:
        size = source[at]
        if end - at - 1 <= size:
            return 0
        at += 1
        if depth == 1 and (size == 2 or size == 3) and source[at + size - 1] == 67 and source[at + size - 2] == 67:
            if size == 2:
                checked = 2
            elif source[at] == 66:
                return 0
        behind = at + size
        while at < behind:
            if source[at] > 127:
                return 0
            at += 1
        at = value_end(source, at, end, depth)
        if at < 0:
            return 0
    return checked


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


header_end = quicker(header_end)
body_end = quicker(body_end)
check_properties = quicker(check_properties)
