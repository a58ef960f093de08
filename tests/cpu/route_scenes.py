"""Scenes of publishes through every type of exchange."""

from peer import encoded
from scenes import fan, published, row

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
