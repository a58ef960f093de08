"""The first pass of recovery: the definitions of a log, the settled places, and the damage.

The records of a damaged segment count up to the damage. Octets that a failed write has left are no damage: the next segment repeats their
records, and its head says from which sequence on. When a power cut has undone the removal of a segment, the first pass removes it again. A
segment that the store has noted (log/segments.py) and that is missing or empty is lost: each start reports it, until the broker would have
removed that segment and all before it.
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
from ..memory import layout
from .record_check import IDENTITY_MAX, fault_of


class LogContents:
    """The contents of a log, as the first pass reads them; the second pass counts in it where it has put messages."""

    def __init__(self):
        self.definitions = {}  # key -> definition, in the order of making
        self.defining = {}  # key -> the segment with its last definition
        self.keeping = {}  # queue id of a stream -> {name: the segment with the last offset kept for it behind the stream's definition}
        self.streams = {}  # queue id -> definition
        self.settled = {}  # queue id -> Settled
        self.segments = []
        self.ends = {}  # segment number -> sequence of the next segment's first record; None: not known
        self.damages = []
        self.missing = []  # (segment number, count of records that are missing behind the segment)
        self.lost = []  # (number, true when it is there and empty, octets that it had or None, places of messages) of segments, rising
        self.defined_in = {}  # queue id of a stream -> segment with its last definition, which has its next offset; only when some are lost
        self.skipped = []  # (name of a stream, first, end): offsets that lost segments may have had
        self.noted: "tuple | None" = (0, [])  # segments that the store has noted (log/segments.py); None: its notes are lost
        self.gone = Settled()  # ids of queues that were deleted
        self.orphans = {}  # queue id that nothing defines -> places of messages
        self.arrived = 0  # second at which the last message arrived, copies left out
        self.aside = []  # names of the files that orphans were put in
        self.changed = {}  # (queue id, position) of a message with layout.KIND_CHANGED -> its last record: segment, offset, skip
        self.nonsense = {}  # (segment number, offset, skip) of records that are passed over -> True
        self.faults = []  # sentences: errors that are no damage, and their places
        self.unmade = ()  # ids of queues whose definitions could not be made again: their messages stay in the log
        self.loose = []  # definitions of bindings whose exchange or queue was lost to damage
        self.sequence = None
        self.queue_ids = 0
        self.present = {}  # queue id -> Settled: positions that the log has
        self.indexed = {}  # queue id -> True: its messages are in its index
        self.where = None  # offset and skip of the record of each message in memory; offset NONE: the message stays in memory
        self.kept_free = 2  # one such part of memory is kept free; queues that would need it go into their index
        self.last_entered = {}  # queue id -> the entry that recovery put into the queue last
        self.counts = {"definitions": 0, "settled": 0, "messages": 0, "doubles": 0, "left": 0, "gaps": 0, "let_go": 0, "pieces": 0}

    def fault(self, segment, offset, error):
        """Note that a record raised `error` when recovery applied it: its segment stays in the log."""
        segment.pinned = True
        self.faults.append(
            "segment %d: the work for what it has at octet %d failed (%s); it stays in the log" % (segment.number, offset, words_of(error))
        )

    def pass_over(self, number, offset, skip, reason):
        """Note a record that makes no sense, nor would to another start: the log drops it with its segment."""
        self.nonsense[number, offset, skip] = True
        self.faults.append("segment %d: a record at octet %d is passed over: %s" % (number, offset, reason))

    def note_queue_id(self, identity):
        """Note the id of a queue that exists or existed: the broker gives higher ids to new queues."""
        if identity > self.queue_ids and identity < IDENTITY_MAX // 2:
            self.queue_ids = identity

    def next_number(self, store):
        """The number of a new segment: above all that the store has or had, also those that this start has removed."""
        numbers = [0] + store.numbers()
        for first, ranges in (self.noted or (0, ()), hasattr(store, "noted") and store.noted() or (0, ())):
            numbers += [first - 1] + [end - 1 for _, end in ranges]
        return max(numbers) + 1


def records(store, number, end, contents=None):
    """The records of segment `number` up to the sequence `end`, those of a group one by one: (type, octets, place of the payload in them,
    its size, offset of the record in the segment, skip: octets of the group's payload in front). Damage is noted in `contents`."""
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
                if at != len(payload) and contents is not None:
                    contents.pass_over(number, offset, at, "a group whose sizes do not add up")
            else:
                yield type_, payload, 0, len(payload), offset, 0
            record = None if reader.sequence == end else reader.next()
    if contents is not None:
        note_end(contents, reader, end)


def note_end(contents, reader, end):
    """Note damage at the end of a segment, and records that are missing behind it."""
    if reader.damage is not None:
        contents.damages.append(reader.damage)
    if reader.sequence is not None:
        contents.sequence = reader.sequence
        if end is not None and end != reader.sequence:
            contents.missing.append((reader.number, (end - reader.sequence) % BIG))


def first_pass(store):
    """The LogContents of a store: definitions, settlements, damage. Raises segments.OtherLog before it changes anything."""
    contents = LogContents()
    for number in read_heads(store, contents):
        segment = segments.Segment(number)
        for type_, payload, at, size, offset, skip in records(store, number, contents.ends[number], contents):
            try:
                nonsense = fault_of(type_, payload, at, size)
                if nonsense:
                    contents.pass_over(number, offset, skip, nonsense)
                    continue
                read_record(contents, segment, type_, payload, at, size)
                if type_ == segments.MESSAGE and heads_at(payload, at)[6] & layout.KIND_CHANGED:
                    contents.changed[place_at(payload, at, 0)] = number, offset, skip
                    segment.changed += 1
            except Exception as error:  # unreadable records are reported; the rest of the log counts
                contents.fault(segment, offset, error)
        contents.segments.append(segment)
    for kept in [contents.defining] + list(contents.keeping.values()):
        for segment in kept.values():
            segment.defines = True  # earlier segments have only definitions that later ones repeat
    return contents


def read_record(contents, segment, type_, payload, at, size):
    """Note what one record of a segment says: `size` octets of `payload` from `at`."""
    if type_ == segments.MESSAGE:
        if note_places(contents.present, payload, at):
            contents.arrived = heads_at(payload, at)[1]
    elif type_ == segments.DEFINED:
        definition = rich(json.loads(str(payload[at : at + size], "utf-8")))
        note_definition(contents, definition, segment)
        if contents.lost and "stream" in definition:
            contents.defined_in[definition["id"]] = segment.number
    elif type_ == segments.SETTLED:
        note_settled(contents, payload, at)
    elif type_ == segments.TRANSIENT:
        note_transient(contents, payload, at)
    elif type_ == segments.KEPT:
        note_kept_offset(contents, payload[at : at + size], segment)


def read_heads(store, contents):
    """Read the heads of all segments: the numbers of those that belong to the log, rising. Segments that do not are removed."""
    numbers = store.numbers()
    noted = store.noted() if hasattr(store, "noted") else contents.noted
    readers = {}
    oldest = 0 if noted is None else noted[0]
    for number in numbers:
        reader = readers[number] = segments.Reader(store, number)
        if reader.head():
            oldest = max(oldest, reader.oldest)
    if noted is None and not [number for number in numbers if readers[number].before is not None]:
        noted = 0, []  # the log is of a version that noted nothing
    contents.noted = noted
    ranges = () if noted is None else noted[1]
    kept = []
    for number in numbers:
        if readers[number].size and number >= oldest:
            kept.append(number)
        elif not is_in(ranges, number):
            discard(store, number)
    for at, number in enumerate(kept):
        contents.ends[number] = readers[kept[at + 1]].sequence if at + 1 < len(kept) else None
    note_lost(contents, ranges, numbers, kept, readers)
    return kept


def note_lost(contents, ranges, numbers, kept, readers):
    """Note each segment of `ranges` that is missing or empty, with the octets and places that the next segment's head gives for it."""
    before = {}
    for number in kept:
        if readers[number].before is not None:
            before[readers[number].before[0]] = readers[number].before[1:]
    for first, end in ranges:
        for number in range(first, end):
            if number not in kept:
                contents.lost.append((number, number in numbers) + before.get(number, (None, None)))


def discard(store, number):
    """Remove a segment that holds nothing. When the store refuses, the segment stays, and the next start tries again."""
    try:
        store.remove(number)
    except OSError:
        return


def note_definition(contents, definition, segment):
    """Note a definition, or the removal of one, and in which segment it is."""
    contents.counts["definitions"] += 1
    key = key_of(definition)
    if "gone" in definition:
        contents.definitions.pop(key, None)
        contents.defining.pop(key, None)
        if definition["gone"] == "queue":
            contents.settled.pop(definition["id"], None)
            contents.gone.add_one(definition["id"])
            contents.keeping.pop(definition["id"], None)
    else:
        contents.definitions[key] = definition
        contents.defining[key] = segment
        if "stream" in definition:
            contents.keeping.pop(definition["id"], None)
            contents.streams[definition["id"]] = definition
    contents.note_queue_id(definition.get("id", 0))


def key_of(definition):
    """A tuple that is the same for all definitions of one exchange, queue, binding, policy or user."""
    kind = definition.get("kind") or definition["gone"]
    if kind == "binding":
        arguments = repr(sorted(definition["arguments"].items()))
        return kind, definition["source"], definition["to"], definition["name"], definition["key"], arguments
    return kind, definition["name"]


def note_kept_offset(contents, payload, segment):
    """Note an offset that a stream keeps for a consumer, and in which segment it is."""
    identity, offset = struct.unpack_from(">IQ", payload, 0)
    definition = contents.streams.get(identity)
    if definition is not None:
        name = str(payload[12:], "utf-8")
        definition["kept"][name] = offset
        contents.keeping.setdefault(identity, {})[name] = segment


def note_settled(contents, payload, at):
    """Note a record of settled ranges."""
    identity, count = struct.unpack_from(">IH", payload, at)
    ranges = settled_of(contents, identity)
    for index in range(count):
        first, size = struct.unpack_from(">QI", payload, at + 6 + 12 * index)
        contents.counts["settled"] += size
        ranges.add(first, first + size)


def note_transient(contents, payload, at):
    """Note a transient message of the run before: its places count as settled."""
    note_places(contents.settled, payload, at)
    for identity in contents.settled:
        contents.note_queue_id(identity)


def is_orphan(contents, queues, identity, position):
    """True for an unsettled place in a queue that nothing defines: it is neither in `queues` (by id) nor was it deleted."""
    return (
        identity not in queues
        and not contents.gone.has(identity)
        and not (identity in contents.settled and contents.settled[identity].has(position))
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


def settled_of(contents, identity):
    """The Settled positions of a queue."""
    contents.note_queue_id(identity)
    if identity not in contents.settled:
        contents.settled[identity] = Settled()
    return contents.settled[identity]
