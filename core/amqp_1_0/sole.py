"""One connection for a container at a time, where a peer asks for that (AMQP Enforcing Connection Uniqueness 1.0), as JMS clients do for
their client id.

Detection is strong: it meets all connections of the user with the container-id, also those that did not ask. What the new connection's
property sole-connection-enforcement-policy says is done: it is refused (0, the default), or those that are there are closed (1).
"""

from ..errors import RESOURCE_LOCKED
from .conditions import INVALID_FIELD

CAPABILITY = "sole-connection-for-container"
POLICY = ("symbol", "sole-connection-enforcement-policy")
CLOSE_EXISTING = 1

FAILED = {("symbol", "amqp:connection-establishment-failed"): True}  # in the properties of an open that a close follows
REFUSED = {("symbol", "invalid-field"): ("symbol", "container-id")}  # the info of that close's error
CLOSED = {("symbol", "sole-connection-enforcement"): True}


def enforce(protocol, fields):
    """A peer has opened: false when it is refused."""
    protocol.is_sole = CAPABILITY in fields["desired-capabilities"]
    others = [each for each in others_of(protocol) if protocol.is_sole or each.is_sole]
    policy = (fields["properties"] or {}).get(POLICY)
    if not others:
        return True
    if not isinstance(policy, tuple) or policy[1] != CLOSE_EXISTING:
        return False
    for each in others:
        each.step("error", RESOURCE_LOCKED, "another connection of container '%s' was opened" % protocol.container_id[:80], CLOSED)
        each.flush()
    return True


def others_of(protocol):
    """The other connections of a peer's user and container."""
    others = []
    for connection in protocol.broker.connections:
        other = connection.session
        if isinstance(other, type(protocol)) and other is not protocol and other.state == "open":
            if other.container_id == protocol.container_id and connection.user is protocol.connection.user:
                others.append(other)
    return others


def refuse(protocol):
    """Close the connection that was refused; its open has said that it fails."""
    protocol.step("error", INVALID_FIELD, "container '%s' has a connection, and is to have one only" % protocol.container_id[:80], REFUSED)
