"""A whole bridge (ports/bridge) between two brokers in one process, over pipes in memory, for the tests of both interpreters.

Time is the tests' own: it goes on by TURN_MS with each turn of a world and stands still otherwise, so that nothing waits and a busy
machine changes nothing.
"""

import sys

from peer import Peer, taken

from leveret.core.broker.broker import Broker
from leveret.core.limits import BOARD, Limits
from leveret.ports.bridge.bridge import Bridge
from leveret.ports.bridge.settings import Settings
from leveret.ports.pipe import InsideDial

ROOM = {
    "management_size_max": 8192,
    "content_size_max": 16384,
    "arena_size": 1 << 20,
    "message_count_max": 4096,
    "entry_count_max": 8192,
    "connection_count_max": 8,
    "bridge_count_max": 2,
    "argument_size_max": 1024,
    "channel_count_max": 16,
}
TURN_MS = 2


class Clock:
    """What ports/clock.py answers, on a time that only `turn` moves."""

    def __init__(self):
        self.ms = (1 << 30) - 5000  # the milliseconds begin anew soon, as on a device that has run for days
        self.began_at = 1700000000

    def now_ms(self):
        return self.ms & 0x3FFFFFFF

    def seconds(self):
        return self.began_at + self.ms // 1000


CLOCK = Clock()
now_ms, seconds = CLOCK.now_ms, CLOCK.seconds


def rule_time():
    """Give every module of ports that reads the clock this one."""
    for name in list(sys.modules):
        if name.startswith("leveret.ports.") and name != "leveret.ports.clock":
            for reader in (now_ms, seconds):
                word = "now_ms" if reader is now_ms else "seconds"
                if hasattr(sys.modules[name], word):
                    setattr(sys.modules[name], word, reader)


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
        values = {
            "name": "b",
            "upstream": ["amqp://unused/"],
            "exchange": "up",
            "reconnect_seconds_min": 0.01,
            "prefetch": 20,
            "reconnect_seconds_max": 0.02,
            "buffer_size": 4096,
            "frame_size_max": 8192,
        }
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
        rule_time()
        self.bridge = Bridge(None, self.settings, self.said.append, self.here, self.cables)
        rule_time()  # what the bridge has imported just now reads the clock too
        self.bridge.mover.retry_ms = 20
        return self.bridge

    def turn(self):
        CLOCK.ms += TURN_MS
        for broker in (self.here, self.there):
            broker.tick(now_ms(), seconds())
            broker.run()
        self.bridge.step()

    def until(self, condition, what, seconds_max=60):
        """Turns until a condition is so, for `seconds_max` of the clock at most."""
        limit = CLOCK.ms + 1000 * seconds_max
        while not condition():
            self.turn()
            assert CLOCK.ms < limit, (what, self.bridge.status(), self.said[-5:])

    def publish(self, numbers, size=4, **given):
        for number in numbers:
            self.local.publish("q", b"%05d" % number + bytes(size), given=given)

    def arrived(self, queue="readings", peer=None):
        """What has come: (sequence, number, headers) of each."""
        return [
            ((given.get("headers") or {}).get("x-sequence"), int(bytes(body[:5])), given.get("headers") or {})
            for given, body in taken(peer or self.remote, queue)
        ]

    def moved(self, count):
        return lambda: self.bridge.mover.counters["bridged"] >= count and not self.bridge.mover.records


def new_broker(nonce, room=None):
    values = dict(BOARD)
    values.update(ROOM)
    values.update(room or {})
    broker = Broker(Limits(**values), nonce)
    broker.tick(now_ms(), seconds())
    return broker
