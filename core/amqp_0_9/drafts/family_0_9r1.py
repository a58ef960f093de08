"""AMQP 0.9r1 as a family of protocols: its session is imported when its first peer comes."""

from ...wire.family import Family
from .. import properties
from .spec_0_9r1 import HEADER


def session(connection):
    """A session on one connection."""
    from .session_0_9r1 import Session09r1

    return Session09r1(connection)


FAMILY = Family("AMQP 0.9r1", HEADER, session, properties)
