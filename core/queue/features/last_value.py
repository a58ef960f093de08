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


class Latest:
    """The newest message of each value. c_accel/remembering.py has it in C."""

    key_of = staticmethod(digest)

    def __init__(self, pool):
        self.pool = pool
        self.known: dict = {}  # key -> (entry, position)

    def __len__(self):
        return len(self.known)

    def newest(self, key):
        """(entry, position) of the message that was remembered last with a key, or None."""
        return self.known.get(key)

    def remember(self, key, entry, position):
        """Remember the newest message with a key; false: there is no place for a further one."""
        if key not in self.known and not self.pool.allocate_value():
            return False
        self.known[key] = (entry, position)
        return True

    def forget_gone(self, entries, queue):
        """Forget the keys whose message is no longer in the queue."""
        kept = {key: newest for key, newest in self.known.items() if is_ready(entries, queue, newest)}
        self.pool.free_values(len(self.known) - len(kept))
        self.known = kept

    def end(self):
        """Free the places."""
        self.pool.free_values(len(self.known))
        self.known = {}


class Rule(Feature):
    """x-last-value-key: the name of the header."""

    bit = layout.LIMIT_LATEST

    def __init__(self, arguments):
        self.header = arguments["x-last-value-key"]
        self.latest: "Any" = None

    def key_in(self, broker, message):
        """The key of the value of a message's header, or None."""
        if self.latest is None:
            self.latest = Latest(pool_of(broker.tables))
        value = reading.header_of(broker.tables, message, self.header)
        return None if value is None or isinstance(value, (list, dict)) else self.latest.key_of(value)

    def remember(self, tables, key, entry):
        """An entry that is not delivered is the newest with a key; false: there is no place for the key."""
        if not self.latest.remember(key, entry, tables.entries[entry + layout.ENTRY_POSITION]):
            return False
        tables.entries[entry + layout.ENTRY_TAG] = layout.NONE
        return True

    def gate(self, broker, queue, message):
        """Refuse a message with a new value when no place for a value is left."""
        if pool_of(broker.tables).has_value_left():
            return TAKEN
        key = self.key_in(broker, message)
        if key is None or self.latest.newest(key) is not None:
            return TAKEN
        broker.counters["rejected_publishes"] += 1
        return REFUSED

    def pushed(self, broker, queue, message, entry):
        """Drop the message that this one replaces."""
        tables = broker.tables
        key = self.key_in(broker, message)
        if key is None:
            return
        old = self.latest.newest(key)
        if not self.remember(tables, key, entry):
            return
        if is_ready(tables.entries, queue, old):
            queue.unlink(old[0])
            queue.drop(old[0])
            tables.state[layout.STATE_REPLACED] += 1
        self.forget_gone(tables.entries, queue)

    def recovered(self, broker, queue):
        """The queue's messages came out of the log: remember the newest of each value as the one to be replaced."""
        entries = broker.tables.entries
        entry = queue.head()
        while entry != layout.NONE:
            key = self.key_in(broker, entries[entry + layout.ENTRY_MESSAGE])
            if key is not None:
                self.remember(broker.tables, key, entry)
            entry = entries[entry + layout.ENTRY_NEXT]

    def tick(self, broker, queue):
        """Forget values whose message was delivered."""
        self.forget_gone(broker.tables.entries, queue)

    def forget_gone(self, entries, queue):
        """Keep `latest` at about the size of the queue."""
        if self.latest is not None and len(self.latest) > 2 * queue.message_count() + 16:
            self.latest.forget_gone(entries, queue)

    def end(self):
        """Free the places."""
        if self.latest is not None:
            self.latest.end()


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
