"""What is read back from a segment is verified once in a turn, in pieces of any size; damage is passed over (log/read_back.py)."""

import struct
from binascii import crc32

from memory_store import MemoryStore

from leveret.core.log import segments
from leveret.core.log.read_back import HEAD_SIZE, KNOWN_MAX, Damaged, ReadBack, Walk

NUMBER = 7


def record(type_, payload, sequence=1):
    """A whole record: CRC, long size, long sequence, octet type, payload."""
    behind = struct.pack(">IIB", len(payload), sequence, type_) + payload
    return struct.pack(">I", crc32(behind) & 0xFFFFFFFF) + behind


def part(type_, payload):
    """A thing within a group."""
    return struct.pack(">BI", type_, len(payload)) + payload


class Counting(MemoryStore):
    """A store that counts how often it is read, and gives at most `most` octets at once."""

    def __init__(self, octets, most=1 << 20):
        MemoryStore.__init__(self)
        self.segments[NUMBER] = octets
        self.most = most
        self.reads = 0

    def read(self, number, offset, size):
        self.reads += 1
        return MemoryStore.read(self, number, offset, min(size, self.most))


def walked(reader, end, offset=0, skip=0):
    """(type, payload, record, part) of each message that a walk comes to."""
    walk = Walk(reader, NUMBER, offset, skip, end)
    found = []
    while walk.next():
        where = reader.at(NUMBER, walk.at, walk.size)
        found.append((walk.type, bytes(reader.buffer[where : where + walk.size]), walk.record, walk.part))
    return found


GROUP = (
    part(segments.MESSAGE, b"first")
    + part(segments.SETTLED, b"settled")
    + part(segments.TRANSIENT, b"second message")
    + part(segments.MESSAGE, b"")
)
OCTETS = record(segments.MESSAGE, b"alone") + record(segments.GROUP, GROUP, 2) + record(segments.KEPT, b"kept", 3)
FIRST = HEAD_SIZE + 5
WALKED = [
    (segments.MESSAGE, b"alone", 0, 0),
    (segments.MESSAGE, b"first", FIRST, 0),
    (segments.TRANSIENT, b"second message", FIRST, 22),
    (segments.MESSAGE, b"", FIRST, 41),
]


def test_a_walk_comes_to_every_message_and_to_nothing_else_with_pieces_of_any_size():
    for piece in (1, HEAD_SIZE, 16, 40, 4096):
        for most in (1, 7, 4096):
            assert walked(ReadBack(Counting(OCTETS, most), piece), len(OCTETS)) == WALKED, (piece, most)


def test_a_walk_begins_in_the_middle_of_a_group():
    reader = ReadBack(Counting(OCTETS), 64)
    for index in range(1, 4):
        assert walked(reader, len(OCTETS), FIRST, WALKED[index][3]) == WALKED[index:]
    assert walked(reader, len(OCTETS), FIRST, len(GROUP)) == []
    assert walked(reader, FIRST) == WALKED[:1]


def test_a_walk_stands_behind_what_it_has_come_to():
    """In a group behind the message; at the record behind where it was the last."""
    walk = Walk(ReadBack(Counting(OCTETS), 64), NUMBER, 0, 0, len(OCTETS))
    stood = []
    while walk.next():
        stood.append((walk.offset, walk.skip))
    assert stood == [(FIRST, 0), (FIRST, 10), (FIRST, 41), (FIRST + HEAD_SIZE + len(GROUP), 0)]
    assert (walk.offset, walk.skip) == (len(OCTETS), 0)


def test_a_record_is_verified_once_in_a_turn():
    """In one turn the octets of a record that was good are not read again; with `known` emptied they are."""
    store = Counting(OCTETS)
    reader = ReadBack(store, 16)
    assert reader.record(NUMBER, FIRST, len(OCTETS)) == (segments.GROUP, len(GROUP))
    reads = store.reads
    assert reader.record(NUMBER, FIRST, len(OCTETS)) == (segments.GROUP, len(GROUP)) and store.reads == reads
    reader.known = {}
    assert reader.record(NUMBER, FIRST, len(OCTETS)) == (segments.GROUP, len(GROUP)) and store.reads > reads


def test_what_is_known_to_be_good_has_a_bound():
    octets = b"".join([record(segments.KEPT, b"", number) for number in range(KNOWN_MAX + 2)])
    reader = ReadBack(Counting(octets), 4096)
    for number in range(KNOWN_MAX + 2):
        reader.record(NUMBER, number * HEAD_SIZE, len(octets))
        assert (NUMBER, number * HEAD_SIZE) in reader.known and len(reader.known) <= KNOWN_MAX
    assert len(reader.known) == 2


def test_a_segment_that_is_gone_is_forgotten_and_no_other():
    reader = ReadBack(Counting(OCTETS), 4096)
    reader.store.segments[8] = OCTETS
    for number in (8, NUMBER):
        reader.record(number, 0, len(OCTETS))
        reader.record(number, FIRST, len(OCTETS))
    reader.forget(NUMBER)
    assert sorted(reader.known) == [(8, 0), (8, FIRST)] and reader.buffer == b""
    reader.record(8, 0, len(OCTETS))
    reader.at(8, 0, 1)
    reader.forget(NUMBER)
    assert reader.buffer != b""


def damaged(call, *arguments):
    """The text of the Damaged that a call raises."""
    try:
        call(*arguments)
    except Damaged as error:
        return str(error)
    return None


def test_damage_is_told_wherever_it_is_and_the_walk_goes_on_behind_it():
    """Every octet of a record but those of its size; where the record behind is good nothing else is lost."""
    behind = FIRST + HEAD_SIZE + len(GROUP)
    for place in range(FIRST, behind):
        wrong = bytearray(OCTETS)
        wrong[place] ^= 1
        reader = ReadBack(Counting(bytes(wrong)), 32)
        walk = Walk(reader, NUMBER, 0, 0, len(OCTETS))
        assert walk.next() and damaged(walk.next), place
        assert walk.offset == FIRST
        walk.pass_over()
        assert walk.offset == (len(OCTETS) if FIRST + 4 <= place < FIRST + 8 else behind) and walk.skip == 0, place


def test_a_record_that_says_it_is_longer_than_its_segment_is_damaged():
    reader = ReadBack(Counting(OCTETS), 32)
    assert reader.record(NUMBER, FIRST, FIRST + HEAD_SIZE + len(GROUP)) == (segments.GROUP, len(GROUP))
    reader.known = {}
    assert "ends before that" in damaged(reader.record, NUMBER, FIRST, FIRST + HEAD_SIZE + len(GROUP) - 1)


def test_a_bad_last_record_is_passed_over_to_the_end():
    for octets in (OCTETS[:-1] + b"\x00", OCTETS):
        walk = Walk(ReadBack(Counting(octets), 32), NUMBER, len(OCTETS) - HEAD_SIZE - 4, 0, len(OCTETS))
        walk.skip = 3
        walk.pass_over()
        assert (walk.offset, walk.skip) == (len(OCTETS), 0)


def test_a_store_that_fails_while_a_bad_record_is_passed_over_costs_the_rest():
    class Failing(Counting):
        def read(self, number, offset, size):
            raise OSError(5, "input/output error")

    walk = Walk(ReadBack(Failing(OCTETS), 32), NUMBER, 0, 0, len(OCTETS))
    walk.pass_over()
    assert walk.offset == len(OCTETS)


def test_a_segment_that_ends_too_early_is_damaged():
    reader = ReadBack(Counting(OCTETS[:10]), 4)
    assert damaged(reader.at, NUMBER, 0, HEAD_SIZE) == "segment 7 ends at octet 10"
