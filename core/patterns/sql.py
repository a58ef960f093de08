"""Conditions of AMQP's SQL filters (AMQP Filter Expressions 1.0, section 6, as RabbitMQ 4.1 reads it): another dialect of selector.py.

    header.priority > 4 AND properties.subject LIKE 'sensor.%' AND [a b] IN ('x', 1) OR region IS NULL

Differences: keywords stand in capitals; a text may stand in double quotes, an identifier in brackets; 0xFF00 are octets; != and %; texts
compare with < and >; a division has its fraction; there is UTC() and no BETWEEN; operands of the wrong kind are no error:
the result is false or unknown. Texts and octets are one kind of value: octets.
"""

from .selector import ACTIONS, ANYTHING, Compiler, is_number
from .selector_words import END, NAME, NUMBER, SIGN, TEXT, fail
from .wildcard import matches

TEXT_MAX = 4096  # characters of a condition
TOKENS_MAX = 200

KEYWORDS = ("AND", "OR", "NOT", "LIKE", "IN", "IS", "NULL", "ESCAPE", "TRUE", "FALSE", "UTC")
RESERVED = KEYWORDS + ("EXISTS", "NAN", "INF", "LOWER", "UPPER", "LEFT", "RIGHT", "SUBSTRING", "DATE")

TIGHTNESS = {
    "OR": 1,
    "AND": 2,
    "NOT": 3,
    "=": 4,
    "<>": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
    "negative": 7,
    "positive": 7,
}

_SIGNS = ("<>", "!=", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = "0123456789"
_HEX = "0123456789ABCDEF"


class Condition:
    """One condition. Raises ProtocolError, precondition-failed, for a text that is no condition."""

    def __init__(self, text):
        if len(text) > TEXT_MAX:
            fail(TEXT_MAX + 1, "more than %d characters" % TEXT_MAX)
        self.program = SqlCompiler(text).program()

    def names(self):
        """The identifiers in it: as (section, name) or (None, name)."""
        return [argument for operation, argument in self.program if operation == "name"]

    def fits(self, look, now_ms):
        """True when a message fulfils the condition. `look`: a function from an identifier to its value: None, bool, number or octets."""
        stack = []
        for operation, argument in self.program:
            if operation == "push":
                stack.append(argument)
            elif operation == "name":
                stack.append(look(argument))
            elif operation == "utc":
                stack.append(now_ms)
            elif operation == "in":
                values = stack[len(stack) - argument :]
                del stack[len(stack) - argument :]
                value = stack.pop()
                stack.append(None if value is None else True in [same(value, each) for each in values])
            else:
                DOES[operation](stack, argument)
        return stack[0] is True


class SqlCompiler(Compiler):
    """From text to program, by the rules of this dialect."""

    def __init__(self, text):
        Compiler.__init__(self, "", ())
        self.tokens = tokens_of(text)
        self.lists = []  # of each list behind IN that is open: [brackets that wait with its own, values, NOT stands before IN]

    def operand(self):
        """Prefix operators, brackets, then one value."""
        kind, value, position = self.next()
        while kind == SIGN and value in ("NOT", "-", "+", "("):
            self.wait({"-": "negative", "+": "positive"}.get(value, value), position)
            kind, value, position = self.next()
        if kind == SIGN and value == "UTC":
            self.expect("(")
            self.expect(")")
            self.emit("utc", None, ANYTHING)
        elif kind == NAME:
            self.emit("name", value, ANYTHING)
        elif kind == SIGN and value in ("TRUE", "FALSE"):
            self.emit("push", value == "TRUE", ANYTHING)
        elif kind in (NUMBER, TEXT):
            self.emit("push", octets_of(value), ANYTHING)
        else:
            fail(position, "expected a value" + ("" if kind == END else " instead of %s" % (value,)))

    def operator(self):
        """Read the operator or bracket behind a value; false at the end."""
        while True:
            kind, value, position = self.next()
            if kind == END:
                self.reduce(0)
                if self.waiting:
                    fail(self.waiting[-1][1], "a bracket that is not closed")
                return False
            if kind != SIGN or value in ("(", "NULL", "ESCAPE", "TRUE", "FALSE", "UTC"):
                fail(position, "expected an operator instead of %s" % (value,))
            if value == ")":
                self.close(position)
            elif value == ",":
                self.reduce(0)
                if not self.lists or self.lists[-1][0] != len(self.waiting):
                    fail(position, "a comma outside of a list")
                self.lists[-1][1] += 1
                return True
            elif value in ("IS", "NOT", "IN", "LIKE"):
                if self.predicate(value, position):
                    return True
            else:
                self.infix(value, position)
                return True

    def close(self, position):
        """Read a closing bracket, of a list behind IN too."""
        Compiler.close(self, position)
        if self.lists and self.lists[-1][0] == len(self.waiting) + 1:
            _, count, negated = self.lists.pop()
            del self.kinds[len(self.kinds) - count :]
            self.made.append(("in", count))
            if negated:
                self.operation("NOT", position)

    def infix(self, value, position):
        """Read an operator between two values."""
        self.reduce(TIGHTNESS[value])
        self.wait(value, position)

    def reduce(self, least):
        """Make the operations that wait and bind at least as tightly as `least`, up to a bracket."""
        while self.waiting and self.waiting[-1][0] != "(" and TIGHTNESS[self.waiting[-1][0]] >= least:
            self.operation(*self.waiting.pop())

    def operation(self, operator, position):
        """Make one operation, with operands of any kinds."""
        count = 1 if operator in ("NOT", "negative", "positive") else 2
        del self.kinds[len(self.kinds) - count :]
        self.emit(operator, None, ANYTHING)

    def predicate(self, value, position):
        """IS NULL, LIKE, IN and their negations; true when a value must follow."""
        negated = value == "NOT"
        if negated:
            kind, value, position = self.next()
            if kind != SIGN or value not in ("IN", "LIKE"):
                fail(position, "expected IN or LIKE behind NOT")
        self.reduce(TIGHTNESS["+"])
        if value == "IS":
            if self.made[-1][0] != "name":
                fail(position, "IS asks for an identifier on its left")
            negated = self.next_is("NOT")
            self.expect("NULL")
            self.made.append(("is_null", None))
        elif value == "LIKE":
            self.made.append(("like", self.pattern()))
        else:
            self.expect("(")
            self.wait("(", position)
            self.lists.append([len(self.waiting), 1, negated])
            return True
        if negated:
            self.operation("NOT", position)
        return False

    def pattern(self):
        """The pattern behind LIKE, in pieces."""
        _, value, position = self.tokens[self.at]
        if isinstance(value, str) and [letter for letter in value if letter < " " or letter == "\x7f"]:
            fail(position, "a control character in a pattern")
        return Compiler.pattern(self)


def octets_of(value):
    """A text as octets."""
    return value.encode("utf-8") if isinstance(value, str) else value


# Words


def tokens_of(text):
    """All tokens (kind, value, position), the last of kind END. An identifier is (section, name), or (None, name)."""
    tokens: list = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter in " \t\r\n\f":
            at += 1
            continue
        if len(tokens) == TOKENS_MAX:
            fail(at + 1, "more than %d words" % TOKENS_MAX)
        if letter in _DIGITS:
            token, at = number_at(text, at)
        elif letter in "'\"":
            token, at = closed_at(text, at, letter, letter)
        elif letter == "[":
            token, at = closed_at(text, at, "[", "]")
        elif letter in _LETTERS:
            token, at = name_at(text, at)
        else:
            token, at = sign_at(text, at)
        tokens.append(token)
    tokens.append((END, None, len(text) + 1))
    return tokens


def run(text, at, letters):
    """The place behind as many of `letters` as stand at `at`."""
    while at < len(text) and text[at] in letters:
        at += 1
    return at


def number_at(text, start):
    """A whole number, one with a fraction, or octets."""
    if text[start : start + 2] == "0x":
        at = run(text, start + 2, _HEX)
        if at == start + 2 or (at - start) & 1:
            fail(start + 1, "octets are written as pairs of 0 to 9 and A to F")
        return (NUMBER, bytes([int(text[each : each + 2], 16) for each in range(start + 2, at, 2)]), start + 1), at
    at = run(text, start, _DIGITS)
    if text[at : at + 1] != "." or run(text, at + 1, _DIGITS) == at + 1:
        return (NUMBER, int(text[start:at]), start + 1), at
    at = run(text, at + 1, _DIGITS)
    if text[at : at + 1] == "E":
        behind = at + 2 if text[at + 1 : at + 2] in ("+", "-") else at + 1
        at = max(at, run(text, behind, _DIGITS)) if run(text, behind, _DIGITS) > behind else at
    return (NUMBER, float(text[start:at]), start + 1), at


def closed_at(text, start, opening, closing):
    """A text in quotes, or an identifier in brackets; a doubled quote or bracket stands for itself."""
    letters = []
    at = start + 1
    while True:
        letter = text[at : at + 1]
        if letter == "":
            fail(start + 1, "%s that is not closed" % opening)
        at += 1
        if letter in (opening, closing):
            if text[at : at + 1] != letter:
                if letter == closing:
                    break
                fail(at, "%s within brackets is written twice" % opening)
            at += 1
        elif opening == "[" and (letter < " " or letter == "\x7f"):
            fail(at, "a control character in an identifier")
        letters.append(letter)
    value = "".join(letters)
    return (TEXT if opening != "[" else NAME, value if opening != "[" else (None, value), start + 1), at


def name_at(text, start):
    """A keyword or an identifier, that may have a section before it: properties.subject."""
    at = run(text, start, _LETTERS + _DIGITS + "_")
    name = text[start:at]
    if text[at : at + 1] == "." and text[at + 1 : at + 2] and text[at + 1] in _LETTERS:
        end = run(text, at + 1, _LETTERS + _DIGITS + "_")
        return (NAME, (name, text[at + 1 : end]), start + 1), end
    if name in KEYWORDS:
        return (SIGN, name, start + 1), at
    if name.upper() in RESERVED:
        fail(start + 1, "%s is reserved" % name)
    return (NAME, (None, name), start + 1), at


def sign_at(text, at):
    """An operator or bracket."""
    for sign in _SIGNS:
        if text[at : at + len(sign)] == sign:
            return (SIGN, {"!=": "<>"}.get(sign, sign), at + 1), at + len(sign)
    return fail(at + 1, "the character '%s' has no meaning here" % text[at])


# The machine


def same(left, right):
    """True when two values are equal: numbers of both kinds are one."""
    return left is not None and left == right and isinstance(left, bool) == isinstance(right, bool)


def equal(stack, wanted):
    """= and <>; values of different kinds are not equal."""
    right, left = stack.pop(), stack.pop()
    stack.append(None if left is None or right is None else same(left, right) == wanted)


def ordered(stack, compare):
    """Compare two numbers or two texts; other kinds give false, unknown gives unknown."""
    right, left = stack.pop(), stack.pop()
    if left is None or right is None:
        stack.append(None)
    else:
        both = is_number(left) and is_number(right) or isinstance(left, bytes) and isinstance(right, bytes)
        stack.append(both and compare(left, right))


def calculate(stack, function):
    """Arithmetic of two numbers; values of other kinds, and results that no number can hold, give unknown."""
    right, left = stack.pop(), stack.pop()
    try:
        value = function(left, right) if is_number(left) and is_number(right) else None
    except OverflowError:
        value = None
    # Where an interpreter raises no error: the result is neither infinite nor no number.
    stack.append(None if isinstance(value, float) and value - value != 0 else value)


def divide(left, right):
    """With the fraction; a division by 0 gives unknown."""
    return left / right if right != 0 else None


def rest(left, right):
    """The rest of a division of whole numbers, with the sign of the left one."""
    if not isinstance(left, int) or not isinstance(right, int) or right == 0:
        return None
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


def sign(stack, factor):
    """A sign before a number."""
    value = stack.pop()
    stack.append(factor * value if is_number(value) else None)


def like(stack, pieces):
    """A text against a pattern; values of other kinds give unknown."""
    value = stack.pop()
    try:
        stack.append(matches(pieces, str(value, "utf-8")) if isinstance(value, bytes) else None)
    except UnicodeError:
        stack.append(None)


DOES = {
    "OR": ACTIONS["OR"],
    "AND": ACTIONS["AND"],
    "NOT": ACTIONS["NOT"],
    "is_null": ACTIONS["is_null"],
    "=": lambda stack, _: equal(stack, True),
    "<>": lambda stack, _: equal(stack, False),
    "<": lambda stack, _: ordered(stack, lambda left, right: left < right),
    "<=": lambda stack, _: ordered(stack, lambda left, right: left <= right),
    ">": lambda stack, _: ordered(stack, lambda left, right: left > right),
    ">=": lambda stack, _: ordered(stack, lambda left, right: left >= right),
    "+": lambda stack, _: calculate(stack, lambda left, right: left + right),
    "-": lambda stack, _: calculate(stack, lambda left, right: left - right),
    "*": lambda stack, _: calculate(stack, lambda left, right: left * right),
    "/": lambda stack, _: calculate(stack, divide),
    "%": lambda stack, _: calculate(stack, rest),
    "negative": lambda stack, _: sign(stack, -1),
    "positive": lambda stack, _: sign(stack, 1),
    "like": like,
}
