"""Settled positions of one queue, in memory that does not grow with how scattered they are: long runs as ranges, the rest as bits.

A page of bits covers PAGE positions; one whose bits are all set becomes part of the ranges. So what has been settled in order is one range,
and where every second message is settled each takes two bits.
"""

from ..shim import const

PAGE = const(4096)
_SHIFT = const(12)


class Settled:
    """`ranges`: rising list of [first, end) that do not touch; `pages`: page number -> bits; `end`: one above the highest position."""

    def __init__(self):
        self.ranges = []
        self.pages = {}
        self.counts = {}  # page number -> bits set
        self.lowest = 0  # pages below are forgotten
        self.end = 0

    def add(self, first, end):
        """Positions from `first` up to, and not with, `end` are settled."""
        self.end = max(self.end, end)
        whole, whole_end = (first + PAGE - 1) >> _SHIFT, end >> _SHIFT
        if whole < whole_end:
            add_range(self.ranges, whole << _SHIFT, whole_end << _SHIFT)
            for page in [page for page in self.pages if whole <= page < whole_end]:
                del self.pages[page], self.counts[page]
            self.set_bits(first, whole << _SHIFT)
            self.set_bits(whole_end << _SHIFT, end)
        else:
            self.set_bits(first, end)

    def add_one(self, position):
        """Settle one position."""
        self.end = max(self.end, position + 1)
        self.set_bits(position, position + 1)

    def set_bits(self, first, end):
        """Settle the positions [first, end), in pages that they do not fill."""
        while first < end:
            number = first >> _SHIFT
            stop = min(end, (number + 1) << _SHIFT)
            if not is_in(self.ranges, first):
                self.set_in_page(number, first, stop)
            first = stop

    def set_in_page(self, number, first, end):
        """Settle the positions [first, end) of page `number`."""
        bits = self.pages.get(number)
        if bits is None:
            bits = self.pages[number] = bytearray(PAGE >> 3)
            self.counts[number] = 0
        count = 0
        for position in range(first & PAGE - 1, ((end - 1) & PAGE - 1) + 1):
            if not bits[position >> 3] & 1 << (position & 7):
                bits[position >> 3] |= 1 << (position & 7)
                count += 1
        self.counts[number] += count
        if self.counts[number] == PAGE:
            del self.pages[number], self.counts[number]
            add_range(self.ranges, number << _SHIFT, (number + 1) << _SHIFT)

    def has(self, position):
        """True when a position is settled."""
        bits = self.pages.get(position >> _SHIFT)
        if bits is not None:
            return bool(bits[(position & PAGE - 1) >> 3] & 1 << (position & 7))
        return bool(self.ranges) and is_in(self.ranges, position)

    def covers(self, first, end):
        """True when all positions from `first` up to, and not with, `end` are settled."""
        while first < end:
            if not self.has(first):
                return False
            first = first + 1 if first >> _SHIFT in self.pages else end_of(self.ranges, first)
        return True

    def behind(self, position):
        """The first position from this one on that is not settled."""
        while self.has(position):
            position = position + 1 if position >> _SHIFT in self.pages else end_of(self.ranges, position)
        return position

    def forget_below(self, position):
        """Forget the positions below this one: no caller asks for them again."""
        number = position >> _SHIFT
        if number > self.lowest:
            for page in [page for page in self.pages if page < number]:
                del self.pages[page], self.counts[page]
            self.lowest = number
            while self.ranges and self.ranges[0][1] <= position:
                self.ranges.pop(0)


def add_range(ranges, first, end):
    """Put [first, end) into a rising list of ranges that do not touch."""
    low, high = 0, len(ranges)
    while low < high:
        middle = (low + high) // 2
        if ranges[middle][1] < first:
            low = middle + 1
        else:
            high = middle
    stop = low
    while stop < len(ranges) and ranges[stop][0] <= end:
        first = min(first, ranges[stop][0])
        end = max(end, ranges[stop][1])
        stop += 1
    ranges[low:stop] = [(first, end)]


def is_in(ranges, position):
    """True when a position lies in one of the ranges."""
    return end_of(ranges, position) is not None


def end_of(ranges, position):
    """The end of the range that a position lies in, or None."""
    low, high = 0, len(ranges)
    while low < high:
        middle = (low + high) // 2
        if ranges[middle][1] <= position:
            low = middle + 1
        else:
            high = middle
    return ranges[low][1] if low < len(ranges) and ranges[low][0] <= position else None
