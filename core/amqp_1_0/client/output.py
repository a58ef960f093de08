"""Output of the client: one fixed buffer of whole frames.

    | sent | pending: start to end | room | kept for answers |

Laws: frames are put in whole; requests and messages leave the last `kept` octets free for what the protocol demands of us.
"""

from ...errors import RESOURCE_ERROR, ProtocolError


def place(view, at, octets):
    """Copy `octets` to `at` of a memoryview; the two may overlap. MicroPython moves the tail of what a slice is assigned to: here there is
    none."""
    target = view[at : at + len(octets)]
    target[:] = octets


class Output:
    """`size` octets, of which `kept` are for answers only."""

    def __init__(self, size, kept):
        self._octets = memoryview(bytearray(size))
        self.limit = size - kept
        self.clear()

    def clear(self):
        """Empty, for a new stream."""
        self._start = self._end = 0

    def pending(self):
        """The octets to be sent."""
        return self._octets[self._start : self._end]

    def is_empty(self):
        """True when no octets wait."""
        return self._start == self._end

    def sent(self, n):
        """The first n octets of `pending()` were sent."""
        self._start += n
        if self.is_empty():
            self.clear()

    def free(self):
        """Octets that a request may have now."""
        return self.limit - self._end + self._start

    def write(self, octets):
        """A request's frame: true, or false when there is no room now. Raises ValueError when it can never fit."""
        if len(octets) > self.limit:
            raise ValueError("a frame of %d octets; the send buffer takes %d" % (len(octets), self.limit))
        if len(octets) > self.free():
            return False
        self.put(octets)
        return True

    def answer(self, octets):
        """A frame that the protocol demands. Raises ProtocolError without room even for that: the peer has long not been reading."""
        if self._end - self._start + len(octets) > len(self._octets):
            raise ProtocolError(RESOURCE_ERROR, "the peer does not read")
        self.put(octets)

    def put(self, octets):
        """Append octets for which there is room once waiting ones are moved to the front."""
        if self._end + len(octets) > len(self._octets):
            place(self._octets, 0, self._octets[self._start : self._end])
            self._end -= self._start
            self._start = 0
        place(self._octets, self._end, octets)
        self._end += len(octets)
