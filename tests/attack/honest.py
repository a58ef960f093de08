"""The honest clients: a process of their own that publishes with confirms, consumes with acknowledgements, asks, and says what it saw.

Laws: nothing that was confirmed is missing; each publisher's messages come in order, and twice only behind a connection that broke; a
stream's offsets have no gap and keep their messages; nobody is cut off while the broker lives (connection.blocked is allowed, and timed).
How long the broker worked while a question waited is taken from its CPU time, so that a busy machine is not taken for a broker that is
held.
"""

import itertools
import os
import random
import signal
import struct
import threading
import time

import amqp_wire as wire
import pika

QUEUE, STREAM, PIKA_QUEUE, EXCHANGE, READER = "honest.work", "honest.stream", "honest.pika", "honest.exchange", "honest.reader"
LINKS = "honest.links"  # the queue of those that speak AMQP 1.0
SESSIONS = "honest.sessions"  # of those that speak AMQP 0-10
USER = "honest"
PASSWORD = "secret"
WINDOW = 50
PATIENCE_S = 90  # without an answer: a finding
DRAIN_S = 60
KNOWN_S = 10  # an acknowledgement that is so old when a broker is killed has to be on the disk
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    """Seconds of CPU that a process has used; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * TICK_S
    except (OSError, IndexError):
        return 0.0


class State:
    """What director and honest clients share. `generation`: how many brokers have been started; `up`: one is to answer."""

    def __init__(self, context, port):
        self.port = port
        self.pid = context.Value("i", 0)
        self.generation = context.Value("i", 0)
        self.ledger = context.Value("i", 0)  # rises when the data were given up
        self.up = context.Value("i", 0)
        self.asked_at = context.Value("d", 0.0)  # when the question was sent that waits, or 0
        self.stop = context.Value("i", 0)  # 1: publish no more; 2: leave


class Ledger:
    """What one pair of publisher and reader knows of its messages, numbered from 1. Its publisher and its reader are two threads."""

    def __init__(self, name, tell):
        self.name = name
        self.tell = tell
        self.lock = threading.Lock()
        self.waiting = {}  # confirmed and not received: number -> when confirmed
        self.received = set()
        self.settled = {}  # number -> when it was acknowledged, of the last minute
        self.sent = {}  # number -> when it was published, of those not received yet
        self.last = 0  # received on this connection
        self.ends = []  # when the reader's connections ended, of the last minutes
        self.published = self.confirmed = self.refused = self.missing = self.doubled = self.stale = 0
        self.confirm_ms = []
        self.deliver_ms = []

    def publish(self, number):
        """A message leaves."""
        with self.lock:
            self.published += 1
            self.sent[number] = time.monotonic()

    def confirm(self, number):
        """The broker has confirmed it."""
        now = time.monotonic()
        with self.lock:
            self.confirmed += 1
            began = self.sent.get(number)
            if began is not None:
                self.confirm_ms.append((now - began) * 1000)
            if number not in self.received:
                self.waiting[number] = now

    def refuse(self, number):
        """The broker has said no."""
        with self.lock:
            self.refused += 1
            self.sent.pop(number, None)

    def broke(self):
        """The reader's connection has ended: what it had and did not settle comes again."""
        with self.lock:
            self.last = 0
            self.ends = [*self.ends[-31:], time.monotonic()]

    def receive(self, number, redelivered, repeats=False):
        """A delivery: true when it was new. `repeats`: a reader of a stream that may begin a little earlier."""
        now = time.monotonic()
        with self.lock:
            if number <= self.last and not redelivered:
                self.tell(f"{self.name}: message {number} came behind {self.last}" + (" again" if number in self.received else ""))
            self.last = max(self.last, number) if not redelivered else self.last
            if number in self.received:
                self.doubled += 1
                settled = self.settled.get(number)
                # the first end behind the acknowledgement says whether it was known; a second one may come before the message does
                end = 0 if settled is None else next((each for each in self.ends if each >= settled), 0)
                if settled is not None and not repeats and end - settled > KNOWN_S:
                    self.stale += 1
                    self.tell(f"{self.name}: message {number} came again, acknowledged {end - settled:.0f} s before the end")
                return False
            self.received.add(number)
            self.waiting.pop(number, None)
            began = self.sent.pop(number, None)
            if began is not None and not redelivered:
                self.deliver_ms.append((now - began) * 1000)
            if not redelivered:
                self._look_for_missing(number)
            return True

    def _look_for_missing(self, number):
        gone = list(itertools.takewhile(lambda each: each < number, self.waiting))  # confirms come in order
        if gone:
            self.missing += len(gone)
            for each in gone:
                del self.waiting[each]
            self.tell(f"{self.name}: {len(gone)} confirmed messages are missing, the first is {gone[0]}, and {number} has come")

    def settle(self, number):
        """It was acknowledged."""
        now = time.monotonic()
        with self.lock:
            self.settled[number] = now
            if len(self.settled) > 20000:
                self.settled = {each: when for each, when in self.settled.items() if now - when < 60}
            if len(self.sent) > 50000:
                self.sent = {each: when for each, when in self.sent.items() if now - when < 120}

    def begin_anew(self):
        """The data were given up: what was there is nobody's fault any more."""
        with self.lock:
            self.waiting.clear()
            self.sent.clear()
            self.last = 0

    def rest_is_missing(self):
        """At the end: whatever still waits."""
        with self.lock:
            if self.waiting:
                self.missing += len(self.waiting)
                self.tell(f"{self.name}: {len(self.waiting)} confirmed messages never came, the first is {min(self.waiting)}")


class Client(threading.Thread):
    """A thread with a connection, made anew when it breaks. `begin()` and `work()` are the kinds' own."""

    def __init__(self, name, honest, ledger=None):
        super().__init__(name=name, daemon=True)
        self.honest = honest
        self.state = honest.state
        self.ledger = ledger
        self.blocked_since = 0.0
        self.blocked_s = 0.0
        self.reconnects = 0
        self.cut_off = 0
        self.connect_ms = 0.0
        self.connecting_since = 0.0
        self.epoch = 0

    def done(self):
        """True when there is nothing left to do."""
        return self.state.stop.value >= 2

    def run(self):
        while not self.done():
            if not self.state.up.value:
                time.sleep(0.02)
                continue
            generation = self.state.generation.value
            if self.epoch != self.state.ledger.value:
                self.epoch = self.state.ledger.value
                if self.ledger is not None and self.is_reader:
                    self.ledger.begin_anew()
            opened = False
            try:
                self.connecting_since = self.connecting_since or time.monotonic()
                self.open()
                opened = True
                self.connect_ms = max(self.connect_ms, (time.monotonic() - self.connecting_since) * 1000)
                self.connecting_since = 0.0
                self.begin()
                while not self.done():
                    self.work()
            except Exception as error:  # each client library has errors of its own
                if opened and self.is_reader:
                    self.ledger.broke()
                self.lost(generation, opened, error)
            self.unblocked()
            self.leave()

    is_reader = False
    waits = False  # for a confirm or an answer

    def lost(self, generation, opened, error):
        """A connection has ended, or could not be made: whose fault was it?"""
        if self.done():
            return
        for _ in range(15):  # the end of a broker is seen here before the director knows of it
            if generation != self.state.generation.value or not self.state.up.value:
                break
            time.sleep(0.1)
        else:
            if opened:
                self.cut_off += 1
                self.honest.tell(f"{self.name} was cut off while the broker lived: {type(error).__name__} {str(error)[:200]}")
            elif time.monotonic() - self.connecting_since > self.honest.connect_s_max:
                self.cut_off += 1
                self.honest.tell(f"{self.name} could not connect for {time.monotonic() - self.connecting_since:.0f} s: {error!r}"[:300])
                self.connecting_since = time.monotonic()
        self.reconnects += 1
        self.waits = False

    def blocked(self):
        """connection.blocked has come."""
        self.blocked_since = self.blocked_since or time.monotonic()

    def unblocked(self):
        """It is over."""
        if self.blocked_since:
            self.blocked_s += time.monotonic() - self.blocked_since
            self.blocked_since = 0.0


class Wire(Client):
    """A client on the test's own codec."""

    client = None

    def open(self):
        """Log in and open a channel."""
        self.client = wire.RawClient("127.0.0.1", self.state.port, timeout_s=PATIENCE_S)
        self.client.open(user=USER, password=PASSWORD)

    def leave(self):
        """Close the socket."""
        if self.client is not None:
            self.client.socket.close()

    def frame(self, wait_s):
        """The next frame, or None."""
        try:
            got = self.client.read_frame(wait_s)
        except TimeoutError:
            return None
        if got.name == "connection.blocked":
            self.blocked()
        elif got.name == "connection.unblocked":
            self.unblocked()
        elif got.name in ("connection.close", "channel.close", "basic.cancel"):
            raise RuntimeError(f"{got.name} {got.values}")
        return got

    def content(self, method):
        """(properties, body) of what follows a method with content."""
        head = self.client.read_frame(PATIENCE_S)
        size = struct.unpack(">Q", head.payload[4:12])[0]
        body = b""
        while len(body) < size:
            body += self.client.read_frame(PATIENCE_S).payload
        return head.payload[12:], body


class Publisher(Wire):
    """Publishes persistent messages with numbers, at most WINDOW unconfirmed."""

    def __init__(self, name, honest, ledger, queue, rate):
        super().__init__(name, honest, ledger)
        self.queue = queue
        self.rate = rate
        self.number = 0
        self.chance = random.Random(name)

    def begin(self):
        """Confirms on."""
        self.client.call("confirm.select-ok", 1, "confirm.select")
        self.tag = 0
        self.open_tags = {}
        self.next_at = time.monotonic()
        self.heard_at = time.monotonic()

    def work(self):
        """One message when it is time and there is room; and what has come."""
        now = time.monotonic()
        if now >= self.next_at and len(self.open_tags) < WINDOW and self.state.stop.value == 0:
            self.next_at = max(self.next_at + 1 / self.rate, now - 1)
            self.number += 1
            self.tag += 1
            self.open_tags[self.tag] = self.number
            self.ledger.publish(self.number)
            body = b"%d %d " % (self.epoch, self.number) + b"." * self.chance.choice((10, 100, 400, 3000))
            self.client.publish("", self.queue, body, {"delivery_mode": 2})
        self.waits = bool(self.open_tags)
        if not self.waits:
            self.heard_at = now
        got = self.frame(max(0.001, min(0.2, self.next_at - time.monotonic()) if len(self.open_tags) < WINDOW else 0.2))
        if got is not None:
            self.heard_at = time.monotonic()
        elif time.monotonic() - self.heard_at > PATIENCE_S and not self.blocked_since:
            raise RuntimeError(f"no confirm for {PATIENCE_S} s")
        if got is None or got.name not in ("basic.ack", "basic.nack"):
            return
        tags = [tag for tag in self.open_tags if tag <= got["delivery_tag"]] if got["multiple"] else [got["delivery_tag"]]
        for tag in tags:
            number = self.open_tags.pop(tag)
            if got.name == "basic.ack":
                self.ledger.confirm(number)
            else:
                self.ledger.refuse(number)


class Consumer(Wire):
    """Takes what comes and acknowledges it."""

    is_reader = True
    repeats = False
    read_epoch = -1  # of what came last

    def __init__(self, name, honest, ledger, queue):
        super().__init__(name, honest, ledger)
        self.queue = queue

    def begin(self):
        """Consume."""
        self.client.call("basic.qos-ok", 1, "basic.qos", prefetch_count=100)
        self.client.call("basic.consume-ok", 1, "basic.consume", queue=self.queue, arguments=self.arguments())

    def arguments(self):
        """Of basic.consume."""
        return {}

    def work(self):
        """One delivery."""
        got = self.frame(0.2)
        if got is None or got.name != "basic.deliver":
            return
        properties, body = self.content(got)
        epoch, number = (int(each) for each in body.split(b" ", 2)[:2])
        if epoch == self.epoch:
            self.look(got, properties, number)
        self.read_epoch = epoch
        self.client.send(wire.method(1, "basic.ack", delivery_tag=got["delivery_tag"]))
        self.ledger.settle(number)

    def look(self, got, properties, number):
        """Compare it with the ledger."""
        self.ledger.receive(number, got["redelivered"], self.repeats)


class StreamReader(Consumer):
    """Reads the stream on from where its cursor stands."""

    repeats = True

    def begin(self):
        self.next = None
        super().begin()

    def arguments(self):
        began = {} if self.read_epoch == self.epoch else {"x-stream-offset": "first"}
        return {"x-stream-consumer": READER, **began}

    def look(self, got, properties, number):
        offset = wire.decode_properties(properties)["headers"]["x-stream-offset"]
        if self.next is not None and offset != self.next:
            self.honest.tell(f"honest.stream: offset {offset} came where {self.next} was to come")
        self.next = offset + 1
        self.ledger.receive(number, False, True)


class Pika(Client):
    """A connection of pika, with heartbeats."""

    connection = None

    def open(self):
        """Log in and open a channel."""
        self.connection = pika.BlockingConnection(
            pika.ConnectionParameters(
                "127.0.0.1",
                self.state.port,
                credentials=pika.PlainCredentials(USER, PASSWORD),
                heartbeat=20,
                socket_timeout=PATIENCE_S,
                stack_timeout=PATIENCE_S,
                blocked_connection_timeout=None,
            )
        )
        self.connection.add_on_connection_blocked_callback(lambda *_: self.blocked())
        self.connection.add_on_connection_unblocked_callback(lambda *_: self.unblocked())
        self.channel = self.connection.channel()

    def leave(self):
        """Close, if it is open still."""
        try:
            if self.connection is not None and self.connection.is_open:
                self.connection.close()
        except Exception:  # each client library has errors of its own
            pass  # the broker has gone in this moment


class PikaPublisher(Pika):
    """Waits for each confirm."""

    number = 0

    def begin(self):
        """Confirms on."""
        self.channel.confirm_delivery()

    def work(self):
        """One message."""
        if self.state.stop.value:
            self.connection.process_data_events(0.1)
            return
        self.number += 1
        self.waits = True
        self.ledger.publish(self.number)
        try:
            self.channel.basic_publish(
                "", PIKA_QUEUE, b"%d %d " % (self.epoch, self.number), pika.BasicProperties(delivery_mode=2), mandatory=True
            )
            self.ledger.confirm(self.number)
        except pika.exceptions.NackError:
            self.ledger.refuse(self.number)
        self.waits = False
        self.connection.process_data_events(0.05)


class PikaConsumer(Pika):
    """Acknowledges each."""

    is_reader = True

    def begin(self):
        """Consume."""
        self.channel.basic_qos(prefetch_count=20)
        self.channel.basic_consume(PIKA_QUEUE, self.take)

    def take(self, channel, method, properties, body):
        """One delivery."""
        epoch, number = (int(each) for each in body.split(b" ", 2)[:2])
        if epoch == self.epoch:
            self.ledger.receive(number, method.redelivered)
        channel.basic_ack(method.delivery_tag)
        self.ledger.settle(number)

    def work(self):
        """What comes."""
        self.connection.process_data_events(0.2)


class Echo(Wire):
    """Asks a question that costs nothing, again and again: how long it waits, and how much CPU the broker used meanwhile."""

    def begin(self):
        """Nothing."""

    def work(self):
        """One question."""
        pid = self.state.pid.value
        began, cpu = time.monotonic(), cpu_of(pid)
        self.state.asked_at.value = began
        self.waits = True
        try:
            self.client.call("queue.declare-ok", 1, "queue.declare", queue=QUEUE, passive=True)
        finally:
            self.state.asked_at.value = 0.0
        self.waits = False
        wall = time.monotonic() - began
        self.honest.waited(began, wall, cpu_of(pid) - cpu)
        time.sleep(0.05)


class Honest:
    """All of them. `say(kind, ...)` goes to the director."""

    def __init__(self, state, say, connect_s_max=60):
        self.state = state
        self.say = say
        self.connect_s_max = connect_s_max
        import honest_0_10  # which are made of this module
        import honest_1_0

        self.ledgers = {name: Ledger(name, self.tell) for name in (QUEUE, STREAM, PIKA_QUEUE, LINKS, SESSIONS)}
        self.clients = [
            Publisher("publisher of " + QUEUE, self, self.ledgers[QUEUE], QUEUE, 60),
            Consumer("consumer of " + QUEUE, self, self.ledgers[QUEUE], QUEUE),
            Publisher("publisher of " + STREAM, self, self.ledgers[STREAM], STREAM, 40),
            StreamReader("reader of " + STREAM, self, self.ledgers[STREAM], STREAM),
            PikaPublisher("pika publisher", self, self.ledgers[PIKA_QUEUE]),
            PikaConsumer("pika consumer", self, self.ledgers[PIKA_QUEUE]),
            Echo("echo", self),
            *honest_1_0.clients(self),
            *honest_0_10.clients(self),
        ]
        self.waits = []

    def tell(self, text):
        """A finding."""
        self.say("finding", time.monotonic(), text)

    def waited(self, began, wall, cpu):
        """An answer came."""
        self.waits.append(wall * 1000)
        if wall > 0.1:
            self.say("stall", began, wall, cpu)

    def run(self):
        """Until told to stop; then until what was confirmed has come."""
        for client in self.clients:
            client.start()
        while self.state.stop.value == 0:
            time.sleep(0.1)
        limit = time.monotonic() + DRAIN_S
        while time.monotonic() < limit and (
            any(ledger.waiting for ledger in self.ledgers.values()) or any(client.waits for client in self.clients)
        ):
            time.sleep(0.02)
        for client in self.clients:
            if client.waits and time.monotonic() > limit:
                self.tell(f"{client.name} waited in vain at the end, for {DRAIN_S} s")
        for ledger in self.ledgers.values():
            ledger.rest_is_missing()
        self.state.stop.value = 2
        self.say("report", self.report())

    def report(self):
        """The rows of the table, and what the clients saw."""
        rows = []
        for name, ledger in self.ledgers.items():
            rows.append(
                (
                    name,
                    ledger.published,
                    ledger.confirmed,
                    ledger.refused,
                    len(ledger.received),
                    ledger.missing,
                    ledger.doubled,
                    figures(ledger.confirm_ms),
                    figures(ledger.deliver_ms),
                )
            )
        clients = [(client.name, client.reconnects, client.cut_off, client.blocked_s, client.connect_ms) for client in self.clients]
        return {"rows": rows, "clients": clients, "waits": figures(self.waits)}


def figures(numbers):
    """(p50, p99, max)."""
    if not numbers:
        return 0.0, 0.0, 0.0
    numbers = sorted(numbers)
    return numbers[len(numbers) // 2], numbers[len(numbers) * 99 // 100], numbers[-1]


def main(state, queue):
    """The process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Honest(state, lambda *event: queue.put(event)).run()
