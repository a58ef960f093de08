"""absolute-expiry-time (part 3, section 3.2.4): a message is expired from then on, where its header has no ttl."""

from peer_1_0 import Peer, declare, new_broker, performative

from leveret.core.amqp_1_0 import composites
from leveret.core.memory import invariants, layout

NOW = 1000000  # seconds of the broker's clock, since layout.EPOCH


def world(**arguments):
    broker = new_broker()
    broker.tick(0, NOW + layout.EPOCH)
    declare(broker, "dead")
    declare(broker, arguments={name.replace("_", "-"): arguments[name] for name in arguments})
    peer = Peer(broker)
    peer.sender()
    return broker, peer


def send(peer, number, seconds, header=None):
    """A message that is expired so many seconds from the broker's beginning on; in one transfer, or in two."""
    octets = b"" if header is None else composites.write("header", header)
    octets += composites.write("properties", {"absolute-expiry-time": 1000 * (NOW + layout.EPOCH + seconds)}) + b"\x00\x53\x75\xa0\x01x"
    first = {"handle": 0, "delivery_id": number, "delivery_tag": b"%d" % number}
    if number % 2:
        peer.give(performative("transfer", 0, octets[:9], more=True, **first) + performative("transfer", 0, octets[9:], handle=0))
    else:
        peer.give(performative("transfer", 0, octets, **first))
    assert [fields["state"] for name, fields, _, _ in peer.frames() if name == "disposition"] == [("accepted", {})]


def left(broker, seconds):
    """Messages that are there so many seconds later."""
    broker.tick(1000 * seconds, NOW + layout.EPOCH + seconds)
    for _ in range(3):
        broker.run()
    broker.tables.engine.expire(broker.queues["q"].handle)
    return broker.queues["q"].message_count()


def test_a_message_is_expired_from_then_on():
    broker, peer = world()
    for number, seconds in enumerate((-5, 10, 20, 1 << 33)):
        send(peer, number, seconds)
    assert [left(broker, seconds) for seconds in (1, 9, 12, 25)] == [3, 3, 2, 1]
    invariants.check(broker.tables)


def test_a_ttl_counts_before_it():
    """Clocks of publishers and brokers differ; a ttl needs none."""
    broker, peer = world()
    send(peer, 0, -100, {"ttl": 60000})
    send(peer, 1, -100, {"ttl": 60000})
    assert [left(broker, seconds) for seconds in (10, 70)] == [2, 0]


def test_a_dead_letter_of_it_lives_on_and_says_what_its_publisher_said():
    broker, peer = world(x_dead_letter_exchange="", x_dead_letter_routing_key="dead")
    send(peer, 0, 5)
    peer.receiver("/queues/dead")
    assert left(broker, 7) == 0
    assert broker.queues["dead"].unsettled_count() == 1
    ((_, _, octets, _),) = [each for each in peer.frames() if each[0] == "transfer"]
    assert (1000 * (NOW + layout.EPOCH + 5)).to_bytes(8, "big") in octets
    assert left(broker, 100) == 0 and broker.queues["dead"].unsettled_count() == 1
    invariants.check(broker.tables)
