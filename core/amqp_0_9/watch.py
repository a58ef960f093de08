"""What time does to a 0-9-1 session: heartbeats (section 4.2.7), and an end for what does not move.

`tick` answers how many milliseconds the session needs no further tick, None: it needs the next one. Nothing that a peer does in that
time changes the answer: who hears from it, or writes to it, ticks it again.
"""

from ..broker import timeouts
from ..errors import PRECONDITION_FAILED
from ..shim import elapsed
from . import frame, replies

INGEST_WAIT_MS = 100  # a content of which nothing more came for so long is taken in as far as it is there
TOLD_AFTER_MS = 200  # a publisher that is held this long is told with connection.blocked
CLOSING_MS = 3000  # how long the answer to connection.close may take
CALM_MS = 3600000  # for a session of which nothing is due


def tick(session):
    """Time passes for a session: see above."""
    now = session.broker.now
    connection = session.connection
    if session.incomplete and elapsed(now, connection.last_received) > INGEST_WAIT_MS:
        session.process_part()
    if session.state == "closing":
        if elapsed(now, connection.ending_since) > CLOSING_MS:
            session.step("late")
        return None
    if session.state != "open":
        if elapsed(now, connection.started) > session.broker.limits.login_timeout_ms:
            session.step("late")
        elif session.login is not None:
            session.login.tick(now)
        return None
    wait_ms = beat(session, now)
    if connection.closed:
        return None
    if session.send.is_short():
        session.room()
    for number in session.channels:  # without `values`, which is heap
        if watch_unsettled(session, session.channels[number], now):
            wait_ms = min(wait_ms, timeouts.UNSETTLED_EVERY_MS)
    watch_content(session, now)
    moves = session.incomplete or session.send.is_short() or session.unfinished or session.state == "closing" or not connection.reading
    return None if moves else wait_ms


def beat(session, now):
    """Send a heartbeat when nothing else went, end a connection whose peer is silent: milliseconds until one of the two is due."""
    connection = session.connection
    if not session.heartbeat_ms:
        return CALM_MS
    silent = elapsed(now, connection.last_received)
    if silent > 2 * session.heartbeat_ms and connection.reading:
        session.broker.inform("%s: nothing came for %d ms, two heartbeats were missed" % (connection.name, silent), True)
        connection.finish()
        return 0
    if elapsed(now, connection.last_sent) >= session.heartbeat_ms // 2 and session.send.room() >= frame.OVERHEAD:
        session.send.write(session.heartbeat)
        connection.last_sent = now
    return max(min(2 * session.heartbeat_ms + 1 - silent, session.heartbeat_ms // 2 - elapsed(now, connection.last_sent)), 0)


def watch_unsettled(session, channel, now):
    """Close a channel whose oldest delivery has been unsettled for too long; true when it has one."""
    most = timeouts.overdue(session.broker, channel, now)
    if most:
        session.closing_method = 0
        session.shut_channel(
            channel,
            406,
            replies.reply_text(
                PRECONDITION_FAILED,
                "delivery acknowledgement on channel %d timed out. "
                "Timeout value used: %d ms. This timeout value can be configured" % (channel.number, most),
            ),
        )
    return most is not None


def watch_content(session, now):
    """A content that does not move is refused; a publisher that is held is told."""
    if not session.connection.reading:
        late = elapsed(now, session.held_since) > TOLD_AFTER_MS and session.connection in session.broker.held
        if late and not session.told_blocked and session.capabilities.get("connection.blocked"):
            session.told_blocked = True
            session.broker.counters["blocked"] += 1
            session.reply(0, "connection_blocked", ("no room for more messages",))
    elif session.unfinished:
        timeouts.check_moving(session.broker, session.content_moved)
