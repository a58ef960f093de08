"""Positions in a stream as Event Hubs has them: a selector that compares an annotation, and the annotations that it is about.

    amqp.annotation.x-opt-offset > '1024'             behind an offset ('-1': from the first one on, '@latest': later messages)
    amqp.annotation.x-opt-sequence-number >= 1024     from a number on: the same numbers
    amqp.annotation.x-opt-enqueued-time > 1700000000000    messages that came in that second, of milliseconds since 1970, or later

A receiver that asks for a position gets the three annotations with each message. Other receivers get x-stream-offset.
"""

from ..memory import layout

if False:  # for the type checker alone
    from typing import Any

_PREFIX = "amqp.annotation.x-opt-"
_DIGITS = "0123456789"
_DIGITS_MAX = 18


def place(text):
    """The argument x-stream-offset that a selector's text stands for; None: it is no position."""
    if not isinstance(text, str) or not text.startswith(_PREFIX):
        return None
    name, sign, number = text[len(_PREFIX) :].partition(">")
    behind = not number.startswith("=")
    number = number[0 if behind else 1 :].strip().strip("'")
    name = name.strip()
    if not sign or name not in ("offset", "sequence-number", "enqueued-time"):
        return None
    if number == "-1":
        return "first"
    if number == "@latest" and name == "offset":
        return "next"
    if not 0 < len(number) <= _DIGITS_MAX or [letter for letter in number if letter not in _DIGITS]:
        return None
    if name == "enqueued-time":
        return "T", int(number) // 1000
    return int(number) + behind


def annotations(broker, message, offset):
    """The annotations of a message at an offset of its stream."""
    notes: "dict[str, Any]" = {
        "x-stream-offset": offset,
        "x-opt-offset": "%d" % offset,
        "x-opt-sequence-number": offset,
    }
    arrived = broker.tables.messages[message + layout.MESSAGE_ARRIVED] + layout.EPOCH
    notes["x-opt-enqueued-time"] = ("timestamp", arrived * 1000)
    return notes
