"""Time-outs, for every family: of a delivery that no consumer settles, of a content that does not continue.

A family's `tick` calls these functions, and reports a time-out in its own words.
"""

from ..errors import RESOURCE_ERROR, ProtocolError
from ..memory import layout
from ..shim import elapsed

UNSETTLED_EVERY_MS = 1000  # between two checks of a session's unsettled deliveries: other sessions can settle them too, and rules change


def overdue(broker, session, now):
    """The maximum time in ms for which a delivery may stay unsettled (RabbitMQ's consumer_timeout), if the oldest delivery of a session has
    exceeded it: the family closes the session. 0: not yet; None: no unsettled delivery. The session keeps `watched_tag` and `watched_since`
    for this."""
    tables = broker.tables
    entry = layout.NONE if session.closing else tables.channels[session.handle + layout.CHANNEL_UNSETTLED_HEAD]
    if entry == layout.NONE:
        if session.watched_tag >= 0:
            session.watched_tag = -1
        return None
    tag = tables.entries[entry + layout.ENTRY_TAG]
    if tag != session.watched_tag:
        session.watched_tag = tag
        session.watched_since = now
        return 0
    queue = broker.queue_objects[tables.entries[entry + layout.ENTRY_QUEUE]]
    most = (queue.rules.consumer_timeout_ms if queue.rules is not None else 0) or broker.limits.consumer_timeout_ms
    if not most or elapsed(now, session.watched_since) <= most:
        return 0
    broker.counters["settle_timeouts"] += 1
    return most


def check_moving(broker, moved):
    """Raise resource-error, for the whole connection, when no octet of an unfinished content has come since `moved` (broker.now then)."""
    if elapsed(broker.now, moved) > broker.limits.content_timeout_ms:
        raise ProtocolError(RESOURCE_ERROR, "an unfinished content that has not moved for %d ms" % broker.limits.content_timeout_ms, True)
