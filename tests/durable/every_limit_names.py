"""Texts that take most memory, for every_limit.py."""

WIDE = "\U0001f407"  # one character of four octets: CPython keeps every character of its text in four


def name_of(kind, number, size):
    """The text of `size` octets that takes most memory."""
    text = f"{WIDE}{kind}{number}-"
    return text + "n" * (size - len(text.encode()))
