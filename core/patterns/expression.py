"""Regular expressions of permissions and policies: the same meaning on every interpreter, in time linear in the text.

`Pattern(text, size_max)` is made once, `matches(name)` looks for the expression anywhere in a name, as RabbitMQ does (re:run: octets, not
characters). Nearly all expressions (`.*`, `^word`, `^word\\..*`, `^word$`) are comparisons of text; the others are programs of
expression_parser.py, which expression_program.py runs; both files are imported with the first program.
"""

from ..parts import part

SPECIAL = ".^$*+?()[]{}|\\"
TAILS = (".*$", ".*", "$", "")


class Pattern:
    """One expression. `size`: octets that its program takes. Raises ValueError, whose text begins with "has" or "is", for one that is
    wrong, not served, or larger than `size_max`."""

    def __init__(self, text, size_max):
        if not isinstance(text, str):
            raise ValueError("is not a text")
        self.anchored = text.startswith("^")
        self.tail, self.literal = plain_parts(text[1:] if self.anchored else text)
        self.programs: tuple = ()
        self.size = len(text.encode("utf-8"))
        if self.literal is None or not self.anchored and self.tail == ".*$":
            self.literal = None
            parser = part("patterns.expression_parser")
            if parser is None:
                raise ValueError("is more than a word behind ^, with .* or $ behind it, and this build does not carry what reads others")
            self.programs = parser.programs_of(text.encode("utf-8"), size_max)
            self.size += sum([parser.size_of(program) for program, _ in self.programs])
            self.run = part("patterns.expression_program").matches
        if self.size > size_max:
            raise ValueError("is too large: it takes %d octets of the %d that this broker has for one" % (self.size, size_max))

    def matches(self, name):
        """True when the expression matches anywhere in a text."""
        literal, tail = self.literal, self.tail
        if literal is None:
            octets = name.encode("utf-8")
            for program, wanted in self.programs:
                if self.run(program, octets) != wanted:
                    return False
            return True
        if not self.anchored:
            return name.endswith(literal) or name.endswith(literal + "\n") if tail == "$" else literal in name
        if tail == "$":
            return name == literal or name == literal + "\n"
        return name.startswith(literal) and (tail != ".*$" or "\n" not in name[len(literal) : len(name) - 1])


def plain_parts(text):
    """(tail, literal) of an expression that is plain text and one of TAILS; the literal is None for any other."""
    for tail in TAILS:
        if text.endswith(tail) and not (tail and text[: len(text) - len(tail)].endswith("\\")):
            break
    literal = ""
    at = 0
    end = len(text) - len(tail)
    while at < end:
        letter = text[at]
        if letter == "\\" and at + 1 < end and text[at + 1] in SPECIAL:
            at += 1
            letter = text[at]
        elif letter in SPECIAL:
            return "", None
        literal += letter
        at += 1
    return tail, literal
