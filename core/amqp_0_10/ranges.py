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

    def has(self, id_):
        """True for an id of the set."""
        for first, last in reversed(self.runs):
            if distance(first, id_) >= 0:
                return distance(id_, last) >= 0
        return False

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

    def without(self, others):
        """The set that this is without the ids of another."""
        left, gone, at = Ranges(), others.runs, 0
        for first, last in self.runs:
            while at < len(gone) and distance(gone[at][1], first) > 0:
                at += 1
            behind = at
            while behind < len(gone) and distance(gone[behind][0], last) >= 0:
                if distance(first, gone[behind][0]) > 0:
                    left.runs.append([first, after(gone[behind][0], -1)])
                first = after(gone[behind][1], 1)
                behind += 1
            if distance(first, last) >= 0:
                left.runs.append([first, last])
            at = max(at, behind - 1)  # the last one may reach into the next range
        return left
