"""The delivery that is half written: at most one a connection. Its frames follow each other, and nothing else goes between them."""

from ..limits import REPLY_ROOM
from ..memory import hot, layout
from ..shim import const
from . import frame

if False:  # for the type checker alone
    from typing import Any

_LEAST = const(256)  # octets of a frame that is not the last: less is worth none


class Outgoing:
    """`start` begins one; `go_on` writes what there is room for. The message is referenced until its last octet is in the send buffer."""

    def __init__(self):
        self.session: "Any" = None
        self.message = layout.NONE
        self.lead = b""  # octets of whole frames that go first
        self.pieces: "list" = []  # (position, octets) of the message that are its body
        self.at_piece = True  # the next octets begin a piece
        self.left = 0  # octets of the body
        self.is_first = True
        self.block = layout.NONE
        self.offset = 0

    def active(self):
        """True while a delivery is half written."""
        return self.session is not None

    def start(self, protocol, session, message, lead, pieces):
        """Begin a delivery: whole frames (bytes), then the body of a message. `pieces`: as core/broker/crossing.py has them."""
        tables = protocol.broker.tables
        tables.messages[message + layout.MESSAGE_REFERENCES] += 1
        size = tables.messages[message + layout.MESSAGE_BODY]
        self.session, self.message, self.lead, self.is_first = session, message, lead, True
        start = tables.size_of(message) - size
        self.pieces = [(start + at, length) for at, length in ([(0, size)] if pieces is None else pieces) if length]
        self.left = sum([length for _, length in self.pieces])
        self.block, self.offset = tables.messages[message], 0
        self.at_piece = True
        return self.go_on(protocol)

    def go_on(self, protocol):
        """Write as many frames as there is room for; true when nothing is half written any more."""
        if self.session is None:
            return True
        send = protocol.send
        if self.lead:
            size = min(len(self.lead), max(send.room() - REPLY_ROOM, 0))
            if size:
                send.write(self.lead[:size])
                self.lead = self.lead[size:]
            if self.lead:
                return False
        while self.left:
            most = min(protocol.frame_max_out, send.room() - REPLY_ROOM) - frame.HEAD
            if most < min(self.left, _LEAST):
                return False
            size = min(most, self.left)
            flags = frame.LAST_SEGMENT | (frame.FIRST_FRAME if self.is_first else 0) | (frame.LAST_FRAME if size == self.left else 0)
            send.write(frame.head(flags, frame.BODY, self.session.number, size))
            self.put(protocol, size)
            self.is_first = False
        self.abandon(protocol)
        return True

    def put(self, protocol, size):
        """Write the next `size` octets of the body."""
        tables, send = protocol.broker.tables, protocol.send
        self.left -= size
        while size:
            at, length = self.pieces[0]
            part = min(length, size)
            if self.at_piece:
                self.block, self.offset = tables.messages[self.message], at
            place = send.end
            hot.extract(tables.arena, tables.blocks, tables.state, self.block, self.offset, send.octets, place, part)
            self.block, self.offset = tables.state[layout.STATE_CURSOR_BLOCK], tables.state[layout.STATE_CURSOR_OFFSET]
            send.wrote(place + part)
            self.at_piece = part == length
            self.pieces[0] = (at + part, length - part)
            if part == length:
                self.pieces.pop(0)
            size -= part

    def abandon(self, protocol, session=None):
        """Let go of the message; with `session`, only if it is its."""
        if self.session is None or session is not None and session is not self.session:
            return
        protocol.broker.tables.release(self.message)
        self.session, self.message, self.lead, self.left = None, layout.NONE, b"", 0
