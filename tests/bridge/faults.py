"""Seeded fault runs of the bridge: a gateway, a link that stalls, half-closes, resets, delays, cuts at the n-th octet, a real upstream.

    python tests/bridge/faults.py --runs 500 --first 0 --upstream leveret rabbitmq [--canary]

A run: a broker in this process is given messages while the bridge (inside, or over a second faulty link) carries them to a queue of the
upstream. Every connection has its fault, drawn from the seed, until the link is left alone. Then what the upstream has is read: nothing may
be missing, and after de-duplication on (x-gateway, x-sequence) nothing double; sequences are dense. A line for each run that fails; its
seed repeats it.
"""

import argparse
import collections
import os
import random
import select
import socket
import sys
import threading
import time

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from nodes import Leveret, RabbitMQ, taken  # noqa: E402 - the path above has to be set first

from leveret.core.amqp_0_9.client.client import Client, Events  # noqa: E402 - the path above has to be set first
from leveret.core.broker.broker import Broker  # noqa: E402 - the path above has to be set first
from leveret.core.connection.connection import Connection  # noqa: E402 - the path above has to be set first
from leveret.core.limits import Limits  # noqa: E402 - the path above has to be set first
from leveret.ports.bridge.bridge import Bridge  # noqa: E402 - the path above has to be set first
from leveret.ports.bridge.settings import Settings  # noqa: E402 - the path above has to be set first
from leveret.ports.client import connect  # noqa: E402 - the path above has to be set first
from leveret.ports.clock import now_ms  # noqa: E402 - the path above has to be set first
from leveret.ports.pipe import Pipe  # noqa: E402 - the path above has to be set first
from leveret.ports.tcp import Loop  # noqa: E402 - the path above has to be set first
from leveret.ports.url import read_url  # noqa: E402 - the path above has to be set first

RUN_SECONDS_MAX = 600
KINDS = ("reset", "half-close", "close", "stall", "delay")
DURABLE = {"delivery_mode": 2}
LIMITS = {
    "arena_size": 16 << 20,
    "content_size_max": 1 << 20,
    "message_count_max": 16384,
    "entry_count_max": 32768,
    "connection_count_max": 16,
}


class FaultyLink:
    """A link to `port`: each of its first connections has a fault, drawn by `chance`; then it is left alone."""

    def __init__(self, port, chance, fault_count, octets_max, own_port=0):
        self._port = port
        self._chance = chance
        self._left = fault_count
        self._octets_max = octets_max
        self._listening = socket.create_server(("127.0.0.1", own_port))
        self.port = self._listening.getsockname()[1]
        self._pairs = {}  # socket -> Pair
        self._over = False
        self.faults = collections.Counter()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        self._over = True
        self._thread.join(60)

    def _run(self):
        while not self._over:
            now = time.monotonic()
            readers = [self._listening] + [each for each, pair in self._pairs.items() if pair.reads(each, now)]
            for ready in select.select(readers, [], [], 0.005)[0]:
                if ready is self._listening:
                    self._accept()
                elif ready in self._pairs:
                    self._carry(ready)
        for pair in set(self._pairs.values()):
            pair.end()
        self._listening.close()

    def _accept(self):
        near = self._listening.accept()[0]
        try:
            far = socket.create_connection(("127.0.0.1", self._port), 5)
        except OSError:
            near.close()
            return
        fault = None
        if self._left:
            self._left -= 1
            direction = self._chance.randrange(2)
            small = direction or self._chance.random() < 0.3  # within the handshake; what comes back is little
            fault = (self._chance.choice(KINDS), direction, self._chance.randrange(1500 if small else self._octets_max))
        self._pairs[near] = self._pairs[far] = Pair(near, far, fault)

    def _carry(self, ready):
        pair = self._pairs[ready]
        try:
            kind = pair.carry(ready)
        except OSError:
            kind = "gone"
        if kind is None:
            return
        if kind != "gone":
            self.faults[kind] += 1
        if kind in ("gone", "reset", "close"):
            self._pairs.pop(pair.near, None)
            self._pairs.pop(pair.far, None)
            pair.end(kind == "reset")


class Pair:
    """One connection through the link. `fault`: (kind, direction 0 towards the broker or 1 back, octets that pass before it)."""

    def __init__(self, near, far, fault):
        self.near = near
        self.far = far
        self.fault = fault
        self.passed = [0, 0]
        self.held = [False, False]  # directions that carry nothing any more
        self.until = 0.0  # nothing at all is carried before

    def reads(self, each, now):
        return now >= self.until and not self.held[0 if each is self.near else 1]

    def carry(self, ready):
        """None, or what has happened."""
        direction = 0 if ready is self.near else 1
        other = self.far if direction == 0 else self.near
        octets = ready.recv(16384)
        if not octets:
            return "gone"
        kind = None
        if self.fault is not None and direction == self.fault[1] and self.passed[direction] + len(octets) > self.fault[2]:
            kind = self.fault[0]
            keep = max(self.fault[2] - self.passed[direction], 0)
            if kind != "delay":
                octets = octets[:keep]
            self.fault = None
        self.passed[direction] += len(octets)
        if octets:
            other.sendall(octets)
        if kind == "delay":
            self.until = time.monotonic() + 0.1
        elif kind == "stall":
            self.held = [True, True]
        elif kind == "half-close":
            self.held[direction] = True
            other.shutdown(socket.SHUT_WR)
        return kind

    def end(self, reset=False):
        for each in (self.near, self.far):
            if reset:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            each.close()


class Publisher(Events):
    """Publishes `bodies` to a queue (or stream) of the broker in this process, and counts their confirms."""

    def __init__(self, broker, queue, arguments, bodies, given=DURABLE):
        self.given = given
        self.queue = queue
        self.arguments = arguments
        self.bodies = list(bodies)
        self.confirms = 0
        self.client = Client(self, mechanism="EXTERNAL", receive_size=65536, send_size=65536, confirm_window=4096)
        self.pipe = Pipe(broker, self.client, "publisher")

    @property
    def channel(self):
        return self.client.channels[1]

    def opened(self):
        self.channel.open()

    def replied(self, channel, name, arguments):
        if name == "channel_open_ok":
            channel.queue_declare(self.queue, durable=True, arguments=self.arguments)
        elif name == "queue_declare_ok":
            channel.confirm_select()

    def confirmed(self, channel, sequence, positive):
        assert positive
        self.confirms += 1

    def step(self, most):
        """Publish up to `most` more."""
        while most and self.bodies and self.channel.confirming and self.channel.basic_publish("", self.queue, self.bodies[0], self.given):
            self.bodies.pop(0)
            most -= 1
        self.pipe.tick(now_ms())
        self.pipe.pump()


class EagerBridge(Bridge):
    """The canary: it settles at the source what it has published, and does not wait for the confirm."""

    def _move(self, now):
        mover = self.mover
        moved = Bridge._move(self, now)
        for number in list(mover.flight):
            mover.complete(mover.flight.pop(number))
        return moved


class Upstream:
    """A broker of its own, `node`, and exchange and queue of one run."""

    def __init__(self, node, seed, name="faults"):
        self.node = node
        self.name = "%s%d" % (name, seed)
        self.exchange = node.exchange % self.name
        client = connect(node.url)
        client.exchange_declare(self.name, "topic")
        client.queue_delete(self.name)
        client.queue_declare(self.name, durable=True)
        client.close()
        self.count = 0

    def bind(self):
        client = connect(self.node.url)
        client.queue_bind(self.name, self.name, "#")
        client.close()

    def take(self):
        """Everything that is there, in order, and nothing is left of the run."""
        client = connect(self.node.url)
        client.qos(1000)
        client.consume(self.name)
        found = []
        for message in taken(client, self.name, 75):
            found.append(message)
            client.ack(message)
        client.queue_delete(self.name)
        client.exchange_delete(self.name)
        client.close()
        return found


class Run:
    """One run; `problems` says what is wrong with it."""

    upstream_of = Upstream
    given = DURABLE  # properties of what is published

    def __init__(self, node, seed, canary=False):
        self.seed = seed
        self.chance = chance = random.Random(seed)
        self.canary = canary
        self.count = chance.randrange(50, 400)
        self.inside = chance.random() < 0.6
        self.from_stream = chance.random() < 0.5
        self.prefetch = chance.choice((10, 50, 1000))
        self.plain = not self.from_stream and chance.random() < 0.2  # without numbers: at least once, and doubles are nobody's fault
        self.binds_late = chance.random() < 0.15
        self.upstream = self.upstream_of(node, seed)
        self.link = FaultyLink(node.port, chance, chance.randrange(1, 6), 40000)
        self.local_link = None
        self.faults = collections.Counter()
        self.seconds = 0.0
        self.doubles = 0

    def describe(self):
        source = "stream" if self.from_stream else "plain" if self.plain else "queue"
        return "seed %d: %d messages, %s, %s, prefetch %d%s, faults %s, %.1f s" % (
            self.seed,
            self.count,
            "inside" if self.inside else "over a second link",
            source,
            self.prefetch,
            ", bound late" if self.binds_late else "",
            dict(self.faults),
            self.seconds,
        )

    def problems(self):
        began = time.monotonic()
        broker = Broker(Limits(**LIMITS), b"faults%d" % self.seed)
        loop = Loop(16, broker)
        _, port = loop.listen("127.0.0.1", 0, lambda stream: Connection(broker, stream.name, True))
        arguments = {"x-queue-type": "stream"} if self.from_stream else {}
        bodies = [b"%d " % number + bytes(self.chance.choice((0, 10, 300, 2000))) for number in range(self.count)]
        publisher = Publisher(broker, "readings", arguments, bodies, self.given)
        if not self.inside:
            self.local_link = FaultyLink(port, self.chance, 3, 60000)
        if not self.binds_late:
            self.upstream.bind()
        bridge = (EagerBridge if self.canary else Bridge)(
            loop, self.settings(), lambda sentence: None, broker if self.inside else read_url("amqp://127.0.0.1:%d" % self.local_link.port)
        )
        bridge.mover.retry_ms = 50
        try:
            self.drive(loop, broker, publisher, bridge)
            found = self.upstream.take()
        finally:
            self.close(loop)
        self.seconds = time.monotonic() - began
        return self.judge(publisher, found, bridge)

    def close(self, loop):
        self.faults += self.link.faults
        self.link.close()
        if self.local_link is not None:
            self.faults += self.local_link.faults
            self.local_link.close()
        loop.close()

    def settings(self):
        given = {
            "name": "b",
            "gateway": "gw%d" % self.seed,
            "upstream": ["amqp://127.0.0.1:%d/%s" % (self.link.port, self.upstream.node.protocol)],
            "prefetch": self.prefetch,
            "exchange": self.upstream.exchange,
            "reconnect_seconds_min": 0.01,
            "reconnect_seconds_max": 0.05,
            "stall_seconds": 0.4,
            "heartbeat_seconds": 1,
            "connect_seconds": 0.8,
            "refusal_attempts": 0,
            "replay_messages_per_second": self.chance.choice((0, 2000)),
        }
        given["stream" if self.from_stream else "queue"] = "readings"
        if self.plain:
            for name in ("gateway", "replay_messages_per_second"):
                del given[name]
        return Settings(given, self.plain)

    def drive(self, loop, broker, publisher, bridge):
        """Until everything is settled at the source, or time is up."""
        limit = time.monotonic() + RUN_SECONDS_MAX
        bind_at = time.monotonic() + 0.5 if self.binds_late else None
        while time.monotonic() < limit:
            loop.step(0 if publisher.bodies else 5)
            publisher.step(self.chance.randrange(8))
            bridge.step()
            loop.deliver()
            loop.arm()
            if bind_at is not None and time.monotonic() > bind_at:
                bind_at = None
                self.upstream.bind()
            if not publisher.bodies and publisher.confirms == self.count and self.is_settled(broker, bridge):
                return

    def is_settled(self, broker, bridge):
        """True when the position stands behind the last message."""
        if self.plain:
            queue = broker.queues["readings"]
            return not bridge.mover.records and queue.message_count() == 0 and queue.unsettled_count() == 0
        stream = broker.queues.get(bridge.source.stream)
        if stream is None or bridge.mover.records or stream.next_offset() < self.count:
            return False
        for consumer in stream.consumers:
            if consumer.keeps is not None:
                stream.keep(consumer)
        return stream.kept.get("b") == self.count

    def judge(self, publisher, found, bridge):
        """Sentences: what is wrong."""
        wrong = []
        places = {}
        order = []
        for message in found:
            headers = message.properties["headers"]
            number = int(message.body.split(b" ")[0])
            place = ("", number) if self.plain else (headers["x-gateway"], headers["x-sequence"])
            if place not in places:
                places[place] = number
                order.append(place[1])
            elif places[place] != number:
                wrong.append("%s and %s have the place %r" % (number, places[place], place))
        self.doubles = len(found) - len(places)
        numbers = sorted(places.values())
        missing = sorted(set(range(self.count)) - set(numbers))
        if missing or publisher.confirms != self.count:
            wrong.append(
                "%d of %d missing, as %r (confirmed %d, status %r)"
                % (len(missing), self.count, missing[:5], publisher.confirms, bridge.status())
            )
        if len(numbers) != len(set(numbers)):
            wrong.append("%d double after de-duplication" % (len(numbers) - len(set(numbers))))
        if sorted(place[1] for place in places) != list(range(len(places))):
            wrong.append("the sequence has gaps")
        if not self.binds_late and self.prefetch == 1000 and order != sorted(order):
            wrong.append("not in order")
        return wrong


def run_many(node, seeds, canary=False, report=None, kind=Run):
    """Runs of these seeds, each a `kind`: (those that failed as (Run, sentences), all Runs)."""
    failed, runs = [], []
    for seed in seeds:
        run = kind(node, seed, canary)
        wrong = run.problems()
        runs.append(run)
        if wrong:
            failed.append((run, wrong))
        if report is not None:
            report(run, wrong)
    return failed, runs


def node_of(kind):
    """(the upstream of this kind, the class of its runs)."""
    return (Leveret() if kind == "leveret" else RabbitMQ()), Run


def main(what="the bridge", upstreams=("leveret", "rabbitmq"), first="leveret", node_of=node_of):
    """Run by a person: the exit status. `what` the runs are of; `upstreams`: kinds for `node_of`; `first`: the kind without an option."""
    parser = argparse.ArgumentParser(description=f"Seeded fault runs of {what}.")
    parser.add_argument("--runs", type=int, default=50, help="for each upstream")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--upstream", nargs="+", choices=upstreams, default=[first])
    parser.add_argument("--canary", action="store_true", help="a bridge that settles before upstream has confirmed: must fail")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()

    def report(run, wrong):
        if wrong or options.verbose:
            print(run.describe(), "%d doubles" % run.doubles, "; ".join(wrong), flush=True)

    bad = 0
    for kind in options.upstream:
        node, kind_of_run = node_of(kind)
        try:
            seeds = range(options.first, options.first + options.runs)
            failed, runs = run_many(node, seeds, options.canary, report, kind_of_run)
        finally:
            node.stop()
        struck = sum((run.faults for run in runs), collections.Counter())
        bad += len(failed)
        counted = (
            len(runs),
            sum(run.count for run in runs),
            sum(struck.values()),
            dict(struck),
            sum(run.doubles for run in runs),
            len(failed),
        )
        print("%s: %d runs, %d messages, %d faults %s, %d doubles on the wire, %d runs failed" % (kind, *counted), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
