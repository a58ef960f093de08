"""Scenes of what queues do by themselves: lifetimes, policies, every feature."""

from peer import content
from scenes import consume_often, filled, queues, row

from leveret.core.broker.policies import Policy


@row("the first message with an expiration comes to a long queue", 100000)
def first_expiration(crowd, n):
    peer = filled(crowd, n)
    yield
    peer.fill("q", 1, given={"expiration": "60000"})


@row("all messages of a queue expire", 100000)
def expire(crowd, n):
    filled(crowd, n, {"x-message-ttl": 60000})
    yield
    crowd.pass_time(62000, 1000)
    assert crowd.broker.queues["q"].message_count() == 0


@row("all messages of a queue expire to dead letters", 20000)
def expire_dead(crowd, n):
    peer = crowd.peer()
    peer.queue("dead")
    peer.queue("q", {"x-message-ttl": 60000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.fill("q", n)
    yield
    crowd.pass_time(75000, 500)
    assert crowd.broker.queues["q"].message_count() == 0


@row("all messages of a queue expire to dead letters through a topic exchange", 20000)
def expire_topic(crowd, n):
    expiring(crowd, n, "topic", "a.#", None, {})
    yield
    expired(crowd, n)


@row("all messages of a queue expire to dead letters through a headers exchange", 20000)
def expire_headers(crowd, n):
    expiring(crowd, n, "headers", "", {"x-match": "any", "k": 1, "x-first-death-queue": "q"}, {"headers": {"k": 1}})
    yield
    expired(crowd, n)


@row("many queues expire at once", 768)
def queues_expire(crowd, n):
    peer = crowd.peer()
    for each in range(n):
        peer.queue("q%d" % each, {"x-expires": 5000})
        peer.fill("q%d" % each, 100)
    yield
    crowd.pass_time(8000)
    assert not crowd.broker.queues


@row("a single active consumer goes, with many behind it", 1000)
def single_active(crowd, n):
    peer, other = crowd.peer(), crowd.peer()
    peer.hold("q", 40 * n, arguments={"x-single-active-consumer": True})
    consume_often(other, n)
    yield
    crowd.call("received(0)", peer.connection.received, 0)
    crowd.run()
    other.rest()
    assert crowd.broker.queues["q"].unsettled_count() == 40 * n


@row("a policy of a small length comes to a long queue", 100000)
def policy_length(crowd, n):
    peer = filled(crowd, n)
    yield
    set_policy(crowd, "p", "^q", {"max-length": 10})
    peer.fill("q", 1)
    crowd.pass_time(1000)
    assert crowd.broker.queues["q"].message_count() <= 10


@row("a policy of a lifetime comes to a long queue", 100000)
def policy_ttl(crowd, n):
    peer = filled(crowd, n)
    yield
    set_policy(crowd, "p", "^q", {"message-ttl": 100000})
    peer.fill("q", 1)


@row("a policy for many queues", 768)
def policy_queues(crowd, n):
    peer = crowd.peer()
    queues(peer, n)
    yield
    set_policy(crowd, "p", "^q", {"max-length": 10})
    crowd.pass_time(2000)
    assert crowd.broker.queues["q%d" % (n - 1)].policy == "p"


@row("one more policy beside many, for many queues", 250)
def policy_many(crowd, n):
    peer = crowd.peer()
    queues(peer, 768)
    for each in range(n):
        set_policy(crowd, "p%d" % each, "^(a|q|%d)+x$" % each, {"max-length": 10})
    crowd.pass_time(10000)
    crowd.begin()
    yield
    set_policy(crowd, "p", "^(a|q)+", {"max-length": 10})
    crowd.pass_time(10000)
    assert crowd.broker.queues["q5"].policy == "p"


def expiring(crowd, n, type_, key, arguments, given):
    """n messages that go through an exchange of this type to queue dead when they expire."""
    peer = crowd.peer()
    peer.queue("dead")
    peer.exchange("e", type_)
    peer.bind("dead", "e", key, arguments)
    peer.queue("q", {"x-message-ttl": 60000, "x-dead-letter-exchange": "e", "x-dead-letter-routing-key": "a.b.c"})
    peer.fill("q", n, given=given)


def expired(crowd, n):
    """Until they have."""
    crowd.pass_time(75000, 500)
    assert crowd.broker.queues["dead"].message_count() == n


def set_policy(crowd, name, pattern, definition):
    crowd.call("set policy", crowd.broker.policies.set, crowd.broker, Policy(name, pattern, definition))


FEATURES = (
    ("x-max-priority", {"x-max-priority": 255}, lambda each: {"priority": each * 7 % 256}),
    ("x-last-value-key", {"x-last-value-key": "k"}, lambda each: {"headers": {"k": each}}),
    ("x-deduplication", {"x-deduplication": 10000}, lambda each: {"message_id": str(each)}),
    ("x-group-key, one group", {"x-group-key": "k"}, lambda each: {"headers": {"k": 1}}),
    ("x-group-key, many groups", {"x-group-key": "k"}, lambda each: {"headers": {"k": each}}),
    ("x-max-length", {"x-max-length": 100}, lambda each: {}),
    ("x-single-active-consumer", {"x-single-active-consumer": True}, lambda each: {}),
    ("x-delivery-limit", {"x-delivery-limit": 3}, lambda each: {}),
    ("x-delayed-retry-min", {"x-delayed-retry-min": 1000}, lambda each: {}),
    ("x-message-ttl and dead letters", {"x-message-ttl": 1000, "x-dead-letter-exchange": "amq.fanout"}, lambda each: {}),
)


for name, arguments, given_for in FEATURES:

    def feature(crowd, n, arguments=arguments, given_for=given_for):
        peer, other = crowd.peer(), crowd.peer()
        peer.queue("q", arguments)
        blobs = [b"".join([content(1, "", "q", b"x", given_for(each)) for each in range(at, at + 1000)]) for at in range(0, n, 1000)]
        yield
        for blob in blobs:
            peer.send(blob)
        peer.read("q", "one")
        other.read("q", "two")
        peer.rest()
        other.rest()
        peer.do("basic_nack", 0, True, True)
        peer.rest()
        crowd.pass_time(3000)
        peer.do("basic_ack", 0, True)
        crowd.call("received(0)", other.connection.received, 0)
        crowd.run()

    row("publish, delivery, return: " + name, 20000)(feature)
