"""Ways that the route cache does not know: what C finds in a tree laid flat is what core/patterns/topic.py finds, in the same order.

First the matcher alone, on random patterns that come and go; then whole brokers side by side (test_same.py), with keys enough that the
cache overflows, while bindings change, and where exchanges are bound to exchanges.
"""

import os
import random

import pytest
from peer import content, encoded
from test_same import Pair

from leveret.c_accel import matching
from leveret.core.amqp_0_9.session import Session
from leveret.core.exchange import walk
from leveret.core.exchange.base import Binding
from leveret.core.exchange.types import direct, fanout, topic
from leveret.core.memory import layout

SEEDS = int(os.environ.get("LEVERET_SAME_SEEDS", "40")) // 4
WORDS = (b"a", b"b", b"", b"cc", b"*", b"#")
FORMS = (topic, direct, fanout)


class Queue:
    """A destination."""

    is_exchange = False

    def __init__(self, handle):
        self.handle = handle
        self.name = "q%d" % handle
        self.bound = {}


def a_key(random_, words):
    return b".".join([random_.choice(words) for _ in range(random_.choice((0, 1, 1, 2, 2, 3, 4, 7)))])


def check(exchange, key):
    """C and Python find the same queues for a key in the same order."""
    matcher = matching.Matcher(exchange)
    matcher.lay_flat()
    found, count = matcher.targets(key)
    expected = [queue.handle for queue in walk.each_once(exchange.match(key, None))]
    assert (found, count) == (expected[:64], min(len(expected), 65)), (key, [each.key for each in exchange.bindings.values()])
    return count


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.Type.type)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_bindings_that_come_and_go(form, seed):
    random_ = random.Random(seed)
    exchange = form.Type("x", False, False, False, {})
    queues = [Queue(number) for number in range(random_.choice((1, 5, 100)))]
    made = []
    for _ in range(60):
        if made and random_.random() < 0.3:
            exchange.unbind(made.pop(random_.randrange(len(made))))
        else:
            binding = Binding(exchange, random_.choice(queues), a_key(random_, WORDS), {"n": random_.randrange(3)} if seed % 2 else {})
            if binding.identity not in exchange.bindings:
                exchange.bind(binding)
                made.append(binding)
        check(exchange, a_key(random_, WORDS))
        if made:
            check(exchange, random_.choice(made).key)


def test_the_longest_keys_and_patterns_of_many_loose_words():
    exchange = topic.Type("x", False, False, False, {})
    patterns = (b".".join([b"#", b"a"] * 60), b".".join([b"a"] * 128), b"#", b"#.#", b"*.#", b"." * 255, b"#" + b".*" * 127)
    for number, pattern in enumerate(patterns):
        exchange.bind(Binding(exchange, Queue(number), pattern, {}))
    for key in (b".".join([b"a"] * 128), b".".join([b"a"] * 100), b"", b"." * 255, b"a" * 255, b".a" * 127 + b"."):
        assert check(exchange, key) > 0


def test_more_queues_than_are_remembered():
    exchange = fanout.Type("x", False, False, False, {})
    for number in range(70):
        exchange.bind(Binding(exchange, Queue(number), b"", {}))
        assert check(exchange, b"k") == min(number + 1, 65)


PATTERNS = ("a.*", "#.z", "#", "*.b.#", "", "a..b", "a.b", "*", "x.#.y")


def brokers(**limits):
    """Two brokers, one in each form, with a publisher that makes topic, direct and fanout exchanges, and queues bound to them."""
    pair = Pair(**limits)
    pair.both(lambda side: side.connect(0))
    octets = [
        encoded("exchange_declare", 1, 0, name, kind, False, False, False, False, False, {})
        for name, kind in (("t", "topic"), ("d", "direct"), ("f", "fanout"), ("inner", "topic"), ("outer", "topic"))
    ]
    octets += [encoded("queue_declare", 1, 0, "q%d" % number, False, False, False, False, False, {}) for number in range(4)]
    octets += [encoded("queue_bind", 1, 0, "q%d" % (number % 4), "t", pattern, False, {}) for number, pattern in enumerate(PATTERNS)]
    octets += [encoded("queue_bind", 1, 0, "q1", "d", "k%d" % number, False, {}) for number in range(3)]
    octets += [
        encoded("queue_bind", 1, 0, "q2", "f", "", False, {}),
        encoded("queue_bind", 1, 0, "q3", "inner", "#.z", False, {}),
        encoded("exchange_bind", 1, 0, "inner", "outer", "a.#", False, {}),
    ]
    for each in octets:
        pair.give(0, each)
        pair.both(lambda side: side.take(0, 10000))
    return pair


def a_publish(random_):
    exchange, key = random_.choice(
        (
            ("t", a_key(random_, (b"a", b"b", b"z", b"", b"x", b"y"))),
            ("t", b"a.%d" % random_.randrange(500)),
            ("t", b"none.%d" % random_.randrange(9)),
            ("d", b"k%d" % random_.randrange(5)),
            ("f", b"any%d" % random_.randrange(300)),
            ("outer", b"a.%d.z" % random_.randrange(50)),
            ("inner", b"z"),
            ("", b"q%d" % random_.randrange(5)),
        )
    )
    return content(1, exchange, str(key, "utf-8"), b"x" * random_.choice((0, 5)), {}, random_.random() < 0.05)


def a_change(random_):
    name, destination, exchange = random_.choice(
        (("queue", "q%d" % random_.randrange(4), random_.choice("tdf")), ("exchange", "inner", "outer"), ("exchange", "inner", "t"))
    )
    unbind = random_.random() < 0.6
    given = (1, 0, destination, exchange, random_.choice(PATTERNS), False, {})
    return encoded(name + ("_unbind" if unbind else "_bind"), *(given[:5] + given[6:] if unbind and name == "queue" else given))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_brokers_side_by_side_with_more_keys_than_places(seed):
    random_ = random.Random(seed)
    pair = brokers(route_count_max=8, message_count_max=4000, entry_count_max=8000, arena_size=1 << 20, granted_count_max=64)
    for _ in range(60):
        octets = b"".join([a_publish(random_) for _ in range(random_.choice((1, 5, 20)))])
        if random_.random() < 0.15:
            octets += a_change(random_)
        at = 0
        while at < len(octets):
            piece = random_.choice((5, 50, 5000))
            pair.give(0, octets[at : at + piece])
            at += piece
        pair.both(lambda side: (side.broker.run(), side.take(0, 100000)))
        if random_.random() < 0.2:
            pair.give(0, encoded("queue_purge", 1, 0, "q%d" % random_.randrange(4), False))
            pair.both(lambda side: side.take(0, 10000))
    assert not any(pair.both(lambda side: [peer.connection.closed for peer in side.peers]))


def test_python_is_asked_once_for_an_exchange_and_not_for_each_key(monkeypatch):
    """With thousands of bindings too, and with permission to write known; a change of bindings is seen by the next message."""
    pair = brokers(
        route_count_max=8, message_count_max=4000, entry_count_max=8000, arena_size=1 << 20, binding_count_max=5000, binding_share_max=5000
    )
    in_c = [side for side in pair.sides if side.broker.tables.engine.name == "C"][0]
    for number in range(1000):
        in_c.give(0, encoded("queue_bind", 1, 0, "q0", "t", "s%d.*.t" % number, True, {}))
        in_c.take(0, 10000)
    in_c.give(0, content(1, "t", "first", b"x"))  # frame by frame: it is not known yet that the user may publish there
    assert "t" in in_c.peers[0].connection.session.writable
    asked = []
    find_way = Session.find_way
    monkeypatch.setattr(Session, "find_way", lambda self, at: asked.append(at) or find_way(self, at))
    with monkeypatch.context() as patch:
        patch.setattr(Session, "one_frame", lambda self: pytest.fail("a publish was taken frame by frame"))
        for number in range(1500):
            in_c.give(0, content(1, "t", "s%d.%d.t" % (number % 1000, number), b"x"))
    assert 0 < len(asked) <= 1100 // matching.ASKED_SHARE
    assert [in_c.broker.queues[name].message_count() for name in ("q0", "q2")] == [1500, 1501]
    in_c.give(0, encoded("queue_unbind", 1, 0, "q2", "t", "#", {}) + content(1, "t", "s1.1.t", b"x"))
    assert [in_c.broker.queues[name].message_count() for name in ("q0", "q2")] == [1501, 1501]


def test_a_key_that_the_cache_has_no_room_for_is_not_remembered():
    """route_count_max 8: 256 octets of routes; exchange and key take up to 258 and more."""
    pair = brokers(route_count_max=8, message_count_max=4000, entry_count_max=8000, arena_size=1 << 20, granted_count_max=64)
    for number in range(100):
        octets = content(1, "t", "a." + "z" * (245 + number % 9), b"x") + content(1, "t", "a.%d" % number, b"x")
        pair.give(0, octets)
        pair.both(lambda side: (side.broker.run(), side.take(0, 100000)))
    used, room = pair.both(lambda side: (side.broker.tables.state[layout.STATE_ROUTE_OCTETS], len(side.broker.tables.route_octets)))
    assert used <= room
    assert not any(pair.both(lambda side: [peer.connection.closed for peer in side.peers]))
    assert pair.both(lambda side: side.broker.counters["internal_errors"]) == 0
