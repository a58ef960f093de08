"""delivery-count of the header (part 3, section 3.2.1): how many deliveries of a message have failed, in its dead letters too.

Section 3.4.3: rejected counts. 3.4.4: released does not. 3.4.5: modified counts with delivery-failed alone.
"""

from memory_store import MemoryStore, durable_broker
from peer import Peer as Peer091
from peer import encoded
from peer_1_0 import Peer, composites, declare, new_broker, performative

from leveret.core.amqp_1_0 import properties
from leveret.core.memory import invariants
from leveret.core.memory.layout import EPOCH

FAILED = ("modified", {"delivery-failed": True})
PAIRED = {("symbol", "paired"): True}  # a link of RabbitMQ's clients, where undeliverable-here discards
TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
DISCARD = ("modified", {"undeliverable-here": True})
FAILED_DISCARD = ("modified", {"undeliverable-here": True, "delivery-failed": True})


def world(arguments=None, store=None, broker=None):
    """A broker whose queue q has its dead letters in `dead`, and a peer that sends to q."""
    broker = broker or (new_broker(send_buffer_size=32768) if store is None else durable_broker(store)[0])
    declare(broker, "dead", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    declare(broker, "q", dict(TO_DEAD, **(arguments or {})))
    peer = Peer(broker)
    peer.sender()
    return broker, peer


def came(peer):
    """[(delivery-id, delivery-count, first-acquirer, reason of the last death)] of the transfers that have come."""
    found = []
    for name, fields, octets, _ in peer.frames():
        if name == "transfer":
            facts = properties.facts(octets, 0, len(octets))
            header = facts.get("header") or {}
            reason = (facts.get("message-annotations") or {}).get(("symbol", "x-last-death-reason"))
            found.append((fields["delivery-id"], header.get("delivery-count") or 0, bool(header.get("first-acquirer")), reason))
    return found


def next_of(peer, count, reason=None):
    """The delivery-id of the one delivery that has come, with this delivery-count."""
    ((number, found, _, why),) = came(peer)
    assert (found, why) == (count, reason)
    return number


def test_it_goes_with_the_message_from_death_to_death():
    for arguments in (None, {"x-queue-type": "quorum"}):
        from_death_to_death(*world(arguments, MemoryStore()))


def from_death_to_death(broker, peer):
    peer.receiver(properties=PAIRED, credit=20)
    peer.receiver("/queues/dead", "dead", 2, 20, properties=PAIRED)
    peer.send(0, b"x", header={"durable": True})
    peer.settle(next_of(peer, 0), ("modified", {}))
    peer.settle(next_of(peer, 0), FAILED)
    peer.settle(next_of(peer, 1), ("released", {}))
    peer.settle(next_of(peer, 1), FAILED_DISCARD)
    peer.settle(next_of(peer, 2, "rejected"), DISCARD)
    peer.settle(next_of(peer, 2, "rejected"), ("rejected", {}))
    peer.settle(next_of(peer, 3, "rejected"), ("rejected", {"error": {"condition": "amqp:internal-error"}}))
    peer.settle(next_of(peer, 4, "rejected"), ("accepted", {}))
    assert came(peer) == [] and broker.counters["internal_errors"] == 0
    invariants.check(broker.tables)


def test_a_range_of_deliveries_counts_for_each():
    _, peer = world()
    peer.receiver()
    for number in range(4):
        peer.send(number, b"x", header={"durable": True})
    assert len(came(peer)) == 4
    peer.settle(1, ("rejected", {}), last=2)
    peer.settle(3, FAILED, last=4)
    assert [each[1] for each in came(peer)] == [1, 1]
    peer.settle(5, ("rejected", {}), last=6)
    peer.receiver("/queues/dead", "dead", 2)
    assert [each[1] for each in came(peer)] == [1, 1, 2, 2]


def test_a_death_without_a_delivery_does_not_count():
    for arguments, reason in (({"x-message-ttl": 50}, "expired"), ({"x-max-length": 1}, "maxlen")):
        without_a_delivery(*world(arguments), reason)


def without_a_delivery(broker, peer, reason):
    peer.receiver(credit=2)
    peer.send(0, b"x", header={"durable": True})
    peer.settle(next_of(peer, 0), FAILED)
    peer.settle(next_of(peer, 1), ("released", {}))
    if reason == "maxlen":
        peer.send(1, b"y", header={"durable": True})
    for _ in range(5):
        broker.tick(broker.now + 100, EPOCH + broker.seconds)
        broker.run()
    peer.frames()
    peer.receiver("/queues/dead", "dead", 2)
    next_of(peer, 1, reason)


def test_a_message_that_came_back_too_often_says_how_often():
    broker, peer = world({"x-delivery-limit": 2})
    peer.receiver(credit=10)
    peer.send(0, b"x", header={"durable": True})
    for failed in range(3):
        peer.settle(next_of(peer, failed), FAILED)
    peer.receiver("/queues/dead", "dead", 2)
    next_of(peer, 3, "delivery_limit")
    assert broker.counters["delivery_limit"] == 1


def test_a_message_of_0_9_1_that_a_receiver_of_1_0_has_rejected():
    """What receivers of 0-9-1 refuse is no outcome of section 3.4, and counts for nobody."""
    broker, peer = world()
    other = Peer091(broker)
    for body in (b"one", b"two"):
        other.publish("q", body, given={"delivery_mode": 2})
    peer.receiver(credit=1)
    peer.settle(next_of(peer, 0), ("rejected", {}))
    peer.receiver("/queues/dead", "dead", 2)
    next_of(peer, 1, "rejected")
    other.consume("q")
    other.give(encoded("basic_reject", 1, 1, False))
    next_of(peer, 0, "rejected")


def test_within_a_transaction_the_discharge_counts():
    """Section 4.4.2; a rollback changes nothing."""
    for outcome, expected in ((("rejected", {}), 1), (FAILED_DISCARD, 1), (DISCARD, 0)):
        _, peer = world()
        peer.receiver(credit=10, properties=PAIRED)
        peer.receiver("/queues/dead", "dead", 2)
        peer.send(0, b"x", header={"durable": True})
        number = next_of(peer, 0)
        peer.attach("txn", 5, False, None, target=("coordinator", {}))
        peer.frames()
        for first, fails in ((1, True), (3, False)):
            id_ = command(peer, first, "declare")[1]["txn-id"]
            peer.settle(number, ("transactional-state", {"txn-id": id_, "outcome": outcome}), settled=False)
            assert command(peer, first + 1, "discharge", txn_id=id_, fail=fails) == ("accepted", {})
        next_of(peer, expected, "rejected")


def command(peer, number, name, **fields):
    """A message to the coordinator: its outcome."""
    octets = b"\x00\x53\x77" + composites.write(name, {key.replace("_", "-"): fields[key] for key in fields})
    peer.give(performative("transfer", 0, octets, handle=5, delivery_id=number, delivery_tag=b"c%d" % number))
    fields = peer.expect("disposition")[1]
    if not fields["role"]:  # ours, which the discharge has settled
        fields = peer.expect("disposition")[1]
    return fields["state"]


def test_a_dead_letter_has_it_behind_a_power_cut():
    """The broker's end is one more delivery that may have failed."""
    store = MemoryStore()
    broker, peer = world(store=store)
    peer.receiver(credit=10)
    peer.send(0, b"x", header={"durable": True})
    broker.run()
    peer.settle(next_of(peer, 0), FAILED)
    peer.settle(next_of(peer, 1), ("rejected", {}))
    broker.run()
    peer.frames()
    broker, _ = durable_broker(store.cut())
    again = Peer(broker)
    again.receiver("/queues/dead", "dead", 2)
    next_of(again, 3, "rejected")


def counts(peer):
    """[(delivery-id, x-delivery-count, delivery-count)] of the transfers that have come."""
    found = []
    for name, fields, octets, _ in peer.frames():
        if name == "transfer":
            facts = properties.facts(octets, 0, len(octets))
            noted = (facts.get("message-annotations") or {}).get(("symbol", "x-delivery-count"))
            found.append((fields["delivery-id"], noted, (facts.get("header") or {}).get("delivery-count") or 0))
    return found


def test_a_queue_with_a_delivery_limit_says_how_often_a_message_came_back():
    """RabbitMQ's annotation x-delivery-count, of quorum queues: none with the first delivery; then each return, failed or not."""
    for arguments, says in (
        ({"x-queue-type": "quorum"}, True),
        ({"x-delivery-limit": 9}, True),
        ({}, False),
        ({"x-max-priority": 5}, False),
    ):
        broker, peer = world(arguments, MemoryStore())
        peer.receiver(credit=5)
        peer.send(0, b"x", header={"durable": True, "priority": 3})
        ((number, noted, failed),) = counts(peer)
        assert (noted, failed) == (None, 0)
        for count, (state, failures) in enumerate([(("released", {}), 0), (FAILED, 1), (("modified", {}), 1), (FAILED, 2)], 1):
            peer.settle(number, state)
            ((number, noted, failed),) = counts(peer)
            assert (noted, failed) == (count if says else None, failures)
        peer.settle(number, ("released", {}))
        peer.frames()
        peer.receiver(name="browser", handle=3, source=("source", {"address": "/queues/q", "distribution-mode": "copy"}))
        assert [each[1:] for each in counts(peer)] == [(5 if says else None, 2)]
        invariants.check(broker.tables)
