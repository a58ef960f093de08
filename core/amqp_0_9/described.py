"""The columns of a message, read from its properties of class basic (core/decisions/021-message-columns.md); not part of a client."""

from ..memory import layout

HEADERS = 0x20  # in the first octet of the flags
DELIVERY_MODE = 0x10
PRIORITY = 0x08
EXPIRATION = 0x01


def described(buffer, at):
    """(kind, lifetime) that checked properties say, as layout.MESSAGE_KIND and MESSAGE_LIFETIME; `at` is where they begin."""
    high = buffer[at]
    kind = 0
    if not high & (DELIVERY_MODE | PRIORITY | EXPIRATION):
        return kind, layout.NONE
    at = behind_texts(buffer, at + 2, high, (0x80, 0x40))
    if high & HEADERS:
        at += 4 + (buffer[at] << 24 | buffer[at + 1] << 16 | buffer[at + 2] << 8 | buffer[at + 3])
    if high & DELIVERY_MODE:
        if buffer[at] == 2:
            kind |= layout.KIND_DURABLE
        at += 1
    if high & PRIORITY:
        kind |= layout.KIND_HAS_PRIORITY | buffer[at] << layout.KIND_PRIORITY
        at += 1
    if not high & EXPIRATION:
        return kind, layout.NONE
    at = behind_texts(buffer, at, high, (0x04, 0x02))
    return kind, lifetime_of(bytes(buffer[at + 1 : at + 1 + buffer[at]]))


def behind_texts(buffer, at, high, bits):
    """The position behind the short strings at `at` that the first octet of the flags, `high`, has of these."""
    for bit in bits:
        if high & bit:
            at += 1 + buffer[at]
    return at


def lifetime_of(digits):
    """The column for an expiration (octets): at most ten digits, as every publish is checked for; anything else is none."""
    if not 0 < len(digits) <= 10 or min(digits) < 48 or max(digits) > 57:
        return layout.NONE
    lifetime = int(digits)
    return lifetime if lifetime <= layout.MASK else -2 - lifetime // 1000
