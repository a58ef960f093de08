"""Priorities: x-max-priority levels; a message with a higher priority property goes before all of lower ones.

The queue stays one list, ordered by level and then by age, so that delivery is the same as without priorities. memory/levels.py has the way
in, which the hot path takes too, and says what the last entry of each level knows; here is what returns to its level, or leaves it other
than at the head.
"""

from ...memory import layout, levels
from ...message import reading
from ..queue import STEPS_A_TURN
from .feature import Feature


class Rule(Feature):
    """x-max-priority."""

    def __init__(self, arguments):
        self.highest = arguments["x-max-priority"]

    def flat(self):
        """The flat record has the highest level."""
        return True

    def pushed(self, broker, queue, message, entry):
        """Move a message from the tail to its place."""
        tables = broker.tables
        levels.to_level(tables.messages, tables.entries, tables.queues, queue.handle, entry, self.highest)

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
            entries[entry + layout.ENTRY_REDELIVERED] = 1 | level << layout.ENTRY_LEVEL
            entry = entries[entry + layout.ENTRY_NEXT]
        while queue.pop() != layout.NONE:
            pass  # each still knows the one behind it
        while first != layout.NONE:
            entry, first = first, entries[first + layout.ENTRY_NEXT]
            behind, last, above = self.around(queue, entries[entry + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL)
            self.put(queue, entry, above if last == layout.NONE else last, behind, above)

    def requeue(self, queue, entry):
        """Put an entry that is in no list back within its level, at its age."""
        entries = queue.tables.entries
        level = entries[entry + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL
        head = queue.head()
        if head != layout.NONE and entries[head + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL == level and queue.is_later(head, entry):
            queue.link(entry, layout.NONE)  # where nearly all of many go that come back together: no other level is looked at
            return
        behind, last, above = self.around(queue, level)
        before = above
        node = queue.head() if before == layout.NONE else entries[before + layout.ENTRY_NEXT]
        steps = 0
        while (
            node != layout.NONE and entries[node + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL == level and queue.is_later(entry, node)
        ):
            before = node
            node = entries[node + layout.ENTRY_NEXT]
            steps += 1
        queue.tables.state[layout.STATE_LEFT] -= steps * queue.tables.engine.effort // STEPS_A_TURN
        if last == layout.NONE or before == last:
            self.put(queue, entry, before, behind, above)
        else:
            queue.link(entry, before)

    def put(self, queue, entry, before, behind, above):
        """Link an entry as the last of its level; `behind` and `above`: those of the levels next to it, or NONE."""
        queue.link(entry, before)
        entries = queue.tables.entries
        entries[entry + layout.LEVEL_ABOVE] = -2 - above
        if behind != layout.NONE:
            entries[behind + layout.LEVEL_ABOVE] = -2 - entry

    def lasts(self, queue):
        """The last entry of each level that has messages, the lowest first."""
        entries, head, lasts = queue.tables.entries, queue.head(), []
        node = queue.tables.queues[queue.handle + layout.QUEUE_TAIL]
        while node != layout.NONE:
            lasts.append(node)
            if (
                entries[node + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL
                >= entries[head + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL
            ):
                break
            node = -2 - entries[node + layout.LEVEL_ABOVE]
        return lasts

    def around(self, queue, level):
        """(The last entry of the next lower level, of this one, of the next higher one); NONE: it has none."""
        entries, head = queue.tables.entries, queue.head()
        behind = here = layout.NONE
        node = queue.tables.queues[queue.handle + layout.QUEUE_TAIL]
        while node != layout.NONE:  # as `lasts`, without a list: what comes back must find its place
            reached = entries[node + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL
            if reached > level:
                return behind, here, node
            if reached == level:
                here = node
            else:
                behind = node
            if reached >= entries[head + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL:
                break
            node = -2 - entries[node + layout.LEVEL_ABOVE]
        return behind, here, layout.NONE

    def leave(self, queue, entry):
        """An entry behind the head is about to leave: when it is the last of its level, the one before it is so from now on."""
        entries = queue.tables.entries
        before, behind = entries[entry + layout.ENTRY_PREVIOUS], entries[entry + layout.ENTRY_NEXT]
        level = entries[entry + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL
        if behind != layout.NONE:
            if entries[behind + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL == level:
                return
            node = queue.tables.queues[queue.handle + layout.QUEUE_TAIL]
            while entries[node + layout.LEVEL_ABOVE] != -2 - entry:
                node = -2 - entries[node + layout.LEVEL_ABOVE]
            entries[node + layout.LEVEL_ABOVE] = -2 - before
        if entries[before + layout.ENTRY_REDELIVERED] >> layout.ENTRY_LEVEL == level:
            entries[before + layout.LEVEL_ABOVE] = entries[entry + layout.LEVEL_ABOVE]
