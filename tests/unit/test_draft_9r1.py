"""AMQP 0.9r1: golden octets out of the figures of its text, its conformance tests by their names (amq_wlp_*), then client and broker."""

from draft_peer import END, Peer9r1, bits, long, longlong, octet, short, word
from peer import Peer, new_broker

from leveret.core.amqp_0_9.drafts.frames import Frames9r1


def test_the_frame_header_of_the_figure():
    """ "General Frame Format": octet type, octet cycle, short channel, long size, which leaves the end octet out."""
    assert Frames9r1.lead(1, 7, 3) == b"\x01\x00\x00\x07\x00\x00\x00\x03"
    assert Frames9r1.head(b"\x01\x05\x00\x07\x00\x00\x00\x03abc\xce", 0, 12) == (1, 7, 8, 3)
    assert Frames9r1.head(b"\x01\x00\x00\x07\x00\x00\x00", 0, 7) is None
    assert Frames9r1.heartbeat == b"\x08\x00\x00\x00\x00\x00\x00\x00" + END


def test_the_method_header_of_the_figure():
    """ "Method Frames": short class-id, short method-id."""
    assert Frames9r1.method(5, 3) == b"\x00\x05\x00\x03"
    assert Frames9r1.code(b"\x00\x05\x00\x03", 0) == 0x050003


def test_amq_wlp_header_01():
    """A server MUST accept the AMQP protocol as defined by class 1, instance 1: AMQP 1 1 9 1, and Connection.Start."""
    peer = Peer9r1(log_in=False)
    peer.give(b"AMQP\x01\x01\x09\x01")
    assert peer.heard_one(1, 1, 0)[:2] == b"\x09\x01"


def test_amq_wlp_header_02():
    """A server MAY accept non-AMQP protocols: this one serves other versions of AMQP on the same listener, and no HTTP."""
    peer = Peer9r1(log_in=False)
    peer.give(b"GET / HTTP/1.1\r\n\r\n")
    assert peer.inbox == Peer9r1.header and peer.connection.closed
    for header, begin in ((b"AMQP\x00\x00\x09\x01", b"\x01\x00\x00"), (b"AMQP\x00\x01\x00\x00", b"AMQP\x03")):
        peer = Peer9r1(log_in=False)
        peer.give(header)
        peer.take()
        assert peer.inbox[: len(begin)] in (begin, header[: len(begin)])


def test_amq_wlp_header_03():
    """Another header is answered with a valid one, and the socket closes: the examples of the text."""
    for header in (b"AMQP\x02\x00\x01\x01", b"HTTP / "):
        peer = Peer9r1(log_in=False)
        peer.give(header)
        peer.take()
        assert peer.inbox == b"AMQP\x01\x01\x09\x01" and peer.connection.closed, "when all of it is sent"


def test_amq_wlp_header_04():
    """A client MAY reconnect with a lower version by what it is answered."""
    broker = new_broker()
    peer = Peer9r1(broker, log_in=False)
    peer.give(b"AMQP\x01\x01\x0a\x00")
    peer.take()
    again = Peer9r1(broker, log_in=False)
    again.give(peer.inbox)
    again.heard_one(1, 1, 0)


def ends_without_a_word(octets):
    """What is logged of octets that end a connection, which sends nothing more, not even the delivery that waits for its peer to read."""
    peer, told = Peer9r1().queue(), []
    peer.broker.inform = lambda text, is_fault=False: told.append(text)
    peer.ask(6, 1, peer.ticket, short("q"), bits(0, 0))
    other = Peer9r1(peer.broker)
    other.publish(b"waits")
    connection = peer.connection
    assert len(connection.pending()) and not peer.inbox
    view = connection.writable()
    view[: len(octets)] = octets
    connection.received(len(octets))
    assert connection.closed and len(connection.pending()) == 0
    return told


def test_amq_wlp_frame_01():
    """A frame of an unknown type: the connection closes, and nothing more is sent."""
    for kind in (0, 9, 255):
        ends_without_a_word(Peer9r1.frame(kind, 0, b""))


def test_amq_wlp_frame_02():
    """A wrong frame-end: the same, and it is logged."""
    peer = Peer9r1(log_in=False)
    publish = peer.frame(1, 1, peer.ids(7, 5) + word(1) + short("") + short("q") + bits(0, 0))
    for octets in (
        b"\x01\x00\x00\x01\x00\x00\x00\x04\x00\x0a\x00\x01\xcd",
        b"\x08\x00\x00\x00\x00\x00\x00\x00\x00",
        publish + peer.content(1, 7, b"\x00\x00", b"ab")[:-1] + b"\xcd",
    ):
        told = ends_without_a_word(octets)
        assert [text for text in told if "frame that does not end with 0xCE" in text], told


def agreed(frame_max, broker=None):
    """A peer that has agreed upon frames of so many octets."""
    peer = Peer9r1(broker, log_in=False)
    peer.give(peer.header)
    peer.log_in(frame_max)
    return peer


def test_amq_wlp_frame_03():
    """An oversized frame: connection exception 501; what was agreed upon counts, both ways."""
    for kind in (1, 2, 3):
        for size in (1 << 30, 4097):
            peer = agreed(4096)
            peer.give(bytes((kind, 0)) + word(1) + long(size))
            peer.closed(501, 0)
    broker = new_broker(
        arena_size=1 << 17, content_size_max=1 << 14, frame_size_max=8192, receive_buffer_size=16384, send_buffer_size=16384
    )
    wide, peer = Peer9r1(broker).queue(), agreed(4096, broker)
    wide.publish(b"x" * 8000)
    peer.say(1, 6, 8, peer.ticket, short("q"))
    bodies = [payload for kind, _, payload in peer.heard() if kind == 3]
    assert b"".join(bodies) == b"x" * 8000 and max([len(each) for each in bodies]) <= 4096


def test_amq_wlp_table_01():
    """An invalid field name: 503."""
    for name in ("1a", "", "a-b", "x" * 129):
        peer = Peer9r1()
        pairs = short(name) + b"I" + long(1)
        peer.say(1, 12, 5, long(len(pairs)) + pairs, octet(1), octet(1))
        assert peer.closed(503, 0) == (12, 5)
        peer = Peer9r1().queue()
        peer.publish(b"", properties=b"\x20\x00" + long(len(pairs)) + pairs)
        peer.closed(503, 0)


def test_amq_wlp_content_01():
    """An incomplete content: 501."""
    for begin in (b"", b"\x00\x07\x00\x00" + longlong(5) + b"\x00\x00"):
        peer = Peer9r1().queue()
        peer.say(1, 7, 5, peer.ticket, short(""), short("q"), bits(0, 0))
        if begin:
            peer.give(Peer9r1.frame(2, 1, begin))
        peer.say(1, 10, 1)
        peer.closed(501, 0)


def test_amq_wlp_content_02():
    """A content header whose class is not the method's: 501."""
    for class_id in (6, 8, 60):
        peer = Peer9r1().queue()
        peer.say(1, 7, 5, peer.ticket, short(""), short("q"), bits(0, 0))
        peer.give(peer.content(1, class_id, b"\x00\x00", b"x"))
        peer.closed(501, 0)


def test_amq_wlp_content_03():
    """A content frame on channel 0: 504."""
    for kind in (2, 3):
        peer = Peer9r1()
        peer.give(Peer9r1.frame(kind, 0, b"\x00\x07\x00\x00" + longlong(0) + b"\x00\x00"))
        peer.closed(504, 0)


def three_levels(peer):
    """A content with two within it, of which the second has one."""
    leaf = peer.content(1, 7, b"\x00\x80" + short("ab")[:0] + short("leaf"), b"LL")
    return peer.content(1, 7, b"\x80\x00" + short("a/b"), b"one"), peer.content(1, 7, b"\x00\x00", b"two", [leaf])


def test_amq_wlp_content_04():
    """Structured contents are supported: kept whole through store and forward, and as a header for receivers of other versions. Those of
    class file are not: 540."""
    peer = Peer9r1().queue()
    peer.publish(b"root", children=three_levels(peer))
    peer.say(1, 7, 8, peer.ticket, short("q"), bits(0))
    found = peer.heard()
    assert [(kind, payload) for kind, _, payload in found[1:]] == [
        (2, word(7) + word(2) + longlong(4) + b"\x00\x00"),
        (2, word(7) + word(0) + longlong(3) + b"\x80\x00" + short("a/b")),
        (3, b"one"),
        (2, word(7) + word(1) + longlong(3) + b"\x00\x00"),
        (2, word(7) + word(0) + longlong(2) + b"\x00\x80" + short("leaf")),
        (3, b"LL"),
        (3, b"two"),
        (3, b"root"),
    ]
    peer.say(1, 7, 12, longlong(1), bits(1))
    modern = Peer(peer.broker)
    _, _, given, body = modern.consume("q", no_ack=True)[0]
    assert body == b"root" and b"LL" in given["headers"]["x-content-tree"]
    peer = Peer9r1()
    peer.ask(8, 5, short("id"), longlong(3))
    peer.say(1, 8, 7)
    peer.give(peer.content(1, 8, b"\x00\x00", size=3, weight=1))
    peer.closed(540, 0)


def test_amq_wlp_content_05():
    """A weight that the frames behind it do not fit: 501."""
    for frames in (
        lambda peer: peer.content(1, 7, b"\x00\x00", b"x", weight=1),
        lambda peer: peer.content(1, 7, b"\x00\x00", b"x", weight=1) + peer.content(1, 7, b"\x00\x00"),
        lambda peer: peer.content(1, 7, b"\x00\x00", b"", [peer.content(1, 7, b"\x00\x00", b"abc", size=4)] * 2),
        lambda peer: peer.content(1, 7, b"\x00\x00", b"", [peer.content(1, 7, b"\x00\x00", b"abcd", size=3)]),
        lambda peer: peer.content(1, 7, b"\x00\x00", b"", [peer.content(1, 6, b"\x00\x00", b"a")]),
        lambda peer: peer.content(1, 7, b"\x00\x00", b"x") + peer.content(1, 7, b"\x00\x00", b"x"),
    ):
        peer = Peer9r1().queue()
        peer.say(1, 7, 5, peer.ticket, short(""), short("q"), bits(0, 0))
        peer.give(frames(peer))
        peer.closed(501, 0)


def test_a_tree_is_bounded():
    """In depth, in breadth and in octets: resource-error, and 311 for octets."""
    for children, code in (
        (lambda peer, deep: [peer.content(1, 7, b"\x00\x00")] * 65, 506),
        (lambda peer, deep: [deep], 506),
        (lambda peer, deep: [peer.content(1, 7, b"\x00\x00", size=1 << 20)], 311),
    ):
        peer = Peer9r1().queue()
        deep = b""
        for _ in range(9):
            deep = peer.content(1, 7, b"\x00\x00", b"", [deep] if deep else [])
        peer.publish(b"", children=children(peer, deep))
        peer.closed(code, 0)


def test_amq_wlp_trace_01():
    """A trace frame that is not on channel 0: 501."""
    peer = Peer9r1()
    peer.give(Peer9r1.frame(7, 1, b"x"))
    peer.closed(501, 0)


def test_amq_wlp_trace_02():
    """A recipient without a trace handler MUST discard it."""
    peer = Peer9r1()
    peer.give(Peer9r1.frame(7, 0, b"whatever"))
    peer.queue()


def test_amq_wlp_heartbeat_01():
    """A heartbeat that is not on channel 0: 501; with a payload, too."""
    for octets in (Peer9r1.frame(8, 1, b""), Peer9r1.frame(8, 0, b"x")):
        peer = Peer9r1()
        peer.give(octets)
        peer.closed(501, 0)


def test_amq_wlp_heartbeat_02():
    """A heartbeat is discarded without an error, with any cycle."""
    peer = Peer9r1()
    peer.give(Peer9r1.frame(8, 0, b"", 3))
    peer.queue()


def test_a_message_of_class_basic_goes_through():
    """basic.publish, basic.consume without acknowledgements, basic.deliver; basic.get."""
    peer = Peer9r1().queue()
    assert peer.ask(6, 1, peer.ticket, short("q"), bits(0, 0)) == word(1)
    peer.publish(b"hello", class_id=6, properties=b"\x98\x00" + short("a/b") + short("id") + short("reply"))
    method = word(6) + word(7) + word(1) + short("amq.direct") + short("k")
    head = word(6) + word(0) + longlong(5) + b"\x98\x00" + short("a/b") + short("id") + short("reply")
    assert peer.heard() == [(1, 1, method), (2, 1, head), (3, 1, b"hello")]
    assert peer.ask(6, 3, word(1)) == b""
    peer.publish(b"", class_id=6)
    peer.say(1, 6, 8, peer.ticket, short("q"))
    assert peer.heard() == [
        (1, 1, word(6) + word(9) + short("amq.direct") + short("k") + long(0)),
        (2, 1, word(6) + word(0) + longlong(0) + b"\x00\x00"),
    ]
    peer.say(1, 6, 8, peer.ticket, short("q"))
    assert peer.heard_one(6, 10) == b""


def test_a_message_of_class_jms_goes_through():
    """jms.consume with acknowledgements, jms.deliver, jms.ack, jms.reject."""
    peer = Peer9r1().queue()
    peer.publish(b"x", properties=b"\x10\x00" + octet(2))
    peer.say(1, 7, 1, peer.ticket, short("q"), long(0), word(0), bits(0, 0, 0))
    found = peer.heard()
    assert found[0] == (1, 1, word(7) + word(2) + word(1))
    head = word(7) + word(0) + longlong(1) + b"\x10\x00" + octet(2)
    assert found[1:] == [
        (1, 1, word(7) + word(7) + word(1) + longlong(1) + bits(0) + short("amq.direct") + short("k")),
        (2, 1, head),
        (3, 1, b"x"),
    ]
    peer.say(1, 7, 12, longlong(1), bits(1))
    assert peer.heard()[0][2] == word(7) + word(7) + word(1) + longlong(2) + bits(1) + short("amq.direct") + short("k")
    peer.say(1, 7, 11, longlong(2), bits(0))
    assert peer.broker.queues["q"].message_count() == 0 and peer.heard() == []


def test_what_has_no_queue_bounces():
    """basic.bounce and jms.bounce (310) to a mandatory publish."""
    for class_id in (6, 7):
        peer = Peer9r1()
        peer.publish(b"back", key="nowhere", class_id=class_id, mandatory=1)
        found = peer.heard()
        assert found[0][2][:6] == word(class_id) + word(6) + word(310) and found[0][2].endswith(short("amq.direct") + short("nowhere"))
        assert found[2] == (3, 1, b"back")


def test_a_bounce_goes_before_the_answer_to_a_later_method():
    """Also where both come in one read; a bounce of a channel that closes meanwhile is dropped."""
    peer = Peer9r1().queue()
    publish = Peer9r1.frame(1, 1, peer.ids(7, 5) + peer.ticket + short("amq.direct") + short("nowhere") + bits(1, 0))
    publish += peer.content(1, 7, b"\x00\x00", b"back")
    peer.give(publish + publish + Peer9r1.frame(1, 1, peer.ids(5, 5) + peer.ticket + short("q")))
    found = [payload[:4] for kind, _, payload in peer.heard() if kind == 1]
    assert found == [peer.ids(7, 6), peer.ids(7, 6), peer.ids(5, 6)]
    peer.give(publish + Peer9r1.frame(1, 1, peer.ids(2, 4) + word(200) + short("") + word(0) + word(0)))
    assert peer.heard()[-1][2] == peer.ids(2, 5) and peer.connection.session.returns == []


def test_transactions():
    peer = Peer9r1().queue()
    peer.ask(10, 1)
    peer.publish(b"1")
    peer.ask(10, 5)
    peer.publish(b"2")
    assert peer.broker.queues["q"].message_count() == 0
    peer.ask(10, 3)
    assert peer.broker.queues["q"].message_count() == 1
    assert peer.ask(5, 5, peer.ticket, short("q")) == long(1)
    assert peer.ask(5, 7, peer.ticket, short("q"), bits(0, 0)) == long(0)


def test_exchanges_tickets_and_flow():
    peer = Peer9r1()
    assert peer.ask(4, 1, peer.ticket, short("e"), short("topic"), bits(0, 0, 0, 0)) == b""
    peer.queue(exchange="e", key="a.*")
    peer.say(1, 2, 3, bits(0))
    peer.ask(6, 1, peer.ticket, short("q"), bits(0, 0))
    peer.publish(b"x", key="a.b", exchange="e")
    assert peer.heard() == []
    peer.say(1, 2, 3, bits(1))
    assert len(peer.heard()) == 3
    assert peer.ask(4, 3, peer.ticket, short("e"), bits(0)) == b""
    peer.say(1, 4, 3, word(77), short("e"), bits(0))
    assert peer.closed(403) == (4, 3)


def test_errors_close_the_channel_or_the_connection_with_the_codes_of_the_draft():
    for class_id, method_id, fields, code, channel in (
        (5, 1, word(1) + short("none") + bits(1, 0, 0, 0), 404, 1),
        (7, 11, longlong(9) + bits(0), 507, 1),
        (11, 1, b"", 540, 0),
        (7, 7, b"", 503, 0),
        (99, 1, b"", 503, 0),
        (5, 5, word(1), 502, 0),
    ):
        peer = Peer9r1()
        peer.say(1, class_id, method_id, fields)
        found = peer.closed(code, channel)
        assert found == (class_id, method_id) or code in (502, 503)


def test_a_body_in_parts_and_large():
    """A body split into frames is kept as one and goes out in frames of the receiver's size."""
    broker = new_broker(arena_size=1 << 20, content_size_max=1 << 17)
    peer = Peer9r1(broker).queue()
    body = bytes(range(250)) * 200
    peer.say(1, 7, 5, peer.ticket, short("amq.direct"), short("k"), bits(0, 0))
    peer.give(peer.content(1, 7, b"\x00\x00", b"", size=len(body)))
    for at in range(0, len(body), 3000):
        peer.give(Peer9r1.frame(3, 1, body[at : at + 3000]) + Peer9r1.frame(8, 0, b""))
    peer.say(1, 7, 8, peer.ticket, short("q"), bits(1))
    found = peer.heard()
    assert b"".join([payload for kind, _, payload in found if kind == 3]) == body


def test_methods_in_the_states_of_a_connection_and_of_a_channel():
    """Nothing before the log-in but its methods; a method on a channel that is not open is 504; what comes behind a close is discarded."""
    peer = Peer9r1(log_in=False)
    peer.give(peer.header)
    peer.heard_one(1, 1, 0)
    peer.say(1, 5, 5, word(1), short("q"))
    peer.pause()
    assert peer.connection.ending or peer.connection.closed or peer.connection.session.closing
    peer = Peer9r1()
    peer.say(9, 5, 5, word(1), short("q"))
    peer.closed(504, 0)
    peer.say(0, 1, 10)
    peer = Peer9r1()
    peer.say(1, 5, 5, word(9), short("q"))
    peer.closed(403)
    peer.say(1, 5, 5, word(9), short("q"))
    assert peer.heard() == []
    assert peer.ask(1, 9, word(200), short(""), word(0), word(0), channel=0) == b""


def test_what_the_server_says_of_itself_comes_between_whole_frames():
    """A peer that does not read: a heartbeat, or connection.close, never comes within a frame of a content that is half written."""
    for ending in (False, True):
        broker = new_broker(
            arena_size=1 << 18, properties_size_max=8192, frame_size_max=8192, receive_buffer_size=16384, send_buffer_size=16384
        )
        peer, other = Peer9r1(broker).queue(), Peer9r1(broker)
        pairs = short("h") + b"S" + long(4950) + b"y" * 4950
        for _ in range(6):
            other.publish(b"z" * 100, properties=b"\x20\x00" + long(len(pairs)) + pairs)
        session, octets = (
            peer.connection.session,
            peer.frame(1, 1, peer.ids(7, 1) + peer.ticket + short("q") + long(0) + word(0) + bits(0, 1)),
        )
        session.heartbeat_ms = 2000
        view = peer.connection.writable()
        view[: len(octets)] = octets
        peer.connection.received(len(octets))
        broker.run()
        assert session.outgoing.active() and peer.connection.pending()
        broker.now += 1100
        if ending:
            session.fail("internal-error", "for the test")
        else:
            session.tick()
        found = peer.heard()
        wanted = peer.ids(1, 9) if ending else b""
        assert [each for each in found if each[:2] == ((1, 0) if ending else (8, 0)) and each[2][:4] == wanted]
        assert len([each for each in found if each[0] == 3]) == (3 if ending else 6)


def test_an_error_of_the_negotiation_is_answered_after_a_pause_and_counts():
    """ "Denial of Service Attacks": "to pause that connection ... and then to close the network connection. This includes syntax errors";
    "flag or block clients provoking multiple failures"."""
    broker = new_broker(login_failure_max=3)
    no_end = Peer9r1.frame(1, 0, word(1) + word(2))[:-1] + b"\x00"
    answers = ((Peer9r1.frame(1, 0, word(1) + word(2)), 502), (Peer9r1.frame(1, 0, word(1) + word(77)), 503), (no_end, None))
    for octets, code in answers:
        peer = Peer9r1(broker, log_in=False)
        peer.connection.address = "10.0.0.1"
        peer.give(peer.header)
        peer.heard_one(1, 1, 0)
        assert not broker.failures.refuses(peer.connection.address)
        peer.give(octets)
        assert len(peer.connection.writable()) == 0, "nothing more is read"
        peer.pause()
        if code:
            peer.closed(code, 0)
        else:
            assert peer.connection.ending or peer.connection.session.closing or peer.connection.closed
    assert broker.failures.refuses("10.0.0.1")


def test_a_queue_that_goes_ends_its_consumers_without_a_word():
    """The draft has no method for it, whatever its client says that it understands."""
    peer = Peer9r1(log_in=False)
    peer.give(peer.header)
    peer.heard_one(1, 1, 0)
    inner = short("consumer_cancel_notify") + b"I" + long(1)
    pairs = short("capabilities") + b"F" + long(len(inner)) + inner
    peer.say(0, 1, 2, long(len(pairs)) + pairs, short("PLAIN"), long(12) + b"\x00guest\x00guest", short("en_US"))
    peer.heard_one(1, 5, 0)
    peer.say(0, 1, 6, word(0), long(0), word(0))
    peer.ask(1, 7, short("/"), short("context"), channel=0)
    peer.open(1)
    peer.queue()
    peer.ask(7, 1, peer.ticket, short("q"), long(0), word(0), bits(0, 0, 0))
    other = Peer9r1(peer.broker)
    assert other.ask(5, 7, other.ticket, short("q"), bits(0, 0)) == long(0)
    assert peer.heard() == [] and not peer.connection.session.closing


def test_a_tree_ends_with_its_channel():
    """What comes on a channel that was opened again is no part of the tree that was coming on the one before it."""
    peer = Peer9r1().queue()
    peer.say(1, 7, 5, peer.ticket, short("amq.direct"), short("k"), bits(0, 0))
    peer.give(peer.content(1, 7, b"\x00\x00", weight=1))
    session = peer.connection.session
    session.shut_channel(session.channels[1], 507, "too late")
    peer.closed(507)
    peer.say(1, 2, 5)
    peer.open(1)
    peer.publish(b"new")
    peer.say(1, 7, 8, peer.ticket, short("q"), bits(1))
    assert [payload for _, _, payload in peer.heard()[1:]] == [word(7) + word(0) + longlong(3) + b"\x00\x00", b"new"]


def test_class_test():
    """The table of the draft: add 1, min 2, max 3; not 0-8's operations."""
    peer = Peer9r1()
    for operation, number, text in ((1, 10, b"abcde"), (2, 1, b"ab"), (3, 4, b"cde")):
        assert peer.ask(12, 1, octet(1), word(2), long(3), longlong(4), octet(operation)) == longlong(number)
        assert peer.ask(12, 3, short("ab"), long(3) + b"cde", octet(operation)) == long(len(text)) + text
    peer = Peer9r1(new_broker(receive_buffer_size=8192, send_buffer_size=2048))
    peer.say(1, 12, 3, short("ab"), long(1999) + b"c" * 1999, octet(1))
    peer.closed(311)


def test_a_delivery_that_is_not_settled_in_time_closes_its_channel_with_a_code_of_the_draft():
    """507, as precondition-failed is everywhere: 406 is no reply code of theirs."""
    peer = Peer9r1(new_broker(consumer_timeout_ms=1000)).queue()
    peer.publish(b"x")
    peer.say(1, 7, 8, peer.ticket, short("q"), bits(0))
    peer.heard()
    for _ in range(4):
        peer.broker.now += 500
        peer.connection.tick(peer.broker.now)
    peer.closed(507)


def test_a_method_frame_without_a_whole_head_is_no_method():
    """501 to 504 end the connection: 502 is a syntax error."""
    for size in range(4):
        peer = Peer9r1()
        peer.give(Peer9r1.frame(1, 1, bytes(size)))
        peer.closed(502, 0)


def test_a_frame_that_is_no_body_is_no_larger_than_the_receive_buffer():
    """Bodies come in pieces; what has to be whole has to have room."""
    size = 1 << 16
    for kind, is_body in ((1, False), (2, False), (3, True)):
        peer = Peer9r1(new_broker(frame_size_max=1 << 17, receive_buffer_size=8192, arena_size=1 << 20, content_size_max=1 << 17)).queue()
        if is_body:
            peer.say(1, 7, 5, peer.ticket, short("amq.direct"), short("k"), bits(0, 0))
            peer.give(peer.content(1, 7, b"\x00\x00", b"", size=size))
        peer.give(Peer9r1.frame(kind, 1, bytes(size)))
        if is_body:
            assert peer.broker.queues["q"].message_count() == 1
        else:
            peer.closed(506, 0)


def test_one_content_with_others_within_it_comes_at_a_time():
    peer = Peer9r1().queue()
    peer.open(2)
    for channel in (1, 2):
        peer.say(channel, 7, 5, peer.ticket, short(""), short("q"), bits(0, 0))
        peer.give(peer.content(channel, 7, b"\x00\x00", b"", weight=1))
    peer.closed(506, 0)


def test_streams_are_not_read_by_a_draft():
    peer = Peer9r1()
    Peer(peer.broker).declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.say(1, 7, 1, peer.ticket, short("s"), long(0), word(0), bits(0, 0))
    peer.closed(540, 0)


def test_deliveries_wait_for_room_in_the_send_buffer_and_come_in_order():
    """A peer that reads late: every body comes once, whole, behind the method of its delivery."""
    broker = new_broker(arena_size=1 << 18, message_count_max=400, entry_count_max=400)
    peer = Peer9r1(broker).queue()
    for number in range(120):
        peer.publish(b"%03d" % number + bytes(number * 7 % 200))
    peer.say(1, 7, 1, peer.ticket, short("q"), long(0), word(0), bits(0, 1))
    found = [payload for kind, _, payload in peer.heard() if kind == 3]
    assert [int(each[:3]) for each in found] == list(range(120)) and [len(each) for each in found] == [3 + n * 7 % 200 for n in range(120)]


def test_what_is_asked_for_one_by_one_waits_for_room():
    """jms.get, many at once by a peer that reads none of the answers meanwhile: each has its answer, in order."""
    broker = new_broker(arena_size=1 << 18, message_count_max=400, entry_count_max=400)
    peer = Peer9r1(broker).queue()
    for number in range(60):
        peer.publish(b"%03d" % number + bytes(300))
    octets = b"".join([peer.frame(1, 1, peer.ids(7, 8) + peer.ticket + short("q") + bits(1)) for _ in range(61)])
    at = 0
    connection = peer.connection
    while at < len(octets) and len(connection.writable()):
        size = min(len(connection.writable()), len(octets) - at)
        connection.writable()[:size] = octets[at : at + size]
        connection.received(size)
        at += size
        broker.run()
    assert 0 < broker.queues["q"].message_count() < 60, "the buffer is full"
    while at < len(octets) or len(connection.pending()):
        peer.take()
        if at < len(octets):
            at += peer.give(octets[at:])
    found = peer.heard()
    assert [int(payload[:3]) for kind, _, payload in found if kind == 3] == list(range(60))
    assert found[-1] == (1, 1, peer.ids(7, 10)), "and the last one, that there is none"
