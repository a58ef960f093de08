"""The content that is half written, on a connection of a draft: method, headers and the contents within it, then the body in frames.

As ..outgoing.Outgoing for a session: at most one, and the message is referenced until its last octet is in the send buffer.
"""

from ...limits import REPLY_ROOM
from ...memory import layout
from ...shim import const
from .frames import BODY, END

if False:  # for the type checker alone
    from typing import Any

LEAST = const(256)  # octets of a body frame that is not the last: less is worth none


class Outgoing:
    """`begin` starts one, `go_on` writes what there is room for, always whole frames: a heartbeat or connection.close may come between."""

    def __init__(self):
        self.message = layout.NONE
        self.number = 0  # the channel's
        self.lead = b""  # octets of whole frames that go first
        self.body: "Any" = None  # a Lead

    def active(self):
        """True while a content is half written."""
        return self.message != layout.NONE

    def begin(self, session, number, message, lead, body):
        """Begin a content of a message: whole frames (bytes), then a body (foreign.Lead)."""
        tables = session.broker.tables
        tables.messages[message + layout.MESSAGE_REFERENCES] += 1
        self.message, self.number, self.lead = message, number, lead
        self.body = body
        if not self.go_on(session):
            session.send.busy = True

    def go_on(self, session):
        """Write as much as there is room for; true when nothing is half written any more."""
        if self.message == layout.NONE:
            return True
        send = session.send
        while self.lead:
            _, _, head, size = session.framing.head(self.lead, 0, len(self.lead))
            size += head + 1
            if size > send.room() - REPLY_ROOM:
                return False
            send.write(self.lead[:size])
            self.lead = self.lead[size:]
        overhead = session.framing.overhead
        while len(self.body):
            most = min(session.frame_size_max, send.room() - REPLY_ROOM) - overhead
            if most < min(len(self.body), LEAST):
                return False
            size = min(most, len(self.body))
            send.write(session.framing.lead(BODY, self.number, size) + self.body[:size] + END)
            self.body = self.body[size:]
        self.abandon(session)
        return True

    def abandon(self, session):
        """Let go of the message."""
        if self.message != layout.NONE:
            session.broker.tables.release(self.message)
            self.message, self.lead, self.body = layout.NONE, b"", None
