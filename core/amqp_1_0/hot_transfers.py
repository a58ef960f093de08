"""Deliveries of 1.0: transfers (section 2.7.5) of messages that go out as they were published; viper dialect.

`size_of` and `write` are this family's in hot.pump; c_accel/amqp_1_0_deliver.c has the same functions in C.
"""

from ..memory.hot import expire, extract
from ..memory.layout import *
from ..shim import const, copy, quicker

_FORMAT = const(2)  # formats.AMQP_1_0
_ROOM = const(64)  # octets of a transfer before the message, or more (has_room in link_out.py)
_BEHIND = const(14)  # octets from the delivery-id up to the message
_LAST = const(3)  # octets of `prefix` that stand behind the delivery-tag


def first_time(blocks, messages, entries, queues, consumers, state, consumer, limit):
    """How many of the next `limit` messages of a consumer's queue have not come back to it: their receiver gets their headers as they
    are, also while the first second of a lifetime goes. At most 1 of a queue whose messages expire: those in between may go."""
    queue = consumers[consumer + CONSUMER_QUEUE]
    entry = queues[queue + QUEUE_HEAD]
    if queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES:
        limit = 1 - expire(blocks, messages, entries, queues, state, queue)
        entry = queues[queue + QUEUE_HEAD]
        if entry >= 0:
            message = entries[entry + ENTRY_MESSAGE]
            if messages[message + MESSAGE_LIFETIME] != -1 and state[STATE_SECONDS] - messages[message + MESSAGE_ARRIVED] > 1:
                limit = 0
    count = 0
    while entry >= 0 and count < limit and entries[entry + ENTRY_REDELIVERED] & ENTRY_RETURNS == 0:
        count += 1
        entry = entries[entry + ENTRY_NEXT]
    return count


def size_of(messages, message, prefix_size, frame_size_max):
    """Octets that a transfer of a whole message takes at most; -1: this message's is not the publisher's octets (or will not be, of a
    lifetime that is counted in seconds), or not one frame."""
    if messages[message + MESSAGE_KIND] & (KIND_REWORKED | KIND_FOR_US) != _FORMAT or messages[message + MESSAGE_LIFETIME] < -1:
        return -1
    size = _ROOM + messages[message + MESSAGE_PROPERTIES] + messages[message + MESSAGE_BODY]
    return size if size <= frame_size_max else -1


def put_size(target, at, size_high, size_low):
    """Write the size of a frame."""
    target[at] = size_high >> 8
    target[at + 1] = size_high & 255
    target[at + 2] = size_low >> 8
    target[at + 3] = size_low & 255


put_size = quicker(put_size, ">HH")


def put_id(target, at, constructor, high, low, head, tag_high, tag_low):
    """Write a delivery-id, and a delivery-tag of the same four octets; each number but the first has two octets."""
    target[at] = constructor
    target[at + 1] = high >> 8
    target[at + 2] = high & 255
    target[at + 3] = low >> 8
    target[at + 4] = low & 255
    target[at + 5] = head >> 8
    target[at + 6] = head & 255
    target[at + 7] = tag_high >> 8
    target[at + 8] = tag_high & 255
    target[at + 9] = tag_low >> 8
    target[at + 10] = tag_low & 255


put_id = quicker(put_id, ">BHHHHH")


def write(arena, blocks, messages, entries, channels, state, entry, channel, prefix, prefix_size, frame_size_max, target, at):
    """Write a transfer: the position behind it.

    `prefix` is the frame up to the delivery-id (the frame's size is filled in here); behind it stand the _LAST octets of the list:
    message-format, settled, more.
    """
    message = entries[entry + ENTRY_MESSAGE]
    octets = messages[message + MESSAGE_PROPERTIES] + messages[message + MESSAGE_BODY]
    size = prefix_size + _BEHIND + octets
    low = channels[channel + CHANNEL_TAG]
    high = (channels[channel + CHANNEL_TAG_HIGH] & 3) << 14 | low >> 16
    low &= 0xFFFF
    copy(target, at, prefix, 0, prefix_size)
    put_size(target, at, size >> 16, size & 0xFFFF)
    at += prefix_size
    put_id(target, at, 0x70, high, low, 0xA004, high, low)
    copy(target, at + 11, prefix, prefix_size, _LAST)
    at += _BEHIND
    extract(arena, blocks, state, messages[message + MESSAGE_FIRST], messages[message + MESSAGE_ROUTE], target, at, octets)
    return at + octets
