"""AMQP 0-10, class stream: packets at a rate, best effort."""

from peer import Peer as Peer091
from peer_0_10 import command, control
from peer_file import STREAM, FilePeer, broker_of, content

from leveret.core.amqp_0_10 import structs

GIVEN = {"content_type": "a/b", "content_encoding": "gzip", "headers": {"n": 1}, "priority": 3, "timestamp": 1700000000}


def started(**arguments):
    """A peer of a broker with a queue."""
    peer = FilePeer(broker_of())
    peer.do("queue_declare", queue="q", arguments=arguments)
    return peer


def publish(peer, body, given=None, key="q", **fields):
    """A packet: its id."""
    peer.give(content("stream_publish", body, given, STREAM, exchange="", routing_key=key, **fields))
    peer.ids += 1
    return peer.ids - 1


def pass_time(broker, ms, step=100):
    """So many milliseconds, as the port has them pass."""
    for _ in range(ms // step):
        broker.tick((broker.now + step) & 0x3FFFFFFF, 1700000000)
        for connection in broker.connections:
            connection.tick(broker.now)
        broker.run()


def test_a_packet_goes_in_and_out_with_all_its_properties():
    """stream.consume, publish, deliver: "as soon as a message is delivered to a client via a Deliver command, the server must remove
    it"."""
    peer = started()
    for body in (b"", b"x", bytes(5000)):
        id_ = publish(peer, body, GIVEN)
        assert peer.completed() == [(0, id_)]
    peer.do("stream_consume", queue="q", consumer_tag="c")
    found = peer.named("stream_deliver")
    assert [each[2] for each in found] == [b"", b"x", bytes(5000)]
    fields, header, _ = found[0]
    assert fields["consumer_tag"] == "c" and fields["queue"] == "q" and fields["exchange"] == "" and fields["delivery_tag"]
    assert structs.read(STREAM, header, 0, len(header))[0] == GIVEN
    queue = peer.broker.queues["q"]
    assert (queue.message_count(), queue.unsettled_count()) == (0, 0)


def test_packets_are_ordinary_messages_for_others():
    peer = started()
    publish(peer, b"hello", GIVEN)
    old = Peer091(peer.broker)
    ((_, _, given, body),) = old.consume("q", no_ack=True)
    assert body == b"hello" and given["content_type"] == "a/b" and given["priority"] == 3 and given["delivery_mode"] == 1
    peer.do("stream_consume", queue="q", consumer_tag="c")
    peer.all()
    old.publish("q", b"by 0-9-1", given={"content_type": "c/d", "message_id": "left out"})
    old.publish("q", b"by 0-9-1", given={"content_type": "c/d", "message_id": "left out"})
    ((_, header, body),) = peer.named("stream_deliver")
    assert body == b"by 0-9-1" and structs.read(STREAM, header, 0, len(header))[0]["content_type"] == "c/d"


def test_above_its_rate_a_consumer_loses_the_lower_level():
    """stream.qos: consume-rate; "lower-priority messages may be discarded in favor of high priority messages", and each is counted."""
    peer = started()
    peer.do("stream_qos", consume_rate=2000)
    assert len(peer.named("stream_qos_ok")) == 1
    peer.do("stream_consume", queue="q", consumer_tag="c")
    peer.all()
    for _ in range(10):
        publish(peer, bytes(990), {"priority": 4})
    got = len(peer.named("stream_deliver"))
    assert got == 2 or got == 3
    assert peer.broker.counters["stream_dropped"] == 10 - got and peer.broker.queues["q"].message_count() == 0
    for _ in range(4):
        publish(peer, bytes(990), {"priority": 5})
    assert not peer.named("stream_deliver") and peer.broker.queues["q"].message_count() == 4
    for _ in range(4):
        pass_time(peer.broker, 1000)
        assert 1 <= len(peer.named("stream_deliver")) <= 3 or not peer.broker.queues["q"].message_count()
    assert peer.broker.queues["q"].message_count() == 0 and peer.broker.counters["stream_dropped"] == 10 - got


def test_windows_are_filled_as_deliveries_are_completed():
    """stream.qos: prefetch-count and prefetch-size."""
    for window in ({"prefetch_count": 2}, {"prefetch_size": 250}):
        peer = started()
        peer.do("stream_qos", **window)
        peer.do("stream_consume", queue="q", consumer_tag="c")
        for _ in range(4):
            publish(peer, bytes(100))
        found = [each[0]["delivery_tag"] for each in peer.named("stream_deliver")]
        assert len(found) == 2, window
        peer.give(control("session_completed", commands=[(found[0] - 1, found[0] - 1)]))
        assert len(peer.named("stream_deliver")) == 1


def test_what_no_queue_takes_is_returned_or_dropped():
    """stream.return: mandatory 312, immediate 313; a full queue drops, and counts."""
    peer = started(**{"x-max-length": 1, "x-overflow": "reject-publish"})
    publish(peer, b"x", key="no")
    assert not peer.named("stream_return")
    publish(peer, b"x", GIVEN, key="no", mandatory=True)
    ((fields, header, body),) = peer.named("stream_return")
    assert fields["reply_code"] == 312 and body == b"" and structs.read(STREAM, header, 0, len(header))[0] == GIVEN
    publish(peer, b"x", immediate=True)
    ((fields, _, _),) = peer.named("stream_return")
    assert fields["reply_code"] == 313 and peer.broker.queues["q"].message_count() == 0
    for _ in range(3):
        id_ = publish(peer, b"x")
    assert peer.completed() == [(0, id_)]
    assert peer.broker.queues["q"].message_count() == 1 and peer.broker.counters["stream_dropped"] == 2


REFUSED = (
    ("a consumer without a tag", [("stream_consume", {"queue": "q"})], 530),
    ("a consumer of no queue", [("stream_consume", {"queue": "no", "consumer_tag": "c"})], 404),
    (
        "a tag of a file consumer",
        [("file_consume", {"queue": "q", "consumer_tag": "c"}), ("stream_consume", {"queue": "q", "consumer_tag": "c"})],
        530,
    ),
    ("a cancel of nothing", [("stream_cancel", {"consumer_tag": "c"})], 404),
    ("a cancel of a file consumer", [("file_consume", {"queue": "q", "consumer_tag": "c"}), ("stream_cancel", {"consumer_tag": "c"})], 404),
    ("what a server sends", [("stream_qos_ok", {})], 540),
)


def test_refusals():
    for what, commands, code in REFUSED:
        peer = started()
        for name, given in commands:
            peer.give(command(name, **given))
        assert peer.error()[0] == code, what
    peer = started()
    publish(peer, b"x", {"priority": 10})
    assert peer.error()[0] == 531
    peer = started()
    peer.give(content("stream_publish", b"x", None, STREAM, exchange="no"))
    assert peer.error()[0] == 404


def test_cancel():
    peer = started()
    peer.do("stream_consume", queue="q", consumer_tag="c", nowait=True)
    assert not peer.named("stream_consume_ok")
    peer.do("stream_cancel", consumer_tag="c")
    publish(peer, b"x")
    assert not peer.named("stream_deliver") and peer.broker.queues["q"].message_count() == 1
