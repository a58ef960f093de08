"""What queues, sessions and consumers hold and have done, in neutral names: for ports that show them (ports/http), which read no table.

Counts are of this run unless they say else; those that the flat state keeps in 30 bits begin again at 0 behind the largest.
"""

from ..memory import layout


def of_queue(queue):
    """`ready`, and `in_log` of them only there; `unsettled`; `octets` of the ready bodies, `in_log_octets` of them; `placed`: places that
    were given to messages, 30 bits (a stream's: its next offset)."""
    queues, pages = queue.tables.queues, queue.pages
    if queue.is_stream:
        return {
            "ready": queue.message_count(),
            "in_log": 0,
            "unsettled": queue.unsettled_count(),
            "octets": queue.size,
            "in_log_octets": 0,
            "placed": queue.next_offset(),
        }
    return {
        "ready": queue.message_count(),
        "in_log": 0 if pages is None else pages.count,
        "unsettled": queue.unsettled_count(),
        "octets": queue.octets(),
        "in_log_octets": 0 if pages is None else pages.octets,
        "placed": queues[queue.handle + layout.QUEUE_POSITION],
    }


def octets_held(queue):
    """Octets of the arena that a queue's messages take."""
    return queue.tables.queues[queue.handle + layout.QUEUE_BLOCKS] * queue.tables.block_size


def of_session(tables, session):
    """`unsettled`; `delivered`: deliveries so far; `published`: publishes so far that it wants confirms of; `confirms`: it wants some;
    `prefetch`: most unsettled deliveries of all its consumers, 0: no limit."""
    channels, handle = tables.channels, session.handle
    return {
        "unsettled": channels[handle + layout.CHANNEL_UNSETTLED] + channels[handle + layout.CHANNEL_GOT],
        "delivered": (channels[handle + layout.CHANNEL_TAG_HIGH] << 30) + channels[handle + layout.CHANNEL_TAG],
        "published": (channels[handle + layout.CHANNEL_PUBLISHED_HIGH] << 30) + channels[handle + layout.CHANNEL_PUBLISHED],
        "confirms": channels[handle + layout.CHANNEL_CONFIRM] != 0,
        "prefetch": max(channels[handle + layout.CHANNEL_PREFETCH], 0),
    }


def credit_of(tables, consumer):
    """Deliveries that a consumer may still get; None: there is no limit."""
    credit = tables.consumers[consumer.handle + layout.CONSUMER_CREDIT]
    return None if credit == layout.CREDIT_UNLIMITED else credit


def totals_of_queues(broker):
    """(ready, unsettled) messages of all queues."""
    ready = unsettled = 0
    for queue in broker.queues.values():
        ready += queue.message_count()
        unsettled += queue.unsettled_count()
    return ready, unsettled


def pools(broker):
    """(name of the limit, used, maximum) of every pool and table that can be full."""
    tables, limits, state = broker.tables, broker.limits, broker.tables.state
    rows = []
    for name, pool, count in (
        ("arena_size", layout.POOL_BLOCKS, limits.arena_size // limits.block_size),
        ("message_count_max", layout.POOL_MESSAGES, limits.message_count_max),
        ("entry_count_max", layout.POOL_ENTRIES, limits.entry_count_max),
    ):
        scale = limits.block_size if pool == layout.POOL_BLOCKS else 1
        rows.append((name, (count - state[pool + 2]) * scale, count * scale))
    for name, pool in (("queue_count_max", tables.queue_pool), ("channel_count_max", tables.channel_pool)):
        rows.append((name, getattr(limits, name) - pool[2], getattr(limits, name)))
    rows.append(("consumer_count_max", limits.consumer_count_max - tables.consumer_pool[2], limits.consumer_count_max))
    for name, used in (
        ("connection_count_max", len(broker.connections)),
        ("exchange_count_max", len(broker.exchanges)),
        ("binding_count_max", broker.topology.binding_count),
        ("policy_count_max", broker.policies.taken(broker)),
        ("user_count_max", len(broker.access.users)),
    ):
        rows.append((name, used, getattr(limits, name)))
    return rows
