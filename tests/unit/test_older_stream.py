"""Class stream of AMQP 0-8 and 0-9: packets in and out, their rate, what is dropped."""

from old_file import STREAM, all_started, started
from peer import Peer as Peer091
from test_older import waited

from leveret.core.staging import rate

GIVEN = {"content_type": "a/b", "content_encoding": "gzip", "headers": {"n": 1, "t": "x"}, "priority": 3, "timestamp": 1700000000}


def test_a_packet_goes_in_and_out_with_all_its_properties():
    """stream.publish, consume, deliver, cancel."""
    for size in (0, 1, 3000):
        for peer in all_started():
            peer.consume("stream", nowait=False)
            assert peer.named("stream_consume_ok") == [["c"]]
            peer.stream(b"x" * size, given=GIVEN)
            ((name, arguments, content, body),) = peer.all()
            assert (name, arguments) == ("stream_deliver", ["c", 1, "", "q"])
            assert content == (STREAM, size, GIVEN) and body == b"x" * size
            queue = peer.broker.queues["q"]
            assert (queue.message_count(), queue.unsettled_count()) == (0, 0)
            peer.say("stream_cancel", 1, "c", False)
            assert peer.named("stream_cancel_ok") == [["c"]] and not queue.consumers


def test_packets_are_ordinary_messages_that_are_not_durable():
    for peer in all_started():
        peer.stream(b"packet", given=GIVEN)
        ((_, _, given, body),) = Peer091(peer.broker).consume("q", no_ack=True)
        assert body == b"packet" and given["delivery_mode"] == 1 and given["headers"] == {"n": 1, "t": "x"}
        peer.consume("stream")
        Peer091(peer.broker).publish("q", b"not this one")  # the other consumer has its turn
        peer.publish("q", b"ordinary", exchange="", given={"content_type": "c/d", "message_id": "gone"})
        assert [each[2:] for each in peer.all() if each[0] == "stream_deliver"] == [[(STREAM, 8, {"content_type": "c/d"}), b"ordinary"]]


def test_what_no_queue_takes_is_returned_with_its_body():
    """stream.return: 312 with mandatory, 313 with immediate where nobody reads."""
    for peer in all_started():
        peer.stream(b"nobody", "no")
        peer.stream(b"told", "no", GIVEN, mandatory=True)
        peer.stream(b"now", "q", immediate=True)
        found = peer.all()
        assert [each[0] for each in found] == ["stream_return", "stream_return"]
        assert (found[0][1][0], found[0][1][2:], found[0][2:]) == (312, ["", "no"], [(STREAM, 4, GIVEN), b"told"])
        assert found[1][1][0] == 313 and found[1][3] == b"now" and peer.broker.queues["q"].message_count() == 0
        peer.consume("stream")
        peer.stream(b"now", "q", immediate=True)
        assert [each[3] for each in peer.all()] == [b"now"]


def test_the_rate_drops_packets_of_low_priority_and_has_the_others_wait():
    """stream.qos, consume-rate, of a channel and of the connection: octets a second."""
    for is_global in (False, True):
        for peer in all_started():
            peer.say("stream_qos", 1, 0, 0, 2000, is_global)
            assert peer.named("stream_qos_ok") == [[]]
            peer.consume("stream")
            for number in range(10):
                peer.stream(bytes((number,)) * 1000)
            assert len(peer.named("stream_deliver")) == 2
            assert peer.broker.counters["stream_dropped"] == 8
            peer.stream(b"h" * 1000, given={"priority": rate.HIGH})
            assert peer.all() == [] and peer.broker.queues["q"].message_count() == 1
            for _ in range(3):
                waited(peer)
            assert [each[3] for each in peer.all()] == [b"h" * 1000]


def test_a_packet_larger_than_the_send_buffer():
    for peer in all_started():
        peer.consume("stream")
        size = peer.connection.send.size * 2
        body = bytes(range(250)) * (size // 250)
        peer.stream(body)
        ((_, _, _, found),) = peer.all()
        assert found == body


def test_channel_flow_stops_packets():
    for peer in all_started():
        peer.say("channel_flow", 1, False)
        peer.consume("stream")
        peer.stream(b"x")
        assert [each[0] for each in peer.all()] == ["channel_flow_ok"]
        peer.say("channel_flow", 1, True)
        assert sorted(each[0] for each in peer.all()) == ["channel_flow_ok", "stream_deliver"]


def test_a_paused_consumer_is_forgotten_with_its_channel():
    peer = started()
    peer.say("stream_qos", 1, 0, 0, 10, False)
    peer.consume("stream")
    for _ in range(2):
        peer.stream(b"x" * 100, given={"priority": 9})
    session = peer.connection.session
    assert len(session.paused) == 1
    peer.say("channel_close", 1, 200, "", 0, 0)
    waited(peer)
    assert session.paused == [] and peer.broker.queues["q"].message_count() == 1
