"""Publishing a message that is there in one piece, by a part of this program: no session stands behind it."""

from ..memory import layout
from ..message.route import pack
from ..outcomes import NO_ROOM, UNROUTABLE


def publish(broker, exchange_name, key, octets, columns, body, user=None):
    """Publish a message with the properties `octets`, whose `columns` are (kind, lifetime): TAKEN, UNROUTABLE, REFUSED, or NO_ROOM
    (nothing has changed; try again). The key and the body are bytes, no larger than the limits. `user`: on whose behalf, None: the
    broker's own."""
    tables = broker.tables
    route = pack(exchange_name.encode("utf-8"), key)
    blocks = tables.blocks_for(len(route) + len(octets) + len(body))
    if not tables.has_room(blocks, 1):
        broker.make_room(blocks)
        if not tables.has_room(blocks, 1):
            return NO_ROOM
    message = tables.new_message(route, len(octets), len(body), broker.seconds, columns[0], columns[1])
    try:
        tables.append(message, octets, 0, len(octets))
        tables.append(message, body, 0, len(body))
        outcome = broker.publish(message, exchange_name, key)
        if broker.trace is not None and user is not None and outcome != NO_ROOM:
            broker.trace.published_by(user, message)
    finally:
        tables.release(message)
    if outcome != NO_ROOM:
        tables.state[layout.STATE_PUBLISHED] = (tables.state[layout.STATE_PUBLISHED] + 1) & layout.MASK
        broker.counters["unroutable"] += 1 if outcome == UNROUTABLE else 0
    return outcome
