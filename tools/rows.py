"""Rows for people and programs: a table with a head, or JSON."""

import json

from . import status


def word(value):
    """A value in a table: a text without quotes where nobody could mistake it for something else."""
    if isinstance(value, str) and value and value.isprintable() and not set(value) & set(' "') and value not in ("-", "yes", "no"):
        return value
    if isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"), sort_keys=True)
    return status.word(value)


def table(columns, rows):
    """Lines with a head, the columns below each other."""
    lines = [list(columns)] + [[word(row[name]) for name in columns] for row in rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]


def show(columns, rows, as_json):
    """Print rows, dicts of which only `columns` are shown."""
    if as_json:
        print(json.dumps([{name: row[name] for name in columns} for row in rows], indent=1))
    else:
        print("\n".join(table(columns, rows)))
