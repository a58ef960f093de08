"""A fuzz case of AMQP 1.0: one broker with a board's limits, one peer with a session and its links that does what the case says, one
healthy peer of 0-9-1 beside it. Steps, which can be kept as JSON:
    ["give", HEX, SIZE]         these octets, at most SIZE in one `received` (0: as many as fit)
    ["send", N, HEX, FIELDS]    a message on the N-th sender, in transfers of at most FIELDS["cut"] octets, with the next delivery-id
    ["credit", N, CREDIT, DRAIN, ECHO]   for the N-th receiver
    ["settle", N, STATE, COUNT, SETTLED] COUNT more than one of the deliveries that came, from the N-th that is open on
    ["work", N]                 a declare, or a discharge of the N-th transaction
    ["tick", MS]                that much time passes
Behind each step all is read, and a peer that was told off begins again: the link is attached anew, the session begun.
`run` holds a case to the laws of cases.py, in one form of the engine; `same` compares what two forms have come to.
"""

import cases
import invariants
from cases import Healthy, Link, free_places, new_broker
from grammar_1_0 import framed

from leveret.core.amqp_1_0 import composites, conditions, frame, types
from leveret.core.amqp_1_0.spec_1_0 import HEADER_AMQP, HEADER_SASL
from leveret.core.broker import engine
from leveret.core.errors import ProtocolError
from leveret.core.memory import serial

STATES = (
    ("accepted", {}),
    ("released", {}),
    ("rejected", {}),
    ("modified", {"delivery-failed": True}),
    ("modified", {"undeliverable-here": True}),
    None,
)
KEPT = {"durable": 2, "expiry-policy": "never"}
QUEUES = (("a", {}), ("b", {"x-max-length": 3, "x-overflow": "reject-publish", "x-dead-letter-exchange": "", "x-delivery-limit": 1}))
# handle -> (role, fields): three senders and a coordinator, then receivers
ATTACHES = (
    (False, {"target": ("target", {"address": "/queues/a"})}),
    (False, {"target": ("target", {"address": None}), "snd-settle-mode": 2}),
    (False, {"target": ("target", dict(KEPT, address="/queues/b")), "rcv-settle-mode": 1}),
    (False, {"target": ("coordinator", {})}),
    (True, {"source": ("source", {"address": "/queues/a"})}),
    (True, {"source": ("source", dict(KEPT, address="/queues/b")), "rcv-settle-mode": 1}),
    (True, {"source": ("source", {"address": "/queues/a", "distribution-mode": "copy"})}),
)
CONDITIONS = {conditions.symbol_of(each) for each in conditions.SYMBOLS} | {
    value for name, value in vars(conditions).items() if isinstance(value, str) and value.startswith("amqp:")
}
CONDITIONS |= {"amqp:session:unattached-handle", "amqp:resource-deleted"}


class Live:
    """A connection with a session, and what is known of it."""

    def __init__(self, broker):
        self.link = Link(broker)
        self.read = 0
        self.said = []  # (what, ...) that other forms have to say too
        self.states = {}
        self.over = False
        log_in = framed(0, composites.write("sasl-init", {"mechanism": "PLAIN", "initial-response": b"\0guest\0guest"}), 1)
        self.give(HEADER_SASL + log_in + HEADER_AMQP + self.performative("open", {"container-id": "fuzz"}))
        self.begin()

    def performative(self, name, fields, payload=b""):
        """A frame of the session."""
        return framed(0, composites.write(name, fields) + payload)

    def give(self, octets, size=0):
        """Octets, and what they are answered."""
        self.link.give(octets, size)
        self.hear()

    def begin(self):
        """A session with all its links."""
        self.number = 0
        self.credit = {}
        self.count = {}
        self.theirs = {}
        self.open = []
        self.sent = set()
        self.works = []
        self.half = set()
        self.session = len(self.said)
        self.give(self.performative("begin", {"next-outgoing-id": 0, "incoming-window": 5000, "outgoing-window": 5000}))
        for handle in range(len(ATTACHES)):
            self.attach(handle)

    def attach(self, handle):
        """One of the links."""
        role, fields = ATTACHES[handle]
        given = {"name": "n%d" % handle, "handle": handle, "role": role}
        given.update(fields)
        given["source" if not role else "target"] = ("source" if not role else "target", {})
        if not role:
            given["initial-delivery-count"] = 0
        self.credit[handle] = self.count[handle] = 0
        self.half.discard(handle)
        self.give(self.performative("attach", given))

    # What it hears

    def hear(self):
        """Take what has been said: law 2."""
        link = self.link
        link.take()
        again, ended = [], False
        while True:
            if link.said[self.read : self.read + 4] == b"AMQP":
                self.read += 8
            found = frame.read(link.said, self.read, len(link.said), link.broker.limits.frame_size_max)
            if found is None:
                break
            _, channel, at, end = found
            self.read = end
            if at == end:
                continue
            name, fields, at = composites.read(link.said, at, end)
            assert at == end or name == "transfer", name
            if fields.get("error") is not None:
                assert fields["error"]["condition"] in CONDITIONS and fields["error"]["description"], fields
            if channel == 0:
                self.heard(name, fields, bytes(link.said[at:end]), again)
                ended = ended or name == "end"
        del link.said[: self.read]
        self.read = 0
        if ended and not self.over and not link.connection.closed:
            self.give(self.performative("end", {}))
            self.begin()
            return
        for handle in again:
            if not self.over and not link.connection.closed:
                self.give(self.performative("detach", {"handle": handle, "closed": True}))
                if handle < len(ATTACHES):
                    self.attach(handle)

    def heard(self, name, fields, payload, again):
        """One frame on the session's channel."""
        if name == "flow" and fields["handle"] in self.credit:
            handle = fields["handle"]
            if handle >= len(ATTACHES) or ATTACHES[handle][0]:
                self.count[handle] = fields["delivery-count"]
            else:
                self.credit[handle] = serial.distance(self.count[handle], serial.after(fields["delivery-count"], fields["link-credit"]))
        elif name == "transfer":
            handle, number = fields["handle"], fields["delivery-id"]
            if number is not None:
                self.count[handle] = serial.after(self.count.get(handle, 0), 1)
                self.open.append(number)
                self.sent.add(number)
                self.said.append(("transfer", handle, number, fields["delivery-tag"], fields["resume"], payload))
            else:
                self.said.append(("more", handle, payload))
        elif name == "disposition":
            last = fields["first"] if fields["last"] is None else fields["last"]
            assert 0 <= serial.distance(fields["first"], last) < 5000, fields
            for number in range(fields["first"], last + 1):
                key = self.session, fields["role"], number
                if fields["role"]:
                    assert (key, fields["settled"]) not in self.states, "%s is told twice" % (key,)
                else:
                    assert number in self.sent, "delivery %d is settled before it was sent" % number
                self.states[key, fields["settled"]] = fields["state"]
                if fields["state"] is not None and fields["state"][0] == "declared":
                    self.works.append(fields["state"][1]["txn-id"])
        elif name == "detach":
            self.said.append((name, fields["handle"], fields["error"] and fields["error"]["condition"]))
            again.append(fields["handle"])
        elif name in ("end", "close"):
            self.said.append((name, fields["error"] and (fields["error"]["condition"], fields["error"]["description"])))
            self.over = self.over or name == "close"

    # What it does

    def do(self, step):
        """One step."""
        getattr(self, "do_" + step[0])(*step[1:])

    def do_give(self, octets, size):
        """Any octets."""
        self.give(bytes.fromhex(octets), size)

    def do_send(self, handle, octets, fields):
        """A message, where there is credit for it."""
        octets, given = bytes.fromhex(octets), dict(fields)
        cut, work = given.pop("cut"), given.pop("work", None)
        if handle not in self.half:
            if self.credit.get(handle, 0) <= 0:
                return
            if work is not None and self.works:
                given["state"] = ("transactional-state", {"txn-id": self.works[work % len(self.works)]})
            given.update({"delivery-id": self.number, "delivery-tag": b"%d" % self.number, "message-format": 0})
            self.number += 1
            self.credit[handle] -= 1
            self.count[handle] = serial.after(self.count[handle], 1)
        more = given.pop("more", False)
        (self.half.add if more and not given.get("aborted") else self.half.discard)(handle)
        sent = b""
        while True:
            part, octets = octets[:cut], octets[cut:]
            sent += self.performative("transfer", dict(given, handle=handle, more=bool(octets) or more), part)
            given = {}
            if not octets:
                break
        self.give(sent)

    def do_credit(self, handle, credit, drain, echo):
        """A flow of a receiver's."""
        fields = {"next-incoming-id": None, "incoming-window": 5000, "next-outgoing-id": 0, "outgoing-window": 5000}
        fields.update({"handle": handle, "link-credit": credit, "delivery-count": self.count.get(handle, 0), "drain": drain, "echo": echo})
        if self.works and credit % 7 == 6:
            fields["properties"] = {("symbol", "txn-id"): self.works[0]}
        self.give(self.performative("flow", fields))

    def do_settle(self, place, state, count, settled):
        """Outcomes."""
        if not self.open:
            return
        number = self.open.pop(place % len(self.open))
        outcome = STATES[state]
        if self.works and place % 4 == 3 and outcome is not None:
            outcome = ("transactional-state", {"txn-id": self.works[place % len(self.works)], "outcome": outcome})
        given = {"role": True, "first": number, "last": number + count, "settled": settled, "state": outcome}
        self.give(self.performative("disposition", given))

    def do_work(self, place):
        """A request to the coordinator."""
        request = composites.write("declare", {})
        if self.works and place % 2:
            id_ = self.works.pop(place % len(self.works))
            request = composites.write("discharge", {"txn-id": id_, "fail": place % 3 == 0})
        self.do_send(3, (b"\x00\x53\x77" + request).hex(), {"cut": 300})


def run(steps, form=engine.Plain):
    """Run a case in one form: what it came to. AssertionError, or whatever was raised, when a law is broken."""
    before, engine.chosen = engine.chosen, form
    try:
        broker = new_broker(argument_size_max=1024, channel_max=16, send_buffer_size=2048)
        healthy = Healthy(broker)
        start = free_places(broker)
        for name, arguments in QUEUES:
            broker.topology.declare_queue(healthy.link.connection, name, False, True, False, False, arguments)
        live = Live(broker)
        checks = invariants.Steps(4)
        now = 1000
        for step in steps:
            if live.link.connection.closed or live.over:
                break
            if step[0] == "tick":
                now += step[1]
                broker.tick(now, cases.SECONDS + now // 1000)
                live.link.connection.tick(now)
                broker.run()
                live.hear()
            else:
                live.do(step)
            live.link.check_sizes()
            checks.step(broker)
        healthy.is_answered()
        queues = [(name, found.message_count(), found.octets()) for name, found in sorted(broker.queues.items())]
        if not live.link.connection.closed:
            live.link.end()
        for _ in range(8):
            broker.run()
        checks.end(broker)
        assert broker.counters["internal_errors"] == 0, "an error of our own"
        healthy.tidy()
        healthy.is_served()
        for _ in range(3):
            broker.run()
        end = free_places(broker)
        assert end == start, "left behind: %r" % {name: (start[name], end[name]) for name in start if start[name] != end[name]}
        return live.said, live.states, queues
    finally:
        engine.chosen = before


def same(steps, forms):
    """Run a case in each form; raises AssertionError where they come to something else. What it came to."""
    found = [run(steps, form) for form in forms]
    for other in found[1:]:
        for mine, its in zip(found[0], other):
            assert mine == its, difference(mine, its)
    return found[0]


def difference(mine, its):
    """What two forms differ in, in words."""
    if isinstance(mine, dict):
        keys = [key for key in list(mine) + list(its) if mine.get(key) != its.get(key)]
        return "forms differ: %s" % [(key, mine.get(key), its.get(key)) for key in keys[:4]]
    for place in range(max(len(mine), len(its))):
        if mine[place : place + 1] != its[place : place + 1]:
            return "forms differ at %d: %s and %s" % (place, mine[place : place + 2], its[place : place + 2])
    return ""


def readable(octets):
    """What becomes of octets as a value: (value, None), or (None, the error's text)."""
    try:
        return types.decode(octets, 0, len(octets)), None
    except ProtocolError as error:
        return None, error.text
