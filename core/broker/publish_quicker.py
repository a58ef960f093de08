"""CPython's own forms of what publish.py does to each octet of a route or of properties. No board carries this file.

tests/accel/test_quicker.py holds the forms together.
"""

_NAME = "x-publisher-id".encode()  # as every family writes it


def route_hash(source, at, size):
    """See publish.route_hash; another number, which c_accel/routes.h has too."""
    hashed = int.from_bytes(source[at : at + size], "big") % 0xFFFFFC7 * 2039 & 0xFFFFFFF
    return hashed ^ hashed >> 13


def is_named(source, at, end):
    """See publish.is_named."""
    return _NAME in bytes(source[at:end])
