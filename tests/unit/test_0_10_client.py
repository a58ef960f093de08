"""The AMQP 0-10 client against this broker, joined in memory, octet by octet or in pieces; and its golden octets."""

from peer_file import broker_of, octets

from leveret.core.amqp_0_10 import frame, structs
from leveret.core.amqp_0_10.client.client import Client, hosts_of
from leveret.core.amqp_0_10.client.events import Events
from leveret.core.amqp_0_10.client.files import Receiving, Sending
from leveret.core.amqp_0_10.client.transfers import Transfers
from leveret.core.connection.connection import Connection
from leveret.core.errors import ProtocolError


class Application(Events):
    """Notes what it hears, and hands it to a Sending or a Receiving."""

    def __init__(self, broker, piece=1 << 20, **given):
        self.heard = []
        self.file = None
        self.piece = piece
        self.client = Client(self, **given)
        self.connection = Connection(broker, "unit", True)
        self.broker = broker

    def opened(self):
        self.heard.append("opened")

    def command(self, name, fields):
        self.heard.append(name)
        if self.file is not None:
            self.file.command(name, fields)

    def content(self, name, fields, header):
        self.heard.append(name)
        if self.file is not None:
            self.file.content(name, fields, header)

    def body(self, octets, is_last):
        if isinstance(self.file, Receiving):
            self.file.body(octets)

    def completed(self, id_):
        self.heard.append(id_)
        if self.file is not None:
            self.file.completed(id_)

    def room(self):
        if isinstance(self.file, Sending):
            self.file.room()

    def ended(self, code, text):
        self.heard.append((code, text))

    def move(self, most=1 << 30, until=None):
        """Move octets both ways until nothing more comes, or `until` is true; at most so many of ours."""
        moved = True
        while moved and most > 0 and not (until is not None and until()):
            moved = False
            ours = bytes(self.client.pending())[: min(self.piece, most)]
            view = self.connection.writable()
            if ours and len(view):
                count = min(len(ours), len(view))
                view[:count] = ours[:count]
                self.client.sent(count)
                self.connection.received(count)
                most -= count
                moved = True
            self.broker.run()
            theirs = bytes(self.connection.pending())[: self.piece]
            view = self.client.writable()
            if theirs and len(view):
                count = min(len(theirs), len(view))
                view[:count] = theirs[:count]
                self.connection.sent(count)
                self.client.received(count)
                moved = True
        return self

    def declared(self):
        """The queue of the tests."""
        self.move()
        self.client.command("queue_declare", {"queue": "q"}, tell=True)
        return self.move()


class Sink:
    """What is received, in memory."""

    def __init__(self, there=b""):
        self.octets = there
        self.identifier = ""
        self.files = []

    def begin(self, identifier, size):
        if identifier != self.identifier:
            self.octets = b""
        self.identifier, self.size = identifier, size
        return len(self.octets)

    def write(self, octets):
        self.octets += octets

    def whole(self, properties, redelivered):
        assert len(self.octets) == self.size
        self.files.append((properties["filename"], self.octets, redelivered))
        return True


def sending(application, body, **given):
    """A Sending of a content."""
    values = {"identifier": "id", "exchange": "", "key": "q"}
    values.update(given)
    name, exchange, key = values["identifier"], values["exchange"], values["key"]
    application.file = Sending(application.client, lambda at, most: body[at : at + most], name, len(body), {"filename": "f"}, exchange, key)
    return application.file


def test_a_file_goes_through_a_broker_in_pieces_of_every_kind():
    for piece in (1, 7, 1000, 1 << 20):
        body = octets(3000 if piece == 1 else 30000)
        broker = broker_of()
        sender = Application(broker, piece).declared()
        assert sender.heard == ["opened", 0]
        assert sending(sender, body).phase == "opening"
        sender.move()
        assert sender.file.phase == "done" and sender.file.resumed_at == 0
        reader = Application(broker, piece).move()
        sink = Sink()
        reader.file = Receiving(reader.client, "q", sink)
        reader.move()
        assert sink.files == [("f", body, False)] and reader.file.is_acknowledged
        assert broker.queues["q"].message_count() == 0


def test_both_ways_go_on_after_a_cut():
    body = octets(30000)
    broker = broker_of()
    sender = Application(broker).declared()
    sending(sender, body)
    sender.move(20000)
    sender.connection.received(0)
    sender.client.received(0)
    assert sender.heard[-1] == (0, "the peer closed the stream")
    again = Application(broker).move()
    sending(again, body)
    again.move()
    assert again.file.phase == "done" and 10000 < again.file.resumed_at < 20000
    sink = Sink()
    reader = Application(broker, 1000).move()
    reader.file = Receiving(reader.client, "q", sink)
    reader.move(until=lambda: len(sink.octets) >= 9000)
    reader.connection.received(0)
    broker.run()
    there = len(sink.octets)
    reader = Application(broker).move()
    reader.file = Receiving(reader.client, "q", sink)
    reader.move()
    assert 20000 > there >= 9000 and sink.files == [("f", body, True)]


def test_what_the_broker_refuses_is_told():
    broker = broker_of()
    sender = Application(broker).declared()
    sending(sender, b"", identifier="")
    sender.move()
    code, text = sender.heard[-1]
    assert code == 406 and "identifier" in text and sender.client.closed
    other = Application(broker).move()
    sending(other, b"x", key="no")
    other.move()
    assert other.file.phase == "done" and other.file.returned == (312, "no queue takes the message")


def test_a_wrong_password_a_wrong_protocol_and_silence():
    wrong = Application(broker_of(), password="no")
    for _ in range(30):
        wrong.move()
        wrong.broker.tick((wrong.broker.now + 500) & 0x3FFFFFFF, 1700000000)
        wrong.connection.tick(wrong.broker.now)
    assert wrong.client.closed and wrong.heard[0][0] == 320
    client = Application(broker_of()).client
    client.writable()[:8] = b"AMQP\x00\x00\x09\x01"
    client.received(8)
    assert client.events.heard == [(0, "the peer does not speak AMQP 0-10")]
    client = Application(broker_of()).client
    for now in (0, 5000, 11000):
        client.tick(now)
    assert client.events.heard == [(0, "no answer from the broker for 10000 ms")]


def test_heartbeats_and_close():
    application = Application(broker_of(heartbeat_s=1)).move()
    client = application.client
    assert client.beat_ms == 1000
    client.tick(0)
    client.tick(1500)
    assert bytes(client.pending()) == b"\x0f\x00\x00\x10" + bytes(8) + b"\x01\x0a\x00\x00"
    client.close()
    application.move()
    assert application.heard == ["opened", (0, "closed")]


class Posting(Application):
    """Sends messages by their names over sessions that outlive their connections."""

    def __init__(self, broker, transfers=None, **given):
        self.settled = []
        self.transfers = transfers or Transfers("", lambda number, reason: self.settled.append((number, reason)))
        self.transfers.settled = lambda number, reason: self.settled.append((number, reason))
        Application.__init__(self, broker, name=b"s", timeout_s=60, **given)

    def opened(self):
        self.heard.append(("opened", self.transfers.opened(self.client, lambda name: name != "gone")))

    def command(self, name, fields):
        self.transfers.command(name, fields)

    def completed(self, id_):
        self.transfers.completed(id_)

    def room(self):
        self.transfers.room()

    def post(self, name, body, key="q"):
        return self.transfers.send(name, structs.write("delivery-properties", {"routing_key": key}), body)


def test_a_message_is_settled_when_it_is_completed_and_by_the_reason_of_its_reject():
    broker = broker_of()
    Application(broker).declared()
    posting = Posting(broker).move()
    assert posting.heard == [("opened", False)] and posting.client.timeout_s == 60
    assert [posting.post("a", b"1"), posting.post("b", b"2", "none"), posting.post("c", octets(9000))] == [1, 2, 3]
    assert posting.settled == []
    posting.move()
    assert sorted(posting.settled) == [(1, ""), (2, "no queue takes the message"), (3, "")]
    assert broker.queues["q"].message_count() == 2 and not posting.transfers.ids


def test_a_session_goes_on_with_the_ids_that_its_messages_had():
    broker = broker_of()
    Application(broker).declared()
    posting = Posting(broker).move()
    posting.post("done", b"1")
    posting.post("none", b"2", "none")
    while len(posting.client.pending()):  # executed, and its answers are lost
        ours = bytes(posting.client.pending())
        posting.connection.writable()[: len(ours)] = ours
        posting.connection.received(len(ours))
        posting.client.sent(len(ours))
    broker.run()
    posting.post("gone", b"3")
    posting.post("new", b"4")
    posting.connection.received(0)
    posting.client.received(0)
    again = Posting(broker, posting.transfers).move()
    assert again.heard == [("opened", True)] and again.settled == []
    assert again.client.missing == [(2, 2)]
    assert again.post("done", b"4") == 1
    again.connection.received(0)  # and lost before it was told
    again.client.received(0)
    again = Posting(broker, posting.transfers).move()
    assert again.heard == [("opened", True)] and again.settled == []
    assert [again.post(name, b"4") for name in ("done", "none", "new")] == [1, 2, 4]
    again.transfers.tell()
    again.move()
    assert sorted(again.settled) == [(1, ""), (2, "no queue takes the message"), (4, "")]
    assert broker.queues["q"].message_count() == 2 and again.post("next", b"5") == 5
    again.client.close()
    again.move()
    assert not broker.beyond.by_name


def test_an_exception_names_its_message():
    broker = broker_of()
    posting = Posting(broker)
    posting.transfers.destination = "nowhere"
    posting.move().post("a", b"1")
    posting.move()
    assert posting.settled[0][0] == 1 and "nowhere" in posting.settled[0][1]
    assert posting.heard[-1][0] == 404 and posting.client.closed


def test_a_redirect_names_other_brokers():
    client = Application(broker_of()).client
    given = (
        ("connection_start", {"mechanisms": ["PLAIN"]}),
        ("connection_tune", {"channel_max": 1, "max_frame_size": 65535}),
        ("connection_redirect", {"host": "amqp:tcp:b.example:1234,tcp:c", "known_hosts": ["[::1]:7", "ssl:d:5671"]}),
    )
    controls = [frame.write(frame.WHOLE, frame.CONTROL, 0, structs.write_control(name, fields)) for name, fields in given]
    for octets_ in [b"AMQP\x01\x01\x00\x0a"] + controls:
        client.writable()[: len(octets_)] = octets_
        client.received(len(octets_))
    assert client.redirects == [("b.example", 1234), ("c", 5672), ("::1", 7)] and client.closed
    assert hosts_of("") == [] and hosts_of("a:99999") == []


CONTROLS = (  # what a client says of its session (class 2) and of its connection (class 1): class code, code, packing flags, fields
    ("session_attach", {"name": b"ab"}, "0f000014000000000000000002010100" + "00026162"),
    ("session_request_timeout", {"timeout": 60}, "0f000014000000000000000002050100" + "0000003c"),
    ("session_command_point", {"command_id": 5, "command_offset": 0}, "0f00001c000000000000000002070300" + "00000005" + "00" * 8),
    ("session_flush", {"expected": True}, "0f0000100000000000000000020c0100"),
    ("session_gap", {"commands": [(1, 2)]}, "0f00001a0000000000000000020d0100" + "0008" + "0000000100000002"),
    ("session_completed", {"commands": [(0, 1)]}, "0f00001a0000000000000000020a0100" + "0008" + "0000000000000001"),
    ("session_known_completed", {"commands": []}, "0f0000120000000000000000020b01000000"),
    ("connection_close", {"reply_code": 200, "reply_text": "closed"}, "0f000019000000000000000001" + "0b0300" + "00c8" + "06636c6f736564"),
)


def test_golden_octets_of_controls():
    for name, fields, text in CONTROLS:
        client = Application(broker_of()).client
        client.sent(8)
        client.control(name, fields)
        assert "".join(["%02x" % octet for octet in bytes(client.pending())]) == text, name


def test_golden_octets_of_a_message():
    client = Application(broker_of()).client
    client.sent(8)
    transfers = Transfers("ex", None)
    transfers.client = client
    client.next_id = 0
    assert transfers.send("n", b"\x00\x00\x00\x04\x04\x01\x00\x00", b"body") == 1
    written = []
    while len(client.pending()):
        octets_ = bytes(client.pending())
        written += ["%02x" % octet for octet in octets_]
        client.sent(len(octets_))
    command = "0b010017" + "00010000" + "00000000" + "0401" + "0101" + "0700" + "02" + "6578" + "00" + "00"
    header = "03020014" + "00010000" + "00000000" + "0000000404010000"
    body = "07030010" + "00010000" + "00000000" + "626f6479"
    assert "".join(written) == command + header + body


GOLDEN = (  # section by section: what the client writes, in hexadecimal
    ("file_open", {"identifier": "ab", "content_size": 3}, "0f01001d00010000000000000906010003000261620000000000000003"),
    ("file_open_ok", {"staged_size": 2}, "0f01001a00010000000000000907010001000000000000000002"),
    ("file_publish", {"routing_key": "q", "mandatory": True, "identifier": "a"}, "0f010016000100000000000009090100160001710161"),
    ("file_ack", {"delivery_tag": 5, "multiple": True}, "0f01001a0001000000000000090c010003000000000000000005"),
    ("file_reject", {"delivery_tag": 5, "requeue": True}, "0f01001a0001000000000000090d010003000000000000000005"),
    ("stream_qos", {"consume_rate": 9}, "0f01001600010000000000000a010100040000000009"),
    ("stream_cancel", {"consumer_tag": "c"}, "0f01001400010000000000000a05010001000163"),
)


def test_golden_octets():
    """Out of the tables: class code 9 (file) and 10 (stream), codes and packing flags by the order of the fields."""
    for name, fields, text in GOLDEN:
        client = Application(broker_of()).client
        client.sent(8)
        client.command(name, fields)
        assert "".join(["%02x" % octet for octet in bytes(client.pending())]) == text, name


def test_scram_logs_in_and_both_prove_the_password():
    """RFC 5802: through connection.secure; a wrong password, and a broker that does not know it, end the connection."""
    given = {"mechanism": "SCRAM-SHA-256", "nonce": b"another one each time"}
    for piece in (1 << 20, 1):
        there = Application(broker_of(), piece, **given)
        turns(there)
        assert there.heard == ["opened"], there.heard
    wrong = Application(broker_of(), password="no", **given)
    turns(wrong)
    assert wrong.client.closed and wrong.heard[0][0] == 320
    liar = Application(broker_of(), **given).client
    liar.log_in({"mechanisms": ["SCRAM-SHA-256"]})
    liar.tune({"max_frame_size": 4096, "heartbeat_min": 0, "heartbeat_max": 0, "channel_max": 1})
    assert liar.events.heard == [(320, "the broker has not proved that it knows the password")]
    for none in ("PLAIN", "ANONYMOUS"):
        client = Application(broker_of(), mechanism=none).client
        client.log_in({"mechanisms": [none]})
        try:
            client.secure({"challenge": b"more"})
            raise AssertionError(none)
        except ProtocolError as error:
            assert "more than the log-in has" in error.text


def turns(application):
    """Time passes: a hash takes the broker some turns, and a refusal a pause."""
    for _ in range(30):
        application.move()
        application.broker.run()
        application.broker.tick((application.broker.now + 500) & 0x3FFFFFFF, 1700000000)
        application.connection.tick(application.broker.now)


def test_hosts_of_a_broker_s_redirect_are_those_that_a_client_can_connect_to():
    """connection.redirect's known-hosts, domain amqp-host-url: a port is 1 to 65535, 5672 where none is said."""
    for text, hosts in (
        ("amqp:tcp:a:1,b:65535", [("a", 1), ("b", 65535)]),
        ("a:0,b:65536,c", [("c", 5672)]),
        ("tcp:[::1]:77,[::2]", [("::1", 77), ("::2", 5672)]),
        ("tls:a:1,b", [("b", 5672)]),
        (",", []),
    ):
        assert hosts_of(text) == hosts, text
