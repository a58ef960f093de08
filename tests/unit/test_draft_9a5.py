"""AMQP/Fast 0.9a5: golden octets out of the figures of its text first, then a client of tests/unit/draft_peer.py and the broker."""

from draft_peer import END, Peer9a5, Peer9r1, bits, long, longlong, octet, short, word
from peer import Peer, content, new_broker

from leveret.core.amqp_0_9.drafts.frames import Frames9a5


def test_the_frame_header_of_the_figure():
    """ "The Frame Header Wire Format": octet type, octet channel, short size, which includes the end octet."""
    assert Frames9a5.lead(1, 7, 3) == b"\x01\x07\x00\x04"
    assert Frames9a5.head(b"\x01\x07\x00\x04abc\xce", 0, 8) == (1, 7, 4, 3)
    assert Frames9a5.head(b"\x01\x07\x00", 0, 3) is None


def test_the_extended_header_of_the_figure():
    """ "Extended Frame Header Wire Format": META 0 0 0, then octet type, octet flags, short channel, longlong size."""
    figure = b"\x09\x00\x00\x00" + b"\x03\x00\x01\x2c" + b"\x00\x00\x00\x00\x00\x01\x00\x01"
    assert Frames9a5.lead(3, 300, 65536) == figure
    assert Frames9a5.head(figure, 0, 16) == (3, 300, 16, 65536)
    assert Frames9a5.lead(3, 1, 65535) == b"\x09\x00\x00\x00\x03\x00\x00\x01" + longlong(65536)
    assert Frames9a5.lead(3, 1, 65534) == b"\x03\x01\xff\xff"
    assert Frames9a5.heartbeat == b"\x08\x00\x00\x01" + END


def test_the_method_header_of_the_figure():
    """ "Method Frame Body Wire Format": octet class, octet method, short reserved."""
    assert Frames9a5.method(5, 3) == b"\x05\x03\x00\x00"
    assert Frames9a5.code(b"\x05\x03\x00\x00", 0) == 0x050003


def test_connection_start_and_tune():
    peer = Peer9a5()
    assert peer.started[:2] == b"\x00\x09" and b"PLAIN" in peer.started
    assert peer.tuned[-1:] == b"\x07"  # jms, file and stream are supported
    assert peer.opened == short("me")


def test_another_header_is_answered_with_nothing():
    """ "Protocol and Version": "it MUST close the socket without sending any response"; "MUST NOT ban or delay a client that requests an
    unsupported protocol version"."""
    broker = new_broker(login_failure_max=1)
    for octets in (b"AMQP\x01\x01\x00\x0b", b"AMQP\x01\x01\x01\x00", b"HTTP / "):
        peer = Peer9a5(broker, log_in=False)
        peer.connection.address = "10.0.0.1"
        peer.give(octets)
        assert peer.inbox == b"" and peer.connection.closed, "at once, not when the peer has had its time to read"
        assert len(peer.connection.pending()) == 0 and not broker.failures.refuses("10.0.0.1")
    Peer9a5(broker).queue()


def test_the_published_versions_are_served_on_the_same_listener():
    peer = Peer9a5(log_in=False)
    peer.give(b"AMQP\x00\x00\x09\x01")
    peer.take()
    assert peer.inbox[:1] == b"\x01" and peer.inbox[7:11] == b"\x00\x0a\x00\x0a"


def test_a_message_goes_through():
    """jms.publish by its destination, jms.consume, jms.deliver, jms.ack."""
    peer = Peer9a5().queue()
    assert peer.ask(7, 1, peer.ticket, short(""), short("q"), word(0), word(0), bits(0, 0, 0)) == word(1)
    peer.publish(b"hello", flags=b"\xa0\x00", properties=short("text/plain") + short("k"))
    found = peer.heard()
    method = b"\x07\x06\x00\x00" + longlong(1) + bits(0) + short("amq.direct") + short("") + short("q")
    head = octet(7) + octet(0) + longlong(5) + b"\xa0\x00" + short("text/plain") + short("k")
    assert found == [(1, 1, method), (2, 1, head), (3, 1, b"hello")]
    peer.say(1, 7, 10, longlong(1), bits(0))
    assert peer.heard() == [] and peer.broker.queues["q"].message_count() == 0
    assert peer.ask(7, 3, word(1)) == b""


def test_browse_is_the_way_to_get_one():
    """basic.browse: "Basic messages are not acknowledged"; jms.browse, whose messages are."""
    peer = Peer9a5().queue()
    peer.publish(b"1")
    peer.publish(b"2")
    peer.say(1, 6, 1, peer.ticket, short(""), short("q"), bits(0))
    assert peer.heard() == [
        (1, 1, b"\x06\x02\x00\x00" + bits(0) + long(1)),
        (2, 1, octet(6) + octet(0) + longlong(1) + b"\x20\x00" + short("k")),
        (3, 1, b"1"),
    ]
    peer.say(1, 7, 7, peer.ticket, short(""), short("q"), bits(0, 0))
    assert peer.heard()[0] == (1, 1, b"\x07\x08\x00\x00" + longlong(2) + bits(0) + long(0))
    peer.say(1, 7, 11, longlong(2), bits(1))
    peer.say(1, 7, 7, peer.ticket, short(""), short("q"), bits(0, 1))
    assert peer.heard()[0] == (1, 1, b"\x07\x08\x00\x00" + longlong(3) + bits(1) + long(0))
    peer.say(1, 7, 7, peer.ticket, short(""), short("q"), bits(0, 1))
    assert peer.heard_one(7, 9) == b""
    peer.say(1, 6, 1, peer.ticket, short(""), short("q"), bits(0))
    assert peer.heard_one(6, 3) == b""


def test_channels_above_255_have_extended_frames_both_ways():
    peer = Peer9a5()
    peer.open(300)
    peer.say(300, 5, 1, peer.ticket, short(""), short("wide"), short(""), bits(0, 0, 0, 0))
    assert peer.heard_one(5, 2, 300) == short("wide") + short("") + long(0) + long(0)


def test_a_frame_beyond_64_kib():
    """A body frame of 70,000 octets behind a META frame, and out again."""
    peer = Peer9a5(
        new_broker(
            arena_size=1 << 20, content_size_max=1 << 17, frame_size_max=1 << 17, receive_buffer_size=1 << 17, send_buffer_size=1 << 18
        )
    )
    peer.queue()
    body = bytes(range(250)) * 280
    peer.publish(body)
    peer.say(1, 6, 1, peer.ticket, short(""), short("q"), bits(0))
    found = peer.heard()
    assert [kind for kind, _, _ in found] == [1, 2, 3] and found[2][2] == body


def test_an_extended_frame_may_be_small():
    peer = Peer9a5()
    peer.give(Peer9a5.frame(1, 1, peer.ids(5, 1) + peer.ticket + short("") + short("q") + short("") + bits(0, 0, 0, 0), extended=True))
    assert peer.heard_one(5, 2)[:2] == short("q")


def test_frames_that_cannot_be_end_the_connection():
    """An unknown type or a wrong end: nothing more is sent; else frame-error (501) or the code that fits."""
    meta = b"\x09\x00\x00\x00"
    for octets in (
        b"\x0a\x00\x00\x01\xce",
        b"\x0a\x00\x00\x00",
        b"\x00\x00\x00\x01\xce",
        b"\x08\x00\x00\x01\xcd",
        meta + b"\x0a\x00\x00\x01" + longlong(1) + b"\xce",
        meta + b"\x0a\x01\x00\x01" + longlong(0),  # "Extended Frame Header Wire Format": the flags of a type that is none say nothing
        meta + b"\x00\x00\x00\x01" + longlong(1 << 40),
    ):
        peer = Peer9a5()
        peer.give(octets)
        assert peer.connection.closed
    for octets, code in (
        (b"\x09\x00\x00\x01\xce", 501),
        (b"\x09\x00\x00\x00\x09\x00\x00\x00" + longlong(1), 501),
        (b"\x09\x00\x00\x00\x08\x01\x00\x00" + longlong(1), 501),
        (b"\x01\x01\x00\x00", 501),
        (b"\x08\x01\x00\x01\xce", 501),
        (b"\x09\x00\x00\x00\x03\x00\x00\x01" + longlong(1 << 40), 501),
        (b"\x02\x00\x00\x01\xce", 504),
        (b"\x04\x01\x00\x01\xce", 540),
        (b"\x01\x01\x00\x05\x05\x01\x00\x01\xce", 501),
        (b"\x01\x01\x00\x05\x0d\x01\x00\x00\xce", 503),
        (b"\x01\x01\x00\x05\x07\x06\x00\x00\xce", 503),
        (b"\x01\x02\x00\x05\x0a\x01\x00\x00\xce", 504),
        (b"\x01\x01\x00\x05\x0a\x01\x00\x00\xce", None),
    ):
        peer = Peer9a5()
        peer.give(octets)
        if code is None:
            assert peer.closed(507) == (10, 1)  # tx.commit on a channel that is not transactional
        else:
            peer.closed(code, 0)


def test_heartbeats_and_traces_are_discarded():
    peer = Peer9a5()
    peer.give(b"\x08\x00\x00\x01\xce" + b"\x07\x05\x00\x04abc\xce")
    peer.give(Peer9a5.frame(7, 5, b"t" * 4000))  # more than the receive buffer has
    assert peer.heard() == [] and not peer.connection.closed


def test_tickets_and_their_rights():
    """A method needs a ticket of this connection that grants its right: 403 on the channel."""
    peer = Peer9a5()
    reader = peer.ask(3, 1, short("/data"), bits(0, 0, 0, 0, 1))
    for ticket, class_id, method_id, fields in (
        (reader, 5, 1, short("") + short("q") + short("") + bits(0, 0, 0, 0)),
        (reader, 4, 1, short("e") + short("fanout") + bits(1, 0, 0)),
        (word(99), 7, 5, short("amq.direct") + bits(0)),
        (reader, 7, 5, short("amq.direct") + bits(0)),
    ):
        peer.say(1, class_id, method_id, ticket, fields)
        assert peer.closed(403) == (class_id, method_id)
        peer.say(1, 2, 5)
        peer.open(1)


def test_an_exclusive_ticket_is_alone_with_its_realm():
    broker = new_broker()
    peer, other = Peer9a5(broker), Peer9a5(broker)
    peer.say(1, 3, 1, short("/data"), bits(1, 0, 0, 0, 1))
    peer.closed(403)
    other.ask(3, 1, short("/own"), bits(1, 0, 0, 0, 1))
    peer.say(1, 2, 5)
    peer.open(1)
    peer.say(1, 3, 1, short("/own"), bits(0, 0, 0, 0, 1))
    peer.closed(403)
    assert other.ask(1, 10, word(200), short(""), octet(0), octet(0), channel=0) == b""  # whether its socket has closed or not
    peer.say(1, 2, 5)
    peer.open(1)
    assert len(peer.ask(3, 1, short("/own"), bits(0, 0, 0, 0, 1))) == 2


def test_namespaces_and_templates_of_queues():
    peer = Peer9a5()
    peer.queue("a", "jobs")
    peer.say(1, 5, 1, peer.ticket, short("jobs"), short("a"), short(""), bits(1, 0, 0, 0))
    assert peer.heard_one(5, 2) == short("a") + short("") + long(0) + long(0)
    assert "jobs.a" in peer.broker.queues
    peer.say(1, 5, 1, peer.ticket, short(""), short("t"), short("none"), bits(0, 0, 0, 0))
    peer.closed(404)


def test_exchange_types_of_the_text():
    """fanout, destination, wildname, property, matcher, selector, lossy."""
    peer = Peer9a5()
    for class_ in ("fanout", "destination", "wildname", "property", "matcher", "selector"):
        assert peer.ask(4, 1, peer.ticket, short("e." + class_), short(class_), bits(0, 0, 0)) == b""
    kinds = [peer.broker.exchanges["e." + each].type for each in ("destination", "wildname", "property", "matcher", "selector")]
    assert kinds == ["direct", "topic", "x-property", "x-matcher", "x-selector"]
    peer.queue("s", exchange="e.selector")
    pairs = short("selector") + b"S" + short("colour = 'red'")
    peer.ask(5, 1, peer.ticket, short(""), short("r"), short(""), bits(0, 0, 0, 0))
    peer.ask(5, 3, peer.ticket, short(""), short("r"), short("e.selector"), long(len(pairs)) + pairs)
    for colour in ("red", "blue"):
        pairs = short("colour") + b"S" + short(colour)
        peer.publish(b"x", exchange="e.selector", flags=b"\x10\x00", properties=long(len(pairs)) + pairs)
    assert peer.broker.queues["r"].message_count() == 1 and peer.broker.queues["s"].message_count() == 2
    peer.ask(4, 3, peer.ticket, short("e.fanout"), bits(0))


def test_transactions_by_tx_mode():
    """A standard channel is in a transaction from its begin on, and after each commit and abort."""
    peer = Peer9a5().queue()
    peer.open(2, mode=2)
    peer.publish(b"1", channel=2)
    assert peer.ask(10, 3, channel=2) == b""
    peer.publish(b"2", channel=2)
    assert peer.broker.queues["q"].message_count() == 0
    assert peer.ask(10, 1, channel=2) == b""
    assert peer.broker.queues["q"].message_count() == 1


def test_flow_pauses():
    """channel.flow has no answer."""
    peer = Peer9a5().queue()
    peer.say(1, 2, 3, bits(1))
    peer.ask(7, 1, peer.ticket, short(""), short("q"), word(0), word(0), bits(0, 1, 0))
    peer.publish(b"x")
    assert peer.heard() == []
    peer.say(1, 2, 3, bits(0))
    assert [kind for kind, _, _ in peer.heard()] == [1, 2, 3]


def test_a_publisher_that_finds_no_room_is_told_by_channel_flow():
    """ "Message Persistence": "SHOULD use the Channel.Flow method to slow or stop a producer"; the flag is flow-pause in 0.9a5, active in
    0.9r1."""
    for class_, paused in ((Peer9a5, 1), (Peer9r1, 0)):
        broker = new_broker()
        peer, modern = class_(broker), Peer(broker)
        modern.declare("q", arguments={"x-max-length": 1, "x-overflow": "block"})
        modern.ask("queue_bind", "queue_bind_ok", 0, "q", "amq.direct", "k", False, {})
        peer.open(2)
        peer.publish(b"1")
        peer.publish(b"2")
        assert peer.heard() == [] and not peer.connection.reading
        told = [(1, number, peer.ids(2, 3) + bits(paused)) for number in (1, 2)]
        for _ in range(5):
            broker.now += 100
            peer.connection.tick(broker.now)
        assert sorted(peer.heard()) == told and broker.counters["blocked"] == 1
        modern.ask("queue_purge", "queue_purge_ok", 0, "q", False)
        broker.run()
        assert sorted(peer.heard()) == [(1, number, peer.ids(2, 3) + bits(1 - paused)) for number in (1, 2)]
        assert broker.queues["q"].message_count() == 1


def test_prefetch_of_a_consumer():
    peer = Peer9a5().queue()
    for number in range(3):
        peer.publish(b"%d" % number)
    peer.say(1, 7, 1, peer.ticket, short(""), short("q"), word(0), word(2), bits(0, 0, 0))
    assert [payload for kind, _, payload in peer.heard() if kind == 3] == [b"0", b"1"]
    peer.say(1, 7, 10, longlong(2), bits(1))
    assert [payload for kind, _, payload in peer.heard() if kind == 3] == [b"2"]


def test_class_test():
    """test.operation: add 1, min 2, max 3."""
    peer = Peer9a5()
    for operation, result in ((1, 10), (2, 1), (3, 4)):
        assert peer.ask(12, 1, octet(1), word(2), long(3), longlong(4), octet(operation)) == longlong(result)
    for operation, result in ((1, b"abcde"), (2, b"ab"), (3, b"cde")):
        assert peer.ask(12, 3, short("ab"), word(3) + b"cde", octet(operation)) == word(len(result)) + result
    pairs = short("a") + b"I" + long(7) + short("b") + b"S" + short("x") + short("c") + b"L" + word(2) + b"yz"
    assert peer.ask(12, 5, long(len(pairs)) + pairs, octet(1), octet(3)) == longlong(7) + word(2) + b"yz"
    peer = Peer9a5(new_broker(receive_buffer_size=8192, send_buffer_size=2048))
    peer.say(1, 12, 3, short("ab"), word(1999) + b"c" * 1999, octet(1))
    peer.closed(311)


def test_tables_and_properties_cross_to_0_9_1_and_back():
    """Every type of a table, and every property of class jms."""
    broker = new_broker(properties_size_max=2048, receive_buffer_size=8192, send_buffer_size=8192)
    peer = Peer9a5(broker).queue()
    inner = short("x") + b"I" + long(1)
    pairs = (
        short("s")
        + b"S"
        + short("t")
        + short("l")
        + b"L"
        + word(300)
        + b"y" * 300
        + short("i")
        + b"I"
        + b"\xff\xff\xff\xfe"
        + short("d")
        + b"D"
        + octet(2)
        + long(314)
        + short("t")
        + b"T"
        + longlong(5)
        + short("f")
        + b"F"
        + long(len(inner))
        + inner
        + short("s")
        + b"S"
        + short("second")
    )
    texts = (short("a/b"), short("utf-8"), short("k"), long(len(pairs)) + pairs, octet(2), octet(7))
    rest = [short(each) for each in ("corr", "reply", "60000", "id", "1200000000", "type", "guest", "app")]
    peer.publish(b"x", flags=b"\xff\xfc", properties=b"".join(texts) + b"".join(rest))
    modern = Peer(broker)
    got = modern.consume("q", no_ack=True)[0]
    given = got[2]
    assert given["headers"] == {"s": "t", "l": "y" * 300, "i": -2, "d": 3.14, "t": ("T", 5), "f": {"x": 1}}
    assert (given["delivery_mode"], given["priority"], given["expiration"], given["timestamp"]) == (2, 7, "60000", 1200000000)
    assert (given["content_type"], given["reply_to"], given["user_id"], given["app_id"]) == ("a/b", "reply", "guest", "app")
    modern.ask("basic_cancel", "basic_cancel_ok", "c", False)
    modern.publish("q", b"back", given=dict(given, headers={"n": None, "b": True, "big": 1 << 40, "f": 0.25, "a": [1], "s": "t"}))
    peer.say(1, 7, 7, peer.ticket, short(""), short("q"), bits(0, 1))
    payload = peer.heard()[1][2]
    kept = [short("b") + b"I" + long(1), short("big") + b"S" + short("1099511627776"), short("f") + b"D" + octet(2) + long(25)]
    kept.append(short("s") + b"S" + short("t"))
    assert long(len(b"".join(kept))) in payload and short("q") in payload
    assert [each for each in kept if each not in payload] == []


def test_a_content_with_others_within_it_is_kept_whole():
    """ "Structured Content": header, contents within it, body."""
    peer = Peer9a5().queue()
    within = peer.content(1, 7, b"\x80\x00" + short("a/b"), b"subtitles"), peer.content(1, 7, b"\x20\x00" + short("menu"), b"")
    peer.publish(b"film", children=within)
    peer.say(1, 7, 7, peer.ticket, short(""), short("q"), bits(0, 1))
    found = peer.heard()
    assert [(kind, payload) for kind, _, payload in found[1:]] == [
        (2, octet(7) + octet(2) + longlong(4) + b"\x20\x00" + short("k")),
        (2, octet(7) + octet(0) + longlong(9) + b"\x80\x00" + short("a/b")),
        (3, b"subtitles"),
        (2, octet(7) + octet(0) + longlong(0) + b"\x20\x00" + short("menu")),
        (3, b"film"),
    ]


def test_what_is_not_served_is_refused_by_its_name():
    for class_id, method_id, fields, text in (
        (11, 1, short("id"), b"dtx.start"),
        (12, 7, b"", b"test.content"),
        (7, 5, word(1) + short("e") + bits(1), b"immediate"),
        (8, 8, word(1) + short("e") + bits(1) + short("id"), b"immediate"),
        (9, 5, word(1) + short("e") + bits(1), b"immediate"),
    ):
        peer = Peer9a5()
        peer.say(1, class_id, method_id, fields)
        found = peer.heard()
        assert found[0][2][:6] == b"\x01\x0a\x00\x00" + word(540) and text in found[0][2], found


def test_a_small_frame_max_cuts_bodies():
    """frame-max of 1024: every frame that goes out has at most so many octets."""
    broker = new_broker()
    peer = Peer9a5(broker, log_in=False)
    peer.give(peer.header)
    peer.log_in(1024)
    peer.queue()
    peer.publish(b"y" * 900)
    peer.publish(b"z" * 900)
    peer.say(1, 7, 1, peer.ticket, short(""), short("q"), word(0), word(0), bits(0, 1, 0))
    found = peer.heard()
    assert b"".join([payload for kind, _, payload in found if kind == 3]) == b"y" * 900 + b"z" * 900
    assert max([len(payload) for _, _, payload in found]) <= 1024


def test_the_connection_closes_by_handshake():
    peer = Peer9a5()
    assert peer.ask(1, 10, word(200), short("bye"), octet(0), octet(0), channel=0) == b""


def test_a_body_frame_without_octets_is_discarded_wherever_it_comes():
    """ "Multiplexed Channel Content": "it MUST discard them with no side-effects of any kind"."""
    peer = Peer9a5().queue()
    empty = Peer9a5.frame(3, 1, b"")
    child = peer.content(1, 7, b"\x00\x00", b"c")
    peer.publish(b"")
    peer.give(empty)
    peer.publish(b"root", children=[empty + child + empty])
    peer.say(1, 7, 7, peer.ticket, short(""), short("q"), bits(0, 1))
    peer.heard()
    peer.say(1, 7, 7, peer.ticket, short(""), short("q"), bits(0, 1))
    assert [payload for kind, _, payload in peer.heard() if kind == 3] == [b"c", b"root"]


def test_a_key_that_is_no_text_comes_as_it_is():
    """A published version may have any octets in it: such a message must not end the connections that get it."""
    broker = new_broker()
    peer, modern = Peer9a5(broker).queue(), Peer(broker)
    modern.ask("exchange_declare", "exchange_declare_ok", 0, "f", "fanout", False, False, False, False, False, {})
    modern.ask("queue_bind", "queue_bind_ok", 0, "q", "f", "", False, {})
    modern.publish(b"\xff\xfe", b"x", "f")
    peer.say(1, 6, 1, peer.ticket, short(""), short("q"), bits(0))
    assert peer.heard()[1][2] == octet(6) + octet(0) + longlong(1) + b"\x20\x00" + b"\x02\xff\xfe"


def test_headers_of_a_content_within_are_its_own():
    """A header `destination` is not the property; what is no text cannot be one."""
    peer = Peer9a5().queue()
    inner = short("a") + b"I" + long(1)
    pairs = short("destination") + b"F" + long(len(inner)) + inner
    child = b"\x30\x00" + short("menu") + long(len(pairs)) + pairs
    peer.publish(b"x", children=[peer.content(1, 7, child)])
    peer.say(1, 7, 7, peer.ticket, short(""), short("q"), bits(0, 1))
    assert peer.heard()[2][2] == octet(7) + octet(0) + longlong(0) + child


def test_a_tree_of_somebody_else_that_a_weight_cannot_tell_is_no_tree():
    """One made by a publisher of 0-9-1, with 300 contents within one that is within another one."""
    broker = new_broker(
        arena_size=1 << 18, properties_size_max=8192, frame_size_max=8192, receive_buffer_size=16384, send_buffer_size=16384
    )
    peer, modern = Peer9a5(broker).queue(), Peer(broker)
    for weights in ([300] + [0] * 300, [0] * 300):
        tree = b"".join([word(7) + word(each) + long(2) + long(0) + b"\x00\x00" for each in weights])
        modern.give(content(1, "", "q", b"x", {"headers": {"x-content-tree": tree}}, frame_size_max=8192))
        peer.say(1, 6, 1, peer.ticket, short(""), short("q"), bits(0))
        assert [payload for kind, _, payload in peer.heard()[1:]][1:] == [b"x"]


def test_names_of_more_than_255_octets_are_refused():
    """A namespace with its queue, a destination out of a long string: the channel closes with 507."""
    pairs = short("destination") + b"L" + word(300) + b"x" * 300
    for class_id, method_id, fields in (
        (5, 1, short("n" * 200) + short("q" * 200) + short("") + bits(0, 0, 0, 0)),
        (5, 3, short("") + short("q") + short("amq.direct") + long(len(pairs)) + pairs),
    ):
        peer = Peer9a5().queue()
        peer.say(1, class_id, method_id, peer.ticket, fields)
        assert peer.closed(507) == (class_id, method_id)


def test_a_durable_queue_registers_with_no_transient_exchange():
    """ "Durable Wiring", 3: the server closes the channel."""
    peer = Peer9a5()
    peer.ask(4, 1, peer.ticket, short("e"), short("fanout"), bits(0, 0, 0))
    peer.ask(5, 1, peer.ticket, short(""), short("d"), short(""), bits(0, 1, 0, 0))
    assert peer.ask(5, 3, peer.ticket, short(""), short("d"), short("amq.fanout"), long(0)) == b""
    peer.say(1, 5, 3, peer.ticket, short(""), short("d"), short("e"), long(0))
    assert peer.closed(507) == (5, 3)


def test_a_channel_that_was_closed_before_its_content_came_is_closed():
    """The client has sent jms.publish, hears of the close, and sends channel.close-ok in place of the content."""
    peer = Peer9a5().queue()
    peer.say(1, 7, 5, peer.ticket, short("amq.direct"), bits(0))
    session = peer.connection.session
    session.shut_channel(session.channels[1], 507, "too late")
    peer.closed(507)
    peer.say(1, 2, 5)
    peer.open(1)


def test_a_ticket_for_the_same_rights_is_the_same():
    """A client that asks with each channel it opens does not use the tickets up."""
    peer = Peer9a5()
    other = peer.ask(3, 1, short("/data"), bits(0, 0, 0, 0, 1))
    for _ in range(300):
        assert peer.ask(3, 1, short("/data"), bits(0, 1, 1, 1, 1)) == peer.ticket != other


def test_a_queue_of_the_template_priorities_has_ten_levels():
    """ "Message Priorities": "A high priority message is sent ahead of lower priority messages waiting in the same queue"; "A server MUST
    implement at least 2 priority levels ... MAY implement up to 10"."""
    peer = Peer9a5()
    peer.ask(5, 1, peer.ticket, short(""), short("p"), short("priorities"), bits(0, 0, 0, 0))
    pairs = short("destination") + b"S" + short("k")
    peer.ask(5, 3, peer.ticket, short(""), short("p"), short("amq.direct"), long(len(pairs)) + pairs)
    for level in (0, 9, 4, 5, 9):
        peer.publish(b"%d" % level, flags=b"\x24\x00", properties=short("k") + octet(level))
    peer.say(1, 7, 1, peer.ticket, short(""), short("p"), word(0), word(0), bits(0, 1, 0))
    assert [payload for kind, _, payload in peer.heard() if kind == 3] == [b"9", b"9", b"5", b"4", b"0"]


def test_a_path_that_is_none_here_is_402():
    peer = Peer9a5(log_in=False)
    peer.give(peer.header)
    peer.heard()
    peer.ask(1, 2, short("PLAIN"), short("en_US"), channel=0)
    peer.say(0, 1, 4, word(12) + b"\x00guest\x00guest")
    peer.heard_one(1, 5, 0)
    peer.say(0, 1, 6, long(0), word(0), word(0), word(0), bits(1, 0, 0), long(0))
    peer.say(0, 1, 7, short("/nowhere"), short("me"))
    peer.pause()
    assert peer.closed(402, 0) == (1, 7)


def test_a_content_header_is_no_larger_than_frame_max():
    """It cannot be cut: the channel closes, and the message stays for others."""
    broker = new_broker(
        arena_size=1 << 18, properties_size_max=8192, frame_size_max=8192, receive_buffer_size=16384, send_buffer_size=16384
    )
    peer, modern = Peer9a5(broker, log_in=False), Peer(broker)
    peer.give(peer.header)
    peer.log_in(1024)
    peer.queue()
    modern.publish("q", b"x", given={"headers": {"h": "y" * 1100}})
    for class_id, fields in ((6, bits(0)), (7, bits(0, 0))):
        peer.say(1, class_id, 1 if class_id == 6 else 7, peer.ticket, short(""), short("q"), fields)
        peer.closed(507)
        peer.say(1, 2, 5)
        peer.open(1)
    peer.say(1, 7, 1, peer.ticket, short(""), short("q"), word(0), word(0), bits(0, 1, 0))
    found = peer.heard()
    assert found[0][2] == peer.ids(7, 2) + word(1) and found[1][2][:4] == peer.ids(2, 4) and len(found) == 2
    assert broker.queues["q"].message_count() == 1


def test_consumer_tags_of_consumers_that_are_gone_come_again():
    """class jms: a consumer-tag is a short; a connection may make more consumers than that, one behind the other."""
    peer = Peer9a5()
    peer.queue()
    consume = peer.ticket + short("") + short("q") + word(0) + word(0) + bits(0, 1, 0)
    assert peer.ask(7, 1, consume)[:2] == word(1)
    peer.connection.session.tags = 0xFFFE
    assert peer.ask(7, 1, consume)[:2] == word(0xFFFF)
    assert peer.ask(7, 1, consume)[:2] == word(2), "1 has a consumer"
    peer.ask(7, 3, word(1))
    peer.connection.session.tags = 0xFFFF
    assert peer.ask(7, 1, consume)[:2] == word(1)
