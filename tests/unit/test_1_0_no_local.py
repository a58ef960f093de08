"""The filter no-local: what a link's own container publishes does not go to it, over topics, durable subscriptions and queues."""

from memory_store import MemoryStore, durable_broker
from peer_1_0 import Peer, declare, new_broker, performative

from leveret.core.memory import invariants

NO_LOCAL = {("symbol", "no-local"): ("described", ("symbol", "apache.org:no-local-filter:list"), [])}
BY_CODE = {("symbol", "nolocal"): ("described", ("ulong", 0x468C00000003), "NoLocalFilter{}")}
NEVER = {"durable": 1, "expiry-policy": "never"}


def world():
    return new_broker(name_size_max=255, queue_count_max=32, send_buffer_size=32768)


def attach(peer, address, handle=1, name="in", filters=NO_LOCAL, **source):
    """A receiver with the filter, and credit: what was taken of its filters."""
    given = {key.replace("_", "-"): source[key] for key in source}
    given.update({"address": address, "filter": filters})
    taken = peer.attach(name, handle, True, None, source=("source", given))["source"][1]["filter"]
    peer.credit(50, handle)
    return taken


def bodies(peer):
    return [body for _, body in peer.messages()]


def durable(broker, container="unit", filters=NO_LOCAL, name="sub"):
    """A peer with its durable subscription."""
    peer = Peer(broker, container=container)
    assert attach(peer, "/topic/t", name=name, filters=filters, **{key.replace("-", "_"): NEVER[key] for key in NEVER}) == filters
    return peer


def sent(peer, number, body):
    """A durable message."""
    peer.send(number, body, header={"durable": True})


def test_a_topic_is_heard_from_others_alone():
    for filters in (NO_LOCAL, BY_CODE):
        for step in (0, 1):
            broker = world()
            peer, other = Peer(broker, step), Peer(broker, container="other")
            assert attach(peer, "/topic/t", filters=filters) == filters
            for each in (peer, other):
                each.sender("/topic/t")
            for number in range(3):
                peer.send(number, b"own")
                other.send(number, b"other %d" % number)
            got = peer.frames()
            assert [fields["state"] for name, fields, _, _ in got if name == "disposition"] == [("accepted", {})] * 3
            assert len([name for name, _, _, _ in got if name == "transfer"]) == 3
            assert broker.queues and [queue.message_count() for queue in broker.queues.values()] == [0]
            invariants.check(broker.tables)


def test_other_connections_of_the_same_container_are_its_own():
    broker = world()
    peer, again = Peer(broker), Peer(broker)
    attach(peer, "/topic/t")
    again.sender("/topic/t")
    again.send(0, b"own")
    assert bodies(peer) == []


def test_a_container_without_a_name_is_its_connection():
    broker = world()
    peer, again = Peer(broker, container=""), Peer(broker, container="")
    attach(peer, "/topic/t")
    for each in (peer, again):
        each.sender("/topic/t")
        each.send(0, b"%d" % (each is again))
    assert bodies(peer) == [b"1"]


def test_messages_of_0_9_1_are_nobodys():
    from peer import Peer as OldPeer

    broker = world()
    peer, old = Peer(broker), OldPeer(broker)
    attach(peer, "/topic/t")
    peer.sender("/topic/t")
    peer.send(0, b"own")
    old.publish("t", b"theirs", "amq.topic")
    assert bodies(peer) == [b"theirs"]


def test_a_durable_subscription_keeps_its_owner_out_while_its_link_is_away():
    broker = world()
    peer = durable(broker)
    peer.sender("/topic/t")
    sent(peer, 0, b"own, attached")
    peer.give(performative("detach", handle=1))
    sent(peer, 1, b"own, detached")
    other = Peer(broker, container="other")
    other.sender("/topic/t")
    sent(other, 0, b"other")
    peer.frames()
    again = durable(broker)
    assert bodies(again) == [b"other"]
    invariants.check(broker.tables)


def test_a_durable_subscription_with_another_wish_is_another():
    """JMS 2.0, createDurableConsumer: a change of noLocal ends the subscription that was there."""
    broker = world()
    peer = durable(broker)
    peer.sender("/topic/t")
    peer.give(performative("detach", handle=1))
    other = Peer(broker, container="other")
    other.sender("/topic/t")
    sent(other, 0, b"before")
    again = Peer(broker)
    assert attach(again, "/topic/t", name="sub", filters=None, durable=1, expiry_policy="never") is None
    sent(peer, 0, b"own")
    assert bodies(again) == [b"own"]


def test_the_rule_of_a_durable_subscription_outlives_the_broker():
    store = MemoryStore()
    broker, _ = durable_broker(store)
    durable(broker)
    broker.run()
    broker, _ = durable_broker(store.cut())
    peer, other = Peer(broker), Peer(broker, container="other")
    for each, body in ((peer, b"own"), (other, b"other")):
        each.sender("/topic/t")
        sent(each, 0, body)
        each.frames()
    assert bodies(durable(broker)) == [b"other"]


def test_a_policy_leaves_the_rule():
    from leveret.core.broker.policies import Policy

    broker = world()
    peer = Peer(broker)
    attach(peer, "/topic/t")
    peer.sender("/topic/t")
    broker.policies.set(broker, Policy("p", ".*", {"max-length": 5}))
    broker.run()
    peer.send(0, b"own")
    assert bodies(peer) == []


def test_shared_subscriptions_and_streams_leave_the_filter_out():
    """Section 3.5.3: the echo has what was taken."""
    broker = world()
    declare(broker, "s", {"x-queue-type": "stream"})
    peer = Peer(broker)
    assert attach(peer, "/topic/t", capabilities=["topic", "shared"]) is None
    assert attach(peer, "/queues/s", 2, "stream") is None


def test_own_messages_of_a_queue_stay_for_others_and_nothing_is_starved():
    broker = world()
    declare(broker)
    peer, other = Peer(broker), Peer(broker, container="other")
    assert attach(peer, "/queues/q") == NO_LOCAL
    peer.sender()
    other.sender()
    for number in range(100):
        peer.send(number, b"own %d" % number)
        if number % 10 == 0:
            other.send(number // 10, b"other %d" % (number // 10))
            peer.frames()
    queue = broker.queues["q"]
    peer.collect()
    for _ in range(10):
        broker.run()
    assert not broker.has_active()  # nobody is asked again and again
    assert queue.unsettled_count() == 10 and queue.message_count() == 90 + 10
    other.frames()
    other.receiver(credit=100)
    assert bodies(other) == [b"own %d" % number for number in range(100)]
    peer.give(performative("detach", handle=1, closed=True))
    for second in (1, 2, 3):
        broker.tick(1000 * second, second)
    assert queue.rules is None and broker.local.rules == 0
    invariants.check(broker.tables)


def test_a_record_that_another_message_has_is_not_taken_for_an_own_one():
    broker = world()
    declare(broker)
    peer, other = Peer(broker), Peer(broker, container="other")
    attach(peer, "/queues/q")
    for each in (peer, other):
        each.sender()
    other.receiver("/queues/q", "in", 1, 1)
    peer.send(0, b"own")
    assert bodies(other) == [b"own"]
    other.settle(1, ("accepted", {}))
    other.send(0, b"other")
    assert [body for _, body in peer.messages()] == [b"other"]


def test_what_is_published_in_a_transaction_is_its_containers_too():
    from leveret.core.amqp_1_0 import composites

    broker = world()
    peer = Peer(broker)
    attach(peer, "/topic/t")
    peer.sender("/topic/t")
    peer.attach("txn", 5, False, None, target=("coordinator", {}))
    peer.expect("flow")

    def command(number, name, **fields):
        octets = b"\x00\x53\x77" + composites.write(name, {key.replace("_", "-"): fields[key] for key in fields})
        peer.give(performative("transfer", 0, octets, handle=5, delivery_id=number, delivery_tag=b"c%d" % number))
        return peer.expect("disposition")[1]["state"]

    declared = command(0, "declare")
    assert declared[0] == "declared"
    id_ = declared[1]["txn-id"]
    peer.send(1, b"own", state=("transactional-state", {"txn-id": id_}))
    peer.frames()
    assert command(2, "discharge", txn_id=id_, fail=False) == ("accepted", {})
    assert bodies(peer) == []
