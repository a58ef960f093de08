"""CPython's own form of `ingest` in hot_in.py: runs of transfers for one queue that asks for nothing are stored together, and a header
segment that is the one before it is read once. No board carries this file. tests/accel/test_same_0_10.py holds the forms together.
"""

from struct import Struct

from ..broker.publish import find_route
from ..memory.hot import activate
from ..memory.hot_quicker import store
from ..memory.layout import *
from .hot_in import ingest_one, read_header
from .hot_layout import *

_frame = Struct(">BBH8s").unpack_from  # flags, type of the segment, size; track and channel
_HEAD = 12  # octets of a frame before its payload


def ingest(arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, numbers, lead, way, source):
    """See hot_in.ingest."""
    while numbers[IN_TAKEN] < numbers[IN_MOST]:
        if state[STATE_LEFT] <= 0:
            return TURN_OVER
        if run(arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, numbers, lead, way, source):
            continue
        answer = ingest_one(
            arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, numbers, lead, way, source
        )
        if answer < 0:
            return answer
        numbers[IN_TAKEN] += 1
        state[STATE_AT] = answer
        state[STATE_LEFT] -= 1
    return ASK


def run(arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, numbers, lead, way, source):
    """Take transfers from state[AT] on, as hot_in.ingest_one does, as long as all go to one queue that asks for nothing: how many."""
    if channels[numbers[IN_RECORD] + CHANNEL_CONFIRM]:
        return 0
    queue, rows, at = usual(queues, state, routes, route_octets, route_targets, numbers, lead, way, source)
    count = len(rows)
    if count:
        store(arena, blocks, messages, entries, queues, state, queue, rows)
        activate(queues, state, queue)
        state[STATE_PUBLISHED] = (state[STATE_PUBLISHED] + count) & MASK
        state[STATE_LEFT] -= 2 * count  # a transfer, and a place in a queue
        state[STATE_AT] = at
        numbers[IN_TAKEN] += count
    return count


def usual(queues, state, routes, route_octets, route_targets, numbers, lead, way, source):
    """The transfers from state[AT] on that their queue takes unread, up to the first for hot_in.ingest_one: (the queue, rows for
    hot_quicker.store, where they end)."""
    octets, lead_size, place = bytes(lead), numbers[IN_LEAD], bytes(lead[4:_HEAD])
    block_size, end = state[STATE_BLOCK_SIZE], state[STATE_END]
    frame_max, properties_max, content_max = state[STATE_FRAME_MAX], state[STATE_PROPERTIES_MAX], state[STATE_CONTENT_MAX]
    blocks_left, messages_left, entries_left = state[POOL_BLOCKS + 2], state[POOL_MESSAGES + 2], state[POOL_ENTRIES + 2]
    most, at, queue, held, held_blocks, kind = numbers[IN_MOST] - numbers[IN_TAKEN], state[STATE_AT], -1, 0, 0, 0
    most = min(most, (state[STATE_LEFT] + 1) // 2)
    before = prefix = b""
    rows: list = []
    while len(rows) < most:
        header = at + lead_size
        if end - header < 2 * _HEAD or bytes(source[at:header]) != octets:
            break
        body, behind = frames(source, header, place, frame_max, end)
        if behind < 0:
            break
        properties = bytes(source[header + _HEAD : body - _HEAD])
        if properties != before:
            if read_header(state, numbers, way, source, header + _HEAD, body - _HEAD) < 0 or state[STATE_LIFETIME] != -1:
                break
            slot = find_route(state, routes, route_octets, way, 0, numbers[IN_ROUTE])
            if slot < 0 or routes[slot + ROUTE_COUNT] != 1 or routes[slot + ROUTE_ALTERNATES]:
                break
            target = route_targets[routes[slot + ROUTE_TARGETS]]
            if queue < 0:
                plain = queues[target + QUEUE_PLAIN]
                if plain != PLAIN and plain != PLAIN_LOGGED or queues[target + QUEUE_LIMITS]:
                    break
                queue, held = target, queues[target + QUEUE_LENGTH] + queues[target + QUEUE_UNSETTLED]
                held_blocks = queues[target + QUEUE_BLOCKS]
            kind = state[STATE_KIND]
            if target != queue or plain != PLAIN and kind & KIND_DURABLE:
                break
            before, prefix = properties, bytes(way[: numbers[IN_ROUTE]]) + properties
        block_total = (len(prefix) + behind - body + block_size - 1) // block_size
        if (
            len(properties) > properties_max
            or behind - body > content_max
            or blocks_left < block_total
            or messages_left < 1
            or entries_left < 1
        ):
            break
        if held > 0 and (
            held >= 4 * entries_left or held >= 4 * (messages_left - 1) or held_blocks + block_total > 4 * (blocks_left - block_total)
        ):
            break
        rows.append((prefix + source[body:behind], len(prefix) - len(properties), len(properties), behind - body, kind, block_total))
        blocks_left -= block_total
        messages_left -= 1
        entries_left -= 1
        held += 1
        held_blocks += block_total
        at = behind
    return queue, rows, at


def frames(source, header, place, frame_max, end):
    """A frame with the whole header segment, and one with the whole body behind it: (where the body begins, where it ends); the last is -1:
    they are others, or not whole."""
    flags, type_, size, same_place = _frame(source, header)
    body = header + size
    if flags != 3 or type_ != 2 or same_place != place or size <= _HEAD or size > frame_max or end - body < _HEAD:
        return -1, -1
    flags, type_, size, same_place = _frame(source, body)
    behind = body + size
    if flags != 7 or type_ != 3 or same_place != place or size <= _HEAD or size > frame_max or behind > end:
        return -1, -1
    return body + _HEAD, behind
