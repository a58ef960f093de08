"""One side of `leveret perf` as a process of its own: all its publishers, or all its consumers, in one poll loop over raw connections.

Standard input: a line of JSON (see perf.py `Measurement.start`), then `start`, then `stop` and at last `quit`, or `expect N`. Standard
output: `ready`, then a line of JSON five times a second and a last one with `"done": true`; `{"failed": "..."}` when it cannot go on. What
happens to a message happens in c_accel/perf.c. Time is the machine's monotonic clock: both sides must run on one machine for latencies to
mean anything.
"""

import contextlib
import importlib
import json
import os
import random
import resource
import select
import struct
import sys
import time

from leveret.c_accel import _perf  # type: ignore[attr-defined]  # compiled by cffi
from leveret.core.amqp_0_9 import frame, method, properties
from leveret.core.amqp_0_9.spec_0_9_1 import METHODS
from leveret.ports.client import connect
from leveret.ports.client_errors import ClientError
from leveret.tools.perf import DRAIN_S, WINDOW_MAX

ffi, lib = _perf.ffi, _perf.lib

COMMANDS = 0  # standard input; read without a buffer, so that poll sees all there is
RECEIVE_SIZE = 1 << 20
FILL_SIZE = 1 << 18
FILL_COUNT = 512
REPORT_S = 0.2
FIRST_DRAW = 2463534242
ID_DIGITS = "0" * 16  # of a message-id, where C puts the message's own
FILES_BESIDE = 32  # what a process has open beside its connections

BASIC_CANCEL = 60 << 16 | 30


class Failed(Exception):
    """The measurement cannot go on; the text is a sentence."""


def read_line():
    """A line of the parent. Raises Failed at the end."""
    octets = b""
    while not octets.endswith(b"\n"):
        octet = os.read(COMMANDS, 1)
        if not octet:
            raise Failed("leveret perf has ended")
        octets += octet
    return octets.decode().strip()


def publish_octets(exchange, key, body, given, frame_size_max):
    """(frames of one publish, where the first eight octets of its body lie, where the digits of its id do; 0: it has none)."""
    octets = method.encode(method.named(METHODS, "basic_publish"), 1, (0, exchange, key, False, False))
    octets += frame.content_header(1, len(body), properties.encode(given))
    digits = octets.index(ID_DIGITS.encode()) if "message_id" in given else 0
    stamp = len(octets) + 7 if len(body) >= 8 else 0
    for begin in range(0, len(body), frame_size_max - 8):
        octets += frame.encode(frame.BODY, 1, body[begin : begin + frame_size_max - 8])
    return octets, stamp, digits


def varied(random_, size):
    """(body, properties) of a message that a device might send: a body from half of `size` to half more, ids and headers."""
    least = max(size // 2, min(size, 8))  # eight octets are its time
    device = "device-%d" % random_.randrange(1, 2000)
    headers = {"device": device, "site": "site-%d" % random_.randrange(1, 40), "sequence": random_.randrange(1 << 31)}
    if random_.random() < 0.5:
        headers["quality"] = random_.random()
    return random_.randbytes(random_.randint(least, size + size // 2)), {
        "content_type": random_.choice(("application/json", "application/cbor", "text/plain")),
        "headers": headers,
        "correlation_id": "%x" % random_.getrandbits(random_.choice((32, 64, 128))),
        "message_id": device + "/" + ID_DIGITS,
    }


def messages(settings):
    """(exchange, key, body, properties) of what a publisher sends, each a template; the same ones for the same settings."""
    random_ = random.Random(settings["seed"])
    of_all: dict = {"delivery_mode": 2} if settings["persistent"] else {}
    if settings["expiration"] is not None:
        of_all["expiration"] = str(settings["expiration"])
    for number in range(settings["vary"] or max(len(settings["routes"]), settings["priorities"])):
        exchange, key = settings["routes"][number % len(settings["routes"])]
        body, given = varied(random_, settings["size"]) if settings["vary"] else (bytes(settings["size"]), {})
        if settings["priorities"]:
            given = dict(given, priority=number % settings["priorities"])
        headers = dict(given.get("headers", {}), **settings["properties"].get("headers", {}))
        given = dict(given, **of_all, **dict(settings["properties"], **({"headers": headers} if headers else {})))
        yield exchange, key, body, given


class Templates:
    """The publishes of every route, one behind the other, as C reads them; publishers share them."""

    made: dict = {}

    def __init__(self, settings, frame_size_max):
        made = self.octets_of(settings, frame_size_max)
        begins = [0]
        for octets, _, _ in made:
            begins.append(begins[-1] + len(octets))
        self.count = len(made)
        self.size_max = max(len(octets) for octets, _, _ in made)
        self.octets = ffi.new("uint8_t[]", b"".join(octets for octets, _, _ in made))
        self.begins = ffi.new("int32_t[]", begins)
        self.stamps = ffi.new("int32_t[]", [stamp for _, stamp, _ in made])
        self.ids = ffi.new("int32_t[]", [digits for _, _, digits in made])

    def octets_of(self, settings, frame_size_max):
        """The rows of publish_octets."""
        return [publish_octets(exchange, key, body, given, frame_size_max) for exchange, key, body, given in messages(settings)]

    @classmethod
    def of(cls, settings, frame_size_max):
        """The templates of a connection; a broker may ask each for frames of another size."""
        if frame_size_max not in cls.made:
            cls.made[frame_size_max] = cls(settings, frame_size_max)
        return cls.made[frame_size_max]


class Side:
    """The common part of publishers and consumers: a connection that was handed over, its counters in C, its octets to send."""

    methods: tuple = METHODS  # those of the version
    heartbeat = frame.HEARTBEAT_FRAME

    def __init__(self, connection):
        self.stream, self.frame_size_max, self.heartbeat_s = connection.hand_over()
        self.perf = ffi.new("leveret_perf *")
        self.perf.lowest = 1
        self.octets = bytearray(RECEIVE_SIZE)
        self.view = memoryview(self.octets)
        self.address = ffi.from_buffer("uint8_t[]", self.octets)
        self.other = ffi.new("int32_t *")
        self.end = 0
        self.pending = memoryview(b"")
        self.wanted = select.POLLIN  # of poll
        self.blocked = False
        self.closing = self.closed = False
        self.moved_at = self.heard_at = self.spoke_at = time.monotonic()

    def begin(self):
        """The others are connected too."""
        self.moved_at = self.heard_at = time.monotonic()

    def read(self):
        """Take what has come. Raises Failed."""
        count = None if self.closed else self.stream.read_into(self.view[self.end :])
        if count is None:
            return
        if count == 0:
            raise Failed("the broker closed the connection")
        self.end += count
        self.heard_at = time.monotonic()
        before = self.perf.confirmed, self.perf.octets, self.perf.received
        at = 0
        while True:
            at = self.scan(at)
            if self.other[0] == 0:
                break
            if self.other[0] < 0:
                raise Failed("the broker sent octets that are no frame of the protocol")
            at = self.other_frame(at)
        if before != (self.perf.confirmed, self.perf.octets, self.perf.received):
            self.moved_at = self.heard_at
        left = self.end - at
        if at and left:
            self.octets[:left] = self.octets[at : self.end]
        if left == RECEIVE_SIZE:
            raise Failed("the broker sent a frame of more than %d octets" % RECEIVE_SIZE)
        self.end = left

    def scan(self, at):
        """Read whole frames from `at` on: where it stopped, with `other` as c_accel/perf.h says."""
        return lib.leveret_perf_scan(self.perf, self.address, at, self.end, time.monotonic_ns(), self.other)

    def other_frame(self, at):
        """Take the frame at `at`, which is neither content nor confirm: where it ends. Raises Failed."""
        size = struct.unpack_from(">I", self.octets, at + 3)[0]
        self.process(self.octets[at], bytes(self.view[at + 7 : at + 7 + size]))
        return at + size + 8

    def process(self, kind, payload):
        """A frame that is neither content nor confirm. Raises Failed."""
        row = method.find(self.methods, struct.unpack_from(">I", payload)[0]) if kind == frame.METHOD and len(payload) >= 4 else None
        if row is not None:
            closes = row[method.NAME].endswith("_close")
            self.answered(row[method.NAME], method.decode(row, payload, 4, len(payload)) if closes else [])

    def answered(self, name, arguments):
        """A method of the broker, with its arguments where it closes something. Raises Failed."""
        if name.endswith("_close"):
            raise Failed("the broker closed the %s: %d %s" % (name.partition("_")[0], arguments[0], arguments[1]))
        if name == "basic_cancel":
            raise Failed("the broker cancelled a consumer: its queue is gone")
        if name in ("connection_blocked", "connection_unblocked"):
            self.blocked = name == "connection_blocked"
        self.closed |= name == "connection_close_ok"

    def encode(self, name, number, *arguments):
        """The frame of a method."""
        return method.encode(method.named(self.methods, name), number, arguments)

    def send(self, octets=b""):
        """Send what waits, then `octets`; what the peer does not take waits. True when nothing waits."""
        if octets:
            self.pending = memoryview(bytes(self.pending) + octets) if len(self.pending) else memoryview(octets)
        while len(self.pending):
            count = self.stream.write(self.pending)
            if count is None:
                return False
            if count == 0:
                raise Failed("the broker closed the connection")
            self.pending = self.pending[count:]
        return True

    def beat(self, now):
        """A heartbeat twice in each interval, whatever else is sent. Raises Failed for a broker that has been silent for two."""
        if not self.heartbeat_s:
            return
        if now - self.heard_at > 2 * self.heartbeat_s:
            raise Failed("no heartbeat from the broker for %d s" % (2 * self.heartbeat_s))
        if now - self.spoke_at > self.heartbeat_s / 2 and self.send():
            self.spoke_at = now
            self.send(self.heartbeat)


class Publisher(Side):
    """Publishes as fast as it may: `rate` a second, at most `confirm` unconfirmed, `count` in all; 0: no bound."""

    def __init__(self, connection, settings, number):
        if settings["confirm"]:
            connection.confirm_select()
        Side.__init__(self, connection)
        self.rate, self.window, self.count = settings["rate"], settings["confirm"], settings["count"]
        self.templates = Templates.of(settings, self.frame_size_max)
        self.prepare(settings, number)

    def prepare(self, settings, number):
        """Prepare the draws and the buffer, from `self.templates`."""
        drawn = settings["random"] or settings["vary"]
        self.draw = ffi.new("uint32_t *", (FIRST_DRAW + 7919 * number + 104729 * settings["seed"]) % (1 << 32) or 1 if drawn else 0)
        self.perf.identity = number << 48
        self.out = bytearray(max(FILL_SIZE, self.templates.size_max))
        self.out_address = ffi.from_buffer("uint8_t[]", self.out)
        self.out_view = memoryview(self.out)
        self.began = time.monotonic()
        self.stopped = self.given_up = False

    def begin(self):
        Side.begin(self)
        self.began = time.monotonic()

    def may(self, now):
        """How many may be published now."""
        allowed = FILL_COUNT
        if self.window:
            allowed = min(
                allowed,
                self.window - (self.perf.published - self.perf.confirmed),
                WINDOW_MAX - (self.perf.published + 1 - self.perf.lowest),
            )
        if self.rate:
            allowed = min(allowed, int((now - self.began) * self.rate) + 1 - self.perf.published)
        if self.count:
            allowed = min(allowed, self.count - self.perf.published)
        return 0 if self.stopped else max(allowed, 0)

    def work(self, now):
        """Publish what may be; true when there is more to do at once."""
        waiting = len(self.pending)
        if not self.send():
            if len(self.pending) < waiting:
                self.moved_at = now
            return False
        allowed = self.may(now)
        if not allowed:
            return False
        size = self.fill(allowed)
        if not size:
            return False  # AMQP 1.0: the session's window is used up
        self.pending = self.out_view[:size]
        self.moved_at = now
        return self.send()

    def fill(self, allowed):
        """Write up to `allowed` publishes into `out`: the octets."""
        made = self.templates
        return lib.leveret_perf_fill(
            self.perf,
            made.octets,
            made.begins,
            made.stamps,
            made.ids,
            made.count,
            self.draw,
            int(self.window > 0),
            self.out_address,
            len(self.out),
            allowed,
            time.monotonic_ns(),
        )

    def end_connection(self):
        """Ask the broker to close."""
        self.send(self.encode("connection_close", 0, 200, "done", 0, 0))

    def wants_ms(self, now):
        """Milliseconds until it may publish again, for poll."""
        if self.rate and not self.stopped and (not self.count or self.perf.published < self.count):
            return max(0, min(1000, ((self.perf.published) / self.rate - (now - self.began)) * 1000))
        return 1000

    def done(self, now):
        """True when all is published and confirmed and the broker has closed the connection as asked, or the parent gives it up.

        A broker that has answered connection.close has read all there was; a stream that is just closed may take publishes with it.
        """
        if self.given_up or not (self.stopped or self.count and self.perf.published >= self.count) or len(self.pending):
            return self.given_up
        if not self.closing and (not self.window or self.perf.confirmed >= self.perf.published):
            self.closing = True
            self.end_connection()
        return self.closed


class Consumer(Side):
    """Consumes some queues; acknowledges each `ack_every` deliveries (0: with no_ack there is nothing to acknowledge)."""

    def __init__(self, connection, settings, queues):
        if settings["ack_every"]:
            connection.qos(settings["prefetch"], len(queues) > 1)  # queues of some kinds refuse the global one
        Side.__init__(self, connection)
        self.perf.stamped = int(settings["size"] >= 8)
        self.ack_every = settings["ack_every"]
        self.acknowledged = 0
        self.expected = None
        self.subscribe(settings, queues)

    def subscribe(self, settings, queues):
        """Ask for the messages of the queues."""
        for queue in queues:
            self.send(self.encode("basic_consume", 1, 0, queue, "", False, self.ack_every == 0, False, False, settings["arguments"]))

    def work(self, now):
        """Acknowledge what is due."""
        if self.ack_every and self.perf.tag - self.acknowledged >= (self.ack_every if self.expected is None else 1):
            self.acknowledged = self.perf.tag
            self.send(self.encode("basic_ack", 1, self.perf.tag, True))
        elif len(self.pending):
            self.send()
        return False

    def wants_ms(self, now):
        return 1000

    def has_acknowledged(self):
        """True when all deliveries are acknowledged and the acknowledgements are sent."""
        return not self.ack_every or self.acknowledged == self.perf.tag and not len(self.pending)


def allow_files(count):
    """Raise the limit of open files of this process to `count`, where the system allows it."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if least != resource.RLIM_INFINITY and least < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count if most == resource.RLIM_INFINITY else min(count, most), most))


class Worker:
    """All sides of this process."""

    def __init__(self, settings):
        self.settings = settings
        self.sides = []
        self.by_descriptor = {}
        self.expected = None
        self.began = self.cpu_began = 0.0

    def open(self):
        """Make the connections. Raises ClientError, ValueError, Failed."""
        settings = self.settings
        allow_files(settings["connections"] + FILES_BESIDE)
        for number in range(settings["connections"]):
            try:
                if settings["protocol"]:
                    sides = importlib.import_module("leveret.tools.perf_worker_" + settings["protocol"])
                    self.sides.append(sides.open_side(settings, number))
                    continue
                connection = connect(settings["url"])
            except ClientError as error:
                raise Failed("connection %d of %d: %s" % (number + 1, settings["connections"], error)) if number else error from None
            self.sides.append(self.side(connection, number))
        self.poll = select.poll()
        for side in self.sides:
            self.by_descriptor[side.stream.pollable.fileno()] = side
            self.poll.register(side.stream.pollable, select.POLLIN)
        self.poll.register(COMMANDS, select.POLLIN)

    def side(self, connection, number):
        """The side that has connection `number`."""
        settings = self.settings
        if settings["role"] == "publisher":
            return Publisher(connection, settings, number)
        return Consumer(connection, settings, settings["queues"][number])

    def run(self):
        """Until it is told to end. Raises Failed."""
        self.cpu_began = time.process_time()
        self.began = report_at = time.monotonic()
        for side in self.sides:
            side.begin()
        while True:
            now = time.monotonic()
            busy = False
            for side in self.sides:
                if not side.closing:
                    busy |= side.work(now)
                    side.beat(now)
            if now >= report_at:
                report_at = now + REPORT_S
                self.report(False)
            if self.is_done(now):
                self.report(True)
                return
            for side in self.sides:
                wanted = (0 if side.closed else select.POLLIN) | (select.POLLOUT if len(side.pending) else 0)
                if wanted != side.wanted:
                    side.wanted = wanted
                    self.poll.modify(side.stream.pollable, wanted)
            wait_ms = 0 if busy else min([50 if self.ending() else 1000] + [side.wants_ms(now) for side in self.sides])
            for descriptor, event in self.poll.poll(wait_ms):
                if descriptor == COMMANDS:
                    self.listen()
                elif event & ~select.POLLOUT:
                    self.by_descriptor[descriptor].read()
                elif self.by_descriptor[descriptor].closing:
                    self.by_descriptor[descriptor].send()

    def ending(self):
        return self.expected is not None or self.settings["role"] == "publisher"

    def listen(self):
        """The next line of the parent. Raises Failed when there is no parent any more."""
        word, _, number = read_line().partition(" ")
        for side in self.sides:
            if word == "expect":
                side.expected = self.expected = int(number)
            else:
                side.stopped = True
                side.given_up = word == "quit"

    def is_done(self, now):
        if self.settings["role"] == "publisher":
            return all(side.done(now) for side in self.sides)
        if self.expected is None:
            return False
        received = sum(side.perf.received for side in self.sides)
        acknowledged = all(side.has_acknowledged() for side in self.sides)
        return received >= self.expected and acknowledged or now - max(side.moved_at for side in self.sides) > DRAIN_S

    def report(self, done):
        """A line of counts, all since the start."""
        totals = {
            name: sum(getattr(side.perf, name) for side in self.sides)
            for name in ("published", "confirmed", "refused", "received", "octets")
        }
        totals.update(
            done=done,
            seconds=time.monotonic() - self.began,
            blocked=sum(side.blocked for side in self.sides),
            held=sum(not side.closed for side in self.sides),
            cpu_s=time.process_time() - self.cpu_began,
            moved_s=max(side.moved_at for side in self.sides) - self.began,
            latency=self.bins("latency"),
            confirm_latency=self.bins("confirm_latency"),
        )
        print(json.dumps(totals), flush=True)

    def bins(self, name):
        """The bins of a latency that are not empty, summed over the sides."""
        counts: dict = {}
        for side in self.sides:
            for place, count in enumerate(ffi.unpack(getattr(side.perf, name), 1024)):
                if count:
                    counts[place] = counts.get(place, 0) + count
        return counts

    def close(self):
        for side in self.sides:
            side.stream.close()


def main(kind=Worker):
    """The process; `kind`: of the worker."""
    worker = kind(json.loads(read_line()))
    try:
        worker.open()
        print("ready", flush=True)
        read_line()
        worker.run()
    except (Failed, ClientError, ValueError, OSError) as error:
        with contextlib.suppress(BrokenPipeError):  # the parent is gone
            print(json.dumps({"failed": str(error)}), flush=True)
        return 1
    finally:
        worker.close()
    return 0


if __name__ == "__main__":
    from leveret.tools import perf_worker  # under its own name, which perf_worker_1_0.py imports

    sys.exit(perf_worker.main())
