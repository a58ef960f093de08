"""Recovery: from the segments of a log to a broker that goes on where it was. It always starts, and says what it found.

Two passes over the segments, in fixed memory. The first reads what is defined and what is settled; the second finds every message that is
not settled. They are put into memory, in their places; a queue that can have messages in the log alone (pager.py) goes there as a whole
when half of the memory is taken, and gets an index of them. A segment that is damaged is believed up to the damage; what lies behind is put
aside by the store and named in the report. What a failed write has left is no damage: the next segment has it again, and its head says
from where on. A segment whose removal a power cut took back is removed again. A log of a newer version is not touched.
"""

import json
import struct

from . import durable, hot, layout, log
from .broker import nobody
from .journal import BIG, rich
from .limits import block_count
from .paged import is_behind
from .read_back import HEAD_SIZE, MESSAGE_HEAD, PART_SIZE, PLACE_SIZE
from .settled import Settled
from .shim import table
from .waiting import left_of


class TooSmall(Exception):
    """The limits have no room for what the log holds; the text says which number to raise."""


class TooManyPieces(TooSmall):
    """The index has no room; with more of the messages in memory it may have."""


class Found:
    """What the first pass found."""

    def __init__(self):
        self.definitions = {}  # key -> definition, in the order of making
        self.streams = {}  # queue id -> definition
        self.settled = {}  # queue id -> Settled
        self.segments = []
        self.ends = {}  # segment number -> sequence at which the next segment goes on; None: not known
        self.damages = []
        self.missing = []  # (segment number, records that are missing behind it)
        self.loose = []  # definitions of bindings whose exchange or queue damage has taken
        self.sequence = None
        self.queue_ids = 0
        self.present = {}  # queue id -> Settled: positions that the log has
        self.indexed = {}  # queue id -> True: its messages are in its index
        self.where = None  # offset and skip of the records of the messages in memory; offset NONE: to stay there
        self.kept_free = 2  # one such part of memory is kept free; the queues that need more come into the index
        self.last_entered = {}  # queue id -> the entry that was put in its place last
        self.counts = {"definitions": 0, "settled": 0, "messages": 0, "doubles": 0, "left": 0, "gaps": 0}


def records(store, number, end, found=None):
    """What is in one segment up to the sequence `end`: (type, octets that have its payload, where it begins there, its size, offset of the
    record in the segment, octets of the record's payload in front of it); damage goes to `found`. Groups come apart."""
    reader = log.Reader(store, number)
    if reader.head():
        record = None if reader.sequence == end else reader.next()
        while record is not None:
            type_, payload = record
            offset = reader.offset - len(payload) - HEAD_SIZE
            if type_ == log.GROUP:
                at = 0
                while at < len(payload):
                    type_, size = struct.unpack_from(">BI", payload, at)
                    yield type_, payload, at + PART_SIZE, size, offset, at
                    at += PART_SIZE + size
            else:
                yield type_, payload, 0, len(payload), offset, 0
            record = None if reader.sequence == end else reader.next()
    if found is not None:
        note_end(found, reader, end)


def note_end(found, reader, end):
    """Note how a segment ended."""
    if reader.damage is not None:
        found.damages.append(reader.damage)
    if reader.sequence is not None:
        found.sequence = reader.sequence
        if end is not None and end != reader.sequence:
            found.missing.append((reader.number, (end - reader.sequence) % BIG))


def look(store):
    """The first pass: definitions, settlements, damage. Raises log.NewerLog before anything is changed."""
    found = Found()
    for number in heads(store, found):
        segment = log.Segment(number)
        for type_, payload, at, size, _, _ in records(store, number, found.ends[number], found):
            if type_ == log.MESSAGE:
                note_places(found.present, payload, at)
            elif type_ == log.DEFINED:
                segment.defines = True
                define(found, rich(json.loads(str(payload[at:at + size], "utf-8"))))
            elif type_ == log.SETTLED:
                settle(found, payload, at)
            elif type_ == log.TRANSIENT:
                forget(found, payload, at)
            elif type_ == log.KEPT:
                segment.defines = True
                keep(found, payload[at:at + size])
        found.segments.append(segment)
    return found


def heads(store, found):
    """Read the heads of all segments: the numbers of those that belong to the log; the others are removed."""
    numbers = store.numbers()
    readers = {}
    oldest = 0
    for number in numbers:
        reader = readers[number] = log.Reader(store, number)
        if reader.head():
            oldest = max(oldest, reader.oldest)
    kept = []
    for number in numbers:
        if number < oldest or readers[number].size == 0:
            discard(store, number)
        else:
            kept.append(number)
    for at, number in enumerate(kept):
        found.ends[number] = readers[kept[at + 1]].sequence if at + 1 < len(kept) else None
    return kept


def discard(store, number):
    """Remove a segment that nothing is lost with; where the store refuses it stays, and is passed over again next time."""
    try:
        store.remove(number)
    except OSError:
        return


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
        if "stream" in definition:
            found.streams[definition["id"]] = definition
    found.queue_ids = max(found.queue_ids, definition.get("id", 0))


def key_of(definition):
    """What makes two definitions the same thing."""
    kind = definition.get("kind") or definition["gone"]
    if kind == "binding":
        arguments = repr(sorted(definition["arguments"].items()))
        return kind, definition["source"], definition["to"], definition["name"], definition["key"], arguments
    return kind, definition["name"]


def keep(found, payload):
    """Take an offset that a stream keeps."""
    identity, offset = struct.unpack_from(">IQ", payload, 0)
    definition = found.streams.get(identity)
    if definition is not None:
        definition["kept"][str(payload[12:], "utf-8")] = offset


def settle(found, payload, at):
    """Take a record of settled ranges."""
    identity, count = struct.unpack_from(">IH", payload, at)
    ranges = settled_of(found, identity)
    for index in range(count):
        first, size = struct.unpack_from(">QI", payload, at + 6 + 12 * index)
        found.counts["settled"] += size
        ranges.add(first, first + size)


def forget(found, payload, at):
    """Take a transient message of the run before: its places are as if they were settled."""
    note_places(found.settled, payload, at)
    found.queue_ids = max([found.queue_ids] + list(found.settled))


def note_places(positions, payload, at):
    """Note the places of a message in `positions`: queue id -> Settled."""
    for index in range(struct.unpack_from(">H", payload, at)[0]):
        identity, position = struct.unpack_from(">IQ", payload, at + MESSAGE_HEAD + PLACE_SIZE * index)
        if identity not in positions:
            positions[identity] = Settled()
        positions[identity].add_one(position)


def settled_of(found, identity):
    """What is settled of a queue."""
    found.queue_ids = max(found.queue_ids, identity)
    if identity not in found.settled:
        found.settled[identity] = Settled()
    return found.settled[identity]


def restore(broker, store, found, pager):
    """The second pass: definitions, then messages, into an empty broker. Raises TooSmall."""
    by_id, found.loose = durable.restore(broker, list(found.definitions.values()), nobody)
    for identity in by_id:
        pager.watch(by_id[identity])
        if by_id[identity].pages is not None:
            by_id[identity].pages.holes = found.settled.get(identity)
            by_id[identity].pages.present = found.present.get(identity)
    found.where = table(2 * broker.limits.message_count_max)
    delaying = [exchange.name for exchange in broker.exchanges.values() if exchange.delays]
    try:
        fill(broker, store, found, by_id, delaying)
    except TooManyPieces:
        empty(broker, found, by_id)
        found.kept_free = 8
        fill(broker, store, found, by_id, delaying)
    for identity in by_id:
        found.counts["gaps"] += close_queue(broker, by_id[identity], found.settled.get(identity))
        pager.begin(by_id[identity])
    return by_id


def fill(broker, store, found, by_id, delaying):
    """Put all messages that are wanted into the queues. Raises TooSmall."""
    for segment in found.segments:
        for type_, payload, at, _, offset, skip in records(store, segment.number, found.ends[segment.number]):
            if type_ == log.MESSAGE:
                place(broker, found, by_id, segment, payload, at, offset, skip, delaying)


def empty(broker, found, by_id):
    """Take all messages out of the queues again."""
    for segment in found.segments:
        segment.live = segment.written = 0
    for queue in by_id.values():
        entry = queue.head()
        while entry != layout.NONE:
            queue.unlink(entry)
            broker.tables.entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE  # hot.drop is not to tell the journal
            queue.drop(entry)
            entry = queue.head()
        if queue.pages is not None:
            while queue.pages.head != layout.NONE:
                queue.pages.remove(queue.pages.head)
    found.last_entered = {}
    found.indexed = {}
    found.counts.update(messages=0, doubles=0)


def place(broker, found, by_id, segment, payload, at, offset, skip, delaying):
    """Put a logged message into the queues where it is still wanted: into their index, or into memory."""
    heads = struct.unpack_from(">HIHII", payload, at)
    count = heads[0]
    segment.written += count
    wanted = []
    in_memory = None
    for index in range(count):
        identity, position = struct.unpack_from(">IQ", payload, at + MESSAGE_HEAD + PLACE_SIZE * index)
        queue = by_id.get(identity)
        found.queue_ids = max(found.queue_ids, identity)
        if queue is None or identity in found.settled and found.settled[identity].has(position):
            continue
        if queue.pages is not None:
            if in_memory is None:
                in_memory = bool(delaying) and waits(broker, payload, at, heads, delaying)
            if not in_memory and comes_into_index(broker, found, queue, sum(heads[2:]), wanted):
                list_it(broker, found, queue, segment, offset, skip, position, heads[4])
                continue
        before = place_before(broker.tables, queue, found.last_entered.get(identity, layout.NONE), position)
        if before is None:
            found.counts["doubles"] += 1
        else:
            wanted.append((queue, position, before))
    if wanted:
        load(broker, found, segment, payload, at, heads, wanted, (layout.NONE if in_memory else offset, skip))


def comes_into_index(broker, found, queue, size, wanted):
    """True when a message of so many octets is to be listed, not loaded: memory is needed, and its queue is one of the largest.

    Large queues are listed whole, so that small ones, which would take pieces of the index for a few messages, stay in memory; not those
    in which the same message already has its place in memory (`wanted`).
    """
    lengths = broker.tables.queues
    taken = [each[0] for each in wanted]
    while queue.id_in_log not in found.indexed and not has_part(broker, found.kept_free, size):
        largest = queue
        for each in broker.queues.values():
            if (each.pages is not None and each.id_in_log not in found.indexed and each not in taken
                    and lengths[each.handle + layout.QUEUE_LENGTH] > lengths[largest.handle + layout.QUEUE_LENGTH]):
                largest = each
        use_index(broker, found, largest)
    return queue.id_in_log in found.indexed


def has_part(broker, kept_free, size):
    """True when one `kept_free`-th of the memory is free, with a message of so many octets."""
    state, limits = broker.tables.state, broker.limits
    return ((state[layout.POOL_BLOCKS + 2] - broker.tables.blocks_for(size)) * kept_free >= block_count(limits)
            and state[layout.POOL_MESSAGES + 2] * kept_free > limits.message_count_max
            and state[layout.POOL_ENTRIES + 2] * kept_free > limits.entry_count_max)


def use_index(broker, found, queue):
    """Have a queue's messages in its index from now on, not in memory, but for those that wait for a moment. Raises TooSmall."""
    found.indexed[queue.id_in_log] = True
    found.last_entered.pop(queue.id_in_log, None)
    tables = broker.tables
    entry = queue.head()
    while entry != layout.NONE:
        behind = tables.entries[entry + layout.ENTRY_NEXT]
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        record = message // layout.MESSAGE_WIDTH * 2
        if found.where[record] != layout.NONE:
            position = queue.pages.pager.journal.position(queue, tables.entries[entry + layout.ENTRY_POSITION])
            if queue.pages.place(tables.messages[message + layout.MESSAGE_SEGMENT], found.where[record], found.where[record + 1], position,
                                 tables.messages[message + layout.MESSAGE_BODY]) is None:
                too_many_pieces(broker)
            queue.unlink(entry)
            tables.entries[entry + layout.ENTRY_REDELIVERED] = layout.NONE  # hot.drop is not to tell the journal
            queue.drop(entry)
        entry = behind


def too_many_pieces(broker):
    """Raise TooSmall."""
    raise TooManyPieces("the log has messages in more places than the limits have room for; raise chunk_count_max (%d)"
                   % broker.limits.chunk_count_max)


def list_it(broker, found, queue, segment, offset, skip, position, body):
    """Put a message into the index of a queue. Raises TooSmall."""
    listed = queue.pages.place(segment.number, offset, skip, position, body)
    if listed is None:
        too_many_pieces(broker)
    if not listed:
        found.counts["doubles"] += 1
        return
    queue.log_position = max(queue.log_position, position)
    segment.live += 1
    found.counts["messages"] += 1


def waits(broker, payload, at, heads, delaying):
    """True when a message came by way of one of the exchanges `delaying` and its moment has not come."""
    count, arrived, route, properties, _ = heads
    start = at + MESSAGE_HEAD + PLACE_SIZE * count
    name = str(payload[start + 1:start + 1 + payload[start]], "utf-8")
    return name in delaying and left_of(broker, lambda: broker.properties.decode(payload, start + route, start + route + properties),
                                        arrived) > 0


def load(broker, found, segment, payload, at, heads, wanted, where):
    """Put a message into memory, in the queues `wanted`: (queue, position, entry in front); `where` its record is. Raises TooSmall."""
    count, arrived, route_size, properties_size, body_size = heads
    tables = broker.tables
    size = route_size + properties_size + body_size
    for queue in list(broker.queues.values()):
        if tables.has_room(tables.blocks_for(size), len(wanted)):
            break
        if queue.pages is not None and queue.id_in_log not in found.indexed and queue not in [each[0] for each in wanted]:
            use_index(broker, found, queue)
    if not tables.has_room(tables.blocks_for(size), len(wanted)):
        no_room(broker, found, segment)
        return
    start = at + MESSAGE_HEAD + PLACE_SIZE * count
    message = tables.new_message(payload[start:start + route_size], properties_size, body_size, arrived)
    tables.append(message, memoryview(payload), start + route_size, properties_size + body_size)
    tables.messages[message + layout.MESSAGE_SEGMENT] = segment.number
    record = message // layout.MESSAGE_WIDTH * 2
    found.where[record], found.where[record + 1] = where
    for queue, position, before in wanted:
        found.last_entered[queue.id_in_log] = enter(tables, queue, message, position, before)
    segment.live += len(wanted)
    found.counts["messages"] += len(wanted)
    tables.release(message)


def no_room(broker, found, segment):
    """The limits are too small. Where the log is damaged (a lost acknowledgement brings back what made room) the message stays in it."""
    if not found.damages and not found.missing:
        raise TooSmall("the log holds more than the limits have room for; raise arena_size (%d), message_count_max (%d) or entry_count_max "
                       "(%d)" % (broker.limits.arena_size, broker.limits.message_count_max, broker.limits.entry_count_max))
    segment.pinned = True
    found.counts["left"] += 1


def place_before(tables, queue, hint, position):
    """The entry behind which a position belongs (NONE: at the head); None when the position is taken (copied forward before the crash).

    `hint`: the entry that was entered last, or NONE; what was copied forward comes in the order of its queue.
    """
    entries = tables.entries
    tail = tables.queues[queue.handle + layout.QUEUE_TAIL]
    before = layout.NONE
    for start in (tail, hint):
        if start != layout.NONE and is_behind(position, entries[start + layout.ENTRY_POSITION]):
            before = start
            break
    while True:
        behind = queue.head() if before == layout.NONE else entries[before + layout.ENTRY_NEXT]
        if behind == layout.NONE or is_behind(entries[behind + layout.ENTRY_POSITION], position):
            break
        before = behind
    taken = before != layout.NONE and entries[before + layout.ENTRY_POSITION] == position & layout.MASK
    return None if taken else before


def enter(tables, queue, message, position, before):
    """Put a message at its position of a queue: its entry."""
    entry = hot.push(tables.messages, tables.entries, tables.queues, tables.state, queue.handle, message)
    tables.entries[entry + layout.ENTRY_POSITION] = position & layout.MASK
    tables.entries[entry + layout.ENTRY_REDELIVERED] = 0 if queue.is_stream else 1
    tables.entries[entry + layout.ENTRY_DEADLINE] = 0
    if tables.entries[entry + layout.ENTRY_PREVIOUS] != before:
        queue.unlink(entry)
        queue.link(entry, before)
    queue.log_position = max(queue.log_position, position)
    return entry


def close_queue(broker, queue, settled):
    """Bring a queue's counters to where the log says they were: how many messages a gap in a stream has cost."""
    if settled is not None:
        queue.log_position = max(queue.log_position, settled.end - 1)
    broker.tables.queues[queue.handle + layout.QUEUE_POSITION] = (queue.log_position + 1) & layout.MASK
    return queue.recovered() if queue.is_stream else 0


def recover(broker, store, journal):
    """Bring the log of `store` back into an empty broker and make the writer of `journal` go on behind it: the report, in one line."""
    found = look(store)
    writer = journal.log
    by_id = restore(broker, store, found, journal.pager)
    kept_aside = [damage for damage in found.damages if aside(store, damage)]
    for segment in found.segments:
        segment.size = store.size(segment.number)
        store.sync(segment.number)
    writer.take_over(found.segments)
    writer.begin(max(store.numbers() + [0]) + 1, (found.sequence or 0) % BIG)
    return by_id, found, report(found, kept_aside)


def aside(store, damage):
    """Have the store put a bad end aside; false when it cannot: then the end stays where it is, and is not believed there either."""
    try:
        store.keep_aside(damage.number, damage.offset)
    except OSError:
        return False
    return True


def report(found, kept_aside):
    """What recovery found, as a line for the operator."""
    counts = found.counts
    text = "recovered %d messages in %d queues and streams, %d settlements, %d definitions from %d segments" % (
        counts["messages"], len([key for key in found.definitions if key[0] == "queue"]), counts["settled"], counts["definitions"],
        len(found.segments))
    for damage in found.damages:
        text += "; segment %d: %s at octet %d, the %d octets from there were %s" % (
            damage.number, damage.reason, damage.offset, damage.octets, "put aside" if damage in kept_aside else "passed over")
    for number, count in found.missing:
        text += "; %d records are missing behind segment %d" % (count, number)
    if counts["gaps"]:
        text += "; %d messages of streams were let go because those behind them are missing" % counts["gaps"]
    if counts["left"]:
        text += "; %d messages found no room in the limits and stay in the log until a start with larger ones" % counts["left"]
    return text
