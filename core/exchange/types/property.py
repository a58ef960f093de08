"""x-property: "routes messages on the value and presence of properties" (amqp-fast-0.9a5-rfc006, "Exchange Types", type 4).

A binding's arguments are names and values, as for a headers exchange (x-match and all), but a name may also be a property of the message,
as content-type or priority; an argument without a value asks for the property's presence.
"""

from ...message.facts import facts_of
from . import headers


class Type(headers.Type):
    """A headers exchange that compares the properties too."""

    type = "x-property"

    def header_names(self):
        """It compares more than headers."""

    def facts(self, properties):
        """Headers and properties."""
        return facts_of(properties)
