"""What a broker holds and has done, as plain dicts for management: counters, memory, queues, streams, connections."""

from ..log import figures
from ..memory import layout
from ..memory.micropython_sizes import memory_needed
from ..version import PRODUCT, VERSION


def overview(broker):
    """The overview without lists: all that has a fixed size. `log`: null when messages are kept in memory only."""
    return {
        "product": PRODUCT,
        "version": VERSION,
        "virtual_host": broker.virtual_host,
        "uptime_ms": broker.uptime_ms - (broker.began_ms or 0),
        "memory": memory(broker),
        "totals": totals(broker),
        "management_size_max": broker.limits.management_size_max,
        "log": figures.shown(broker.journal),
        "publishers": broker.pressure.shown() if broker.pressure else {"waiting": len(broker.held), "reason": "", "since_ms": 0},
    }


def counters(broker):
    """Every counter by name, up to this moment."""
    broker.fold_counters()
    counts = dict(broker.counters)
    if broker.journal is not None:
        counts.update(broker.journal.log.counters)
    return counts


def memory(broker):
    """Used and free of what is made at start, and the octets when every limit is reached."""
    state = broker.tables.state
    limits = broker.limits
    figures = {"block_size": limits.block_size, "octets_max": memory_needed(limits) if broker.octets_max is None else broker.octets_max}
    for name, pool, count in (
        ("blocks", layout.POOL_BLOCKS, limits.arena_size // limits.block_size),
        ("messages", layout.POOL_MESSAGES, limits.message_count_max),
        ("entries", layout.POOL_ENTRIES, limits.entry_count_max),
    ):
        figures[name + "_used"] = count - state[pool + 2]
        figures[name + "_free"] = max(state[pool + 2], 0)
    return figures


def totals(broker):
    """How many connections, channels, consumers, queues ... there are."""
    tables = broker.tables
    limits = broker.limits
    return {
        "connections": len(broker.connections),
        "channels": limits.channel_count_max - tables.channel_pool[2],
        "consumers": limits.consumer_count_max - tables.consumer_pool[2],
        "queues": len(broker.queues),
        "exchanges": len(broker.exchanges),
        "bindings": broker.topology.binding_count,
        "policies": len(broker.policies.by_name),
        "users": len(broker.access.users),
    }


def sections(broker):
    """For answer_pages.page: counters (each an object with its one name), queues, streams, connections."""
    return (
        ("counters", [(each[0], each) for each in counters(broker).items()], lambda each: {each[0]: each[1]}),
        ("queues", [row for row in broker.queues.items() if not row[1].is_stream], a_queue),
        ("streams", [row for row in broker.queues.items() if row[1].is_stream], a_stream),
        ("connections", [(id(each), each) for each in broker.connections], a_connection),
    )


def a_queue(queue):
    """`messages`: ready; `octets`: of their bodies; `in_log`: of the messages, those that are only there; `full`: its publishers wait."""
    return {
        "name": queue.name,
        "type": queue.type,
        "messages": queue.message_count(),
        "unsettled": queue.unsettled_count(),
        "octets": queue.octets(),
        "in_log": 0 if queue.pages is None else queue.pages.count,
        "consumers": len(queue.consumers),
        "policy": queue.policy,
        "full": queue.full(1),
    }


def a_stream(queue):
    """Offsets from `first_offset` up to, and not with, `next_offset`; `octets` with routes and properties; `dropped` by retention."""
    return {
        "name": queue.name,
        "id": queue.id,
        "first_offset": queue.first_offset,
        "next_offset": queue.next_offset(),
        "octets": queue.size,
        "octets_max": queue.size_max,
        "dropped": queue.dropped,
        "consumers": len(queue.consumers),
        "policy": queue.policy,
    }


def a_connection(connection):
    """`state`: login, open, held (not read until there is room) or closing."""
    state = "open"
    if connection.ending:
        state = "closing"
    elif connection.user is None:
        state = "login"
    elif not connection.reading:
        state = "held"
    return {
        "name": connection.name,
        "user": None if connection.user is None else connection.user.name,
        "state": state,
        "channels": len(connection.sessions()),
        "queues_declared": connection.queues_declared,
        "bindings_made": connection.bindings_made,
    }
