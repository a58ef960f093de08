"""The clients of a board's long run: half of its connections publish with confirms, the others consume and acknowledge; AMQP 0-9-1 by hand.

Each message has its number in its first four octets; no number may be missing and none may come before another. Clients go and come back,
with the handshake and without: what was not confirmed is published again then, so a message may come twice.
"""

import json
import selectors
import socket
import struct
import time

SIZES = (16, 64, 200, 33)  # octets of a body, in turn
SENSORS = "sensors"  # the queue of the board's own sensor
SILENCE_S = 240  # nothing comes for so long: the run has failed
PIECE = 65536
HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
HEARTBEAT_S = 5


class Failed(Exception):
    """The board did what it must not: one sentence."""


def short(text):
    octets = text.encode()
    return bytes((len(octets),)) + octets


def method(channel, class_id, method_id, arguments=b""):
    """A method frame."""
    payload = struct.pack(">HH", class_id, method_id) + arguments
    return struct.pack(">BHI", 1, channel, len(payload)) + payload + b"\xce"


def name_of(number):
    """The name of a queue of the run."""
    return "queue.%02d" % number


class Queue:
    """A queue of the run: `sent`, `confirmed` and `received` count its messages; `holder` consumes from it, None: nobody does."""

    def __init__(self, name, durable):
        self.name, self.durable = name, durable
        self.sent = self.confirmed = self.received = 0
        self.holder = None
        self.publisher = None
        self.frames = [self.publish_frames(size) for size in SIZES]

    def publish_frames(self, size):
        """A publish with a body of `size` octets, but for the number that its body begins with: (before it, behind it)."""
        publish = method(1, 60, 40, b"\x00\x00\x00" + short(self.name) + b"\x00")
        properties = b"\x10\x00\x02" if self.durable else b"\x10\x00\x01"  # delivery-mode
        payload = struct.pack(">HHQ", 60, 0, size) + properties
        header = struct.pack(">BHI", 2, 1, len(payload)) + payload + b"\xce"
        return publish + header + struct.pack(">BHI", 3, 1, size), bytes(size - 4) + b"\xce"

    def next(self):
        """The frames of the next message."""
        before, behind = self.frames[self.sent % len(self.frames)]
        self.sent += 1
        return before + struct.pack(">I", self.sent) + behind


class Client:
    """One connection. `open` waits until it is there; octets then go both ways as `run` finds them."""

    def __init__(self, run, queues, is_consumer):
        self.run, self.queues, self.is_consumer = run, queues, is_consumer
        self.tags = {}  # of a consumer: its Queue
        self.unconfirmed = []  # queues of publishes in their order

    def open(self):
        """Connect, log in, declare and subscribe. Raises Failed."""
        self.inside, self.outside = bytearray(), bytearray()
        self.queue = None
        self.tag = self.came = self.published = 0
        self.unconfirmed = []
        self.socket = self.run.connect()
        self.send(b"AMQP\x00\x00\x09\x01")
        self.wait(10, 10)
        login = b"\x00%s\x00%s" % (self.run.user.encode(), self.run.password.encode())
        self.send(method(0, 10, 11, struct.pack(">I", 0) + b"\x05PLAIN" + struct.pack(">I", len(login)) + login + b"\x05en_US"))
        tune = self.wait(10, 30)
        channels, frame, heartbeat = struct.unpack_from(">HIH", tune, 4)
        self.send(method(0, 10, 31, struct.pack(">HIH", channels, frame, heartbeat)) + method(0, 10, 40, b"\x01/\x00\x00"))
        self.wait(10, 41)
        for channel in range(1, self.run.channels + 1):
            self.send(method(channel, 20, 10, b"\x00"))
            self.wait(20, 11)
        for queue in self.queues:
            if queue.name != SENSORS:
                self.send(method(1, 50, 10, b"\x00\x00" + short(queue.name) + (b"\x02" if queue.durable else b"\x00") + bytes(4)))
                self.wait(50, 11)
        if self.is_consumer:
            self.subscribe()
        else:
            self.send(method(1, 85, 10, b"\x00"))
            self.wait(85, 11)
            for queue in self.queues:
                queue.sent = queue.confirmed  # what was not confirmed is published again
        self.socket.setblocking(False)
        self.run.selector.register(self.socket, selectors.EVENT_READ, self)
        self.process()

    def subscribe(self):
        """Consume from each queue that it holds."""
        for number, queue in enumerate(self.queues):
            if queue.holder is self:
                self.tags[b"c%02d" % number] = queue
                self.send(method(1, 60, 20, b"\x00\x00" + short(queue.name) + short("c%02d" % number) + bytes(5)))
                self.wait(60, 21)

    def send(self, octets):
        """Send while it opens."""
        self.socket.sendall(octets)

    def wait(self, class_id, method_id):
        """The payload of that method; deliveries that come before it wait. Raises Failed."""
        passed = 0
        while True:
            at = passed
            while at + 8 <= len(self.inside):
                kind, _, size = struct.unpack_from(">BHI", self.inside, at)
                end = at + size + 8
                if end > len(self.inside):
                    break
                payload = bytes(self.inside[at + 7 : end - 1])
                if kind == 1 and struct.unpack_from(">HH", payload) == (class_id, method_id):
                    del self.inside[at:end]
                    return payload
                if kind == 1 and payload[1] in (10, 20) and payload[3] in (40, 50):
                    raise Failed("the board closes: %r" % payload)
                at = end
            passed = at
            try:
                octets = self.socket.recv(PIECE)
            except OSError as error:
                octets = b""
                self.run.note("%s" % error)
            if not octets:
                raise Failed("a connection ended while it opened (waiting for %d.%d)" % (class_id, method_id))
            self.inside += octets

    def close(self, politely):
        """End the connection, with the handshake or without."""
        self.run.selector.unregister(self.socket)
        if politely:
            self.socket.settimeout(SILENCE_S)
            self.send(bytes(self.outside) + method(0, 10, 50, b"\x00\xc8\x00\x00\x00\x00\x00"))
            self.wait(10, 51)
        self.socket.close()

    def give(self, octets):
        """Have octets sent when there is room."""
        self.outside += octets
        self.flush()

    def flush(self):
        """Send what there is room for."""
        if self.outside:
            try:
                del self.outside[: self.socket.send(self.outside)]
            except BlockingIOError:
                pass
            self.run.watch(self, bool(self.outside))

    def receive(self):
        """Take what has come. Raises Failed."""
        try:
            octets = self.socket.recv(PIECE)
        except BlockingIOError:
            return
        except OSError as error:
            raise Failed("a connection failed: %s" % error) from None
        if not octets:
            raise Failed("the board ended a connection")
        self.inside += octets
        self.process()

    def process(self):
        """Take all whole frames."""
        inside, at, end = self.inside, 0, len(self.inside)
        while at + 8 <= end:
            kind = inside[at]
            size = inside[at + 3] << 24 | inside[at + 4] << 16 | inside[at + 5] << 8 | inside[at + 6]
            behind = at + size + 8
            if behind > end:
                break
            if kind == 3:
                self.body(inside, at + 7, size)
            elif kind == 1:
                self.method(inside[at + 8] << 8 | inside[at + 10], inside, at + 11, behind - 1)
            at = behind
        del inside[:at]
        if self.came:
            self.give(method(1, 60, 80, struct.pack(">QB", self.came, 1)))
            self.came = 0

    def method(self, number, inside, at, end):
        """A method, by its class and method number, and its arguments."""
        if number == 60 << 8 | 60:
            size = inside[at]
            self.queue = self.tags[bytes(inside[at + 1 : at + 1 + size])]
            self.tag = struct.unpack_from(">Q", inside, at + 1 + size)[0]
        elif number == 60 << 8 | 80:
            tag, multiple = struct.unpack_from(">QB", inside, at)
            self.confirm(tag, multiple)
        elif number in (10 << 8 | 50, 20 << 8 | 40, 60 << 8 | 120, 60 << 8 | 30):
            raise Failed("the board says: %r" % bytes(inside[at:end]))

    def confirm(self, tag, multiple):
        """Confirms come in order of their tags, or one by one."""
        first = self.published - len(self.unconfirmed) + 1
        if tag < first:
            return  # confirmed already
        if multiple:
            for queue in self.unconfirmed[: tag - first + 1]:
                queue.confirmed += 1
            del self.unconfirmed[: tag - first + 1]
        elif tag == first:
            self.unconfirmed.pop(0).confirmed += 1
        else:
            raise Failed("publish %d is confirmed before %d" % (tag, first))
        self.run.heard()

    def body(self, inside, at, size):
        """A body that was delivered. Raises Failed for one that is missing."""
        queue = self.queue
        self.came = self.tag
        if queue.name == SENSORS:
            json.loads(bytes(inside[at : at + size]))
            queue.received += 1
            return
        number = struct.unpack_from(">I", inside, at)[0]
        if size != SIZES[(number - 1) % len(SIZES)] or any(inside[at + 4 : at + size]):
            raise Failed("%s: message %d came with %d octets that are not its own" % (queue.name, number, size))
        if number > queue.received + 1:
            raise Failed("%s: message %d came, %d was next" % (queue.name, number, queue.received + 1))
        if number == queue.received + 1:
            queue.received = number
            self.run.received += 1
            self.run.heard()

    def publish(self, count):
        """Publish up to `count` messages to its queues in turn."""
        for _ in range(count):
            queue = self.queues[self.published % len(self.queues)]
            self.unconfirmed.append(queue)
            self.published += 1
            self.outside += queue.next()
        self.flush()


class Clients:
    """All clients of a board. `profile`: connections, channels, queues, consumers, lead (messages that may be under way), durable."""

    def __init__(self, host, port, user, password, profile, has_sensor):
        self.host, self.port, self.user, self.password = host, port, user, password
        self.selector = selectors.DefaultSelector()
        self.received = self.opened = self.refused = 0
        self.notes = []
        self.lead = profile["lead"]
        count = profile["connections"]
        self.channels = max(1, min(profile["channel_max"], profile["channels"] // count))
        queues = [Queue(name_of(number), profile["durable"]) for number in range(profile["queues"] - has_sensor)]
        self.held = held = queues[: profile["consumers"] - has_sensor]
        self.idle = queues[len(held) :]  # declared, and nobody's
        self.sensors = Queue(SENSORS, True)
        publishers = max(1, count // 2)
        self.publishers = [Client(self, held[number::publishers] + self.idle[number::publishers], False) for number in range(publishers)]
        self.consumers = []
        for number in range(count - publishers):
            mine = held[number :: count - publishers] + ([self.sensors] if has_sensor and number == 0 else [])
            client = Client(self, mine, True)
            self.consumers.append(client)
            for queue in mine:
                queue.holder = client
        self.heard_at = self.beat_at = time.monotonic()

    def heard(self):
        """Something has come."""
        self.heard_at = time.monotonic()

    def note(self, sentence):
        """Keep a sentence for the report."""
        self.notes.append(sentence)

    def connect(self):
        """A new connection's socket."""
        self.opened += 1
        made = socket.create_connection((self.host, self.port), timeout=SILENCE_S)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def watch(self, client, for_room):
        """Whether a client waits for room as well."""
        flags = selectors.EVENT_READ | (selectors.EVENT_WRITE if for_room else 0)
        if self.selector.get_key(client.socket).events != flags:
            self.selector.modify(client.socket, flags, client)

    def open(self):
        """Open all connections, publishers first: they declare the queues."""
        for client in self.publishers:
            client.open()
            client.queues = [queue for queue in client.queues if queue.holder is not None]  # nobody publishes to the others
        for client in self.consumers:
            client.open()

    def move(self, wait_s):
        """Move what can be moved. Raises Failed when nothing has come for SILENCE_S."""
        for key, flags in self.selector.select(wait_s):
            if flags & selectors.EVENT_WRITE:
                key.data.flush()
            if flags & selectors.EVENT_READ:
                key.data.receive()
        now = time.monotonic()
        if now - self.heard_at > SILENCE_S:
            raise Failed("nothing came for %d s: %d messages are under way" % (SILENCE_S, self.under_way()))
        if now - self.beat_at > HEARTBEAT_S:
            self.beat_at = now
            for client in self.publishers + self.consumers:
                if not client.outside:
                    client.give(HEARTBEAT)

    def under_way(self):
        """Messages that were published and have not come."""
        return sum(max(0, queue.sent - queue.received) for queue in self.held)

    def carry(self, count):
        """Publish until `count` messages more have come in all."""
        self.heard()
        target = self.received + count
        while self.received < target:
            for client in self.publishers:
                room = min(self.lead - self.under_way(), target - self.received - self.under_way())
                if room > 0 and len(client.outside) < PIECE:
                    client.publish(min(room, max(1, self.lead // len(self.publishers))))
            self.move(1)
        while any(client.unconfirmed for client in self.publishers):
            self.move(1)

    def burst(self, count):
        """Publish `count` messages at once, more than the board has room for, and wait until all have come."""
        self.heard()
        for client in self.publishers:
            client.publish(count // len(self.publishers))
        while self.under_way():
            self.move(1)
        while any(client.unconfirmed for client in self.publishers):
            self.move(1)

    def reopen(self, number):
        """One publisher and one consumer go and come back, each second time without a word, in the middle of a burst."""
        politely = number % 2 == 0
        publisher = self.publishers[number // 2 % len(self.publishers)]
        consumer = self.consumers[number // 2 % len(self.consumers)]
        if not politely:
            publisher.publish(8)
        for client in (consumer, publisher):
            if politely:
                while client.unconfirmed:
                    self.move(1)
            client.close(politely)
        if not politely:
            time.sleep(0.2)  # the board has to see that they have gone: it has no place for more
        for client in (publisher, consumer):
            self.reopen_one(client)
        self.heard()
        while self.under_way():
            self.move(0.2)

    def reopen_one(self, client):
        """Open a client again; a board that still holds its place is asked again. Raises Failed."""
        for attempt in range(50):
            try:
                client.open()
                return
            except (Failed, OSError) as error:
                client.socket.close()
                if attempt == 49:
                    raise Failed("a client could not come back: %s" % error) from None
                time.sleep(0.1)

    def knock(self):
        """A connection more than the board has places for: it is refused, and nobody else hears of it. Raises Failed."""
        extra = self.connect()
        extra.sendall(b"AMQP\x00\x00\x09\x01")
        end = time.monotonic() + SILENCE_S
        extra.setblocking(False)
        knock = Knock(extra)
        self.selector.register(extra, selectors.EVENT_READ, knock)
        while not knock.ended and time.monotonic() < end:
            self.move(0.2)
        self.selector.unregister(extra)
        extra.close()
        if not knock.ended:
            raise Failed("a connection too many was not refused: %r" % bytes(knock.heard))
        self.refused += 1

    def close(self):
        """End all connections."""
        for client in self.publishers + self.consumers:
            client.close(True)


class Knock:
    """A connection too many."""

    def __init__(self, connected):
        self.socket, self.heard, self.ended = connected, bytearray(), False

    def receive(self):
        """Take what comes until the board ends it."""
        try:
            octets = self.socket.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            octets = b""
        self.heard += octets
        self.ended = self.ended or not octets

    def flush(self):
        """Nothing is sent."""
