"""Messages of the client (part 3, section 3.2): sections out of names and values, and a delivery's sections by name.

    header | delivery-annotations | message-annotations | properties | application-properties | data ...

The client sends bodies of one data section; what comes may have any. Names of fields are the specification's: "durable", "ttl",
"message-id", "content-type"; values as types.py has them, without the tuple where the table has the type.
"""

from struct import pack

from ...errors import SYNTAX_ERROR, ProtocolError
from ...shim import const
from .. import composites, types

if False:  # for the type checker alone
    from typing import Any

_HEADER = const(0x70)
_ANNOTATIONS = const(0x72)
_PROPERTIES = const(0x73)
_APPLICATION = const(0x74)
_DATA = const(0x75)
_SEQUENCE = const(0x76)
_VALUE = const(0x77)
_FOOTER = const(0x78)

SYMBOLS = {
    "amqp:header:list": 0x70,
    "amqp:delivery-annotations:map": 0x71,
    "amqp:message-annotations:map": 0x72,
    "amqp:properties:list": 0x73,
    "amqp:application-properties:map": 0x74,
    "amqp:data:binary": 0x75,
    "amqp:amqp-sequence:list": 0x76,
    "amqp:amqp-value:*": 0x77,
    "amqp:footer:map": 0x78,
}
HEADER = ("durable", "priority", "ttl", "first-acquirer", "delivery-count")


def section(code, value):
    """A section that is no composite value."""
    return types.encode(("described", ("ulong", code), value))


def message_head(given=None, application_properties=None, annotations=None):
    """The sections in front of a body. `given`: fields of header and properties by name; `annotations`: message annotations, the names
    without the tuple of a symbol. Raises KeyError for a name that there is not, ValueError for a value that AMQP 1.0 cannot hold."""
    given = given or {}
    header = {name: given[name] for name in given if name in HEADER}
    octets = composites.write("header", header) if header else b""
    if annotations:
        octets += section(_ANNOTATIONS, {("symbol", name): annotations[name] for name in annotations})
    if len(header) < len(given):
        octets += composites.write("properties", {name: given[name] for name in given if name not in HEADER})
    if application_properties:
        octets += section(_APPLICATION, application_properties)
    return octets


def data_head(size):
    """The octets in front of a data section's `size` octets."""
    return b"\x00\x53\x75\xa0" + bytes((size,)) if size < 256 else b"\x00\x53\x75\xb0" + pack(">I", size)


class Message:
    """A delivery. `link`: the Receiver; `number`: its delivery-id; `tag`: the sender's delivery-tag; `settled`: nobody waits for an
    outcome; `octets`: all sections, None when it was refused for its size. Raises ProtocolError where sections are asked for and cannot
    be read."""

    __slots__ = ("link", "number", "tag", "format", "settled", "octets", "size", "pieces", "_sections")

    def __init__(self, link, number, tag, format_, settled):
        self.link = link
        self.number = number
        self.tag = tag
        self.format = format_
        self.settled = settled
        self.octets: "Any" = None
        self.size = 0  # octets that have come
        self.pieces: "Any" = []  # None: passed over
        self._sections: "Any" = None

    def append(self, piece, size_max):
        """Octets of the message, in order; what is larger than `size_max` is counted and passed over."""
        self.size += len(piece)
        if self.size > size_max:
            self.pieces = None
        elif self.pieces is not None:
            self.pieces.append(bytes(piece))

    def finish(self):
        """All octets have come: false when they were too many."""
        if self.pieces is None:
            return False
        self.octets = self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
        self.pieces = None
        return True

    def read(self):
        """{code of a section: its value; of body sections a list of all}."""
        if self._sections is None:
            sections: "dict" = {}
            at, end = 0, len(self.octets)
            while at < end:
                value, at = types.decode(self.octets, at, end)
                code = code_of(value)
                if code < _DATA or code == _FOOTER:
                    sections[code] = value
                else:
                    sections.setdefault(code, []).append(value[2])
            self._sections = sections
        return self._sections

    def _fields(self, code):
        value = self.read().get(code)
        return {} if value is None else named_fields(composites.composite(value)[1])

    @property
    def header(self):
        """Fields of the header that are given, by name."""
        return self._fields(_HEADER)

    @property
    def properties(self):
        """Fields of the properties that are given, by name."""
        return self._fields(_PROPERTIES)

    @property
    def application_properties(self):
        """The application properties: a dict by name."""
        value = self.read().get(_APPLICATION)
        return {} if value is None else value[2]

    @property
    def annotations(self):
        """The message annotations: a dict by name; numbers stay tuples."""
        value = self.read().get(_ANNOTATIONS)
        return {} if value is None else {key[1] if isinstance(key, tuple) else key: value[2][key] for key in value[2]}

    @property
    def body(self):
        """Data sections as bytes, one behind the other; else the value, or the list of a sequence; None when it was refused."""
        if self.octets is None:
            return None
        sections = self.read()
        if _VALUE in sections:
            return sections[_VALUE][0]
        if _SEQUENCE in sections:
            return [each for part in sections[_SEQUENCE] for each in part]
        parts = sections.get(_DATA, [])
        return parts[0] if len(parts) == 1 else b"".join(parts)


def code_of(value):
    """The code of a section. Raises ProtocolError for what is none (section 3.2)."""
    if isinstance(value, tuple) and value[0] == "described" and isinstance(value[1], tuple):
        kind, descriptor = value[1][:2]
        code = SYMBOLS.get(descriptor, 0) if kind == "symbol" else descriptor
        if kind in ("symbol", "ulong") and _HEADER <= code <= _FOOTER:
            return code
    raise ProtocolError(SYNTAX_ERROR, "a message with a section that part 3 does not have")


def named_fields(fields):
    """The fields that have a value, by name, without the tuples that name their types."""
    return {name: plain(fields[name]) for name in fields if fields[name] is not None and fields[name] != []}


def plain(value):
    """A value without its tuple."""
    return value[1] if isinstance(value, tuple) and len(value) == 2 else value
