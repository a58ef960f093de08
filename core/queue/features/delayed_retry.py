"""Delayed retry: a message that comes back waits before it is delivered again: x-delayed-retry-min milliseconds for each time it has come
back, at most x-delayed-retry-max (the names of RabbitMQ 4.3's quorum queues)."""

from ...memory import layout
from .feature import Feature


class Rule(Feature):
    """x-delayed-retry-min, x-delayed-retry-max."""

    bit = layout.LIMIT_RETURNS

    def __init__(self, arguments):
        self.least_ms = arguments.get("x-delayed-retry-min", 1000)
        self.most_ms = max(arguments.get("x-delayed-retry-max", self.least_ms), self.least_ms)

    def flat(self):
        """The rule reads no message on its way in."""
        return True

    def came_back(self, broker, queue, entry):
        """Keep the entry in no list until its delay has passed."""
        count = broker.tables.entries[entry + layout.ENTRY_REDELIVERED] & 255
        broker.waiting.add(broker, min(self.least_ms * count, self.most_ms), queue, entry)
        return True
