"""The page at /."""

from .answers import Answer
from .call import Call


def index(call: Call) -> Answer:
    """What is here, until there is more."""
    return Answer(
        200, b"<!doctype html><title>Leveret</title><h1>Leveret</h1><p>The management API is at /api/.", kind="text/html; charset=utf-8"
    )
