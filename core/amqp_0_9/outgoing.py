"""A content on its way out that does not fit in the send buffer at once: it goes on, frame by frame, as the peer reads."""

from .. import limits
from ..memory import layout
from . import hot_out


class Outgoing:
    """At most one a session. The message is referenced until its last octet is in the send buffer."""

    def __init__(self):
        self.message = layout.NONE
        self.channel_number = 0
        self.left = 0
        self.block = layout.NONE
        self.offset = 0

    def active(self):
        """True while a content is half written."""
        return self.message != layout.NONE

    def start(self, session, number, message, method_frame, header_frame):
        """Begin a content: `method_frame` and `header_frame` (bytes) are written, the body follows.

        The caller has seen that there is room for both. `header_frame` None: the message's own content header.
        """
        tables = session.broker.tables
        send = session.send
        send.write(method_frame)
        messages = tables.messages
        tables.state[layout.STATE_CURSOR_BLOCK] = messages[message]
        tables.state[layout.STATE_CURSOR_OFFSET] = messages[message + layout.MESSAGE_ROUTE]
        if header_frame is None:
            send.wrote(
                hot_out.put_content_header(tables.arena, tables.blocks, messages, tables.state, message, number, send.octets, send.end)
            )
        else:
            send.write(header_frame)
            tables.state[layout.STATE_CURSOR_OFFSET] += messages[message + layout.MESSAGE_PROPERTIES]
        if messages[message + layout.MESSAGE_BODY]:
            self._begin(session, number, message, messages[message + layout.MESSAGE_BODY])

    def start_chain(self, session, number, message):
        """Go on with all that a message consists of (route, properties, body) as the rest of a content that is begun already."""
        tables = session.broker.tables
        tables.state[layout.STATE_CURSOR_BLOCK] = tables.messages[message]
        tables.state[layout.STATE_CURSOR_OFFSET] = 0
        self._begin(session, number, message, tables.size_of(message))

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
        """Let go of the message."""
        if self.message != layout.NONE:
            session.broker.tables.release(self.message)
            self.message = layout.NONE


def payload_octets(written, left, frame_size_max):
    """Octets of body among `written` octets of body frames: all frames but the last are full."""
    frames = (written + frame_size_max - 1) // frame_size_max
    return min(written - 8 * frames, left)
