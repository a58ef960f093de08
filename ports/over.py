"""Functions put over those of a broker's objects, by ports that are asked for: a broker without them has nothing of it."""

from typing import Any


def over(owner: Any, name: str, function: Any) -> None:
    """From now on owner.NAME(...) is function(the one before, ...)."""
    before = getattr(owner, name)
    setattr(owner, name, lambda *given: function(before, *given))
