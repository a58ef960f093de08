"""A whole bridge (ports/bridge) between two brokers in one process, over pipes in memory: the same on CPython and MicroPython."""

from bridge_world import CLOCK, Cable, World, now_ms, seconds

from leveret.core.access.permissions import EVERYTHING, User
from leveret.core.bridge.backoff import Backoff
from leveret.core.bridge.bucket import Bucket
from leveret.ports.bridge.bridge import Bridge
from leveret.ports.bridge.settings import Settings


def test_from_a_queue_and_from_a_stream_in_order_with_numbers():
    for source in ({}, {"stream": "q"}):
        world = World(**source)
        world.prepare()
        world.publish(range(150), app_id="a")
        world.start()
        world.until(world.moved(150), "all are there")
        found = world.arrived()
        assert [each[:2] for each in found] == [(number, number) for number in range(150)]
        gateway = found[0][2]["x-gateway"]
        assert gateway.startswith("gw~") and {each[2]["x-gateway"] for each in found} == {gateway} and found[0][2]["x-hops"] == 1
        assert world.here.queues["q"].message_count() == (150 if source else 0)
        assert {each[2]["x-arrived"][0] for each in found} == {"T"}
        assert max([abs(each[2]["x-arrived"][1] - seconds()) for each in found]) < 120, "the time at which the gateway got it"
        assert world.bridge.status()["state"] == "running"


def test_large_messages_through_small_buffers():
    world = World()
    world.prepare()
    world.publish(range(20), 9000)
    world.start()
    world.until(world.moved(20), "all are there")
    assert [each[1] for each in world.arrived()] == list(range(20))


def test_a_lost_uplink_costs_nothing_and_the_next_place_is_tried():
    world = World()
    world.prepare()
    world.cables.append(Cable(world.there))
    world.publish(range(200))
    world.start()
    world.until(lambda: world.bridge.mover.counters["bridged"] > 50, "at work")
    world.cables[0].pull()
    world.until(world.moved(200), "all are there")
    assert world.cables[1].attempts == 1
    found = world.arrived()
    assert sorted({each[:2] for each in found}) == [(number, number) for number in range(200)]
    assert world.bridge.status()["reconnects"] == 1 and "uplink" not in world.bridge.status()["state"]


def test_while_the_uplink_is_out_the_state_says_until_when():
    world = World(reconnect_seconds_min=0.5, reconnect_seconds_max=0.6)
    world.prepare()
    world.cables[0].pull()
    world.publish(range(30))
    world.start()
    world.until(lambda: world.bridge.state[0] == "backing off", "it waits")
    status = world.bridge.status()
    assert status["reason"].startswith("until ") and "the cable is out" in status["reason"] and "the cable is out" in status["last_error"]
    world.until(lambda: world.bridge.status()["backlog"] == 30, "the backlog is known")


def test_live_messages_go_ahead_of_a_backlog_that_obeys_its_rate():
    for source in ({}, {"stream": "q"}):
        world = World(replay_messages_per_second=10, **source)
        world.prepare()
        world.cables[0].broken = True
        world.start()
        world.publish(range(300))
        world.until(lambda: world.bridge.status()["backlog"] >= 300, "it has gathered")
        world.until(lambda: world.bridge.source.facts["queued"] == 0, "in the outbox")
        world.cables[0].broken = False
        world.until(lambda: world.bridge.source.live == 2, "the live lane is there")
        assert world.bridge.status()["reason"] == "live ahead of a replay"
        world.publish(range(300, 320))
        world.until(lambda: 319 in [each[1] for each in list_of(world)], "the newest is there")
        assert len(world.seen) < 150, len(world.seen)
        before, began = world.bridge.mover.counters["bridged"], CLOCK.ms
        world.bridge.mover.messages_bucket = Bucket(100)
        world.until(world.moved(320), "all are there")
        waiting = 320 - before - world.settings.prefetch - 100  # what is on its way has passed already, and a second's worth goes at once
        assert 10 * waiting < CLOCK.ms - began < 10 * (320 - before), (before, CLOCK.ms - began)
        found = list_of(world)
        assert sorted({each[:2] for each in found}) == [(number, number) for number in range(320)] and len(found) == 320
        live = [each[1] for each in found if each[1] >= 300]
        replayed = [each[1] for each in found if each[1] < 300]
        assert live == sorted(live) and replayed == sorted(replayed)  # each lane in order
        world.until(lambda: world.bridge.source.live == 0, "the lanes are one again")
        world.publish(range(320, 400))
        world.until(world.moved(400), "and it goes on")
        assert [each[1] for each in world.arrived()] == list(range(320, 400))


def list_of(world):
    """Everything that has come so far."""
    if not hasattr(world, "seen"):
        world.seen = []
    world.seen += world.arrived()
    return world.seen


def test_the_uplink_comes_and_goes_while_a_backlog_is_replayed():
    world = World(replay_messages_per_second=100)
    world.prepare()
    world.cables[0].broken = True
    world.start()
    world.publish(range(600))
    number = 600
    for _ in range(4):
        world.until(lambda: world.bridge.source.ready and world.bridge.source.facts["queued"] == 0, "in the outbox")
        world.cables[0].broken = False
        before = world.bridge.mover.counters["bridged"]
        world.until(lambda: world.bridge.mover.counters["bridged"] > before + 30, "some go")
        world.publish(range(number, number + 50))
        number += 50
        for _ in range(20):
            world.turn()
        world.cables[0].pull()
        for _ in range(20):
            world.turn()
    world.cables[0].broken = False
    world.bridge.mover.messages_bucket.rate = 0
    world.until(lambda: world.bridge.source.facts["position"] == number and not world.bridge.mover.records, "all are settled")
    found = list_of(world)
    assert sorted({each[:2] for each in found}) == [(each, each) for each in range(number)]


def test_what_upstream_has_no_queue_for_goes_to_the_refused_queue_and_blocks_nobody():
    world = World(refusal_attempts=3)
    world.prepare(bound=False)
    world.remote.ask("queue_bind", "queue_bind_ok", 0, "readings", "up", "good.#", False, {})
    world.local.ask("exchange_declare", "exchange_declare_ok", 0, "sensors", "fanout", False, False, False, False, False, {})
    world.local.ask("queue_bind", "queue_bind_ok", 0, "q", "sensors", "", False, {})
    for number in range(60):
        world.local.publish("good.x" if number % 3 else "bad.x", b"%05d" % number, exchange="sensors", given={"headers": {"n": number}})
    world.start()
    world.until(lambda: world.bridge.mover.counters["refused"] == 20 and not world.bridge.mover.records, "the bad ones are at the side")
    assert [each[1] for each in world.arrived()] == [number for number in range(60) if number % 3]
    parked = world.arrived("b.refused", world.local)
    assert sorted(each[1] for each in parked) == list(range(0, 60, 3))
    headers = parked[0][2]
    assert headers["x-bridge-tries"] == 3 and "no queue for routing key 'bad.x'" in headers["x-bridge-reason"], headers
    assert headers["x-bridge-routing-key"] == "bad.x" and headers["x-bridge-exchange"] == "sensors" and "n" in headers
    world.until(lambda: world.bridge.status()["backlog"] == 0, "nothing is left")
    status = world.bridge.status()
    assert status["returned"] == 60 and status["refused"] == 20 and status["state"] == "running"


def test_a_refused_message_whose_marks_are_too_long_for_the_broker_here_is_kept_with_fewer_of_them():
    """Properties as long as a stream here takes: 311 to each mark that the bridge adds."""
    for more, marks in ((300, 4), (120, 1), (0, 0)):
        for of in ("queue", "stream"):
            given = {"stream": "q"} if of == "stream" else {}
            world = World(room={"properties_size_max": 512, "send_buffer_size": 2048}, refusal_attempts=1, **given)
            world.prepare(bound=False)
            world.start()
            longest = 512 - 2 - 4 - len("filling") - 1 - 1 - 4 - more  # flags, the table's size; name, kind and size of the text
            world.publish([0, 2], headers={"filling": "x"})
            world.publish([1], headers={"filling": "x" * longest})
            counters = world.bridge.mover.counters
            world.until(lambda: counters["refused"] == 3 and not world.bridge.mover.records, (more, of, counters))
            parked = {number: headers for _, number, headers in world.arrived("b.refused", world.local)}
            assert sorted(parked) == [0, 1, 2], (more, of)
            assert len([name for name in parked[1] if name.startswith("x-bridge-")]) == marks, (more, of, parked[1])


def test_a_message_for_which_upstream_closes_the_channel_holds_up_no_other():
    """Upstream has less room for properties, 311; several were on their way, and only the one is refused."""
    for of in ("queue", "stream"):
        given = {"stream": "q"} if of == "stream" else {}
        world = World(
            room={"properties_size_max": 1024, "receive_buffer_size": 2048, "send_buffer_size": 2048}, refusal_attempts=2, **given
        )
        world.prepare()
        world.start()
        for number in range(9):
            world.publish([number], headers={"filling": "x" * (300 if number == 4 else 3)})
        world.until(lambda: world.bridge.mover.counters["refused"] == 1 and not world.bridge.mover.records, of)
        assert sorted({each[1] for each in world.arrived()}) == [0, 1, 2, 3, 5, 6, 7, 8], of
        headers = world.arrived("b.refused", world.local)[0][2]
        assert "311" in headers["x-bridge-reason"] and headers["x-bridge-tries"] == 2, of
        world.publish(range(20, 60))
        world.until(world.moved(48), of)


def test_commands_come_down():
    world = World(direction="down", queue="commands", exchange="orders", routing_key="here.{key}")
    world.remote.declare("commands", durable=True)
    world.local.ask("exchange_declare", "exchange_declare_ok", 0, "orders", "topic", False, False, False, False, False, {})
    world.local.declare("mine", durable=True)
    world.local.ask("queue_bind", "queue_bind_ok", 0, "mine", "orders", "here.#", False, {})
    for number in range(50):
        world.remote.publish("commands", b"%05d" % number, given={"headers": {"for": "pump"}})
    world.start()
    world.until(world.moved(50), "all are here")
    found = world.arrived("mine", world.local)
    assert [each[1] for each in found] == list(range(50)) and found[0][2] == {"for": "pump", "x-hops": 1}
    assert world.there.queues["commands"].message_count() == 0
    world.until(lambda: "b" in world.here.bridges, "reported")
    assert world.here.bridges["b"][1]["direction"] == "down"


def test_commands_that_nobody_here_wants_are_kept_here():
    world = World(direction="down", queue="commands", exchange="orders", refusal_attempts=2)
    world.remote.declare("commands", durable=True)
    world.local.ask("exchange_declare", "exchange_declare_ok", 0, "orders", "topic", False, False, False, False, False, {})
    for number in range(5):
        world.remote.publish("commands", b"%05d" % number)
    world.start()
    world.until(lambda: world.bridge.mover.counters["refused"] == 5 and not world.bridge.mover.records, "at the side")
    assert sorted(each[1] for each in world.arrived("b.refused", world.local)) == list(range(5))
    world.until(lambda: world.there.queues["commands"].unsettled_count() == 0, "settled upstream")
    assert world.there.queues["commands"].message_count() == 0


def test_a_circle_of_bridges_ends():
    world = World(hops_max=3)
    world.prepare()
    world.start()
    down = Settings(
        {
            "name": "d",
            "direction": "down",
            "upstream": ["amqp://unused/"],
            "queue": "readings",
            "exchange": "",
            "hops_max": 3,
            "routing_key": "q",
        }
    )
    back = Bridge(None, down, world.said.append, world.here, [Cable(world.there)])
    world.publish(range(5))
    limit = CLOCK.ms + 5000
    while CLOCK.ms < limit and (world.bridge.mover.counters["refused"] + back.mover.counters["refused"]) < 5:
        world.turn()
        back.step()
    parked = world.arrived("b.refused", world.local) + world.arrived("d.refused", world.local)
    assert sorted(each[1] for each in parked) == list(range(5)) and "passed 3 bridges" in parked[0][2]["x-bridge-reason"]


def test_a_backlog_that_waits_stays_in_the_queue_and_one_that_drops_says_what_it_dropped():
    for policy in ("wait", "drop-oldest"):
        world = World(backlog_octets_max=2000, backlog_full=policy)
        world.prepare()
        world.cables[0].broken = True
        world.start()
        world.publish(range(100), 60)
        world.until(lambda: world.bridge.source.facts is not None and world.bridge.source.facts["next"] > 10, "it has gathered")
        for _ in range(100):
            world.turn()
        left = world.here.queues["q"].message_count()
        assert (left > 50) == (policy == "wait"), left
        world.cables[0].broken = False
        world.until(lambda: world.bridge.source.facts["position"] == 100 and not world.bridge.mover.records, "all are settled")
        numbers = [each[1] for each in world.arrived()]
        if policy == "wait":
            assert numbers == list(range(100))
        else:
            status = world.bridge.status()
            assert status["dropped_unsent"] == 100 - len(numbers) > 50 and numbers[-1] == 99 and numbers == sorted(numbers)
            assert [line for line in world.said if "were dropped by its retention before they were sent" in line]


def test_a_stream_that_was_made_anew_is_not_mistaken_for_the_old_one():
    world = World(stream="q")
    world.prepare()
    world.start()
    world.publish(range(30))
    world.until(world.moved(30), "all are there")
    world.local.ask("queue_delete", "queue_delete_ok", 0, "q", False, False, False)
    world.local.declare("q", durable=True, arguments={"x-queue-type": "stream"})
    world.publish(range(100, 130))
    world.until(world.moved(60), "all are there")
    found = world.arrived()
    assert [each[1] for each in found] == list(range(30)) + list(range(100, 130))
    assert len({(each[2]["x-gateway"], each[0]) for each in found}) == 60  # nobody takes one for a double of another


def test_an_upstream_that_confirms_nothing_is_given_up_and_said():
    world = World(stall_seconds=0.2)
    world.prepare()
    world.start()
    world.until(lambda: world.bridge.target.ready and world.bridge.source.ready, "connected")
    target = world.bridge.target
    confirmed = target.confirmed
    target.confirmed = lambda *given: None  # as a link that carries nothing back
    world.publish(range(10))
    world.until(lambda: world.bridge.counters["stalls"] == 1, "noticed")
    assert [line for line in world.said if "no confirm for 0.2 s" in line]
    target.confirmed = confirmed
    world.until(world.moved(10), "all are there")
    assert sorted({each[:2] for each in world.arrived()}) == [(number, number) for number in range(10)]


def test_flow_and_blocked_stop_it_and_are_said():
    world = World()
    world.prepare()
    world.start()
    world.until(lambda: world.bridge.target.ready and world.bridge.source.ready, "connected")
    target = world.bridge.target
    target.channel.flowing = False
    world.publish(range(10))
    for _ in range(30):
        world.turn()
    assert world.bridge.status()["state"] == "blocked" and world.bridge.status()["reason"] == "channel.flow"
    target.channel.flowing = True
    target.client.blocked = True
    target.blocked("low on memory")
    world.turn()
    assert world.bridge.status()["reason"] == "connection.blocked: low on memory" and world.bridge.counters["blocked"] == 1
    assert world.bridge.mover.counters["bridged"] == 0
    target.client.blocked = False
    target.unblocked()
    world.until(world.moved(10), "all are there")


def test_the_broker_tells_what_its_bridges_are():
    world = World()
    world.prepare()
    world.start()
    world.publish(range(10))
    world.until(lambda: world.here.bridges and world.here.bridges["b"][1]["bridged"] == 10, "reported", 5)
    status = world.here.bridges["b"][1]
    for name in (
        "state",
        "reason",
        "messages_per_second",
        "octets_per_second",
        "backlog",
        "backlog_octets",
        "backlog_octets_max",
        "oldest_age_s",
        "full_in_s",
        "last_error",
        "reconnects",
        "unconfirmed",
        "nacked",
        "returned",
        "refused",
    ):
        assert name in status, name


def test_nobody_outside_can_be_the_user_inside():
    world = World()
    world.prepare()
    world.start()
    world.until(lambda: world.bridge.source.ready, "connected")
    assert "amq.inside" not in world.here.access.users and world.here.access.find("amq.inside", True) is None
    world.here.access.put(User("other", None, (), EVERYTHING))
    assert world.here.access.find("other", True).tags == ()


def test_what_settings_cannot_be():
    good = {"name": "b", "gateway": "g", "queue": "q", "upstream": "amqp://h/", "exchange": "e"}
    assert Settings(good).outbox == "b.outbox" and Settings(dict(good, upstream=["amqp://h", "amqps://i"])).upstream_urls[1].port == 5671
    for change, words in (
        ({"name": None}, "needs a name"),
        ({"gateway": None}, "needs a gateway"),
        ({"exchange": None}, "needs an exchange"),
        ({"upstream": None}, "needs upstream"),
        ({"upstream": []}, "upstream must be a URL"),
        ({"upstream": ["amqp://u:secret@h", 5]}, "upstream must be a URL"),
        ({"upstream": "http://u:secret@h"}, "amqps:// URL"),
        ({"stream": "s"}, "and not both"),
        ({"queue": None}, "a queue or a stream"),
        ({"nonsense": 1}, "no setting 'nonsense'"),
        ({"prefetch": 0}, "from 1 to 4000"),
        ({"prefetch": True}, "prefetch is True"),
        ({"hops_max": 256}, "from 1 to 255"),
        ({"backlog_full": "burn"}, "wait or drop-oldest"),
        ({"backlog_age_max": "7D"}, "needs backlog_full"),
        ({"backlog_age_max": "soon", "backlog_full": "drop-oldest"}, "a number and one of"),
        ({"direction": "left"}, "up or down"),
        ({"routing_key": "{x}"}, "a template"),
        ({"headers": {"a": 1}}, "a table of texts"),
        ({"reconnect_seconds_min": 0}, "seconds"),
        ({"reconnect_seconds_min": 9, "reconnect_seconds_max": 1}, "not be above"),
        ({"direction": "down"}, "is for direction up"),
        ({"queue": None, "stream": "s", "backlog_octets_max": 5000}, "a stream has its own retention"),
    ):
        given = dict(good)
        given.update(change)
        given = {name: given[name] for name in given if given[name] is not None}
        try:
            Settings(given)
        except ValueError as error:
            assert words in str(error) and "secret" not in str(error), (change, str(error))
        else:
            raise AssertionError(change)


def test_an_outbox_made_with_other_limits_is_used_as_it_is_and_that_is_said():
    world = World(backlog_octets_max=50000)
    world.prepare()
    world.local.declare("b.outbox", durable=True, arguments={"x-queue-type": "stream", "x-stream-hold": "b"})
    world.publish(range(10))
    world.start()
    world.until(world.moved(10), "all are there")
    assert [line for line in world.said if "406" in line and "stays as it was made" in line]


def test_an_error_of_ours_gives_up_the_connection_and_not_the_broker():
    world = World()
    world.prepare()
    world.start()
    world.until(lambda: world.bridge.target.ready and world.bridge.source.ready, "connected")
    confirmed = world.bridge.mover.confirmed
    complaint = []

    def broken(*given):
        world.bridge.mover.confirmed = confirmed
        complaint.append(given)
        raise KeyError("canary")

    world.bridge.mover.confirmed = broken
    world.publish(range(30))
    world.until(world.moved(29), "all are there")
    assert complaint and world.bridge.counters["internal_errors"] == 1
    assert sorted({each[:2] for each in world.arrived()}) == [(number, number) for number in range(30)]


def test_how_long_until_the_backlog_is_full_is_shown_before_anything_is_lost():
    world = World(backlog_octets_max=6000, backlog_full="drop-oldest")
    world.prepare()
    world.cables[0].broken = True
    world.start()
    number = 0
    shown = []
    began = CLOCK.ms
    while not world.here.counters["retained_out"]:
        world.turn()
        assert CLOCK.ms - began < 60000, world.bridge.status()
        if CLOCK.ms - began > number * 30:
            world.publish([number], 40)
            number += 1
        shown.append((world.bridge.status()["full_in_s"], world.bridge.status()["oldest_age_s"]))
    known = [left for left, _ in shown if left is not None]
    assert known and min(known) <= 2 and max(known) >= 1, known
    assert max([age for _, age in shown if age is not None]) >= 1
    assert [line for line in world.said if line.startswith("the backlog has ") and line.endswith("then the oldest go")]


def test_pauses_start_with_the_shortest_again_only_after_a_connection_that_held():
    world = World(reconnect_seconds_min=0.02, reconnect_seconds_max=5)
    world.settings.stable_ms = 600000
    world.prepare()
    world.start()
    target = world.bridge.target
    resets = []
    target._backoff.reset = lambda: resets.append(1) or Backoff.reset(target._backoff)
    for _ in range(5):  # connections that do not hold
        target._backoff._pause_ms = 400
        world.until(lambda: target.ready, "connected")
        target.cut("test")
        world.turn()
        world.turn()
        assert not resets
        target.again_at = now_ms()
    target._backoff._pause_ms = 400
    world.until(lambda: target.ready, "connected")
    for _ in range(20):
        world.turn()
    assert target._backoff._pause_ms == 400
    world.settings.stable_ms = 1
    world.until(lambda: resets and target._backoff._pause_ms == 20, "the shortest pause again")
