"""Who gets the next message: queues in turn, and each queue's consumers in turn.

A queue is in `broker.active` when something changed for it: a message came, credit came, room came. Each turn is short, so that a busy
queue does not keep another waiting; a session that has no room says so by delivering nothing, and its queues are activated again
when its peer has read.
"""

from .shim import const

_TURN = const(32)  # deliveries of one queue before the next queue has its turn


def run(broker):
    """Give every active queue its turns until nothing more can be delivered now."""
    active = broker.active
    while active:
        found = active.pop(0)
        found.active = False
        if turn(found):
            broker.activate(found)


def turn(found):
    """Up to _TURN deliveries of one queue, one consumer after the other; true when there may be more."""
    consumers = found.consumers
    count = len(consumers)
    if count == 1:
        consumer = consumers[0]
        return consumer.channel.session.deliver(consumer, _TURN) >= _TURN
    left = _TURN
    idle = 0
    while left > 0 and idle < count and (found.is_stream or found.message_count()):
        if found.consumer_next >= count:
            found.consumer_next = 0
        consumer = consumers[found.consumer_next]
        found.consumer_next += 1
        if consumer.channel.session.deliver(consumer, 1):
            left -= 1
            idle = 0
        else:
            idle += 1
    return left == 0
