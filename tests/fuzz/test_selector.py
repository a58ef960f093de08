"""Selectors beside SQLite: random conditions over the same values must be true for both or for neither.

The generator stays where the Java Message Service and SQLite agree: numbers with numbers, text with text, LIKE with regard to case, no
overflow. A second run throws random words at the compiler: it answers with a program or with precondition-failed, and nothing else.
"""

import random
import sqlite3

from leveret.core.errors import ProtocolError
from leveret.core.patterns.selector import Selector

SEED = 20050815
CONDITIONS = 4000
VALUES = {"a": 1, "b": -3, "c": 2.5, "d": 100, "n": None, "s": "York", "t": "a%b_c", "e": "", "u": None}
NUMBERS = ("a", "b", "c", "d", "n")
TEXTS = ("s", "t", "e", "u")
WORDS = (
    NUMBERS
    + TEXTS
    + (
        "AND",
        "OR",
        "NOT",
        "BETWEEN",
        "IN",
        "LIKE",
        "ESCAPE",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "(",
        ")",
        ",",
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "+",
        "-",
        "*",
        "/",
        "1",
        "2.5",
        "0x1F",
        "'x'",
        "'%'",
        '"q"',
        "1e3",
        ".",
        "'",
        "?",
        "JMSPriority",
        "JMSx",
    )
)


def number(source, depth):
    kind = source.randrange(6 if depth else 2)
    if kind == 0:
        return source.choice(NUMBERS)
    if kind == 1:
        return source.choice(("0", "1", "7", "2.5", "100", ".5"))
    if kind == 2:
        return "(%s)" % number(source, depth - 1)
    if kind == 3:
        return "- %s" % number(source, 0)
    return "%s %s %s" % (number(source, depth - 1), source.choice("+-*/"), number(source, depth - 1))


def text(source):
    return source.choice(TEXTS)


def literal(source):
    return source.choice(("'York'", "'a%b_c'", "''", "'it''s'", "'y'"))


def condition(source, depth):
    kind = source.randrange(11 if depth else 7)
    negation = source.choice(("", "NOT "))
    if kind == 0:
        return "%s %s %s" % (number(source, 2), source.choice(("=", "<>", "<", "<=", ">", ">=")), number(source, 2))
    if kind == 1:
        return "%s %s %s" % (text(source), source.choice(("=", "<>")), literal(source))
    if kind == 2:
        return "%s %sBETWEEN %s AND %s" % (number(source, 1), negation, number(source, 1), number(source, 1))
    if kind == 3:
        return "%s %sIN (%s, %s)" % (text(source), negation, literal(source), literal(source))
    if kind == 4:
        pattern = source.choice(("'Y%'", "'_ork'", "'%'", "''", "'%!%%' ESCAPE '!'", "'a!%b!_c' ESCAPE '!'", "'%b%c'", "'y%'", "'__%_'"))
        return "%s %sLIKE %s" % (text(source), negation, pattern)
    if kind == 5:
        return "%s IS %sNULL" % (source.choice(NUMBERS + TEXTS), negation)
    if kind == 6:
        return source.choice(("TRUE", "FALSE"))
    if kind == 7:
        return "NOT %s" % condition(source, depth - 1)
    if kind == 8:
        return "(%s)" % condition(source, depth - 1)
    return "%s %s %s" % (condition(source, depth - 1), source.choice(("AND", "OR")), condition(source, depth - 1))


def test_beside_sqlite():
    source = random.Random(SEED)
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA case_sensitive_like = ON")
    columns = ", ".join(":%s AS %s" % (name, name) for name in VALUES)
    true = 0
    for _ in range(CONDITIONS):
        given = condition(source, 3)
        expected = database.execute("SELECT (%s) FROM (SELECT %s)" % (given, columns), VALUES).fetchone()[0]
        found = Selector(given).fits({"headers": VALUES})
        assert found == (expected == 1), (given, expected)
        true += found
    assert CONDITIONS / 5 < true < CONDITIONS * 4 / 5, "the conditions must be of both kinds, %d are true" % true


def test_random_words():
    source = random.Random(SEED)
    whole = 0
    for _ in range(20000):
        given = source.choice((" ", " ", "")).join(source.choice(WORDS) for _ in range(source.randint(1, 9)))
        try:
            Selector(given).fits({"headers": VALUES, "priority": 4})
            whole += 1
        except ProtocolError as error:
            assert error.condition == "precondition-failed" and "at position" in error.text, (given, error)
    assert whole > 100, whole
