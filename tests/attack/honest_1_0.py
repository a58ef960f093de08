"""The honest clients that speak AMQP 1.0: a publisher whose messages are accepted, and a consumer that accepts, with honest.py's ledger.

They speak through wire_1_0, which shares nothing with the broker.
"""

import random
import struct
import time

import honest
import wire_1_0 as wire

QUEUE = honest.LINKS
CREDIT = 100


class Wire10(honest.Client):
    """A connection with one session."""

    client = None

    def open(self):
        """Log in, open, begin."""
        self.client = wire.Wire("127.0.0.1", self.state.port, timeout_s=honest.PATIENCE_S)
        self.client.open(honest.USER, honest.PASSWORD, container=self.name)
        self.client.begin()
        self.beat_at = time.monotonic()

    def leave(self):
        """Close the socket."""
        if self.client is not None:
            self.client.socket.close()

    def frame(self, wait_s):
        """(code, fields, payload) of the next frame, or None; an end of anything raises. An empty frame goes out now and then."""
        if time.monotonic() - self.beat_at > 5:
            self.beat_at = time.monotonic()
            self.client.send(struct.pack(">IBBH", 8, 2, 0, 0))
        try:
            got = self.client.next(wait_s)
        except TimeoutError:
            return None
        if got is not None and got[0] in (wire.DETACH, wire.END, wire.CLOSE):
            raise RuntimeError(f"performative {got[0]:x} {got[1]}")
        return None if got is None else got[:3]


class Publisher10(Wire10):
    """Sends durable messages with numbers, at most honest.WINDOW of them without an outcome."""

    def __init__(self, name, honest_, ledger, rate):
        super().__init__(name, honest_, ledger)
        self.rate = rate
        self.number = 0
        self.chance = random.Random(name)

    def begin(self):
        """A sender."""
        self.client.attach("honest", 0, False, f"/queues/{QUEUE}")
        self.credit = self.client.expect(wire.FLOW)[1][6]
        self.delivery = 0
        self.unanswered = {}
        self.next_at = self.heard_at = time.monotonic()

    def may_send(self):
        """True when the broker takes a message, and few wait."""
        return self.credit > 0 and len(self.unanswered) < honest.WINDOW and self.state.stop.value == 0

    def work(self):
        """One message when it is time, and what has come."""
        now = time.monotonic()
        if now >= self.next_at and self.may_send():
            self.next_at = max(self.next_at + 1 / self.rate, now - 1)
            self.number += 1
            self.unanswered[self.delivery] = self.number
            self.ledger.publish(self.number)
            body = b"%d %d " % (self.epoch, self.number) + b"." * self.chance.choice((10, 100, 400, 3000))
            durable = wire.value(wire.Described(0x70, [True]))
            self.client.send(wire.frame(0, wire.transfer(0, self.delivery, durable + wire.data(body))))
            self.delivery += 1
            self.credit -= 1
        self.waits = bool(self.unanswered)
        if not self.waits:
            self.heard_at = now
        got = self.frame(max(0.001, min(0.2, self.next_at - time.monotonic())) if self.may_send() else 0.2)
        if got is not None:
            self.heard_at = time.monotonic()
            self.take(*got[:2])
        elif time.monotonic() - self.heard_at > honest.PATIENCE_S:
            raise RuntimeError(f"no outcome for {honest.PATIENCE_S} s")

    def take(self, code, fields):
        """Credit, or outcomes."""
        if code == wire.FLOW and len(fields) > 6 and fields[4] is not None:
            self.credit = fields[5] + fields[6] - self.delivery
        elif code == wire.DISPOSITION:
            first, last = fields[1], fields[1] if fields[2] is None else fields[2]
            for delivery in range(first, last + 1):
                number = self.unanswered.pop(delivery)
                if fields[4][0] == wire.ACCEPTED:
                    self.ledger.confirm(number)
                else:
                    self.ledger.refuse(number)


class Consumer10(Wire10):
    """Accepts what comes."""

    is_reader = True

    def begin(self):
        """A receiver."""
        self.client.attach("honest", 0, True, f"/queues/{QUEUE}")
        self.count = 0
        self.client.credit(0, CREDIT)
        self.parts = b""

    def work(self):
        """One delivery, of one transfer or several."""
        got = self.frame(0.2)
        if got is None or got[0] != wire.TRANSFER:
            return
        fields = got[1]
        if fields[1] is not None:
            self.delivery, self.parts = fields[1], b""
        self.parts += got[2]
        if len(fields) > 5 and fields[5]:
            return
        self.count += 1
        redelivered, body = message(self.parts)
        epoch, number = (int(each) for each in body.split(b" ", 2)[:2])
        if epoch == self.epoch:
            self.ledger.receive(number, redelivered)
        self.client.send(wire.frame(0, wire.disposition(self.delivery)))
        self.ledger.settle(number)
        if self.count % (CREDIT // 2) == 0:
            fields = [wire.uint(each) for each in (self.count, 1 << 20, 0, 1 << 20, 0, self.count, CREDIT)]
            self.client.send(wire.frame(0, wire.performative(wire.FLOW, *fields)))


def message(octets):
    """(True when it was delivered before, the octets of its data section)."""
    at, count, body = 0, 0, b""
    while at < len(octets):
        (code, value), at = wire.read(octets, at)
        if code == 0x70:
            count = value[4] if len(value) > 4 else 0
        elif code == 0x75:
            body += value
    return bool(count), body


def clients(all_):
    """The pair, for honest.Honest."""
    ledger = all_.ledgers[QUEUE]
    return [Publisher10("publisher of " + QUEUE, all_, ledger, 40), Consumer10("consumer of " + QUEUE, all_, ledger)]
