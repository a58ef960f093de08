"""De-duplication: x-deduplication is how many message-ids a queue remembers; the queue accepts a message whose id is among them and does
not keep it.

The publisher gets its confirm: for it the message has arrived. A message without a message-id is always kept. The ids that all queues
together remember are bounded (identities.py).
"""

from ...memory.layout import LIMIT_REMEMBERS
from ...message import reading
from ...outcomes import SWALLOWED, TAKEN
from ..identities import Recent, pool_of
from .feature import Feature


class Rule(Feature):
    """x-deduplication."""

    bit = LIMIT_REMEMBERS

    def __init__(self, arguments):
        self.window = arguments["x-deduplication"]
        self.recent = None

    def gate(self, broker, queue, message):
        """Look the message-id up, and remember it."""
        identity = reading.field_of(broker.tables, message, "message_id")
        if identity is None:
            return TAKEN
        if self.recent is None:
            self.recent = Recent(pool_of(broker.tables))
        identity = self.recent.key_of(identity)
        if identity in self.recent.known:
            broker.counters["deduplicated"] += 1
            return SWALLOWED
        if len(self.recent.known) >= self.window:
            self.recent.forget_oldest()
        self.recent.add(identity, 0)
        return TAKEN

    def end(self):
        """Free the places."""
        if self.recent is not None:
            self.recent.end()
