"""The store of staged contents of a broker without a log: octets in memory, gone with the run. As ../log/segments.py has stores."""


class MemoryStore:
    """Numbers of bytearrays."""

    def __init__(self):
        self.octets = {}

    def numbers(self):
        """All numbers, rising."""
        return sorted(self.octets)

    def size(self, number):
        """Octets of one."""
        return len(self.octets[number])

    def read(self, number, offset, size):
        """Octets of one (bytes); fewer at its end."""
        return bytes(memoryview(self.octets[number])[offset : offset + size])

    def append(self, number, octets):
        """Write at the end of one."""
        if number not in self.octets:
            self.octets[number] = bytearray()
        self.octets[number].extend(octets)

    def sync(self, number):
        """Nothing: memory is as durable as it gets."""

    def remove(self, number):
        """Remove one."""
        del self.octets[number]
