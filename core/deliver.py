"""Who gets the next message: queues in turn, and each queue's consumers in turn.

A queue is in the list of active ones (layout.STATE_ACTIVE_HEAD) when something changed for it: a message came, credit came, room came.
Each turn is short, so that a busy queue does not keep another waiting; a session that has no room says so by delivering nothing, and its
queues are activated again when its peer has read.
"""

from . import hot, layout
from .shim import const

_TURNS = const(64)  # turns before everything else that the broker does has its turn
_DELIVERIES = const(2048)  # and as many deliveries
_SERVED_TURNS = const(8)  # of one queue before a basic.get from it
_CAREFUL_TURN = const(32)  # deliveries in a row of a queue whose messages are looked at
_CAREFUL_COST = const(8)  # deliveries without a look that take as long as one with it
_GROUPED_COST = const(32)  # the same for one with groups


def run(broker):
    """Give the active queues their turns, one after the other; those that are still active behind _TURNS go on the next time."""
    go_round(broker, _TURNS)


def serve(broker, found):
    """Let the consumers of a queue have what is ready before somebody takes or counts it: those with credit and room come first."""
    queues, state = broker.tables.queues, broker.tables.state
    for _ in range(_SERVED_TURNS):
        if not queues[found.handle + layout.QUEUE_ACTIVE] or found.head() == layout.NONE:
            return
        hot.deactivate(queues, state, found.handle)
        queues[found.handle + layout.QUEUE_ACTIVE] = 1
        queues[found.handle + layout.QUEUE_NEXT_ACTIVE] = state[layout.STATE_ACTIVE_HEAD]
        state[layout.STATE_ACTIVE_HEAD] = found.handle
        if state[layout.STATE_ACTIVE_TAIL] == layout.NONE:
            state[layout.STATE_ACTIVE_TAIL] = found.handle
        go_round(broker, 1)


def go_round(broker, turns):
    """So many turns of active queues at most, in their order."""
    engine = broker.tables.engine
    engine.begin_round(turns, _DELIVERIES)
    while True:
        handle = engine.next_turn()
        if handle == layout.NONE:
            return
        found = broker.queue_objects[handle]
        careful = found.needs_care or found.prioritised
        try:
            count = careful_turn(broker, found) if careful else turn(found, engine)
        except Exception as error:
            broker.guard.queue_failed(found, error)
            continue
        engine.turned(count * cost_of(found) if careful else count)
        if count >= (_CAREFUL_TURN if careful else engine.turn):
            broker.activate(found)


def cost_of(found):
    """How many deliveries without a look take as long as one of a queue whose messages are looked at."""
    return _GROUPED_COST if found.rules is not None and found.rules.groups is not None else _CAREFUL_COST


def turn(found, engine):
    """Up to engine.turn deliveries of one queue, one consumer after the other: how many, with those that the engine has made already."""
    consumers = found.consumers
    count = len(consumers)
    done = engine.done
    if count == 1:
        consumer = consumers[0]
        return done + consumer.channel.session.deliver(consumer, engine.turn - done, done)
    idle = engine.idle
    while done < engine.turn and idle < len(consumers) and (found.is_stream or found.head() != layout.NONE):
        consumer = consumers[next_place(found, len(consumers))]  # one whose channel fails meanwhile is gone
        if consumer.channel.session.deliver(consumer, 1):
            done += 1
            idle = 0
        else:
            idle += 1
    return done


def next_place(found, count):
    """The place among a queue's consumers whose turn it is; the next one's is next."""
    queues = found.tables.queues
    place = queues[found.handle + layout.QUEUE_TURN]
    if place >= count:
        place = 0
    queues[found.handle + layout.QUEUE_TURN] = place + 1
    return place


def careful_turn(broker, found):
    """The same for a queue with rules or consumer priorities: each message is looked at before it goes."""
    for done in range(_CAREFUL_TURN):
        if found.rules is not None:
            found.rules.before_delivery(broker, found)
            if found.rules.expiry is not None and found.rules.expiry.behind:
                broker.activate(found)
                return done
        if found.head() == layout.NONE or not one_delivery(broker, found):
            return done
    return _CAREFUL_TURN


def one_delivery(broker, found):
    """Deliver the head to the first consumer that can take it: the highest priority first, those of one priority in turn."""
    consumers = found.consumers
    if not consumers:
        return False
    rules = found.rules
    count = len(consumers)
    if rules is not None and rules.single_active:
        done = consumers[0].channel.session.deliver(consumers[0], 1)
        if len(consumers) != count:
            broker.activate(found)
        return done
    groups = None if rules is None else rules.groups
    if groups is not None and not groups.look(broker, found):
        return False
    turn_of = found.tables.queues[found.handle + layout.QUEUE_TURN]
    start = 0
    while start < count:
        end = start + 1
        while end < count and consumers[end].priority == consumers[start].priority:
            end += 1
        for step in range(end - start):
            consumer = consumers[start + (turn_of + step) % (end - start)]
            if groups is not None and not groups.bring(broker, found, consumer):
                continue
            if consumer.channel.session.deliver(consumer, 1):
                if groups is not None:
                    groups.delivered(broker, found, consumer)
                found.tables.queues[found.handle + layout.QUEUE_TURN] = (turn_of + 1 + step) & layout.MASK
                return True
            if len(consumers) != count:  # its channel has failed: the others have their turn with what is left
                broker.activate(found)
                return False
        start = end
    return False
