"""A bridge downwards from an upstream of AMQP 1.0: what class basic gets of a message, and deliveries over lost connections."""

from bridge_world import Cable, World, new_broker
from peer import Peer, encoded, taken
from peer_1_0 import Peer as Peer10
from peer_1_0 import performative

from leveret.core.amqp_0_9 import properties
from leveret.core.amqp_1_0 import downstream, upstream
from leveret.core.amqp_1_0.client.message import message_head, section
from leveret.core.errors import ProtocolError
from leveret.core.message.formats import BASIC
from leveret.ports.bridge import source_1_0
from leveret.ports.url_1_0 import read_url_1_0

URL = "amqp://guest:guest@there/?protocol=1.0"


class Cable10(Cable):
    """A way to an upstream broker that is spoken to in AMQP 1.0."""

    def __init__(self, broker, place="there"):
        Cable.__init__(self, broker)
        self.place = place
        self.url = read_url_1_0(URL)

    def login(self):
        return {"user": "", "password": "", "mechanism": "EXTERNAL"}


def world_of(**given):
    """A World whose bridge brings the queue `commands` there to the exchange `orders` here, behind which the queue `mine` is."""
    values = {"direction": "down", "queue": "/queues/commands", "exchange": "orders", "upstream": [URL], "buffer_size": 8192}
    values.update(given)
    world = World(**values)
    world.there = new_broker(b"there", {"receive_buffer_size": 8192, "send_buffer_size": 8192, "properties_size_max": 1024})
    world.remote = Peer(world.there)
    world.cables = [Cable10(world.there)]
    world.remote.declare("commands", durable=True)
    world.local.ask("exchange_declare", "exchange_declare_ok", 0, "orders", "topic", False, False, False, False, False, {})
    world.local.declare("mine", durable=True)
    world.local.ask("queue_bind", "queue_bind_ok", 0, "mine", "orders", "#", False, {})
    return world


def publish(world, numbers, **given):
    for number in numbers:
        world.remote.publish("commands", b"%05d" % number, given=given)


def of(octets):
    """(routing key, exchange, properties by name, body) that class basic has of a message."""
    key, exchange, given, body = downstream.content(octets)
    basic = properties.encode(given)
    return key, exchange, properties.decode(basic, 0, len(basic)), body


def test_what_upstream_made_of_a_message_is_undone():
    given = {
        "delivery_mode": 2,
        "priority": 7,
        "expiration": "1500",
        "content_type": "text/plain",
        "message_id": "m1",
        "correlation_id": "c1",
        "timestamp": 1700000000,
        "type": "reading",
        "app_id": "app",
        "headers": {"unit": "C", "x-hops": 1, "path": ["a", {"b": "c"}]},
    }
    octets = upstream.head(BASIC, properties.encode(given), b"site.1", False) + b"\x00\x53\x75\xa0\x02hi"
    assert of(octets) == (b"site.1", b"", given, b"hi")


def test_the_key_is_what_upstream_says_it_was_published_with():
    noted = {"x-exchange": "events", "x-routing-key": "a.b"}
    octets = message_head({"subject": "other"}, None, noted) + section(0x75, b"x")
    assert of(octets) == (b"a.b", b"events", {"type": "other"}, b"x")


def test_without_a_subject_the_key_is_empty_and_the_subject_is_no_type():
    assert of(section(0x75, b"x"))[:3] == (b"", b"", {})
    assert of(message_head({"subject": "s"}) + section(0x75, b"x"))[:3] == (b"s", b"", {})


def test_bodies_that_are_no_single_data_section():
    two = section(0x75, b"ab") + section(0x75, b"cd")
    assert of(two)[2:] == ({}, b"abcd")
    value = section(0x77, "text")
    assert of(value)[2:] == ({"type": "amqp-1.0"}, value)
    assert of(message_head({"durable": True}))[2:] == ({"delivery_mode": 2}, b"")


def test_octets_that_are_no_message_raise():
    for wrong in (b"\x00\x53\x75\xa0\x09x", b"hello", section(0x77, 1) + section(0x77, 2)):
        try:
            downstream.content(wrong)
        except ProtocolError as error:
            assert str(error)
        else:
            raise AssertionError(wrong)


def test_commands_come_down():
    world = world_of(routing_key="here.{exchange}.{key}")
    publish(world, range(50), headers={"for": "pump"})
    world.start()
    world.until(world.moved(50), "all are here")
    found = world.arrived("mine", world.local)
    assert [each[1] for each in found] == list(range(50)) and found[0][2] == {"for": "pump", "x-hops": 1}
    world.until(lambda: world.there.queues["commands"].unsettled_count() == 0, "settled upstream")
    assert world.there.queues["commands"].message_count() == 0
    world.until(lambda: world.bridge.source.receiver.decided == {}, "upstream has settled all")  # section 2.6.12: second
    assert [each for each in world.said if "exactly once" in each]
    assert world.bridge.status()["upstream"] == "there"


def test_each_comes_once_over_lost_connections():
    """Section 2.6.13: the receiver's map names what has come, and upstream does not send it anew."""
    world = world_of()
    world.start()
    for start in range(0, 400, 20):
        publish(world, range(start, start + 20))
        for _ in range(start // 20):
            world.turn()
        world.cables[0].pull()
        world.turn()
        world.cables[0].broken = False
    world.until(lambda: world.there.queues["commands"].message_count() + world.there.queues["commands"].unsettled_count() == 0, "all")
    world.until(lambda: not world.bridge.mover.records, "all are here")
    assert sorted(each[1] for each in world.arrived("mine", world.local)) == list(range(400))
    assert world.bridge.status()["reconnects"] > 5 and world.bridge.status()["internal_errors"] == 0
    assert world.bridge.mover.counters["doubles_held_back"] > 0  # the pulls met deliveries on their way


def test_what_another_receiver_got_meanwhile_is_not_sent():
    world = world_of()
    world.start()
    world.until(lambda: world.bridge.source.ready and world.bridge.target.ready, "ready")
    world.bridge.target.put = lambda record: 0  # nothing can be published here
    publish(world, range(10))
    world.until(lambda: len(world.bridge.mover.records) == 10, "they have come")
    world.cables[0].pull()
    world.until(lambda: world.there.queues["commands"].message_count() == 10, "they have gone back")
    for _ in range(4):
        world.remote.give(encoded("basic_get", 1, 0, "commands", True))
        assert world.remote.frames()[0][0] == "basic_get_ok"
    world.cables[0].broken = False
    world.until(lambda: world.bridge.source.ready and len(world.bridge.source.receiver._again) == 6, "six are resumed")
    del world.bridge.target.put
    world.until(lambda: world.there.queues["commands"].unsettled_count() == 0, "settled")
    assert sorted(each[1] for each in world.arrived("mine", world.local)) == list(range(4, 10))


def test_a_message_that_class_basic_cannot_have_is_refused_here_and_accepted_there():
    world = world_of()
    sender = Peer10(world.there)
    sender.sender("/queues/commands")
    for number, key, body in ((0, "k" * 300, b"long"), (1, "k", b"00001")):
        octets = message_head({"subject": key}) + section(0x75, body)
        sender.give(performative("transfer", 0, octets, handle=0, delivery_id=number, delivery_tag=b"%d" % number, message_format=0))
    paired, source_1_0.PAIRED = source_1_0.PAIRED, {}  # a broker that does not say where a message was published to
    try:
        world.start()
        world.until(lambda: world.bridge.source.ready, "ready")
    finally:
        source_1_0.PAIRED = paired
    world.until(lambda: world.bridge.mover.counters["refused"] == 1 and world.there.queues["commands"].unsettled_count() == 0, "refused")
    ((given, body),) = taken(world.local, "b.refused")
    assert "its routing key has 300 octets" in given["headers"]["x-bridge-reason"] and given["type"] == "amqp-1.0"
    assert downstream.content(body)[3] == b"long"
    assert [each[1] for each in world.arrived("mine", world.local)] == [1]


def test_an_upstream_that_refuses_the_address_is_told_with_what_can_be_done():
    world = world_of(queue="/queues/nothing")
    world.start()
    world.until(lambda: [each for each in world.said if "is refused" in each], "told")
    (told,) = [each for each in world.said if "is refused" in each][:1]
    assert "address '/queues/nothing' is refused (amqp:not-found" in told and "set queue to an address that it has" in told


def test_the_end_of_a_bridge_accepts_what_has_come():
    world = world_of()
    publish(world, range(100))
    world.start()
    world.until(world.moved(30), "some are here")
    world.bridge.stop()
    world.until(lambda: world.bridge.stopped, "stopped")
    here = [each[1] for each in world.arrived("mine", world.local)]
    assert len(here) + world.there.queues["commands"].message_count() == 100 and len(here) >= 30
