"""Modules that only boards have (machine, network, ...), imported when the settings need them: a module that is absent is a sentence, not a
crash."""

import sys

from .say import CannotStart


class Absent(CannotStart):
    """This interpreter lacks something that the settings ask for; the text is one sentence."""


def module(name, what_for):
    """A built-in module. Raises Absent."""
    try:
        return __import__(name)
    except ImportError:
        raise Absent("this MicroPython (%s) has no module %s, which %s needs" % (sys.platform, name, what_for)) from None


def part(owner, name, what_for):
    """An attribute of a module. Raises Absent."""
    attribute = getattr(owner, name, None)
    if attribute is None:
        raise Absent("this MicroPython (%s) has no %s.%s, which %s needs" % (sys.platform, owner.__name__, name, what_for))
    return attribute
