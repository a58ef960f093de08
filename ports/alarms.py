"""Which slots of a loop (ports/tcp.py) hear the time: slots with a due alarm, and slots with traffic.

An endpoint's `tick` says for how long it needs none (core/DESIGN.md section 1), so a thousand idle connections cost their due alarms alone.
"""

from heapq import heapify, heappop, heappush

if False:  # for the type checker alone
    from builtins import set as Set
    from typing import Any


class Alarms:
    """For `slot_count` slots. Times are milliseconds that do not wrap.

    `soon`: slots that hear the next tick. Of a slot one entry of `heap` counts, that at `entries[slot]`, and it is never later than
    `times[slot]`.
    """

    def __init__(self, slot_count: int) -> None:
        self.soon: "Set[int]" = set()
        self.times: list[int | None] = [None] * slot_count
        self.entries: list[int | None] = [None] * slot_count
        self.heap: "list[tuple[Any, int]]" = []  # (time, slot)

    def set(self, slot: int, time: int) -> None:
        """Set the alarm of `slot` to `time`; before that the slot is told the time only while it is in `soon`."""
        self.times[slot] = time
        entry = self.entries[slot]
        if entry is None or time < entry:
            self.entries[slot] = time
            heappush(self.heap, (time, slot))
            if len(self.heap) > 2 * len(self.times):
                self.heap = [(self.entries[each], each) for each in range(len(self.entries)) if self.entries[each] is not None]
                heapify(self.heap)

    def forget(self, slot: int) -> None:
        """Forget a slot that is free."""
        self.times[slot] = None
        self.soon.discard(slot)

    def due(self, now: int) -> "Set[int]":
        """The slots that hear the time at `now`, a set; the caller sets each of them again or puts it in `soon`."""
        slots = self.soon
        self.soon = set()
        while self.heap and self.heap[0][0] <= now:
            time, slot = heappop(self.heap)
            if self.entries[slot] != time:
                continue  # an earlier one came in its place
            self.entries[slot] = None
            wanted = self.times[slot]
            if wanted is None:
                continue
            if wanted <= now:
                slots.add(slot)
            else:
                self.set(slot, wanted)
        return slots
