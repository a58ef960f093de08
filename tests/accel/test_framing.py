"""Frames of the serial link in C and in Python: the same octets, the same state, whatever is on the line.

First the functions alone (hypothesis, every split, full buffers), then readers and writers side by side over damaged lines, then whole
links of one form against the other; what both forms are given is what a session has put on the line.
"""

import os
import random
from array import array

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from link_ends import Inner, Maker, drain, give, text
from test_same import HYPOTHESIS_SEED

from leveret import c_accel
from leveret.c_accel.framing import Framing
from leveret.core.serial_link import frame, stuffing
from leveret.core.serial_link.link import Link
from leveret.core.serial_link.stuffing import Plain

FORMS = (Plain, Framing)
SEEDS = int(os.environ.get("LEVERET_SAME_SEEDS", "40")) // 2
AROUND = b"\xa5" * 8  # behind a buffer: no form writes there
OCTETS = st.lists(st.one_of(st.sampled_from((0x7E, 0x7D, 3, 0x1F, 0x20, 0x5E, 0x5D, 0)), st.integers(0, 255)), max_size=80).map(bytes)
SETTINGS = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


def unstuffed(form, pieces, room):
    """All that a form makes of the pieces of a line with a reader of `room` octets: after each call where it stopped, numbers, octets."""
    octets, numbers = bytearray(room), array("i", (0, room, 0, 0))
    octets_at, numbers_at = form.octets(memoryview(octets)), form.integers(numbers)
    made = []
    for piece in pieces:
        at = 0
        while at < len(piece):
            at = form.unstuff(piece, at, len(piece), octets_at, numbers_at)
            made.append((at, list(numbers), bytes(octets)))
            if numbers[3]:
                numbers[0] = numbers[2] = numbers[3] = 0
    return made


def stuffed(form, source, at, escaped, escaped_below):
    """(where it ends, all of the buffer) after `source` was put behind `at` octets, in the least room that it may be given."""
    target = bytearray(at + 2 * len(source)) + AROUND
    end = form.stuff(b"before" + source, 6, len(source), form.octets(memoryview(target)), at, escaped, escaped_below)
    assert target[-len(AROUND) :] == AROUND
    return end, bytes(target)


@seeded(HYPOTHESIS_SEED)
@SETTINGS
@given(OCTETS, st.integers(0, 40), st.integers(1, 20))
def test_what_comes_off_the_line(line, room, step):
    pieces = [line[at : at + step] for at in range(0, len(line), step)]
    assert unstuffed(Framing, pieces, room) == unstuffed(Plain, pieces, room)


@seeded(HYPOTHESIS_SEED)
@SETTINGS
@given(OCTETS, st.integers(0, 5), st.sampled_from((3, 0x7D)), st.sampled_from((0, 0x20)))
def test_what_goes_onto_the_line(source, at, escaped, escaped_below):
    end, target = stuffed(Framing, source, at, escaped, escaped_below)
    assert (end, target) == stuffed(Plain, source, at, escaped, escaped_below)
    line = target[at:end] + b"\x7e"
    assert line.count(b"\x7e") == 1 and unstuffed(Framing, [line], len(source))[-1][2] == source


@seeded(HYPOTHESIS_SEED)
@SETTINGS
@given(OCTETS, st.integers(0, 80), st.integers(0, 0xFFFF))
def test_check_16(octets, size, value):
    size = min(size, len(octets))
    assert Framing.check_16(octets, size, value) == Plain.check_16(octets, size, value)


def test_every_octet_in_every_state():
    for before in (b"", b"\x7d", b"ab", b"abc", b"ab\x7d", b"abcd"):
        for octet in range(256):
            line = before + bytes((octet,)) + b"x\x7e"
            assert unstuffed(Framing, [line], 3) == unstuffed(Plain, [line], 3), line
    for escaped, escaped_below in ((3, 0), (3, 0x20), (0x7D, 0), (0x7D, 0x20)):
        every = bytes(range(256))
        assert stuffed(Framing, every, 1, escaped, escaped_below) == stuffed(Plain, every, 1, escaped, escaped_below)
    for value in range(0, 0x10000, 251):
        assert Framing.check_16(every, 256, value) == Plain.check_16(every, 256, value)


def test_a_reader_stops_where_it_is_told_to_and_begins_where_it_is_told_to():
    line = b"ab\x7d\x5ec\x7ede"
    for at in range(len(line) + 1):
        for end in range(at, len(line) + 1):
            made = []
            for form in FORMS:
                octets, numbers = bytearray(9), array("i", (0, 9, 0, 0))
                stopped = form.unstuff(memoryview(line), at, end, form.octets(memoryview(octets)), form.integers(numbers))
                made.append((stopped, list(numbers), octets))
            assert made[0] == made[1], (at, end)


def with_form(form, make):
    """What `make()` gives with links of this form."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stuffing, "chosen", form)
        return make()


class Ends:
    """A writer and readers of one form; `check_size`, and whether the writer is the active end's."""

    def __init__(self, form, check_size, active, payload_size_max=64):
        checks = [with_form(form, lambda active=active: frame.FrameChecks(active)) for active in (active, not active)]
        for each in checks:
            each.begin(b"nonce of", check_size)
        self.writer = frame.FrameWriter(payload_size_max, checks[0])
        self.reader = frame.FrameReader(payload_size_max, checks[1])

    def write(self, name, sequence, payload):
        writer = self.writer
        writer.put(name, sequence, 255 - sequence, payload, len(payload))
        return bytes(writer.octets[writer.start : writer.end])

    def read(self, piece):
        """Everything that shows after each call."""
        reader, at, made = self.reader, 0, []
        while at < len(piece):
            at = reader.read(piece, at, len(piece))
            made.append((at, reader.size, reader.bad_count, bytes(reader.octets), list(reader._numbers)))
        return made


def wound(line, chance):
    """A line as a bad cable would have it."""
    line = bytearray(line)
    for _ in range(chance.choice((0, 0, 1, 3, 20))):
        at = chance.randrange(len(line))
        what = chance.randrange(4)
        if what == 0:
            line[at] ^= 1 << chance.randrange(8)
        elif what == 1 and len(line) > 1:
            del line[at]
        elif what == 2:
            line[at:at] = bytes((chance.choice((0x7E, 0x7D, 0, 255)),))
        else:
            line[at:at] = chance.randbytes(chance.choice((1, 5, 200)))
    return bytes(line)


@pytest.mark.parametrize("check_size", (2, 4))
@pytest.mark.parametrize("seed", range(SEEDS))
def test_readers_and_writers_side_by_side_over_a_damaged_line(seed, check_size):
    side_by_side(FORMS, seed, check_size)


def side_by_side(forms, seed, check_size):
    """Two forms, the same frames, the same damage; also for those who write the calls down (test_builds.py)."""
    chance = random.Random(seed)
    ends = [Ends(form, check_size, seed % 2 == 0) for form in forms]
    found = 0
    for number in range(60):
        name = chance.choice((frame.DATA, frame.DATA, frame.STATUS, frame.HELLO))
        payload = chance.choice((chance.randbytes(chance.randrange(65)), b"\x7e" * chance.randrange(65), b"\x03\x7d" * 32, b""))
        lines = [each.write(name, number, payload) for each in ends]
        assert lines[0] == lines[1]
        line, step = wound(lines[0], chance), chance.choice((1, 2, 7, 1000))
        for at in range(0, len(line), step):
            made = [each.read(line[at : at + step]) for each in ends]
            assert made[0] == made[1]
            found += sum(state[1] > 0 for state in made[0])
    assert found > 0
    for end in ends:
        end.reader.clear()
    assert ends[0].reader._numbers == ends[1].reader._numbers


@pytest.mark.parametrize("check_size", (2, 4))
def test_every_split_of_a_line_of_frames(check_size):
    ends = [Ends(form, check_size, True, 40) for form in FORMS]
    line = b"".join(ends[0].write(frame.DATA, number, bytes(range(0x60, 0x60 + number))) for number in (0, 1, 33, 40))
    for split in range(len(line) + 1):
        made = [each.read(line[:split]) + each.read(line[split:]) for each in ends]
        assert made[0] == made[1]
        assert [state[1] for state in made[0] if state[1]] == [3, 4, 36, 43]


def test_a_full_writer_and_a_frame_that_is_too_long():
    for form in FORMS:
        ends = Ends(form, 4, True, 64)
        line = ends.write(frame.DATA, 0x7E, b"\x7e" * 64)
        assert len(line) <= len(ends.writer.octets) and [state[1] for state in ends.read(line)] == [0, 67]
        before = bytes(ends.writer.octets)
        with pytest.raises(AssertionError, match="larger than its writer"):
            ends.writer.add(b"\x7e" * 68, 0, 68)
        assert bytes(ends.writer.octets) == before
        long = Ends(form, 4, True, 65)
        assert [state[1:3] for state in ends.read(long.write(frame.DATA, 1, b"x" * 65))][-1] == (0, 1)


@pytest.mark.parametrize("check_size", (2, 4))
@pytest.mark.parametrize("forms", (FORMS, FORMS[::-1]), ids=("active in Python", "active in C"))
def test_a_link_with_one_form_at_each_end(forms, check_size):
    """And what each end puts on the line is what it puts there when both are plain."""
    sent = []
    for pair in (forms, (Plain, Plain)):
        ends = [Inner(text(9000)), Maker([text(7000, 3)])]
        links = [
            with_form(pair[0], lambda: Link(lambda: ends[0], 5, True, check_size=check_size)),
            with_form(pair[1], lambda: Link(ends[1], 6, check_size=check_size)),
        ]
        line = [bytearray(), bytearray()]
        for now in range(400):
            for index in (0, 1):
                links[index].tick(now)
                octets = drain(links[index])
                line[index] += octets
                give(links[1 - index], octets)
        assert ends[0].incoming == text(7000, 3) and ends[1].made[0].incoming == text(9000)
        sent.append(line)
    assert sent[0] == sent[1]


def test_which_form_is_chosen(monkeypatch):
    monkeypatch.setattr(stuffing, "chosen", None)
    monkeypatch.setattr(c_accel.engine, "chosen", None)
    monkeypatch.setenv("LEVERET_ACCEL", "0")
    c_accel.install()
    assert stuffing.chosen is Plain
    monkeypatch.delenv("LEVERET_ACCEL")
    c_accel.install()
    assert stuffing.chosen is Framing and frame.FrameChecks(True).form is Framing
    monkeypatch.setattr(c_accel, "lib", None)
    c_accel.install()
    assert stuffing.chosen is Plain
