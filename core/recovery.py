"""Recovery: from the segments of a log to a broker that goes on where it was. It always starts, and says what it found.

Two passes over the segments, in fixed memory. The first reads what is defined and what is settled; the second puts every message that is
not settled in its queues, in its place. A segment that is damaged is believed up to the damage; what lies behind is put aside by the store
and named in the report. A log of a newer version is not touched.
"""

import json
import struct

from . import durable, hot, layout, log
from .broker import nobody
from .journal import BIG, rich


class TooSmall(Exception):
    """The limits have no room for what the log holds; the text says which number to raise."""


class Found:
    """What the first pass found."""

    def __init__(self):
        self.definitions = {}  # key -> definition, in the order of making
        self.settled = {}  # queue id -> rising list of [first, end)
        self.segments = []
        self.damages = []
        self.sequence = None
        self.queue_ids = 0
        self.counts = {"definitions": 0, "settled": 0, "messages": 0, "doubles": 0}


def records(store, number, found=None):
    """The records of one segment: (type, payload); damage goes to `found`. Groups come apart."""
    reader = log.Reader(store, number)
    if reader.head():
        record = reader.next()
        while record is not None:
            if record[0] == log.GROUP:
                for each in ungrouped(record[1]):
                    yield each
            else:
                yield record
            record = reader.next()
    if found is not None:
        if reader.damage is not None:
            found.damages.append(reader.damage)
        if reader.sequence is not None:
            found.sequence = reader.sequence


def ungrouped(payload):
    """The records inside a group."""
    at = 0
    while at < len(payload):
        type_, size = struct.unpack_from(">BI", payload, at)
        yield type_, payload[at + 5:at + 5 + size]
        at += 5 + size


def look(store):
    """The first pass: definitions, settlements, damage. Raises log.NewerLog before anything is changed."""
    found = Found()
    numbers = store.numbers()
    for number in numbers:
        log.Reader(store, number).head()
    for number in numbers:
        segment = log.Segment(number)
        for type_, payload in records(store, number, found):
            if type_ == log.DEFINED:
                segment.defines = True
                define(found, rich(json.loads(str(payload, "utf-8"))))
            elif type_ == log.SETTLED:
                settle(found, payload)
        segment.size = store.size(number)
        found.segments.append(segment)
    return found


def define(found, definition):
    """Take a definition, or the removal of one."""
    found.counts["definitions"] += 1
    key = key_of(definition)
    if "gone" in definition:
        found.definitions.pop(key, None)
        if definition["gone"] == "queue":
            found.settled.pop(definition["id"], None)
    else:
        found.definitions[key] = definition
    found.queue_ids = max(found.queue_ids, definition.get("id", 0))


def key_of(definition):
    """What makes two definitions the same thing."""
    kind = definition.get("kind") or definition["gone"]
    if kind == "queue":
        return kind, definition["id"]
    if kind == "binding":
        arguments = repr(sorted(definition["arguments"].items()))
        return kind, definition["source"], definition["to"], definition["name"], definition["key"], arguments
    return kind, definition["name"]


def settle(found, payload):
    """Take a record of settled ranges."""
    identity, count = struct.unpack_from(">IH", payload, 0)
    ranges = found.settled.setdefault(identity, [])
    for index in range(count):
        first, size = struct.unpack_from(">QI", payload, 6 + 12 * index)
        found.counts["settled"] += size
        add_range(ranges, first, first + size)


def add_range(ranges, first, end):
    """Put [first, end) into a rising list of ranges that do not touch."""
    low, high = 0, len(ranges)
    while low < high:
        middle = (low + high) // 2
        if ranges[middle][1] < first:
            low = middle + 1
        else:
            high = middle
    stop = low
    while stop < len(ranges) and ranges[stop][0] <= end:
        first = min(first, ranges[stop][0])
        end = max(end, ranges[stop][1])
        stop += 1
    ranges[low:stop] = [(first, end)]


def is_in(ranges, position):
    """True when a position lies in one of the ranges."""
    low, high = 0, len(ranges)
    while low < high:
        middle = (low + high) // 2
        if ranges[middle][1] <= position:
            low = middle + 1
        else:
            high = middle
    return low < len(ranges) and ranges[low][0] <= position


def restore(broker, store, found):
    """The second pass: definitions, then messages, into an empty broker. Raises TooSmall."""
    by_id = durable.restore(broker, list(found.definitions.values()), nobody)
    for segment in found.segments:
        for type_, payload in records(store, segment.number):
            if type_ == log.MESSAGE:
                place(broker, found, by_id, segment, payload)
    for identity in by_id:
        close_queue(broker, by_id[identity], found.settled.get(identity, ()))
    return by_id


def place(broker, found, by_id, segment, payload):
    """Put a logged message into the queues where it is still wanted."""
    count, arrived, route_size, properties_size, body_size = struct.unpack_from(">BIHII", payload, 0)
    at = 15 + 12 * count
    segment.written += count
    message = layout.NONE
    tables = broker.tables
    for index in range(count):
        identity, position = struct.unpack_from(">IQ", payload, 15 + 12 * index)
        queue = by_id.get(identity)
        if queue is None or is_in(found.settled.get(identity, ()), position):
            continue
        if message == layout.NONE:
            message = new_message(broker, payload, at, route_size, properties_size, body_size, arrived)
            tables.messages[message + layout.MESSAGE_SEGMENT] = segment.number
        if enter(broker, queue, message, position):
            segment.live += 1
            found.counts["messages"] += 1
        else:
            found.counts["doubles"] += 1
    if message != layout.NONE:
        tables.release(message)


def new_message(broker, payload, at, route_size, properties_size, body_size, arrived):
    """A message record with what the log holds of it."""
    tables = broker.tables
    blocks = tables.blocks_for(route_size + properties_size + body_size)
    if not tables.has_room(blocks, 1):
        raise TooSmall("the log holds more than the limits have room for; raise arena_size (%d), message_count_max (%d) or entry_count_max "
                       "(%d)" % (broker.limits.arena_size, broker.limits.message_count_max, broker.limits.entry_count_max))
    message = tables.new_message(payload[at:at + route_size], properties_size, body_size, arrived)
    tables.append(message, memoryview(payload), at + route_size, properties_size + body_size)
    return message


def enter(broker, queue, message, position):
    """Put a message at its position of a queue; false when it is there already (copied forward before the crash)."""
    tables = broker.tables
    if tables.state[layout.POOL_ENTRIES + 2] < 1:
        raise TooSmall("the log holds more messages than entry_count_max (%d); raise it" % broker.limits.entry_count_max)
    if position <= queue.log_position and position_is_there(tables, queue, position):
        return False
    entry = hot.push(tables.messages, tables.entries, tables.queues, tables.state, queue.handle, message)
    tables.entries[entry + layout.ENTRY_POSITION] = position & layout.MASK
    tables.entries[entry + layout.ENTRY_REDELIVERED] = 0 if queue.is_stream else 1
    tables.entries[entry + layout.ENTRY_DEADLINE] = 0
    if position < queue.log_position:
        queue.unlink(entry)
        queue.requeue(entry)
    queue.log_position = max(queue.log_position, position)
    return True


def position_is_there(tables, queue, position):
    """True when a queue has an entry at this position."""
    entry = queue.head()
    while entry != layout.NONE:
        if tables.entries[entry + layout.ENTRY_POSITION] == position & layout.MASK:
            return True
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    return False


def close_queue(broker, queue, settled):
    """Bring a queue's counters to where the log says they were."""
    tables = broker.tables
    if settled:
        queue.log_position = max(queue.log_position, settled[-1][1] - 1)
    tables.queues[queue.handle + layout.QUEUE_POSITION] = (queue.log_position + 1) & layout.MASK
    if queue.is_stream:
        queue.recovered()
    elif queue.rules is not None:
        queue.rules.recovered(broker, queue)


def recover(broker, store, writer):
    """Bring the log of `store` back into an empty broker and make `writer` (a log.Log) go on behind it: the report, in one line."""
    found = look(store)
    by_id = restore(broker, store, found)
    for damage in found.damages:
        store.keep_aside(damage.number, damage.offset)
    for segment in found.segments:
        segment.size = store.size(segment.number)
    writer.segments = found.segments
    last = found.segments[-1].number if found.segments else 0
    writer.begin(last + 1, (found.sequence or 0) % BIG)
    return by_id, found.queue_ids, report(found)


def report(found):
    """What recovery found, as a line for the operator."""
    counts = found.counts
    text = "recovered %d messages in %d queues and streams, %d settlements, %d definitions from %d segments" % (
        counts["messages"], len([key for key in found.definitions if key[0] == "queue"]), counts["settled"], counts["definitions"],
        len(found.segments))
    for damage in found.damages:
        text += "; segment %d: %s at octet %d, the %d octets from there were put aside" % (damage.number, damage.reason, damage.offset,
                                                                                       damage.octets)
    return text
