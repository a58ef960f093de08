"""AMQP 1.0 from the header to a message that has come back (parts 2, 3 and 5), whole and octet by octet."""

from peer_1_0 import Peer, declare, new_broker

from leveret.core.amqp_1_0.spec_1_0 import HEADER_AMQP, HEADER_SASL


def test_a_message_goes_through_a_queue_and_is_settled_whole_and_octet_by_octet():
    for step in (0, 1, 7):
        broker = new_broker()
        declare(broker)
        peer = Peer(broker, step)
        assert peer.sender() > 0
        peer.send(0, b"hello")
        name, fields, _, _ = peer.expect("disposition")
        assert fields["role"] and fields["first"] == 0 and fields["settled"] and fields["state"] == ("accepted", {})
        peer.receiver()
        ((number, body),) = peer.messages()
        assert body == b"hello"
        peer.settle(number, ("accepted", {}))
        assert peer.frames() == [] and broker.queues["q"].message_count() == 0 and broker.queues["q"].unsettled_count() == 0
        assert broker.counters["internal_errors"] == 0


def test_a_message_of_several_transfers_both_ways():
    """Sections 2.6.14: more, and continuations without delivery-id."""
    broker = new_broker()
    declare(broker)
    peer = Peer(broker, max_frame_size=512)
    peer.sender()
    body = bytes(range(256)) * 12
    from peer_1_0 import data, performative

    octets = data(body)
    for at in range(0, len(octets), 500):
        given = {"delivery_id": 0, "delivery_tag": b"t", "message_format": 0} if at == 0 else {}
        peer.give(performative("transfer", 0, octets[at : at + 500], handle=0, more=at + 500 < len(octets), **given))
    assert peer.expect("disposition")[1]["state"] == ("accepted", {})
    peer.receiver()
    assert [each[1] for each in peer.messages()] == [body]


def test_outcomes_of_a_receiver():
    """Sections 3.4.2 to 3.4.5."""
    for state, left, failed in (
        (("rejected", {}), 0, None),
        (("released", {}), 1, None),
        (("modified", {}), 1, None),
        (("modified", {"delivery-failed": True}), 1, 1),
        (("modified", {"undeliverable-here": True}), 1, None),
    ):
        broker = new_broker()
        declare(broker)
        peer = Peer(broker)
        peer.sender()
        peer.send(0, b"hello")
        peer.expect("disposition")
        peer.receiver(credit=1)
        ((number, _),) = peer.messages()
        peer.settle(number, state)
        assert broker.queues["q"].message_count() == left, state
        if left and not state[1].get("undeliverable-here"):
            peer.credit(1, delivery_count=1)
            ((_, fields, payload, _),) = peer.frames()
            assert (b"\x00Sp" in payload) == (failed is not None)


def test_the_header_without_sasl_is_for_anonymous_and_others_are_told_of_sasl():
    """Sections 2.2 and 5.3.1."""
    broker = new_broker()
    peer = Peer(broker, opens=False)
    peer.give(HEADER_AMQP)
    assert peer.take(8) == HEADER_SASL and peer.connection.ending
    broker = new_broker()
    broker.access.anonymous = "guest"
    peer = Peer(broker, opens=False)
    peer.give(HEADER_AMQP)
    assert peer.take(8) == HEADER_AMQP and not peer.connection.ending
