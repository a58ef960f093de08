"""How much a peer may use of the resources that AMQP 1.0 alone has: constants, and a broker's Places, which all its peers share.

Limits of core/limits.py that say how much that is: link_count_max, target_count_max; and entry_count_max, for deliveries that are not
settled. What it comes to in octets is in core/memory/cpython_sizes.py.
"""

from ..errors import RESOURCE_ERROR
from ..memory import layout
from ..shim import const
from .conditions import LinkError

HANDLE_MAX = const(255)  # of the links of a session (section 2.7.2)
WINDOW = const(2048)  # transfers that a session accepts before it opens its window again: their octets are bounded by the receive buffer
OUTGOING_WINDOW = const(0x7FFFFFFF)  # transfers that we could send: what is sent is bounded by the peer's window and the send buffer
FLOW_ROOM = const(128)  # octets of any flow, and of a disposition without an error
ATTACH_ROOM = const(512)  # octets of an attach beside its map of what is unsettled
BATCH = const(0x80013700)  # message-format of a batch (batches.py)
TAG_MAX = const(32)  # octets of a delivery-tag (section 2.8.7)
CREDIT = const(200)  # deliveries of an incoming link that may come or be unsettled at a time, at first
CREDIT_MAX = const(1024)  # of a link whose sender uses it up at once
GROW_MS = const(100)  # "at once": within so long since its last flow
GROWTH_SHARE = const(4)  # of all that links have, the part that is for these
CREDIT_SHARE = const(8)  # on small brokers: this part of entry_count_max at most
DELIVERIES_SHARE = const(4)  # what all links together have: this part of entry_count_max
LEFT_SHARE = const(2)  # of what is left of that, a link gets this part at most
TAGS_A_TARGET = const(32)  # deliveries that a target has remembered, if all remember as many
PLACE_SIZE = const(1024)  # octets, as size_of counts them, of what a link keeps in one place of link_count_max
LARGE = const(1024)  # octets that are read value by value, of a frame or of a message, from which on they are charged to the turn
TURN_OCTETS = const(32768)  # of these in a turn
TERMINI_MAX = const(2048)  # values in a link's source and target
POSITION_SIZE = const(16)  # octets that a delivery that is resumed counts for
MESSAGE_MAX = const(512)  # octets of a message to a coordinator
RESPONSE_LEAST = const(8192)  # octets that any response of the management may have
REFUSED_MAX = const(32)  # links of a connection that were refused and that its peer has not detached


class Places:
    """The places that the links of one broker use."""

    def __init__(self, limits):
        self.link_count_max = limits.link_count_max
        self.left = limits.link_count_max
        self.share = max(limits.link_count_max * 3 // 4, 1)  # of one connection
        self.deliveries_left = limits.entry_count_max // DELIVERIES_SHARE
        self.growth_left = self.deliveries_left // GROWTH_SHARE

    def reserve(self, link, octets):
        """A link keeps so many octets more. Raises LinkError where there is no place for them."""
        kept = max(link.kept_octets, 0) + octets
        more = 1 + kept // PLACE_SIZE - places_of(link)
        if more > self.left or link.protocol.places_taken + more > self.share:
            raise LinkError(RESOURCE_ERROR, "there is no place for the link: this broker has %d (link_count_max)" % self.link_count_max)
        self.change(link, kept)

    def change(self, link, kept):
        """A link keeps so many octets; less than 0: it has no place."""
        before = places_of(link)
        link.kept_octets = kept
        self.left -= places_of(link) - before
        link.protocol.places_taken += places_of(link) - before

    def lend(self, link, most):
        """The deliveries of an incoming link that may come or be unsettled at a time: `most`, fewer where many links are there."""
        link.lent = link.credit_max = max(min(most, self.deliveries_left // LEFT_SHARE), 1)
        self.deliveries_left -= link.lent

    def lend_more(self, link):
        """Twice as many for a link whose sender is quick, where there are some for such links."""
        more = max(
            min(link.credit_max, CREDIT_MAX - link.credit_max, self.growth_left // LEFT_SHARE, self.deliveries_left // LEFT_SHARE), 0
        )
        link.grown += more
        link.lent += more
        link.credit_max += more
        self.growth_left -= more
        self.deliveries_left -= more

    def refuse(self, link):
        """A link was refused: it keeps one place until its peer has detached. Without a place, it counts among those of its connection
        that have none."""
        if places_of(link):
            self.change(link, 0)
        else:
            link.protocol.refused += 1
            link.is_refused = True

    def give_back(self, link):
        """A link has ended."""
        self.change(link, -1)
        self.deliveries_left += link.lent
        self.growth_left += link.grown
        if link.is_refused:
            link.protocol.refused -= 1


def places_of(link):
    """The places that a link has."""
    return 0 if link.kept_octets < 0 else 1 + link.kept_octets // PLACE_SIZE


def charge(tables, octets):
    """So many octets are read value by value: large ones take some of what the connection's turn may do."""
    if octets > LARGE:
        tables.state[layout.STATE_LEFT] -= tables.engine.effort * octets // TURN_OCTETS


def values_of(terminus):
    """The values of the fields of a source or target, without the names that all have."""
    return [terminus[1][name] for name in terminus[1]] if isinstance(terminus, tuple) and isinstance(terminus[1], dict) else terminus


def has_more(value, most):
    """True when there are more than `most` values within a value, it and its types' names among them."""
    waiting = [value]
    while waiting and most >= 0:
        item = waiting.pop()
        most -= 1
        if isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple)):
            waiting.extend(item)
    return most < 0


def credit_of(limits):
    """Deliveries of an incoming link that may come or be unsettled at a time."""
    return max(min(CREDIT, limits.entry_count_max // CREDIT_SHARE), 1)


def credit_of_settled(limits):
    """Deliveries of an incoming link that all come settled, which may come at a time: nothing is kept of one that has come."""
    return max(min(WINDOW, limits.entry_count_max // CREDIT_SHARE), 1)


def response_size_max(limits):
    """Octets of a response of the management."""
    return max(2 * limits.management_size_max, RESPONSE_LEAST)


def tags_max(limits):
    """Deliveries that all targets remember together."""
    return TAGS_A_TARGET * limits.target_count_max
