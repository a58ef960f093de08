"""A broker that is full to the last block still has its bridge drain it: that is when a bridge is needed (core/memory/tables.py, lend)."""

from bridge_world import World
from peer import Peer

from leveret.core.limits import BOARD
from leveret.core.memory import layout

QUEUES = ("f0", "f1", "f2", "f3", "f4", "f5")


def tight(**more):
    """A board's memory, with places for those who fill it."""
    values = {name: BOARD[name] for name in ("management_size_max", "content_size_max", "message_count_max", "entry_count_max")}
    values.update(connection_count_max=16, arena_size=24576)
    values.update(more)
    return values


def fill(broker, queue, size):
    """A publisher of a queue goes on until it is not read any more; what it has sent."""
    peer = Peer(broker)
    held, count = len(broker.held), 0
    while len(broker.held) == held:
        peer.publish(queue, b"%05d" % count + bytes(size))
        broker.run()
        count += 1
        assert count < 1000
    return count


def is_full(broker, size):
    """Nothing is left of blocks (for a message of `size` octets), messages or entries."""
    state = broker.tables.state
    return (
        state[layout.POOL_BLOCKS + 2] < broker.tables.blocks_for(size + 8)
        or state[layout.POOL_MESSAGES + 2] < 1
        or state[layout.POOL_ENTRIES + 2] < 1
    )


def drain_a_full_one(size, others, room, **given):
    """Queue q is full, then others become so; what is in q goes upstream, its publisher goes on, and the others keep what they have."""
    world = World(room=room, **given)
    world.prepare()
    for queue in others:
        world.local.declare(queue, durable=True)
    count = fill(world.here, "q", size)
    for queue in others:
        fill(world.here, queue, size)
    assert is_full(world.here, size)
    kept = [world.here.queues[queue].message_count() for queue in others]
    world.start()
    world.until(world.moved(count), "all of q is upstream")
    assert [each[1] for each in world.arrived()] == list(range(count))
    assert world.bridge.status()["state"] == "running"
    assert [world.here.queues[queue].message_count() >= before for queue, before in zip(others, kept)] == [True] * len(others)
    return world


def test_a_full_arena():
    for size in (10, 200):
        drain_a_full_one(size, QUEUES, tight(message_count_max=2048, entry_count_max=2048))


def test_a_message_that_is_larger_than_the_send_buffer_and_no_room_for_it():
    drain_a_full_one(3000, QUEUES[:3], tight(arena_size=32768))


def test_no_messages_and_no_places_in_queues_left():
    drain_a_full_one(10, QUEUES, tight(arena_size=1 << 20))
    drain_a_full_one(10, QUEUES, tight(arena_size=1 << 20, message_count_max=512, entry_count_max=256))


def test_the_management_answers_in_a_full_broker_and_its_spare_room_comes_back():
    world = drain_a_full_one(200, QUEUES, tight(message_count_max=2048, entry_count_max=2048))
    tables = world.here.tables
    state = tables.state
    for queue in ("q", "b.outbox") + QUEUES:
        world.here.queues[queue].purge()
    world.until(lambda: not world.here.held, "those who waited have published")
    for queue in QUEUES:
        world.here.queues[queue].purge()
    world.bridge.stop()
    world.until(lambda: world.bridge.stopped, "stopped")
    limits = world.here.limits
    for pool, most in (
        (layout.POOL_BLOCKS, limits.arena_size // limits.block_size),
        (layout.POOL_MESSAGES, limits.message_count_max),
        (layout.POOL_ENTRIES, limits.entry_count_max),
    ):
        assert 0 < most - state[pool + 2] < 10 or state[pool + 2] == most, (pool, most, state[pool + 2])


def test_a_request_to_the_management_is_all_that_gets_the_spare_room():
    world = World(room=tight(message_count_max=2048, entry_count_max=2048))
    world.local.declare("other")
    for queue in QUEUES:
        world.local.declare(queue)
        fill(world.here, queue, 200)
    held = len(world.here.held)
    peer = Peer(world.here)
    peer.publish("other", bytes(1500))
    world.here.run()
    assert len(world.here.held) == held + 1 and world.here.queues["other"].message_count() == 0
