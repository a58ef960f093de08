"""An unused queue is deleted: x-expires, in milliseconds without a consumer, a declaration or a basic.get."""

from ...shim import elapsed
from .feature import Feature


class Rule(Feature):
    """x-expires."""

    def __init__(self, arguments):
        self.after_ms = arguments["x-expires"]
        self.waited_ms = 0
        self.seen = None

    def flat(self):
        """The rule reads no message on its way in."""
        return True

    def tick(self, broker, queue):
        """Count the time without use; RabbitMQ counts from the last declare, get or consumer."""
        if queue.consumers or queue.used or self.seen is None:
            queue.used = False
            self.waited_ms = 0
        else:
            self.waited_ms += elapsed(broker.now, self.seen)
        self.seen = broker.now
        if self.waited_ms >= self.after_ms:
            broker.counters["queues_expired"] += 1
            broker.topology.drop_queue(queue)
