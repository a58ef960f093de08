"""The two drafts of 2005 among the families of protocols (core/wire/family.py). Each begins with the same octets as a published version
that clients of today send, and the server speaks first: so a draft is served where a listener names it (`?version=`), and nowhere else.
"""

from ...wire.family import Family
from ...wire.registry import FAMILIES
from .. import properties
from .spec_0_9a5 import HEADER as HEADER_0_9A5
from .spec_0_9r1 import HEADER as HEADER_0_9R1

if False:  # for the type checker alone
    from typing import Any


def session_0_9a5(connection):
    """A session of 0.9a5."""
    from .session_0_9a5 import Session09a5

    return Session09a5(connection)


def session_0_9r1(connection):
    """A session of 0.9r1."""
    from .session_0_9r1 import Session09r1

    return Session09r1(connection)


class Silent(Family):
    """A family without a header to answer strangers with: "it MUST close the socket without sending any response"."""

    of: "Any"

    def sniff(self, octets):
        """As of the family that it is made of."""
        return self.of.sniff(octets)


def silent(family):
    """A Silent of it."""
    made = Silent(family.name, b"", family.protocol, family.format)
    made.of = family
    return made


VERSIONS = {
    "0.9a5": silent(Family("AMQP/Fast 0.9a5", HEADER_0_9A5, session_0_9a5, properties)),
    "0.9r1": Family("AMQP 0.9r1", HEADER_0_9R1, session_0_9r1, properties),
}


def families(version):
    """The families of a listener that names a draft: the draft is asked first."""
    return [VERSIONS[version]] + FAMILIES
