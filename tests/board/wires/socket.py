"""Module socket for the WebAssembly build, which has none: node carries the octets (field_wasm.mjs) between two rounds.

Up to PLACES connections, each with octets that have come, octets that are to go, and a row of COLUMNS numbers in TABLE, which both sides
read and write: state (FREE, WAITING to be accepted, OPEN, ENDED by us), size of what has come, where what is not read of it begins, size of
what is to go, 1 when the peer has gone. All of it is made before the heap is bounded.
"""

from array import array

from uctypes import addressof

PLACES = 10
COLUMNS = 5
ROOM = 2048  # octets each way
FREE, WAITING, OPEN, ENDED = 0, 1, 2, 3
STATE, COME, AT, GOING, GONE = 0, 1, 2, 3, 4
TABLE = array("I", bytes(4 * PLACES * COLUMNS))
INPUTS = [memoryview(bytearray(ROOM)) for _ in range(PLACES)]
OUTPUTS = [bytearray(ROOM) for _ in range(PLACES)]
AF_INET, SOCK_STREAM, SOCK_DGRAM, SOL_SOCKET, SO_REUSEADDR = 2, 1, 2, 1, 2
EAGAIN, ECONNRESET = 11, 104


def addresses():
    """Where TABLE lies, then INPUTS and OUTPUTS, place by place; for JavaScript."""
    return [addressof(TABLE)] + [addressof(octets) for octets in INPUTS + OUTPUTS]


def getaddrinfo(host, port, *more):
    """One address."""
    return [(AF_INET, SOCK_STREAM, 0, "", (host, port))]


class socket:
    """A listening socket; with a `place` a connection."""

    def __init__(self, family=AF_INET, kind=SOCK_STREAM, place=-1):
        self.place = place
        self.row = place * COLUMNS

    def setsockopt(self, *given):
        """Take an option."""

    def setblocking(self, on):
        """Nothing blocks here."""

    def bind(self, address):
        """Node listens already."""

    def listen(self, backlog):
        """Node listens already."""

    def waiting(self):
        """The place of a connection that waits to be accepted, -1: none does."""
        for place in range(PLACES):
            if TABLE[place * COLUMNS + STATE] == WAITING:
                return place
        return -1

    def accept(self):
        """(a connection, its peer's address). Raises OSError when none waits."""
        place = self.waiting()
        if place < 0:
            raise OSError(EAGAIN)
        TABLE[place * COLUMNS + STATE] = OPEN
        return socket(place=place), ("127.0.0.1", 1)

    def ready(self, wanted):
        """Which of these flags of poll are true."""
        row = self.row
        if self.place < 0:
            return wanted & 1 if self.waiting() >= 0 else 0
        flags = wanted & 1 if TABLE[row + COME] > TABLE[row + AT] or TABLE[row + GONE] else 0
        return flags | (wanted & 4 if TABLE[row + GOING] < ROOM else 0)

    def readinto(self, view):
        """Octets read; 0: the peer has gone; None: none now."""
        row, at = self.row, TABLE[self.row + AT]
        count = min(TABLE[row + COME] - at, len(view))
        if count == 0:
            return 0 if TABLE[row + GONE] else None
        view[:count] = INPUTS[self.place][at : at + count]
        TABLE[row + AT] = at + count
        return count

    def write(self, octets, start, size):
        """Octets written, of octets[start:start + size]; None: none now. Raises OSError when the peer has gone."""
        row, at = self.row, TABLE[self.row + GOING]
        if TABLE[row + GONE]:
            raise OSError(ECONNRESET)
        count = min(ROOM - at, size)
        output = OUTPUTS[self.place]
        for index in range(count):
            output[at + index] = octets[start + index]
        TABLE[row + GOING] = at + count
        return count or None

    def close(self):
        """End the connection, behind what is to go."""
        if self.place >= 0:
            TABLE[self.row + STATE] = ENDED
