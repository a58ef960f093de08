"""Running the program of a regular expression: all its places at once, one octet of the text after the other.

A program is Thompson's construction without its empty steps (Glushkov's): each octet of the expression that asks for an octet of the text
is a *place*, a set of places is one whole number, a bit each. The program never goes back in the text: each octet
costs the same number of steps, whatever came before it (expression_parser.WORK_MAX bounds them).

    (classes, masks, others, chain, pairs, first, later, last, nullable, asserts, asserted)

masks     {class: places that take it}              first     places to begin with; `later`: when the text does not begin here
others    places that take any other class            last      places to end with; `nullable`: the empty text fits
chain     places that the next one follows          asserts   ((kind, places), ...) of ^ $ \\b ..., which take no octet
classes   bytes: the class of each octet; empty: the octet itself
pairs     ((places, what may follow them), ...)     asserted  all of those places
"""

# Kinds of assertions.
BEGIN = -1  # ^ and \A
END = -2  # $ and \Z: the end, or a line feed that is the last octet
BEHIND = -3  # \z
BORDER = -4  # \b
INSIDE = -5  # \B
LINE_BEGIN = -6  # ^ and $ under (?m)
LINE_END = -7


def matches(program, text):
    """True when the expression matches somewhere in `text` (bytes)."""
    classes, masks, others, chain, pairs, start, later, last, nullable, asserts, asserted = program
    if nullable:
        return True
    here = 0
    end = len(text)
    for at in range(end + 1):
        ahead = start
        if here:
            ahead |= (here & chain) << 1
            for places, following in pairs:
                if here & places:
                    ahead |= following
        if ahead & asserted:
            holding = 0
            for kind, places in asserts:
                if ahead & asserted and holds(kind, text, at, end):
                    holding |= places
            passed = 0
            fresh = ahead & holding
            while fresh:
                if fresh & last:
                    return True
                passed |= fresh
                ahead |= (fresh & chain) << 1
                for places, following in pairs:
                    if fresh & places:
                        ahead |= following
                fresh = ahead & holding & ~passed
        if at == end:
            return False
        here = ahead & masks.get(classes[text[at]] if classes else text[at], others)
        if here & last:
            return True
        start = later
        if not here and not later:
            return False
    return False


def holds(kind, text, at, end):
    """True when an assertion holds in front of text[at]."""
    if kind == BEGIN:
        return at == 0
    if kind == END:
        return at == end or at == end - 1 and text[at] == 10
    if kind == BEHIND:
        return at == end
    if kind == LINE_BEGIN:
        return at == 0 or text[at - 1] == 10 and at < end
    if kind == LINE_END:
        return at == end or text[at] == 10
    return (at > 0 and is_word(text[at - 1])) != (at < end and is_word(text[at])) if kind == BORDER else not holds(BORDER, text, at, end)


def is_word(octet):
    """A letter, a digit or _, in ASCII."""
    return 97 <= octet <= 122 or 65 <= octet <= 90 or 48 <= octet <= 57 or octet == 95
