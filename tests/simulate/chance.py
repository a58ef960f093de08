"""A small generator of pseudo-random numbers: the same on both interpreters and for ever, so that a seed reruns exactly."""


class Chance:
    """xorshift of 32 bits, seeded with a whole number."""

    def __init__(self, seed):
        self.state = (seed * 2654435761 + 0x9E3779B9) & 0xFFFFFFFF or 1
        for _ in range(4):
            self.draw()

    def draw(self):
        """A number from 0 to 2^32 - 1."""
        state = self.state
        state ^= (state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state ^= (state << 5) & 0xFFFFFFFF
        self.state = state
        return state

    def below(self, count):
        """A number from 0 to count - 1."""
        return (self.draw() >> 3) % count

    def between(self, least, most):
        """A number from least to most."""
        return least + self.below(most - least + 1)

    def one_in(self, count):
        """True once in `count` times."""
        return self.below(count) == 0

    def pick(self, items):
        """One of a list."""
        return items[self.below(len(items))]

    def weighted(self, pairs):
        """One of the first items of (item, weight) pairs."""
        at = self.below(sum([weight for _, weight in pairs]))
        for item, weight in pairs:
            at -= weight
            if at < 0:
                return item
        raise ValueError("weights that sum to nothing")
