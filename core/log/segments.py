"""The log: records appended to segments, each with its size, its place in the sequence and a CRC; durable when synced.

    segment:  head | record | record ...
    record:   long crc32 of all that follows | long size of payload | long sequence | octet type | payload
    head:     a record whose payload is "LVRT" | short version | long number | long number of the oldest segment then
              | long number of the segment before | long its octets | long places of messages in it   (0 0 0: there is none; older: absent)

All that is appended between two commits becomes one record (a GROUP: octet type | long size | payload, and so on), so that a crash leaves
all of it or nothing: the log always holds a state that the broker was in. The sequence counts records over all segments (30 bits,
wrapping); a head bears the sequence of the record behind it. A record is believed when its CRC and its sequence fit. A new run always
begins a new segment: it never writes behind a torn end. Neither does a run behind a write or a sync that failed: it leaves that segment and
writes the same once more in the next one, whose head says by its sequence where the one before has ended.

The store is a port (ports/store_file.py, and others): an object with
    numbers() -> segment numbers, rising             size(number) -> octets
    read(number, offset, size) -> bytes, perhaps fewer, none at the end
    append(number, octets): at the end, made when it is not there; the octets are the caller's again when this returns
    sync(number): when this returns it is durable, its name too; also one of an earlier run, whose program may have been killed
    remove(number); removals become durable in the order in which they are made
    keep_aside(number, offset): save what lies behind `offset`, then cut it off
    free() -> octets that can be counted on; only of a store that knows
    noted() -> (first, rising [begin, end) of the segments that there are to be): those that were synced and not removed; the segments
        before `first` were removed. None: that cannot be told any more. It is kept apart from the segments, so that it does not go with
        one; only of a store that can
    beside(name, make) -> a store of the same kind for other numbers, or None where there is none and `make` is false; only of a store that
        can
    set_aside(number, pieces) -> the name of a file made of these octets, durable, that belongs to a segment; only of a store that can
It raises OSError for what the medium refuses; the log then says `trouble` and takes nothing more until `commit` succeeds again.

A store that can do so without keeping its caller waiting has three functions more; one thing at a time is begun, and ended before the next:
    begin(number, octets): append and sync; the octets are the caller's again when that has ended       begin_remove(number): remove
    ended() -> true when what was begun is done, false while it is under way; raises what that raised
    wait(): until `ended` has something else to say than false
"""

import struct
from binascii import crc32

from ..shim import MICROPYTHON, const, copy, octets

if False:  # for the type checker alone
    from typing import Any

HEAD = const(0)
MESSAGE = const(1)
SETTLED = const(2)
DEFINED = const(3)
GROUP = const(4)
KEPT = const(5)
TRANSIENT = const(6)  # a message that is only here because memory had no room for it: it is not restored at the next start

GATHERED_MAX = const(1 << 20)  # octets gathered for one write; beyond it, or half a segment, publishers wait for the next

VERSION = const(3)  # see FORMAT.md
OLDEST = const(3)  # that is opened
MAGIC = b"LVRT"
HEAD_LEAST = const(14)  # octets of a segment's head, as the files of orphans.py have it

ROOM = 1024 if MICROPYTHON else 2 << 20  # octets that are there for each record; a larger one has room of its own

_OVERHEAD = const(13)
_THING = const(5)  # octets of a thing's type and size
_MASK = const(0x3FFFFFFF)
_FORM = ">IIIB"


class OtherLog(Exception):
    """The log was written in a version of the format that is not opened; nothing of it has been touched."""


class Segment:
    """One segment: `live` of its `written` places of messages in queues are not settled."""

    changed = 0  # messages in it with layout.KIND_CHANGED

    def __init__(self, number):
        self.number = number
        self.size = 0  # octets that are good
        self.junk = 0  # octets behind them that a failed write may have left
        self.live = 0
        self.written = 0
        self.orphans = 0  # places of messages in queues that nothing defines, at the start
        self.defines = False
        self.pinned = False  # holds messages for which memory had no room: not to be removed
        self.needs = 0  # the thing appended that has to be durable before it is removed: the last settlement in it, the last copy out of it


class Gathered:
    """A record in the making, then one that was given to the store and is not known to be durable, to be written once more if it has to be.

    `room`: first the record's own head, then octet type, long size, payload of each thing appended: `count` of them, `size` octets.
    """

    def __init__(self, room_size):
        self.own = self.room = octets(room_size)  # `own` is kept from record to record
        self.segment: "Any" = None
        self.begin = 0  # offset of the record in its segment
        self.written = 0  # octets of the record, with the head of a new segment
        self.appended = 0  # Log.appended when it was given to the store
        self.marks: list = []  # (chunk_index.Paged, chunk) to be told where this record is
        self.size = self.count = 0
        self.alone = 0  # the type of a thing whose type and size the record's head was written over

    def empty(self):
        """Begin the next record: the marks of the one before."""
        marks = self.marks
        if marks:
            self.marks = []
        self.room = self.own
        self.size = self.count = self.alone = 0
        return marks

    def make_room(self, size):
        """See that so many octets more have room."""
        end = _OVERHEAD + self.size + size
        if end > len(self.room):
            room = octets(end + (end >> 1))
            copy(room, 0, self.room, 0, _OVERHEAD + self.size)
            self.room = room

    def follow(self, before):
        """What was gathered before comes first."""
        self.make_room(before.size)
        size = self.size
        moved = bytes(self.room[_OVERHEAD : _OVERHEAD + size])
        copy(self.room, _OVERHEAD, before.room, _OVERHEAD, before.size)
        copy(self.room, _OVERHEAD + before.size, moved, 0, size)
        self.size += before.size
        self.count += before.count
        for pages, chunk in self.marks:
            pages.moved(chunk, before.size)
        self.marks = before.marks + self.marks

    def record(self, sequence, head):
        """The octets of the record, behind `head` (b"": the record alone, a view)."""
        start, type_ = 0, GROUP
        if self.count == 1:  # its type and its size are the record's
            start, type_ = _THING, self.room[_OVERHEAD]
            self.alone = type_
        try:
            end = _OVERHEAD + self.size
            struct.pack_into(">IIB", self.room, start + 4, self.size - start, sequence, type_)
            struct.pack_into(">I", self.room, start, crc32(self.room[start + 4 : end]))
            record = self.room[start:end]
            return head + bytes(record) if head else record
        except Exception:  # no heap
            self.restore()
            raise

    def restore(self):
        """A thing that was a record alone has its type and its size in front again."""
        if self.alone:
            struct.pack_into(">BI", self.room, _OVERHEAD, self.alone, self.size - _THING)
            self.alone = 0


class Log:
    """The writing half. `segment_size`: octets after which a new segment is begun; `size_max`: octets in all, beyond which it is full;
    `room_size`: octets that are there for each record."""

    def __init__(self, store, segment_size, size_max, room_size=ROOM):
        self.store = store
        self.segment_size = segment_size
        self.size_max = size_max
        self.segments = []  # rising; the last is written to
        self.by_number = {}
        self.octets = 0  # of all segments, as given to the store
        self.anew = 0  # octets of all definitions when they were written anew: as many may have to be written again
        self.largest = segment_size  # octets of the largest segment, or these
        self.asked = 0  # octets for which there was no room lately
        self.sequence = 0  # of the next record
        self.room_size = room_size
        self.gathered = Gathered(room_size)  # the next record
        self.spare: "Any" = None  # a Gathered for the one after it, while a store writes beside the broker
        self.group = 0  # counts these records
        self.appended = 0  # things appended in this run
        self.begun = 0  # of these, given to the store
        self.synced = 0  # of these, durable (or, where no sync is asked for, written)
        self.flight: "Any" = None  # the Gathered that is under way
        self.removing = None  # the Segment whose removal is under way
        self.owes_sync = False  # the next write is to be synced, in every mode
        self.doubtful: "Any" = None  # the Segment that a write or a sync failed in: what is behind its `size` is not to be built on
        self.trouble = ""  # why nothing can be written now
        self.crowded = False  # a message waits for the next write
        self.gathered_max = min(GATHERED_MAX, segment_size // 2)
        self.free = getattr(store, "free", None)
        self.begins = hasattr(store, "begin")
        self.counters = {
            "log_octets": 0,
            "log_payload_octets": 0,
            "log_syncs": 0,
            "log_segments_removed": 0,
            "log_copied_forward": 0,
            "log_troubles": 0,
            "log_unreadable": 0,
        }

    def adopt(self, segments):
        """Go on behind the segments of an earlier run."""
        self.segments = list(segments)
        self.by_number = {segment.number: segment for segment in segments}
        self.octets = sum([segment.size for segment in segments])
        self.see_largest()

    def see_largest(self):
        """Note the size of the largest segment; one that large has to be copied when it holds the oldest message."""
        self.largest = max([self.segment_size, self.anew] + [segment.size for segment in self.segments])

    def begin(self, number, sequence):
        """Write to a new segment; the store has it from the first commit on."""
        self.sequence = sequence
        segment = Segment(number)
        self.segments.append(segment)
        self.by_number[number] = segment

    def current(self):
        """The segment that is written to."""
        return self.segments[-1]

    def size(self):
        """Octets in all segments, with those not yet written."""
        return self.octets + self.gathered.size + (0 if self.flight is None else self.flight.written)

    def tight(self):
        """True when no more room is left than the reserve for settlements, definitions, and copies of live messages."""
        reserve = self.largest + self.segment_size // 4
        if self.free is not None and self.free() < reserve + self.gathered.size:
            return True
        return self.size() + reserve > self.size_max

    def has_no_room(self, octets):
        """True when the log has no place for a message of so many octets now."""
        reserve = self.segment_size // 4
        wanted = max(self.largest, octets) + reserve
        if self.free is not None and self.free() < wanted + self.gathered.size:
            return True
        return self.size() + max(self.largest + reserve, octets) > self.size_max

    def full(self, octets=0):
        """True when no further message of so many octets is accepted; that much room is then asked for, unless a write will make it."""
        if self.gathered.size and self.gathered.size + octets > self.gathered_max:
            self.crowded = True
            return True
        if not self.trouble and not self.has_no_room(octets):
            return False
        self.asked = max(self.asked, octets)
        return True

    def room_for(self, octets):
        """Octets of messages, at most `octets`, that the log accepts now; 0: ask for each message."""
        if self.gathered.size:
            octets = min(octets, self.gathered_max - self.gathered.size)
        return 0 if octets <= 0 or self.trouble or self.has_no_room(octets) else octets

    def lacks_room(self):
        """True when room is to be made: the log is tight, or had no room for a message since the last commit."""
        return self.has_no_room(self.asked)

    def append(self, type_, parts):
        """Append a thing made of `parts` (bytes-like): its number in this run, to be compared with `synced`."""
        size = 0
        for part in parts:
            size += len(part)
        at = self.place_for(type_, size)
        for part in parts:
            copy(self.gathered.room, at, part, 0, len(part))
            at += len(part)
        return self.put(size)

    def place_for(self, type_, size):
        """Where in the room of `gathered` the `size` octets of a thing are to be written, before `put`."""
        gathered = self.gathered
        gathered.make_room(_THING + size)
        at = _OVERHEAD + gathered.size
        struct.pack_into(">BI", gathered.room, at, type_, size)
        return at + _THING

    def put(self, size):
        """A thing of `size` octets stands where `place_for` said: its number."""
        self.gathered.size += _THING + size
        self.gathered.count += 1
        self.appended += 1
        self.counters["log_payload_octets"] += size
        return self.appended

    def place_for_written(self, size):
        """Where in the room of `gathered` things are to be written as they stand in a group, `size` octets in all, before `put_written`."""
        self.gathered.make_room(size)
        return _OVERHEAD + self.gathered.size

    def put_written(self, count, size):
        """`count` things stand there."""
        self.gathered.size += size
        self.gathered.count += count
        self.appended += count
        self.counters["log_payload_octets"] += size - _THING * count

    def commit(self, syncs=True):
        """Write the appended records, and make them durable (unless `syncs` is false): true when that is done.

        False when it failed (`trouble` says why) or is under way (`is_busy`, then `poll`).
        """
        gathered, segment = self.gathered, self.current()
        if not gathered.count:
            return True
        if self.doubtful is not None:
            if not self.leave():
                return False
            segment = self.current()
        head = b"" if segment.size else self.head_of(segment)
        written = gathered.record(self.sequence, head)
        gathered.segment, gathered.begin = segment, segment.size + len(head)
        gathered.written, gathered.appended = len(written), self.appended
        self.flight = gathered
        if self.begins:  # the next things come while this is written
            self.gathered, self.spare = self.spare or Gathered(self.room_size), None
        self.crowded = False
        self.group += 1
        self.begun = self.appended
        self.sequence = (self.sequence + 1) & _MASK
        if segment.size + len(written) >= self.segment_size:
            self.begin(segment.number + 1, self.sequence)
        syncs = syncs or self.owes_sync
        try:
            if syncs and self.begins:
                self.store.begin(segment.number, written)
                return False
            self.store.append(segment.number, written)
            if syncs:
                self.store.sync(segment.number)
                self.synced_once()
        except Exception as error:  # after any error the write is doubtful
            return self.crashed(error)
        return self.landed()

    def is_busy(self):
        """True while the store is at work on something that was begun."""
        return self.flight is not None or self.removing is not None

    def poll(self):
        """Check a background operation: false while it is under way. It may have failed."""
        try:
            if not self.store.ended():
                return False
        except Exception as error:  # whatever a store raises: the write is doubtful
            if self.flight is not None:
                self.crashed(error)
            self.removing = None
            return True
        if self.flight is not None:
            self.synced_once()
            self.landed()
        else:
            self.removed()
        return True

    def wait(self):
        """Until nothing is under way any more."""
        while self.is_busy():
            self.store.wait()
            self.poll()

    def synced_once(self):
        """A sync has succeeded."""
        self.counters["log_syncs"] += 1
        self.owes_sync = False

    def landed(self):
        """The records in flight are as durable as was asked for: true."""
        flight, self.flight = self.flight, None
        segment = flight.segment
        self.counters["log_octets"] += flight.written
        segment.size += flight.written
        self.octets += flight.written
        self.largest = max(self.largest, segment.size)
        self.trouble = ""
        self.synced = flight.appended
        marks = flight.empty()  # before anything that may raise: what is durable is not written again
        if self.begins:
            self.spare = flight
        for pages, chunk in marks:
            pages.landed(chunk, self, segment, flight.begin)
        return True

    def crashed(self, error):
        """The records in flight are doubtful: they are written once more, before those appended meanwhile. Returns false."""
        flight, self.flight = self.flight, None
        self.sequence = (self.sequence - 1) & _MASK
        self.doubtful = flight.segment
        flight.restore()
        if flight is not self.gathered:
            self.gathered.follow(flight)
            flight.empty()
            self.spare = flight
        self.troubled("the log cannot be written: %r" % (error,))
        return False

    def forget_marks(self, pages, gone):
        """These chunks of a queue are given back, some perhaps before they are written."""
        for gathered in (self.gathered, self.flight):
            if gathered is not None:
                gathered.marks = [mark for mark in gathered.marks if mark[0] is not pages or mark[1] not in gone]

    def head_of(self, segment):
        """The first record of a segment, the last one of the log."""
        before = self.segments[-2] if len(self.segments) > 1 else Segment(0)
        payload = MAGIC + struct.pack(
            ">HIIIII", VERSION, segment.number, self.segments[0].number, before.number, before.size, before.written
        )
        return record(self.sequence, HEAD, (payload,), len(payload))

    def leave(self):
        """Leave the remains of a failed write: a segment without a good record is removed, another stays as it is; false when that
        fails."""
        segment = self.doubtful
        try:
            if segment.number in self.store.numbers():
                if segment.size == 0:
                    self.store.remove(segment.number)
                else:
                    junk = max(self.store.size(segment.number) - segment.size, 0)
                    self.octets += junk - segment.junk
                    segment.junk = junk
        except OSError as error:
            self.troubled("the log cannot be written: %r" % (error,))
            return False
        self.doubtful = None
        if segment.size and segment is self.current():
            self.begin(segment.number + 1, self.sequence)
        return True

    def troubled(self, text):
        """Note why nothing can be written now."""
        self.trouble = text
        self.counters["log_troubles"] += 1

    def sync(self):
        """Make records durable that were committed without syncing; true on success."""
        for segment in self.segments:
            if segment.size:
                try:
                    self.store.sync(segment.number)
                except OSError as error:
                    self.troubled("the log cannot be synced: %r" % (error,))
                    return False
        self.counters["log_syncs"] += 1
        return True

    def remove_oldest(self):
        """Remove the oldest segment; nothing in it is wanted any more: true when it is gone.

        False when that is under way (`is_busy`), or the store refuses: then it is tried again later.
        """
        segment = self.removing = self.segments[0]
        try:
            if segment.number in self.store.numbers():
                if self.begins:
                    self.store.begin_remove(segment.number)
                    return False
                self.store.remove(segment.number)
        except OSError:
            self.removing = None
            return False
        self.removed()
        return True

    def removed(self):
        """The oldest segment is gone."""
        self.removing = None
        segment = self.segments.pop(0)
        del self.by_number[segment.number]
        self.octets -= segment.size + segment.junk
        if segment.size == self.largest:
            self.see_largest()
        self.counters["log_segments_removed"] += 1


def record(sequence, type_, parts, size):
    """The octets of a record."""
    head = struct.pack(">IIB", size, sequence, type_)
    crc = crc32(head)
    for part in parts:
        crc = crc32(part, crc)
    return b"".join([struct.pack(">I", crc & 0xFFFFFFFF), head] + list(parts))


def ungrouped(payload):
    """The (type, payload) of each thing in the payload of a GROUP."""
    at = 0
    while at < len(payload):
        type_, size = struct.unpack_from(">BI", payload, at)
        yield type_, payload[at + 5 : at + 5 + size]
        at += 5 + size


class Damage:
    """Where a segment stopped being readable: `offset` of the first bad record and `octets` from there to its end; `reason` in words."""

    def __init__(self, number, offset, octets, reason):
        self.number = number
        self.offset = offset
        self.octets = octets
        self.reason = reason


class Reader:
    """Reads one segment from its begin. After the last record `damage` is None or says what is wrong behind it."""

    CHUNK = 65536

    def __init__(self, store, number, sequence=None):
        self.store = store
        self.number = number
        self.sequence = sequence  # expected of the next record; None: whatever the first says
        self.size = store.size(number)
        self.offset = 0
        self.buffer = b""
        self.at = 0
        self.oldest = 0  # the number of the oldest segment when this one was begun
        self.before = None  # (number, octets, places of messages) of the segment before it, where its head says that
        self.damage = None

    def fill(self, size):
        """Read until the buffer has at least `size` octets. Returns false at the end of the segment."""
        while len(self.buffer) - self.at < size:
            start = self.offset + len(self.buffer) - self.at
            more = self.store.read(self.number, start, max(size, self.CHUNK))
            if not more:
                return False
            self.buffer = self.buffer[self.at :] + more
            self.at = 0
        return True

    def next(self):
        """The next record: (type, payload); None at the end or at damage."""
        if self.offset == self.size:
            return None
        if not self.fill(_OVERHEAD):
            return self.stop("%d octets, too few for a record" % (self.size - self.offset))
        crc, size, sequence, type_ = struct.unpack_from(_FORM, self.buffer, self.at)
        if size > self.size - self.offset - _OVERHEAD:
            return self.stop("a record of %d octets of which %d are there" % (size, self.size - self.offset - _OVERHEAD))
        if not self.fill(_OVERHEAD + size):
            return self.stop("the store gives fewer octets than it has")
        start = self.at
        if crc32(memoryview(self.buffer)[start + 4 : start + _OVERHEAD + size]) & 0xFFFFFFFF != crc:
            return self.stop("a record whose CRC does not fit")
        if self.sequence is not None and sequence != self.sequence:
            return self.stop("record %d where %d was expected" % (sequence, self.sequence))
        self.sequence = sequence if type_ == HEAD else (sequence + 1) & _MASK
        self.at += _OVERHEAD + size
        self.offset += _OVERHEAD + size
        return type_, self.buffer[start + _OVERHEAD : start + _OVERHEAD + size]

    def stop(self, reason):
        """Note the damage."""
        self.damage = Damage(self.number, self.offset, self.size - self.offset, reason)
        return

    def head(self):
        """Read the head of the segment; false when it is damaged. Raises OtherLog."""
        record = self.next()
        if record is None or record[0] != HEAD or record[1][:4] != MAGIC or len(record[1]) < HEAD_LEAST:
            if self.damage is None:
                self.offset = 0
                self.stop("no log segment")
            self.sequence = None
            return False
        version = struct.unpack(">H", record[1][4:6])[0]
        if version > VERSION:
            raise OtherLog("the log was written by version %d of its format; this one knows up to %d" % (version, VERSION))
        if version < OLDEST:
            raise OtherLog(
                "the log was written by version %d of its format, which no release has and this one does not open: let the program that "
                "wrote it deliver what it holds, then begin with an empty directory" % version
            )
        _, number, self.oldest = struct.unpack(">HII", record[1][4:14])
        if len(record[1]) >= 26:
            self.before = struct.unpack(">III", record[1][14:26])
        if number != self.number or self.oldest > number:
            self.offset = self.oldest = 0
            self.before = None
            self.stop("segment %d under the name of %d" % (number, self.number))
            return False
        return True
