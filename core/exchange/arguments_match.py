"""Comparison of a headers exchange (0-9-1 section 3.1.3.4): a message fits when its headers have the
values of the binding's arguments.

x-match "all" (the default): all arguments; "any": at least one. An argument without a value asks only for the header's presence. Arguments
that begin with x- are compared by all-with-x and any-with-x alone (RabbitMQ). Whole numbers of all widths are one kind and numbers
with a fraction another, as in RabbitMQ: 1 is not 1.0, and neither is true.
"""

from ..message.type_words import type_word
from .base import refuse

MODES = ("all", "any", "all-with-x", "any-with-x")


def check(arguments):
    """Raise precondition-failed when the x-match of a binding is not one of the four."""
    mode = arguments.get("x-match", "all")
    if not isinstance(mode, str):
        refuse("Invalid x-match field type %s (value %s); expected longstr" % (type_word(mode), mode))
    if mode not in MODES:
        refuse('Invalid x-match field value <<"%s">>; expected all, any, all-with-x, or any-with-x' % mode)


def same(wanted, value):
    """True when both values are of one kind and equal; every value meets a wanted None."""
    return wanted is None or (type(wanted) is type(value) and wanted == value)


def fits(arguments, headers, compare=same):
    """True when a message with `headers` (a dict) goes to a binding with `arguments`; `compare(wanted, value)` compares two values."""
    any_ = is_any(arguments)
    with_x = arguments.get("x-match", "all").endswith("-with-x")
    for name in arguments:
        if name == "x-match" or (name.startswith("x-") and not with_x):
            continue
        fit = name in headers and compare(arguments[name], headers[name])
        if fit == any_:
            return any_
    return not any_


def is_any(arguments):
    """True for x-match any."""
    return arguments.get("x-match", "all").startswith("any")


def compared(arguments):
    """The names of the arguments that are compared."""
    with_x = arguments.get("x-match", "all").endswith("-with-x")
    return [name for name in arguments if name != "x-match" and (with_x or not name.startswith("x-"))]
