"""A message of AMQP 1.0 converted for other families (core/broker/crossing.py), as RabbitMQ 4 maps it."""

from . import body
from .properties import facts, lettered, properties_of, widely, widened

ENCODED = "amqp-1.0"  # the type of a body that is no data section but sections as they are


def exact(octets, wide=False):
    """The properties of class basic out of a properties part (bytes); fields without a counterpart are left out (core/CONVERSIONS.md)."""
    named = facts(octets, 0, len(octets))
    return widened(properties_of(named, widely), named) if wide else properties_of(named, lettered)


def payload(octets, size, read):
    """Data sections without their heads, or any other body as it is, with its footer."""
    payload = body.payload(octets, size, read)
    return None if payload is None else (payload[0], ENCODED if payload[1] else None)
