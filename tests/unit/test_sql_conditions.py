"""Conditions of SQL filters (core/patterns/sql.py): values of three kinds of truth, words, and texts that are no condition."""

from leveret.core.errors import PRECONDITION_FAILED, ProtocolError
from leveret.core.patterns.sql import TEXT_MAX, Condition

VALUES = {
    (None, "text"): b"abc",
    (None, "seven"): 7,
    (None, "half"): 0.5,
    (None, "yes"): True,
    (None, "no"): False,
    (None, "octets"): b"\xff\x00",
    (None, "a b]"): 1,
    ("p", "subject"): b"a.b",
}


def fits(text):
    """What a condition comes to for VALUES."""
    return Condition(text).fits(VALUES.get, 1700000000000)


def test_conditions_that_are_fulfilled():
    for text in (
        "text = 'abc' AND \"abc\" = text AND text <> 'abd' AND text != 'x'",
        "text < 'abd' AND text >= 'abc' AND 'b' > text",
        "seven = 7.0 AND half < 1 AND seven / 2 = 3.5 AND seven % 4 = 3 AND -seven % 4 = -3",
        "seven + 1 * 2 = 9 AND (seven + 1) * 2 = 16 AND 10 - 3 - 2 = 5 AND -seven = -7 AND +half = 0.5",
        "yes AND NOT no AND yes = TRUE AND no <> TRUE",
        "yes OR missing",
        "NOT (missing AND no)",
        "missing IS NULL AND text IS NOT NULL",
        "text LIKE 'a%' AND text LIKE '_b_' AND text NOT LIKE '%d' AND 'a%' LIKE 'a!%' ESCAPE '!'",
        "text IN ('x', 'abc') AND seven IN (1, half + 6.5, 2) AND seven NOT IN (-7, 1) AND TRUE IN (no, yes)",
        "(text IN (('abc'), 'd')) AND NOT text IN ('d')",
        "octets = 0xFF00 AND 0xFE < octets AND 0x616263 = text",
        "[a b]]] = 1 AND p.subject LIKE 'a.%'",
        "UTC() = 1700000000000 AND UTC ( ) - 1 < UTC()",
        "1.5E2 = 150 AND 1.0E-2 = 0.01",
        "seven <> '7' AND text <> 7 AND yes <> 1",
        "9999999999999999999999999999999999 + 1 > seven",
    ):
        assert fits(text), text


def test_conditions_that_are_not_fulfilled_or_unknown():
    for text in (
        "seven = '7'",
        "yes = 1",
        "yes > no",
        "text > 1",
        "missing = missing",
        "missing <> 1",
        "NOT missing",
        "missing IN (1, 2)",
        "missing NOT IN (1, 2)",
        "missing LIKE '%'",
        "octets LIKE '%'",
        "seven LIKE '7'",
        "text + 1 = 1",
        "seven / 0 = 0",
        "half % 1 = 0.5",
        "seven",
        "text",
        "-text = 'abc'",
        "yes AND missing",
        "no OR missing",
        "TEXT = 'abc'",
        "1" + "0" * 400 + " + 0.5 > 0",
        "1" + "0" * 400 + " / 3 > 0",
    ):
        assert not fits(text), text


def test_what_is_no_condition_is_refused_with_its_position():
    for text in (
        "",
        "a =",
        "= a",
        "a = = b",
        "(a",
        "a)",
        "a b",
        "a IN ()",
        "a IN (1",
        "a IN (1,)",
        "a IN 1",
        "a, b",
        "(a, b)",
        "a IN ((1, 2))",
        "a NOT 1",
        "a LIKE 1",
        "a LIKE 0x41",
        "a LIKE 'x' ESCAPE 'ab'",
        "a LIKE 'x!' ESCAPE '!'",
        "a LIKE '\n'",
        "1 IS NULL",
        "a + b IS NULL",
        "a IS 1",
        "a BETWEEN 1 AND 2",
        "not a",
        "a and b",
        "utc()",
        "UTC(1)",
        "UTC",
        "lower",
        "_a",
        "$a",
        "a$",
        "1a",
        "a.1",
        "a.b.c",
        "'a",
        '"a',
        "[a",
        "[a[b]",
        "[\n]",
        "0x",
        "0x1",
        "0xab",
        "5.",
        ".5",
        "5E2",
        "a ! b",
        "a ; b",
        "(" * 40 + "a" + ")" * 40,
        "x" * TEXT_MAX + " IS NULL",
        "a IN (" + ", ".join(["1"] * 100) + ")",
    ):
        try:
            Condition(text)
        except ProtocolError as error:
            assert error.condition == PRECONDITION_FAILED and "position" in error.text
        else:
            raise AssertionError(text)


def test_a_condition_at_its_bounds_ends_soon():
    Condition("(" * 32 + "a" + ")" * 32)
    Condition("a" + " OR a" * 90)
    assert not fits("text LIKE '" + "%_" * 1500 + "x'")
    assert Condition("a = b AND p.subject = [c]").names() == [(None, "a"), (None, "b"), ("p", "subject"), (None, "c")]
