"""CPython's own form of ReadBack (read_back.py): long records are held whole. No board carries this file.

A record of many messages has one CRC, and as much as a MiB. ReadBack reads it for that, and then once more, message by message, whenever
some of it are wanted: a reader that replays a stream held everybody for a millisecond or two each time. Here a record longer than a piece
stays in memory as it was checked, until others need the room: what is delivered are the octets that were good, and they are read once. In a
round of the broker at most `turn` octets are read and checked of such records (`left`); the others go on in the next.
"""

import struct
from binascii import crc32

from .read_back import HEAD_SIZE, Damaged, NotYet, ReadBack

HELD_MAX = 1 << 21  # octets of the records that are held, where a quarter of the arena is as much
ARENA_PART = 4
TURNS = 16  # in which so many octets are read and checked
CRC_SIZE = 4  # octets of a record in front of those that its CRC is of
OLD = 1024  # rounds in which nobody has asked for a record that is read only in part: its room is free


class Held:
    """A record of which `filled` octets are read, and are good when they are all."""

    def __init__(self, type_, size, octets):
        self.type = type_
        self.size = size  # of the payload
        self.octets = octets  # a bytearray of all of it, with the head
        self.filled = 0
        self.crc = 0
        self.asked = 0  # the round in which it was asked for last

    def is_whole(self):
        """True when all of it is read: it is good then."""
        return self.filled == len(self.octets)


class WholeRecords(ReadBack):
    """As ReadBack. `arena_size`: octets of the broker's arena."""

    def __init__(self, store, piece, arena_size):
        ReadBack.__init__(self, store, piece)
        self.most = min(HELD_MAX, arena_size // ARENA_PART)
        self.turn = max(self.most // TURNS, 1)
        self.held = {}  # (segment, offset) -> Held; the one that was asked for last is the last
        self.spare = bytearray()  # the memory of one that was given up: new memory costs a fault a page, and as much again when it is freed
        self.rounds = 0

    def begin_round(self):
        """From here on, up to `end_round`, only so much is read of records that no message is needed of at once."""
        self.rounds += 1
        self.left = self.turn
        self.unfinished = False

    def end_round(self):
        """Who asks from here on has to have it."""
        self.left = None

    def at(self, number, offset, size):
        """As ReadBack's; of a record that is held, from memory."""
        if number != self.number or offset < self.start or offset + size > self.start + len(self.buffer):
            for (segment, start), held in self.held.items():
                if segment == number and start <= offset and offset + size <= start + len(held.octets) and held.is_whole():
                    self.point_to(number, start, held)
                    break
        return ReadBack.at(self, number, offset, size)

    def point_to(self, number, offset, held):
        """The buffer is a record's octets."""
        self.number, self.start, self.buffer = number, offset, held.octets

    def record(self, number, offset, end, at_once=True):
        """As ReadBack's; raises NotYet too, unless it has to be `at_once`."""
        held = self.held.pop((number, offset), None)
        if held is None:
            if (number, offset) in self.known:
                return self.known[number, offset]
            at = self.at(number, offset, HEAD_SIZE)
            _, size, _, type_ = struct.unpack_from(">IIIB", self.buffer, at)
            whole = HEAD_SIZE + size
            if whole <= self.piece or offset + whole > end or not self.has_room(whole):
                return ReadBack.record(self, number, offset, end)
            octets = bytes(memoryview(self.buffer)[at : at + self.piece])  # never all of it: `fill` reads the last, and checks
            held = Held(type_, size, self.buffer_of(whole))
            self.put(held, octets)
        self.held[number, offset] = held
        held.asked = self.rounds
        if not held.is_whole():
            self.fill(held, number, offset, at_once)
        self.point_to(number, offset, held)
        self.known[number, offset] = held.type, held.size
        return held.type, held.size

    def has_room(self, size):
        """Make room for a record of so many octets: true when there is some. Of those that are read in part only old ones go: others that
        ask in turn would never have theirs."""
        left = self.most - sum([len(held.octets) for held in self.held.values()])
        for key in list(self.held):
            if left >= size or size > self.most:
                break
            held = self.held[key]
            if held.is_whole() or self.rounds - held.asked > OLD:
                left += len(held.octets)
                self.give_up(key)
        return left >= size

    def give_up(self, key):
        """Hold a record no more."""
        held = self.held.pop(key)
        self.known.pop(key, None)
        if self.buffer is held.octets:
            self.buffer = b""
        if len(held.octets) > len(self.spare):
            self.spare = held.octets

    def buffer_of(self, size):
        """A bytearray of so many octets."""
        octets, self.spare = self.spare, bytearray()
        try:
            if len(octets) < size:
                octets.extend(bytes(size - len(octets)))
            del octets[size:]
        except BufferError:  # somebody looks at it yet: the trace of an error
            return bytearray(size)
        return octets

    def fill(self, held, number, offset, at_once):
        """Read on in a record, to its end or as far as this round goes. Raises NotYet, Damaged, OSError."""
        while not held.is_whole():
            if not at_once and self.left is not None and self.left <= 0:
                self.unfinished = True
                raise NotYet
            octets = self.store.read(number, offset + held.filled, min(self.piece, len(held.octets) - held.filled))
            if not octets:
                self.give_up((number, offset))
                raise Damaged("segment %d ends at octet %d" % (number, offset + held.filled))
            self.put(held, octets)
            if held.is_whole() and held.crc & 0xFFFFFFFF != struct.unpack_from(">I", held.octets)[0]:
                self.give_up((number, offset))
                raise Damaged("segment %d has a record at octet %d whose CRC does not fit" % (number, offset))

    def put(self, held, octets):
        """These are the next of a record."""
        begin, held.filled = held.filled, held.filled + len(octets)
        held.octets[begin : held.filled] = octets
        held.crc = crc32(memoryview(held.octets)[max(begin, CRC_SIZE) : max(held.filled, CRC_SIZE)], held.crc)
        if self.left is not None:
            self.left -= len(octets)

    def forget(self, number):
        """A segment is removed."""
        for key in [key for key in self.held if key[0] == number]:
            self.give_up(key)
        ReadBack.forget(self, number)
