"""Settled places that are not written yet: ranges of positions of each queue in the log, and the records that they become.

    long queue id | short ranges | for each: longlong first position | long how many

A queue's list stays when its ranges are written, so that the next settlement makes no heap on a board.
"""

import struct

from .segments import SETTLED


class Settlements:
    """Gathered since the last record. `count`: how often something was added; `identities`: queue ids that have something."""

    def __init__(self):
        self.ranges: dict = {}  # queue id -> first and end of each of its ranges, in turn
        self.identities: list = []
        self.count = 0

    def add(self, identity, first, end):
        """Add [first, end), joined to the last range of its queue where it fits there."""
        self.count += 1
        if identity not in self.ranges:
            self.ranges[identity] = []
        ranges = self.ranges[identity]
        if not ranges:
            self.identities.append(identity)
        elif ranges[-1] == first:
            ranges[-1] = end
            return
        elif ranges[-2] == end:
            ranges[-2] = first
            return
        ranges.append(first)
        ranges.append(end)

    def forget(self, identity):
        """A queue is gone."""
        self.ranges.pop(identity, None)
        if identity in self.identities:
            self.identities.remove(identity)

    def write(self, log):
        """Append the records."""
        while self.identities:
            identity = self.identities[-1]
            ranges = self.ranges[identity]
            size = 6 + 6 * len(ranges)
            at = log.place_for(SETTLED, size)
            room = log.gathered.room
            struct.pack_into(">IH", room, at, identity, len(ranges) >> 1)
            for index in range(0, len(ranges), 2):
                struct.pack_into(">QI", room, at + 6 + 6 * index, ranges[index], ranges[index + 1] - ranges[index])
            log.put(size)
            self.identities.pop()
            ranges.clear()
        self.count = 0
