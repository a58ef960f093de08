"""A bridge's message for an upstream that speaks AMQP 0-10: the header segment in front of its body, out of properties of class basic with
the bridge's marks in them (core/amqp_0_9/bridge_marks.py), which are application headers.
"""

from ..broker import crossing
from . import properties


def header(kind, octets, key):
    """The header segment (bytes) of properties (bytes) of a kind of core/message/formats.py. `key`: the routing key, bytes. Raises
    ProtocolError for properties that cannot be read, ValueError for what AMQP 0-10 cannot hold."""
    try:
        text = str(key, "utf-8")
    except UnicodeError:
        raise ValueError("a routing key that is not UTF-8 cannot be one of AMQP 0-10") from None
    given = crossing.source_of(kind).exact(octets)
    return properties.rewritten(properties.encode(given), {"routing_key": text}, {})
