"""Realms and access tickets (class access of the two drafts): what a connection was granted, and which rights each method needs.

A realm is a name; the broker's exchanges and queues belong to all realms, and what the user may do with each is looked at as for every
other family. A ticket says which kinds of methods a connection may send: passive, active, write, read; exclusive: no other connection has a
ticket of the realm.
"""

from ...errors import ACCESS_REFUSED, RESOURCE_ERROR, ProtocolError
from ...shim import const

TICKETS_MAX = const(255)  # of a connection

RIGHTS = ("exclusive", "passive", "active", "write", "read")


class Ticket:
    """The rights that access.grant or access.request has granted."""

    def __init__(self, realm, rights):
        self.realm = realm
        self.rights = rights  # names out of RIGHTS


def grant(session, realm, flags):
    """The number of a ticket for a realm, the same for the same rights; `flags` in the order of RIGHTS. Raises ProtocolError where it
    cannot be granted."""
    rights = [RIGHTS[index] for index in range(len(RIGHTS)) if flags[index]]
    for other in session.broker.connections:
        tickets = getattr(other.session, "tickets", {})
        for number in tickets if tickets and other.session is not session and not other.session.closing else ():
            if tickets[number].realm == realm and ("exclusive" in rights or "exclusive" in tickets[number].rights):
                raise ProtocolError(ACCESS_REFUSED, "another connection has a ticket of the realm '%s'" % realm[:80])
    for number in session.tickets:
        if session.tickets[number].realm == realm and session.tickets[number].rights == rights:
            return number
    if len(session.tickets) >= TICKETS_MAX:
        raise ProtocolError(RESOURCE_ERROR, "a connection has %d access tickets at most" % TICKETS_MAX)
    number = len(session.tickets) + 1
    session.tickets = dict(session.tickets)  # the class has one that is empty
    session.tickets[number] = Ticket(realm, rights)
    return number


def check(session, number, right):
    """Raise access-refused for a ticket that is not the connection's, or has not this right."""
    ticket = session.tickets.get(number)
    if ticket is None:
        raise ProtocolError(ACCESS_REFUSED, "%d is no access ticket of this connection" % number)
    if right not in ticket.rights:
        raise ProtocolError(ACCESS_REFUSED, "ticket %d of the realm '%s' grants no right '%s'" % (number, ticket.realm[:80], right))
