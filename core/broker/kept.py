"""A message that a transaction has kept, at its commit: published like one that `ingest` has just read, where it needs no decision.

c_accel/settle.c has the same function in C.
"""

from ..memory import layout
from .publish import find_route, may_push, publish


def publish_kept(tables, channel, message):
    """Push a kept message to the queues that the route cache has for it and the user of STATE_USER, and give up the transaction's
    reference: the number of queues. `channel` NONE: only see that this can be done. 0: it needs a decision, and nothing has changed."""
    state, messages, routes = tables.state, tables.messages, tables.routes
    size = messages[message + layout.MESSAGE_ROUTE]
    if size > tables.block_size:
        return 0
    at = messages[message + layout.MESSAGE_FIRST] * tables.block_size
    slot = find_route(state, routes, tables.route_octets, tables.arena, at, size)
    if slot < 0:
        return 0
    state[layout.STATE_KIND] = messages[message + layout.MESSAGE_KIND]
    blocks, body = messages[message + layout.MESSAGE_BLOCKS], messages[message + layout.MESSAGE_BODY]
    lifetime = messages[message + layout.MESSAGE_LIFETIME]
    logged = may_push(messages, tables.entries, tables.queues, state, routes, tables.route_targets, slot, lifetime, blocks, body)
    if logged == 0 or logged == layout.PLAIN_STREAM:
        return 0
    if channel != layout.NONE:
        publish(
            tables.blocks,
            messages,
            tables.entries,
            tables.queues,
            tables.channels,
            state,
            routes,
            tables.route_targets,
            channel,
            slot,
            message,
            logged,
        )
        messages[message + layout.MESSAGE_REFERENCES] -= 1
    return routes[slot + layout.ROUTE_COUNT]
