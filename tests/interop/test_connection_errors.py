"""What a peer does wrong with frames, and the connection exception each must get (AMQP 0-9-1 sections 4.2.3, 4.2.6, 4.2.7, 4.7, 4.10).

Every row was first sent to RabbitMQ 3.10.8. Where a row names another answer for RabbitMQ, Leveret rightly differs and the row says why.
"""

import struct

import pytest
from amqp_wire import BODY, HEADER, HEARTBEAT, METHOD, PROTOCOL_HEADER, Closed, frame, header, longstr, method, publish

PUBLISH = method(1, "basic.publish", exchange="amq.direct")
FRAME, SYNTAX, COMMAND, CHANNEL, UNEXPECTED, NOT_ALLOWED, NOT_IMPLEMENTED = 501, 502, 503, 504, 505, 530, 540
ENDS = "the stream just ends"
SWALLOWED = "no answer at all"


def ids(class_id, method_id, arguments=b"", channel=1):
    return frame(METHOD, channel, struct.pack(">HH", class_id, method_id) + arguments)


def declare_with(table):
    """queue.declare with these octets as its arguments."""
    return method(1, "queue.declare", queue="t", arguments=table)


# (what, octets, codes allowed, RabbitMQ's answer where it is another)
CASES = [
    ("a method on a channel that is not open", method(2, "basic.qos"), (CHANNEL,), None),
    ("channel.close of a channel that is not open", method(2, "channel.close", reply_code=200), (CHANNEL,), None),
    ("channel.open twice", method(1, "channel.open"), (CHANNEL,), None),
    ("a body frame on a channel that is not open", frame(BODY, 2, b"abc"), (CHANNEL, UNEXPECTED), None),
    ("a header frame on a channel that is not open", header(2, 5), (CHANNEL, UNEXPECTED), None),
    ("a body frame without a publish", frame(BODY, 1, b"abc"), (UNEXPECTED,), None),
    ("a header frame without a publish", header(1, 5), (UNEXPECTED,), None),
    ("a method where a header is due", PUBLISH + method(1, "basic.qos"), (UNEXPECTED,), None),
    ("a body where a header is due", PUBLISH + frame(BODY, 1, b"abc"), (UNEXPECTED,), None),
    ("a method where a body is due", PUBLISH + header(1, 5) + method(1, "basic.qos"), (UNEXPECTED,), None),
    ("a second header", PUBLISH + header(1, 5) + header(1, 5), (UNEXPECTED,), None),
    ("a method in the middle of a body", PUBLISH + header(1, 5) + frame(BODY, 1, b"ab") + method(1, "basic.qos"), (UNEXPECTED,), None),
    ("a header of another class", PUBLISH + header(1, 5, class_id=50), (FRAME, UNEXPECTED), None),
    # 4.2.6.1: "The weight field is unused and must be zero."
    ("a header with weight", PUBLISH + header(1, 5, weight=3), (FRAME, SYNTAX, UNEXPECTED), None),
    # RabbitMQ keeps the surplus octets in the message; 2.3.5.2 has the header say the size: what follows it is a wrong frame.
    ("a body longer than announced", PUBLISH + header(1, 5) + frame(BODY, 1, b"abcdefg"), (FRAME, UNEXPECTED), SWALLOWED),
    # RabbitMQ's decoder crashes on ids it does not know and drops the stream; 0-9-1 has 540 and 503 for it.
    ("an unknown class", ids(77, 10), (COMMAND, NOT_IMPLEMENTED), ENDS),
    ("an unknown class on channel 0", ids(77, 10, channel=0), (COMMAND, NOT_IMPLEMENTED), ENDS),
    ("an unknown method", ids(60, 222), (COMMAND, NOT_IMPLEMENTED), ENDS),
    ("an unknown method of connection", ids(10, 222, channel=0), (COMMAND, NOT_IMPLEMENTED), ENDS),
    ("a wrong frame end", frame(METHOD, 1, struct.pack(">HH", 60, 10) + b"\0" * 7, end=0), (FRAME,), None),
    ("a wrong frame end after a body", PUBLISH + header(1, 3) + frame(BODY, 1, b"abc", end=0xCF), (FRAME,), None),
    ("frame type 0", frame(0, 0, b""), (FRAME,), None),
    ("frame type 4", frame(4, 1, b"abc"), (FRAME,), None),
    ("frame type 255", frame(255, 1, b"abc"), (FRAME,), None),
    ("a frame of 4 GiB", struct.pack(">BHI", METHOD, 1, 0xFFFFFFFF), (FRAME,), None),
    ("a body frame of 4 GiB", PUBLISH + header(1, 5) + struct.pack(">BHI", BODY, 1, 0xFFFFFFFF), (FRAME,), None),
    ("the protocol header again", PROTOCOL_HEADER, (FRAME,), None),
    # 4.2.7: an invalid heartbeat frame is 501; RabbitMQ says 505 for the channel.
    ("a heartbeat on channel 1", frame(HEARTBEAT, 1, b""), (FRAME, UNEXPECTED), None),
    ("a heartbeat with a payload", frame(HEARTBEAT, 0, b"xx"), (FRAME,), None),
    ("an empty method frame", frame(METHOD, 1, b""), (FRAME, SYNTAX), None),
    ("a method frame of 2 octets", frame(METHOD, 1, b"\0\x3c"), (FRAME, SYNTAX), None),
    ("arguments cut short", ids(60, 10, b"\0\0\0"), (FRAME, SYNTAX), None),
    ("a declare without its table", frame(METHOD, 1, method(1, "queue.declare", queue="abc")[7:-5]), (FRAME, SYNTAX), None),
    ("arguments with octets left over", ids(60, 10, b"\0" * 12), (FRAME, SYNTAX), None),
    ("a short string longer than its frame", ids(50, 10, b"\0\0\xffabc"), (FRAME, SYNTAX), None),
    ("a table longer than its frame", declare_with(struct.pack(">I", 99) + b"abc"), (FRAME, SYNTAX), None),
    # RabbitMQ's table parser crashes on these and drops the stream.
    ("an unknown field type", declare_with(longstr(b"\x01aZ1234")), (FRAME, SYNTAX), ENDS),
    ("a table cut inside a name", declare_with(longstr(b"\x05ab")), (FRAME, SYNTAX), ENDS),
    ("a table cut inside a value", declare_with(longstr(b"\x01aI\0")), (FRAME, SYNTAX), ENDS),
    ("a long string longer than its table", declare_with(longstr(b"\x01aS\0\0\0\x09x")), (FRAME, SYNTAX), ENDS),
    ("a content header cut short", PUBLISH + frame(HEADER, 1, b"\0\x3c\0\0"), (FRAME, SYNTAX), None),
    # RabbitMQ reads properties in the channel process: 541 INTERNAL_ERROR. The peer's fault deserves the peer's code.
    ("properties cut short", PUBLISH + header(1, 2, b"\xff\xfe\x05ab") + frame(BODY, 1, b"hi"), (FRAME, SYNTAX), (541,)),
    ("properties with octets left over", PUBLISH + header(1, 2, b"\0\0junk") + frame(BODY, 1, b"hi"), (FRAME, SYNTAX), (541,)),
    ("property flags of no property", PUBLISH + header(1, 2, b"\0\x02") + frame(BODY, 1, b"hi"), (FRAME, SYNTAX), SWALLOWED),
    ("property flags that go on", PUBLISH + header(1, 2, b"\0\x01\0\0") + frame(BODY, 1, b"hi"), (FRAME, SYNTAX), (541,)),
    ("headers that are no table", PUBLISH + header(1, 2, b"\x20\0\0\0\0\x09\x05ab") + frame(BODY, 1, b"hi"), (FRAME, SYNTAX), (541,)),
    ("connection.start from a client", method(0, "connection.start"), (COMMAND, CHANNEL, NOT_ALLOWED, NOT_IMPLEMENTED), None),
    ("channel.open-ok from a client", method(1, "channel.open-ok"), (COMMAND, CHANNEL, NOT_ALLOWED, NOT_IMPLEMENTED), None),
    ("basic.get-empty from a client", method(1, "basic.get-empty"), (COMMAND, CHANNEL, NOT_ALLOWED, NOT_IMPLEMENTED), None),
    ("basic.deliver from a client", method(1, "basic.deliver"), (COMMAND, CHANNEL, UNEXPECTED, NOT_ALLOWED, NOT_IMPLEMENTED), SWALLOWED),
    ("connection.open twice", method(0, "connection.open", virtual_host="/"), (COMMAND, CHANNEL, NOT_ALLOWED), None),
    ("connection.tune-ok twice", method(0, "connection.tune-ok"), (COMMAND, CHANNEL, NOT_ALLOWED), None),
    ("connection.start-ok twice", method(0, "connection.start-ok"), (COMMAND, CHANNEL, NOT_ALLOWED), None),
    ("connection.open on channel 1", method(1, "connection.open", virtual_host="/"), (COMMAND, CHANNEL), None),
    ("connection.close on channel 1", method(1, "connection.close"), (COMMAND, CHANNEL), None),
    ("channel.open on channel 0", method(0, "channel.open"), (COMMAND, CHANNEL), None),
    ("queue.declare on channel 0", method(0, "queue.declare", queue="x"), (COMMAND, CHANNEL), None),
    ("a body frame on channel 0", frame(BODY, 0, b"abc"), (COMMAND, CHANNEL, UNEXPECTED), None),
    ("a name that is not UTF-8", method(1, "queue.declare", queue=b"\xff\xfe"), (FRAME, SYNTAX), None),
    ("immediate", publish(1, "amq.direct", "x", b"abc", immediate=True), (NOT_IMPLEMENTED,), None),
    ("a prefetch size", method(1, "basic.qos", prefetch_size=100), (NOT_IMPLEMENTED,), None),
    ("an unknown exchange type", method(1, "exchange.declare", exchange="t.bogus", type="bogus"), (COMMAND,), None),
]


@pytest.mark.parametrize("octets, codes, rabbitmq", [case[1:] for case in CASES], ids=[case[0].replace(" ", "-") for case in CASES])
def test_the_answer_has_the_code_and_says_what_was_wrong(connect, broker, octets, codes, rabbitmq):
    peer = connect(timeout_s=20)
    peer.send(octets)
    expected = rabbitmq if broker.kind == "rabbitmq" and rabbitmq is not None else codes
    if expected is ENDS:
        with pytest.raises(Closed):
            peer.read_frame()
    elif expected is SWALLOWED:
        assert peer.silent()
    else:
        peer.expect_connection_close(expected)
    connect().close()


@pytest.mark.parametrize("octets", [case[1] for case in CASES[:14]], ids=[case[0].replace(" ", "-") for case in CASES[:14]])
def test_the_answer_is_the_same_octet_by_octet(connect, octets):
    """However the octets arrive, the same exception comes."""
    answers = []
    for step in (len(octets), 1):
        peer = connect(timeout_s=20)
        for start in range(0, len(octets), step):
            peer.send(octets[start : start + step])
        close = peer.read_frame()
        answers.append((close.name, close["reply_code"], close["reply_text"]))
    assert answers[0] == answers[1] and answers[0][0] == "connection.close"


def test_a_frame_of_the_full_negotiated_size_is_taken(connect):
    peer = connect(frame_max=4096)
    peer.publish("amq.direct", "nobody", b"x" * 4088, mandatory=True)
    assert peer.read_content("basic.return").body == b"x" * 4088


def test_a_frame_whose_payload_alone_has_the_negotiated_size_is_taken(connect):
    """amqpstorm sends such frames, and RabbitMQ allows for them: the eight octets around a payload are not counted."""
    peer = connect(frame_max=4096)
    peer.send(method(1, "basic.publish", exchange="amq.direct", mandatory=True) + header(1, 4096) + frame(BODY, 1, b"x" * 4096))
    assert peer.read_content("basic.return").body == b"x" * 4096


def test_a_frame_one_octet_larger_than_that_is_501(connect):
    """tune-ok frame-max: "a peer that receives an oversized frame MUST signal a connection exception with reply code 501"."""
    peer = connect(frame_max=4096)
    peer.send(method(1, "basic.publish", exchange="amq.direct") + header(1, 4097) + frame(BODY, 1, b"x" * 4097))
    close = peer.expect_connection_close(501)
    assert "4105" in close["reply_text"] or "4097" in close["reply_text"], "the text does not name the size: %r" % close["reply_text"]
    assert "4096" in close["reply_text"] or "4088" in close["reply_text"], "the text does not name the limit: %r" % close["reply_text"]


def test_an_empty_body_frame_is_harmless(connect):
    peer = connect()
    queue = peer.declare_queue(exclusive=True)
    peer.send(method(1, "basic.publish", routing_key=queue) + header(1, 5))
    peer.send(frame(BODY, 1, b"") + frame(BODY, 1, b"abcde"))
    peer.send(method(1, "basic.get", queue=queue, no_ack=True))
    assert peer.read_content("basic.get-ok").body == b"abcde"


def test_an_error_on_one_connection_leaves_the_others_and_its_queues_go(connect):
    healthy = connect()
    queue = healthy.declare_queue(exclusive=True)
    broken = connect()
    private = broken.declare_queue(exclusive=True)
    broken.send(frame(METHOD, 1, b"\0" * 20, end=0))
    broken.expect_connection_close(501)
    healthy.publish("", queue, b"still here")
    healthy.call("basic.consume-ok", 1, "basic.consume", queue=queue, no_ack=True)
    assert healthy.read_content("basic.deliver").body == b"still here"
    healthy.send(method(1, "queue.declare", queue=private, passive=True))
    healthy.expect_channel_close(404)


def test_half_a_publish_leaves_nothing_behind(connect):
    """The stream ends in the middle of content: no message appears anywhere."""
    watcher = connect()
    queue = watcher.declare_queue(exclusive=False, auto_delete=False)
    broken = connect()
    broken.send(method(1, "basic.publish", routing_key=queue) + header(1, 100000) + frame(BODY, 1, b"x" * 5000))
    broken.socket.close()
    watcher.publish("", queue, b"whole")
    watcher.wait_for_count(queue, 1)
    assert watcher.call("queue.delete-ok", 1, "queue.delete", queue=queue)["message_count"] == 1


def test_content_on_two_channels_may_be_interleaved(connect):
    """Frames of different channels may come in any order; content belongs to its channel."""
    peer = connect(channels=3)
    queue = peer.declare_queue(exclusive=True)
    bodies = {channel: bytes((channel,)) * 9000 for channel in (1, 2, 3)}
    for channel in bodies:
        peer.send(method(channel, "basic.publish", routing_key=queue))
    for channel in (3, 1, 2):
        peer.send(header(channel, 9000))
    for start in range(0, 9000, 3000):
        for channel in (2, 3, 1):
            peer.send(frame(BODY, channel, bodies[channel][start : start + 3000]))
    peer.wait_for_count(queue, 3)
    got = set()
    for _ in bodies:
        peer.send(method(1, "basic.get", queue=queue, no_ack=True))
        got.add(peer.read_content("basic.get-ok").body)
    assert got == set(bodies.values())


def test_methods_on_another_channel_may_come_between_content_frames(connect):
    peer = connect(channels=2)
    queue = peer.declare_queue(exclusive=True)
    peer.send(method(1, "basic.publish", routing_key=queue) + header(1, 6) + frame(BODY, 1, b"abc"))
    peer.call("basic.qos-ok", 2, "basic.qos", prefetch_count=3)
    peer.send(frame(BODY, 1, b"def") + method(1, "basic.get", queue=queue, no_ack=True))
    assert peer.read_content("basic.get-ok").body == b"abcdef"


def test_after_channel_close_frames_on_the_way_are_dropped(connect):
    """The client did not yet know that its channel is closed: everything up to close-ok is discarded, content too."""
    peer = connect()
    queue = peer.declare_queue(exclusive=True)
    peer.publish("no such exchange", "x", b"1")
    peer.publish("", queue, b"2")
    peer.send(method(1, "queue.declare", queue="t.never") + method(1, "basic.qos", prefetch_size=1))
    peer.expect_channel_close(404, "NOT_FOUND - no exchange 'no such exchange' in vhost '/'", method_of="basic.publish")
    peer.call("channel.open-ok", 1, "channel.open")
    assert peer.call("queue.declare-ok", 1, "queue.declare", queue=queue, passive=True)["message_count"] == 0


def test_channel_close_by_both_sides_at_once(connect):
    peer = connect()
    peer.send(method(1, "queue.delete", queue="x", if_empty=True) + method(1, "basic.get", queue="missing"))
    peer.send(method(1, "channel.close", reply_code=200, reply_text="bye"))
    got = []
    while "channel.close-ok" not in got:
        answer = peer.read_frame()
        got.append(answer.name)
        if answer.name == "channel.close":
            peer.send(method(1, "channel.close-ok"))
    assert "channel.close" in got
    peer.call("channel.open-ok", 1, "channel.open")


def test_a_channel_can_be_used_again_after_close(connect):
    peer = connect()
    for _ in range(50):
        peer.call("channel.close-ok", 1, "channel.close", reply_code=200, reply_text="bye")
        peer.call("channel.open-ok", 1, "channel.open")
    peer.declare_queue(exclusive=True)


def test_many_channels_live_side_by_side(connect):
    peer = connect(opened=False)
    tune = peer.log_in()
    count = min(tune["channel_max"], 16)
    peer.frame_size_max = tune["frame_max"]
    peer.send(method(0, "connection.tune-ok", channel_max=tune["channel_max"], frame_max=tune["frame_max"], heartbeat=0))
    peer.call("connection.open-ok", 0, "connection.open", virtual_host="/")
    for channel in range(1, count + 1):
        peer.call("channel.open-ok", channel, "channel.open")
    queue = peer.declare_queue(exclusive=True)
    for channel in range(1, count + 1):
        peer.publish("", queue, b"from %d" % channel, channel=channel)
        peer.call("basic.qos-ok", channel, "basic.qos", prefetch_count=1)
    got = {peer_get(peer, queue) for _ in range(count)}
    assert got == {b"from %d" % channel for channel in range(1, count + 1)}


def peer_get(peer, queue):
    peer.send(method(1, "basic.get", queue=queue, no_ack=True))
    return peer.read_content("basic.get-ok").body


def test_the_highest_channel_number_works(connect):
    peer = connect(channels=0)
    highest = peer.tune["channel_max"]
    peer.call("channel.open-ok", highest, "channel.open")
    peer.call("queue.declare-ok", highest, "queue.declare", exclusive=True)
