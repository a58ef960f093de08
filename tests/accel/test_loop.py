"""How much the port's loop reads of a peer that never stops, before the others have their turn."""

import select
import socket

import pytest
from peer import Peer, content, encoded, new_broker

from leveret.core.memory.layout import EPOCH
from leveret.ports import clock
from leveret.ports.sockets import SocketStream
from leveret.ports.tcp import Loop


class Endless:
    """A stream with the same octets over and over; `reads`: how often some were taken."""

    name = "endless"

    def __init__(self, octets):
        self.pollable, self.peer = socket.socketpair()
        self.octets = octets
        self.at = self.reads = 0
        self.noted = []

    def read_into(self, view):
        self.noted.append(("read", len(view)))
        whole = self.octets[self.at :] + self.octets * (len(view) // len(self.octets) + 1)
        view[:] = whole[: len(view)]
        self.at = (self.at + len(view)) % len(self.octets)
        self.reads += 1
        return len(view)

    def write(self, view):
        return len(view)

    def close(self):
        self.pollable.close()
        self.peer.close()


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch):
    """On a busy machine a turn may be over before it has begun."""
    monkeypatch.setattr(clock, "now_ms", lambda: 1000)


def reads_of_one_turn(consumed):
    """How often the loop reads a publisher to a queue with, or without, a consumer before it goes on."""
    broker = new_broker(message_count_max=4096, entry_count_max=4096, arena_size=1 << 20, receive_buffer_size=2048)
    consumer, publisher = Peer(broker), Peer(broker)
    consumer.declare("q")
    if consumed:
        consumer.give(encoded("basic_consume", 1, 0, "q", "c", False, True, False, True, {}))
    loop = Loop(2, broker)
    stream = Endless(content(1, "", "q", b"x" * 20))
    loop.add(stream, publisher.connection)
    loop.read(0, select.POLLIN)
    loop.close()
    return stream.reads


def test_what_has_come_for_a_consumer_goes_out_before_more_is_read():
    assert reads_of_one_turn(True) == 1


def test_what_nobody_waits_for_is_read_on():
    assert reads_of_one_turn(False) > 1


class Noting(SocketStream):
    """One side of a pair of sockets that notes what it writes."""

    def __init__(self, noted):
        near, self.peer = socket.socketpair()
        SocketStream.__init__(self, near, "noting")
        self.noted = noted

    def write(self, view):
        self.noted.append(("write", len(view)))
        return SocketStream.write(self, view)

    def close(self):
        SocketStream.close(self)
        self.peer.close()


def test_an_acknowledgement_lets_messages_out_before_a_publisher_with_much_is_read_and_then_less_of_it():
    broker = new_broker(message_count_max=4096, entry_count_max=4096, arena_size=1 << 20, receive_buffer_size=131072, send_buffer_size=8192)
    publisher, consumer = Peer(broker), Peer(broker)
    consumer.declare("q")
    consumer.give(encoded("basic_qos", 1, 0, 1, False) + encoded("basic_consume", 1, 0, "q", "c", False, False, False, True, {}))
    consumer.take()
    loop = Loop(2, broker)
    much = Endless(content(1, "", "q", b"x" * 1000))
    much.peer.send(b"!")
    little = Noting(much.noted)
    loop.add(much, publisher.connection)
    loop.add(little, consumer.connection)
    loop.step(0)
    assert much.noted[0] == ("read", 131072) and [what for what, _ in much.noted].count("write") == 1
    del much.noted[:]
    little.peer.send(encoded("basic_ack", 1, 1, False))
    loop.step(0)
    loop.close()
    assert much.noted[0][0] == "write" and much.noted[0][1] > 1000
    assert [size for what, size in much.noted if what == "read"] == [65536]


def test_what_is_read_after_an_idle_time_has_come_now_and_not_when_something_happened_last(monkeypatch):
    broker = new_broker()
    at = [5000, EPOCH + 100]
    monkeypatch.setattr(clock, "now_ms", lambda: at[0])
    monkeypatch.setattr(clock, "seconds", lambda: at[1])
    loop = Loop(1, broker)
    reader = Peer(broker)
    reader.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    sensor = Peer(broker)
    near, far = socket.socketpair()
    try:
        loop.add(SocketStream(near, "sensor"), sensor.connection)
        loop.step(0)
        for pause_s in (60, 3600):
            at[0] += pause_s * 1000
            at[1] += pause_s
            far.sendall(content(1, "", "s", b"21.5"))
            before = broker.queues["s"].message_count()
            loop.step(0)
            assert broker.queues["s"].message_count() == before + 1
            assert broker.queues["s"].since(at[1])[1] == before  # who reads from this second on gets it
    finally:
        loop.close()
        far.close()


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="where there is no epoll one step reads all")
def test_one_step_reads_a_bounded_number_of_streams_and_the_others_first_in_the_next():
    """A storm of peers holds the loop for no longer than some of them take, and none is passed over."""

    class Reader:
        closed = False

        def __init__(self):
            self.octets = bytearray(16)
            self.got = 0

        def writable(self):
            return memoryview(self.octets)

        def received(self, count):
            self.got += count

        def pending(self):
            return memoryview(b"")

        def tick(self, now):
            return None

    pairs = [socket.socketpair() for _ in range(150)]
    loop = Loop(len(pairs))
    readers = [Reader() for _ in pairs]
    for (near, _), reader in zip(pairs, readers, strict=True):
        loop.add(SocketStream(near, "one of many"), reader)
    for _ in range(4):
        loop.step(0)  # none of them waits to be asked whether it can be written
    for _, far in pairs:
        far.send(b"octets")
    read = []
    for _ in range(3):
        before = sum(reader.got for reader in readers)
        loop.step(0)
        read.append((sum(reader.got for reader in readers) - before) // 6)
    loop.close()
    for _, far in pairs:
        far.close()
    assert read == [64, 64, 22]
