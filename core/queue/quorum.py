"""Quorum queues (`x-queue-type=quorum`) where there is one node: durable queues with the defaults of RabbitMQ's.

One node cannot give the purpose of a quorum, messages that outlive a disk; but clients declare quorum queues as a matter of course, and get
the rest: a durable queue whose messages come back at most DELIVERY_LIMIT times, on a broker that keeps a log. A board may leave this out.
"""

from ..errors import NOT_IMPLEMENTED, PRECONDITION_FAILED, ProtocolError
from . import rules, stream_arguments
from .queue import Queue

DELIVERY_LIMIT = 20  # RabbitMQ 4's; 3.10 has none

UNLIMITED = -1  # RabbitMQ 4's x-delivery-limit for no limit

# Arguments that RabbitMQ's quorum queues refuse.
NOT_OF_QUORUM = ("x-max-priority", "x-queue-mode", "x-queue-version", "x-queue-master-locator")

# Argument and kind of value, beside those of all queues; those about nodes and memory have no effect.
ARGUMENTS = (
    ("x-quorum-initial-group-size", (1, rules.NUMBER_MAX, " nodes")),
    ("x-queue-leader-locator", stream_arguments.LOCATORS),
    ("x-max-in-memory-length", rules.NUMBER),
    ("x-max-in-memory-bytes", rules.NUMBER),
)


class Quorum(Queue):
    """One quorum queue."""

    type = "quorum"

    @staticmethod
    def with_defaults(arguments):
        """The arguments for its rules, from its declaration and its policy."""
        whole = dict(arguments)
        if whole.setdefault("x-delivery-limit", DELIVERY_LIMIT) == UNLIMITED:
            del whole["x-delivery-limit"]
        return whole

    @staticmethod
    def may_be_read(subject, prefetch):
        """Raise not-implemented for a consumer on a channel with a prefetch (basic.qos global) of its own."""
        if prefetch:
            raise ProtocolError(NOT_IMPLEMENTED, subject + " does not support global qos")


def check(subject, arguments):
    """Raise precondition-failed for arguments that a quorum queue refuses. `subject` names it for the text."""
    rules.refuse(subject, "quorum", arguments, NOT_OF_QUORUM + rules.OF_STREAMS)
    rules.check_rows(ARGUMENTS, subject, arguments)
    rules.check(
        subject,
        {
            name: arguments[name]
            for name in arguments
            if rules.row_of(name) is not None and (name, arguments[name]) != ("x-delivery-limit", UNLIMITED)
        },
    )


def check_properties(subject, durable, exclusive, auto_delete, journal):
    """Raise precondition-failed for a declaration that makes no quorum queue, in RabbitMQ's words, or where nothing is kept."""
    for word, given in (("non-durable", not durable), ("exclusive-owner", exclusive), ("auto-delete", auto_delete)):
        if given:
            raise ProtocolError(PRECONDITION_FAILED, "invalid property '%s' for %s" % (word, subject))
    if journal is None:
        raise ProtocolError(
            PRECONDITION_FAILED,
            "invalid arg 'x-queue-type' for %s: this broker keeps messages in memory only, and a "
            "quorum queue is durable: start it with --data DIRECTORY, or declare a classic queue" % subject,
        )
