"""What is done while a fault strikes (faults.py): a few clients and one feature after the other, each some hundred calls long.

`run(name, keeps, arm, faults)` sets a broker up (`keeps`: with a log in memory), arms, plays SCENARIOS[name], disarms and looks whether
everything that was promised holds. Raises model.Wrong.
"""

import json

import invariants
import struck_1_0
from model import Wrong
from struck_world import PERSISTENT, World, content, outside

from leveret.core.broker.broker import MANAGEMENT

LETTER = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def run(name, keeps, arm, faults):
    """Play a scenario and look."""
    prepare, play, overrides = SCENARIOS[name]
    outside.faults = faults
    world = World(keeps, **overrides)
    given = prepare(world)
    world.time(200)
    arm()
    try:
        play(world, *given)
    finally:
        faults.armed = False
    world.look()


# What is prepared, and what is played while a fault strikes.


def with_queue(arguments, letters=True):
    """A publisher, a consumer's client, queue q with these arguments and queue dead."""

    def prepare(world):
        publisher = world.client()
        consumer = world.client(False)
        publisher.declare("dead")
        publisher.declare("q", dict(LETTER if letters else {}, **arguments))
        return publisher, consumer

    return prepare


def lifetimes(world, publisher, consumer):
    """Messages expire by their queue and by themselves, and become dead letters."""
    publisher.publish("q", b"by the queue")
    publisher.publish("q", b"by itself", given={"expiration": "100", "headers": {"x-death": [{"queue": "q"}], "k": 1}})
    world.time(200)
    publisher.publish("dead", b"in any queue", given={"expiration": "60000"})
    world.time(400)


def rejections(world, publisher, consumer):
    """Deliveries are requeued, come back too often, are rejected, acknowledged."""
    consumer.consume("q", prefetch=2)
    for body in (b"one", b"two", b"three"):
        publisher.publish("q", body)
    consumer.take()
    consumer.refuse(True, 1)
    consumer.take()
    consumer.refuse(False, 1)
    consumer.take()
    consumer.acknowledge(1)
    consumer.refuse(True)
    world.time(600)
    consumer.take()
    consumer.refuse(True)
    world.time(600)


def lengths(world, publisher, consumer):
    """The oldest go."""
    for number in range(5):
        publisher.publish("q", b"%d" % number)
    consumer.consume("q", prefetch=1)
    publisher.publish("q", b"last")
    consumer.acknowledge(1)


def priorities(world, publisher, consumer):
    """Levels, and what comes back to its own."""
    for number, level in enumerate((1, 3, 0, 2, 3)):
        publisher.publish("q", b"%d" % number, given={"priority": level})
    consumer.consume("q", prefetch=3)
    consumer.refuse(True, 2)
    consumer.acknowledge(1)
    world.time(200)


def grouped(world, publisher, consumer):
    """Groups with two consumers."""
    consumer.consume("q", prefetch=2)
    other = world.clients[0]
    other.consume("q", tag="d", prefetch=1)
    for number in range(5):
        publisher.publish("q", b"%d" % number, given={"headers": {"group": "g%d" % (number % 2)}})
    consumer.take()
    consumer.acknowledge(1)
    consumer.refuse(True)
    world.time(200)


def latest(world, publisher, consumer):
    """Newer values replace older ones; a message twice is kept once."""
    for number in range(4):
        body = b"%d" % number
        if number < 2:
            world.gone.add(body)
        publisher.publish("q", body, given={"headers": {"key": "k%d" % (number % 2)}, "message_id": body.decode()})
    world.gone.add(b"again")
    publisher.publish("q", b"again", given={"headers": {"key": "k9"}, "message_id": "3"})
    consumer.consume("q", prefetch=1)
    consumer.refuse(True)


def with_delays(world):
    """An exchange that delays, a queue that delays what comes back."""
    publisher, consumer = with_queue({"x-delayed-retry-min": 200, "x-delivery-limit": 2})(world)
    publisher.ask("exchange_declare", 0, "later", "x-delayed-message", False, True, False, False, False, {"x-delayed-type": "topic"})
    publisher.ask("queue_bind", 0, "q", "later", "a.#", False, {})
    return publisher, consumer


def delays(world, publisher, consumer):
    """Both."""
    consumer.consume("q")
    publisher.publish("a.b", b"soon", "later", {"headers": {"x-delay": 200}})
    publisher.publish("a.b", b"late", "later", {"headers": {"x-delay": 90000}})
    publisher.publish("q", b"now")
    consumer.refuse(True)
    world.time(600)
    consumer.refuse(True)
    world.time(600)


def with_exchanges(world):
    """One of each type, in a row; what none takes goes to the alternate exchange."""
    publisher, consumer = with_queue({})(world)
    rows = (
        ("topic", "a.*", {}),
        ("headers", "", {"x-match": "any", "h": 1}),
        ("direct", "k", {}),
        ("fanout", "", {}),
        ("x-consistent-hash", "3", {}),
        ("x-local-random", "", {}),
    )
    for type_, key, arguments in rows:
        publisher.ask("exchange_declare", 0, "e." + type_, type_, False, True, False, False, False, {"alternate-exchange": "amq.fanout"})
        publisher.ask("queue_bind", 0, "q", "e." + type_, key, False, arguments)
    publisher.ask("queue_bind", 0, "dead", "amq.fanout", "", False, {})
    publisher.ask("exchange_bind", 0, "e.fanout", "e.topic", "a.#", False, {})
    return publisher, [row[0] for row in rows]


def routes(world, publisher, types):
    """A message that each takes, and one that it does not."""
    for number, type_ in enumerate(types):
        publisher.publish("a.b" if type_ == "topic" else "k", b"taken %d" % number, "e." + type_, {"headers": {"h": 1}})
        publisher.publish("none", b"other %d" % number, "e." + type_, {"headers": {"CC": ["q", "leveret.poison"]}})


def with_stream(world):
    publisher, consumer = with_queue({})(world)
    publisher.declare("s", {"x-queue-type": "stream", "x-max-length-bytes": 4000})
    return publisher, consumer


def streams(world, publisher, consumer):
    """Publish, read with an offset, settle, keep the place; a dead letter goes to a stream too."""
    for number in range(3):
        publisher.publish("s", b"%d" % number, given={"headers": {"x-publisher-id": "p", "x-publisher-sequence": number + 1}})
    consumer.consume("s", {"x-stream-offset": "first", "x-stream-consumer": "reader"}, prefetch=5)
    consumer.take()
    publisher.publish("s", b"4", given={"headers": {"x-stream-filter-value": "f"}})
    consumer.take()
    for tag, _ in consumer.deliveries[:2]:
        consumer.ask("basic_ack", tag, False)
    world.time(1200)
    consumer.ask("basic_cancel", "c", False)


def beyond(world, publisher, consumer):
    """More than memory holds, and back."""
    for number in range(30):
        publisher.publish("q", b"%02d" % number + bytes(600))
    consumer.consume("q", prefetch=4)
    for _ in range(10):
        consumer.take()
        consumer.acknowledge()
    world.time(200)


def with_short_lives(world):
    """Queues that go: unused, with their connection, with their consumer."""
    publisher, consumer = with_queue({})(world)
    consumer.declare("unused", {"x-expires": 300})
    consumer.declare("mine", durable=False, exclusive=True)
    consumer.declare("auto", auto_delete=True)
    return publisher, consumer


def short_lives(world, publisher, consumer):
    """Each with a message and a binding."""
    for name in ("unused", "mine", "auto"):
        world.gone.add(name.encode())
        consumer.ask("queue_bind", 0, name, "amq.topic", name, False, {})
        publisher.publish(name, name.encode())
    consumer.consume("auto")
    consumer.take()
    consumer.ask("basic_cancel", "c", False)
    world.time(600)
    consumer.safely(consumer.connection.received, 0)
    world.time(200)


def large(world, publisher, consumer):
    """Contents larger than the send buffer, delivered and got."""
    for number in range(2):
        publisher.publish("q", b"%d" % number + bytes(5000))
    consumer.consume("q", prefetch=1)
    consumer.refuse(True)
    consumer.ask("basic_cancel", "c", False)
    consumer.ask("basic_get", 0, "q", False)
    consumer.take()
    consumer.acknowledge(1)


def transactions(world, publisher, consumer):
    """Publishes and settlements that take effect together."""
    publisher.publish("q", b"before")
    consumer.consume("q", prefetch=5)
    consumer.take()
    consumer.ask("tx_select")
    for number in range(2):
        consumer.send(content(1, "", "q", b"tx %d" % number, PERSISTENT))
    for tag, body in consumer.deliveries[:1]:
        world.gone.add(body)
        consumer.ask("basic_ack", tag, False)
    consumer.ask("tx_commit")
    consumer.send(content(1, "", "q", b"tx rolled back", PERSISTENT))
    consumer.ask("tx_rollback")


class Broken:
    """Stands for dead_letter.Rule where every letter raises."""

    @staticmethod
    def send(broker, queue, entry, reason):
        raise KeyError("never")


def with_poison(world):
    publisher, consumer = with_queue({"x-message-ttl": 100})(world)
    world.broker.queues["q"].rules.dead_letter = Broken
    return publisher, consumer


def poisons(world, publisher, consumer):
    """Nothing can become a dead letter; and then there is another fault."""
    for number in range(3):
        publisher.publish("q", b"%d" % number, given={"headers": {"k": [1, {"a": "b"}]}})
    world.time(400)


def with_everything(world):
    """A log with all that there is to recover; there are no clients any more."""
    publisher, consumer = with_delays(world)
    for name, arguments in (
        ("ttl", {"x-message-ttl": 60000}),
        ("p", {"x-max-priority": 3}),
        ("last", {"x-last-value-key": "key"}),
        ("s", {"x-queue-type": "stream"}),
        ("long", {"x-max-length": 90}),
    ):
        publisher.declare(name, arguments)
    publisher.ask("queue_bind", 0, "p", "amq.topic", "a.#", False, {})
    publisher.ask("exchange_declare", 0, "h", "headers", False, True, False, False, False, {})
    publisher.ask("queue_bind", 0, "q", "h", "", False, {"x-match": "all", "n": 1})
    for number in range(3):
        for name in ("ttl", "p", "last", "s", "q", "long"):
            publisher.publish(
                name,
                b"%s %d" % (name.encode(), number),
                given={"priority": number, "expiration": "90000", "headers": {"key": "k%d" % number}},
            )
    publisher.publish("a.b", b"late", "later", {"headers": {"x-delay": 90000}})
    consumer.consume("ttl", prefetch=2)
    consumer.acknowledge(1)
    world.broker.policies.set(world.broker, world.broker.policies.made("all", "^q", {"max-length": 80}, 1, "queues"))
    world.time(300)
    for client in world.clients:
        client.safely(client.connection.received, 0)
    world.clients = []
    world.time(300)
    return ()


def recoveries(world):
    """A start after a power cut; what could not be taken over is told, stays, and is there at a start without a fault."""
    if not world.keeps:
        return
    told = []
    world.store = world.store.cut()
    world.broker, report = world.start(world.store, told.append)
    outside.faults.armed = False
    if outside.faults.raised is not None:
        if "a fault at call" not in report + "".join(told):
            raise Wrong("a fault in recovery was not told: %s %s" % (report, told))
    world.serves_on()
    world.time(300)
    invariants.check(world.broker, outside.faults.raised is not None)
    world.store = world.store.cut()
    world.broker, report = world.start(world.store)


def held(world, publisher, consumer):
    """Publishers wait for room, and go on."""
    for number in range(6):
        publisher.publish("q", b"%d" % number + bytes(5000))
    consumer.consume("q", prefetch=1)
    for _ in range(8):
        consumer.take()
        consumer.acknowledge()
        publisher.take()
        world.time(100)


BULK = {
    "users": [{"name": "u", "password_hash": "", "tags": "monitoring"}],
    "permissions": [{"user": "u", "vhost": "/", "configure": "", "write": ".*", "read": ""}],
    "policies": [{"name": "import", "vhost": "/", "pattern": "^i", "definition": {"max-length": 9}, "apply-to": "queues"}],
    "exchanges": [{"name": "i.e", "vhost": "/", "type": "topic", "durable": True}],
    "queues": [
        {"name": "i.q", "vhost": "/", "durable": True, "arguments": {}},
        {"name": "i.s", "vhost": "/", "durable": True, "arguments": {"x-queue-type": "stream"}},
    ],
    "bindings": [{"source": "i.e", "vhost": "/", "destination": "i.q", "destination_type": "queue", "routing_key": "a.#"}],
}
REPORT = {"state": "running", "moved": 1}
# What is asked of the management, in this order; some is asked for that an earlier fault may have undone.
REQUESTS = (
    {"request": "overview"},
    {"request": "counters"},
    {"request": "definitions"},
    {"request": "import", "definitions": BULK},
    {"request": "set-policy", "name": "p", "pattern": "^q", "definition": {"max-length": 50}},
    {"request": "set-policy", "name": "p", "pattern": "^q", "definition": {"message-ttl": 90000}, "priority": 1},
    {"request": "bridge", "name": "b", "stream": "s", "consumer": "b", "queue": "q", "count": 2, "status": REPORT},
    {"request": "report-bridge", "name": "b", "status": REPORT},
    {"request": "bridges"},
    {"request": "remove-policy", "name": "p"},
    {"request": "remove-user", "name": "u"},
)
TO_WHOM = (
    "message.reading.",
    "message.formats.",
    "Tables.",
    "amqp_0_9.properties.",
    "amqp_0_9.field_table.",
    "message.annotations.",
)  # what it takes to know whose request it is
AGAIN = {"remove-policy": "not-found", "remove-user": "not-found"}  # what a repetition may be answered, beside ok


def answered(world):
    """A connection that asks."""
    manager = world.client()
    manager.ask("basic_consume", 0, "amq.rabbitmq.reply-to", "answers", False, True, False, False, {})
    return manager


def with_manager(world):
    """A publisher, and a connection that asks."""
    publisher, _ = with_queue({}, False)(world)
    publisher.declare("s", {"x-queue-type": "stream"})
    manager = answered(world)
    for number in range(3):
        publisher.publish("q", b"%d" % number)
    return publisher, manager


def only_inside(world):
    """Have faults strike in the broker's management alone: what a session raises has scenarios of its own."""
    faults, services = outside.faults, world.broker.services
    manage = services[MANAGEMENT]
    faults.armed = False

    def inside(*given):
        faults.armed = True
        try:
            return manage(*given)
        finally:
            faults.armed = False

    services[MANAGEMENT] = inside


def asked(world, manager, request):
    """The one answer to a management request; None: its connection was closed."""
    manager.deliveries = []
    octets = json.dumps(request).encode()
    manager.publish("amq.leveret.management", octets, given={"reply_to": "amq.rabbitmq.reply-to", "correlation_id": "1"})
    world.confirmed.discard(octets)  # it is in no queue
    world.time(200)
    answers = [body for _, body in manager.deliveries]
    if not answers and manager.connection.closed:
        return None
    if len(answers) != 1:
        raise Wrong("%d answers to '%s' instead of one: %s; %s" % (len(answers), request["request"], answers, manager.frames[-2:]))
    return json.loads(answers[0])


def requests(world, publisher, manager):
    """Each request of management. A fault costs the one request that it is in an error answer, and is told; where it is before anybody
    knows whom to answer it costs the connection. Asked again the request does what it is for, and is durable then."""
    faults, told = outside.faults, []
    world.broker.log = told.append
    only_inside(world)
    for request in REQUESTS:
        struck, begun = faults.raised is not None, world.broker.counters["management_requests"]
        answer = asked(world, manager, request)
        if answer is not None and (answer["ok"] or struck and answer["condition"] == AGAIN.get(request["request"])):
            continue
        if faults.raised is None or struck and faults.stuck is None:
            raise Wrong("'%s' without a fault: %s" % (request["request"], answer))
        if answer is None:
            begun = world.broker.counters["management_requests"] > begun
            if faults.stuck is None and (begun or not faults.raised.startswith(TO_WHOM)):
                raise Wrong("'%s' with a fault in %s: the connection was closed" % (request["request"], faults.raised))
            manager = answered(world)
        elif faults.error is not ValueError and (answer["condition"] != "internal-error" or not told):
            raise Wrong("'%s' with a fault: %s, told %s" % (request["request"], answer, told))
        if faults.stuck is None:
            again = asked(world, manager, request)
            if not again["ok"] and again["condition"] != AGAIN.get(request["request"]):
                raise Wrong("'%s' asked again: %s" % (request["request"], again))
    publisher.publish("q", b"beside")


SCENARIOS = {
    "lifetimes": (with_queue({"x-message-ttl": 200}), lifetimes, {}),
    "rejections": (with_queue({"x-delivery-limit": 2}), rejections, {}),
    "lengths": (with_queue({"x-max-length": 2}), lengths, {}),
    "priorities": (with_queue({"x-max-priority": 3}), priorities, {}),
    "groups": (with_queue({"x-group-key": "group"}), grouped, {}),
    "latest": (with_queue({"x-last-value-key": "key", "x-deduplication": 8}, False), latest, {}),
    "single": (with_queue({"x-single-active-consumer": True, "x-delivery-limit": 3}), rejections, {}),
    "delays": (with_delays, delays, {"argument_size_max": 512}),
    "routes": (with_exchanges, routes, {"argument_size_max": 512}),
    "streams": (with_stream, streams, {}),
    "beyond": (with_queue({}), beyond, {}),
    "short lives": (with_short_lives, short_lives, {}),
    "large": (with_queue({}), large, {}),
    "transactions": (with_queue({}), transactions, {}),
    "poison": (with_poison, poisons, {}),
    "recovery": (with_everything, recoveries, {"argument_size_max": 512}),
    "held": (with_queue({}, False), held, {}),
    "management": (
        with_manager,
        requests,
        {"management_size_max": 16384, "content_size_max": 16384, "arena_size": 131072, "argument_size_max": 1024},
    ),
    **struck_1_0.SCENARIOS,
}
"""Name -> (what sets it up, what is played, limits that differ from a board's)."""
