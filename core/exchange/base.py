"""What all exchange types have (0-9-1 section 3.1.3): name, flags, arguments, bindings.

A type is the class `Type` of a file in types/, with a row in registry.TYPES. It offers `add(binding)`, `remove(binding)` and
`match(key, properties)`: the destinations (queues and exchanges) of the bindings that fit; one may come more than once.
Keys are bytes; `properties` is a function that returns the message's properties by name; only types that compare properties call it.
`match` may return a list of its type's own: callers do not change it.
"""

import hashlib

from ..errors import PRECONDITION_FAILED, ProtocolError

if False:  # for the type checker alone
    from typing import Any

ALTERNATE = "alternate-exchange"


class Binding:
    """One binding: a source exchange, a destination (queue or exchange), a key (bytes) and arguments (dict)."""

    def __init__(self, exchange, destination, key, arguments):
        self.exchange = exchange
        self.destination = destination
        self.key = key
        self.arguments = arguments
        self.made_by = None  # the connection whose share of bindings it uses
        self.weight = 1  # how many bindings it counts as in binding_count_max
        self.identity = identity(destination, key, arguments)


def identity(destination, key, arguments):
    """The key of a binding in its exchange's dict: bindings with one identity are one binding."""
    return destination.is_exchange, destination.name, key, digest(sorted(arguments.items())) if arguments else b""


def digest(item):
    """Fifteen octets that identify an item of any size."""
    return hashlib.sha256(repr(item).encode()).digest()[:15]


class Exchange:
    """Base of the types. `nonce` (bytes) seeds types that draw at random."""

    add: "Any"
    remove: "Any"

    type = ""
    is_exchange = True
    looks_at_key = True  # False: a message with several keys (CC) is matched once
    delays = False  # True: the message's x-delay counts
    by_key = False  # True: the answer of `match` depends on the key alone, until a binding changes
    draws = False  # True: `match` depends on a draw, which `drawn` uses up once a queue has accepted the message
    changes = 0  # how often a binding was added or removed
    seen: "Any" = None  # what broker/further.py has seen of the bindings after so many changes
    arguments_served: tuple = ()  # arguments of exchange.declare whose names begin with x-
    # Attributes that few exchanges change stand here too: on a board an attribute costs 8 octets of each exchange.
    alternate: "Any" = None  # a name, or None
    exchange_count = 0  # bindings to exchanges
    plain = True  # one call of `match` gives all queues of a message; an exchange that is not plain needs a walk.Walk

    def __init__(self, name, durable, auto_delete, internal, arguments, nonce=b""):
        self.name = name
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = arguments
        self.seed_with(nonce)
        self.bindings = {}  # by identity
        self.bound = {}  # bindings of which this exchange is the destination, by the identity of the object
        if ALTERNATE in arguments:
            self.alternate = arguments[ALTERNATE]
        self.see_plain()

    def seed_with(self, nonce):
        """Keep the seed of a type that draws."""

    def see_plain(self):
        """Set `plain` where its value has changed."""
        plain = self.exchange_count == 0 and self.alternate is None and not self.draws
        if self.plain != plain:
            self.plain = plain

    def set_alternate(self, name):
        """Set the name of the alternate exchange (a policy's), or None."""
        self.alternate = name
        self.see_plain()

    @staticmethod
    def check_arguments(arguments):
        """Raise ProtocolError when an exchange with these arguments makes no sense for this type."""

    def check_binding(self, destination, key, arguments):
        """Raise ProtocolError when such a binding makes no sense for this type."""

    def weight(self, key, arguments):
        """How many bindings this one counts as in binding_count_max: 1, or more when it needs more memory or time."""
        return 1

    def find(self, destination, key, arguments):
        """The binding, or None."""
        return self.bindings.get(identity(destination, key, arguments))

    def bind(self, binding):
        """Add a binding that is not there yet."""
        self.bindings[binding.identity] = binding
        try:
            self.add(binding)
        except Exception:  # all or nothing: the binding was not added
            del self.bindings[binding.identity]
            raise
        binding.destination.bound[id(binding)] = binding
        if binding.destination.is_exchange:
            self.exchange_count += 1
            self.see_plain()
        self.changes += 1

    def unbind(self, binding):
        """Remove a binding that is there."""
        del self.bindings[binding.identity]
        try:
            self.remove(binding)
        except Exception:  # all or nothing: the binding is still there
            self.bindings[binding.identity] = binding
            raise
        del binding.destination.bound[id(binding)]
        if binding.destination.is_exchange:
            self.exchange_count -= 1
            self.see_plain()
        self.changes += 1


def refuse(text):
    """Raise precondition-failed (RabbitMQ's binding_invalid)."""
    raise ProtocolError(PRECONDITION_FAILED, text)


def delay_of(delay):
    """The milliseconds that a message asks for by its header x-delay; 0 when it asks for none (the plugin's rule: a number above 0)."""
    if isinstance(delay, str):
        delay = whole_number(delay) or 0
    return delay if isinstance(delay, int) and not isinstance(delay, bool) and delay > 0 else 0


def whole_number(text):
    """The number that a text of decimal digits is, else None. What `isdigit` takes beside 0 to 9 (as "\u00b2") is none to `int`."""
    for character in text:
        if not "0" <= character <= "9":
            return None
    return int(text) if text else None
