"""direct (0-9-1 section 3.1.3.1): the binding key equals the routing key."""

from ..exchange import Exchange


class Type(Exchange):
    """Destinations by key."""

    type = "direct"
    by_key = True

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.by_key = {}

    def add(self, binding):
        """Remember the destination under its key."""
        self.by_key.setdefault(binding.key, []).append(binding.destination)

    def remove(self, binding):
        """Forget it, and the key with its last destination."""
        destinations = self.by_key[binding.key]
        destinations.remove(binding.destination)
        if not destinations:
            del self.by_key[binding.key]

    def match(self, key, properties):
        """The destinations bound with this key."""
        return self.by_key.get(key, ())
