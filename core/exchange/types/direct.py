"""direct (0-9-1 section 3.1.3.1): the binding key equals the routing key."""

from ..base import Exchange


class Type(Exchange):
    """Destinations by key."""

    type = "direct"
    by_key = True

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.destinations = {}

    def add(self, binding):
        """Remember the destination under its key."""
        self.destinations.setdefault(binding.key, []).append(binding.destination)

    def remove(self, binding):
        """Forget the destination, and the key with its last destination."""
        destinations = self.destinations[binding.key]
        destinations.remove(binding.destination)
        if not destinations:
            del self.destinations[binding.key]

    def match(self, key, properties):
        """The destinations bound with this key."""
        return self.destinations.get(key, ())
