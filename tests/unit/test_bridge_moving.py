"""That "running" means moving, and what stops a bridge (ports/bridge): with times that are given, not waited for."""

from bridge_world import World, now_ms

from leveret.core.amqp_0_9 import method
from leveret.core.amqp_0_9.spec_0_9_1 import METHODS
from leveret.core.bridge.mover import Delivery
from leveret.core.outcomes import NO_ROOM
from leveret.core.shim import after
from leveret.ports.bridge.settings import STABLE_MS


def connected(**given):
    """A World whose bridge is at work."""
    world = World(**given)
    world.prepare()
    world.start()
    world.until(lambda: world.bridge.target.ready and world.bridge.source.ready, "connected")
    return world


def test_the_shortest_pause_comes_back_after_a_stable_minute_and_not_before():
    assert STABLE_MS == 60000
    target = connected(reconnect_seconds_min=0.02, reconnect_seconds_max=5).bridge.target
    began = target._ready_at
    target._backoff._pause_ms = 400
    target.tend(None, after(began, 60000))
    assert target._backoff._pause_ms == 400
    target.tend(None, after(began, 60001))
    assert target._backoff._pause_ms == 20


def test_a_message_after_a_long_silence_is_no_stall():
    world = connected(stall_seconds=30)
    bridge = world.bridge
    bridge._moved_at = after(now_ms(), -29000)  # nothing has come for so long, because there was nothing
    world.turn()
    take = bridge.target.confirmed
    bridge.target.confirmed = lambda *given: None  # the answer takes its time
    world.publish([0])
    world.until(lambda: bridge.mover.flight, "on its way")
    for _ in range(20):
        world.turn()
    assert bridge.state == ("running", "") and bridge.counters["stalls"] == 0, bridge.status()
    bridge._moved_at = after(now_ms(), -5001)
    assert bridge.state[0] == "stalled" and bridge.state[1].startswith("1 messages and no confirm for 5.")
    bridge.target.confirmed = take
    bridge._moved_at = after(now_ms(), -30000)
    world.until(world.moved(1), "connected anew, and sent")
    assert bridge.counters["stalls"] == 1 and [each[:2] for each in world.arrived()][0] == (0, 0)


def test_a_source_that_brings_nothing_of_what_it_has_is_stalled_and_connected_anew():
    world = connected(stall_seconds=30)
    bridge = world.bridge
    bridge.source.delivered = lambda message: message.channel.number == 3 and bridge.source.keeper.delivered(message)
    world.publish(range(5))
    world.until(lambda: bridge.source.backlog()["backlog"] == 5, "they are known of")
    bridge._moved_at = after(now_ms(), -6000)
    assert bridge.state[0] == "stalled" and bridge.state[1].startswith("there are messages and none has come for 6."), bridge.state
    assert bridge.status()["state"] == "stalled"
    del bridge.source.delivered
    bridge._moved_at = after(now_ms(), -30000)
    world.until(world.moved(5), "all are there")
    assert bridge.counters["stalls"] == 1 and [line for line in world.said if "none has come for 30 s" in line]


def test_a_broker_that_has_no_room_to_move_messages_says_so():
    world = World()
    world.prepare()
    world.publish(range(5))
    put = world.here.put
    outbox = "b.outbox"
    world.here.put = lambda message, targets, *given: (
        NO_ROOM if outbox in [queue.name for queue in targets] else put(message, targets, *given)
    )
    bridge = world.start()
    world.until(lambda: bridge.source.ready and bridge.target.ready and bridge.source.backlog()["backlog"] == 5, "they are known of")
    bridge._moved_at = after(now_ms(), -6000)
    assert bridge.state[0] == "stalled" and "no room to move them from 'q' to 'b.outbox': raise disk_max" in bridge.state[1], bridge.state
    world.here.put = put
    world.until(world.moved(5), "all are there")


def test_channel_flow_stops_it_is_counted_and_said_and_answered():
    world = connected()
    bridge = world.bridge
    connection = bridge.target.pipe.connection
    for active in (False, True, False):
        octets = method.encode(method.named(METHODS, "channel_flow"), 1, (active,))
        connection.send.write(octets)
        answers = []
        session_answer = bridge.target.client.answer
        bridge.target.client.answer = answers.append
        for _ in range(5):
            world.turn()
        bridge.target.client.answer = session_answer
        assert answers == [method.encode(method.named(METHODS, "channel_flow_ok"), 1, (active,))]
    world.publish(range(10))
    for _ in range(20):
        world.turn()
    status = bridge.status()
    assert (status["state"], status["reason"], status["flow_stopped"], status["bridged"]) == ("blocked", "channel.flow", 2, 0), status
    assert [line for line in world.said if "takes no messages for now: channel.flow" in line]
    connection.send.write(method.encode(method.named(METHODS, "channel_flow"), 1, (True,)))
    world.until(world.moved(10), "all are there")


def test_when_a_long_stop_ends_live_messages_go_ahead_of_what_has_gathered():
    world = connected(replay_messages_per_second=10)
    bridge = world.bridge
    bridge.target.client.blocked = True
    bridge.target.blocked("low on memory")
    world.publish(range(300))
    world.until(lambda: bridge.source.facts["next"] == 300, "it has gathered")
    bridge.target.client.blocked = False
    bridge.target.unblocked()
    world.until(lambda: bridge.source.live == 2, "the live lane is there")
    assert bridge.state == ("running", "live ahead of a replay")
    world.publish(range(300, 310))
    world.until(lambda: 309 in [each[1] for each in seen(world)], "the newest is there")
    assert len(world.seen) < 200
    bridge.mover.messages_bucket.rate = 0
    world.until(world.moved(310), "all are there")
    assert sorted({each[:2] for each in seen(world)}) == [(number, number) for number in range(310)]


def seen(world):
    """All that has arrived so far."""
    if not hasattr(world, "seen"):
        world.seen = []
    world.seen += world.arrived()
    return world.seen


def test_a_replay_obeys_its_octets_too():
    world = World(replay_octets_per_second=1000)
    mover = world.start().mover
    mover.live = True
    for number in range(10):
        mover.record(1, number, b"", b"k", b"\x00\x00", bytes(400), Delivery(1, number + 1, 1, number, 1))
    sent = []

    def put(record):
        sent.append(record.number)
        return len(sent)

    mover.publish(0, put)
    assert sent == [0, 1, 2]  # a second's worth, the last one on credit
    mover.publish(100, put)
    assert sent == [0, 1, 2]
    mover.publish(300, put)
    assert sent == [0, 1, 2, 3]
    mover.record(0, 10, b"", b"k", b"\x00\x00", bytes(400), Delivery(2, 11, 1, 10, 1))
    mover.publish(301, put)
    assert sent == [0, 1, 2, 3, 10] and mover.counters["replayed"] == 4
    mover.live = False
    mover.publish(302, put)
    assert sent[5:] == [4, 5, 6, 7, 8, 9]
