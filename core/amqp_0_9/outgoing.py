"""An outgoing content that does not fit in the send buffer at once: it continues, frame by frame, as the peer reads."""

from .. import limits
from ..memory import layout
from ..parts import needed
from . import frame, hot_out

if False:  # for the type checker alone
    from typing import Any


def foreign():
    """The file that converts messages of another family."""
    return needed("amqp_0_9.foreign", "messages of another family")


class Outgoing:
    """At most one a session. The message is referenced until its last octet is in the send buffer."""

    def __init__(self):
        self.message = layout.NONE
        self.channel_number = 0
        self.lead: "Any" = b""  # octets that go before those of the message; foreign.Lead has them in several places
        self.left = 0
        self.block = layout.NONE
        self.offset = 0

    def active(self):
        """True while a content is half written."""
        return self.message != layout.NONE

    def start(self, session, number, message, method_frame, header_frame):
        """Begin a content: `method_frame` and `header_frame` (bytes) are written, the body follows.

        The caller has checked that there is room for both. `header_frame` None: the message's own content header.
        """
        tables = session.broker.tables
        send = session.send
        send.write(method_frame)
        messages = tables.messages
        at = tables.size_of(message) - messages[message + layout.MESSAGE_BODY]
        tables.state[layout.STATE_CURSOR_BLOCK] = messages[message]
        tables.state[layout.STATE_CURSOR_OFFSET] = at
        if header_frame is None:
            tables.state[layout.STATE_CURSOR_OFFSET] -= messages[message + layout.MESSAGE_PROPERTIES]
            send.wrote(
                hot_out.put_content_header(tables.arena, tables.blocks, messages, tables.state, message, number, send.octets, send.end)
            )
        else:
            send.write(header_frame)
            if messages[message + layout.MESSAGE_KIND] & layout.KIND_FORMAT:
                self.lead = foreign().lead_of(tables, message)
                self._begin(session, number, message, 0)
                return
        if messages[message + layout.MESSAGE_BODY]:
            self._begin(session, number, message, messages[message + layout.MESSAGE_BODY])

    def start_chain(self, session, number, message, lead, size):
        """Go on with the octets `lead` and the last `size` of a message's chain as the body of a content whose header is written."""
        tables = session.broker.tables
        at = tables.size_of(message) - size
        tables.state[layout.STATE_CURSOR_BLOCK] = tables.messages[message]
        tables.state[layout.STATE_CURSOR_OFFSET] = at
        self.lead = lead
        self._begin(session, number, message, size)

    def _begin(self, session, number, message, size):
        tables = session.broker.tables
        tables.messages[message + layout.MESSAGE_REFERENCES] += 1
        self.left = size
        self.message = message
        self.channel_number = number
        self.block = tables.state[layout.STATE_CURSOR_BLOCK]
        self.offset = tables.state[layout.STATE_CURSOR_OFFSET]
        if not self.go_on(session):
            session.send.busy = True

    def go_on(self, session):
        """Write as much of the body as there is room for; true when nothing is half written any more."""
        if self.message == layout.NONE:
            return True
        tables = session.broker.tables
        send = session.send
        room = send.room()
        state = tables.state
        if self.lead:
            size = max(min(len(self.lead), room - limits.REPLY_ROOM - 8, session.frame_size_max - 8), 0)
            if size:
                send.write(frame.encode(frame.BODY, self.channel_number, self.lead[:size]))
                self.lead = self.lead[size:]
            if self.lead:
                return False
            room = send.room()
        if room - limits.REPLY_ROOM > 8:
            state[layout.STATE_CURSOR_BLOCK] = self.block
            state[layout.STATE_CURSOR_OFFSET] = self.offset
            at = send.end
            left = session.hot.put_body(
                self.left, session.frame_size_max, self.channel_number, send.address, at, send.size - limits.REPLY_ROOM
            )
            send.wrote(left)
            self.left -= payload_octets(left - at, self.left, session.frame_size_max)
            self.block = state[layout.STATE_CURSOR_BLOCK]
            self.offset = state[layout.STATE_CURSOR_OFFSET]
        if self.left:
            return False
        self.abandon(session)
        return True

    def abandon(self, session):
        """Release the message."""
        if self.message != layout.NONE:
            session.broker.tables.release(self.message)
            self.message = layout.NONE
            self.lead = b""


def payload_octets(written, left, frame_size_max):
    """Octets of body among `written` octets of body frames: all frames but the last are full."""
    frames = (written + frame_size_max - 1) // frame_size_max
    return min(written - 8 * frames, left)
