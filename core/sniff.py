"""Which protocol a connection speaks: its first eight octets (0-9-1 section 4.2.2).

DIALECTS is the table of what is served: header and the module that serves it. An unknown header is answered with the header of the first
row and the connection is closed, as the specification asks.
"""

from .amqp_0_9 import session, spec_0_9_1

DIALECTS = ((spec_0_9_1.HEADER, session.Session),)

HEADER_SIZE = 8


def dialect_of(header):
    """The session class for a whole header (bytes of 8), or None."""
    for known, class_ in DIALECTS:
        if known == header:
            return class_
    return None


def may_become(octets):
    """True while `octets`, fewer than 8, can still become a header."""
    for known, _ in DIALECTS:
        if known[:len(octets)] == octets:
            return True
    return False
