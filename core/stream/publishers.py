"""Idempotent publish to a stream: a publisher with a name and a rising sequence may repeat publishes whose outcome it does not know.

Headers: x-publisher-id (text) and x-publisher-sequence (a number above 0). The stream confirms a message whose sequence is not above the
last one of its publisher, and does not append it. The stream knows the PUBLISHERS_MAX latest publishers, fewer where all queues and streams
together remember more than identity_count_max (identities.py).
"""

from ..message.formats import format_of
from ..queue.identities import Recent, digest, pool_of
from ..shim import const

PUBLISHERS_MAX = const(1024)

NAME = "x-publisher-id"
SEQUENCE = "x-publisher-sequence"


class Publishers:
    """The last sequence of each publisher of one stream."""

    def __init__(self, tables):
        self.tables = tables
        self.recent = None
        self.doubles = 0

    def recovered(self, octets, start, end, kind):
        """Remember the sequence in octets[start:end], the properties of a message of this kind that has been appended before."""
        doubles = self.doubles
        self.seen(octets[start:end], kind)
        self.doubles = doubles

    def withdraw(self, octets, kind):
        """A message of this kind with these properties was seen just now, and is not appended: its publisher may publish it again."""
        if self.recent is not None:
            known = self.recent.known
            identity, sequence = digest(format_of(kind).header(octets, NAME)), format_of(kind).header(octets, SEQUENCE)
            if identity in known and known[identity] == sequence:
                known[identity] = sequence - 1

    def seen(self, octets, kind):
        """True when a message of this kind with these properties has been appended before; else its sequence is remembered."""
        name = format_of(kind).header(octets, NAME)
        if not isinstance(name, str):
            return False
        sequence = format_of(kind).header(octets, SEQUENCE)
        if not isinstance(sequence, int):
            return False
        if self.recent is None:
            self.recent = Recent(pool_of(self.tables))
        known = self.recent.known
        identity = digest(name)
        if sequence <= known.get(identity, 0):
            self.doubles += 1
            return True
        if identity in known:
            known[identity] = sequence
            return False
        if len(known) >= PUBLISHERS_MAX:
            self.recent.forget_oldest()
        self.recent.add(identity, sequence)
        return False

    def end(self):
        """The stream is deleted."""
        if self.recent is not None:
            self.recent.end()
