"""How messages are delivered in runs: see runs.py. What a delivery is: core/hot.py, pump."""
import struct

from leveret.core import layout
from leveret.core.engine import Plain
from leveret.core.layout import MASK, NONE
from .runs_shapes import BASIC, CONTENT_HEAD, ENTRY, FRAME_HEAD, MESSAGE
from .runs_settling import add_credit

DELIVERY = struct.Struct(">QB").pack  # delivery tag, redelivered


class Giving:
    """The part of runs.Engine that writes deliveries into a send buffer."""

    def pump(self, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end):
        """See hot.pump."""
        tables = self.tables
        channels, queues, state, entries = tables.channels, tables.queues, tables.state, tables.entries
        arena, block_size, entry_octets, message_octets = self.arena, self.block_size, self.entry_octets, self.message_octets
        queue = tables.consumers[consumer + layout.CONSUMER_QUEUE]
        if queues[queue + layout.QUEUE_LIMITS] & layout.LIMIT_EXPIRES:
            return Plain.pump(self, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end)
        channel = tables.consumers[consumer + layout.CONSUMER_CHANNEL]
        no_ack = tables.consumers[consumer + layout.CONSUMER_NO_ACK]
        limit = min(limit, queues[queue + layout.QUEUE_LENGTH], may_deliver(tables, consumer, channel, no_ack))
        entry = queues[queue + layout.QUEUE_HEAD]
        tag = channels[channel + layout.CHANNEL_TAG_HIGH] << 30 | channels[channel + layout.CHANNEL_TAG]
        room = end - at - prefix_size - 38
        names_size = route_of = body_of = NONE
        names = start = middle = ending = b""
        handles, places, records, parts = [], [], [], []
        for _ in range(limit):
            place = ENTRY(entry_octets, 4 * entry)
            record = MESSAGE(message_octets, 4 * place[0])
            first, _, route, properties, body, size, _, _, _, _ = record
            if size > room or body + 8 > frame_size_max or properties + 20 > frame_size_max:
                break
            room -= size + prefix_size + 38
            content = arena[first * block_size:first * block_size + size] if size <= block_size else self.gather(first, size)
            if body != body_of or route != route_of or route + properties != names_size or not content.startswith(names):
                body_of, route_of, names_size = body, route, route + properties
                names = bytes(content[:names_size])
                start, middle, ending = frames_of(bytes(prefix[:prefix_size]), names, route, body)
            tag += 1
            parts += (start, DELIVERY(tag, 1 if place[5] & 255 else 0), middle, content[names_size:], ending)
            handles.append(entry)
            places.append(place)
            records.append(record)
            entry = place[1]
        if not handles:
            return at
        count = len(handles)
        state[layout.STATE_CURSOR_BLOCK] = records[-1][1]
        state[layout.STATE_CURSOR_OFFSET] = (records[-1][5] - 1) % block_size + 1
        state[layout.STATE_DELIVERED] = (state[layout.STATE_DELIVERED] + count) & MASK
        queues[queue + layout.QUEUE_HEAD] = entry
        queues[queue + layout.QUEUE_LENGTH] -= count
        queues[queue + layout.QUEUE_OCTETS] -= sum([record[4] for record in records])
        if queues[queue + layout.QUEUE_RETURNED] in handles:
            queues[queue + layout.QUEUE_RETURNED] = NONE
        if entry >= 0:
            entries[entry + layout.ENTRY_PREVIOUS] = NONE
        else:
            queues[queue + layout.QUEUE_TAIL] = NONE
        if no_ack:
            self.drop(queue, handles, places, records)
        else:
            self.hold(consumer, channel, queue, handles, tag - count)
        channels[channel + layout.CHANNEL_TAG] = tag & MASK
        channels[channel + layout.CHANNEL_TAG_HIGH] = tag >> 30
        octets = b"".join(parts)
        target[at:at + len(octets)] = octets
        return at + len(octets)

    def gather(self, block, size):
        """The first `size` octets of a chain."""
        arena, block_size, blocks = self.arena, self.block_size, self.tables.blocks
        parts = []
        while size > block_size:
            parts.append(arena[block * block_size:(block + 1) * block_size])
            size -= block_size
            block = blocks[block]
        parts.append(arena[block * block_size:block * block_size + size])
        return b"".join(parts)

    def hold(self, consumer, channel, queue, handles, tag):
        """Put entries, in their queue's order and out of it now, on a channel's unsettled list: their links are those they had."""
        tables = self.tables
        entries, channels = tables.entries, tables.channels
        tail = channels[channel + layout.CHANNEL_UNSETTLED_TAIL]
        entries[handles[0] + layout.ENTRY_PREVIOUS] = tail
        if tail >= 0:
            entries[tail + layout.ENTRY_NEXT] = handles[0]
        else:
            channels[channel + layout.CHANNEL_UNSETTLED_HEAD] = handles[0]
        for entry in handles:
            tag += 1
            entries[entry + layout.ENTRY_TAG] = tag & MASK
            entries[entry + layout.ENTRY_CONSUMER] = consumer
        entries[handles[-1] + layout.ENTRY_NEXT] = NONE
        count = len(handles)
        channels[channel + layout.CHANNEL_UNSETTLED_TAIL] = handles[-1]
        channels[channel + layout.CHANNEL_UNSETTLED] += count
        tables.queues[queue + layout.QUEUE_UNSETTLED] += count
        add_credit(tables.consumers, consumer, -count)

    # Settling


def may_deliver(tables, consumer, channel, no_ack):
    """How many deliveries a consumer's credit and its channel's prefetch allow."""
    credit = tables.consumers[consumer + layout.CONSUMER_CREDIT]
    prefetch = tables.channels[channel + layout.CHANNEL_PREFETCH]
    if prefetch == 0:
        return credit
    left = prefetch - tables.channels[channel + layout.CHANNEL_UNSETTLED]
    return credit if no_ack and left > 0 else min(credit, left)


def frames_of(prefix, names, route, body):
    """The octets of a delivery (section 4.2.6) before its delivery tag, between redelivered and the body, and behind the body.

    `prefix` is the method frame up to and with the consumer tag; `names` are route (so many octets) and properties.
    """
    number = prefix[1] << 8 | prefix[2]
    start = FRAME_HEAD.pack(1, number, len(prefix) + 2 + route) + prefix[7:]
    head = CONTENT_HEAD.pack(2, number, len(names) - route + 12, BASIC, 0, body)
    middle = names[:route] + b"\xce" + head + names[route:] + b"\xce"
    return (start, middle + FRAME_HEAD.pack(3, number, body), b"\xce") if body else (start, middle, b"")
