"""Attackers that make the broker keep things: whatever a peer can make grow, up to the limit and against it."""

import amqp_wire as wire


def unread(attack, writer, exchange, keys, size=2000, **properties):
    """Publish until the end, or until the broker takes no more for a while."""
    body = b"m" * size
    for number in range(200000):
        writer.publish(exchange, keys(number), body, properties=dict(properties))
        attack.check()


def full_queues(attack):
    """Messages that nobody takes, until publishers wait."""
    peer = attack.open()
    queue = peer.declare(attack.name_of(), durable=attack.chance.random() < 0.5)
    unread(attack, peer, "", lambda number: queue, attack.chance.choice((1, 500, 60000)), delivery_mode=attack.chance.choice((1, 2)))


def fan_out(attack):
    """One message for as many queues as are let in."""
    peer = attack.open()
    for number in range(100):
        queue = f"mallory.q{number}"
        peer.do("queue.declare", queue=queue, no_wait=True)
        peer.do("queue.bind", queue=queue, exchange="amq.fanout", no_wait=True)
    peer.look(0.1)
    peer = attack.open()
    unread(attack, peer, "amq.fanout", lambda number: "", 10)


def publisher_ids(attack):
    """A stream that is to remember a publisher for every message."""
    peer = attack.open()
    stream = peer.declare(attack.name_of("s"), durable=True, x_queue_type="stream", x_max_length_bytes=100000)
    for number in range(100000):
        name = f"{attack.chance.random()}" + "p" * attack.chance.choice((1, 200, 1000))
        peer.publish("", stream, b"x", properties={"headers": {"x-publisher-id": name, "x-publisher-sequence": number + 1}})


def deduplication(attack):
    """Queues that are to remember a hundred thousand message ids each."""
    peer = attack.open()
    names = [peer.declare(f"mallory.q{number}", x_deduplication=100000, x_max_length=1) for number in range(40)]
    for number in range(100000):
        peer.publish("", attack.chance.choice(names), b"x", properties={"message_id": f"{number}" + "i" * 200})


def groups(attack):
    """A group for every message, in queues with consumers that acknowledge nothing."""
    peer = attack.open()
    names = [peer.declare(f"mallory.g{number}", x_group_key="g") for number in range(10)]
    for name in names:
        peer.do("basic.consume", queue=name, consumer_tag=name)
    for number in range(100000):
        peer.publish("", attack.chance.choice(names), b"x", properties={"headers": {"g": f"{number}" + "g" * 300}})


def last_values(attack):
    """A value for every message of last-value queues."""
    peer = attack.open()
    names = [peer.declare(f"mallory.l{number}", x_last_value_key="g") for number in range(10)]
    for number in range(100000):
        peer.publish("", attack.chance.choice(names), b"x", properties={"headers": {"g": f"{number}" + "g" * 300}})


def delayed(attack):
    """Messages that are to wait for weeks."""
    peer = attack.open()
    queue = peer.declare(attack.name_of())
    peer.call("exchange.declare", exchange="mallory.delayed", type="x-delayed-message", arguments={"x-delayed-type": "fanout"})
    peer.call("queue.bind", queue=queue, exchange="mallory.delayed")
    for _number in range(100000):
        peer.publish("mallory.delayed", "", b"x", properties={"headers": {"x-delay": attack.chance.choice((1, 1000, 2**31, 2**32 - 1))}})


def bindings(attack):
    """Bindings with long keys and arguments, as many as are let in."""
    peer, chance = attack.open(), attack.chance
    queue = peer.declare(attack.name_of())
    exchange = chance.choice(("amq.topic", "amq.headers", "amq.direct"))
    for number in range(chance.choice((30, 100, 300, 1000, 2000))):
        peer.do(
            "queue.bind",
            queue=queue,
            exchange=exchange,
            routing_key=f"{number}." + "a.b.*.#." * chance.randrange(25),
            no_wait=True,
            arguments={f"k{number}": "v" * chance.choice((0, 3000))},
        )
    attack.rest()


def exchanges(attack):
    """Exchanges with long names and arguments, as many as are let in."""
    peer, chance = attack.open(), attack.chance
    for number in range(400):
        peer.call(
            "exchange.declare",
            exchange=f"mallory.{number}." + "e" * 230,
            type=chance.choice(("topic", "headers", "x-property")),
            durable=True,
            arguments={"alternate-exchange": "mallory." + "a" * 200},
        )
    attack.rest()


def queues(attack):
    """Queues with long names and arguments, as many as are let in, on several connections."""
    for number in range(4):
        peer = attack.open()
        for each in range(60):
            peer.call(
                "queue.declare",
                queue=f"mallory.{number}.{each}." + "q" * 230,
                durable=attack.chance.random() < 0.3,
                arguments={
                    "x-dead-letter-exchange": "mallory." + "d" * 240,
                    "x-dead-letter-routing-key": "k" * 250,
                    "x-message-ttl": 100,
                    "x-max-length": 10,
                    "x-max-priority": 255,
                },
            )
    attack.rest()


def channels(attack):
    """Channels, as many as are let in, each with a transaction or confirms."""
    for _ in range(6):
        peer = attack.open()
        for channel in range(2, 140):
            peer.do("channel.open", channel)
            peer.do(attack.chance.choice(("tx.select", "confirm.select")), channel)
    attack.rest()


def consumers(attack):
    """Consumers with long tags and arguments, as many as are let in."""
    peer = attack.open()
    queue = peer.declare(attack.name_of())
    for number in range(700):
        peer.do("basic.consume", queue=queue, consumer_tag=f"{number}" + "t" * 240, no_wait=True, arguments={"x-priority": number})
    attack.rest()


def unsettled(attack):
    """Deliveries that are never acknowledged."""
    peer = attack.open()
    queue = peer.declare(attack.name_of())
    peer.do("basic.consume", queue=queue)
    for _ in range(100000):
        peer.publish("", queue, b"u" * 10)


def transactions(attack):
    """Transactions that are never committed, and large ones that are rolled back or committed."""
    peer, chance = attack.open(channels=20), attack.chance
    queue = peer.declare(attack.name_of(), durable=True)
    for channel in range(2, 21):
        peer.do("tx.select", channel)
    for _number in range(50000):
        channel = chance.randrange(2, 21)
        peer.publish("", queue, b"t" * 200, channel, {"delivery_mode": 2})
        if chance.random() < 0.001:
            peer.do(chance.choice(("tx.rollback", "tx.commit")), channel)


def unread_returns(attack):
    """Returned messages that nobody reads."""
    peer = attack.open(receive_buffer=4096)
    peer.reads = False
    for _ in range(20000):
        peer.publish("", "mallory.nowhere", b"r" * 3000, mandatory=True)


def unread_deliveries(attack):
    """Consumers without acknowledgement that do not read."""
    writer = attack.open()
    queue = writer.declare(attack.name_of())
    for _ in range(10):
        reader = attack.open(receive_buffer=4096)
        reader.do("basic.consume", queue=queue, no_ack=True)
        reader.reads = False
    for _ in range(20000):
        writer.publish("", queue, b"d" * 30000)


def unread_answers(attack):
    """Questions whose answers nobody reads."""
    peer = attack.open(receive_buffer=4096)
    queue = peer.declare(attack.name_of())
    peer.reads = False
    question = wire.method(1, "queue.declare", queue=queue, passive=True) + wire.method(1, "basic.get", queue=queue)
    for _ in range(5000):
        peer.send(question * 20)


def half_contents(attack):
    """Contents of a mebioctet on every channel, each up to its last octet."""
    for _ in range(10):
        peer = attack.open(channels=50)
        for channel in range(1, 51):
            peer.send(
                wire.method(channel, "basic.publish", routing_key="mallory.q1")
                + wire.header(channel, 1 << 20)
                + wire.frame(wire.BODY, channel, b"h" * attack.chance.choice((1, 60000)))
            )
    attack.rest()


def half_frames(attack):
    """Method and header frames that are as large as they may be, up to their last octet."""
    for _ in range(60):
        peer = attack.open()
        text = wire.method(1, "queue.bind", queue="q", exchange="amq.headers", arguments={f"k{number}": "v" * 250 for number in range(200)})
        peer.send(text[: attack.chance.choice((7, 8, 100, 5000, len(text) - 1))])
    attack.rest()


def large_contents(attack):
    """Contents of all sizes up to the largest and beyond, to a durable queue."""
    peer, chance = attack.open(), attack.chance
    queue = peer.declare(attack.name_of(), durable=True, x_max_length=20)
    for _ in range(20):
        peer.publish(
            "", queue, b"L" * chance.choice((0, 1, 65536, 500000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1)), properties={"delivery_mode": 2}
        )
        peer.do("basic.get", queue=queue, no_ack=True)
    peer.look(0.1)


def full_streams(attack):
    """Streams that take the log, with names of readers that nobody needs."""
    peer, chance = attack.open(), attack.chance
    stream = peer.declare(attack.name_of("s"), durable=True, x_queue_type="stream", **{"x-stream-hold": chance.choice(("c1", "nobody"))})
    peer.do("basic.qos", prefetch_count=1)
    for number in range(60):
        peer.do(
            "basic.consume",
            queue=stream,
            consumer_tag=f"c{number}",
            no_wait=True,
            arguments={"x-stream-consumer": f"c{number}" + "n" * 200, "x-stream-offset": "first"},
        )
    unread(attack, peer, "", lambda number: stream, 5000, delivery_mode=2)


ATTACKERS = (
    full_queues,
    fan_out,
    publisher_ids,
    deduplication,
    groups,
    last_values,
    delayed,
    bindings,
    exchanges,
    queues,
    channels,
    consumers,
    unsettled,
    transactions,
    unread_returns,
    unread_deliveries,
    unread_answers,
    half_contents,
    half_frames,
    large_contents,
    full_streams,
)
