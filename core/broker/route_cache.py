"""The route cache: for a user, an exchange and a routing key the queues that a message goes to, flat, for publish.py.

A session caches a route after publishing a message by it; making or removing an exchange, a binding or a queue empties the cache. A
user whose permissions change gets another number (access/permissions.py), so that routes cached for the old number never match again.
"""

from ..memory import layout
from ..shim import copy
from .publish import route_hash

TARGETS_MAX = 64  # a message to more queues than this is not cached


def remember(tables, user, route, targets, alternates=0):
    """Cache that `route` (bytes: exchange and key as two short strings) of the user with this number leads to the queues `targets`,
    through so many alternate exchanges.

    False when the route is not worth a slot.
    """
    state = tables.state
    if not 0 < len(targets) <= min(TARGETS_MAX, len(tables.route_targets)) or len(route) > len(tables.route_octets):
        return False
    if state[layout.STATE_ROUTE_OCTETS] + len(route) > len(tables.route_octets) or state[layout.STATE_ROUTE_TARGETS] + len(targets) > len(
        tables.route_targets
    ):
        empty(tables)
    slot = place_for(tables, route)
    at = state[layout.STATE_ROUTE_OCTETS]
    copy(tables.route_octets, at, route, 0, len(route))
    state[layout.STATE_ROUTE_OCTETS] = at + len(route)
    first = state[layout.STATE_ROUTE_TARGETS]
    for queue in targets:
        tables.route_targets[state[layout.STATE_ROUTE_TARGETS]] = queue.handle
        state[layout.STATE_ROUTE_TARGETS] += 1
    routes = tables.routes
    routes[slot + layout.ROUTE_EPOCH] = state[layout.STATE_ROUTE_EPOCH]
    routes[slot + layout.ROUTE_USER] = user
    routes[slot + layout.ROUTE_SIZE] = len(route)
    routes[slot + layout.ROUTE_OCTETS] = at
    routes[slot + layout.ROUTE_TARGETS] = first
    routes[slot + layout.ROUTE_COUNT] = len(targets)
    routes[slot + layout.ROUTE_ALTERNATES] = alternates
    return True


def place_for(tables, route):
    """The slot for a route: the first empty one of those that a look-up reads, else the first of these."""
    state = tables.state
    slots = state[layout.STATE_ROUTE_SLOTS]
    first = route_hash(route, 0, len(route)) & (slots - 1)
    for probe in range(layout.ROUTE_PROBES):
        slot = ((first + probe) & (slots - 1)) * layout.ROUTE_WIDTH
        if tables.routes[slot + layout.ROUTE_EPOCH] != state[layout.STATE_ROUTE_EPOCH]:
            return slot
    return first * layout.ROUTE_WIDTH


def forget(tables):
    """An exchange, a binding or a queue was made or removed: empty the cache."""
    tables.engine.forget_ways()
    empty(tables)


def empty(tables):
    """Empty every slot."""
    state = tables.state
    if state[layout.STATE_ROUTE_OCTETS]:
        state[layout.STATE_ROUTE_OCTETS] = state[layout.STATE_ROUTE_TARGETS] = 0
        state[layout.STATE_ROUTE_EPOCH] = (state[layout.STATE_ROUTE_EPOCH] + 1) & layout.MASK
