"""Streams over AMQP 1.0 in C and in Python: the same octets to their readers, and the same tables behind them."""

import random

import pytest
from in_form import in_form
from invariants import check
from peer_1_0 import Peer, data, declare, new_broker, performative
from test_same_1_0 import message

from leveret import c_accel
from leveret.core.amqp_1_0 import composites, types
from leveret.core.broker import engine

COUNT = 300  # more than one octet of an offset has


def offset(value):
    return {("symbol", "rabbitmq:stream-offset-spec"): ("described", ("symbol", "rabbitmq:stream-offset-spec"), value)}


def position(text):
    selector = ("symbol", "apache.org:selector-filter:string")
    return {selector: ("described", selector, text)}


FILTERS = {
    "offset": offset("first"),
    "position": position("amqp.annotation.x-opt-offset > '-1'"),
    "behind": offset(("ulong", 250)),
}


def some(chance, number):
    """A message: as nearly all are, or as C leaves it to Python."""
    if number % 3:
        fields = {"durable": chance.choice((None, True)), "ttl": chance.choice((None, 60000))}
        return (composites.write("header", fields) if chance.random() < 0.7 else b"") + data(b"%d" % number * chance.randrange(1, 90))
    return message(chance)


def read(form, filter_, settles, seed):
    """What a reader of a stream gets: (frames, queue, deliveries that it made in C)."""
    with in_form(form):
        broker = new_broker(
            content_size_max=3000,
            properties_size_max=1500,
            receive_buffer_size=8192,
            send_buffer_size=8192,
            frame_size_max=4096,
            message_count_max=2000,
            entry_count_max=4000,
            arena_size=1 << 20,
        )
    declare(broker, "s", {"x-queue-type": "stream"})
    broker.tick(0, 1700000000)
    chance = random.Random(seed)
    peer = Peer(broker, max_frame_size=2048)
    credit = peer.sender("/queues/s", snd_settle_mode=1)
    for number in range(COUNT):
        given = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0, "settled": True}
        peer.give(performative("transfer", 0, some(chance, number), handle=0, **given))
        peer.frames()
    assert credit and broker.queues["s"].message_count() == COUNT
    broker.tick(3000, 1700000003)
    row = peer.connection.session.hot
    made = []
    if row.read_stream is not None:
        quick = row.read_stream
        row.read_stream = lambda *given: made.append(quick(*given)) or made[-1]
    peer.attach("in", 7, True, None, source=("source", {"address": "/queues/s", "filter": filter_}), snd_settle_mode=settles)
    frames, got, window = [], 0, {"incoming_window": 1000}
    while True:
        peer.credit(chance.randrange(1, 60), handle=7, delivery_count=got, next_incoming_id=got, **window)
        came = [each for each in peer.frames() if each[0] != "flow"]
        frames += came
        got += len({each[1]["delivery-id"] for each in came if each[1].get("delivery-id") is not None})
        if not came:
            break
        if not settles and chance.random() < 0.7:
            peer.settle(1, ("accepted", {}), got - chance.randrange(0, 3))
    check(broker)
    queue = broker.queues["s"]
    told = queue.message_count(), queue.unsettled_count()
    return frames, told, sum([each[0] for each in made])


@pytest.mark.parametrize("settles", [0, 1])
@pytest.mark.parametrize("name", sorted(FILTERS))
def test_a_reader_of_a_stream_gets_the_same(name, settles):
    plain = read(engine.Plain, FILTERS[name], settles, 5)
    quick = read(c_accel.Engine, FILTERS[name], settles, 5)
    assert plain[0] == quick[0] and plain[1] == quick[1]
    count = len({each[1]["delivery-id"] for each in plain[0] if each[1]["delivery-id"] is not None})
    assert count == (COUNT - 250 if name == "behind" else COUNT) and plain[2] == 0 and quick[2] > count // 3


def test_numbers_at_the_ends_of_their_encodings():
    """Of offsets, which are longs: two octets, or nine."""
    for name in ("offset", "position"):
        frames = read(c_accel.Engine, FILTERS[name], 1, 5)[0]
        found = []
        for _, _, octets, _ in frames:
            at = 0
            while at < len(octets):
                value, at = types.decode(octets, at, len(octets))
                if value[1] == ("ulong", 0x72):
                    notes = {key[1]: value[2][key] for key in value[2]}
                    found.append(notes["x-stream-offset"])
                    if name == "position":
                        assert notes["x-opt-offset"] == str(found[-1]) and notes["x-opt-sequence-number"] == found[-1]
        assert found == list(range(COUNT))
