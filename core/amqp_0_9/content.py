"""A publish as it arrives: method, content header, body frames (0-9-1 section 4.2.6). Bodies go into their blocks piece by piece.

The blocks for the whole content are put on account at its header; when there is no room the frame stays where it is and the connection is
not read until there is. When the content is complete the broker routes it; a full queue holds it, and with it the connection.
"""

from ..access import permissions
from ..broker.broker import MANAGEMENT_ROUTE
from ..errors import (
    ACCESS_REFUSED,
    CONTENT_TOO_LARGE,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    RESOURCE_ERROR,
    SYNTAX_ERROR,
    UNEXPECTED_FRAME,
    ProtocolError,
)
from ..exchange.base import whole_number
from ..memory import layout
from ..message import annotations
from ..message.route import exchange_of
from ..outcomes import NO_ROOM, NOT_YET, TAKEN, UNROUTABLE
from . import properties, sender_selected
from .described import described

USER_ID = 0x10  # in the second octet of the property flags
EXPIRATION = 0x01  # in the first
REPLY_TO = 0x02

REPLY_QUEUE = "amq.rabbitmq.reply-to"

MANAGING = 1 << 16  # Session.effort of a management request: a turn


def publish(session, channel, row, buffer, at, end):
    """basic.publish (section 1.8.3.8); its arguments stand between `at` and `end`."""
    size = 0
    if at + 3 <= end:
        size = 1 + buffer[at + 2]
        if at + 2 + size < end:
            size += 1 + buffer[at + 2 + size]
    if at + 3 + size != end or size < 2:
        raise ProtocolError(SYNTAX_ERROR, "basic.publish has the wrong size for its names")
    channel.route = bytes(buffer[at + 2 : at + 2 + size])
    flags = buffer[end - 1]
    try:
        channel.exchange = exchange_of(channel.route)
    except UnicodeError:
        raise ProtocolError(SYNTAX_ERROR, "basic.publish has an exchange name that is not UTF-8") from None
    if flags & 2:
        raise ProtocolError(NOT_IMPLEMENTED, "immediate=true")
    if channel.exchange not in session.writable:
        permissions.check(session.broker, session.connection.user, permissions.WRITE, "exchange", channel.exchange)
    found = session.broker.exchanges.get(channel.exchange)
    if found is None and channel.exchange:
        raise ProtocolError(NOT_FOUND, "no " + session.broker.called("exchange", channel.exchange))
    if found is not None and found.internal:
        raise ProtocolError(ACCESS_REFUSED, "cannot publish to internal " + session.broker.called("exchange", channel.exchange))
    if channel.transaction is not None:
        channel.transaction.check_room()
    channel.mandatory = flags & 1 != 0
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
    limits = session.broker.limits
    changes = read_properties(session, channel, buffer, at + 12, end)
    size = end - at - 12
    if body_size > limits.content_size_max:
        raise ProtocolError(CONTENT_TOO_LARGE, "a body of %d octets; this broker takes %d" % (body_size, limits.content_size_max))
    if size > limits.properties_size_max:
        raise ProtocolError(CONTENT_TOO_LARGE, "properties of %d octets; this broker takes %d" % (size, limits.properties_size_max))
    octets = b""
    if changes:
        octets = annotations.write(changes)
    tables = session.broker.tables
    blocks = tables.blocks_for(len(channel.route) + len(octets) + size + body_size)
    if not tables.has_room(blocks, 1):
        session.broker.make_room(blocks)
    if not tables.has_room(blocks, 1) and not may_have_spare(session, channel, blocks):
        if session.unfinished or channel.transaction is not None and channel.transaction.publishes:
            raise ProtocolError(RESOURCE_ERROR, "no room for another unfinished or uncommitted content of this connection", True)
        return False
    kind, lifetime = described(buffer, at + 12)
    channel.message = tables.new_message(channel.route, size, body_size, session.broker.seconds, kind, lifetime, len(octets))
    tables.append(channel.message, octets, 0, len(octets))
    tables.append(channel.message, buffer, at + 12, size)
    channel.body_left = body_size
    session.unfinished += 1
    session.content_moved = session.broker.now
    if body_size == 0:
        complete(session, channel)
    return True


def may_have_spare(session, channel, blocks):
    """True for a request to the management, when there is room with what is kept for that: so a bridge can drain a full broker."""
    if channel.route != MANAGEMENT_ROUTE or not session.connection.user.tags:
        return False
    return session.broker.tables.has_spare(blocks, 1)


def read_properties(session, channel, buffer, at, end):
    """Check properties, and look into those that are promises or have an effect: annotations for the message.

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
    user = given.get("user_id", session.user)
    if user != session.user and "impersonator" not in session.connection.user.tags:
        raise ProtocolError(PRECONDITION_FAILED, "user_id property set to '%s' but authenticated user was '%s'" % (user, session.user))
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


def body(session, channel, buffer, at, size):
    """`size` octets of a body frame."""
    session.broker.tables.append(channel.message, buffer, at, size)
    channel.body_left -= size
    session.content_moved = session.broker.now


def complete(session, channel):
    """The content is whole: route it, keep it for a commit, or hold the connection until there is room."""
    if channel.transaction is not None:
        channel.transaction.add(channel.message, channel.copies, channel.mandatory)
    else:
        before = 0 if session.broker.journal is None else session.broker.journal.taken
        entries_before = session.broker.tables.state[layout.POOL_ENTRIES + 2]
        outcome = put(session.broker, channel.message, channel.exchange, channel.key())
        session.effort += max(entries_before - session.broker.tables.state[layout.POOL_ENTRIES + 2], 0)
        if outcome == NO_ROOM:
            session.hold(channel)
            return
        if outcome == UNROUTABLE and channel.route == MANAGEMENT_ROUTE:
            outcome = session.on_channel(channel, manage)
            if channel.closing:
                return
            if outcome == NO_ROOM:
                session.hold(channel)
                return
            if outcome == NOT_YET:
                session.hold_for_log(channel)
                return
        if session.broker.journal is not None and session.broker.journal.taken != before:
            channel.promises.logged()
        message, channel.message = channel.message, layout.NONE  # it is no longer the channel's to release
        session.broker.published(channel, message, channel.mandatory, outcome)
        if outcome == TAKEN and session.route_asked:
            session.route_asked = False
            session.broker.remember_route(session.connection.user.number, channel.exchange, channel.route)
    session.step_of(channel, "content_end")


def end_content(session, channel):
    """The content is done with."""
    channel.message = layout.NONE
    session.unfinished -= 1
    session.begun -= 1


def manage(session, channel):
    """Hand a management request over; what it raises closes the channel. It is a turn of its own."""
    session.effort += MANAGING
    channel.answer, outcome = session.broker.manage(session.connection.user, channel.message, channel.answer)
    return outcome


def put(broker, message, exchange, key):
    """Have the broker route a content."""
    return broker.publish(message, exchange, key)


def abandon(session, channel):
    """Forget a content that will not be completed, and returns that will not be written."""
    tables = session.broker.tables
    if channel.message != layout.NONE:
        tables.release(channel.message)
        channel.message = layout.NONE
        session.unfinished -= 1
    if channel.answer is not None:
        answer, channel.answer = channel.answer, None
        if answer.message != layout.NONE:
            tables.release(answer.message)
    if channel.transaction is not None:
        try:
            channel.transaction.finish(session.broker)
        finally:
            channel.transaction.rollback(session.broker)
    drop_returns(session, channel)


def drop_returns(session, channel):
    """Forget returns that will not be written."""
    for message, _, _ in channel.returns:
        session.broker.tables.release(message)
    channel.returns = []
