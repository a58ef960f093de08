"""Attackers that speak AMQP 1.0 wrongly, or too much of it: frames, log-ins, sessions, flows, dispositions, management."""

import struct

import wire_1_0 as wire
from peer import Gone
from peer_1_0 import Peer10, open_1_0, queue_of
from wire_1_0 import Described, Symbol, uint

ENDS = (0, 1, 2, 199, 200, 2047, 2048, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1)
VALUES = (None, True, b"", b"\xff" * 300, "", "\U0001f407" * 100, Symbol("x" * 300), {}, {"a": {"b": []}}, [], [[]] * 50)
VALUES += (uint(2**32 - 1), ("ulong", 2**64 - 1), ("long", -(2**63)), ("ubyte", 255), Described(0x24, []), Described(2**63, [None]))
CODES = (*range(0x10, 0x19), *range(0x40, 0x45), 0x1D, 0x23, 0x28, 0x30, 0x34, 0x70, 0xFF)


def sasl_garbage(attack):
    """Log-ins of AMQP 1.0 with mechanisms, responses and frames that make no sense."""
    chance = attack.chance
    peer = attack.connect(kind=Peer10, address=f"127.6.{chance.randrange(1, 250)}.{chance.randrange(1, 250)}")
    peer.speaks = True
    response = chance.choice((None, b"", b"\0", b"\0mallory", b"\xff" * 400, b"n,,n=mallory,r=", b"p=x,,", b"\0mallory\0wrong"))
    mechanism = Symbol(chance.choice(("PLAIN", "ANONYMOUS", "EXTERNAL", "SCRAM-SHA-256", "", "x" * 200, "plain")))
    init = wire.performative(wire.INIT, mechanism, response, chance.choice((None, "host", "h" * 100)))
    choices = (
        wire.frame(0, init, 1),
        wire.frame(9, init, 1),
        wire.frame(0, init, 0),
        wire.frame(0, init, 1) * 3,
        wire.frame(0, wire.performative(wire.RESPONSE, b"x" * 100), 1),
        wire.frame(0, wire.performative(wire.OUTCOME, ("ubyte", 0)), 1),
        struct.pack(">IBBH", 600, 2, 1, 0) + bytes(592),
        struct.pack(">IBBH", 8, 2, 1, 0),
        wire.HEADER,
        bytes(chance.randrange(256) for _ in range(64)),
    )
    peer.send(wire.SASL_HEADER + chance.choice(choices))
    peer.look(0.1)
    peer.send(wire.frame(0, wire.performative(wire.RESPONSE, chance.choice((b"", b"c=biws,r=x,p=", b"\xff" * 300))), 1))
    peer.look(0.1)
    peer.close()


def opens_never_followed(attack):
    """Connections of AMQP 1.0 that stop at each step of the way to a session."""
    for step in range(40):
        peer = attack.connect(kind=Peer10)
        if step % 4 == 0:
            peer.send(wire.SASL_HEADER[: attack.chance.randrange(1, 9)])
        else:
            peer.log_in_1_0()
            if step % 4 > 1:
                peer.send(wire.HEADER)
            if step % 4 > 2:
                peer.say(0, wire.performative(wire.OPEN, "mallory", None, uint(512)))
    attack.rest()


def odd_opens(attack):
    """Opens and begins with numbers at their ends."""
    chance = attack.chance
    peer = attack.connect(kind=Peer10)
    peer.log_in_1_0()
    name = chance.choice(("", "c" * 2000, "mallory", "\U0001f407" * 60))
    host = chance.choice((None, "", "vhost:/", "vhost:nowhere", "h" * 300))
    numbers = uint(chance.choice((*ENDS, 512))), ("ushort", chance.choice((0, 1, 65535))), uint(chance.choice(ENDS))
    peer.send(wire.HEADER + wire.frame(chance.choice((0, 0, 1)), wire.performative(wire.OPEN, name, host, *numbers)))
    for _ in range(20):
        begin = wire.performative(wire.BEGIN, None, *(uint(chance.choice(ENDS)) for _ in range(4)))
        peer.say(chance.choice((0, 1, 2, 127, 128, 65535)), begin)
    peer.look(0.1)
    peer.close()


def frames_of_any_kind(attack):
    """Performatives with fields of any type and number, in any order."""
    chance = attack.chance
    peer = open_1_0(attack, sessions=2)
    peer.link("a", 0, False, "/exchanges/amq.topic/k")
    peer.link("b", 1, True, f"/queues/{queue_of(attack)}")
    for _ in range(60):
        fields = [chance.choice((*VALUES, uint(chance.choice(ENDS)))) for _ in range(chance.randrange(12))]
        peer.say(chance.choice((0, 0, 0, 1, 7)), wire.performative(chance.choice(CODES), *fields) + b"x" * chance.choice((0, 0, 50)))
    peer.look(0.05)


def changed_octets(attack):
    """A session as it should be, with some octets changed."""
    chance = attack.chance
    peer = open_1_0(attack, sessions=1)
    text = wire.frame(0, wire.attach("a", 0, False, "/exchanges/amq.topic/k")) + wire.frame(
        0, wire.attach("b", 1, True, "/queues/mallory.q1")
    )
    text += wire.frame(0, wire.flow(1, 10)) + b"".join(wire.frame(0, wire.transfer(0, each, wire.data(b"x"))) for each in range(5))
    text += wire.frame(0, wire.disposition(0, 4)) + wire.frame(0, wire.performative(wire.END))
    octets = bytearray(text)
    for _ in range(chance.randrange(1, 4)):
        octets[chance.randrange(len(octets))] = chance.randrange(256)
    peer.send(bytes(octets))
    peer.look(0.1)
    peer.close()


def frame_sizes(attack):
    """Frames with sizes and offsets that are not theirs."""
    chance = attack.chance
    peer = open_1_0(attack, sessions=1)
    size = chance.choice((0, 1, 7, 8, 9, 511, 65536, 65537, 2**24, 2**31, 2**32 - 1))
    peer.send(
        struct.pack(">IBBH", size, chance.choice((0, 1, 2, 3, 200, 255)), chance.choice((0, 0, 0, 1, 9)), 0)
        + bytes(chance.choice((0, 8, 3000)))
    )
    peer.look(0.1)
    peer.close()


def empty_frames(attack):
    """Frames without a body, without end."""
    peer = open_1_0(attack)
    for _ in range(50):
        peer.send(struct.pack(">IBBH", 8, 2, 0, 0) * 4000)


def nested_values(attack):
    """Lists in lists, and arrays of what has no octets, in messages, filters and annotations."""
    peer = open_1_0(attack)
    peer.link("a", 0, False, "/exchanges/amq.topic/k")
    deep = []
    for _ in range(attack.chance.choice((10, 15, 16, 17, 100))):
        deep = [deep]
    wide = b"\x00\x53\x72\xc1\x0e\x02\xa3\x01a\xf0" + struct.pack(">II", 5, 2**31 - 1) + b"\x45"
    for octets in (
        b"\x00\x53\x72" + wire.value({"a": deep}),
        wide,
        b"\x00\x53\x74" + wire.value({f"k{each}": each % 2 == 0 for each in range(3000)}),
    ):
        peer.say(0, wire.transfer(0, peer.got["disposition"], octets + wire.data(b"x")))
        peer.look(0.05)
        peer.say(0, wire.performative(wire.DETACH, uint(0), True))
        peer.link("a", 0, False, "/exchanges/amq.topic/k")


def flows_with_extremes(attack):
    """Flows whose windows, counts and credit are at the ends of their range."""
    chance = attack.chance
    peer = open_1_0(attack, sessions=1)
    peer.link("b", 1, True, f"/queues/{queue_of(attack)}")
    peer.link("a", 0, False, "/exchanges/amq.topic/k")
    for _ in range(300):
        numbers = [uint(chance.choice(ENDS)) if chance.random() < 0.8 else None for _ in range(8)]
        numbers[0], numbers[1], numbers[2], numbers[3] = (
            numbers[0],
            uint(chance.choice(ENDS)),
            uint(chance.choice(ENDS)),
            uint(chance.choice(ENDS)),
        )
        numbers[4] = uint(chance.choice((0, 1, 1, 255, 2**32 - 1)) if chance.random() < 0.05 else chance.choice((0, 1)))
        peer.say(0, wire.performative(wire.FLOW, *numbers[:7], None, chance.random() < 0.3, chance.random() < 0.3))
    peer.look(0.05)


def dispositions_over_everything(attack):
    """Dispositions about ranges of 2^31 and more delivery-ids, of either side, again and again."""
    chance = attack.chance
    peer = open_1_0(attack)
    queue = queue_of(attack)
    peer.link("a", 0, False, f"/queues/{queue}")
    peer.link("b", 1, True, f"/queues/{queue}")
    peer.say(0, wire.flow(1, 500))
    for number in range(100):
        peer.say(0, wire.transfer(0, number, wire.data(b"x" * 50)))
    for _ in range(200):
        first, last = chance.choice(ENDS), chance.choice(ENDS)
        state = chance.choice((wire.ACCEPTED, wire.RELEASED, wire.MODIFIED, wire.REJECTED, None, 0x23, 0x34))
        peer.say(0, wire.disposition(first, last, chance.random() < 0.5, state, chance.random() < 0.7))
    peer.look(0.05)


def management_garbage(attack):
    """Requests to the management that make no sense, and responses that nobody takes."""
    chance = attack.chance
    peer = open_1_0(attack, sessions=2)
    channel = chance.randrange(2)
    paths = (
        "",
        "/",
        "/queues/",
        "/queues/%",
        "/queues/%ff",
        "/bindings?src=&dstq=",
        "/queues/" + "q" * 400,
        "/auth/tokens",
        "x",
        "/exchanges/mallory.e1",
    )
    for name, receives in (("m", False), ("m", True)):
        peer.link(name, int(receives), receives, "/management", channel)
    peer.say(channel, wire.flow(1, chance.choice((0, 1, 1000))))
    for number in range(60):
        method = chance.choice(("GET", "PUT", "POST", "DELETE", "", "X" * 100))
        properties = Described(0x73, [("ulong", number), None, chance.choice(paths), method, "$me"])
        body = wire.value(
            Described(0x77, chance.choice((*VALUES, {"type": "topic", "durable": True}, {"arguments": {"x-max-length": -1}})))
        )
        octets = chance.choice((wire.value(properties) + body, wire.value(properties), body, b"\xff" * 40, bytes(4000)))
        peer.say(channel, wire.transfer(1 - 1, number, octets, settled=chance.random() < 0.5))
        if peer.got["detach"] or peer.got["end"]:
            break
    peer.look(0.05)


def messages_of_any_kind(attack):
    """Sections out of order, doubled, without end; x-cc of any kind; a to that leads nowhere."""
    chance = attack.chance
    peer = open_1_0(attack)
    peer.link("a", 0, False, chance.choice((None, f"/queues/{queue_of(attack)}", "/exchanges/amq.headers/k")))
    annotations = {Symbol("x-cc"): chance.choice(VALUES), Symbol("x-delay"): uint(2**32 - 1), Symbol("x-opt-delivery-time"): ("long", -1)}
    to = chance.choice((None, "/queues/mallory.q1", "/exchanges/amq.topic/" + "k" * 300, "/x", "", b"\xff", "/queues/%zz"))
    parts = [
        wire.value(Described(0x70, [chance.choice(VALUES), chance.choice((None, ("ubyte", 255))), uint(chance.choice(ENDS))])),
        wire.value(Described(0x72, annotations)),
        wire.value(Described(0x73, [chance.choice(VALUES), chance.choice((None, b"mallory", b"honest")), to, chance.choice(VALUES)])),
        wire.value(Described(0x74, {"a": chance.choice(VALUES), "x-death": [{"count": ("long", 2**63 - 1)}]})),
        wire.data(b"x" * chance.choice((0, 1, 5000))),
        wire.value(Described(0x78, {})),
    ]
    for number in range(20):
        some = [each for each in parts if chance.random() < 0.8]
        if chance.random() < 0.3:
            chance.shuffle(some)
        peer.say(0, wire.transfer(0, number, b"".join(some)))
    peer.look(0.05)


def crossing_ends(attack):
    """Detaches, ends and closes that cross the broker's, answers that never come."""
    chance = attack.chance
    peer = open_1_0(attack, sessions=3)
    peer.answers = chance.random() < 0.5
    for handle in range(20):
        peer.say(0, wire.attach(f"l{handle}", handle, handle % 2 == 0, chance.choice(("/queues/mallory.none", "/exchanges/amq.topic/k"))))
        if chance.random() < 0.5:
            peer.say(0, wire.performative(wire.DETACH, uint(handle), chance.random() < 0.5))
    peer.say(chance.randrange(3), wire.performative(wire.END))
    peer.say(0, wire.performative(chance.choice((wire.CLOSE, wire.END, wire.OPEN))))
    try:
        peer.look(0.1)
    except Gone:
        return
    peer.close(reset=chance.random() < 0.5)


ATTACKERS = (
    sasl_garbage,
    opens_never_followed,
    odd_opens,
    frames_of_any_kind,
    changed_octets,
    frame_sizes,
    empty_frames,
    nested_values,
    flows_with_extremes,
    dispositions_over_everything,
    management_garbage,
    messages_of_any_kind,
    crossing_ends,
)
