"""Messages of each version for receivers of each version: what came is a message of theirs, and of their own version it is what was sent.
tests/tools/test_conversions.py holds every cell to core/CONVERSIONS.md."""

from conversion_cells import pairs
from full_messages import VERSIONS


def check(source):
    for target in VERSIONS:
        for sent, came in pairs(source, target):
            assert came["body"] == sent["body"] or source == "1.0", (source, target, sent, came)
            assert target != source or came == sent or source in ("0-10", "1.0") and beside(came) == beside(sent), (sent, came)


def beside(view):
    """A message without what the broker says of its way."""
    return {name: view[name] for name in view if name not in ("exchange", "routing-key")}


def test_published_by_0_9a5():
    check("0.9a5")


def test_published_by_0_9r1():
    check("0.9r1")


def test_published_by_0_8():
    check("0-8")


def test_published_by_0_9():
    check("0-9")


def test_published_by_0_9_1():
    check("0-9-1")


def test_published_by_0_10():
    check("0-10")


def test_published_by_1_0():
    check("1.0")
