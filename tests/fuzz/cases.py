"""A fuzz case and how it is run: one broker with a board's limits, one peer that sends what the case says, one healthy peer beside it.

A case is a list of steps, so that it can be kept as JSON and run again:
    ["give", HEX, SIZE]  these octets, at most SIZE in one `received` (0: as many as fit)
    ["take", N]          read up to N octets of what the broker has to say
    ["tick", MS]         that much time passes
    ["polite"]           all is read, and a channel that was closed is opened again
    ["settle", NAME, N]  the N-th delivery that came and was not settled (modulo their count) is settled by method NAME
After the steps the peer is gone (`received(0)`). `run` holds every case to the laws:
  1. nothing raises, and the broker counts no internal error;
  2. what the broker says is well-formed: the protocol header, or whole frames that an independent codec reads to the last octet,
     and content is a header and exactly its body; every close has a code of the specification and a text;
  3. buffers stay inside their sizes;
  4. the healthy peer is answered while the other is there, and publishes and gets when it is gone;
  5. with the peer gone and what it declared deleted, every table has as many free places as at the start;
  6. the numbers in the tables agree with each other (simulate/invariants.py): after every CHECKED steps,
     when the peer is gone, and at the end.
"""

import hashlib
import json
import os
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CRASHES = os.path.join(HERE, "crashes")
for _folder in ("simulate", "interop"):
    sys.path.insert(0, os.path.join(HERE, os.pardir, _folder))

import amqp_wire  # noqa: E402 - its path has to be set first
import invariants  # noqa: E402 - the same

from leveret.core.broker.broker import Broker  # noqa: E402 - the path above has to be set first
from leveret.core.connection.connection import Connection  # noqa: E402 - the path above has to be set first
from leveret.core.limits import BOARD, Limits  # noqa: E402 - the path above has to be set first

CLOSE_CODES = {200, 311, 313, 320, 402, 403, 404, 405, 406, 501, 502, 503, 504, 505, 506, 530, 540}
SHRINK_S = 10
CHECKED = 8
SECONDS = 1_700_000_000


class Link:
    """One connection driven by hand through the endpoint contract. `said`: octets that came out."""

    def __init__(self, broker):
        self.broker = broker
        self.connection = Connection(broker, "fuzz", True)
        assert not self.connection.closed, "the broker has no place for a connection"
        self.said = bytearray()
        self.checked = 0
        self.open_content = {}
        self.heard = []
        self.unsettled = []

    def give(self, octets, step=0, reading=True):
        """Octets in; stops where the broker does not read (after it was read from, if `reading`)."""
        at = 0
        while at < len(octets) and not self.connection.closed:
            view = self.connection.writable()
            size = min(len(view), len(octets) - at, step or len(octets))
            if size == 0:
                self.broker.run()
                if not reading or not self.take():
                    break
                continue
            target = view[0:size]
            target[:] = octets[at : at + size]
            self.connection.received(size)
            at += size
            self.check_sizes()
        self.broker.run()

    def take(self, most=1 << 30):
        """Octets out; how many came."""
        taken = 0
        while taken < most:
            view = self.connection.pending()
            size = min(len(view), most - taken)
            if size == 0:
                break
            self.said += bytes(view[:size])
            taken += size
            self.connection.sent(size)
            self.broker.run()
        return taken

    def end(self):
        """The peer is gone."""
        self.connection.received(0)
        assert self.connection.closed, "received(0) did not close"
        self.broker.run()

    def check_sizes(self):
        limits = self.broker.limits
        assert len(self.connection.writable()) <= limits.receive_buffer_size
        assert len(self.connection.pending()) <= limits.send_buffer_size

    def frames(self):
        """The whole frames said since the last call."""
        found = []
        if self.checked == 0 and self.said[:4] == b"AMQP":
            assert bytes(self.said) == amqp_wire.PROTOCOL_HEADER, bytes(self.said)
            self.checked = 8
        while len(self.said) - self.checked >= 7:
            kind, channel, size = struct.unpack_from(">BHI", self.said, self.checked)
            assert kind in (1, 2, 3, 8), "frame type %d" % kind
            assert size + 8 <= self.broker.limits.frame_size_max, "a frame of %d octets" % (size + 8)
            if len(self.said) - self.checked < size + 8:
                break
            octets = bytes(self.said[self.checked : self.checked + size + 8])
            assert octets[-1] == amqp_wire.FRAME_END, "frame end %d" % octets[-1]
            found.append(amqp_wire.Frame(kind, channel, octets[7:-1]))
            self.checked += size + 8
        return found

    def check_frames(self):
        """Law 2 for all that was said; returns the frames."""
        found = self.frames()
        for one in found:
            self.check_content(one)
            if one.name in ("connection.close", "channel.close"):
                assert one["reply_code"] in CLOSE_CODES, one
                assert one["reply_text"], "no text says what was wrong: %r" % one
        return found

    def be_polite(self):
        """Read everything, note deliveries, and open closed channels again."""
        self.take()
        for one in self.check_frames():
            self.heard.append(one)
            if one.name in ("basic.deliver", "basic.get-ok"):
                self.unsettled.append((one.channel, one["delivery_tag"]))
            if one.name == "channel.close":
                self.unsettled = [pair for pair in self.unsettled if pair[0] != one.channel]
                self.give(amqp_wire.method(one.channel, "channel.close-ok") + amqp_wire.method(one.channel, "channel.open"))

    def settle(self, name, number):
        """Settle one of the deliveries that be_polite noted."""
        if self.unsettled:
            channel, tag = self.unsettled.pop(number % len(self.unsettled))
            values = {} if name == "basic.ack" else {"requeue": number % 3 > 0}
            if name != "basic.reject":
                values["multiple"] = number % 5 == 0
            self.give(amqp_wire.method(channel, name, delivery_tag=tag, **values))

    def check_content(self, one):
        left = self.open_content.get(one.channel)
        if one.kind == amqp_wire.METHOD:
            assert left is None, "%r in the middle of a content" % one
            if one.name in ("basic.deliver", "basic.get-ok", "basic.return"):
                self.open_content[one.channel] = -1
        elif one.kind == amqp_wire.HEADER:
            assert left == -1, "a header without its method: %r" % one
            class_id, weight, size = struct.unpack_from(">HHQ", one.payload)
            assert (class_id, weight) == (60, 0), one
            amqp_wire.decode_properties(one.payload[12:])
            self.open_content[one.channel] = size
        elif one.kind == amqp_wire.BODY:
            assert left is not None and 0 < len(one.payload) <= left, "a body frame of %d octets, %r are left" % (len(one.payload), left)
            self.open_content[one.channel] = left - len(one.payload)
        if self.open_content.get(one.channel) == 0:
            del self.open_content[one.channel]


LOG_IN = amqp_wire.PROTOCOL_HEADER + amqp_wire.method(
    0,
    "connection.start-ok",
    client_properties={"capabilities": amqp_wire.CAPABILITIES},
    mechanism="PLAIN",
    response="\0guest\0guest",
    locale="en_US",
)
OPEN = LOG_IN + amqp_wire.method(0, "connection.tune-ok") + amqp_wire.method(0, "connection.open", virtual_host="/")


class Healthy:
    """A well-behaved peer on the same broker."""

    def __init__(self, broker):
        self.link = Link(broker)
        self.ask(OPEN + amqp_wire.method(1, "channel.open"), "channel.open-ok")

    def ask(self, octets, answer):
        """The frames that come for these octets, the last of which must be `answer` (by name)."""
        self.link.give(octets)
        self.link.take()
        found = self.link.check_frames()
        assert found and found[-1].name == answer, "wanted %s, got %r" % (answer, found)
        return found

    def is_answered(self):
        self.ask(amqp_wire.method(1, "basic.qos"), "basic.qos-ok")

    def is_served(self):
        """A publish comes back by get."""
        octets = amqp_wire.method(1, "queue.declare", queue="healthy", exclusive=True) + amqp_wire.publish(1, "", "healthy", b"served" * 50)
        octets += amqp_wire.method(1, "basic.get", queue="healthy", no_ack=True)
        answer = self.ask(octets, "body")
        assert b"".join(one.payload for one in answer if one.name == "body") == b"served" * 50
        self.ask(amqp_wire.method(1, "queue.delete", queue="healthy"), "queue.delete-ok")

    def tidy(self):
        """Delete what is left of the other peer's making."""
        broker = self.link.broker
        for name in list(broker.queues):
            self.ask(amqp_wire.method(1, "queue.delete", queue=name), "queue.delete-ok")
        for name in list(broker.exchanges):
            if name and not name.startswith("amq."):
                self.ask(amqp_wire.method(1, "exchange.delete", exchange=name), "exchange.delete-ok")
        # What is left binds predeclared exchanges to each other, with arguments that only the broker still knows.
        broker.topology.remove_bindings([binding for exchange in broker.exchanges.values() for binding in exchange.bindings.values()])


def new_broker(**overrides):
    """A broker of a board's size."""
    values = dict(BOARD)
    values.update(overrides)
    broker = Broker(Limits(**values), b"fuzz")
    broker.tick(1000, SECONDS)
    return broker


def free_places(broker):
    """What is left in every table, and how much there is of everything else."""
    tables = broker.tables
    return {
        "blocks": tables.state[2],
        "messages": tables.state[5],
        "entries": tables.state[8],
        "queues": tables.queue_pool[2],
        "channels": tables.channel_pool[2],
        "consumers": tables.consumer_pool[2],
        "connections": len(broker.connections),
        "exchanges": len(broker.exchanges),
        "queue objects": len(broker.queues),
        "held": len(broker.held),
        "bindings": broker.topology.binding_count,
        "bindings of exchanges": sum(len(exchange.bindings) for exchange in broker.exchanges.values()),
    }


def run(steps, **overrides):
    """Run a case; AssertionError (or whatever was raised) when a law is broken. Returns the peer's frames."""
    broker = new_broker(**overrides)
    healthy = Healthy(broker)
    start = free_places(broker)
    link = Link(broker)
    now = 1000
    checks = invariants.Steps(CHECKED)
    for step in steps:
        if step[0] == "give":
            link.give(bytes.fromhex(step[1]), step[2], reading=len(step) == 3)
        elif step[0] == "take":
            link.take(step[1])
        elif step[0] == "polite":
            link.be_polite()
        elif step[0] == "settle":
            link.settle(step[1], step[2])
        else:
            now += step[1]
            broker.tick(now, SECONDS + now // 1000)
            for connection in list(broker.connections):
                if connection is not healthy.link.connection:
                    connection.tick(now)
            broker.run()
        link.check_sizes()
        checks.step(broker)
    healthy.is_answered()
    link.take()
    found = link.heard + link.check_frames()
    if not link.connection.closed:
        link.end()
    checks.end(broker)
    assert broker.counters["internal_errors"] == 0, "an error of our own"
    healthy.tidy()
    healthy.is_served()
    invariants.check(broker)
    end = free_places(broker)
    assert end == start, "left behind: %r" % {name: (start[name], end[name]) for name in start if start[name] != end[name]}
    return found


def checked(steps, **overrides):
    """`run`; a case that breaks a law is kept in crashes/ and its file named."""
    try:
        return run(steps, **overrides)
    except Exception as error:  # whatever is raised is the finding
        steps, error = shrunk(steps, error, overrides)
        text = json.dumps({"steps": steps, "limits": overrides})
        path = os.path.join(CRASHES, hashlib.sha256(text.encode()).hexdigest()[:16] + ".json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        raise AssertionError("kept as %s: %s: %s" % (path, type(error).__name__, error)) from error


def failure(steps, overrides):
    """What a case breaks, or None."""
    try:
        run(steps, **overrides)
    except Exception as error:  # whatever is raised is the finding
        return error
    return None


def shrunk(steps, error, overrides):
    """The case with every step left out that its failure (of whatever text) does not need, and that failure; within SHRINK_S."""
    limit = time.monotonic() + SHRINK_S
    size = len(steps) // 2
    while size and time.monotonic() < limit:
        at = 0
        while at < len(steps) and time.monotonic() < limit:
            fewer = steps[:at] + steps[at + size :]
            found = failure(fewer, overrides)
            if found is None:
                at += size
            else:
                steps, error = fewer, found
        size //= 2
    return steps, error


def give(octets, size=0):
    return ["give", bytes(octets).hex(), size]
