"""Deliveries of 0-9-1: basic.deliver with content header and body (section 4.2.6), in the viper dialect as hot.py is.

`size_of` and `write` are this family's in hot.pump; c_accel/amqp_0_9_deliver.c has the same functions in C.
"""

from ..memory.hot import extract, put_number
from ..memory.layout import *
from ..shim import const, copy, quicker

_HEAD = const(7)  # octets of a frame before its payload, and with its end (section 4.2.3)
_OVERHEAD = const(8)
_END = const(0xCE)
_HEADER_HEAD = const(20)  # octets of a content header frame beside the property flags and list


def put_frame(target, at, type_, channel_number, size):
    """Write the seven octets before a frame's payload (0-9-1 section 4.2.3)."""
    target[at] = type_
    target[at + 1] = channel_number >> 8
    target[at + 2] = channel_number & 255
    target[at + 3] = size >> 24 & 255
    target[at + 4] = size >> 16 & 255
    target[at + 5] = size >> 8 & 255
    target[at + 6] = size & 255


put_frame = quicker(put_frame, ">BHI")


def put_content_header(arena, blocks, messages, state, message, channel_number, target, at):
    """Write a message's content header frame (class basic): the position behind it. The cursor of `state` must stand behind the route;
    it is left at the body."""
    size = messages[message + MESSAGE_PROPERTIES]
    put_frame(target, at, 2, channel_number, size + 12)
    target[at + 7] = 0
    target[at + 8] = 60
    target[at + 9] = 0
    target[at + 10] = 0
    put_number(target, at + 11, 0, messages[message + MESSAGE_BODY])
    extract(arena, blocks, state, state[STATE_CURSOR_BLOCK], state[STATE_CURSOR_OFFSET], target, at + 19, size)
    target[at + 19 + size] = _END
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
        extract(arena, blocks, state, state[STATE_CURSOR_BLOCK], state[STATE_CURSOR_OFFSET], target, at + 7, size)
        target[at + 7 + size] = _END
        at += 8 + size
        left -= size
    return at


def size_of(messages, message, prefix_size, frame_size_max):
    """Octets of a delivery whose header and body are one frame each; -1: this message's are not, it has annotations, or another family has
    published it."""
    if messages[message + MESSAGE_KIND] & KIND_REWORKED:
        return -1
    body = messages[message + MESSAGE_BODY]
    size = messages[message + MESSAGE_PROPERTIES] + _HEADER_HEAD
    if body + _OVERHEAD > frame_size_max or size > frame_size_max:
        return -1
    return prefix_size + 10 + messages[message + MESSAGE_ROUTE] + size + _OVERHEAD + body


def write(arena, blocks, messages, entries, channels, state, entry, channel, prefix, prefix_size, frame_size_max, target, at):
    """Write a delivery: the position behind it.

    `prefix` is the basic.deliver frame up to and with the consumer tag (the frame's size is filled in here); then delivery tag,
    redelivered, route; then header and body.
    """
    message = entries[entry + ENTRY_MESSAGE]
    route = messages[message + MESSAGE_ROUTE]
    size = prefix_size + 9 + route - _HEAD
    copy(target, at, prefix, 0, prefix_size)
    target[at + 3] = size >> 24 & 255
    target[at + 4] = size >> 16 & 255
    target[at + 5] = size >> 8 & 255
    target[at + 6] = size & 255
    at += prefix_size
    put_number(target, at, channels[channel + CHANNEL_TAG_HIGH], channels[channel + CHANNEL_TAG])
    target[at + 8] = 1 if entries[entry + ENTRY_REDELIVERED] & 255 else 0
    extract(arena, blocks, state, messages[message + MESSAGE_FIRST], 0, target, at + 9, route)
    at += 9 + route
    target[at] = _END
    number = prefix[1] << 8 | prefix[2]
    at = put_content_header(arena, blocks, messages, state, message, number, target, at + 1)
    size = messages[message + MESSAGE_BODY]
    return put_body(arena, blocks, state, size, frame_size_max, number, target, at, at + size + _OVERHEAD)
