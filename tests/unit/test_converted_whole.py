"""Converted messages that go out in one piece (amqp_0_9/foreign.py, amqp_0_10/foreign.py): the octets are those of the way that all other
deliveries take."""

from every_version import World
from full_messages import MESSAGES

from leveret.core.amqp_0_9 import foreign as foreign_0_9
from leveret.core.amqp_0_9 import properties
from leveret.core.amqp_0_10 import foreign as foreign_0_10

PAIRS = (("0-10", "0-9-1"), ("1.0", "0-9-1"), ("0-10", "0-8"), ("1.0", "0-9"), ("0-9-1", "0-10"), ("1.0", "0-10"), ("0.9a5", "0-10"))


class Without:
    """Within a `with` no delivery goes the short way; counts those that it took before."""

    def __enter__(self):
        self.kept = foreign_0_9.delivery, foreign_0_10.delivery
        foreign_0_9.delivery = foreign_0_10.delivery = lambda *given: None
        return self

    def __exit__(self, *_):
        foreign_0_9.delivery, foreign_0_10.delivery = self.kept


def sent(source, target, no_ack=True):
    """What a receiver of a version gets of all messages of another: octets that the broker wrote."""
    world = World()
    for each in 2 * MESSAGES[source]:  # the first of 0-10 goes behind a command-point
        world.publish(source, each)
    if no_ack:
        world.subscribe(target)
    elif target == "0-10":
        world.peer(target).subscribe("q", "d", 1000, accept=0)
    else:
        world.peer(target).consume("q", tag="c", no_ack=False)
    peer = world.peer(target)
    view = peer.connection.pending()
    octets = bytes(view)
    peer.connection.sent(len(view))
    assert world.broker.counters["internal_errors"] == 0
    return octets


def test_the_octets_are_the_same_as_frame_by_frame():
    for source, target in PAIRS:
        short = sent(source, target)
        with Without():
            assert sent(source, target) == short, (source, target)
    short = sent("1.0", "0-9-1", False)
    with Without():
        assert sent("1.0", "0-9-1", False) == short


def test_a_time_that_no_datetime_holds_is_the_last_one():
    """A timestamp of class basic, and one of a field table, has 64 bits without a sign of seconds; 0-10's milliseconds have a sign."""
    for given in ({"timestamp": 1 << 60}, {"timestamp": (1 << 64) - 1}, {"headers": {"t": ("T", (1 << 64) - 1)}}):
        world = World()
        world.publish("0-9-1", (properties.encode(given), b"body"))
        world.subscribe("0-10")
        header, body = world.received("0-10")[0]
        assert body == b"body" and (b"\x7f" + 7 * b"\xff") in header and not world.broker.counters["internal_errors"]


def test_those_with_a_body_as_it_lies_go_the_short_way():
    """Most of the messages of 1.0 have several sections or a value as their body: their first one has not."""
    for module, source, target in ((foreign_0_9, "0-10", "0-9-1"), (foreign_0_9, "1.0", "0-9-1"), (foreign_0_10, "0-9-1", "0-10")):
        kept, made = module.delivery, []
        module.delivery = lambda *given: made.append(kept(*given)) or made[-1]
        try:
            sent(source, target)
        finally:
            module.delivery = kept
        assert len([each for each in made if each]) >= 1, (source, target, len(made))
