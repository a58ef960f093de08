"""A message's route: where its publisher sent it, as the first octets of its chain.

    octet size | exchange name, UTF-8 | octet size | routing key

A name or a key has 255 octets at most: no family may publish longer ones (core/SPEC.md).
"""

PART_MAX = 255


def pack(exchange, key):
    """The route (bytes) to an exchange (bytes) with a routing key (bytes). Raises ValueError for a part that is too long."""
    return bytes((len(exchange),)) + exchange + bytes((len(key),)) + key


def exchange_of(route):
    """The exchange's name, a text. Raises UnicodeError."""
    return str(route[1 : 1 + route[0]], "utf-8")


def key_of(route):
    """The routing key, bytes."""
    return route[2 + route[0] :]


def with_copies(key, copies):
    """A routing key alone, or in a tuple with those of `copies`, which a sender selected: each behind its size in two octets."""
    if not copies:
        return key
    keys, at = [key], 0
    while at < len(copies):
        end = at + 2 + (copies[at] << 8 | copies[at + 1])
        keys.append(copies[at + 2 : end])
        at = end
    return tuple(keys)
