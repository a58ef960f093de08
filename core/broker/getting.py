"""One message for who asks for one: 0-9-1's basic.get (its section 1.8.3.10). Consumers of the queue go first.

A family calls `serve`, sees whether it can write what it may get, then `look`, writes what the message at the head needs, and calls `get`.
"""

from ..memory import hot, layout
from ..queue import turns

READY = 0  # the message is at the queue's head
EMPTY = 1
LATER = 2  # the family tries it again: it waits for room, or for the broker's next round


def serve(broker, queue):
    """Have the consumers of a queue get what they can; false: deliveries come back to it, in turns, and the family is to try it again."""
    queue.used = True
    if queue.is_paging() and queue.head() == layout.NONE:
        queue.pages.pager.bring(queue)
    turns.serve(broker, queue)
    return not broker.tables.queues[queue.handle + layout.QUEUE_RETURNING]


def look(broker, queue):
    """READY, EMPTY or LATER for a queue that is no stream."""
    if queue.rules is not None:
        queue.rules.before_delivery(broker, queue)
        expiry = queue.rules.expiry
        if expiry is not None:
            expiry.let_go(broker, queue, 1)  # a lifetime of 0 is over: no consumer has taken the message at once
            if expiry.behind:
                return LATER  # expired ones are still to go
    if not queue.message_count():
        return EMPTY
    return LATER if queue.head() == layout.NONE else READY  # the next one is not written yet, or has no room


def get(broker, session, queue, no_ack):
    """Take the entry at the head of a queue, which is READY; unless `no_ack` the session has it, under its last delivery tag."""
    tables = broker.tables
    entry = queue.pop()
    if not no_ack:
        hot.hold(tables.entries, tables.queues, tables.channels, session.handle, entry, layout.GOT)
    return entry
