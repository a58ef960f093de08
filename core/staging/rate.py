"""The rate of a consumer of class stream (stream.qos, consume-rate: octets a second), in every family.

A bucket holds a second of it; a delivery empties the bucket by its header and body, below 0 too. While it is below 0 packets with
priorities from 0 to 4 are dropped, and counted (stream_dropped); those from 5 to 9 wait.
"""

from ..message import reading
from ..shim import const, elapsed

HIGH = const(5)  # the lowest priority of the upper level ("priorities 0-4 and 5-9 are treated as two distinct levels")
FULL_MS = const(1000)  # of its rate that a bucket holds

LET, DROP, WAIT = 0, 1, 2  # what becomes of a packet


class Rate:
    """Of one consumer."""

    def __init__(self, broker):
        self.broker = broker
        self.rate = 0  # octets a second, 0: no limit
        self.bucket = 0  # thousandths of octets that may be delivered now
        self.filled_at = broker.now

    def set(self, rate):
        """A new rate: the bucket is full."""
        self.rate = rate
        self.bucket, self.filled_at = FULL_MS * rate, self.broker.now

    def fill(self):
        """Time has passed: the bucket fills. True when a delivery may begin."""
        now = self.broker.now
        self.bucket = min(self.bucket + self.rate * max(elapsed(now, self.filled_at), 0), FULL_MS * self.rate)
        self.filled_at = now
        return not self.rate or self.bucket > 0

    def asked(self, message):
        """LET, DROP or WAIT: what the rate says of the next packet."""
        if self.fill():
            return LET
        return WAIT if reading.priority_of(self.broker.tables, message) >= HIGH else DROP

    def used(self, size):
        """A packet of `size` octets was delivered."""
        self.bucket -= 1000 * size if self.rate else 0


def drop(broker, queue, entry):
    """Drop the packet at the head of a queue."""
    queue.pop()
    queue.drop(entry)
    broker.counters["stream_dropped"] += 1
