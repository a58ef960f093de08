"""The rows of a Table of settings (settings.py) out of a text: what each is called, may be, and means. Boards do not carry it.

    name | kind | default | unit | meaning

A line for each; one that begins with a space goes on with the meaning of the one before. A kind is a word of `kinds`, with whole numbers
behind it where it is a function of them (256K, 1M, 1G, 1T: so many octets); a default is JSON.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
Kind = tuple[Any, ...]


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
