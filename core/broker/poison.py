"""The queue `leveret.poison`: messages whose processing failed by an error of this broker, kept for diagnosis.

A message keeps its route, properties and body; annotations add the reason, the queue and the time as headers, where its properties can be
read and have room for them; expiration is left out, as in a dead letter. In a durable broker the queue is durable, so a persistent message
stays on disk: the broker writes the copy before it settles the original. Clients read and purge the queue as their permissions say; none
declares, binds or deletes it, or publishes to it. It holds a SHARE-th of the arena and of the messages, but at least one: beyond that the
broker drops the oldest, counts it and logs it.
"""

from ..memory import layout
from ..message import reading
from ..message.annotations import GONE, write
from .topology import OWN

NAME = OWN[0]
SHARE = 16
REASON_MAX = 200  # characters


def keep(broker, queue, entry, reason):
    """Put the message of an entry on the queue: true when it is there. `reason`: in words."""
    from ..outcomes import TAKEN, nobody

    tables = broker.tables
    poison = broker.queues.get(NAME)
    if poison is None:
        broker.topology.check_queue_room(nobody)
        poison = broker.topology.make_queue(nobody, NAME, True, False, False, {})
    message = tables.entries[entry + layout.ENTRY_MESSAGE]
    route = tables.route_of(message)
    copy = reading.copy_with(broker.tables, message, route, marks(broker, message, len(route), queue.name, reason))
    if copy == layout.NONE:
        return False
    try:
        if broker.put(copy, (poison,)) != TAKEN:
            return False
    finally:
        tables.release(copy)
    broker.counters["poisoned"] += 1
    shorten(broker, poison)
    return True


def marks(broker, message, route_size, name, reason):
    """A message's annotations with the headers of poison added; unchanged where they cannot be read or have no room."""
    from ..memory.layout import EPOCH  # here: the broker's own code may stand where the name is, and needs no poison

    octets = broker.tables.annotations_of(message)
    try:
        changes = reading.annotations_of(broker.tables, message)
        headers = {"x-poison-reason": reason[:REASON_MAX], "x-poison-queue": name, "x-poison-time": ("T", broker.seconds + EPOCH)}
        changes.setdefault("headers", {}).update(headers)
        changes["expiration"] = GONE
        merged = reading.format_of(broker.tables, message).merge(broker.tables.properties_of(message), changes)
        return write(changes) if len(merged) <= reading.properties_room(broker.limits, route_size) else octets
    except Exception:  # unreadable annotations or properties may raise anything
        return octets


def shorten(broker, queue):
    """Drop the oldest messages until the queue is within its share."""
    limits = broker.limits
    while (
        queue.message_count() > 1
        and queue.head() != layout.NONE
        and (queue.message_count() * SHARE > limits.message_count_max or queue.octets() * SHARE > limits.arena_size)
    ):
        queue.drop(queue.pop())
        broker.counters["poison_dropped"] += 1
        if broker.counters["poison_dropped"] == 1:
            broker.log("queue '%s' is full: its oldest messages go" % NAME)
