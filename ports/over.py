"""Functions put over those of a broker's objects, by ports that are asked for: a broker without them has nothing of it."""

from typing import Any


def over(owner: Any, name: str, function: Any) -> None:
    """Replace owner.NAME by a function that calls `function` with the method replaced as its first argument."""
    before = getattr(owner, name)
    setattr(owner, name, lambda *given: function(before, *given))
