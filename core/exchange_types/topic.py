"""topic (0-9-1 section 3.1.3.3): patterns of words; the tree is core/topic.py."""

from ..exchange import Exchange
from ..topic import Topic


class Type(Exchange):
    """A tree of patterns."""

    type = "topic"
    by_key = True

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.tree = Topic()

    def add(self, binding):
        """Put the pattern in the tree."""
        self.tree.add(binding.key, binding.destination)

    def remove(self, binding):
        """Take it out of the tree."""
        self.tree.remove(binding.key, binding.destination)

    def weight(self, key, arguments):
        """A word takes a node of the tree; three of them are counted as a binding."""
        return (key.count(b".") + 3) // 3

    def match(self, key, properties):
        """The destinations whose patterns fit."""
        return self.tree.match(key)
