"""What AMQP 1.0 carries and this broker bounds, at the bound and one octet behind it: messages are rejected by themselves (part 3,
section 3.4.3), and the link goes on; only a body that is too large ends it."""

from peer_1_0 import Peer, data, declare, new_broker, performative

from leveret.core.amqp_1_0 import composites, types
from leveret.core.amqp_1_0.bounds import MESSAGE_MAX
from leveret.core.outcomes import nobody

ROOM = {"receive_buffer_size": 8192, "send_buffer_size": 8192, "properties_size_max": 600, "content_size_max": 2000}


def outcome_of(peer, number, octets, handle=0):
    """(name of the outcome, description or None) of a message."""
    peer.give(performative("transfer", 0, octets, handle=handle, delivery_id=number, delivery_tag=b"%d" % number))
    ((_, fields, _, _),) = [each for each in peer.frames() if each[0] == "disposition"]
    name, given = fields["state"]
    return name, given["error"]["description"] if given.get("error") else None


def largest(make, peer, wanted, words, handle=0):
    """`make(size)` makes octets of a message: of these sizes `wanted` is taken, and one more is rejected, in these words."""
    for number, size in enumerate((wanted, wanted + 1, wanted)):
        name, why = outcome_of(peer, peer.number + number, make(size), handle)
        assert name in (("rejected",) if size > wanted else ("accepted", "declared")), (wanted, size, name, why)
        assert size <= wanted or words in why, why
    peer.number += 3


def new(address):
    """A peer with a sender, beside queue q with the longest binding key."""
    broker = new_broker(**ROOM)
    declare(broker)
    broker.topology.bind(nobody, "q", "amq.direct", b"k" * 255, {})
    peer = Peer(broker)
    peer.number = 0
    peer.sender(address)
    return peer


def subject(size):
    return composites.write("properties", {"subject": "k" * size}) + data(b"x")


def test_a_routing_key_has_255_octets():
    """As 0-9-1's short strings, so that each family can deliver it."""
    largest(subject, new("/exchange/amq.direct"), 255, "a routing key of 256 octets; this broker takes 255")


def test_a_larger_body_than_content_size_max_ends_its_link():
    """The broker's attach names max-message-size (section 2.7.3); the error is amqp:link:message-size-exceeded (2.8.17)."""
    peer = new("/queues/q")
    assert outcome_of(peer, 0, data(b"x" * 2000))[0] == "accepted"
    peer.give(performative("transfer", 0, data(b"x" * 2001), handle=0, delivery_id=1, delivery_tag=b"1"))
    name, fields = [each for each in peer.frames() if each[0] != "flow"][0][:2]
    assert (name, fields["closed"], fields["error"]["condition"]) == ("detach", True, "amqp:link:message-size-exceeded")
    assert fields["error"]["description"] == "a body of 2001 octets; this broker takes 2000"


def test_a_message_to_a_coordinator_is_a_declare_or_a_discharge_and_no_longer():
    """Section 4.5: the message is one value; what is longer than MESSAGE_MAX is none, in one transfer or in several."""
    broker = new_broker(**ROOM)
    peer = Peer(broker)
    peer.number = 0
    peer.attach("txn", 9, False, None, target=("coordinator", {}))
    peer.expect("flow")

    def made(size):
        octets = b"\x00\x53\x77" + composites.write("declare", {})
        padding = size - len(octets) - 10
        notes = b"\x00\x53\x71" + types.encode({("symbol", "p"): "x" * padding})
        return b"\x00\x53\x71" + types.encode({("symbol", "p"): "x" * (padding - (len(notes) + len(octets) - size))}) + octets

    assert [len(made(size)) for size in (400, MESSAGE_MAX, MESSAGE_MAX + 1)] == [400, MESSAGE_MAX, MESSAGE_MAX + 1]
    largest(made, peer, MESSAGE_MAX, "more than 512 octets to a coordinator", 9)
    octets = made(MESSAGE_MAX + 1)
    peer.give(performative("transfer", 0, octets[:300], handle=9, delivery_id=3, delivery_tag=b"3", more=True))
    peer.give(performative("transfer", 0, octets[300:], handle=9))
    assert [fields["state"][0] for name, fields, _, _ in peer.frames() if name == "disposition"] == ["rejected"]
