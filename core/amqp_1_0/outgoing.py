"""A delivery on its way out in several transfers (section 2.6.14): it goes on as the peer reads and opens its window."""

import struct

from ..limits import REPLY_ROOM
from ..memory import hot, layout
from ..shim import const
from . import types

if False:  # for the type checker alone
    from typing import Any

_FIELDS = const(11)  # of a transfer
_LEAST = const(256)  # octets of a transfer that is not the last: less is worth no frame


def performative(handle, number, settled, more, whole, tag, state=b"", resume=False):
    """The octets of a transfer (section 2.7.5); `number`: its delivery-id, None: it is not the first of its delivery; `tag`: its
    delivery-tag, or a number that this is made of; `state`: octets of a delivery state, or none; `whole`: nulls at the end are written,
    too: azure-eventhub reads them."""
    octets = b"\x43" if handle == 0 else b"\x52" + bytes((handle,))
    flags = (b"\x41" if settled else b"\x42") + (b"\x41" if more else b"\x42")
    if number is None:
        octets += b"\x40\x40\x40" + flags
    else:
        id_ = struct.pack(">I", number)
        octets += b"\x70" + id_ + types.encode(struct.pack(">I", tag) if isinstance(tag, int) else tag) + b"\x43" + flags
    count = 6
    if state or resume:
        octets += b"\x40" + (state or b"\x40") + (b"\x41" if resume else b"\x42")
        count = 9
    if whole:
        octets += b"\x40" * (_FIELDS - count)
        count = _FIELDS
    return b"\x00\x53\x14\xc0" + bytes((1 + len(octets), count)) + octets


class Outgoing:
    """The delivery under way of a session, one at most. It holds a reference to its message until the last octet is in the send buffer."""

    def __init__(self, session):
        self.session = session
        self.message = layout.NONE
        self.link: "Any" = None
        self.number = None  # the delivery-id, until it was said
        self.first: "Any" = (0,)  # what performative is given more of the first transfer
        self.lead = b""  # octets that go before those of the body
        self.left = 0  # octets of the body
        self.block = layout.NONE
        self.offset = 0

    def active(self):
        """True while a delivery is half written."""
        return self.link is not None

    def start_octets(self, link, number, octets):
        """Begin a delivery of these octets, which are no message's of the broker."""
        self.session.windows.is_held = True
        self.link, self.number, self.lead, self.left = link, number, octets, 0
        self.first = (number,)
        if not self.go_on():
            self.session.wants_to_write()

    def start(self, link, message, number, lead, first):
        """Begin a delivery: the octets `lead`, then the body of a message. `first`: (tag, state, resume) for performative."""
        tables = self.session.broker.tables
        self.session.windows.is_held = True
        tables.messages[message + layout.MESSAGE_REFERENCES] += 1
        self.message, self.link, self.number, self.lead, self.first = message, link, number, lead, first
        self.left = tables.messages[message + layout.MESSAGE_BODY]
        self.block, self.offset = tables.messages[message], tables.size_of(message) - self.left
        if not self.go_on():
            self.session.wants_to_write()

    def go_on(self):
        """Write transfers while the send buffer has place and the peer's window is open. Returns true when the delivery is complete."""
        session = self.session
        send = session.connection.send
        frame_max = session.session.frame_max_out
        while self.link is not None:
            link = self.link
            left = len(self.lead) + self.left
            octets = performative(link.handle, self.number, link.settled, False, link.writes_all, *self.first)
            most = min(frame_max, send.room() - REPLY_ROOM) - 8 - len(octets)
            if session.remote_incoming_window <= 0 or most < min(left, _LEAST):
                return False
            size = min(left, most)
            if size < left:
                octets = performative(link.handle, self.number, link.settled, True, link.writes_all, *self.first)
            self.put(send, struct.pack(">IBBH", 8 + len(octets) + size, 2, 0, session.number) + octets, size)
            self.number = None
            self.first = (0,)
            session.count_sent()
            if size == left:
                self.abandon()
        return True

    def put(self, send, head, size):
        """Write the octets `head`, then the next `size` octets of the lead and the body; what raises has written nothing."""
        lead = self.lead[:size]
        send.write(head + lead)
        if lead:
            self.lead = self.lead[size:]
        size -= len(lead)
        if size:
            tables = self.session.broker.tables
            at = send.end
            hot.extract(tables.arena, tables.blocks, tables.state, self.block, self.offset, send.octets, at, size)
            self.block, self.offset = tables.state[layout.STATE_CURSOR_BLOCK], tables.state[layout.STATE_CURSOR_OFFSET]
            self.left -= size
            send.wrote(at + size)

    def abandon(self):
        """Release the message."""
        if self.message != layout.NONE:
            self.session.broker.tables.release(self.message)
            self.message = layout.NONE
        self.session.windows.is_held = False
        self.link = None
        self.lead = b""
