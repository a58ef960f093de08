"""A publish of what is staged, in every family: a message with a copy of the octets where these fit, or one that refers to them.

`incoming`: core/broker/incoming.py, after its `to`. `header`: the message's properties in the format of `kind`.
"""

from ..broker import crossing
from ..errors import INTERNAL_ERROR, PRECONDITION_FAILED, ProtocolError
from ..memory import layout
from ..message import annotations, reading
from ..message.formats import NUMBER, STORED
from . import stored
from .content import Damaged
from .contents import contents_of

PIECE = 65536  # octets of a content that are read at once


def content_for(broker, user, identifier):
    """The whole content of this name, which can be read. Raises ProtocolError."""
    content = contents_of(broker).of(user, identifier)
    if content.is_damaged:
        raise ProtocolError(PRECONDITION_FAILED, "what was staged as '%s' cannot be read back" % content.identifier[:80])
    return content


def is_large(broker, content):
    """True for a content whose message refers to it."""
    return content.size > broker.limits.content_size_max


def begin(broker, incoming, content, header, kind):
    """Begin the message of a content, and put its octets there: false when there is no room now. Raises ProtocolError."""
    if is_large(broker, content):
        header = bytes((kind & NUMBER,)) + header
        reference = stored.reference(content.size, content.token)
        if not incoming.begin(header, 0, len(header), len(reference), kind & ~NUMBER | STORED, layout.NONE):
            return False
        incoming.append(reference, 0, len(reference))
    else:
        if not incoming.begin(header, 0, len(header), content.size, kind, layout.NONE):
            return False
        copy(broker.contents, content, incoming)
        content.copied = True
    content.touched = broker.uptime_s
    return True


def copy(contents, content, incoming):
    """Put a content's octets into the message that has begun."""
    at = 0
    try:
        while at < content.size:
            octets = contents.read(content, at, PIECE)
            incoming.append(octets, 0, len(octets))
            at += len(octets)
    except (Damaged, OSError) as error:
        transaction, incoming.transaction = incoming.transaction, None
        incoming.abandon()
        incoming.transaction = transaction
        raise ProtocolError(INTERNAL_ERROR, "what is staged cannot be read back: %s" % error) from None


def ended(broker, content):
    """The publish is done: a content that a message refers to stays; else it was returned, or refused: its sender may publish it
    elsewhere."""
    if is_large(broker, content) and content.token in broker.contents.tokens():
        content.referred = True


def is_unread(broker, incoming):
    """True for a message, to be delivered at once, that a queue without consumers would get."""
    targets = broker.route(incoming.exchange, incoming.key(), incoming.message)
    return len(targets) > 0 and not [queue for queue in targets if queue.consumers]


def properties_of(broker, message):
    """What any message says of itself, by the names that families share, for receivers of the classes file and stream."""
    tables = broker.tables
    kind = tables.messages[message + layout.MESSAGE_KIND]
    octets = tables.properties_of(message)
    if kind & NUMBER == STORED:
        kind, octets = octets[0], octets[1:]
    given = annotations.put_over(crossing.source_of(kind).exact(octets), reading.annotations_of(tables, message))
    if tables.messages[message + layout.MESSAGE_KIND] & layout.KIND_HAS_PRIORITY:
        given["priority"] = reading.priority_of(tables, message)
    return given
