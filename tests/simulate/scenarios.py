"""What is done while a fault strikes (faults.py): a few clients and one feature after the other, each some hundred calls long.

`run(name, keeps, arm, faults)` sets a broker up (`keeps`: with a log in memory), arms, plays SCENARIOS[name], disarms and looks whether
everything that was promised holds. Raises model.Wrong.
"""

import json

import invariants
import peer
from memory_store import MemoryStore
from model import Wrong
from peer import idle

from leveret.core.amqp_0_9.spec_0_9_1 import HEADER
from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.core.log import chunk_index, definition_records, message_record
from leveret.core.log.read_back import Walk
from leveret.core.memory import layout
from leveret.core.recovery import opening
from leveret.core.stream.stream import EPOCH

PERSISTENT = {"delivery_mode": 2}
LETTER = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


class Outside:
    """What clients do for themselves: no fault of the broker's strikes there."""

    faults = None

    def quietly(self, action, *given):
        armed, self.faults.armed = self.faults.armed, False
        try:
            return action(*given)
        finally:
            self.faults.armed = armed


outside = Outside()


def encoded(*given):
    return outside.quietly(peer.encoded, *given)


def content(*given):
    return outside.quietly(peer.content, *given)


def decoded(*given):
    return outside.quietly(peer.decoded, *given)


class Client:
    """A connection that keeps the account of what it was promised. What raises to it goes where the port's loop would bring it."""

    def __init__(self, world, name):
        self.world = world
        self.connection = Connection(world.broker, name)
        self.inbox = b""
        self.published = 0
        self.pending = {}  # publish number -> body
        self.deliveries = []  # (tag, body)
        self.frames = []
        self.opened = []
        self.send(HEADER)
        self.send(encoded("connection_start_ok", 0, {"capabilities": {"consumer_cancel_notify": True}}, "PLAIN", b"\x00guest\x00guest", ""))
        self.send(encoded("connection_tune_ok", 0, 0, 0, 0) + encoded("connection_open", 0, "/", "", False))
        self.send(encoded("channel_open", 1, ""))

    def safely(self, action, *given):
        """What the loop does with an endpoint's method."""
        try:
            return action(*given)
        except Exception as error:
            self.connection.broke(error)
            return None

    def send(self, octets):
        """Give octets to the broker and take what it says."""
        at = 0
        for _ in range(200):
            view = self.connection.writable()
            size = min(len(view), len(octets) - at)
            if size and not self.connection.closed:
                view[:size] = octets[at : at + size]
                at += size
                self.safely(self.connection.received, size)
            self.world.broker.run()
            self.take()
            if at == len(octets) or self.connection.closed:
                break
        return at

    def take(self):
        """Read what waits."""
        for _ in range(1000):
            if self.connection.closed and self.connection.send is None:
                break
            view = self.safely(self.connection.pending)
            if view is None or not len(view):
                break
            self.inbox += bytes(view)
            self.safely(self.connection.sent, len(view))
            self.world.broker.run()
        while len(self.inbox) >= 7:
            size = int.from_bytes(self.inbox[3:7], "big") + 8
            if len(self.inbox) < size:
                break
            octets, self.inbox = self.inbox[:size], self.inbox[size:]
            self.heard(decoded(octets))

    def heard(self, found):
        """One frame."""
        name, _, arguments = found
        if name == "basic_ack":
            self.settled(arguments[0], arguments[1], self.world.confirmed)
        elif name == "basic_nack":
            self.settled(arguments[0], arguments[1], set())
        elif name in ("basic_deliver", "basic_get_ok"):
            self.opened = [arguments[1] if name == "basic_deliver" else arguments[0], None, b""]
        elif name == "header":
            self.opened[1:] = [arguments[0], b""]
            self.whole()
        elif name == "body":
            self.opened[2] += arguments
            self.whole()
        else:
            self.frames.append(name)
            if name == "connection_close":
                self.send(encoded("connection_close_ok", 0))

    def whole(self):
        """A content is complete?"""
        if len(self.opened[2]) == self.opened[1]:
            self.deliveries.append((self.opened[0], self.opened[2]))

    def settled(self, number, multiple, into):
        """Publishes are confirmed or refused."""
        for each in [each for each in self.pending if each == number or multiple and each <= number]:
            into.add(self.pending.pop(each))

    def ask(self, name, *arguments):
        """A method whose answer is not looked at."""
        self.send(encoded(name, 1, *arguments))

    def declare(self, name, arguments=None, durable=True, exclusive=False, auto_delete=False):
        self.ask("queue_declare", 0, name, False, durable, exclusive, auto_delete, False, arguments or {})

    def publish(self, key, body, exchange="", given=None):
        """With a confirm."""
        self.published += 1
        self.pending[self.published] = body
        octets = content(1, exchange, key, body, dict(PERSISTENT, **(given or {})))
        if self.send(octets) < len(octets):
            del self.pending[self.published]

    def consume(self, queue, arguments=None, tag="c", prefetch=0):
        if prefetch:
            self.ask("basic_qos", 0, prefetch, False)
        self.ask("basic_consume", 0, queue, tag, False, False, False, False, arguments or {})

    def acknowledge(self, count=100):
        """Settle what was delivered: from here on it may be gone."""
        for tag, body in self.deliveries[:count]:
            self.world.gone.add(body)
            self.ask("basic_ack", tag, False)
        del self.deliveries[:count]

    def refuse(self, requeue, count=100):
        for tag, _ in self.deliveries[:count]:
            self.ask("basic_nack", tag, False, requeue)
        del self.deliveries[:count]


class World:
    """A broker, its clients, and what was promised."""

    def __init__(self, keeps, **overrides):
        values = dict(BOARD, connection_count_max=8, message_count_max=96, entry_count_max=128, **overrides)
        self.limits = Limits(**values)
        self.keeps = keeps
        self.store = MemoryStore()
        self.confirmed = set()
        self.gone = set()  # what was settled or may have been dropped on purpose
        self.broker, _ = self.start(self.store)
        self.clients = []

    def start(self, store, say=None):
        """A broker on a store."""
        broker = outside.quietly(Broker, self.limits, b"faults")
        broker.log = say or broker.log
        report = opening.make_durable(broker, store, "each", 100, 65536, 4096, 1 << 18) if self.keeps else ""
        broker.tick(0, EPOCH + 1000)
        return broker, report

    def client(self, confirms=True):
        made = Client(self, "client %d" % len(self.clients))
        self.clients.append(made)
        if confirms:
            made.ask("confirm_select", False)
        return made

    def time(self, milliseconds):
        """Let it pass."""
        for _ in range(milliseconds // 100):
            broker = self.broker
            broker.tick((broker.now + 100) & layout.MASK, EPOCH + 1000 + broker.uptime_ms // 1000)
            for client in self.clients:
                if not client.connection.closed:
                    client.safely(client.connection.tick, broker.now)
            broker.run()
            for client in self.clients:
                client.take()

    def bodies(self, broker):
        """Every body that a broker has somewhere."""
        tables = broker.tables
        found = set()
        for message in self.messages(broker):
            size = tables.messages[message + layout.MESSAGE_BODY]
            found.add(tables.octets(message, tables.size_of(message) - size, size))
        for queue in broker.queues.values():
            if queue.pages is not None:
                found |= self.paged_bodies(broker, queue)
        return found

    def messages(self, broker):
        """The messages of a broker in memory."""
        tables = broker.tables
        entries = [entry for _, entry in broker.kept_aside()]
        for table, head, handles in (
            (tables.queues, layout.QUEUE_HEAD, [found.handle for found in broker.queues.values()]),
            (tables.channels, layout.CHANNEL_UNSETTLED_HEAD, [channel.handle for channel in broker.open_sessions()]),
        ):
            for handle in handles:
                entry = table[handle + head]
                while entry != layout.NONE:
                    entries.append(entry)
                    entry = tables.entries[entry + layout.ENTRY_NEXT]
        return {tables.entries[entry + layout.ENTRY_MESSAGE] for entry in entries}

    def paged_bodies(self, broker, queue):
        """Those that are only in the log."""
        chunks, journal, found = broker.tables.chunks, broker.journal, set()
        chunk = queue.pages.head
        while chunk != layout.NONE:
            segment = journal.log.by_number[chunks[chunk + chunk_index.SEGMENT]]
            walk = Walk(
                journal.pager.reader, segment.number, chunks[chunk + chunk_index.OFFSET], chunks[chunk + chunk_index.SKIP], segment.size
            )
            left, first, span = chunks[chunk + chunk_index.COUNT], chunks[chunk + chunk_index.POSITION], chunks[chunk + chunk_index.SPAN]
            holes = queue.pages.holes
            while left > 0 and walk.next():
                count, _, route, _, given, body, _, _ = walk.heads()
                for identity, position in walk.places(count):
                    ahead = (position - first) & layout.MASK
                    if identity == queue.id_in_log and ahead < span and not (holes is not None and holes.has(position)):
                        first, span, left = (position + 1) & layout.MASK, span - ahead - 1, left - 1
                        found.add(journal.log.store.read(segment.number, message_record.route_at(walk.at, count) + route + given, body))
            if left > 0:
                raise Wrong("queue '%s': %d messages are not where the index says" % (queue.name, left))
            chunk = chunks[chunk + chunk_index.NEXT]
        return found

    def rest(self):
        """No fault any more: everything comes to rest."""
        self.time(1300)
        invariants.check(self.broker)

    def look(self):
        """What was promised holds: for those who are served on, here, behind a restart, and at the end."""
        self.rest()
        missing = self.confirmed - self.gone - self.bodies(self.broker)
        if missing:
            raise Wrong("confirmed and nowhere: %s" % sorted(missing))
        self.serves_on()
        if self.keeps:
            self.comes_back()
        self.ends()

    def serves_on(self):
        """Somebody else publishes, with a confirm, and gets."""
        other = self.client()
        other.declare("other", {"x-max-priority": 2})
        other.publish("other", b"served on")
        self.time(200)
        if b"served on" not in self.confirmed:
            raise Wrong("a publish of another connection is not confirmed: %s" % other.frames)
        other.consume("other", tag="other")
        if [body for _, body in other.deliveries] != [b"served on"]:
            raise Wrong("another connection does not get its message: %s" % other.frames)
        other.acknowledge()

    def comes_back(self):
        """A power cut now."""
        self.time(300)
        broker, report = self.start(self.store.cut())
        if ";" in report:
            raise Wrong("the next start tells damage: " + report)
        invariants.check(broker)
        missing = self.confirmed - self.gone - self.bodies(broker)
        if missing:
            raise Wrong("confirmed and not there after a restart: %s" % sorted(missing))
        if definitions(broker) != definitions(self.broker):
            raise Wrong(
                "definitions before a restart and not after it: %s; after it alone: %s"
                % (definitions(self.broker) - definitions(broker), definitions(broker) - definitions(self.broker))
            )
        live = {segment.number: segment.live for segment in self.broker.journal.log.segments}
        if min(live.values()) < 0:
            raise Wrong("segments have fewer than no wanted messages: %s" % live)

    def ends(self):
        """All clients go, everything is removed: nothing is left."""
        for client in self.clients:
            client.safely(client.connection.received, 0)
        if self.broker.connections:
            raise Wrong("%d connections are left" % len(self.broker.connections))
        for name in list(self.broker.queues):
            self.broker.drop_queue(self.broker.queues[name])
        self.time(300)
        invariants.check(self.broker)
        fresh = Broker(self.limits, b"fresh")
        if idle(self.broker) != idle(fresh):
            raise Wrong("with everything deleted the pools are %s, of a new broker %s" % (idle(self.broker), idle(fresh)))


def definitions(broker):
    """Every durable definition of a broker, as texts, without jumps of the clock and the offsets of streams. A queue that could not be
    deleted when its last consumer went stays, no longer auto-delete, until the next start."""
    return {
        in_order({key: each[key] for key in each if key not in ("next", "kept", "auto_delete")})
        for each in definition_records.all_definitions(broker)
        if each["kind"] != "clock"
    }


def in_order(value):
    """A definition as text."""
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (key, in_order(value[key])) for key in sorted(value))
    return repr(value)


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
    invariants.check(world.broker)
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
TO_WHOM = ("MessageReading.", "Tables.", "amqp_0_9.properties.", "amqp_0_9.field_table.")  # what it takes to know whose request it is
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
    faults, manage = outside.faults, world.broker.manage
    faults.armed = False

    def inside(*given):
        faults.armed = True
        try:
            return manage(*given)
        finally:
            faults.armed = False

    world.broker.manage = inside


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
}
"""Name -> (what sets it up, what is played, limits that differ from a board's)."""
