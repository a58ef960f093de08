"""A broker with a gateway's limits, peers that fill it, and the CPU time of each single call: what one peer makes all others wait."""

import gc
import time

from peer import Peer, content, encoded

from leveret.core.broker import engine
from leveret.core.broker.broker import Broker
from leveret.core.limits import Limits


class Crowd:
    """`worst`: seconds of the longest call since `begin`, `calls` how many there were, `where` which it was."""

    def __init__(self, form, **limits):
        before, engine.chosen = engine.chosen, form
        try:
            self.broker = Broker(Limits(**limits), b"cpu")
        finally:
            engine.chosen = before
        self.time = 0
        self.begin()
        self.pass_time(1)

    def begin(self):
        gc.collect()
        gc.freeze()  # what other scenes left behind is not this one's
        self.worst, self.calls, self.where, self.total = 0.0, 0, "", 0.0

    def call(self, where, function, *given):
        """Call a function and note its time."""
        begun = time.thread_time()
        answer = function(*given)
        took = time.thread_time() - begun
        self.calls += 1
        self.total += took
        if took > self.worst:
            self.worst, self.where = took, where
        return answer

    def peer(self):
        return Quick(self)

    def run(self):
        """Let the broker work until it has nothing to do."""
        for _ in range(100000):
            self.call("run", self.broker.run)
            if not self.broker.has_active() and not self.broker.jobs:
                return
        raise AssertionError("the broker has always something to do")

    def pass_time(self, milliseconds, step=100):
        """Time passes: all ticks."""
        while milliseconds > 0:
            milliseconds -= step
            self.time += step
            self.call("tick", self.broker.tick, self.time & 0x3FFFFFFF, 1700000000 + self.time // 1000)
            for connection in list(self.broker.connections):
                self.call("connection.tick", connection.tick, self.broker.now)
            self.run()


class Quick(Peer):
    """A peer that throws away what it does not look at."""

    def __init__(self, crowd):
        self.crowd = crowd
        Peer.__init__(self, crowd.broker)

    def send(self, octets, piece=1 << 18):
        """Hand octets over in reads of a socket's size, each call timed; what comes back is dropped."""
        crowd, connection = self.crowd, self.connection
        at = 0
        stuck = 0
        while at < len(octets) and not connection.closed:
            view = connection.writable()
            size = min(len(view), len(octets) - at, piece)
            if size:
                view[:size] = octets[at : at + size]
                at += size
                crowd.call("received", connection.received, size)
            stuck = 0 if size else stuck + 1
            assert stuck < 20000, "the broker does not read on"
            self.drop()
            crowd.call("run", crowd.broker.run)
        self.rest()

    def rest(self):
        """Until all is done and read."""
        while True:
            self.crowd.run()
            if not self.drop():
                return

    def drop(self):
        """Read what waits: how many octets."""
        dropped = 0
        while not self.connection.closed and len(self.connection.pending()):
            size = len(self.connection.pending())
            dropped += size
            self.crowd.call("sent", self.connection.sent, size)
        return dropped

    def do(self, name, *arguments, channel=1):
        self.send(encoded(name, channel, *arguments))

    def fill(self, key, count, exchange="", given=None, body=b"x", channel=1):
        """Publish `count` messages."""
        one = content(channel, exchange, key, body, given)
        while count > 0:
            self.send(one * min(count, 2000))
            count -= 2000

    def queue(self, name, arguments=None, **flags):
        self.do(
            "queue_declare",
            0,
            name,
            False,
            flags.get("durable", False),
            flags.get("exclusive", False),
            flags.get("auto_delete", False),
            True,
            arguments or {},
        )

    def exchange(self, name, type_, arguments=None):
        self.do("exchange_declare", 0, name, type_, False, False, False, False, True, arguments or {})

    def bind(self, queue, exchange, key="", arguments=None):
        self.do("queue_bind", 0, queue, exchange, key, True, arguments or {})

    def read(self, queue, tag="c", no_ack=False, channel=1, arguments=None):
        self.do("basic_consume", 0, queue, tag, False, no_ack, False, True, arguments or {}, channel=channel)

    def hold(self, queue, count, **options):
        """Have `count` messages of a queue delivered and not settled."""
        self.queue(queue, options.get("arguments"))
        self.fill(queue, count)
        self.read(queue)
        found = self.crowd.broker.queues[queue]
        assert found.unsettled_count() == count, (found.unsettled_count(), count)


REFERENCE_S = 0.004  # what `work` takes on the machine that the limits were chosen on


def work():
    """Some steps of the kind that the broker makes."""
    table, found = list(range(1000)), {}
    for step in range(50000):
        found[step & 1023] = table[step % 1000] + len(found)


def slowness():
    """How much slower the machine is just now than the one that the limits were chosen on: 1 or more."""
    begun = time.thread_time()
    work()
    return max((time.thread_time() - begun) / REFERENCE_S, 1.0)
