"""Says to a broker what clients have said before, in the order in which they did: on CPython and inside MicroPython alike.

A step is (name of a client, octets). A client's connection is opened with its first step; `drafts` names those that speak a draft of 2005,
which their listener names.
"""

from leveret.core.connection.connection import Connection


def feed(broker, connection, octets):
    """Give the broker what a client sends, and return what it says."""
    at, said = 0, b""
    while at < len(octets) or connection.session is not None and connection.session.state == "login":
        view = connection.writable()
        size = min(len(view), len(octets) - at)
        for index in range(size):
            view[index] = octets[at + index]
        connection.received(size)
        at += size
        broker.run()
    for _ in range(20):
        broker.run()
        said += bytes(connection.pending())
        connection.sent(len(connection.pending()))
    return said


def connected(broker, draft=None):
    """A Connection of a listener, which may name a draft."""
    connection = Connection(broker, "peer", True)
    if draft is not None:
        from leveret.core.amqp_0_9.drafts.family import families

        connection.families = families(draft)
    return connection


def replayed(broker, steps, listener, since, drafts):
    """What the client `listener` hears from step `since` on."""
    connections: "dict" = {}
    heard = b""
    for number in range(len(steps)):
        name, octets = steps[number]
        if name not in connections:
            connections[name] = connected(broker, name if name in drafts else None)
        said = feed(broker, connections[name], octets)
        if name != listener:
            said = feed(broker, connections[listener], b"") if listener in connections else b""
        if number >= since:
            heard += said
    return heard
