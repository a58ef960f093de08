"""The drafts of 2005 frame by frame, by CPython's hot path (core/amqp_0_9/drafts/hot_*.py) and by C: the same messages, the same frames."""

import random
import struct

import pytest
from draft_peer import Peer9a5, Peer9r1, bits, long, longlong, octet, short, word
from in_form import in_form
from peer import Peer as Peer091
from peer import content, new_broker
from test_neutral import headers, of_basic, some

from leveret import c_accel
from leveret.core.amqp_0_9.drafts import hot_in_quicker as hot_in
from leveret.core.amqp_0_9.drafts import session
from leveret.core.broker import engine
from leveret.core.memory import layout

SEEDS = 2
MESSAGES = 120
PEERS = {"0.9a5": Peer9a5, "0.9r1": Peer9r1}
FORMS = {"frames": engine.Plain, "plain": engine.Plain, "C": c_accel.Engine}


def new(form, monkeypatch):
    """A broker; `frames`: without a hot path of drafts."""
    if form == "frames":
        monkeypatch.setattr(session, "part", lambda name: None)
    with in_form(FORMS[form]):
        return new_broker(
            properties_size_max=4000, receive_buffer_size=16384, send_buffer_size=32768, frame_size_max=8192, arena_size=1 << 20
        )


def pair(chance, name, version):
    """A pair of a draft's table."""
    wide = version == "0.9r1"
    usual = chance.random() < 0.95
    text = chance.choice((b"", b"text", b"x" * 300) if usual else (b"u\xcc\x88ber", b"\xff"))
    values = [
        b"I" + struct.pack(">i", chance.choice((0, -1, 5, -(1 << 31)))),
        b"D" + octet(chance.choice((0, 2, 9, 22) if usual else (23, 255))) + struct.pack(">i", chance.choice((0, 25, -125))),
        b"T" + longlong(1700000000),
        b"S" + (long(len(text)) + text if wide else octet(min(len(text), 255)) + text[:255]),
    ]
    if not wide:
        values.append(b"L" + word(len(text)) + text)
    if chance.random() < 0.02:
        inner = short("a") + b"I" + long(1)
        values = [b"F" + long(len(inner)) + inner]
    if chance.random() < 0.004:
        values = [b"I\x00", b"Z", b"S"]
    return short(name) + chance.choice(values)


def properties(chance, version):
    """Flags and properties of class jms of a draft (bytes), at times no valid ones; of 0.9a5 with the destination "k" or another."""
    names = "content_type content_encoding headers delivery_mode priority correlation_id reply_to expiration message_id timestamp".split()
    names += ["type", "user_id", "app_id"]
    rows = names[:2] + ["destination"] * (version == "0.9a5") + names[2:]
    flags, octets = 0, b""
    for place, name in enumerate(rows):
        if chance.random() < 0.4 and name != "destination":
            continue
        flags |= 0x8000 >> place
        usual = {"destination": "k", "expiration": "60000", "timestamp": "1700000000", "user_id": "guest"}.get(name, "text")
        text = short(usual if chance.random() < 0.995 else chance.choice(("", "\u00e4", "x\x00", "1" * 19, "other")))
        if name == "headers":
            chosen = [chance.choice(("a", "b1", "$c_", "d-e", "9", "CC", "")) if chance.random() < 0.008 else "n%d" % at for at in range(4)]
            pairs = b"".join([pair(chance, each, version) for each in chosen[: chance.randrange(5)]])
            text = long(len(pairs) + (chance.random() < 0.005)) + pairs
        elif name in ("delivery_mode", "priority"):
            text = octet(chance.choice((1, 2)))
        elif name == "timestamp" and version == "0.9r1":
            text = longlong(1700000000)
        octets += text
    if chance.random() < 0.005:
        flags |= chance.choice((1, 2, 4))
    return word(flags) + octets + (b"more" if chance.random() < 0.005 else b"")


def publishes(peer, chance, count):
    """The frames of publishes, one behind the other, a few of them not as usual."""
    octets = b""
    for _ in range(count):
        body = chance.randbytes(chance.choice((0, 1, 255, 700, 3000)))
        ticket, odd = peer.ticket, chance.random()
        names = (short("amq.direct"), bits(0)) if peer.version == "0.9a5" else (short("amq.direct"), short("k"), bits(odd < 0.05, 0))
        octets += peer.frame(1, 1, peer.ids(7, 5) + ticket + b"".join(names))
        head = peer.number(7) + peer.number(0) + longlong(len(body))
        octets += peer.frame(2, 1, head + properties(chance, peer.version))
        cut = chance.choice((len(body) or 1, 400))
        octets += b"".join([peer.frame(3, 1, body[at : at + cut]) for at in range(0, len(body), cut)])
    return octets


def stored(broker, name="q"):
    """What waits in a queue."""
    tables, found = broker.tables, []
    entry = broker.queues[name].head()
    while entry != layout.NONE:
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        record = [
            tables.messages[message + field]
            for field in (layout.MESSAGE_KIND, layout.MESSAGE_ROUTE, layout.MESSAGE_BODY, layout.MESSAGE_LIFETIME)
        ]
        found.append((record, tables.octets(message, 0, tables.size_of(message))))
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    return found


def taken(form, version, seed, monkeypatch):
    """(what waits in the queue, what the publishers heard, how many frames went one by one)."""
    with monkeypatch.context() as patched:
        broker = new(form, patched)
        chance, heard, frames = random.Random(seed), [], []
        one_frame = session.Draft.one_frame
        patched.setattr(session.Draft, "one_frame", lambda self: frames.append(0) or one_frame(self))
        peer = PEERS[version](broker).queue()
        for _ in range(MESSAGES // 5):
            heard.append(peer.heard())
            if heard[-1] or peer.connection.closed:
                peer = PEERS[version](broker)
            octets, at = publishes(peer, chance, 5), 0
            while at < len(octets):
                size = chance.choice((100, 4000, len(octets)))
                peer.give(octets[at : at + size])
                at += size
        heard.append(peer.heard())
        assert broker.counters["internal_errors"] == 0
        return stored(broker), heard, len(frames)


@pytest.mark.parametrize("version", list(PEERS))
@pytest.mark.parametrize("seed", range(SEEDS))
def test_publishes_are_taken_alike(version, seed, monkeypatch):
    usual, plain, quick = [taken(form, version, seed, monkeypatch) for form in FORMS]
    assert plain[:2] == usual[:2] and quick[:2] == usual[:2]
    assert len(usual[0]) > MESSAGES / 3
    assert plain[2] < usual[2] * 3 / 4 and quick[2] < usual[2] * 3 / 4, "most of them take the hot path"


def whole(frames):
    """Frames with the body of each content as one of them: in how many it comes follows from the room that there is."""
    found = []
    for frame in frames:
        if frame[0] == 3 and found[-1][0] == 3:
            frame = (3, frame[1], found.pop()[2] + frame[2])
        found.append(frame)
    return found


def delivered(form, version, source, seed, monkeypatch):
    """(frames that a consumer got, those after some went back, messages left, deliveries of session.py's own)."""
    with monkeypatch.context() as patched:
        broker, chance, made = new(form, patched), random.Random(seed), []
        content_out = session.Draft.content_out
        patched.setattr(session.Draft, "content_out", lambda self, *given: made.append(0) or content_out(self, *given))
        peer = PEERS[version](broker).queue()
        if source == "0-9-1":
            other = Peer091(broker)
            for _ in range(MESSAGES):
                given = of_basic(chance)
                if chance.random() < 0.3:
                    table = headers(chance)
                    some(chance, table, "x-content-tree", b"no tree")
                    some(chance, table, "f", ("f", 0.25), ("f", 0.1), 0.25, 1e300)
                    given["headers"] = {
                        name: value for name, value in table.items() if not isinstance(value, tuple) or value[0] in "bsIlBuifT"
                    }
                other.give(content(1, "", "q", bytes(chance.choice((0, 1, 255, 700, 7000))), given))
        else:
            other = PEERS[source](broker)
            for _ in range(MESSAGES):
                other.give(publishes(other, chance, 1))
                if other.heard() or other.connection.closed:
                    other = PEERS[source](broker)
        assert broker.queues["q"].message_count() > MESSAGES / 3
        wanted = (short(""),) if version == "0.9a5" else ()
        tail = (word(0), word(0), bits(0, 0, 0)) if version == "0.9a5" else (long(0), word(0), bits(0, 0, 0))
        peer.say(1, 7, 1, peer.ticket, *wanted, short("q"), *tail)
        first = whole(peer.heard())
        peer.say(1, 7, 10 if version == "0.9a5" else 11, longlong(20), bits(1))  # ack of all up to the 20th
        peer.say(1, 7, 11 if version == "0.9a5" else 12, longlong(21), bits(1))  # reject, and again
        again = whole(peer.heard())
        assert broker.counters["internal_errors"] == 0
        return first, again, broker.queues["q"].message_count(), len(made)


@pytest.mark.parametrize("version", list(PEERS))
@pytest.mark.parametrize("source", ["0-9-1", *PEERS])
@pytest.mark.parametrize("seed", range(SEEDS - 1))
def test_consumers_get_the_same(version, source, seed, monkeypatch):
    usual, plain, quick = [delivered(form, version, source, seed, monkeypatch) for form in FORMS]
    assert plain[:3] == usual[:3]
    assert quick[:3] == usual[:3]
    assert usual[0] and usual[1]
    assert plain[3] < usual[3] * 3 / 4 and quick[3] < usual[3] * 3 / 4, "most of them take the hot path"


def test_every_property_has_its_place():
    """Class jms has its properties in the order of class basic, as the hot path wants them."""
    for peer in (Peer9a5(), Peer9r1()):
        flags = [row[1] for row in hot_in.plan(peer.connection.session.wire.CONTENTS[hot_in.JMS][1]) if row[1]]
        assert flags == sorted(flags, reverse=True) and len(flags) == len(hot_in.FLAGS)


def test_a_ticket_without_the_right_to_write_is_refused_on_the_hot_path(monkeypatch):
    for version, peer_class in PEERS.items():
        for form in ("plain", "C"):
            peer = peer_class(new(form, monkeypatch)).queue()
            peer.publish(b"once")
            peer.take()
            class_id, method_id = 3, 1
            given = peer.ask(class_id, method_id, short("/data"), bits(0, 1, 1, 0, 1))
            assert given != peer.ticket
            peer.ticket = given
            peer.give(publishes(peer, random.Random(3), 1)[: 4 if version == "0.9a5" else 8])
            peer.give(publishes(peer, random.Random(3), 1)[4 if version == "0.9a5" else 8 :])
            peer.closed(403)
            assert len(stored(peer.broker)) == 1
