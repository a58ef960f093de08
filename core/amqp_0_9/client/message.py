"""A message as the client hands it out: deliver, get-ok and return of class basic (0-9-1 section 1.8.3), with its content.

    octets of the method's arguments, as they came:
    deliver  | consumer-tag S | delivery-tag L | redelivered b | exchange S | routing-key S |
    get-ok                    | delivery-tag L | redelivered b | exchange S | routing-key S | message-count l |
    return   | reply-code s | reply-text S                     | exchange S | routing-key S |

Laws: the message owns the octets it came in, so it may be kept; names and properties are decoded when they are asked for (names as
str, or as bytes when they are not UTF-8). `exchange_octets`, `routing_key_octets` and `properties_octets` are the publisher's own:
what a bridge passes on.
"""

from struct import unpack_from

from ...errors import FRAME_ERROR, SYNTAX_ERROR, ProtocolError
from ...shim import const
from .. import properties
from ..field_table import text_of

if False:  # for the type checker alone
    from typing import Any

DELIVER = const(0x3C003C)
GET_OK = const(0x3C0047)
RETURN = const(0x3C0032)


def exchange_at(code, octets):
    """Where the exchange name starts in the arguments of method `code`; checks the arguments to the last octet.

    Raises ProtocolError(SYNTAX_ERROR) when they do not fit.
    """
    try:
        tail = 0
        if code == DELIVER:
            start = octets[0] + 10
        elif code == GET_OK:
            start = 9
            tail = 4
        else:
            start = octets[2] + 3
        end = start + octets[start] + 1
        end += octets[end] + 1 + tail
    except IndexError:
        end = -1
    if end != len(octets):
        raise ProtocolError(SYNTAX_ERROR, "a content method whose arguments do not fit its frame")
    return start


class Message:
    """`channel`: the Channel it came on. `body`: bytes, or None when it was refused for its size. `body_size`: octets announced;
    `taken`: octets that have come so far."""

    __slots__ = ("channel", "code", "octets", "properties_octets", "body", "body_size", "taken", "_exchange_at")

    def __init__(self, channel, code, octets):
        self.channel = channel
        self.code = code
        self.octets = octets
        self.properties_octets: "Any" = None
        self.body: "Any" = None
        self.body_size = 0
        self._exchange_at = exchange_at(code, octets)
        self.taken = 0

    @property
    def consumer_tag(self):
        """The consumer's tag; deliver only."""
        return text_of(self.consumer_tag_octets)

    @property
    def consumer_tag_octets(self):
        """The consumer's tag as it came; deliver only."""
        return self.octets[1 : 1 + self.octets[0]]

    @property
    def delivery_tag(self):
        """Number to acknowledge with; deliver and get-ok."""
        return unpack_from(">Q", self.octets, self._exchange_at - 9)[0]

    @property
    def redelivered(self):
        """True when the message may have been delivered before (basic.deliver, basic.get-ok)."""
        return self.octets[self._exchange_at - 1] & 1 != 0

    @property
    def exchange_octets(self):
        """The exchange it was published to, as bytes."""
        start = self._exchange_at
        return self.octets[start + 1 : start + 1 + self.octets[start]]

    @property
    def exchange(self):
        """The exchange it was published to."""
        return text_of(self.exchange_octets)

    @property
    def routing_key_octets(self):
        """The routing key, as bytes."""
        start = self._exchange_at + 1 + self.octets[self._exchange_at]
        return self.octets[start + 1 : start + 1 + self.octets[start]]

    @property
    def routing_key(self):
        """The routing key."""
        return text_of(self.routing_key_octets)

    @property
    def message_count(self):
        """Messages left in the queue; get-ok only."""
        return unpack_from(">I", self.octets, len(self.octets) - 4)[0]

    @property
    def reply_code(self):
        """Why it came back, as 312 for no route; return only."""
        return self.octets[0] << 8 | self.octets[1]

    @property
    def reply_text(self):
        """Why it came back, in words; return only."""
        return text_of(self.octets[3 : 3 + self.octets[2]])

    @property
    def properties(self):
        """The properties as a new dict by name. Raises ProtocolError(SYNTAX_ERROR) when they cannot be read (section 4.2.6.1)."""
        return properties.decode(self.properties_octets, 0, len(self.properties_octets))

    def room_for(self, body_size):
        """Make room for a body that comes in pieces; False when there is no memory for it."""
        try:
            self.body = memoryview(bytearray(body_size))
            return True
        except MemoryError:
            return False

    def append(self, piece):
        """Octets of the body, in order; True when it is whole. A body that came in one piece is copied once, else gathered."""
        size = len(piece)
        if size > self.body_size - self.taken:
            raise ProtocolError(FRAME_ERROR, "a body of more octets than its header announced", True)
        if size == self.body_size:
            self.body = bytes(piece)
            return True
        target = self.body[self.taken : self.taken + size]  # MicroPython moves the tail of what a slice is assigned to: none here
        target[:] = piece
        self.taken += size
        if self.taken < self.body_size:
            return False
        self.body = bytes(self.body)
        return True
