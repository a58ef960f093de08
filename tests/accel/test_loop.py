"""How much the port's loop reads of a peer that never stops, before the others have their turn."""
import select
import socket

import pytest

from leveret.ports import clock
from leveret.ports.tcp import Loop
from peer import Peer, content, encoded, new_broker


class Endless:
    """A stream with the same octets over and over; `reads`: how often some were taken."""

    name = "endless"

    def __init__(self, octets):
        self.pollable, self.peer = socket.socketpair()
        self.octets = octets
        self.at = self.reads = 0

    def read_into(self, view):
        whole = self.octets[self.at:] + self.octets * (len(view) // len(self.octets) + 1)
        view[:] = whole[:len(view)]
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
