"""The board's loop with MicroPython's heap locked: when there is nothing to do, and while messages go through it.

Streams and poll are doubles here (the WebAssembly build has no sockets): octets that wait, and a list. What they make themselves is taken
before.
"""

import gc
import sys

import micropython
from device_heap_lock import ACK, DURABLE_QUEUE, OPENING, PUBLISH, allocates, method_frame, persistent

from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.core.recovery.opening import make_durable
from leveret.core.serial_link.link import Link
from leveret.firmware import rounds
from leveret.firmware.rounds import Rounds

WORD = 8 if sys.maxsize > 0x7FFFFFFF else 4
MESSAGES = 50


class Clock:
    """Fifty milliseconds pass between two looks: rules of queues and ticks of endpoints come to their turns."""

    ms = 0

    def now_ms(self):
        self.ms = (self.ms + 50) & 0x3FFFFFFF
        return self.ms

    def since_2020(self):
        return 200000000 + self.ms // 1000


class Poll:
    """What `ipoll` gives: the streams that have octets."""

    def __init__(self):
        self.there = []

    def register(self, pollable, flags):
        self.there.append((pollable, rounds.IN))

    def unregister(self, pollable):
        self.there = [each for each in self.there if each[0] is not pollable]

    def modify(self, pollable, flags):
        pass

    def ipoll(self, wait_ms):
        return self.there


class Stream:
    """Octets to be read from `given`, up to `size`; what is written is counted."""

    name = "double"

    def __init__(self, room=1024):
        self.pollable = self
        self.given = bytearray(room)
        self.size = self.taken = self.written = 0
        self.kept = None  # a bytearray that keeps what is written
        self.kept_size = 0

    def put(self, octets):
        for index in range(len(octets)):
            self.given[index] = octets[index]
        self.size = len(octets)
        self.taken = 0

    def read_into(self, view):
        count = 0
        while count < len(view) and self.taken < self.size:
            view[count] = self.given[self.taken]
            self.taken += 1
            count += 1
        return count or None

    def write_part(self, octets, at, size):
        self.written += size
        if self.kept is not None:
            for octet in range(at, at + size):
                self.kept[self.kept_size] = octets[octet]
                self.kept_size += 1
        return size

    def close(self):
        pass


def made():
    """(loop, broker): nobody is connected."""
    rounds.clock = Clock()
    broker = Broker(Limits(**BOARD), b"rounds")
    loop = Rounds(3, broker)
    loop.poller = Poll()
    loop.wait = loop.poller.ipoll
    return loop, broker


CONSUME = method_frame(1, 60, 20, b"\x00\x00\x05queue\x01c\x00\x00\x00\x00\x00")


CONFIRM_SELECT = method_frame(1, 85, 10, b"\x00")


def connected(loop, broker, *more):
    """A stream whose client has logged in and consumes from the queue that it publishes to, and has sent `more`."""
    stream = Stream()
    loop.add(stream, Connection(broker))
    for octets in OPENING + (CONSUME,) + more:
        before = stream.written
        stream.put(octets)
        while stream.written == before:
            loop.step(0)
    return stream


def idle(loop):
    for _ in range(100):
        loop.round(0)


def test_rounds_without_anything_to_do_take_no_heap():
    loop, broker = made()
    connected(loop, broker)
    loop.add(Stream(), Link(lambda: None, 7))
    idle(loop)
    assert not allocates(idle, loop)
    assert broker.counters["internal_errors"] == 0 and len(loop.used) == 2


def locked(loop):
    """A step of the loop with the heap locked: whatever asks for some is an error of the broker's own."""

    def step():
        micropython.heap_lock()
        try:
            loop.step(0)
        finally:
            micropython.heap_unlock()

    return step


def nothing_is_left(loop, broker, exchange):
    """`exchange(step)` moves a message with its acknowledgement, MESSAGES times with the heap locked."""
    exchange(lambda: loop.step(0))  # the first of a route is looked at, and remembered
    step = locked(loop)
    for _ in range(MESSAGES):
        exchange(step)
    broker.fold_counters()
    assert broker.counters["internal_errors"] == 0, "a message takes heap on its way"
    assert broker.counters["delivered"] == MESSAGES + 1


def over_a_socket(*more):
    """Messages over a socket, with the heap locked."""
    loop, broker = made()
    stream = connected(loop, broker, *more)

    def exchange(step):
        for octets in (PUBLISH, ACK):
            stream.put(octets)
            step()
            step()

    nothing_is_left(loop, broker, exchange)
    return loop, broker, stream


def test_a_message_over_a_socket_takes_no_heap():
    over_a_socket()


def test_a_message_that_is_confirmed_takes_no_heap():
    over_a_socket(CONFIRM_SELECT)


class Sink:
    """A store that counts what it is given, and makes nothing itself."""

    def __init__(self):
        self.sizes = {}
        self.syncs = 0

    def numbers(self):
        return sorted(self.sizes)

    def append(self, number, octets):
        self.sizes[number] = self.sizes.get(number, 0) + len(octets)

    def sync(self, number):
        self.syncs += 1

    def remove(self, number):
        del self.sizes[number]


def left_by_a_kept_message(mode, batch_ms):
    """Octets of heap that MESSAGES persistent messages leave, each confirmed, delivered and acknowledged, and the records for them."""
    loop, broker = made()
    store = Sink()
    make_durable(broker, store, mode, batch_ms, 8192, 1 << 20, 1 << 22)
    stream = Stream()
    loop.add(stream, Connection(broker))
    for octets in OPENING[:-1] + (DURABLE_QUEUE, CONSUME, CONFIRM_SELECT):
        before = stream.written
        stream.put(octets)
        while stream.written == before:
            loop.step(0)
    publish = persistent(PUBLISH)

    def exchange():
        for octets in (publish, ACK):
            stream.put(octets)
            for _ in range(4):
                loop.step(0)

    for _ in range(MESSAGES):
        exchange()
    gc.collect()
    gc.disable()
    before, syncs = gc.mem_alloc(), store.syncs
    for _ in range(MESSAGES):
        exchange()
    left = gc.mem_alloc() - before
    gc.enable()
    broker.fold_counters()
    assert broker.counters["internal_errors"] == 0 and broker.counters["delivered"] == 2 * MESSAGES
    return left, store.syncs - syncs


def test_a_message_that_is_kept_leaves_less_than_200_octets():
    """core/log/segments.py: what its CRC is made of and what the store is given are views, and a CRC of 32 bits is an object of heap."""
    for mode, batch_ms in (("each", 0), ("batch", 1000)):
        left, records = left_by_a_kept_message(mode, batch_ms)
        assert 0 < records <= 2 * MESSAGES and left <= MESSAGES * 48 * WORD, (mode, left, records)


def in_pieces(*ends):
    """Messages in pieces that end there, the first with what is made once, the others with the heap locked."""
    loop, broker, stream = over_a_socket()
    step = locked(loop)
    cuts = [PUBLISH[start:end] for start, end in zip((0,) + ends, ends + (len(PUBLISH),))]
    for piece in cuts:
        stream.put(piece)
        loop.step(0)
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    for _ in range(MESSAGES):
        for piece in cuts:
            stream.put(piece)
            step()
    left = gc.mem_alloc() - before
    gc.enable()
    broker.fold_counters()
    return left, broker


def test_reads_behind_the_beginning_of_a_frame_take_no_heap():
    for ends in ((9,), (1, 2, 3, 40, 77, 100), (115,)):
        left, broker = in_pieces(*ends)
        assert left == 0 and broker.counters["internal_errors"] == 0
        assert broker.counters["delivered"] == 2 * MESSAGES + 2


def test_a_read_behind_more_than_three_eighths_of_a_buffer_takes_one_view():
    loop, broker, stream = over_a_socket()
    frame = method_frame(1, 50, 10, bytes(600))
    stream.put(frame[:400])
    loop.step(0)
    stream.put(frame[400:450])
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    loop.step(0)
    left = gc.mem_alloc() - before
    gc.enable()
    assert left == 4 * WORD and loop.endpoints[0].receive.available() == 450


class Far:
    """The client at the other end of a line: what it is to send, and how much it has heard."""

    closed = False

    def __init__(self):
        self.room = memoryview(bytearray(1024))
        self.waiting = memoryview(b"")
        self.heard = 0

    def writable(self):
        return self.room

    def received(self, size):
        self.heard += size

    def pending(self):
        return self.waiting

    def sent(self, size):
        self.waiting = self.waiting[size:]

    def tick(self, now):
        pass


class Line:
    """The board's end of a serial line in a loop, and the other end, which a client has."""

    def __init__(self, loop, broker):
        self.far = Far()
        self.peer = Link(lambda: self.far, 9, True, 1024, 512)
        self.stream = Stream(2048)
        self.stream.kept = bytearray(4096)
        loop.add(self.stream, Link(lambda: Connection(broker), 7, False, 1024, 512))

    def carry(self, step):
        """Octets go both ways until nothing moves."""
        for _ in range(20):
            self.peer.tick(rounds.clock.ms)
            sent = 0
            octets = self.peer.pending()
            if len(octets):
                sent = len(octets)
                self.stream.put(octets)
                self.peer.sent(sent)
            step()
            size, self.stream.kept_size = self.stream.kept_size, 0
            at = 0
            while at < size:
                view = self.peer.writable()
                count = min(len(view), size - at)
                view[:count] = memoryview(self.stream.kept)[at : at + count]
                self.peer.received(count)
                at += count
            if not sent and not size:
                return


def test_a_message_over_a_serial_line_takes_no_heap():
    loop, broker = made()
    line = Line(loop, broker)

    def say(octets, step):
        line.far.waiting = memoryview(octets)
        line.carry(step)

    def step():
        loop.step(0)

    for _ in range(10):
        line.carry(step)
    for octets in OPENING + (CONSUME,):
        heard = line.far.heard
        say(octets, step)
        assert line.far.heard > heard

    def exchange(step):
        say(PUBLISH, step)
        say(ACK, step)

    nothing_is_left(loop, broker, exchange)


def test_the_lock_would_notice_a_view():
    loop, broker = made()
    stream = connected(loop, broker)
    stream.put(PUBLISH)
    micropython.heap_lock()
    micropython.heap_unlock()
    assert allocates(memoryview, stream.given)
