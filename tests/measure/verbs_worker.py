"""The sides of verbs_load.py as processes of their own: what tools/perf_worker.py does, in other forms of publishing and consuming.

A form is a row of FORMS: (the publishers' worker, the consumers' worker). Publishes are filled and deliveries read in C as there
(c_accel/perf.c); per transaction, round trip, connection or cycle there are a few calls of Python.
"""

import sys
import time

from leveret.core.amqp_0_9 import method
from leveret.core.amqp_0_9.spec_0_9_1 import METHODS
from leveret.tools import perf_worker
from leveret.tools.perf_worker import BASIC_CANCEL, COMMANDS, REPORT_S, Consumer, Publisher, Side, Templates, Worker, lib

GET_EMPTY = 60 << 16 | 72
COMMIT_OK = 90 << 16 | 21
CONSUME_OK, BIND_OK, DECLARE_OK, DELETE_OK = 60 << 16 | 21, 50 << 16 | 21, 50 << 16 | 11, 50 << 16 | 41
REPLIES = "amq.rabbitmq.reply-to"
PACKED = b"\x10x-stream-recordsI"  # before the number of a pack's records (core/amqp_0_9/packed.py)
SMALL = 1 << 14  # octets of the buffers of each of many connections
CYCLE_EXCHANGE = "amq.direct"


def octets_of(name, *arguments):
    """The frame of a method on channel 1."""
    return method.encode(method.named(METHODS, name), 1, arguments)


class TransactionPublisher(Publisher):
    """Publishes `confirm` messages and tx.commit, and waits for its answer."""

    def __init__(self, connection, settings, number):
        connection.tx_select()
        Publisher.__init__(self, connection, dict(settings, confirm=0), number)
        self.window = settings["confirm"]
        self.commit = octets_of("tx_commit")

    def may(self, now):
        if self.perf.published > self.perf.confirmed or self.stopped:
            return 0
        return min(self.window, self.count - self.perf.published) if self.count else self.window

    def fill(self, allowed):
        made = self.templates
        size = lib.leveret_perf_fill(
            self.perf, made.octets, made.begins, made.stamps, made.ids, made.count, self.draw, 0,
            self.out_address, len(self.out) - len(self.commit), allowed, time.monotonic_ns(),
        )  # fmt: skip
        self.out[size : size + len(self.commit)] = self.commit
        return size + len(self.commit)

    def process(self, kind, payload):
        if payload[:4] == COMMIT_OK.to_bytes(4, "big"):
            self.perf.confirmed = self.perf.published
            return
        Publisher.process(self, kind, payload)


class Getter(Consumer):
    """Asks for each message by basic.get, up to `get` on their way; the queue has been filled before."""

    def subscribe(self, settings, queues):
        self.window = settings["get"]
        self.asked = self.empty = 0
        self.question = octets_of("basic_get", 0, queues[0], self.ack_every == 0)

    def work(self, now):
        Consumer.work(self, now)
        if self.expected is not None and not len(self.pending):
            on_their_way = self.asked - self.perf.received - self.empty
            count = min(self.window - on_their_way, self.expected - self.perf.received - on_their_way)
            if count > 0 and (2 * count >= self.window or on_their_way == 0):
                self.asked += count
                self.send(self.question * count)
        return False

    def process(self, kind, payload):
        if payload[:4] == GET_EMPTY.to_bytes(4, "big"):
            self.empty += 1
            return
        Consumer.process(self, kind, payload)


class PackReader(Consumer):
    """Reads a stream in packs, and counts their records."""

    def scan(self, at):
        before = self.perf.received
        stopped = Consumer.scan(self, at)
        frames = bytes(self.octets[at:stopped])
        begin, records = frames.find(PACKED), 0
        while begin >= 0:
            begin += len(PACKED)
            records += int.from_bytes(frames[begin : begin + 4], "big")
            begin = frames.find(PACKED, begin)
        self.perf.received = before + records  # where its head is: the frame before it, or its body, may come in another piece
        return stopped


class Requester(Publisher):
    """Publishes requests that name the direct reply-to, at most `confirm` without their reply."""

    def __init__(self, connection, settings, number):
        Publisher.__init__(self, connection, dict(settings, confirm=0, properties={"reply_to": REPLIES}), number)
        self.requests = settings["confirm"]
        self.send(octets_of("basic_consume", 0, REPLIES, "", False, True, False, False, {}))

    def read(self):
        Publisher.read(self)
        self.perf.confirmed = self.perf.received
        self.perf.lowest = self.perf.confirmed + 1  # replies come in the order of the requests

    def may(self, now):
        self.window = self.requests
        allowed = Publisher.may(self, now)
        self.window = 0
        return allowed

    def done(self, now):
        if self.perf.confirmed < self.perf.published and not self.given_up:
            return False
        return Publisher.done(self, now)

    def process(self, kind, payload):
        if payload[:4] != CONSUME_OK.to_bytes(4, "big"):
            Publisher.process(self, kind, payload)


class Answerer(Consumer):
    """Consumes the requests and publishes a reply for each, of another body. All requests are of one requester: the first names it."""

    def __init__(self, connection, settings, queues):
        self.settings = dict(settings, routes=[], properties={}, persistent=False)
        self.answers = None
        self.replied = 0
        self.out = bytearray(1 << 18)
        self.out_address = perf_worker.ffi.from_buffer("uint8_t[]", self.out)
        self.draw = perf_worker.ffi.new("uint32_t *", 1)
        self.sent = perf_worker.ffi.new("leveret_perf *")
        Consumer.__init__(self, connection, settings, queues)

    def scan(self, at):
        before = self.perf.received
        stopped = Consumer.scan(self, at)
        if self.answers is None and self.perf.received > before:
            name = bytes(self.octets[at : self.end])
            begin = name.index(REPLIES.encode())
            self.settings["routes"] = [("", name[begin : begin + name[begin - 1]].decode())]
            self.answers = Templates(self.settings, self.frame_size_max)
        return stopped

    def work(self, now):
        made = self.answers
        if made and self.replied < self.perf.received and not len(self.pending):
            size = lib.leveret_perf_fill(
                self.sent, made.octets, made.begins, made.stamps, made.ids, made.count, self.draw, 0,
                self.out_address, len(self.out), self.perf.received - self.replied, time.monotonic_ns(),
            )  # fmt: skip
            self.replied = self.sent.published
            self.send(bytes(self.out[:size]))
        Consumer.work(self, now)
        return made is not None and self.replied < self.perf.received and not len(self.pending)

    def has_acknowledged(self):
        return Consumer.has_acknowledged(self) and self.replied == self.perf.received


class Cycler(Side):
    """Declares an exclusive auto-delete queue, binds, publishes, consumes, acknowledges and deletes it; then the next one. The first four
    go out together, the last two when the message has come. A cycle counts as published and confirmed."""

    def __init__(self, connection, settings, number):
        Side.__init__(self, connection)
        self.number = number
        self.body = Templates.of(dict(settings, routes=[(CYCLE_EXCHANGE, "key.00.00000000")], persistent=False), self.frame_size_max)
        self.stopped = self.given_up = False
        self.begun = self.replied = 0

    def begin_cycle(self):
        """Everything up to the message."""
        made, this = self.body, self.begun % self.body.count
        name, key = "verbs-%02d-%08d" % (self.number % 100, self.begun), "key.%02d.%08d" % (self.number % 100, self.begun)
        publish = bytes(perf_worker.ffi.buffer(made.octets)[made.begins[this] : made.begins[this + 1]])
        self.name = name
        self.begun += 1
        self.perf.published = self.begun
        self.send(
            octets_of("queue_declare", 0, name, False, False, True, True, False, {})
            + octets_of("queue_bind", 0, name, CYCLE_EXCHANGE, key, False, {})
            + publish.replace(b"key.00.00000000", key.encode())
            + octets_of("basic_consume", 0, name, "c%d" % self.begun, False, False, False, False, {})
        )

    def work(self, now):
        if self.perf.confirmed == self.begun and not self.stopped:
            self.begin_cycle()
        elif self.replied < self.perf.received:
            self.replied = self.perf.received
            self.send(octets_of("basic_ack", self.perf.tag, False) + octets_of("queue_delete", 0, self.name, False, False, False))
        elif len(self.pending):
            self.send()
        return False

    def process(self, kind, payload):
        code = int.from_bytes(payload[:4], "big")
        if code == DELETE_OK:
            self.perf.confirmed += 1
            self.moved_at = time.monotonic()
        elif code not in (DECLARE_OK, BIND_OK, CONSUME_OK, BASIC_CANCEL):  # the queue goes with its consumer
            Side.process(self, kind, payload)

    def wants_ms(self, now):
        return 1000

    def done(self, now):
        if not self.closing and self.stopped and self.perf.confirmed == self.begun:
            self.closing = True
            self.send(method.encode(method.named(METHODS, "connection_close"), 0, (200, "done", 0, 0)))
        return self.closed or self.given_up


class Rejecter(Consumer):
    """Rejects what comes of its queue's first name, of NAME-1; acknowledges what comes of another, their dead letters."""

    def subscribe(self, settings, queues):
        self.verdict = "basic_nack" if queues[0].endswith("-1") else "basic_ack"
        Consumer.subscribe(self, settings, queues)

    def work(self, now):
        if self.perf.tag - self.acknowledged >= (self.ack_every if self.expected is None else 1):
            self.acknowledged = self.perf.tag
            self.send(octets_of(self.verdict, self.perf.tag, True, *((False,) if self.verdict == "basic_nack" else ())))
        elif len(self.pending):
            self.send()
        return False


class Returner(Consumer):
    """Returns all that it has when that is `ack_every` messages, gets them again, and acknowledges them: two deliveries of each."""

    owed = 0  # deliveries that it has returned and not got again

    def work(self, now):
        count = self.perf.tag - self.acknowledged
        if self.owed and count >= self.owed:
            self.acknowledged += self.owed
            self.owed = 0
            self.send(octets_of("basic_ack", self.acknowledged, True))
        elif not self.owed and count >= (self.ack_every if self.expected is None else 1):
            self.owed = count
            self.acknowledged = self.perf.tag
            self.send(octets_of("basic_nack", self.perf.tag, True, True))
        elif len(self.pending):
            self.send()
        return False

    def has_acknowledged(self):
        return not self.owed and Consumer.has_acknowledged(self)


def publisher_worker(kind, small=False):
    """A Worker whose publishers are of this class; `small`: with small buffers."""

    class One(Worker):
        def side(self, connection, number):
            if small:
                perf_worker.RECEIVE_SIZE = perf_worker.FILL_SIZE = SMALL
            return kind(connection, self.settings, number)

    return One


def consumer_worker(kind):
    """A Worker whose consumers are of this class."""

    class One(Worker):
        def side(self, connection, number):
            return kind(connection, self.settings, self.settings["queues"][number])

    return One


class InTurn(publisher_worker(Publisher, True)):  # type: ignore[misc]  # a class made by a function
    """Many publishers that publish one message each, one after the other; at most `confirm` of all wait for their confirm. Without
    latencies: the bins of so many are not summed five times a second."""

    def bins(self, name):
        return {}

    def run(self):
        sides, by_descriptor, poll = self.sides, self.by_descriptor, self.poll
        self.cpu_began = time.process_time()
        self.began = report_at = time.monotonic()
        published = confirmed = at = 0
        for side in sides:
            side.begin()
            side.window = 1
        while True:
            now = time.monotonic()
            while published - confirmed < self.settings["confirm"]:
                before = sides[at].perf.published
                sides[at].work(now)
                if sides[at].perf.published == before:
                    break  # it still waits, or is not to publish any more
                published += 1
                at = (at + 1) % len(sides)
            if now >= report_at:
                report_at = now + REPORT_S
                self.report(False)
            last = sides[-1]
            ended = last.stopped or 0 < last.count <= last.perf.published
            if ended and sum(side.done(now) for side in sides) == len(sides):  # all of them close, not one by one
                self.report(True)
                return
            for descriptor, _ in poll.poll(50):
                if descriptor == COMMANDS:
                    self.listen()
                    continue
                side = by_descriptor[descriptor]
                before = side.perf.confirmed
                side.read()
                confirmed += side.perf.confirmed - before
                if side.closed:
                    poll.unregister(descriptor)


# form: the publishers' worker and the consumers'
FORMS = {
    "plain": (Worker, Worker),
    "transactions": (publisher_worker(TransactionPublisher), Worker),
    "get": (Worker, consumer_worker(Getter)),
    "packs": (Worker, consumer_worker(PackReader)),
    "rejects": (Worker, consumer_worker(Rejecter)),
    "returns": (Worker, consumer_worker(Returner)),
    "replies": (publisher_worker(Requester), consumer_worker(Answerer)),
    "cycles": (publisher_worker(Cycler), Worker),
    "turns": (InTurn, Worker),
}


def main():
    """The process: the form is the first argument, the role the settings'."""

    def kind(settings):
        return FORMS[sys.argv[1]][settings["role"] != "publisher"](settings)

    return perf_worker.main(kind)


if __name__ == "__main__":
    sys.exit(main())
