"""AMQP 1.0 says of nothing that it was done before the log has it: outcomes of durable messages (section 3.2.1), nodes that an attach
makes, and settlements that are left to us (rcv-settle-mode second, section 2.8.3)."""

from memory_store import MemoryStore, SlowStore, durable_broker
from peer_1_0 import Peer, declare, error_in, one_by_one, performative

from leveret.core.amqp_1_0.bounds import credit_of
from leveret.core.outcomes import nobody

ROOM = {"content_size_max": 4096, "argument_size_max": 1024}


def ready(store):
    """(broker, peer) on a store, with a durable queue and a sender."""
    broker, _ = durable_broker(store, **ROOM)
    declare(broker)
    for _ in range(3):
        broker.run()
    peer = Peer(broker)
    peer.sender()
    return broker, peer


def turns(broker):
    """Rounds, in which the journal syncs."""
    for _ in range(5):
        broker.run()


def told(peer):
    """(delivery-id, state, settled) of each disposition."""
    return [(each[1]["first"], each[1]["state"][0], each[1]["settled"]) for each in one_by_one(peer.frames()) if each[0] == "disposition"]


def test_a_durable_message_is_accepted_when_it_is_durable_and_what_comes_behind_it_waits_its_turn():
    store = SlowStore()
    broker, peer = ready(store)
    store.stalls = True
    peer.send(0, b"a", header={"durable": True})
    peer.send(1, b"b")
    peer.send(2, b"c", 0, 0, {"durable": True}, settled=True)
    turns(broker)
    assert told(peer) == []
    store.stalls = False
    turns(broker)
    assert told(peer) == [(0, "accepted", True), (1, "accepted", True)]
    after, _ = durable_broker(store.cut(), **ROOM)
    assert after.queues["q"].message_count() == 2


def test_a_sender_gets_no_more_credit_than_its_messages_without_an_outcome_leave():
    """Section 2.6.7: what waits for the log has its place of the link's credit until it is settled."""
    store = SlowStore()
    broker, peer = ready(store)
    most = credit_of(broker.limits)
    store.stalls = True
    for number in range(most):
        peer.send(number, b"x", header={"durable": True})
    turns(broker)
    assert [each for each in peer.frames() if each[0] == "flow"] == []
    store.stalls = False
    turns(broker)
    flows = [each[1] for each in peer.frames() if each[0] == "flow"]
    assert flows and max(each["delivery-count"] + each["link-credit"] for each in flows) > most


def test_a_message_that_is_not_durable_waits_for_no_log():
    store = SlowStore()
    broker, peer = ready(store)
    store.stalls = True
    peer.send(0, b"a")
    assert told(peer) == [(0, "accepted", True)]


def test_a_message_that_waits_for_the_log_is_answered_though_its_link_ends_for_a_deleted_queue():
    store = SlowStore()
    broker, peer = ready(store)
    store.stalls = True
    peer.send(0, b"a", header={"durable": True})
    broker.topology.delete_queue(nobody, "q", False, False)
    peer.send(1, b"b", header={"durable": True})
    turns(broker)
    store.stalls = False
    turns(broker)
    found = one_by_one(peer.frames())
    assert [(each[1]["first"], each[1]["state"][0]) for each in found if each[0] == "disposition"] == [(0, "accepted")]
    assert error_in(found, "detach")[0] == "amqp:resource-deleted"


def test_an_attach_that_makes_a_node_is_answered_when_the_node_is_durable():
    store = SlowStore()
    broker, peer = ready(store)
    store.stalls = True
    target = ("target", {"address": "/queue/made"})
    peer.give(performative("attach", name="m", handle=5, role=False, target=target, initial_delivery_count=0))
    turns(broker)
    assert [each for each in peer.frames() if each[0] == "attach"] == []
    store.stalls = False
    turns(broker)
    assert [each[1]["name"] for each in peer.frames() if each[0] == "attach"] == ["m"]
    assert "made" in durable_broker(store.cut(), **ROOM)[0].queues


def test_what_is_left_to_us_is_settled_when_the_log_has_the_outcome():
    store = SlowStore()
    broker, peer = ready(store)
    peer.send(0, b"a", header={"durable": True})
    turns(broker)
    peer.frames()
    peer.receiver(rcv_settle_mode=1)
    turns(broker)
    assert len(peer.messages()) == 1
    store.stalls = True
    peer.settle(1, ("accepted", {}), settled=False)
    turns(broker)
    assert told(peer) == []
    assert durable_broker(store.cut(), **ROOM)[0].queues["q"].message_count() == 1
    store.stalls = False
    turns(broker)
    assert told(peer) == [(1, "accepted", True)]
    assert durable_broker(store.cut(), **ROOM)[0].queues["q"].message_count() == 0


def test_messages_are_whole_after_a_power_cut():
    store = MemoryStore()
    broker, peer = ready(store)
    peer.send(0, b"body", header={"durable": True, "priority": 7})
    turns(broker)
    assert told(peer) == [(0, "accepted", True)]
    after, _ = durable_broker(store.cut(), **ROOM)
    reader = Peer(after)
    reader.receiver()
    turns(after)
    assert [each[1] for each in reader.messages()] == [b"body"]


def test_an_attach_that_would_make_a_node_waits_while_the_log_cannot_be_written():
    store = MemoryStore()
    broker, peer = ready(store)
    peer.frames()
    store.full = True
    peer.send(0, b"x", header={"durable": True})
    turns(broker)
    target = ("target", {"address": "/queue/made"})
    peer.give(performative("attach", name="m", handle=5, role=False, target=target, initial_delivery_count=0))
    turns(broker)
    assert "made" not in broker.queues and not [each for each in peer.frames() if each[0] == "attach"]
    assert broker.counters["internal_errors"] == 0
    assert not peer.connection.closed
