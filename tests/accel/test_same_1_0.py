"""AMQP 1.0 with the hot path in C, in Python and frame by frame: to the same octets, whole and in pieces, the same answers, deliveries and
tables.

What goes out may be cut otherwise into dispositions and flows; so their sums are compared: what each delivery came to, each transfer with
its octets, each error, the queues, the counters.
"""

import os
import random
import socket
import struct

import pytest
from in_form import QUEUES, Ingestless, in_form
from invariants import check
from memory_store import MemoryStore
from peer_1_0 import Peer, declare, new_broker, performative

from leveret import c_accel
from leveret.core.amqp_1_0 import composites, convert, types
from leveret.core.broker import engine
from leveret.core.memory import layout
from leveret.core.recovery.opening import make_durable

STEPS = 60
SEEDS = int(os.environ.get("LEVERET_SAME_SEEDS", "15"))
SCALARS = (
    None,
    True,
    False,
    1,
    -5,
    1 << 40,
    2.5,
    "text",
    "t\xe4xt",
    b"\x00\xff",
    ("uint", 7),
    ("timestamp", 1700000000000),
    ("symbol", "s"),
)


class Socket(Peer):
    """A peer whose octets the engine reads from a socket where it can (Connection.take_in)."""

    def __init__(self, *given, **named):
        self.taken_in = []
        self.ends = socket.socketpair()
        Peer.__init__(self, *given, **named)

    def give(self, octets):
        """As Peer's."""
        at = 0
        while at < len(octets) and not self.connection.closed:
            room = len(self.connection.writable())
            piece = octets[at : at + min(room, self.step or room)]
            self.ends[0].send(piece)
            count = self.connection.take_in(self.ends[1].fileno(), None) if piece else -1
            if count < 0:
                assert not piece or self.ends[1].recv(len(piece)) == piece
                count = Peer.give(self, piece or octets[at:])
                at += count
                if count < len(piece) or not piece:
                    break
                continue
            self.taken_in.append(count)
            self.broker.run()
            at += count
        return at

    def close(self):
        """Close the socket."""
        for each in self.ends:
            each.close()


class Side:
    """A broker in one form, with a peer of some kind."""

    def __init__(self, form, durable, kind=Peer):
        with in_form(form):
            self.broker = new_broker(
                content_size_max=3000,
                properties_size_max=1500,
                receive_buffer_size=8192,
                send_buffer_size=8192,
                frame_size_max=4096,
                channel_max=64,
                channel_count_max=64,
                consumer_count_max=64,
            )
            if durable:
                make_durable(self.broker, MemoryStore(), "each", 100, 65536, 1 << 16, 1 << 22)
        for name, arguments in QUEUES:
            declare(self.broker, name, arguments)
        self.broker.tick(0, 0)
        self.peer = kind(self.broker, max_frame_size=2048)
        self.states = {}  # delivery-id of ours -> what it came to
        self.ended = []
        self.transfers = []

    def attach(self, settles):
        for handle, (name, _) in enumerate(QUEUES):
            self.peer.attach("out" + name, handle, False, "/queues/" + name, snd_settle_mode=settles)
            self.look()
            self.peer.attach("in" + name, 20 + handle, True, "/queues/" + name, snd_settle_mode=handle % 2)
            self.look()

    def look(self):
        """Take in what has come."""
        for name, fields, payload, _ in self.peer.frames():
            if name == "disposition" and fields["role"]:
                last = fields["first"] if fields["last"] is None else fields["last"]
                for number in range(fields["first"], last + 1):
                    assert number not in self.states
                    self.states[number] = fields["state"], fields["settled"]
            elif name == "transfer":
                self.transfers.append((fields["handle"], fields["delivery-id"], fields["settled"], payload))
            elif name in ("detach", "end", "close"):
                self.ended.append((name, fields.get("handle"), fields["error"] and fields["error"]["condition"]))

    def seen(self, whole):
        """What is compared; `whole`: the tables are looked at as well."""
        broker = self.broker
        broker.tick(broker.now, broker.seconds)
        if whole:
            check(broker)
        counters = {name: broker.counters[name] for name in broker.counters if name != "held"}
        queues = [(name, found.message_count(), found.unsettled_count(), found.octets()) for name, found in broker.queues.items()]
        return self.states, self.ended, self.transfers, counters, queues


def message(chance):
    """The octets of a message: most as nearly all are, some otherwise, a few wrong."""
    octets = b""
    if chance.random() < 0.5:
        fields = {"durable": chance.choice((None, True, False)), "priority": chance.choice((None, ("ubyte", 3)[1], 0))}
        fields["ttl"] = chance.choice((None, None, None, 100, 60000, 0xFFFFFFFF))
        fields["first-acquirer"] = chance.choice((None, True))
        octets += composites.write("header", fields)
    if chance.random() < 0.05:
        octets += b"\x00\x53\x71" + types.encode({("symbol", "x-hop"): 1})
    if chance.random() < 0.1:
        octets += b"\x00\x53\x72" + types.encode({("symbol", "x-opt-a"): chance.choice(SCALARS)})
    if chance.random() < 0.5:
        fields = {
            "message-id": chance.choice((None, "m", ("ulong", 9), b"x", ("uuid", bytes(16))) * 8 + (5,)),
            "subject": chance.choice((None, "s")),
        }
        fields["user-id"] = chance.choice((None,) * 30 + (b"guest",) * 3 + (b"other",))
        fields["correlation-id"] = chance.choice((None, "c" * chance.randrange(300)))
        fields["content-type"] = chance.choice((None, "text/plain"))
        fields["creation-time"] = chance.choice((None, 1700000000000))
        fields["group-sequence"] = chance.choice((None, 4))
        octets += composites.write("properties", fields)
    if chance.random() < 0.5:
        table = {"k%d" % number: chance.choice(SCALARS) for number in range(chance.randrange(6))}
        octets += b"\x00\x53\x74" + types.encode(table)
    body = chance.randbytes(chance.choice((0, 1, 100, 255, 256, 700)))
    form = chance.random()
    if form < 0.9:
        octets += b"\x00\x53\x75" + types.encode(body)
    elif form < 0.95:
        octets += b"\x00\x53\x77" + types.encode("value")
    else:
        octets += b"\x00\x53\x75" + types.encode(body) + b"\x00\x53\x75" + types.encode(b"more")
    if chance.random() < 0.003:
        place = chance.randrange(len(octets))
        octets = octets[:place] + bytes((chance.randrange(256),)) + octets[place + 1 :]
    return octets


def transfers(chance, number, settles, sides):
    """(frames, the delivery-id behind them): a row of transfers on one link, nearly always within the credit that it has on both sides: the
    engine takes a run before more is given, and what is there to give goes to whom asks first."""
    handle = chance.randrange(len(QUEUES))
    links = [side.peer.connection.session.mapped[0].links.get(handle) for side in sides]
    credit = min([link.credit for link in links]) if links[0] is not None and chance.random() < 0.995 else 30
    frames = b""
    settled = settles == 1 or settles == 2 and chance.random() < 0.5
    for _ in range(min(credit, chance.choice((1, 1, 5, 30)))):
        given = {"delivery_id": number, "delivery_tag": struct.pack(">I", number), "message_format": chance.choice((None, 0))}
        given["settled"] = settled or (None if settles == 0 else False)
        given["batchable"] = chance.choice((None, True))
        if chance.random() < 0.01:
            given["delivery_id"] += chance.choice((0, 0, 1))
        octets = message(chance)
        if chance.random() < 0.05 and len(octets) > 10:
            frames += performative("transfer", 0, octets[:10], handle=handle, more=True, **given)
            octets, given = octets[10:], {}
        frames += performative("transfer", 0, octets, handle=handle, **given)
        number += 1
    return frames, number


def settlement(chance, side):
    """A disposition of deliveries that have come."""
    open_ = [number for _, number, settled, _ in side.transfers if number is not None and not settled]
    if not open_:
        return b""
    first = chance.choice(open_[-40:] + open_[:3])
    last = chance.choice((None, first, first + chance.randrange(20)))
    state = chance.choice((("accepted", {}),) * 6 + (("released", {}), ("rejected", {}), ("modified", {"delivery-failed": True}), None))
    return performative("disposition", role=True, first=first, last=last, settled=chance.random() < 0.9, state=state)


def flow(chance, side):
    """Credit for one of the receivers, counted from what has come on it."""
    handle = 20 + chance.randrange(len(QUEUES))
    count = len([each for each in side.transfers if each[0] == handle and each[1] is not None])
    total = len(side.transfers)
    fields = {"next_incoming_id": total, "incoming_window": chance.choice((2, 100, 5000)), "next_outgoing_id": 0, "outgoing_window": 1000}
    credit = chance.choice((0, 3, 50))
    return performative("flow", 0, handle=handle, delivery_count=count, link_credit=credit, drain=chance.random() < 0.1, **fields)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_same_comes_of_the_same_octets(seed):
    chance = random.Random(seed)
    durable, settles = seed % 3 == 0, (2, 0, 1)[seed % 4 % 3]
    plain, *quick = [Side(form, durable) for form in (Ingestless, engine.Plain, c_accel.Engine)]
    quick.append(Side(c_accel.Engine, durable, Socket))
    assert plain.peer.connection.session.hot is None and None not in [side.peer.connection.session.hot for side in quick]
    for side in (plain, *quick):
        side.attach(settles)
    number, now = 0, 0
    for turn in range(STEPS):
        what = chance.random()
        if what < 0.5:
            octets, number = transfers(chance, number, settles, (plain, *quick))
        elif what < 0.75:
            octets = settlement(chance, plain)
        elif what < 0.95:
            octets = flow(chance, plain)
        else:
            now += chance.choice((1, 50, 400, 2500))
            octets = b""
        step = chance.choice((0, 0, 0, 1, 13))
        for side in (plain, *quick):
            side.peer.step = step
            side.broker.tick(now, now // 1000)
            side.peer.give(octets)
            side.look()
        seen = plain.seen(turn % 10 == 9)
        for side in quick:
            assert seen == side.seen(turn % 10 == 9), side.broker.tables.engine.name
        if plain.peer.connection.ending or [each for each in plain.ended if each[0] != "detach"]:
            break
    quick[-1].peer.close()
    assert quick[-1].peer.taken_in or turn < STEPS // 2


@pytest.mark.parametrize("form,kind", [(engine.Plain, Peer), (c_accel.Engine, Peer), (c_accel.Engine, Socket)])
def test_the_engine_takes_what_nearly_all_send(form, kind):
    """No transfer, no disposition and, in C, no flow with credit comes to the session: else this compares one form with itself."""
    quick = Side(form, False, kind)
    peer = quick.peer
    quick.attach(2)
    session = peer.connection.session.mapped[0]
    taken = []

    def process_frame(name, *given):
        taken.append(name)
        return session.step(name, *given)

    session.process_frame = process_frame
    octets = composites.write("header", {"durable": True}) + composites.write("properties", {"message-id": "m", "subject": "s"})
    octets += b"\x00\x53\x74" + types.encode({"a": 1, "b": "text"}) + b"\x00\x53\x75" + types.encode(b"body")
    for number in range(30):
        given = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": number % 2 == 0}
        peer.give(performative("transfer", 0, octets, handle=0, **given))
    peer.credit(10, handle=21)  # of another queue
    peer.credit(30, handle=20)
    quick.look()
    assert taken == ([] if form is c_accel.Engine else ["flow", "flow"]) and len(quick.states) == 15 and len(quick.transfers) == 30
    assert {each[3] for each in quick.transfers} == {octets}
    first = quick.transfers[0][1]
    peer.settle(first, ("accepted", {}), first + 9)
    peer.settle(first + 11, ("accepted", {}))
    assert "disposition" not in taken and quick.broker.queues["q"].unsettled_count() == 19
    if kind is Socket:
        assert len(peer.taken_in) >= 29  # what a link or a session gives first, the port reads
        peer.close()


@pytest.mark.parametrize("form", [engine.Plain, c_accel.Engine])
def test_a_permission_that_is_taken_back_counts_for_the_next_transfer(form):
    side = Side(form, False)
    side.attach(2)
    octets = b"\x00\x53\x75" + types.encode(b"body")
    for number in range(6):
        if number == 3:
            side.broker.access.users["guest"].permit(["", "", ".*"])
        given = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": False}
        side.peer.give(performative("transfer", 0, octets, handle=0, **given))
        side.look()
    assert side.broker.queues["q"].message_count() == 3 and sorted(side.states) == [0, 1, 2]
    assert side.ended[0] == ("detach", 0, "amqp:unauthorized-access")


@pytest.mark.parametrize("settles", [0, 1])
def test_receivers_that_compete_get_the_same_and_c_delivers_by_itself(settles):
    """In turn, within each one's credit and the session's window, which opens late; what came back is Python's, in its place."""
    came = []
    for form in (engine.Plain, c_accel.Engine):
        side = Side(form, False)
        peer, protocol = side.peer, side.peer.connection.session
        calls = []
        protocol.deliver = lambda consumer, most, before=0, calls=calls, deliver=protocol.deliver: (
            calls.append(most) or deliver(consumer, most, before)
        )
        peer.attach("out", 0, False, "/queues/q", snd_settle_mode=1)
        side.look()
        for handle, credit in ((20, 5), (21, 60), (22, 20)):
            peer.attach("in%d" % handle, handle, True, "/queues/q", snd_settle_mode=settles)
            peer.credit(credit, handle=handle, incoming_window=30)
            side.look()
        for number in range(60):
            given = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": True}
            peer.give(performative("transfer", 0, b"\x00\x53\x75" + types.encode(b"%d" % number), handle=0, **given))
            side.look()
        assert len(side.transfers) == 30
        peer.give(performative("flow", next_incoming_id=30, incoming_window=100, next_outgoing_id=0, outgoing_window=100))
        side.look()
        assert len(side.transfers) == 60 and (not calls or form is engine.Plain)
        if not settles:
            peer.settle(side.transfers[7][1], ("modified", {"delivery-failed": True}))
            peer.settle(side.transfers[9][1], ("accepted", {}), side.transfers[20][1])
            side.look()
            assert len(side.transfers) == 61
        session = protocol.mapped[0]
        counts = [session.links[handle].delivery_count for handle in (20, 21, 22)]
        came.append((side.transfers, session.next_outgoing_id, session.remote_incoming_window, counts, side.ended))
    assert came[0] == came[1] and came[0][3][0] == 5


@pytest.mark.parametrize("form", [engine.Plain, c_accel.Engine])
def test_the_engine_makes_deliveries_with_a_lifetime_and_in_c_those_that_have_failed(form, monkeypatch):
    """Where a second of the lifetime is over, and again where deliveries have failed, the header is made anew: in C too."""
    quick = Side(form, False)
    quick.broker.tick(0, layout.EPOCH)
    peer, made = quick.peer, []
    head = convert.head_for_1_0
    monkeypatch.setattr(convert, "head_for_1_0", lambda *given: made.append(given) or head(*given))
    quick.attach(2)
    octets = composites.write("header", {"ttl": 60000}) + b"\x00\x53\x75" + types.encode(b"body")
    for number in range(6):
        given = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": True}
        peer.give(performative("transfer", 0, octets, handle=0, **given))
    peer.frames()
    in_c = form is c_accel.Engine
    for count, now, from_python in ((2, 0, 0), (2, 3000, 0 if in_c else 2)):
        quick.broker.tick(now, layout.EPOCH + now // 1000)
        peer.credit(count, handle=20, delivery_count=0 if not now else 2, next_incoming_id=0 if not now else 2)
        found = [(fields["delivery-id"], payload) for name, fields, payload, _ in peer.frames() if name == "transfer"]
        ttl = composites.read(found[0][1], 0, len(found[0][1]))[1]["ttl"]
        assert len(found) == count and ttl == (60000 if not now else 58000) and len(made) == from_python
    made.clear()
    peer.settle(found[0][0], ("modified", {"delivery-failed": True}), found[-1][0])
    peer.credit(4, handle=20, delivery_count=4, next_incoming_id=4)
    found = [composites.read(payload, 0, len(payload))[1] for name, _, payload, _ in peer.frames() if name == "transfer"]
    assert [fields["delivery-count"] for fields in found] == [1, 1, None, None] and len(made) == (0 if in_c else 4)


@pytest.mark.parametrize("form", [engine.Plain, c_accel.Engine])
def test_a_list_with_more_octets_than_values_settles_nothing(form, monkeypatch):
    """Section 1.6.22: the count says how many values a list has; the state behind the last of a disposition's four is none of it."""
    monkeypatch.setattr(engine, "chosen", form)
    for count, condition in ((4, ["amqp:decode-error"]), (5, [])):
        peer = Peer(new_broker())
        declare(peer.broker)
        peer.sender()
        peer.send(0, b"body")
        peer.frames()
        peer.receiver()
        first = [fields["delivery-id"] for name, fields, _, _ in peer.frames() if name == "transfer"]
        fields = b"\x41\x52" + bytes(first) + b"\x40\x41\x00\x53\x24\x45"  # role, first, last, settled; accepted
        octets = b"\x02\x00\x00\x00\x00\x53\x15\xc0" + bytes((1 + len(fields), count)) + fields
        peer.give(struct.pack(">I", 4 + len(octets)) + octets)
        assert [frame[1]["error"]["condition"] for frame in peer.frames() if frame[0] == "close"] == condition
        peer.broker.fold_counters()
        assert peer.broker.counters["settled"] == (0 if condition else 1)
