"""The common part of both kinds of links (section 2.6): name, handle, state, attaching. Its states: states.LINK, with the actions
in detaching.py.
"""

from .. import states
from ..errors import RESOURCE_ERROR, ProtocolError
from ..limits import cost
from ..memory import layout, serial
from . import addresses, composites, detaching, frame
from .bounds import REFUSED_MAX, TERMINI_MAX, has_more, values_of
from .conditions import INVALID_FIELD, STOLEN, LinkError, SessionError
from .states import LINK

if False:  # for the type checker alone
    from typing import Any

FIRST = 0  # receiver-settle-mode (section 2.8.3)
SECOND = 1
UNSETTLED = 0  # sender-settle-mode (section 2.8.2)
SETTLED = 1
TERMINI = {"source": ("source",), "target": ("target", "coordinator")}  # what each may be (sections 3.5.3, 3.5.4 and 4.5.1)
ATTACHES_A_TURN = 32  # an attach is as much work as so large a part of a turn


class Link:
    """A link of a session. `role` is the peer's: true for a receiver. The session has the outcomes of its deliveries (`received`, the
    record's unsettled entries); a link that is to be recovered keeps its own map of them here."""

    consumer: "Any" = None  # of the broker; an outgoing link's
    route: "Any" = None  # where messages go; an incoming link's
    role = False
    kept_octets = -1  # bounds.Places
    credit_max = 0  # of what a peer sends
    lent = grown = 0  # of that, what bounds.Places lends; of that, what it has lent more
    is_refused = False
    settled: "Any" = False  # deliveries of an outgoing link leave settled
    stolen: "Any" = ()  # while it is attached: links of its name, role and container, which end when this one can no longer be refused
    is_plain_receiver = False  # its flows are OutgoingLink.flow's
    writes_all = False  # the fields of its transfers, nulls too: for clients of Event Hubs

    def __init__(self, session, fields):
        self.session = session
        self.protocol = session.session
        self.broker = session.broker
        self.name = fields["name"]
        self.handle = fields["handle"]
        self.state = "attached"  # states.LINK
        self.second = fields["rcv-settle-mode"] == SECOND
        self.source: "Any" = None  # (name, fields) as our attach says them
        self.target: "Any" = None
        self.delivery_count = 0
        self.credit = 0
        self.drain = False

    def step(self, input_, *given):
        """Run the link's action for an input, by the table LINK. Returns the action's answer."""
        return states.step(self, LINK, detaching, input_, self, *given)

    # Attaching

    def attach(self, fields):
        """Answer the peer's attach with ours, and with a detach behind it where the broker refuses the link (section 2.6.3). False: the
        attach must wait."""
        tables = self.broker.tables
        tables.state[layout.STATE_LEFT] -= tables.engine.effort // ATTACHES_A_TURN
        key = (self.name, self.role)
        try:
            self.check_name()
            for end in TERMINI:
                if not (fields[end] is None or isinstance(fields[end], tuple) and fields[end][0] in TERMINI[end]):
                    raise LinkError(INVALID_FIELD, "the %s of link '%s' is none (section 2.7.3)" % (end, self.name[:80]))
            if not self.role and fields["initial-delivery-count"] is None:
                raise LinkError(INVALID_FIELD, "an attach of a sender without initial-delivery-count (section 2.7.3)")
            kept = [self.name, values_of(fields["source"]), values_of(fields["target"])]
            if has_more(kept, TERMINI_MAX):
                raise LinkError(RESOURCE_ERROR, "the source and the target of a link have %d values at most" % TERMINI_MAX)
            self.protocol.places.reserve(self, cost(kept))
            there = self.of_container()
            if self.is_leaving(there):
                return self.protocol.go_on_later()
            self.stolen = [each.links[key] for each in there if key in each.links]
            if not self.open(fields):
                return False
            self.recover(fields)
        except ProtocolError as error:
            if error.hard:
                raise
            self.refuse(fields, error)
            return True
        self.protocol.links[key] = self
        journal = self.broker.journal
        if journal is not None:  # what was made for it, and what became of its deliveries, stays so
            needs = journal.promise() if fields["unsettled"] else journal.defined()
            self.protocol.promised = max(self.protocol.promised, needs)
        self.write_attach(self.attach_fields(fields))
        self.begin()
        return True

    def open(self, fields):
        """Make the link's node and consumer; raises ProtocolError where that fails. False: it cannot be made now. When nothing is left that
        refuses the link, and before it takes what only one link can have, it calls `steal`."""
        return self.steal()

    def must_wait(self, node):
        """True when the attach would make a node and the broker can make none now: a commit is under way in queues whose room was checked
        before, or the log cannot be written."""
        broker = self.broker
        there = node[0] in (addresses.QUEUE, addresses.TO, addresses.MANAGEMENT) or node[1] in broker.queues
        return not there and (broker.commit is not None or broker.journal is not None and bool(broker.journal.log.trouble))

    def recover(self, fields):
        """Resume the deliveries of an earlier link of this name (section 2.6.13)."""

    def begin(self):
        """The broker's attach has been written: the link may send or grant credit."""

    def check_name(self):
        """Raise LinkError for a name longer than a quarter of argument_size_max, and for a connection's link beyond channel_max."""
        limits = self.broker.limits
        if len(self.name.encode("utf-8")) > limits.argument_size_max // 4:
            raise LinkError(RESOURCE_ERROR, "a link name of more than %d octets" % (limits.argument_size_max // 4))
        if len(self.protocol.links) >= limits.channel_max:
            raise LinkError(RESOURCE_ERROR, "this broker takes %d links of a connection" % limits.channel_max)

    def is_leaving(self, there):
        """True while an earlier link of this one's name and role has not given back all it held. `there`: connections as of_container."""
        return len([1 for each in there for link in each.leaving if (link.name, link.role) == (self.name, self.role)]) > 0

    def of_container(self):
        """The connections (protocol.py) of this link's user and container, its own among them: a name is of one link there (2.6.1)."""
        own, user = self.protocol, self.protocol.connection.user
        sessions = [each.session for each in self.broker.connections if each.user is user]
        return [
            each
            for each in sessions
            if each is own or isinstance(each, type(own)) and own.container_id and each.container_id == own.container_id
        ]

    def steal(self):
        """Detach `stolen`, for this link takes their place (section 2.6.1: "the second attach succeeds and the first attach MUST then be
        closed"). False: they have not given back all they held, and this attach is to be processed again."""
        stolen, self.stolen = self.stolen, ()
        for link in stolen:
            link.step("error", STOLEN, "another link of the name '%s' was attached" % self.name[:80])
            link.protocol.flush()
        return not stolen or not self.is_leaving(self.of_container()) or self.protocol.go_on_later()

    def write_attach(self, given):
        """Write an attach with these fields beside those that every one has."""
        given["name"] = self.name
        given["handle"] = self.handle
        given["role"] = not self.role
        octets = frame.write(frame.AMQP, self.session.number, composites.write("attach", given, True))
        if len(octets) > self.protocol.frame_max_out:
            raise SessionError(
                "frame-size-too-small",
                "the answer to the attach of link '%s' takes %d octets; max-frame-size is %d (section 2.8.15)"
                % (self.name[:80], len(octets), self.protocol.frame_max_out),
            )
        self.protocol.write(octets)

    def attach_fields(self, fields):
        """The fields of our attach, beside name, handle and role: those of an outgoing link."""
        return {
            "snd-settle-mode": SETTLED if self.settled else UNSETTLED,
            "rcv-settle-mode": fields["rcv-settle-mode"],
            "source": self.source,
            "target": self.target,
            "initial-delivery-count": 0,
        }

    def refuse(self, fields, error):
        """Answer an attach with one that has no terminus of ours, and a detach (section 2.6.3)."""
        if self.protocol.refused >= REFUSED_MAX:
            raise SessionError(RESOURCE_ERROR, "%d links of the connection were refused and are not detached" % REFUSED_MAX)
        self.stolen = ()
        self.protocol.places.refuse(self)
        given = {"initial-delivery-count": 0} if self.role else {}
        own = "target" if self.role else "source"  # the peer's terminus goes back, unless it is too large
        if fields[own] is not None and not has_more(values_of(fields[own]), TERMINI_MAX):
            given[own] = fields[own]
        self.write_attach(given)
        self.step("error", error.condition, error.text)

    # Ending

    def posting(self):
        """The transaction of an incomplete delivery, or None."""

    def give_back(self):
        """Release the link's deliveries and its node, a part each call. Returns false while some are left."""
        return True

    def close(self):
        """The peer has closed the link, not only detached it: end its node. Returns false while the node still has messages to drop."""
        return True

    def drop(self):
        """Forget the link's deliveries: its session ends, or its queue is deleted."""

    def granted(self, fields):
        """The credit that a receiver's flow gives (section 2.6.7). The receiver counts from the last delivery that it has seen; a flow
        without delivery-count is of a receiver that has not seen our attach, and counts from the initial one."""
        seen = fields["delivery-count"] or 0  # the initial one: attach_fields
        return max(fields["link-credit"] - max(serial.distance(seen, self.delivery_count), 0), 0)

    def put_flow(self, fields):
        """Put the link's state into a flow."""
        fields["handle"] = self.handle
        fields["delivery-count"] = self.delivery_count
        fields["link-credit"] = self.credit

    def leave(self):
        """Free the link's name for the next link."""
        key = (self.name, self.role)
        if self.protocol.links.get(key) is self:
            del self.protocol.links[key]
