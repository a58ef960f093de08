"""An incoming content, for every family: its route, its room, its end. `append` writes octets to their blocks as they come.

A family calls `to`, then `begin` with the properties, `append` for each piece of the body, and `complete`. `begin` reserves the blocks of a
content of known size; a content of unknown size (1.0 in several transfers, 0-10 without content-length) reserves blocks as it grows
(growing.py). A family that gets NO_ROOM leaves the octets in its receive buffer and reads no more from its peer until there is room. So
that no two contents wait for each other, the broker closes a connection that meets NO_ROOM while it has another content under way, or
contents that wait for a commit.
"""

from ..access.permissions import WRITE, check
from ..errors import ACCESS_REFUSED, CONTENT_TOO_LARGE, NOT_FOUND, PRECONDITION_FAILED, RESOURCE_ERROR, ProtocolError
from ..memory import layout
from ..message.route import exchange_of, key_of, with_copies
from ..outcomes import NO_ROOM, NOT_YET, TAKEN, UNROUTABLE
from ..parts import needed

if False:  # for the type checker alone
    from typing import Any


class Incoming:
    """The next publish of a session, or of a link. `sender` is the session (contract.Session)."""

    exchange = ""
    route = b""
    copies = b""  # keys that its sender selected beside the routing key (message/route.py)
    mandatory = False
    message = layout.NONE  # from `begin` to the end
    body_left: "Any" = 0  # octets of the body to come; None: not known
    answer: "Any" = None  # of a service that waits for room or for the log: its `before` for the next attempt
    transaction: "Any" = None  # transaction.Transaction: a complete content waits for its commit

    def __init__(self, sender):
        self.sender = sender

    def to(self, route, mandatory):
        """A content for `route` (bytes, message/route.py) begins. Raises ProtocolError where there is no such exchange, or the peer may not
        publish there; UnicodeError."""
        self.route = route
        self.exchange = exchange_of(route)
        connection = self.sender.connection
        broker, user = connection.broker, connection.user
        if self.exchange not in user.granted[WRITE]:
            check(broker, user, WRITE, "exchange", self.exchange, key_of(route))
        exchange = broker.exchanges.get(self.exchange)
        if exchange is None and self.exchange:
            raise ProtocolError(NOT_FOUND, "no " + broker.topology.called("exchange", self.exchange))
        if exchange is not None and exchange.internal:
            raise ProtocolError(ACCESS_REFUSED, "cannot publish to internal " + broker.topology.called("exchange", self.exchange))
        if self.transaction is not None:
            self.transaction.check_room()
        self.mandatory = mandatory

    def check_user(self, name):
        """Raise precondition-failed for a message whose user-id names another user."""
        user = self.sender.connection.user
        if name != user.name and "impersonator" not in user.tags:
            raise ProtocolError(PRECONDITION_FAILED, "user_id property set to '%s' but authenticated user was '%s'" % (name, user.name))

    def begin(self, octets, start, size, body_size, kind, lifetime, annotations=b""):
        """The properties (`size` octets from `start`) are whole, a body of `body_size` octets (None: not known) follows; `kind` and
        `lifetime`: layout.MESSAGE_KIND; `annotations`: octets, message/annotations.py. False: there is no room now,
        and nothing has changed."""
        protocol = self.sender.session
        broker = protocol.connection.broker
        limits, tables = broker.limits, broker.tables
        grows = body_size is None
        body = 0 if grows else body_size
        if body > limits.content_size_max:
            raise ProtocolError(CONTENT_TOO_LARGE, "a body of %d octets; this broker takes %d" % (body, limits.content_size_max))
        if size > limits.properties_size_max:
            raise ProtocolError(CONTENT_TOO_LARGE, "properties of %d octets; this broker takes %d" % (size, limits.properties_size_max))
        blocks = tables.blocks_for(len(self.route) + len(annotations) + size + body)
        if not tables.has_room(blocks, 1):
            broker.make_room(blocks)
        if not (tables.has_room(blocks, 1) or self.may_have_spare(blocks)) or grows and not growing(broker).may_begin(self, blocks):
            self.check_waiting(0)
            return False
        self.message = tables.new_message(self.route, size, body, broker.seconds, kind, lifetime, len(annotations))
        if annotations:
            tables.append(self.message, annotations, 0, len(annotations))
        tables.append(self.message, octets, start, size)
        self.body_left = body_size
        if grows:
            broker.growing.contents.append(self)
        protocol.unfinished += 1
        protocol.content_moved = broker.now
        return True

    def check_waiting(self, own):
        """There is no room: raise resource-error for a connection that has more contents under way than its `own` of this session."""
        if self.sender.session.unfinished > own or self.transaction is not None and self.transaction.publishes:
            raise ProtocolError(RESOURCE_ERROR, "no room for another unfinished or uncommitted content of this connection", True)

    def may_have_spare(self, blocks):
        """True for a content for a service that fits with the reserve for services: so a bridge can drain a full broker."""
        connection = self.sender.connection
        return self.service() is not None and bool(connection.user.tags) and connection.broker.tables.has_spare(blocks, 1)

    def service(self):
        """The service at the address that the content goes to (Broker.services), or None."""
        return None if self.exchange else self.sender.connection.broker.services.get(key_of(self.route))

    def append(self, octets, at, size):
        """`size` octets of the body from `at`; false: a content of unknown size has no room for them now, and nothing has changed."""
        protocol = self.sender.session
        broker = protocol.connection.broker
        if self.body_left is not None:
            self.body_left -= size
        elif not broker.growing.grow(self, size):
            self.check_waiting(1)
            return False
        broker.tables.append(self.message, octets, at, size)
        protocol.content_moved = broker.now
        return True

    def key(self):
        """The routing key; a tuple of keys when its sender selected more."""
        return with_copies(key_of(self.route), self.copies)

    def complete(self):
        """The content is whole: route it, hand it to a service, or keep it for a commit. TAKEN, UNROUTABLE, REFUSED: the sender's protocol
        has been answered. NO_ROOM, NOT_YET: call this again when there is room, or when the log has got further."""
        broker = self.sender.connection.broker
        if self.copies and self.sender.connection.user.topics is not None:
            for key in self.key():
                check(broker, self.sender.connection.user, WRITE, "exchange", self.exchange, key)
        if self.transaction is not None:
            self.transaction.add(self.message, self.copies, self.mandatory)
            self.message = layout.NONE  # the transaction releases the message, even if `end` raises
            self.end()
            return TAKEN
        journal = broker.journal
        before = 0 if journal is None else journal.taken
        outcome = broker.publish(self.message, self.exchange, self.key())
        if outcome == UNROUTABLE:
            service = self.service()
            if service is not None:
                self.answer, outcome = service(self.sender.connection.user, self.message, self.answer)
        if outcome in (NO_ROOM, NOT_YET):
            return outcome
        if journal is not None and journal.taken != before:
            self.sender.promises.logged()
        message = self.message
        self.end()  # first: the message is no longer ours to release
        broker.published(self.sender, message, self.mandatory, outcome)
        return outcome

    def end(self):
        """End the content; the new owner of its message releases the message."""
        if self.body_left is None:
            self.sender.connection.broker.growing.contents.remove(self)
            self.body_left = 0
        self.message = layout.NONE
        self.sender.session.unfinished -= 1

    def abandon(self):
        """Forget a content that will not be completed, the answer of its service, and the contents that wait for a commit that will not
        come."""
        broker = self.sender.connection.broker
        message = self.message
        if message != layout.NONE:
            self.end()
            broker.tables.release(message)
        if self.answer is not None:
            answer, self.answer = self.answer, None
            if answer.message != layout.NONE:
                broker.tables.release(answer.message)
        if self.transaction is not None:
            try:
                self.transaction.finish(broker)
            finally:
                self.transaction.rollback(broker)


def growing(broker):
    """The broker's account of contents of unknown size."""
    if broker.growing is None:
        broker.growing = needed("broker.growing", "contents of unknown size").Growing(broker)
    return broker.growing
