"""Which consumer gets the next message: queues in turn, and each queue's consumers in turn.

A queue is in the list of active queues (layout.STATE_ACTIVE_HEAD) after a change that may allow a delivery: a message came, a consumer has
credit or its session's send buffer has space again. Each turn is short, so that a busy queue does not keep another waiting. A session whose
send buffer is full delivers nothing; its queues are activated again when its peer has read.
"""

from ..memory import hot, layout
from ..shim import const

_TURNS = const(64)  # turns before everything else that the broker does has its turn
_SERVED_TURNS = const(8)  # of one queue before a basic.get from it
_CAREFUL_TURN = const(32)  # deliveries in a row of a queue whose rules see each message
# Deliveries in a round of queues whose rules see all messages, of queues with groups, and of streams: as long as engine.deliveries of
# others.
_CAREFUL_DELIVERIES = const(256)
_GROUPED_DELIVERIES = const(48)
_STREAM_DELIVERIES = const(400)
_SHARE = const(32)  # deliveries of a stream to one reader before the next: none of them keeps a message from another
_MADE_DELIVERIES = const(64)  # in a round, whose octets a family makes in Python, message by message
_ASKED_EACH_TIME = const(64)  # consumers with priorities that each delivery of a plain turn may ask
_ASKED = const(8192)  # consumers that one turn asks whether they can get the message of such a queue


def run(broker, deliveries, turns=_TURNS):
    """Run up to `turns` turns of the active queues in their order, with so many deliveries in all; engine.left is what is left of them.

    Queues that are still active after that go on in the next round.
    """
    engine = broker.tables.engine
    engine.begin_round(turns, deliveries)
    while True:
        handle = engine.next_turn()
        if handle == layout.NONE:
            return
        queue = broker.queue_objects[handle]
        if broker.tables.queues[handle + layout.QUEUE_RETURNING]:
            continue  # returning messages come first; then the queue is active again
        try:
            again = serve_queue(broker, queue, engine)
        except Exception as error:  # an error of ours is this queue's alone
            broker.guard.queue_failed(queue, error)
            continue
        if again:
            broker.activate(queue)


def go_on(broker):
    """Run the turns of queues that have become active in this round, with the deliveries that are left of it."""
    if broker.tables.state[layout.STATE_ACTIVE_HEAD] != layout.NONE:
        run(broker, broker.tables.engine.left)


def serve(broker, queue):
    """Deliver a queue's ready messages to consumers with credit and room, before basic.get removes one or a method counts them: at most one
    round's effort, of which the connection's turn has that much less."""
    queues, state, engine = broker.tables.queues, broker.tables.state, broker.tables.engine
    left = most = engine.deliveries
    for _ in range(_SERVED_TURNS):
        if left <= 0 or not queues[queue.handle + layout.QUEUE_ACTIVE] or queue.head() == layout.NONE:
            break
        hot.deactivate(queues, state, queue.handle)
        queues[queue.handle + layout.QUEUE_ACTIVE] = 1
        queues[queue.handle + layout.QUEUE_NEXT_ACTIVE] = state[layout.STATE_ACTIVE_HEAD]
        state[layout.STATE_ACTIVE_HEAD] = queue.handle
        if state[layout.STATE_ACTIVE_TAIL] == layout.NONE:
            state[layout.STATE_ACTIVE_TAIL] = queue.handle
        run(broker, left, 1)
        left = engine.left
    state[layout.STATE_LEFT] -= engine.effort * (most - left) // most


def in_turn(broker):
    """All queues in a list; some may be gone when their turn comes, because another one's rules may remove them. Of those with more
    expired messages than the last check of lifetimes had room for another one is the first."""
    queues = broker.listed()
    if broker.overdue is not None and broker.overdue in queues:
        behind = queues.index(broker.overdue) + 1
        queues = queues[behind:] + queues[:behind]
    broker.overdue = None
    return queues


def serve_queue(broker, queue, engine):
    """A queue's turn: true when it is to have another one."""
    careful = queue.needs_care or queue.prioritised and (queue.is_stream or len(queue.consumers) > _ASKED_EACH_TIME)
    most = careful_most(queue) if careful else engine.turn
    count = careful_turn(broker, queue, most) if careful else plain_turn(broker, queue, engine)
    engine.turned(count * cost_of(queue, engine.deliveries) if careful else count)
    return count >= most


def cost_of(queue, deliveries):
    """How many deliveries of a plain queue take as long as one delivery of this queue, whose rules see each message."""
    in_a_round = _CAREFUL_DELIVERIES
    if queue.rules is not None and queue.rules.groups is not None:
        in_a_round = _GROUPED_DELIVERIES
    if queue.prioritised:
        in_a_round = min(in_a_round, careful_most(queue))
    return max(deliveries // in_a_round, 1)


def charge_stream(engine, count):
    """A session has made so many deliveries of a stream in Python: each took as long as some that the engine makes."""
    engine.turned(count * (max(engine.deliveries // _STREAM_DELIVERIES, 1) - 1))


def charge_made(broker, queue, count=1):
    """A session has made the octets of so many deliveries in Python: each took as long as many that the engine makes. False when the round
    has no more effort left: the session delivers no more, and the queue has another turn."""
    engine = broker.tables.engine
    engine.turned(count * (made_cost(engine) - 1))
    if engine.left > 0:
        return True
    broker.activate(queue)
    return False


def most_made(broker, most):
    """Of `most` deliveries how many a session may make in Python, one behind the other: at least 1."""
    engine = broker.tables.engine
    return min(most, max(engine.left // made_cost(engine), 1))


def made_cost(engine):
    """How many deliveries of the engine take as long as one that is made in Python."""
    return max(engine.deliveries // _MADE_DELIVERIES, 1)


def is_overdue(queue):
    """The message at the head has expired and is to be a dead letter, before another one is delivered. What else has expired there is gone
    behind this."""
    tables = queue.tables
    return tables.queues[queue.handle + layout.QUEUE_LIMITS] & layout.LIMIT_EXPIRES and tables.engine.expire(queue.handle)


def careful_most(queue):
    """Deliveries in a row of a queue whose rules see each message: fewer when each may have to ask many consumers."""
    return max(min(_CAREFUL_TURN, _ASKED // (len(queue.consumers) or 1)), 1)


def plain_turn(broker, queue, engine):
    """Make up to engine.turn deliveries of one queue; returns how many, with those that the engine has made. What has expired by then
    becomes dead letters in between; where that is more than a turn's, the turn is over."""
    done, idle = engine.done, engine.idle
    while True:
        if is_overdue(queue):
            queue.rules.before_delivery(broker, queue)
            if queue.rules.expiry.behind:
                return engine.turn
        done = turn(broker, queue, engine.turn, done, idle)
        if done >= engine.turn or not is_overdue(queue):
            return done
        idle = 0


def turn(broker, queue, most, done, idle):
    """Go on with a turn of up to `most` deliveries behind `done` of them, consumer by consumer (where some have priorities, always from the
    highest one on); the last `idle` consumers could not take one. Returns how many are made."""
    consumers = queue.consumers
    count = len(consumers)
    if count == 1 or queue.single_active and count:
        consumer = consumers[0]
        return done + consumer.channel.session.deliver(consumer, most - done, done)
    if queue.prioritised and not queue.is_stream:
        while done < most and queue.head() != layout.NONE and not is_overdue(queue) and one_delivery(broker, queue):
            done += 1
        return done
    share = _SHARE if queue.is_stream else 1
    while done < most and idle < len(consumers) and not is_overdue(queue) and (queue.is_stream or queue.head() != layout.NONE):
        consumer = consumers[next_place(queue, len(consumers))]  # a consumer whose channel fails meanwhile is removed
        made = consumer.channel.session.deliver(consumer, share)
        if made:
            done += made
            idle = 0
        else:
            idle += 1
    return done


def next_place(queue, count):
    """The place of the consumer whose turn it is among its queue's; the consumer behind it has the next turn."""
    queues = queue.tables.queues
    place = queues[queue.handle + layout.QUEUE_TURN]
    if place >= count:
        place = 0
    queues[queue.handle + layout.QUEUE_TURN] = place + 1
    return place


def careful_turn(broker, queue, most):
    """As `turn`, for a queue with rules or consumer priorities, up to `most` deliveries: the rules see each message first."""
    for done in range(most):
        if queue.rules is not None:
            queue.rules.before_delivery(broker, queue)
            if queue.rules.expiry is not None and queue.rules.expiry.behind:
                broker.activate(queue)
                return done
        if queue.head() == layout.NONE and not queue.is_stream or not one_delivery(broker, queue):
            return done
    return most


def one_delivery(broker, queue):
    """Deliver the head to the first consumer with credit and room: the highest priority first, those of one priority in turn."""
    consumers = queue.consumers
    if not consumers:
        return False
    rules = queue.rules
    count = len(consumers)
    groups = None if rules is None else rules.groups
    if groups is not None and not groups.begin(broker, queue):
        return False
    last = 1 if queue.single_active else count  # the first one is the active one
    turn_of = queue.tables.queues[queue.handle + layout.QUEUE_TURN]
    start = 0
    while start < last:
        end = start + 1
        while end < last and consumers[end].priority == consumers[start].priority:
            end += 1
        for step in range(end - start):
            consumer = consumers[start + (turn_of + step) % (end - start)]
            if groups is not None and not (broker.consumers.has_credit(consumer) and groups.bring(broker, queue, consumer)):
                continue
            if consumer.channel.session.deliver(consumer, 1):
                if groups is not None:
                    groups.delivered(broker, queue, consumer)
                queue.tables.queues[queue.handle + layout.QUEUE_TURN] = (turn_of + 1 + step) & layout.MASK
                return True
            if len(consumers) != count:  # its channel has failed: the others share the remaining deliveries
                broker.activate(queue)
                return False
        start = end
    return False
