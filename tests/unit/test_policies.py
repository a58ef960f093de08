"""Policies (RabbitMQ's): definitions by name pattern, applied when something is declared and when the policy changes."""

from memory_store import MemoryStore, durable_broker
from peer import Peer, encoded, new_broker
from test_users_logged import restarted

from leveret.core.broker.operator_policies import OperatorPolicy
from leveret.core.broker.policies import PRIORITY_MAX, Policy
from leveret.core.errors import ProtocolError
from leveret.core.stream.stream import EPOCH


def test_a_policy_shapes_what_is_there_and_what_comes():
    """By pattern; gone with the policy; the declaration's own smaller maximum counts."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("sensor.old")
    peer.declare("sensor.small", arguments={"x-max-length": 1})
    peer.declare("other")
    for _ in range(5):
        peer.publish("sensor.old", b"x")
    broker.policies.set(broker, Policy("short", "^sensor", {"max-length": 2}))
    peer.declare("sensor.new")
    for name, left in (("sensor.old", 2), ("sensor.new", 2), ("sensor.small", 1), ("other", 4)):
        for _ in range(4):
            peer.publish(name, b"x")
        assert broker.queues[name].message_count() == left, name
    assert broker.queues["sensor.new"].policy == "short" and broker.queues["other"].policy is None
    assert broker.policies.remove(broker, "short") and not broker.policies.remove(broker, "short")
    for _ in range(4):
        peer.publish("sensor.new", b"x")
    assert broker.queues["sensor.new"].message_count() == 6


def test_the_highest_priority_applies_alone():
    """One policy a queue; apply-to chooses kinds."""
    broker = new_broker()
    peer = Peer(broker)
    broker.policies.set(broker, Policy("low", ".*", {"max-length": 1, "message-ttl": 1}, 1))
    broker.policies.set(broker, Policy("high", "^q", {"max-length": 3}, 5, "queues"))
    broker.policies.set(broker, Policy("streams", "", {"max-age": "1m", "max-length-bytes": 500}, 9, "streams"))
    peer.declare("q")
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream", "x-max-length-bytes": 400})
    assert broker.queues["q"].effective == {"x-max-length": 3}
    assert (broker.queues["s"].size_max, broker.queues["s"].age_max_s) == (400, 60)


def test_a_lifetime_begins_when_its_policy_comes():
    """message-ttl on messages that are there; messages with their own expiration keep it when the policy goes."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    peer.publish("q", b"x")
    peer.publish("q", b"y", given={"expiration": "5000"})
    broker.policies.set(broker, Policy("ttl", "q", {"message-ttl": 1000}))
    broker.tick(900, EPOCH)
    assert broker.queues["q"].message_count() == 2
    broker.tick(1100, EPOCH)
    assert broker.queues["q"].message_count() == 0
    peer.publish("q", b"y", given={"expiration": "500"})
    broker.policies.remove(broker, "ttl")
    broker.tick(1800, EPOCH)
    assert broker.queues["q"].message_count() == 0


def test_an_alternate_exchange_by_policy():
    """alternate-exchange; one that was declared counts first."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.fanout", "", False, {})
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "ex", "direct", False, False, False, False, False, {})
    broker.policies.set(broker, Policy("spare", "^ex$", {"alternate-exchange": "amq.fanout"}, 0, "exchanges"))
    peer.publish("nowhere", b"x", "ex")
    assert broker.queues["q"].message_count() == 1
    broker.policies.remove(broker, "spare")
    peer.publish("nowhere", b"x", "ex")
    assert broker.queues["q"].message_count() == 1


def test_policies_that_cannot_be():
    """Refused when they are set, with the reason."""
    for given, text in (
        (("p", "(", {"max-length": 1}), "a bracket that is not closed"),
        (("p", "x", {}), "at least one key"),
        (("p", "x", {"max-length": "many"}), "expected integer"),
        (("p", "x", {"no-such": 1}), "x-no-such"),
        (("p", "x", {"max-priority": 3}), "can only be declared"),
        (("p", "x", {"max-length": 1}, 0, "cats"), "apply-to"),
        (("p", "x", {"max-length": 1}, "high"), "priority must be"),
        (("p", "x", {"max-length": 1}, PRIORITY_MAX + 1), "priority must be"),
        (("p", "x", {"max-length": 1}, -PRIORITY_MAX - 1), "priority must be"),
    ):
        try:
            Policy(*given)
        except ProtocolError as error:
            assert text in error.text, error.text
        else:
            raise AssertionError(given)
    for priority in (PRIORITY_MAX, -PRIORITY_MAX):
        assert Policy("p", "x", {"max-length": 1}, priority).priority == priority
    broker = new_broker()
    for number in range(8):
        broker.policies.set(broker, Policy("p%d" % number, "x", {"max-length": 1}))
    try:
        broker.policies.set(broker, Policy("one more", "x", {"max-length": 1}))
    except ProtocolError as error:
        assert "8 policies at most" in error.text
    else:
        raise AssertionError("no refusal")


def test_a_consumer_gets_what_a_policy_lets_through():
    """A policy that comes while a consumer is there."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q")
    peer.consume("q", no_ack=True)
    broker.policies.set(broker, Policy("ttl", "q", {"message-ttl": 1000}))
    peer.publish("q", b"x")
    assert [each[3] for each in peer.contents()] == [b"x"]
    peer.give(encoded("queue_declare", 1, 0, "q", False, False, False, False, False, {}))
    assert peer.expect("queue_declare_ok") == ["q", 0, 1]


def test_an_operator_policy_bounds_a_policy_and_a_declaration():
    """Of each key the smallest value; the best of them alone applies; it comes back from the log beside a policy of the same name."""
    broker, _ = durable_broker(MemoryStore())
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments={"x-max-length": 7, "x-expires": 5000})
    queue = broker.queues["q"]
    operators = (("same", "^q", {"max-length": 5, "message-ttl": 900}, 1), ("low", ".*", {"max-length": 1}, 0))
    for name, pattern, definition, priority in operators:
        broker.policies.set(broker, OperatorPolicy(name, pattern, definition, priority))
    assert (queue.policy, queue.operator_policy) == (None, "same")
    assert {key: queue.effective[key] for key in ("x-max-length", "x-expires", "x-message-ttl")} == {
        "x-max-length": 5,
        "x-expires": 5000,
        "x-message-ttl": 900,
    }
    broker.policies.set(broker, Policy("same", "^q", {"max-length": 3, "message-ttl": 1000, "expires": 6000}))
    again = restarted(broker)
    queue = again.queues["q"]
    assert (queue.policy, queue.operator_policy) == ("same", "same")
    assert [queue.effective[key] for key in ("x-max-length", "x-expires", "x-message-ttl")] == [3, 5000, 900]
    assert again.policies.remove(again, "same", again.policies.operators) and "same" in again.policies.by_name
    assert queue.operator_policy == "low" and queue.effective["x-max-length"] == 1 and queue.effective["x-message-ttl"] == 1000
    last = restarted(again)
    assert list(last.policies.operators) == ["low"] and list(last.policies.by_name) == ["same"]


def test_what_an_operator_policy_cannot_be():
    broker = new_broker(policy_count_max=2)
    for given, words in (
        (("p", "q", {"max-length": 1}, 0, "exchanges"), "is of queues"),
        (("p", "q", {"dead-letter-exchange": "e"}), "no key 'dead-letter-exchange'"),
        (("p", "(", {"max-length": 1}), "regular expression"),
        (("p", "q", {}), "at least one key"),
        (("p", "q", {"max-length": "x"}), "max-length"),
    ):
        try:
            OperatorPolicy(*given)
            raise AssertionError(given)
        except ProtocolError as error:
            assert words in error.text, error.text
    broker.policies.set(broker, OperatorPolicy("p", "q", {"max-length": 1}))
    broker.policies.set(broker, Policy("p", "q", {"max-length": 2}))
    try:
        broker.policies.set(broker, Policy("more", "q", {"max-length": 2}))
        raise AssertionError("too many")
    except ProtocolError as error:
        assert "2 policies at most" in error.text
