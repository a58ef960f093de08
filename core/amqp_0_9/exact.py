"""Properties of class basic with the types that their headers have on the wire: for receivers of other families (core/DESIGN.md).

A number is (letter, number), a longstr that is not UTF-8 ("S", octets); everything else is as field_table.decode gives it.
"""

from ..shim import const
from . import field_table, properties

_ARRAY = const(0x41)
_TABLE = const(0x46)
_NUMBERS = b"bBsuIilLfdT"


def exact(octets, wide=False):
    """The properties (bytes) as a dict by name; class basic has nothing that is `wide`."""
    given = properties.decode(octets, 0, len(octets))
    if "headers" in given:
        at = properties.headers_at(octets)
        given["headers"] = pairs(octets, at + 4, at + 4 + field_table.size_at(octets, at, len(octets)))
    return given


def payload(octets, size, read):
    """None: a body of class basic is payload."""


def pairs(octets, at, end):
    """The pairs of a table between `at` and `end`, which decode has checked."""
    table = {}
    while at < end:
        name = str(octets[at + 1 : at + 1 + octets[at]], "utf-8")
        table[name], at = value(octets, at + 1 + octets[at], end)
    return table


def value(octets, at, end):
    """(the value at `at`, the position behind it)."""
    letter = octets[at]
    if letter in (_ARRAY, _TABLE):
        start = at + 5
        behind = start + field_table.size_at(octets, at + 1, end)
        return (pairs if letter == _TABLE else items)(octets, start, behind), behind
    decoded, at = field_table.value(octets, at, end, 1)
    if letter in _NUMBERS and not isinstance(decoded, tuple):
        decoded = (chr(letter), decoded)
    elif letter == 0x53 and isinstance(decoded, bytes):
        decoded = ("S", decoded)
    return decoded, at


def items(octets, at, end):
    """The values of an array between `at` and `end`."""
    array = []
    while at < end:
        item, at = value(octets, at, end)
        array.append(item)
    return array
