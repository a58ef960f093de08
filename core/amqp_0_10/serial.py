"""Serial numbers of commands (RFC 1982, 32 bits), and sets of ranges of them."""

from ..shim import const

ALL = const(0xFFFFFFFF)


def after(number, count):
    """The number `count` behind another."""
    return (number + count) & ALL


def distance(first, second):
    """How far `second` is behind `first`: from -2**31 to 2**31 - 1."""
    count = (second - first) & ALL
    return count - 0x100000000 if count & 0x80000000 else count


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

    def remove(self, first, last):
        """Take a range out."""
        runs = []
        for run in self.runs:
            if distance(last, run[0]) > 0 or distance(run[1], first) > 0:
                runs.append(run)
                continue
            if distance(run[0], first) > 0:
                runs.append([run[0], after(first, -1)])
            if distance(last, run[1]) > 0:
                runs.append([after(last, 1), run[1]])
        self.runs = runs
