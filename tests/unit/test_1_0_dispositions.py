"""What deliveries of AMQP 1.0 come to: part 2, sections 2.6.12 and 2.7.6; part 3, section 3.4 and the outcomes of 3.5.3."""

from peer_1_0 import Peer, answers, data, declare, error_in, new_broker, one_by_one, performative

from leveret.core.amqp_1_0 import types
from leveret.core.message.formats import AMQP_1_0
from leveret.core.outcomes import nobody

ACCEPTED = ("accepted", {})


def ready(messages=0, arguments=None, **given):
    """A peer with a session and a sender, and a queue with so many messages."""
    broker = new_broker()
    declare(broker, arguments=arguments)
    peer = Peer(broker)
    peer.sender(**given)
    for number in range(messages):
        peer.send(number, b"%d" % number)
    peer.frames()
    return peer


def reading(messages=6, **given):
    """A peer that has got so many messages, with delivery-ids from 1, and settled none."""
    peer = ready(messages)
    peer.receiver(credit=100, **given)
    assert [each[0] for each in peer.messages()] == list(range(1, messages + 1))
    return peer


def left(peer):
    """(ready, unsettled) of the queue."""
    queue = peer.broker.queues["q"]
    return queue.message_count(), queue.unsettled_count()


# Ours, by the peer


RANGES = [(1, None, 5), (2, 4, 3), (1, 6, 0), (0, 3, 3), (5, 99, 4), (7, 9, 6), (0, 0, 6), (6, None, 5)]


def test_a_disposition_is_about_the_range_that_it_names():
    """Section 2.7.6: ids that are not there, or settled before, are passed over."""
    for first, last, expected in RANGES:
        for pieces in (1, 1000):
            peer = reading()
            peer.step = pieces
            peer.settle(first, ACCEPTED, last)
            assert left(peer) == (0, expected) and peer.frames() == []
            peer.settle(first, ACCEPTED, last)
            assert left(peer) == (0, expected)


def test_a_range_with_holes():
    peer = reading()
    peer.settle(3, ACCEPTED)
    peer.settle(5, ACCEPTED)
    peer.settle(3, ("released", {}), 5)
    assert left(peer)[1] == 4 or left(peer)[0] == 0
    peer.settle(1, ACCEPTED, 100)
    assert peer.broker.counters["internal_errors"] == 0


def test_a_range_that_ends_before_it_begins_ends_the_session():
    found, _ = answers(performative("disposition", 0, role=True, first=5, last=4, settled=True, state=ACCEPTED))
    assert error_in(found, "end") == ("amqp:invalid-field", "a disposition from 5 to 4 (section 2.7.6)")


def test_outcomes_of_ranges():
    """Sections 3.4.2 to 3.4.5."""
    for state, expected in (
        (("rejected", {"error": {"condition": "amqp:internal-error", "description": "x"}}), (0, 4)),
        (("released", {}), (2, 4)),
        (("modified", {"delivery-failed": True}), (2, 4)),
        (("modified", {"undeliverable-here": True}), (2, 4)),  # test_1_0_modified
    ):
        peer = reading()
        peer.credit(0, delivery_count=6)
        peer.settle(2, state, 3)
        assert left(peer) == expected, state


def test_the_receiver_is_told_how_often_a_delivery_failed():
    """Section 3.4.5: delivery-count of the header counts modified with delivery-failed, and not released."""
    peer = reading(1)
    for state, failed in (
        (("modified", {"delivery-failed": True}), 1),
        (("released", {}), 1),
        (("modified", {"delivery-failed": True}), 2),
    ):
        peer.settle(peer.connection.session.mapped[0].session.mapped and last_id(peer), state)
        ((_, _, octets, _),) = [each for each in peer.frames() if each[0] == "transfer"]
        value, _ = types.decode(octets, 0, len(octets))
        assert value[1] == ("ulong", 0x70) and value[2][4] == ("uint", failed)


def last_id(peer):
    """The delivery-id of the last delivery."""
    from leveret.core.amqp_1_0.dispositions import tail_number

    return tail_number(peer.connection.session.mapped[0])


def test_a_rejected_message_is_a_dead_letter():
    """Section 3.4.3."""
    broker = new_broker()
    declare(broker, "dead")
    declare(broker, "q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer = Peer(broker)
    peer.sender()
    peer.send(0, b"x")
    peer.frames()
    peer.receiver()
    peer.messages()
    peer.settle(1, ("rejected", {}))
    peer.receiver("/queues/dead", "d", 2)
    ((_, _, octets, _),) = [each for each in peer.frames() if each[0] == "transfer"]
    assert b"x-opt-deaths" in octets or b"x-death" in octets


def test_a_delivery_that_is_settled_without_an_outcome_comes_to_the_default_of_its_source():
    """Section 3.5.3, default-outcome: released where the source names none."""
    for default, expected in (
        (None, (1, 0)),
        (ACCEPTED, (0, 0)),
        (("rejected", {}), (0, 0)),
        (("modified", {"delivery-failed": True}), (1, 0)),
    ):
        peer = ready(1)
        source = {"address": "/queues/q"}
        if default is not None:
            source["default-outcome"] = default
        peer.receiver(credit=1, source=("source", source))
        peer.messages()
        peer.settle(1, None)
        assert left(peer) == expected, default


def test_a_state_that_is_no_outcome_changes_nothing():
    """Section 3.4.1, received."""
    peer = reading(2)
    peer.settle(1, ("received", {"section-number": 0, "section-offset": 1}), settled=False)
    peer.settle(1, None, settled=False)
    assert left(peer) == (0, 2) and peer.frames() == []


NOT_SERVED = [("declared", {"txn-id": b"x"}), ("transactional-state", {"txn-id": b"x"}), ("source", {})]


def test_a_state_that_is_not_served_ends_the_session():
    for state in NOT_SERVED:
        found, _ = answers(performative("disposition", 0, role=True, first=1, settled=True, state=state), lambda: reading(1))
        assert [each[0] for each in found] == ["end"]


def test_the_receiver_decides_and_we_settle():
    """Section 2.8.3, rcv-settle-mode second: an outcome without settled is answered by settled with the same outcome."""
    for mode in (0, 1):
        peer = reading(3, rcv_settle_mode=mode)
        peer.settle(1, ACCEPTED, 2, settled=False)
        assert left(peer) == (0, 1)
        ((name, fields, _, _),) = peer.frames()
        told = [fields[each] for each in ("role", "first", "last", "settled", "state")]
        assert name == "disposition" and told == [False, 1, 2, True, ACCEPTED]
        peer.settle(1, ACCEPTED, 2, settled=True)
        assert left(peer) == (0, 1) and peer.frames() == []


OUTCOMES = [ACCEPTED, ("rejected", {}), ("released", {}), ("modified", {"delivery-failed": True}), None]


def test_many_are_settled_in_turns():
    """What a disposition is about may be thousands: a turn settles as much as a turn may, and then others have theirs."""
    for state in OUTCOMES:
        peer = reading(0)
        for number in range(100):
            peer.send(number, b"x")
            peer.messages()
        assert left(peer) == (0, 100)
        peer.credit(0, delivery_count=100)
        peer.broker.tables.engine.effort = 7
        octets = performative("disposition", 0, role=True, first=3, last=90, settled=True, state=state)
        peer.connection.writable()[: len(octets)] = octets
        peer.connection.received(len(octets))
        assert not peer.connection.has_turn and left(peer)[1] > 88
        for _ in range(40):
            peer.collect()
        back = 0 if state in (ACCEPTED, ("rejected", {})) else 88
        assert left(peer) == (back, 12) and peer.connection.has_turn and peer.broker.counters["internal_errors"] == 0
        peer.settle(1, ACCEPTED, 100)
        for _ in range(4):
            peer.collect()
        assert left(peer) == (back, 0)


# The peer's, by us


def told(peer):
    """(first, settled, name of the state) for each delivery that we have told of."""
    return [(each[1]["first"], each[1]["settled"], each[1]["state"][0]) for each in one_by_one(peer.frames()) if each[0] == "disposition"]


def test_the_outcomes_of_publishes_come_in_their_order_as_ranges():
    """Section 2.7.6."""
    peer = ready()
    octets = b"".join([performative("transfer", 0, data(b"x"), handle=0, delivery_id=each, delivery_tag=b"%d" % each) for each in range(5)])
    peer.give(octets)
    ((_, fields, _, _),) = peer.frames()
    assert (fields["role"], fields["first"], fields["last"], fields["settled"], fields["state"]) == (True, 0, 4, True, ACCEPTED)


def test_what_no_queue_takes_is_released_and_what_a_queue_refuses_is_rejected():
    """Sections 3.4.3, 3.4.4; RESOURCE-LIMIT-EXCEEDED for a queue with reject-publish."""
    peer = ready(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.sender("/exchanges/amq.direct/none", "none", 5)
    peer.send(0, b"a")
    peer.send(1, b"b")
    peer.send(2, b"c", 5)
    found = [each for each in one_by_one(peer.frames()) if each[0] == "disposition"]
    assert [each[1]["state"][0] for each in found] == ["accepted", "rejected", "released"]
    assert found[1][1]["state"][1]["error"]["condition"] == "amqp:resource-limit-exceeded"
    assert peer.broker.counters["returned"] == 1


def test_a_topic_without_subscriptions_takes_messages():
    """A publisher to a topic (the target's capability) asks for no reader: JMS, 4.2, has such messages go nowhere without an error."""
    peer = ready()
    target = ("target", {"address": "news", "capabilities": ["topic"]})
    peer.attach("to-topic", 5, False, None, target=target)
    peer.send(0, b"a", handle=5)
    assert [each[1]["state"][0] for each in peer.frames() if each[0] == "disposition"] == ["accepted"]


def test_a_source_that_does_not_know_released_gets_rejected_and_one_that_knows_neither_is_detached():
    """Section 3.5.3, outcomes."""
    for outcomes, name in ((["amqp:accepted:list", "amqp:rejected:list"], "disposition"), (["amqp:accepted:list"], "detach")):
        peer = ready()
        source = ("source", {"outcomes": outcomes})
        peer.sender("/exchanges/amq.direct/none", "none", 5, source=source)
        peer.send(0, b"c", 5)
        ((found, fields, _, _),) = peer.frames()
        assert found == name
        error = fields["state"][1]["error"] if name == "disposition" else fields["error"]
        assert error["condition"] == "amqp:not-found"


def test_the_anonymous_terminus_sends_where_each_message_says_and_rejects_what_it_cannot():
    """AMQP Anonymous Terminus 1.0; the others of the link go on."""
    from leveret.core.amqp_1_0 import composites

    peer = ready()
    peer.attach("anon", 4, False, None)
    peer.expect("flow")

    def send(number, to, **given):
        octets = composites.write("properties", {"to": to}) + data(b"x")
        peer.give(performative("transfer", 0, octets, handle=4, delivery_id=number, delivery_tag=b"%d" % number, **given))

    for number, to in enumerate(("/queues/q", "/queues/none", None, "/exchanges/none/k", "/none/", "/queues/q")):
        send(number, to)
    found = [each[1]["state"] for each in one_by_one(peer.frames()) if each[0] == "disposition"]
    assert [each[0] for each in found] == ["accepted", "rejected", "rejected", "rejected", "rejected", "accepted"]
    assert [each[1]["error"]["condition"] for each in found[1:5]] == [
        "amqp:not-found",
        "amqp:invalid-field",
        "amqp:not-found",
        "amqp:invalid-field",
    ]
    send(6, "/queues/none", settled=True)
    assert error_in(peer.frames(), "detach")[0] == "amqp:not-found"


def test_a_rejected_message_of_several_transfers_is_answered_at_its_end():
    peer = ready()
    peer.attach("anon", 4, False, None)
    peer.expect("flow")
    octets = data(b"x" * 50)
    peer.give(performative("transfer", 0, octets[:40], handle=4, delivery_id=0, delivery_tag=b"a", more=True))
    assert peer.frames() == []
    peer.give(performative("transfer", 0, octets[40:], handle=4))
    assert told(peer) == [(0, True, "rejected")]


def test_with_mode_second_the_sender_settles_after_our_outcome():
    """Section 2.8.3: until then the delivery is unsettled, and counts in the credit."""
    peer = ready(rcv_settle_mode=1, target=("target", {"address": "/queues/q", "expiry-policy": "connection-close"}))
    peer.send(0, b"a")
    peer.send(1, b"b")
    assert told(peer) == [(0, False, "accepted"), (1, False, "accepted")]
    link = peer.connection.session.mapped[0].links[0]
    assert sorted(link.unsettled) == [b"0", b"1"]
    peer.give(performative("disposition", 0, role=False, first=0, last=0, settled=True, state=ACCEPTED))
    assert sorted(link.unsettled) == [b"1"]
    peer.give(performative("disposition", 0, role=False, first=0, last=0xFFFFFF, settled=True))
    assert link.unsettled == {} and peer.connection.session.mapped[0].received == {}


def test_a_sender_without_anything_to_resume_is_answered_first():
    """Section 2.7.3: what the receiver answers is "the actual value". Nothing of such a link outlives it, so that second would only have
    senders wait that never settle themselves (Azure's)."""
    lasting = ({"durable": 1}, {"durable": 2}, {"timeout": 5}, {"expiry-policy": "never"}, {"expiry-policy": "connection-close"})
    for target, unsettled, mode in [({}, None, 0), ({}, {}, 1), ({"expiry-policy": "session-end"}, None, 0)] + [
        (each, None, 1) for each in lasting
    ]:
        broker = new_broker()
        declare(broker)
        peer = Peer(broker)
        given = ("target", dict(target, address="/queues/q"))
        fields = peer.attach("out", 0, False, None, target=given, rcv_settle_mode=1, unsettled=unsettled)
        assert fields["rcv-settle-mode"] == mode, (target, unsettled)
        peer.expect("flow")
        for number, more in ((0, {}), (1, {"rcv_settle_mode": 1})):  # a transfer may ask for what its attach has asked for
            peer.send(number, b"a", **more)
            assert told(peer) == [(number, not mode and not more, "accepted")]
        assert peer.connection.session.mapped[0].links[0].kept is None or mode


def test_a_sender_may_settle_before_it_hears_of_an_outcome():
    """Section 2.6.12: either side may settle; who settled is not told any more."""
    peer = ready()
    octets = data(b"x" * 50)
    peer.give(performative("transfer", 0, octets[:40], handle=0, delivery_id=0, delivery_tag=b"a", more=True))
    peer.give(performative("disposition", 0, role=False, first=0, settled=True))
    peer.give(performative("transfer", 0, octets[40:], handle=0))
    assert peer.frames() == [] and left(peer) == (1, 0)
    assert peer.connection.session.mapped[0].received == {}


def test_a_user_id_that_is_another_users_is_refused():
    """Section 3.2.4: user-id is that of the user who sends."""
    from leveret.core.amqp_1_0 import composites

    for name, expected in ((b"guest", "disposition"), (b"other", "detach"), (b"\xff", "detach")):
        peer = ready()
        octets = composites.write("properties", {"user-id": name}) + data(b"x")
        peer.give(performative("transfer", 0, octets, handle=0, delivery_id=0, delivery_tag=b"a"))
        assert [each[0] for each in peer.frames()] == [expected], name
        assert peer.broker.counters["internal_errors"] == 0


def test_a_stored_message_is_of_our_format_and_its_sections_are_the_publishers_octets():
    """Section 3.2."""
    peer = ready()
    octets = data(b"x", {"durable": True, "ttl": 60000})
    peer.give(performative("transfer", 0, octets, handle=0, delivery_id=0, delivery_tag=b"a"))
    tables = peer.broker.tables
    message = tables.entries[peer.broker.queues["q"].head()]
    assert tables.messages[message + 10] & 255 == AMQP_1_0 and tables.properties_of(message) == octets[:-1]
    peer.frames()
    peer.receiver()
    ((_, _, came, _),) = peer.frames()
    assert came == octets


def test_nothing_is_kept_of_a_session_that_has_ended():
    peer = reading(3)
    peer.give(performative("end"))
    peer.frames()
    assert left(peer) == (3, 0)
    peer.broker.topology.delete_queue(nobody, "q", False, False)
    assert peer.broker.counters["internal_errors"] == 0


def test_what_was_not_delivered_yet_is_not_told_to_be_settled():
    """Section 2.7.6: an outcome for a range that goes beyond what was sent is answered for what was sent."""
    peer = ready()
    peer.send(0, b"a")
    peer.frames()
    peer.receiver(rcv_settle_mode=1)
    assert [number for number, _ in peer.messages()] == [1]
    peer.settle(1, ("accepted", {}), 5, settled=False)
    assert [(each[1]["first"], each[1]["last"]) for each in peer.frames() if each[0] == "disposition"] == [(1, None)]
    for first, last in ((3, 5), (0, 0), (0xFFFFFFFF, 0)):
        peer.settle(first, ("accepted", {}), last, settled=False)
        assert [each for each in peer.frames() if each[0] == "disposition"] == []
