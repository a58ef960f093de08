"""The pair of links to /management: requests come on one, their responses leave on the other of the same name (AMQP Link Pair 1.0).

What is asked and answered is management.py's. A request is taken when its message is whole; while it goes on its connection is not read.
Its response waits in the session for the log, for credit, and for the windows of both (Session.responses).
"""

from ..errors import CONTENT_TOO_LARGE, PRECONDITION_FAILED, RESOURCE_ERROR
from ..memory import hot, layout, serial
from ..outcomes import TAKEN
from . import addresses, dispositions, management
from .conditions import INVALID_FIELD, LinkError
from .link import Link
from .link_in import IncomingLink, Rejected

if False:  # for the type checker alone
    from typing import Any

RESPONSES_MAX = 32  # that wait in all sessions of a connection
SMALL = 1024  # octets of a response for which there is room in any case
CREDIT = 8  # requests that may come at a time


def kind_of(fields):
    """The class of a link to the management, by its attach; None: it is another link."""
    terminus = fields["source" if fields["role"] else "target"]
    if not isinstance(terminus, tuple) or terminus[0] not in ("source", "target") or terminus[1]["address"] not in addresses.MANAGEMENTS:
        return None
    return Responses if fields["role"] else Requests


def address_of(terminus):
    """The address of a source or target as an attach has it; None where there is none."""
    return terminus[1]["address"] if isinstance(terminus, tuple) else None


class Requests(IncomingLink):
    """The link on which requests come."""

    credit_wanted = CREDIT

    def __init__(self, session, fields):
        IncomingLink.__init__(self, session, fields)
        self.content_max = self.broker.limits.management_size_max
        self.request: "Any" = None  # the one that goes on
        self.answers: "Any" = None  # the link that its response leaves on

    def open(self, fields):
        """Both termini as the peer has them."""
        self.source, self.target = fields["source"], fields["target"]
        self.protocol.is_paired = self.protocol.is_paired or (fields["properties"] or {}).get(("symbol", "paired")) is True
        return self.steal()

    def recover(self, fields):
        """Nothing: what was asked is asked again."""

    def payload(self, delivery, octets, at, end, whole):
        """Octets of a request: they are kept until it is whole."""
        if len(delivery.lead) + end - at > self.content_max:
            raise Rejected(CONTENT_TOO_LARGE, "a request to the management of more than %d octets" % self.content_max)
        self.keep(delivery, delivery.lead + bytes(octets[at:end]))
        return True

    def complete(self):
        """The request is whole: have it answered, now or in the turns to come."""
        if self.request is None:
            request = management.Request(self.connection, self.delivery.lead)
            waits = sum([len(each.responses) for each in self.protocol.sessions()])
            self.answers = self.other_half(request.reply_to)
            if self.answers is None or waits >= RESPONSES_MAX:
                self.drop()
                if self.answers is not None:
                    raise LinkError(RESOURCE_ERROR, "%d responses wait for credit" % RESPONSES_MAX)
                raise LinkError(
                    PRECONDITION_FAILED, "a request on half of a link pair: there is no link '%s' for its response" % self.name[:80]
                )
            self.request = request
        octets = self.request.answer()
        if octets is management.HELD:
            self.protocol.hold(self)
        elif octets is management.NOT_YET:
            self.protocol.held = self
            self.connection.wait_for_turn()
        else:
            link = self.answers
            if link.state == "attached":
                if len(octets) > SMALL and not self.protocol.may_keep(len(octets)):
                    octets = self.request.too_large()
                link.session.responses.append((link, octets, self.request.durable))
                link.session.wants_to_write()
            self.request = None
            self.answered(TAKEN)

    def other_half(self, reply_to):
        """The link that a response leaves on: the one of this link's name, else one of this session whose target has the address that the
        request says, or, where it says none, whose source is this link's target (Event Hubs' clients name both links as they like, and have
        a pair to `$cbs` beside that to `$management`). None: there is none."""
        link = self.protocol.links.get((self.name, True))
        if isinstance(link, Responses):
            return link
        for each in self.session.links.values():
            if isinstance(each, Responses):
                wanted = address_of(each.source) == address_of(self.target) if reply_to is None else address_of(each.target) == reply_to
                if wanted:
                    return each
        return None

    def drop(self):
        """Drop the request under way unanswered."""
        self.request = None
        IncomingLink.drop(self)


class Responses(Link):
    """The link on which responses leave."""

    role = True
    settled = True  # our deliveries leave settled
    writes_all = True

    def __init__(self, session, fields):
        Link.__init__(self, session, fields)
        self.size_max = fields["max-message-size"] or 0

    def open(self, fields):
        """Both termini as the peer has them."""
        self.source, self.target = fields["source"], fields["target"]
        return self.steal()

    def flow(self, fields):
        """The receiver's credit; what it drains is used up behind the responses that wait (section 2.6.7)."""
        if fields["link-credit"] is not None:
            self.credit = self.granted(fields)
            self.session.wants_to_write()
        self.drain = fields["drain"]
        if not (self.drain and self.protocol.drains(self)) and fields["echo"]:
            self.session.say_flow(self)

    def drained(self):
        """See OutgoingLink.drained; false while a response waits for its log and can go then."""
        if self.drain and self.credit and [each for each in self.session.responses if each[0] is self]:
            return False
        if self.drain:
            self.delivery_count = serial.after(self.delivery_count, self.credit)
            self.credit = 0
            self.session.say_flow(self)
        return True

    def put_flow(self, fields):
        """Put the link's state into a flow, with drain as its receiver said it last (section 2.7.4)."""
        Link.put_flow(self, fields)
        fields["drain"] = self.drain

    def transfer(self, fields, octets, at, end):
        """A receiver does not send."""
        raise LinkError(INVALID_FIELD, "a transfer on link '%s', whose sender is this broker" % self.name[:80])

    def give_back(self):
        """Drop the responses that wait for this link."""
        self.drop()
        return True

    def drop(self):
        """Forget what waits."""
        session = self.session
        session.responses = [each for each in session.responses if each[0] is not self]
        if session.outgoing.link is self:
            session.outgoing.abandon()
            session.wake()


def write(session):
    """Begin the responses that may leave now; false: the log is not durable as far as the next one needs."""
    for each in list(session.responses):
        link, octets, number = each
        if not session.may_send():
            break
        if link.credit <= 0:
            continue
        if not session.session.is_durable(number):
            return False
        session.responses.remove(each)
        if 0 < link.size_max < len(octets):
            link.step("error", CONTENT_TOO_LARGE, "a response of %d octets, and max-message-size is %d" % (len(octets), link.size_max))
            continue
        channels = session.broker.tables.channels
        hot.next_number(channels, session.handle + layout.CHANNEL_TAG)
        link.delivery_count = serial.after(link.delivery_count, 1)
        link.credit -= 1
        session.outgoing.start_octets(link, dispositions.tail_number(session), octets)
    return True
