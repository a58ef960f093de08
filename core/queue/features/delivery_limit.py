"""Poison messages: one that has come back more often than x-delivery-limit is dead-lettered, or dropped and counted."""

from ...memory import layout
from .feature import Feature


class Rule(Feature):
    """x-delivery-limit: how often a message may be requeued."""

    def __init__(self, arguments):
        self.limit = arguments["x-delivery-limit"]

    def flat(self):
        """The rule reads no message on its way in."""
        return True

    def came_back(self, broker, queue, entry):
        """Drop or dead-letter a message that has come back too often."""
        if (broker.tables.entries[entry + layout.ENTRY_REDELIVERED] & 255) <= min(self.limit, 254):
            return False
        broker.counters["delivery_limit"] += 1
        broker.discard(queue, entry, "delivery_limit")
        return True
