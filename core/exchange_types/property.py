"""x-property: "routes messages on the value and presence of properties" (amqp-fast-0.9a5-rfc006, "Exchange Types", type 4).

A binding's arguments are names and values, as for a headers exchange (x-match and all), but a name may also be a property of the message,
as content-type or priority; an argument without a value asks that the property is there.
"""

from .. import headers as comparison
from ..exchange import Listed
from ..message_facts import facts_of


class Type(Listed):
    """A headers exchange that sees the properties too."""

    type = "x-property"
    looks_at_key = False

    def check_binding(self, destination, key, arguments):
        """x-match has one of four values."""
        comparison.check(arguments)

    def match(self, key, properties):
        """The destinations whose arguments fit headers and properties."""
        facts = facts_of(properties())
        return [binding.destination for binding in self.bindings.values() if comparison.fits(binding.arguments, facts)]
