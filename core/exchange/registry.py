"""The exchange types that there are, and the exchanges that are there from the start (0-9-1 section 3.1.3).

A row of TYPES is a type's name and its file in types/; the file is imported when the first exchange of the type is made. A type
without a row, or whose file a board does not carry, is refused with command-invalid, as section 1.6.2.1 asks ("support" rule). So is
the optional system exchange of section 3.1.3.5, which delivers to services of the server: this broker has none. RabbitMQ
refuses that type with a word of its own ("invalid"), and so does this broker.

Names without x- are kept for the standard (section 3.1.3.6); `property`, `matcher`, `selector` and `lossy` are names of the standard's
2005 draft (amqp-fast-0.9a5-rfc006, "Exchange Types") and stand for the same types as with x-.
"""

from ..parts import part

TYPES = (
    ("direct", "direct"),
    ("fanout", "fanout"),
    ("topic", "topic"),
    ("headers", "headers"),
    ("x-consistent-hash", "consistent_hash"),
    ("x-local-random", "local_random"),
    ("x-property", "property"),
    ("x-matcher", "matcher"),
    ("x-selector", "selector"),
    ("x-lossy", "lossy"),
    ("x-delayed-message", "delayed"),
    ("property", "property"),
    ("matcher", "matcher"),
    ("selector", "selector"),
    ("lossy", "lossy"),
)

SYSTEM = "system"

PREDECLARED = (
    ("amq.direct", "direct"),
    ("amq.fanout", "fanout"),
    ("amq.topic", "topic"),
    ("amq.headers", "headers"),
    ("amq.match", "headers"),
)


def type_named(name):
    """The class of an exchange type, or None."""
    for row in TYPES:
        if row[0] == name:
            return type_in(row[1])
    return None


def type_in(file):
    """The class in a file of types/, or None when this build does not carry it."""
    module = part("exchange.types." + file)
    return None if module is None else module.Type
