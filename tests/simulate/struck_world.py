"""A broker, and clients that keep the account of what they are promised, while a fault strikes (faults.py): what scenarios.py plays with.

`World.look` says whether everything that was promised holds. Raises model.Wrong.
"""

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
        except Exception as error:  # as the loop does: it ends this connection alone
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
        self.parse()

    def parse(self):
        """Take the frames that are whole."""
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
            (tables.channels, layout.CHANNEL_UNSETTLED_HEAD, [channel.handle for channel in broker.consumers.open_sessions()]),
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
                heads = walk.heads()
                for identity, position in walk.places(heads[0]):
                    ahead = (position - first) & layout.MASK
                    if identity == queue.id_in_log and ahead < span and not (holes is not None and holes.has(position)):
                        first, span, left = (position + 1) & layout.MASK, span - ahead - 1, left - 1
                        at = message_record.properties_at(walk.at, heads) + heads[4]
                        found.add(journal.log.store.read(segment.number, at, heads[5]))
            if left > 0:
                raise Wrong("queue '%s': %d messages are not where the index says" % (queue.name, left))
            chunk = chunks[chunk + chunk_index.NEXT]
        return found

    def rest(self):
        """No fault any more: everything comes to rest."""
        self.time(1300)
        invariants.check(self.broker, outside.faults.raised is not None)

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
            self.broker.topology.drop_queue(self.broker.queues[name])
        self.time(1300)  # what lies aside of a queue that was removed goes when the guard tries it again (AGAIN_MS)
        invariants.check(self.broker, outside.faults.raised is not None)
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
