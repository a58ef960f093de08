"""What a broker holds and has done, as plain dicts for management: counters, memory, queues, streams, connections."""

from . import layout, log_figures
from .memory_micropython import memory_needed
from .version import PRODUCT, VERSION


def overview(broker):
    """All that has a fixed size. `log`: null when messages are kept in memory only."""
    return {"product": PRODUCT, "version": VERSION, "virtual_host": broker.virtual_host,
            "uptime_ms": broker.uptime_ms - (broker.began_ms or 0), "memory": memory(broker), "totals": totals(broker),
            "management_size_max": broker.limits.management_size_max, "log": log_figures.shown(broker.journal),
            "publishers": broker.pressure.shown() if broker.pressure else {"waiting": len(broker.held), "reason": "", "since_ms": 0}}


def counters(broker):
    """Every counter by name, up to this moment."""
    broker.fold_counters()
    found = dict(broker.counters)
    if broker.journal is not None:
        found.update(broker.journal.log.counters)
    return found


def memory(broker):
    """Used and free of what is made at start, and the octets when every limit is reached."""
    state = broker.tables.state
    limits = broker.limits
    found = {"block_size": limits.block_size, "octets_max": memory_needed(limits) if broker.octets_max is None else broker.octets_max}
    for name, pool, count in (("blocks", layout.POOL_BLOCKS, limits.arena_size // limits.block_size),
                              ("messages", layout.POOL_MESSAGES, limits.message_count_max),
                              ("entries", layout.POOL_ENTRIES, limits.entry_count_max)):
        found[name + "_used"] = count - state[pool + 2]
        found[name + "_free"] = max(state[pool + 2], 0)
    return found


def totals(broker):
    """How many there are of each."""
    tables = broker.tables
    limits = broker.limits
    return {"connections": len(broker.connections), "channels": limits.channel_count_max - tables.channel_pool[2],
            "consumers": limits.consumer_count_max - tables.consumer_pool[2], "queues": len(broker.queues),
            "exchanges": len(broker.exchanges), "bindings": broker.binding_count, "policies": len(broker.policies.by_name),
            "users": len(broker.access.users)}


def sections(broker):
    """For paging.page: counters (each an object with its one name), queues, streams, connections."""
    return (
        ("counters", lambda: [(name, lambda name=name, count=count: {name: count}) for name, count in counters(broker).items()]),
        ("queues", lambda: [(name, lambda found=found: a_queue(found)) for name, found in broker.queues.items() if not found.is_stream]),
        ("streams", lambda: [(name, lambda found=found: a_stream(found)) for name, found in broker.queues.items() if found.is_stream]),
        ("connections", lambda: [(str(id(each)), lambda each=each: a_connection(each)) for each in broker.connections]),
    )


def a_queue(found):
    """`messages`: ready; `octets`: of their bodies; `in_log`: of the messages, those that are only there; `full`: its publishers wait."""
    return {"name": found.name, "type": found.type, "messages": found.message_count(), "unsettled": found.unsettled_count(),
            "octets": found.octets(), "in_log": 0 if found.pages is None else found.pages.count,
            "consumers": len(found.consumers), "policy": found.policy, "full": found.full(1)}


def a_stream(found):
    """Offsets from `first_offset` up to, and not with, `next_offset`; `octets` with routes and properties; `dropped` by retention."""
    return {"name": found.name, "id": found.id, "first_offset": found.first_offset, "next_offset": found.next_offset(),
            "octets": found.size, "octets_max": found.size_max, "dropped": found.dropped, "consumers": len(found.consumers),
            "policy": found.policy}


def a_connection(connection):
    """`state`: login, open, held (not read until there is room) or closing."""
    state = "open"
    if connection.ending:
        state = "closing"
    elif connection.user is None:
        state = "login"
    elif not connection.reading:
        state = "held"
    return {"name": connection.name, "user": None if connection.user is None else connection.user.name, "state": state,
            "channels": len(connection.channels()), "queues_declared": connection.queues_declared,
            "bindings_made": connection.bindings_made}
