"""A broker in this process for the blocking clients of ports/: their stream is a pair of buffers, their clock stands still unless a test
moves it."""

import os

from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection as Served
from leveret.core.limits import BOARD, Limits


def new_broker(**limits):
    """A board's broker with places for some connections."""
    return Broker(Limits(**{**BOARD, "connection_count_max": 8, "stranger_share_max": 100, **limits}), b"inside")


class Stream:
    """Octets to and from a broker in this process. `pollable` can always be read; `deaf`: the broker gets and gives nothing."""

    def __init__(self, broker):
        self.broker = broker
        self.served = Served(broker, "inside", True)
        self.pollable, self._other = os.pipe()
        os.write(self._other, b".")
        self.name = "the broker"
        self.deaf = False
        self.closed = False
        self.written = 0

    def read_into(self, view):
        self.broker.run()
        pending = self.served.pending()
        size = min(len(view), len(pending))
        if self.deaf or size == 0:
            return 0 if self.served.closed and not self.deaf else None
        view[:size] = pending[:size]
        self.served.sent(size)
        return size

    def write(self, view):
        room = self.served.writable()
        size = min(len(view), len(room))
        if self.deaf or size == 0:
            return None
        room[:size] = view[:size]
        self.served.received(size)
        self.broker.run()
        self.written += size
        return size

    def close(self):
        if not self.closed:
            self.closed = True
            self.served.received(0)
            os.close(self.pollable)
            os.close(self._other)


class Clock:
    """Milliseconds; each look takes one when `runs`."""

    now = 1000
    runs = 0

    def __call__(self):
        self.now += self.runs
        return self.now
