"""x-delayed-message (the RabbitMQ plugin's type): routes as the type named by `x-delayed-type`; a message with the header `x-delay` above
0 is routed at once but comes to its queues only after so many milliseconds, at their tails.

A waiting message counts in its queues' shares and, when it is persistent, is in the log. A stream accepts no delayed messages.
"""

from ..base import Exchange, refuse

ARGUMENT = "x-delayed-type"
INNER = ("direct", "fanout", "topic", "headers")


class Type(Exchange):
    """A wrapper around another type, which gets the bindings."""

    type = "x-delayed-message"
    arguments_served = (ARGUMENT,)
    delays = True

    def __init__(self, name, durable, auto_delete, internal, arguments, nonce=b""):
        from ..registry import type_in

        self.inner = type_in(arguments[ARGUMENT])(name, durable, auto_delete, internal, {}, nonce)
        Exchange.__init__(self, name, durable, auto_delete, internal, arguments, nonce)

    @staticmethod
    def check_arguments(arguments):
        """x-delayed-type is one of the standard's types."""
        if arguments.get(ARGUMENT) not in INNER:
            refuse("x-delayed-message needs the argument 'x-delayed-type': one of " + ", ".join(INNER))

    def check_binding(self, destination, key, arguments):
        """As the inner type checks; a stream is refused."""
        if not destination.is_exchange and destination.is_stream:
            refuse("a stream takes no delayed messages; '%s' is one" % destination.name)
        self.inner.check_binding(destination, key, arguments)

    def see_plain(self):
        """Never plain: every message may have a delay."""
        self.plain = False

    def weight(self, key, arguments):
        """As the inner type weighs."""
        return self.inner.weight(key, arguments)

    def add(self, binding):
        """Give the inner type the binding."""
        self.inner.bindings[binding.identity] = binding
        self.inner.add(binding)

    def remove(self, binding):
        """Take the binding from the inner type."""
        del self.inner.bindings[binding.identity]
        self.inner.remove(binding)

    def match(self, key, properties):
        """The destinations that the inner type matches."""
        return self.inner.match(key, properties)
