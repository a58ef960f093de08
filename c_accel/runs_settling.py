"""How acknowledgements are taken in runs: see runs.py. What one does: core/ingest.py and core/hot.py, settle."""
import struct

from leveret.core import layout
from leveret.core.hot import activate, wake_below
from leveret.core.layout import MASK, NONE
from .runs_shapes import END, ENTRY, MESSAGE

ACK_TAIL = struct.Struct(">QBB").unpack_from  # delivery tag, multiple, the end of the frame


class Settling:
    """The part of runs.Engine that frees what was delivered."""

    def take_ack(self, channel, octets, at):
        """Take the basic.ack at `at`: the position behind it; `at` when it is for find_tag and settle in hot.py."""
        tables = self.tables
        channels = tables.channels
        tag, multiple, frame_end = ACK_TAIL(octets, at + 11)
        high = tag >> 30
        high_now = channels[channel + layout.CHANNEL_TAG_HIGH]
        if channels[channel + layout.CHANNEL_INDEXED] != NONE or frame_end != END or tag == 0 or high != high_now and high + 1 != high_now:
            return at
        low = tag & MASK
        entry_octets = self.entry_octets
        entry = channels[channel + layout.CHANNEL_UNSETTLED_HEAD]
        handles, places = [], []
        while entry >= 0:
            place = ENTRY(entry_octets, 4 * entry)
            handles.append(entry)
            places.append(place)
            entry = place[1]
            if place[6] == low:
                wake_below(tables.entries, tables.queues, channels, tables.consumers, tables.state, channel, handles[0], handles[-1])
                self.settle(channel, handles, places)
                return at + 21
            if not multiple & 1:
                return at
        return at

    def settle(self, channel, handles, places):
        """Settle entries from the head of a channel's unsettled list."""
        tables = self.tables
        state, queues, channels = tables.state, tables.queues, tables.channels
        message_octets = self.message_octets
        count = len(handles)
        behind = places[-1][1]
        channels[channel + layout.CHANNEL_UNSETTLED_HEAD] = behind
        if behind >= 0:
            tables.entries[behind + layout.ENTRY_PREVIOUS] = NONE
        else:
            channels[channel + layout.CHANNEL_UNSETTLED_TAIL] = NONE
        channels[channel + layout.CHANNEL_UNSETTLED] -= count - sum([place[7] == layout.GOT for place in places])
        state[layout.STATE_SETTLED] = (state[layout.STATE_SETTLED] + count) & MASK
        at = 0
        while at < count:
            _, _, _, _, queue, _, _, consumer = places[at]
            begun = at
            while at < count and places[at][4] == queue and places[at][7] == consumer:
                at += 1
            if queues[queue + layout.QUEUE_LENGTH] > 0 or queues[queue + layout.QUEUE_PLAIN] == layout.NOT_PLAIN:
                activate(queues, state, queue)
            queues[queue + layout.QUEUE_UNSETTLED] -= at - begun
            if consumer >= 0:
                add_credit(tables.consumers, consumer, at - begun)
            self.drop(queue, handles[begun:at], places[begun:at], [MESSAGE(message_octets, 4 * place[0]) for place in places[begun:at]])

    def drop(self, queue, handles, places, records):
        """Free entries of one queue that were the first ones of a list, and their references; `places` and `records`: what they and their
        messages were."""
        tables = self.tables
        state, messages, entries, blocks = tables.state, tables.messages, tables.entries, tables.blocks
        entry_free, message_free, block_free = [state[pool] for pool in (layout.POOL_ENTRIES, layout.POOL_MESSAGES, layout.POOL_BLOCKS)]
        entries_given = messages_given = blocks_given = blocks_held = 0
        for entry, (message, _, before, _, _, redelivered, tag, _), record in zip(handles, places, records):
            first, last, _, _, _, _, total, _, _, segment = record
            blocks_held += total
            references = messages[message + 7] - 1
            messages[message + 7] = references
            if references <= 0:
                if first >= 0:
                    blocks[last] = block_free
                    block_free = first
                    blocks_given += total
                messages[message] = message_free
                message_free = message
                messages_given += 1
            if before >= 0:
                entries[entry + 2] = NONE
            if tag:
                entries[entry + 6] = 0
            if segment > 0 and redelivered >= 0:
                entries[entry] = segment
                entries[entry + 1] = state[layout.STATE_SETTLED_LIST]
                state[layout.STATE_SETTLED_LIST] = entry
            else:
                entries[entry] = entry_free
                entry_free = entry
                entries_given += 1
        for pool, free, given in ((layout.POOL_ENTRIES, entry_free, entries_given), (layout.POOL_MESSAGES, message_free, messages_given),
                                  (layout.POOL_BLOCKS, block_free, blocks_given)):
            state[pool] = free
            state[pool + 2] += given
        tables.queues[queue + layout.QUEUE_BLOCKS] -= blocks_held


def add_credit(consumers, consumer, count):
    """Change a consumer's credit, unless it has no limit."""
    if consumers[consumer + layout.CONSUMER_CREDIT] != layout.CREDIT_UNLIMITED:
        consumers[consumer + layout.CONSUMER_CREDIT] += count
