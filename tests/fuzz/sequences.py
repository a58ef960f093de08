"""Random but valid-looking sequences of client frames over few names, so that they meet each other: the raw material of mutations."""

import amqp_tables
import amqp_wire

NAMES = ("a", "b", "c", "", "amq.direct", "amq.topic", "amq.fanout", "amq.headers", "x" * 64)
QUEUES = ("a", "b", "c", "")
KEYS = ("a", "b", "a.b", "#", "*.b", "", "k" * 60)
TYPES = ("direct", "fanout", "topic", "headers", "bogus")
TABLES = (
    {},
    {},
    {"x-match": "any", "a": 1},
    {"a": {"b": [1, None, "c"]}},
    {"x-max-length": 3},
    {"x-queue-type": "stream"},
    {"x-stream-offset": "first"},
    {"x-expires": 1},
    {"d": 1.5, "t": True},
)
PROPERTIES = ({}, {"delivery_mode": 2}, {"headers": {"a": 1}}, {"content_type": "text/plain", "message_id": "m" * 30}, {"expiration": "5"})
SIZES = (0, 1, 10, 63, 64, 65, 300, 2000, 4089, 9000)
# Arguments that give queues and consumers rules: values that make sense, and at the end one that does not.
QUEUE_RULES = {
    "x-message-ttl": (0, 1, 1000, -1),
    "x-expires": (2000, 5000, 0),
    "x-max-length": (0, 1, 3, "3"),
    "x-max-length-bytes": (100, 1000, 5000, None),
    "x-overflow": ("drop-head", "reject-publish", "reject-publish-dlx", "no"),
    "x-dead-letter-exchange": ("", "amq.fanout", "amq.topic", 1),
    "x-dead-letter-routing-key": ("a", "b", "c", 1),
    "x-max-priority": (1, 5, 9, 256),
    "x-single-active-consumer": (True, False, 1),
    "x-delivery-limit": (0, 1, 3, "x"),
    "x-last-value-key": ("a", 1),
    "x-group-key": ("a", 1),
    "x-deduplication": (True, False, "a"),
    "x-delayed-retry-min": (1, 1000, "x"),
    "x-delayed-retry-max": (1000, 5000, "x"),
    "x-consumer-timeout": (500, 1000, "x"),
    "x-dead-letter-strategy": ("at-most-once", "at-least-once", 1),
    "a": (1, "a", None, [1, {"b": 2}]),
}
STREAM_RULES = {"x-max-length-bytes": (1000, 5000, "x"), "x-max-age": ("1s", "1D", "x")}
CONSUMER_RULES = {"x-priority": (0, 5, -5, "a"), "x-stream-offset": ("first", "last", "next", 0, 1, 9, -1), "x-stream-filter": ("a", 1)}
BINDING_RULES = {"x-match": ("all", "any", "all-with-x", "none"), "a": (1, "a", None, [1])}
MESSAGE_HEADERS = {
    "CC": (["a", "b"], ["a"], "a"),
    "BCC": (["c"], [], 1),
    "a": (1, "a", None),
    "x-death": ([], [{"count": 1}], 1),
    "x-stream-filter-value": ("a", "b", 1),
    "x-deduplication-header": ("1", "2", 3),
    "x-publisher-id": ("p", 1),
    "x-publisher-sequence": (1, 2, -1),
    "n" * 30: ("v" * 60, 1),
}
EXCHANGE_TYPES = TYPES[:4] + ("x-consistent-hash", "x-local-random")
REPLY_QUEUE = "amq.rabbitmq.reply-to"


def some_of(source, choices):
    """A table with one to three of these names."""
    names = source.sample(sorted(choices), min(len(choices), source.choice((1, 1, 2, 3))))
    return {name: source.choice(choices[name] if source.random() < 0.03 else choices[name][:-1] or choices[name]) for name in names}


def some_properties(source):
    """Properties that the rules look at."""
    return source.choice(
        (
            {},
            {"priority": source.choice((0, 1, 5, 255))},
            {"expiration": source.choice(("0", "1", "1000"))},
            {"headers": some_of(source, MESSAGE_HEADERS)},
            {"reply_to": REPLY_QUEUE, "correlation_id": "c"},
            {"user_id": "guest"},
            {"headers": some_of(source, MESSAGE_HEADERS), "priority": 2, "message_id": source.choice(("1", "2")), "delivery_mode": 2},
        )
    )


def lively(source, count):
    """Frames of a peer that knows what it does: channels 1 (plain), 2 (confirms) and 3 (a transaction) are open; three queues and two
    exchanges with rules of their own come first, then they are used. Settling is a step of its own, see cases.py."""
    frames = [amqp_wire.method(2, "confirm.select"), amqp_wire.method(3, "tx.select")]
    frames += [declare_queue(source, name) for name in "abc"]
    for name in "xy":
        arguments = {"alternate-exchange": "amq.fanout"} if source.random() < 0.3 else {}
        frames.append(amqp_wire.method(1, "exchange.declare", exchange=name, type=source.choice(EXCHANGE_TYPES), arguments=arguments))
    frames += [bind(source) for _ in range(4)]
    makers = (publish,) * 12 + (consume,) * 3 + (get,) * 3 + (bind, control, control, transact, transact)
    return frames + [source.choice(makers)(source) for _ in range(count)]


def declare_queue(source, name):
    if source.random() < 0.2:
        arguments = some_of(source, STREAM_RULES)
        arguments["x-queue-type"] = "stream"
    else:
        arguments = some_of(source, QUEUE_RULES) if source.random() < 0.8 else {}
    return amqp_wire.method(1, "queue.declare", queue=name, durable="x-queue-type" in arguments, arguments=arguments)


def bind(source):
    arguments = some_of(source, BINDING_RULES) if source.random() < 0.4 else {}
    key = source.choice(("1", "2", "a.b", "#", "*.b", "a"))
    exchange = source.choice(("x", "y", "amq.fanout", "amq.topic"))
    if source.random() < 0.2:
        return amqp_wire.method(1, "exchange.bind", destination="x", source="y", routing_key=key, arguments=arguments)
    return amqp_wire.method(1, "queue.bind", queue=source.choice("abc"), exchange=exchange, routing_key=key, arguments=arguments)


def publish(source):
    exchange = source.choice(("", "", "x", "y", "amq.fanout", "amq.topic"))
    key = source.choice("abc") if exchange == "" else source.choice(("1", "a.b", "a"))
    return amqp_wire.publish(
        source.choice((1, 2, 2, 3)),
        exchange,
        key,
        bytes(source.choice(SIZES[:8])),
        some_properties(source),
        4096,
        mandatory=source.random() < 0.3,
    )


def consume(source):
    arguments = some_of(source, CONSUMER_RULES) if source.random() < 0.4 else {}
    if source.random() < 0.1:
        return amqp_wire.method(1, "basic.consume", queue=REPLY_QUEUE, no_ack=True)
    return amqp_wire.method(
        source.choice((1, 2, 3)), "basic.consume", queue=source.choice("abc"), no_ack=source.random() < 0.3, arguments=arguments
    )


def get(source):
    return amqp_wire.method(source.choice((1, 3)), "basic.get", queue=source.choice("abc"), no_ack=source.random() < 0.3)


def control(source):
    channel = source.choice((1, 2, 3))
    return source.choice(
        (
            amqp_wire.method(channel, "basic.qos", prefetch_count=source.choice((0, 1, 3)), **{"global": source.random() < 0.3}),
            amqp_wire.method(channel, "basic.recover", requeue=True),
            amqp_wire.method(1, "queue.purge", queue=source.choice("abc")),
            amqp_wire.method(channel, "channel.flow", active=source.random() < 0.7),
            amqp_wire.method(1, "queue.delete", queue=source.choice("abc")),
            declare_queue(source, source.choice("abc")),
            amqp_wire.method(1, "exchange.delete", exchange=source.choice("xy")),
            amqp_wire.method(channel, "channel.close", reply_code=200) + amqp_wire.method(channel, "channel.open"),
        )
    )


def transact(source):
    return amqp_wire.method(3, source.choice(("tx.select", "tx.commit", "tx.commit", "tx.rollback")))


# Weighted towards what holds something.
OFTEN = ("basic.publish",) * 8 + ("basic.consume",) * 3 + ("basic.get",) * 3 + ("queue.declare",) * 4 + ("basic.ack", "basic.nack") * 2
METHODS = OFTEN + (
    "basic.reject",
    "basic.recover",
    "basic.cancel",
    "basic.qos",
    "queue.bind",
    "queue.bind",
    "queue.unbind",
    "queue.purge",
    "queue.delete",
    "exchange.declare",
    "exchange.delete",
    "exchange.bind",
    "exchange.unbind",
    "confirm.select",
    "tx.select",
    "tx.commit",
    "channel.open",
    "channel.close",
    "channel.close-ok",
    "channel.flow",
    "channel.open",
    "connection.close",
    "connection.close-ok",
    "connection.open",
    "basic.recover-async",
    "basic.deliver",
    "basic.cancel-ok",
    "connection.update-secret",
    "tx.rollback",
    "tx.select",
    "tx.commit",
)
RARE = (
    "connection.close",
    "connection.open",
    "basic.deliver",
    "tx.select",
    "tx.commit",
    "tx.rollback",
    "connection.close-ok",
    "connection.update-secret",
)


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
    fields = [item.split(":") for item in amqp_tables.BY_NAME[name][5].split()]
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
            del data[at : at + source.randrange(1, 9)]
        elif kind == 4:
            data += data[at : at + 40]
        else:
            del data[at:]
    return bytes(data)
