"""A message that a receiver of AMQP 1.0 gets otherwise than it is stored has the same octets from C as from core/amqp_1_0/convert.py."""

import random

import pytest
from in_form import in_form
from peer import Peer as Peer091
from peer import content, new_broker
from peer_1_0 import Peer, declare

from leveret import c_accel
from leveret.c_accel import amqp_1_0
from leveret.core.amqp_1_0 import composites, convert, link_out, types
from leveret.core.broker import engine
from leveret.core.memory import layout

SEEDS = 12
MESSAGES = 150
VALUES = (
    *[
        (letter, number)
        for letter, bits in (("b", 7), ("s", 15), ("I", 31), ("l", 63))
        for number in (0, 1, -1, 127, -128, -129, 2**bits - 1, -(2**bits))
        if -(2**bits) <= number < 2**bits
    ],
    *[
        (letter, number)
        for letter, bits in (("B", 8), ("u", 16), ("i", 32))
        for number in (0, 1, 255, 256, 2**bits - 1)
        if number < 2**bits
    ],
    ("L", -5),
    ("f", 0.5),
    ("f", float("inf")),
    0.25,
    float("nan"),
    True,
    False,
    None,
    ("T", 1700000000),
    ("T", 1 << 62),
    "",
    "text",
    "a\x00b",
    "u\u0308ber",
    "x" * 300,
    ("S", b"\xff"),
    b"octets",
    b"x" * 256,
    [1, 2],
    {"a": {"b": 1}},
)


def properties(chance):
    """Properties of class basic: most as people's, some for Python."""
    given = {}
    for name, values in (
        ("content_type", ("text/plain", "", "x/\u00fc")),
        ("content_encoding", ("gzip",)),
        ("delivery_mode", (1, 2)),
        ("priority", (0, 4, 255)),
        ("expiration", ("60000", "1", "5000000000")),
        ("correlation_id", ("c", "c" * 255, "urn:uuid:123e4567-e89b-12d3-a456-426614174000")),
        ("reply_to", ("replies", "re plies", "q" * 255)),
        ("message_id", ("m-1", "", "urn:uuid:123")),
        ("timestamp", (0, 1700000000, 1 << 60)),
        ("type", ("t", "amqp-1.0")),
        ("user_id", ("guest",)),
        ("app_id", ("app", "a" * 200)),
    ):
        if chance.random() < 0.3:
            given[name] = values[0] if chance.random() < 0.7 else chance.choice(values)
    if chance.random() < 0.7:
        names = ["k%d" % number for number in range(chance.choice((0, 1, 3, 20, 40)))] + ["x-header", "CC1", "n\u00e4me"][
            : chance.random() < 0.05
        ]
        given["headers"] = {name: chance.choice(VALUES) for name in names}
    return given


def ready(form=c_accel.Engine, **limits):
    with in_form(form):
        broker = new_broker(
            properties_size_max=4000, receive_buffer_size=16384, send_buffer_size=32768, frame_size_max=8192, arena_size=1 << 20, **limits
        )
    declare(broker)
    broker.tick(0, 0)
    return broker


def heads(broker, noted, failed=0):
    """[(from C or None, from Python)] of the messages in the queue; `failed`: deliveries before this one."""
    tables, row = broker.tables, amqp_1_0.Row(broker.tables.engine)
    found = []
    entry = broker.queues["q"].head()
    while entry != layout.NONE:
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        route = link_out.route_noted(broker, message) if noted else None
        found.append((row.head(message, failed, noted), convert.head_for_1_0(broker, message, failed, route)))
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
def test_messages_of_class_basic(seed):
    chance = random.Random(seed)
    broker = ready()
    peer = Peer091(broker)
    for _ in range(MESSAGES):
        given = properties(chance)
        body = bytes(chance.choice((0, 1, 255, 256, 700)))
        peer.give(content(1, "", "q", body, given))
    for noted, failed, now in ((False, 0, 0), (True, 0, 1), (False, 1, 2), (True, 255, 50), (False, 0, 70)):
        broker.seconds = broker.tables.state[layout.STATE_SECONDS] = now
        found = heads(broker, noted, failed)
        assert len(found) == MESSAGES
        for quick, plain in found:
            assert quick in (None, plain)
        assert len([each for each in found if each[0] is not None]) > MESSAGES / 4


@pytest.mark.parametrize("seed", range(SEEDS))
def test_messages_of_1_0(seed):
    """Their route, deliveries that failed, and what is left of their ttl."""
    chance = random.Random(seed)
    broker = ready()
    peer = Peer(broker, max_frame_size=8192)
    peer.sender()
    for number in range(MESSAGES):
        octets = b""
        if chance.random() < 0.5:
            fields = {
                "durable": chance.choice((None, True, False)),
                "priority": chance.choice((None, None, 0, 9)),
                "first-acquirer": chance.choice((None, None, None, False, True)),
                "ttl": chance.choice((None, None, 60000, 2, 0xFFFFFFFF)),
                "delivery-count": chance.choice((None, None, 0, 1, 300, 0xFFFFFFFF)),
            }
            octets += composites.write("header", fields)
        if chance.random() < 0.2:
            octets += b"\x00\x53\x72" + types.encode({("symbol", "x-opt-a"): 1})
        if chance.random() < 0.5:
            octets += composites.write("properties", {"message-id": "m" * chance.randrange(300), "subject": "s"})
        octets += chance.choice((b"\x00\x53\x75", b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x75")) + types.encode(b"body")
        peer.give(transfer(number, octets))
        peer.collect()
    for noted, failed, now in ((True, 0, 0), (False, 0, 0), (False, 1, 1), (True, 3, 2), (False, 0, 50), (True, 0, 70)):
        broker.seconds = broker.tables.state[layout.STATE_SECONDS] = now
        found = heads(broker, noted, failed)
        assert len(found) > MESSAGES / 2
        for quick, plain in found:
            assert quick in (None, plain)
        assert len([each for each in found if each[0] is not None]) > len(found) / 4


def transfer(number, octets):
    from peer_1_0 import performative

    given = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": True}
    return performative("transfer", 0, octets, handle=0, **given)


@pytest.mark.parametrize("paired", [False, True])
def test_a_receiver_gets_the_same_from_both_engines(paired):
    """Credit, room in the buffer and delivery-ids too: what C leaves to Python stands between what it has made."""
    came = []
    for form in (engine.Plain, c_accel.Engine):
        chance = random.Random(7)
        broker = ready(form)
        publisher = Peer091(broker)
        for _ in range(MESSAGES):
            publisher.give(content(1, "", "q", bytes(chance.randrange(400)), properties(chance)))
        peer = Peer(broker, max_frame_size=2048)
        given = {"properties": {("symbol", "paired"): True}} if paired else {}
        peer.receiver(credit=0, snd_settle_mode=1, **given)
        for count in (1, 30, 70, 90):
            peer.credit(count, delivery_count=len(came) and 0, incoming_window=1000)
        peer.collect()
        came.append((peer.inbox, broker.queues["q"].message_count()))
    assert came[0] == came[1] and came[0][1] < MESSAGES - 60
