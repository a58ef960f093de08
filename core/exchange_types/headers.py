"""headers (0-9-1 section 3.1.3.4): the message's headers against each binding's arguments; the comparison is core/headers.py.

A message costs what its own headers find, not what is bound: a binding of x-match any stands in the index under each of its pairs (argument
and value), one of all under one of them, the one with the fewest others; what asks for nothing is met by all.
"""

from .. import headers as comparison
from ..exchange import Exchange


class Type(Exchange):
    """x-match is all (the default), any, all-with-x or any-with-x."""

    type = "headers"
    looks_at_key = False

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.index = {}  # pair -> {binding: None}; a pair is (argument, value), or (argument, None) for any value
        self.places = {}  # binding's identity -> its pairs
        self.always = {}  # bindings of all that ask for nothing

    def check_binding(self, destination, key, arguments):
        """x-match has one of four values."""
        comparison.check(arguments)

    def weight(self, key, arguments):
        """A binding of any stands in the index with each pair: three of them are counted as one more."""
        return 1 + (len(arguments) // 3 if comparison.is_any(arguments) else 0)

    def add(self, binding):
        """Put it in the index."""
        pairs = [pair_of(name, binding.arguments[name]) for name in comparison.compared(binding.arguments)]
        if not comparison.is_any(binding.arguments):
            if not pairs:
                self.always[binding] = None
            pairs = sorted(pairs, key=lambda pair: len(self.index.get(pair, ())))[:1]
        for pair in pairs:
            self.index.setdefault(pair, {})[binding] = None
        self.places[binding.identity] = pairs

    def remove(self, binding):
        """Take it out."""
        self.always.pop(binding, None)
        for pair in self.places.pop(binding.identity):
            found = self.index[pair]
            found.pop(binding, None)
            if not found:
                del self.index[pair]

    def facts(self, properties):
        """What is compared, by name."""
        return properties.get("headers") or {}

    def match(self, key, properties):
        """The destinations whose arguments fit the headers."""
        headers = self.facts(properties())
        index = self.index
        found = dict(self.always)
        for name in headers:
            for pair in (pair_of(name, headers[name]), (name, None)):
                for binding in index.get(pair, ()):
                    if binding not in found and comparison.fits(binding.arguments, headers):
                        found[binding] = None
        return [binding.destination for binding in found]


def pair_of(name, value):
    """The key for an argument and its value: values that comparison.same holds for have one key. Values that no dict takes have none."""
    if value is None or isinstance(value, (list, dict)):
        return (name, None) if value is None else (name, type(value).__name__, len(value))
    return (name, type(value).__name__, value)
