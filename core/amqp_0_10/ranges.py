"""Sets of ids of commands, as ranges of serial numbers (memory/serial.py)."""

from ..errors import RESOURCE_ERROR
from ..memory.serial import after, distance
from ..shim import const
from .conditions import SessionError

RUNS_MAX = const(1024)  # ranges of a set that a peer makes: one of a peer that leaves no holes has one or two


class Ranges:
    """A set of serial numbers that fills up from the front: `runs`, [[first, last]], ascending, none touching another."""

    def __init__(self):
        self.runs: "list" = []

    def add(self, first, last):
        """Put a range in."""
        runs, at = self.runs, len(self.runs)
        while at and distance(first, runs[at - 1][1]) >= -1:
            at -= 1
        end = at
        while end < len(runs) and distance(runs[end][0], last) >= -1:
            first = runs[end][0] if distance(runs[end][0], first) > 0 else first
            last = runs[end][1] if distance(last, runs[end][1]) > 0 else last
            end += 1
        runs[at:end] = [[first, last]]

    def check(self):
        """Raise resource-error for a peer that leaves too many holes."""
        if len(self.runs) > RUNS_MAX:
            raise SessionError(RESOURCE_ERROR, "ids of commands in more than %d ranges" % RUNS_MAX)

    def merge(self, others):
        """Put all of another set in."""
        self.runs = joined(self.runs, others.runs).runs

    def has(self, id_):
        """True for an id of the set."""
        low, high = 0, len(self.runs)
        while low < high:
            middle = (low + high) // 2
            if distance(self.runs[middle][1], id_) > 0:
                low = middle + 1
            else:
                high = middle
        return low < len(self.runs) and distance(self.runs[low][0], id_) >= 0

    def without(self, others):
        """The set that this is without the ids of another."""
        left = Ranges()
        for _, first, last in remains(self.runs, others.runs):
            left.runs.append([first, last])
        return left


def ascending(ranges):
    """The set of [(first, last)] in any order, as a peer may send thousands of them. They mostly ascend, which costs MicroPython's own sort
    a step for each two of them."""
    at = 1
    while at < len(ranges) and distance(ranges[at - 1][0], ranges[at][0]) >= 0:
        at += 1
    if at >= len(ranges):
        return joined(ranges, ())
    middle = len(ranges) // 2
    return joined(ascending(ranges[:middle]).runs, ascending(ranges[middle:]).runs)


def joined(some, others):
    """The set of two lists of ranges that ascend."""
    made, at = Ranges(), 0
    for first, last in some:
        while at < len(others) and distance(others[at][0], first) >= 0:
            made.add(others[at][0], others[at][1])
            at += 1
        made.add(first, last)
    while at < len(others):
        made.add(others[at][0], others[at][1])
        at += 1
    return made


def overlaps(runs, given):
    """[(place in `runs`, first, last)] of what is in both: lists of ascending ranges, whose first two items are their ids."""
    both, at = [], 0
    for place in range(len(runs)):
        begin, end = runs[place][0], runs[place][1]
        while at < len(given) and distance(given[at][1], begin) > 0:
            at += 1
        behind = at
        while behind < len(given) and distance(given[behind][0], end) >= 0:
            first, last = given[behind][0], given[behind][1]
            both.append((place, begin if distance(first, begin) > 0 else first, end if distance(end, last) > 0 else last))
            behind += 1
        at = max(at, behind - 1)  # the last one may reach into the next run
    return both


def remains(runs, given):
    """[(place in `runs`, first, last)] of what is in `runs` and not in `given`."""
    left, pieces, at = [], overlaps(runs, given), 0
    for place in range(len(runs)):
        begin = runs[place][0]
        while at < len(pieces) and pieces[at][0] == place:
            if distance(begin, pieces[at][1]) > 0:
                left.append((place, begin, after(pieces[at][1], -1)))
            begin = after(pieces[at][2], 1)
            at += 1
        if distance(begin, runs[place][1]) >= 0:
            left.append((place, begin, runs[place][1]))
    return left
