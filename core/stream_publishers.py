"""Idempotent publish to a stream: a publisher with a name and a rising sequence may publish again what it is not sure of.

Headers: x-publisher-id (text) and x-publisher-sequence (a number above 0). A message whose sequence is not above the last one of its
publisher is taken (its publisher is confirmed) and not appended. The PUBLISHERS_MAX that published last are known.
"""

from .shim import const

PUBLISHERS_MAX = const(1024)

MARK = b"\x0ex-publisher-id"


class Publishers:
    """The last sequence of each publisher of one stream. `reader` is set by the broker: properties (bytes) to a dict."""

    reader = None

    def __init__(self):
        self.last = {}
        self.order = []
        self.doubles = 0

    def recovered(self, octets, start, end):
        """Remember the sequence in the properties that stand at octets[start:end], of a message that has been appended before."""
        if octets.find(MARK, start, end) >= 0:
            doubles = self.doubles
            self.seen(octets[start:end])
            self.doubles = doubles

    def seen(self, octets):
        """True when a message with these properties has been appended before; else its sequence is remembered."""
        if MARK not in octets:
            return False
        headers = self.reader(octets).get("headers") or {}
        name = headers.get("x-publisher-id")
        sequence = headers.get("x-publisher-sequence")
        if not isinstance(name, str) or not isinstance(sequence, int):
            return False
        if sequence <= self.last.get(name, 0):
            self.doubles += 1
            return True
        if name not in self.last:
            if len(self.order) >= PUBLISHERS_MAX:
                del self.last[self.order.pop(0)]
            self.order.append(name)
        self.last[name] = sequence
        return False
