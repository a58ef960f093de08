"""Attackers that have logged in and speak wrongly: frames of any size, order, channel and class, tables that lie, changed sessions."""

import struct

import amqp_tables
import amqp_wire as wire

BITS = ("durable", "exclusive", "auto_delete", "no_wait", "passive", "mandatory", "immediate", "multiple", "requeue", "no_ack", "if_unused")


def some_value(chance, depth=0):
    """A value of a field table, its type and size drawn."""
    kind = chance.randrange(16)
    if kind == 0 and depth < 12:
        return {f"k{chance.randrange(9)}": some_value(chance, depth + 1) for _ in range(chance.randrange(4))}
    if kind == 1 and depth < 12:
        return [some_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return chance.choice(
        (
            0,
            1,
            -1,
            255,
            2**31 - 1,
            -(2**31),
            2**41,
            2**62,
            2**63 - 1,
            -(2**63),
            True,
            False,
            None,
            "",
            "x" * chance.randrange(300),
            "\u20ac\0",
            0.0,
            -1.5,
            1e300,
            float("inf"),
            float("nan"),
            wire.Typed("S", b"\xff\xfe"),
            wire.Typed("x", b"\0\xff"),
            wire.Typed("T", 2**64 - 1),
            wire.Typed("D", (255, 2**32 - 1)),
            wire.Typed("L", 2**63 - 1),
            wire.Typed("b", -128),
            wire.Typed("B", 255),
            wire.Typed("f", 1e30),
        )
    )


def some_field(chance, kind):
    """A value of a method's field."""
    if kind == "bit":
        return chance.random() < 0.3
    if kind in ("octet", "short", "long", "longlong"):
        size = {"octet": 8, "short": 16, "long": 32, "longlong": 64}[kind]
        return chance.choice((0, 0, 1, 2, (1 << size) - 1, 1 << size - 1, chance.getrandbits(size)))
    if kind == "table":
        return {f"x-{chance.randrange(30)}": some_value(chance) for _ in range(chance.randrange(3))}
    return chance.choice(
        ("", "mallory.q1", "mallory.x1", "mallory." + "n" * chance.randrange(247), "amq.topic", b"\xff\xfe", b"mallory.\xff", "a\0b")
    )


def some_method(chance, channel):
    """Any method of any class with any values."""
    row = chance.choice(amqp_tables.METHODS)
    return wire.method(channel, row[2], **{name: some_field(chance, kind) for name, kind in (item.split(":") for item in row[5].split())})


def random_octets(attack):
    """Octets without any meaning behind the log-in."""
    peer = attack.open()
    peer.send(attack.chance.randbytes(attack.chance.choice((1, 8, 100, 5000, 100000))))
    peer.look(0.05)
    peer.close()


def random_frames(attack):
    """Frames of any type, channel and size, with and without their end."""
    peer, chance = attack.open(), attack.chance
    for _ in range(40):
        size = chance.choice((0, 1, 2, 4, 8, 12, 14, 100, 4096, 65536))
        head = struct.pack(
            ">BHI",
            chance.choice((1, 1, 1, 2, 3, 8, 0, 255)),
            chance.choice((0, 1, 2, 65535)),
            chance.choice((size, size, size, size + 1, 2**31, 2**32 - 1, 131072, 131073)),
        )
        peer.send(head + chance.randbytes(size) + (b"\xce" if chance.random() < 0.9 else b"\x00"))
    peer.look(0.05)


def random_methods(attack):
    """Methods of every class in any order with any values, on channels that are open and that are not."""
    peer, chance = attack.open(channels=3), attack.chance
    for _ in range(60):
        peer.send(some_method(chance, chance.choice((0, 1, 1, 1, 2, 3, 4, 2047, 65535))))
        if chance.random() < 0.1:
            peer.look(0.01)
            peer.send(b"".join(wire.method(channel, "channel.open") for channel in (1, 2, 3) if chance.random() < 0.5))
    peer.look(0.05)


def wrong_contents(attack):
    """Headers and bodies where none belong, of another class, longer or shorter than announced, empty, in pieces of one octet."""
    peer, chance = attack.open(), attack.chance
    queue = peer.declare(attack.name_of())
    method = wire.method(1, "basic.publish", routing_key=queue)
    header, body = wire.header(1, 10), wire.frame(wire.BODY, 1, b"0123456789")
    peer.send(
        chance.choice(
            (
                header,
                body,
                method + body,
                method + method,
                method + header + header,
                method + header + method,
                method + header + body + body,
                method + wire.header(1, 10, class_id=90) + body,
                method + wire.header(1, 10, weight=1) + body,
                method + wire.header(1, 5) + body,
                method + wire.header(1, 2**64 - 1),
                method + wire.header(1, 2**63),
                method + wire.header(1, 1 << 20) + body,
                method + wire.header(1, 0) + wire.frame(wire.BODY, 1, b""),
                method + header + wire.frame(wire.BODY, 1, b"") * 2000 + body,
                method + wire.header(1, 3000) + wire.frame(wire.BODY, 1, b"x") * 3000,
                method + header[:-1] + b"\x00",
                method + wire.header(1, 10, b"\xff\xff" + b"\xff" * 40),
                method + wire.header(1, 10, b"\x00\x01" * 2000),
                method + wire.header(1, 0, {"headers": b"\xff\xff\xff\xff"}),
                wire.method(0, "basic.publish"),
                wire.frame(wire.BODY, 0, b"x"),
                method + wire.method(2, "channel.open") + header + body,
            )
        )
    )
    peer.look(0.05)
    peer.close()


def oversized_headers(attack):
    """Properties and methods as large as the frame lets them be, and larger than what is kept."""
    peer, chance = attack.open(), attack.chance
    queue = peer.declare(attack.name_of())
    size = chance.choice((4000, 16000, 16384, 30000, 32700, 65000, 65500, 131000, 200000))
    if chance.random() < 0.7:
        peer.publish("", queue, b"x", properties={"headers": {f"h{i}": "x" * 200 for i in range(size // 210)}})
    else:
        peer.do("queue.bind", queue=queue, exchange="amq.headers", arguments={f"h{i}": "x" * 200 for i in range(size // 210)})
    peer.call("basic.get", queue=queue, no_ack=True)


def small_frames(attack):
    """The smallest frame-max with the largest headers, and a reader of them."""
    writer, reader = attack.open(), attack.connect()
    queue = writer.declare(attack.name_of())
    if not reader.log_in("mallory"):
        return
    reader.frame_max = 4096
    reader.send(
        wire.method(0, "connection.tune-ok", channel_max=0, frame_max=4096, heartbeat=0)
        + wire.method(0, "connection.open", virtual_host="/")
        + wire.method(1, "channel.open")
    )
    for size in (3000, 4000, 4080, 4096, 5000, 12000, 16000):
        writer.publish("", queue, b"b" * size, properties={"headers": {"h": "x" * size}})
    reader.do("basic.consume", queue=queue, no_ack=True)
    reader.look(0.3)


def deep_tables(attack):
    """Field tables in field tables, and tables whose lengths lie."""
    peer, chance = attack.open(), attack.chance
    octets = b"I\x00\x00\x00\x01"
    for _ in range(chance.choice((2, 7, 8, 9, 100, 3000))):
        octets = b"F" + wire.longstr(b"\x01a" + octets) if chance.random() < 0.5 else b"A" + wire.longstr(octets)
    table = wire.longstr(b"\x01a" + octets)
    if chance.random() < 0.3:
        table = struct.pack(">I", len(table) + chance.choice((-5, -4, -3, 1, 2**31))) + table[4:]
    for name in ("queue.declare", "basic.consume", "exchange.declare"):
        peer.do(name, arguments=table)
    peer.publish("amq.headers", "k", b"x", properties={"headers": table})
    peer.look(0.05)


def session_of(chance, queue):
    """Octets of a session that is right: what a client sends behind the log-in."""
    parts = [
        wire.method(1, "channel.open"),
        wire.method(1, "confirm.select"),
        wire.method(1, "queue.declare", queue=queue, arguments={"x-max-length": 50}),
        wire.method(1, "exchange.declare", exchange="mallory.x3", type="topic"),
        wire.method(1, "queue.bind", queue=queue, exchange="mallory.x3", routing_key="a.*.#"),
        wire.method(1, "basic.qos", prefetch_count=5),
    ]
    properties = {
        "headers": {"a": 1, "b": [1, "x"], "x-delay": 5, "CC": ["k"]},
        "delivery_mode": 2,
        "expiration": "60000",
        "message_id": "m",
        "priority": 3,
    }
    parts += [
        wire.publish(1, chance.choice(("", "mallory.x3")), queue, b"body" * chance.randrange(50), properties, mandatory=True)
        for _ in range(4)
    ]
    parts += [
        wire.method(1, "basic.consume", queue=queue, consumer_tag="c"),
        wire.method(1, "basic.ack", delivery_tag=1),
        wire.method(1, "basic.nack", delivery_tag=2, requeue=True),
        wire.method(1, "basic.cancel", consumer_tag="c"),
        wire.method(2, "channel.open"),
        wire.method(2, "tx.select"),
        wire.publish(2, "", queue, b"tx"),
        wire.method(2, "tx.commit"),
        wire.method(1, "basic.get", queue=queue),
        wire.method(1, "queue.purge", queue=queue),
        wire.method(1, "channel.close", reply_code=200),
    ]
    return b"".join(parts)


def mutated(chance, octets):
    """Octets with one to eight places changed, taken out, doubled or put in."""
    octets = bytearray(octets)
    for _ in range(chance.randrange(1, 9)):
        place = chance.randrange(len(octets))
        kind = chance.randrange(5)
        if kind < 2:
            octets[place] = chance.choice((0, 1, 127, 128, 255, octets[place] ^ 1 << chance.randrange(8)))
        elif kind == 2:
            del octets[place : place + chance.randrange(1, 20)]
        elif kind == 3:
            octets[place:place] = octets[place : place + chance.randrange(1, 60)]
        else:
            octets[place:place] = chance.randbytes(chance.randrange(1, 9))
    return bytes(octets)


def changed_sessions(attack):
    """A session that is right but for a few octets."""
    peer = attack.open(channels=0)
    peer.send(mutated(attack.chance, session_of(attack.chance, attack.name_of())))
    peer.look(0.03)
    peer.close()


def heartbeat_flood(attack):
    """Heartbeats without end."""
    peer = attack.open()
    peer.send(wire.frame(wire.HEARTBEAT, 0, b"") * 20000)
    peer.look(0.01)


def wrong_channels(attack):
    """Channels that are opened twice, closed twice, over channel-max, and used when they are not open."""
    peer, chance = attack.open(), attack.chance
    peer.send(
        b"".join(
            wire.method(chance.choice((0, 1, 2, 127, 128, 129, 2047, 2048, 65535)), name)
            for name in chance.choices(
                (
                    "channel.open",
                    "channel.close",
                    "channel.close-ok",
                    "channel.flow",
                    "channel.flow-ok",
                    "tx.commit",
                    "confirm.select",
                    "basic.recover",
                ),
                k=20,
            )
        )
    )
    peer.look(0.05)


ATTACKERS = (
    random_octets,
    random_frames,
    random_methods,
    wrong_contents,
    oversized_headers,
    small_frames,
    deep_tables,
    changed_sessions,
    heartbeat_flood,
    wrong_channels,
)
