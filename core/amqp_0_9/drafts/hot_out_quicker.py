"""Deliveries of a draft that need no thought: method, content header and body, each one frame. CPython's form;
c_accel/amqp_0_9_drafts.c has the same in C, boards have none.

What is not for here goes out by session.py: contents within others, a body of several frames, annotations, channels above 255 of 0.9a5.
"""

from struct import Struct

from ...broker import crossing
from ...limits import REPLY_ROOM
from ...memory import layout
from .. import field_table
from ..foreign import PLAIN, VERSION, as_basic, deliver_each
from . import hot_in_quicker as hot_in
from .contents import HEADS, TREE
from .hot_in_quicker import JMS, OCTET, TABLE, TEXT, TIME, TIME_TEXT

_TAG = Struct(">QB").pack  # delivery tag, redelivered
_TREE = TREE.encode()
SHORT_MAX = 65534  # octets of a payload in a frame of 0.9a5 that is no extended one


def plan(rows):
    """How to write the properties of a class with these rows: [(flag of class basic, its own flag or 0, how)], in the order of class basic;
    as hot_in.plan."""
    own = {row[1]: (row[0], row[2]) for row in hot_in.plan(rows)}
    left_out = {"headers": TABLE, "delivery_mode": OCTET, "priority": OCTET, "timestamp": TIME}
    return [(flag,) + own.get(flag, (0, left_out.get(name, TEXT))) for name, flag in hot_in.FLAGS.items()]


class Delivering:
    """The deliveries of one session."""

    def __init__(self, session):
        self.session = session
        self.is_short = session.framing.number_size == 1
        self.lead = 4 if self.is_short else 8
        self.plan = plan(session.wire.CONTENTS[JMS][1])
        self.text = (b"S", 1, 255) if self.is_short else (b"S", 4, 0xFFFF)  # as simple_table has it
        self.destination = 0x2000 if self.is_short else 0  # its flag
        self.known: dict = {}  # properties of class basic -> (flags, what goes before a destination, what goes behind)
        self.tables: dict = {}  # octets of a table of headers -> those of the draft

    def deliver(self, consumer, most):
        """Write up to `most` deliveries: how many. It ends at the first message that is not for here, or has no room."""
        if consumer.class_id != JMS or self.is_short and consumer.channel.number > 255:
            return 0
        return deliver_each(self.session, consumer, most, self.delivery)

    def delivery(self, session, consumer, message, tag, came_back, room):
        """The octets of a delivery, at most `room`; None: it is not for here, or there is no room."""
        number, tag = consumer.channel.number, _TAG(tag, came_back)
        tables = session.broker.tables
        messages = tables.messages
        kind = messages[message + layout.MESSAGE_KIND] & layout.KIND_REWORKED
        if kind and kind not in PLAIN:
            return None
        route, size = messages[message + layout.MESSAGE_ROUTE], messages[message + layout.MESSAGE_BODY]
        if size > SHORT_MAX or size + session.framing.overhead > session.frame_size_max:
            return None
        chain = tables.octets(message, 0, messages[message + layout.MESSAGE_FILLED])
        body = len(chain) - size
        octets = chain[route:body]
        if kind:
            octets, pieces = crossing.once(session.broker, message, False, VERSION, as_basic, octets)
            if pieces is not None:
                return None
        made = self.known.get(octets) or self.properties(octets)
        if made is None:
            return None
        hot_in.keep(self.known, octets, made, len(octets))
        flags, before, behind = made
        names = 1 + chain[0]
        if self.destination:
            head = b"\x07\x00" + size.to_bytes(8, "big") + flags + before + chain[names:route] + behind
            method = b"\x07\x06\x00\x00" + tag + chain[:names] + consumer.names
            lead = b"\x01%c" % number + (len(method) + 1).to_bytes(2, "big")
            middle = b"\xce\x02%c" % number + (len(head) + 1).to_bytes(2, "big")
            last = b"\xce\x03%c" % number + (size + 1).to_bytes(2, "big")
        else:
            head = b"\x00\x07\x00\x00" + size.to_bytes(8, "big") + flags + before + behind
            method = b"\x00\x07\x00\x07" + consumer.names + tag + chain[:route]
            lead = b"\x01\x00" + number.to_bytes(2, "big") + len(method).to_bytes(4, "big")
            middle = b"\xce\x02\x00" + number.to_bytes(2, "big") + len(head).to_bytes(4, "big")
            last = b"\xce\x03\x00" + number.to_bytes(2, "big") + size.to_bytes(4, "big")
        if len(head) > min(session.frame_size_max, SHORT_MAX, session.send.size - REPLY_ROOM - HEADS):
            return None
        octets = b"".join((lead, method, middle, head) + ((last, chain[body:]) if size else ()) + (b"\xce",))
        return octets if len(octets) <= room else None

    def properties(self, octets):
        """(flags, octets before a destination, octets behind it) of properties of class basic; None: they are not for here."""
        flags, at = octets[0] << 8 | octets[1], 2
        own = self.destination
        pieces: list = []
        before = None
        for flag, its, how in self.plan:
            if flag == 0x2000:
                before, pieces = b"".join(pieces), []
            if not flags & flag:
                continue
            size = 8 if flag == 0x40 else 1
            if how == TABLE:
                size = 4 + int.from_bytes(octets[at : at + 4], "big")
            elif flag != 0x40 and how != OCTET:
                size += octets[at]
            piece = octets[at : at + size]
            at += size
            if not its:
                continue
            if how == TABLE:
                piece = self.table(piece)
                if piece is None:
                    return None
            elif how == TIME_TEXT:
                digits = b"%d" % int.from_bytes(piece, "big")
                piece = bytes((len(digits),)) + digits
            own |= its
            pieces.append(piece)
        return own.to_bytes(2, "big"), before, b"".join(pieces)

    def table(self, octets):
        """A table of headers with its size as one of the draft; None: there are contents within the message."""
        made = self.tables.get(octets) or hot_in.simple_table(octets, hot_in.BASIC_LETTERS, self.text)
        if made is None and _TREE not in octets:
            made = self.session.fields.table(field_table.pairs(octets, 4, len(octets), 1))
            hot_in.keep(self.tables, octets, made, len(octets))
        return made
