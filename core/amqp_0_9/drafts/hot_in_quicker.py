"""Frames of a draft that need no thought, as frames of 0-9-1, which the engine takes from there on (..hot_in, or C).

A publish whose method, content header and body frames are whole becomes basic.publish with its content, jms.ack and jms.reject become
those of class basic. What is not as usual is left to session.py, from its first octet: contents within others, meta frames, mandatory
ones, text that is not ASCII, and whatever is wrong. CPython's form; c_accel/amqp_0_9_drafts.c has the same in C, boards have none.
"""

from struct import Struct

from ...errors import ProtocolError
from ...memory.layout import ASK, INCOMPLETE
from .. import field_table
from ..spec_0_9_1 import PROPERTIES
from .fields import NAME_MAX, Reader

KNOWN_MAX = 128  # methods, properties and tables of headers that a session remembers, of each
KNOWN_SIZE = 512  # octets of one of them
TIME_DIGITS = 18  # of a timestamp

_SHORT = Struct(">BBH").unpack_from  # the head of a frame of 0.9a5: type, channel, size with the octet behind the payload
_LONG = Struct(">BBHI").unpack_from  # of 0.9r1: type, cycle, channel, size
_FRAME = Struct(">BHI").pack  # the head of a frame of 0-9-1
_HEADER = Struct(">BHIHHQ").pack  # with what a content header begins with
_NUMBERS = {1: Struct(">BBQ").unpack_from, 2: Struct(">HHQ").unpack_from}  # class, weight and size of the body, by octets of the first two
TEXT, TABLE, OCTET, TIME, TIME_TEXT, DESTINATION = range(6)  # how a property is read
FLAGS = {name: 0x8000 >> index for index, (name, _) in enumerate(PROPERTIES[:13])}  # of class basic
_READ = {"o": OCTET, "F": TABLE, "L": TIME, "S": TEXT}


# For simple_table.
LETTERS = {"0.9a5": {73: -4, 84: -8, 83: 1, 76: 2}, "0.9r1": {73: -4, 84: -8, 83: 4}}  # I, T, S, L
BASIC_LETTERS = {73: -4, 84: -8, 83: 4}
BASIC_TEXT = b"S", 4, 0xFFFF
_FIRST_OF_NAMES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz$#"
_OF_NAMES = _FIRST_OF_NAMES + b"0123456789_"

# Methods that are for here: the class of a publish, or the number of class basic's method. Class basic of 0.9r1 has its properties in
# another order.
JMS = 7
METHODS = {
    "0.9a5": {b"\x07\x05\x00\x00": 7, b"\x07\x0a\x00\x00": 80, b"\x07\x0b\x00\x00": 90},
    "0.9r1": {b"\x00\x07\x00\x05": 7, b"\x00\x07\x00\x0b": 80, b"\x00\x07\x00\x0c": 90},
}


def plan(rows):
    """How to read the properties of a class with these rows (spec_*.CONTENTS): [(its flag, flag of class basic, how)]."""
    made = []
    for index, (name, code) in enumerate(rows):
        how = DESTINATION if name == "destination" else TIME_TEXT if name == "timestamp" and code == "S" else _READ[code]
        made.append((0x8000 >> index, FLAGS.get(name, 0), how))
    return made


class Intake:
    """The frames of one session. `is_short`: it speaks 0.9a5."""

    def __init__(self, session):
        self.session = session
        self.is_short = session.framing.number_size == 1
        self.lead = 4 if self.is_short else 8
        version = "0.9a5" if self.is_short else "0.9r1"
        self.methods, self.letters = METHODS[version], LETTERS[version]
        self.numbers = _NUMBERS[session.framing.number_size]
        self.numbers_size = 2 * session.framing.number_size + 8
        self.plan = plan(session.wire.CONTENTS[JMS][1])
        self.publishes: dict = {}  # payload -> the payload of basic.publish, or of 0.9a5 the exchange; None: not for here
        self.known: dict = {}  # properties -> (destination, properties of class basic)
        self.tables: dict = {}  # octets of a table of headers -> those of class basic

    def head(self, octets, at):
        """(type, channel, size of the payload) of a frame whose head is there."""
        if self.is_short:
            kind, number, size = _SHORT(octets, at)
            return kind, number, size - 1
        kind, _, number, size = _LONG(octets, at)
        return kind, number, size

    def frames(self, octets, at, end, frame_size_max):
        """Frames from octets[at:end] as those of 0-9-1: (parts of their octets, [(octets up to the end of a method or content, where it
        ends in `octets`)], ASK or INCOMPLETE: why there are no more)."""
        parts: list = []
        ends: list = []
        made = 0
        while True:
            before = len(parts)
            behind = self.one(octets, at, end, frame_size_max, parts)
            if behind < 0:
                del parts[before:]
                return parts, ends, behind
            at = behind
            for place in range(before, len(parts)):
                made += len(parts[place])
            ends.append((made, at))

    def one(self, octets, at, end, frame_size_max, parts):
        """The next method, and its content, to `parts`: the position behind it, ASK or INCOMPLETE."""
        lead = self.lead
        if end - at < lead:
            return INCOMPLETE
        kind, number, size = self.head(octets, at)
        if kind != 1 or not 5 <= size <= frame_size_max or size + lead >= self.session.receive.size:
            return ASK
        behind = at + lead + size
        if behind >= end:
            return INCOMPLETE
        payload = bytes(octets[at + lead : behind + 1])
        method = self.methods.get(payload[:4])
        if method is None or payload[-1] != 0xCE:
            return ASK
        if method != JMS:
            if size != 13:
                return ASK
            parts.append(_FRAME(1, number, 13) + b"\x00\x3c\x00" + bytes((method,)) + payload[4:])
            return behind + 1
        route = self.publishes.get(payload)
        if route is None:
            route = self.publish(payload)
            if route is None:
                return ASK
        return self.content(octets, at, behind + 1, end, number, route, frame_size_max, parts)

    def content(self, octets, start, at, end, number, route, frame_size_max, parts):
        """The content header at `at`, behind the method at `start` of a publish to a `route` as in `publishes`, and its body."""
        lead, most = self.lead, self.session.receive.size
        if end - at < lead:
            return INCOMPLETE
        kind, other, size = self.head(octets, at)
        if kind != 2 or other != number or not self.numbers_size + 2 <= size <= frame_size_max or at - start + size + lead >= most:
            return ASK
        behind = at + lead + size
        if behind >= end:
            return INCOMPLETE
        class_id, weight, left = self.numbers(octets, at + lead)
        if class_id != JMS or weight or octets[behind] != 0xCE or at - start + left >= most:
            return ASK
        given = bytes(octets[at + lead + self.numbers_size : behind])
        read = self.known.get(given)
        if read is None:
            read = self.properties(given)
            if read is None:
                return ASK
            keep(self.known, given, read, len(given))
        key, basic = read
        if self.is_short:
            route = b"\x00\x3c\x00\x28\x00\x00" + route + key + b"\x00\xce"
        parts.append(_FRAME(1, number, len(route) - 1))
        parts.append(route)
        parts.append(_HEADER(2, number, 12 + len(basic), 60, 0, left))
        parts.append(basic)
        at = behind + 1
        while left > 0:
            if end - at < lead:
                return INCOMPLETE
            kind, other, size = self.head(octets, at)
            if kind != 3 or other != number or not 0 < size <= left or size > frame_size_max:
                return ASK
            behind = at + lead + size
            if behind >= end:
                return INCOMPLETE
            if octets[behind] != 0xCE:
                return ASK
            parts.append(b"\xce" + _FRAME(3, number, size))
            parts.append(octets[at + lead : behind])
            left -= size
            at = behind + 1
        parts.append(b"\xce")
        return at

    def publish(self, payload):
        """The payload of basic.publish, with the octet behind it, or of 0.9a5 the exchange as a short string, for the payload of a publish;
        None: it is not for here."""
        ticket = self.session.tickets.get(payload[4] << 8 | payload[5])
        names = payload[6:-2]
        at = 1 + names[0] if names else 0
        size = at if self.is_short else at + 1 + names[at] if 0 < at < len(names) else 0
        if (
            ticket is None
            or "write" not in ticket.rights
            or payload[-2] & 3
            or size != len(names)
            or not is_text(names[1:at] + names[at + 1 :])
        ):
            return None
        route = names if self.is_short else b"\x00\x3c\x00\x28\x00\x00" + names + b"\x00\xce"
        keep(self.publishes, payload, route, len(payload))
        return route

    def properties(self, octets):
        """(destination as a short string, properties of class basic) of a content header's flags and list; None: they are not for here."""
        flags, at, end = octets[0] << 8 | octets[1], 2, len(octets)
        basic = 0
        key = b"\x00"
        pieces = [b""]
        for own, flag, how in self.plan:
            if not flags & own:
                continue
            flags ^= own
            basic |= flag
            size = 4 if how == TABLE else 8 if how == TIME else 1
            if end - at < size:
                return None
            if how == TABLE:
                size += int.from_bytes(octets[at : at + 4], "big")
            elif how not in (OCTET, TIME):
                size += octets[at]
            piece = octets[at : at + size]
            at += size
            if at > end:
                return None
            if how == TABLE:
                piece = self.table(piece)
                if piece is None:
                    return None
            elif how in (TEXT, TIME_TEXT, DESTINATION):
                if not is_text(piece[1:]):
                    return None
                if how == DESTINATION:
                    key = piece
                    continue
                if how == TIME_TEXT:
                    if not piece[1:].isdigit() or size > 1 + TIME_DIGITS:
                        return None
                    piece = int(piece[1:]).to_bytes(8, "big")
            pieces.append(piece)
        if flags or at != end:
            return None
        pieces[0] = basic.to_bytes(2, "big")
        return key, b"".join(pieces)

    def table(self, octets):
        """A table of headers with its size as one of class basic; None: it is not for here."""
        made = self.tables.get(octets) or simple_table(octets, self.letters, BASIC_TEXT)
        if made is None:
            try:
                made = field_table.encode(Reader(self.session.fields, octets, 0, len(octets), "").table(1))
            except (ProtocolError, ValueError):
                return None
            keep(self.tables, octets, made, len(octets))
        return made


def simple_table(octets, letters, into):
    """A table of texts, integers of 32 bits and times with its size, as one of another version; None: there are other values, a name twice
    or one that drafts do not have. `letters`: letter of a value -> octets of its size or, below 0, of itself; `into`: the letter of a text,
    octets of its size, and how many octets one may have."""
    at, end = 4, len(octets)
    parts = [b""]
    names = set()
    letter, width, most = into
    try:
        while at < end:
            value = at + 1 + octets[at]
            name = octets[at + 1 : value]
            size = letters.get(octets[value])
            if size is None or name in names or not is_name(name):
                return None
            names.add(name)
            if size < 0:
                behind = value + 1 - size
                parts.append(octets[at:behind])
            else:
                begin = value + 1 + size
                behind = begin + int.from_bytes(octets[value + 1 : begin], "big")
                text = octets[begin:behind]
                if behind - begin > most or not is_text(text):
                    return None
                parts.append(octets[at:value] + letter + len(text).to_bytes(width, "big") + text)
            at = behind
    except IndexError:
        return None
    if at != end:
        return None
    body = b"".join(parts)
    return len(body).to_bytes(4, "big") + body


def is_name(octets):
    """See fields.is_name."""
    return 0 < len(octets) <= NAME_MAX and octets[:1] in _FIRST_OF_NAMES and not octets.translate(None, _OF_NAMES)


def is_text(octets):
    """True for ASCII without zeros."""
    return octets.isascii() and 0 not in octets


def keep(known, octets, made, size):
    """Remember what was made of octets."""
    if size <= KNOWN_SIZE:
        if len(known) >= KNOWN_MAX:
            known.clear()
        known[octets] = made
