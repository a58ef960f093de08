"""All bridges of a broker's file ([[bridge]]), in the broker's own process and loop: of `leveret serve`, and of a board's firmware.

Laws: without bridges there is no cost, and bridge.py is not even imported; `stop` returns in time whatever upstream does.
"""

from ...core.shim import elapsed, report
from ..clock import now_ms

if False:  # for the type checker alone
    from typing import Any, Callable

    from .bridge import Bridge
    from .settings import Settings

    Say = Callable[[str], None]

STOP_MS = 3000
SLOTS = 1  # of the loop, for each bridge: its link


class Bridges:
    """`settings`: a list of Settings. `dial(url)`: makes the dial to upstream, in place of the usual one."""

    def __init__(self, loop: "Any", broker: "Any", settings: "list[Settings]", say: "Say", dial: "Any" = None) -> None:
        self.loop = loop
        self.broker = broker
        self.bridges: "list[Bridge]" = []
        self._moved = False
        self._say = say
        if settings:
            self.begin(settings, dial)

    def begin(self, settings: "list[Settings]", dial: "Any" = None) -> None:
        """Start bridges for further Settings."""
        from .bridge import Bridge

        for each in settings:
            try:
                there = None if dial is None else [dial(url) for url in each.upstream_urls]
                self.bridges.append(Bridge(self.loop, each, with_name(self._say, each.name), self.broker, there))
            except Exception as error:  # for any error the broker and the other bridges go on
                report(error)
                self._say("bridge %s cannot be started: %r" % (each.name, error))

    def wait_ms(self, most: int) -> int:
        """Milliseconds that the loop may wait."""
        if self._moved:
            return 0
        least: int = min([most] + [bridge.wait_ms() for bridge in self.bridges])
        return least

    def step(self) -> None:
        """Give each bridge a round; the loop's owner calls this after a round of the loop."""
        if not self.bridges:
            return
        self._moved = False
        for bridge in self.bridges:
            try:
                self._moved = bridge.step() or self._moved
            except Exception as error:  # an error of our own costs this bridge its connections, and it makes new ones
                self.broker.guard.trouble("bridge '%s'", bridge.settings.name, error)
                bridge.source.cut("an error of this broker")
                bridge.target.cut("an error of this broker")
        self.loop.deliver()
        self.loop.arm()

    def stop(self, most_ms: int = STOP_MS) -> None:
        """Stop all bridges: wait for outstanding confirms, then close, within `most_ms` milliseconds."""
        for bridge in self.bridges:
            bridge.stop()
        began = now_ms()
        while not all(bridge.stopped for bridge in self.bridges):
            self.loop.step(10)
            self.step()
            if elapsed(now_ms(), began) > most_ms:
                for bridge in self.bridges:
                    bridge.source.cut("the broker ends")
                    bridge.target.cut("the broker ends")
        self.bridges = []


def with_name(say: "Say", name: str) -> "Say":
    """`say` with the bridge's name before each sentence."""
    return lambda sentence: say("bridge %s: %s" % (name, sentence))
