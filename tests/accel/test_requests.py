"""Requests by direct reply-to: C takes them and writes them to their consumers as Python does.

The publisher's octets stay as they came."""

import random
import re

import pytest
from in_form import in_form
from invariants import Steps
from memory_store import MemoryStore, durable_broker
from peer import Peer, content, encoded
from test_gets_in_c import NAMES, QUEUES
from test_letters_same import new_side
from test_same import PROPERTIES, SEEDS, c_form

from leveret import c_accel
from leveret.core.amqp_0_9 import content as read_content
from leveret.core.amqp_0_9 import deliver
from leveret.core.broker import engine
from leveret.core.broker.broker import Broker
from leveret.core.limits import Limits
from leveret.core.memory import layout

__all__ = ["c_form"]  # a fixture
REPLY_TO = "amq.rabbitmq.reply-to"

# Properties that stand before the reply-to and behind it, in all combinations.
OTHERS = (
    ("content_type", "application/json"),
    ("content_encoding", "x" * 255),
    ("headers", {"a": {"b": [1, "c" * 700]}}),
    ("delivery_mode", 2),
    ("priority", 9),
    ("correlation_id", "0123456789abcdef"),
    ("expiration", "60000"),
    ("message_id", "m" * 200),
    ("app_id", ""),
)
BODIES = (b"", b"x", bytes(range(256)), b"y" * 5000, b"z" * 40000)


def broker_of(form):
    with in_form(form):
        broker = Broker(Limits(arena_size=4 << 20, content_size_max=1 << 20, message_count_max=1024, entry_count_max=1024), b"same")
    broker.tick(1, 1700000000)
    return broker


class Pair:
    """A server that gets requests, and a client that makes them."""

    def __init__(self, form, frame_size_max):
        self.broker = broker_of(form)
        self.server, self.client = Peer(self.broker), Peer(self.broker)
        self.server.connection.session.frame_size_max = frame_size_max
        self.server.declare("q")
        self.client.consume(REPLY_TO, tag="r", no_ack=True)

    def request(self, given, body, no_ack):
        """(the properties as the broker has them, what the server gets of a request: octets, or parts where a body goes in several)."""
        server, tables = self.server, self.broker.tables
        self.client.give(content(1, "", "q", body, given))
        entry = self.broker.queues["q"].head()
        assert entry != layout.NONE, self.client.frames()
        kept = tables.properties_of(tables.entries[entry + layout.ENTRY_MESSAGE])
        server.give(encoded("basic_consume", 1, 0, "q", "t", False, no_ack, False, True, {}))
        server.take()
        got = server.inbox if len(body) < 1000 else repr(server.contents()).encode()
        server.inbox = b""
        server.give(encoded("basic_cancel", 1, "t", True) + encoded("basic_nack", 1, 0, True, False))
        server.take()
        assert not server.inbox and not self.broker.counters["internal_errors"]
        return kept, got


@pytest.mark.skipif(c_accel.lib is None, reason="a C compiler is not installed")
def test_c_delivers_requests_as_python_does():
    for frame_size_max in (4096, 131072):
        plain, quick = Pair(engine.Plain, frame_size_max), Pair(c_accel.Engine, frame_size_max)
        for number in range(1 << len(OTHERS)):
            given = {name: value for bit, (name, value) in enumerate(OTHERS) if number >> bit & 1}
            given["reply_to"] = REPLY_TO
            for body in BODIES if number % 37 == 0 else BODIES[number % 3 : number % 3 + 1]:
                kept, got = quick.request(given, body, number & 2 == 0)
                assert plain.request(given, body, number & 2 == 0) == (kept, got), (given, frame_size_max)
                address = quick.client.connection.session.channels[1].reply_queue
                assert address.encode() not in kept and got.count(address.encode()) == 1, given


@pytest.mark.skipif(c_accel.lib is None, reason="a C compiler is not installed")
def test_no_python_is_asked_for_the_delivery_of_a_request():
    """It took 35 us of 87 while Python delivered it."""

    def refuse(session, consumer):
        raise AssertionError("Python delivers")

    before, deliver.deliver_large = deliver.deliver_large, refuse
    try:
        pair = Pair(c_accel.Engine, 131072)
        for body in BODIES[:4]:
            assert b"rabbitmq.reply-to." in pair.request({"reply_to": REPLY_TO, "correlation_id": "1"}, body, True)[1]
    finally:
        deliver.deliver_large = before


@pytest.mark.skipif(c_accel.lib is None, reason="a C compiler is not installed")
def test_what_else_the_broker_says_of_a_message_is_merged_by_python():
    """A dead letter of a request, and one with selected keys, have annotations beside the address."""
    for form in (engine.Plain, c_accel.Engine):
        broker = broker_of(form)
        server, client = Peer(broker), Peer(broker)
        server.declare("dead")
        server.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
        client.consume(REPLY_TO, tag="r", no_ack=True)
        server.consume("q", tag="t")
        server.consume("dead", tag="d", no_ack=True)
        client.give(content(1, "", "q", b"body", {"reply_to": REPLY_TO}))
        client.give(content(1, "", "q", b"body", {"reply_to": REPLY_TO, "headers": {"BCC": ["dead"]}}))
        broker.run()
        got = server.contents()
        address = client.connection.session.channels[1].reply_queue
        assert [each[2]["reply_to"] for each in got] == [address] * 3, got
        server.give(encoded("basic_nack", 1, 0, True, False))
        broker.run()
        dead = server.contents()
        assert [each[2]["reply_to"] for each in dead] == [address] * 2
        assert [each[2]["headers"]["x-death"][0]["queue"] for each in dead] == ["q"] * 2


@pytest.fixture
def read(monkeypatch):
    """Content headers that Python has read, by the engine's name."""
    counts = {"C": 0, "plain Python": 0}
    read_properties = read_content.read_properties

    def counted(session, *given):
        counts[session.broker.tables.engine.name] += 1
        return read_properties(session, *given)

    monkeypatch.setattr(read_content, "read_properties", counted)
    return counts


def consumes(channel, tag="r"):
    return encoded("basic_consume", channel, 0, REPLY_TO, tag, False, True, False, False, {})


class Asking:
    """A broker with queues of several rules, a client with two channels that consume replies, a server that consumes two of the queues."""

    def __init__(self, form, durable):
        self.broker, _ = new_side(form, durable)
        self.client, self.server = Peer(self.broker), Peer(self.broker)
        self.client.give(encoded("confirm_select", 1, False) + encoded("channel_open", 2, "") + consumes(1) + consumes(2))
        for name, given in QUEUES:
            self.client.give(encoded("queue_declare", 1, 0, name, False, durable, False, False, False, given))
        for name in NAMES[:2]:
            self.server.consume(name, tag=name, no_ack=True)
        self.checks = Steps(8)
        self.names = {}  # a generated name -> its number

    def step(self, *pieces):
        """What the client and the server get for octets that come in pieces; generated names by their numbers."""
        for piece in pieces:
            self.client.give(piece)
            self.broker.run()
        self.checks.step(self.broker)
        return self.named(repr(self.client.frames()) + repr(self.server.contents()))

    def drain(self):
        """The messages of all other queues."""
        got = [self.server.consume(name, tag=name, no_ack=True) for name in NAMES[2:]]
        self.broker.run()
        self.checks.end(self.broker)
        return self.named(repr(got) + repr(self.server.contents()))

    def named(self, text):
        return re.sub(re.escape(REPLY_TO) + r"\.[\w-]+", lambda match: "#%d" % self.names.setdefault(match[0], len(self.names)), text)


@pytest.mark.parametrize("durable", (False, True))
@pytest.mark.parametrize("seed", range(max(SEEDS // 8, 1)))
def test_c_takes_requests_as_python_does(seed, durable, read):
    """Peers see the same: requests of two channels among other publishes, in pieces, to queues with and without rules, persistent and
    not, while the replies' consumers come and go and channels are closed and opened again."""
    sides = [Asking(form, durable) for form in (engine.Plain, c_accel.Engine)]
    random_ = random.Random(seed)
    for _ in range(150):
        kind = random_.randrange(12)
        channel = random_.choice((1, 2, 2, 2))
        if kind < 10:
            given = dict(random_.choice(PROPERTIES[:10]))
            if random_.random() < 0.8:
                given["reply_to"] = random_.choice((REPLY_TO, REPLY_TO, REPLY_TO, REPLY_TO[:-1] + "x"))
            body = b"b" * random_.choice((0, 1, 200, 257, 700, 5000))
            octets = b"".join([content(channel, "", random_.choice(NAMES), body, given) for _ in range(random_.choice((1, 1, 4)))])
        elif kind == 10:
            octets = encoded("basic_cancel", channel, "r", False) + (consumes(channel) if random_.random() < 0.5 else b"")
        else:
            octets = encoded("channel_close", channel, 200, "", 0, 0) + encoded("channel_open", channel, "") + consumes(channel)
        split = random_.randrange(len(octets)) if random_.random() < 0.3 else 0
        answers = [side.step(octets[:split], octets[split:]) for side in sides]
        assert answers[0] == answers[1]
        if "channel_close'" in answers[0]:  # no replies were consumed
            octets = encoded("channel_close_ok", channel) + encoded("channel_open", channel, "") + consumes(channel)
            answers = [side.step(octets) for side in sides]
            assert answers[0] == answers[1]
    held = [side.drain() for side in sides]
    assert held[0] == held[1] and held[0].count("#")
    assert read["C"] < read["plain Python"] * 7 // 8  # what comes in two pieces, names the first channel or has more to decide is Python's


def test_python_reads_no_request_of_a_channel_that_consumes_replies(read):
    side = Asking(c_accel.Engine, False)
    for body in (b"", b"x", b"y" * 700):
        got = side.step(b"", b"".join([content(2, "", "plain", body, {"reply_to": REPLY_TO, "correlation_id": "1"})] * 4))
        assert got.count("basic_deliver") == 4 and got.count("#0") == 4, got[:1000]
    assert read["C"] == 0
    assert "fast reply consumer" in side.step(
        encoded("basic_cancel", 2, "r", False) + content(2, "", "plain", b"x", {"reply_to": REPLY_TO})
    )
    assert read["C"] == 1


def test_a_request_to_a_durable_queue_that_is_persistent_is_in_the_log_with_its_address():
    store = MemoryStore()
    broker = durable_broker(store, size_max=1 << 24)[0]
    client = Peer(broker)
    client.declare("q", durable=True)
    client.give(consumes(1))
    client.give(content(1, "", "q", b"ask", {"reply_to": REPLY_TO, "delivery_mode": 2}))
    broker.run()
    address = client.connection.session.channels[1].reply_queue
    again = durable_broker(store, size_max=1 << 24)[0]
    server = Peer(again)
    assert [given["reply_to"] for _, _, given, _ in server.consume("q", no_ack=True)] == [address]
