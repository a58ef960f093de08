"""From an exchange and a routing key to queues (0-9-1 section 3.1.3), each once.

`near` routes nearly all messages: one exchange, one key, queues only. A `Walk` routes the others: through exchanges
bound to exchanges, to alternate exchanges, with the keys that a sender selected (CC, BCC), and through types that draw at random. It visits
each exchange once, so cycles end; it changes nothing until `used`, so a message that finds no room is routed again with the same draw.
"""

from ..message import reading
from .base import delay_of


def near(broker, exchange_name, key, message):
    """The queues for a message (its record), or None when the message needs a Walk. `key`: bytes, or a tuple of keys. Callers do not
    change the list."""
    if exchange_name == "":
        if isinstance(key, tuple):
            return None
        try:  # as queue_named: nearly every message comes this way, and a call costs
            queue = broker.queues.get(str(key, "utf-8"))
        except UnicodeError:
            return ()
        return () if queue is None or queue.is_own else (queue,)
    exchange = broker.exchanges.get(exchange_name)
    if exchange is None:
        return ()
    if not exchange.plain or isinstance(key, tuple):
        return None
    queues = exchange.match(key, None if exchange.by_key else lambda: reading.properties_of(broker.tables, message))
    return queues if len(queues) < 2 else each_once(queues)


def queue_named(broker, key):
    """The queue to which the default exchange routes a key, or None."""
    try:
        queue = broker.queues.get(str(key, "utf-8"))
    except UnicodeError:
        return None
    return None if queue is None or queue.is_own else queue


def each_once(queues):
    """A list without repetitions."""
    seen = set()
    once = []
    for each in queues:
        if each not in seen:
            seen.add(each)
            once.append(each)
    return once


class Walk:
    """The way of one message: `queues`, and `lost` when an exchange dropped it on purpose (x-lossy)."""

    def __init__(self, broker, exchange_name, key, message, properties=None):
        """`properties`: the message's, where it has no record yet."""
        self.broker = broker
        self.keys = key if isinstance(key, tuple) else (key,)
        self.message = message
        self.read = properties  # once an exchange has compared them
        self.lost = False
        self.delay_ms = 0
        self.drew = []  # exchanges whose draw decided
        self.alternate = None
        self.alternate_count = 0
        if exchange_name == "":
            named = [queue_named(broker, key) for key in self.keys]
            self.queues = each_once([queue for queue in named if queue is not None])
        else:
            self.queues = self.follow(exchange_name)

    def follow(self, exchange_name):
        """All queues to which bindings lead from an exchange."""
        names = [exchange_name]
        seen = {exchange_name}
        queues = []
        while names:
            exchange = self.broker.exchanges.get(names.pop())
            if exchange is None:
                continue  # the alternate exchange does not exist
            for destination in self.matched(exchange):
                if not destination.is_exchange:
                    queues.append(destination)
                elif destination.name not in seen:
                    seen.add(destination.name)
                    names.append(destination.name)
            if self.alternate is not None and self.alternate not in seen:
                seen.add(self.alternate)
                names.append(self.alternate)
        return each_once(queues)

    def matched(self, exchange):
        """The destinations that one exchange matches; sets `alternate` to the alternate exchange's name when there are none, else None."""
        self.alternate = None
        if exchange.delays:
            self.delay_ms = max(self.delay_ms, delay_of(reading.header_of(self.broker.tables, self.message, "x-delay")))
        if exchange.draws:
            self.drew.append(exchange)
            if exchange.loses():
                self.lost = True
                return ()
        if len(self.keys) == 1 or not exchange.looks_at_key:
            destinations = exchange.match(self.keys[0], self.read_properties)
        else:
            destinations = []
            for key in self.keys:
                destinations.extend(exchange.match(key, self.read_properties))
        if not destinations and exchange.alternate is not None:
            self.alternate = exchange.alternate
            self.alternate_count += 1
        return destinations

    def read_properties(self):
        """The message's properties. They are read at most once."""
        if self.read is None:
            self.read = reading.properties_of(self.broker.tables, self.message)
        return self.read

    def used(self):
        """Count the message, which queues have accepted, and have exchanges that draw go on to their next number."""
        self.broker.counters["alternate_routed"] += self.alternate_count
        for exchange in self.drew:
            exchange.drawn()
        if self.lost:
            self.broker.counters["lost_on_purpose"] += 1
