"""x-consistent-hash: messages spread over the bound queues by a hash, equal values always to the same one (RabbitMQ's plugin of that name).

The exchange hashes the routing key, or the header that `hash-header` names, or the property that `hash-property` names (message_id,
correlation_id, timestamp). A binding key is a weight, a whole number above 0: a queue with weight 2 gets twice as much as one with weight
1.

Weighted rendezvous chooses the queue: each destination has a number in (0, 1) from the value and its own name, raised to the power of 1 /
weight; the largest wins. So a binding that comes or goes moves only its own values, whatever the order of bindings, also over a restart;
the exchange keeps the list of destinations and nothing else. The cost of a message grows with the number of destinations.
"""

import hashlib

from ..base import Exchange, refuse

PROPERTIES = ("correlation_id", "message_id", "timestamp")

WEIGHT_MAX = 1 << 20
SPAN = 1 << 32


class Type(Exchange):
    """Rows of [seed, destination, exponent]."""

    type = "x-consistent-hash"
    looks_at_key = False  # the message's own key counts, not those of CC and BCC

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.header = self.arguments.get("hash-header")
        self.property = self.arguments.get("hash-property")
        self.rows = []

    @staticmethod
    def check_arguments(arguments):
        """At most one of hash-header and hash-property; texts are RabbitMQ's."""
        for name in ("hash-header", "hash-property"):
            if not isinstance(arguments.get(name, ""), str):
                refuse("the argument '%s' must be a longstr" % name)
        if "hash-header" in arguments and "hash-property" in arguments:
            refuse("hash-header and hash-property are mutually exclusive")
        if arguments.get("hash-property", PROPERTIES[0]) not in PROPERTIES:
            refuse("Unsupported property: %s" % arguments["hash-property"])

    def check_binding(self, destination, key, arguments):
        """The key is a weight; texts are RabbitMQ's."""
        weight = weight_of(key)
        if weight is None:
            refuse('The binding key must be an integer: <<"%s">>' % str(key, "utf-8"))
        if weight < 1:
            refuse("The binding key must be greater than 0")
        if weight > WEIGHT_MAX:
            refuse("The binding key must be at most %d" % WEIGHT_MAX)

    def add(self, binding):
        """Weigh again."""
        self.weigh()

    def remove(self, binding):
        """Weigh again."""
        self.weigh()

    def weigh(self):
        """Make the rows: the weights of a destination's bindings add up. All exponents are scaled by the largest weight."""
        weights: dict = {}
        for binding in self.bindings.values():
            weights[binding.destination] = weights.get(binding.destination, 0) + weight_of(binding.key)
        largest = max(list(weights.values()) + [1])
        self.rows = [(seed_of(destination), destination, largest / weights[destination]) for destination in weights]

    def match(self, key, properties):
        """The destination with the largest number."""
        value = hashlib.sha256(self.value(key, properties)).digest()[:16]
        best: tuple = ()
        best_number = -1.0
        for seed, destination, exponent in self.rows:
            number = (int.from_bytes(hashlib.sha256(seed + value).digest()[:4], "big") + 0.5) / SPAN
            if exponent != 1:
                number = number**exponent
            if number > best_number:
                best_number = number
                best = (destination,)
        return best

    def value(self, key, properties):
        """The octets to hash. All messages without the header or property have the same octets: they go to one queue."""
        if self.header is not None:
            value = (properties().get("headers") or {}).get(self.header)
        elif self.property is not None:
            value = properties().get(self.property)
        else:
            return key
        if value is None:
            return b""
        return value if isinstance(value, bytes) else str(value).encode("utf-8")


def weight_of(key):
    """A binding key as a number, or None."""
    try:
        return int(str(key, "utf-8"))
    except ValueError:
        return None


def seed_of(destination):
    """Sixteen octets from a destination's kind and name."""
    return hashlib.sha256((b"e" if destination.is_exchange else b"q") + destination.name.encode("utf-8")).digest()[:16]
