"""Identities that queues remember of past messages: message ids (x-deduplication), publishers (x-publisher-id), last values.

One pool for the whole broker, identity_count_max: a queue allocates a place for each new one, and where none is left the queue or stream
with the most places forgets its oldest. So queues that remember much yield to queues that remember little, and no queue's arguments reserve
memory. Values of last-value queues stand for messages that are there and are not forgotten: they have half of the pool at most. An identity
is kept as DIGEST_SIZE octets of its SHA-256, whatever its length.
"""

import hashlib

from ..shim import const, table

DIGEST_SIZE = const(15)  # with it an object of octets is 32 octets on a 32-bit MicroPython, and no peer can find two of the same digest


def digest(value):
    """The octets that stand for a value (text, number, octets ...)."""
    return hashlib.sha256(repr(value).encode()).digest()[:DIGEST_SIZE]


def pool_of(tables):
    """The pool of the broker with these tables."""
    if tables.identities is None:
        tables.identities = Pool(tables.identity_count_max)
    return tables.identities


class Pool:
    """How many places are left, and which Recent has places that may be freed for others."""

    def __init__(self, most):
        self.most = most
        self.places = table(2)  # that are left, and those with last values; C counts there too
        self.places[0] = most
        self.holders = []  # each a Recent with at least one identity

    @property
    def left(self):
        """Places that are left."""
        return self.places[0]

    @left.setter
    def left(self, count):
        self.places[0] = count

    @property
    def values(self):
        """Places with last values."""
        return self.places[1]

    def allocate(self):
        """Allocate a place for a Recent. This always succeeds: when none is left, the Recent with the most places frees its oldest."""
        if self.left == 0:
            largest = self.holders[0]
            for each in self.holders:
                if len(each.known) > len(largest.known):
                    largest = each
            largest.forget_oldest()
        self.left -= 1

    def has_value_left(self):
        """True when there is a place for a last value; last values have half of all places."""
        return self.values < self.most // 2

    def allocate_value(self):
        """Allocate a place for a last value; false when the half for last values is in use."""
        if not self.has_value_left():
            return False
        self.allocate()
        self.places[1] += 1
        return True

    def free_values(self, count):
        """Free places of last values."""
        self.places[1] -= count
        self.left += count


class Recent:
    """Identities with a number each, in the order in which they came. c_accel/remembering.py has it in C."""

    key_of = staticmethod(digest)

    def __init__(self, pool):
        self.pool = pool
        self.known = {}  # digest -> number
        self.order = []
        self.first = 0  # of `order`: where the oldest is

    def add(self, identity, number):
        """Remember an identity."""
        self.pool.allocate()
        if not self.known:
            self.pool.holders.append(self)
        self.known[identity] = number
        self.order.append(identity)

    def forget_oldest(self):
        """Free the place of the oldest."""
        del self.known[self.order[self.first]]
        self.order[self.first] = None
        self.first += 1
        if 2 * self.first > len(self.order):
            self.order = self.order[self.first :]
            self.first = 0
        self.pool.left += 1
        if not self.known:
            self.pool.holders.remove(self)

    def end(self):
        """The queue is deleted: free all places."""
        if self.known:
            self.pool.left += len(self.known)
            self.pool.holders.remove(self)
            self.known, self.order, self.first = {}, [], 0
