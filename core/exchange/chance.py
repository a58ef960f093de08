"""Draws for the exchange types that choose at random: a sequence of numbers that follows from a seed alone, so that a run can be repeated.

Laws: `next_number` stays the same until the walk calls `drawn`, once a queue has accepted the message. A message without room is routed
again with the same number.
"""

import hashlib

from .base import Exchange

SPAN = 1 << 32


def number(seed, count):
    """The draw number `count` of a seed (bytes): a whole number below SPAN."""
    return int.from_bytes(hashlib.sha256(seed + b"/" + str(count).encode()).digest()[:4], "big")


class Chance(Exchange):
    """Base of the types that draw."""

    looks_at_key = False
    draws = True

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.count = 0
        self.destinations = []

    def seed_with(self, nonce):
        """Keep the seed."""
        self.seed = nonce

    def add(self, binding):
        """Add a destination to choose from."""
        self.destinations.append(binding.destination)

    def remove(self, binding):
        """Remove a destination."""
        self.destinations.remove(binding.destination)

    def next_number(self):
        """The number of the next message, below SPAN."""
        return number(self.seed, self.count)

    def loses(self):
        """True when the next message is dropped."""
        return False

    def drawn(self):
        """Go on to the next number: a queue has accepted the message of this draw."""
        self.count += 1
