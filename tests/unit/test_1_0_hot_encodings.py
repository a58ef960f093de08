"""The hot path of 1.0 (amqp_1_0/hot_in.py) reads every encoding of section 1.6 that the sections of a message and a disposition may have,
and takes the message as a link would have taken it. One broker has the hot path, the other takes frame by frame."""

import struct

from peer_1_0 import data, performative
from test_1_0_hot_in import peer_of, seen, transfer, unseen

from leveret.core.memory import layout

BODY = data(b"body")
EMPTY = b"\x00\x53\x24\x45"  # accepted, whose list has nothing
TEXT = b"\xa1\x04text"
# Every constructor of a value that is no list, map or array (section 1.6), with a value that none of its octets has in common.
ULONGS = (b"\x44", b"\x53\x01", b"\x80\x00\x01\x02\x03\x04\x05\x06\x07")
UINTS = (b"\x43", b"\x52\x02", b"\x70\x00\x01\x02\x03")
BINARIES = (b"\xa0\x00", b"\xa0\x03\x01\x02\x03")
SCALARS = (
    b"\x40",
    b"\x41",
    b"\x42",
    b"\x50\x01",
    b"\x51\x02",
    b"\x54\x03",
    b"\x55\x04",
    b"\x60\x05\x06",
    b"\x61\x07\x08",
    b"\x71\x00\x01\x02\x03",
    b"\x81\x00\x01\x02\x03\x04\x05\x06\x07",
    b"\x82\x3f\xf0\x00\x00\x00\x00\x00\x00",
    b"\x83\x00\x00\x01\x02\x03\x04\x05\x06",
    b"\x98" + bytes(range(16)),
    TEXT,
    b"\xa3\x01s",
) + (ULONGS + UINTS + BINARIES)


def section(code, form, items):
    """A section of `items`, in the list's or map's constructor `form`."""
    octets = b"".join(items)
    if form == 0x45:
        return b"\x00\x53" + bytes((code, form))
    if form & 0xF0 == 0xC0:
        return b"\x00\x53" + bytes((code, form, len(octets) + 1, len(items))) + octets
    return b"\x00\x53" + bytes((code, form)) + struct.pack(">II", len(octets) + 4, len(items)) + octets


def taken(octets, is_valid=True):
    """Give a message to both brokers: how many of its frames came to the session of the one with the hot path."""
    told, counts = [], []
    for ingests in (True, False):
        peer = peer_of(ingests)
        names = []
        session = peer.connection.session.mapped[0]
        process = session.process_frame

        def noted(name, *given, names=names, process=process):
            names.append(name)
            return process(name, *given)

        session.process_frame = noted
        peer.give(transfer(0, octets, settled=False))
        counts.append(len(names))
        peer.give(transfer(1, BODY, settled=True))
        told.append(seen(peer))
        assert (peer.broker.queues["q"].message_count() == 2) == is_valid, octets
    assert told[0] == told[1], octets
    return counts[0]


def test_every_constructor_in_every_place_of_application_properties():
    """Section 3.2.5: keys are strings, values of simple types."""
    for value in SCALARS:
        assert taken(section(0x74, 0xC1, (TEXT, value)) + BODY) == 0, value
        assert taken(section(0x74, 0xD1, (b"\xa1\x01k", value, TEXT, b"\x41")) + BODY) == 0, value
    for value in (b"\x72\x3f\x80\x00\x00", b"\x73\x00\x00\x00\x41", b"\x74\x00\x00\x00\x00"):
        assert taken(section(0x74, 0xC1, (TEXT, value)) + BODY) == 1, "read by the link, and the same"


def test_a_key_of_application_properties_that_comes_again_is_for_the_session():
    """Section 1.6.23: a map with two keys that are alike is no map. The first key is compared with all that follow it."""
    pairs = [b"\xa1\x01" + letter + b"\x41" for letter in (b"a", b"b", b"c")]
    for keys, count in (((0, 1, 2), 0), ((0, 0), 1), ((0, 1, 0), 1), ((0, 1, 1), 1)):
        octets = b"".join([pairs[key] for key in keys])
        octets = b"\x00\x53\x74\xc1" + bytes((len(octets) + 1, 2 * len(keys))) + octets
        assert taken(octets + BODY, count == 0) == count, keys


def test_every_constructor_of_the_ids_of_a_message():
    """Section 3.2.4: message-id and correlation-id are a ulong, uuid, binary or string; group-sequence is a uint."""
    for value in ULONGS + BINARIES + (b"\x98" + bytes(range(16)), TEXT, b"\x40"):
        for place in (0, 5):
            form = 0xC0 if place else 0xD0
            assert taken(section(0x73, form, (b"\x40",) * place + (value, b"\x40")) + BODY) == 0, (value, place)
    for value in UINTS + (b"\x40",):
        assert taken(section(0x73, 0xC0, (b"\x40",) * 11 + (value, TEXT)) + BODY) == 0, value
    assert taken(section(0x73, 0xC0, (b"\x40",) * 9 + (b"\x83\x00\x00\x01\x02\x03\x04\x05\x06",)) + BODY) == 0


def test_every_text_of_the_properties_and_symbols_only_where_they_are_one():
    """Section 3.2.4: to, subject, reply-to, group-id and reply-to-group-id are strings, content-type and content-encoding symbols."""
    for place in (2, 3, 4, 10, 12):
        assert taken(section(0x73, 0xC0, (b"\x40",) * place + (TEXT,)) + BODY) == 0, place
    for place in (6, 7):
        assert taken(section(0x73, 0xC0, (b"\x40",) * place + (b"\xa3\x01s",)) + BODY) == 0, place


def test_every_constructor_of_the_header():
    """Section 3.2.1: durable, priority, ttl, first-acquirer, delivery-count."""
    flags = (b"\x40", b"\x41", b"\x42")
    for durable, priority, first in zip(flags, (b"\x50\x00", b"\x40", b"\x50\x09"), flags[1:] + flags[:1]):
        assert taken(section(0x70, 0xC0, (durable, priority, b"\x40", first, b"\x40")) + BODY) == 0
    for value in (b"\x40", b"\x52\x02", b"\x70\x00\x01\x02\x03", b"\x70\x3f\xff\xff\xff"):
        octets = section(0x70, 0xD0, (b"\x41", b"\x50\x04", value)) + BODY
        assert taken(octets) == (value != b"\x40"), "a lifetime is for the session, which knows the clock"
    for value in UINTS:
        assert taken(section(0x70, 0xC0, (b"\x40",) * 4 + (value,)) + BODY) == 0, value
    assert taken(section(0x70, 0xC0, (b"\x41", b"\x50\x04", b"\x70\x40\x00\x00\x00")) + BODY) == 1, "of more than 30 bits"


def test_sections_that_are_empty_or_stand_in_the_wrong_order():
    """Section 3.2: header, properties, application-properties, data, each once; an empty list has a constructor of its own."""
    assert taken(section(0x70, 0x45, ()) + section(0x73, 0x45, ()) + BODY) == 0
    for form in (0xC1, 0xD1):
        assert taken(section(0x74, form, ()) + BODY) == 0
    for size in (0, 1, 255, 256, 700):
        body = bytes(number & 0xFF for number in range(size))
        small = b"\x00\x53\x75\xa0" + bytes((size,)) + body if size < 256 else b""
        for octets in filter(None, (small, b"\x00\x53\x75\xb0" + struct.pack(">I", size) + body)):
            assert taken(octets) == 0, size


def disposition(first, last, state, batchable):
    """A disposition of a receiver, settled, from encoded fields."""
    fields = [b"\x41", first, last, b"\x41", state] + ([] if batchable is None else [batchable])
    octets = b"".join(fields)
    octets = b"\x00\x53\x15\xc0" + bytes((len(octets) + 1, len(fields))) + octets
    return struct.pack(">IBBH", len(octets) + 8, 2, 0, 0) + octets


def reader():
    """A peer that has four deliveries, with the ids 0 to 3."""
    peer = peer_of()
    session = peer.connection.session.mapped[0]
    peer.broker.tables.channels[session.handle + layout.CHANNEL_TAG] = layout.MASK
    peer.broker.tables.channels[session.handle + layout.CHANNEL_TAG_HIGH] = 3
    for number in range(4):
        peer.send(number, b"%d" % number, settled=True)
    peer.receiver()
    ids = [fields["delivery-id"] for name, fields, _, _ in peer.frames() if name == "transfer"]
    assert ids == [0, 1, 2, 3]
    return peer


def test_every_constructor_of_a_disposition():
    """Section 2.7.6: first and last are uints, or last is left out; accepted has no fields, in both forms of an empty list."""
    for first in (b"\x43", b"\x52\x00", b"\x70\x00\x00\x00\x00"):
        for last, count in ((b"\x40", 1), (first, 1), (b"\x52\x02", 3), (b"\x70\x00\x00\x00\x01", 2)):
            for state, batchable in ((EMPTY, None), (EMPTY, b"\x40"), (b"\x00\x53\x24\xc0\x01\x00", b"\x41"), (EMPTY, b"\x42")):
                peer = reader()
                names = unseen(peer)
                peer.give(disposition(first, last, state, batchable))
                assert names == [] and peer.broker.queues["q"].unsettled_count() == 4 - count, (first, last, state, batchable)


def test_a_disposition_with_another_state_or_role_is_for_the_session():
    accepted = ("accepted", {})
    for given in (
        {"role": True, "settled": True, "state": ("released", {})},
        {"role": True, "settled": False, "state": accepted},
        {"role": False, "settled": True, "state": accepted},
        {"role": True, "settled": True, "state": ("modified", {"delivery-failed": True})},
    ):
        peer = reader()
        names = unseen(peer)
        peer.give(performative("disposition", 0, first=0, **given))
        assert names == ["disposition"] and peer.broker.queues["q"].unsettled_count() == 4, given


def test_a_disposition_whose_last_field_is_no_boolean_is_refused():
    """Section 2.7.6: batchable is a boolean."""
    peer = reader()
    peer.give(disposition(b"\x43", b"\x40", b"\x00\x53\x24\x45", b"\x43"))
    assert [name for name, _, _, _ in peer.frames()] in (["end"], ["close"])
