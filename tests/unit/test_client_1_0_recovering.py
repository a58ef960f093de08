"""The AMQP 1.0 client's links that are recovered (part 2, section 2.6.13), each frame of a peer's by hand."""

from test_client_1_0 import HANDSHAKE, feed, opened, says, sent
from test_client_links_1_0 import ACCEPTED, SOURCE, delivery, disposition, flow

from leveret.core.amqp_1_0 import composites
from leveret.core.amqp_1_0.client import recovering
from leveret.core.amqp_1_0.client.message import data_head

SECOND = 1
TARGET = ("target", {"address": "q", "durable": 2, "expiry-policy": "never"})
TAKEN = composites.described("accepted", {})


def attach(events, client, sender, **fields):
    """The attach of a Sender, and the peer's with credit: what ours said."""
    assert sender.attach()
    ((name, ours, _),) = sent(client)
    assert name == "attach"
    given = dict(fields)
    given.setdefault("rcv_settle_mode", SECOND)
    given.setdefault("target", TARGET)
    feed(client, says("attach", name=sender.name, handle=3, role=True, source=SOURCE, **given))
    feed(client, flow(handle=3, delivery_count=0, link_credit=10))
    sent(client)
    assert events.seen[0] == ("attached", sender.name)
    events.seen = []
    return ours


def begun(**fields):
    """(recorder, client, sender) with credit, and what its attach said."""
    events, client = opened()
    sender = recovering.sender(client.session, "q", name="gw7")
    return events, client, sender, attach(events, client, sender, **fields)


def again(events, client):
    """A new connection of the same client."""
    events.seen = []
    client.reset()
    feed(client, HANDSHAKE)
    sent(client)
    events.seen = []


def test_an_attach_asks_for_a_target_that_is_kept_and_a_receiver_that_settles_second():
    _, _, sender, ours = begun()
    assert ours["name"] == "gw7" and ours["rcv-settle-mode"] == SECOND and ours["incomplete-unsettled"] is True
    target = ours["target"][1]
    assert target["durable"] == 2 and target["expiry-policy"] == "never" and target["address"] == "q"
    assert sender.keeps and sender.is_whole


def test_an_accepted_message_is_settled_when_its_owner_says_so_and_in_ranges():
    events, client, sender, _ = begun()
    numbers = [sender.send(b"", b"body", tag=b"t%d" % each) for each in range(5)]
    transfers = [fields for _, fields, _ in sent(client)]
    assert numbers == [1, 2, 3, 4, 5] and [fields["delivery-tag"] for fields in transfers] == [b"t0", b"t1", b"t2", b"t3", b"t4"]
    feed(client, disposition(0, 4, settled=False))
    assert events.seen == [("settled", number, "accepted", {}) for number in numbers] and sent(client) == []
    assert sender.held == {1: 0, 2: 1, 3: 2, 4: 3, 5: 4} and sender.unsettled == 0
    assert sender.settle([1, 2, 4]) == 3
    told = [(name, fields["first"], fields["last"], fields["settled"], fields["role"]) for name, fields, _ in sent(client)]
    assert told == [("disposition", 0, 1, True, False), ("disposition", 3, 3, True, False)] and sorted(sender.held) == [3, 5]


def test_what_is_not_accepted_is_settled_at_once():
    events, client, sender, _ = begun()
    for each in range(3):
        sender.send(b"", b"body", tag=b"t%d" % each)
    sent(client)
    feed(client, disposition(0, 0, settled=False) + disposition(1, 1, ("released", {}), settled=False))
    assert [fields["first"] for _, fields, _ in sent(client)] == [1] and list(sender.held) == [1]
    assert events.seen == [("settled", 1, "accepted", {}), ("settled", 2, "released", {})]


def test_what_the_peer_has_kept_is_resumed_without_its_octets():
    events, client, sender, _ = begun()
    sender.send(b"", b"one", tag=b"t1")
    sender.send(b"", b"two", tag=b"t2")
    sent(client)
    client.received(0)
    again(events, client)
    attach(events, client, sender, unsettled={b"t1": TAKEN})
    assert sender.kept == {b"t1": "accepted"} and sender.held == {}
    assert sender.send(b"", b"one", tag=b"t1") == 1 and sender.send(b"", b"two", tag=b"t2") == 2
    (_, first, payload), (_, second, octets) = sent(client)
    assert first["resume"] and first["state"] == ACCEPTED and first["delivery-tag"] == b"t1" and payload == b""
    assert not second["resume"] and octets == data_head(3) + b"two"
    assert (first["delivery-id"], second["delivery-id"]) == (0, 1) and sender.credit == 8 and sender.kept == {}
    feed(client, disposition(0, 1, settled=False))
    assert events.seen == [("settled", 1, "accepted", {}), ("settled", 2, "accepted", {})] and sender.settle([1, 2]) == 2


def test_what_the_peer_has_half_is_aborted_and_sent_anew():
    _, client, sender, _ = begun(unsettled={b"t1": None})
    assert sender.kept == {b"t1": ""} and sender.send(b"", b"one", tag=b"t1") == 2
    (_, aborted, _), (_, whole, octets) = sent(client)
    assert aborted["aborted"] and aborted["resume"] and whole["delivery-tag"] == b"t1" and octets == data_head(3) + b"one"
    assert (aborted["delivery-id"], whole["delivery-id"]) == (0, 1) and sender.unsettled == 1


def test_nothing_is_resumed_without_credit():
    _, client, sender, _ = begun(unsettled={b"t1": TAKEN})
    feed(client, flow(handle=3, delivery_count=0, link_credit=0))
    assert sender.send(b"", b"one", tag=b"t1") == 0 and sender.kept == {b"t1": "accepted"} and sent(client) == []


def test_what_the_peer_has_is_seen_first_and_is_the_map_of_the_next_attach():
    events, client, sender, first = begun(unsettled={b"t1": TAKEN, b"t2": None})
    assert "unsettled" not in first and sender.kept == {b"t1": "accepted", b"t2": ""}
    sender.known = dict(sender.kept)
    sender.leave(closed=False)
    feed(client, says("detach", handle=3))
    sent(client)
    events.seen = []
    second = attach(events, client, sender, unsettled={b"t1": TAKEN})
    assert not second["incomplete-unsettled"] and sorted(second["unsettled"]) == [b"t1", b"t2"] and sender.kept == {b"t1": "accepted"}
    assert composites.composite(second["unsettled"][b"t1"])[0] == "accepted" and second["unsettled"][b"t2"] is None


def test_a_peer_that_settles_first_or_at_once_or_whose_target_does_not_last_keeps_nothing():
    _, _, sender, _ = begun(target=("target", {"address": "q", "durable": 0}), unsettled={b"t1": TAKEN})
    assert not sender.keeps and sender.kept == {}
    _, _, sender, _ = begun(rcv_settle_mode=0, unsettled={b"t1": TAKEN})
    assert not sender.keeps and sender.kept == {}
    _, client, sender, _ = begun()
    sender.send(b"", b"one", tag=b"t1")
    feed(client, disposition(0))
    assert not sender.keeps and sender.held == {}


def test_a_peer_that_could_not_tell_all_is_noticed():
    _, _, sender, _ = begun(unsettled={b"t1": TAKEN}, incomplete_unsettled=True)
    assert not sender.is_whole and sender.kept == {b"t1": "accepted"}


def test_a_link_can_be_detached_without_closing_it():
    events, client, sender, _ = begun()
    assert sender.leave(closed=False)
    ((name, fields, _),) = sent(client)
    assert name == "detach" and not fields.get("closed")
    feed(client, says("detach", handle=3))
    assert events.seen.pop() == ("detached", "gw7", "", "") and sender.state == "detached"
    attach(events, client, sender)


def attached_receiver():
    """(recorder, client, receiver) that gets deliveries."""
    events, client = opened()
    receiver = recovering.receiver(client.session, "q", 4, name="r")
    assert joined(client, receiver) == {}
    return events, client, receiver


def joined(client, receiver, unsettled=None):
    """Attach a receiver: the map that its attach had."""
    receiver.attach()
    ((_, ours, _),) = sent(client)
    given = {"name": "r", "handle": 2, "role": False, "source": SOURCE, "target": TARGET, "initial_delivery_count": 0}
    feed(client, says("attach", unsettled=unsettled, **given))
    sent(client)
    return ours.get("unsettled", {})


def test_a_receiver_tells_what_it_has_decided_and_knows_what_comes_again():
    events, client, receiver = attached_receiver()
    feed(client, delivery(5, data_head(1) + b"a") + delivery(6, data_head(1) + b"b") + delivery(7, data_head(1) + b"c"))
    first, second, third = events.messages
    assert not receiver.is_resumed(first) and receiver.settle(first) and receiver.settle(second, "rejected")
    feed(client, disposition(5, settled=True, role=False))
    assert receiver.decided == {b"t6": "rejected"} and receiver.undecided == {b"t7": None}
    client.received(0)
    again(events, client)
    events.messages = []
    told = joined(client, receiver, {b"t7": None})
    assert sorted(told) == [b"t6", b"t7"] and told[b"t7"] is None and composites.composite(told[b"t6"])[0] == "rejected"
    assert receiver.decided == {} and receiver.undecided == {b"t7": None}
    feed(client, delivery(5, data_head(1) + b"c", delivery_tag=b"t7", resume=True) + delivery(6, data_head(1) + b"d", delivery_tag=b"t8"))
    assert [receiver.is_resumed(message) for message in events.messages] == [True, False]
    assert receiver.settle(events.messages[0]) and receiver.decided == {b"t7": "accepted"}


def test_a_map_with_what_is_no_outcome_and_a_target_that_keeps_nothing():
    """Sections 2.7.3 and 3.4: such a delivery has no outcome yet; a coordinator has no terminus-durability."""
    for state in (5, True, "text", [], {}, ("uint", 1), ("described", ("ulong", 0x99), []), ("described", ("ulong", 0x28), [])):
        _, _, sender, _ = begun(unsettled={b"t": state})
        assert sender.keeps and sender.kept == {b"t": ""}, state
    assert not begun(target=("coordinator", {}))[2].keeps
