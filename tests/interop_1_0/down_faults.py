"""The bridge downwards from an upstream of AMQP 1.0 through faulty links: tests/bridge/faults.py with brokers of bridge_faults.py.

    python tests/interop_1_0/down_faults.py --runs 100 --first 0 --upstream artemis broker-j rabbitmq leveret [--canary] [--verbose]

A run: a queue of the upstream gets messages while the bridge brings them to a broker in this process, which has the bridge within it or
over a second faulty link. Nothing may be missing; where upstream keeps unsettled deliveries (a Leveret) and the local broker keeps its
connection nothing may be double either.
"""

import collections
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE, os.path.join(os.path.dirname(HERE), "bridge")]

import bridge_faults  # noqa: E402 - the path above has to be set first
import faults  # noqa: E402 - the path above has to be set first
import peers  # noqa: E402 - the path above has to be set first

from leveret.core.broker.broker import Broker  # noqa: E402 - the path above has to be set first
from leveret.core.connection.connection import Connection  # noqa: E402 - the path above has to be set first
from leveret.core.limits import Limits  # noqa: E402 - the path above has to be set first
from leveret.ports.bridge.bridge import Bridge  # noqa: E402 - the path above has to be set first
from leveret.ports.bridge.settings import Settings  # noqa: E402 - the path above has to be set first
from leveret.ports.client import connect as connect_0_9_1  # noqa: E402 - the path above has to be set first
from leveret.ports.client_1_0 import connect  # noqa: E402 - the path above has to be set first
from leveret.ports.pipe import Pipe  # noqa: E402 - the path above has to be set first
from leveret.ports.tcp import Loop  # noqa: E402 - the path above has to be set first
from leveret.ports.url import read_url  # noqa: E402 - the path above has to be set first

NAME = "down%d"
QUIET_S = 1.0  # for doubles


class EagerBridge(Bridge):
    """The canary: it accepts what it has published, and does not wait for the confirm; then the local connection breaks."""

    def _move(self, now):
        moved = Bridge._move(self, now)
        for number in list(self.mover.flight):
            self.mover.complete(self.mover.flight.pop(number))
        return moved


class Run(faults.Run):
    """A run downwards; `once`: doubles are wrong, too."""

    once = False
    upstream_of = staticmethod(lambda node, seed: None)  # its queue alone, below

    def __init__(self, node, seed, canary=False):
        faults.Run.__init__(self, node, seed, canary)
        self.node = node
        self.from_stream = self.plain = self.binds_late = False
        name = NAME % seed
        self.address = node.address % name
        if isinstance(node, faults.Leveret | faults.RabbitMQ):
            client = connect_0_9_1(node.url)
            client.queue_declare(name, durable=True)
            client.close()

    def problems(self):
        began = time.monotonic()
        broker = Broker(Limits(**faults.LIMITS), b"down%d" % self.seed)
        loop = Loop(16, broker)
        _, port = loop.listen("127.0.0.1", 0, lambda stream: Connection(broker, stream.name, True))
        collector = Collector(broker)
        if not self.inside:
            self.local_link = faults.FaultyLink(port, self.chance, 3, 60000)
        local = broker if self.inside else read_url("amqp://127.0.0.1:%d" % self.local_link.port)
        client = connect(self.node.url_1_0)
        sender = client.sender(self.address)
        bodies = [b"%d " % number + bytes(self.chance.choice((0, 10, 300, 2000))) for number in range(self.count)]
        for body in bodies[: self.count // 2]:
            sender.send(body, {"subject": "a.b"}, {"n": 1}, wait=False)
        sender.wait_settled()
        bridge = (EagerBridge if self.canary else Bridge)(loop, self.settings(), lambda sentence: None, local)
        bridge.mover.retry_ms = 50
        limit = time.monotonic() + faults.RUN_SECONDS_MAX
        left = bodies[self.count // 2 :]
        quiet_at = None
        try:
            while time.monotonic() < limit:
                loop.step(5)
                if left and len(collector.found) > self.count // 8:
                    for body in left:
                        sender.send(body, {"subject": "a.b"}, {"n": 1}, wait=False)
                    sender.wait_settled()
                    left = []
                bridge.step()
                collector.step()
                loop.deliver()
                loop.arm()
                whole = not left and len(set(collector.found)) == self.count and not bridge.mover.records
                if not whole:
                    quiet_at = None
                elif quiet_at is None:
                    quiet_at = time.monotonic()
                elif time.monotonic() - quiet_at > QUIET_S:
                    break
                if self.canary and time.monotonic() - began > 8:
                    break
        finally:
            client.close()
            self.close(loop)
        self.seconds = time.monotonic() - began
        return self.judge_down(collector, bridge)

    def judge_down(self, collector, bridge):
        """Sentences: what is wrong."""
        counts = collections.Counter(collector.found)
        missing = [number for number in range(self.count) if number not in counts]
        self.doubles = len(collector.found) - len(counts)
        wrong = []
        if missing:
            wrong.append("%d of %d missing, as %r (status %r)" % (len(missing), self.count, missing[:5], bridge.status()))
        if self.once and self.inside and self.doubles:
            wrong.append("%d double" % self.doubles)
        if collector.wrong:
            wrong.append("not as it was sent: %r" % collector.wrong[:3])
        if bridge.counters["internal_errors"]:
            wrong.append("%d errors of its own" % bridge.counters["internal_errors"])
        return wrong

    def settings(self):
        return Settings(
            {
                "name": "b",
                "direction": "down",
                "upstream": ["amqp://guest:guest@127.0.0.1:%d/%s" % (self.link.port, self.node.protocol)],
                "prefetch": self.prefetch,
                "queue": self.address,
                "exchange": "",
                "routing_key": "mine",
                "reconnect_seconds_min": 0.01,
                "reconnect_seconds_max": 0.05,
                "stall_seconds": 0.4,
                "heartbeat_seconds": 1,
                "connect_seconds": 0.8,
                "refusal_attempts": 0,
            }
        )


class RunOnce(Run):
    """A run against an upstream that keeps what is unsettled."""

    once = True


class Collector(faults.Events):
    """Consumes `mine` of the broker in this process: the numbers of what comes."""

    def __init__(self, broker):
        self.found = []
        self.wrong = []
        self.client = faults.Client(self, mechanism="EXTERNAL", receive_size=65536, send_size=65536)
        self.pipe = Pipe(broker, self.client, "collector")

    def opened(self):
        self.client.channels[1].open()

    def replied(self, channel, name, arguments):
        if name == "channel_open_ok":
            channel.queue_declare("mine", durable=True)
        elif name == "queue_declare_ok":
            channel.basic_consume("mine", "c", no_ack=True)

    def delivered(self, message):
        self.found.append(int(bytes(message.body).split(b" ")[0]))
        headers = message.properties.get("headers") or {}
        if headers.get("n") != 1 or headers.get("x-hops") != 1:
            self.wrong.append(message.properties)

    def step(self):
        self.pipe.tick(faults.now_ms())
        self.pipe.pump()


def node_of(kind):
    """(the upstream, the class of its runs)."""
    node = bridge_faults.node_of(kind)[0]
    if not hasattr(node, "address"):
        node.address = "/queues/%s" if kind == "leveret" else "/amq/queue/%s"
        node.url_1_0 = node.url + node.protocol
    return node, RunOnce if kind == "leveret" else Run


if __name__ == "__main__":
    sys.exit(faults.main("the bridge downwards from an upstream of AMQP 1.0", tuple(peers.PEERS), "leveret", node_of))
