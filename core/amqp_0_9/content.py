"""A publish as it arrives: method, content header, body frames (0-9-1 section 4.2.6). Bodies go into their blocks piece by piece.

What that costs, and where it goes, is the broker's (core/broker/incoming.py). When there is no room for a content its header frame stays
where it is and the connection is not read until there is; a full queue holds a complete content, and with it the connection.
"""

from ..errors import NOT_IMPLEMENTED, PRECONDITION_FAILED, SYNTAX_ERROR, UNEXPECTED_FRAME, ProtocolError
from ..exchange.base import whole_number
from ..memory import layout
from ..message import annotations
from ..outcomes import NO_ROOM, NOT_YET, TAKEN
from . import properties, sender_selected
from .described import described

USER_ID = 0x10  # in the second octet of the property flags
EXPIRATION = 0x01  # in the first
REPLY_TO = 0x02

REPLY_QUEUE = "amq.rabbitmq.reply-to"


def publish(session, channel, row, buffer, at, end):
    """basic.publish (section 1.8.3.8); its arguments stand between `at` and `end`."""
    size = 0
    if at + 3 <= end:
        size = 1 + buffer[at + 2]
        if at + 2 + size < end:
            size += 1 + buffer[at + 2 + size]
    if at + 3 + size != end or size < 2:
        raise ProtocolError(SYNTAX_ERROR, "basic.publish has the wrong size for its names")
    if buffer[end - 1] & 2:
        raise ProtocolError(NOT_IMPLEMENTED, "immediate=true")
    try:
        channel.to(bytes(buffer[at + 2 : at + 2 + size]), buffer[end - 1] & 1 != 0)
    except UnicodeError:
        raise ProtocolError(SYNTAX_ERROR, "basic.publish has an exchange name that is not UTF-8") from None
    session.begun += 1


def header(session, channel, row, buffer, at, end):
    """A content header frame; false: there is no room for the content now, and nothing has changed."""
    if end - at < 14:
        raise ProtocolError(SYNTAX_ERROR, "a content header of %d octets; at least 14 are needed" % (end - at))
    class_id = buffer[at] << 8 | buffer[at + 1]
    if class_id != 60:
        raise ProtocolError(UNEXPECTED_FRAME, "expected a content header of class 60 (basic), got class %d" % class_id)
    if buffer[at + 2] | buffer[at + 3]:
        raise ProtocolError(SYNTAX_ERROR, "the weight of a content header must be 0")
    body_size = int.from_bytes(bytes(buffer[at + 4 : at + 12]), "big")
    changes = read_properties(session, channel, buffer, at + 12, end)
    octets = annotations.write(changes) if changes else b""
    kind, lifetime = described(buffer, at + 12)
    if len(changes) == 1 and "reply_to" in changes:
        kind |= layout.KIND_REPLY_TO
    if not channel.begin(buffer, at + 12, end - at - 12, body_size, kind, lifetime, octets):
        return False
    if body_size == 0:
        complete(session, channel)
    return True


def read_properties(session, channel, buffer, at, end):
    """Check properties, and read those that are promises or have an effect. Returns annotations for the message.

    user-id is the publisher's own name, expiration is a number, reply-to may name the direct reply queue (RabbitMQ).
    """
    changes: dict = {}
    headers = properties.check(buffer, at, end)
    if headers is not None and ("CC" in headers or "BCC" in headers):
        changes = sender_selected.read(session, channel, headers)
    elif channel.copies:
        channel.copies = b""
    if not buffer[at + 1] & USER_ID and not buffer[at] & (EXPIRATION | REPLY_TO):
        return changes
    given = properties.decode(buffer, at, end)
    channel.check_user(given.get("user_id", session.user))
    expiration = given.get("expiration")
    if expiration is not None:
        if not isinstance(expiration, str) or len(expiration) > 10 or whole_number(expiration) is None:
            raise ProtocolError(PRECONDITION_FAILED, "invalid expiration '%s': a number of milliseconds in at most 10 digits" % expiration)
    if given.get("reply_to") == REPLY_QUEUE:
        if channel.reply_queue is None:
            raise ProtocolError(PRECONDITION_FAILED, "fast reply consumer does not exist")
        changes["reply_to"] = channel.reply_queue
    return changes


def begin_body(session, channel, row, buffer, at, size):
    """A body frame of `size` octets begins."""
    if size > channel.body_left:
        raise ProtocolError(UNEXPECTED_FRAME, "a body frame of %d octets where %d are left of the content" % (size, channel.body_left))


def complete(session, channel):
    """The content is complete; an error in completing it closes the channel. Where it has to wait, so has the connection."""
    state = session.broker.tables.state
    entries = state[layout.POOL_ENTRIES + 2]
    try:
        outcome = channel.complete()
    except ProtocolError as error:
        outcome = session.soft(channel, error)
    session.effort += max(entries - state[layout.POOL_ENTRIES + 2], 0)
    if channel.closing:
        return
    if outcome == NO_ROOM:
        session.hold(channel)
        return
    if outcome == NOT_YET:
        session.hold_for_log(channel)
        return
    if outcome == TAKEN and session.route_asked and channel.transaction is None and channel.exchange in session.writable:
        session.route_asked = False
        session.broker.remember_route(session.connection.user.number, channel.exchange, channel.route)
    session.step_of(channel, "content_end")


def end_content(session, channel):
    """The content is done with."""
    session.begun -= 1


def abandon(session, channel):
    """Forget a content that will not be completed, and returns that will not be written."""
    channel.abandon()
    drop_returns(session, channel)


def drop_returns(session, channel):
    """Forget returns that will not be written."""
    for message, _, _ in channel.returns:
        session.broker.tables.release(message)
    channel.returns = []
