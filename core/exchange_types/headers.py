"""headers (0-9-1 section 3.1.3.4): the message's headers against each binding's arguments; the comparison is core/headers.py."""

from .. import headers as comparison
from ..exchange import Listed


class Type(Listed):
    """x-match is all (the default), any, all-with-x or any-with-x."""

    type = "headers"
    looks_at_key = False

    def check_binding(self, destination, key, arguments):
        """x-match has one of four values."""
        comparison.check(arguments)

    def match(self, key, properties):
        """The destinations whose arguments fit the headers."""
        found = properties().get("headers") or {}
        return [binding.destination for binding in self.bindings.values() if comparison.fits(binding.arguments, found)]
