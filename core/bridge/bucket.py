"""A token bucket: how fast a backlog is replayed, in messages and in octets a second."""

from ..shim import elapsed


class Bucket:
    """`rate`: tokens a second, 0: no limit. A bucket holds the tokens of one second, and one message may overdraw it."""

    def __init__(self, rate):
        self.rate = rate
        self._thousandths = rate * 1000
        self._at = None

    def allows(self, now):
        """True when tokens may be spent at `now` (wrapping milliseconds)."""
        if not self.rate:
            return True
        if self._at is not None:
            self._thousandths = min(self._thousandths + max(elapsed(now, self._at), 0) * self.rate, self.rate * 1000)
        self._at = now
        return self._thousandths > 0

    def spend(self, count):
        """Spend `count` tokens."""
        if self.rate:
            self._thousandths -= count * 1000
