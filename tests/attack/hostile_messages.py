"""Attackers whose messages, queues and exchanges are taken, and are poison later: dead letters, forged headers, numbers at their ends."""

import amqp_wire as wire
from broker_words import EXCHANGE_TYPES
from hostile_frames import some_value

NUMBERS = (0, 1, -1, 255, 256, 65535, 65536, 2**30, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**41, 2**53, 2**62, 2**63 - 1, -(2**31), -(2**63))
QUEUE_ARGUMENTS = (
    "x-message-ttl",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-overflow",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-max-priority",
    "x-single-active-consumer",
    "x-delivery-limit",
    "x-delayed-retry-min",
    "x-delayed-retry-max",
    "x-consumer-timeout",
    "x-last-value-key",
    "x-group-key",
    "x-deduplication",
    "x-queue-mode",
    "x-queue-version",
    "x-queue-type",
    "x-max-age",
    "x-stream-hold",
    "x-stream-max-segment-size-bytes",
    "x-quorum-initial-group-size",
    "x-queue-master-locator",
)
TEXTS = (
    "",
    "x",
    "mallory.x1",
    "amq.topic",
    "stream",
    "classic",
    "quorum",
    "drop-head",
    "reject-publish",
    "reject-publish-dlx",
    "block",
    "at-least-once",
    "at-most-once",
    "7D",
    "-1s",
    "999999999999Y",
    "1\0D",
    "\u0661D",
    "x" * 255,
    "x" * 2000,
)
TYPES = EXCHANGE_TYPES + ("system", "", "\xff")
KEYS = (b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\x00", b"\xf0\x9f\x98", b"", b"." * 255, b"#" * 255, b"a" * 255, b"\r\n", "\u20ac".encode())


def some_number(chance):
    """A number at an end of its range, in a type that has room for it."""
    number = chance.choice(NUMBERS)
    return chance.choice((number, number, wire.Typed("l", number), float(number)))


def some_argument(chance):
    """A value for an argument: right, at its end, or of another type."""
    return chance.choice((some_number(chance), chance.choice(TEXTS), some_value(chance)))


def some_death(chance, queue):
    """An entry of x-death as no broker writes it."""
    entry = {
        "queue": chance.choice((queue, "", b"\xff", 7, None)),
        "reason": chance.choice(("expired", "rejected", "maxlen", "delivery_limit", "x", 3)),
        "count": chance.choice((some_number(chance), "one", None, {})),
        "exchange": chance.choice(("", "mallory.x1", b"\xff", 3, [])),
        "routing-keys": chance.choice(([], ["k"], [b"\xff"], [1, None], "k", {})),
        "time": chance.choice((0, wire.Typed("T", 2**64 - 1), "now")),
        "original-expiration": chance.choice(("60", "", "x", 2**63 - 1)),
    }
    entry = {name: wire.Typed("S", value) if isinstance(value, bytes) else value for name, value in entry.items() if chance.random() < 0.8}
    return chance.choice((entry, entry, entry, entry, "x", 1, None, [entry]))


def some_properties(chance, queue):
    """Properties with headers that a broker reads, forged."""
    headers = {}
    for name in (
        "x-delay",
        "x-publisher-id",
        "x-publisher-sequence",
        "x-stream-filter-value",
        "x-first-death-queue",
        "x-first-death-reason",
        "x-first-death-exchange",
        "x-last-death-reason",
        "CC",
        "BCC",
        "x-gateway",
        "x-sequence",
        "x-hops",
        "x-stream-offset",
        "key",
        "x-delivery-count",
    ):
        if chance.random() < 0.12:
            headers[name] = some_argument(chance)
    if chance.random() < 0.1:
        headers["CC"] = [chance.choice(("k", queue, "", 1, None, "x" * 300)) for _ in range(chance.randrange(40))]
    if chance.random() < 0.4:
        headers["x-death"] = chance.choice(([some_death(chance, queue) for _ in range(chance.randrange(1, 6))], some_argument(chance)))
    given = {"headers": headers}
    if chance.random() < 0.5:
        given["delivery_mode"] = chance.choice((1, 2, 2, 0, 255))
    if chance.random() < 0.5:
        given["expiration"] = chance.choice(
            ("0", "1", "20", "9999999999", "4294967295", "99999999999", "-1", "1.5", "", "x", "\u0661", "0" * 200)
        )
    if chance.random() < 0.3:
        given["priority"] = chance.choice((0, 5, 255))
    if chance.random() < 0.3:
        given["message_id"] = chance.choice((b"\xff", "m", "", "x" * 255))
    if chance.random() < 0.2:
        given["timestamp"] = chance.choice((0, 2**63, 2**64 - 1))
    if chance.random() < 0.2:
        given["reply_to"] = chance.choice(("amq.rabbitmq.reply-to", "amq.rabbitmq.reply-to.x.y", b"\xff", "mallory.q1"))
    if chance.random() < 0.1:
        given["user_id"] = chance.choice(("mallory", "honest", "", b"\xff"))
    return given


def dead_letter_keys(attack):
    """Messages with keys that are no text, which expire, are rejected or pushed out into a dead letter exchange."""
    peer, chance = attack.open(), attack.chance
    target = peer.declare(attack.name_of("d"), durable=True)
    durable = chance.random() < 0.7
    exchange = attack.name_of("f")
    peer.call("exchange.declare", exchange=exchange, type="topic", durable=True)
    peer.call("queue.bind", queue=target, exchange=exchange, routing_key="#")
    queue = peer.declare(
        f"{attack.name_of('e')}.{chance.randrange(9)}",
        durable=durable,
        x_dead_letter_exchange=exchange,
        x_message_ttl=chance.choice((0, 1, 50)),
        x_max_length=chance.choice((1, 3, 1000)),
        x_delivery_limit=1,
    )
    source = attack.name_of("g")
    peer.call("exchange.declare", exchange=source, type="fanout", durable=True)
    peer.call("queue.bind", queue=queue, exchange=source)
    for _ in range(20):
        peer.publish(source, chance.choice(KEYS), b"x", properties=some_properties(chance, queue))
    peer.do("basic.get", queue=queue)
    peer.do("basic.nack", delivery_tag=0, multiple=True)
    peer.call("basic.get", queue=target, no_ack=True)
    attack.pause(0.15)


def forged_deaths(attack):
    """x-death as no broker writes it, in messages that die."""
    peer, chance = attack.open(), attack.chance
    queue = f"{attack.name_of('e')}.{chance.randrange(9)}"
    peer.declare(
        queue,
        durable=True,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=chance.choice((queue, "mallory.d1")),
        x_delivery_limit=chance.choice((0, 1, 2**31)),
    )
    for _ in range(20):
        given = some_properties(chance, queue)
        given["headers"]["x-death"] = chance.choice(
            (
                [some_death(chance, queue) for _ in range(chance.randrange(1, 8))],
                [{"queue": queue, "reason": "expired", "count": wire.Typed("l", 2**63 - 1)}],
                [{"queue": queue, "reason": "rejected", "count": wire.Typed("l", 2**63 - 1)}],
            )
        )
        given["expiration"] = chance.choice(("0", "1", "10"))
        peer.publish("", queue, b"dies", properties=given)
    for _ in range(10):
        peer.call("basic.get", queue=queue)
        peer.do("basic.reject", delivery_tag=peer.tags[-1] if peer.tags else 1, requeue=chance.random() < 0.3)
    peer.look(0.1)


def times_to_live(attack):
    """Lifetimes, lengths and limits at the ends of their ranges, on a dead letter's way and on its target."""
    peer, chance = attack.open(), attack.chance
    target = peer.declare(
        attack.name_of("t") + str(chance.randrange(9)),
        durable=True,
        **{chance.choice(("x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes")): chance.choice(NUMBERS)},
    )
    queue = peer.declare(
        attack.name_of("u") + str(chance.randrange(9)), durable=True, x_dead_letter_exchange="", x_dead_letter_routing_key=target
    )
    for _ in range(5):
        peer.publish(
            "",
            queue,
            b"x",
            properties=dict(some_properties(chance, queue), expiration=chance.choice(("0", "5", "4294967295", "9999999999"))),
        )
        peer.publish("", target, b"x", properties=some_properties(chance, target))
    peer.do("basic.get", queue=queue)
    peer.do("basic.reject", delivery_tag=1)
    peer.call("queue.declare", queue=target, passive=True)


def odd_queues(attack):
    """Queues with every argument at its ends and of other types; used where they are taken."""
    peer, chance = attack.open(), attack.chance
    queue = attack.name_of("a") + str(chance.randrange(30))
    names = chance.sample(QUEUE_ARGUMENTS, chance.randrange(1, 4))
    came = peer.call(
        "queue.declare",
        queue=queue,
        durable=chance.random() < 0.7,
        exclusive=chance.random() < 0.2,
        auto_delete=chance.random() < 0.2,
        arguments={name: some_argument(chance) for name in names},
    )
    if came == "queue.declare-ok":
        for _ in range(5):
            peer.publish("", queue, b"x", properties=some_properties(chance, queue))
        peer.call("basic.qos", prefetch_count=chance.choice((1, 100)))
        peer.call(
            "basic.consume",
            queue=queue,
            arguments={
                chance.choice(
                    (
                        "x-priority",
                        "x-stream-offset",
                        "x-stream-consumer",
                        "x-stream-strict",
                        "x-stream-filter",
                        "x-stream-pack-records",
                        "x-consumer-timeout",
                        "x-stream-pack-octets",
                        "x-stream-match-unfiltered",
                        "x-cancel-on-ha-failover",
                        "x-odd",
                    )
                ): some_argument(chance)
            },
        )
        peer.look(0.02)
        peer.do("basic.nack", delivery_tag=0, multiple=True, requeue=chance.random() < 0.5)
        peer.call("queue.delete", queue=queue)


def odd_exchanges(attack):
    """Exchanges of every type with odd arguments and bindings, and messages through them."""
    peer, chance = attack.open(), attack.chance
    exchange, queue = attack.name_of("o") + str(chance.randrange(30)), peer.declare(attack.name_of())
    names = ("alternate-exchange", "hash-header", "hash-property", "x-delayed-type", "x-seed", "x-odd")
    came = peer.call(
        "exchange.declare",
        exchange=exchange,
        type=chance.choice(TYPES),
        durable=chance.random() < 0.7,
        arguments={
            name: chance.choice((some_argument(chance), "direct", "topic", "message_id", "timestamp"))
            for name in chance.sample(names, chance.randrange(3))
        },
    )
    if came == "exchange.declare-ok":
        for _ in range(4):
            peer.call(
                "queue.bind",
                queue=queue,
                exchange=exchange,
                routing_key=chance.choice(("", "1", "-1", "99999999999", "#", "*", "k", "\u0661", b"\xff")),
                arguments={
                    name: chance.choice((some_argument(chance), "all", "any", "a = 1 AND b LIKE '%x%'", "((((1))))", "*?*\\"))
                    for name in chance.sample(("x-match", "key", "x-selector", "x-loss", "x-odd", "content-type"), chance.randrange(3))
                },
            )
        for _ in range(10):
            peer.publish(exchange, chance.choice(KEYS), b"x", properties=some_properties(chance, queue), mandatory=chance.random() < 0.3)
        peer.call("exchange.delete", exchange=exchange)


def odd_streams(attack):
    """Streams whose publishers, readers and offsets lie."""
    peer, chance = attack.open(), attack.chance
    stream = peer.declare(attack.name_of("s"), durable=True, x_queue_type="stream", x_max_length_bytes=100000)
    for _ in range(10):
        given = some_properties(chance, stream)
        given["headers"]["x-publisher-id"] = chance.choice(("a", "", "x" * 3000, wire.Typed("S", b"\xff"), 7, None))
        given["headers"]["x-publisher-sequence"] = some_number(chance)
        peer.publish("", stream, b"r" * chance.randrange(2000), properties=given)
    peer.call("basic.qos", prefetch_count=chance.choice((1, 10, 65535)))
    peer.call(
        "basic.consume",
        queue=stream,
        consumer_tag=str(chance.random()),
        arguments={
            "x-stream-offset": some_argument(chance),
            "x-stream-consumer": chance.choice(("", "c", "x" * 255, some_argument(chance))),
            "x-stream-pack-records": some_number(chance),
            "x-stream-pack-octets": some_number(chance),
        },
    )
    peer.look(0.05)
    peer.do("basic.ack", delivery_tag=chance.choice((0, 1, 2**64 - 1)), multiple=True)
    peer.look(0.05)


def odd_replies(attack):
    """Direct reply-to without a consumer, with two, with names made up; publishes as somebody else."""
    peer, chance = attack.open(), attack.chance
    for _ in range(10):
        peer.call("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=chance.random() < 0.7, consumer_tag=str(chance.randrange(3)))
        peer.publish(
            "",
            chance.choice(("amq.rabbitmq.reply-to", "amq.rabbitmq.reply-to.g1.x", "amq.rabbitmq.reply-to." + "z" * 220, b"\xff")),
            b"x",
            properties=some_properties(chance, "amq.rabbitmq.reply-to"),
            mandatory=True,
        )
        peer.call(
            "queue.declare",
            queue=chance.choice(("amq.rabbitmq.reply-to", "amq.rabbitmq.reply-to.g1.x", "amq.rabbitmq.reply-to.")),
            passive=True,
        )


def dead_letter_circles(attack):
    """Dead letters that go round: with lifetimes of zero, rejections, lengths, alternates and bindings between exchanges."""
    peer, chance = attack.open(), attack.chance
    names = [f"mallory.c{number}" for number in range(6)]
    for number, name in enumerate(names):
        peer.call("exchange.declare", exchange=name, type="fanout", durable=True, arguments={"alternate-exchange": names[number - 1]})
        peer.declare(name, durable=True, x_dead_letter_exchange=names[number - 1], x_message_ttl=chance.choice((0, 1, 5)), x_max_length=50)
        peer.call("queue.bind", queue=name, exchange=name)
        peer.call("exchange.bind", destination=name, source=chance.choice(names))
    for _ in range(50):
        peer.publish(chance.choice(names), chance.choice(KEYS), b"x", properties=some_properties(chance, names[0]))
    for name in names:
        peer.do("basic.consume", queue=name)
    for _ in range(10):
        peer.look(0.03)
        peer.do("basic.nack", delivery_tag=0, multiple=True, requeue=chance.random() < 0.5)


ATTACKERS = (dead_letter_keys, forged_deaths, times_to_live, odd_queues, odd_exchanges, odd_streams, odd_replies, dead_letter_circles)
