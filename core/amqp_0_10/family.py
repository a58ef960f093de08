"""AMQP 0-10 among the families of protocols (core/wire/family.py). The rest of the folder is imported when its first peer comes: an idle
broker does without it."""

from ..wire.family import Family
from ..wire.registry import register
from .header import HEADER


def protocol(connection):
    """The protocol on one connection."""
    from .protocol import Protocol

    return Protocol(connection)


FAMILY = Family("AMQP 0-10", HEADER, protocol, None)

register(FAMILY)
