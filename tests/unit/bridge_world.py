"""A whole bridge (ports/bridge) between two brokers in one process, over pipes in memory, for the tests of both interpreters."""

import time

from leveret.core.amqp_0_9 import properties
from leveret.core.broker import Broker
from leveret.core.limits import BOARD, Limits
from leveret.ports.bridge.bridge import Bridge
from leveret.ports.bridge.settings import Settings
from leveret.ports.clock import now_ms, seconds
from leveret.ports.pipe import InsideDial
from peer import Peer, taken

ROOM = {"management_size_max": 8192, "content_size_max": 16384, "arena_size": 1 << 20, "message_count_max": 4096, "entry_count_max": 8192,
        "connection_count_max": 8, "bridge_count_max": 2, "argument_size_max": 1024, "channel_count_max": 16}


class Cable(InsideDial):
    """The way to an upstream broker: it can be pulled out."""

    def __init__(self, broker):
        InsideDial.__init__(self, broker, "uplink")
        self.broken = False
        self.attempts = 0

    def finish(self, loop, client):
        self.attempts += 1
        if self.broken:
            raise OSError("the cable is out")
        return InsideDial.finish(self, loop, client)

    def pull(self):
        self.broken = True
        if self.pipe is not None:
            self.pipe.end()


class World:
    """A gateway with a bridge, and what is above it. `room`: other limits of the gateway."""

    def __init__(self, room=None, **given):
        self.here = new_broker(b"here", room)
        self.there = new_broker(b"there")
        self.local, self.remote = Peer(self.here), Peer(self.there)
        self.said = []
        self.cables = [Cable(self.there)]
        values = {"name": "b", "upstream": ["amqp://unused/"], "exchange": "up", "reconnect_seconds_min": 0.01, "prefetch": 20,
                  "reconnect_seconds_max": 0.02, "buffer_size": 4096, "frame_size_max": 8192}
        if given.get("direction", "up") == "up":
            values["gateway"] = "gw"
            values["queue" if "stream" not in given else "stream"] = "q"
        values.update(given)
        self.settings = Settings(values)
        self.bridge = None

    def prepare(self, arguments=None, bound=True):
        """Queue q here, exchange up and queue readings there."""
        if arguments is None:
            arguments = {"x-queue-type": "stream"} if self.settings.stream else {}
        self.local.declare("q", durable=True, arguments=arguments)
        self.remote.ask("exchange_declare", "exchange_declare_ok", 0, "up", "topic", False, False, False, False, False, {})
        self.remote.declare("readings", durable=True)
        if bound:
            self.remote.ask("queue_bind", "queue_bind_ok", 0, "readings", "up", "#", False, {})

    def start(self):
        self.bridge = Bridge(None, self.settings, self.said.append, self.here, self.cables)
        self.bridge.mover.retry_ms = 20
        return self.bridge

    def turn(self):
        for broker in (self.here, self.there):
            broker.tick(now_ms(), seconds())
            broker.run()
        self.bridge.step()

    def until(self, condition, what, seconds_max=60):
        began = time.time()
        while not condition():
            self.turn()
            assert time.time() - began < seconds_max, (what, self.bridge.status(), self.said)

    def publish(self, numbers, size=4, **given):
        for number in numbers:
            self.local.publish("q", b"%05d" % number + bytes(size), given=given)

    def arrived(self, queue="readings", peer=None):
        """What has come: (sequence, number, headers) of each."""
        return [((given.get("headers") or {}).get("x-sequence"), int(bytes(body[:5])), given.get("headers") or {})
                for given, body in taken(peer or self.remote, queue)]

    def moved(self, count):
        return lambda: self.bridge.mover.counters["bridged"] >= count and not self.bridge.mover.records


def new_broker(nonce, room=None):
    values = dict(BOARD)
    values.update(ROOM)
    values.update(room or {})
    broker = Broker(Limits(**values), nonce)
    broker.read_messages_with(properties)
    broker.tick(now_ms(), seconds())
    return broker
