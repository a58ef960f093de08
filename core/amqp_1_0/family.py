"""AMQP 1.0 among the families of protocols (core/wire/family.py). Most of the folder is imported when its first peer comes: an idle broker
does without it."""

from ..wire import family
from ..wire.registry import register
from . import properties
from .spec_1_0 import HEADER_AMQP

HEADER_SIZE = 8


class Family(family.Family):
    """It begins with one of three headers, for AMQP, TLS and SASL (sections 2.2, 5.2.1, 5.3.1), or with one of another minor version or
    revision, which is answered with what is served."""

    def sniff(self, octets):
        """NO, MORE or MATCH: `AMQP`, 0, 2 or 3, major version 1."""
        known = octets[4:5] in (b"", b"\x00", b"\x02", b"\x03") and octets[5:6] in (b"", b"\x01")
        if not known or octets[:4] != self.header[: min(len(octets), 4)]:
            return family.NO
        return family.MATCH if len(octets) >= HEADER_SIZE else family.MORE


def protocol(connection):
    """The protocol on one connection."""
    from .protocol import Protocol

    return Protocol(connection)


FAMILY = Family("AMQP 1.0", HEADER_AMQP, protocol, properties)

register(FAMILY)
