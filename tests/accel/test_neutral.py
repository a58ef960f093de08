"""What C reads of a message of 0-10 or 1.0 and writes for receivers of another version is, octet for octet, what Python makes of it."""

import random

import pytest
from in_form import in_form
from peer import Peer as Peer091
from peer import content, encoded, new_broker
from peer_0_10 import Peer as Peer010
from peer_0_10 import frame, structs
from peer_1_0 import Peer as Peer10
from peer_1_0 import declare, performative

from leveret import c_accel
from leveret.c_accel import amqp_1_0
from leveret.core.amqp_0_10 import properties as properties_0_10
from leveret.core.amqp_1_0 import composites, convert, types
from leveret.core.broker import crossing, engine
from leveret.core.memory import layout

SEEDS = 8
MESSAGES = 120
UUID = bytes(range(16))
VALUES = (
    *[(letter, -(2**bits)) for letter, bits in (("b", 7), ("s", 15), ("I", 31), ("l", 63))],
    *[(letter, number) for letter in "bsIl" for number in (0, 1, -1, 127)],
    *[(letter, number) for letter, bits in (("B", 8), ("u", 16), ("i", 32)) for number in (0, 255, 2**bits - 1)],
    ("f", 0.5),
    ("d", float("inf")),
    0.25,
    True,
    False,
    None,
    ("T", 1700000000),
    ("Q", 5),
    ("Q", 2**64 - 1),
    ("U", UUID),
    ("c", "\u00e4"),
    "",
    "text",
    "a\x00b",
    "u\u0308ber",
    "x" * 300,
    b"octets",
    b"x" * 256,
    [1, 2],
    {"a": {"b": 1}},
)
NAMES = ("x-header", "CC", "x-jms-type", "x-message-id", "qpid.subject", "JMSXGroupSeq", "n\u00e4me", "x-opt-jms-dest", "x-basic-priority")


def some(chance, given, name, usual, *others):
    """Perhaps a property: mostly the usual value."""
    if chance.random() < 0.5:
        given[name] = usual if not others or chance.random() < 0.8 else chance.choice(others)


def headers(chance):
    names = ["k%d" % number for number in range(chance.choice((0, 1, 3, 10, 40)))]
    if chance.random() < 0.1:
        names.append(chance.choice(NAMES))
    simple = chance.random() < 0.7
    return {name: chance.choice(VALUES[:24] if simple else VALUES) for name in names}


def of_0_10(chance):
    """A header segment (bytes)."""
    delivery, message = {}, {}
    some(chance, delivery, "delivery_mode", 2, 1)
    some(chance, delivery, "priority", 4, 0, 9)
    some(chance, delivery, "ttl", 60000, 0, 2**40)
    some(chance, delivery, "timestamp", 1700000000123, 1700000000, 0, -5)
    if chance.random() < 0.2:
        delivery["expiration"] = 5994967296
    some(chance, message, "message_id", UUID)
    some(chance, message, "correlation_id", b"c-1", b"", b"c" * 256, b"\xff", b"urn:uuid:123e4567-e89b-12d3-a456-426614174000")
    some(chance, message, "content_type", "text/plain", "", "x/\u00fc")
    some(chance, message, "content_encoding", "gzip")
    some(chance, message, "user_id", b"guest")
    some(chance, message, "app_id", b"app", b"\xfe", b"a" * 300)
    exchange, key = chance.choice(("", "ex", "e x")), chance.choice(("", "answers", "k/ey"))
    some(chance, message, "reply_to", {"exchange": exchange or None, "routing_key": key}, {"exchange": "ex", "routing_key": None})
    table = headers(chance)
    if table or chance.random() < 0.1:
        message["application_headers"] = table
    octets = structs.write(properties_0_10.DELIVERY, delivery) if delivery else b""
    return octets + structs.write(properties_0_10.MESSAGE, message) if message else octets


WIDE = dict(zip("bBsuIifQUc", "byte ubyte short ushort int uint float ulong uuid char".split()))


def typed(value):
    """A value of VALUES as types.py has it."""
    if isinstance(value, tuple):
        letter, value = value
        if letter == "T":
            return ("timestamp", value * 1000 + 7)
        return (WIDE[letter], value) if letter in WIDE else value
    return value


def of_1_0(chance):
    """The sections of a message (bytes)."""
    octets = b""
    fields = {}
    some(chance, fields, "durable", True, False, None)
    some(chance, fields, "priority", 4, None, 0)
    some(chance, fields, "ttl", 60000, 3, 0)
    some(chance, fields, "first-acquirer", True, False)
    if chance.random() < 0.7:
        octets += composites.write("header", fields)
    if chance.random() < 0.1:
        octets += b"\x00\x53\x71" + types.encode({("symbol", "x-opt-a"): 1})
    if chance.random() < 0.4:
        names = ["x-opt-a", "other", "x-exchange", "x-death"] + [chance.choice(NAMES)] * (chance.random() < 0.2)
        octets += b"\x00\x53\x72" + types.encode({("symbol", name): "words" for name in names if name.isascii()})
    fields = {}
    some(chance, fields, "message-id", "id", ("uuid", UUID), ("ulong", 5), b"\xff\x00", "m" * 300, "")
    some(chance, fields, "user-id", b"guest")
    some(chance, fields, "to", "/queues/q")
    some(chance, fields, "subject", "subject", "s" * 300)
    some(chance, fields, "reply-to", "/queues/answers", "/queues/an%20swers", "/exchanges/ex/key", "plain", "/queues/")
    some(chance, fields, "correlation-id", "corr", ("uuid", UUID), ("ulong", 2**63), b"\xff")
    some(chance, fields, "content-type", "text/plain")
    some(chance, fields, "content-encoding", "gzip")
    some(chance, fields, "absolute-expiry-time", 5994967296000)
    some(chance, fields, "creation-time", 1700000000999, 0, -1)
    some(chance, fields, "group-id", "group", "g" * 256)
    some(chance, fields, "group-sequence", 3)
    if fields:
        octets += composites.write("properties", fields)
    table = {name: typed(value) for name, value in headers(chance).items() if not isinstance(value, (dict, list))}
    if table:
        octets += b"\x00\x53\x74" + types.encode(table)
    body = bytes(chance.choice((0, 1, 255, 256, 700)))
    sections = b"\x00\x53\x75" + types.encode(body)
    if chance.random() < 0.1:
        sections = chance.choice((sections + b"\x00\x53\x75" + types.encode(b"more"), b"\x00\x53\x77" + types.encode("value")))
    return octets + sections


def of_basic(chance):
    """Properties of class basic, by name."""
    given = {}
    some(chance, given, "content_type", "text/plain", "", "x/\u00fc")
    some(chance, given, "content_encoding", "gzip")
    some(chance, given, "delivery_mode", 2, 1)
    some(chance, given, "priority", 4, 0, 255)
    some(chance, given, "expiration", "60000", "5000000000")
    some(chance, given, "correlation_id", "c", "c" * 255, "\u00e4")
    some(chance, given, "reply_to", "replies", "re plies", "/queues/q", "/exchanges/ex/key", "")
    some(chance, given, "message_id", "m-1", "", "urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f", "00010203-0405-0607-0809-0a0b0c0d0e0f")
    some(chance, given, "timestamp", 1700000000, 0, 1 << 60)
    some(chance, given, "type", "t", "\u00e4")
    some(chance, given, "app_id", "app")
    values = [value for value in VALUES if not isinstance(value, tuple) or value[0] in "bsIlBuifdT"]
    table = {name: chance.choice(values) for name in headers(chance) if name != "CC"}
    if table:
        given["headers"] = table
    return given


def ready(form):
    with in_form(form):
        broker = new_broker(
            properties_size_max=4000, receive_buffer_size=16384, send_buffer_size=1 << 18, frame_size_max=8192, arena_size=1 << 20
        )
    declare(broker)
    broker.tick(0, 0)
    return broker


def publish(broker, version, chance):
    """MESSAGES of a version go to q."""
    if version == "1.0":
        peer = Peer10(broker, max_frame_size=8192)
        peer.sender()
        for number in range(MESSAGES):
            given = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": True}
            peer.give(performative("transfer", 0, of_1_0(chance), handle=0, **given))
            peer.collect()
        return
    if version == "0-9-1":
        peer = Peer091(broker)
        for _ in range(MESSAGES):
            peer.give(content(1, "", "q", bytes(chance.choice((0, 1, 255, 700))), of_basic(chance)))
        return
    peer = Peer010(broker)
    for _ in range(MESSAGES):
        header, body = of_0_10(chance), bytes(chance.choice((0, 1, 255, 700)))
        fields = structs.write_command("message_transfer", {"accept_mode": 1, "destination": ""})
        routed = structs.write(properties_0_10.DELIVERY, {"routing_key": "q"})
        header = properties_0_10.rewritten(header, {"routing_key": "q"}, {}) if header else routed
        octets = frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, 0, fields, 65535)
        octets += frame.segment(0 if body else frame.LAST_SEGMENT, frame.HEADER, 0, header, 65535)
        peer.give(octets + (frame.segment(frame.LAST_SEGMENT, frame.BODY, 0, body, 65535) if body else b""))


def received(form, version, target, seed, monkeypatch):
    """(octets that a receiver gets, messages that are left, how many were converted in Python)."""
    broker, made = ready(form), []
    once = crossing.once
    monkeypatch.setattr(crossing, "once", lambda *given: made.append(0) or once(*given))
    publish(broker, version, random.Random(seed))
    assert broker.queues["q"].message_count() > MESSAGES / 2
    no_ack = seed % 2 == 0
    peer = Peer091(broker) if target == "0-9-1" else Peer010(broker, name=b"receiver")
    if target == "0-9-1":
        peer.give(encoded("basic_consume", 1, 0, "q", "c", False, no_ack, False, False, {}))
        peer.take()
    else:
        peer.subscribe("q", "d", 1000, accept=1 if no_ack else 0)
        peer.collect()
    monkeypatch.undo()
    assert broker.counters["internal_errors"] == 0
    return peer.inbox, broker.queues["q"].message_count(), len(made)


@pytest.mark.parametrize(("version", "target"), [("0-10", "0-9-1"), ("1.0", "0-9-1"), ("0-9-1", "0-10"), ("1.0", "0-10")])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_receivers_get_the_same(version, target, seed, monkeypatch):
    plain = received(engine.Plain, version, target, seed, monkeypatch)
    quick = received(c_accel.Engine, version, target, seed, monkeypatch)
    assert quick[:2] == plain[:2] and plain[0]
    assert quick[2] < plain[2] * 3 / 4, "most of them are C's"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_receivers_of_1_0_get_the_same_of_0_10(seed):
    broker = ready(c_accel.Engine)
    publish(broker, "0-10", random.Random(seed))
    tables, row = broker.tables, amqp_1_0.Row(broker.tables.engine)
    entry, found = broker.queues["q"].head(), []
    while entry != layout.NONE:
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        found.append((row.head(message, 0, False), convert.head_for_1_0(broker, message)))
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    assert len(found) == MESSAGES
    for quick, plain in found:
        assert quick in (None, plain)
    assert len([each for each in found if each[0] is not None]) > MESSAGES / 4


@pytest.mark.parametrize("target", ["0-10", "0-9-1"])
def test_equal_properties_one_behind_the_other_go_out_with_what_else_differs(target, monkeypatch):
    """C keeps the last message that it converted (neutral.h): the same octets with another route, body, lifetime or return go out new."""
    found = []
    for form in (engine.Plain, c_accel.Engine):
        broker = ready(form)
        if target == "0-10":
            source = Peer091(broker)
            source.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.direct", "k", False, {})
            for given in ({"message_id": "m", "delivery_mode": 2, "headers": {"a": 1}}, {"expiration": "60000"}):
                for exchange, key, body in (
                    ("", "q", b"b"),
                    ("", "q", b"b"),
                    ("amq.direct", "k", b"b"),
                    ("amq.direct", "k", b"bb"),
                    ("", "q", b"b"),
                ):
                    source.give(content(1, exchange, key, body, given))
            peer = Peer010(broker, name=b"receiver")
            peer.subscribe("q", "d", 1000, accept=0)
            peer.collect()
            first, peer.inbox = peer.inbox, b""
            peer.connection.received(0)  # all go back, and out again as redelivered
            broker.run()
            peer = Peer010(broker, name=b"other")
            peer.subscribe("q", "d", 1000, accept=1)
            peer.collect()
        else:
            source = Peer10(broker, max_frame_size=8192)
            source.sender()
            for number, size in enumerate((1, 1, 255, 256, 255, 1)):
                octets = composites.write("properties", {"message-id": "m"}) + b"\x00\x53\x75" + types.encode(bytes(size))
                given = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": True}
                source.give(performative("transfer", 0, octets, handle=0, **given))
                source.collect()
            first, peer = b"", Peer091(broker)
            peer.give(encoded("basic_consume", 1, 0, "q", "c", False, True, False, False, {}))
            peer.take()
        assert broker.counters["internal_errors"] == 0
        found.append((first, peer.inbox))
    assert found[0] == found[1] and found[0][1]
