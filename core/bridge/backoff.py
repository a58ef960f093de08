"""How long to wait before the next attempt to connect: decorrelated jitter.

Each pause lies at random between the base and three times the pause before it, at most the cap: peers that lost the same broker
at the same moment spread out, and do not come back in step. The caller gives the random number.
"""


class Backoff:
    """Pauses in milliseconds between `base_ms` and `cap_ms`."""

    def __init__(self, base_ms=500, cap_ms=30000):
        assert 0 < base_ms <= cap_ms
        self._base_ms = base_ms
        self._cap_ms = cap_ms
        self._pause_ms = base_ms

    def next_ms(self, random_number):
        """The next pause. `random_number`: a whole number >= 0, evenly spread over far more than 3 x `cap_ms` (30 random bits do)."""
        span = self._pause_ms * 3 - self._base_ms
        pause_ms = self._base_ms + random_number % (span + 1)
        self._pause_ms = min(pause_ms, self._cap_ms)
        return self._pause_ms

    def reset(self):
        """Start the next pause from the base again, after a connection that held."""
        self._pause_ms = self._base_ms
