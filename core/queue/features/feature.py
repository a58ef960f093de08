"""The hooks of a queue's features; each feature overrides those that it needs. A queue without features pays for none of this."""

from ...outcomes import TAKEN


class Feature:
    """Hooks of one queue's feature. `queue` is the Queue, `entry` and `message` are records. `bit`: what it adds to QUEUE_LIMITS; some
    bits ask an engine to do all in its place (`limits` of an engine)."""

    bit = 0

    def flat(self):
        """True when the queue's flat record holds all that the feature does as messages come and go, or the feature does nothing then."""
        return False

    def gate(self, broker, queue, message):
        """Whether the queue accepts a message: TAKEN, REFUSED or SWALLOWED."""
        return TAKEN

    def pushed(self, broker, queue, message, entry):
        """A message has been put at the tail."""

    def full(self, queue):
        """True when publishers must wait."""
        return False

    def before_delivery(self, broker, queue):
        """The head is about to be delivered."""

    def came_back(self, broker, queue, entry):
        """An entry (in no list) is to be requeued; true when the feature keeps it from the queue."""
        return False

    def recovered(self, broker, queue):
        """The queue's messages came out of the log, in the order of their positions, without the hooks above."""

    def tick(self, broker, queue):
        """Time has passed."""

    def end(self):
        """The queue is deleted, or a policy removes the feature."""
