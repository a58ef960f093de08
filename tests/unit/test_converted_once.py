"""A message is converted once for all receivers of another version (core/broker/crossing.py: once), within the room that results have."""

from every_version import LIMITS, World
from full_messages import (
    KEY,
    MESSAGES,
    NULL,
    PROPERTIES,
    SECONDS,
    data,
    delivery_10,
    list_1_0,
    listed,
    map_10,
    message_10,
    reply_to_10,
    short,
    sized,
    string,
)

from leveret.core.amqp_0_9 import exact as exact_0_9
from leveret.core.amqp_0_10 import exact as exact_0_10
from leveret.core.amqp_1_0 import exact as exact_1_0
from leveret.core.broker import crossing, engine

SOURCES = (("0-9-1", exact_0_9), ("0-10", exact_0_10), ("1.0", exact_1_0))
QUEUES = 5


class Counted:
    """Counts the calls of a source's `exact` within a `with`."""

    def __init__(self, source):
        self.source = source
        self.calls = 0

    def __enter__(self):
        self.exact = self.source.exact
        self.source.exact = self.count
        return self

    def __exit__(self, *_):
        self.source.exact = self.exact

    def count(self, *given):
        self.calls += 1
        return self.exact(*given)


def fan_out(target):
    """A World whose messages go to as many queues, each with a receiver of a version."""
    world = World()
    peer, owner = world.peer(target), world.peer("0-8")
    for number in range(QUEUES):
        name = "q%d" % number
        owner.ask("queue_declare", "queue_declare_ok", 0, name, False, False, False, False, False, {})
        owner.ask("queue_bind", "queue_bind_ok", 0, name, "amq.direct", KEY, False, {})
        if target == "0-9-1":
            peer.consume(name, tag=name, no_ack=True)
        elif target == "0-10":
            peer.subscribe(name, name, 1000)
        else:
            peer.receiver("/queues/" + name, name=name, handle=number + 1, credit=1000, snd_settle_mode=1)
    return world


def test_a_message_is_converted_once_for_all_receivers_of_a_version():
    for source, module in SOURCES:
        for target, _ in SOURCES:
            if target == source:
                continue
            world = fan_out(target)
            with Counted(module) as counted:
                world.publish(source, MESSAGES[source][0])
                got = world.received(target)
            assert len(got) == QUEUES and counted.calls == 1, (source, target, len(got), counted.calls)
            assert len({each[0] for each in got}) == 1, (source, target)


def test_messages_that_differ_in_anything_are_not_taken_for_each_other():
    """1.0: bodies of several forms behind the same properties; the receivers of 0-9-1 are told the type of each."""
    world, fresh = fan_out("0-9-1"), {}
    for each in MESSAGES["1.0"]:
        world.publish("1.0", each)
        alone = World()
        alone.publish("1.0", each)
        alone.subscribe("0-9-1")
        fresh[each] = alone.received("0-9-1")[0]
        for got in world.received("0-9-1"):
            assert got == fresh[each], each
    assert len(set(fresh.values())) > 1


def in_python(make, *given):
    """A World that is made so, whose broker converts in Python: C converts for each receiver itself."""
    chosen, engine.chosen = engine.chosen, engine.Plain
    try:
        return make(*given)
    finally:
        engine.chosen = chosen


def with_ids(source, correlation, message_id):
    """A message with ids (octets), whose properties are equal else."""
    if source == "0-9-1":
        return listed(PROPERTIES, {"correlation-id": correlation, "message-id": message_id, "reply-to": "answers"}, None), b"body"
    if source == "0-10":
        headers = map_10([short("x-message-id") + b"\x95" + sized(2, message_id)])
        return delivery_10(60000, SECONDS) + message_10(None, correlation, reply_to_10("", "answers"), None, None, headers), b"body"
    return list_1_0(0x73, [string(message_id.decode()), NULL, NULL, NULL, NULL, string(correlation.decode())]), data(b"body")


def test_messages_that_differ_in_their_ids_alone_are_converted_by_the_first_two():
    """core/broker/shapes.py; ids of other forms and sizes are converted anew, and each is what it is alone."""
    uuids = b"00010203-0405-0607-0809-0a0b0c0d0e0f", b"urn:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f"
    plain = [(b"c-%03d" % number, b"m-%04d" % number) for number in range(5)]
    others = [
        (b"c-1\x00\x00", b"m-0001"),
        (b"c-1\xc3\xa4", b"m-0001"),
        (b"c" * 255, b"m" * 127),
        (b"d" * 255, b"n" * 127),
        (uuids[0], uuids[0]),
        (uuids[0], b"-" * 36),
        (uuids[0], b"x" * 36),
        (uuids[0], b"y" * 36),
        (uuids[0], uuids[0]),
        (uuids[0][:-1] + b"0", uuids[0]),
        (uuids[1], uuids[1]),
        (b"c" * 45, b"m" * 45),
        (b"d" * 45, b"n" * 45),
        (uuids[1], b"m" * 45),
    ]
    for source, module in SOURCES:
        for target, _ in SOURCES:
            if target == source:
                continue
            world = in_python(World)
            world.subscribe(target)
            with Counted(module) as counted:
                for ids in plain:
                    world.publish(source, with_ids(source, *ids))
                got = world.received(target)
            assert counted.calls == 2 and len(got) == len(plain), (source, target, counted.calls)
            messages = [with_ids(source, *ids) for ids in others + plain[::-1] + others]
            for message in messages:
                alone = World()
                alone.publish(source, message)
                alone.subscribe(target)
                fresh = alone.received(target)
                world.publish(source, message)
                assert world.received(target) == fresh, (source, target, message)


def test_results_take_the_room_that_they_have_and_no_more():
    world = in_python(fan_out, "0-9-1")
    room = crossing.RESULTS * LIMITS["properties_size_max"]
    for number in range(20):
        world.publish("1.0", (list_1_0(0x73, [string("id%04d" % number)]), data(b"body")))
        assert len(world.received("0-9-1")) == QUEUES
        results = world.broker.results
        assert results.room == room and results.taken <= room
        taken = [len(key[2]) + len(made) + crossing.RESULT_SIZE for key, made in results.by_key.items()]
        assert sum(taken) == results.taken and results.by_key
    results.keep("large", b"x" * room, 1)
    assert "large" not in results.by_key, "one that is larger than the room is not kept"
