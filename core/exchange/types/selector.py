"""x-selector: "routes messages using a programmable selector statement", SQL's WHERE (amqp-fast-0.9a5-rfc006, "Exchange Types", type 6).

The statement is the binding's argument `x-selector`; without one, or with an empty one, all messages fit. The language is
core/patterns/selector.py. The exchange refuses a binding whose statement is wrong.
"""

from ...patterns.selector import Selector
from ...patterns.wildcard import searches
from ..base import Exchange, refuse

ARGUMENT = "x-selector"


class Type(Exchange):
    """A Selector for each binding."""

    type = "x-selector"
    looks_at_key = False

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.selectors = {}  # by the binding's identity

    def check_binding(self, destination, key, arguments):
        """Raise when the statement is no selector."""
        text = arguments.get(ARGUMENT, "")
        if not isinstance(text, str):
            refuse("the argument '%s' must be a longstr" % ARGUMENT)
        Selector(text)

    def weight(self, key, arguments):
        """A statement counts for several bindings by its time for each message: four operations take the time of one binding."""
        return 1 + weight_of(Selector(arguments.get(ARGUMENT, ""))) // 4

    def add(self, binding):
        """Compile the binding's statement."""
        self.selectors[binding.identity] = Selector(binding.arguments.get(ARGUMENT, ""))

    def remove(self, binding):
        """Forget the binding's statement."""
        del self.selectors[binding.identity]

    def match(self, key, properties):
        """The destinations whose statement is true."""
        read = properties()
        return [binding.destination for binding in self.bindings.values() if self.selectors[binding.identity].fits(read)]


def weight_of(selector):
    """The number of its operations; a LIKE with _ between two % counts as four hundred, a list behind IN as many as it has values."""
    count = 0
    for operation, argument in selector.program:
        count += 400 * searches(argument) if operation == "like" else len(argument) // 4 if operation == "in" else 0
        count += 1
    return count
