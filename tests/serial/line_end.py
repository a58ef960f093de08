"""One end of a serial line as a process: `python line_end.py DEVICE BAUD active|passive SEED SIZE`.

Sends SIZE octets made from SEED, and receives SIZE octets made from SEED of the other end (SEED ^ 1). Its last line is JSON: what arrived
(`received`, `identical`), sessions, and the link's counters; exit status 0 only if all came, once, in order, in one session.
"""

import json
import random
import sys
import time

from leveret.ports.serial_line import SerialStream, new_link
from leveret.ports.tcp import Loop

SECONDS_MAX = 60


class Exchange:
    """The inner endpoint: sends one text and compares what comes with another."""

    def __init__(self, outgoing, wanted):
        self._outgoing = memoryview(outgoing)
        self._wanted = wanted
        self._room = memoryview(bytearray(1000))
        self.received_count = 0
        self.identical = True
        self.gone = False
        self.closed = False

    def writable(self):
        return self._room

    def received(self, size):
        self.gone = self.gone or size == 0
        self.identical &= bytes(self._room[:size]) == self._wanted[self.received_count : self.received_count + size]
        self.received_count += size

    def pending(self):
        return self._outgoing

    def sent(self, size):
        self._outgoing = self._outgoing[size:]

    def tick(self, now):
        pass

    def done(self):
        return self.received_count == len(self._wanted) and not self._outgoing


def main(device, baud, role, seed, size):
    active = role == "active"
    exchange = Exchange(random.Random(seed).randbytes(size), random.Random(seed ^ 1).randbytes(size))
    link = new_link(lambda: exchange, baud, active)
    loop = Loop(1)
    loop.add(SerialStream(device, baud), link)
    began = time.monotonic()
    done_at = None
    while loop.used and not exchange.gone and time.monotonic() - began < SECONDS_MAX:
        loop.step(20)
        if done_at is None and exchange.done():
            done_at = time.monotonic()
        # The passive end goes on answering until the active one has said that it is done.
        if done_at is not None and active:
            exchange.closed = True
    good = exchange.identical and exchange.received_count == size and done_at is not None and link.session_count == 1
    counts = dict(link.counters)
    print(
        json.dumps(
            {
                "good": good,
                "received": exchange.received_count,
                "identical": exchange.identical,
                "sessions": link.session_count,
                "seconds": round((done_at or time.monotonic()) - began, 3),
                "counters": counts,
                "bad": counts["damaged"],
            }
        )
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
