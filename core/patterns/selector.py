"""Selectors: a SQL-92 WHERE condition on a message's properties and headers (Java Message Service 2.0, section 3.8.1; named by
amqp-fast-0.9a5-rfc006, "Exchange Types", type 6).

`Selector(text)` turns the text into a program for a small stack machine: no recursion, neither here nor when a message is compared. At most
DEPTH_MAX operators and brackets may wait for each other. An error is precondition-failed and names the position.

Values are numbers (whole ones of 64 bits as in Java: they wrap, and division drops the fraction), text, true and false, and unknown (None):
a header that is not there or is of any other type, and the result of an impossible calculation. Logic has three values; a message fits when
the result is true.
"""

from .selector_words import END, NAME, NUMBER, SIGN, TEXT, fail, tokens_of
from .wildcard import matches, pieces_of

DEPTH_MAX = 32

# The kinds of an expression, as far as its text tells.
CONDITION = "a condition"
NUMERIC = "a number"
WORDS = "text"
TRUTH = "true or false"
ANYTHING = "an identifier"

IS_CONDITION = (CONDITION, TRUTH, ANYTHING)
IS_NUMERIC = (NUMERIC, ANYTHING)
IS_VALUE = (NUMERIC, WORDS, TRUTH, ANYTHING)

# Operator: (how tightly it binds, number of operands, their kinds, the kind of its result).
OPERATORS = {
    "OR": (1, 2, IS_CONDITION, CONDITION),
    "AND": (2, 2, IS_CONDITION, CONDITION),
    "NOT": (3, 1, IS_CONDITION, CONDITION),
    "=": (4, 2, IS_VALUE, CONDITION),
    "<>": (4, 2, IS_VALUE, CONDITION),
    "<": (4, 2, IS_NUMERIC, CONDITION),
    "<=": (4, 2, IS_NUMERIC, CONDITION),
    ">": (4, 2, IS_NUMERIC, CONDITION),
    ">=": (4, 2, IS_NUMERIC, CONDITION),
    "between": (4, 3, IS_NUMERIC, CONDITION),
    "+": (5, 2, IS_NUMERIC, NUMERIC),
    "-": (5, 2, IS_NUMERIC, NUMERIC),
    "*": (6, 2, IS_NUMERIC, NUMERIC),
    "/": (6, 2, IS_NUMERIC, NUMERIC),
    "negative": (7, 1, IS_NUMERIC, NUMERIC),
    "positive": (7, 1, IS_NUMERIC, NUMERIC),
}

PREFIXES = {"NOT": "NOT", "-": "negative", "+": "positive", "(": "("}
INFIXES = ("OR", "AND", "=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/")

# JMS names that a selector may use: name, property as families share it (core/message/README.md).
PROPERTIES = {
    "JMSMessageID": "message_id",
    "JMSCorrelationID": "correlation_id",
    "JMSType": "type",
    "JMSPriority": "priority",
    "JMSTimestamp": "timestamp",
    "JMSDeliveryMode": "delivery_mode",
    "JMSXUserID": "user_id",
    "JMSXAppID": "app_id",
    "JMS_AMQP_ContentType": "content_type",
    "JMS_AMQP_ContentEncoding": "content_encoding",
}


class Selector:
    """One condition. An empty text is fulfilled by every message. `names`: the served names that begin with JMS."""

    def __init__(self, text, names=PROPERTIES):
        self.program = Compiler(text, names).program() if text.strip() else [("push", True)]

    def fits(self, properties, look=None):
        """True when a message with these properties (by name, with "headers") fulfils the condition. `look`: a function in place of
        value_of, for properties by other names."""
        look = look or value_of
        stack = []
        for operation, argument in self.program:
            if operation == "push":
                stack.append(argument)
            elif operation == "name":
                stack.append(look(argument, properties))
            else:
                ACTIONS[operation](stack, argument)
        return stack[0] is True


class Compiler:
    """From text to program: operators wait on a stack until one that binds less tightly comes."""

    def __init__(self, text, names):
        self.names = names
        self.tokens = tokens_of(text)
        self.at = 0
        self.made = []  # (operation, argument)
        self.kinds = []  # the kinds of the values on the machine's stack
        self.waiting = []  # (operator, position)

    def program(self):
        """The whole program."""
        while True:
            self.operand()
            if not self.operator():
                break
        kind = self.kinds[0]
        if kind not in IS_CONDITION:
            fail(1, "%s is not a condition" % kind)
        return self.made

    def next(self):
        """The next token."""
        token = self.tokens[self.at]
        self.at += 1
        return token

    def next_is(self, *signs):
        """Step over the signs when they come next, in this order; true then."""
        for index in range(len(signs)):
            if self.tokens[min(self.at + index, len(self.tokens) - 1)][:2] != (SIGN, signs[index]):
                return False
        self.at += len(signs)
        return True

    def expect(self, sign):
        """Step over a sign that must come next."""
        if not self.next_is(sign):
            fail(self.tokens[self.at][2], "expected %s" % sign)

    def wait(self, operator, position):
        """Put an operator or bracket on the stack of waiting ones."""
        if len(self.waiting) >= DEPTH_MAX:
            fail(position, "more than %d operators and brackets that wait for each other" % DEPTH_MAX)
        self.waiting.append((operator, position))

    def emit(self, operation, argument, kind):
        """Add an operation that puts one value on the machine's stack."""
        self.made.append((operation, argument))
        self.kinds.append(kind)

    def operand(self):
        """Prefix operators, brackets, then one value."""
        kind, value, position = self.next()
        while kind == SIGN and value in PREFIXES:
            self.wait(PREFIXES[value], position)
            kind, value, position = self.next()
        if kind == NUMBER:
            self.emit("push", value, NUMERIC)
        elif kind == TEXT:
            self.emit("push", value, WORDS)
        elif kind == NAME:
            if value.startswith("JMS") and value not in self.names:
                fail(position, "there is no property called %s here" % value)
            self.emit("name", value, ANYTHING)
        elif kind == SIGN and value in ("TRUE", "FALSE"):
            self.emit("push", value == "TRUE", TRUTH)
        else:
            fail(position, "expected a value" + ("" if kind == END else " instead of %s" % value))

    def operator(self):
        """Read the operator or bracket behind a value; false at the end."""
        while True:
            kind, value, position = self.next()
            if kind == END:
                self.reduce(0)
                if self.waiting:
                    fail(self.waiting[-1][1], "a bracket that is not closed")
                return False
            if kind == SIGN and value == ")":
                self.close(position)
            elif kind == SIGN and value in INFIXES:
                self.infix(value, position)
                return True
            elif kind == SIGN and value in ("IS", "NOT", "IN", "LIKE", "BETWEEN"):
                if self.predicate(value, position):
                    return True
            else:
                fail(position, "expected an operator instead of %s" % value)

    def reduce(self, least):
        """Make the operations that wait and bind at least as tightly as `least`, up to a bracket."""
        while self.waiting and self.waiting[-1][0] != "(" and self.waiting[-1][0] != "BETWEEN":
            operator, position = self.waiting[-1]
            if OPERATORS[operator][0] < least:
                return
            self.waiting.pop()
            self.operation(operator, position)
        if self.waiting and self.waiting[-1][0] == "BETWEEN" and least <= 4:
            fail(self.waiting[-1][1], "BETWEEN without its AND")

    def operation(self, operator, position):
        """Make one operation, after a check of its operands' kinds."""
        _, count, wanted, gives = OPERATORS[operator]
        given = self.kinds[len(self.kinds) - count :]
        for kind in given:
            if kind not in wanted:
                fail(position, "%s does not take %s" % (operator.upper(), kind))
        if operator in ("=", "<>") and given[0] != given[1] and ANYTHING not in given:
            fail(position, "%s compares %s with %s" % (operator, given[0], given[1]))
        del self.kinds[len(self.kinds) - count :]
        self.emit(operator, None, gives)

    def close(self, position):
        """Read a closing bracket."""
        self.reduce(0)
        if not self.waiting:
            fail(position, "a bracket that was not opened")
        self.waiting.pop()

    def infix(self, value, position):
        """Read an operator between two values; AND may belong to a BETWEEN."""
        if value == "AND":
            self.reduce(5)
            if self.waiting and self.waiting[-1][0] == "BETWEEN":
                self.waiting[-1] = ("between", self.waiting[-1][1])
                return
        self.reduce(OPERATORS[value][0])
        self.wait(value, position)

    def predicate(self, value, position):
        """IS NULL, IN, LIKE, BETWEEN and their negations; true when a value must follow."""
        negated = value == "NOT"
        if negated:
            kind, value, position = self.next()
            if kind != SIGN or value not in ("IN", "LIKE", "BETWEEN"):
                fail(position, "expected IN, LIKE or BETWEEN behind NOT")
        self.reduce(5)
        if value == "BETWEEN":
            if negated:
                self.negate_between(position)
            self.wait("BETWEEN", position)
            return True
        self.reduce(4)
        if self.kinds[-1] != ANYTHING:
            fail(position, "%s asks for an identifier on its left" % value)
        if value == "IS":
            negated = self.next_is("NOT")
            self.expect("NULL")
            self.made.append(("is_null", None))
        elif value == "IN":
            self.made.append(("in", self.list_of_values()))
        else:
            self.made.append(("like", self.pattern()))
        self.kinds[-1] = CONDITION
        if negated:
            self.operation("NOT", position)
        return False

    def negate_between(self, position):
        """a NOT BETWEEN b AND c is NOT (a BETWEEN b AND c): the NOT waits below."""
        self.reduce(4)
        self.wait("NOT", position)

    def list_of_values(self):
        """The constants behind IN."""
        self.expect("(")
        values = []
        while True:
            negative = self.next_is("-")
            kind, value, position = self.next()
            if kind not in (TEXT, NUMBER) or (negative and kind != NUMBER):
                fail(position, "expected a constant")
            values.append(-value if negative else value)
            if self.next_is(")"):
                return values
            self.expect(",")

    def pattern(self):
        """The pattern behind LIKE, in pieces."""
        kind, value, position = self.next()
        if kind != TEXT:
            fail(position, "expected a pattern in quotes")
        escape = ""
        if self.next_is("ESCAPE"):
            kind, escape, place = self.next()
            if kind != TEXT or len(escape) != 1:
                fail(place, "expected one character in quotes behind ESCAPE")
        pieces = pieces_of(value, "%", "_", escape)
        if pieces is None:
            fail(position, "a pattern that ends with its escape character")
        return pieces


# The machine


def value_of(name, properties):
    """The value of an identifier: a property with a JMS name, else a header; unknown when its type is none of a selector's."""
    if name in PROPERTIES:
        value = properties.get(PROPERTIES[name])
        if name == "JMSDeliveryMode" and value is not None:
            return "PERSISTENT" if value == 2 else "NON_PERSISTENT"
        if name == "JMSTimestamp" and value is not None:
            return value * 1000  # AMQP has seconds, JMS milliseconds
        return value
    value = (properties.get("headers") or {}).get(name)
    return value if isinstance(value, (bool, int, float, str)) else None


def is_number(value):
    """True for a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def of_one_kind(left, right):
    """True when two known values can be compared."""
    return is_number(left) and is_number(right) or type(left) is type(right)


def do_or(stack, _):
    """Three-valued OR."""
    right, left = truth(stack.pop()), truth(stack.pop())
    stack.append(True if left is True or right is True else None if left is None or right is None else False)


def do_and(stack, _):
    """Three-valued AND."""
    right, left = truth(stack.pop()), truth(stack.pop())
    stack.append(False if left is False or right is False else None if left is None or right is None else True)


def do_not(stack, _):
    """Three-valued NOT."""
    value = truth(stack.pop())
    stack.append(None if value is None else not value)


def truth(value):
    """A value as logic sees it."""
    return value if value is True or value is False else None


def do_equal(stack, _):
    """Values of different kinds are not equal; unknown is equal to nothing."""
    right, left = stack.pop(), stack.pop()
    stack.append(None if left is None or right is None else of_one_kind(left, right) and left == right)


def do_unequal(stack, _):
    """Values of different kinds compare as false in JMS, here too."""
    right, left = stack.pop(), stack.pop()
    stack.append(None if left is None or right is None else of_one_kind(left, right) and left != right)


def numbers(stack, compare):
    """Compare two numbers; other kinds give false, unknown gives unknown."""
    right, left = stack.pop(), stack.pop()
    stack.append(None if left is None or right is None else is_number(left) and is_number(right) and compare(left, right))


def do_between(stack, _):
    """value >= low AND value <= high."""
    high, low, value = stack.pop(), stack.pop(), stack.pop()
    stack.append(value)
    stack.append(low)
    numbers(stack, at_least)
    stack.append(value)
    stack.append(high)
    numbers(stack, at_most)
    do_and(stack, None)


def at_least(left, right):
    """>="""
    return left >= right


def at_most(left, right):
    """<="""
    return left <= right


def calculate(stack, function):
    """Arithmetic of two numbers; values of other kinds give unknown."""
    right, left = stack.pop(), stack.pop()
    stack.append(wrapped(function(left, right)) if is_number(left) and is_number(right) else None)


def wrapped(value):
    """A whole number in 64 bits, as Java's long."""
    if isinstance(value, int) and not -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        return (value + 0x8000000000000000) % 0x10000000000000000 - 0x8000000000000000
    return value


def divide(left, right):
    """Whole numbers lose the fraction, towards 0; a division by 0 gives unknown."""
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return left / right


def do_sign(stack, factor):
    """A sign before a value."""
    stack.append(factor)
    calculate(stack, lambda left, right: left * right)


def do_in(stack, values):
    """One of the constants, of the same kind."""
    value = stack.pop()
    stack.append(None if value is None else any(of_one_kind(value, each) and value == each for each in values))


def do_like(stack, pieces):
    """Text against a pattern; a value that is no text does not fit."""
    value = stack.pop()
    stack.append(None if value is None else isinstance(value, str) and matches(pieces, value))


def do_is_null(stack, _):
    """True for unknown: the only operation that tells it from false."""
    stack.append(stack.pop() is None)


ACTIONS = {
    "OR": do_or,
    "AND": do_and,
    "NOT": do_not,
    "=": do_equal,
    "<>": do_unequal,
    "between": do_between,
    "<": lambda stack, _: numbers(stack, lambda left, right: left < right),
    "<=": lambda stack, _: numbers(stack, at_most),
    ">": lambda stack, _: numbers(stack, lambda left, right: left > right),
    ">=": lambda stack, _: numbers(stack, at_least),
    "+": lambda stack, _: calculate(stack, lambda left, right: left + right),
    "-": lambda stack, _: calculate(stack, lambda left, right: left - right),
    "*": lambda stack, _: calculate(stack, lambda left, right: left * right),
    "/": lambda stack, _: calculate(stack, divide),
    "negative": lambda stack, _: do_sign(stack, -1),
    "positive": lambda stack, _: do_sign(stack, 1),
    "in": do_in,
    "like": do_like,
    "is_null": do_is_null,
}
