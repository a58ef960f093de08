"""Upstreams that say nothing at some point: each is given up in time, the state says why, and the next address is taken in turn."""

import select
import socket

import pytest
from faults import FaultyLink
from inside import InsideBridge
from nodes import free_port
from test_bridge import take_all

TUNE, OPEN_OK = 20, 13  # octets of these frames


class Stalls:
    """What FaultyLink draws: nothing comes back any more behind the first `octets`."""

    def __init__(self, octets):
        self.octets = octets

    def randrange(self, bound):
        return 1 if bound == 2 else self.octets

    def choice(self, kinds):
        return "stall"

    def random(self):
        return 1.0


@pytest.fixture
def clean():
    """Things to close after the test."""
    things = []
    yield things
    for thing in things:
        thing.close()


def black_hole(clean):
    """The port of a listener whose queue is full: who connects there gets no answer at all."""
    listening = socket.socket()
    clean.append(listening)
    listening.bind(("127.0.0.1", 0))
    listening.listen(0)
    for _ in range(16):
        waiting = socket.socket()
        clean.append(waiting)
        waiting.setblocking(False)
        waiting.connect_ex(listening.getsockname())
        if not select.select([], [waiting], [], 0.5)[1]:
            return listening.getsockname()[1]
    raise AssertionError("this machine accepts more connections than a listener asks for")


def octets_of_start(port):
    """How long connection.start is, as the broker at `port` sends it."""
    with socket.create_connection(("127.0.0.1", port), 10) as peer:
        peer.sendall(b"AMQP\x00\x00\x09\x01")
        head = peer.recv(7, socket.MSG_WAITALL)
    return 8 + int.from_bytes(head[3:7], "big")


def stalling(leveret, clean, octets):
    """The port of a link that carries so many octets back, and then nothing."""
    link = FaultyLink(leveret.port, Stalls(octets), 1 << 30, 0)
    clean.append(link)
    return link.port


def test_each_silence_on_the_way_to_an_open_connection_has_its_time_and_its_words(leveret, clean):
    start = octets_of_start(leveret.port)
    mute = socket.create_server(("127.0.0.1", 0))
    clean.append(mute)
    nowhere = free_port()
    places = [
        "127.0.0.1:%d" % port
        for port in (
            black_hole(clean),
            mute.getsockname()[1],
            stalling(leveret, clean, start),
            stalling(leveret, clean, start + TUNE),
            stalling(leveret, clean, start + TUNE + OPEN_OK),
            nowhere,
        )
    ]
    words = [
        "not ready in 1 s: " + each
        for each in (
            "no connection was made",
            "connected, but no AMQP broker speaks",
            "it does not answer the log-in",
            "it does not open the virtual host",
            "it does not answer a request",
        )
    ] + ["no AMQP broker answers"]
    inside = InsideBridge(["amqp://" + place for place in places], [b"1", b"2"], connect_seconds=1, reconnect_seconds_min=0.05)
    clean.append(inside)
    inside.until(lambda: inside.bridge.state[1].startswith("until "), "it says until when it waits")
    assert inside.bridge.state[0] == "backing off" and "upstream " + places[0] in inside.bridge.state[1]
    for place, reason in zip(places, words):
        inside.until(lambda: inside.has_said("upstream %s: %s" % (place, reason)), (place, reason))
    tried = [places.index(sentence.split(" ")[1].rstrip(":")) for sentence in inside.said if sentence.startswith("upstream ")]
    assert tried == [number % len(places) for number in range(len(tried))]  # in turn
    link = FaultyLink(leveret.port, None, 0, 0, nowhere)
    clean.append(link)
    inside.bridged(2)
    status = inside.bridge.status()
    assert status["state"] == "running" and status["upstream"] == places[-1] and status["last_error"].startswith("upstream ")
    inside.until(lambda: len(inside.loop.used) == 1, "what was given up holds no slot of the loop, and no socket")
    assert [message.body for message in take_all(leveret.url)] == [b"1", b"2"]


def test_a_link_that_falls_silent_is_noticed_by_its_heartbeat_and_the_other_address_is_taken(leveret, relay, clean):
    link = relay(leveret.port)
    inside = InsideBridge([link.url, leveret.url], heartbeat_seconds=1, connect_seconds=20)
    clean.append(inside)
    inside.until(lambda: inside.bridge.status()["state"] == "running", "at work")
    inside.until(lambda: inside.bridge.target.client.heartbeat_s == 1, "the broker has agreed to a second")
    link.hold()
    inside.until(lambda: inside.has_said("no heartbeat from the broker for 2 s"), "noticed")
    inside.until(lambda: inside.bridge.status()["state"] == "running", "at the other address")
    status = inside.bridge.status()
    assert status["upstream"] == "127.0.0.1:%d" % leveret.port and status["reconnects"] == 1
    inside.publisher.bodies = [b"1"]
    inside.bridged(1)


def test_when_the_first_address_works_again_it_is_taken_in_its_turn(leveret, relay, clean):
    first, second = relay(leveret.port), relay(leveret.port)
    inside = InsideBridge([first.url, second.url])
    clean.append(inside)
    for link, _other in ((first, second), (second, first), (first, second)):
        inside.until(lambda: inside.bridge.status()["state"] == "running", "at work")
        assert inside.bridge.status()["upstream"] in link.url
        link.cut()
        inside.until(lambda: inside.bridge.status()["state"] != "running", "noticed")
    assert inside.bridge.status()["reconnects"] >= 2
