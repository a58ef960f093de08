"""fanout (0-9-1 section 3.1.3.2): every binding, whatever the key."""

from ..base import Exchange


class Type(Exchange):
    """Destinations in the order of their bindings."""

    type = "fanout"
    by_key = True
    looks_at_key = False

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.destinations = []

    def add(self, binding):
        """Add a destination."""
        self.destinations.append(binding.destination)

    def remove(self, binding):
        """Remove a destination."""
        self.destinations.remove(binding.destination)

    def match(self, key, properties):
        """All destinations."""
        return self.destinations
