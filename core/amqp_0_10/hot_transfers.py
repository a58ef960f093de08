"""Deliveries of 0-10: transfers of messages that a publisher of 0-10 has sent and that nothing has changed since; with the laws of
core/memory/hot.py. c_accel/amqp_0_10_deliver.c has the same functions in C.

A delivery's delivery-properties have those of its publisher, the exchange and the routing key, whose two short strings are the
message's route, and whether it was delivered before. convert.py writes them for any message, octet for octet as here.
"""

from ..memory.hot import drop, expire, extract, hold, next_number, unlink_ready
from ..memory.layout import *
from ..shim import const, copy, quicker

_FORMAT = const(3)  # formats.AMQP_0_10
_HEAD = const(12)  # octets of a frame before its payload
FRONT = const(34)  # octets of delivery-properties before the exchange, or fewer


def pump(arena, blocks, messages, entries, queues, channels, consumers, state, consumer, limit, lead, lead_size, frame_max, out, at, end):
    """Deliver up to `limit` messages of a consumer's queue into out[at:end]: the position behind them. Stops at the first of: no credit,
    no message, no room, a message that convert.py has to see. `lead`: the frame of the command, behind it the head of a header's frame with
    no size, and of a body's."""
    queue = consumers[consumer + CONSUMER_QUEUE]
    channel = consumers[consumer + CONSUMER_CHANNEL]
    while limit > 0 and consumers[consumer + CONSUMER_CREDIT] > 0:
        if queues[queue + QUEUE_LIMITS] & LIMIT_EXPIRES and expire(blocks, messages, entries, queues, state, queue):
            break
        entry = queues[queue + QUEUE_HEAD]
        if entry < 0:
            break
        message = entries[entry]
        header = FRONT + messages[message + MESSAGE_ROUTE] + messages[message + MESSAGE_PROPERTIES]
        body = messages[message + MESSAGE_BODY]
        if messages[message + MESSAGE_KIND] & (KIND_REWORKED | KIND_GRAFTED | KIND_FOR_US) != _FORMAT or body == 0:
            break
        if header + _HEAD > frame_max or body + _HEAD > frame_max or at + lead_size + 2 * _HEAD + header + body > end:
            break
        redelivered = entries[entry + ENTRY_REDELIVERED] & 255
        behind = put_header(arena, blocks, messages, state, message, redelivered, out, at + lead_size + _HEAD)
        if behind < 0:
            break
        copy(out, at, lead, 0, lead_size + _HEAD)
        at += lead_size
        put_short(out, at + 2, behind - at)
        copy(out, behind, lead, lead_size + _HEAD, _HEAD)
        put_short(out, behind + 2, body + _HEAD)
        at = behind + _HEAD
        extract(arena, blocks, state, state[STATE_CURSOR_BLOCK], state[STATE_CURSOR_OFFSET], out, at, body)
        at += body
        next_number(channels, channel + CHANNEL_TAG)
        unlink_ready(messages, entries, queues, queue, entry)
        if consumers[consumer + CONSUMER_NO_ACK]:
            drop(blocks, messages, entries, queues, state, entry)
        else:
            hold(entries, queues, channels, channel, entry, consumer)
        if consumers[consumer + CONSUMER_CREDIT] != CREDIT_UNLIMITED:
            consumers[consumer + CONSUMER_CREDIT] -= 1
        state[STATE_DELIVERED] = (state[STATE_DELIVERED] + 1) & MASK
        limit -= 1
    return at


def put_short(target, at, number):
    """Write a number of 16 bits."""
    target[at] = number >> 8
    target[at + 1] = number & 255


def put_header(arena, blocks, messages, state, message, redelivered, target, at):
    """Write a message's header segment: the position behind it, with the cursor of `state` at the body; -1: it does not begin with
    delivery-properties. The octets behind what is written are used, too: FRONT and the size of the route."""
    route = messages[message + MESSAGE_ROUTE]
    size = messages[message + MESSAGE_PROPERTIES]
    stored = at + FRONT
    extract(arena, blocks, state, messages[message + MESSAGE_FIRST], 0, target, stored, route + size)
    source = stored + route
    if size < 8 or target[source + 4] != 4 or target[source + 5] != 1:
        return -1
    flags = target[source + 6]
    further = target[source + 7]
    front = 8 + (flags >> 3 & 1) + (flags >> 4 & 1) + (flags >> 2 & 8) + (flags >> 3 & 8) + (flags >> 4 & 8)
    rest = source + front
    if further & 1:
        rest += 1 + target[rest]
    if further & 2:
        rest += 1 + target[rest]
    struct = (target[source + 2] << 8 | target[source + 3]) + source + front - rest + route
    copy(target, at, target, source, front)
    put_short(target, at + 2, struct)
    target[at + 6] = flags | 4 if redelivered else flags
    target[at + 7] = further | 3
    copy(target, at + front, target, stored, route)
    left = source + size - rest
    copy(target, at + front + route, target, rest, left)
    return at + front + route + left


pump = quicker(pump)
