"""Inside MicroPython, for tests/measure/board.py: microseconds of a message from receive buffer to send buffer, and of its ack.

    micropython time_inside.py MESSAGES SIZE...

Each message is published by and delivered to one connection, ten under way, then acknowledged together; only the broker's own time counts.
"""

import struct
import sys
import time

from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits

# isort: split
# Behind those, which from within this file would be imported one level deeper in C's stack than there is.
from board_load import OPENING, method_frame, short

TOGETHER = 10
SUBSCRIBE = (
    method_frame(1, 50, 10, b"\x00\x00" + short(b"queue") + b"\x00\x00\x00\x00\x00"),
    method_frame(1, 60, 20, b"\x00\x00" + short(b"queue") + short(b"c") + b"\x00\x00\x00\x00\x00"),
)
ACKNOWLEDGE = method_frame(1, 60, 80, b"\x00\x00\x00\x00\x00\x00\x00\x00\x01")  # all that came


def publish(size):
    method = method_frame(1, 60, 40, b"\x00\x00\x00" + short(b"queue") + b"\x00")
    return method + struct.pack(">BHIHHQH", 2, 1, 14, 60, 0, size, 0) + b"\xce" + struct.pack(">BHI", 3, 1, size) + b"x" * size + b"\xce"


class Timed:
    """A connection that counts the time the broker takes."""

    def __init__(self):
        limits = dict(BOARD)
        limits.update({"receive_buffer_size": 4096, "send_buffer_size": 16384})
        self.broker = Broker(Limits(**limits), b"time")
        self.connection = Connection(self.broker, "peer", True)
        self.spent = 0
        for octets in OPENING + SUBSCRIBE:
            self.give(octets)
            self.drain()

    def give(self, octets):
        view = self.connection.writable()
        for index in range(len(octets)):
            view[index] = octets[index]
        began = time.ticks_us()
        self.connection.received(len(octets))
        self.broker.run()
        self.spent += time.ticks_diff(time.ticks_us(), began)

    def drain(self):
        size = len(self.connection.pending())
        began = time.ticks_us()
        self.connection.sent(size)
        self.spent += time.ticks_diff(time.ticks_us(), began)
        return size


def measure(count, size):
    """Microseconds a message, the best of three."""
    timed = Timed()
    octets = publish(size)
    best = None
    for _ in range(3):
        timed.spent = 0
        for _ in range(count // TOGETHER):
            for _ in range(TOGETHER):
                timed.give(octets)
            if timed.drain() < TOGETHER * size:
                raise RuntimeError("not everything was delivered")
            timed.give(ACKNOWLEDGE)
        best = timed.spent / count if best is None else min(best, timed.spent / count)
    return best


def main(count, sizes):
    for size in sizes:
        print("%d %.1f" % (size, measure(count, size)))


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(each) for each in sys.argv[2:]])
