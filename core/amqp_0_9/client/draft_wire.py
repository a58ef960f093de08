"""What the client of the two drafts of 2005 reads and writes: frames, fields and content headers, a class for each draft. Written to their
texts and tables (specs/tables/amqp-draft-*.json), and on purpose sharing no code with drafts/, which is the broker's reading of them.

    0.9a5   octet type | octet channel | short size | body | %xCE         size counts the end too ("The Frame Header Wire Format")
            9 0 0 0 | octet type | octet flags 0 | short channel | longlong size | body | %xCE       ("Extended Frame Header Wire Format")
    0.9r1   octet type | octet cycle | short channel | long size | payload | %xCE                    ("General Frame Format")

Values of field tables: str (bytes where a string is not UTF-8), int of 32 bits, ("D", (decimals, number)), ("T", seconds), dict. There are
no others ("only in field tables, integer values are signed": so are the numbers of decimals). ValueError for values that a table cannot
hold, and for names that are not a letter, `$` or `#`, then letters, `$`, `#`, digits and `_`, 128 at most.
"""

import struct

from ...errors import COMMAND_INVALID, FRAME_ERROR, SYNTAX_ERROR, ProtocolError
from ...shim import const
from .. import method
from ..drafts import spec_0_9a5, spec_0_9r1

METHOD = const(1)
HEADER = const(2)
BODY = const(3)
TRACE = const(7)
HEARTBEAT = const(8)

if False:  # for the type checker alone
    from typing import Any

_END = b"\xce"
_NAME_MAX = const(128)
_DEPTH_MAX = const(8)
_FORMS = {"o": ">B", "s": ">H", "l": ">I", "L": ">Q"}
_STARTS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ$#"
_OTHERS = _STARTS + "0123456789_"


class Wire:
    """What both share. A subclass has the draft's name, tables and forms.

    `long_form`: of the size of a long string; `header_form`: of class id, weight and body size; `letters`: of strings in tables;
    `overhead`: octets of a frame that are none of its payload, at most; `least`: a frame-max that every peer takes.
    """

    version: "Any"
    spec: "Any"
    long_form: "Any"
    header_form: "Any"
    letters: "Any"
    frame: "Any"
    method_head: "Any"
    string: "Any"
    read_string: "Any"

    # Methods

    def method(self, name, number, arguments):
        """The frame of a method on a channel."""
        row = method.named(self.spec.METHODS, name)
        return self.frame(METHOD, number, self.method_head(row[method.CODE]) + self.fields(row[method.FIELDS], arguments))

    def fields(self, codes, items):
        """Fields by their codes (the table's): arguments of a method, or the properties of a content that are there."""
        octets = b""
        bits = []
        for index in range(len(codes)):
            if codes[index] == "b":
                bits.append(items[index])
                if codes[index + 1 : index + 2] != "b" or len(bits) == 8:
                    octets += bytes((sum([1 << place for place in range(len(bits)) if bits[place]]),))
                    bits = []
            else:
                octets += self.field(codes[index], items[index])
        return octets

    def field(self, code, item):
        """A field that is no bit. Raises ValueError or struct.error for what does not fit."""
        if code == "S":
            return short_string(item)
        if code == "T":
            return self.long_string(item)
        return self.table(item) if code == "F" else struct.pack(_FORMS[code], item)

    def long_string(self, item):
        """A long string with its size."""
        octets = item.encode("utf-8") if isinstance(item, str) else bytes(item)
        return struct.pack(self.long_form, len(octets)) + octets

    def table(self, pairs):
        """A field table with its size."""
        octets = b""
        for name in pairs:
            if not is_name(name):
                raise ValueError("AMQP %s has no field name %r" % (self.version, name))
            octets += short_string(name) + self.value(pairs[name])
        return struct.pack(">I", len(octets)) + octets

    def value(self, item):
        """A value with its letter."""
        if isinstance(item, (str, bytes)):
            return self.string(item)
        if isinstance(item, dict):
            return b"F" + self.table(item)
        if isinstance(item, int) and -(1 << 31) <= item < 1 << 31 and item is not True and item is not False:
            return b"I" + struct.pack(">i", item)
        if isinstance(item, tuple) and item[0] == "D":
            return b"D" + struct.pack(">Bi", item[1][0], item[1][1])
        if isinstance(item, tuple) and item[0] == "T":
            return b"T" + struct.pack(">Q", item[1])
        raise ValueError("a field table of AMQP %s cannot hold %r" % (self.version, item))

    def arguments(self, row, octets, at, end):
        """The arguments of a method, of which `row` is the table's. Raises ProtocolError where they do not fit to the last octet."""
        items, behind = self.read(row[method.FIELDS], octets, at, end)
        if behind != end:
            raise ProtocolError(SYNTAX_ERROR, "%s has %d octets too many" % (method.title(row), end - behind))
        return items

    def read(self, codes, octets, at, end):
        """(fields by their codes, where they end)."""
        items = []
        bit = 8
        for code in codes:
            if code != "b":
                item, at = self.read_field(code, octets, at, end)
                items.append(item)
                bit = 8
                continue
            if bit == 8:
                at = behind(1, at, end)
                bit = 0
            items.append(octets[at - 1] >> bit & 1 == 1)
            bit += 1
        return items, at

    def read_field(self, code, octets, at, end):
        """(a field that is no bit, where it ends)."""
        if code == "S":
            stop = behind(1 + (octets[at] if at < end else 0), at, end)
            text = text_of(octets[at + 1 : stop])
            if not isinstance(text, str) or "\0" in text:
                raise ProtocolError(SYNTAX_ERROR, "a short string with a zero in it, or that is no UTF-8")
            return text, stop
        if code == "T":
            return self.read_long_string(octets, at, end)
        if code == "F":
            return self.read_table(octets, at, end, 1)
        form = _FORMS[code]
        stop = behind(struct.calcsize(form), at, end)
        return struct.unpack_from(form, octets, at)[0], stop

    def read_long_string(self, octets, at, end):
        """(octets, where they end)."""
        start = behind(struct.calcsize(self.long_form), at, end)
        stop = behind(struct.unpack_from(self.long_form, octets, at)[0], start, end)
        return bytes(octets[start:stop]), stop

    def read_table(self, octets, at, end, depth):
        """(a dict, where the table ends); of a name that comes twice the first counts."""
        if depth > _DEPTH_MAX:
            raise ProtocolError(SYNTAX_ERROR, "a field table more than %d levels deep" % _DEPTH_MAX)
        start = behind(4, at, end)
        stop = behind(struct.unpack_from(">I", octets, at)[0], start, end)
        pairs: dict = {}
        at = start
        while at < stop:
            name, at = self.read_field("S", octets, at, stop)
            if not is_name(name):
                raise ProtocolError(COMMAND_INVALID, "the field name %r" % name[:40])
            item, at = self.read_value(octets, at, stop, depth)
            if name not in pairs:
                pairs[name] = item
        return pairs, stop

    def read_value(self, octets, at, end, depth):
        """(a value behind its letter, where it ends)."""
        start = behind(1, at, end)
        letter = chr(octets[at])
        if letter == "F":
            return self.read_table(octets, start, end, depth + 1)
        if letter == "I":
            stop = behind(4, start, end)
            return struct.unpack_from(">i", octets, start)[0], stop
        if letter == "D":
            stop = behind(5, start, end)
            return ("D", struct.unpack_from(">Bi", octets, start)), stop
        if letter == "T":
            stop = behind(8, start, end)
            return ("T", struct.unpack_from(">Q", octets, start)[0]), stop
        if letter not in self.letters:
            raise ProtocolError(SYNTAX_ERROR, "a field of the unknown type %r" % letter)
        return self.read_string(letter, octets, start, end)

    # Contents

    def header(self, number, class_id, weight, body_size, properties):
        """The frame of a content header; `properties`: by name. Raises KeyError for one that the class does not have."""
        rows = self.spec.CONTENTS[class_id][1]
        unknown = [name for name in properties if name not in [row[0] for row in rows]]
        if unknown:
            raise KeyError("class %s of AMQP %s has no property %s" % (self.spec.CONTENTS[class_id][0], self.version, unknown[0]))
        flags = 0
        octets = b""
        for index in range(len(rows)):
            item = properties.get(rows[index][0])
            if item is not None:
                flags |= 0x8000 >> index
                octets += self.field(rows[index][1], item)
        head = struct.pack(self.header_form, class_id, weight, body_size)
        return self.frame(HEADER, number, head + struct.pack(">H", flags) + octets)

    def read_header(self, octets, at, end):
        """(class id, weight, size of the body, octets of flags and properties) of a content header's payload."""
        start = behind(struct.calcsize(self.header_form), at, end)
        class_id, weight, size = struct.unpack_from(self.header_form, octets, at)
        if class_id not in self.spec.CONTENTS:
            raise ProtocolError(FRAME_ERROR, "a content header of class %d, which has no contents" % class_id)
        return class_id, weight, size, bytes(octets[start:end])

    def properties(self, class_id, octets):
        """Properties by name, of the octets that `read_header` gives."""
        rows = self.spec.CONTENTS[class_id][1]
        at = behind(2, 0, len(octets))
        flags = struct.unpack_from(">H", octets, 0)[0]
        if flags & (1 << 16 - len(rows)) - 1:
            raise ProtocolError(SYNTAX_ERROR, "property flags 0x%04x, and the class has %d properties" % (flags, len(rows)))
        given = {}
        for index in range(len(rows)):
            if flags & 0x8000 >> index:
                given[rows[index][0]], at = self.read_field(rows[index][1], octets, at, len(octets))
        if at != len(octets):
            raise ProtocolError(SYNTAX_ERROR, "a content header has %d octets behind its last property" % (len(octets) - at))
        return given


class Wire9a5(Wire):
    """AMQP/Fast 0.9a5."""

    version = "0.9a5"
    spec = spec_0_9a5
    long_form = ">H"
    header_form = ">BBQ"
    letters = "SL"
    overhead = 17
    least = 1024
    heartbeat = b"\x08\x00\x00\x01\xce"
    drops_empty = True  # "Empty body frames ... MUST discard them with no side-effects of any kind"

    def frame(self, kind, number, payload):
        """A frame, extended where its channel or size needs that."""
        size = len(payload) + 1
        if number < 256 and size < 1 << 16:
            return struct.pack(">BBH", kind, number, size) + payload + _END
        return struct.pack(">BBHBBHQ", 9, 0, 0, kind, 0, number, size) + payload + _END

    def head(self, octets, at, end):
        """(type, channel, where the payload begins, where the frame's end octet is), or None: the header is not whole."""
        if end - at < 4:
            return None
        kind, number, size = struct.unpack_from(">BBH", octets, at)
        start = at + 4
        if kind == 9:
            if number or size:
                raise ProtocolError(FRAME_ERROR, "a meta frame whose channel or size is not 0")
            if end - at < 16:
                return None
            kind, flags, number, size = struct.unpack_from(">BBHQ", octets, start)
            start = at + 16
            if flags or kind == 9:
                raise ProtocolError(FRAME_ERROR, "a meta frame behind a meta frame, or flags in an extended header")
        if size == 0:
            raise ProtocolError(FRAME_ERROR, "a frame of size 0, where 1 is the least")
        return kind, number, start, start + size - 1

    def method_head(self, code):
        """The first octets of a method's payload; two are reserved."""
        return bytes((code >> 16, code & 0xFF, 0, 0))

    def code(self, octets, at):
        """class << 16 | method."""
        if octets[at + 2] or octets[at + 3]:
            raise ProtocolError(FRAME_ERROR, "the reserved octets of a method are not 0")
        return octets[at] << 16 | octets[at + 1]

    def string(self, item):
        """A value: a short string where it fits one, else a long one."""
        octets = item.encode("utf-8") if isinstance(item, str) else item
        if len(octets) < 256 and 0 not in octets:
            return b"S" + short_string(octets)
        return b"L" + self.long_string(octets)

    def read_string(self, letter, octets, at, end):
        """(a string's value, where it ends)."""
        if letter == "S":
            return self.read_field("S", octets, at, end)
        item, at = self.read_long_string(octets, at, end)
        return text_of(item), at


class Wire9r1(Wire):
    """AMQP 0.9 revision 1."""

    version = "0.9r1"
    spec = spec_0_9r1
    long_form = ">I"
    header_form = ">HHQ"
    letters = "S"
    overhead = 9
    least = 4096
    heartbeat = b"\x08\x00\x00\x00\x00\x00\x00\x00\xce"
    drops_empty = False

    def frame(self, kind, number, payload):
        """A frame, with the cycle 0."""
        return struct.pack(">BBHI", kind, 0, number, len(payload)) + payload + _END

    def head(self, octets, at, end):
        """As of 0.9a5."""
        if end - at < 8:
            return None
        kind, _, number, size = struct.unpack_from(">BBHI", octets, at)
        return kind, number, at + 8, at + 8 + size

    def method_head(self, code):
        """The first octets of a method's payload."""
        return struct.pack(">I", code)

    def code(self, octets, at):
        """class << 16 | method."""
        return struct.unpack_from(">I", octets, at)[0]

    def string(self, item):
        """A value: a long string."""
        return b"S" + self.long_string(item)

    def read_string(self, letter, octets, at, end):
        """(a string's value, where it ends)."""
        item, at = self.read_long_string(octets, at, end)
        return text_of(item), at


def short_string(item):
    """A short string with its size. Raises ValueError for more than 255 octets, and for zeros."""
    octets = item.encode("utf-8") if isinstance(item, str) else bytes(item)
    if len(octets) > 255 or 0 in octets:
        raise ValueError("a short string has 255 octets at most, and no zeros")
    return bytes((len(octets),)) + octets


def text_of(octets):
    """Octets as str, or as bytes where they are no UTF-8."""
    try:
        return str(bytes(octets), "utf-8")
    except UnicodeError:
        return bytes(octets)


def is_name(name):
    """True for a name that a field table may have ("Field Tables")."""
    return 0 < len(name) <= _NAME_MAX and name[0] in _STARTS and not [each for each in name if each not in _OTHERS]


def behind(size, at, end):
    """Where `size` octets from `at` on end. Raises ProtocolError where `end` is before that."""
    if at + size > end:
        raise ProtocolError(SYNTAX_ERROR, "a frame that ends inside a field")
    return at + size
