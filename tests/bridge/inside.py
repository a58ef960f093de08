"""A bridge in this process, between a broker of its own and real sockets upstream, for tests that look at what it says."""

import time

from faults import LIMITS, Publisher

from leveret.core.broker.broker import Broker
from leveret.core.limits import Limits
from leveret.ports.bridge.bridge import Bridge
from leveret.ports.bridge.settings import Settings
from leveret.ports.tcp import Loop


class InsideBridge:
    """From the local queue `readings` to the exchange `telemetry` of the first of `upstream` (URLs) that works; `said`: its sentences."""

    def __init__(self, upstream, bodies=(), **given):
        self.broker = Broker(Limits(**LIMITS), b"inside")
        self.loop = Loop(4, self.broker)
        self.publisher = Publisher(self.broker, "readings", {}, bodies)
        self.said = []
        settings = {
            "name": "b",
            "gateway": "gw",
            "queue": "readings",
            "exchange": "telemetry",
            "upstream": upstream,
            "reconnect_seconds_min": 0.01,
            "reconnect_seconds_max": 0.05,
        }
        settings.update(given)
        self.bridge = Bridge(self.loop, Settings(settings), self.said.append, self.broker)

    def until(self, condition, what, seconds_max=120):
        """Go on until `condition()`; its value."""
        limit = time.monotonic() + seconds_max
        while True:
            self.loop.step(5)
            self.publisher.step(100)
            self.bridge.step()
            self.loop.deliver()
            self.loop.arm()
            value = condition()
            if value:
                return value
            assert time.monotonic() < limit, (what, self.bridge.status(), self.said)

    def has_said(self, words):
        """Where a sentence with these words is among `said`, from 1 on; 0: nowhere."""
        found = [number for number, sentence in enumerate(self.said, 1) if words in sentence]
        return found[0] if found else 0

    def bridged(self, count):
        """Wait until so many are confirmed upstream."""
        self.until(lambda: self.bridge.status()["bridged"] >= count and not self.bridge.mover.records, "%d are upstream" % count)

    def close(self):
        self.loop.close()
