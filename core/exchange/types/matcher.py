"""x-matcher: "routes messages on a set of properties using wild-card comparisons" (amqp-fast-0.9a5-rfc006, "Exchange Types", type 5).

As x-property, but a text in a binding's arguments is a pattern: * is any run of characters, ? one character, \\ makes the next character a
plain one. The draft names no wild cards; these are the usual ones. A pattern is compared with text and with numbers as they are written.
"""

from ...message.facts import facts_of
from ...patterns.wildcard import matches, pieces_of, searches
from .. import arguments_match
from ..base import Exchange, refuse


class Type(Exchange):
    """A property exchange whose texts are patterns."""

    type = "x-matcher"
    looks_at_key = False

    def __init__(self, *given):
        Exchange.__init__(self, *given)
        self.patterns = {}  # the arguments with their texts in pieces, by the binding's identity

    def check_binding(self, destination, key, arguments):
        """x-match has one of four values, and no pattern ends in a single \\."""
        arguments_match.check(arguments)
        for name in arguments:
            if isinstance(arguments[name], str) and pieces_of(arguments[name], "*", "?", "\\") is None:
                refuse("the pattern '%s' of the argument '%s' ends with an escape character" % (arguments[name], name))

    def weight(self, key, arguments):
        """Long patterns count for more than one binding: about a hundred characters in pieces take the memory of one. So does the
        time of each message: a comparison costs as much as four bindings, one piece with ? between two * as much as a hundred."""
        texts = [arguments[name] for name in arguments if isinstance(arguments[name], str) and name != "x-match"]
        return (
            1
            + 4 * len(arguments)
            + sum([len(text) for text in texts]) // 100
            + 100 * sum([searches(pieces_of(text, "*", "?", "\\")) for text in texts])
        )

    def add(self, binding):
        """Compile the binding's patterns."""
        self.patterns[binding.identity] = compiled(binding.arguments)

    def remove(self, binding):
        """Forget the binding's patterns."""
        del self.patterns[binding.identity]

    def match(self, key, properties):
        """The destinations whose patterns fit headers and properties."""
        facts = facts_of(properties())
        return [
            binding.destination
            for binding in self.bindings.values()
            if arguments_match.fits(self.patterns[binding.identity], facts, fits_pattern)
        ]


def compiled(arguments):
    """The arguments with (None, pieces) for each text, but x-match."""
    made = {}
    for name in arguments:
        text = arguments[name]
        made[name] = (None, pieces_of(text, "*", "?", "\\")) if isinstance(text, str) and name != "x-match" else text
    return made


def fits_pattern(wanted, value):
    """True when a value fits a pattern, or equals a wanted value that is no pattern."""
    if not isinstance(wanted, tuple) or wanted[0] is not None:  # ("T", seconds) is a timestamp
        return arguments_match.same(wanted, value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return isinstance(value, str) and matches(wanted[1], value)
