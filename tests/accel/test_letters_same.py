"""Dead letters that C makes (c_accel/letters.c): receivers get the same as from plain Python, and the log keeps the same.

test_same.py compares every table; here the forms make letters at other moments of a round (C needs no decision), so what is compared is
what peers see: each queue's letters in their order, confirms, counters, and what a restart finds.
"""

import random

import pytest
from invariants import Steps
from memory_store import MemoryStore, durable_broker
from peer import Peer, assemble, content, encoded, new_broker

from leveret import c_accel
from leveret.core.broker import engine
from leveret.core.broker.policies import Policy
from leveret.core.memory import layout

FORMS = (engine.Plain, c_accel.Engine)
LETTER = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
QUEUES = (
    ("dead", {}),
    ("brief", dict(LETTER, **{"x-message-ttl": 0})),
    ("nothing", dict(LETTER, **{"x-max-length": 0})),
    ("three", dict(LETTER, **{"x-max-length": 3})),
    ("octets", dict(LETTER, **{"x-max-length-bytes": 200})),
    ("rejected", {"x-dead-letter-exchange": "amq.fanout"}),
    ("bound", {"x-max-priority": 3}),
    ("itself", {"x-message-ttl": 5, "x-dead-letter-exchange": ""}),
    ("again", {"x-message-ttl": 40, "x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": "far"}),
    ("lost", {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "nowhere"}),
    ("few", dict(LETTER, **{"x-max-length": 2, "x-dead-letter-routing-key": "three"})),
)
ENDS = ("dead", "bound", "three", "octets")
KEYS = [name for name, arguments in QUEUES if arguments]
GIVEN = (
    {},
    {"delivery_mode": 2, "message_id": "m" * 20, "headers": {"device": "d", "n": 1}},
    {"delivery_mode": 2, "content_type": "text/plain", "content_encoding": "x", "priority": 2},
    {"delivery_mode": 2, "headers": {}},
    {"headers": {"CC": ["dead"]}},
    {"headers": {"x-death": [{"queue": "three", "reason": "maxlen", "count": 2}]}},
    {"expiration": "3", "delivery_mode": 2},
    {"headers": {"note": "of death"}},
    {"correlation_id": "c" * 90, "headers": {"h" * 20: "v" * 60}, "delivery_mode": 2},
)
COUNTED = ("published", "expired", "dropped_head", "rejected", "dead_lettered", "dead_letters_lost", "settled", "internal_errors")


def new_side(form, durable, **given):
    """(broker, its store) with an engine."""
    before, engine.chosen = engine.chosen, form
    store = MemoryStore()
    limits = dict({"arena_size": 1 << 20, "message_count_max": 4000, "entry_count_max": 8000}, **given)
    try:
        broker = durable_broker(store, size_max=1 << 24, segment_size=1 << 16, **limits)[0] if durable else new_broker(**limits)
    finally:
        engine.chosen = before
    return broker, store


class Side:
    """One broker, a publisher with confirms and a consumer of `rejected`."""

    def __init__(self, form, durable):
        self.broker, self.store = new_side(form, durable)
        self.publisher, self.consumer = Peer(self.broker), Peer(self.broker)
        self.now = 1000
        self.confirmed = 0
        self.checks = Steps(8)
        self.step(0)
        self.publisher.give(encoded("confirm_select", 1, False))
        for name, arguments in QUEUES:
            self.publisher.give(encoded("queue_declare", 1, 0, name, False, True, False, False, False, arguments))
        for name in ("dead", "bound"):
            self.publisher.give(encoded("queue_bind", 1, 0, name, "amq.fanout", "", False, {}))
        self.publisher.give(encoded("queue_bind", 1, 0, "dead", "amq.topic", "far", False, {}))
        for name in KEYS:
            self.publisher.give(encoded("queue_bind", 1, 0, name, "amq.direct", name, False, {}))
        self.consumer.give(encoded("basic_consume", 1, 0, "rejected", "r", False, False, False, False, {}))
        self.step(0)

    def step(self, milliseconds):
        """Time passes, and a round; confirms are counted, and deliveries kept."""
        self.now += milliseconds
        self.broker.tick(self.now, layout.EPOCH + 5000)
        self.broker.run()
        for name, _, arguments in self.publisher.frames():
            assert name in ("basic_ack", "confirm_select_ok", "queue_declare_ok", "queue_bind_ok"), (name, arguments)
            if name == "basic_ack":
                self.confirmed = arguments[0]
        return [arguments[1] for name, _, arguments in self.consumer.frames() if name == "basic_deliver"]

    def rest(self):
        """Until nothing more happens."""
        for _ in range(200):
            self.step(50)

    def held(self, broker):
        """The messages of each end that a letter died in, by where it died first: octets as receivers get them."""
        held: dict = {}
        for name in ENDS:
            peer = Peer(broker)
            peer.give(encoded("basic_consume", 1, 0, name, "c", False, True, False, False, {}))
            frames = [None]
            while frames:
                broker.run()
                frames = [each for each in peer.frames() if each[0] != "basic_consume_ok"]
                for _, _, given, body in assemble(frames):
                    first = given.get("headers", {}).get("x-first-death-queue"), given.get("headers", {}).get("x-first-death-reason")
                    held.setdefault((name, *first), []).append((given, body))
        return held


def play(side, random_, steps):
    """Publishes in batches, rejections one by one and together, time."""
    number = 0
    for _ in range(steps):
        batch = b""
        for _ in range(random_.choice((1, 3, 30))):
            number += 1
            exchange, key = random_.choice((("", random_.choice(KEYS)), ("amq.direct", random_.choice(KEYS)), ("amq.fanout", "k")))
            given = random_.choice(GIVEN if random_.random() < 0.3 else GIVEN[:4])
            batch += content(1, exchange, key, b"%d:" % number + b"b" * random_.choice((0, 1, 60, 300, 3000)), given)
        side.publisher.give(batch)
        tags = side.step(random_.choice((0, 1, 1, 7, 60)))
        while tags:
            if random_.random() < 0.2:
                side.consumer.give(encoded("basic_nack", 1, tags[-1], True, False))
                break
            tag = tags.pop(random_.randrange(len(tags)) if random_.random() < 0.2 else 0)
            if random_.random() < 0.1:
                side.consumer.give(encoded("basic_ack", 1, tag, False))
            else:
                side.consumer.give(encoded("basic_reject", 1, tag, False))
        side.checks.step(side.broker)
    side.rest()
    side.checks.end(side.broker)
    return number


@pytest.mark.parametrize("durable", (False, True))
@pytest.mark.parametrize("seed", range(2))
def test_receivers_get_the_same_dead_letters(seed, durable):
    """Expired, over the length, rejected; with and without rules at their end; queues that are their own end; no route."""
    sides = [Side(form, durable) for form in FORMS]
    numbers = [play(side, random.Random(seed), 30) for side in sides]
    made = sides[1].broker.tables.engine.burying
    assert made is not None and made.kept
    counters = []
    for side in sides:
        side.broker.fold_counters()
        counters.append({name: side.broker.counters[name] for name in COUNTED})
    assert counters[0] == counters[1] and counters[0]["dead_lettered"] > 100
    assert [side.confirmed for side in sides] == numbers
    if durable:
        for side in sides:
            again = durable_broker(
                side.store.cut(), size_max=1 << 24, segment_size=1 << 16, arena_size=1 << 20, message_count_max=4000, entry_count_max=8000
            )
            side.after = side.held(again[0])
        assert sides[0].after == sides[1].after
    held = [side.held(side.broker) for side in sides]
    assert sorted(map(str, held[0])) == sorted(map(str, held[1]))
    for name in held[0]:
        assert held[0][name] == held[1][name], name


@pytest.mark.parametrize("kind", ("headers", "topic"))
def test_a_dead_letter_goes_where_its_own_headers_lead(kind):
    """C makes letters of one route alike: only where the exchange looks at the key alone are their queues the same."""
    for form in FORMS:
        broker, _ = new_side(form, False)
        peer = Peer(broker)
        peer.give(encoded("exchange_declare", 1, 0, "ends", kind, False, True, False, False, False, {}))
        arguments = {"x-max-length": 0, "x-dead-letter-exchange": "ends"}
        peer.give(encoded("queue_declare", 1, 0, "from", False, False, False, False, False, arguments))
        for name in ("north", "south"):
            peer.give(encoded("queue_declare", 1, 0, name, False, False, False, False, False, {}))
            peer.give(encoded("queue_bind", 1, 0, name, "ends", "from", False, {"site": name, "x-match": "all"}))
        for number in range(20):
            peer.give(content(1, "", "from", b"", {"headers": {"site": ("north", "south")[number % 2]}}))
            broker.run()
        each = 10 if kind == "headers" else 20
        assert [broker.queues[name].message_count() for name in ("north", "south")] == [each, each], form
        made = broker.tables.engine.burying if form is c_accel.Engine else None
        assert form is engine.Plain or (made is not None) == (kind == "topic")


CHANGES = (
    lambda peer: peer.give(encoded("queue_bind", 1, 0, "south", "ends", "from", False, {})),
    lambda peer: peer.give(encoded("queue_unbind", 1, 0, "north", "ends", "from", {})),
    lambda peer: peer.give(encoded("queue_delete", 1, 0, "south", False, False, False)),
    lambda peer: [peer.declare("other"), peer.declare("south"), peer.give(encoded("queue_bind", 1, 0, "other", "ends", "#", False, {}))],
    lambda peer: [peer.give(encoded("exchange_delete", 1, 0, "ends", False, False)), peer.frames()],
    lambda peer: peer.broker.policies.set(
        peer.broker, Policy("far", "^from", {"dead-letter-exchange": "", "dead-letter-routing-key": "far"})
    ),
    lambda peer: peer.broker.policies.set(
        peer.broker, Policy("far", "^from", {"dead-letter-exchange": "", "dead-letter-routing-key": "south"})
    ),
    lambda peer: peer.broker.policies.set(peer.broker, Policy("few", "^south", {"max-length": 9})),
    lambda peer: [peer.give(encoded("queue_delete", 1, 0, "from", False, False, False)), peer.frames(), peer.declare("from")],
)


def test_what_c_has_learned_is_forgotten_when_it_changes():
    """Bindings, queues, exchanges and policies, behind letters of one route that C makes."""
    told = []
    for form in FORMS:
        broker, _ = new_side(form, False)
        peer = Peer(broker)
        peer.give(encoded("exchange_declare", 1, 0, "ends", "topic", False, True, False, False, False, {}))
        peer.frames()
        for name in ("north", "south", "far"):
            peer.declare(name)
        broker.policies.set(broker, Policy("ends", "^from", {"max-length": 0, "dead-letter-exchange": "ends"}, -1))
        broker.policies.set(broker, Policy("far", "^none", {"max-length": 0}))
        peer.declare("from", arguments={"x-max-length": 0})
        peer.give(encoded("queue_bind", 1, 0, "north", "ends", "from", False, {}))
        counts = []
        for change in (lambda peer: None, *CHANGES):
            change(peer)
            peer.frames()
            for _ in range(6):
                peer.publish("from", b"")
                broker.run()
            counts.append({name: queue.message_count() for name, queue in broker.queues.items()})
            Steps(1).step(broker)
        told.append((counts, broker.counters["dead_lettered"], broker.counters["dead_letters_lost"], broker.counters["internal_errors"]))
    assert told[0] == told[1]
    assert told[0][1] > 30 and told[0][3] == 0


def test_deliveries_that_are_refused_together_are_letters_of_c(monkeypatch):
    """One basic.nack for many (RabbitMQ's), those of a queue without letters among them; what C must ask for is Python's, in its place."""
    told, asked = [], []
    for form in FORMS:
        broker, _ = new_side(form, False)
        peer = Peer(broker)
        peer.declare("dead")
        peer.declare("plain")
        peer.declare("from", arguments=LETTER)
        peer.consume("from")
        peer.consume("plain", "p")
        refuse, count = broker.consumers.refuse, []
        monkeypatch.setattr(
            broker.consumers, "refuse", lambda channel, first, last, *_, r=refuse, c=count: (c.append(1), r(channel, first, last))
        )
        for tag in (1, 2):  # the first ones are Python's: what they have in common is kept, then taught
            peer.publish("from", b"taught")
            assert peer.contents()[0][1][1] == tag
            peer.give(encoded("basic_reject", 1, tag, False))
        count.clear()
        for again, history in enumerate(((), (), (7,), (0, 3, 9))):
            for number in range(10):
                given = {"headers": {"x-death": []}} if number in history else {}
                peer.publish("plain" if number % 4 == 2 else "from", b"%d" % (10 * again + number), given=given)
            broker.run()
            assert len(peer.contents()) == 10
            tag += 10
            peer.give(encoded("basic_nack", 1, tag if again else 0, True, False))
            asked.append((form.name, again, len(count)))
        channel = peer.connection.session.channels[1]
        assert broker.consumers.first_unsettled(channel) == layout.NONE == broker.consumers.last_unsettled(channel)
        broker.fold_counters()
        Steps(1).step(broker)
        found = peer.consume("dead", "d", no_ack=True)
        told.append(([each[3] for each in found + peer.contents()], {name: broker.counters[name] for name in COUNTED}))
    assert told[0] == told[1] and len(told[0][0]) == 34 and told[0][1]["rejected"] == 42, told
    assert [count for name, _, count in asked if name == "C"] == [0, 0, 1, 2], asked


def test_a_round_has_so_many_octets_of_letters():
    """The bodies of a thousand large ones would keep every connection waiting."""
    broker, _ = new_side(c_accel.Engine, False, arena_size=1 << 24, content_size_max=1 << 16)
    peer = Peer(broker)
    broker.tick(1000, layout.EPOCH + 5000)
    peer.declare("dead")
    peer.declare("brief", arguments=dict(LETTER, **{"x-message-ttl": 100}))
    for size in (0, 0) + 128 * (60000,):
        peer.publish("brief", b"b" * size)
        if size == 0:
            broker.tick(broker.now + 200, layout.EPOCH + 5000)
    broker.run()
    broker.tick(broker.now + 200, layout.EPOCH + 5000)
    assert 60 < broker.queues["dead"].message_count() < 75
    for _ in range(3):
        broker.run()
        broker.tick(broker.now + 50, layout.EPOCH + 5000)
    assert broker.queues["dead"].message_count() == 130


def test_queues_without_consumers_share_the_letters_of_a_tick():
    """Each has its turn: the first one does not have all of them to its end."""
    broker, _ = new_side(c_accel.Engine, False, arena_size=1 << 23, message_count_max=16000, entry_count_max=32000)
    peer = Peer(broker)
    broker.tick(1000, layout.EPOCH + 5000)
    peer.declare("dead")
    names = ("one", "two", "three")
    for name in names:
        peer.declare(name, arguments=dict(LETTER, **{"x-message-ttl": 100}))
        for _ in range(3500):
            peer.publish(name, b"")
    differences = []
    for _ in range(20):
        broker.tick(broker.now + 101, layout.EPOCH + 5000)
        broker.run()
        left = [broker.queues[name].message_count() for name in names]
        differences.append(max(left) - min(left))
    assert broker.queues["dead"].message_count() == 10500 and max(differences) <= 1100, differences


def test_letters_that_the_log_refuses_cost_nobody_a_confirm(monkeypatch):
    """They stay where they are, and consumers get them; the publishes that made them are logged and confirmed."""
    broker, _ = new_side(c_accel.Engine, True)
    peer = Peer(broker)
    broker.tick(1000, layout.EPOCH + 5000)
    peer.declare("dead", durable=True)
    peer.declare("one", durable=True, arguments=dict(LETTER, **{"x-max-length": 1}))
    peer.give(encoded("confirm_select", 1, False))
    for number in range(4):
        peer.publish("one", b"%d" % number, given={"delivery_mode": 2})
    burying, log_pushed = broker.tables.engine.burying, broker.journal.log_pushed

    def refuses_letters():
        if burying.table.logged_head != layout.NONE:  # that of the publishes, which are next
            raise MemoryError
        log_pushed()

    for again in range(2):
        monkeypatch.setattr(broker.journal, "log_pushed", refuses_letters if again == 0 else log_pushed)
        peer.give(
            b"".join([content(1, "", "one", b"%d" % number, {"delivery_mode": 2}) for number in range(4 + 9 * again, 13 + 9 * again)])
        )
        broker.run()
    assert broker.counters["internal_errors"] > 0 and not peer.connection.closed
    Steps(1).step(broker)
    peer.give(encoded("basic_consume", 1, 0, "dead", "d", False, True, False, False, {}))
    frames = peer.frames()
    assert [each[2][0] for each in frames if each[0] == "basic_ack"][-1] == 22
    delivered = [each for each in frames if each[0] in ("basic_deliver", "header", "body")]
    assert [body for _, _, _, body in assemble(delivered)] == [b"%d" % number for number in range(21)]
    Steps(1).step(broker)
