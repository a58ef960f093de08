"""The journal: what of the broker goes into the log, and when a confirm may leave.

Messages that are persistent and lie in durable queues, everything in streams, settlements as ranges, and definitions. A confirm leaves
after the sync that covers its message (`durable`); a stream shows its readers only what is durable, because they remember offsets.

Places: a message in a queue is (queue id, position); ids are never given twice, positions count up by one for each message of the queue.
"""

import json
import struct

from . import durable, layout, log, log_figures
from .shim import elapsed

EACH = "each"
BATCH = "batch"
NONE = "none"

IDLE_MS = 1000  # how often the journal is run when nothing happens

RANGES_MAX = 256  # settled ranges that are gathered before they are written

BIG = layout.MASK + 1


class Journal:
    """The broker's side of a log. `mode` EACH, BATCH (after `batch_ms` or `batch_size` octets) or NONE."""

    def __init__(self, broker, writer, mode, batch_ms, batch_size):
        self.broker = broker
        self.log = writer
        self.mode = mode
        self.batch_ms = batch_ms
        self.batch_size = batch_size
        self.message_octets = 0  # octets of the messages logged in this run, without what the log adds
        self.dirty_since = 0
        self.was_dirty = False
        self.queue_ids = 0  # given so far
        self.settled = {}  # queue id -> list of [first, end) positions
        self.settled_count = 0
        self.waiting = []  # sessions that have confirms to write when the log is durable
        self.grown = []  # streams with messages that are not durable yet

    # Messages

    def wants(self, message, targets):
        """The queues among `targets` for which a message has to be logged."""
        persistent = self.broker.tables.messages[message + layout.MESSAGE_SEGMENT] != layout.NONE
        return [found for found in targets if found.id_in_log and (persistent or found.is_stream)]

    def position(self, found, low):
        """The whole position for its low 30 bits: the one at or below the last given."""
        last = found.log_position
        whole = last - ((last - low) & layout.MASK)
        return whole

    def note_pushed(self, found):
        """The whole position of the message that a queue has just taken."""
        low = (self.broker.tables.queues[found.handle + layout.QUEUE_POSITION] - 1) & layout.MASK
        found.log_position += (low - found.log_position) & layout.MASK
        return found.log_position

    def message(self, message, targets):
        """Log a message that the queues `targets` have just taken."""
        tables = self.broker.tables
        if tables.messages[message + layout.MESSAGE_REFERENCES] == 1:
            return  # their rules have let it go again already
        places = [struct.pack(">IQ", found.id_in_log, self.note_pushed(found)) for found in targets]
        self.write_message(message, places)
        for found in targets:
            if found.is_stream and found not in self.grown:
                self.grown.append(found)
        tables.messages[message + layout.MESSAGE_SEGMENT] = self.log.current().number

    def write_message(self, message, places):
        """Append the record of a message in these places."""
        tables = self.broker.tables
        messages = tables.messages
        size = tables.size_of(message)
        self.message_octets += size
        head = struct.pack(">BIHII", len(places), messages[message + layout.MESSAGE_ARRIVED], messages[message + layout.MESSAGE_ROUTE],
                           messages[message + layout.MESSAGE_PROPERTIES], messages[message + layout.MESSAGE_BODY])
        self.touch()
        self.log.append(log.MESSAGE, [head] + places + [tables.octets(message, 0, size)])
        segment = self.log.current()
        segment.live += len(places)
        segment.written += len(places)

    def durable(self, number):
        """True when everything up to record `number` of this run is durable (or durability is not asked for)."""
        return self.mode == NONE or self.log.synced >= number

    def last(self):
        """The number of the newest record."""
        return self.log.appended

    # Settlements

    def gather_settled(self):
        """Take the settled entries that the hot functions have put aside, and free them."""
        tables = self.broker.tables
        state, entries = tables.state, tables.entries
        entry = state[layout.STATE_SETTLED_LIST]
        state[layout.STATE_SETTLED_LIST] = layout.NONE
        while entry != layout.NONE:
            behind = entries[entry + layout.ENTRY_NEXT]
            self.settle(entries[entry + layout.ENTRY_QUEUE], entries[entry + layout.ENTRY_POSITION], entries[entry + layout.ENTRY_MESSAGE])
            tables.give_entry(entry)
            entry = behind

    def settle(self, handle, low, segment_number):
        """Note that a place is settled; its segment has one live place less."""
        for segment in self.log.segments:
            if segment.number == segment_number:
                segment.live -= 1
        found = self.broker.queue_objects.get(handle)
        if found is None or not found.id_in_log:
            return
        position = self.position(found, low)
        ranges = self.settled.setdefault(found.id_in_log, [])
        add_to_ranges(ranges, position)
        self.settled_count += 1
        if self.settled_count >= RANGES_MAX:
            self.write_settled()

    def write_settled(self):
        """Append what is settled as compact ranges."""
        for identity in self.settled:
            parts = [struct.pack(">IH", identity, len(self.settled[identity]))]
            for first, end in self.settled[identity]:
                parts.append(struct.pack(">QI", first, end - first))
            self.touch()
            self.log.append(log.SETTLED, parts)
        self.settled = {}
        self.settled_count = 0

    def together(self, action):
        """Run `action`; what it logs is one group, of which a crash leaves all or nothing, and is durable when this returns."""
        self.gather_settled()
        self.write_settled()
        self.log.group = []
        try:
            action()
            self.gather_settled()
            self.write_settled()
        finally:
            parts, self.log.group = self.log.group, None
            if parts:
                self.touch()
                self.log.append(log.GROUP, parts)
        self.commit()

    # Definitions

    def define(self, definition):
        """Log a definition (a dict) and make it durable before its maker is answered."""
        self.touch()
        self.log.append(log.DEFINED, (json.dumps(plain(definition)).encode(),))
        self.log.current().defines = True
        self.commit()

    def queue_made(self, found):
        """A durable queue gets its id."""
        self.queue_ids += 1
        found.id_in_log = self.queue_ids
        if found.is_stream:
            found.durable_offset = found.next_offset()
        self.define(durable.queue_definition(found))

    def queue_gone(self, found):
        """A durable queue was deleted."""
        self.gather_settled()
        self.settled.pop(found.id_in_log, None)
        if found in self.grown:
            self.grown.remove(found)
        self.define({"gone": "queue", "id": found.id_in_log, "name": found.name})

    # Time

    def touch(self):
        """Something is about to be appended."""
        if not self.was_dirty:
            self.was_dirty = True
            self.dirty_since = self.broker.now

    def run(self):
        """After a round of the broker: write and sync what the mode asks for, free what is no longer wanted."""
        self.gather_settled()
        if not self.was_dirty and not self.settled:
            return
        if self.mode == BATCH and not self.due():
            return
        self.write_settled()
        self.commit()

    def due(self):
        """True when a batch has waited long enough or is large enough."""
        if not self.was_dirty:
            self.touch()
        return self.log.parts_size >= self.batch_size or elapsed(self.broker.now, self.dirty_since) >= self.batch_ms

    def wait_ms(self):
        """Milliseconds after which `run` should be called again at the latest."""
        if self.mode != BATCH or not self.was_dirty or self.log.trouble:
            return IDLE_MS
        return max(0, self.batch_ms - elapsed(self.broker.now, self.dirty_since))

    def finish(self):
        """The broker ends: write and sync all there is, in every mode; false when that cannot be."""
        self.gather_settled()
        self.write_settled()
        return self.commit() and (self.mode != NONE or self.log.sync())

    def figures(self):
        """What is written and what that does to the medium: a dict, see log_figures.py."""
        return log_figures.figures(self)

    def commit(self):
        """Write and sync; then let confirms and streams' readers go on."""
        if not self.log.commit(self.mode != NONE):
            return False
        self.was_dirty = False
        for stream in self.grown:
            stream.durable_offset = stream.next_offset()
            self.broker.activate(stream)
        self.grown = []
        waiting, self.waiting = self.waiting, []
        for session in waiting:
            session.connection.resume()
        self.free_segments()
        return True

    def free_segments(self):
        """Remove the oldest segments as long as nothing in them is wanted, copying a few stragglers forward."""
        while len(self.log.segments) > 2:
            oldest = self.log.segments[0]
            if oldest.live > 0 and (oldest.live * 4 > oldest.written or not self.copy_forward(oldest)):
                return
            if oldest.defines:
                oldest.defines = False
                self.snapshot()
            if self.log.dirty() and not self.log.commit(self.mode != NONE):
                return
            if not self.log.remove_oldest():
                return

    def copy_forward(self, oldest):
        """Write the messages that still live in the oldest segment again; false when there are more than it should have."""
        tables = self.broker.tables
        found = {}  # message -> places
        for queue, entry in self.live_entries():
            message = tables.entries[entry + layout.ENTRY_MESSAGE]
            if tables.messages[message + layout.MESSAGE_SEGMENT] == oldest.number:
                place = struct.pack(">IQ", queue.id_in_log, self.position(queue, tables.entries[entry + layout.ENTRY_POSITION]))
                found.setdefault(message, []).append(place)
        for message in found:
            self.write_message(message, found[message])
            tables.messages[message + layout.MESSAGE_SEGMENT] = self.log.current().number
            self.log.counters["log_copied_forward"] += 1
        oldest.live = 0
        return True

    def live_entries(self):
        """All (queue, entry) with a place in the log: ready, unsettled, waiting."""
        tables = self.broker.tables
        entries = tables.entries
        for found in self.broker.queues.values():
            if found.id_in_log:
                entry = found.head()
                while entry != layout.NONE:
                    yield found, entry
                    entry = entries[entry + layout.ENTRY_NEXT]
        for connection in self.broker.connections:
            for channel in connection.channels():
                if not channel.closing:
                    entry = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD]
                    while entry != layout.NONE:
                        found = self.broker.queue_objects[entries[entry + layout.ENTRY_QUEUE]]
                        if found.id_in_log and entries[entry + layout.ENTRY_REDELIVERED] >= 0:
                            yield found, entry
                        entry = entries[entry + layout.ENTRY_NEXT]
        for found, entry in self.broker.kept_aside():
            if found.id_in_log:
                yield found, entry

    def snapshot(self):
        """Write all definitions again, so that those in older segments are not needed."""
        for definition in durable.all_definitions(self.broker):
            self.log.append(log.DEFINED, (json.dumps(plain(definition)).encode(),))
        self.log.current().defines = True
        self.touch()


def add_to_ranges(ranges, position):
    """Add a position to a list of [first, end) ranges, joining it to the last one when it fits there."""
    if ranges and ranges[-1][1] == position:
        ranges[-1] = (ranges[-1][0], position + 1)
    elif ranges and ranges[-1][0] == position + 1:
        ranges[-1] = (position, ranges[-1][1])
    else:
        ranges.append((position, position + 1))


def plain(item):
    """A definition with what JSON does not have written as lists: tuples as ["$t", ...], octets as ["$x", hex]."""
    if isinstance(item, dict):
        return {name: plain(item[name]) for name in item}
    if isinstance(item, tuple):
        return ["$t"] + [plain(each) for each in item]
    if isinstance(item, list):
        return ["$l"] + [plain(each) for each in item]
    if isinstance(item, (bytes, bytearray)):
        return ["$x", bytes(item).hex()]
    return item


def rich(item):
    """What `plain` was given."""
    if isinstance(item, dict):
        return {name: rich(item[name]) for name in item}
    if isinstance(item, list):
        if item[0] == "$x":
            return bytes.fromhex(item[1])
        rest = [rich(each) for each in item[1:]]
        return tuple(rest) if item[0] == "$t" else rest
    return item
