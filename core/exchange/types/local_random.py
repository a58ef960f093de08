"""x-local-random: each message to one of the bound queues, drawn at random (RabbitMQ 4's local random exchange; all our queues are local).

Binding keys are empty and destinations are classic queues, as there. The draws follow from the broker's nonce and the exchange's name.
"""

from ..base import refuse
from ..chance import Chance


class Type(Chance):
    """One of `destinations`."""

    type = "x-local-random"

    def check_binding(self, destination, key, arguments):
        """Keep RabbitMQ's rules for a binding: an empty key, a classic queue."""
        if key:
            refuse("Non empty binding '%s' key not permitted" % str(key, "utf-8"))
        if destination.is_exchange:
            refuse("Destination not found")
        if destination.is_stream:
            refuse("Queue type rabbit_stream_queue not valid for this exchange type")

    def match(self, key, properties):
        """The destination that the next draw names."""
        if not self.destinations:
            return ()
        return (self.destinations[self.next_number() % len(self.destinations)],)
