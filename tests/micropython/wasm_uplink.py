"""Broker, bridge and publisher of a board, for wasm_port.py: uplink_bridge.mjs gets a socket for the link of the bridge.

It prints "dial" when the link wants a connection, and one line of JSON when everything is settled: what was confirmed, the bridge's own
counters, and octets of heap that the bridge has taken at most (objects are those of a 32-bit board).
"""

import gc
import json
import time

from leveret.core.amqp_0_9.client.client import Client, Events
from leveret.core.broker.broker import Broker
from leveret.core.limits import BOARD, Limits
from leveret.core.memory.micropython_sizes import bridge_held, bridge_memory
from leveret.ports.bridge.bridges import Bridges
from leveret.ports.bridge.settings import Settings
from leveret.ports.pipe import Pipe

COUNT = 120
SIZES = (0, 10, 300, 2000)
BUFFER_SIZE, PREFETCH = 4096, 32

_world = None


class Dial:
    """A dial of ports/bridge/dial.py whose socket is node's."""

    place = "node"
    pipe = None

    def __init__(self, url):
        self.url = url
        self.wanted = self.attached = False

    def begin(self):
        self.wanted, self.attached = True, False
        print("dial")

    def finish(self, loop, client):
        return self.attached or None

    def failure(self):
        return ""

    def login(self):
        return self.url.login()


class Publisher(Events):
    """Publishes to the queue "readings" of the broker in this process."""

    def __init__(self, broker):
        self.published = self.confirmed_count = 0
        self.client = Client(self, mechanism="EXTERNAL", receive_size=2048, send_size=4096, confirm_window=16, content_size_max=4096)
        self.pipe = Pipe(broker, self.client, "publisher")

    def opened(self):
        self.client.channels[1].open()

    def replied(self, channel, name, arguments):
        if name == "channel_open_ok":
            channel.queue_declare("readings", durable=True)
        elif name == "queue_declare_ok":
            channel.confirm_select()

    def confirmed(self, channel, sequence, positive):
        self.confirmed_count += 1 if positive else 0

    def step(self):
        channel = self.client.channels[1]
        while (
            self.published < COUNT
            and channel.confirming
            and channel.basic_publish(
                "", "readings", b"%d " % self.published + bytes(SIZES[self.published % len(SIZES)]), {"delivery_mode": 2}
            )
        ):
            self.published += 1
        self.pipe.pump()


class Loop:
    """What Bridges wants of ports/tcp.py: wasm_port.py moves the octets."""

    def __init__(self, broker):
        self.deliver = broker.run

    def arm(self):
        pass


class World:
    def __init__(self, seed):
        self.limits = Limits(**dict(BOARD, bridge_count_max=1))
        self.broker = Broker(self.limits, b"wasm")
        self.publisher = Publisher(self.broker)
        settings = Settings(
            {
                "name": "b",
                "gateway": "gw%s" % seed,
                "queue": "readings",
                "exchange": "board%s" % seed,
                "upstream": "amqp://127.0.0.1/",
                "reconnect_seconds_min": 0.01,
                "reconnect_seconds_max": 0.05,
                "stall_seconds": 3,
                "heartbeat_seconds": 2,
                "connect_seconds": 6,
                "refusal_attempts": 0,
                "buffer_size": BUFFER_SIZE,
                "prefetch": PREFETCH,
            }
        )
        gc.collect()
        self.held_before = gc.mem_alloc()
        self.held = 0
        self.bridges = Bridges(Loop(self.broker), self.broker, [settings], print, self.dial)
        self.bridge = self.bridges.bridges[0]
        self.over = False

    def dial(self, url):
        self.link = Dial(url)
        return self.link

    def measure(self):
        gc.collect()
        self.held = max(self.held, gc.mem_alloc() - self.held_before)

    def settled(self):
        """The stream's position stands behind the last message."""
        stream = self.broker.queues.get("b.outbox")
        if self.publisher.confirmed_count < COUNT or stream is None or stream.next_offset() < COUNT:
            return False
        for consumer in stream.consumers:
            if consumer.keeps is not None:
                stream.keep(consumer)
        return stream.kept.get("b") == COUNT and not self.bridge.mover.records

    def step(self, now):
        self.publisher.step()
        self.broker.run()
        self.bridges.step()
        if self.settled() and not self.over:
            self.over = True
            print(
                json.dumps(
                    {
                        "confirmed": self.publisher.confirmed_count,
                        "status": self.bridge.status(),
                        "held": self.held,
                        "said": bridge_memory(BUFFER_SIZE) + bridge_held(self.limits, BUFFER_SIZE, PREFETCH),
                    }
                )
            )


def start():
    global _world
    import uplink_seed

    _world = World(uplink_seed.SEED)


def make_endpoint():
    """The bridge's client, when it wants a connection."""
    link, client = _world.link, _world.bridge.target.client
    if not link.wanted or client.closed:
        return None
    link.wanted, link.attached = False, True
    return client


def tick(now):
    _world.broker.tick(now, int(time.time()))
    _world.publisher.pipe.tick(now)
    _world.measure()


def run(now):
    _world.step(now)
