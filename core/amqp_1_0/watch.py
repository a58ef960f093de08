"""What time does to a 1.0 connection: empty frames (section 2.4.5), and an end for what does not move.

`tick` answers how many milliseconds the protocol needs no further tick, None: it needs the next one.
"""

from ..broker import timeouts
from ..errors import PRECONDITION_FAILED, RESOURCE_ERROR, ProtocolError
from ..shim import elapsed
from . import frame

CLOSING_MS = 3000  # how long the answer to a close may take
CALM_MS = 3600000  # for a connection of which nothing is due
DYNAMIC_MS = 1000  # how often nodes that wait for messages to go are looked at
EMPTY = frame.write(frame.AMQP, 0, b"")


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
    if protocol.send.is_short():
        protocol.room()
    protocol.drain()
    if protocol.dynamic.waits:
        protocol.dynamic.look()
        wait_ms = min(wait_ms, DYNAMIC_MS)
    for session in protocol.sessions():
        if watch_unsettled(protocol, session, now):
            wait_ms = min(wait_ms, timeouts.UNSETTLED_EVERY_MS)
    if protocol.unfinished and connection.reading:
        timeouts.check_moving(broker, protocol.content_moved)
    moves = protocol.send.is_short() or protocol.unfinished or protocol.draining or protocol.closing or not connection.reading
    return None if moves else wait_ms


def beat(protocol, now):
    """Send an empty frame when nothing else went for half of the peer's time, end the connection of a peer that is silent for twice ours:
    milliseconds until one of the two is due."""
    connection, wait_ms = protocol.connection, CALM_MS
    ours_ms = protocol.broker.limits.heartbeat_s * 1000
    if ours_ms and connection.reading:
        silent = elapsed(now, connection.last_received)
        if silent > 2 * ours_ms:
            raise ProtocolError(RESOURCE_ERROR, "nothing came for %d ms; idle-time-out is %d ms (section 2.4.5)" % (silent, ours_ms), True)
        wait_ms = 2 * ours_ms + 1 - silent
    if protocol.idle_ms:
        if elapsed(now, connection.last_sent) >= protocol.idle_ms // 2 and protocol.send.room() >= len(EMPTY):
            protocol.send.write(EMPTY)
            connection.last_sent = now
        wait_ms = min(wait_ms, protocol.idle_ms // 2 - elapsed(now, connection.last_sent))
    return max(wait_ms, 0)


def watch_unsettled(protocol, session, now):
    """End a session whose oldest delivery has been unsettled for too long; true when it has one."""
    most = timeouts.overdue(protocol.broker, session, now)
    if most:
        session.step("error", PRECONDITION_FAILED, "a delivery was not settled within %d ms (consumer_timeout)" % most)
    return most is not None
