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


# Values as section 1.6 writes them, of each type with one value; the hot path leaves to the session what it does not know.
SCALARS = (
    (b"\x40", True),
    (b"\x41", True),
    (b"\x42", True),
    (b"\x43", True),
    (b"\x44", True),
    (b"\x50\x7f", True),
    (b"\x51\x80", True),
    (b"\x52\xff", True),
    (b"\x53\x00", True),
    (b"\x54\x80", True),
    (b"\x55\x01", True),
    (b"\x56\x01", False),  # a boolean of an octet: the smaller encoding is the usual one
    (b"\x60\x01\x02", True),
    (b"\x61\xff\xfe", True),
    (b"\x70\x00\x00\x01\x00", True),
    (b"\x71\xff\xff\xff\x00", True),
    (b"\x72\x3f\xc0\x00\x00", False),
    (b"\x73\x00\x00\x00\xfc", False),
    (b"\x74\x22\x50\x00\x01", False),
    (b"\x80\x80\x00\x00\x00\x00\x00\x00\x00", True),
    (b"\x81\x80\x00\x00\x00\x00\x00\x00\x00", True),
    (b"\x82\x3f\xf8\x00\x00\x00\x00\x00\x00", True),
    (b"\x83\x00\x00\x01\x31\x67\xad\xb8\xa1", True),
    (b"\x84" + bytes(8), False),
    (b"\x94" + bytes(16), False),
    (b"\x98" + bytes(range(240, 256)), True),
    (b"\xa0\x02\x00\xff", True),
    (b"\xa1\x02ab", True),
    (b"\xa3\x02ab", True),
    (b"\xb1\x00\x00\x00\x02ab", False),
)
# Section 3.2.4: message-id and correlation-id are a ulong, a uuid, a binary or a string.
IDENTITIES = (b"\x44", b"\x53\x07", b"\x80" + bytes(7) + b"\xff", b"\x98" + bytes(range(120, 136)), b"\xa0\x03\x00\xff\x01", b"\xa1\x02id")


def body_list(code, items, descriptor):
    """A section whose list or map (its constructor of 8 bits) has these values, as octets."""
    octets = b"".join(items)
    return b"\x00\x53" + bytes((descriptor, code, len(octets) + 1, len(items))) + octets


def same_by_both(octets):
    """Whether the hot path has taken a transfer of these sections by itself; what has come is the same frame by frame."""
    found = []
    for ingests in (True, False):
        peer = peer_of(ingests)
        peer.give(transfer(0, octets + data(BODY), settled=False) + transfer(1, data(b"next"), settled=True))
        found.append(seen(peer))
    assert found[0] == found[1], octets
    peer = peer_of()
    names = unseen(peer)
    peer.give(transfer(0, octets + data(BODY), settled=False))
    return names == []


def test_application_properties_of_every_type_come_to_the_same_as_frame_by_frame_3_2_5():
    for value, is_known in SCALARS:
        assert same_by_both(body_list(0xC1, [b"\xa1\x01k", value, b"\xa1\x01l", b"\x41"], 0x74)) >= is_known, value  # C knows more
        if len(value) > 1:  # the section says it is shorter than its last value
            cut = body_list(0xC1, [b"\xa1\x01k", value], 0x74)
            assert not same_by_both(cut[:3] + bytes((cut[3] - 1,)) + cut[4:-1])


def test_identities_of_every_type_come_to_the_same_as_frame_by_frame_3_2_4():
    for value in IDENTITIES:
        assert same_by_both(body_list(0xC0, [value], 0x73)), value
        assert same_by_both(body_list(0xC0, [b"\x40"] * 5 + [value], 0x73)), value
        assert not same_by_both(body_list(0xC0, [value[:-1]], 0x73)) or len(value) == 1
    for wrong in (b"\x43", b"\x52\x01", b"\x41", b"\x83" + bytes(8), b"\xc0\x01\x00"):
        assert not same_by_both(body_list(0xC0, [wrong], 0x73)), wrong


def test_a_group_sequence_is_a_uint_and_times_are_timestamps_3_2_4():
    time = b"\x83\x00\x00\x01\x31\x67\xad\xb8\xa1"
    for place, value, is_known in (
        (11, b"\x43", True),
        (11, b"\x52\x09", True),
        (11, b"\x70\x00\x00\x01\x00", True),
        (11, b"\x53\x09", False),
        (11, b"\x41", False),
        (9, time, True),
        (9, b"\x80" + time[1:], False),
        (8, time, False),  # absolute-expiry-time alone is a lifetime, which the session reckons
    ):
        assert same_by_both(body_list(0xC0, [b"\x40"] * place + [value], 0x73)) >= is_known, (place, value)
