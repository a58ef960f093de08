"""Nothing that a peer of AMQP 1.0 sends is an error of ours, stays in the tables when the peer has gone, or breaks what holds of them."""

from peer_1_0 import HEADER_AMQP, Peer, data, declare, new_broker, performative, sasl
from same_random import Random, seeds

from leveret.core.amqp_1_0.spec_1_0 import CHOICES, COMPOSITES, HEADER_SASL
from leveret.core.memory import invariants

PERFORMATIVES = [row for row in COMPOSITES if 0x10 <= row[0] <= 0x18]
STATES = [
    ("accepted", {}),
    ("rejected", {}),
    ("released", {}),
    ("modified", {"delivery-failed": True}),
    ("modified", {"undeliverable-here": True}),
    ("received", {"section-number": 0, "section-offset": 0}),
    None,
    "text",
    ["list"],
    ("uint", 1),
    ("source", {}),
    ("transactional-state", {"txn-id": b"1"}),
]
ADDRESSES = ["/queues/q", "/queues/none", "/exchanges/amq.topic/a", "/topic/a", "q", "", None, "$management", 5, "/queue/made"]


class Chance(Random):
    """Numbers by chance."""

    def random(self):
        """A number from 0 to below 1."""
        return self.below(1 << 20) / (1 << 20)


def terminus(chance, name):
    """A source or a target."""
    given = {"address": chance.choice(ADDRESSES)}
    if chance.random() < 0.1:
        given = {"dynamic": True}
    if name == "source" and chance.random() < 0.2:
        given["default-outcome"] = chance.choice(STATES)
    if name == "source" and chance.random() < 0.1:
        given["distribution-mode"] = chance.choice(["move", "copy", "other"])
    return (chance.choice([name, name, name, "target", "coordinator"]), given) if "address" in given or chance.random() < 0.9 else None


def number(chance):
    """A number: mostly a small one."""
    return chance.choice([0, 0, 1, 1, 2, 3, 5, 40, 255, 256, 0x7FFFFFFF, 0xFFFFFFFF])


def value(chance, type_, title):
    """A value for a field."""
    if title in ("source", "target"):
        return terminus(chance, title)
    if title == "state":
        return chance.choice(STATES)
    if title == "handle":
        return chance.choice([0, 1, 2, 3, 300])
    if title in ("incoming-window", "outgoing-window", "link-credit") and chance.random() < 0.7:
        return 1000
    if type_ in CHOICES:
        return chance.choice(CHOICES[type_][1])
    if type_ == "boolean":
        return chance.random() < 0.5
    if type_ in ("uint", "ulong"):
        return number(chance)
    if type_ == "ushort":
        return chance.choice([0, 1, 65535])
    if type_ == "string":
        return chance.choice(["a", "b", "c", "x" * 300])
    if type_ == "binary":
        return b"%d" % chance.below(50)
    if type_ == "error":
        return {"condition": "amqp:internal-error"}
    return None


def frame_of(chance, made):
    """A frame with a performative: fields that make sense more often than not."""
    code, name, fields = chance.choice(PERFORMATIVES[1:-1] if chance.random() < 0.98 else PERFORMATIVES)
    if chance.random() < 0.4:
        code, name, fields = chance.choice([row for row in PERFORMATIVES if row[1] in ("transfer", "flow", "disposition", "attach")])
    given = {}
    for title, type_, mandatory, multiple, _ in fields:
        if not multiple and (mandatory or chance.random() < 0.5):
            found = value(chance, type_, title)
            if found is not None:
                given[title.replace("-", "_")] = found
    payload = b""
    if name == "transfer":
        if chance.random() < 0.8:
            for title in ("state", "aborted", "resume", "rcv_settle_mode", "message_format"):
                given.pop(title, None)
            given["delivery_id"] = made[0]
            given["delivery_tag"] = b"%d" % made[0]
            made[0] += 1
        payload = chance.choice([data(b"x"), data(b"y" * 300), b"", b"\x00\x53", data(b"z")[:-1]])
    if name == "attach" and chance.random() < 0.9:
        given["initial_delivery_count"] = 0
    try:
        return performative(name, chance.choice([0, 0, 0, 1]), payload, **given)
    except (ValueError, KeyError, TypeError, AttributeError):
        return b""


class Chaos:
    """A peer that mostly does what makes sense: it knows which links it has, and answers what ends."""

    def __init__(self, broker, chance):
        self.chance = chance
        self.peer = Peer(broker, step=chance.choice([0, 0, 0, 17]), container=chance.choice("ab"))
        self.made = [0]
        self.links = {}  # handle -> True: we receive
        self.half = set()  # senders with a message that is not whole
        self.got = 0

    def act(self):
        """The octets of the next frame."""
        chance = self.chance
        draw = chance.random()
        senders = [each for each in self.links if not self.links[each]]
        receivers = [each for each in self.links if self.links[each]]
        if draw < 0.05:
            return frame_of(chance, self.made)
        if draw < 0.15 or not self.links:
            handle, role = chance.below(4), chance.random() < 0.5
            if handle in self.links:
                return performative("detach", handle=handle, closed=chance.random() < 0.5) if self.drop(handle) else b""
            self.links[handle] = role
            address = chance.choice(["/queues/q", "/queues/q", "/queues/q", "/topic/a", None, "/queues/s", "/queues/limited"])
            given = {"address": address} if address or not role else {"dynamic": True}
            fields = {"source" if role else "target": ("source" if role else "target", given), "initial_delivery_count": 0}
            fields.update(snd_settle_mode=chance.choice([2, 2, 1, 0]), rcv_settle_mode=chance.choice([0, 0, 1]))
            return performative("attach", name=chance.choice("abcdef"), handle=handle, role=role, **fields)
        if draw < 0.6 and senders:
            return self.transfer(chance.choice(senders))
        if draw < 0.75 and receivers:
            session = {"next_incoming_id": self.got, "incoming_window": chance.choice([100, 100, 1]), "next_outgoing_id": 0}
            given = {"link_credit": chance.choice([0, 1, 5, 50]), "delivery_count": chance.choice([None, self.got]), "outgoing_window": 9}
            flags = {"drain": chance.random() < 0.3, "echo": chance.random() < 0.3}
            return performative("flow", handle=chance.choice(receivers), **session, **given, **flags)
        if draw < 0.95:
            first = chance.below(max(self.got, self.made[0]) + 3)
            last = chance.choice([None, first, first + 1, first + 9, 0xFFFF])
            state = chance.choice(STATES[:6] + [None, ("accepted", {})])
            role = chance.random() < 0.8
            return performative("disposition", role=role, first=first, last=last, settled=chance.random() < 0.7, state=state)
        self.links, self.half = {}, set()
        self.made[0] = self.got = 0
        return performative("end") + performative("begin", next_outgoing_id=0, incoming_window=50, outgoing_window=50)

    def drop(self, handle):
        """A link is no more."""
        self.half.discard(handle)
        return self.links.pop(handle, None) is not None

    def transfer(self, handle):
        """A transfer: a whole message, or a part of one."""
        chance = self.chance
        given = {}
        if handle not in self.half:
            given = {"delivery_id": self.made[0], "delivery_tag": b"%d" % self.made[0], "settled": chance.random() < 0.3}
            self.made[0] += 1
        payload = chance.choice([data(b"x"), data(b"y" * 400), data(b"z" * 90, {"durable": True, "ttl": 5}), data(b"w" * 50)[:30]])
        more = chance.random() < 0.3
        (self.half.add if more else self.half.discard)(handle)
        if handle in self.half or not given:
            payload = chance.choice([b"", payload, b"v" * 200])
        return performative("transfer", 0, payload, handle=handle, more=more, aborted=chance.random() < 0.05, **given)

    def hear(self):
        """What the broker says: ends are answered."""
        for name, fields, _, _ in self.peer.frames():
            SEEN[name] = SEEN.get(name, 0) + 1
            if name == "transfer":
                self.got += 1
            elif name == "detach" and self.drop(fields["handle"]):
                self.peer.give(performative("detach", handle=fields["handle"], closed=True))
            elif name == "end" and fields["error"]:
                self.links, self.half = {}, set()
                self.made[0] = self.got = 0
                self.peer.give(performative("end"))
                self.peer.give(performative("begin", next_outgoing_id=0, incoming_window=50, outgoing_window=50))


SEEN: dict = {}  # frames of the broker's, by name


def run(seed, mutate):
    """Two peers with so many frames each, in turns; then both are gone."""
    chance = Chance(seed)
    broker = new_broker(content_timeout_ms=1000, connection_count_max=8, argument_size_max=1024)
    declare(broker)
    declare(broker, "s", {"x-queue-type": "stream"})
    declare(broker, "limited", {"x-max-length": 3, "x-overflow": "reject-publish", "x-dead-letter-exchange": "", "x-delivery-limit": 2})
    before = [broker.tables.state[at] for at in (2, 5, 8)]
    told = []
    broker.guard.trouble = lambda *words: told.append(words)
    for _ in range(2):
        pair = [Chaos(broker, chance), Chaos(broker, chance)]
        for _ in range(chance.below(120)):
            each = chance.choice(pair)
            octets = each.act()
            if mutate and octets and chance.random() < 0.1:
                at = chance.below(len(octets))
                octets = octets[:at] + bytes((chance.below(256),)) + octets[at + 1 :]
            each.peer.give(octets)
            if chance.random() < 0.8:
                each.hear()
            if chance.random() < 0.1:
                broker.tick(broker.now + chance.choice([1, 60, 400]), 0)
                for other in pair:
                    if not other.peer.connection.closed:
                        other.peer.connection.tick(broker.now)
            if chance.random() < 0.2:
                invariants.check(broker.tables)
            if each.peer.connection.closed or each.peer.connection.ending:
                break
        assert not told and broker.counters["internal_errors"] == 0, (seed, told)
        for each in pair:
            if not each.peer.connection.closed:
                each.peer.connection.received(0)
        for _ in range(20):
            broker.run()
        assert not broker.consumers.leaving and not broker.connections, seed
        invariants.check(broker.tables)
    for found in list(broker.queues.values()):
        assert not found.unsettled_count() and not found.consumers, (seed, found.name)
        broker.topology.drop_queue(found)
    broker.dead_letters.turn(broker)
    assert [broker.tables.state[at] for at in (2, 5, 8)] == before, seed
    assert not broker.connections and not broker.held and not broker.behind


def test_frames_by_chance():
    for seed in seeds(0, 30):
        run(seed, False)
    assert min([SEEN.get(name, 0) for name in ("transfer", "disposition", "flow", "attach", "detach", "end")]) > 9, SEEN


def test_frames_by_chance_with_octets_that_are_others():
    for seed in seeds(0, 30):
        run(seed, True)


def test_any_octets_behind_any_layer():
    chance = Chance(7)
    for _ in range(300):
        broker = new_broker()
        peer = Peer(broker, opens=False)
        octets = b""
        for each in (HEADER_SASL, sasl("sasl-init", mechanism="PLAIN", initial_response=b"\x00guest\x00guest"), HEADER_AMQP):
            octets += each
            if chance.random() < 0.3:
                break
        octets += bytes([chance.below(256) for _ in range(chance.below(40))])
        peer.give(octets)
        broker.tick(20000, 0)
        if not peer.connection.closed:
            peer.connection.tick(20000)
            peer.connection.received(0)
        assert broker.counters["internal_errors"] == 0 and peer.connection.closed
