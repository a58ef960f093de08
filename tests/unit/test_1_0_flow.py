"""Credit of links and transfers of AMQP 1.0: part 2, sections 2.6.7 to 2.6.14 and 2.7.4, 2.7.5."""

from memory_store import SlowStore, durable_broker
from peer_1_0 import Peer, answers, data, declare, error_in, new_broker, one_by_one, performative

from leveret.core.memory import layout
from leveret.core.message import reading


def ready(messages=0, **limits):
    """A peer with a session and a sender, a queue with so many messages, and the sender's next delivery-id."""
    broker = new_broker(**limits)
    declare(broker)
    peer = Peer(broker)
    peer.sender()
    for number in range(messages):
        peer.send(number, b"%d" % number)
    peer.frames()
    return peer


def transfer(octets, **given):
    """A transfer of the link with handle 0."""
    fields = {"handle": 0}
    fields.update(given)
    return performative("transfer", 0, octets, **fields)


FIRST = {"delivery_id": 0, "delivery_tag": b"t", "message_format": 0}

# Credit


def test_a_link_gets_as_many_deliveries_as_it_has_credit_for():
    """Section 2.6.7."""
    peer = ready(6)
    peer.receiver(credit=0)
    assert peer.messages() == []
    peer.credit(2)
    assert [each[1] for each in peer.messages()] == [b"0", b"1"]
    peer.settle(1, ("accepted", {}), 2)
    assert peer.messages() == []  # settling gives no credit
    peer.credit(2, delivery_count=2)
    assert [each[1] for each in peer.messages()] == [b"2", b"3"]


def test_credit_is_counted_from_the_delivery_count_that_the_receiver_has_seen():
    """Section 2.6.7: link-credit = delivery-count of the receiver + its link-credit - delivery-count of the sender."""
    peer = ready(6)
    peer.receiver(credit=3)
    assert len(peer.messages()) == 3
    peer.credit(4, delivery_count=0)
    assert len(peer.messages()) == 1
    peer.credit(3, delivery_count=0)
    assert peer.messages() == []
    peer.credit(0, delivery_count=4)
    peer.send(6, b"6")
    assert peer.messages() == []


def test_credit_can_be_taken_back():
    peer = ready()
    peer.receiver(credit=5)
    peer.credit(0)
    peer.send(0, b"x")
    assert peer.messages() == []


def test_a_flow_of_a_link_is_echoed_with_what_is_available():
    """Section 2.7.4: echo, available."""
    peer = ready(3)
    peer.receiver(credit=0)
    peer.credit(0, echo=True)
    ((name, fields, _, _),) = peer.frames()
    told = [fields[each] for each in ("handle", "delivery-count", "link-credit", "available", "drain")]
    assert (name, told) == ("flow", [1, 0, 0, 3, False])


def test_drain_uses_up_the_credit_that_nothing_is_there_for():
    """Section 2.6.7: delivery-count advances by what is left, and the receiver is told, with its own drain (section 2.7.4)."""
    peer = ready(2)
    peer.receiver(credit=0)
    peer.credit(5, drain=True)
    frames = peer.frames()
    assert [each[0] for each in frames] == ["transfer", "transfer", "flow"]
    fields = frames[2][1]
    assert (fields["delivery-count"], fields["link-credit"], fields["drain"]) == (5, 0, True)
    peer.send(2, b"late")
    assert peer.messages() == []
    peer.credit(1, delivery_count=5)
    assert [each[1] for each in peer.messages()] == [b"late"]


def test_drain_of_more_than_the_send_buffer_takes_goes_on_as_the_peer_reads():
    peer = ready(30)
    peer.receiver(credit=0)
    peer.credit(50, drain=True)
    frames = peer.frames()
    assert [each[0] for each in frames] == ["transfer"] * 30 + ["flow"] and frames[-1][1]["delivery-count"] == 50


def test_drain_waits_for_the_window():
    """Sections 2.6.7 and 2.5.6."""
    peer = ready(3)
    peer.receiver(credit=0)
    peer.credit(5, drain=True, incoming_window=2)
    assert [each[0] for each in peer.frames()] == ["transfer", "transfer"]
    flow = {"next_incoming_id": 2, "incoming_window": 9, "next_outgoing_id": 3, "outgoing_window": 9}
    peer.give(performative("flow", **flow))
    assert [each[0] for each in peer.frames()] == ["transfer", "flow"]


def test_a_peer_that_has_used_half_of_its_credit_gets_more():
    """Section 2.6.7: as many deliveries as may come or be unsettled at a time."""
    peer = ready()
    most = peer.broker.limits.entry_count_max // 8
    flows = []
    for number in range(most):
        peer.broker.tick(100 * number, 0)
        peer.send(number, b"")
        flows += [each[1] for each in peer.frames() if each[0] == "flow"]
    assert [(each["delivery-count"], each["link-credit"]) for each in flows] == [(most // 2, most), (most, most)]


def test_a_peer_that_uses_half_of_its_credit_at_once_gets_twice_as_much_as_long_as_there_is_some_for_such():
    """Section 2.6.7; bounds.py: a quarter of what all links have is for links that grow, and each growth leaves as much for others."""
    peer = ready(entry_count_max=4096, message_count_max=4096)
    places = peer.connection.session.places
    left, growth = places.deliveries_left, places.growth_left
    assert (left, growth) == (1024 - 200, 256)
    flows = []
    for number in range(280):
        peer.send(number, b"")
        flows += [each[1] for each in peer.frames() if each[0] == "flow"]
    assert [each["link-credit"] for each in flows] == [328, 392]
    link = peer.connection.session.mapped[0].links[0]
    assert link.credit_max == link.lent == 200 + link.grown and places.growth_left == 256 - link.grown
    peer.give(performative("detach", handle=0, closed=True))
    assert (places.deliveries_left, places.growth_left) == (1024, 256)


def test_a_peer_whose_deliveries_all_come_settled_has_more_credit_and_takes_none_from_others():
    """Section 2.6.7: nothing is kept of a settled delivery."""
    peer = ready(entry_count_max=65536)
    places = peer.connection.session.places
    left = places.deliveries_left
    peer.attach("settled", 1, False, "/queues/q", snd_settle_mode=1, initial_delivery_count=0)
    assert [each[1]["link-credit"] for each in peer.frames() if each[0] == "flow"] == [2048]
    assert places.deliveries_left == left


def test_a_delivery_without_credit_detaches_its_link():
    """Section 2.8.18, transfer-limit-exceeded."""
    peer = ready()
    peer.connection.session.mapped[0].links[0].credit = 1
    peer.give(transfer(data(b"a"), more=True, **FIRST) + transfer(b""))
    peer.connection.session.mapped[0].links[0].credit = 0
    peer.send(1, b"x")
    assert error_in(peer.frames(), "detach")[0] == "amqp:link:transfer-limit-exceeded"
    assert peer.broker.queues["q"].message_count() == 1


def test_the_delivery_count_of_a_sender_takes_credit_away():
    """Section 2.6.7: a sender that advances it has used the credit."""
    peer = ready()
    flow = {"next_incoming_id": 0, "incoming_window": 9, "next_outgoing_id": 0, "outgoing_window": 9}
    peer.give(performative("flow", handle=0, delivery_count=10, echo=True, **flow))
    fields = [each[1] for each in peer.frames()][-1]
    assert (fields["delivery-count"], fields["link-credit"]) == (10, 40)


# Transfers


def test_a_message_in_any_number_of_transfers_is_one_message():
    """Section 2.6.14: at every split of the message, and octet by octet."""
    octets = data(b"0123456789", {"durable": True, "priority": 7})
    for pieces in [[octets[:at], octets[at:]] for at in range(len(octets) + 1)] + [[octets[at : at + 1] for at in range(len(octets))]]:
        peer = ready()
        for place, piece in enumerate(pieces):
            given = FIRST if place == 0 else {}
            peer.give(transfer(piece, more=place < len(pieces) - 1, **given))
        assert [each[0] for each in peer.frames()] == ["disposition"], pieces
        peer.receiver()
        assert [each[1] for each in peer.messages()] == [b"0123456789"]
        message = peer.broker.tables.entries[peer.broker.tables.channels[peer.connection.session.mapped[0].handle]]
        assert peer.broker.tables.is_durable(message) and reading.priority_of(peer.broker.tables, message) == 7


def test_transfers_octet_by_octet_and_at_every_split():
    octets = transfer(data(b"abc"), more=True, **FIRST) + transfer(b"") + transfer(data(b"d"), delivery_id=1, delivery_tag=b"u")
    found, peer = answers(octets, ready)
    assert [(each[0], each[1]["first"]) for each in one_by_one(found)] == [("disposition", 0), ("disposition", 1)]
    assert peer.broker.queues["q"].message_count() == 2


def test_deliveries_of_several_links_go_between_each_other():
    """Section 2.6.14: only the transfers of one link stand in a row."""
    peer = ready()
    peer.sender(name="b", handle=1)
    one, two = data(b"one"), data(b"two")
    second = {"delivery_id": 1, "delivery_tag": b"t", "handle": 1}
    peer.give(transfer(one[:4], more=True, **FIRST) + transfer(two[:5], more=True, **second))
    peer.give(transfer(one[4:]) + transfer(two[5:], handle=1))
    told = [(each[1]["first"], each[1]["last"]) for each in peer.frames() if each[0] == "disposition"]
    assert told in ([(0, None), (1, None)], [(0, 1)])
    peer.receiver(handle=2)
    assert [each[1] for each in peer.messages()] == [b"one", b"two"]


def test_an_aborted_delivery_is_none():
    """Section 2.6.14: its room is free, its tag too, and it used a credit."""
    peer = ready()
    before = list(peer.broker.tables.state[:9])
    peer.give(transfer(data(b"x" * 50)[:40], more=True, **FIRST) + transfer(b"", aborted=True))
    assert peer.frames() == [] and peer.connection.session.unfinished == 0
    assert [peer.broker.tables.state[at + 2] for at in (0, 3, 6)] == [before[at + 2] for at in (0, 3, 6)]
    peer.give(transfer(data(b"y"), delivery_id=1, delivery_tag=b"t"))
    assert [each[1]["first"] for each in peer.frames()] == [1]
    assert peer.broker.queues["q"].message_count() == 1


REFUSED_FIRST = [
    ("detach", {"delivery_tag": b"t"}, "amqp:invalid-field"),
    ("detach", {"delivery_id": 0}, "amqp:invalid-field"),
    ("detach", {"delivery_id": 0, "delivery_tag": b"t" * 33}, "amqp:invalid-field"),
    ("detach", dict(FIRST, message_format=1), "amqp:not-implemented"),
    ("detach", dict(FIRST, rcv_settle_mode=1), "amqp:invalid-field"),
    ("detach", dict(FIRST, state=("transactional-state", {"txn-id": b"1"})), "amqp:transaction:unknown-id"),
    ("end", dict(FIRST, handle=9), "amqp:session:unattached-handle"),
]


def test_first_transfers_that_cannot_be():
    """Section 2.7.5."""
    for name, given, condition in REFUSED_FIRST:
        found, peer = answers(transfer(data(b"x"), **given), ready)
        assert error_in(found, name)[0] == condition
        assert peer.broker.queues["q"].message_count() == 0


def test_delivery_ids_count_up_by_one():
    """Section 2.6.12: a sequence."""
    found, _ = answers(transfer(data(b"x"), **FIRST) + transfer(data(b"x"), delivery_id=2, delivery_tag=b"u"), ready)
    assert error_in(found, "end") == ("amqp:invalid-field", "delivery-id 2 where 1 comes next (section 2.6.12)")


REFUSED_FURTHER = [{"delivery_id": 1}, {"delivery_tag": b"u"}, {"message_format": 5}]


def test_further_transfers_say_what_the_first_said():
    """Section 2.7.5."""
    for given in REFUSED_FURTHER:
        found, _ = answers(transfer(b"", more=True, **FIRST) + transfer(data(b"x"), **given), ready)
        assert error_in(found, "detach")[0] == "amqp:invalid-field"


def test_a_tag_is_in_use_until_its_delivery_is_settled():
    """Section 2.6.12; here with rcv-settle-mode second, where the sender settles."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker)
    peer.sender(rcv_settle_mode=1, unsettled={})
    peer.give(transfer(data(b"x"), **FIRST))
    ((_, fields, _, _),) = peer.frames()
    assert fields["settled"] is False and fields["state"] == ("accepted", {})
    peer.give(transfer(data(b"x"), delivery_id=1, delivery_tag=b"t"))
    assert error_in(peer.frames(), "detach") == ("amqp:invalid-field", "a delivery-tag of a delivery that is not settled (section 2.6.12)")


def test_a_tag_names_nothing_on_a_link_that_nobody_can_resume():
    """Section 2.6.12: the broker settles with its outcome, and both deliveries are answered by their delivery-ids, also while the first
    waits for the log."""
    for store, more in ((None, {}), (SlowStore(), {}), (SlowStore(), {"more": True})):  # in parts: not by the hot path
        broker = new_broker() if store is None else durable_broker(store)[0]
        declare(broker)
        peer = Peer(broker)
        for _ in range(3):
            broker.run()
        peer.sender()
        if store is not None:
            store.stalls = True
        for number in range(2):
            peer.give(transfer(data(b"x", {"durable": True}), **dict(FIRST, delivery_id=number, **more)))
            if more:
                peer.give(transfer(b""))
        if store is not None:
            for _ in range(3):
                broker.run()
            assert [name for name, _, _, _ in peer.frames() if name != "flow"] == []
            store.stalls = False
            for _ in range(3):
                broker.run()
        found = [fields for name, fields, _, _ in peer.frames() if name == "disposition"]
        assert {number for fields in found for number in range(fields["first"], (fields["last"] or fields["first"]) + 1)} == {0, 1}
        assert [(fields["settled"], fields["state"]) for fields in found] == [(True, ("accepted", {}))] * len(found)
        assert broker.queues["q"].message_count() == 2
        link = peer.connection.session.mapped[0].links[0]
        assert link.unsettled == {} and peer.connection.session.mapped[0].received == {}


def test_settle_modes_of_a_sender_are_kept():
    """Section 2.8.2."""
    for mode, settled in ((0, True), (1, False)):
        broker = new_broker()
        declare(broker)
        peer = Peer(broker)
        peer.sender(snd_settle_mode=mode)
        peer.give(transfer(data(b"x"), settled=settled, **FIRST))
        assert error_in(peer.frames(), "detach")[0] == "amqp:not-allowed"


def test_a_presettled_delivery_is_not_answered():
    peer = ready()
    peer.give(transfer(data(b"x"), settled=True, **FIRST))
    assert peer.frames() == [] and peer.broker.queues["q"].message_count() == 1
    peer.give(transfer(data(b"y")[:5], more=True, delivery_id=1, delivery_tag=b"t") + transfer(data(b"y")[5:], settled=True))
    assert peer.frames() == [] and peer.broker.queues["q"].message_count() == 2
    assert peer.connection.session.mapped[0].received == {} and peer.connection.session.mapped[0].links[0].unsettled == {}


def test_a_message_that_is_larger_than_the_broker_takes_detaches_its_link():
    """Section 2.8.18, message-size-exceeded; sections that are no message, decode-error."""
    peer = ready(content_size_max=1024)
    octets = data(b"x" * 1500)
    peer.give(transfer(octets[:700], more=True, **FIRST) + transfer(octets[700:]))
    assert error_in(peer.frames(), "detach")[0] == "amqp:link:message-size-exceeded"
    assert peer.connection.session.unfinished == 0
    found, peer = answers(transfer(b"\x00\x53\x99\x40", **FIRST), ready)
    assert error_in(found, "detach")[0] == "amqp:decode-error"
    found, peer = answers(transfer(data(b"x")[:-1], **FIRST), ready)
    assert error_in(found, "detach")[0] == "amqp:decode-error"


def test_a_message_larger_than_a_receiver_takes_stays_and_its_link_is_detached():
    """Section 2.7.3, max-message-size."""
    peer = ready(2)
    peer.receiver(max_message_size=5)
    assert error_in(peer.frames(), "detach")[0] == "amqp:link:message-size-exceeded"
    assert peer.broker.queues["q"].message_count() == 2


def test_what_comes_on_a_link_that_was_detached_for_an_error_is_dropped_and_counts_in_its_session():
    """Section 2.6.5."""
    peer = ready()
    peer.give(transfer(b"\x00\x53\x99\x40", **FIRST))
    for number in (1, 2):
        peer.give(transfer(data(b"x"), delivery_id=number, delivery_tag=b"t"))
    assert [each[0] for each in peer.frames()] == ["detach"]
    session = peer.connection.session.mapped[0]
    assert session.next_incoming_id == 3
    peer.give(performative("detach", handle=0, closed=True))
    peer.sender()
    peer.send(3, b"x")
    assert [each[0] for each in peer.frames()] == ["disposition"]


def test_a_transfer_to_a_receiver_of_ours_is_refused():
    peer = ready()
    peer.receiver(credit=0)
    peer.give(transfer(data(b"x"), handle=1, **FIRST))
    assert error_in(peer.frames(), "detach")[0] == "amqp:invalid-field"


def test_a_publisher_waits_when_the_broker_has_no_room_and_goes_on_when_it_has():
    """Back-pressure: the connection is read no further; nothing is lost, and no message comes twice."""
    peer = ready(message_count_max=16, entry_count_max=64)
    number = 0
    while peer.connection.reading and number < 100:
        peer.send(number, b"%d" % number)
        peer.collect()
        number += 1
    assert not peer.connection.reading and number == 13  # a queue has three quarters of the places at most, and one waits
    other = Peer(peer.broker)
    other.receiver(credit=100)
    found = []
    for _ in range(20):
        for each in other.messages():
            found.append(each)
            other.settle(each[0], ("accepted", {}))
        peer.collect()
    assert [int(each[1]) for each in found] == list(range(13)) and peer.connection.reading
    assert peer.broker.counters["internal_errors"] == 0


def test_a_half_sent_message_of_several_transfers_waits_for_room_without_a_gap():
    """A transfer that its message has no room for is taken again from where it stopped."""
    peer = ready(arena_size=4096 * 2, content_size_max=2048, block_size=64, properties_size_max=128)
    other = Peer(peer.broker, container="other")
    other.sender()
    count = 0
    while other.connection.reading and count < 200:
        other.send(count, b"z" * 600)
        other.collect()
        count += 1
    body = bytes(range(200)) * 5
    octets = data(body)
    frames = b""
    for at in range(0, len(octets), 400):
        given = FIRST if at == 0 else {}
        frames += transfer(octets[at : at + 400], more=at + 400 < len(octets), **given)
    sent = peer.give(frames)
    assert not peer.connection.reading
    reader = Peer(peer.broker)
    reader.receiver(credit=300)
    found = []
    for _ in range(100):
        for each in reader.messages():
            found.append(each[1])
            reader.settle(each[0], ("accepted", {}))
        other.collect()
        peer.collect()
        sent += peer.give(frames[sent:])
    assert body in found and len(found) == count + 1, (count, len(found))


def test_deliveries_that_leave_settled_are_settled():
    """Section 2.8.2: settled."""
    peer = ready(3)
    peer.receiver(snd_settle_mode=1)
    found = [each for each in peer.frames() if each[0] == "transfer"]
    assert [each[1]["settled"] for each in found] == [True] * 3
    assert peer.broker.queues["q"].unsettled_count() == 0 and peer.broker.queues["q"].message_count() == 0
    state = peer.broker.tables.state
    assert state[layout.POOL_MESSAGES + 2] == peer.broker.limits.message_count_max


def test_two_links_of_a_session_share_a_queue():
    peer = ready()
    peer.receiver(name="a", handle=1)
    peer.receiver(name="b", handle=2)
    for number in range(4):
        peer.send(number, b"%d" % number)
    handles = [each[1]["handle"] for each in peer.frames() if each[0] == "transfer"]
    assert sorted(handles) == [1, 1, 2, 2]
