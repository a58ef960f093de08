"""A last-value queue: of all ready messages with the same value of one header (x-last-value-key) only the newest stays.

The newest stands at the tail. A message that is delivered and not settled is out of the queue and is not replaced. Where the queues of the
broker know as many values as they may (identities.py), a message with a further one is refused.
"""

from ...memory import layout
from ...message import reading
from ...outcomes import REFUSED, TAKEN
from ..identities import digest, pool_of
from .feature import Feature

if False:  # for the type checker alone
    from typing import Any


class Rule(Feature):
    """x-last-value-key: the name of the header."""

    def __init__(self, arguments):
        self.header = arguments["x-last-value-key"]
        self.latest = {}  # digest of a value -> (entry, position)
        self.pool: "Any" = None

    def value_of(self, broker, message):
        """The digest of the value of a message's header, or None."""
        value = reading.header_of(broker.tables, message, self.header)
        return None if value is None or isinstance(value, (list, dict)) else digest(value)

    def has_place(self, broker, value):
        """True when a value is known, now at the latest."""
        if value in self.latest:
            return True
        if self.pool is None:
            self.pool = pool_of(broker.tables)
        if not self.pool.allocate_value():
            return False
        self.latest[value] = None
        return True

    def gate(self, broker, queue, message):
        """Refuse a message with a new value when no place for a value is left."""
        if pool_of(broker.tables).has_value_left():
            return TAKEN
        value = self.value_of(broker, message)
        if value is None or value in self.latest:
            return TAKEN
        broker.counters["rejected_publishes"] += 1
        return REFUSED

    def pushed(self, broker, queue, message, entry):
        """Drop the message that this one replaces."""
        entries = broker.tables.entries
        value = self.value_of(broker, message)
        if value is None or not self.has_place(broker, value):
            return
        entries[entry + layout.ENTRY_TAG] = layout.NONE  # not delivered
        old = self.latest[value]
        if is_ready(entries, queue, old):
            queue.unlink(old[0])
            queue.drop(old[0])
            broker.counters["replaced"] += 1
        self.latest[value] = (entry, entries[entry + layout.ENTRY_POSITION])
        self.forget_gone(entries, queue)

    def recovered(self, broker, queue):
        """The queue's messages came out of the log: remember the newest of each value as the one to be replaced."""
        entries = broker.tables.entries
        entry = queue.head()
        while entry != layout.NONE:
            value = self.value_of(broker, entries[entry + layout.ENTRY_MESSAGE])
            if value is not None and self.has_place(broker, value):
                entries[entry + layout.ENTRY_TAG] = layout.NONE
                self.latest[value] = (entry, entries[entry + layout.ENTRY_POSITION])
            entry = entries[entry + layout.ENTRY_NEXT]

    def tick(self, broker, queue):
        """Forget values whose message was delivered."""
        self.forget_gone(broker.tables.entries, queue)

    def forget_gone(self, entries, queue):
        """Keep `latest` at about the size of the queue."""
        if len(self.latest) > 2 * queue.message_count() + 16:
            kept = {value: newest for value, newest in self.latest.items() if is_ready(entries, queue, newest)}
            self.pool.free_values(len(self.latest) - len(kept))
            self.latest = kept

    def end(self):
        """Free the places."""
        if self.pool is not None:
            self.pool.free_values(len(self.latest))
            self.latest = {}


def is_ready(entries, queue, newest):
    """True when an entry is still that message, in the queue; its delivery gives it a tag, and its end 0. None: there was none."""
    if newest is None:
        return False
    entry, position = newest
    return (
        entries[entry + layout.ENTRY_QUEUE] == queue.handle
        and entries[entry + layout.ENTRY_POSITION] == position
        and entries[entry + layout.ENTRY_TAG] == layout.NONE
    )
