"""One staged content: where its octets are in the store, and reading them back. Contents (contents.py) writes it.

The octets that have come are those of its pieces, those that are being written (`flying`), and `buffer`, in this order.
"""

import json
import struct
from binascii import crc32

from ..log.read_back import Damaged
from ..log.segments import record
from ..shim import const

if False:  # for the type checker alone
    from typing import Any

PART_SIZE = const(8192)  # octets of the content in a record, but for the last one of a piece
OVERHEAD = const(13)  # octets of a record beside its payload
PARTS_READ = const(8)  # that are read back at once

OPENED = const(1)  # types of records; 0 is the head of a log's segment, and counts in no sequence
PART = const(2)
WHOLE = const(3)
REFERRED = const(4)

VERSION = const(1)


class Piece:
    """A run of a content's octets in the store: `octets` of them from octet `start` of the content, in number `number` of the store, the
    first part's record at `first`."""

    def __init__(self, number, start, first):
        self.number = number
        self.start = start
        self.first = first
        self.octets = 0
        self.records = 0  # written so far
        self.is_referred = False  # its last record says that a message refers to the content
        self.is_open = True  # further parts can be written behind its last one


class Content:
    """One content. `owner`: the session that stages it now, or None."""

    def __init__(self, user, identifier, size, token):
        self.user = user  # the name of the user who stages it
        self.identifier = identifier
        self.size = size
        self.token = token  # names it to receivers, and in references; differs from that of any other
        self.pieces: "list" = []
        self.buffer = bytearray()
        self.flying = b""
        self.kind = 0  # of the message, once all octets have come: layout.MESSAGE_KIND
        self.properties: "Any" = None  # the octets of its properties, or None
        self.is_whole = False  # all of it is durable
        self.owner: "Any" = None
        self.touched = 0  # uptime_s at which something of it came
        self.copied = False  # published as an ordinary message, which has the octets itself
        self.referred = False  # published by reference
        self.is_marked = False  # the store knows of it
        self.leaves_at: "Any" = None  # the number of the log that has to be durable before it is removed
        self.is_damaged = False
        self.trouble = ""  # why the last write failed
        self.read_at = (0, 0, b"")  # (number, octet of the content, octets) that were read last

    def written(self):
        """Octets in the store that are durable."""
        return self.pieces[-1].start + self.pieces[-1].octets if self.pieces else 0

    def staged(self):
        """Octets that have come."""
        return self.written() + len(self.flying) + len(self.buffer)

    def read(self, store, at, most):
        """Up to `most` octets from octet `at` of a whole content. Raises Damaged, OSError."""
        number, start, octets = self.read_at
        if not number or not start <= at < start + len(octets):
            number, start, octets = self.read_at = self.read_parts(store, at)
        return octets[at - start : at - start + most]

    def read_parts(self, store, at):
        """As `read_at`, with the octet `at` among them."""
        piece = [each for each in self.pieces if each.start <= at < each.start + each.octets][0]
        index = (at - piece.start) // PART_SIZE
        octets = store.read(piece.number, piece.first + index * (OVERHEAD + PART_SIZE), PARTS_READ * (OVERHEAD + PART_SIZE))
        parts: "list" = []
        place, left = 0, piece.octets - index * PART_SIZE
        while left > 0 and len(parts) < PARTS_READ:
            size = min(left, PART_SIZE)
            if len(octets) < place + OVERHEAD + size:
                if parts:
                    break
                raise Damaged("number %d of the staged contents ends early" % piece.number)
            crc, said, _, type_ = struct.unpack_from(">IIIB", octets, place)
            payload = memoryview(octets)[place + OVERHEAD : place + OVERHEAD + size]
            whole = memoryview(octets)[place + 4 : place + OVERHEAD + said]
            if type_ != PART or said < size or said > PART_SIZE or crc32(whole) & 0xFFFFFFFF != crc:
                raise Damaged("number %d of the staged contents has a record whose CRC does not fit" % piece.number)
            parts.append(bytes(payload))
            place += OVERHEAD + said
            left -= size
        return piece.number, piece.start + index * PART_SIZE, b"".join(parts)

    def opened(self, start):
        """The first record of a piece."""
        said = {
            "version": VERSION,
            "user": self.user,
            "identifier": self.identifier,
            "size": self.size,
            "token": self.token,
            "start": start,
        }
        octets = json.dumps(said).encode("utf-8")
        return record(0, OPENED, (octets,), len(octets))

    def records(self, piece, octets):
        """The records of `octets` (bytes) behind those of a piece, and of the end where these are the last: bytes."""
        made = []
        for at in range(0, len(octets), PART_SIZE):
            part = octets[at : at + PART_SIZE]
            made.append(record(piece.records, PART, (part,), len(part)))
            piece.records += 1
        if self.properties is not None and piece.start + piece.octets + len(octets) == self.size:
            end = struct.pack(">i", self.kind) + self.properties
            made.append(record(piece.records, WHOLE, (end,), len(end)))
            piece.records += 1
        return b"".join(made)
