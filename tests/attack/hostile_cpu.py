"""Attackers that make the broker work: what costs more the more of it there is, and what costs a little and comes without end."""

import amqp_wire as wire


def unacknowledged_groups(attack):
    """Groups with thousands of unacknowledged messages, and more behind them."""
    peer = attack.open()
    queue = peer.declare(attack.name_of("g"), x_group_key="g")
    peer.do("basic.consume", queue=queue)
    for number in range(8000):
        peer.publish("", queue, b"x", properties={"headers": {"g": f"{number % 4000}"}})
    for _ in range(20):
        peer.look(0.05)
        peer.do("basic.ack", delivery_tag=attack.chance.choice(peer.tags or [1]))


def matcher_patterns(attack):
    """Patterns with many wild cards against long texts."""
    peer, chance = attack.open(), attack.chance
    queue = peer.declare(attack.name_of())
    peer.call("exchange.declare", exchange="mallory.matcher", type="x-matcher")
    pattern = chance.choice(("*a" * 1900, "*?" * 1900, "*" * 3900, "a*" * 1000 + "b", "*a*b*c*d*e*f*g*h*?z", "\\*" * 1900))
    peer.call("queue.bind", queue=queue, exchange="mallory.matcher", arguments={"x-match": "all", "h": pattern})
    for _ in range(20):
        peer.publish("mallory.matcher", "", b"x", properties={"headers": {"h": "a" * chance.choice((100, 4000, 15000))}})
    peer.call("queue.declare", queue=queue, passive=True)


def random_acknowledgements(attack):
    """Thousands of deliveries, acknowledged, put back and recovered in any order."""
    peer, chance = attack.open(), attack.chance
    queue = peer.declare(attack.name_of())
    peer.do("basic.consume", queue=queue)
    for _ in range(12000):
        peer.publish("", queue, b"x")
    peer.look(0.3)
    tags = list(peer.tags)
    chance.shuffle(tags)
    for place in range(0, len(tags), 100):
        peer.send(
            b"".join(
                wire.method(1, "basic.nack", delivery_tag=tag, requeue=True)
                if chance.random() < 0.2
                else wire.method(1, "basic.ack", delivery_tag=tag)
                for tag in tags[place : place + 100]
            )
        )
    peer.do("basic.recover", requeue=True)
    peer.look(0.1)


def header_bindings(attack):
    """Thousands of headers bindings, and messages that are compared with all of them."""
    peer, chance = attack.open(), attack.chance
    queue = peer.declare(attack.name_of())
    exchange = chance.choice(("amq.headers", "mallory.property"))
    peer.call("exchange.declare", exchange="mallory.property", type="x-property")
    for number in range(chance.choice((50, 100, 200, 500, 1400))):
        peer.do(
            "queue.bind",
            queue=queue,
            exchange=exchange,
            routing_key=f"{number}",
            no_wait=True,
            arguments={"x-match": chance.choice(("any", "all")), "a": number, "b": f"{number}", "c": None},
        )
    for _ in range(200):
        peer.publish(
            exchange, "", b"x", properties={"headers": {"a": chance.random(), "b": f"{chance.random()}", **{f"h{i}": i for i in range(50)}}}
        )
    peer.call("queue.declare", queue=queue, passive=True)


def selectors(attack):
    """Long conditions, deep ones, and LIKE with many wild cards."""
    peer, chance = attack.open(), attack.chance
    queue = peer.declare(attack.name_of())
    peer.call("exchange.declare", exchange="mallory.selector", type="x-selector")
    for number in range(chance.choice((3, 10, 100))):
        text = chance.choice(
            (
                " OR ".join(f"a = {number}{i}" for i in range(200)),
                "h LIKE '" + "%a" * 900 + "b'",
                "(" * 30 + "a = 1" + ")" * 30,
                "(" * 1000 + "a",
                "h LIKE '" + "%_" * 900 + "' ESCAPE '\\'",
                "NOT " * 900 + "a = 1",
                "a + " * 900 + "1 = 2",
                "h IN (" + ",".join(f"'{i}'" for i in range(500)) + f") AND {number} = {number}",
                "a = " + "9" * 3000,
                "1" * 300 + " * 2 = 1e999",
            )
        )
        peer.do("queue.bind", queue=queue, exchange="mallory.selector", routing_key=f"{number}", arguments={"x-selector": text})
        peer.do("channel.open")
        peer.wait("queue.bind-ok", "channel.open-ok")
    for _ in range(50):
        peer.publish("mallory.selector", "", b"x", properties={"headers": {"h": "a" * chance.choice((10, 3000, 15000)), "a": 1}})
    peer.call("queue.declare", queue=queue, passive=True)


def topic_patterns(attack):
    """Topic patterns with many #, and keys of many words."""
    peer, chance = attack.open(), attack.chance
    queue = peer.declare(attack.name_of())
    for number in range(chance.choice((20, 40, 300))):
        pattern = chance.choice(
            ("#.a." * 50 + "#", "#." * 120 + "b", "*.#." * 60 + "c", "#.*." * 50 + f"{number}", "a.#." * 40 + f"{number}")
        )
        peer.do("queue.bind", queue=queue, exchange="amq.topic", routing_key=pattern[:255], no_wait=True)
    for _ in range(100):
        peer.publish("amq.topic", ".".join(chance.choice("ab") for _ in range(120)), b"x")
    peer.call("queue.declare", queue=queue, passive=True)


def channel_churn(attack):
    """Channels that open and close without end."""
    peer = attack.open()
    pair = wire.method(2, "channel.open") + wire.method(2, "basic.qos", prefetch_count=1) + wire.method(2, "channel.close", reply_code=200)
    for _ in range(100):
        peer.send(pair * 20)
    peer.look(0.01)


def declare_churn(attack):
    """Queues, exchanges and bindings that come and go, durable ones."""
    peer, chance = attack.open(), attack.chance
    for _ in range(100):
        queue, exchange = attack.name_of(), attack.name_of("x")
        durable = chance.random() < 0.5
        peer.do("queue.declare", queue=queue, durable=durable, no_wait=True)
        peer.do("exchange.declare", exchange=exchange, type="topic", durable=durable, no_wait=True)
        peer.do("queue.bind", queue=queue, exchange=exchange, routing_key="#", no_wait=True)
        peer.publish(exchange, "k", b"x", properties={"delivery_mode": 2})
        peer.do("queue.purge", queue=queue, no_wait=True)
        if chance.random() < 0.5:
            peer.do("queue.delete", queue=queue, no_wait=True)
            peer.do("exchange.delete", exchange=exchange, no_wait=True)
        peer.do("channel.open")
    peer.look(0.05)


def consumer_churn(attack):
    """Consumers that come and go on a queue that is full, with messages under way."""
    peer, chance = attack.open(), attack.chance
    queue = peer.declare(attack.name_of())
    for _ in range(500):
        peer.publish("", queue, b"x")
    for number in range(300):
        peer.do("basic.consume", queue=queue, consumer_tag=f"{number % 7}", no_wait=True)
        peer.do("basic.cancel", consumer_tag=f"{number % 7}", no_wait=chance.random() < 0.5)
        if chance.random() < 0.2:
            peer.do("basic.recover", requeue=True)
    peer.look(0.05)


def put_back(attack):
    """Messages that are put back as soon as they come, without end."""
    peer, chance = attack.open(), attack.chance
    queue = peer.declare(attack.name_of(), x_max_priority=chance.choice((1, 255)))
    for number in range(2000):
        peer.publish("", queue, b"x", properties={"priority": number % 256})
    peer.do("basic.qos", prefetch_count=chance.choice((1, 100, 0)))
    peer.do("basic.consume", queue=queue)
    for _ in range(200):
        peer.look(0.005)
        peer.do("basic.nack", delivery_tag=0, multiple=True, requeue=True)


def empty_gets(attack):
    """Questions that cost little and come without end."""
    peer = attack.open()
    queue = peer.declare(attack.name_of())
    question = wire.method(1, "basic.get", queue=queue) + wire.method(1, "queue.purge", queue=queue)
    for _ in range(100):
        peer.send(question * 50)


def tiny_messages(attack):
    """The smallest messages as fast as they are taken, to a queue that keeps one and to nobody."""
    peer = attack.open()
    queue = peer.declare(attack.name_of("t"), x_max_length=1)
    peer.do("confirm.select")
    burst = wire.publish(1, "", queue, b"") * 500 + wire.publish(1, "amq.fanout", "mallory", b"") * 500
    for _ in range(50):
        peer.send(burst)


def new_keys(attack):
    """A routing key for every message, so that no way is remembered."""
    peer = attack.open()
    for _ in range(20):
        peer.send(b"".join(wire.publish(1, "amq.topic", f"{attack.chance.random()}", b"") for _ in range(300)))


def exchange_graph(attack):
    """Exchanges that are all bound to each other, and messages through them."""
    peer = attack.open()
    names = [f"mallory.n{number}" for number in range(30)]
    queue = peer.declare(attack.name_of())
    for name in names:
        peer.call("exchange.declare", exchange=name, type="fanout")
    for name in names:
        for other in names:
            peer.do("exchange.bind", destination=name, source=other, no_wait=True)
    peer.call("queue.bind", queue=queue, exchange=names[0])
    for number in range(300):
        peer.publish(attack.chance.choice(names), f"{number}", b"x")
    peer.call("queue.declare", queue=queue, passive=True)


def many_routes(attack):
    """CC and BCC with all the keys that are taken, to queues that are there."""
    peer = attack.open()
    names = [peer.declare(f"mallory.q{number}", x_max_length=1) for number in range(40)]
    for _ in range(300):
        peer.publish("", names[0], b"x", properties={"headers": {"CC": names * 4, "BCC": names * 4}})
    peer.call("queue.declare", queue=names[0], passive=True)


def rolled_back(attack):
    """Transactions of thousands of publishes and acknowledgements, rolled back."""
    peer, chance = attack.open(channels=2), attack.chance
    queue = peer.declare(attack.name_of())
    peer.do("tx.select", 2)
    for _ in range(5):
        for _ in range(1000):
            peer.publish("", queue, b"x", 2)
        peer.do(chance.choice(("tx.rollback", "tx.commit")), 2)
        peer.do("basic.consume", 2, queue=queue, no_wait=True)
        peer.do("basic.ack", 2, delivery_tag=0, multiple=True)
    peer.do("tx.rollback", 2)
    peer.look(0.05)


def expiring(attack):
    """Thousands of messages that expire at once."""
    peer = attack.open()
    queue = peer.declare(attack.name_of("e"), x_dead_letter_exchange="amq.fanout")
    for _ in range(10000):
        peer.publish("", queue, b"x", properties={"expiration": "500"})
    attack.pause(0.6)
    peer.call("queue.declare", queue=queue, passive=True)


ATTACKERS = (
    unacknowledged_groups,
    matcher_patterns,
    random_acknowledgements,
    header_bindings,
    selectors,
    topic_patterns,
    channel_churn,
    declare_churn,
    consumer_churn,
    put_back,
    empty_gets,
    tiny_messages,
    new_keys,
    exchange_graph,
    many_routes,
    rolled_back,
    expiring,
)
