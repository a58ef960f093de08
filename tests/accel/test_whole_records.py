"""CPython's own reader of the log (core/log/read_back_quicker.py): what it finds is what ReadBack finds; a long record is read once, and in
rounds; what is delivered are the octets that were checked."""

import random
import struct
from binascii import crc32

import pytest
from memory_store import MemoryStore

from leveret.core.log import segments
from leveret.core.log.read_back import HEAD_SIZE, Damaged, NotYet, ReadBack, Walk
from leveret.core.log.read_back_quicker import OLD, WholeRecords

NUMBER = 7
ARENA = 16384  # records of more than PIECE and up to 4096 octets are held; 256 octets a round
PIECE = 64


class Counting(MemoryStore):
    """A store with one segment; `octets_read` counts."""

    def __init__(self, octets):
        MemoryStore.__init__(self)
        self.segments[NUMBER] = bytearray(octets)
        self.octets_read = 0

    def read(self, number, offset, size):
        octets = bytes(MemoryStore.read(self, number, offset, size))
        self.octets_read += len(octets)
        return octets


def record(type_, payload, sequence=1):
    behind = struct.pack(">IIB", len(payload), sequence, type_) + payload
    return struct.pack(">I", crc32(behind) & 0xFFFFFFFF) + behind


def group(sizes, draw=random):
    """A GROUP with a message of each of these sizes."""
    return record(segments.GROUP, b"".join([struct.pack(">BI", segments.MESSAGE, size) + draw.randbytes(size) for size in sizes]))


def reader_of(octets):
    return WholeRecords(Counting(octets), PIECE, ARENA)


def all_of(reader, end):
    """The payload of each message that a walk comes to; rounds go on as long as there is more."""
    walk, found = Walk(reader, NUMBER, 0, 0, end), []
    while True:
        reader.known = {}
        reader.begin_round()
        try:
            if not walk.next():
                return found
            where = reader.at(NUMBER, walk.at, walk.size)
            found.append(bytes(reader.buffer[where : where + walk.size]))
        except NotYet:
            assert reader.unfinished
        except Damaged:
            found.append("damage")
            walk.pass_over()
        finally:
            reader.end_round()


def test_it_finds_what_read_back_finds_wherever_octets_have_flipped():
    draw = random.Random(15)
    for _ in range(60):
        records = [group([draw.randrange(300) for _ in range(draw.randrange(1, 30))], draw) for _ in range(draw.randrange(1, 5))]
        octets = bytearray(b"".join(records))
        for _ in range(draw.randrange(3)):
            octets[draw.randrange(len(octets))] ^= 1 << draw.randrange(8)
        plain = ReadBack(Counting(octets), PIECE)
        assert all_of(reader_of(octets), len(octets)) == all_of(plain, len(octets))


def test_a_long_record_is_read_once_however_many_turns_have_some_of_it():
    octets = group([100] * 30)
    reader, plain = reader_of(octets), ReadBack(Counting(octets), PIECE)
    assert len(all_of(reader, len(octets))) == len(all_of(plain, len(octets))) == 30
    assert reader.store.octets_read == len(octets)
    assert plain.store.octets_read > 30 * len(octets)


def test_a_round_reads_no_more_than_its_part_of_a_long_record():
    octets = group([100] * 30)
    reader = reader_of(octets)
    walk, rounds = Walk(reader, NUMBER, 0, 0, len(octets)), 0
    while True:
        before = reader.store.octets_read
        reader.begin_round()
        try:
            assert walk.next()
            break
        except NotYet:
            rounds += 1
            assert reader.unfinished and reader.store.octets_read - before <= reader.turn + PIECE
        finally:
            reader.end_round()
    assert rounds == (len(octets) - 1) // reader.turn


def test_who_asks_outside_of_a_round_has_it_at_once():
    reader = reader_of(group([100] * 30))
    assert Walk(reader, NUMBER, 0, 0, 4096).next() and not reader.unfinished


def test_what_was_checked_is_delivered_whatever_the_store_says_later():
    octets = group([100] * 30)
    reader = reader_of(octets)
    walk = Walk(reader, NUMBER, 0, 0, len(octets))
    assert walk.next()
    reader.store.segments[NUMBER][:] = bytes(len(octets))
    reader.at(NUMBER, 0, PIECE)  # the buffer is another piece in between
    reader.known = {}
    found = 1
    while walk.next():
        where = reader.at(NUMBER, walk.at, walk.size)
        assert bytes(reader.buffer[where : where + walk.size]) == octets[walk.at : walk.at + walk.size]
        found += 1
    assert found == 30


def test_those_that_ask_in_turn_all_have_theirs_and_no_more_is_held_than_there_is_room_for():
    """Twelve long records, of which four have room: each is asked for in turn."""
    records = [group([100] * 9) for _ in range(12)]
    starts = [sum(map(len, records[:number])) for number in range(12)]
    end = sum(map(len, records))
    reader = reader_of(b"".join(records))
    waiting, rounds = list(starts), 0
    while waiting:
        rounds += 1
        reader.begin_round()
        start = waiting.pop(0)
        try:
            assert Walk(reader, NUMBER, start, 0, end).next()
        except NotYet:
            waiting.append(start)
        reader.end_round()
        assert sum(len(held.octets) for held in reader.held.values()) <= ARENA // 4
    assert 12 < rounds < 100


def test_a_record_that_is_read_in_part_and_no_longer_asked_for_gives_its_room():
    records = [group([100] * 30), group([101] * 30)]
    reader = reader_of(b"".join(records))
    end = len(reader.store.segments[NUMBER])
    reader.begin_round()
    with pytest.raises(NotYet):
        Walk(reader, NUMBER, 0, 0, end).next()
    reader.end_round()
    Walk(reader, NUMBER, len(records[0]), 0, end).next()
    assert list(reader.held) == [(NUMBER, 0)]  # the other had no room: it was read as ReadBack reads
    for _ in range(OLD + 1):
        reader.begin_round()
        reader.end_round()
    reader.known = {}
    Walk(reader, NUMBER, len(records[0]), 0, end).next()
    assert list(reader.held) == [(NUMBER, len(records[0]))]


def test_a_record_that_is_not_held_is_checked_once_in_a_turn():
    """It is longer than what may be held, and its octets are read from the store as they are asked for."""
    octets = group([100] * 60)
    reader = reader_of(octets)
    walk = Walk(reader, NUMBER, 0, 0, len(octets))
    assert walk.next()
    before = reader.store.octets_read
    while walk.next():
        reader.at(NUMBER, walk.at, walk.size)
    assert not reader.held and reader.store.octets_read - before < 2 * len(octets)


def test_what_is_no_longer_held_is_checked_again():
    octets = group([100] * 30)
    reader = reader_of(octets)
    assert reader.record(NUMBER, 0, len(octets))
    reader.give_up((NUMBER, 0))
    reader.store.segments[NUMBER][2000] ^= 1
    with pytest.raises(Damaged):
        reader.record(NUMBER, 0, len(octets))


def test_a_segment_that_is_removed_is_forgotten_and_the_memory_of_its_record_is_used_again():
    octets = group([100] * 30)
    reader = reader_of(octets)
    Walk(reader, NUMBER, 0, 0, len(octets)).next()
    buffer = reader.buffer
    reader.forget(NUMBER)
    assert not reader.held and reader.buffer == b"" and reader.spare is buffer
    reader.store.segments[8] = group([100] * 29 + [50])
    Walk(reader, 8, 0, 0, len(octets) - 50).next()
    assert reader.buffer is buffer and bytes(buffer) == bytes(reader.store.segments[8])


def test_memory_that_somebody_looks_at_is_not_used_again():
    octets = group([100] * 30)
    reader = reader_of(octets)
    Walk(reader, NUMBER, 0, 0, len(octets)).next()
    view = memoryview(reader.buffer)
    reader.forget(NUMBER)
    reader.store.segments[8] = group([100] * 20)
    Walk(reader, 8, 0, 0, len(reader.store.segments[8])).next()
    assert bytes(reader.buffer) == bytes(reader.store.segments[8]) and bytes(view) == octets


def test_a_segment_that_ends_within_a_long_record_is_damaged():
    octets = group([100] * 30)
    reader = reader_of(octets[:-10])
    with pytest.raises(Damaged):
        reader.record(NUMBER, 0, len(octets))
    assert not reader.held
    assert HEAD_SIZE + PIECE < len(octets) < ARENA // 4
