"""Rules of part 2 that a second reading against the code found to be missing, each with its section."""

from memory_store import MemoryStore, durable_broker
from peer_1_0 import Peer, answers, data, declare, error_in, new_broker, performative
from test_1_0_recovery import ACCEPTED, count, deliveries, filled, outcome, post, receiver, sender, settle

from leveret.core.amqp_1_0 import bounds

FIRST = {"handle": 0, "delivery_id": 0, "delivery_tag": b"t", "message_format": 0}


def transfer(octets, **given):
    return performative("transfer", 0, octets, **given)


def ready(**given):
    """A peer with a sender to q."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker)
    peer.sender(**given)
    return peer


def test_a_resumed_delivery_that_we_do_not_know_is_ignored():
    """Sections 2.6.13 and 2.7.5: so senders may resume before they have seen our map; sent anew, the delivery is taken."""
    for more in (False, True):
        octets = transfer(data(b"x"), resume=True, more=more, **FIRST) + (transfer(b"", handle=0) if more else b"")
        found, peer = answers(octets, ready)
        assert found == [] and peer.broker.queues["q"].message_count() == 0
        link = peer.connection.session.mapped[0].links[0]
        assert link.unsettled == {} and link.credit == link.credit_max - 1
        peer.give(transfer(data(b"x"), handle=0, delivery_id=1, delivery_tag=b"t"))
        assert outcome(peer) == (1, True, "accepted") and peer.broker.queues["q"].message_count() == 1


def test_a_link_that_settles_may_say_so_on_any_transfer_of_a_delivery():
    """Section 2.7.5, settled: true on at least one of them (snd-settle-mode settled); on none (unsettled), but for aborted ones."""
    first, last = data(b"xy")[:4], data(b"xy")[4:]

    def settling():
        return ready(snd_settle_mode=1)

    def not_settling():
        return ready(snd_settle_mode=0)

    found, peer = answers(transfer(first, more=True, **FIRST) + transfer(last, handle=0, settled=True), settling)
    assert found == [] and peer.broker.queues["q"].message_count() == 1
    found, peer = answers(transfer(first, more=True, **FIRST) + transfer(last, handle=0), settling)
    assert error_in(found, "detach")[0] == "amqp:not-allowed" and peer.broker.queues["q"].message_count() == 0
    found, peer = answers(transfer(first, more=True, **FIRST) + transfer(last, handle=0, settled=True), not_settling)
    assert error_in(found, "detach")[0] == "amqp:not-allowed" and peer.broker.queues["q"].message_count() == 0
    for make in (settling, not_settling):
        found, peer = answers(transfer(first, more=True, **FIRST) + transfer(b"", handle=0, aborted=True, settled=True), make)
        assert found == [] and peer.broker.queues["q"].message_count() == 0


def test_the_settle_mode_of_a_settled_delivery_is_ignored():
    """Section 2.7.5, rcv-settle-mode."""
    found, peer = answers(transfer(data(b"x"), settled=True, rcv_settle_mode=1, **FIRST), ready)
    assert found == [] and peer.broker.queues["q"].message_count() == 1


def test_a_frame_on_a_channel_above_channel_max_is_a_framing_error():
    """Section 2.7.1, channel-max."""
    for name, given in (
        ("end", {}),
        ("detach", {"handle": 0}),
        ("begin", {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}),
    ):
        found, _ = answers(performative(name, 60000, **given))
        assert error_in(found, "close")[0] == "amqp:connection:framing-error"


def test_the_hostname_of_the_log_in_counts_where_open_has_none():
    """Section 2.7.1, hostname: it may have been said by sasl-init already."""
    from peer_1_0 import HEADER_AMQP, HEADER_SASL, sasl

    for name, wanted in (("vhost:/", None), ("vhost:other", "amqp:not-found")):
        peer = Peer(new_broker(), opens=False)
        peer.give(HEADER_SASL + sasl("sasl-init", mechanism="PLAIN", initial_response=b"\x00guest\x00guest", hostname=name) + HEADER_AMQP)
        peer.give(performative("open", container_id="x"))
        assert peer.take(8) == HEADER_SASL
        assert [peer.expect(each)[0] for each in ("sasl-mechanisms", "sasl-outcome")]
        assert peer.take(8) == HEADER_AMQP
        frames = peer.frames()
        assert [each[0] for each in frames] == (["open"] if wanted is None else ["open", "close"])
        assert wanted is None or error_in(frames, "close")[0] == wanted


def test_who_resumes_a_link_gets_a_map_though_nothing_is_in_it():
    """Section 2.6.3: an end that has a terminus already includes its unsettled delivery state."""
    peer = ready()
    target = ("target", {"address": "/queues/q", "expiry-policy": "never"})
    assert peer.attach("again", 2, False, None, target=target, rcv_settle_mode=1, unsettled={})["unsettled"] == {}
    peer.expect("flow")
    source = ("source", {"address": "/queues/q"})
    assert peer.attach("in", 3, True, None, source=source, rcv_settle_mode=1, unsettled={})["unsettled"] == {}
    assert peer.attach("new", 4, True, None, source=source, rcv_settle_mode=1)["unsettled"] is None


def test_after_an_incomplete_map_of_ours_new_deliveries_wait_for_another_attach():
    """Section 2.7.3, incomplete-unsettled: a transfer that resumes nothing detaches the link with an error."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker)
    sender(peer)
    tags = [b"%032d" % number for number in range(10)]
    for number, tag in enumerate(tags):
        peer.give(transfer(data(b"x"), handle=0, delivery_id=number, delivery_tag=tag))
        assert outcome(peer)[2] == "accepted"
    peer.connection.received(0)
    again = Peer(broker, max_frame_size=bounds.ATTACH_ROOM + 100)
    target = ("target", {"address": "/queues/q", "durable": 2, "expiry-policy": "never"})
    given = {"target": target, "rcv_settle_mode": 1, "unsettled": dict.fromkeys(tags)}
    fields = again.attach("out", 0, False, None, **given)
    known = list(fields["unsettled"])
    assert fields["incomplete-unsettled"] and 0 < len(known) < len(tags)
    again.expect("flow")
    again.give(transfer(b"", handle=0, delivery_id=0, delivery_tag=known[0], resume=True, settled=True))
    assert again.frames() == [] and broker.kept.count == len(tags) - 1
    again.give(transfer(data(b"new"), handle=0, delivery_id=1, delivery_tag=b"new"))
    assert error_in(again.frames(), "detach")[0] == "amqp:not-allowed"
    assert count(broker) == len(tags)


def test_after_an_incomplete_map_of_the_receivers_only_what_is_resumed_is_sent():
    """Section 2.7.3, incomplete-unsettled: a sending endpoint sends no new delivery."""
    broker, _ = durable_broker(MemoryStore())
    filled(broker, (b"a", b"b", b"c"))
    peer = Peer(broker)
    receiver(peer, credit=2)
    (first, _, _), _ = deliveries(peer)
    peer.connection.received(0)
    peer = Peer(broker)
    source = ("source", {"address": "/queues/q", "durable": 2, "expiry-policy": "never"})
    given = {"source": source, "rcv_settle_mode": 1, "unsettled": {first: None}, "incomplete_unsettled": True}
    assert set(peer.attach("in", 1, True, None, **given)["unsettled"]) == {first}
    peer.credit(10)
    assert deliveries(peer) == [(first, True, b"a")]
    peer.give(performative("detach", handle=1))
    peer.expect("detach")
    assert receiver(peer, {first: ACCEPTED}) == set()
    assert [body for _, _, body in deliveries(peer)] == [b"b", b"c"]


def test_a_sender_recovers_its_link_by_the_name_alone():
    """Section 2.6.3, recovering a link: an attach without a target finds the one that is there, behind a power cut too."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    declare(broker)
    peer = Peer(broker)
    sender(peer)
    post(peer, 0, b"a")
    assert outcome(peer) == (0, False, "accepted")
    for how in ("lost", "cut"):
        if how == "cut":
            broker, _ = durable_broker(store.cut())
        else:
            peer.connection.received(0)
        peer = Peer(broker)
        fields = peer.attach("out", 0, False, None, target=None, rcv_settle_mode=1, unsettled={b"a": None})
        target = fields["target"][1]
        assert (target["address"], target["durable"], target["expiry-policy"]) == ("/queues/q", 2, "never")
        assert set(fields["unsettled"]) == {b"a"} and fields["rcv-settle-mode"] == 1
    peer.expect("flow")
    post(peer, 0, b"b")
    assert outcome(peer) == (0, False, "accepted") and count(broker) == 2
    settle(peer, 0)
    peer.attach("unknown", 1, False, None, target=None)
    assert peer.expect("detach")[1]["error"]["condition"] == "amqp:invalid-field"
