"""One message for who asks for one: 0-9-1's basic.get (its section 1.8.3.10). Consumers of the queue go first.

A family calls `serve`, sees whether it can write what it may get, then `look`, writes what the message at the head needs, and calls `get`.
"""

from ..memory import hot, layout
from ..queue import turns

READY = 0  # the message is at the queue's head
EMPTY = 1
LATER = 2  # the family tries it again: it waits for room, or for the broker's next round


def serve(broker, found):
    """Have the consumers of a queue get what they can; false: deliveries come back to it, in turns, and the family is to try it again."""
    found.used = True
    if found.is_paging() and found.head() == layout.NONE:
        found.pages.pager.bring(found)
    turns.serve(broker, found)
    return not broker.tables.queues[found.handle + layout.QUEUE_RETURNING]


def look(broker, found):
    """READY, EMPTY or LATER for a queue that is no stream."""
    if found.rules is not None:
        found.rules.before_delivery(broker, found)
        expiry = found.rules.expiry
        if expiry is not None:
            expiry.let_go(broker, found, 1)  # a lifetime of 0 is over: no consumer has taken the message at once
            if expiry.behind:
                return LATER  # expired ones are still to go
    if not found.message_count():
        return EMPTY
    return LATER if found.head() == layout.NONE else READY  # the next one is not written yet, or has no room


def get(broker, session, found, no_ack):
    """Take the entry at the head of a queue, which is READY; unless `no_ack` the session has it, under its last delivery tag."""
    tables = broker.tables
    entry = found.pop()
    if not no_ack:
        hot.hold(tables.entries, tables.queues, tables.channels, session.handle, entry, layout.GOT)
    return entry
