"""AMQP/Fast 0.9a5 as a family of protocols: its session is imported when its first peer comes."""

from ...wire.family import Family
from .. import properties
from .spec_0_9a5 import HEADER


class Silent(Family):
    """A family without a header to answer strangers with: "it MUST close the socket without sending any response"."""

    def sniff(self, octets):
        """As of a family with this header."""
        return _FAMILY.sniff(octets)


def session(connection):
    """A session on one connection."""
    from .session_0_9a5 import Session09a5

    return Session09a5(connection)


_FAMILY = Family("AMQP/Fast 0.9a5", HEADER, session, properties)
FAMILY = Silent(_FAMILY.name, b"", session, properties)
