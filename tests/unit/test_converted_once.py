"""A message is converted once for all receivers of another version (core/broker/crossing.py: once), within the room that results have."""

from every_version import LIMITS, World
from full_messages import KEY, MESSAGES, data, list_1_0, string

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


def test_results_take_the_room_that_they_have_and_no_more():
    chosen, engine.chosen = engine.chosen, engine.Plain  # C converts these itself, for each receiver
    try:
        world = fan_out("0-9-1")
    finally:
        engine.chosen = chosen
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
