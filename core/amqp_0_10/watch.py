"""What time does to a 0-10 connection: heartbeats, and an end for what does not move.

`tick` answers how many milliseconds the protocol needs no further tick, None: it needs the next one.
"""

from ..broker import timeouts
from ..errors import PRECONDITION_FAILED
from ..shim import elapsed
from . import browsing, frame, structs

CLOSING_MS = 3000  # how long the answer to a close may take
CALM_MS = 3600000  # for a connection of which nothing is due
HEARTBEAT = frame.write(frame.WHOLE, frame.CONTROL, 0, structs.write_control("connection_heartbeat", {}))


def tick(protocol):
    """Time passes for a connection: see above."""
    broker, connection = protocol.broker, protocol.connection
    now = broker.now
    if protocol.closing:
        if elapsed(now, connection.ending_since) > CLOSING_MS:
            protocol.step("late")
        return None
    if protocol.state != "open":
        if elapsed(now, connection.started) > broker.limits.login_timeout_ms:
            protocol.step("late")
        elif protocol.login is not None:
            protocol.login.tick(now)
        return None
    wait_ms = beat(protocol, now)
    if connection.closed or protocol.closing:
        return None
    if protocol.send.is_short():
        protocol.room()
    for session in protocol.sessions():
        most = timeouts.overdue(broker, session, now)
        if most:
            session.step("error", PRECONDITION_FAILED, "a delivery was not settled within %d ms (consumer_timeout)" % most)
        if most is not None:
            wait_ms = min(wait_ms, timeouts.UNSETTLED_EVERY_MS)
    browsing.look(protocol)
    if protocol.unfinished and connection.reading:
        timeouts.check_moving(broker, protocol.content_moved)
    moves = protocol.send.is_short() or protocol.unfinished or protocol.browsing or protocol.closing or not connection.reading
    return None if moves else wait_ms


def beat(protocol, now):
    """Send a heartbeat when nothing else went, end a connection whose peer is silent for two: milliseconds until one of the two is due."""
    connection, ours = protocol.connection, protocol.heartbeat_ms
    if not ours:
        return CALM_MS
    silent = elapsed(now, connection.last_received)
    if silent > 2 * ours and connection.reading:
        protocol.broker.inform("%s: nothing came for %d ms, two heartbeats were missed" % (connection.name, silent), True)
        connection.finish()
        return 0
    if elapsed(now, connection.last_sent) >= ours // 2 and protocol.send.room() >= len(HEARTBEAT) and not protocol.outgoing.active():
        protocol.send.write(HEARTBEAT)
        connection.last_sent = now
    return max(min(2 * ours + 1 - silent, ours // 2 - elapsed(now, connection.last_sent)), 0)
