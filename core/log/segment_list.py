"""Which segments there are to be, as a store of files notes it in a file beside them: so that a lost segment can be distinguished from a
removed one.

    segments from 3 3-17 20-31 crc32 89abcdef       (one line; the CRC is of what stands in front of it)

A segment is noted when it is durable, and is no longer before it is removed: a crash between the two leaves one that is there and not
noted. So a segment that is noted and missing is lost, and segments before `first` were removed. It reads and writes nothing.
"""

from binascii import crc32

from .settled_positions import add_range, is_in

FILE = "segments"


class Noted:
    """The content of such a file. `ranges`: rising list of [first, end) that do not touch, None: there is no file that can be believed;
    `first`: the segments before it were removed."""

    def __init__(self, octets):
        self.first = 0
        self.ranges = None
        words = octets.split()
        if len(words) < 5 or words[:2] != [b"segments", b"from"] or octets != line(words[2:-2]):
            return
        self.first = int(words[2])
        self.ranges = []
        for word in words[3:-2]:
            first, last = word.split(b"-")
            self.ranges.append((int(first), int(last) + 1))

    def known(self):
        """(first, ranges), or None."""
        return None if self.ranges is None else (self.first, self.ranges)

    def octets(self):
        """The file."""
        return line([b"%d" % self.first] + [b"%d-%d" % (first, end - 1) for first, end in self.ranges])

    def add(self, number):
        """A segment is durable: true when the file is to be written."""
        if self.ranges is None:
            self.ranges = []
        if is_in(self.ranges, number):
            return False
        add_range(self.ranges, number, number + 1)
        return True

    def remove(self, number, numbers):
        """A segment of `numbers` is to be removed; with the oldest everything before it, lost or not: true when the file is to be written.

        The newest goes to be written once more (Log.leave), also where it is the only one.
        """
        if self.ranges is None:
            return False
        is_oldest = [each for each in numbers if each <= number] == [number] != numbers
        before = self.known()
        end = 0 if is_oldest else number
        kept = [(start, min(stop, end)) for start, stop in self.ranges] + [(max(start, number + 1), stop) for start, stop in self.ranges]
        self.ranges = sorted([each for each in kept if each[0] < each[1]])
        if is_oldest:
            self.first = max(self.first, number + 1)
        return self.known() != before


def line(words):
    """The line with this first number and these ranges."""
    text = b" ".join([b"segments from"] + list(words))
    return text + b" crc32 %08x\n" % (crc32(text) & 0xFFFFFFFF)
