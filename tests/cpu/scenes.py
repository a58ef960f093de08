"""What a peer can make the broker do, each at its largest: rows of (name, largest n, prepare, act).

`prepare(crowd, n)` makes the state and gives the peer; `act(peer, n)` is what is timed, call by call.
"""

from peer import content, encoded

from leveret.core.broker.policies import Policy

ROWS = []


def row(name, most):
    """Add a scene: a generator function that yields once, between what is prepared and what is timed."""

    def add(function):
        ROWS.append((name, most, function))
        return function

    return add


@row("queue.purge", 100000)
def purge(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.fill("q", n)
    yield
    peer.do("queue_purge", 0, "q", True)
    assert crowd.broker.queues["q"].message_count() == 0


@row("queue.delete, all ready", 100000)
def delete_ready(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.fill("q", n)
    yield
    peer.do("queue_delete", 0, "q", False, False, True)
    assert "q" not in crowd.broker.queues


@row("queue.delete, all unsettled", 100000)
def delete_unsettled(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    yield
    peer.do("queue_delete", 0, "q", False, False, True)
    assert "q" not in crowd.broker.queues


@row("basic.ack, all at once", 100000)
def ack_all(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    yield
    peer.do("basic_ack", 0, True)
    assert crowd.broker.queues["q"].unsettled_count() == 0


@row("basic.ack, one by one, in order", 100000)
def ack_each(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    yield
    peer.send(b"".join([encoded("basic_ack", 1, tag, False) for tag in range(1, n + 1)]))


@row("basic.ack, one by one, at random", 100000)
def ack_random(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    tags = shuffled(n)
    yield
    peer.send(b"".join([encoded("basic_ack", 1, tag, False) for tag in tags]))
    assert crowd.broker.queues["q"].unsettled_count() == 0


@row("basic.ack, from the middle outwards", 100000)
def ack_middle(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    tags = [tag for pair in zip(range(n // 2, n), range(n // 2 - 1, 0, -1)) for tag in pair]
    yield
    peer.send(b"".join([encoded("basic_ack", 1, tag, False) for tag in tags]))
    assert crowd.broker.queues["q"].unsettled_count() < 5


@row("basic.nack, all at once, requeued", 100000)
def nack_all(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    peer.do("basic_cancel", "c", True)
    yield
    peer.do("basic_nack", 0, True, True)
    assert crowd.broker.queues["q"].message_count() == n


@row("basic.nack, one by one at random, requeued", 20000)
def nack_random(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    peer.do("basic_cancel", "c", True)
    tags = shuffled(n)
    yield
    peer.send(b"".join([encoded("basic_nack", 1, tag, False, True) for tag in tags]))
    assert crowd.broker.queues["q"].message_count() == n


@row("basic.nack, all at once, dropped", 100000)
def nack_drop(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    yield
    peer.do("basic_nack", 0, True, False)


@row("basic.nack, all at once, to dead letters", 20000)
def nack_dead(crowd, n):
    peer = crowd.peer()
    peer.queue("dead")
    peer.hold("q", n, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    yield
    peer.do("basic_nack", 0, True, False)
    crowd.pass_time(1000)
    assert crowd.broker.queues["dead"].message_count() == n


@row("basic.recover", 100000)
def recover(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    peer.do("basic_cancel", "c", True)
    yield
    peer.do("basic_recover", True)
    assert crowd.broker.queues["q"].message_count() == n


@row("basic.recover, a queue with rules", 100000)
def recover_rules(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n, arguments={"x-single-active-consumer": True})
    peer.do("basic_cancel", "c", True)
    yield
    peer.do("basic_recover", True)


@row("basic.cancel, beside what is unsettled", 100000)
def cancel(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    yield
    peer.do("basic_cancel", "c", True)


@row("basic.cancel, of many consumers beside what is unsettled", 100000)
def cancel_many(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    peer.send(b"".join([encoded("basic_consume", 1, 0, "q", "t%d" % each, False, False, False, True, {}) for each in range(1000)]))
    yield
    peer.send(b"".join([encoded("basic_cancel", 1, "t%d" % each, True) for each in range(1000)]))


@row("channel.close", 100000)
def channel_close(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    yield
    peer.do("channel_close", 0, "", 0, 0)


@row("channel.close with many consumers", 4000)
def channel_close_consumers(crowd, n):
    peer = crowd.peer()
    peer.hold("q", 25 * n)
    peer.send(b"".join([encoded("basic_consume", 1, 0, "q", "t%d" % each, False, False, False, True, {}) for each in range(n)]))
    yield
    peer.do("channel_close", 0, "", 0, 0)


@row("connection.close", 100000)
def connection_close(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    yield
    peer.do("connection_close", 0, "", 0, 0, channel=0)


@row("a connection that is lost", 100000)
def lost(crowd, n):
    peer = crowd.peer()
    peer.hold("q", n)
    yield
    crowd.call("received(0)", peer.connection.received, 0)
    crowd.run()


@row("channel.open and close", 2000)
def channels(crowd, n):
    peer = crowd.peer()
    yield
    peer.send(b"".join([encoded("channel_open", number, "") for number in range(2, n)]))
    crowd.call("received(0)", peer.connection.received, 0)
    crowd.run()


@row("queue.declare and delete", 768)
def declares(crowd, n):
    peer = crowd.peer()
    yield
    peer.send(b"".join([encoded("queue_declare", 1, 0, "q%d" % each, False, False, False, False, True, {}) for each in range(n)]))
    peer.send(b"".join([encoded("queue_delete", 1, 0, "q%d" % each, False, False, True) for each in range(n)]))


@row("a connection with exclusive queues that is lost", 768)
def lost_exclusive(crowd, n):
    peer = crowd.peer()
    peer.send(b"".join([encoded("queue_declare", 1, 0, "q%d" % each, False, False, True, False, True, {}) for each in range(n)]))
    others = crowd.peer()
    others.send(b"".join([encoded("channel_open", number, "") for number in range(2, 2000)]))
    yield
    crowd.call("received(0)", peer.connection.received, 0)
    crowd.run()


@row("queue.bind and unbind", 12000)
def binds(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    yield
    peer.send(b"".join([encoded("queue_bind", 1, 0, "q", "amq.direct", "k%d" % each, True, {}) for each in range(n)]))
    peer.send(b"".join([encoded("queue_unbind", 1, 0, "q", "amq.direct", "k%d" % each, {}) for each in range(n)]))


@row("queue.delete with bindings", 12000)
def delete_bound(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.send(b"".join([encoded("queue_bind", 1, 0, "q", "amq.direct", "k%d" % each, True, {}) for each in range(n)]))
    yield
    peer.do("queue_delete", 0, "q", False, False, True)


@row("exchange.delete with bindings", 12000)
def delete_exchange(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.exchange("e", "topic")
    peer.send(b"".join([encoded("queue_bind", 1, 0, "q", "e", "k%d" % each, True, {}) for each in range(n)]))
    yield
    peer.do("exchange_delete", 0, "e", False, True)


@row("queue.unbind from one key that many queues have", 768)
def unbind_one_key(crowd, n):
    peer = crowd.peer()
    for each in range(n):
        peer.queue("q%d" % each)
        peer.bind("q%d" % each, "amq.topic", "a.#")
    yield
    peer.send(b"".join([encoded("queue_unbind", 1, 0, "q%d" % each, "amq.topic", "a.#", {}) for each in range(n)]))


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


for type_ in ("direct", "fanout", "topic", "headers", "x-property", "x-matcher", "x-selector", "x-lossy", "x-delayed-message"):

    def fan_out(crowd, n, type_=type_):
        peer = fan(
            crowd,
            n,
            type_,
            "k",
            None,
            {"x-delayed-type": "fanout"} if type_.startswith("x-delayed") else {"x-loss": 0.0} if type_ == "x-lossy" else None,
        )
        yield
        published(peer, n)
        assert len(peer.crowd.broker.queues) == n

    row("publish to many queues: " + type_, 768)(fan_out)


@row("publish: x-consistent-hash", 768)
def consistent_hash(crowd, n):
    peer = fan(crowd, n, "x-consistent-hash", "10")
    yield
    published(peer, n)


@row("publish: x-local-random", 768)
def local_random(crowd, n):
    peer = fan(crowd, n, "x-local-random", "")
    yield
    published(peer, n)


def bound(crowd, type_, keys, arguments=None):
    """A peer with one queue bound to exchange e as often as there are keys and arguments."""
    peer = crowd.peer()
    peer.exchange("e", type_)
    peer.queue("q0")
    frames = [encoded("queue_bind", 1, 0, "q0", "e", key, True, given) for key, given in zip(keys, arguments or [{}] * len(keys))]
    peer.send(b"".join(frames))
    assert len(crowd.broker.exchanges["e"].bindings) == len(keys), len(crowd.broker.exchanges["e"].bindings)
    return peer


@row("publish: direct, one key", 12000)
def direct_keys(crowd, n):
    peer = bound(crowd, "direct", ["k%d" % each for each in range(n)])
    yield
    published(peer, n, "k7")


@row("publish: topic, patterns of # and *", 300)
def topic_patterns(crowd, n):
    words = ("#", "*", "a", "b")
    peer = bound(crowd, "topic", [".".join([words[each >> 2 * place & 3] for place in range(6)]) + ".z%d" % each for each in range(n)])
    yield
    published(peer, n, ".".join(["a", "b"] * 60))


@row("publish: topic, deep patterns of #", 6)
def topic_deep(crowd, n):
    peer = bound(crowd, "topic", [".".join(["#", "a"] * 60) + ".b%d" % each for each in range(n)])
    yield
    published(peer, n, ".".join(["a"] * 127))


@row("publish: headers, all", 12000)
def headers_all(crowd, n):
    peer = bound(crowd, "headers", [""] * n, [{"k": "v", "n": each} for each in range(n)])
    yield
    published(peer, n, given={"headers": {"k": "v", "n": 5}})


@row("publish: headers, all of 13 shared pairs", 8192)
def headers_shared(crowd, n):
    peer = bound(crowd, "headers", [""] * n, [{"k%d" % bit: each >> bit & 1 for bit in range(13)} for each in range(n)])
    yield
    published(peer, n, given={"headers": {"k%d" % bit: 1 for bit in range(13)}})


@row("publish: headers, any, all fit", 6000)
def headers_any(crowd, n):
    peer = bound(crowd, "headers", [""] * n, [{"x-match": "any", "k": "v", "n": each} for each in range(n)])
    yield
    published(peer, n, given={"headers": {"k": "v", "n": 5}})


@row("publish: x-property", 12000)
def property_(crowd, n):
    peer = bound(crowd, "x-property", [""] * n, [{"priority": 3, "n": each} for each in range(n)])
    yield
    published(peer, n, given={"priority": 3, "headers": {"k": "v", "n": 5}})


@row("publish: x-matcher, text", 2400)
def matcher(crowd, n):
    peer = bound(crowd, "x-matcher", [""] * n, [{"k": "*a%d*b*" % each} for each in range(n)])
    yield
    published(peer, n, given={"headers": {"k": "a" * 1024}})


@row("publish: x-matcher, cards in the middle", 110)
def matcher_cards(crowd, n):
    peer = bound(crowd, "x-matcher", [""] * n, [{"k": "*" + "a?" * 20 + "%d*" % each} for each in range(n)])
    yield
    published(peer, n, given={"headers": {"k": "a" * 512}})


@row("publish: x-matcher, one long pattern", 3900)
def matcher_long(crowd, n):
    peer = bound(crowd, "x-matcher", [""], [{"k": "*" + "a?" * (n // 2) + "b*"}])
    yield
    published(peer, n, given={"headers": {"k": "a" * 25000}})


@row("publish: x-selector, many", 6000)
def selector_many(crowd, n):
    peer = bound(crowd, "x-selector", [""] * n, [{"x-selector": "n = %d" % each} for each in range(n)])
    yield
    published(peer, n, given={"headers": {"n": 5}})


@row("publish: x-selector, long", 12)
def selector_long(crowd, n):
    text = "k LIKE '%a%b'" + " OR k LIKE '%a%b'" * 200
    peer = bound(crowd, "x-selector", [""] * n, [{"x-selector": text + " OR n = %d" % each} for each in range(n)])
    yield
    published(peer, n, given={"headers": {"n": 5, "k": "a" * 25000}})


@row("publish: exchanges bound in a row", 240)
def chain(crowd, n):
    peer = crowd.peer()
    peer.queue("q0")
    names = ["e"] + ["e%d" % each for each in range(n)]
    for name in names:
        peer.exchange(name, "fanout")
    for before, after in zip(names, names[1:] + ["e"]):
        peer.do("exchange_bind", 0, after, before, "", True, {})
    peer.bind("q0", names[-1])
    yield
    published(peer, n)


@row("publish: every exchange bound to every other", 100)
def mesh(crowd, n):
    peer = crowd.peer()
    peer.queue("q0")
    names = ["e"] + ["e%d" % each for each in range(n)]
    for name in names:
        peer.exchange(name, "fanout")
    frames = [encoded("exchange_bind", 1, 0, one, other, "", True, {}) for one in names for other in names]
    peer.send(b"".join(frames))
    peer.bind("q0", names[-1])
    yield
    published(peer, n)


@row("publish: alternate exchanges in a row", 240)
def alternates(crowd, n):
    peer = crowd.peer()
    peer.queue("q0")
    names = ["e"] + ["e%d" % each for each in range(n)]
    for name, other in zip(names, names[1:] + ["e"]):
        peer.exchange(name, "direct", {"alternate-exchange": other})
    yield
    published(peer, n)


@row("publish: CC with many keys", 1300)
def copies(crowd, n):
    peer = bound(crowd, "topic", ["#.%d" % each for each in range(1000)])
    yield
    published(peer, n, given={"headers": {"CC": [""] * n}})


@row("the first message with an expiration comes to a long queue", 100000)
def first_expiration(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.fill("q", n)
    yield
    peer.fill("q", 1, given={"expiration": "60000"})


@row("all messages of a queue expire", 100000)
def expire(crowd, n):
    peer = crowd.peer()
    peer.queue("q", {"x-message-ttl": 60000})
    peer.fill("q", n)
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


@row("a policy of a small length comes to a long queue", 100000)
def policy_length(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.fill("q", n)
    yield
    set_policy(crowd, "p", "^q", {"max-length": 10})
    peer.fill("q", 1)
    crowd.pass_time(1000)
    assert crowd.broker.queues["q"].message_count() <= 10


@row("a policy of a lifetime comes to a long queue", 100000)
def policy_ttl(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.fill("q", n)
    yield
    set_policy(crowd, "p", "^q", {"message-ttl": 100000})
    peer.fill("q", 1)


@row("a policy for many queues", 768)
def policy_queues(crowd, n):
    peer = crowd.peer()
    for each in range(n):
        peer.queue("q%d" % each)
    yield
    set_policy(crowd, "p", "^q", {"max-length": 10})
    crowd.pass_time(2000)
    assert crowd.broker.queues["q%d" % (n - 1)].policy == "p"


@row("one more policy beside many, for many queues", 250)
def policy_many(crowd, n):
    peer = crowd.peer()
    for each in range(768):
        peer.queue("q%d" % each)
    for each in range(n):
        set_policy(crowd, "p%d" % each, "^(a|q|%d)+x$" % each, {"max-length": 10})
    crowd.pass_time(10000)
    crowd.begin()
    yield
    set_policy(crowd, "p", "^(a|q)+", {"max-length": 10})
    crowd.pass_time(10000)
    assert crowd.broker.queues["q5"].policy == "p"


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


@row("delivery to many consumers of one queue", 4000)
def consumers(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.send(b"".join([encoded("basic_consume", 1, 0, "q", "t%d" % each, False, False, False, True, {}) for each in range(n)]))
    yield
    peer.fill("q", 2000)


@row("delivery to many consumers, all without credit", 4000)
def consumers_full(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.do("basic_qos", 0, 1, False)
    peer.send(
        b"".join([encoded("basic_consume", 1, 0, "q", "t%d" % each, False, False, False, True, {"x-priority": 1}) for each in range(n)])
    )
    peer.fill("q", n)
    yield
    peer.fill("q", 2000)
    peer.send(b"".join([encoded("basic_ack", 1, tag, False) for tag in range(1, 1000)]))


@row("basic.ack at a prefetch of the channel, many consumers", 4000)
def prefetch(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.send(b"".join([encoded("basic_consume", 1, 0, "q", "t%d" % each, False, False, False, True, {}) for each in range(n)]))
    peer.fill("q", 20000)
    peer.do("basic_qos", 0, 1, True)
    yield
    peer.send(b"".join([encoded("basic_ack", 1, tag, False) for tag in range(1, 12001)]))


@row("basic.qos of a channel with many consumers", 4000)
def qos(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.send(b"".join([encoded("basic_consume", 1, 0, "q", "t%d" % each, False, False, False, True, {}) for each in range(n)]))
    yield
    peer.send(b"".join([encoded("basic_qos", 1, 0, each, True) for each in range(1, 600)]))


@row("basic.cancel of many consumers", 4000)
def cancels(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.send(b"".join([encoded("basic_consume", 1, 0, "q", "t%d" % each, False, False, False, True, {}) for each in range(n)]))
    yield
    peer.send(b"".join([encoded("basic_cancel", 1, "t%d" % each, True) for each in reversed(range(n))]))


@row("basic.get", 20000)
def gets(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.fill("q", n)
    yield
    peer.send(encoded("basic_get", 1, 0, "q", True) * n)
    assert crowd.broker.queues["q"].message_count() == 0


@row("tx.commit of publishes", 20000)
def commit(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.do("tx_select")
    peer.fill("q", n)
    yield
    peer.do("tx_commit")
    assert crowd.broker.queues["q"].message_count() == n


@row("tx.commit of publishes to many queues", 400)
def commit_fan(crowd, n):
    peer = fan(crowd, 200, "fanout", "")
    peer.do("tx_select")
    peer.fill("", n, "e")
    yield
    peer.do("tx_commit")
    assert crowd.broker.queues["q7"].message_count() == n


@row("tx.commit of publishes to a queue with rules", 20000)
def commit_rules(crowd, n):
    peer = crowd.peer()
    peer.queue("q", {"x-max-priority": 9})
    peer.do("tx_select")
    peer.fill("q", n, given={"priority": 3})
    yield
    peer.do("tx_commit")
    assert crowd.broker.queues["q"].message_count() == n


@row("tx.commit of one rejection of many", 20000)
def commit_rejection(crowd, n):
    peer = crowd.peer()
    peer.do("tx_select")
    other = crowd.peer()
    other.queue("dead")
    other.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    other.fill("q", n)
    peer.read("q")
    peer.rest()
    yield
    peer.do("basic_nack", 0, True, False)
    peer.do("tx_commit")
    crowd.pass_time(1000)
    assert crowd.broker.queues["dead"].message_count() == n


@row("tx.rollback of publishes", 100000)
def rollback(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.do("tx_select")
    peer.fill("q", n)
    yield
    peer.do("tx_rollback")


@row("tx.commit of acknowledgements", 20000)
def commit_acks(crowd, n):
    peer = crowd.peer()
    peer.do("tx_select")
    other = crowd.peer()
    other.queue("q")
    other.fill("q", n)
    peer.read("q")
    peer.rest()
    yield
    peer.send(b"".join([encoded("basic_ack", 1, tag, False) for tag in shuffled(n)]))
    peer.do("tx_commit")
    assert crowd.broker.queues["q"].unsettled_count() == 0


@row("confirms", 20000)
def confirms(crowd, n):
    peer = crowd.peer()
    peer.queue("q")
    peer.do("confirm_select", True)
    yield
    peer.fill("q", n)


@row("mandatory publishes that are returned", 5000)
def returns(crowd, n):
    peer = crowd.peer()
    yield
    peer.send(content(1, "", "nowhere", b"x", mandatory=True) * n)


@row("a stream: publish, read, settle", 20000)
def stream(crowd, n):
    peer = crowd.peer()
    peer.queue("s", {"x-queue-type": "stream"}, durable=True)
    yield
    peer.fill("s", n)
    peer.do("basic_qos", 0, 50000, False)
    peer.read("s", "c", arguments={"x-stream-offset": "first"})
    peer.rest()
    peer.do("basic_ack", 0, True)


def shuffled(n):
    """The numbers from 1 to n, the same order each time."""
    import random

    tags = list(range(1, n + 1))
    random.Random(1).shuffle(tags)
    return tags
