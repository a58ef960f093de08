"""Exchanges: from an exchange and a routing key to the queues that get the message (0-9-1 section 3.1.3).

One class a type, each with `add(binding)`, `remove(binding)` and `match(key, headers)`; TYPES is the table that a declare looks into:
the next exchange type is a class and a row there. Keys are bytes; `headers` is a function that gives the message's headers as a dict,
called only by the types that look at them.
"""

from . import headers as headers_match
from .errors import PRECONDITION_FAILED, ProtocolError
from .topic import Topic


class Binding:
    """One binding: a source exchange, a destination queue, a key (bytes) and arguments (dict)."""

    def __init__(self, exchange, queue, key, arguments):
        self.exchange = exchange
        self.queue = queue
        self.key = key
        self.arguments = arguments
        self.made_by = None  # the connection whose share it counts on
        self.identity = identity(queue, key, arguments)


def identity(queue, key, arguments):
    """What makes a binding of one exchange the same as another: a key for a dict."""
    return queue.name, key, repr(sorted(arguments.items())) if arguments else ""


class Exchange:
    """What all types have. Not made itself."""

    type = ""
    looks_at_headers = False

    def __init__(self, name, durable, auto_delete, internal, arguments):
        self.name = name
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = arguments
        self.declared_by = None  # whose share it counts on
        self.bindings = {}  # by identity

    def check_binding(self, arguments):
        """Raise ProtocolError when a binding with these arguments makes no sense for this type."""

    def find(self, queue, key, arguments):
        """The binding, or None."""
        return self.bindings.get(identity(queue, key, arguments))

    def bind(self, binding):
        """Take a binding that is not there yet."""
        self.bindings[binding.identity] = binding
        self.add(binding)

    def unbind(self, binding):
        """Remove a binding that is there."""
        del self.bindings[binding.identity]
        self.remove(binding)


class Direct(Exchange):
    """Binding key equals routing key (section 3.1.3.1)."""

    type = "direct"

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.by_key = {}

    def add(self, binding):
        """Remember the queue under its key."""
        self.by_key.setdefault(binding.key, []).append(binding.queue)

    def remove(self, binding):
        """Forget it, and the key with its last queue."""
        queues = self.by_key[binding.key]
        queues.remove(binding.queue)
        if not queues:
            del self.by_key[binding.key]

    def match(self, key, headers):
        """The queues bound with this key."""
        return self.by_key.get(key, ())


class Fanout(Exchange):
    """Every binding, whatever the key (section 3.1.3.2)."""

    type = "fanout"

    def add(self, binding):
        """Nothing beyond the list of bindings."""

    def remove(self, binding):
        """Nothing beyond the list of bindings."""

    def match(self, key, headers):
        """All bound queues."""
        return [binding.queue for binding in self.bindings.values()]


class TopicExchange(Exchange):
    """Patterns of words (section 3.1.3.3)."""

    type = "topic"

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.tree = Topic()

    def add(self, binding):
        """Put the pattern in the tree."""
        self.tree.add(binding.key, binding.queue)

    def remove(self, binding):
        """Take it out of the tree."""
        self.tree.remove(binding.key, binding.queue)

    def match(self, key, headers):
        """The queues whose patterns fit."""
        return self.tree.match(key)


class HeadersExchange(Exchange):
    """The message's headers against the binding's arguments (section 3.1.3.4)."""

    type = "headers"
    looks_at_headers = True

    def check_binding(self, arguments):
        """x-match has one of four values."""
        if headers_match.match_mode(arguments) is None:
            raise ProtocolError(PRECONDITION_FAILED, "invalid x-match argument %r: expected all, any, all-with-x or any-with-x"
                                % (arguments.get("x-match"),))

    def add(self, binding):
        """Nothing beyond the list of bindings."""

    def remove(self, binding):
        """Nothing beyond the list of bindings."""

    def match(self, key, headers):
        """The queues whose arguments fit the headers."""
        found = headers()
        return [binding.queue for binding in self.bindings.values() if headers_match.fits(binding.arguments, found)]


TYPES = (Direct, Fanout, TopicExchange, HeadersExchange)

PREDECLARED = (("amq.direct", "direct"), ("amq.fanout", "fanout"), ("amq.topic", "topic"), ("amq.headers", "headers"),
               ("amq.match", "headers"))


def type_named(name):
    """The class of an exchange type, or None."""
    for class_ in TYPES:
        if class_.type == name:
            return class_
    return None
