"""CPython's own forms of what hot_in.py reads of a transfer and of its message's sections. No board carries this file.

Each function does what the one of its name there says, for an interpreter to which each look at an octet costs as much as a whole call in
C: heads by a call of struct, the fields behind a delivery-tag and the sections as bytes. tests/accel/test_quicker.py holds the forms
together.
"""

from struct import Struct

from ..broker.publish import find_route, settle_all
from ..memory.hot import activate
from ..memory.hot_quicker import store
from ..memory.layout import *
from .hot_in import header_end, ingest_disposition, ingest_transfer
from .hot_in import settle_range as plain_settle_range
from .link_layout import *

_uint = Struct(">I").unpack_from
_frame = Struct(">IHHHB").unpack_from  # size, doff and type, channel; the constructor of a descriptor, its code
_section = Struct(">IB").unpack_from  # 0 0x53 code constructor, size
_NEAR = 64
_FORMAT = 2  # formats.AMQP_1_0
_TAG_MAX = 32
_STRINGS = 0x143D  # places of properties (section 3.2.4) that may be a string, as bits
_ASCII = bytes(range(128))
_KNOWN_MAX = 64
_known: dict = {}  # the octets behind a delivery-tag -> 1 settled, 0 not settled, -1 they are not as usual

# Octets of a value by its constructor; 0: it has a size of its own in the next octet, 255: it is for sections.py.
_SCALARS = bytearray([255] * 256)
for _codes, _size in ((range(0x40, 0x45), 1), (range(0x50, 0x56), 2), ((0x70, 0x71), 5), (range(0x80, 0x84), 9), ((0x60, 0x61), 3)):
    for _code in _codes:
        _SCALARS[_code] = _size
_SCALARS[0x98] = 17
_SCALARS[0xA0] = 0
_IDENTITIES = {0x53: 2, 0x80: 9, 0x98: 17, 0x44: 1}
_WHOLES = {0x43: 1, 0x52: 2, 0x70: 5}


def ingest(arena, blocks, messages, entries, queues, channels, consumers, state, routes, route_octets, route_targets, link, way, source):
    """See hot_in.ingest."""
    end = state[STATE_END]
    at = state[STATE_AT]
    near = state[STATE_SIZE] - 11 - _NEAR
    size_max = min(state[STATE_FRAME_MAX], state[STATE_SIZE])
    channel = link[LINK_CHANNEL]
    link[LINK_SLOT] = -1
    while True:
        if end - at < 11:
            return INCOMPLETE if end - at < 8 else ASK
        if state[STATE_LEFT] <= 0:
            return TURN_OVER
        size, kind, number, constructor, code = _frame(source, at)
        if size < 14 or size > size_max or kind != 0x200 or number != channel:
            return ASK
        if end - at < size:
            return INCOMPLETE
        if constructor != 0x53 or at > near:
            return ASK
        if code == 0x14:
            if run(
                arena,
                blocks,
                messages,
                entries,
                queues,
                channels,
                state,
                routes,
                route_octets,
                route_targets,
                link,
                way,
                source,
                size_max,
                near,
            ):
                at = state[STATE_AT]
                continue
            answer = ingest_transfer(
                arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, link, way, source, at + size
            )
        elif code == 0x15:
            answer = ingest_disposition(blocks, messages, entries, queues, channels, consumers, state, link, source, at + size)
        else:
            return ASK
        if answer < 0:
            return answer
        at += size
        state[STATE_AT] = at
        state[STATE_LEFT] -= 1


def run(arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, link, way, source, size_max, near):
    """Take transfers of the link from state[AT] on, as hot_in.ingest_transfer does, as long as they go to one queue that asks for nothing:
    how many."""
    slot = link[LINK_SLOT]
    if slot < 0:
        slot = find_route(state, routes, route_octets, way, 0, link[LINK_ROUTE])
        if slot < 0:
            return 0
        link[LINK_SLOT] = slot
    queue = route_targets[routes[slot + ROUTE_TARGETS]]
    plain = queues[queue + QUEUE_PLAIN]
    if routes[slot + ROUTE_COUNT] != 1 or plain != PLAIN and plain != PLAIN_LOGGED or queues[queue + QUEUE_LIMITS]:
        return 0
    if link[LINK_HANDLE] < 0 or channels[link[LINK_RECORD] + CHANNEL_CONFIRM]:
        return 0
    transfers = usual(state, queues, queue, link, source, size_max, near)
    if not transfers:
        return 0
    count = len(transfers)
    route = bytes(way[: link[LINK_ROUTE]])
    route_size = len(route)
    rows = [(route + source[begin:end], route_size, here - begin, end - here, kind, total) for begin, here, end, kind, total in transfers]
    store(arena, blocks, messages, entries, queues, state, queue, rows)
    activate(queues, state, queue)
    state[STATE_PUBLISHED] = (state[STATE_PUBLISHED] + count) & MASK
    state[STATE_ALTERNATE] += count * routes[slot + ROUTE_ALTERNATES]
    state[STATE_LEFT] -= 2 * count  # a frame, and a place in a queue
    state[STATE_AT] = transfers[-1][2]
    link[LINK_TAKEN] += count
    link[LINK_CREDIT] -= count
    return count


def usual(state, queues, queue, link, source, size_max, near):
    """The transfers from state[AT] on that the queue takes unread, up to the first that is for ingest_transfer: (where its message begins,
    the body of that, the end, the message's kind, blocks) of each."""
    channel, settles, credit, plain = link[LINK_CHANNEL], link[LINK_SETTLES], link[LINK_CREDIT], queues[queue + QUEUE_PLAIN]
    room, properties_max, content_max = link[LINK_ROUTE] - 1, state[STATE_PROPERTIES_MAX], state[STATE_CONTENT_MAX]
    block_size, turn = state[STATE_BLOCK_SIZE], state[STATE_LEFT]
    blocks_left, messages_left, entries_left = state[POOL_BLOCKS + 2], state[POOL_MESSAGES + 2], state[POOL_ENTRIES + 2]
    held, held_blocks = queues[queue + QUEUE_LENGTH] + queues[queue + QUEUE_UNSETTLED], queues[queue + QUEUE_BLOCKS]
    settled = link[LINK_IS_SETTLED] if link[LINK_TAKEN] else None
    at, end_of_all = state[STATE_AT], state[STATE_END]
    transfers: list = []
    while credit > 0 and turn > 0 and end_of_all - at >= 11 and at <= near:
        size, kind, number, constructor, code = _frame(source, at)
        end = at + size
        if code != 0x14 or constructor != 0x53 or kind != 0x200 or number != channel or size < 14 or size > size_max or end > end_of_all:
            break
        behind = at + 13 + source[at + 12]
        if source[at + 11] != 0xC0 or behind + 5 > end:
            break
        is_settled = transfer_fields(link, source, at + 14, behind)
        if is_settled < 0 or is_settled != settles and settles != 2 or settled is not None and is_settled != settled:
            break
        head, size = _section(source, behind)
        kind, here = _FORMAT, behind + 5
        if head != 0x5375A0 or size != end - here:  # of body_of: more than one section of data, or a large one
            here = body_of(state, link, source, behind, end)
            kind = state[STATE_KIND]
            if here < 0 or state[STATE_LIFETIME] != -1 or plain != PLAIN and kind & KIND_DURABLE:
                break
        block_total = (room + end - behind + block_size) // block_size
        if blocks_left < block_total or messages_left < 1 or entries_left < 1 or here - behind > properties_max or end - here > content_max:
            break
        if held > 0 and (
            held >= 4 * entries_left or held >= 4 * (messages_left - 1) or held_blocks > 4 * (blocks_left - block_total) - block_total
        ):
            break
        transfers.append((behind, here, end, kind, block_total))
        blocks_left -= block_total
        messages_left -= 1
        entries_left -= 1
        held += 1
        held_blocks += block_total
        credit -= 1
        turn -= 2
        low = (link[LINK_NUMBER] + 1) & MASK
        link[LINK_NEXT] = low
        link[LINK_NEXT_HIGH] = link[LINK_NUMBER_HIGH] if low else link[LINK_NUMBER_HIGH] + 1 & 3
        link[LINK_IS_NEXT] = 1
        link[LINK_IS_SETTLED] = settled = is_settled
        at = end
    return transfers


def settle_range(blocks, messages, entries, queues, channels, consumers, state, link, low, high):
    """See hot_in.settle_range. A range of several begins with the oldest delivery: the last one is looked for from there on, through those
    that are settled with it."""
    channel = link[LINK_RECORD]
    last = link[LINK_NUMBER]
    oldest = channels[channel + CHANNEL_UNSETTLED_HEAD]
    count = (last - low) & MASK
    if count == 0 or count >= 256 or oldest < 0 or entries[oldest + ENTRY_TAG] != low:
        return plain_settle_range(blocks, messages, entries, queues, channels, consumers, state, link, low, high)
    back = (channels[channel + CHANNEL_TAG] - last) & MASK
    here = channels[channel + CHANNEL_TAG_HIGH]
    if last > channels[channel + CHANNEL_TAG]:
        here -= 1
    wrong = (here ^ link[LINK_NUMBER_HIGH]) & 3
    if low > last:
        here -= 1
    if wrong or (here ^ high) & 3 or back + count >= 0x20000000 or count >= state[STATE_LEFT]:
        return ASK
    newest = oldest
    for _ in range(count):
        newest = entries[newest + ENTRY_NEXT]
        if newest < 0:
            return ASK
        if entries[newest + ENTRY_TAG] == last:
            break
    else:
        return ASK
    if settle_all(blocks, messages, entries, queues, channels, consumers, state, channel, oldest, newest, 0) == 0:
        return ASK
    state[STATE_LEFT] -= count
    return 0


def body_of(state, link, source, at, end):
    """See hot_in.body_of."""
    last = 0
    state[STATE_KIND] = _FORMAT
    state[STATE_LIFETIME] = -1
    while end - at > 4:
        head, size = _section(source, at)
        code = head >> 8 & 255
        form = head & 255
        if head >> 16 != 0x53 or code <= last:
            return ASK
        if code == 0x75:
            if form == 0xA0:
                return at + 5 if size == end - at - 5 else ASK
            return at + 8 if form == 0xB0 and end - at >= 8 and _uint(source, at + 4)[0] == end - at - 8 else ASK
        if form == 0x45:
            left = 0
            behind = at + 4
            at = behind
        elif form & 0xFE == 0xC0 and end - at > 5:
            left = source[at + 5]
            behind = at + 5 + size
            at += 6
        elif form & 0xFE == 0xD0 and end - at > 12:
            left = _uint(source, at + 8)[0]
            behind = at + 8 + _uint(source, at + 4)[0]
            at += 12
        else:
            return ASK
        if behind + 5 > end:
            return ASK
        is_map = form & 1 and form != 0x45
        if code == 0x73 and not is_map:
            at = properties_end(state, source, at, behind, left)
        elif code == 0x74 and is_map:
            at = application_end(link, source, at, behind, left)
        elif code == 0x70 and not is_map:
            at = header_end(state, source, at, behind, left)
        else:
            return ASK
        if at != behind:
            return ASK
        last = code
    return ASK


def _settled(octets):
    """What the fields behind a delivery-tag say, and remember it: see hot_in.transfer_fields."""
    settled = 0
    for place, code in enumerate(octets):  # message-format, settled, more, rcv-settle-mode, state, resume, aborted, batchable
        if place == 1 and code == 0x41:
            settled = 1
        elif code != 0x40 and (code != 0x43 if place == 0 else code != 0x42 and (code != 0x41 or place != 7) or place == 3 or place == 4):
            settled = -1
            break
    if len(_known) >= _KNOWN_MAX:
        _known.clear()
    _known[octets] = settled
    return settled


def transfer_fields(link, source, at, behind):
    """See hot_in.transfer_fields."""
    left = source[at - 1] - 3
    if left < 0 or left > 8:
        return -1
    code = source[at]
    if code == 0x43 and link[LINK_HANDLE] == 0:
        at += 1
    elif code == 0x52 and source[at + 1] == link[LINK_HANDLE]:
        at += 2
    else:
        return -1
    code = source[at]
    if code == 0x70:
        number = _uint(source, at + 1)[0]
        at += 5
    elif code == 0x52:
        number = source[at + 1]
        at += 2
    elif code == 0x43:
        number = 0
        at += 1
    else:
        return -1
    low = number & MASK
    link[LINK_NUMBER] = low
    link[LINK_NUMBER_HIGH] = number >> 30
    size = source[at + 1]
    if source[at] != 0xA0 or size > _TAG_MAX:
        return -1
    if link[LINK_IS_NEXT] and (low != link[LINK_NEXT] or number >> 30 != link[LINK_NEXT_HIGH]):
        return -1
    at += 2 + size
    if at + left != behind:
        return -1
    octets = bytes(source[at:behind])
    return _known[octets] if octets in _known else _settled(octets)


def properties_end(state, source, at, end, left):
    """See hot_in.properties_end."""
    octets = bytes(source[at:end])
    size_all = end - at
    here = 0
    high = 0  # octets above 127 that are no text's
    if left > 13:
        return -1
    for place in range(left):
        if here >= size_all:
            return -1
        code = octets[here]
        if code == 0x40:
            here += 1
            continue
        if code == 0xA1 or code == 0xA3:
            if code == 0xA1 and _STRINGS >> place & 1 == 0 or code == 0xA3 and place != 6 and place != 7 or here + 1 >= size_all:
                return -1
            size = octets[here + 1]
            high += 1 + (size >> 7)
            here += 2 + size
            continue
        size = -1
        if place == 0 or place == 5:  # message-id, correlation-id
            size = _IDENTITIES.get(code, -1)
            if code == 0xA0 and here + 1 < size_all:
                size = 2 + octets[here + 1]
        elif place == 11:  # group-sequence
            size = _WHOLES.get(code, -1)
        elif code == 0x83 and (place == 9 or place == 8 and state[STATE_LIFETIME] >= 0):
            size = 9
        if size < 0 or here + size > size_all:
            return -1
        high += len(octets[here : here + size].translate(None, _ASCII))
        here += size
    return end if here == size_all and len(octets.translate(None, _ASCII)) == high else -1


def application_end(link, source, at, end, left):
    """See hot_in.application_end."""
    if left & 1 or left > 2 * KEYS_MAX:
        return -1
    octets = bytes(source[at:end])
    size_all = end - at
    here = 0
    high = 0  # octets above 127 that are no text's
    keys = set()
    count = left >> 1
    for _ in range(count):
        if here + 1 >= size_all or octets[here] != 0xA1:
            return -1
        size = octets[here + 1]
        start = here + 2
        here = start + size
        if here >= size_all:
            return -1
        high += 1 + (size >> 7)
        keys.add(octets[start:here])
        code = octets[here]
        if code == 0xA1 or code == 0xA3:
            if here + 1 >= size_all:
                return -1
            size = octets[here + 1]
            high += 1 + (size >> 7)
            here += 2 + size
            continue
        size = _SCALARS[code]
        if size == 0 and here + 1 < size_all:
            size = 2 + octets[here + 1]
        if size == 255 and code != 0xA0 or size == 0 or here + size > size_all:
            return -1
        if size > 1:
            high += len(octets[here : here + size].translate(None, _ASCII))
        here += size
    if len(keys) != count or here != size_all:
        return -1
    return end if len(octets.translate(None, _ASCII)) == high else -1
