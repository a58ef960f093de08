"""The client of AMQP 0-8 and 0-9: its octets are those of the tables' classes connection, access, queue, basic and tx; then it meets the
broker. What it must not send: confirms, basic.nack, values that old tables lack."""

from peer import new_broker
from test_client_connection import Recorder, feed

from leveret.core.amqp_0_9.client.older import Client08, Client09
from leveret.ports.pipe import Pipe


class Ear(Recorder):
    """Writes down what a client of these versions reports."""

    def replied(self, channel, name, arguments):
        self.seen.append((name, arguments))

    def delivered(self, message):
        self.seen.append((message.delivery_tag, message.routing_key, message.body))

    def returned(self, message):
        self.seen.append((message.reply_code, message.body))

    def channel_closed(self, channel, code, text):
        self.seen.append(("channel closed", code))


def heard(client):
    """The octets that wait to be sent."""
    octets = bytes(client.pending())
    client.sent(len(octets))
    return octets


def method(channel, octets):
    """A method frame: type 1, short channel, long size, payload, 206."""
    return b"\x01" + bytes((0, channel, 0, 0, len(octets) >> 8, len(octets) & 255)) + octets + b"\xce"


def short(text):
    return bytes((len(text),)) + text


# connection.start: octets of the version, an empty table, long strings of mechanisms and locales.
START_OF = b"\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US"
START_08 = method(0, b"\x00\x0a\x00\x0a\x08\x00" + START_OF)
START_09 = method(0, b"\x00\x0a\x00\x0a\x00\x09" + START_OF)
TOLD = b"\x07productS\x00\x00\x00\x0eLeveret client\x07versionS\x00\x00\x00\x050.1.0"
START_OK = method(0, b"\x00\x0a\x00\x0b" + bytes((0, 0, 0, len(TOLD))) + TOLD + b"\x05PLAIN\x00\x00\x00\x0c\x00guest\x00guest\x05en_US")
TUNE = method(0, b"\x00\x0a\x00\x1e\x00\x00\x00\x00\x20\x00\x00\x00")
TUNE_OK = method(0, b"\x00\x0a\x00\x1f\x00\x01\x00\x00\x20\x00\x00\x3c")
OPEN = method(0, b"\x00\x0a\x00\x28\x01/\x00\x01")  # virtual host, no capabilities, insist
OPEN_OK = method(0, b"\x00\x0a\x00\x29\x00")


def opened(kind, start):
    """(recorder, client, its channel) with a channel that has the ticket 7."""
    events = Ear()
    client = kind(events)
    assert heard(client) == (b"AMQP\x01\x01\x08\x00" if kind is Client08 else b"AMQP\x01\x01\x00\x09")
    feed(client, start)
    assert heard(client) == START_OK
    feed(client, TUNE)
    assert heard(client) == TUNE_OK + OPEN
    feed(client, OPEN_OK)
    channel = client.channels[1]
    channel.open()
    assert heard(client) == method(1, b"\x00\x14\x00\x0a\x00")
    feed(client, method(1, b"\x00\x14\x00\x0b" + (b"" if kind is Client08 else b"\x00\x00\x00\x00")))
    channel.access_request()
    assert heard(client) == method(1, b"\x00\x1e\x00\x0a\x05/data\x1e")  # passive, active, write, read behind exclusive
    feed(client, method(1, b"\x00\x1e\x00\x0b\x00\x07"))
    assert events.seen == ["opened", ("channel_open_ok", [] if kind is Client08 else [b""]), ("access_request_ok", [7])]
    events.seen = []
    return events, client, channel


def test_the_octets_are_those_of_the_tables():
    for kind, start in ((Client08, START_08), (Client09, START_09)):
        events, client, channel = opened(kind, start)
        channel.queue_declare("q", durable=True)
        assert heard(client) == method(1, b"\x00\x32\x00\x0a\x00\x07\x01q\x02\x00\x00\x00\x00")
        feed(client, method(1, b"\x00\x32\x00\x0b\x01q\x00\x00\x00\x00\x00\x00\x00\x00"))
        channel.exchange_declare("x", "fanout")
        assert heard(client) == method(1, b"\x00\x28\x00\x0a\x00\x07\x01x\x06fanout\x00\x00\x00\x00\x00")
        feed(client, method(1, b"\x00\x28\x00\x0b"))
        assert channel.basic_publish("x", "k", b"body", {"delivery_mode": 2}, mandatory=True) == 1
        header = b"\x02\x00\x01\x00\x00\x00\x0f\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x10\x00\x02\xce"
        assert heard(client) == method(1, b"\x00\x3c\x00\x28\x00\x07\x01x\x01k\x01") + header + b"\x03\x00\x01\x00\x00\x00\x04body\xce"
        channel.basic_qos(10)
        assert heard(client) == method(1, b"\x00\x3c\x00\x0a\x00\x00\x00\x00\x00\x0a\x00")
        feed(client, method(1, b"\x00\x3c\x00\x0b"))
        channel.basic_consume("q")
        assert heard(client) == method(1, b"\x00\x3c\x00\x14\x00\x07\x01q\x00\x00" + (b"" if kind is Client08 else b"\x00\x00\x00\x00"))
        feed(client, method(1, b"\x00\x3c\x00\x15\x01t"))
        channel.basic_ack(5, True)
        assert heard(client) == method(1, b"\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x00\x05\x01")
        channel.tx_select()
        assert heard(client) == method(1, b"\x00\x5a\x00\x0a")
        feed(client, method(1, b"\x00\x5a\x00\x0b"))
        channel.tx_commit()
        assert heard(client) == method(1, b"\x00\x5a\x00\x14")
        feed(client, method(1, b"\x00\x5a\x00\x15"))
        client.close()
        closing = b"\x00\x0a\x00\x3c" if kind is Client08 else b"\x00\x0a\x00\x32"
        assert heard(client) == method(0, closing + b"\x00\xc8\x06closed\x00\x00\x00\x00")
        feed(client, method(0, closing[:3] + bytes((closing[3] + 1,))))
        assert [each[0] for each in events.seen[-2:]] == ["tx_commit_ok", "ended"]


def test_qpids_table_behind_basic_consume_goes_out_where_it_is_asked_for():
    _, client, channel = opened(Client08, START_08)
    channel.basic_consume("q", arguments={"a": 1})
    assert heard(client) == method(1, b"\x00\x3c\x00\x14\x00\x07\x01q\x00\x00\x00\x00\x00\x07\x01aI\x00\x00\x00\x01")


def test_what_these_versions_do_not_have_is_refused_by_name():
    for kind, start, version in ((Client08, START_08, "0-8"), (Client09, START_09, "0-9")):
        _, client, channel = opened(kind, start)
        for asked, name in ((channel.confirm_select, "confirm.select"), (lambda each=channel: each.basic_nack(1), "basic.nack")):
            try:
                asked()
                raise AssertionError("not refused")
            except ValueError as error:
                assert name in str(error) and version in str(error)
        assert heard(client) == b"" and channel.waiting == ()


def test_another_version_ends_the_connection_without_a_word():
    for kind, start in ((Client09, START_08), (Client08, START_09)):
        events = Recorder()
        client = kind(events)
        heard(client)
        feed(client, start)
        assert heard(client) == b"" and events.seen[0][:2] == ("ended", 0) and "not %s" % client.version in events.seen[0][2]


def test_a_notice_is_passed_over():
    events, client, _ = opened(Client08, START_08)
    feed(client, method(1, b"\x00\x14\x00\x1e\x00\xc8\x02hi\x00\x00\x00\x00"))
    assert events.seen == [] and heard(client) == b"" and client.state == "open"


def test_a_ticket_ends_with_its_channel():
    _, client, channel = opened(Client09, START_09)
    feed(client, method(1, b"\x00\x14\x00\x28\x01\x93\x02no\x00\x00\x00\x00"))
    assert heard(client) == method(1, b"\x00\x14\x00\x29") and channel.state == "closed" and channel.ticket == 0
    assert channel.publish_head == b"\x00\x3c\x00\x28\x00\x00"


class Met:
    """A client and a broker of this process."""

    def __init__(self, kind, **given):
        self.events = Ear()
        self.client = kind(self.events, **given)
        self.broker = new_broker()
        self.pipe = Pipe(self.broker, self.client, "older")
        self.channel = self.client.channels[1]
        self.prepare()
        self.go()
        for asked in (self.channel.open, self.channel.access_request):
            self.ask(asked)

    def prepare(self):
        """What goes before the first octet."""

    def go(self):
        while self.pipe.pump():
            self.broker.run()

    def ask(self, asked, *given, **named):
        """A request; all that is reported until nothing moves."""
        self.events.seen = []
        assert asked(*given, **named)
        self.go()
        return self.events.seen


def test_client_and_broker_meet():
    for kind in (Client08, Client09):
        met = Met(kind, content_size_max=16384)
        channel = met.channel
        assert channel.ticket == 1
        assert met.ask(channel.queue_declare, "q") == [("queue_declare_ok", ["q", 0, 0])]
        assert met.ask(channel.basic_publish, "", "q", b"x" * 9000) == []
        assert met.ask(channel.basic_get, "q")[0][0] == "basic_get_ok"
        assert met.ask(channel.basic_reject, 1) == []
        assert [each[0] for each in met.ask(channel.basic_consume, "q")] == ["basic_consume_ok", 2]
        assert met.ask(channel.basic_ack, 2) == []
        assert met.ask(channel.queue_delete, "q", if_unused=True) == [("channel closed", 406)]
        assert met.ask(channel.open)[0][0] == "channel_open_ok"
        assert met.ask(channel.queue_bind, "none", "amq.topic", "k") == [("channel closed", 404)]


def test_what_is_kept_is_told_by_the_commit_behind_what_came_back():
    for kind in (Client08, Client09):
        met = Met(kind)
        channel = met.channel
        met.ask(channel.queue_declare, "q")
        assert met.ask(channel.tx_select) == [("tx_select_ok", [])]
        assert met.ask(channel.basic_publish, "", "q", b"kept") == []
        assert met.ask(channel.basic_publish, "", "nowhere", b"back", mandatory=True) == []
        assert met.ask(channel.queue_declare, "q", passive=True) == [("queue_declare_ok", ["q", 0, 0])]
        assert met.ask(channel.tx_commit) == [(312, b"back"), ("tx_commit_ok", [])]
        assert met.ask(channel.queue_declare, "q", passive=True) == [("queue_declare_ok", ["q", 1, 0])]
