"""How much of anything that AMQP 1.0 alone has a peer may take. All else is bounded by core/limits.py."""

from ..shim import const

HANDLE_MAX = const(255)  # of the links of a session (section 2.7.2)
WINDOW = const(2048)  # transfers that a session takes before it says that it takes more: their octets are bounded by the receive buffer
OUTGOING_WINDOW = const(0x7FFFFFFF)  # transfers that we could send: what is sent is bounded by the peer's window and the send buffer
FLOW_ROOM = const(128)  # octets of any flow, and of a disposition without an error
ATTACH_ROOM = const(512)  # octets of an attach beside its map of what is unsettled
TAG_MAX = const(32)  # octets of a delivery-tag (section 2.8.7)
CREDIT = const(200)  # deliveries of an incoming link that may come or be unsettled at a time
CREDIT_SHARE = const(8)  # on small brokers: this part of entry_count_max at most


def credit_of(limits):
    """Deliveries of an incoming link that may come or be unsettled at a time."""
    return max(min(CREDIT, limits.entry_count_max // CREDIT_SHARE), 1)
