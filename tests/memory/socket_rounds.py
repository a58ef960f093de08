"""Inside a `micropython` binary: the board's loop over real sockets with its heap locked (tests/micropython/test_no_heap_over_sockets.py).

    micropython socket_rounds.py FOLDER CASE...

A client of this process logs in at a listener of the loop, and consumes from the queue that it publishes to. Prints "CASE OCTETS" for each:
octets of heap that a message leaves, 0 where the loop did not ask for any at all (the heap was locked all the while). The clock's seconds
are a board's, small numbers: this port's own are a float, once a second. The cases:

    plain      a message and its acknowledgement, each in a segment of its own
    confirms   the same with confirms
    pieces     a message in pieces that end within its frames, and its acknowledgement likewise
    idle       rounds without anything to do
    log        persistent messages with confirms, each in the log before it is confirmed (a folder, `sync` each)
"""

import gc
import select
import socket
import sys

import micropython
from device_heap_lock import ACK, DURABLE_QUEUE, OPENING, PUBLISH, method_frame, persistent

from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.core.shim import elapsed
from leveret.firmware import keeping
from leveret.firmware.rounds import Rounds
from leveret.ports import clock

MESSAGES = 200
WARM_MS = 1500  # what a route, a tick, and the first turn of rules after a second make lasts
STEPS_MAX = 2000
PIECES = (1, 9, 40, 77, 130)  # octets of a message's 135 at which a piece ends
CONSUME = method_frame(1, 60, 20, b"\x00\x00\x05queue\x01c\x00\x00\x00\x00\x00")
CONFIRM_SELECT = method_frame(1, 85, 10, b"\x00")


def cut(octets):
    """Its pieces."""
    ends = [end for end in PIECES if end < len(octets)] + [len(octets)]
    return [octets[start:end] for start, end in zip([0] + ends, ends)]


class Wire:
    """A loop with its listener, and a client of it, logged in."""

    def __init__(self, *more, folder=None):
        self.broker = Broker(Limits(**BOARD), b"sockets")
        self.loop = Rounds(3, self.broker)
        opening = OPENING
        if folder is not None:
            self.store, _ = keeping.keep(self.broker, {"kind": "folder", "path": folder})
            opening = OPENING[:-1] + (DURABLE_QUEUE,)
        port = 20000
        while True:
            try:
                self.loop.listen("127.0.0.1", port, self.admit)
                break
            except OSError:
                port += 1
        self.client = socket.socket()
        self.client.connect(socket.getaddrinfo("127.0.0.1", port)[0][-1])
        self.client.setblocking(False)
        self.client.setsockopt(6, 1, 1)  # TCP_NODELAY: each piece is a segment
        self.poller = select.poll()
        self.poller.register(self.client, select.POLLIN)
        self.inside = bytearray(4096)
        for octets in opening + (CONSUME,) + more:
            self.write(octets)
            self.read()

    def admit(self, stream):
        return Connection(self.broker, stream.name, True)

    def step(self):
        self.loop.step(0)

    def idle(self):
        for _ in range(MESSAGES):
            self.step()

    def write(self, octets):
        if self.client.write(octets) != len(octets):
            raise RuntimeError("a socket's buffer is full")

    def read(self):
        """Rounds until the client has been sent something: octets of it."""
        for _ in range(STEPS_MAX):
            self.step()
            size = self.client.readinto(self.inside)
            if size:
                return size
        raise RuntimeError("nothing came")


class Exchange:
    """A message in the pieces `publish`, its delivery (`replies` octets come back in all), its acknowledgement in the pieces `ack`."""

    def __init__(self, wire, publish, ack):
        self.wire, self.publish, self.ack = wire, publish, ack
        self.replies = 0

    def carry(self):
        wire = self.wire
        left = self.replies
        for piece in self.publish:
            wire.write(piece)
            wire.step()
        if left == 0:
            self.replies = wire.read()
            for _ in range(50):
                wire.step()
                self.replies += wire.client.readinto(wire.inside) or 0
        while left > 0:
            left -= wire.read()
        for piece in self.ack:
            wire.write(piece)
            wire.step()
        wire.step()

    def again(self):
        for _ in range(MESSAGES):
            self.carry()


def locked(call):
    """A call with the heap locked: MemoryError where it asks for some outside the loop, which counts what is asked for within."""
    micropython.heap_lock()
    try:
        call()
    finally:
        micropython.heap_unlock()


def garbage(call):
    """Octets of heap that a call of MESSAGES messages leaves, a message."""
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    call()
    octets = gc.mem_alloc() - before
    gc.enable()
    return (octets + MESSAGES - 1) // MESSAGES


def warm(call):
    """Call it for WARM_MS: how often it was called."""
    began = clock.now_ms()
    count = 0
    while elapsed(clock.now_ms(), began) < WARM_MS:
        call()
        count += 1
    return count


def measured(case, folder):
    """Octets that a message of a case leaves."""
    wire = Wire(*((CONFIRM_SELECT,) if case in ("confirms", "log") else ()), folder=folder if case == "log" else None)
    if case == "idle":
        warm(wire.idle)
        locked(wire.idle)
        return 0
    publish = persistent(PUBLISH) if case == "log" else PUBLISH
    pieces = case == "pieces"
    exchange = Exchange(wire, cut(publish) if pieces else [publish], cut(ACK) if pieces else [ACK])
    before = warm(exchange.again)
    octets = garbage(exchange.again)
    if octets == 0:
        locked(exchange.again)
    wire.broker.fold_counters()
    count = (before + (2 if octets == 0 else 1)) * MESSAGES
    counters = wire.broker.counters
    if counters["internal_errors"] or counters["delivered"] != count:
        raise RuntimeError("%s: %d internal errors, %d of %d delivered" % (case, counters["internal_errors"], counters["delivered"], count))
    return octets


if __name__ == "__main__":
    clock.since_2020 = lambda: 200000000 + clock.now_ms() // 1000
    for name in sys.argv[2:]:
        print(name, measured(name, sys.argv[1]))
