"""A bridge's marks on a message: x-gateway, x-sequence, x-arrived and x-hops, the user's own headers, and the routing key.

    x-gateway   text     which gateway the message came from
    x-sequence  int64    its number there: dense, and never given twice
    x-arrived   time     when it came to the first gateway, by that one's clock; absent where the source does not say
    x-hops      int      bridges that it has passed

A message that has x-gateway and x-sequence, or x-arrived, from a gateway below keeps them. Templates: text with {key}, {exchange},
{gateway}, and {1}, {2} ... for the words of the routing key. All other properties stay octet for octet as the publisher sent them.
"""

import struct

from ..errors import ProtocolError
from ..exchange.base import whole_number
from ..message.annotations import GONE
from . import field_table, properties

GATEWAY = "x-gateway"
SEQUENCE = "x-sequence"
HOPS = "x-hops"
ARRIVED = "x-arrived"
OWN = (GATEWAY, SEQUENCE, ARRIVED, HOPS)

_GATEWAY_NAME = b"\x09x-gateway"
_SEQUENCE_PAIR = b"\x0ax-sequencel"
_ARRIVED_NAME = b"\x09x-arrived"
_HOPS_NAME = b"\x06x-hops"
_FIRST_HOP = b"\x06x-hopsI\x00\x00\x00\x01"

KEY_SIZE_MAX = 255


class Template:
    """A text with places. Raises ValueError for an unknown place."""

    def __init__(self, text):
        self.parts = []  # bytes, or the name of a place
        while text:
            before, brace, rest = text.partition("{")
            if before:
                self.parts.append(before.encode("utf-8"))
            text = ""
            if brace:
                name, closed, text = rest.partition("}")
                number = whole_number(name) if len(name) < 4 else None
                if not closed or name not in ("key", "exchange", "gateway") and not 0 < (number or 0) < 256:
                    raise ValueError(
                        "a template has the places {key}, {exchange}, {gateway} and {1}, {2} ... for the words of the key, "
                        "not {%s" % (name + closed)
                    )
                self.parts.append(name)

    def fill(self, gateway, exchange, key):
        """The text for a message, as bytes; all three arguments are bytes. A word that the key does not have is empty."""
        filled = []
        for part in self.parts:
            if isinstance(part, bytes):
                filled.append(part)
            elif part == "key":
                filled.append(key)
            elif part == "exchange":
                filled.append(exchange)
            elif part == "gateway":
                filled.append(gateway)
            else:
                words = key.split(b".")
                filled.append(words[int(part) - 1] if int(part) <= len(words) else b"")
        return b"".join(filled)


class Marks:
    """How one bridge marks messages. `headers`: {name: template text}; `header_prefix` is put before the names of the publisher's headers.

    Raises ValueError for invalid marks.
    """

    def __init__(self, gateway="", routing_key=None, headers=None, header_prefix="", hops_max=8):
        self.gateway = gateway.encode("utf-8")
        self.hops_max = hops_max
        self._key = None if routing_key is None else Template(routing_key)
        self._headers = {name: Template(headers[name]) for name in headers or {}}
        for name in self._headers:
            if name in OWN or not 0 < len(name.encode("utf-8")) < 128:
                raise ValueError("a header called %r cannot be set" % name)
        self._prefix = header_prefix
        pair = _GATEWAY_NAME + field_table.encode_value(gateway) if gateway else b""
        self._pair = pair + (_SEQUENCE_PAIR if gateway else b"")

    def key(self, exchange, key):
        """The routing key upstream (bytes), or None when it would be longer than a routing key can be."""
        if self._key is None:
            return key
        made = self._key.fill(self.gateway, exchange, key)
        return made if len(made) <= KEY_SIZE_MAX else None

    def put(self, octets, sequence, exchange, key, arrived=None):
        """Properties (bytes) with the marks; `sequence` None: without gateway and number; `arrived`: seconds since 1970, None: not known.
        None: it has passed hops_max bridges."""
        if (
            not self._headers
            and not self._prefix
            and _HOPS_NAME not in octets
            and _GATEWAY_NAME not in octets
            and _ARRIVED_NAME not in octets
        ):
            pair = _FIRST_HOP
            if arrived is not None:
                pair = _ARRIVED_NAME + b"T" + struct.pack(">Q", arrived) + pair
            if sequence is not None and self.gateway:
                pair = self._pair + struct.pack(">q", sequence) + pair
            return properties.with_header(octets, pair)
        return self._put_slowly(octets, sequence, exchange, key, arrived)

    def _put_slowly(self, octets, sequence, exchange, key, arrived):
        headers = properties.decode(octets, 0, len(octets)).get("headers") or {}
        hops = headers.get(HOPS, 0)
        hops = hops + 1 if isinstance(hops, int) and hops >= 0 else 1
        if hops > self.hops_max:
            return None
        given = {name: self._headers[name].fill(self.gateway, exchange, key) for name in self._headers}
        given = {name: field_table.text_of(given[name]) for name in given}
        given[HOPS] = hops
        if arrived is not None and ARRIVED not in headers:
            given[ARRIVED] = ("T", arrived)
        if sequence is not None and self.gateway and place_of(headers) is None:
            given[GATEWAY] = str(self.gateway, "utf-8")
            given[SEQUENCE] = ("l", sequence)
        if self._prefix:
            octets = self._prefixed(octets, headers)
        return properties.merge(octets, {"headers": given})

    @staticmethod
    def place(octets):
        """(gateway, sequence) in properties (bytes), or None."""
        try:
            return place_of(properties.decode(octets, 0, len(octets)).get("headers") or {})
        except ProtocolError:
            return None

    def _prefixed(self, octets, headers):
        """Properties whose headers have the prefix before their names, but those of bridges."""
        others = [name for name in headers if name not in OWN]
        octets = properties.merge(octets, {"headers": dict.fromkeys(others, GONE)})
        return properties.merge(octets, {"headers": {self._prefix + name: headers[name] for name in others}})


def place_of(headers):
    """(gateway, sequence) of a message's headers, or None when it has none."""
    gateway = headers.get(GATEWAY)
    sequence = headers.get(SEQUENCE)
    if isinstance(gateway, str) and isinstance(sequence, int) and not isinstance(sequence, bool):
        return gateway, sequence
    return None
