"""x-selector: "routes messages using a programmable selector statement", SQL's WHERE (amqp-fast-0.9a5-rfc006, "Exchange Types", type 6).

The statement is the binding's argument `x-selector`; without one, or with an empty one, all messages fit. The language is core/selector.py.
A statement that is wrong is refused when it is bound.
"""

from ..exchange import Exchange, refuse
from ..selector import Selector

ARGUMENT = "x-selector"


class Type(Exchange):
    """A Selector for each binding."""

    type = "x-selector"
    looks_at_key = False

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.selectors = {}  # by the binding's identity

    def check_binding(self, destination, key, arguments):
        """The statement is one."""
        text = arguments.get(ARGUMENT, "")
        if not isinstance(text, str):
            refuse("the argument '%s' must be a longstr" % ARGUMENT)
        Selector(text)

    def weight(self, key, arguments):
        """A long statement counts for more than one binding: about twenty operations take the memory of one."""
        return 1 + len(Selector(arguments.get(ARGUMENT, "")).program) // 20

    def add(self, binding):
        """Compile it."""
        self.selectors[binding.identity] = Selector(binding.arguments.get(ARGUMENT, ""))

    def remove(self, binding):
        """Forget it."""
        del self.selectors[binding.identity]

    def match(self, key, properties):
        """The destinations whose statement is true."""
        found = properties()
        return [binding.destination for binding in self.bindings.values() if self.selectors[binding.identity].fits(found)]
