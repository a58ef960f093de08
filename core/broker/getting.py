"""One message for a client that asks for one: 0-9-1's basic.get (its section 1.8.3.10). Consumers of the queue go first.

A family calls `serve`, checks that its send buffer has room for the reply, calls `state`, writes the reply for the message at the head,
and calls `get`.
"""

from ..memory import hot, layout
from ..queue import turns

READY = 0  # the message is at the queue's head
EMPTY = 1
LATER = 2  # the family tries again, with room, or in the broker's next round


def serve(broker, queue):
    """Deliver to the consumers of a queue as much as they accept; false: deliveries are coming back to the queue, in turns, and the family
    tries again."""
    queue.used = True
    if queue.is_paging() and queue.head() == layout.NONE:
        queue.pages.pager.bring(queue)
    turns.serve(broker, queue)
    return not broker.tables.queues[queue.handle + layout.QUEUE_RETURNING]


def state(broker, queue):
    """Whether a queue that is no stream is READY, EMPTY or to be asked LATER."""
    if queue.rules is not None:
        queue.rules.before_delivery(broker, queue)
        expiry = queue.rules.expiry
        if expiry is not None:
            expiry.let_go(broker, queue, 1)  # a lifetime of 0 is over: no consumer got the message at once
            if expiry.behind:
                return LATER  # more expired messages are still to be dropped
    if not queue.message_count() or broker.contents is not None and broker.contents.is_at_head(queue):
        return EMPTY
    return LATER if queue.head() == layout.NONE else READY  # the next message is not written yet, or has no room


def get(broker, session, queue, no_ack):
    """Remove the entry at the head of a queue, which is READY, and return it; unless `no_ack`, the session holds it under its last delivery
    tag."""
    tables = broker.tables
    trace = broker.trace
    copied = None if trace is None else trace.delivery(session, queue)
    entry = queue.pop()
    if not no_ack:
        hot.hold(tables.entries, tables.queues, tables.channels, session.handle, entry, layout.GOT)
    tables.state[layout.STATE_GOT_NO_ACK if no_ack else layout.STATE_GOT] += 1
    if copied is not None:
        trace.tell_delivery(queue, copied)
    return entry
