"""A store of log segments in memory that fails as media do. The contract is in core/log/segments.py.

What is appended lies in a cache until it is synced. A power cut comes at the n-th operation, in the middle of it; what the cache held then
is kept, lost, torn, or kept in some pages and lost in others. A sync that fails may lose what it should have made durable, and the next one
succeeds all the same (Linux does that). A disk is full for a while: an append fails and may leave a part of its octets. Removals become
durable in their order, at a sync; a cut takes the last of them back. `flip` turns one bit of what was synced, `lose` takes a segment.
Which segments there are to be is noted when one is durable, and before one is removed; a cut may come between the two.
"""

from leveret.core.log.segment_list import Noted
from leveret.core.log.settled_positions import is_in

PAGES = (1, 16, 64, 512)


class PowerCut(BaseException):
    """The power is gone: nothing may be caught or done any more."""


class Faults:
    """What goes wrong, and when. Counted in operations that change something."""

    def __init__(self):
        self.cut_at = 0  # operation; 0: none
        self.full_until = 0  # operation up to which appends fail
        self.sync_fails = 0  # one in so many; 0: none
        self.remove_fails = 0
        self.aside_fails = 0
        self.read_fails = 0  # one read in so many while the broker works; 0: none
        self.reads = None  # the chance of that: of its own, so that reading draws nothing from the other


class Segment:
    """`octets`: what is read now; `durable`: what the medium has; `lost`: [start, end) that a failed sync has lost."""

    def __init__(self):
        self.octets = b""
        self.durable = None  # None: not even the name
        self.lost = []


class FaultyStore:
    """Segments in memory. `chance` decides what a fault does; `watcher` is told before each append and after each sync."""

    def __init__(self, chance):
        self.chance = chance
        self.faults = Faults()
        self.segments = {}
        self.removed = []  # (number, Segment) that a cut may bring back, in order
        self.aside = []
        self.operations = 0
        self.watcher = None
        self.flipped = False
        self.note = Noted(b"")
        self.note.ranges = []

    # The contract

    def numbers(self):
        return sorted(self.segments)

    def noted(self):
        return self.note.known()

    def size(self, number):
        return len(self.segments[number].octets)

    def read(self, number, offset, size):
        if self.watcher is not None and self.faults.read_fails and self.faults.reads.one_in(self.faults.read_fails):
            raise OSError(5, "input/output error")
        return self.segments[number].octets[offset : offset + size]

    def append(self, number, octets):
        if self.watcher is not None:
            self.watcher.before_append()
        self.put(number, octets)

    def put(self, number, octets):
        """Append; the watcher has been told."""
        cut = self.operation()
        segment = self.segments.get(number)
        if segment is None:
            segment = self.segments[number] = Segment()
        if cut:
            segment.octets += bytes(octets[: self.chance.below(len(octets) + 1)])
            raise PowerCut()
        if self.operations <= self.faults.full_until:
            segment.octets += bytes(octets[: self.chance.below(len(octets) + 1)])
            raise OSError(28, "no space left")
        segment.octets += bytes(octets)

    def sync(self, number):
        cut = self.operation()
        segment = self.segments[number]
        if cut:
            raise PowerCut()
        if self.faults.sync_fails and self.chance.one_in(self.faults.sync_fails):
            segment.lost.append((len(segment.durable or b""), len(segment.octets)))
            raise OSError(5, "input/output error")
        self.make_durable(segment)
        self.removed = []
        self.note.add(number)
        if self.watcher is not None:
            self.watcher.after_sync()

    def remove(self, number):
        cut = self.operation()
        if self.faults.remove_fails and self.chance.one_in(self.faults.remove_fails):
            raise OSError(5, "input/output error")
        if cut and self.operations % 2:
            raise PowerCut()
        self.note.remove(number, self.numbers())
        if cut and self.operations % 4:
            raise PowerCut()
        if number in self.segments:
            self.removed.append((number, self.segments.pop(number)))
        if cut:
            raise PowerCut()

    def keep_aside(self, number, offset):
        cut = self.operation()
        if cut and self.chance.one_in(2):
            raise PowerCut()
        if self.faults.aside_fails and self.chance.one_in(self.faults.aside_fails):
            raise OSError(28, "no space left")
        segment = self.segments[number]
        self.aside.append(segment.octets[offset:])
        if cut and self.chance.one_in(2):
            raise PowerCut()
        segment.octets = segment.octets[:offset]
        if segment.durable is not None:
            segment.durable = segment.durable[:offset]
        if cut:
            raise PowerCut()

    # The medium

    def operation(self):
        """Count an operation; true when the power goes in the middle of it."""
        self.operations += 1
        return self.operations == self.faults.cut_at

    def make_durable(self, segment):
        """What a sync does: all but what an earlier failed one has lost."""
        octets = segment.octets
        for start, end in segment.lost:
            octets = octets[:start] + bytes(end - start) + octets[end:]
        segment.durable = octets

    def forget_lost(self):
        """The program was killed: what it had written is there, but for what a failed sync has lost. True when there is any."""
        found = False
        for number in self.segments:
            segment = self.segments[number]
            if segment.lost:
                octets = segment.octets
                for start, end in segment.lost:
                    octets = octets[:start] + bytes(end - start) + octets[end:]
                segment.octets = octets
                found = True
        return found

    def lose_power(self):
        """What the medium holds when the power comes back."""
        while self.removed and self.chance.one_in(2):
            number, segment = self.removed.pop()
            self.segments[number] = segment
        self.removed = []
        for number in list(self.segments):
            segment = self.segments[number]
            kept = self.after_cut(segment)
            if kept is None:
                del self.segments[number]
            else:
                segment.octets = segment.durable = kept
                segment.lost = []

    def after_cut(self, segment):
        """The octets of one segment after a cut; None: it is not there."""
        durable = segment.durable if segment.durable is not None else b""
        self.make_durable(segment)
        cached = segment.durable
        if len(cached) == len(durable) and cached == durable:
            return durable
        how = self.chance.below(4)
        if how == 0:
            return durable if durable or self.chance.one_in(2) else None
        if how == 1:
            return cached
        if how == 2:
            return cached[: self.chance.between(len(durable), len(cached))]
        return self.some_pages(durable, cached)

    def some_pages(self, durable, cached):
        """Each page that was written is kept or not; one that is not is zeros or what was there; the end may be missing."""
        size = self.chance.pick(PAGES)
        result = durable
        at = len(durable)
        end = len(cached) if self.chance.one_in(2) else self.chance.between(at, len(cached))
        while at < end:
            stop = min((at // size + 1) * size, end)
            result += cached[at:stop] if self.chance.below(3) else bytes(stop - at)
            at = stop
        return result

    def flip(self):
        """Turn one bit of what was synced: (segment, offset), or None where there is nothing."""
        numbers = [number for number in self.numbers() if self.segments[number].octets]
        if not numbers:
            return None
        number = self.chance.pick(numbers)
        segment = self.segments[number]
        at = self.chance.below(len(segment.octets))
        segment.octets = segment.durable = flipped(segment.octets, at, self.chance.below(8))
        self.flipped = True
        return number, at

    def lose(self, chance):
        """Take a segment that is noted, or its octets: (number, true when it is still there), or None where there is none."""
        numbers = [number for number in self.numbers() if self.segments[number].octets and is_in(self.note.ranges, number)]
        if not numbers:
            return None
        number = chance.pick(numbers)
        stays = chance.one_in(2)
        if stays:
            self.segments[number].octets = self.segments[number].durable = b""
        else:
            del self.segments[number]
        self.flipped = True
        return number, stays

    def flip_at_work(self, chance):
        """The same while the broker works, where `chance` says; what is not synced stays so."""
        numbers = [number for number in self.numbers() if self.segments[number].durable and self.segments[number].octets]
        if not numbers:
            return None
        number = chance.pick(numbers)
        segment = self.segments[number]
        at, bit = chance.below(min(len(segment.durable), len(segment.octets)) or 1), chance.below(8)
        segment.octets = flipped(segment.octets, at, bit)
        segment.durable = flipped(segment.durable, at, bit)
        self.flipped = True
        return number

    def octets_in_all(self):
        """Octets of all segments."""
        return sum([len(segment.octets) for segment in self.segments.values()])


class DelayedStore(FaultyStore):
    """A FaultyStore that has a thread, as it were: what is begun takes some calls of `ended`, and the power may go at any time meanwhile.

    `delays` draws how many.
    """

    def __init__(self, chance, delays):
        FaultyStore.__init__(self, chance)
        self.delays = delays
        self.under_way = None  # (number, octets); octets None: a removal
        self.left = 0  # calls of `ended` that find it under way
        self.delayed = 0  # things that were begun and not done at once
        self.interrupted = 0  # crashes in the middle of one

    def begin(self, number, octets):
        """Begin to append and sync."""
        assert self.under_way is None, "one thing at a time"
        if self.watcher is not None:
            self.watcher.before_append()
        self.under_way = (number, octets)
        self.left = self.delays.pick((0, 1, 3, 10, 40))
        self.delayed += self.left > 0

    def begin_remove(self, number):
        """Begin to remove a segment."""
        assert self.under_way is None, "one thing at a time"
        self.under_way = (number, None)
        self.left = self.delays.pick((0, 1, 3))

    def ended(self):
        """True when what was begun is done."""
        if self.left:
            self.left -= 1
            return False
        if self.under_way is not None:
            (number, octets), self.under_way = self.under_way, None
            if octets is None:
                self.remove(number)
            else:
                self.put(number, octets)
                self.sync(number)
        return True

    def wait(self):
        """Until it is done."""
        self.left = 0

    def interrupt(self):
        """The program has ended in the middle of what was begun: the thread may have come to any point of it."""
        if self.under_way is None:
            return
        (number, octets), self.under_way = self.under_way, None
        self.left = 0
        self.interrupted += 1
        if octets is None:
            if self.operations % 2:
                self.note.remove(number, self.numbers())
            if self.chance.one_in(2) and number in self.segments:
                self.note.remove(number, self.numbers())
                self.removed.append((number, self.segments.pop(number)))
            return
        segment = self.segments.setdefault(number, Segment())
        segment.octets += bytes(octets[: self.chance.below(len(octets) + 1)] if self.chance.one_in(2) else octets)
        if self.chance.one_in(3):
            self.make_durable(segment)
            if self.operations % 2 and segment.octets.endswith(octets):
                self.removed = []
                self.note.add(number)


def flipped(octets, at, bit):
    """Octets with one bit turned."""
    octets = bytearray(octets)
    octets[at] ^= 1 << bit
    return bytes(octets)
