"""Single messages for an operator's tool: publish one, look at some of a queue (0-9-1's basic.get, its section 1.8.3.10). Neutral:
properties come as octets of a format (message/formats.py) with the columns that they say."""

from ..access.permissions import READ, WRITE, check
from ..broker import getting, whole
from ..errors import ACCESS_REFUSED, CONTENT_TOO_LARGE, NOT_FOUND, NOT_IMPLEMENTED, RESOURCE_ERROR, ProtocolError
from ..memory import hot, layout
from ..message import reading, route
from ..outcomes import nobody


def publish(broker, user, exchange_name, key, octets, columns, body):
    """Publish a message with the properties `octets`, whose `columns` are (kind, lifetime): TAKEN, UNROUTABLE, REFUSED, or NO_ROOM
    (nothing has changed; try again). Names are texts, the key and the body bytes. Raises ProtocolError."""
    check(broker, user, WRITE, "exchange", exchange_name, key)
    exchange = broker.exchanges.get(exchange_name)
    if exchange is None and exchange_name:
        raise ProtocolError(NOT_FOUND, "no " + broker.topology.called("exchange", exchange_name))
    if exchange is not None and exchange.internal:
        raise ProtocolError(ACCESS_REFUSED, "cannot publish to internal " + broker.topology.called("exchange", exchange_name))
    for part, octets_, most in (
        ("a body", body, broker.limits.content_size_max),
        ("properties", octets, broker.limits.properties_size_max),
    ):
        if len(octets_) > most:
            raise ProtocolError(CONTENT_TOO_LARGE, "%s of %d octets; this broker takes %d" % (part, len(octets_), most))
    return whole.publish(broker, exchange_name, key, octets, columns, body, user)


class Holder:
    """Stands for the session of an operator who holds messages for a moment (contract.Session)."""

    closing = False
    watched_tag, watched_since = -1, 0

    number = 0

    def __init__(self, handle, user):
        self.handle = handle
        self.user = user
        self.connection = nobody
        self.session = self
        self.consumers: "dict" = {}


def get(broker, user, name, count, outcome, octets_max, body_max):
    """Look at up to `count` messages at the head of a queue, as many as have `octets_max` octets together, with bodies that are each cut
    to `body_max`; then settle them as `outcome` says (outcomes.py): a list of what `described` reads, or None: they are on their way, try
    again. Raises ProtocolError."""
    check(broker, user, READ, "queue", name)
    queue = broker.topology.queue(name, nobody)
    if queue.is_stream:
        raise ProtocolError(NOT_IMPLEMENTED, "basic.get not supported by stream queues %s" % broker.topology.called("queue", name))
    broker.tables.begin_turn()
    handle = broker.consumers.open_session()
    if handle is None:
        raise ProtocolError(RESOURCE_ERROR, "this broker holds %d sessions at most" % broker.limits.channel_count_max)
    holder = Holder(handle, user)
    got: "list" = []
    try:
        waits = gather(broker, holder, queue, got, count, octets_max, body_max)
        channels = broker.tables.channels
        first = channels[handle + layout.CHANNEL_UNSETTLED_HEAD]
        if first != layout.NONE:
            broker.consumers.settle(holder, first, channels[handle + layout.CHANNEL_UNSETTLED_TAIL], outcome)
    finally:
        broker.consumers.close_session(holder)
    return None if waits and not got else got


def gather(broker, holder, queue, got, count, octets_max, body_max):
    """Get messages for a holder and append a description of each to `got`; true: there are more, which come later."""
    tables = broker.tables
    while len(got) < count and octets_max > 0:
        if not getting.serve(broker, queue):
            return True
        state = getting.state(broker, queue)
        if state != getting.READY:
            return state == getting.LATER
        entry = queue.head()
        octets = tables.size_of(tables.entries[entry + layout.ENTRY_MESSAGE])
        item = copied(tables, tables.entries[entry + layout.ENTRY_MESSAGE], body_max)
        item["redelivered"] = tables.entries[entry + layout.ENTRY_REDELIVERED] & 255 > 0
        hot.next_number(tables.channels, holder.handle + layout.CHANNEL_TAG)
        getting.get(broker, holder, queue, False)
        item["left"] = queue.message_count()
        octets_max -= octets - item["size"] + len(item["body"])
        got.append(item)
    return False


def copied(tables, message, body_max):
    """What `described` reads of a message: octets, which are soon copied while it is held; body (bytes, cut), size of the whole body."""
    size = tables.messages[message + layout.MESSAGE_BODY]
    return {
        "route": tables.route_of(message),
        "format": reading.format_of(tables, message),
        "octets": tables.properties_of(message),
        "annotations": tables.annotations_of(message),
        "body": tables.octets(message, tables.size_of(message) - size, min(size, body_max)),
        "size": size,
    }


def described(got):
    """A message of `get` by names: exchange, key (bytes), properties (a dict); body (bytes, cut) and size of the whole body; redelivered;
    left, how many the queue had behind it."""
    return {
        "exchange": route.exchange_of(got["route"]),
        "key": bytes(route.key_of(got["route"])),
        "properties": reading.decoded(got["format"], got["octets"], got["annotations"]),
        "body": got["body"],
        "size": got["size"],
        "redelivered": got["redelivered"],
        "left": got["left"],
    }
