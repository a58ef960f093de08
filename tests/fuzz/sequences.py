"""Random but valid-looking sequences of client frames over few names, so that they meet each other: the raw material of mutations."""
import amqp_wire

NAMES = ("a", "b", "c", "", "amq.direct", "amq.topic", "amq.fanout", "amq.headers", "x" * 64)
QUEUES = ("a", "b", "c", "")
KEYS = ("a", "b", "a.b", "#", "*.b", "", "k" * 60)
TYPES = ("direct", "fanout", "topic", "headers", "bogus")
TABLES = ({}, {}, {"x-match": "any", "a": 1}, {"a": {"b": [1, None, "c"]}}, {"x-max-length": 3}, {"x-queue-type": "stream"},
          {"x-stream-offset": "first"}, {"x-expires": 1}, {"d": 1.5, "t": True})
PROPERTIES = ({}, {"delivery_mode": 2}, {"headers": {"a": 1}}, {"content_type": "text/plain", "message_id": "m" * 30}, {"expiration": "5"})
SIZES = (0, 1, 10, 63, 64, 65, 300, 2000, 4089, 9000)
# Weighted towards what holds something.
OFTEN = ("basic.publish",) * 8 + ("basic.consume",) * 3 + ("basic.get",) * 3 + ("queue.declare",) * 4 + ("basic.ack", "basic.nack") * 2
METHODS = OFTEN + (
    "basic.reject", "basic.recover", "basic.cancel", "basic.qos", "queue.bind", "queue.bind", "queue.unbind", "queue.purge",
    "queue.delete", "exchange.declare", "exchange.delete", "exchange.bind", "exchange.unbind", "confirm.select", "tx.select", "tx.commit",
    "channel.open", "channel.close", "channel.close-ok", "channel.flow", "channel.open", "connection.close", "connection.close-ok",
    "connection.open", "basic.recover-async", "basic.deliver", "basic.cancel-ok", "connection.update-secret")
RARE = ("connection.close", "connection.open", "basic.deliver", "tx.select", "tx.commit", "connection.close-ok", "connection.update-secret")


def value_of(source, field, kind):
    """A value for one field: mostly sensible, from few."""
    if kind == "bit":
        return source.random() < 0.25
    if field == "type":
        return source.choice(TYPES[:4] if source.random() < 0.95 else TYPES)
    if field in ("queue",):
        return source.choice(QUEUES)
    if field in ("exchange", "source", "destination"):
        return source.choice(NAMES)
    if kind == "shortstr":
        return source.choice(KEYS)
    if kind == "table":
        return source.choice(TABLES)
    if field == "delivery_tag":
        return source.choice((0, 1, 1, 2, 3, 4, 5, 9, 1 << 40))
    if field == "prefetch_size":
        return 0 if source.random() < 0.95 else 1
    if kind == "longstr":
        return b"secret"
    return source.choice((0, 0, 1, 2, 5))


def method_octets(source):
    """One method with its content, if it carries some."""
    name = source.choice(METHODS)
    if name in RARE and source.random() < 0.8:
        name = "basic.publish"
    channel = 0 if name.startswith("connection.") else source.choice((1, 1, 1, 1, 2, 2, 3))
    fields = [item.split(":") for item in amqp_wire.BY_NAME[name][5].split()]
    values = {field: value_of(source, field, kind) for field, kind in fields}
    if name == "basic.publish" and source.random() < 0.9:
        values["immediate"] = False
    octets = amqp_wire.method(channel, name, **values)
    if name == "basic.publish":
        octets += amqp_wire.content(channel, bytes(source.choice(SIZES)), source.choice(PROPERTIES), source.choice((16, 100, 4096)))
    return octets


def sequence(source, count):
    """A list of frames as octets, after which anything may be true of the connection."""
    return [method_octets(source) for _ in range(count)]


def mutate(source, octets):
    """Octets with one or a few wounds."""
    data = bytearray(octets)
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        at = source.randrange(len(data)) if data else 0
        kind = source.randrange(6)
        if kind == 0 and data:
            data[at] ^= 1 << source.randrange(8)
        elif kind == 1 and data:
            data[at] = source.choice((0, 1, 0x7F, 0x80, 0xFF, 0xCE))
        elif kind == 2:
            data[at:at] = source.randbytes(source.randrange(1, 9))
        elif kind == 3:
            del data[at:at + source.randrange(1, 9)]
        elif kind == 4:
            data += data[at:at + 40]
        else:
            del data[at:]
    return bytes(data)
