"""headers (0-9-1 section 3.1.3.4): the message's headers against each binding's arguments; the comparison is
core/exchange/arguments_match.py.

The cost of a message grows with the bindings that share a pair with its headers, not with all bindings: a binding of x-match any stands in
the index under each of its pairs (argument and value), one of all under its rarest pair; every message fits a binding without arguments.
"""

from .. import arguments_match
from ..base import Exchange


class Type(Exchange):
    """x-match is all (the default), any, all-with-x or any-with-x."""

    type = "headers"
    looks_at_key = False

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.index = {}  # pair -> {binding: None}; a pair is (argument, value), or (argument, None) for any value
        self.places = {}  # binding's identity -> its pairs
        self.always = {}  # bindings of x-match all without arguments

    def check_binding(self, destination, key, arguments):
        """x-match has one of four values."""
        arguments_match.check(arguments)

    def weight(self, key, arguments):
        """A binding of any stands in the index with each pair: three pairs count as one more binding."""
        return 1 + (len(arguments) // 3 if arguments_match.is_any(arguments) else 0)

    def add(self, binding):
        """Put the binding into the index."""
        pairs = [pair_of(name, binding.arguments[name]) for name in arguments_match.compared(binding.arguments)]
        if not arguments_match.is_any(binding.arguments):
            if not pairs:
                self.always[binding] = None
            pairs = sorted(pairs, key=lambda pair: len(self.index.get(pair, ())))[:1]
        for pair in pairs:
            self.index.setdefault(pair, {})[binding] = None
        self.places[binding.identity] = pairs

    def remove(self, binding):
        """Take the binding out of the index."""
        self.always.pop(binding, None)
        for pair in self.places.pop(binding.identity):
            bindings = self.index[pair]
            bindings.pop(binding, None)
            if not bindings:
                del self.index[pair]

    def header_names(self):
        """The arguments of its bindings that are compared."""
        names = set()
        for binding in self.bindings.values():
            names.update(arguments_match.compared(binding.arguments))
        return names

    def facts(self, properties):
        """The values that are compared, by name."""
        return properties.get("headers") or {}

    def match(self, key, properties):
        """The destinations whose arguments fit the headers."""
        headers = self.facts(properties())
        index = self.index
        fitting = dict(self.always)
        for name in headers:
            for pair in (pair_of(name, headers[name]), (name, None)):
                for binding in index.get(pair, ()):
                    if binding not in fitting and arguments_match.fits(binding.arguments, headers):
                        fitting[binding] = None
        return [binding.destination for binding in fitting]


def pair_of(name, value):
    """The key for an argument and its value: values that are the same for arguments_match.same have one key; values that no dict holds
    have none."""
    if value is None or isinstance(value, (list, dict)):
        return (name, None) if value is None else (name, type(value).__name__, len(value))
    return (name, type(value).__name__, value)
