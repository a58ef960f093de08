"""Attackers that speak AMQP 0-10 wrongly, or too much of it: frames, log-ins, attaches, sets of ids, fields, values, ends that cross."""

import struct

import wire_0_10 as wire
from peer import Gone
from peer_0_10 import Peer010, open_0_10
from wire_0_10 import Raw

IDS = (0, 1, 2, 7, 1000, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1)
NUMBERS = {"u8": (0, 1, 2, 3, 127, 255), "u16": (0, 1, 2, 4095, 65535), "u32": IDS, "u64": (*IDS, 2**63 - 1, 2**63, 2**64 - 1)}
NAMES = ("", "mallory.q1", "mallory.q2", "mallory.none", "amq.topic", "amq.direct", "honest.work", "n" * 255, "\U0001f407" * 60, "a\0b")
MAPS = (
    {},
    {"a": {"b": [[]]}},
    {"x-max-length": -1},
    {"qpid.max_count": 2**40},
    {"qpid.policy_type": "x" * 300},
    {"x-filter-jms-selector": "a >"},
)


def value_of(chance, type_):
    """A field of its type that may make sense."""
    if type_ in NUMBERS:
        return chance.choice(NUMBERS[type_])
    if type_ == "set":
        return [(chance.choice(IDS), chance.choice(IDS)) for _ in range(chance.choice((0, 1, 1, 2, 50)))]
    if type_ == "map":
        return chance.choice(MAPS)
    if type_ == "xid":
        return chance.choice((b"", b"g", b"g" * 64, b"g" * 255)), chance.choice((b"", b"b", b"b" * 255))
    if type_ in ("vbin16", "vbin32", "array"):
        return bytes(chance.choice((0, 1, 4, 1025)))
    return chance.choice(NAMES)


def any_fields(chance, name):
    """Most of an operation's fields."""
    rows = [row for row in wire.FIELDS[name] if chance.random() < 0.8]
    return {title: chance.random() < 0.3 if type_ == "bit" else value_of(chance, type_) for title, type_ in rows}


def log_ins_0_10(attack):
    """Log-ins with mechanisms, responses and controls that make no sense there."""
    chance = attack.chance
    peer = attack.connect(kind=Peer010, address=f"127.6.{chance.randrange(1, 250)}.{chance.randrange(1, 250)}")
    peer.speaks = True
    peer.send(wire.HEADER)
    mechanism = chance.choice(("PLAIN", "ANONYMOUS", "EXTERNAL", "SCRAM-SHA-256", "", "x" * 200, "plain"))
    response = chance.choice((None, b"", b"\0", b"\0mallory", b"\xff" * 400, b"n,,n=mallory,r=", b"\0mallory\0wrong"))
    start = wire.control(0, "connection.start-ok", client_properties={"a": {}}, mechanism=mechanism, response=response, locale="en_US")
    other = chance.choice([name for name in wire.CODES if wire.CODES[name] < 0x300])
    peer.send(chance.choice((start, start * 3, wire.control(0, other, **any_fields(chance, other)), wire.HEADER, bytes(64), start[:-3])))
    peer.look(0.1)
    peer.tell(0, "connection.secure-ok", response=chance.choice((b"", b"c=biws,r=x,p=", b"\xff" * 300)))
    peer.tell(0, "connection.tune-ok", channel_max=chance.choice((0, 1, 65535)), max_frame_size=chance.choice((0, 1, 11, 12, 4095, 65535)))
    peer.look(0.1)
    peer.close()


def opens_never_followed_0_10(attack):
    """Connections that stop at each step of the way to a session."""
    for step in range(40):
        peer = attack.connect(kind=Peer010)
        if step % 4 == 0:
            peer.send(wire.HEADER[: attack.chance.randrange(5, 9)])
            continue
        peer.log_in_0_10()
        if step % 4 > 1:
            peer.tell(0, "connection.tune-ok", channel_max=0, max_frame_size=4096, heartbeat=0)
        if step % 4 > 2:
            peer.tell(0, "connection.open", virtual_host="/")
    attack.rest()


def half_frames_0_10(attack):
    """Frames that never end, on a session and before any: cut in their head, in their payload, between their segments."""
    chance = attack.chance
    for _ in range(10):
        peer = open_0_10(attack, sessions=1)
        octets = wire.transfer(0, bytes(3000), "mallory.q1", size=1000)
        peer.send(octets[: chance.randrange(1, len(octets))])
        peer.look()
    attack.rest()


def frame_heads(attack):
    """Frames whose flags, type, size, track and reserved octets are not theirs."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=1)
    size = chance.choice((0, 1, 11, 12, 13, 14, 4096, 65535))
    head = struct.pack(
        ">BBHBBHI",
        chance.choice((15, 15, 0, 7, 11, 13, 14, 16, 64, 255)),
        chance.choice((0, 1, 2, 3, 4, 255)),
        size,
        chance.choice((0, 0, 0, 1)),
        chance.choice((0, 1, 2, 15, 16)),
        chance.choice((0, 0, 1, 127, 128, 65535)),
        chance.choice((0, 0, 0, 1)),
    )
    peer.send(head + bytes(max(size - 12, 0)))
    peer.look(0.1)
    peer.close()


def segments_out_of_order(attack):
    """Segments and frames of commands in any order, twice, never first, never last."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=2)
    payloads = wire.operation("message.transfer", destination="amq.topic"), wire.head({"routing_key": "k"}), b"x" * 50
    for _ in range(40):
        type_ = chance.choice((wire.COMMAND, wire.HEAD, wire.BODY))
        flags = chance.choice((15, 11, 3, 7, 2, 1, 0, 10, 5))
        peer.send(wire.frame(flags, type_, chance.randrange(2), payloads[type_ - 1]))
        peer.look()


def operations_of_any_kind(attack):
    """Every control and command with fields from their ends, in any order, on sessions that are there and on others."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=2)
    for channel in range(2):
        peer.subscribed.add(channel)
    for _ in range(60):
        name = chance.choice([each for each in wire.CODES if each[:10] != "connection" or chance.random() < 0.05])
        channel = 0 if name[:10] == "connection" else chance.choice((0, 0, 0, 1, 7, 200))
        build = wire.control if wire.CODES[name] < 0x300 else wire.command
        peer.send(build(channel, name, **any_fields(chance, name)))
        peer.again()


def operations_that_lie(attack):
    """Packing flags without fields, fields without end, codes that nothing has, session headers of another size."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=1)
    code = struct.pack(">H", chance.choice((*wire.CODES.values(), 0, 0x0300, 0x0FFF, 0xFFFF)))
    rest = chance.choice(
        (b"", b"\x01\x00", b"\x01\xff\xff\xff", b"\xff\x00", b"\x00" * 40, b"\x01\x00\xff\xff" + bytes(40), b"\x01\x00\x01\x00\xff")
    )
    peer.send(wire.frame(wire.WHOLE, chance.choice((wire.CONTROL, wire.COMMAND)), 0, code + rest))
    peer.look(0.1)
    peer.close()


def changed_octets_0_10(attack):
    """A session as it should be, with some octets changed."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=0)
    text = wire.control(0, "session.attach", name=b"mallory changed") + wire.control(
        0, "session.command-point", command_id=0, command_offset=0
    )
    text += wire.command(0, "queue.declare", queue="mallory.q1", durable=True, arguments={"x-max-length": 100})
    text += wire.command(0, "message.subscribe", queue="mallory.q1", destination="d", accept_mode=0, acquire_mode=0)
    text += (
        wire.command(0, "message.flow", destination="d", unit=0, value=10) + wire.transfer(0, b"x" * 40, "k", destination="amq.topic") * 5
    )
    text += wire.control(0, "session.flush", expected=True, completed=True) + wire.control(0, "session.detach", name=b"mallory changed")
    octets = bytearray(text)
    for _ in range(chance.randrange(1, 4)):
        octets[chance.randrange(len(octets))] = chance.randrange(256)
    peer.subscribed = None
    peer.send(bytes(octets))
    peer.look(0.1)
    peer.close()


def structs_of_wrong_sizes(attack):
    """Header segments whose structs have sizes, codes and flags that are not theirs, and those that nobody knows."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=1)
    whole = wire.head({"routing_key": "k", "delivery_mode": 2}, {"content_length": 2**63, "application_headers": {"a": "b"}})
    heads = (
        struct.pack(">I", chance.choice((0, 1, 2, 3, 2**31, 2**32 - 1))) + whole[4:],
        whole[: chance.randrange(len(whole))],
        whole * 50,
        b"\x00\x00\x00\x02\xff\xff" * 2000,
        b"\x00\x00\x00\x04\x04\x01\xff\xff",
        wire.head({"priority": 255, "ttl": 2**64 - 1, "expiration": 2**63 - 1, "timestamp": 2**64 - 1, "routing_key": "k"}),
        wire.head({"routing_key": "k", "resume_id": "r" * 60000, "resume_ttl": 2**64 - 1}),
        b"\x00\x00\x00\x04\x04\x02\x07\x00",
    )
    octets = wire.frame(11, wire.COMMAND, 0, wire.operation("message.transfer", destination="amq.topic", accept_mode=0, acquire_mode=0))
    for head in chance.sample(heads, 3):
        peer.send(octets + wire.frame(3, wire.HEAD, 0, head[:60000]) + wire.frame(7, wire.BODY, 0, b"x"))
        peer.look(0.03)
        peer.again()


def nested_values_0_10(attack):
    """Maps in lists in maps, arrays of what has no octets, counts that lie: in headers, arguments and properties."""
    deep = []
    for _ in range(attack.chance.choice((10, 14, 15, 16, 17, 100))):
        deep = [deep]
    values = (
        deep,
        Raw(b"\xaa" + struct.pack(">IBI", 5, 0xF0, attack.chance.choice((1024, 1025, 2**31, 2**32 - 1)))),
        Raw(b"\xaa" + struct.pack(">IBI", 5, 0xF1, 1024)),
        Raw(b"\xa9" + struct.pack(">II", 4, 2**32 - 1)),
        Raw(b"\xa8" + struct.pack(">II", 2**32 - 1, 1)),
        Raw(b"\x27\x00\x00\xd8\x00"),
        Raw(b"\x96\x00\x03\xd8\x00\xd8"),
        [None] * 3000,
    )
    for each in values:
        peer = open_0_10(attack, sessions=1)
        peer.transfer(0, b"x", "k", destination="amq.topic", message={"application_headers": {"a": each}})
        peer.command(0, "queue.declare", queue=attack.name_of(), arguments={"a": each, "x-max-length": 10})
        peer.command(0, "execution.sync", True)
        peer.look(0.02)
        peer.close()


def absurd_sets(attack):
    """Sets of ids that were never sent, that overlap, descend, go around, of thousands of ranges, wherever a set may stand."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=1)
    first = chance.choice(IDS)
    sets = (
        [(0, 2**32 - 1)],
        [(2**31, 2**31 - 1)],
        [(first + 2 * each & 0xFFFFFFFF, first + 2 * each & 0xFFFFFFFF) for each in range(chance.choice((500, 8000)))],
        [(3 * each, 3 * each) for each in range(500, 0, -1)],
        [(7, 3)] * 500,
        [(each, 2**31 - 1 + each) for each in range(500)],
    )
    names = ("session.expected", "session.confirmed", "session.completed", "session.known-completed", "session.gap")
    names += ("message.accept", "message.reject", "message.release", "message.acquire")
    for name in chance.sample(names, 4):
        given = {"transfers" if name[0] == "m" else "commands": chance.choice(sets)}
        peer.send((wire.command if name[0] == "m" else wire.control)(0, name, **given))
        peer.tell(0, "session.flush", expected=True, confirmed=True, completed=True)
        peer.look(0.02)
        peer.again()


def ids_all_over(attack):
    """Command-points that jump through the ids, back and forth and around, with commands at each, and gaps between."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=1)
    peer.tell(0, "session.request-timeout", timeout=chance.choice((0, 1, 60, 2**32 - 1)))
    for number in range(1500):
        id_ = chance.choice(IDS) if number % 10 == 0 else 2 * number
        peer.tell(0, "session.command-point", command_id=id_, command_offset=chance.choice((0,) * 200 + (1,)))
        peer.command(0, "execution.sync")
        if number % 50 == 0:
            peer.tell(0, "session.gap", commands=[(id_, id_ + 3 & 0xFFFFFFFF)])
            peer.again()


def names_at_their_limits(attack):
    """Queues, exchanges, destinations and keys of every length, with arguments that contradict each other, of honest peers too."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=1)
    for _ in range(20):
        name = chance.choice((*NAMES, "mallory." + "q" * 247, "mallory.\u00e9" * 20))[:120]
        peer.command(0, "queue.declare", queue=name, alternate_exchange=chance.choice(NAMES)[:120], exclusive=chance.random() < 0.3)
        peer.command(0, "exchange.bind", queue=name, exchange="amq.topic", binding_key=chance.choice(("#." * 100, "k" * 255, "")))
        peer.command(0, "queue.delete", queue=chance.choice(("honest.work", name)))
        peer.command(
            0, "message.subscribe", queue=chance.choice(("honest.work", "honest.sessions", name)), destination="d" * 255, accept_mode=0
        )
        peer.subscribed.add(0)
        peer.look(0.01)
        peer.again()


def flush_storms(attack):
    """Requests for sets, results and syncs without end, whose answers are not read."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=1, receive_buffer=4096)
    peer.tell(0, "session.gap", commands=[(3 * each + 10, 3 * each + 10) for each in range(900)])
    peer.reads = chance.random() < 0.3
    flush = wire.control(0, "session.flush", expected=True, confirmed=True, completed=True)
    query = wire.command(0, "exchange.query", name="amq.topic") + wire.command(0, "dtx.recover") + wire.command(0, "execution.sync", True)
    while True:
        peer.send(chance.choice((flush, query, flush + query)) * 500)


def crossing_ends_0_10(attack):
    """Attaches, detaches and closes that cross the broker's, answers that never come."""
    chance = attack.chance
    peer = open_0_10(attack, sessions=3)
    peer.answers = chance.random() < 0.5
    for _ in range(20):
        channel = chance.randrange(4)
        peer.tell(channel, "session.attach", name=b"mallory crossing %d" % chance.randrange(3), force=chance.random() < 0.5)
        peer.tell(channel, "session.command-point", command_id=0, command_offset=0)
        peer.transfer(channel, b"x" * 100, "k", destination=chance.choice(("amq.topic", "mallory.none")))
        peer.tell(channel, chance.choice(("session.detach", "session.detached")), name=b"mallory crossing %d" % chance.randrange(3))
    peer.tell(0, chance.choice(("connection.close", "connection.close-ok", "connection.redirect", "connection.heartbeat")), reply_code=200)
    try:
        peer.look(0.1)
    except Gone:
        return
    peer.close(reset=chance.random() < 0.5)


ATTACKERS = (
    log_ins_0_10,
    opens_never_followed_0_10,
    half_frames_0_10,
    frame_heads,
    segments_out_of_order,
    operations_of_any_kind,
    operations_that_lie,
    changed_octets_0_10,
    structs_of_wrong_sizes,
    nested_values_0_10,
    absurd_sets,
    ids_all_over,
    names_at_their_limits,
    flush_storms,
    crossing_ends_0_10,
)
