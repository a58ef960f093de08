"""Poison messages: one that has come back more often than x-delivery-limit is dead-lettered, or dropped and counted."""

from ...memory import layout
from .feature import Feature


class Rule(Feature):
    """x-delivery-limit: how often a message may be requeued."""

    def __init__(self, arguments):
        self.limit = min(arguments["x-delivery-limit"], 254)  # an entry counts to one more
        self.bit = layout.LIMIT_COUNTS | self.limit << layout.LIMIT_MOST

    def flat(self):
        """The rule reads no message on its way in."""
        return True

    def came_back(self, broker, queue, entry):
        """Drop or dead-letter a message that has come back too often.

        Rule "returns": also may_return in publish.py and in settle.c; test_homes.py holds them together.
        """
        if (broker.tables.entries[entry + layout.ENTRY_REDELIVERED] & 255) <= self.limit:
            return False
        broker.counters["delivery_limit"] += 1
        broker.discard(queue, entry, "delivery_limit")
        return True
