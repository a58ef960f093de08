"""The end of a peer that takes nothing of what waits for it, whatever it sends meanwhile: limit send_timeout_ms, 30 s as in RabbitMQ.

A peer without an address is another part of this program or at a serial line, which may be away for longer; one that is not read may be
unable to read before it is. Both are waited for.
"""

from ..shim import elapsed


def bounded(connection, now, wait_ms):
    """The connection's tick at `now`: what it had not settled goes back when its peer has taken no octet for send_timeout_ms. Returns
    `wait_ms`, the milliseconds until its session wants the next tick (None: soon), or fewer, since this end may be due before."""
    most = connection.broker.limits.send_timeout_ms
    if connection.closed:
        return None
    left = most
    if connection.send.start == connection.send.end or not connection.reading or not most or not connection.address:
        connection.stuck_since = -1
    elif connection.stuck_since < 0:
        connection.stuck_since = now
    else:
        left = most - elapsed(now, connection.stuck_since)
        if left < 0:
            text = "%s: the peer has taken nothing for %d ms of what waits for it (limit send_timeout_ms)"
            connection.broker.inform(text % (connection.name, most), True)
            connection.finish()
            return None
        left += 1
    return wait_ms if wait_ms is None or not most else min(wait_ms, left)
