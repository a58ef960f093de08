"""What boards do not carry of settings.py: further kinds, and the rows of a Table out of a text.

    name | kind | default | unit | meaning

A line for each; one that begins with a space goes on with the meaning of the one before. A kind is a word of `kinds`, with whole numbers
behind it where it is a function of them (256K, 1M, 1G, 1T: so many octets); a default is JSON.
"""

from __future__ import annotations

import json
import math
import re

if False:  # for the type checker alone: `typing` takes 200 KB of a broker that is idle
    from collections.abc import Callable, Mapping
    from typing import Any

    Kind = tuple[Any, ...]

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def octets_of(text: str) -> int | None:
    """The octets that a text as 500M or 1048576 stands for, or None."""
    digits, unit = (text[:-1], UNITS[text[-1].upper()]) if text and text[-1].upper() in UNITS else (text, 1)
    return int(digits) * unit if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def rows(text: str, kinds: Mapping[str, Kind | Callable[..., Kind]]) -> tuple[tuple[Any, ...], ...]:
    """(name, kind, default, unit, meaning) of each line."""
    return tuple(row(line, kinds) for line in re.sub(r"\n +", " ", text.strip()).split("\n"))


def row(line: str, kinds: Mapping[str, Kind | Callable[..., Kind]]) -> tuple[Any, ...]:
    """One of them."""
    name, kind, default, unit, meaning = (part.strip() for part in line.split("|", 4))
    word, *numbers = kind.split()
    maker = kinds[word]
    return name, maker(*map(octets_of, numbers)) if callable(maker) else maker, json.loads(default) if default else None, unit, meaning


def reading(words: str, read: Callable[[Any], Any], wrong: str | None = None) -> Kind:
    """The kind of values of which `read` makes one to keep; None: the value cannot be."""
    return (lambda value, least, most: read(value)), words.replace("{", "{{").replace("}", "}}"), None, None, wrong


def passing(words: str, test: Callable[[Any], object], wrong: str | None = None) -> Kind:
    """The kind of values that pass a test, kept as they are."""
    return reading(words, lambda value: value if test(value) else None, wrong)


def text(least: int, most: int) -> Kind:
    """A text of so many octets."""
    return passing(
        f"a text of {least} to {most} octets" if least else f"a text of at most {most} octets",
        lambda value: isinstance(value, str) and least <= len(value.encode()) <= most,
    )


def number(words: str, test: Callable[[Any], object] = lambda value: True) -> Kind:
    """A number that a double holds, and that passes a test."""
    return passing(words, lambda value: type(value) in (int, float) and math.isfinite(value) and test(value))


def quoted(*choices: str) -> Kind:
    """One of a few texts, shown as they stand in a file."""
    return passing(" or ".join(f'"{each}"' for each in choices), lambda value: isinstance(value, str) and value in choices)


def named(*choices: str) -> Kind:
    """One of a few texts."""
    return passing("one of " + ", ".join(choices), lambda value: value in choices)


def is_texts(values: object) -> bool:
    """True for a list of texts."""
    return isinstance(values, list) and all(isinstance(each, str) for each in values)


def is_tables(values: object) -> bool:
    """True for a list of tables."""
    return isinstance(values, list) and all(isinstance(each, dict) for each in values)


TABLE = passing("a table", lambda value: isinstance(value, dict))
TRUTH = passing("true or false", lambda value: isinstance(value, bool))
