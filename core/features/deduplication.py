"""De-duplication: x-deduplication is how many message-ids a queue remembers; a message whose id is among them is taken and not kept.

The publisher gets its confirm: for it the message has arrived. A message without a message-id is always kept.
"""

from .feature import SWALLOWED, TAKEN, Feature

WINDOW_MAX = 100000


class Rule(Feature):
    """x-deduplication."""

    def __init__(self, arguments):
        self.window = min(arguments["x-deduplication"], WINDOW_MAX)
        self.order = [None] * self.window
        self.at = 0
        self.known = {}

    def gate(self, broker, queue, message):
        """Look the message-id up, and remember it."""
        identity = broker.properties_of(message).get("message_id")
        if identity is None:
            return TAKEN
        if identity in self.known:
            broker.counters["deduplicated"] += 1
            return SWALLOWED
        oldest = self.order[self.at]
        if oldest is not None:
            del self.known[oldest]
        self.order[self.at] = identity
        self.known[identity] = True
        self.at = (self.at + 1) % self.window
        return TAKEN
