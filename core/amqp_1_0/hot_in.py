"""Ingest of 1.0 without a session: transfers and dispositions that need no decision, straight from a receive buffer.

Written in the viper dialect as core/memory/hot.py is, with the same laws; c_accel/amqp_1_0_ingest.c has the same functions in C. `ingest`
processes the transfers of one link that are a whole message each, in the order of their delivery-ids (section 2.7.5), and dispositions of
the session's receiver that accept and settle (section 2.7.6). At the first frame of another form it stops: protocol.py reads that one, from
its first octet. Nothing is changed until all of a frame has been checked. What is taken here, sections.py takes too, with the same kind and
lifetime: sections.py reads texts beyond ASCII, user-ids, annotations, and bodies that are not one section of data.

The flat state: what is known of the link and its session (`link`: link_layout.py), and where its messages go (`way`: message/route.py).
"""

from ..broker.publish import find_route, is_named, may_push, publish, settle_all
from ..memory.hot import append, find_tag, new_message
from ..memory.layout import *
from ..shim import const, quicker, same
from .link_layout import *

_FORMAT = const(2)  # formats.AMQP_1_0
_TAG_MAX = const(32)  # octets of a delivery-tag (section 2.8.7)
_NEAR = const(64)  # octets behind the beginning of a list that can be read before its end is known
_STRINGS = const(0x143D)  # places of properties (section 3.2.4) that may be a string, as bits
_EXPIRY = const(8)  # the place of absolute-expiry-time


def ingest(arena, blocks, messages, entries, queues, channels, consumers, state, routes, route_octets, route_targets, link, way, source):
    """Process frames that need no decision from source[state[AT]:state[END]]; state[AT] is behind them then.

    INCOMPLETE: the next frame is not whole; ASK: it needs a decision; ASK_ROUTE: only its route is not cached; TURN_OVER: it is for the
    connection's next turn (STATE_LEFT). The parameters stand in state: SIZE (octets that `source` can hold), FRAME_MAX, USER.
    """
    end = state[STATE_END]
    at = state[STATE_AT]
    near = state[STATE_SIZE] - 11 - _NEAR
    size_max = state[STATE_FRAME_MAX]
    if size_max > state[STATE_SIZE]:
        size_max = state[STATE_SIZE]
    channel = link[LINK_CHANNEL]
    link[LINK_SLOT] = -1
    while True:
        if end - at < 11:
            return INCOMPLETE if end - at < 8 else ASK
        if state[STATE_LEFT] <= 0:
            return TURN_OVER
        size = source[at + 1] << 16 | source[at + 2] << 8 | source[at + 3]
        if source[at] or size < 14 or size > size_max:
            return ASK
        if source[at + 4] != 2 or source[at + 5] or (source[at + 6] << 8 | source[at + 7]) != channel:
            return ASK
        if end - at < size:
            return INCOMPLETE
        if source[at + 8] or source[at + 9] != 0x53 or at > near:
            return ASK
        if source[at + 10] == 0x14:
            answer = ingest_transfer(
                arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, link, way, source, at + size
            )
        elif source[at + 10] == 0x15:
            answer = ingest_disposition(blocks, messages, entries, queues, channels, consumers, state, link, source, at + size)
        else:
            return ASK
        if answer < 0:
            return answer
        at += size
        state[STATE_AT] = at
        state[STATE_LEFT] -= 1


def ingest_transfer(arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, link, way, source, end):
    """The transfer at state[AT] of the frame up to `end`: 0, or why not."""
    at = state[STATE_AT] + 14
    if link[LINK_HANDLE] < 0 or link[LINK_CREDIT] <= 0 or source[at - 3] != 0xC0:
        return ASK
    behind = at - 1 + source[at - 2]
    settled = transfer_fields(link, source, at, behind)
    if settled < 0 or behind >= end:
        return ASK
    if settled != link[LINK_SETTLES] and link[LINK_SETTLES] != 2 or link[LINK_TAKEN] and settled != link[LINK_IS_SETTLED]:
        return ASK
    route_size = link[LINK_ROUTE]
    slot = link[LINK_SLOT]
    if slot < 0:
        slot = find_route(state, routes, route_octets, way, 0, route_size)
        if slot < 0:
            return ASK_ROUTE
        link[LINK_SLOT] = slot
    if queues[route_targets[routes[slot + ROUTE_TARGETS]] + QUEUE_PLAIN] == 0:
        return ASK
    at = body_of(state, link, source, behind, end)
    if at < 0:
        return ASK
    size = at - behind
    body = end - at
    if size > state[STATE_PROPERTIES_MAX] or body > state[STATE_CONTENT_MAX]:
        return ASK
    blocks_needed = (route_size + size + body + state[STATE_BLOCK_SIZE] - 1) // state[STATE_BLOCK_SIZE]
    logged = may_push(messages, entries, queues, state, routes, route_targets, slot, state[STATE_LIFETIME], blocks_needed, body)
    if logged == 0 or logged == PLAIN_STREAM and is_named(source, behind, at):
        return ASK
    message = new_message(
        messages, state, route_size, size, body, blocks_needed, 0, state[STATE_SECONDS], state[STATE_KIND], state[STATE_LIFETIME]
    )
    append(arena, blocks, messages, state, message, way, 0, route_size)
    append(arena, blocks, messages, state, message, source, behind, end - behind)
    publish(blocks, messages, entries, queues, channels, state, routes, route_targets, link[LINK_RECORD], slot, message, logged)
    low = (link[LINK_NUMBER] + 1) & MASK
    link[LINK_NEXT] = low
    link[LINK_NEXT_HIGH] = link[LINK_NUMBER_HIGH] if low else link[LINK_NUMBER_HIGH] + 1 & 3
    link[LINK_IS_NEXT] = 1
    link[LINK_IS_SETTLED] = settled
    link[LINK_TAKEN] += 1
    link[LINK_CREDIT] -= 1
    return 0


def transfer_fields(link, source, at, behind):
    """The fields of a transfer's list, of which the first stands at `at`, and the last ends at `behind`: 1 settled, 0 not settled, -1 when
    they are not as usual. link[NUMBER] is the delivery-id then. Of at most _NEAR octets that this reads, none counts behind `behind`."""
    left = source[at - 1] - 3
    if left < 0 or left > 8:
        return -1
    if source[at] == 0x43 and link[LINK_HANDLE] == 0:
        at += 1
    elif source[at] == 0x52 and source[at + 1] == link[LINK_HANDLE]:
        at += 2
    else:
        return -1
    at = read_number(link, source, at)
    if at < 0 or source[at] != 0xA0 or source[at + 1] > _TAG_MAX:
        return -1
    if link[LINK_IS_NEXT]:
        if link[LINK_NUMBER] != link[LINK_NEXT] or link[LINK_NUMBER_HIGH] != link[LINK_NEXT_HIGH]:
            return -1
    at += 2 + source[at + 1]
    settled = 0
    place = 0
    while place < left:  # message-format, settled, more, rcv-settle-mode, state, resume, aborted, batchable
        code = source[at + place]
        if place == 1 and code == 0x41:
            settled = 1
        elif code != 0x40:
            if code != 0x43 if place == 0 else code != 0x42 and (code != 0x41 or place != 7) or place == 3 or place == 4:
                return -1
        place += 1
    return settled if at + left == behind else -1


def read_number(link, source, at):
    """Read the uint at `at` into link[NUMBER]: the position behind it, -1: there is none, or not in a usual form."""
    code = source[at]
    high = 0
    low = 0
    if code == 0x70:
        high = source[at + 1] >> 6
        low = (source[at + 1] & 63) << 24 | source[at + 2] << 16 | source[at + 3] << 8 | source[at + 4]
        at += 5
    elif code == 0x52:
        low = source[at + 1]
        at += 2
    elif code == 0x43:
        at += 1
    else:
        return -1
    link[LINK_NUMBER] = low
    link[LINK_NUMBER_HIGH] = high
    return at


def ingest_disposition(blocks, messages, entries, queues, channels, consumers, state, link, source, end):
    """The disposition at state[AT] of the frame up to `end`: 0, or ASK.

    role 0x41 | first | last, or 0x40 | settled 0x41 | state: accepted, with no fields | batchable, or nothing
    """
    at = state[STATE_AT] + 11
    if source[at] != 0xC0 or at + 2 + source[at + 1] != end or source[at + 3] != 0x41:
        return ASK
    left = source[at + 2]
    at = read_number(link, source, at + 4)
    if at < 0 or left < 5 or left > 6:
        return ASK
    low = link[LINK_NUMBER]
    high = link[LINK_NUMBER_HIGH]
    if source[at] == 0x40:
        at += 1
    else:
        at = read_number(link, source, at)
        if at < 0:
            return ASK
    if source[at] != 0x41 or source[at + 1] or source[at + 2] != 0x53 or source[at + 3] != 0x24:
        return ASK
    if source[at + 4] == 0x45:
        at += 5
    elif source[at + 4] == 0xC0 and source[at + 5] == 1 and source[at + 6] == 0:
        at += 7
    else:
        return ASK
    if left == 6:
        if source[at] < 0x40 or source[at] > 0x42:
            return ASK
        at += 1
    return settle_range(blocks, messages, entries, queues, channels, consumers, state, link, low, high) if at == end else ASK


def settle_range(blocks, messages, entries, queues, channels, consumers, state, link, low, high):
    """Settle the deliveries of the session from a delivery-id (its low 30 bits, its high two) to link[NUMBER]: 0, or ASK.

    Delivery-ids are the low 32 bits of the session's delivery tags.
    """
    channel = link[LINK_RECORD]
    last = link[LINK_NUMBER]
    tail = channels[channel + CHANNEL_TAG]
    count = (last - low) & MASK
    back = (tail - last) & MASK
    if back >= 0x20000000 or count >= 0x20000000 or back + count >= 0x20000000 or count >= state[STATE_LEFT]:
        return ASK
    here = channels[channel + CHANNEL_TAG_HIGH]
    if last > tail:
        here -= 1
    if (here ^ link[LINK_NUMBER_HIGH]) & 3:
        return ASK
    if low > last:
        here -= 1
    if (here ^ high) & 3:
        return ASK
    newest = find_tag(entries, channels, state, channel, last)
    oldest = newest
    if count:
        oldest = channels[channel + CHANNEL_UNSETTLED_HEAD]
    if newest < 0 or entries[oldest + ENTRY_TAG] != low:
        return ASK
    if settle_all(blocks, messages, entries, queues, channels, consumers, state, channel, oldest, newest, 0) == 0:
        return ASK
    state[STATE_LEFT] -= count
    return 0


def body_of(state, link, source, at, end):
    """The position of the body of the message between `at` and `end`: behind the head of its only section of data; ASK: it is not so.
    state[KIND] and state[LIFETIME] have the message's columns.

    header | properties | application-properties, each or none, then data (section 3.2)
    """
    last = 0
    state[STATE_KIND] = _FORMAT
    state[STATE_LIFETIME] = -1
    while end - at > 4:
        code = source[at + 2]
        form = source[at + 3]
        if source[at] or source[at + 1] != 0x53 or code <= last:
            return ASK
        if code == 0x75:
            if form == 0xA0:
                return at + 5 if source[at + 4] == end - at - 5 else ASK
            if form != 0xB0 or end - at < 8 or source[at + 4]:
                return ASK
            return at + 8 if (source[at + 5] << 16 | source[at + 6] << 8 | source[at + 7]) == end - at - 8 else ASK
        if form == 0x45:
            left = 0
            behind = at + 4
            at = behind
        elif form & 0xFE == 0xC0 and end - at > 5:
            left = source[at + 5]
            behind = at + 5 + source[at + 4]
            at += 6
        elif form & 0xFE == 0xD0 and end - at > 12 and source[at + 4] == 0 and source[at + 8] == 0:
            left = source[at + 9] << 16 | source[at + 10] << 8 | source[at + 11]
            behind = at + 8 + (source[at + 5] << 16 | source[at + 6] << 8 | source[at + 7])
            at += 12
        else:
            return ASK
        if behind + 5 > end:
            return ASK
        if code == 0x70 and form != 0xC1 and form != 0xD1:
            at = header_end(state, source, at, behind, left)
        elif code == 0x73 and form != 0xC1 and form != 0xD1:
            at = properties_end(state, source, at, behind, left)
        elif code == 0x74 and (form == 0xC1 or form == 0xD1):
            at = application_end(link, source, at, behind, left)
        else:
            return ASK
        if at != behind:
            return ASK
        last = code
    return ASK


def header_end(state, source, at, end, left):
    """The position behind `left` fields of a header (section 3.2.1), its end when they are right; else -1."""
    place = 0
    while place < left:
        if at >= end or place > 4:
            return -1
        code = source[at]
        size = 1
        if code != 0x40:
            if place == 0 or place == 3:  # durable, first-acquirer
                if code != 0x41 and code != 0x42:
                    return -1
                if code == 0x41:
                    state[STATE_KIND] |= KIND_DURABLE if place == 0 else KIND_FOR_US
            elif place == 1:
                if code != 0x50:
                    return -1
                state[STATE_KIND] |= KIND_HAS_PRIORITY | source[at + 1] << 8
                size = 2
            else:  # ttl, delivery-count
                size = whole_size(code)
                if size < 0 or place == 2 and size == 5 and source[at + 1] > 63:
                    return -1
                if place == 2:
                    state[STATE_LIFETIME] = whole(source, at + 1, at + size)
        at += size
        place += 1
    return at


def whole(source, at, end):
    """The number that stands between `at` and `end`, below 2^30."""
    value = 0
    while at < end:
        value = value << 8 | source[at]
        at += 1
    return value


def properties_end(state, source, at, end, left):
    """The position behind `left` fields of properties (section 3.2.4), its end when they are right; else -1: so for a text beyond ASCII, a
    user-id, and an absolute-expiry-time where the header has no ttl (the clock is Python's)."""
    start = at
    high = 0  # octets above 127 that are no text's
    place = 0
    while place < left:
        if at >= end or place > 12:
            return -1
        code = source[at]
        if code == 0x40:
            at += 1
        elif code == 0xA1 or code == 0xA3:
            if code == 0xA1 and _STRINGS >> place & 1 == 0 or code == 0xA3 and place != 6 and place != 7:
                return -1
            high += 1 + (source[at + 1] >> 7)
            at += 2 + source[at + 1]
        else:
            size = -1
            if place == 0 or place == 5:  # message-id, correlation-id
                size = identity_size(source, at, code)
            elif place == 11:  # group-sequence
                size = whole_size(code)
            elif code == 0x83 and (place == 9 or place == _EXPIRY and state[STATE_LIFETIME] >= 0):
                size = 9
            if size < 0 or at + size > end:
                return -1
            high += high_octets(source, at, at + size)
            at += size
        place += 1
    return at if at == end and high_octets(source, start, end) == high else -1


def identity_size(source, at, code):
    """Octets of a ulong, uuid or binary; -1: the value at `at` is none, or a longer one."""
    if code == 0x53:
        return 2
    if code == 0x80:
        return 9
    if code == 0x98:
        return 17
    if code == 0xA0:
        return 2 + source[at + 1]
    return 1 if code == 0x44 else -1


def whole_size(code):
    """Octets of a uint with this constructor; -1: it is none."""
    if code == 0x43:
        return 1
    if code == 0x52:
        return 2
    return 5 if code == 0x70 else -1


def application_end(link, source, at, end, left):
    """The position behind `left` keys and values of application-properties (section 3.2.5), its end when they are right; else -1. Right are
    strings as keys, each once, and values that scalar_size knows; all texts are ASCII."""
    start = at
    high = 0  # octets above 127 that are no text's
    pair = 0
    if left & 1 or left > 2 * KEYS_MAX:
        return -1
    while left > 0:
        if at >= end or source[at] != 0xA1:
            return -1
        at += 1
        size = source[at]
        high += 1 + (size >> 7)
        if at + size + 1 >= end:
            return -1
        other = 0
        while other < pair:
            key = link[LINK_KEYS + other]
            if source[key] == size and same(source, key + 1, source, at + 1, size):
                return -1
            other += 1
        link[LINK_KEYS + pair] = at
        pair += 1
        at += 1 + size
        code = source[at]
        if code == 0xA1 or code == 0xA3:
            high += 1 + (source[at + 1] >> 7)
            at += 2 + source[at + 1]
        else:
            size = scalar_size(source, at, code)
            if size < 0 or at + size > end:
                return -1
            if size > 1:
                high += high_octets(source, at, at + size)
            at += size
        left -= 2
    return at if at == end and high_octets(source, start, end) == high else -1


def scalar_size(source, at, code):
    """Octets of a value that is no text, with its constructor: of any type with one value but float, decimal and char, or a binary of up to
    255 octets; -1: it is another one."""
    if code >= 0x40 and code <= 0x44:
        return 1
    if code >= 0x50 and code <= 0x55:
        return 2
    if code == 0x70 or code == 0x71:
        return 5
    if code >= 0x80 and code <= 0x83:
        return 9
    if code == 0x60 or code == 0x61:
        return 3
    if code == 0xA0:
        return 2 + source[at + 1]
    return 17 if code == 0x98 else -1


def high_octets(source, at, end):
    """How many octets from `at` to `end` are above 127, and so not ASCII."""
    count = 0
    while at < end:
        count += source[at] >> 7
        at += 1
    return count


high_octets = quicker(high_octets)
ingest = quicker(ingest)
settle_range = quicker(settle_range)
body_of = quicker(body_of)
transfer_fields = quicker(transfer_fields)
properties_end = quicker(properties_end)
application_end = quicker(application_end)
