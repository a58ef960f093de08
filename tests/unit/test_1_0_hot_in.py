"""What the hot path of 1.0 takes in (amqp_1_0/hot_in.py) is what sessions and links would: frames that are cut, frames with a wrong octet,
numbers that wrap. One broker has the hot path, the other takes frame by frame."""

import struct

from peer_1_0 import Peer, data, declare, new_broker, one_by_one, performative

from leveret.core.amqp_1_0 import composites, types
from leveret.core.memory import layout

BODY = b"body of a message"
SECTIONS = (
    composites.write("header", {"durable": True, "priority": 3, "ttl": None, "first-acquirer": False, "delivery-count": 2})
    + composites.write("properties", {"message-id": "m", "to": "t", "content-type": "text/plain", "creation-time": 1700000000000})
    + b"\x00\x53\x74"
    + types.encode({"a": 1, "b": "text", "c": b"\x00\xff", "d": None, "e": ("ubyte", 200), "f": -3})
    + data(BODY)
)


def peer_of(ingests=True, **given):
    """A peer with a sender and a receiver of queue q, at a broker that has the hot path or has not."""
    broker = new_broker()
    broker.tables.engine.ingests = ingests
    declare(broker)
    peer = Peer(broker, **given)
    peer.sender()
    return peer


def transfer(number, octets, **given):
    """Its delivery-tag is the number twice, so that no wrong octet makes it that of another transfer."""
    return performative(
        "transfer", 0, octets, handle=0, delivery_id=number, delivery_tag=struct.pack(">II", number, number), message_format=0, **given
    )


def unseen(peer):
    """A list to which the names of frames are added that come to the session, and are lost there."""
    names: list = []
    peer.connection.session.mapped[0].process_frame = lambda name, *given: names.append(name)
    return names


def seen(peer):
    """What a peer and a broker's tables say of what has come."""
    broker = peer.broker
    answers = one_by_one(peer.frames())
    messages = broker.tables.messages
    columns = []
    queue = broker.queues["q"]
    entry = queue.head()
    while entry != layout.NONE:
        message = broker.tables.entries[entry]
        columns.append([messages[message + place] for place in (layout.MESSAGE_PROPERTIES, layout.MESSAGE_BODY, layout.MESSAGE_KIND)])
        columns[-1].append(messages[message + layout.MESSAGE_LIFETIME])
        entry = broker.tables.entries[entry + layout.ENTRY_NEXT]
    assert broker.counters["internal_errors"] == 0
    return answers, columns, queue.unsettled_count()


def test_a_transfer_is_taken_when_its_last_octet_is_there():
    """Cut in two anywhere, and never by the session."""
    octets = transfer(0, SECTIONS, settled=True)
    for size in range(len(octets)):
        peer = peer_of()
        names = unseen(peer)
        peer.give(octets[:size])
        assert peer.broker.queues["q"].message_count() == 0, size
        peer.give(octets[size:])
        assert names == [] and peer.broker.queues["q"].message_count() == 1, size


def test_a_transfer_with_one_wrong_octet_comes_to_the_same_as_frame_by_frame():
    """Section 2.7.5, and the sections of 3.2: every octet but those of the body, with one of its bits turned."""
    octets = transfer(0, SECTIONS, settled=False, batchable=True)
    for place in range(len(octets) - len(BODY)):
        wrong = bytearray(octets)
        wrong[place] ^= 1 << place % 8
        found = []
        for ingests in (True, False):
            peer = peer_of(ingests)
            peer.give(bytes(wrong) + transfer(1, data(b"next"), settled=True))
            found.append(seen(peer))
        assert found[0] == found[1], place


def test_delivery_ids_that_wrap_are_taken():
    """Section 2.8.9, at 2^30, where the flat numbers have their second field, at 2^31 and at 2^32."""
    for first in (0x3FFFFFFD, 0x7FFFFFFD, 0xFFFFFFFD):
        peer = peer_of()
        names = unseen(peer)
        for step in range(6):
            peer.give(transfer((first + step) & 0xFFFFFFFF, data(b"%d" % step), settled=False))
        assert names == []
        settled = [fields["first"] for name, fields, _, _ in one_by_one(peer.frames()) if name == "disposition"]
        assert settled == [(first + step) & 0xFFFFFFFF for step in range(6)]
        peer = peer_of()
        peer.give(transfer(first, data(b"one"), settled=True) + transfer(first + 2 & 0xFFFFFFFF, data(b"two"), settled=True))
        assert [each[0] for each in peer.frames()] == ["end"], "a delivery-id was left out"


def test_dispositions_are_taken_where_delivery_ids_wrap():
    """Section 2.7.6: ranges that end before, at and behind the border; and one of delivery-ids that are 2^30 away is nobody's."""
    for high, low in ((0, layout.MASK - 2), (1, layout.MASK - 2), (3, layout.MASK - 2), (5, 0)):
        for count in (1, 3, 6):
            peer = peer_of()
            channels, session = peer.broker.tables.channels, peer.connection.session.mapped[0]
            channels[session.handle + layout.CHANNEL_TAG] = low
            channels[session.handle + layout.CHANNEL_TAG_HIGH] = high
            for number in range(6):
                peer.send(number, b"%d" % number, settled=True)
            peer.receiver()
            ids = [fields["delivery-id"] for name, fields, _, _ in peer.frames() if name == "transfer"]
            assert ids == [((high << 30) + low + 1 + step) & 0xFFFFFFFF for step in range(6)]
            peer.settle((ids[0] + 0x40000000) & 0xFFFFFFFF, ("accepted", {}), (ids[count - 1] + 0x40000000) & 0xFFFFFFFF)
            assert peer.broker.queues["q"].unsettled_count() == 6
            names = unseen(peer)
            peer.settle(ids[0], ("accepted", {}), ids[count - 1])
            assert names == [] and peer.broker.queues["q"].unsettled_count() == 6 - count
