"""A client of AMQP 1.0 that keeps the account of what it is promised while a fault strikes (struck_world.py), and what it plays: links,
transactions, termini and nodes that outlive a connection, management.

What it encodes and decodes is its own: no fault of the broker's strikes there.
"""

import peer_1_0
from struck_world import Client, outside

from leveret.core.amqp_1_0 import composites, frame, types
from leveret.core.amqp_1_0.spec_1_0 import HEADER_AMQP, HEADER_SASL
from leveret.core.connection.connection import Connection

ACCEPTED = ("accepted", {})
REJECTED = ("rejected", {})
RELEASED = ("released", {})
MODIFIED = ("modified", {"delivery-failed": True})
NOT_HERE = ("modified", {"undeliverable-here": True})
NEVER = {"durable": 2, "expiry-policy": "never"}
TRANSACTION = 7  # the handle of a link to the coordinator


def performative(*given, **fields):
    return outside.quietly(lambda: peer_1_0.performative(*given, **fields))


def described(number, value):
    """The octets of a described value."""
    return outside.quietly(types.encode, ("described", ("ulong", number), value))


class Client10(Client):
    """One connection with one session; handles are the numbers of LINKS that play chooses."""

    def __init__(self, world, name):
        self.world = world
        self.connection = Connection(world.broker, name)
        self.inbox = b""
        self.number = 0  # of the next delivery
        self.pending = {}  # delivery-id -> body
        self.posted = {}  # delivery-id of a discharge -> bodies that it confirms
        self.deliveries = []  # (delivery-id, body)
        self.arriving = None
        self.frames = []
        self.declared = []  # ids of transactions
        self.left = set()  # what we have ended: (name of the performative, handle)
        plain = outside.quietly(lambda: peer_1_0.sasl("sasl-init", mechanism="PLAIN", initial_response=b"\x00guest\x00guest"))
        begin = performative("begin", next_outgoing_id=0, incoming_window=1000, outgoing_window=1000)
        self.send(HEADER_SASL + plain + HEADER_AMQP + performative("open", container_id=name) + begin)

    def parse(self):
        """Take the frames that are whole."""
        while True:
            if self.inbox[:4] == b"AMQP":
                if len(self.inbox) < 8:
                    return
                self.inbox = self.inbox[8:]
            found = outside.quietly(frame.read, self.inbox, 0, len(self.inbox), 1 << 20)
            if found is None:
                return
            _, _, at, end = found
            octets, self.inbox = self.inbox[:end], self.inbox[end:]
            if at < end:
                name, fields, at = outside.quietly(composites.read, octets, at, end)
                self.heard_10(name, fields, octets[at:])

    def heard_10(self, name, fields, payload):
        """One performative."""
        if name == "transfer":
            if fields["delivery-id"] is not None:
                self.arriving = [fields["delivery-id"], b""]
            self.arriving[1] += payload
            if not fields["more"]:
                body = outside.quietly(peer_1_0.body_of, self.arriving[1])
                self.deliveries.append((self.arriving[0], body))
        elif name == "disposition" and fields["role"]:
            last = fields["first"] if fields["last"] is None else fields["last"]
            for number in range(fields["first"], last + 1):
                self.come_to(number, fields["state"])
        else:
            self.frames.append(name)
            ended = name, fields.get("handle")
            if name in ("detach", "end", "close") and ended not in self.left and not self.connection.closed:
                self.leave(*ended)
            self.left.discard(ended)

    def come_to(self, number, state):
        """One of our deliveries has its outcome."""
        body = self.pending.pop(number, None)
        confirmed = self.posted.pop(number, None)
        if state is not None and state[0] == "accepted":
            if body is not None:
                self.world.confirmed.add(body)
            self.world.confirmed.update(confirmed or ())
        elif state is not None and state[0] == "declared":
            self.declared.append(state[1]["txn-id"])

    # What it does

    def leave(self, name, handle=None, closed=True):
        """End a link, the session or the connection, of our own or as an answer."""
        self.left.add((name, handle))
        self.send(performative(name, **({"handle": handle, "closed": closed} if name == "detach" else {})))

    def attach(self, name, handle, role, address, source=None, target=None, **given):
        """A link, without a look at its answer; `address`: of the broker's end."""
        ends = {"source": ("source", dict(source or {})), "target": ("target", dict(target or {}))}
        ends["source" if role else "target"][1]["address"] = address
        if not role:
            given["initial_delivery_count"] = 0
        self.send(performative("attach", name=name, handle=handle, role=role, **dict(ends, **given)))

    def credit(self, handle, credit):
        fields = {"next_incoming_id": 0, "incoming_window": 1000, "next_outgoing_id": self.number, "outgoing_window": 1000}
        self.send(performative("flow", handle=handle, link_credit=credit, delivery_count=0, **fields))

    def transfer(self, handle, octets, body=None, **given):
        """A message in one frame; its number, or None where the broker does not read it. `body`: what is confirmed when it is accepted."""
        number, self.number = self.number, self.number + 1
        if body is not None:
            self.pending[number] = body
        fields = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "handle": handle}
        octets = performative("transfer", 0, octets, **dict(fields, **given))
        if self.send(octets) < len(octets):
            self.pending.pop(number, None)
            return None
        return number

    def post(self, handle, body, header=None, **given):
        """A durable message."""
        octets = outside.quietly(peer_1_0.data, body, dict({"durable": True}, **(header or {})))
        return self.transfer(handle, octets, body, **given)

    def settle(self, state, count=100):
        """Have the deliveries so far come to this."""
        for number, body in self.deliveries[:count]:
            if state is ACCEPTED or state[0] == "transactional-state":
                self.world.gone.add(body)
            self.send(performative("disposition", role=True, first=number, settled=True, state=state))
        del self.deliveries[:count]


def made(world, container=None):
    """One more client of 1.0."""
    world.clients.append(Client10(world, container or "client %d" % len(world.clients)))
    return world.clients[-1]


def with_links(world):
    """Queues q and dead, a client of 0-9-1, and two of 1.0."""
    other = world.client()
    other.declare("dead")
    other.declare("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-delivery-limit": 3})
    return other, made(world), made(world)


def with_thief(world):
    """And one more of the first one's container."""
    other, sender, receiver = with_links(world)
    return other, sender, receiver, made(world, sender.connection.name)


def links(world, other, sender, receiver):
    """Messages of both families come, are settled in every way, expire and die; links and sessions end."""
    sender.attach("out", 0, False, "/queues/q")
    receiver.attach("in", 1, True, "/queues/q")
    for number in range(4):
        sender.post(0, b"ten %d" % number)
    sender.post(0, b"short", {"ttl": 100})
    sender.post(0, bytes(range(250)) * 2)
    other.publish("q", b"nine")
    receiver.credit(1, 3)
    world.time(200)
    receiver.settle(ACCEPTED, 1)
    receiver.settle(RELEASED, 1)
    receiver.settle(REJECTED)
    receiver.credit(1, 20)
    world.time(200)
    receiver.settle(MODIFIED, 1)
    receiver.settle(NOT_HERE, 1)
    world.time(100)
    receiver.attach("letters", 2, True, "/queues/dead")
    receiver.credit(2, 1)
    receiver.leave("detach", 1, True)
    other.consume("dead")
    world.time(200)
    other.acknowledge(1)
    other.refuse(True)
    receiver.leave("end")
    sender.post(0, b"last")
    sender.leave("close")


def transactions(world, other, sender, receiver):
    """One that is committed, one that is rolled back, one that its link leaves open."""
    sender.attach("out", 0, False, "/queues/q")
    fields = {"name": "work", "handle": TRANSACTION, "role": False, "source": ("source", {}), "initial_delivery_count": 0}
    for client in (sender, receiver):
        client.send(performative("attach", target=("coordinator", {}), **fields))
    sender.post(0, b"before")
    receiver.attach("in", 1, True, "/queues/q")
    receiver.credit(1, 5)
    for fail in (False, True, None):
        for client in (sender, receiver):
            client.declared = []
            client.transfer(TRANSACTION, asked("declare"))
        world.time(100)
        bodies = [b"in %s %d" % (str(fail).encode(), number) for number in range(2)]
        for given in sender.declared:
            numbers = [sender.post(0, body, state=("transactional-state", {"txn-id": given})) for body in bodies]
            for number in numbers:
                sender.pending.pop(number, None)
            if None not in numbers and fail is not None:
                number = sender.transfer(TRANSACTION, asked("discharge", txn_id=given, fail=fail))
                if number is not None and not fail:
                    sender.posted[number] = bodies
        for given in receiver.declared:
            receiver.settle(("transactional-state", {"txn-id": given, "outcome": ACCEPTED}), 1)
            if fail is not None:
                receiver.transfer(TRANSACTION, asked("discharge", txn_id=given, fail=fail))
        world.time(200)
    sender.leave("detach", TRANSACTION, True)


def asked(title, **fields):
    """A message to the coordinator."""
    return b"\x00\x53\x77" + outside.quietly(composites.write, title, {name.replace("_", "-"): fields[name] for name in fields})


def termini(world, other, sender, receiver, thief):
    """Links whose termini outlive them, one that is resumed, one that is stolen, nodes that the broker names, an anonymous terminus."""
    sender.attach("kept", 0, False, "/queues/q", target=NEVER)
    receiver.attach("kept in", 1, True, "/queues/q", source=NEVER)
    for number in range(3):
        sender.post(0, b"kept %d" % number)
    receiver.credit(1, 2)
    world.time(200)
    receiver.leave("detach", 1, False)
    world.time(100)
    receiver.deliveries = []
    receiver.attach("kept in", 1, True, "/queues/q", source=NEVER)
    receiver.credit(1, 5)
    thief.attach("kept", 0, False, "/queues/q", target=NEVER)
    receiver.send(performative("attach", name="node", handle=3, role=True, source=("source", {"dynamic": True}), target=("target", {})))
    sender.attach("any", 4, False, None)
    to = described(0x70, [True]) + described(0x73, [None, None, "/queues/q"])
    sender.transfer(4, to + outside.quietly(peer_1_0.data, b"somewhere"), b"somewhere")
    world.time(200)
    receiver.settle(ACCEPTED)
    receiver.leave("detach", 1, True)
    sender.leave("detach", 0, True)
    thief.leave("detach", 0)


def requests(world, other, sender, receiver):
    """The management over 1.0: a queue and an exchange are made, bound, told, purged and removed."""
    sender.attach("ask", 0, False, "/management")
    sender.attach("ask", 1, True, "/management")
    sender.credit(1, 50)
    other.publish("q", b"kept")
    nothing = {}
    for method, path, body in (
        ("PUT", "/queues/made", {"durable": True}),
        ("PUT", "/exchanges/way", {"durable": True, "type": "topic"}),
        ("POST", "/bindings", {"source": "way", "destination_queue": "made", "binding_key": "k", "arguments": nothing}),
        ("GET", "/bindings?src=way&dstq=made&key=k", None),
        ("GET", "/queues/made", None),
        ("DELETE", "/queues/made/messages", None),
        ("DELETE", "/exchanges/way", None),
        ("DELETE", "/queues/made", None),
    ):
        head = described(0x73, [("ulong", sender.number), None, path, method, "$me"])
        sender.transfer(0, head + described(0x77, body), settled=True)
        world.time(100)
    other.publish("q", b"beside")


def with_stream(world):
    """A stream s, and two clients of 1.0."""
    other = world.client()
    other.declare("s", {"x-queue-type": "stream"})
    return other, made(world), made(world)


def streams(world, other, sender, receiver):
    """A stream is written by both families, and read from its beginning, with a filter and without."""
    sender.attach("out", 0, False, "/queues/s")
    for number in range(3):
        sender.post(0, b"ten %d" % number)
        other.publish("s", b"nine %d" % number)
    first = {"filter": {("symbol", "o"): ("described", ("symbol", "rabbitmq:stream-offset-spec"), "first")}}
    some = {"filter": {("symbol", "s"): ("described", ("symbol", "apache.org:selector-filter:string"), "priority = 4")}}
    receiver.attach("in", 1, True, "/queues/s", source=first)
    receiver.attach("some", 2, True, "/queues/s", source={"filter": {**first["filter"], **some["filter"]}})
    receiver.attach("settled", 3, True, "/queues/s", source=first, snd_settle_mode=1)
    for handle in (1, 2, 3):
        receiver.credit(handle, 4)
    world.time(200)
    for number, _ in receiver.deliveries:
        receiver.send(performative("disposition", role=True, first=number, settled=True, state=ACCEPTED))
    receiver.leave("detach", 1)
    world.time(100)


SCENARIOS = {
    "1.0 links": (with_links, links, {}),
    "1.0 transactions": (with_links, transactions, {}),
    "1.0 termini": (with_thief, termini, {}),
    "1.0 streams": (with_stream, streams, {}),
    "1.0 management": (with_links, requests, {"management_size_max": 4096}),
}
