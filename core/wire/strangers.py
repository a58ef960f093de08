"""What an operator is told of first octets that are no family's. A part of gateways (parts.py)."""

if False:  # for the type checker alone
    from typing import Iterable

    from .contract import Family

# How protocols begin, and what people call them.
KNOWN = (
    (b"\x16\x03", "TLS"),
    (b"GET ", "HTTP"),
    (b"POST", "HTTP"),
    (b"HEAD", "HTTP"),
    (b"PUT ", "HTTP"),
    (b"AMQP", "another version of AMQP"),
    (b"\x10", "MQTT"),
)


def described(octets: bytes, families: "Iterable[Family]") -> str:
    """The words behind the name of the connection. `octets`: bytes; `families`: those that are served."""
    served = " and ".join([family.name for family in families])
    for begin, name in KNOWN:
        if octets[: len(begin)] == begin:
            return "speaks %s; this port serves %s" % (name, served)
    return "begins with %r; this port serves %s" % (octets, served)
