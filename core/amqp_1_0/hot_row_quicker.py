"""CPython's own form of what hot_row.py delivers of messages that go out as they were published. No board carries this file.

A run of messages is one loop without calls of Python: hot.pump with the two functions of hot_transfers.py in it, and with hot.drop where
nothing of the message stays. tests/accel/test_quicker_records.py holds the forms together.
"""

from struct import Struct

from ..memory.hot import drop, extract
from ..memory.hot_quicker import delivered
from ..memory.layout import *
from .hot_row import deliver_run as plain_run

_FORMAT = 2  # formats.AMQP_1_0
_ROOM = 64  # octets of a transfer before the message, or more: see hot_transfers.py
_BEHIND = 14  # octets from the delivery-id up to the message
_message = Struct("12i").unpack_from  # all fields of a message
_entry = Struct("6i").unpack_from  # those of an entry up to ENTRY_REDELIVERED


_heads: dict = {}  # octets of a transfer up to and with its delivery-id's constructor, but for the frame's size -> see _head


def _head(size):
    """A function of struct that writes a transfer's head: octets of the frame; `size` octets up to and with the delivery-id's constructor;
    that, and the delivery-tag of the same four octets, behind its own constructor and size; the last three fields."""
    if size not in _heads:
        _heads[size] = Struct(">I%dsIHI3s" % size).pack_into
    return _heads[size]


def deliver_run(tables, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end):
    """See hot_row.deliver_run."""
    queues, channels, consumers = tables.queues, tables.channels, tables.consumers
    queue, channel = consumers[consumer + CONSUMER_QUEUE], consumers[consumer + CONSUMER_CHANNEL]
    if queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES or queues[queue + QUEUE_RETURNED] >= 0 or channels[channel + CHANNEL_PREFETCH]:
        return plain_run(tables, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end)
    no_ack, credit = consumers[consumer + CONSUMER_NO_ACK], consumers[consumer + CONSUMER_CREDIT]
    limit = min(limit, credit) if not no_ack else limit if credit > 0 else 0
    head, fields = bytes(prefix[4:prefix_size]) + b"\x70", bytes(prefix[prefix_size : prefix_size + 3])
    return write_run(tables, consumer, queue, channel, no_ack, limit, head, fields, frame_size_max - _ROOM, target, at, end - _ROOM)


def write_run(tables, consumer, queue, channel, no_ack, limit, head, fields, size_max, target, at, end):
    """Deliver up to `limit` messages, which have up to `size_max` octets, from the head of a queue; `head`, `fields`: of their transfers,
    see _head."""
    arena, blocks, messages, entries, state = tables.arena, tables.blocks, tables.messages, tables.entries, tables.state
    queues, channels = tables.queues, tables.channels
    put, block_size, size_before = _head(len(head)), state[STATE_BLOCK_SIZE], 3 + len(head) + _BEHIND
    tag = channels[channel + CHANNEL_TAG_HIGH] << 30 | channels[channel + CHANNEL_TAG]
    first = last = entry = queues[queue + QUEUE_HEAD]
    count = body_octets = dropped = block_total = 0
    cursor = state[STATE_CURSOR_BLOCK], state[STATE_CURSOR_OFFSET]  # where `extract` would have stopped
    try:
        while count < limit and entry >= 0:
            message, behind, _, _, _, returns = _entry(entries, 4 * entry)
            block, last_block, route, size, body, _, block_count, references, _, segment, kind, lifetime = _message(messages, 4 * message)
            size += body
            if (
                kind & (KIND_REWORKED | KIND_FOR_US) != _FORMAT
                or lifetime < -1
                or returns & ENTRY_RETURNS
                or size > size_max
                or at + size > end
            ):
                break
            tag += 1
            number = tag & 0xFFFFFFFF
            put(target, at, size_before + size, head, number, 0xA004, number, fields)
            at += size_before
            if route + size <= block_size:
                start = block * block_size + route
                target[at : at + size] = arena[start : start + size]
                cursor = block, route + size
            else:
                extract(arena, blocks, state, block, route, target, at, size)
                cursor = state[STATE_CURSOR_BLOCK], state[STATE_CURSOR_OFFSET]
            at += size
            body_octets += body
            if not no_ack:
                entries[entry + ENTRY_TAG], entries[entry + ENTRY_CONSUMER] = tag & MASK, consumer
            elif references > 1 or segment > 0 or block < 0:
                entries[entry + ENTRY_PREVIOUS] = -1
                drop(blocks, messages, entries, queues, state, entry)
            else:  # as hot.drop does
                blocks[last_block], state[POOL_BLOCKS] = state[POOL_BLOCKS], block
                messages[message + MESSAGE_REFERENCES] = 0
                messages[message], state[POOL_MESSAGES] = state[POOL_MESSAGES], message
                entries[entry], state[POOL_ENTRIES] = state[POOL_ENTRIES], entry
                entries[entry + ENTRY_PREVIOUS] = entries[entry + ENTRY_REDELIVERED] = -1
                entries[entry + ENTRY_TAG] = 0
                block_total += block_count
                dropped += 1
            last, entry = entry, behind
            count += 1
    finally:
        state[STATE_CURSOR_BLOCK], state[STATE_CURSOR_OFFSET] = cursor
        if count:
            channels[channel + CHANNEL_TAG], channels[channel + CHANNEL_TAG_HIGH] = tag & MASK, tag >> 30
            queues[queue + QUEUE_BLOCKS] -= block_total
            for pool, number in ((POOL_BLOCKS, block_total), (POOL_MESSAGES, dropped), (POOL_ENTRIES, dropped)):
                state[pool + 2] += number
            delivered(entries, queues, channels, tables.consumers, state, consumer, first, last, entry, count, body_octets)
    return at
