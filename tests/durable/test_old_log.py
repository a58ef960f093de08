"""A log written by a broker of version 1 of the format (log_of_version_1.json: segments in hex) opens, and is written on in this version's.

What is in it: queue q with 40 numbered messages, of which 20 were delivered and every second of those acknowledged, and one that an
x-delayed-message exchange keeps for an hour; a queue with priorities and a stream with every fourth number.
"""
import json
import os

from leveret.core import log
from peer import Peer, content
from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker

HERE = os.path.dirname(os.path.abspath(__file__))


def old_store():
    """The store with the old log."""
    store = MemoryStore()
    with open(os.path.join(HERE, "log_of_version_1.json"), encoding="utf-8") as file:
        store.segments = {int(number): bytes.fromhex(octets) for number, octets in json.load(file).items()}
    store.durable = dict(store.segments)
    return store


def version_of(octets):
    """The version in the head of a segment."""
    return int.from_bytes(octets[17:19], "big")


def test_a_log_of_version_1_opens_and_goes_on_in_this_version():
    store = old_store()
    assert {version_of(octets) for octets in store.segments.values()} == {1}
    broker, report = durable_broker(store, segment_size=2048)
    assert "recovered 51 messages in 3 queues and streams, 10 settlements" in report, report
    assert len(broker.waiting.heap) == 1
    stream = broker.queues["s"]
    assert (stream.first_offset, stream.next_offset()) == (0, 10)
    peer = Peer(broker)
    peer.give(content(1, "", "q", b"of today", PERSISTENT))
    broker.run()
    assert version_of(store.segments[max(store.segments)]) == log.VERSION == 2
    again, _ = durable_broker(store.cut(), segment_size=2048)
    left = [number for number in range(40) if number >= 20 or number % 2]
    reader = Peer(again)
    assert bodies(reader, "q") == [b"%06d" % number for number in left] + [b"of today"]
    levels = sorted(range(0, 40, 4), key=lambda number: -(number % 3))
    assert bodies(reader, "levels") == [b"%06d" % number for number in levels]
