"""The outcome modified (part 3, section 3.4.5): delivery-failed, undeliverable-here, message-annotations."""

from memory_store import MemoryStore, durable_broker
from peer_1_0 import Peer, body_of, data, declare, error_in, new_broker, performative

from leveret.core.amqp_1_0 import composites, modified, properties, types
from leveret.core.memory import invariants, layout
from leveret.core.outcomes import nobody
from leveret.core.queue import wishes

HERE = ("modified", {"undeliverable-here": True})
MINE = {("symbol", "x-opt-mine"): "one", ("symbol", "x-opt-size"): ("uint", 7), ("symbol", "plain"): ("uuid", bytes(16))}


def noted(given=None):
    """The outcome with annotations."""
    return ("modified", {"message-annotations": MINE if given is None else given})


def over(*tables):
    """The pairs of all of them, the last of a name."""
    made = {}
    for table in tables:
        made.update(table)
    return made


def world(messages=1, arguments=None, store=None, **limits):
    """A broker with a queue of so many messages, and a peer that has sent them."""
    broker = durable_broker(store)[0] if store is not None else new_broker(send_buffer_size=32768, **limits)
    declare(broker, "dead")
    declare(broker, arguments=arguments)
    peer = Peer(broker)
    peer.sender()
    for number in range(messages):
        peer.send(number, b"%d" % number, header={"durable": True})
    peer.frames()
    return broker, peer


def came(peer):
    """[(delivery-id, facts, body)] of what has come."""
    return [
        (fields["delivery-id"], properties.facts(octets, 0, len(octets)), body_of(octets))
        for name, fields, octets, _ in peer.frames()
        if name == "transfer"
    ]


def begun(peer, number):
    """A coordinator's link, and the txn-id of a transaction, which is declared with this delivery-id."""
    peer.attach("txn", 5, False, None, target=("coordinator", {}))
    peer.expect("flow")
    return command(peer, number, "declare")[1]["txn-id"]


def command(peer, tag, name, **fields):
    """A message to the coordinator: its outcome."""
    octets = b"\x00\x53\x77" + composites.write(name, {key.replace("_", "-"): fields[key] for key in fields})
    peer.give(performative("transfer", 0, octets, handle=5, delivery_id=tag, delivery_tag=b"c%d" % tag))
    return peer.expect("disposition")[1]["state"]


def idle(broker):
    """The broker comes to rest: nobody is asked again and again."""
    for _ in range(20):
        broker.run()
    return not broker.has_active()


def sound(broker):
    assert broker.counters["internal_errors"] == 0
    invariants.check(broker.tables)


# message-annotations


def test_annotations_are_merged_over_those_of_the_message():
    """A pair of the same name is replaced, others stay; publisher's octets of all other sections too."""
    own = composites.write("header", {"durable": True, "priority": 3})
    given = {("symbol", "x-opt-mine"): "publisher", ("symbol", "x-opt-other"): ("ubyte", 1)}
    octets = own + b"\x00\x53\x72" + types.encode(given) + composites.write("properties", {"subject": "s"}) + data(b"body")
    broker, peer = world(0)
    peer.give(performative("transfer", 0, octets, handle=0, delivery_id=0, delivery_tag=b"a"))
    peer.frames()
    peer.receiver(credit=5)
    ((number, facts, body),) = came(peer)
    assert facts["message-annotations"] == given
    peer.settle(number, noted())
    ((number, facts, body),) = came(peer)
    assert facts["message-annotations"] == over(given, MINE) and body == b"body"
    assert facts["properties"]["subject"] == "s" and facts["header"]["priority"] == 3
    assert not facts["header"].get("delivery-count")  # delivery-failed was not said
    more = {("symbol", "x-opt-mine"): None, ("symbol", "x-opt-new"): [1, "two"]}
    peer.settle(number, ("modified", {"delivery-failed": True, "message-annotations": more}))
    ((number, facts, body),) = came(peer)
    assert facts["message-annotations"] == over(given, MINE, more)
    assert facts["header"]["delivery-count"] == 1
    message = broker.tables.entries[broker.tables.channels[peer.connection.session.mapped[0].handle]]
    assert broker.tables.properties_of(message) + b"body" == octets
    sound(broker)


def test_another_queues_copy_of_the_message_is_as_it_was():
    broker = new_broker()
    for name in ("q", "r"):
        declare(broker, name)
        broker.topology.bind(nobody, name, "amq.fanout", b"", {})
    peer = Peer(broker)
    peer.sender("/exchanges/amq.fanout/k")
    peer.send(0, b"x")
    peer.frames()
    peer.receiver(credit=5)
    ((number, _, _),) = came(peer)
    peer.settle(number, noted())
    assert came(peer)[0][1]["message-annotations"] == MINE
    peer.receiver("/queues/r", "r", 2)
    assert not came(peer)[0][1].get("message-annotations")
    sound(broker)


def test_a_dead_letter_has_them():
    broker, peer = world(1, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.receiver(credit=5)
    ((number, _, _),) = came(peer)
    peer.settle(number, noted())
    ((number, _, _),) = came(peer)
    peer.settle(number, ("rejected", {}))
    peer.receiver("/queues/dead", "d", 2)
    ((_, facts, body),) = came(peer)
    annotations = facts["message-annotations"]
    assert [annotations[key] for key in MINE] == list(MINE.values()) and body == b"0"
    assert annotations[("symbol", "x-first-death-reason")] == "rejected" and ("symbol", "x-opt-deaths") in annotations
    sound(broker)


def test_annotations_of_the_broker_stay_its_own():
    broker, peer = world()
    peer.receiver(credit=5)
    ((number, _, _),) = came(peer)
    peer.settle(number, noted({("symbol", name): "x" for name in ("x-opt-deaths", "x-first-death-reason", "x-exchange", "x-opt-good")}))
    ((_, facts, _),) = came(peer)
    assert facts["message-annotations"] == {("symbol", "x-opt-good"): "x"}


def test_receivers_of_0_9_1_get_those_that_begin_with_x():
    from peer import Peer as OldPeer

    broker, peer = world()
    peer.receiver(credit=1)
    ((number, _, _),) = came(peer)
    peer.settle(number, noted())
    old = OldPeer(broker)
    ((_, _, given, _),) = old.consume("q")
    assert given["headers"]["x-opt-mine"] in ("one", b"one") and given["headers"]["x-opt-size"] == 7
    assert "plain" not in given["headers"]


def test_they_outlive_a_power_cut_and_copies_of_segments():
    for times in (1, 3):
        store = MemoryStore()
        broker, peer = world(3, store=store)
        peer.receiver(credit=1)
        for time in range(times):
            ((number, _, _),) = came(peer)
            peer.settle(number, noted({("symbol", "x-opt-n"): ("int", time)}), settled=False)
            broker.run()
            assert [name for name, _, _, _ in peer.frames() if name == "disposition"] == ["disposition"]
            peer.credit(1, delivery_count=time + 1)
        for _ in range(3):  # segments are copied forward, and what they say is written anew
            store = store.cut()
            broker, _ = durable_broker(store)
            peer = Peer(broker)
            peer.receiver(credit=5, name="again")
            got = came(peer)
            assert [each[2] for each in got] == [b"0", b"1", b"2"]
            assert got[0][1]["message-annotations"] == {("symbol", "x-opt-n"): ("int", times - 1)}
            assert not got[1][1].get("message-annotations")
            sound(broker)
        for number, _, _ in got:
            peer.settle(number, ("accepted", {}))
        broker.run()
        broker, _ = durable_broker(store.cut())
        assert broker.queues["q"].message_count() == 0
        sound(broker)


def test_what_finds_no_room_ends_the_link_and_changes_nothing():
    broker, peer = world(2)
    peer.receiver(credit=5)
    got = came(peer)
    left = broker.tables.state[layout.POOL_MESSAGES + 2]
    broker.tables.state[layout.POOL_MESSAGES + 2] = 0
    peer.settle(got[0][0], noted())
    broker.tables.state[layout.POOL_MESSAGES + 2] = left
    assert error_in(peer.frames(), "detach")[0] == "amqp:resource-limit-exceeded"
    assert broker.queues["q"].message_count() == 2
    peer.give(performative("detach", handle=1, closed=True))
    peer.receiver(name="again", handle=2)
    assert [(each[2], each[1].get("message-annotations")) for each in came(peer)] == [(b"0", None), (b"1", None)]
    sound(broker)


def test_the_log_holds_so_many_of_them():
    store = MemoryStore()
    broker, peer = world(2, store=store)
    peer.receiver(credit=5)
    got = came(peer)
    broker.journal.log.segments[0].changed = modified.CHANGED_MAX
    peer.settle(got[0][0], noted())
    assert error_in(peer.frames(), "detach")[0] == "amqp:resource-limit-exceeded"
    assert broker.queues["q"].message_count() == 2
    sound(broker)


# undeliverable-here


def test_a_message_is_not_offered_to_the_same_link_again():
    for step in (0, 1):
        broker, peer = world(3)
        peer.step = step
        peer.receiver(credit=10)
        got = came(peer)
        peer.settle(got[1][0], HERE)
        assert came(peer) == [] and idle(broker)
        queue = broker.queues["q"]
        assert (queue.message_count(), queue.unsettled_count()) == (1, 2)
        peer.send(3, b"3")
        assert [each[2] for each in came(peer)] == [b"3"]
        other = Peer(broker, container="other")
        other.receiver(credit=10)
        assert [each[2] for each in came(other)] == [b"1"]
        sound(broker)


def test_it_waits_until_another_link_is_there_and_comes_back_past_the_first():
    broker, peer = world(1)
    peer.receiver(credit=10)
    ((number, _, _),) = came(peer)
    peer.settle(number, ("modified", {"undeliverable-here": True, "delivery-failed": True}))
    assert came(peer) == [] and idle(broker)
    other = Peer(broker, container="other")
    other.receiver(credit=1)
    ((number, facts, _),) = came(other)
    assert facts["header"]["delivery-count"] == 1
    other.settle(number, ("released", {}))
    other.give(performative("detach", handle=1, closed=True))
    other.frames()
    assert came(peer) == [] and idle(broker)
    peer.receiver(name="second", handle=3)  # another link of the same connection
    assert len(came(peer)) == 1
    sound(broker)


def test_each_link_that_refuses_it_is_passed_by_and_then_it_waits():
    broker, _ = world(1)
    peers = [Peer(broker, container=name) for name in ("a", "b", "c")]
    for peer in peers:
        peer.receiver(credit=10)
    for _ in range(3):
        (found,) = [(peer, got[0][0]) for peer, got in [(peer, came(peer)) for peer in peers] if got]
        found[0].settle(found[1], HERE)
    assert [came(peer) for peer in peers] == [[], [], []] and idle(broker)
    assert broker.queues["q"].message_count() == 1
    peers[0].give(performative("detach", handle=1, closed=True))
    peers[0].frames()
    peers[0].receiver(name="anew")
    assert len(came(peers[0])) == 1
    sound(broker)


def test_what_a_client_of_rabbitmq_finds_undeliverable_is_a_dead_letter():
    """RabbitMQ 4: "discard" of its clients is this outcome. It dead-letters for `rejected`, with the annotations; in a transaction too."""
    paired = {("symbol", "paired"): True}
    for within, own in ((False, True), (False, False), (True, True)):
        broker, peer = world(2, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
        if not own:  # the Java client says so of its link pair alone
            termini = {"source": ("source", {"address": "/management"}), "target": ("target", {"address": "/management"})}
            peer.attach("management-link-pair", 8, False, None, properties=paired, **termini)
            peer.frames()
        peer.receiver(credit=10, properties=paired if own else None)
        got = came(peer)
        state = ("modified", {"undeliverable-here": True, "delivery-failed": True, "message-annotations": MINE})
        if within:
            id_ = begun(peer, 2)
            peer.settle(got[0][0], ("transactional-state", {"txn-id": id_, "outcome": state}))
            assert broker.queues["dead"].message_count() == 0
            assert command(peer, 3, "discharge", txn_id=id_, fail=False) == ("accepted", {})
        else:
            peer.settle(got[0][0], state)
        assert idle(broker) and broker.queues["q"].message_count() == 0 and broker.queues["q"].unsettled_count() == 1
        other = Peer(broker, container="other")
        other.receiver("/queues/dead", credit=10)
        ((_, facts, body),) = came(other)
        annotations = facts["message-annotations"]
        assert body == b"0" and annotations[("symbol", "x-opt-mine")] == "one"
        assert annotations[("symbol", "x-last-death-reason")] == "rejected"
        sound(broker)


def test_what_a_link_refuses_is_bounded():
    broker, peer = world(0, entry_count_max=4096, message_count_max=4096)
    peer.receiver(credit=200)
    before = wishes.REFUSED_MAX
    wishes.REFUSED_MAX = 8
    try:
        number = 0
        for _ in range(3):  # others take them: their places are free again
            for _ in range(6):
                peer.send(number, b"x")
                number += 1
            for each in came(peer):
                peer.settle(each[0], HERE)
            other = Peer(broker, container="other")
            other.receiver(credit=20)
            for each in came(other):
                other.settle(each[0], ("accepted", {}))
            other.connection.received(0)
        for _ in range(9):
            peer.send(number, b"y")
            number += 1
        for each in came(peer):
            peer.settle(each[0], HERE)
        assert error_in(peer.frames(), "detach")[0] == "amqp:resource-limit-exceeded"
    finally:
        wishes.REFUSED_MAX = before
    sound(broker)


def test_a_subscription_of_one_keeps_what_its_reader_refuses():
    """Its filter lets go of what does not fit; what was refused waits."""
    broker = new_broker()
    peer = Peer(broker)
    selector = {("symbol", "f"): ("described", ("symbol", "apache.org:selector-filter:string"), "JMSPriority = 4")}
    peer.attach("in", 1, True, None, source=("source", {"address": "/topic/t", "filter": selector}))
    peer.credit(10)
    peer.sender("/topic/t")
    peer.send(0, b"x")
    ((number, _, _),) = came(peer)
    peer.settle(number, HERE)
    assert came(peer) == [] and idle(broker)
    assert [queue.message_count() for queue in broker.queues.values()] == [1]
    sound(broker)


def test_both_at_once_and_as_a_default_outcome():
    """Section 3.5.3: what is settled without an outcome has the source's."""
    broker, peer = world(2)
    given = ("modified", {"undeliverable-here": True, "message-annotations": MINE, "delivery-failed": True})
    peer.attach("in", 1, True, None, source=("source", {"address": "/queues/q", "default-outcome": given}))
    peer.credit(5)
    got = came(peer)
    peer.settle(got[0][0], None, last=got[1][0])
    assert came(peer) == [] and idle(broker)
    other = Peer(broker, container="other")
    other.receiver(credit=5)
    again = came(other)
    assert [(each[2], each[1]["message-annotations"], each[1]["header"]["delivery-count"]) for each in again] == [
        (b"0", MINE, 1),
        (b"1", MINE, 1),
    ]
    sound(broker)


def test_within_a_transaction_it_takes_effect_at_the_discharge():
    broker, peer = world(1)
    peer.receiver(credit=5)
    ((number, _, _),) = came(peer)
    id_ = begun(peer, 1)
    state = ("transactional-state", {"txn-id": id_, "outcome": ("modified", {"undeliverable-here": True, "message-annotations": MINE})})
    peer.settle(number, state)
    assert broker.queues["q"].unsettled_count() == 1
    assert command(peer, 2, "discharge", txn_id=id_, fail=False) == ("accepted", {})
    assert came(peer) == [] and idle(broker)
    other = Peer(broker, container="other")
    other.receiver(credit=5)
    assert came(other)[0][1]["message-annotations"] == MINE
    sound(broker)


# rejected with an error


def test_a_dead_letter_says_why_it_was_rejected():
    """Section 3.4.3: the error is in the delivery-annotations of the rejected message, under the symbol rejected."""
    error = {"condition": "amqp:internal-error", "description": "no good"}
    for store in (None, MemoryStore()):
        broker, peer = world(2, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}, store)
        peer.receiver(credit=5)
        got = came(peer)
        peer.settle(got[0][0], ("rejected", {"error": error}))
        peer.settle(got[1][0], ("rejected", {}))
        broker.run()
        peer.receiver("/queues/dead", "d", 2)
        first, second = came(peer)
        told = first[1]["delivery-annotations"][("symbol", "rejected")]
        assert told[:2] == ("described", ("ulong", 0x1D)) and told[2][:2] == [("symbol", "amqp:internal-error"), "no good"]
        assert first[2] == b"0" and first[1]["header"]["durable"] and not second[1].get("delivery-annotations")
        assert broker.queues["q"].message_count() == 0
        sound(broker)
        if store is not None:
            peer.frames()
            broker, _ = durable_broker(store.cut())
            assert (broker.queues["q"].message_count(), broker.queues["dead"].message_count()) == (0, 2)
            peer = Peer(broker)
            peer.receiver("/queues/dead", "d", 2)
            assert ("symbol", "rejected") in came(peer)[0][1]["delivery-annotations"]


def test_a_large_error_and_a_queue_without_dead_letters():
    broker, peer = world(1)
    peer.receiver(credit=5)
    peer.settle(came(peer)[0][0], ("rejected", {"error": {"condition": "amqp:not-found", "description": "x"}}))
    assert broker.queues["q"].unsettled_count() == 0
    broker, peer = world(1, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.receiver(credit=5)
    before, modified.TOLD_MAX = modified.TOLD_MAX, 10
    try:
        peer.settle(came(peer)[0][0], ("rejected", {"error": {"condition": "amqp:not-found", "description": "x"}}))
    finally:
        modified.TOLD_MAX = before
    peer.receiver("/queues/dead", "d", 2)
    assert not came(peer)[0][1].get("delivery-annotations")
    sound(broker)
