"""Octets from a peer that wait to be read: one fixed buffer, filled at `end`, read at `start`."""

from ..shim import copy, octets


class ReceiveBuffer:
    """`size` octets. `octets` is the view to read from, between `start` and `end`."""

    def __init__(self, size, engine):
        self.size = size
        self.octets = octets(size)
        self.address = engine.octets(self.octets)  # for the hot functions
        self.start = 0
        self.end = 0

    def reset(self):
        """Empty."""
        self.start = self.end = 0

    def room(self):
        """Octets that can be received behind `end`, after moving what waits to the front."""
        if self.start:
            left = self.end - self.start
            if left:
                copy(self.octets, 0, self.octets, self.start, left)
            self.start = 0
            self.end = left
        return self.size - self.end

    def writable(self):
        """The view to receive into; length 0 only when `size` octets wait."""
        self.room()
        return self.octets[self.end :] if self.end else self.octets

    def available(self):
        """Octets that wait to be read."""
        return self.end - self.start
