"""The client of the two drafts of 2005: its octets are those of the figures of their texts ("The Frame Header Wire Format", "Extended Frame
Header Wire Format", "Method Frame Body Wire Format", "Content Header Frame Wire Format"; "General Frame Format", "Method Frames", "The
Content Header"), worked out by hand; then it meets the broker, whose reading of the texts is another one (core/amqp_0_9/drafts)."""

import struct

from same_random import Random
from test_client_connection import feed
from test_client_older import Ear
from test_client_older import Met as MetOlder

from leveret.core.amqp_0_9.client.draft import Client9a5, Client9r1
from leveret.core.amqp_0_9.client.draft_wire import Wire9a5, Wire9r1
from leveret.core.amqp_0_9.drafts.family import families
from leveret.core.errors import ProtocolError

# "The Frame Header Wire Format": octet type, octet channel, short size, size-1 octets, frame-end. "Method Frame Body Wire Format": octet
# class, octet method, two reserved octets. A long string of 0.9a5 has a short size ("Strings").
START_9A5 = b"\x01\x00\x00\x15\x01\x01\x00\x00\x00\x09\x00\x05PLAIN\x00\x05en_US\xce"
START_OK_9A5 = b"\x01\x00\x00\x11\x01\x02\x00\x00\x05PLAIN\x05en_US\xce"
SECURE_9A5 = b"\x01\x00\x00\x07\x01\x03\x00\x00\x00\x00\xce"
SECURE_OK_9A5 = b"\x01\x00\x00\x13\x01\x04\x00\x00\x00\x0c\x00guest\x00guest\xce"
# frame-max 16384, channel-max 10, access-max 5, consumer-max 0, heartbeat 30, txn-limit 0; jms, file and stream are served.
TUNE_9A5 = b"\x01\x00\x00\x14\x01\x05\x00\x00\x00\x00\x40\x00\x00\x0a\x00\x05\x00\x00\x00\x1e\x00\x00\x07\xce"
# frame-max, channel-max, ticket-max, heartbeat, a bit for jms alone, prefetch-max.
TUNE_OK_9A5 = b"\x01\x00\x00\x14\x01\x06\x00\x00\x00\x00\x40\x00\x00\x01\x00\x01\x00\x1e\x01\x00\x00\x00\x00\xce"
OPEN_9A5 = b"\x01\x00\x00\x08\x01\x07\x00\x00\x01/\x00\xce"
OPEN_OK_9A5 = b"\x01\x00\x00\x08\x01\x08\x00\x00\x02me\xce"
CHANNEL_9A5 = b"\x01\x01\x00\x0b\x02\x01\x00\x00\x00\x00\x00\x00\x00\x01\xce"  # prefetch-max 0, no out-of-band, tx-mode automatic
CHANNEL_OK_9A5 = b"\x01\x01\x00\x05\x02\x02\x00\x00\xce"
GRANT_9A5 = b"\x01\x01\x00\x0c\x03\x01\x00\x00\x05/data\x1e\xce"  # passive, active, write, read behind exclusive
GRANT_OK_9A5 = b"\x01\x01\x00\x07\x03\x02\x00\x00\x00\x07\xce"

# "General Frame Format": octet type, octet cycle, short channel, long size, size octets, frame-end. "Method Frames": short class-id, short
# method-id.
START_9R1 = b"\x01\x00\x00\x00\x00\x00\x00\x1c\x00\x01\x00\x01\x09\x01\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US\xce"
TOLD = b"\x07productS\x00\x00\x00\x0eLeveret client\x07versionS\x00\x00\x00\x050.1.0"
START_OK_9R1 = (
    b"\x01\x00\x00\x00\x00\x00\x00\x51\x00\x01\x00\x02\x00\x00\x00\x2d" + TOLD + b"\x05PLAIN\x00\x00\x00\x0c\x00guest\x00guest\x05en_US\xce"
)
TUNE_9R1 = b"\x01\x00\x00\x00\x00\x00\x00\x0c\x00\x01\x00\x05\x00\x0a\x00\x00\x40\x00\x00\x1e\xce"
TUNE_OK_9R1 = b"\x01\x00\x00\x00\x00\x00\x00\x0c\x00\x01\x00\x06\x00\x01\x00\x00\x40\x00\x00\x1e\xce"
OPEN_9R1 = b"\x01\x00\x00\x00\x00\x00\x00\x07\x00\x01\x00\x07\x01/\x00\xce"
OPEN_OK_9R1 = b"\x01\x00\x00\x00\x00\x00\x00\x06\x00\x01\x00\x08\x01k\xce"
CHANNEL_9R1 = b"\x01\x00\x00\x01\x00\x00\x00\x09\x00\x02\x00\x01\x00\x00\x00\x00\x00\xce"
CHANNEL_OK_9R1 = b"\x01\x00\x00\x01\x00\x00\x00\x04\x00\x02\x00\x02\xce"
REQUEST_9R1 = b"\x01\x00\x00\x01\x00\x00\x00\x0b\x00\x03\x00\x01\x05/data\x1e\xce"
REQUEST_OK_9R1 = b"\x01\x00\x00\x01\x00\x00\x00\x06\x00\x03\x00\x02\x00\x07\xce"


def heard(client):
    octets = bytes(client.pending())
    client.sent(len(octets))
    return octets


def opened(kind):
    """(recorder, client, its channel), which has the ticket 7; every octet on the way is looked at."""
    events = Ear()
    client = kind(events)
    if kind is Client9a5:
        turns = ((START_9A5, START_OK_9A5), (SECURE_9A5, SECURE_OK_9A5), (TUNE_9A5, TUNE_OK_9A5 + OPEN_9A5), (OPEN_OK_9A5, b""))
        channels = CHANNEL_9A5, CHANNEL_OK_9A5, GRANT_9A5, GRANT_OK_9A5
    else:
        turns = ((START_9R1, START_OK_9R1), (TUNE_9R1, TUNE_OK_9R1 + OPEN_9R1), (OPEN_OK_9R1, b""))
        channels = CHANNEL_9R1, CHANNEL_OK_9R1, REQUEST_9R1, REQUEST_OK_9R1
    assert heard(client) == (b"AMQP\x01\x01\x00\x09" if kind is Client9a5 else b"AMQP\x01\x01\x09\x01")
    for theirs, ours in turns:
        feed(client, theirs, 1)
        assert heard(client) == ours, ours
    channel = client.channels[1]
    for ask, ours, theirs in ((channel.open, channels[0], channels[1]), (channel.access_request, channels[2], channels[3])):
        assert ask()
        assert heard(client) == ours, ours
        feed(client, theirs)
    assert events.seen[0] == "opened" and len(events.seen) == 3 and channel.ticket == 7
    events.seen = []
    return events, client, channel


def test_log_in_channel_and_ticket():
    assert opened(Client9a5)[1].state == opened(Client9r1)[1].state == "open"


def test_methods_of_0_9a5():
    events, client, channel = opened(Client9a5)
    channel.queue_declare("q", durable=True)  # namespace, queue, template; if-exists, durable, private, auto-delete
    assert heard(client) == b"\x01\x01\x00\x0c\x05\x01\x00\x00\x00\x07\x00\x01q\x00\x02\xce"
    feed(client, b"\x01\x01\x00\x10\x05\x02\x00\x00\x01q\x00\x00\x00\x00\x03\x00\x00\x00\x01\xce")
    channel.queue_bind("q", "x", "k")
    pair = b"\x0bdestinationS\x01k"
    assert heard(client) == b"\x01\x01\x00\x1f\x05\x03\x00\x00\x00\x07\x00\x01q\x01x\x00\x00\x00\x0f" + pair + b"\xce"
    feed(client, b"\x01\x01\x00\x05\x05\x04\x00\x00\xce")
    channel.exchange_declare("x", "wildname", passive=True)
    assert heard(client) == b"\x01\x01\x00\x13\x04\x01\x00\x00\x00\x07\x01x\x08wildname\x01\xce"
    feed(client, b"\x01\x01\x00\x05\x04\x02\x00\x00\xce")
    channel.prefetch = 3
    channel.basic_consume("q", no_ack=True)  # prefetch-size, prefetch-count; no-local, auto-ack, exclusive
    assert heard(client) == b"\x01\x01\x00\x0f\x07\x01\x00\x00\x00\x07\x00\x01q\x00\x00\x00\x03\x02\xce"
    feed(client, b"\x01\x01\x00\x07\x07\x02\x00\x00\x00\x01\xce")
    channel.basic_ack(5, True)
    assert heard(client) == b"\x01\x01\x00\x0e\x07\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x01\xce"
    channel.tx_commit()
    assert heard(client) == b"\x01\x01\x00\x05\x0a\x01\x00\x00\xce"
    feed(client, b"\x01\x01\x00\x05\x0a\x02\x00\x00\xce")
    feed(client, b"\x01\x01\x00\x06\x02\x03\x00\x00\x01\xce")  # channel.flow with flow-pause
    assert not channel.flowing and channel.basic_publish("x", "k", b"") == 0
    client.close()
    assert heard(client) == b"\x01\x00\x00\x10\x01\x0a\x00\x00\x00\xc8\x06closed\x00\x00\xce"
    feed(client, b"\x01\x00\x00\x05\x01\x0b\x00\x00\xce")
    assert events.seen[0] == ("queue_assert_ok", ["q", "", 3, 1]) and events.seen[-1] == ("ended", 200, "closed")


def test_a_publish_of_0_9a5_and_its_delivery():
    """ "Content Header Frame Wire Format": octet domain, octet weight, long long body size, short flags from bit 15 down."""
    events, client, channel = opened(Client9a5)
    assert channel.basic_publish("x", "k", b"body", {"headers": {"a": 1}, "delivery_mode": 2}) == 1
    method = b"\x01\x01\x00\x0a\x07\x05\x00\x00\x00\x07\x01x\x00\xce"
    properties = b"\x01k" + b"\x00\x00\x00\x07\x01aI\x00\x00\x00\x01" + b"\x02"  # destination, headers, delivery-mode: bits 13 to 11
    content = b"\x07\x00\x00\x00\x00\x00\x00\x00\x00\x04\x38\x00" + properties + b"\xce"
    header = b"\x02\x01\x00\x1b" + content
    assert heard(client) == method + header + b"\x03\x01\x00\x05body\xce"
    deliver = b"\x01\x01\x00\x13\x07\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09\x01\x01x\x00\x01q\xce"
    feed(client, deliver + header + b"\x03\x01\x00\x03bo\xce\x03\x01\x00\x01\xce\x03\x01\x00\x03dy\xce", 1)
    assert events.seen == [(9, "k", b"body")]


def test_methods_of_0_9r1():
    events, client, channel = opened(Client9r1)
    channel.queue_declare("q", durable=True)
    assert heard(client) == b"\x01\x00\x00\x01\x00\x00\x00\x09\x00\x05\x00\x01\x00\x07\x01q\x02\xce"
    feed(client, b"\x01\x00\x00\x01\x00\x00\x00\x0e\x00\x05\x00\x02\x01q\x00\x00\x00\x03\x00\x00\x00\x01\xce")
    channel.queue_bind("q", "x", "k")
    assert heard(client) == b"\x01\x00\x00\x01\x00\x00\x00\x10\x00\x05\x00\x03\x00\x07\x01q\x01x\x01k\x00\x00\x00\x00\xce"
    feed(client, b"\x01\x00\x00\x01\x00\x00\x00\x04\x00\x05\x00\x04\xce")
    channel.prefetch = 3
    channel.basic_consume("q", exclusive=True)  # long prefetch-size, short prefetch-count; no-local, auto-ack, exclusive
    assert heard(client) == b"\x01\x00\x00\x01\x00\x00\x00\x0f\x00\x07\x00\x01\x00\x07\x01q\x00\x00\x00\x00\x00\x03\x04\xce"
    feed(client, b"\x01\x00\x00\x01\x00\x00\x00\x06\x00\x07\x00\x02\x00\x01\xce")
    channel.basic_reject(5)
    assert heard(client) == b"\x01\x00\x00\x01\x00\x00\x00\x0d\x00\x07\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x05\x01\xce"
    channel.tx_select()
    assert heard(client) == b"\x01\x00\x00\x01\x00\x00\x00\x04\x00\x0a\x00\x01\xce"
    feed(client, b"\x01\x00\x00\x01\x00\x00\x00\x04\x00\x0a\x00\x02\xce")
    client.close()
    assert heard(client) == b"\x01\x00\x00\x00\x00\x00\x00\x11\x00\x01\x00\x09\x00\xc8\x06closed\x00\x00\x00\x00\xce"
    feed(client, b"\x01\x00\x00\x00\x00\x00\x00\x04\x00\x01\x00\x0a\xce")
    assert events.seen[0] == ("queue_declare_ok", ["q", 3, 1]) and events.seen[-1] == ("ended", 200, "closed")


def test_a_publish_of_0_9r1_and_its_delivery():
    """ "The Content Header": short class-id, short weight, long long body size, short flags. A cycle other than 0 is read."""
    events, client, channel = opened(Client9r1)
    assert channel.basic_publish("x", "k", b"body", {"headers": {"a": "b"}, "delivery_mode": 2}, mandatory=True) == 1
    method = b"\x01\x00\x00\x01\x00\x00\x00\x0b\x00\x07\x00\x05\x00\x07\x01x\x01k\x01\xce"
    properties = b"\x00\x00\x00\x08\x01aS\x00\x00\x00\x01b" + b"\x02"  # headers, delivery-mode: bits 13 and 12
    content = b"\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x30\x00" + properties + b"\xce"
    assert heard(client) == method + b"\x02\x00\x00\x01\x00\x00\x00\x1b" + content + b"\x03\x00\x00\x01\x00\x00\x00\x04body\xce"
    deliver = b"\x01\x05\x00\x01\x00\x00\x00\x13\x00\x07\x00\x07\x00\x01\x00\x00\x00\x00\x00\x00\x00\x09\x00\x01x\x01k\xce"
    feed(client, deliver + b"\x02\x05\x00\x01\x00\x00\x00\x1b" + content + b"\x03\x05\x00\x01\x00\x00\x00\x04body\xce", 1)
    assert events.seen == [(9, "k", b"body")]


def test_extended_frames():
    """A meta frame 9 0 0 0, then octet type, octet flags, short channel, long long size ("Extended Frame Header Wire Format")."""
    wire = Wire9a5()
    assert wire.frame(3, 300, b"x") == b"\x09\x00\x00\x00\x03\x00\x01\x2c\x00\x00\x00\x00\x00\x00\x00\x02x\xce"
    assert wire.frame(3, 1, bytes(65534))[:4] == b"\x03\x01\xff\xff"
    assert wire.frame(3, 1, bytes(65535))[:16] == b"\x09\x00\x00\x00\x03\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00"
    octets = wire.frame(2, 300, b"abc")
    assert wire.head(octets, 0, len(octets)) == (2, 300, 16, 19) and wire.head(octets, 0, 15) is None
    flagged = b"\x09\x00\x00\x00\x01\x01" + bytes(9) + b"\x01"
    for broken in (b"\x09\x01\x00\x00", b"\x09\x00\x00\x01", b"\x01\x00\x00\x00", b"\x09\x00\x00\x00\x09" + bytes(11), flagged):
        try:
            raise AssertionError(wire.head(broken, 0, len(broken)))
        except ProtocolError as error:
            assert error.condition == "frame-error"


TABLE = {"s": "text", "i": -1, "d": ("D", (2, 314)), "t": ("T", 1234567890), "f": {"$x": "y"}, "l": "x" * 300}


def test_field_tables():
    """ "Formal Grammar for AMQP/Fast Fields": 'S' is a short string and 'L' a long one; in 0.9r1 'S' is a long one."""
    assert Wire9a5().table({"a": "b"}) == b"\x00\x00\x00\x05\x01aS\x01b"
    assert Wire9a5().table({"a": b"\x00"}) == b"\x00\x00\x00\x06\x01aL\x00\x01\x00"
    assert Wire9r1().table({"a": "b"}) == b"\x00\x00\x00\x08\x01aS\x00\x00\x00\x01b"
    for wire in (Wire9a5(), Wire9r1()):
        octets = wire.table(TABLE)
        assert wire.read_table(octets, 0, len(octets), 1) == (TABLE, len(octets))
        twice = b"\x00\x00\x00\x0e" + b"\x01aI\x00\x00\x00\x01" + b"\x01aI\x00\x00\x00\x02"
        assert wire.read_table(twice, 0, len(twice), 1)[0] == {"a": 1}
        for cut in range(len(octets)):
            try:
                raise AssertionError(wire.read_table(octets, 0, cut, 1))
            except ProtocolError as error:
                assert error.condition == "syntax-error"
        for pairs in ({"x-a": 1}, {"": 1}, {"a" * 129: 1}, {"1": 1}, {"a": 1.5}, {"a": True}, {"a": None}, {"a": [1]}, {"a": 1 << 31}):
            try:
                raise AssertionError(wire.table(pairs))
            except ValueError as error:
                assert wire.version in str(error)


def test_what_the_drafts_do_not_have_is_refused_by_name():
    for kind in (Client9a5, Client9r1):
        _, client, channel = opened(kind)
        given: tuple = (
            ("confirm.select", channel.confirm_select, ()),
            ("basic.nack", channel.basic_nack, (1,)),
            ("queue.unbind", channel.queue_unbind, ("q", "x")),
            ("basic.qos", channel.basic_qos, (1,)),
            ("arguments of queue", channel.queue_declare, ("q", False, False, False, False, {"x-max-length": 1})),
            ("consumer tags", channel.basic_consume, ("q", "tag")),
        )
        if kind is Client9a5:
            given += (("mandatory", channel.basic_publish, ("", "k", b"", {}, True)), ("tx.select", channel.tx_select, ()))
        for words, ask, arguments in given:
            try:
                ask(*arguments)
                raise AssertionError(words)
            except ValueError as error:
                assert words in str(error) and client.version in str(error)
        assert heard(client) == b"" and channel.waiting == ()


def ended(kind, octets):
    """(code, what the client says last) when these octets come on an open connection."""
    events, client, _ = opened(kind)
    feed(client, octets)
    assert events.seen[-1][0] == "ended"
    return events.seen[-1][1], heard(client)


def test_a_fatal_protocol_error_ends_the_connection_without_a_word():
    for kind, frames in (
        (Client9a5, (b"\x0a\x00\x00\x01\xce", b"\x00\x00\x00\x01\xce", b"\x08\x00\x00\x01\xcd")),
        (Client9r1, (b"\x09" + bytes(7) + b"\xce", b"\x08" + bytes(7) + b"\xcd")),
    ):
        for octets in frames:
            assert ended(kind, octets) == (0, b"")


def test_other_errors_have_the_codes_of_the_texts():
    for kind, code, octets in (
        (Client9a5, 501, b"\x08\x01\x00\x01\xce"),  # "MUST handle a non-zero channel number as a connection exception"
        (Client9r1, 501, b"\x08\x00\x00\x01\x00\x00\x00\x00\xce"),  # amq_wlp_heartbeat_01
        (Client9r1, 501, b"\x07\x00\x00\x01\x00\x00\x00\x00\xce"),  # amq_wlp_trace_01
        (Client9r1, 501, b"\x03\x00\x00\x01\x00\x01\x00\x00"),  # amq_wlp_frame_03
        (Client9r1, 501, b"\x03\x00\x00\x01\x00\x00\x00\x00\xce"),  # a body without a content, though of no octets
        (Client9r1, 540, b"\x04\x00\x00\x01\x00\x00\x00\x00\xce"),
        (Client9a5, 504, b"\x01\x02\x00\x05\x02\x02\x00\x00\xce"),
        (Client9a5, 503, b"\x01\x01\x00\x05\x07\x63\x00\x00\xce"),
        (Client9a5, 502, b"\x01\x01\x00\x07\x02\x04\x00\x00\x00\x01\xce"),
    ):
        given, said = ended(kind, octets)
        assert given == code and bytes((code >> 8, code & 255)) in said, (code, given, said)


def test_traces_heartbeats_and_in_0_9a5_empty_bodies_are_discarded():
    for kind, octets in (
        (Client9a5, b"\x07\x05\x00\x03ab\xce\x08\x00\x00\x01\xce\x03\x01\x00\x01\xce"),  # and an empty body frame
        (Client9r1, b"\x07" + bytes(6) + b"\x02ab\xce" + b"\x08" + bytes(7) + b"\xce"),
    ):
        events, client, _ = opened(kind)
        feed(client, octets, 1)
        assert events.seen == [] and client.state == "open" and heard(client) == b""


def test_heartbeats_are_sent():
    for kind, octets in ((Client9a5, b"\x08\x00\x00\x01\xce"), (Client9r1, b"\x08" + bytes(7) + b"\xce")):
        _, client, _ = opened(kind)
        client.tick(0)
        client.tick(20000)
        assert heard(client) == octets


def test_a_broker_of_another_version():
    for kind, other in ((Client9a5, START_9A5.replace(b"\x00\x09\x00\x05", b"\x01\x00\x00\x05")), (Client9r1, b"AMQP\x00\x00\x09\x01")):
        events = Ear()
        client = kind(events)
        heard(client)
        feed(client, other)
        assert heard(client) == b"" and events.seen[0][:2] == ("ended", 0) and "not %s" % client.version in events.seen[0][2]


class Met(MetOlder):
    """A client and a broker of this process, which serves the draft."""

    def __init__(self, kind, transactional=False, **given):
        self.transactional = transactional
        MetOlder.__init__(self, kind, content_size_max=16384, send_size=4096, **given)

    def prepare(self):
        self.pipe.connection.families = families(self.client.version)
        if self.transactional:
            self.channel.transactional = True


def test_client_and_broker_meet():
    for kind in (Client9a5, Client9r1):
        met = Met(kind)
        channel = met.channel
        assert met.ask(channel.queue_declare, "q", durable=True)[0][1][0] == "q"
        assert met.ask(channel.exchange_declare, "x", durable=True)[0][0] in ("exchange_assert_ok", "exchange_declare_ok")
        assert met.ask(channel.queue_bind, "q", "x", "k")[0][1] == []
        body = bytes([number & 255 for number in range(9000)])
        given = {"headers": {"a": 1, "t": "x"}, "priority": 4, "message_id": "m", "delivery_mode": 2, "content_type": "text/plain"}
        assert met.ask(channel.basic_publish, "x", "k", body, given) == []
        name, (message,) = met.ask(channel.basic_get, "q")[0]
        assert name == "basic_get_ok" and message.body == body and message.message_count == 0 and not message.redelivered
        told = dict(message.properties)
        assert told.pop("destination", "k") == "k" and told == given and message.routing_key == "k"
        assert met.ask(channel.basic_reject, message.delivery_tag) == []
        assert met.ask(channel.basic_consume, "q")[1:] == [(2, "k", body)]
        assert met.ask(channel.basic_ack, 2) == []
        assert met.ask(channel.basic_get, "q")[0][0] in ("jms_browse_empty", "jms_get_empty")
        assert met.ask(channel.queue_delete, "q", if_unused=True)[0] == ("channel closed", 507)
        assert channel.state == "closed" and channel.ticket == 0
        assert met.ask(channel.open)[0][0] == "channel_open_ok"
        assert met.ask(channel.queue_purge, "q") == [("channel closed", 403)]  # without a ticket
        met.client.close()
        met.go()
        assert met.events.seen[-1] == ("ended", 200, "closed")


def test_what_is_kept_is_told_by_the_commit():
    for kind in (Client9a5, Client9r1):
        met = Met(kind, transactional=kind is Client9a5)
        channel = met.channel
        met.ask(channel.queue_declare, "q")
        if kind is Client9r1:
            assert met.ask(channel.tx_select) == [("tx_select_ok", [])]
            assert met.ask(channel.basic_publish, "", "nowhere", b"back", mandatory=True) == []
        assert met.ask(channel.basic_publish, "", "q", b"kept") == []
        assert met.ask(channel.queue_declare, "q", passive=True)[0][1][-2] == 0
        seen = met.ask(channel.tx_commit)
        assert seen[-1] == ("tx_commit_ok", []) and seen[:-1] == ([(310, b"back")] if kind is Client9r1 else [])
        assert met.ask(channel.basic_publish, "", "q", b"void") == []
        assert met.ask(channel.tx_rollback)[0][0] in ("tx_abort_ok", "tx_rollback_ok")
        assert met.ask(channel.queue_declare, "q", passive=True)[0][1][-2] == 1


def shape(content):
    """(body, properties without the key, contents within)."""
    given = dict(content.properties)
    given.pop("destination", "")
    return content.body, given, [shape(child) for child in content.children]


def test_contents_within_contents_go_in_and_out():
    leaf = ({"type": "leaf"}, b"l" * 20, ())
    children = (({"type": "one"}, b"", (leaf, leaf)), ({"app_id": "two"}, b"2", ()))
    for kind in (Client9a5, Client9r1):
        met = Met(kind)
        met.ask(met.channel.queue_declare, "q")
        for body in (b"root", b""):
            assert met.ask(met.channel.basic_publish, "", "q", body, {}, children=children) == []
            message = met.ask(met.channel.basic_get, "q", no_ack=True)[0][1][0]
            leaves = [(b"l" * 20, {"type": "leaf"}, [])] * 2
            assert message.body == body and shape(message)[2] == [(b"", {"type": "one"}, leaves), (b"2", {"app_id": "two"}, [])]


def test_a_tree_that_is_none_is_a_frame_error():
    """amq_wlp_content_05: "a mismatch between the content weight and the frames that follow"."""
    deliver = b"\x01\x00\x00\x01\x00\x00\x00\x13\x00\x07\x00\x07\x00\x01\x00\x00\x00\x00\x00\x00\x00\x09\x00\x01x\x01k\xce"
    wire = Wire9r1()
    for frames in (
        wire.header(1, 7, 1, 4, {}) + wire.frame(3, 1, b"body"),
        wire.header(1, 7, 0, 4, {}) + wire.header(1, 7, 0, 4, {}),
        wire.header(1, 7, 1, 0, {}) + wire.header(1, 7, 0, 4, {}) + wire.frame(3, 1, b"bodies"),
        wire.header(1, 6, 0, 4, {}),
    ):
        assert ended(Client9r1, deliver + frames)[0] == 501
    many = wire.header(1, 7, 65, 0, {}) + wire.header(1, 7, 0, 0, {}) * 65
    assert ended(Client9r1, deliver + many)[0] == 540


def test_a_message_that_is_too_large_is_refused_and_the_connection_goes_on():
    for kind in (Client9a5, Client9r1):
        met = Met(kind)
        met.events.refused = lambda message, text, seen=met.events.seen: met.events.seen.append(("refused", text))
        met.client.content_size_max = 8
        met.ask(met.channel.queue_declare, "q")
        met.ask(met.channel.basic_publish, "", "q", b"x" * 9)
        met.ask(met.channel.basic_publish, "", "q", b"small")
        assert met.ask(met.channel.basic_get, "q")[0][0] == "refused"
        assert met.ask(met.channel.basic_get, "q")[0][1][0].body == b"small"


def test_octets_at_random_are_an_error_and_nothing_else():
    """What a broker sends, with an octet changed, left out or put in: the client goes on, or ends once."""
    random = Random(20051123)
    for kind in (Client9a5, Client9r1):
        wire = kind.wire
        frames = [
            wire.method("jms_deliver", 1, (9, True, "x", "", "q") if kind is Client9a5 else (1, 9, True, "x", "k")),
            wire.header(1, 7, 1, 4, {"headers": TABLE, "message_id": "m"}),
            wire.header(1, 7, 0, 2, {}),
            wire.frame(3, 1, b"in"),
            wire.frame(3, 1, b"body"),
            wire.method("channel_flow", 1, (True,)),
            wire.frame(7, 0, b"trace"),
            wire.method("stream_deliver", 1, (9, True, "x", "", "q") if kind is Client9a5 else (9, "x", "q")),
            wire.method("channel_close", 1, (404, "gone", 0, 0)),
        ]
        stream = b"".join(frames)
        for _ in range(400):
            events, client, channel = opened(kind)
            octets = stream
            for _ in range(random.below(3) + 1):
                at = random.below(len(octets))
                octets = octets[:at] + bytes((random.below(256),)) * random.below(3) + octets[at + random.below(2) :]
            feed(client, octets, random.below(40) + 1)
            assert len([each for each in events.seen if each[0] == "ended"]) == (1 if client.closed else 0)


def test_a_table_of_the_broker_s_with_a_name_that_the_draft_does_not_allow_is_an_error():
    """ "Field names ... start with a letter, '$' or '#'" ("Field Tables"): 503, and what is not a name is in the sentence, cut to 40."""
    for wire in (Wire9a5(), Wire9r1()):
        good = b"\x00\x00\x00\x07" + b"\x01aI\x00\x00\x00\x05"
        assert wire.read_table(good, 0, len(good), 1) == ({"a": 5}, len(good))
        for name in (b"1", b"", b"-a"):
            pair = bytes((len(name),)) + name + b"I\x00\x00\x00\x05"
            octets = struct.pack(">I", len(pair)) + pair
            try:
                wire.read_table(octets, 0, len(octets), 1)
            except ProtocolError as error:
                assert error.condition == "command-invalid" and repr(name.decode()) in error.text
            else:
                raise AssertionError(name)
