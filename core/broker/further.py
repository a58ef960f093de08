"""Routes for the route cache that take more than one exchange and a key: through alternate exchanges and exchanges bound to exchanges, by
the headers that headers exchanges compare, and to the keys that a sender selected (CC).

A way depends on the message's key and on what it says in a few headers: those that the bindings of the exchanges within reach name
(`names_of`), and CC. So it is cached under its route with the octets of these fields behind it, as they stand in the message; a family
finds them there (core/amqp_0_9/further.py). Ways through exchanges that draw or delay, and those that compare anything else, are found for
each message.
"""

from ..exchange.walk import Walk
from . import route_cache

NAMES_MAX = 16  # headers that a way may depend on
EXCHANGES_MAX = 16  # within reach


def no_names():
    """Of a type that compares more than headers."""


def names_of(broker, exchange):
    """The names of the headers (texts, sorted) that the way of a message to `exchange` (None: the default exchange) may depend on; None: it
    may depend on more than these and its key."""
    if exchange is None or exchange.plain and exchange.by_key:
        return ()
    names, reached, waiting = set(), {exchange.name}, [exchange]
    while waiting:
        own, beyond = looked_at(waiting.pop())
        if own is None:
            return None
        names.update(own)
        for name in beyond:
            if name not in reached and name in broker.exchanges:
                reached.add(name)
                waiting.append(broker.exchanges[name])
        if len(names) > NAMES_MAX or len(reached) > EXCHANGES_MAX:
            return None
    return tuple(sorted(names))


def looked_at(exchange):
    """(the names of the headers that `match` compares, or None when it looks at more than these and the key; the names of the exchanges to
    which it may send messages on)."""
    if exchange.draws or exchange.delays:
        return None, ()
    if exchange.seen is None or exchange.seen[0] != exchange.changes:
        beyond = []
        if exchange.exchange_count:
            beyond = [each.destination.name for each in exchange.bindings.values() if each.destination.is_exchange]
        names = () if exchange.by_key else getattr(exchange, "header_names", no_names)()
        exchange.seen = exchange.changes, names, beyond
    _, names, beyond = exchange.seen
    return names, beyond if exchange.alternate is None else beyond + [exchange.alternate]


def remember(broker, user, exchange, route, headers=None, keys=None):
    """Cache the way of a user's messages for `route`: with `headers` (a dict) those whose fields stand behind the route, else all of them.
    `keys`: a tuple, where the sender selected more than the route's. False: it cannot be cached."""
    if headers is None and names_of(broker, exchange) != ():
        return False
    names = 2 + route[0] + route[1 + route[0]]
    walk = Walk(broker, "" if exchange is None else exchange.name, keys or route[2 + route[0] : names], None, {"headers": headers})
    return route_cache.remember(broker.tables, user, route, walk.queues, walk.alternate_count)
