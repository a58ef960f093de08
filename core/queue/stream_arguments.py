"""The arguments of streams, as rules.py has those of other queues. Boards without streams do not carry this file."""

from .rules import AGE, ARGUMENTS, NAME, NUMBER_MAX, TEXT, check_rows, refuse

LOCATORS = ("client-local", "balanced", "random", "least-leaders")

# argument, kind of value
ROWS = (
    ("x-queue-type", TEXT),
    ("x-max-length-bytes", (1, NUMBER_MAX, " octets")),
    ("x-max-age", AGE),
    ("x-stream-max-segment-size-bytes", (0, NUMBER_MAX, " octets")),
    ("x-stream-hold", NAME),
    ("x-queue-leader-locator", LOCATORS),
    ("x-initial-cluster-size", (1, NUMBER_MAX, " nodes")),
)


def names():
    """The names of the arguments in ROWS."""
    return [row[0] for row in ROWS]


def check(subject, arguments):
    """Raise precondition-failed for an argument of other queues, or one with a wrong value. `subject` names the stream for the text."""
    of_streams = names()
    refuse(subject, "stream", arguments, [row[0] for row in ARGUMENTS if row[0] not in of_streams])
    check_rows(ROWS, subject, arguments)
