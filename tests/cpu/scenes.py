"""What a peer can make the broker do, each at its largest: rows of (name, largest n, scene), which test_turns.py times call by call.

A scene is a generator function of (crowd, n) that yields once, between what is prepared and what is timed. The files *_scenes.py
add theirs by subject; here is what they share.
"""

from peer import content, encoded

ROWS = []


def row(name, most):
    """Add a scene: a generator function that yields once, between what is prepared and what is timed."""

    def add(function):
        ROWS.append((name, most, function))
        return function

    return add


def shuffled(n):
    """The numbers from 1 to n, the same order each time."""
    import random

    tags = list(range(1, n + 1))
    random.Random(1).shuffle(tags)
    return tags


def holding(crowd, n):
    """A peer with n messages of queue q, unsettled."""
    peer = crowd.peer()
    peer.hold("q", n)
    return peer


def filled(crowd, n, arguments=None):
    """A peer with n messages in queue q."""
    peer = crowd.peer()
    peer.queue("q", arguments)
    peer.fill("q", n)
    return peer


def queues(peer, n):
    """Declare q0 and so on."""
    for each in range(n):
        peer.queue("q%d" % each)


def acknowledge(peer, tags):
    """Each tag by a basic.ack of its own, all in one go."""
    peer.send(b"".join([encoded("basic_ack", 1, tag, False) for tag in tags]))


def consume_often(peer, n, arguments=None):
    """n consumers of queue q."""
    peer.send(
        b"".join([encoded("basic_consume", 1, 0, "q", "t%d" % each, False, False, False, True, arguments or {}) for each in range(n)])
    )


def bind_often(peer, n, exchange):
    """n bindings of queue q."""
    peer.send(b"".join([encoded("queue_bind", 1, 0, "q", exchange, "k%d" % each, True, {}) for each in range(n)]))


def fan(crowd, n, type_, key, arguments=None, exchange_arguments=None):
    """A peer with n queues bound to exchange e."""
    peer = crowd.peer()
    peer.exchange("e", type_, exchange_arguments)
    for each in range(n):
        peer.queue("q%d" % each)
        peer.bind("q%d" % each, "e", key, arguments)
    return peer


def published(peer, n, key="k", given=None, count=20, exchange="e"):
    """Publish to many queues, then read one of them."""
    one = content(1, exchange, key, b"x", given)
    for _ in range(count):
        peer.send(one)
    peer.read("q0", "reader", True)
