"""A message of AMQP 0-10 converted for other families (core/broker/crossing.py), as core/SPEC.md's table has it."""

from .properties import named_properties, widened


def exact(octets, wide=False):
    """The properties of class basic out of a header segment (bytes); fields without a counterpart are left out."""
    return widened(octets) if wide else named_properties(octets, True)


def payload(octets, size, read):
    """None: a body segment is payload."""
