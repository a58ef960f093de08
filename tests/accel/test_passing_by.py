"""Messages that pass by memory in C, on their way to the log (core/log/beyond_memory.py).

Receivers get the same as from plain Python, in the same order, also behind a restart; and what C must leave to Python."""

import random

import pytest
from in_form import in_form
from invariants import Steps
from memory_store import PERSISTENT, MemoryStore, durable_broker
from peer import Peer, assemble, content, encoded
from test_same import SEEDS, c_form

from leveret import c_accel
from leveret.core.broker import broker as broker_module
from leveret.core.broker import engine
from leveret.core.log import chunk_index
from leveret.core.memory import layout

__all__ = ["c_form"]  # a fixture

FORMS = (engine.Plain, c_accel.Engine)
QUEUES = (
    ("first", {}),
    ("second", {}),
    ("dead", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "second"}),
    ("brief", {"x-message-ttl": 5000}),
    ("few", {"x-max-length": 700}),
    ("stream", {"x-queue-type": "stream"}),
)
NAMES = [name for name, _ in QUEUES[:5]]


def new_broker_of(form, store, **limits):
    with in_form(form):
        return durable_broker(store, size_max=1 << 24, segment_size=1 << 16, **limits)[0]


class Side:
    """A broker with little memory, a publisher with confirms, and a consumer of all queues but the stream."""

    def __init__(self, form, **limits):
        self.form, self.limits = form, dict({"arena_size": 65536, "chunk_count_max": 512}, **limits)
        self.store = MemoryStore()
        self.checks = Steps(4)
        self.now = 1000
        self.start()
        for name, arguments in QUEUES:
            self.publisher.declare(name, durable=True, arguments=arguments)
            if name in ("first", "second", "stream"):
                self.publisher.ask("queue_bind", "queue_bind_ok", 0, name, "amq.fanout", "", False, {})

    def start(self):
        self.broker = new_broker_of(self.form, self.store, **self.limits)
        self.publisher, self.consumer = Peer(self.broker), Peer(self.broker)
        self.publisher.ask("confirm_select", "confirm_select_ok", False)
        self.step(0)

    def step(self, milliseconds):
        self.now += milliseconds
        self.broker.tick(self.now, layout.EPOCH + 5000 + self.now // 1000)
        for _ in range(4):
            self.broker.run()
        self.checks.step(self.broker)

    def publish(self, octets):
        """How many octets the broker took."""
        taken = self.publisher.give(octets)
        self.step(1)
        assert self.broker.counters["internal_errors"] == 0
        return taken

    def confirmed(self):
        """The highest tag that was confirmed; nothing else came."""
        frames = self.publisher.frames()
        assert {name for name, _, _ in frames} <= {"basic_ack"}, frames
        return max([arguments[0] for _, _, arguments in frames], default=0)

    def read(self, name, most):
        """The next bodies of a queue, at most so many, acknowledged."""
        bodies = []
        for _ in range(most):
            self.consumer.give(encoded("basic_get", 1, 0, name, True))
            frames = self.consumer.frames()
            while not frames:  # what comes is read from the log first
                self.step(1)
                frames = self.consumer.frames()
            if frames[0][0] == "basic_get_empty":
                break
            bodies.append(assemble(frames)[0][3])
        return bodies

    def purge(self, name):
        """Its queue.purge-ok."""
        self.consumer.give(encoded("queue_purge", 1, 0, name, False))
        self.step(1)
        return self.consumer.frames()

    def counts(self):
        return [self.broker.queues[name].message_count() for name, _ in QUEUES]

    def restart(self):
        """As behind a power cut, all of what was confirmed being durable."""
        self.step(100)
        self.store = self.store.cut()
        self.start()


@pytest.mark.parametrize("seed", range(max(SEEDS // 8, 1)))
def test_receivers_get_the_same(seed):
    """Persistent and transient messages, with and without a lifetime, to one queue or several, among reads, purges, time and restarts."""
    sides = [Side(form) for form in FORMS]
    random_ = random.Random(seed)
    number = 0

    def both(action):
        answers = [action(side) for side in sides]
        assert answers[0] == answers[1]
        return answers[0]

    for _ in range(40):
        kind = random_.randrange(10)
        name = random_.choice(NAMES)
        if kind < 6:
            octets = b""
            for _ in range(random_.choice((1, 40, 300))):
                number += 1
                given = random_.choice((PERSISTENT, PERSISTENT, PERSISTENT, {}, dict(PERSISTENT, expiration="40")))
                exchange, key = random_.choice((("", name), ("", name), ("amq.fanout", "")))
                octets += content(1, exchange, key, b"%06d" % number + bytes(random_.choice((0, 90, 400))), given)
            if both(lambda side, octets=octets: side.publish(octets)) < len(octets):
                break  # the log is full
        elif kind == 6:
            both(lambda side, name=name: side.purge(name))
        elif kind == 7:
            passed = random_.choice((0, 30))
            both(lambda side, passed=passed: side.step(passed))
        elif kind == 8 and random_.random() < 0.5:
            both(lambda side: side.restart())
        else:
            most = random_.choice((1, 30, 400))
            both(lambda side, name=name, most=most: side.read(name, most))
        both(lambda side: side.counts())
    for name in NAMES:
        both(lambda side, name=name: side.read(name, 100000))
    for side in sides:
        side.checks.end(side.broker)


def paging(form=c_accel.Engine, **limits):
    """A side whose queue `first` has messages that are only in the log, and the next body's number."""
    side = Side(form, **limits)
    number = 0
    while not side.broker.queues["first"].is_paging():
        side.publish(b"".join([content(1, "", "first", b"%06d" % (number + each), PERSISTENT) for each in range(100)]))
        number += 100
    return side, number


@pytest.fixture
def put(monkeypatch):
    """Messages that Python has put on queues."""
    counts = [0]
    function = broker_module.Broker.put

    def counted(*given):
        counts[0] += 1
        return function(*given)

    monkeypatch.setattr(broker_module.Broker, "put", counted)
    return counts


def test_python_puts_next_to_no_persistent_message_on_a_queue_beyond_memory(put):
    side, number = paging()
    tables, put[0] = side.broker.tables, 0
    held = tables.queues[side.broker.queues["first"].handle + layout.QUEUE_LENGTH]
    blocks = tables.state[layout.POOL_BLOCKS + 2]
    octets = b"".join([content(1, "", "first", b"%06d" % (number + each), PERSISTENT) for each in range(5000)])
    assert side.publish(octets) == len(octets)
    assert put[0] < 50, "Python puts one where the blocks of a turn are used up, and has the log take what came before"
    assert tables.queues[side.broker.queues["first"].handle + layout.QUEUE_LENGTH] == held
    assert tables.state[layout.POOL_BLOCKS + 2] == blocks, "no memory is kept"
    side.step(100)
    assert side.confirmed() == number + 5000
    put[0] = 0
    for given in ({}, {"delivery_mode": 2, "expiration": "1000000"}):
        side.publish(content(1, "", "first", b"999999", given))
    assert put == [2]
    assert [int(body) for body in side.read("first", 100000)] == list(range(number + 5000)) + [999999] * 2


def test_a_queue_that_is_read_empty_keeps_messages_in_memory_again(put):
    side, number = paging()
    assert len(side.read("first", 100000)) == number and not side.broker.queues["first"].is_paging()
    put[0] = 0
    side.publish(content(1, "", "first", b"next", PERSISTENT))
    assert put == [0] and side.broker.queues["first"].head() != layout.NONE
    assert side.read("first", 2) == [b"next"]


def test_what_has_no_chunk_waits_and_none_of_the_reserve_is_used():
    """Two queues in turns: in each group each message may be a chunk of its own; C leaves the reserve as Python does."""
    for form in FORMS:
        side, _ = paging(form, chunk_count_max=64)
        reserve = chunk_index.reserve(side.broker.tables)
        taken = sent = 0
        while taken == sent and sent < 4000000:
            octets = b"".join([content(1, "", name, bytes(400), PERSISTENT) for name in ("first", "second") * 100])
            taken += side.publish(octets)
            sent += len(octets)
            assert side.broker.tables.chunk_pool[2] >= min(reserve, 4)
        side.step(100)
        counted = side.counts()[:2]
        assert sum(counted) >= side.confirmed() > 100
        side.restart()
        assert side.counts()[:2] == counted


def test_a_store_that_fails_leaves_nothing_behind(monkeypatch):
    """The pass of `ingest` whose messages cannot go to the log is withdrawn: entries and blocks are free, the connection ends."""
    side, number = paging()
    tables = side.broker.tables
    before = [tables.state[pool + 2] for pool in (layout.POOL_BLOCKS, layout.POOL_ENTRIES, layout.POOL_MESSAGES)]

    def fail(*_):
        raise MemoryError("octets of the group")

    monkeypatch.setattr(side.broker.journal.log, "place_for_written", fail)
    side.publisher.give(b"".join([content(1, "", "first", b"lost", PERSISTENT) for _ in range(50)]))
    assert [tables.state[pool + 2] for pool in (layout.POOL_BLOCKS, layout.POOL_ENTRIES, layout.POOL_MESSAGES)] == before
    monkeypatch.undo()
    side.step(1)
    assert side.counts()[0] == number
    other = Peer(side.broker)
    other.give(content(1, "", "first", b"%06d" % number, PERSISTENT))
    side.step(1)
    assert [int(body) for body in side.read("first", 100000)] == list(range(number + 1))
