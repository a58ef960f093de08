"""CPython's own form of `pump` in hot_transfers.py: what stands before a body is made once for deliveries in a row that have it alike, and
what a queue counts of them is written once. No board carries this file. tests/accel/test_same_0_10.py holds the forms together.
"""

from ..memory.hot import extract
from ..memory.hot_quicker import delivered, drop
from ..memory.layout import *
from .hot_transfers import FRONT, put_header, put_short
from .hot_transfers import pump as plain_pump

_FORMAT = 3  # formats.AMQP_0_10
_HEAD = 12  # octets of a frame before its payload


def pump(arena, blocks, messages, entries, queues, channels, consumers, state, consumer, limit, lead, lead_size, frame_max, out, at, end):
    """See hot_transfers.pump."""
    queue = consumers[consumer + CONSUMER_QUEUE]
    if queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES or queues[queue + QUEUE_RETURNED] >= 0:
        return plain_pump(
            arena, blocks, messages, entries, queues, channels, consumers, state, consumer, limit, lead, lead_size, frame_max, out, at, end
        )
    channel, no_ack = consumers[consumer + CONSUMER_CHANNEL], consumers[consumer + CONSUMER_NO_ACK]
    limit = min(limit, consumers[consumer + CONSUMER_CREDIT])
    first = last = entry = queues[queue + QUEUE_HEAD]
    tag = channels[channel + CHANNEL_TAG]
    count, octets = 0, 0
    facts, before, front = (-1, -1, -1), b"", b""
    try:
        while count < limit and entry >= 0:
            message = entries[entry]
            start, _, route, properties, body = messages[message : message + MESSAGE_FILLED]
            whole = route + properties + body
            header = FRONT + route + properties
            if messages[message + MESSAGE_KIND] & (KIND_REWORKED | KIND_GRAFTED | KIND_FOR_US) != _FORMAT or body == 0:
                break
            if header + _HEAD > frame_max or body + _HEAD > frame_max or at + lead_size + 2 * _HEAD + header + body > end:
                break
            content, *cursor = content_of(arena, blocks, state, start, whole)
            size = route + properties
            now = route, entries[entry + ENTRY_REDELIVERED] & 255, body
            stored = bytes(content[:size])
            if now != facts or stored != before:
                made = front_of(arena, blocks, messages, state, message, now[1], lead, lead_size, body)
                if made is None:
                    break
                facts, before, front = now, stored, made
            behind = at + len(front)
            out[at:behind] = front
            at = behind + body
            out[behind:at] = content[size:whole]
            state[STATE_CURSOR_BLOCK], state[STATE_CURSOR_OFFSET] = cursor
            tag = (tag + 1) & MASK
            channels[channel + CHANNEL_TAG] = tag
            if tag == 0:
                channels[channel + CHANNEL_TAG_HIGH] += 1
            octets += body
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
            if no_ack and consumers[consumer + CONSUMER_CREDIT] != CREDIT_UNLIMITED:
                consumers[consumer + CONSUMER_CREDIT] -= count
    return at


def content_of(arena, blocks, state, block, size):
    """The octets of a message from its first block on, and the block and the offset behind them."""
    block_size = state[STATE_BLOCK_SIZE]
    start, left, last = block * block_size, size - block_size, block
    while left > 0 and blocks[last] == last + 1:
        last += 1
        left -= block_size
    if left <= 0:
        return arena[start : start + size], last, block_size + left
    content = memoryview(bytearray(size))  # its blocks lie apart
    extract(arena, blocks, state, block, 0, content, 0, size)
    return content, state[STATE_CURSOR_BLOCK], state[STATE_CURSOR_OFFSET]


def front_of(arena, blocks, messages, state, message, redelivered, lead, lead_size, body):
    """What stands before a body in a delivery: frames of command and header, the head of the body's; None: see put_header."""
    room = lead_size + 2 * _HEAD + 2 * FRONT + 2 * messages[message + MESSAGE_ROUTE] + messages[message + MESSAGE_PROPERTIES]
    made = memoryview(bytearray(room))
    behind = put_header(arena, blocks, messages, state, message, redelivered, made, lead_size + _HEAD)
    if behind < 0:
        return None
    made[: lead_size + _HEAD] = lead[: lead_size + _HEAD]
    put_short(made, lead_size + 2, behind - lead_size)
    made[behind : behind + _HEAD] = lead[lead_size + _HEAD : lead_size + 2 * _HEAD]
    put_short(made, behind + 2, body + _HEAD)
    return bytes(made[: behind + _HEAD])
