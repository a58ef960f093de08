"""Numbers by chance, from a seed: the same ones on every interpreter (MicroPython's `random` has no generators)."""

import sys


def seeds(first, count):
    """`count` seeds; MicroPython has every third of them: each takes ten times as long there."""
    return range(first, first + count, 3 if sys.implementation.name == "micropython" else 1)


class Random:
    """A linear congruential generator."""

    def __init__(self, seed):
        self.state = seed & 0x7FFFFFFF

    def below(self, count):
        """A number from 0 to below `count`, at most 2^23."""
        self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.state >> 8) % count

    def choice(self, items):
        """One of a list or a tuple."""
        return items[self.below(len(items))]

    def shuffle(self, items):
        """Put a list into another order."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]
