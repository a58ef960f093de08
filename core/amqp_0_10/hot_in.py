"""Ingest of 0-10 without a session: transfers that need no decision, straight from a receive buffer.

Written with the laws of core/memory/hot.py: integers and flat arrays; c_accel/amqp_0_10_ingest.c has the same functions in C. `ingest`
takes transfers of one session whose commands are octet for octet the same (`lead`: the command's frame), each with a header and a body of
one whole frame. At the first frame of another form it stops: protocol.py reads that one, from its first octet. Nothing is changed until all
of a transfer has been checked. What is taken here, transfer.py takes too, with the same kind and lifetime: transfer.py reads texts beyond
ASCII, user-ids, fragments, transfers that are to be delivered at once, values within values.

`numbers`: hot_layout.py. `way`: where the message goes (message/route.py); the routing key is put in here.
"""

from ..broker.publish import find_route, is_named, may_push, publish
from ..memory.hot import append, new_message
from ..memory.layout import *
from ..shim import const, copy, quicker, same
from .hot_layout import *

_FORMAT = const(3)  # formats.AMQP_0_10
_HEAD = const(12)  # octets of a frame before its payload
_PRIORITY_MAX = const(9)


def ingest(arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, numbers, lead, way, source):
    """Take transfers from source[state[AT]:state[END]]; state[AT] is behind them then.

    ASK: the next octets are no whole transfer that needs no decision; ASK_ROUTE: only its route is not cached; TURN_OVER: it is for the
    connection's next turn (STATE_LEFT). The parameters stand in state: FRAME_MAX, USER.
    """
    while numbers[IN_TAKEN] < numbers[IN_MOST]:
        if state[STATE_LEFT] <= 0:
            return TURN_OVER
        answer = ingest_one(
            arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, numbers, lead, way, source
        )
        if answer < 0:
            return answer
        numbers[IN_TAKEN] += 1
        state[STATE_AT] = answer
        state[STATE_LEFT] -= 1
    return ASK


def ingest_one(arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, numbers, lead, way, source):
    """The transfer at state[AT]: the position behind it, or why it is not taken."""
    end = state[STATE_END]
    frame_max = state[STATE_FRAME_MAX]
    header = state[STATE_AT] + numbers[IN_LEAD]
    if end - header < 2 * _HEAD or not same(source, state[STATE_AT], lead, 0, numbers[IN_LEAD]):
        return ASK
    body = frame_end(source, header, end, lead, 3, 2, frame_max)  # the only frame of a header segment, which is not the last segment
    if body < 0:
        return ASK
    behind = frame_end(source, body, end, lead, 7, 3, frame_max)
    if behind < 0:
        return ASK
    header += _HEAD
    if read_header(state, numbers, way, source, header, body) < 0:
        return ASK
    route_size = numbers[IN_ROUTE]
    slot = find_route(state, routes, route_octets, way, 0, route_size)
    if slot < 0:
        return ASK_ROUTE
    properties = body - header
    body += _HEAD
    size = behind - body
    if properties > state[STATE_PROPERTIES_MAX] or size > state[STATE_CONTENT_MAX]:
        return ASK
    blocks_needed = (route_size + properties + size + state[STATE_BLOCK_SIZE] - 1) // state[STATE_BLOCK_SIZE]
    logged = may_push(messages, entries, queues, state, routes, route_targets, slot, state[STATE_LIFETIME], blocks_needed, size)
    if logged == 0 or logged == PLAIN_STREAM and is_named(source, header, header + properties):
        return ASK
    message = new_message(
        messages, state, route_size, properties, size, blocks_needed, 0, state[STATE_SECONDS], state[STATE_KIND], state[STATE_LIFETIME]
    )
    append(arena, blocks, messages, state, message, way, 0, route_size)
    append(arena, blocks, messages, state, message, source, header, properties)
    append(arena, blocks, messages, state, message, source, body, size)
    publish(blocks, messages, entries, queues, channels, state, routes, route_targets, numbers[IN_RECORD], slot, message, logged)
    return behind


def frame_end(source, at, end, lead, flags, type_, frame_max):
    """The end of a whole frame with these flags and this segment type, on the track and the channel of `lead`; -1: there is none."""
    if end - at < _HEAD or source[at] != flags or source[at + 1] != type_ or not same(source, at + 4, lead, 4, 8):
        return -1
    size = source[at + 2] << 8 | source[at + 3]
    return at + size if size > _HEAD and size <= frame_max and size <= end - at else -1


def read_header(state, numbers, way, source, at, end):
    """Read a header segment: 0, with KIND and LIFETIME in `state` and the routing key in `way`; -1: it is not as usual. Behind `end` stands
    the head of another frame, so that a field which is not whole may be read."""
    has_delivery = 0
    has_message = 0
    state[STATE_KIND] = _FORMAT
    state[STATE_LIFETIME] = -1
    while at < end:
        behind = at + 4 + (source[at + 2] << 8 | source[at + 3])
        if source[at] or source[at + 1] or source[at + 4] != 4 or behind > end or behind < at + 8:
            return -1
        code = source[at + 5]
        if code == 1 and has_delivery == 0:
            has_delivery = 1
            if read_delivery(state, numbers, way, source, at + 6, behind) < 0:
                return -1
        elif code == 3 and has_message == 0:
            has_message = 1
            if read_message(numbers, source, at + 6, behind) < 0:
                return -1
        else:
            return -1
        at = behind
    return has_delivery - 1


def read_delivery(state, numbers, way, source, at, end):
    """Read delivery-properties, whose packing flags stand at `at`: 0, or -1: they are not as usual."""
    flags = source[at]
    further = source[at + 1]
    at += 2
    if flags & 2 or further & 0xFC:  # immediate; resume-id, resume-ttl, no field
        return -1
    if flags & 8:  # priority
        if source[at] > _PRIORITY_MAX:
            return -1
        state[STATE_KIND] |= KIND_HAS_PRIORITY | source[at] << KIND_PRIORITY
        at += 1
    if flags & 16:  # delivery-mode
        if source[at] == 2:
            state[STATE_KIND] |= KIND_DURABLE
        at += 1
    if flags & 32:  # ttl
        if source[at] | source[at + 1] | source[at + 2] | source[at + 3] or source[at + 4] > 63:
            return -1
        state[STATE_LIFETIME] = source[at + 4] << 24 | source[at + 5] << 16 | source[at + 6] << 8 | source[at + 7]
        at += 8
    elif flags & 128:  # an expiration alone
        return -1
    at += (flags >> 3 & 8) + (flags >> 4 & 8)  # timestamp, expiration
    if further & 1:  # exchange
        at = text_end(source, at, end)
        if at < 0:
            return -1
    size = numbers[IN_EXCHANGE]
    way[size] = 0
    numbers[IN_ROUTE] = size + 1
    if further & 2:  # routing-key
        behind = text_end(source, at, end)
        if behind < 0:
            return -1
        copy(way, size, source, at, behind - at)
        numbers[IN_ROUTE] = size + behind - at
        at = behind
    return 0 if at == end else -1


def text_end(source, at, end):
    """The end of the str8 at `at`, all ASCII; -1: there is none before `end`."""
    if at >= end:
        return -1
    behind = at + 1 + source[at]
    return behind if behind <= end and high_octets(source, at + 1, behind) == 0 else -1


def octets_end(source, at, end):
    """The end of the vbin16 at `at`; -1: there is none before `end`."""
    if end - at < 2:
        return -1
    behind = at + 2 + (source[at] << 8 | source[at + 1])
    return behind if behind <= end else -1


def read_message(numbers, source, at, end):
    """Read message-properties, whose packing flags stand at `at`: 0, or -1: they are not as usual."""
    flags = source[at]
    further = source[at + 1]
    at += 2
    if flags & 64 or further > 1:  # user-id
        return -1
    at += (flags & 1) << 3  # content-length
    at += (flags & 2) << 3  # message-id
    if flags & 4:  # correlation-id
        at = octets_end(source, at, end)
        if at < 0:
            return -1
    if flags & 8:  # reply-to
        behind = octets_end(source, at, end)
        if behind < at + 4 or source[at + 2] > 3 or source[at + 3]:
            return -1
        fields = source[at + 2]
        at += 4
        while fields:
            if fields & 1:
                at = text_end(source, at, behind)
                if at < 0:
                    return -1
            fields >>= 1
        if at != behind:
            return -1
    if flags & 16:  # content-type
        at = text_end(source, at, end)
        if at < 0:
            return -1
    if flags & 32:  # content-encoding
        at = text_end(source, at, end)
        if at < 0:
            return -1
    if flags & 128:  # app-id
        at = octets_end(source, at, end)
        if at < 0:
            return -1
    if further:  # application-headers
        at = map_end(numbers, source, at, end)
    return 0 if at == end else -1


def map_end(numbers, source, at, end):
    """The end of the map at `at`, which is `end`: its keys are ASCII, each once, its values have one octet or more of a known size, or are
    ASCII or octets; -1: it is not so."""
    if end - at < 8 or source[at] or source[at + 1] or source[at + 4] or source[at + 5] or source[at + 6]:
        return -1
    if at + 4 + (source[at + 2] << 8 | source[at + 3]) != end:
        return -1
    left = source[at + 7]
    at += 8
    pair = 0
    if left > KEYS_MAX:
        return -1
    while pair < left:
        behind = text_end(source, at, end)
        if behind < 0 or behind >= end:
            return -1
        other = 0
        while other < pair:
            if same(source, numbers[IN_KEYS + other], source, at, behind - at):
                return -1
            other += 1
        numbers[IN_KEYS + pair] = at
        pair += 1
        at = value_end(source, behind, end)
        if at < 0:
            return -1
    return at if at == end else -1


def value_end(source, at, end):
    """The end of the value whose type stands at `at`; -1: it is another than a plain one, or not whole."""
    code = source[at]
    at += 1
    if code == 0x85:  # str8
        return text_end(source, at, end)
    if code == 0x80:  # vbin8
        if at >= end:
            return -1
        at += 1 + source[at]
    elif code == 0x90:  # vbin16
        at = octets_end(source, at, end)
    elif code == 0xA0:  # vbin32
        if end - at < 4 or source[at] or source[at + 1]:
            return -1
        at = octets_end(source, at + 2, end)
    elif code == 0x95:  # str16
        behind = octets_end(source, at, end)
        if behind < 0 or high_octets(source, at + 2, behind):
            return -1
        at = behind
    elif code == 1 or code == 2 or code == 8:  # int8, uint8, boolean
        at += 1
    elif code == 0x11 or code == 0x12:  # int16, uint16
        at += 2
    elif code == 0x21 or code == 0x22 or code == 0x23:  # int32, uint32, float
        at += 4
    elif code == 0x31 or code == 0x32 or code == 0x33 or code == 0x38:  # int64, uint64, double, datetime
        at += 8
    elif code == 0x48:  # uuid
        at += 16
    elif code != 0xF0:  # void
        return -1
    return at if at <= end else -1


def high_octets(source, at, end):
    """How many octets from `at` to `end` are above 127, and so not ASCII."""
    count = 0
    while at < end:
        count += source[at] >> 7
        at += 1
    return count


high_octets = quicker(high_octets)
ingest = quicker(ingest)
