"""A bridge cannot end the process that runs it, however its start goes wrong (ports/bridge/bridge.py: one bridge never stops the broker),
and the status of one that was stopped tells no error."""

from bridge_world import Cable, World

from leveret.ports.bridge.bridges import Bridges
from leveret.ports.bridge.settings import Settings


class Broken(Cable):
    """A dial that raises what no dial should, where it is told to."""

    where = ""

    def begin(self):
        if self.where == "begin":
            raise ValueError("no such address")
        Cable.begin(self)

    def login(self):
        if self.where == "login":
            raise TypeError("no log-in")
        return Cable.login(self)

    def finish(self, loop, client):
        if self.where == "finish":
            raise RuntimeError("no stream")
        return Cable.finish(self, loop, client)


def turns(world, count):
    for _ in range(count):
        world.turn()


def test_an_exception_before_there_is_a_client_costs_an_attempt():
    """The broker goes on, the attempt is counted and told, and made again after a pause: when the cause is gone the bridge works."""
    for where in ("login", "begin", "finish", "settings"):
        world = World()
        world.prepare()
        world.publish(range(5))
        cable = Broken(world.there)
        cable.where = where
        world.cables = [cable]
        if where == "settings":
            world.settings.connect_seconds = float("inf")
        bridge = world.start()
        world.until(lambda: bridge.counters["internal_errors"] > 1, "tried again")
        kept = [world.here.queues[name].message_count() for name in ("q", "b.outbox") if name in world.here.queues]
        assert sum(kept) == 5, where
        assert bridge.status()["state"] in ("connecting", "backing off") and "an error of ours" in bridge.status()["last_error"], where
        attempts = bridge.counters["internal_errors"]
        turns(world, 5)
        assert bridge.counters["internal_errors"] - attempts <= 5, where
        cable.where = ""
        world.settings.connect_seconds = 10
        world.until(world.moved(5), "all are there")


def test_a_bridge_that_cannot_be_made_leaves_the_others():
    """Bridges: said in a sentence; the others are made."""
    world = World()
    values = {"name": "good", "upstream": ["amqp://unused/"], "exchange": "up", "queue": "q", "gateway": "gw"}
    bad = Settings(dict(values, name="bad"))
    bad.reconnect_seconds_min = 0
    said = []
    bridges = Bridges(None, world.here, [bad, Settings(values)], said.append, lambda url: Cable(world.there))
    assert [each.settings.name for each in bridges.bridges] == ["good"]
    assert len(said) == 1 and said[0].startswith("bridge bad cannot be started: "), said


class Nothing:
    """Stands for a loop that has nothing to do."""

    def deliver(self):
        """Nothing."""

    arm = deliver


def test_a_bridge_whose_round_raises_costs_only_its_connections():
    """Bridges: an error of ours is told with the bridge's name, the broker's round goes on, and the bridge begins anew."""
    world = World()
    said = []
    world.here.log = lambda sentence, is_fault=False: said.append(sentence)
    values = {"name": "good", "upstream": ["amqp://unused/"], "exchange": "up", "queue": "q", "gateway": "gw"}
    bridges = Bridges(Nothing(), world.here, [Settings(values)], said.append, lambda url: Cable(world.there))

    def fall():
        raise ValueError("a round")

    bridges.bridges[0].step = fall
    bridges.step()
    assert [sentence for sentence in said if "bridge 'good'" in sentence], said


def test_a_bridge_that_was_stopped_has_no_error():
    """`last_error` is for what went wrong: the end that was asked for (200 closed) is none."""
    world = World()
    world.prepare()
    world.start()
    world.until(lambda: world.bridge.source.ready and world.bridge.target.ready, "ready")
    world.bridge.stop()
    world.until(lambda: world.bridge.stopped, "stopped")
    assert world.bridge.status()["last_error"] == "" and world.bridge.status()["state"] == "stopped"
