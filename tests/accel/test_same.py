"""The plain form and the C form side by side: the same octets out, the same state, after every step of any interleaving.

Two brokers get the same octets in the same pieces; one works with the plain form of the hot functions, the other with c_accel.
Compared are every table, the arena, what each connection has to send, and whether it is read.
"""

import gc
import os
import random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from in_form import in_form
from invariants import Steps
from memory_store import MemoryStore
from peer import Peer, content, encoded, new_broker

from leveret import c_accel
from leveret.core.access.permissions import User
from leveret.core.amqp_0_9 import frame, hot_row, packed
from leveret.core.broker import engine
from leveret.core.memory import layout
from leveret.core.recovery.opening import make_durable
from leveret.core.shim import table

SEEDS = int(os.environ.get("LEVERET_SAME_SEEDS", "40"))
HYPOTHESIS_SEED = int(os.environ.get("LEVERET_FUZZ_SEED", random.randrange(1 << 32)))


class ByTables(c_accel.Engine):
    """The C form, but for dead letters: C makes them in the middle of its work where Python makes them before or behind it, so that tables
    differ and what peers see does not: test_letters_same.py compares that; and for messages that pass by memory, of which the record of the
    queue tells: test_passing_by.py."""

    limits = c_accel.Engine.limits & ~layout.LIMIT_PAGED

    def learn_letter(self, *given):
        """C makes none."""


FORMS = (engine.Plain, ByTables)
CHECKED = 32  # every so many steps of a pair all of its tables are looked at, and where its test ends (conftest.py)
made = []  # the pairs of this test
TABLES = ("arena", "blocks", "messages", "entries", "queues", "channels", "consumers", "state", "routes", "route_octets", "route_targets")
KEYS = ("one", "two", "many", "ruled", "short", "few", "dead", "both", "poison", "ranked", "topped", "stream", "nowhere")
LIMITED = (
    ("ruled", {"x-max-length": 5}),
    ("short", {"x-message-ttl": 100}),
    ("few", {"x-max-length-bytes": 300, "x-overflow": "reject-publish"}),
    ("dead", {"x-max-length": 3, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "two"}),
    ("both", {"x-message-ttl": 300, "x-max-length": 9}),
    ("poison", {"x-delivery-limit": 2}),
    ("ranked", {"x-max-priority": 3}),
    ("topped", {"x-max-priority": 200, "x-max-length": 9, "x-message-ttl": 300}),
)
CONSUMED = {
    2: (("many", "c"), ("many", "d"), ("short", "s"), ("ruled", "r"), ("ranked", "k"), ("topped", "v"), ("topped", "w")),
    3: (("two", "e"), ("many", "f"), ("one", "g"), ("both", "h"), ("poison", "p"), ("dead", "x"), ("topped", "y")),
}
PRIORITIES = {"v": {"x-priority": 5}, "w": {"x-priority": 5}, "y": {"x-priority": -1}}
HEADERS = {"a": 1, "b": "text", "c": None, "d": {"x": [1, 2.5, True, {"y": b"\x00"}]}, "n": -(1 << 40)}
RANKED = ({"priority": 1}, {"priority": 2, "delivery_mode": 2}, {"priority": 250})
PROPERTIES = (
    {},
    {"content_type": "text/plain"},
    {"delivery_mode": 2},
    {"headers": HEADERS, "priority": 4, "timestamp": 1700000000},
    {"correlation_id": "c" * 200, "reply_to": "r", "message_id": "m", "type": "t", "app_id": "a"},
    {"headers": {"CC": ["two"]}},
    {"headers": {"BCC": ["one"]}},
    {"expiration": "60000"},
    {"expiration": "70"},
    {"expiration": "0", "delivery_mode": 2},
    {"expiration": "0000000200"},
    {"user_id": "guest"},
    {"user_id": "other"},
    {"reply_to": "amq.rabbitmq.reply-to"},
    {"headers": {"\u00e4": 1}},
    {"delivery_mode": 1, "headers": {}},
    {"headers": {"CC": ["many", "a.z"], "a": 2}},
    {"headers": {"f": 1.5, "b": "text", "a": 1}},
    {"headers": {"CC": "two"}, "priority": 1},
    {"headers": {"CC": ["one"], "BCC": ["two"]}},
)


@pytest.fixture(scope="module", autouse=True)
def c_form():
    """A machine whose C module was not built has nothing to compare: that is a fault where the tests run."""
    assert c_accel.lib is not None, "the C module is not there: pip install -e . builds it where there is a compiler"


class Side:
    """One broker with its peers, and what it answered."""

    def __init__(self, form, durable=False, store=None, **limits):
        User.numbers = 0  # counted over all brokers of a process
        with in_form(form):
            self.broker = new_broker(**limits)
        self.peers = []
        self.store = None
        if durable:
            self.store = store or MemoryStore()
            make_durable(self.broker, self.store, "each", 100, 65536, 4096, 1 << 20)

    def connect(self, number):
        """A connection with this number, in the place of one that is over."""
        self.peers[number : number + 1] = [Peer(self.broker)]

    def give(self, number, octets):
        """Hand octets to a connection, as many as it takes; how many."""
        connection = self.peers[number].connection
        taken = 0
        while taken < len(octets) and not connection.closed:
            view = connection.writable()
            size = min(len(view), len(octets) - taken)
            if size == 0:
                break
            view[:size] = octets[taken : taken + size]
            connection.received(size)
            taken += size
        return taken

    def body_sizes(self):
        """{queue: octets of each body, in the queue's order}; the broker's counters are folded."""
        self.broker.fold_counters()
        messages, entries = self.broker.tables.messages, self.broker.tables.entries
        queues = self.broker.queues.values()
        return {queue.name: [messages[entries[entry] + layout.MESSAGE_BODY] for entry in self.broker.entries_of(queue)] for queue in queues}

    def take(self, number, most):
        """Up to `most` octets of what a connection has to send."""
        connection = self.peers[number].connection
        octets = bytes(connection.pending()[:most])
        if octets:
            connection.sent(len(octets))
        return octets

    def state(self):
        """Everything that is to be the same."""
        tables = self.broker.tables
        shown = {name: bytes(getattr(tables, name)) for name in TABLES}
        if self.store is not None:
            shown["log"] = self.store.segments
            for segment in self.broker.journal.log.segments[:2]:
                live, end = table(10), tables.state[layout.POOL_ENTRIES + 1]
                tables.engine.live_in(0, end, segment.number, tables.engine.integers(live), 9)
                shown["live in %d" % segment.number] = list(live)
        for number, peer in enumerate(self.peers):
            connection = peer.connection
            shown["connection %d" % number] = (
                connection.closed,
                connection.reading,
                connection.ending,
                bytes(connection.pending()),
                connection.receive.available() if connection.receive is not None else None,
            )
        return shown


class Pair:
    """Both forms; every method does the same to both and compares."""

    def __init__(self, **limits):
        self.sides = [Side(form, **limits) for form in FORMS]
        for side in self.sides:
            side.broker.tables.engine.turn = 16
            side.broker.tables.engine.deliveries = 512
        self.turns_of(1000)
        self.rest = {}
        self.checks = Steps(CHECKED)
        made.append(self)

    def turns_of(self, effort):
        """A connection's turn takes in and settles so much in both forms."""
        for side in self.sides:
            side.broker.tables.engine.effort = effort
            side.broker.tables.begin_turn()

    def both(self, action):
        answers = [action(side) for side in self.sides]
        plain, *others = [side.state() for side in self.sides]
        for form, answer, other in zip(FORMS[1:], answers[1:], others):
            assert answer == answers[0], form
            for name in plain:
                assert plain[name] == other[name], (form, name)
        self.checks.step(self.sides[-1].broker)  # both forms may be wrong in the same way; the other side has the same tables
        return answers[0]

    def give(self, number, octets):
        """What is not taken now is kept for the next time: a peer's socket does so."""
        octets = self.rest.get(number, b"") + octets
        taken = self.both(lambda side: side.give(number, octets))
        self.rest[number] = octets[taken:][:100000]

    def tick(self, now):
        def action(side):
            side.broker.tick(now, 1700000000 + now // 1000)
            for peer in side.peers:
                peer.connection.tick(now)

        self.both(action)


def prepared(durable=False, **limits):
    """Three connections: two that publish on three channels each (one of them with confirms, one transactional), and a consumer."""
    pair = Pair(durable=durable, **limits)
    for number in range(3):
        pair.both(lambda side, number=number: side.connect(number))
    set_up = [encoded("channel_open", number, "") for number in (2, 3)]
    set_up += [encoded("confirm_select", 2, False), encoded("tx_select", 3)]
    set_up += [encoded("queue_declare", 1, 0, name, False, durable, False, False, False, {}) for name in ("one", "two", "many")]
    set_up += [encoded("queue_declare", 1, 0, name, False, durable, False, False, False, arguments) for name, arguments in LIMITED]
    set_up += [
        encoded("queue_bind", 1, 0, "both", "amq.fanout", "", False, {}),
        encoded("queue_bind", 1, 0, "both", "amq.topic", "a.b", False, {}),
        encoded("queue_declare", 1, 0, "stream", False, True, False, False, False, {"x-queue-type": "stream"}),
    ]
    set_up += [encoded("queue_bind", 1, 0, name, "amq.fanout", "", False, {}) for name in ("one", "two", "many")]
    set_up += [encoded("queue_bind", 1, 0, name, "amq.topic", key, False, {}) for name, key in (("many", "a.*"), ("two", "#.z"))]
    set_up += [
        encoded("exchange_declare", 1, 0, "far", "direct", False, durable, False, False, False, {"alternate-exchange": "amq.headers"}),
        encoded("exchange_bind", 1, 0, "amq.topic", "far", "a.z", False, {}),
        encoded("queue_bind", 1, 0, "one", "amq.headers", "", False, {"a": 1, "b": "text"}),
        encoded("queue_bind", 1, 0, "ruled", "amq.headers", "", False, {"x-match": "any", "a": 2, "f": None}),
    ]
    for octets in set_up:
        pair.give(0, octets)
        pair.give(1, octets) if octets in set_up[:4] else None
        pair.both(lambda side: side.broker.run())  # what is durable is answered then
        pair.both(lambda side: [side.take(number, 10000) for number in range(3)])
    assert sorted(pair.sides[0].broker.queues) == sorted(KEYS[:-1])
    for channel in (1, 2, 3):
        for octets in (encoded("channel_open", channel, ""), *consuming(channel)) if channel > 1 else consuming(channel):
            pair.give(2, octets)
            pair.both(lambda side: side.take(2, 10000))
    assert [len(pair.sides[0].broker.queues[name].consumers) for name in ("one", "two", "many")] == [2, 2, 3]
    return pair


def consuming(channel):
    """What the consuming connection sends on a channel: no_ack and not, with a prefetch of each consumer, of the channel."""
    if channel == 1:
        return (
            encoded("basic_consume", 1, 0, "one", "a", False, True, False, False, {}),
            encoded("basic_consume", 1, 0, "two", "b" * 40, False, False, False, False, {}),
        )
    qos = (encoded("basic_qos", 2, 0, 3, False),) if channel == 2 else (encoded("basic_qos", 3, 0, 4, True),)
    return qos + tuple(
        [
            encoded("basic_consume", channel, 0, name, name + tag, False, False, False, False, PRIORITIES.get(tag, {}))
            for name, tag in (CONSUMED[channel])
        ]
    )


def a_publish(random_, channel):
    exchange, key = random_.choice(
        (
            ("", random_.choice(KEYS)),
            ("", "one"),
            ("", "two"),
            ("amq.fanout", ""),
            ("amq.fanout", "x" * 40),
            ("amq.topic", random_.choice(("a.b", "a.z", "q"))),
            ("amq.headers", random_.choice(("", "one"))),
            ("far", random_.choice(("a.z", "q"))),
            ("none", "x"),
        )
    )
    if exchange == "none" and random_.random() < 0.9:
        exchange = ""
    body = bytes(random_.choice((0, 1, 5, 20, 64, 65, 300, 1200))) + b"!"
    return content(
        channel,
        exchange,
        key,
        body,
        random_.choice(PROPERTIES if random_.random() < 0.3 else PROPERTIES[:5] + RANKED),
        random_.random() < 0.1,
        random_.choice((4096, 100, 9)) if len(body) < 70 else random_.choice((4096, 200)),
    )


def a_run(random_, channel):
    """Publishes that are alike; one in the transaction, which holds what it has until it ends."""
    return a_publish(random_, channel) * (1 if channel == 3 else random_.choice((1, 1, 2, 6)))


def damaged(random_, octets):
    """The same with an octet changed, added or left out."""
    at = random_.randrange(len(octets))
    return octets[:at] + random_.choice((b"", bytes((random_.randrange(256),)), octets[at : at + 1] * 2)) + octets[at + 1 :]


def unsettled(pair, channel):
    """The delivery tags (low 30 bits) that wait for the consuming connection's word on a channel, the oldest first."""
    tables = pair.sides[0].broker.tables
    found = pair.sides[0].peers[2].connection.session.channels.get(channel)
    entry = layout.NONE if found is None or found.closing else tables.channels[found.handle + layout.CHANNEL_UNSETTLED_HEAD]
    tags = []
    while entry != layout.NONE:
        tags.append(tables.entries[entry + layout.ENTRY_TAG])
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    return tags


def settlements(pair, random_):
    """A run of what a consumer says: of what it has, in order, against it or anyhow; now and then of what it has not."""
    channel = random_.choice((1, 2, 3))
    tags = unsettled(pair, channel)
    if not tags or random_.random() < 0.05:
        return a_settlement(random_, channel, random_.randrange(40))
    tags = random_.sample(tags, min(len(tags), random_.choice((1, 1, 2, 5))))
    tags.sort(reverse=random_.random() < 0.3) if random_.random() < 0.7 else None
    if random_.random() < 0.4:
        return a_settlement(random_, channel, random_.choice((0, tags[0])), random_.choice(("basic_ack", "basic_nack", "basic_nack")))
    return b"".join([a_settlement(random_, channel, tag) for tag in tags])


def a_settlement(random_, channel, tag, name=None):
    name = name or random_.choice(("basic_ack", "basic_nack", "basic_reject"))
    if name == "basic_reject":
        return encoded(name, channel, tag, random_.random() < 0.5)
    multiple = random_.random() < 0.6
    return encoded(name, channel, tag, multiple) if name == "basic_ack" else encoded(name, channel, tag, multiple, random_.random() < 0.5)


def mended(pair, number):
    """Octets that open again what an error has closed, on a new connection if need be."""
    connection = pair.sides[0].peers[number].connection
    if connection.closed or connection.ending or connection.session.closing:
        pair.both(lambda side: side.peers[number].connection.received(0))
        pair.both(lambda side: side.connect(number))
        pair.rest[number] = b""
        connection = pair.sides[0].peers[number].connection
    octets = b""
    for channel in (1, 2, 3):
        there = connection.session.channels.get(channel)
        if there is None or there.closing:
            octets += (b"" if there is None else encoded("channel_close_ok", channel)) + encoded("channel_open", channel, "")
            octets += encoded("confirm_select", 2, False) if channel == 2 and number < 2 else b""
            octets += encoded("tx_select", 3) if channel == 3 and number < 2 else b""
            octets += b"".join(consuming(channel)) if number == 2 else b""
    return octets


def stream_of(pair, random_):
    """Octets that a peer may send next, and which peer."""
    chance = random_.random()
    if chance < 0.7:
        octets = b"".join([a_run(random_, random_.choice((1, 1, 1, 2, 2, 3))) for _ in range(random_.choice((1, 3, 8)))])
        return random_.choice((0, 1)), octets
    if chance < 0.9:
        return 2, settlements(pair, random_)
    number = random_.choice((0, 1))
    return number, random_.choice(
        (
            encoded("tx_commit", 3),
            encoded("tx_rollback", 3),
            frame.HEARTBEAT_FRAME,
            encoded("channel_open", 4, ""),
            encoded("queue_purge", 1, 0, "two", False),
            encoded("queue_delete", 1, 0, "ruled", False, False, False),
            encoded("queue_unbind", 1, 0, "many", "amq.fanout", "", {}),
            encoded("basic_get", 1, 0, "two", False),
            encoded("queue_bind", 1, 0, "many", "amq.fanout", "", False, {}),
        )
    )


def drain(pair):
    """Everybody reads all there is, and the consumer settles all it has got."""
    for _ in range(3):
        pair.both(lambda side: side.broker.run())
        pair.both(lambda side: [side.take(number, 100000) for number in range(3)])
        connection = pair.sides[0].peers[2].connection
        if connection.closed or connection.ending or connection.session.closing or pair.rest.get(2):
            continue
        tables = pair.sides[0].broker.tables
        for channel in list(connection.sessions()):
            last = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_TAIL]
            if last != layout.NONE and not channel.closing:
                pair.give(2, encoded("basic_ack", channel.number, tables.entries[last + layout.ENTRY_TAG], True))


def interleaving(seed, steps, harmful, **limits):
    """A random run; `harmful`: how often octets are damaged."""
    random_ = random.Random(seed)
    pair = prepared(**limits)
    pair.turns_of(random_.choice((2, 5, 20, 1000)))
    now = published = 0
    for _ in range(steps):
        number, octets = stream_of(pair, random_)
        if not pair.rest.get(number):
            octets = mended(pair, number) + octets
        if random_.random() < harmful:
            octets = damaged(random_, octets)
        at = 0
        while at < len(octets):
            piece = random_.choice((1, 3, 7, 30, 200, 1000, 5000))
            pair.give(number, octets[at : at + piece])
            at += piece
            if random_.random() < 0.3:
                pair.both(lambda side: side.broker.run())
            if random_.random() < 0.3:
                whose, most = random_.randrange(3), random_.choice((50, 400, 4000))
                pair.both(lambda side: side.take(whose, most))
                pair.give(whose, b"")
        if random_.random() < 0.2:
            now += random_.choice((1, 60, 150))
            pair.tick(now)
        if random_.random() < 0.2:
            drain(pair)
        broker = pair.sides[0].broker
        published = max(published, broker.counters["published"] + broker.tables.state[layout.STATE_PUBLISHED])
    assert published > (steps // 2 if not limits else 5), "%d publishes in %d steps" % (published, steps)
    for _ in range(50):
        pair.both(lambda side: side.broker.run())
        if not any(pair.both(lambda side: [side.take(number, 100000) for number in range(3)])):
            break


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_interleavings(seed):
    interleaving(seed, 60, 0.02 if seed % 3 == 0 else 0)


@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_with_a_log(seed):
    """Durable queues: the logs are the same octet for octet too."""
    interleaving(2000 + seed, 40, 0, durable=True)


@pytest.mark.parametrize("seed", range(SEEDS // 4))
def test_a_full_arena_and_full_pools(seed):
    interleaving(seed, 80, 0, arena_size=4096, content_size_max=1024, message_count_max=16 + seed, entry_count_max=16 + 2 * seed)


@seeded(HYPOTHESIS_SEED)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=400), st.integers(1, 100))
def test_any_octets_behind_a_good_publish(octets, piece):
    pair = prepared()
    octets = content(1, "", "one", b"x") * 2 + octets + content(1, "", "two", b"y")
    for at in range(0, len(octets), piece):
        pair.give(0, octets[at : at + piece])
    pair.both(lambda side: side.broker.run())


@seeded(HYPOTHESIS_SEED)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=120), st.integers(0, 0xFFFF))
@example(b"", 4)  # a cluster-id that is not there
@example(b"\x01c", 4)
def test_any_properties(octets, flags):
    pair = prepared()
    pair.give(0, content(1, "", "one", b"x"))
    pair.give(
        0,
        encoded("basic_publish", 1, 0, "", "one", False, False)
        + frame.content_header(1, 1, bytes((flags >> 8, flags & 255)) + octets)
        + frame.encode(frame.BODY, 1, b"!"),
    )


def test_every_split_of_publishes_and_acknowledgements():
    octets = content(1, "", "one", b"x" * 70, PROPERTIES[3], False, 40) + content(2, "amq.fanout", "", b"") + content(1, "", "two", b"yy")
    for at in range(len(octets) + 1):
        pair = prepared()
        pair.give(0, content(1, "", "one", b"0") + content(1, "amq.fanout", "", b"0") + content(1, "", "two", b"0"))
        pair.give(0, octets[:at])
        pair.give(0, octets[at:])
        pair.both(lambda side: side.broker.run())
        acks = encoded("basic_ack", 1, 2, True)
        pair.give(2, acks[: at % len(acks)])
        pair.give(2, acks[at % len(acks) :])
    assert pair.sides[1].broker.tables.state[layout.STATE_PUBLISHED] == 6


def row_of(side):
    return side.broker.tables.engine.row(hot_row.Row)


def test_packs_of_a_stream():
    """Records of every size beside a block's, from every one on, cut by their number and by octets, and at one that has annotations."""
    pair = prepared(arena_size=65536)
    block_size = pair.sides[0].broker.limits.block_size
    sizes = (0, 1, block_size - 40, block_size - 9, block_size, block_size + 1, 3 * block_size + 5, 7)
    for place, size in enumerate(sizes):
        pair.give(0, content(1, "", "stream", bytes([place]) * size, PROPERTIES[place]))
        pair.both(lambda side: side.broker.run())
    tables = pair.sides[0].broker.tables
    assert sum(row_of(side).pack is not None for side in pair.sides) == 1

    def pack(side, *wanted):
        body, count, behind = packed.pack(side.broker, row_of(side).pack, *wanted)
        return bytes(body), count, behind

    annotated = [place for place, given in enumerate(PROPERTIES) if "BCC" in given.get("headers", {})][0]
    entry, seen = pair.sides[0].broker.queues["stream"].seek(0)[0], 0
    while entry != layout.NONE:
        seen += 1
        for most in (1, 2, 100):
            for octets_max in (0, 90, block_size + 100, 1 << 20):
                body, count, behind = pair.both(lambda side, wanted=(entry, most, octets_max): pack(side, *wanted))
                assert 1 <= count <= most and (len(body) <= octets_max or count == 1)
        entry = tables.entries[entry + layout.ENTRY_NEXT]
        ends = len(sizes) if seen > annotated else annotated
        assert count == ends - seen + 1 and (behind == layout.NONE) == (ends == len(sizes))
    assert seen == len(sizes) and 0 < annotated < seen


def test_brokers_that_are_let_go_of_leave_no_address_behind():
    """Views, and the addresses that C has of them, are cleared by the garbage collector in any order."""
    for _ in range(12):
        prepared()
        gc.collect()


def test_logged_messages_of_two_queues_in_turns():
    """More runs of settled places than are gathered at once, and one piece of the log with messages of several queues."""
    pair = prepared(durable=True)
    persistent = PROPERTIES[2]
    turns = b"".join([content(1, "", name, b"x", persistent) for name in ("one", "one", "two", "two", "one", "two")])
    for number in range(30):
        pair.give(0, turns)
        pair.tick(100 * number)
        drain(pair)
    broker = pair.sides[1].broker
    assert broker.counters["published"] + broker.tables.state[layout.STATE_PUBLISHED] == 180
    assert broker.tables.state[layout.STATE_SETTLED] + broker.counters["settled"] > 90


def test_numbers_that_pass_2_to_30():
    """Delivery tags and confirms count over two fields."""
    pair = prepared()

    def near_the_end(side):
        tables = side.broker.tables
        for peer in side.peers:
            for channel in peer.connection.sessions():
                for field in (layout.CHANNEL_TAG, layout.CHANNEL_PUBLISHED):
                    tables.channels[channel.handle + field] = layout.MASK - 2

    pair.both(near_the_end)
    for _ in range(12):
        pair.give(0, content(2, "", "two", b"x"))
        pair.both(lambda side: side.broker.run())
        pair.both(lambda side: side.take(0, 1000))
    broker = pair.sides[1].broker
    unsettled = broker.queues["two"].handle + layout.QUEUE_UNSETTLED
    before = broker.tables.queues[unsettled]
    pair.give(2, encoded("basic_ack", 1, (1 << 30) + 1, True))
    assert before - broker.tables.queues[unsettled] == 4


def test_a_content_header_larger_than_a_consumers_frames_is_left_to_the_session_by_all_forms():
    """0-9-1 section 4.2.3: one, two and three consumers of a queue, one of them with frames of 4096 octets."""
    for narrow in (0, 1, 2):
        pair = Pair(properties_size_max=8192, receive_buffer_size=16384, send_buffer_size=16384, frame_size_max=16384, arena_size=131072)
        for number in range(3):
            pair.both(lambda side, number=number: side.connect(number))
        pair.both(lambda side: setattr(side.peers[2].connection.session, "frame_size_max", 4096))
        pair.give(0, encoded("queue_declare", 1, 0, "q", False, False, False, False, False, {}))
        for number in (2, 1, 0)[: narrow + 1]:
            pair.give(number, encoded("basic_consume", 1, 0, "q", "c", False, True, False, False, {}))
        for number in range(8):
            given_ = {"headers": {"k": "a" * (5000 if number >= 2 else 50)}}
            pair.give(1, content(1, "", "q", b"%d" % number, given_, frame_size_max=16384))
            pair.both(lambda side: side.broker.run())
        sent = pair.both(lambda side: [side.take(number, 100000) for number in range(3)])
        assert b"PRECONDITION_FAILED" in sent[2] and b"a" * 200 not in sent[2]
        assert [len(side.broker.queues["q"].consumers) for side in pair.sides] == [narrow] * len(FORMS)
