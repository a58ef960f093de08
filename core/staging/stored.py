"""Messages whose body is a staged content: the row of core/message/formats.py for the format STORED.

    properties   octet: the format of the publisher's properties | those
    body         longlong: octets of the content | its token

No receiver of another kind gets such a message (Contents.guard); one whose contents were removed from the disk has no body for anybody.
"""

import struct

from ..memory import layout
from ..message.formats import NUMBER, STORED, format_of

SIZE_SIZE = 8  # octets of the size in a reference


def reference(size, token):
    """The body of a message for a content of `size` octets with this token (text)."""
    return struct.pack(">Q", size) + token.encode("utf-8")


def size_and_token(octets):
    """(octets of the content, token) of such a body."""
    return struct.unpack(">Q", octets[:SIZE_SIZE])[0], str(octets[SIZE_SIZE:], "utf-8")


def all_in(tables):
    """The messages in memory that have such a body: a list."""
    messages = tables.messages
    return [
        message
        for message in range(0, len(messages) - layout.MESSAGE_WIDTH + 1, layout.MESSAGE_WIDTH)
        if messages[message + layout.MESSAGE_KIND] & NUMBER == STORED and messages[message + layout.MESSAGE_REFERENCES] > 0
    ]


def check(buffer, at, end):
    """Raise ProtocolError for properties that are not valid."""
    format_of(buffer[at]).check(buffer, at + 1, end)


def decode(buffer, at, end):
    """The properties by name."""
    return format_of(buffer[at]).decode(buffer, at + 1, end)


def field_in(octets, name):
    """One property, or None."""
    return format_of(octets[0]).field_in(octets[1:], name)


def header(octets, name):
    """One header, or None."""
    return format_of(octets[0]).header(octets[1:], name)


def merge(octets, annotations):
    """Properties with annotations over them."""
    return octets[:1] + format_of(octets[0]).merge(octets[1:], annotations)


def exact(octets, wide=False):
    """For other families (core/broker/crossing.py): the properties by name."""
    return decode(octets, 0, len(octets))


def payload(octets, size, read):
    """No octet of a reference is a body for anybody."""
    return [], None
