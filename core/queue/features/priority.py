"""Priorities: x-max-priority levels; a message with a higher priority property goes before all of lower ones.

The queue stays one list, ordered by level and then by age, so that delivery is the same as without priorities. Messages leave only at the
head, so a level above the head's is empty; the last entry of each other level is remembered.
"""

from ...memory import layout
from ...message import reading
from ..queue import STEPS_A_TURN
from .feature import Feature

SHIFT = 8  # the level stands above the count of returns in ENTRY_REDELIVERED


class Rule(Feature):
    """x-max-priority."""

    def __init__(self, arguments):
        self.highest = arguments["x-max-priority"]
        self.tails = [layout.NONE] * (self.highest + 1)

    def pushed(self, broker, queue, message, entry):
        """Move a message from the tail to its place."""
        level = min(reading.priority_of(broker.tables, message), self.highest)
        entries = broker.tables.entries
        queue.unlink(entry)
        entries[entry + layout.ENTRY_REDELIVERED] |= level << SHIFT
        self.place(queue, entries, entry, level)

    def recovered(self, broker, queue):
        """Put every message at its level; one whose level cannot be read is at the lowest."""
        entries = broker.tables.entries
        first = entry = queue.head()
        while entry != layout.NONE:
            try:
                level = min(reading.priority_of(broker.tables, entries[entry + layout.ENTRY_MESSAGE]), self.highest)
            except Exception as error:  # an error of ours: the message has the lowest level
                broker.guard.trouble("a message of queue '%s'", queue.name, error)
                level = 0
            entries[entry + layout.ENTRY_REDELIVERED] = 1 | level << SHIFT
            entry = entries[entry + layout.ENTRY_NEXT]
        while queue.pop() != layout.NONE:
            pass  # each still knows the one behind it
        while first != layout.NONE:
            entry, first = first, entries[first + layout.ENTRY_NEXT]
            self.place(queue, entries, entry, entries[entry + layout.ENTRY_REDELIVERED] >> SHIFT)

    def requeue(self, queue, entry):
        """Put an entry that is in no list back within its level, at its age."""
        entries = queue.tables.entries
        level = entries[entry + layout.ENTRY_REDELIVERED] >> SHIFT
        self.forget_emptied(queue, entries)
        before = self.tail_above(level)
        behind = queue.head() if before == layout.NONE else entries[before + layout.ENTRY_NEXT]
        steps = 0
        while behind != layout.NONE and entries[behind + layout.ENTRY_REDELIVERED] >> SHIFT == level and queue.is_later(entry, behind):
            before = behind
            behind = entries[behind + layout.ENTRY_NEXT]
            steps += 1
        queue.tables.state[layout.STATE_LEFT] -= steps * queue.tables.engine.effort // STEPS_A_TURN
        queue.link(entry, before)
        if self.tails[level] == layout.NONE or self.tails[level] == before:
            self.tails[level] = entry

    def place(self, queue, entries, entry, level):
        """Put an entry behind all of its level and above."""
        self.forget_emptied(queue, entries)
        before = self.tails[level] if self.tails[level] != layout.NONE else self.tail_above(level)
        queue.link(entry, before)
        self.tails[level] = entry

    def tail_above(self, level):
        """The last entry of the levels above, or NONE."""
        for higher in range(level + 1, self.highest + 1):
            if self.tails[higher] != layout.NONE:
                return self.tails[higher]
        return layout.NONE

    def forget_emptied(self, queue, entries):
        """Forget the tails of levels whose messages have all been delivered."""
        head = queue.head()
        top = -1 if head == layout.NONE else entries[head + layout.ENTRY_REDELIVERED] >> SHIFT
        for level in range(top + 1, self.highest + 1):
            self.tails[level] = layout.NONE
