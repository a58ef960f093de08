"""Messages that differ in ids and times alone, one behind the other, by every pair of versions: C, which converts the first of a shape and
puts the fields of the others in their places (c_accel/shapes.h), gives receivers what Python does, octet for octet, and Python, which does
so too (core/broker/shapes.py), gives what it converts."""

import random

import full_messages as full
import pytest
from every_version import World
from in_form import in_form
from peer import new_broker
from peer_0_10 import Peer as Peer010

from leveret import c_accel
from leveret.core.broker import crossing, engine

MESSAGES = 150
ROOM = {"properties_size_max": 4096, "receive_buffer_size": 16384, "send_buffer_size": 1 << 20, "content_size_max": 4096}
UNUSUAL = ("\x00", "a\x00", "", "\u00e4" * 2, "urn:uuid:", "-" + "0" * 32, "0" * 32 + "-", "g" * 36)  # drafts have no zeros
HEX = "0123456789abcdef"
BODIES = (b"", b"b", full.BODY, b"x" * 255, b"y" * 256)
TIMES = (0, 1, 1700000000, 1700000001, 99999999, 100000000, 1 << 40, (1 << 53) - 1, 1 << 53, 1 << 60)
MILLISECONDS = (0, 1, 999, 1000, 1700000000123, 1700000000999, 99999999999, 100000000000, (1 << 63) // 1000, (1 << 63) - 1, -1)


def octets(chance, size, letters="abcdefghijklmnopqrstuvwxyz-:"):
    return "".join([chance.choice(letters) for _ in range(size)])


def uuid_text(chance):
    return "-".join([octets(chance, size, HEX) for size in (8, 4, 4, 4, 12)])


def id_text(chance, version=""):
    """An id: mostly one of a few sizes."""
    kind = chance.randrange(12)
    if kind == 0:
        return chance.choice(UNUSUAL[2 * (version in full.DRAFTS) :])
    if kind == 1:
        return chance.choice(("", "urn:uuid:", "URN:UUID:")) + uuid_text(chance)
    return octets(chance, chance.choice((0, 1, 4, 4, 4, 36, 45, 127, 128, 246, 255)))


def some(chance, *given):
    """One of those, the first one mostly."""
    return given[0] if chance.random() < 0.7 else chance.choice(given)


def basic(chance, version):
    """A message of class basic, or of the drafts' jms."""
    properties = {"0.9a5": full.JMS_9A5, "0.9r1": full.JMS_9R1}.get(version, full.PROPERTIES[:13])
    names = "content-type delivery-mode priority correlation-id reply-to message-id timestamp type app-id".split()
    said = {name: full.SAID[name] for name in names[: some(chance, 9, 7)]}
    said.update({"correlation-id": id_text(chance, version), "message-id": id_text(chance, version)})
    said["timestamp"] = chance.choice(TIMES[: -1 if version == "0.9a5" else None])
    if version in full.BASIC and chance.random() < 0.2:
        said[chance.choice(("correlation-id", "message-id"))] = chance.choice((b"\xff", b"\xfe\x80", b"ab\xc3", b"abc\xff"))
    if version == "0.9a5":
        said["destination"] = full.KEY
    headers = (full.text_pair("text", b"words", "S", 1 if version == "0.9a5" else 4), ("number", "I", full.number("i", some(chance, 5, 6))))
    return full.listed(properties, said, some(chance, None, headers)), chance.choice(BODIES)


def of_0_10(chance):
    headers = [full.short("text") + b"\x95" + full.sized(2, b"words" * some(chance, 1, 60))]
    id_ = some(chance, bytes([chance.randrange(256) for _ in range(16)]), None)
    correlation = some(chance, id_text(chance).encode("utf-8"), b"\xff\xfe", b"ab\xff\x00", b"c" * 256)
    named = [full.short("x-message-id") + b"\x95" + full.sized(2, id_text(chance).encode("utf-8"))] if chance.random() < 0.1 else []
    table = full.map_10(headers + named) if some(chance, True, False) else None
    message = full.message_10(id_, correlation, full.reply_to_10(some(chance, "", "ex"), "answers"), None, full.sized(2, b"app"), table)
    return full.delivery_10(60000, chance.choice(MILLISECONDS)) + message, chance.choice(BODIES)


def of_1_0(chance):
    def id_of():
        uuid = bytes([chance.randrange(256) for _ in range(16)])
        others = [full.value_1_0(name, value) for name, value in (("uuid", uuid), ("ulong", chance.randrange(9)), ("binary", b"\xff\x00"))]
        return some(chance, full.string(id_text(chance)), *others)

    user, time = full.value_1_0("binary", b"guest"), full.value_1_0("timestamp", chance.choice(MILLISECONDS))
    answers = some(chance, "/queues/answers", "/queues/an%20swers", "/exchanges/ex/" + "k" * 200)
    fields = [
        id_of(),
        user,
        full.NULL,
        full.NULL,
        full.string(answers),
        id_of(),
        full.symbol("text/plain"),
        full.symbol("gzip"),
        full.NULL,
        time,
    ]
    header, body = full.list_1_0(0x73, fields), chance.choice(BODIES)
    if chance.random() < 0.3:
        header = full.HEAD_1_0 + header
    if chance.random() < 0.3:
        header += full.map_1_0(0x74, [(full.string("name"), full.string("value"))])
    return header, full.data(body) if chance.random() < 0.9 else full.section_1_0(0x75, b"\xa0" + full.sized(1, body[:255]))


MADE = {"0-10": of_0_10, "1.0": of_1_0}


def received(form, source, target, seed):
    chance = random.Random(seed)
    with in_form(form):
        world = World(new_broker(**ROOM, arena_size=1 << 21))
        for _ in range(MESSAGES):
            world.publish(source, MADE[source](chance) if source in MADE else basic(chance, source))
        world.peers.pop(source)
        if target == "0-10":
            world.peers[target] = Peer010(world.broker, name=b"receiver")
        world.subscribe(target)
        if target == "1.0":
            world.peers[target].credit(MESSAGES, incoming_window=MESSAGES)
        found = world.received(target)
    assert world.broker.counters["internal_errors"] == 0 and not world.broker.queues["q"].message_count()
    return found


@pytest.mark.parametrize("target", full.VERSIONS)
@pytest.mark.parametrize("source", full.VERSIONS)
def test_receivers_get_the_same(source, target, monkeypatch):
    for seed in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(crossing.Results, "learn", lambda *given: None)
            converted = received(engine.Plain, source, target, seed)
        assert len(converted) == MESSAGES
        assert received(engine.Plain, source, target, seed) == converted
        assert received(c_accel.Engine, source, target, seed) == converted
