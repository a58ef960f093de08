"""core/patterns/expression.py beside google-re2, a linear matcher of other people: random expressions and texts, found or not, octets on
both sides.

The two read the same language but for this, which the texts and expressions here leave out: a line feed before the end ($, of which Perl's
reading is tested in tests/unit/test_expression.py), and the vertical tab (in \\s of PCRE, not of RE2).
`LEVERET_FUZZ_SEED` repeats a run, `LEVERET_PATTERN_COUNT` says how many expressions.
"""

import os
import random

import re2

from leveret.core.patterns.expression import Pattern

SEED = int(os.environ.get("LEVERET_FUZZ_SEED", random.SystemRandom().randrange(1 << 32)))
COUNT = int(os.environ.get("LEVERET_PATTERN_COUNT", "6000"))
LETTERS = "aabbcAB01_.- \t\xe9"
ATOMS = (
    "a",
    "b",
    "c",
    "A",
    "0",
    "_",
    "-",
    ".",
    ".",
    "\\.",
    "\\d",
    "\\D",
    "\\w",
    "\\W",
    "\\s",
    "\\S",
    "[ab]",
    "[^ab]",
    "[a-c0-9]",
    "[^\\w]",
    "[\\w.-]",
    "[]a]",
    "[[:alpha:]]",
    "[^[:digit:]a]",
    "\\x41",
    "\xe9",
    "\\t",
    "ab",
    "ba",
    "\\-",
)
ASSERTIONS = ("^", "$", "\\b", "\\B", "\\A", "\\z")
REPETITIONS = ("*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{1,3}", "{0}", "{2,3}?")
OPTIONS = re2.Options()
OPTIONS.encoding = re2.Options.Encoding.LATIN1
OPTIONS.log_errors = False


def expression(chance, depth):
    """A random expression."""
    parts = []
    for _ in range(chance.randrange(1, 5)):
        kind = chance.random()
        if kind < 0.12:
            parts.append(chance.choice(ASSERTIONS))
            continue
        if kind < 0.4 and depth:
            opening = chance.choice(("(", "(", "(?:", "(?i:", "(?P<n%d>" % chance.randrange(1 << 30)))
            part = opening + expression(chance, depth - 1) + ")"
        else:
            part = chance.choice(ATOMS)
            if chance.random() < 0.05:
                part = "(?i)" + part
        if chance.random() < 0.4:
            part += chance.choice(REPETITIONS)
        parts.append(part)
        if chance.random() < 0.15:
            parts.append("|")
    return "".join(parts)


def text_for(chance):
    return "".join([chance.choice(LETTERS) for _ in range(chance.randrange(0, 9))])


def test_random_expressions_are_found_where_re2_finds_them():
    print("LEVERET_FUZZ_SEED=%d" % SEED)
    chance = random.Random(SEED)
    compared = refused = 0
    answers = {True: 0, False: 0}
    while compared < COUNT:
        given = expression(chance, 3)
        try:
            theirs = re2.compile(given.encode("utf-8"), OPTIONS)
        except re2.error:
            continue
        try:
            ours = Pattern(given, 1 << 16)
        except ValueError as error:
            assert "work" in str(error), (given, str(error))
            refused += 1
            continue
        for _ in range(8):
            text = text_for(chance)
            answer = theirs.search(text.encode("utf-8")) is not None
            assert ours.matches(text) == answer, (given, text, answer)
            answers[answer] += 1
        compared += 1
    assert refused <= COUNT // 20, refused
    assert min(answers.values()) > COUNT, answers  # both answers came often


def test_the_bound_on_the_work_is_kept_by_expressions_that_take_others_for_ever():
    """Steps, not seconds: what a text of 255 octets costs is at most WORK_MAX for each octet, and these are far below."""
    for given in ("^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*a){8}", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y"):
        ours = Pattern(given, 8192)
        theirs = re2.compile(given.encode("utf-8"), OPTIONS)
        for text in ("a" * 254 + "!", "x" * 255):
            assert ours.matches(text) == (theirs.search(text.encode("utf-8")) is not None), given
