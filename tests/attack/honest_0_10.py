"""The honest clients that speak AMQP 0-10: a publisher whose transfers are accepted, and a consumer that accepts and completes, with
honest.py's ledger.

They speak through wire_0_10, which shares nothing with the broker.
"""

import random
import time

import honest
import wire_0_10 as wire

QUEUE = honest.SESSIONS
CREDIT = 100
ENDS = ("connection.close", "session.detach", "session.detached", "execution.exception")


class Wire010(honest.Client):
    """A connection with one session."""

    client = None

    def open(self):
        """Log in, open, attach."""
        self.client = wire.Wire("127.0.0.1", self.state.port, timeout_s=honest.PATIENCE_S)
        self.client.open(honest.USER, honest.PASSWORD)
        self.client.attach(b"%d %s" % (time.monotonic_ns(), self.name.encode()))

    def leave(self):
        """Close the socket."""
        if self.client is not None:
            self.client.socket.close()

    def operation(self, wait_s):
        """The next control or command, or None; an end of anything raises."""
        try:
            got = self.client.next(wait_s)
        except TimeoutError:
            return None
        if got[0] in ENDS:
            raise RuntimeError(f"{got[0]} {got[1]}")
        if got[0] == "session.completed" and got[1]["timely_reply"]:
            self.client.send(wire.control(0, "session.known-completed", commands=got[1]["commands"]))
        return got


class Publisher010(Wire010):
    """Sends durable messages with numbers, at most honest.WINDOW of them that are not accepted."""

    def __init__(self, name, honest_, ledger, rate):
        super().__init__(name, honest_, ledger)
        self.rate = rate
        self.number = 0
        self.chance = random.Random(name)

    def begin(self):
        """Nothing is open."""
        self.unanswered = {}
        self.next_at = self.heard_at = time.monotonic()

    def may_send(self):
        """True when few wait."""
        return len(self.unanswered) < honest.WINDOW and self.state.stop.value == 0

    def work(self):
        """One message when it is time, and what has come."""
        now = time.monotonic()
        if now >= self.next_at and self.may_send():
            self.next_at = max(self.next_at + 1 / self.rate, now - 1)
            self.number += 1
            self.ledger.publish(self.number)
            body = b"%d %d " % (self.epoch, self.number) + b"." * self.chance.choice((10, 100, 400, 3000))
            self.unanswered[self.client.publish(QUEUE, body, delivery={"delivery_mode": 2}, size=2000)] = self.number
        self.waits = bool(self.unanswered)
        if not self.waits:
            self.heard_at = now
        got = self.operation(max(0.001, min(0.2, self.next_at - time.monotonic())) if self.may_send() else 0.2)
        if got is not None:
            self.heard_at = time.monotonic()
            self.take(*got[:2])
        elif time.monotonic() - self.heard_at > honest.PATIENCE_S:
            raise RuntimeError(f"nothing is accepted for {honest.PATIENCE_S} s")

    def take(self, name, fields):
        """Transfers are accepted, or rejected: the command that says so is completed."""
        if name == "session.command-point":
            self.client.theirs = fields["command_id"]
        elif name in ("message.accept", "message.reject"):
            self.client.send(wire.control(0, "session.completed", commands=[(0, self.client.theirs)]))
            self.client.theirs += 1
            told = self.ledger.confirm if name == "message.accept" else self.ledger.refuse
            for first, last in fields["transfers"]:
                for id_ in range(first, last + 1):
                    told(self.unanswered.pop(id_))


class Consumer010(Wire010):
    """Accepts what comes."""

    is_reader = True

    def begin(self):
        """A subscription in window mode."""
        self.client.subscribe(QUEUE, messages=CREDIT, window=True)

    def work(self):
        """One delivery: accepted, and completed, which gives its credit back."""
        got = self.operation(0.2)
        if got is None:
            return
        name, fields, head, body, _ = got
        if name == "session.command-point":
            self.client.theirs = fields["command_id"]
        if name != "message.transfer":
            return
        id_ = self.client.theirs
        self.client.theirs += 1
        epoch, number = (int(each) for each in body.split(b" ", 2)[:2])
        if epoch == self.epoch:
            self.ledger.receive(number, redelivered(head))
        self.client.do("message.accept", transfers=[(id_, id_)])
        self.ledger.settle(number)
        self.client.send(wire.control(0, "session.completed", commands=[(0, id_)]))


def redelivered(head):
    """The bit of delivery-properties, the first struct of a header segment here."""
    assert head[4:6] == b"\x04\x01", head[:20]
    return bool(head[6] & 4)


def clients(all_):
    """The pair, for honest.Honest."""
    ledger = all_.ledgers[QUEUE]
    return [Publisher010("publisher of " + QUEUE, all_, ledger, 40), Consumer010("consumer of " + QUEUE, all_, ledger)]
