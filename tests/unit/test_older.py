"""AMQP 0-8 and 0-9 on the one port: their headers, and what their tables have that 0-9-1's have not (core/amqp_0_9/older.py)."""

from peer import Peer, new_broker

from leveret.core.amqp_0_9 import frame, method, spec_0_8, spec_0_9

HEADERS = ((spec_0_8.HEADER, spec_0_8), (b"AMQP\x01\x01\x09\x01", spec_0_8), (spec_0_9.HEADER, spec_0_9))


class Old(Peer):
    """A peer that begins with `header` and reads and writes by the tables `spec`."""

    def __init__(self, header, spec, broker=None):
        self.header, self.spec = header, spec
        Peer.__init__(self, broker or new_broker())

    def log_in(self, capabilities):
        self.give(self.header)
        self.started = self.asked("connection_start")
        self.say("connection_start_ok", 0, {}, "PLAIN", b"\x00guest\x00guest", "en_US")
        self.asked("connection_tune")
        self.say("connection_tune_ok", 0, 0, 0, 0)
        self.say("connection_open", 0, "/", "", False)
        self.asked("connection_open_ok")
        self.say("channel_open", 1, "")
        self.asked("channel_open_ok")

    def say(self, name, channel, *arguments):
        """A method."""
        self.give(method.encode(method.named(self.spec.METHODS, name), channel, arguments))

    def methods(self):
        """(name, arguments) of the methods that came; headers and bodies are left out."""
        self.take()
        found = []
        while len(self.inbox) >= 7:
            size = int.from_bytes(self.inbox[3:7], "big")
            octets, self.inbox = self.inbox[: size + 8], self.inbox[size + 8 :]
            if octets[0] == frame.METHOD:
                code = int.from_bytes(octets[7:11], "big")
                row = method.find(self.spec.METHODS, code)
                assert row is not None, "method 0x%06x is not in the tables" % code
                found.append((row[method.NAME], method.decode(row, octets, 11, 7 + size)))
        return found

    def asked(self, name, *others):
        """The arguments of the first method that came, which has this name; the names of those behind it are `others`."""
        found = self.methods()
        assert [each for each, _ in found] == [name] + list(others), found
        return found[0][1]

    def declared(self):
        """A queue q, bound to amq.direct by k."""
        self.say("queue_declare", 1, 0, "q", False, False, False, False, False, {})
        self.asked("queue_declare_ok")
        self.say("queue_bind", 1, 0, "q", "amq.direct", "k", False, {})
        self.asked("queue_bind_ok")
        return self


def all_of():
    """A peer of each header, on a broker of its own, with a queue."""
    return [Old(*each).declared() for each in HEADERS]


def test_connection_start_says_the_version_and_has_no_value_that_old_tables_lack():
    """0-8 section 5.1.1: versions as the header has them; the tables of 0-8 have the types S, I, D, T and F."""
    for peer, version in zip(all_of(), ([8, 0], [8, 0], [0, 9])):
        assert peer.started[:2] == version
        assert not [value for value in peer.started[2].values() if not isinstance(value, str)]


def test_a_ticket_is_granted():
    """access.request (class 30)."""
    for peer in all_of():
        peer.say("access_request", 1, "/data", False, False, True, True, True)
        assert peer.asked("access_request_ok") == [1]


def test_basic_consume_with_a_table_behind_it_and_without():
    """0-8's text has no table there, Qpid's clients send one."""
    for peer in all_of():
        row = method.named(peer.spec.METHODS, "basic_consume")
        octets = method.encode(row, 1, (0, "q", "c", False, True, False, False, {}))
        if peer.spec is spec_0_8:
            octets = frame.encode(frame.METHOD, 1, octets[7:-5])
        peer.give(octets)
        assert peer.asked("basic_consume_ok") == ["c"]
        peer.publish("k", b"x", exchange="amq.direct")
        assert peer.asked("basic_deliver")[0] == "c"


def test_basic_recover_gives_back_and_is_answered_as_each_version_has_it():
    answers = {spec_0_8.HEADER: ("basic_recover_ok",), spec_0_9.HEADER: (), b"AMQP\x01\x01\x09\x01": ()}
    for peer in all_of():
        peer.say("basic_consume", 1, 0, "q", "c", False, False, False, False, {})
        peer.publish("k", b"x", exchange="amq.direct")
        peer.asked("basic_consume_ok", "basic_deliver")
        peer.say("basic_recover", 1, False)
        found = peer.methods()
        assert sorted(each for each, _ in found) == sorted(("basic_deliver",) + answers[peer.header])
        redelivered = [arguments[2] for each, arguments in found if each == "basic_deliver"]
        assert redelivered == [True]


def test_channel_flow_stops_deliveries_and_lets_them_go_on():
    """0-8 section 5.2.2: channel.flow."""
    for peer in all_of():
        peer.say("channel_flow", 1, False)
        assert peer.asked("channel_flow_ok") == [False]
        peer.say("basic_consume", 1, 0, "q", "c", False, False, False, False, {})
        peer.asked("basic_consume_ok")
        peer.publish("k", b"x", exchange="amq.direct")
        assert peer.methods() == []
        peer.say("basic_qos", 1, 0, 5, True)
        assert peer.asked("basic_qos_ok") == []
        assert peer.methods() == []
        peer.say("channel_flow", 1, True)
        assert sorted(each for each, _ in peer.methods()) == ["basic_deliver", "channel_flow_ok"]


def waited(peer):
    """Some time passes."""
    peer.broker.tick(peer.broker.now + 1000, 0)
    peer.connection.tick(peer.broker.now)
    peer.broker.run()


def consumed(peer, tag, arguments, no_ack=True):
    """A consumer of q with a table behind it."""
    peer.say("basic_consume", 1, 0, "q", tag, False, no_ack, False, False, arguments)


def test_a_browser_gets_what_is_there_and_removes_nothing():
    """Qpid's x-filter-no-consume: what comes later comes too; x-filter-auto-close: it ends with basic.cancel-ok."""
    for peer in all_of():
        for body in (b"0", b"1"):
            peer.publish("k", body, exchange="amq.direct")
        consumed(peer, "b", {"x-filter-no-consume": True})
        found = peer.methods()
        assert [each for each, _ in found] == ["basic_consume_ok", "basic_deliver", "basic_deliver"]
        assert [arguments[:3] for _, arguments in found[1:]] == [["b", 1, False], ["b", 2, False]]
        peer.publish("k", b"2", exchange="amq.direct")
        waited(peer)
        assert peer.asked("basic_deliver")[1] == 3
        consumed(peer, "c", {"x-filter-no-consume": True, "x-filter-auto-close": True})
        assert [each for each, _ in peer.methods()] == ["basic_consume_ok"] + 3 * ["basic_deliver"] + ["basic_cancel_ok"]
        peer.say("basic_cancel", 1, "b", False)
        assert peer.asked("basic_cancel_ok") == ["b"]
        assert peer.broker.queues["q"].message_count() == 3


def test_a_browser_goes_on_when_there_is_room_again_and_ends_with_its_queue():
    for peer in all_of():
        for _ in range(80):
            peer.publish("k", b"x" * 40, exchange="amq.direct")
        consumed(peer, "b", {"x-filter-no-consume": True, "x-filter-auto-close": True})
        found = []
        for _ in range(40):
            waited(peer)
            found += [each for each, _ in peer.methods()]
        assert found == ["basic_consume_ok"] + 80 * ["basic_deliver"] + ["basic_cancel_ok"]
        consumed(peer, "b", {"x-filter-no-consume": True})
        peer.methods()
        peer.broker.topology.delete_queue(peer.connection, "q", False, False)
        waited(peer)
        assert peer.methods() == [] and peer.connection.session.browsers == []


def test_a_browser_is_refused_what_makes_no_sense():
    for arguments, no_ack, code in (({"x-filter-no-consume": True}, False, 540), ({"x-filter-jms-selector": "n >"}, True, 406)):
        peer = all_of()[0]
        consumed(peer, "b", arguments, no_ack)
        found = peer.methods()
        assert [given[0] for name, given in found if name.endswith("close")] == [code]


def test_a_browsers_tag_is_its_own():
    """Section 1.8.3.3 of 0-9-1, consumer-tag: of a consumer or of a browser on the channel, once at a time (530)."""
    browses = {"x-filter-no-consume": True}
    for arguments in (browses, {}):
        for peer in all_of():
            consumed(peer, "b", arguments)
            peer.asked("basic_consume_ok")
            consumed(peer, "b", browses)
            found = peer.methods()
            assert [given[0] for name, given in found if name.endswith("close")] == [530], found


def test_a_selector_chooses():
    """Qpid's x-filter-jms-selector, of consumers and of browsers; messages that it does not fit stay."""
    for peer in all_of():
        for kind in ("a", "b", "a"):
            peer.publish("k", kind.encode(), exchange="amq.direct", given={"type": kind})
        consumed(peer, "s", {"x-filter-jms-selector": "JMSType = 'b'", "x-filter-no-consume": True})
        peer.asked("basic_consume_ok", "basic_deliver")
        consumed(peer, "", {"x-filter-jms-selector": "JMSType = 'a'"})
        peer.asked("basic_consume_ok", "basic_deliver", "basic_deliver")
        assert peer.broker.queues["q"].message_count() == 1


def test_a_reject_in_a_transaction_is_at_once():
    """Class tx: transactions are about publishes and acknowledgements. Qpid's clients reject before they roll back."""
    for peer in all_of():
        peer.publish("k", b"x", exchange="amq.direct")
        peer.say("tx_select", 1)
        consumed(peer, "c", {}, False)
        peer.asked("tx_select_ok", "basic_consume_ok", "basic_deliver")
        peer.say("basic_reject", 1, 1, True)
        assert peer.asked("basic_deliver")[1:3] == [2, True]
        peer.say("basic_ack", 1, 2, False)
        peer.say("basic_reject", 1, 2, True)
        assert peer.asked("channel_close")[0] == 406


def test_a_durable_exclusive_queue_of_qpids_clients_outlives_its_connection():
    for peer, stays in zip(all_of(), (True, False, True)):
        peer.say("queue_declare", 1, 0, "own", False, True, True, False, False, {})
        peer.asked("queue_declare_ok")
        peer.connection.received(0)
        assert ("own" in peer.broker.queues) == stays


def test_exchange_bound():
    """Qpid's exchange.bound: 0 where it is, else what is not there or not bound."""
    for peer in all_of():
        for asked, code in (
            (("amq.direct", "k", "q"), 0),
            (("amq.direct", "", ""), 0),
            (("no such", "", ""), 1),
            (("amq.direct", "", "no such"), 2),
            (("amq.fanout", "", ""), 3),
            (("amq.fanout", "", "q"), 4),
            (("amq.direct", "other", ""), 5),
            (("amq.direct", "other", "q"), 6),
        ):
            peer.say("exchange_bound", 1, *asked)
            assert peer.asked("exchange_bound_ok")[0] == code, asked


def test_class_test_of_0_8():
    """Class test (120): what a server answers to its integers, texts and tables."""
    for peer in all_of()[:2]:
        peer.say("test_integer", 1, 1, 2, 3, 4, 1)
        assert peer.asked("test_integer_ok") == [10]
        peer.say("test_integer", 1, 200, 2, 5, 1, 4)
        assert peer.asked("test_integer_ok") == [20]
        peer.say("test_string", 1, "ab", b"cd", 1)
        assert peer.asked("test_string_ok") == [b"abcd"]
        peer.say("test_table", 1, {"a": 3, "b": 5, "c": "xy", "d": "z"}, 3, 2)
        assert peer.asked("test_table_ok") == [5, b"z"]


def test_class_test_answers_no_text_that_no_frame_has_room_for():
    """311, content-too-large: the answer would have waited for room for ever where more can be received than sent."""
    for send_size, most in ((1024, 1024 - 320 - 64), (65536, 4096 - 64)):
        for size, fits in ((most, True), (most + 1, False)):
            for name, arguments, answer in (("test_string", ("a", b"b" * (size - 1), 1), 0), ("test_table", ({"a": "b" * size}, 1, 1), 1)):
                broker = new_broker(receive_buffer_size=8192, send_buffer_size=send_size, frame_size_max=4096)
                peer = Old(*HEADERS[0], broker)
                peer.say(name, 1, *arguments)
                if fits:
                    assert len(peer.asked(name + "_ok")[answer]) == size
                else:
                    text = "CONTENT_TOO_LARGE - the answer has %d octets, and a text that is answered may have %d" % (size, most)
                    assert peer.asked("channel_close")[:2] == [311, text]


def test_an_error_closes_the_channel_with_the_code_that_its_clients_know():
    for peer in all_of():
        peer.say("queue_declare", 1, 0, "none", True, False, False, False, False, {})
        assert peer.asked("channel_close")[0] == 404
        peer.say("channel_close_ok", 1)
        peer.say("channel_open", 1, "")
        peer.asked("channel_open_ok")


def test_what_the_tables_leave_open_is_refused_by_its_name():
    """Classes dtx and tunnel, and test.content: 540, and the method that was refused."""
    for name, arguments, code in (
        ("dtx_select", (), (100, 10)),
        ("dtx_start", ("id",), (100, 20)),
        ("tunnel_request", ({},), (110, 10)),
        ("test_content", (), (120, 40)),
    ):
        for peer in all_of()[: 2 if name == "test_content" else 3]:
            peer.say(name, 1, *arguments)
            found = peer.asked("connection_close")
            assert found[0] == 540 and name.replace("_", ".") in found[1] and tuple(found[2:]) == code
