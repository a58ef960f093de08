"""What holds in a whole broker between two steps: its tables, and what its Python objects say of the same records.

`check(broker)` raises Wrong with the first thing that does not: core/memory/invariants.py, with the owners that the tables do not know, and
what objects repeat of records. It walks everything: for tests, not for a broker that serves. Bodies that are set into a send buffer (C,
sockets) hold references that it does not see.
"""

import os

from model import Wrong

from leveret.core.broker.publish import route_hash
from leveret.core.broker.topology import Removal
from leveret.core.memory import invariants, layout

NONE = layout.NONE
DELAYED = "x-delayed-message"
EVERY = int(getattr(os, "environ", {}).get("LEVERET_CHECK_EVERY", "0"))  # of the steps of a run; 0: what the run thinks right


def check(broker, struck=False):
    """Every record has an owner, every count is what it counts, and every object says what its record says. `struck`: a fault was raised
    in this broker, so that a queue whose rules failed may have them see each message."""
    handles_of_objects(broker)
    windows = invariants.check(
        broker.tables,
        entries_aside(broker),
        references(broker),
        broker.commit.needed if broker.commit is not None else 0,
        not delays(broker),
    )
    for consumer in consumers_of(broker):
        if consumer.handle in windows:
            if not hasattr(consumer, "window_seen"):
                consumer.window_seen = windows[consumer.handle]  # the window that it was given, as it was when it was seen first
            invariants.same("CONSUMER", consumer.handle, "CREDIT and unsettled", consumer.window_seen, windows[consumer.handle])
    queue_records(broker, struck)
    route_places(broker.tables)


def delays(broker):
    """True when messages may wait, and come to the tail of their queues with older positions (x-delayed-message)."""
    return broker.waiting is not None and broker.waiting.count > 0 or any(found.type == DELAYED for found in broker.exchanges.values())


class Steps:
    """Checks each `every`th step of a run; `end` checks where it ends, so that nothing wrong is left unseen."""

    def __init__(self, every=1):
        self.every = EVERY or every
        self.count = 0

    def step(self, broker):
        """One more step was done."""
        self.count += 1
        if self.count % self.every == 0:
            check(broker)

    def end(self, broker):
        """The last step was done."""
        if self.count % self.every:
            check(broker)


def consumers_of(broker):
    """All consumers, in the order of their channels."""
    return [consumer for channel in broker.consumers.open_sessions() for consumer in channel.consumers.values()]


def entries_aside(broker):
    """The entries that are in no list of the tables: what waits, and what readers of streams have read back, also of those that are being
    removed."""
    for _, entry in broker.kept_aside():
        yield entry
    for found in broker.queue_objects.values():
        for window in getattr(found.pages, "windows", ()) if found.is_stream else ():
            entry = window.head
            while entry != NONE:
                yield entry
                entry = broker.tables.entries[entry + layout.ENTRY_NEXT] if entry != window.tail else NONE


def references(broker):
    """message -> how often sessions and their channels hold it."""
    held = {}

    def hold(message):
        if message != NONE:
            held[message] = held.get(message, 0) + 1

    for connection in broker.connections:
        session = connection.session
        if session is None:
            continue
        if hasattr(session, "mapped"):  # AMQP 1.0
            for message in messages_of_1_0(session):
                hold(message)
            continue
        if hasattr(session, "attached"):  # AMQP 0-10
            for message in messages_of_0_10(session):
                hold(message)
            continue
        hold(session.outgoing.message)
        for channel in session.channels.values():
            hold(channel.message)
            if channel.answer is not None:
                hold(channel.answer.message)
            for each in channel.returns:
                hold(each[0])
            if channel.transaction is not None:
                for each in channel.transaction.publishes[channel.transaction.done :]:
                    hold(each[0])
    return held


def messages_of_1_0(protocol):
    """The messages that the sessions, links and transactions of an AMQP 1.0 connection hold, each as often."""
    for session in protocol.mapped.values():
        yield session.outgoing.message
        for link in session.links.values():
            incoming = getattr(link, "incoming", None)
            if incoming is not None:
                yield incoming.message
        for work in session.works.values():
            for each in work.publishes[work.done :]:
                yield each[0]


def messages_of_0_10(protocol):
    """The messages that an AMQP 0-10 connection, its sessions and their transactions hold, each as often."""
    yield protocol.outgoing.message
    for session in protocol.attached.values():
        yield session.incoming.message
        if session.incoming.answer is not None:
            yield session.incoming.answer.message
        if session.incoming.transaction is not None:
            for each in session.incoming.transaction.publishes[session.incoming.transaction.done :]:
                yield each[0]


def handles_of_objects(broker):
    """Queues, channels and consumers are objects, each with a record of its own, and no record is without."""
    tables = broker.tables
    channels = list(broker.consumers.open_sessions())
    for what, wanted, table, width, pool, size in (
        (
            "queue",
            list(broker.queue_objects),
            tables.queues,
            layout.QUEUE_WIDTH,
            tables.queue_pool,
            len(tables.queues),
        ),
        (
            "channel",
            [channel.handle for channel in channels],
            tables.channels,
            layout.CHANNEL_WIDTH,
            tables.channel_pool,
            tables.state[layout.STATE_TAGS],
        ),
        (
            "consumer",
            [consumer.handle for consumer in consumers_of(broker)],
            tables.consumers,
            layout.CONSUMER_WIDTH,
            tables.consumer_pool,
            len(tables.consumers),
        ),
    ):
        found = sorted(invariants.in_use(what.upper(), table, width, pool, 0, size))
        if sorted(wanted) != found:
            raise Wrong("%s: the records in use are %s, and the objects have %s" % (what, found, sorted(wanted)))
    removed = [job.queue for job in broker.jobs + broker.guard.jobs if isinstance(job, Removal)]
    for handle, found in broker.queue_objects.items():
        if found.handle != handle or broker.queues.get(found.name) is not found and found not in removed:
            raise Wrong("queue '%s' is not at its record" % found.name)
    for channel in channels:
        invariants.same("CHANNEL", channel.handle, "NUMBER", channel.number, tables.channels[channel.handle + layout.CHANNEL_NUMBER])
    for consumer in consumers_of(broker):
        for name, wanted in (("QUEUE", consumer.queue.handle), ("CHANNEL", consumer.channel.handle), ("NO_ACK", int(consumer.no_ack))):
            found = tables.consumers[consumer.handle + getattr(layout, "CONSUMER_" + name)]
            invariants.same("CONSUMER", consumer.handle, name, wanted, found)
        if consumer.queue.consumers.count(consumer) != 1:
            raise Wrong("consumer %d: is to be once in its queue's line" % consumer.handle)


def queue_records(broker, struck):
    """What Queue.update_plain has written is still so."""
    for found in broker.queues.values():
        limits = (0, NONE, NONE, NONE) if found.rules is None else found.rules.flat(broker.tables.engine.limits)
        if struck and found.needs_care:
            limits = None
        plain = layout.PLAIN_LOGGED if found.id_in_log else layout.PLAIN
        rows = [("CONSUMERS", len(found.consumers)), ("IDENTITY", found.id_in_log)]
        if limits is not None and found.is_paging() and not found.is_stream:
            plain = layout.PLAIN_PAGED if found.passes_by(limits[0]) else layout.NOT_PLAIN
            if plain:
                limits = (limits[0] | layout.LIMIT_PAGED,) + limits[1:]
        if not found.is_stream:
            rows.append(("PLAIN", layout.NOT_PLAIN if limits is None else plain))
        elif found.pages is None:
            rows.append(("PLAIN", layout.NOT_PLAIN))
        rows += zip(("LIMITS", "TTL", "LENGTH_MAX", "OCTETS_MAX"), (0,) * 4 if limits is None else limits)
        for name, wanted in rows:
            invariants.same("QUEUE", found.handle, name, wanted, broker.tables.queues[found.handle + getattr(layout, "QUEUE_" + name)])


def route_places(tables):
    """A route stands where it is looked for."""
    state, slots = tables.state, tables.routes
    count = state[layout.STATE_ROUTE_SLOTS]
    for slot in range(0, len(slots) if state[layout.STATE_ROUTE_OCTETS] else 0, layout.ROUTE_WIDTH):
        if slots[slot + layout.ROUTE_EPOCH] == state[layout.STATE_ROUTE_EPOCH]:
            first = route_hash(tables.route_octets, slots[slot + layout.ROUTE_OCTETS], slots[slot + layout.ROUTE_SIZE]) & (count - 1)
            if (slot // layout.ROUTE_WIDTH - first) & (count - 1) >= layout.ROUTE_PROBES:
                raise Wrong("route %d: is to be at most %d slots behind %d" % (slot, layout.ROUTE_PROBES, first))
