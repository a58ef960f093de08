"""The log: records appended to segments, each with its size, its place in the sequence and a CRC; durable when synced.

    segment:  record | record | ...          the first record of each is its head
    record:   long crc32 of all that follows | long size of payload | long sequence | octet type | payload

The sequence counts records over all segments (30 bits, wrapping), so that what is left of an older write is never taken for a record.
A record is believed when its CRC and its sequence fit. A new run always begins a new segment: it never writes behind a torn end.

The store is a port (ports/store_file.py, and others): an object with
    numbers() -> segment numbers, rising             size(number) -> octets
    read(number, offset, size) -> bytes, fewer at the end
    append(number, octets): at the end, made when it is not there      sync(number): durable when this returns
    remove(number)                                    keep_aside(number, offset): save what lies behind `offset`, then cut it off
It raises OSError for what the medium refuses; the log then says `trouble` and takes nothing more until `commit` succeeds again.
"""

import struct
from binascii import crc32

from .shim import const

HEAD = const(0)
MESSAGE = const(1)
SETTLED = const(2)
DEFINED = const(3)
GROUP = const(4)
RETAINED = const(5)

VERSION = const(1)
MAGIC = b"LVRT"

_OVERHEAD = const(13)
_MASK = const(0x3FFFFFFF)
_FORM = ">IIIB"


class NewerLog(Exception):
    """The log was written by a newer version; nothing of it has been touched."""


class Segment:
    """What is known of one segment: `live` places of messages in queues that are still wanted, of `written`."""

    def __init__(self, number):
        self.number = number
        self.size = 0
        self.live = 0
        self.written = 0
        self.defines = False


class Log:
    """The writing half. `segment_size`: octets after which a new segment is begun; `size_max`: octets in all, beyond which it is full."""

    def __init__(self, store, segment_size, size_max):
        self.store = store
        self.segment_size = segment_size
        self.size_max = size_max
        self.segments = []  # rising; the last is written to
        self.sequence = 0  # of the next record
        self.parts = []  # records not yet given to the store
        self.group = None  # parts of records that go into one, see journal.together
        self.parts_size = 0
        self.appended = 0  # records appended in this run
        self.synced = 0  # of these, durable
        self.trouble = ""  # why nothing can be written now
        self.counters = {"log_octets": 0, "log_payload_octets": 0, "log_syncs": 0, "log_segments_removed": 0, "log_copied_forward": 0,
                         "log_troubles": 0}

    def begin(self, number, sequence):
        """Write to a new segment."""
        self.sequence = sequence
        segment = Segment(number)
        self.segments.append(segment)
        self.append(HEAD, (MAGIC, struct.pack(">HI", VERSION, number)))

    def current(self):
        """The segment that is written to."""
        return self.segments[-1]

    def size(self):
        """Octets in all segments, with what is not yet written."""
        return sum([segment.size for segment in self.segments])

    def full(self):
        """True when no further message is to be taken: a quarter of a segment is kept for settlements and definitions."""
        return bool(self.trouble) or self.size() + self.segment_size // 4 > self.size_max

    def append(self, type_, parts):
        """Append a record made of `parts` (bytes-like): its number in this run, to be compared with `synced`."""
        size = sum([len(part) for part in parts])
        if self.group is not None:
            self.group.append(struct.pack(">BI", type_, size))
            self.group.extend(parts)
            return self.appended + 1
        head = struct.pack(">IIB", size, self.sequence, type_)
        crc = crc32(head)
        for part in parts:
            crc = crc32(part, crc)
        self.parts.append(struct.pack(">I", crc & 0xFFFFFFFF))
        self.parts.append(head)
        self.parts.extend(parts)
        self.parts_size += size + _OVERHEAD
        self.current().size += size + _OVERHEAD
        self.sequence = (self.sequence + 1) & _MASK
        self.appended += 1
        self.counters["log_payload_octets"] += size
        return self.appended

    def dirty(self):
        """True when something has been appended that is not durable."""
        return self.synced != self.appended

    def commit(self, syncs=True):
        """Write what was appended, and make it durable (unless `syncs` is false); true when that worked."""
        if not self.dirty():
            return True
        try:
            if self.parts:
                octets = b"".join(self.parts)
                self.store.append(self.current().number, octets)
                self.counters["log_octets"] += len(octets)
                self.parts = []
                self.parts_size = 0
            if syncs:
                self.store.sync(self.current().number)
                self.counters["log_syncs"] += 1
        except OSError as error:
            self.trouble = "the log cannot be written: %r" % (error,)
            self.counters["log_troubles"] += 1
            return False
        self.trouble = ""
        self.synced = self.appended
        if self.current().size >= self.segment_size:
            self.begin(self.current().number + 1, self.sequence)
        return True

    def sync(self):
        """Make durable what was committed without syncing; true when that worked."""
        try:
            self.store.sync(self.current().number)
        except OSError as error:
            self.trouble = "the log cannot be synced: %r" % (error,)
            return False
        self.counters["log_syncs"] += 1
        return True

    def remove_oldest(self):
        """Remove the oldest segment; nothing in it is wanted any more."""
        segment = self.segments.pop(0)
        try:
            self.store.remove(segment.number)
        except OSError as error:
            self.segments.insert(0, segment)
            self.trouble = "a log segment cannot be removed: %r" % (error,)
            return False
        self.counters["log_segments_removed"] += 1
        return True


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
        self.damage = None

    def fill(self, size):
        """Have at least `size` octets in the buffer; false at the end of the segment."""
        while len(self.buffer) - self.at < size:
            start = self.offset + len(self.buffer) - self.at
            more = self.store.read(self.number, start, max(size, self.CHUNK))
            if not more:
                return False
            self.buffer = self.buffer[self.at:] + more
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
        if crc32(memoryview(self.buffer)[start + 4:start + _OVERHEAD + size]) & 0xFFFFFFFF != crc:
            return self.stop("a record whose CRC does not fit")
        if self.sequence is not None and sequence != self.sequence:
            return self.stop("record %d where %d was expected" % (sequence, self.sequence))
        self.sequence = (sequence + 1) & _MASK
        self.at += _OVERHEAD + size
        self.offset += _OVERHEAD + size
        return type_, self.buffer[start + _OVERHEAD:start + _OVERHEAD + size]

    def stop(self, reason):
        """Note the damage."""
        self.damage = Damage(self.number, self.offset, self.size - self.offset, reason)
        return None

    def head(self):
        """Read the head of the segment; false when it is damaged. Raises NewerLog."""
        record = self.next()
        if record is None or record[0] != HEAD or record[1][:4] != MAGIC or len(record[1]) < 10:
            if self.damage is None:
                self.offset = 0
                self.stop("no log segment")
            return False
        version, number = struct.unpack(">HI", record[1][4:10])
        if version > VERSION:
            raise NewerLog("the log was written by version %d of its format; this one knows up to %d" % (version, VERSION))
        if number != self.number:
            self.offset = 0
            self.stop("segment %d under the name of %d" % (number, self.number))
            return False
        return True
