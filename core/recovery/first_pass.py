"""The first pass of recovery: what a log defines, what of it is settled, and where it is damaged.

A damaged segment is believed up to the damage. What a failed write has left is no damage: the next segment has it again, and its head
says from where on. A segment whose removal a power cut took back is removed again. A segment that the store has noted (log/segments.py)
and that is missing or empty is lost: each start tells so, until everything before and in it would have been removed.
"""

import json
import struct

from ..errors import words_of
from ..log import segments
from ..log.definition_records import rich
from ..log.journal import BIG
from ..log.message_record import count_at, heads_at, place_at
from ..log.read_back import HEAD_SIZE, PART_SIZE
from ..log.settled_positions import Settled, is_in
from .record_check import IDENTITY_MAX, fault_of


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
        self.lost = []  # (number, true when it is there and empty, octets that it had or None, places of messages) of segments, rising
        self.defined_in = {}  # queue id of a stream -> segment with its last definition, which has its next offset; only when some are lost
        self.skipped = []  # (name of a stream, first, end): offsets that lost segments may have had
        self.noted: "tuple | None" = (0, [])  # what the store has noted, see log/segments.py; None: it cannot tell any more
        self.gone = Settled()  # ids of queues that were deleted
        self.orphans = {}  # queue id that nothing defines -> places of messages
        self.arrived = 0  # when the last message came that is not a copy
        self.aside = []  # names of the files that these were put in
        self.nonsense = {}  # (segment number, offset, skip) of records that are passed over -> True
        self.faults = []  # sentences: what raised that is no damage, and where
        self.unmade = ()  # ids of queues whose definitions could not be made again: their messages stay in the log
        self.loose = []  # definitions of bindings whose exchange or queue damage has taken
        self.sequence = None
        self.queue_ids = 0
        self.present = {}  # queue id -> Settled: positions that the log has
        self.indexed = {}  # queue id -> True: its messages are in its index
        self.where = None  # offset and skip of the records of the messages in memory; offset NONE: to stay there
        self.kept_free = 2  # one such part of memory is kept free; the queues that need more come into the index
        self.last_entered = {}  # queue id -> the entry that was put in its place last
        self.counts = {"definitions": 0, "settled": 0, "messages": 0, "doubles": 0, "left": 0, "gaps": 0, "let_go": 0}

    def fault(self, segment, offset, error):
        """What a record holds could not be taken over: its segment stays."""
        segment.pinned = True
        self.faults.append(
            "segment %d: the work for what it has at octet %d failed (%s); it stays in the log" % (segment.number, offset, words_of(error))
        )

    def pass_over(self, number, offset, skip, reason):
        """A record makes no sense, and would make none to another start: it goes with its segment."""
        self.nonsense[number, offset, skip] = True
        self.faults.append("segment %d: a record at octet %d is passed over: %s" % (number, offset, reason))

    def see_queue(self, identity):
        """There is or was a queue of this id: the next one gets a higher one."""
        if identity > self.queue_ids and identity < IDENTITY_MAX // 2:
            self.queue_ids = identity

    def next_number(self, store):
        """The number of a new segment: none is given twice, nor one of those that this start has removed: before `first` all are gone."""
        numbers = [0] + store.numbers()
        for first, ranges in (self.noted or (0, ()), hasattr(store, "noted") and store.noted() or (0, ())):
            numbers += [first - 1] + [end - 1 for _, end in ranges]
        return max(numbers) + 1


def records(store, number, end, found=None):
    """What is in one segment up to the sequence `end`: (type, octets that have its payload, where it begins there, its size, offset of the
    record in the segment, octets of the record's payload in front of it); damage goes to `found`. Groups come apart."""
    reader = segments.Reader(store, number)
    if reader.head():
        record = None if reader.sequence == end else reader.next()
        while record is not None:
            type_, payload = record
            offset = reader.offset - len(payload) - HEAD_SIZE
            if type_ == segments.GROUP:
                at = 0
                while at + PART_SIZE <= len(payload):
                    type_, size = struct.unpack_from(">BI", payload, at)
                    if at + PART_SIZE + size > len(payload):
                        break
                    yield type_, payload, at + PART_SIZE, size, offset, at
                    at += PART_SIZE + size
                if at != len(payload) and found is not None:
                    found.pass_over(number, offset, at, "a group whose sizes do not add up")
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
    """The first pass: definitions, settlements, damage. Raises segments.OtherLog before anything is changed."""
    found = Found()
    for number in heads(store, found):
        segment = segments.Segment(number)
        for type_, payload, at, size, offset, skip in records(store, number, found.ends[number], found):
            try:
                nonsense = fault_of(type_, payload, at, size)
                if nonsense:
                    found.pass_over(number, offset, skip, nonsense)
                    continue
                take(found, segment, type_, payload, at, size)
            except Exception as error:  # what cannot be read is told; the rest of the log counts
                found.fault(segment, offset, error)
        found.segments.append(segment)
    return found


def take(found, segment, type_, payload, at, size):
    """What one record of a segment says."""
    if type_ == segments.MESSAGE:
        if note_places(found.present, payload, at):
            found.arrived = heads_at(payload, at)[1]
    elif type_ == segments.DEFINED:
        segment.defines = True
        definition = rich(json.loads(str(payload[at : at + size], "utf-8")))
        define(found, definition)
        if found.lost and "stream" in definition:
            found.defined_in[definition["id"]] = segment.number
    elif type_ == segments.SETTLED:
        settle(found, payload, at)
    elif type_ == segments.TRANSIENT:
        forget(found, payload, at)
    elif type_ == segments.KEPT:
        segment.defines = True
        keep(found, payload[at : at + size])


def heads(store, found):
    """Read the heads of all segments: the numbers of those that belong to the log; the others are removed."""
    numbers = store.numbers()
    noted = store.noted() if hasattr(store, "noted") else found.noted
    readers = {}
    oldest = 0 if noted is None else noted[0]
    for number in numbers:
        reader = readers[number] = segments.Reader(store, number)
        if reader.head():
            oldest = max(oldest, reader.oldest)
    if noted is None and not [number for number in numbers if readers[number].before is not None]:
        noted = 0, []  # the log is of a version that noted nothing
    found.noted = noted
    ranges = () if noted is None else noted[1]
    kept = []
    for number in numbers:
        if readers[number].size and number >= oldest:
            kept.append(number)
        elif not is_in(ranges, number):
            discard(store, number)
    for at, number in enumerate(kept):
        found.ends[number] = readers[kept[at + 1]].sequence if at + 1 < len(kept) else None
    note_lost(found, ranges, numbers, kept, readers)
    return kept


def note_lost(found, ranges, numbers, kept, readers):
    """Note the segments that there are to be and that are missing or empty, with what the head of the next one says of them."""
    before = {}
    for number in kept:
        if readers[number].before is not None:
            before[readers[number].before[0]] = readers[number].before[1:]
    for first, end in ranges:
        for number in range(first, end):
            if number not in kept:
                found.lost.append((number, number in numbers) + before.get(number, (None, None)))


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
            found.gone.add_one(definition["id"])
    else:
        found.definitions[key] = definition
        if "stream" in definition:
            found.streams[definition["id"]] = definition
    found.see_queue(definition.get("id", 0))


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
    for identity in found.settled:
        found.see_queue(identity)


def is_orphan(found, queues, identity, position):
    """True for a place of a message that nobody has settled, in a queue that is neither in `queues`, by their ids, nor was deleted."""
    return (
        identity not in queues
        and not found.gone.has(identity)
        and not (identity in found.settled and found.settled[identity].has(position))
    )


def note_places(positions, payload, at):
    """Note the places of a message in `positions`: queue id -> Settled. True when one is the highest of its queue so far."""
    is_new = False
    for index in range(count_at(payload, at)):
        identity, position = place_at(payload, at, index)
        if identity not in positions:
            positions[identity] = Settled()
        is_new = is_new or position >= positions[identity].end
        positions[identity].add_one(position)
    return is_new


def settled_of(found, identity):
    """What is settled of a queue."""
    found.see_queue(identity)
    if identity not in found.settled:
        found.settled[identity] = Settled()
    return found.settled[identity]
