"""Reading messages back from the log while it is being written: from a place that the index (chunk_index.py) knows.

Every record is verified: a record (most often a GROUP) has one CRC, so the reader computes it over the whole record, in pieces, before it
believes any part; then it reads messages in place. At most one piece of the log is in memory at a time.
"""

import struct
from binascii import crc32

from . import message_record, segments

if False:  # for the type checker alone
    from typing import Any

HEAD_SIZE = 13  # octets of a record in front of its payload
PART_SIZE = 5  # octets of a group's part in front of its payload

KNOWN_MAX = 64  # records that are remembered to be good


class Damaged(Exception):
    """A record differs from the one written; the text says how."""


class NotYet(Exception):
    """A long record is read in more rounds than this one: the next ask again (read_back_quicker.py)."""


class ReadBack:
    """Reads from `store`, at most `piece` octets at a time."""

    left: "Any" = None  # in a round, octets of long records that may yet be read in it
    unfinished = False  # some are to be read in the next one

    def __init__(self, store, piece):
        self.store = store
        self.piece = piece
        self.number = 0  # the buffer holds octets of this segment from `start`
        self.start = 0
        self.buffer = b""
        self.known = {}  # (segment, offset) of a record that was good in this turn -> (type, size of its payload)

    def at(self, number, offset, size):
        """Read `size` octets from `offset` of a segment into the buffer. Returns where they begin in it. Raises Damaged, OSError."""
        if number != self.number or offset < self.start or offset + size > self.start + len(self.buffer):
            self.buffer = b""
            self.buffer = self.store.read(number, offset, max(size, self.piece))
            self.number, self.start = number, offset
            while len(self.buffer) < size:
                more = self.store.read(number, offset + len(self.buffer), size - len(self.buffer))
                if not more:
                    raise Damaged("segment %d ends at octet %d" % (number, offset + len(self.buffer)))
                self.buffer += more
        return offset - self.start

    def begin_round(self):
        """A round of the broker asks for what the next may have too."""

    end_round = begin_round

    def record(self, number, offset, end, _=True):
        """(type, size of payload) of the record at `offset` of a segment with `end` good octets, verified. Raises Damaged, OSError."""
        known = self.known.get((number, offset))
        if known is not None:
            return known
        at = self.at(number, offset, HEAD_SIZE)
        crc, size, _, type_ = struct.unpack_from(">IIIB", self.buffer, at)
        if offset + HEAD_SIZE + size > end:
            raise Damaged("segment %d has a record of %d octets at octet %d and ends before that" % (number, size, offset))
        computed = self.crc_of(number, offset + 4, HEAD_SIZE - 4 + size)
        if computed != crc:
            raise Damaged("segment %d has a record at octet %d whose CRC does not fit" % (number, offset))
        if len(self.known) >= KNOWN_MAX:
            self.known = {}
        self.known[number, offset] = type_, size
        return type_, size

    def crc_of(self, number, offset, size):
        """The CRC of octets of a segment."""
        crc = 0
        while size:
            at = self.at(number, offset, 1)
            view = memoryview(self.buffer)[at : at + size]
            crc = crc32(view, crc)
            offset += len(view)
            size -= len(view)
        return crc & 0xFFFFFFFF

    def forget(self, number):
        """A segment is removed."""
        for key in [key for key in self.known if key[0] == number]:
            del self.known[key]
        if self.number == number:
            self.buffer = b""


class Walk:
    """Goes through the messages of a segment, from the part that lies `skip` octets into the payload of the record at `offset`.

    After `next` said true: `type`, `at` (offset in the segment of the message's payload), `size` of it, and `offset` and `skip` of the part
    behind it; `record` is the offset of the record that it is in, `part` the octets of that one's payload in front of it.
    """

    def __init__(self, reader, number, offset, skip, end):
        self.reader = reader
        self.number = number
        self.offset = offset
        self.skip = skip
        self.end = end
        self.record = offset
        self.part = skip
        self.type = 0
        self.at = 0
        self.size = 0

    def next(self):
        """Go to the next message; false at `end`. Raises Damaged, OSError: then the walk stands at the record that is bad; NotYet."""
        while self.offset < self.end:
            type_, size = self.reader.record(self.number, self.offset, self.end, False)
            self.record, self.part = self.offset, self.skip
            at = self.offset + HEAD_SIZE + self.skip
            if self.skip >= size:
                self.go_to(self.offset + HEAD_SIZE + size)
                continue
            if type_ == segments.GROUP:
                where = self.reader.at(self.number, at, PART_SIZE)
                self.type, self.size = struct.unpack_from(">BI", self.reader.buffer, where)
                self.at = at + PART_SIZE
                self.skip += PART_SIZE + self.size
            else:
                self.type, self.size, self.at = type_, size, at
                self.skip = size
            if self.skip == size:
                self.go_to(self.offset + HEAD_SIZE + size)
            if self.type in (segments.MESSAGE, segments.TRANSIENT):
                return True
        return False

    def go_to(self, offset):
        """Stand at the begin of a record."""
        self.offset = offset
        self.skip = 0

    def pass_over(self):
        """Pass over the bad record that the walk stands at, when the record behind it is readable; else to the end."""
        self.skip = 0
        try:
            at = self.reader.at(self.number, self.offset, HEAD_SIZE)
            behind = self.offset + HEAD_SIZE + struct.unpack_from(">I", self.reader.buffer, at + 4)[0]
            if behind < self.end:
                self.reader.record(self.number, behind, self.end)
                self.offset = behind
                return
        except (Damaged, OSError):
            pass
        self.offset = self.end

    def heads(self):
        """The heads of this message's record."""
        where = self.reader.at(self.number, self.at, message_record.HEAD_SIZE)
        return message_record.heads_at(self.reader.buffer, where)

    def places(self, count):
        """The (queue id, position) of each place of this message."""
        where = self.reader.at(self.number, self.at, message_record.route_at(0, count))
        return message_record.places_at(self.reader.buffer, where)
