"""Links that are recovered (sections 2.6.5, 2.6.12, 2.6.13): with receiver-settle-mode second each message is taken, and given, once."""

from memory_store import MemoryStore, SlowStore, durable_broker
from peer_1_0 import BEGIN, Peer, body_of, data, declare, new_broker, performative

from leveret.core.access.permissions import EVERYTHING, User
from leveret.core.amqp_1_0 import composites

ACCEPTED = composites.described("accepted", {})
RECEIVED = composites.described("received", {"section-number": 0, "section-offset": 10})
NEVER = {"durable": 2, "expiry-policy": "never"}


def sender(peer, handle=0, unsettled=None, policy="never", durable=2, timeout=0, **given):
    """Attach a sender that wants each message taken once: what the broker's map has, {tag: state}."""
    target = ("target", {"address": "/queues/q", "durable": durable, "expiry-policy": policy, "timeout": timeout})
    fields = peer.attach("out", handle, False, None, target=target, rcv_settle_mode=1, unsettled=unsettled, **given)
    peer.expect("flow")
    assert fields["rcv-settle-mode"] == 1
    return {tag: composites.composite(state)[0] for tag, state in (fields["unsettled"] or {}).items()}


def post(peer, number, body, **given):
    """Send a durable message, whose tag is its body."""
    peer.give(performative("transfer", 0, data(body, {"durable": True}), handle=0, delivery_id=number, delivery_tag=body, **given))


def outcome(peer):
    """(first, settled, state) of the next disposition."""
    fields = peer.expect("disposition")[1]
    return fields["first"], fields["settled"], fields["state"][0]


def settle(peer, number):
    """The sender settles a delivery."""
    peer.give(performative("disposition", role=False, first=number, settled=True, state=("accepted", {})))


def count(broker):
    return broker.queues["q"].message_count()


def test_a_sender_that_comes_again_is_told_what_was_accepted():
    """Its message is in the queue once: it is resumed, and settled."""
    for how in ("detach", "lost", "stolen"):
        broker = new_broker()
        declare(broker)
        peer = Peer(broker)
        assert sender(peer) == {}
        for number, body in enumerate((b"a", b"b", b"c")):
            post(peer, number, body)
            assert outcome(peer) == (number, False, "accepted")
        settle(peer, 0)
        if how == "detach":
            peer.give(performative("detach", handle=0))
            peer.expect("detach")
            again = peer
        else:
            if how == "lost":
                peer.connection.received(0)
            again = Peer(broker)
        number = 3 if how == "detach" else 0
        assert sender(again, unsettled={b"b": None, b"c": None, b"d": None}) == {b"b": "accepted", b"c": "accepted"}
        post(again, number, b"b", resume=True, settled=True)
        post(again, number + 1, b"c", resume=True)
        assert outcome(again) == (number + 1, False, "accepted")
        settle(again, number + 1)
        post(again, number + 2, b"d")
        assert outcome(again) == (number + 2, False, "accepted")
        settle(again, number + 2)
        assert count(broker) == 4 and broker.kept.count == 0 and broker.counters["internal_errors"] == 0


def test_what_the_sender_has_settled_meanwhile_is_forgotten():
    broker = new_broker()
    declare(broker)
    peer = Peer(broker)
    sender(peer)
    post(peer, 0, b"a")
    post(peer, 1, b"b")
    peer.connection.received(0)
    again = Peer(broker)
    assert sender(again, unsettled={b"b": None}) == {b"b": "accepted"} and broker.kept.count == 1
    again.give(performative("detach", handle=0))
    again.expect("detach")
    assert sender(again, unsettled={b"x": None}, incomplete_unsettled=True) == {b"b": "accepted"}
    again.give(performative("detach", handle=0, closed=True))
    again.expect("detach")
    assert broker.kept.count == 0 and broker.kept.targets == {}


def test_a_link_that_is_closed_takes_its_target_along_and_no_others():
    """Section 2.6.6: what is kept goes with the detach that closes; sections 3.5.4 and 3.5.6 are of links that are only detached."""
    broker = new_broker()
    declare(broker)
    peers = [Peer(broker, container=name) for name in ("one", "two")]
    for peer in peers:
        sender(peer)
        post(peer, 0, b"a")
        assert outcome(peer) == (0, False, "accepted")
    assert broker.kept.count == 2
    peers[0].give(performative("detach", handle=0, closed=True))
    peers[0].expect("detach")
    assert broker.kept.count == 1 and [key[0] for key in broker.kept.targets] == ["two"]
    peers[1].receiver(credit=0)  # a link without a target that is kept
    peers[1].give(performative("detach", handle=1, closed=True))
    peers[1].expect("detach")
    assert broker.kept.count == 1 and broker.counters["internal_errors"] == 0


def test_a_delivery_that_is_resumed_and_aborted_is_settled():
    """Section 2.7.5, aborted: "An aborted message is implicitly settled": its tag names another delivery from then on."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker)
    sender(peer)
    post(peer, 0, b"a")
    assert outcome(peer) == (0, False, "accepted")
    peer.connection.received(0)
    for more in (False, True):
        peer = Peer(broker)
        assert sender(peer, unsettled={b"a": None}) == {b"a": "accepted"}
        first = {"delivery_id": 0, "delivery_tag": b"a", "resume": True}
        if more:
            peer.give(performative("transfer", handle=0, more=True, **first) + performative("transfer", handle=0, aborted=True))
        else:
            peer.give(performative("transfer", handle=0, aborted=True, **first))
        assert peer.frames() == [] and broker.kept.count == 0
        post(peer, 1, b"a")
        assert outcome(peer) == (1, False, "accepted") and broker.kept.count == 1
        peer.connection.received(0)
    assert count(broker) == 3 and broker.counters["internal_errors"] == 0


def test_another_user_neither_gets_nor_ends_what_is_kept_for_a_link():
    """Sections 2.6.1 and 2.8.15, resource-locked: any peer may say any container-id; a user that is gone keeps nothing."""
    broker = new_broker()
    declare(broker)
    users = broker.access.users
    broker.access.put(User("other", users["guest"].stored, (), EVERYTHING))
    peer = Peer(broker)
    sender(peer)
    post(peer, 0, b"a")
    assert outcome(peer) == (0, False, "accepted")
    other = Peer(broker, opens=False)
    other.log_in(b"\x00other\x00guest")
    other.give(performative("open", container_id="unit") + performative("begin", **BEGIN))
    other.frames()
    target = ("target", {"address": "/queues/q", "durable": 2, "expiry-policy": "never"})
    for number, attached in enumerate((True, False)):
        given = {"target": target, "rcv_settle_mode": 1, "unsettled": {}, "initial_delivery_count": 0}
        other.give(performative("attach", name="out", handle=number, role=False, **given))
        attach, detach = [each[1] for each in other.frames()]
        assert attach["target"] is None and detach["error"]["condition"] == "amqp:resource-locked"
        if attached:
            peer.connection.received(0)
    peer = Peer(broker)
    assert sender(peer, unsettled={b"a": None}) == {b"a": "accepted"}
    peer.connection.received(0)
    broker.access.remove("guest")
    other.give(performative("attach", name="out", handle=7, role=False, **given))
    assert [each[0] for each in other.frames()] == ["attach", "flow"] and broker.kept.count == 0


def test_expiry_policies_and_timeouts():
    """Sections 3.5.4 and 3.5.6."""
    for policy, ending, timeout, stays in (
        ("link-detach", "detach", 0, False),
        ("link-detach", "detach", 10, True),
        ("session-end", "detach", 0, True),
        ("session-end", "end", 0, False),
        ("session-end", "end", 10, True),
        ("connection-close", "end", 0, True),
        ("connection-close", "lost", 0, False),
        ("connection-close", "lost", 10, True),
        ("never", "lost", 0, True),
    ):
        broker = new_broker()
        declare(broker)
        broker.tick(0, 0)
        peer = Peer(broker)
        sender(peer, policy=policy, timeout=timeout)
        post(peer, 0, b"a")
        assert outcome(peer)[1:] == (False, "accepted")
        if ending == "detach":
            peer.give(performative("detach", handle=0))
            peer.expect("detach")
        elif ending == "end":
            peer.give(performative("end"))
            peer.expect("end")
        else:
            peer.connection.received(0)
        assert (broker.kept.count == 1) == stays, (policy, ending)
        if not timeout:
            continue
        for now, known in ((9000, True), (11000, False)):
            broker.tick(now, 0)
            broker.kept.sweep()
            assert (broker.kept.count == 1) == known, (policy, now)


def test_a_target_and_what_it_has_accepted_outlive_power_cuts():
    """After each step of a sender's, the power is cut: what the broker knows and what its queue has agree."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    declare(broker)
    peer = Peer(broker)
    sender(peer)
    for step in range(6):
        body = b"%d" % step
        post(peer, step, body)
        assert outcome(peer) == (step, False, "accepted")
        if step % 2:
            settle(peer, step)
            broker.run()
            assert left(store, b"%d" % (step - 1), body)[1] == {b"%d" % (step - 1): "accepted"}
            settle(peer, step - 1)
        assert left(store, body)[0] == step + 1
        assert left(store, b"nobody")[1] == {}
    post(peer, 6, b"6")
    assert outcome(peer) == (6, False, "accepted")
    first = min(store.segments)
    for start in range(3):  # segments are copied forward, and what they define is written anew
        store = store.cut()
        broker, _ = durable_broker(store)
        peer = Peer(broker, container="filler %d" % start)
        peer.sender()
        peer.receiver(credit=90)
        for number in range(80):
            peer.send(number, b"x" * 100, header={"durable": True})
            for each, _ in peer.messages():
                peer.settle(each, ("accepted", {}))
                peer.credit(90, delivery_count=each + 1, next_incoming_id=each + 1)
        for now in range(0, 3000, 100):
            broker.tick(now, 0)
            broker.run()
        assert left(store, b"6")[1] == {b"6": "accepted"}
    assert min(store.segments) > first


def left(store, *tags):
    """(messages in the queue, what a sender is told that asks for these tags) of a broker that starts with what a power cut left."""
    broker, _ = durable_broker(store.cut())
    before = count(broker)
    return before, sender(Peer(broker), unsettled=dict.fromkeys(tags))


def test_every_cut_between_publish_and_outcome_leaves_both_or_none():
    """The message and what the target remembers are in one group of the log: the sender that asks is never told wrong."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    declare(broker)
    peer = Peer(broker)
    sender(peer)
    for step in range(20):
        tag = b"%d" % step
        view = performative("transfer", 0, data(tag, {"durable": True}), handle=0, delivery_id=step, delivery_tag=tag)
        for at in range(len(view)):
            octets = peer.connection.writable()
            octets[:1] = view[at : at + 1]
            peer.connection.received(1)
            if at > len(view) - 3:
                messages, known = left(store, tag)
                assert messages == step + len(known)
        broker.run()
        messages, known = left(store, tag)
        assert messages == step + len(known)
        assert outcome(peer) == (step, False, "accepted")
        assert left(store, tag) == (step + 1, {tag: "accepted"})


# Receivers


def receiver(peer, unsettled=None, handle=1, credit=10):
    """Attach a receiver that wants each message delivered once: the tags in the broker's map."""
    source = ("source", {"address": "/queues/q", "durable": 2, "expiry-policy": "never"})
    fields = peer.attach("in", handle, True, None, source=source, rcv_settle_mode=1, unsettled=unsettled)
    if credit:
        peer.credit(credit, handle)
    return set(fields["unsettled"] or {})


def deliveries(peer):
    """[(tag, resume, body)] of the transfers that have come."""
    return [
        (fields["delivery-tag"], bool(fields["resume"]), body_of(payload))
        for name, fields, payload, _ in peer.frames()
        if name == "transfer"
    ]


def filled(broker, bodies):
    declare(broker)
    peer = Peer(broker, container="filler")
    peer.sender()
    for number, body in enumerate(bodies):
        peer.send(number, body, header={"durable": True})
    peer.frames()


def test_a_receiver_that_comes_again_gets_what_it_does_not_know_and_resumes_what_it_has():
    """After a lost connection, and after a power cut of the broker."""
    for cut in (False, True):
        store = MemoryStore()
        broker, _ = durable_broker(store)
        filled(broker, (b"a", b"b", b"c", b"d", b"e"))
        peer = Peer(broker)
        receiver(peer, credit=4)
        tags = [tag for tag, _, _ in deliveries(peer)]
        assert len(set(tags)) == 4
        peer.settle(1, ("accepted", {}), settled=False)
        assert outcome(peer) == (1, True, "accepted")
        if cut:
            broker, _ = durable_broker(store.cut())
        else:
            peer.connection.received(0)
        peer = Peer(broker)
        given = {tags[0]: ACCEPTED, tags[1]: ACCEPTED, tags[2]: None, tags[3]: RECEIVED}
        assert receiver(peer, given) == {tags[2]}
        (third, again, c), (fourth, new, d), (fifth, newest, e) = deliveries(peer)
        assert (third, again, c) == (tags[2], True, b"c") and (new, d, newest, e) == (False, b"d", False, b"e")
        assert fourth != tags[3] and fourth[:8] == tags[3][:8] and fifth[:4] == b"\0\0\0\4"
        assert broker.queues["q"].unsettled_count() == 3 and broker.counters["internal_errors"] == 0


def test_a_message_that_comes_again_before_its_release_is_settled_has_a_tag_of_its_own():
    """Section 2.6.12: a tag is unique among all deliveries that either end could hold for unsettled."""
    broker, _ = durable_broker(MemoryStore())
    filled(broker, (b"a",))
    peer = Peer(broker)
    receiver(peer)
    ((first, _, _),) = deliveries(peer)
    peer.settle(1, ("released", {}), settled=False)
    ((again, _, _),) = deliveries(peer)
    assert again != first
    peer.connection.received(0)
    peer = Peer(broker)
    assert receiver(peer, {first: composites.described("released", {}), again: None}) == {again}
    assert deliveries(peer) == [(again, True, b"a")]


def test_a_tag_of_another_session_is_not_given_twice():
    """Delivery-ids begin anew with a session: what was resumed, released and comes again has another tag than then."""
    broker, _ = durable_broker(MemoryStore())
    filled(broker, (b"a", b"b"))
    peer = Peer(broker)
    receiver(peer)
    _, (second, _, _) = deliveries(peer)
    peer.connection.received(0)
    peer = Peer(broker)
    assert receiver(peer, {second: None}, credit=0) == {second}
    peer.credit(2)
    assert [(tag, body) for tag, _, body in deliveries(peer)][1] == (second, b"b")
    peer.connection.received(0)
    peer = Peer(broker)
    assert receiver(peer, {second: None}, credit=0) == {second}
    broker.queues["q"].drop(broker.queues["q"].pop())
    peer.credit(1)
    assert deliveries(peer) == [(second, True, b"b")]
    peer.settle(1, ("released", {}), settled=False)
    peer.credit(2, delivery_count=1)
    ((again, resumed, body),) = deliveries(peer)
    assert body == b"b" and not resumed and again[:8] == second[:8] and again != second


def test_a_map_is_of_the_messages_that_it_was_made_of():
    """Another message at the position of one that a restart has lost is no loss of the receiver's."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    filled(broker, ())
    passing = Peer(broker, container="filler")
    passing.sender()
    passing.send(0, b"transient")
    peer = Peer(broker)
    receiver(peer)
    ((tag, _, _),) = deliveries(peer)
    broker, _ = durable_broker(store.cut())
    filler = Peer(broker, container="filler")
    filler.sender()
    filler.send(0, b"another", header={"durable": True})
    peer = Peer(broker)
    assert receiver(peer, {tag: ACCEPTED}) == set()
    ((other, resumed, body),) = deliveries(peer)
    assert body == b"another" and not resumed and other[:4] == tag[:4] and other != tag


def test_messages_that_are_in_the_log_alone_come_to_their_outcomes_too():
    """A queue that is larger than memory: what a map names is read back; what has no room now is refused, and asked again."""
    small = {"message_count_max": 32, "entry_count_max": 32, "chunk_count_max": 64, "arena_size": 16384, "content_size_max": 4096}
    store = MemoryStore()
    broker, _ = durable_broker(store, **small)
    declare(broker)
    filler = Peer(broker, container="filler")
    filler.sender()
    for number in range(60):
        filler.send(number, b"%d" % number, header={"durable": True})
        filler.frames()
    peer = Peer(broker)
    receiver(peer, credit=20)
    known = deliveries(peer)
    assert len(known) == 20
    store = store.cut()
    broker, _ = durable_broker(store, **small)
    queue = broker.queues["q"]
    assert queue.pages.count and queue.message_count() == 60
    blocks = broker.tables.state[2]
    broker.tables.state[2] = 0  # there is no room for anything
    peer = Peer(broker)
    given = {tag: ACCEPTED for tag, _, _ in known}
    source = ("source", {"address": "/queues/q"})
    fields = peer.attach("in", 1, True, None, source=source, rcv_settle_mode=1, unsettled=given)
    assert fields["source"] is None and peer.expect("detach")[1]["error"]["condition"] == "amqp:resource-limit-exceeded"
    peer.give(performative("detach", handle=1, closed=True))
    broker.tables.state[2] = blocks
    assert receiver(peer, given, credit=1) == set() and queue.message_count() + queue.unsettled_count() == 60 - 20
    assert [body for _, _, body in deliveries(peer)] == [b"20"]
    assert durable_broker(store, **small)[0].queues["q"].message_count() == 40


def test_a_receiver_that_remembers_gets_a_durable_message_when_the_log_has_it():
    """What the broker could forget with its power and is sent again would be processed twice."""
    store = SlowStore()
    broker, _ = durable_broker(store)
    filled(broker, ())
    peer = Peer(broker)
    receiver(peer)
    store.stalls = True
    filler = Peer(broker, container="filler")
    filler.sender()
    filler.send(0, b"a", header={"durable": True})
    assert deliveries(peer) == []
    peer.credit(10, 1, drain=True)
    assert peer.frames() == []
    store.stalls = False
    filler.frames()
    frames = peer.frames()
    assert [each[0] for each in frames] == ["transfer", "flow"] and body_of(frames[0][2]) == b"a"


def test_what_came_while_a_receiver_waited_for_the_log_goes_to_it_with_what_it_waited_for():
    """Both are durable when it looks again, and it has asked for the first alone."""
    store = SlowStore()
    broker, _ = durable_broker(store)
    filled(broker, ())
    peer = Peer(broker)
    receiver(peer, credit=1)
    filler = Peer(broker, container="filler")
    filler.sender()
    store.stalls = True
    filler.send(0, b"a", header={"durable": True})
    assert deliveries(peer) == []
    peer.credit(0)
    filler.send(1, b"b", header={"durable": True})
    broker.queues["q"].drop(broker.queues["q"].pop())
    store.stalls = False
    filler.frames()
    peer.credit(1)
    assert [body for _, _, body in deliveries(peer)] == [b"b"] and broker.counters["internal_errors"] == 0


def test_a_sender_whose_message_waits_for_room_may_be_stolen():
    """Its message is not whole for the one that comes: what waited is forgotten, and the connection goes on."""
    for how in ("stolen", "end"):
        broker = new_broker(arena_size=16384, content_size_max=4096, message_count_max=20, entry_count_max=16)
        declare(broker)
        peer = Peer(broker)
        sender(peer)
        filler = Peer(broker, container="filler")
        filler.sender(name="f")
        number = 0
        while peer.connection.session.held is None:
            post(peer, number, b"%d" % number)
            peer.frames()
            settle(peer, number)
            number += 1
        other = Peer(broker)
        if how == "stolen":
            sender(other)
            assert [each[0] for each in peer.frames()] == ["detach"]
        else:
            peer.connection.session.mapped[0].step("error", "precondition-failed", "a reason")
            assert [each[0] for each in peer.frames()] == ["end"]
        broker.queues["q"].purge()
        broker.run()
        peer.begin(1)
        assert broker.counters["internal_errors"] == 0


def test_outcomes_in_a_receivers_map_are_those_of_their_messages():
    store = MemoryStore()
    broker, _ = durable_broker(store)
    filled(broker, (b"a", b"b", b"c", b"d"))
    peer = Peer(broker)
    receiver(peer)
    tags = [tag for tag, _, _ in deliveries(peer)]
    peer.connection.received(0)
    given = {
        tags[0]: ACCEPTED,
        tags[1]: composites.described("rejected", {}),
        tags[2]: composites.described("released", {}),
        tags[3]: composites.described("modified", {"delivery-failed": True}),
        b"no tag of ours": ACCEPTED,
        b"\xff\xff\xff\xff": ACCEPTED,
    }
    peer = Peer(broker)
    assert receiver(peer, given, credit=0) == set() and count(broker) == 2
    assert len(deliveries(peer)) == 0
    broker, _ = durable_broker(store.cut())
    assert count(broker) == 2


def test_what_is_wrong_with_a_recovery_is_told():
    broker = new_broker()
    declare(broker)
    peer = Peer(broker)
    sender(peer)
    post(peer, 0, b"a")
    assert outcome(peer) == (0, False, "accepted")
    post(peer, 1, b"a")
    assert peer.expect("detach")[1]["error"]["condition"] == "amqp:invalid-field"
    peer.give(performative("detach", handle=0, closed=True))
    assert sender(peer, unsettled={b"a": None}) == {b"a": "accepted"}
    assert broker.counters["internal_errors"] == 0 and count(broker) == 1
