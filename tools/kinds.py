"""Kinds of settings that only a computer's files have (ports/settings.py), and a table's mistakes as the command line tells them."""

import math

from .usage import UsageError


def passing(words, test, wrong=None):
    """The kind of values that pass a test."""
    return (lambda value, least, most: value if test(value) else None), words.replace("{", "{{").replace("}", "}}"), None, None, wrong


def text(least, most):
    """A text of so many octets."""
    return passing(
        f"a text of {least} to {most} octets" if least else f"a text of at most {most} octets",
        lambda value: isinstance(value, str) and least <= len(value.encode()) <= most,
    )


def number(words, test=lambda value: True):
    """A number that a double holds, and that passes a test."""
    return passing(words, lambda value: type(value) in (int, float) and math.isfinite(value) and test(value))


def is_texts(values):
    """True for a list of texts."""
    return isinstance(values, list) and all(isinstance(each, str) for each in values)


def is_tables(values):
    """True for a list of tables."""
    return isinstance(values, list) and all(isinstance(each, dict) for each in values)


def quoted(*choices):
    """One of a few texts, shown as they stand in a file."""
    return passing(" or ".join(f'"{each}"' for each in choices), lambda value: isinstance(value, str) and value in choices)


ANY = passing("", lambda value: value is not None)
TABLE = passing("a table", lambda value: isinstance(value, dict))
TRUTH = passing("true or false", lambda value: isinstance(value, bool))


def told(look, *given, **place):
    """The result of `look` (a Table's `check` or `full`). Raises UsageError."""
    try:
        return look(*given, **place)
    except ValueError as error:
        raise UsageError(str(error)) from None
