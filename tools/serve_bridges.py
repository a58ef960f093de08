"""The bridges of a broker's file, in the broker's own process and loop ([[bridge]], ports/bridge)."""
import time

STOP_SECONDS = 3
SLOTS = 1  # of the loop, for each bridge: its link


class Bridges:
    """All bridges of one broker. With none it costs nothing: ports/bridge is not even imported."""

    def __init__(self, loop, broker, settings, say):
        self.loop = loop
        self.bridges = []
        if settings:
            from leveret.ports.bridge.bridge import Bridge
            self.bridges = [Bridge(loop, each, told(say, each.name), broker) for each in settings]
        self._moved = False

    def wait_ms(self, most):
        """How long the loop may wait."""
        if self._moved:
            return 0
        return min([most] + [bridge.wait_ms() for bridge in self.bridges])

    def step(self):
        """A round of each, behind one of the loop."""
        if not self.bridges:
            return
        self._moved = False
        for bridge in self.bridges:
            self._moved = bridge.step() or self._moved
        self.loop.deliver()
        self.loop.arm()

    def stop(self):
        """Have what is under way confirmed, and close; within STOP_SECONDS."""
        for bridge in self.bridges:
            bridge.stop()
        limit = time.monotonic() + STOP_SECONDS
        while not all(bridge.stopped for bridge in self.bridges):
            self.loop.step(10)
            self.step()
            if time.monotonic() > limit:
                for bridge in self.bridges:
                    bridge.source.cut("the broker ends")
                    bridge.target.cut("the broker ends")
        self.bridges = []


def told(say, name):
    """`say` with the bridge's name before each sentence."""
    return lambda sentence: say(f"bridge {name}: {sentence}")
