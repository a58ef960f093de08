"""Requests by direct reply-to: C writes them to their consumers as Python does, and the publisher's octets stay as they came."""

import pytest
from peer import Peer, content, encoded

from leveret import c_accel
from leveret.core.amqp_0_9 import deliver
from leveret.core.broker import engine
from leveret.core.broker.broker import Broker
from leveret.core.limits import Limits
from leveret.core.memory import layout

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
    before, engine.chosen = engine.chosen, form
    try:
        broker = Broker(Limits(arena_size=4 << 20, content_size_max=1 << 20, message_count_max=1024, entry_count_max=1024), b"same")
    finally:
        engine.chosen = before
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
