"""A bridge to an upstream of AMQP 0-10: its session goes on behind lost connections, so that nothing is missing and nothing double."""

from bridge_world import Cable, World

from leveret.core.amqp_0_9 import properties
from leveret.core.amqp_0_10 import structs, upstream
from leveret.core.message.formats import BASIC
from leveret.ports.pipe import Pipe, carry
from leveret.ports.url import read_url

URL = "amqp://unused/?protocol=0-10"


class Tight(Pipe):
    """A pipe that breaks behind so many octets of both ways together, or of one of them alone."""

    def __init__(self, broker, client, left, ways):
        self.left, self.ways = left, ways
        Pipe.__init__(self, broker, client, "uplink")

    def pump(self):
        if self.over:
            return False
        there = carry(self.client, self.connection)
        self.left -= there * (self.ways & 1) + len(self.connection.pending()) * (self.ways >> 1)
        if self.left <= 0:  # what the broker answers is lost
            self.end()
            return True
        back = carry(self.connection, self.client)
        if self.client.closed and not len(self.client.pending()):
            self.end()
        return there + back > 0


class Cutting(Cable):
    """A cable whose next connections break one by one behind `cuts` octets."""

    cuts = ()
    ways = 3

    def finish(self, loop, client):
        self.attempts += 1
        left = 1 << 30
        if self.cuts:
            left, self.cuts = self.cuts[0], self.cuts[1:]
        self.pipe = Tight(self._broker, client, left, self.ways)
        return True


def world_of(cuts=(), ways=3, **given):
    """A World whose upstream speaks AMQP 0-10 over a Cutting."""
    world = World(upstream=[URL], **given)
    world.cables = [Cutting(world.there)]
    world.cables[0].cuts, world.cables[0].ways = cuts, ways
    return world


def numbers(arrived):
    return [number for _, number, _ in arrived]


def test_messages_arrive_with_their_marks_and_in_order():
    world = world_of()
    world.prepare()
    world.start()
    world.publish(range(12), size=3000)
    world.until(world.moved(12), "all")
    arrived = world.arrived()
    assert numbers(arrived) == list(range(12)) and [sequence for sequence, _, _ in arrived] == list(range(12))
    assert arrived[0][2]["x-gateway"][:2] == "gw" and arrived[0][2]["x-hops"] == 1


def test_nothing_is_missing_or_double_wherever_connections_break():
    for ways in (1, 2, 3):
        for first in range(900, 2900, 700):
            world = world_of((first, first + 37, 900), ways)
            world.prepare()
            world.start()
            world.publish(range(15))
            world.until(world.moved(15), (first, ways))
            assert numbers(world.arrived()) == list(range(15)), (first, ways)


def test_what_no_queue_takes_is_tried_again_and_goes_to_the_refused_queue():
    world = world_of((), refusal_attempts=3)
    world.prepare(bound=False)
    world.start()
    world.publish(range(2))
    world.until(lambda: world.bridge.mover.counters["refused"] == 2, "refused")
    assert world.bridge.mover.counters["nacked"] == 6
    headers = [each[2] for each in world.arrived("b.refused", world.local)]
    assert headers[0]["x-bridge-reason"] == "upstream has refused it: no queue takes the message" and headers[0]["x-bridge-tries"] == 3


def test_a_refused_message_goes_when_there_is_a_queue_whatever_breaks():
    world = world_of((2500, 700, 900), refusal_attempts=0)
    world.prepare(bound=False)
    world.start()
    world.publish(range(20))
    world.until(lambda: world.bridge.mover.counters["nacked"] > 40, "refusals")
    world.remote.ask("queue_bind", "queue_bind_ok", 0, "readings", "up", "#", False, {})
    world.until(world.moved(20), "all")
    assert sorted(numbers(world.arrived())) == list(range(20))


def test_an_exchange_that_is_not_there_is_told():
    world = world_of(exchange="none")
    world.local.declare("q", durable=True)
    world.start()
    world.until(lambda: len(world.said) > 0 and world.cables[0].attempts > 1, "told")
    assert [each for each in world.said if "exchange 'none' is not there: make it there" in each]
    world.remote.ask("exchange_declare", "exchange_declare_ok", 0, "none", "fanout", False, False, False, False, False, {})
    world.until(lambda: world.bridge.target.ready, "ready")


def test_the_default_exchange_needs_no_question():
    world = world_of(exchange="", routing_key="readings")
    world.prepare()
    world.start()
    world.publish(range(3))
    world.until(world.moved(3), "all")
    assert numbers(world.arrived()) == [0, 1, 2]


def test_a_session_that_upstream_has_forgotten_begins_anew_and_says_so():
    world = world_of((3000,))
    world.prepare()
    world.start()
    world.publish(range(40))
    world.until(lambda: world.cables[0].cuts == () and world.bridge.target.over, "the cut")
    for session in list(world.there.beyond.by_name.values()):
        session.step("release")
    world.until(world.moved(40), "all")
    assert set(numbers(world.arrived())) == set(range(40))
    assert [each for each in world.said if "in doubt a message arrives twice, with the same x-gateway" in each]


def test_message_stop_and_flow():
    world = world_of()
    world.prepare()
    bridge = world.start()
    world.until(lambda: bridge.target.ready and bridge.source.ready, "ready")
    bridge.target.command("message_stop", {"destination": ""})
    assert bridge.state == ("blocked", "message.stop")
    world.publish(range(3))
    for _ in range(50):
        world.turn()
    assert bridge.mover.counters["bridged"] == 0
    bridge.target.command("message_flow", {"destination": "", "unit": 0, "value": 1 << 31})
    world.until(world.moved(3), "all")


class Elsewhere(Cutting):
    """A dial with a URL, which a redirect changes."""

    made = []

    def __init__(self, url):
        Cutting.__init__(self, self.made[0])
        self.url, self.place = url, url.place()
        self.made.append(self)


def test_a_redirect_is_followed_once():
    world = world_of()
    world.prepare()
    Elsewhere.made = [world.there]
    world.cables = [Elsewhere(read_url("amqp://a:b@first/?protocol=0-10"))]
    bridge = world.start()
    world.turn()
    target = bridge.target
    target.client.redirects = [("second", 1234)]
    target.cut("the broker redirects to second:1234")
    world.until(lambda: target.ready, "ready")
    assert target.place() == "upstream second:1234" and target.dial.url.user == "a" and target.connections == 1
    target.client.redirects = [("third", 1)]
    target.cut("again")
    world.until(lambda: target.ready, "ready again")
    assert target.place() == "upstream first:5672"


def test_a_message_of_the_bridge_as_octets():
    given = {"delivery_mode": 2, "priority": 7, "content_type": "text/plain", "headers": {"unit": "C"}}
    header = upstream.header(BASIC, properties.encode(given), b"site.1")
    named = {}
    for name, begin, end in structs.each_struct(header, 0, len(header)):
        named[name] = {key: value for key, value in structs.read(name, header, begin, end)[0].items() if value not in (None, False)}
    assert named == {
        "delivery-properties": {"delivery_mode": 2, "priority": 7, "routing_key": "site.1"},
        "message-properties": {"content_type": "text/plain", "application_headers": {"unit": "C"}},
    }
    try:
        upstream.header(BASIC, b"\x00\x00", b"\xff")
    except ValueError as error:
        assert "not UTF-8" in str(error)
    else:
        raise AssertionError("it was taken")
