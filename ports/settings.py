"""The one checker of settings: of configuration files, of Spark's options, of the bridges on a board.

A Table has a row for each setting, (name, kind, default), with (unit, meaning) behind where there is room for words: boards carry none.
tools/SETTINGS.md shows the rows of every table (tools/generate_settings.py). A kind is (read, words, least, most, wrong): `read(value,
least, most)` is the value to keep, or None where it cannot be; `words`: what it may be, with {least} and {most}; `wrong`, where
it is there: a sentence of its own, one with {octets} only about texts.

Laws: a mistake is a ValueError of one sentence, in the words of the table; `path` and what else the sentences name is given to `check`. The
first mistake is told. What is given stays as it is. A default of None: left out it is not there.
"""

if False:  # for the type checker alone
    from typing import Any


class Table:
    """`rows` as above. `unknown` and `wrong`: sentences, where {name}, {names}, {hint}, {value!r} and {words} stand for what they say.
    `relations`: (names, holds, sentence); `holds(values)` must be true where one of `names` is given, or always when there are none."""

    def __init__(self, rows: "Any", unknown: str, wrong: str, relations: "Any" = (), hint: "Any" = None) -> None:
        self.rows, self.unknown, self.wrong, self.relations, self.hint = rows, unknown, wrong, relations, hint

    def check(self, given: "dict[str, Any]", **place: object) -> "dict[str, Any]":
        """{name: value as it is kept} of what is given, each looked at by itself."""
        names = [row[0] for row in self.rows]
        for name in given:
            if name not in names:
                hint = self.hint(name, names) if self.hint else ""
                raise ValueError(self.unknown.format(name=name, names=", ".join(names), hint=hint, **place))
        return {row[0]: self._read(row, given[row[0]], place) for row in self.rows if row[0] in given}

    def full(self, given: "dict[str, Any]", **place: object) -> "dict[str, Any]":
        """{name: value} of every row, those given over the defaults, after a look at what they have to do with each other."""
        given = self.check(given, **place)
        values = {row[0]: row[2] for row in self.rows}
        values.update(given)
        for names, holds, sentence in self.relations:
            for name in [name for name in names if name in given] if names else [""]:
                if not holds(values):
                    raise ValueError(sentence.format(name=name, values=values, **place))
        return values

    def _read(self, row: "tuple[Any, ...]", value: object, place: "dict[str, Any]") -> "Any":
        kind = row[1]
        kept = kind[0](value, kind[2], kind[3])
        if kept is None:
            octets = len(value.encode("utf-8")) if isinstance(value, str) else None
            sentence = kind[4] if kind[4] and (octets is not None or "{octets}" not in kind[4]) else self.wrong
            raise ValueError(sentence.format(name=row[0], value=value, words=words_of(kind), octets=octets, most=kind[3], **place))
        return kept


def words_of(kind: "tuple[Any, ...]") -> str:
    """The words for the values that a kind allows."""
    words: str = kind[1]
    return words.format(least=kind[2], most=kind[3])


def whole(least: int, most: int) -> "tuple[Any, ...]":
    """A whole number."""
    return as_whole, "a whole number from {least} to {most}", least, most, None


def as_whole(value: object, least: int, most: int) -> int | None:
    return value if type(value) is int and least <= value <= most else None


def one_of(*choices: str) -> "tuple[Any, ...]":
    """One of a few texts."""
    words = " or ".join(choices)
    return as_choice, words, choices, None, "{name} is {words}, not {value!r}"


def as_choice(value: object, choices: tuple[str, ...], _: object) -> str | None:
    return value if isinstance(value, str) and value in choices else None
