"""Rules with several homes: frame by frame in Python, in publish.py and hot.py, in C. What a peer sees and what a queue holds is the same.

Each home names the others. `ByFrame` takes no message by `ingest`: sessions, Queue and the features decide alone. A form of `ingest` that
is stricter than the rule would go unseen, because sessions take what it leaves: so the frames that they take are counted.
"""

import inspect
import os
import random
import re

import pytest
from peer import assemble, content, encoded, split
from test_same import SEEDS, ByTables, Side

from leveret import c_accel
from leveret.core.amqp_0_9 import session
from leveret.core.broker import engine, publish
from leveret.core.memory import hot, layout, levels
from leveret.core.queue import queue
from leveret.core.queue.features import delivery_limit, expiry, length


class ByFrame(engine.Plain):
    """Every frame is taken by its session."""

    ingests = False


COUNTED = ("published", "dropped_head", "rejected_publishes", "expired", "dead_lettered")
FORMS = (ByFrame, engine.Plain, ByTables)


def source_of(found):
    """The text of a function of Python, or of C with the comment before it."""
    if not isinstance(found, tuple):
        return inspect.getsource(found)
    with open(os.path.join(os.path.dirname(c_accel.__file__), found[0]), encoding="utf-8") as file:
        return re.search(r"\n(/\*(?:(?!\*/).)*\*/\n)?(?:static )?[^\n;(]* %s\(.*?\n}" % found[1], file.read(), re.DOTALL).group(0)


# rule -> its homes
HOMES = {
    "share": (queue.Queue.over_share, publish.may_push, ("publish.h", "may_push")),
    "length": (length.Rule.over, publish.is_over, ("publish.h", "is_over")),
    "lifetime": (expiry.Rule.write_deadline, publish.keep_limits, ("publish.h", "keep_limits")),
    "level": (levels.to_level, ("queues.h", "to_level")),
    "returns": (delivery_limit.Rule.came_back, publish.may_return, ("settle.c", "may_return")),
    "expired": (expiry.Rule.let_go, hot.expire, ("queues.h", "expire")),
}


@pytest.mark.parametrize("rule", HOMES)
def test_each_home_of_a_rule_names_the_rule_and_the_test_that_holds_them(rule):
    for home in HOMES[rule]:
        assert 'Rule "%s"' % rule in source_of(home) and "test_homes" in source_of(home), home


class Three:
    """The three forms, with a publisher in confirm mode (connection 0) and somebody who gets (connection 1)."""

    def __init__(self, monkeypatch, queues, **limits):
        self.sides = [Side(form, **limits) for form in FORMS]
        self.frames = {side.broker: 0 for side in self.sides}
        one_frame = session.Session.one_frame

        def counting(taken):
            self.frames[taken.broker] += taken.connection is not None
            return one_frame(taken)

        for side in self.sides:
            side.connect(0)
            side.connect(1)
            side.seen = {}
            side.give(0, encoded("confirm_select", 1, False))
            for name, arguments in queues:
                side.give(1, encoded("queue_declare", 1, 0, name, False, False, False, False, False, arguments))
            for number in range(len(queues)):  # the way is known from here on
                side.give(0, content(1, "", queues[number][0], b""))
                side.give(1, encoded("queue_bind", 1, 0, queues[number][0], "amq.fanout", "", False, {}))
            side.give(0, content(1, "amq.fanout", "all", b""))
            for name, _ in queues:
                side.give(1, encoded("queue_purge", 1, 0, name, False))
            side.take(0, 100000), side.take(1, 100000)
        monkeypatch.setattr(session.Session, "one_frame", counting)

    def publish(self, name, body, given=None):
        """To one queue, or "all": whether it was taken whole."""
        octets = content(1, "amq.fanout" if name == "all" else "", name, body, given)
        taken = [side.give(0, octets) == len(octets) and side.peers[0].connection.session.held is None for side in self.sides]
        self.compare()
        assert len(set(taken)) == 1
        return taken[0]

    def get(self, name):
        """What basic.get brings to all. C answers it itself: what ingest leaves of gets is not counted."""
        found, before = [], dict(self.frames)
        for side in self.sides:
            side.give(1, encoded("basic_get", 1, 0, name, True))
            frames = said(side, 1)
            found.append(assemble(frames) if frames[0][0] == "basic_get_ok" else frames)
        assert found[1:] == found[:-1]
        self.frames.update(before)
        self.compare()
        return found[0]

    def tick(self, now):
        for side in self.sides:
            side.broker.tick(now, 86400 * 365 * 55)
        self.compare()

    def compare(self):
        shown = [self.shown(side) for side in self.sides]
        assert shown[1:] == shown[:-1]
        by_frame, plain, in_c = self.frames.values()
        assert plain == in_c, "frames that ingest has left to sessions"

    def shown(self, side):
        """What queues hold (bodies' sizes, deadlines), what is counted, which publishes are confirmed and how."""
        broker = side.broker
        broker.run()
        tables = broker.tables
        for name, _, given in said(side, 0):
            if name in ("basic_ack", "basic_nack"):
                tag, multiple = given[0], given[1]
                for each in range(1 if multiple else tag, tag + 1):
                    side.seen.setdefault(each, name)
        held = {
            found.name: [
                (tables.messages[tables.entries[entry] + layout.MESSAGE_BODY], tables.entries[entry + layout.ENTRY_DEADLINE])
                for entry in broker.entries_of(found)
            ]
            for found in broker.queues.values()
        }
        broker.fold_counters()
        counters = {name: broker.counters.get(name) for name in COUNTED}
        return held, counters, side.seen, side.peers[0].connection.reading


def said(side, number):
    """The frames that a connection has to send."""
    octets, more = b"", side.take(number, 1 << 20)
    while more:
        octets += more
        side.broker.run()
        more = side.take(number, 1 << 20)
    return split(octets)[0]


ARGUMENTS = (
    {"x-max-length": 3},
    {"x-max-length": 0},
    {"x-max-length-bytes": 100},
    {"x-max-length": 4, "x-max-length-bytes": 150},
    {"x-max-length": 2, "x-overflow": "reject-publish"},
    {"x-max-length-bytes": 90, "x-overflow": "reject-publish"},
    {"x-max-length": 3, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "other"},
)


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_a_queue_holds_as_much_and_the_same_goes_whoever_decides(monkeypatch, arguments):
    """x-max-length, x-max-length-bytes, x-overflow; the exact maximum, one below and one above it among the bodies."""
    random_ = random.Random(random.randrange(1 << 30))
    three = Three(monkeypatch, (("q", arguments), ("other", {})), message_count_max=200, entry_count_max=400)
    most = arguments.get("x-max-length-bytes", 100)
    for _ in range(80):
        three.publish("q", bytes(random_.choice((0, 1, 40, most - 1, most, most + 1, random_.randrange(60)))))
        if random_.random() < 0.3:
            three.get("q")
    assert three.sides[1].seen and len(set(three.frames.values())) > 1, "ingest took nothing"


@pytest.mark.parametrize("arguments", ({"x-message-ttl": 100}, {"x-message-ttl": 0}, {"x-message-ttl": 50, "x-max-length": 5}, {}), ids=str)
def test_a_message_lives_as_long_whoever_writes_its_deadline(monkeypatch, arguments):
    """x-message-ttl and expiration: the shorter counts; over at the same millisecond, also where the clock wraps."""
    random_ = random.Random(random.randrange(1 << 30))
    three = Three(monkeypatch, (("q", arguments),))
    now = layout.MASK - 500
    three.tick(now)
    for _ in range(120):
        given = random_.choice(({}, {"expiration": random_.choice(("0", "1", "49", "50", "51", "100", "3000"))}))
        three.publish("q", bytes(random_.randrange(20)), given)
        now += random_.choice((0, 0, 1, 1, 49, 50))
        three.tick(now & layout.MASK)
        if random_.random() < 0.3:
            three.get("q")


@pytest.mark.parametrize("arguments", ({"x-max-priority": 2}, {"x-max-priority": 255}, {"x-max-priority": 4, "x-max-length": 5}), ids=str)
def test_a_message_has_the_same_place_among_levels_whoever_finds_it(monkeypatch, arguments):
    """x-max-priority: also at a maximum length, where the highest level goes first."""
    random_ = random.Random(random.randrange(1 << 30))
    three = Three(monkeypatch, (("q", arguments), ("other", {})))
    for number in range(150):
        given = random_.choice(({}, {"priority": random_.randrange(6)}, {"priority": random_.choice((2, 3, 254, 255))}))
        three.publish("q", bytes(number), given)
        if random_.random() < 0.35:
            three.get("q")
    assert len(set(three.frames.values())) > 1, "ingest took nothing"


@pytest.mark.parametrize("seed", range(max(SEEDS // 8, 3)))
def test_a_queue_gets_its_share_of_memory_whoever_decides(monkeypatch, seed):
    """At most four times what is left: of blocks (large bodies), of messages, of entries; two queues that fill and drain at random."""
    random_ = random.Random(seed)
    count = random_.choice((30, 300)) if seed % 2 == 0 else 30
    three = Three(
        monkeypatch,
        (("q", {}), ("other", {})),
        arena_size=16384,
        content_size_max=4096,
        message_count_max=count,
        entry_count_max=count + count // 5,
    )
    names = (("q", "q", "other"), ("all", "all", "q", "other"))[seed % 2]
    waited = 0
    for _ in range(400):
        name = random_.choice(names)
        if three.sides[0].peers[0].connection.session.held is not None or random_.random() < 0.25:
            three.get(random_.choice(("q", "other")) if name == "all" else name)
        else:
            waited += not three.publish(name, bytes(random_.choice((1, 100, 700))))
    assert waited > 3, "the share was never reached"
    assert len(set(three.frames.values())) > 1, "ingest took nothing"


COMES_BACK = ({"x-delivery-limit": 0}, {"x-delivery-limit": 3}, {"x-delivery-limit": 2, "x-max-length": 9})


@pytest.mark.parametrize("arguments", COMES_BACK, ids=str)
def test_a_message_comes_back_as_often_whoever_counts(monkeypatch, arguments):
    """x-delivery-limit: with returns of one and of many, by a consumer that has got them."""
    random_ = random.Random(random.randrange(1 << 30))
    three = Three(monkeypatch, (("q", arguments), ("other", {})))
    for side in three.sides:
        side.give(1, encoded("basic_consume", 1, 0, "q", "c", False, False, False, False, {}))
    held: list = []
    for number in range(120):
        if number % 2 == 0:
            three.publish("q", b"%d" % number)
        found = [[each[2][1] for each in said(side, 1) if each[0] == "basic_deliver"] for side in three.sides]
        assert found[1:] == found[:-1]
        held += found[0]
        if held:
            tag, multiple, requeue = random_.choice(held), random_.random() < 0.5, random_.random() < 0.9
            held = [each for each in held if each != tag and not (multiple and each < tag)]
            for side in three.sides:
                side.give(1, encoded("basic_nack", 1, tag, multiple, requeue))
        three.compare()
        counted = [side.broker.counters["delivery_limit"] for side in three.sides]
        assert counted[1:] == counted[:-1]
    assert counted[0] > 0
