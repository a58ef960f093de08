"""topic (0-9-1 section 3.1.3.3): patterns of words; the tree is core/patterns/topic.py."""

from ...patterns.topic import Topic
from ...shim import const
from ..base import Exchange

_STAYING = const(16)


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
        """Take the pattern out of the tree."""
        self.tree.remove(binding.key, binding.destination)

    def weight(self, key, arguments):
        """Each word is a node of the tree; three nodes count as one binding. A word behind a second # may fit again at each word of
        a key, beside all others: it counts for as many bindings as these comparisons take the time of."""
        words = key.split(b".")
        staying = [place for place in range(len(words)) if words[place] == b"#"]
        behind = len(words) - 1 - staying[1] if len(staying) > 1 else 0
        return (len(words) + 2) // 3 + _STAYING * behind

    def match(self, key, properties):
        """The destinations whose patterns fit."""
        return self.tree.match(key)
