"""A content header is one frame (0-9-1 section 4.2.6): one that is larger than a connection's frame-max is not sent there (section 4.2.3).

The channel that should have got it is closed with 406 and a sentence, and the message stays for others. RabbitMQ 3.10 sends the frame
whatever its size: a peer that keeps to the specification then ends the connection with 501.
"""

import struct

from peer import Peer, encoded, idle, new_broker

from leveret.core.amqp_0_9 import frame
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER

WIDE = {"headers": {"k": "a" * 5000}}
SIZES = {
    "properties_size_max": 8192,
    "receive_buffer_size": 16384,
    "send_buffer_size": 16384,
    "frame_size_max": 16384,
    "arena_size": 131072,
}
SENTENCE = (
    "PRECONDITION_FAILED - %s in queue 'q' has a content header of 5033 octets, which is one frame, and frame-max of this "
    "connection is 4096: connect with a larger one"
)


class Narrow(Peer):
    """A peer whose frame-max is 4096."""

    def log_in(self, capabilities):
        self.give(HEADER)
        self.expect("connection_start")
        self.give(encoded("connection_start_ok", 0, {"capabilities": capabilities}, "PLAIN", b"\x00guest\x00guest", "en_US"))
        self.expect("connection_tune")
        self.give(encoded("connection_tune_ok", 0, 0, 4096, 0) + encoded("connection_open", 0, "/", "", False))
        self.expect("connection_open_ok")
        self.ask("channel_open", "channel_open_ok", "")

    def closed_with(self):
        """The code and text of the channel.close that is all that came."""
        frames = self.frames()
        assert [each[0] for each in frames] == ["channel_close"], frames
        self.give(encoded("channel_close_ok", 1))
        self.ask("channel_open", "channel_open_ok", "")
        return frames[0][2][0], frames[0][2][1]


def bodies(peer):
    return [each[3] for each in peer.contents()]


def broker_with_queue(arguments=None):
    broker = new_broker(**SIZES)
    wide = Peer(broker)
    wide.declare("q", durable=bool(arguments and "x-queue-type" in arguments), arguments=arguments)
    return broker, wide


def test_a_consumer_is_refused_and_the_message_stays():
    broker, wide = broker_with_queue()
    narrow = Narrow(broker)
    narrow.consume("q")
    wide.publish("q", b"small")
    wide.publish("q", b"large", given=WIDE)
    wide.publish("q", b"behind")
    frames = narrow.frames()
    assert frames[-1][0] == "channel_close" and frames[-1][2][:2] == [406, SENTENCE % "the next message"]
    assert [each[1] for each in wide.consume("q", no_ack=True)][0][2] is True, "what it had not settled comes back"
    assert broker.queues["q"].message_count() == 0 and not narrow.connection.closed


def test_a_get_is_refused_and_the_message_stays():
    broker, wide = broker_with_queue()
    narrow = Narrow(broker)
    wide.publish("q", b"large", given=WIDE)
    narrow.give(encoded("basic_get", 1, 0, "q", False))
    assert narrow.closed_with() == (406, SENTENCE % "the next message")
    wide.give(encoded("basic_get", 1, 0, "q", True))
    assert bodies(wide) == [b"large"]


def test_other_consumers_of_the_queue_get_it():
    """Whoever's turn it was, among equals, with priorities, and with a single active one."""
    for arguments, priorities in (
        ({}, (0, 0, 0, 0)),
        ({}, (5, 5, 1, 0)),
        ({"x-single-active-consumer": True}, (0, 0, 0, 0)),
        ({"x-max-priority": 2}, (0, 0, 0, 0)),
    ):
        broker, wide = broker_with_queue(arguments)
        empty = idle(broker)
        narrow = [Narrow(broker) for _ in range(3)]
        for peer, priority in zip(narrow, priorities):
            peer.consume("q", arguments={"x-priority": priority})
        wide.consume("q", no_ack=True, arguments={"x-priority": priorities[3]})
        for number in range(6):
            wide.publish("q", b"%d" % number, given=WIDE)
        assert sorted(bodies(wide)) == [b"%d" % number for number in range(6)], (arguments, priorities)
        assert [peer.closed_with()[0] for peer in narrow] == [406] * 3 and not broker.queues["q"].unsettled_count()
        for peer in narrow:
            peer.connection.finish()
        assert idle(broker)[:3] == empty[:3] and broker.counters["internal_errors"] == 0


def test_a_reader_of_a_stream_is_told_the_offset_and_can_go_on_behind_it():
    broker, wide = broker_with_queue({"x-queue-type": "stream"})
    broker.tick(1000, 1700000000)
    narrow = Narrow(broker)
    for body, given in ((b"small", {}), (b"large", WIDE), (b"behind", {})):
        wide.publish("q", body, given=given)
    narrow.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    narrow.give(encoded("basic_consume", 1, 0, "q", "c", False, False, False, False, {"x-stream-offset": "first"}))
    frames = narrow.frames()
    assert frames[-1][0] == "channel_close" and frames[-1][2][0] == 406, frames[-1]
    assert "the message of offset 1 in queue 'q'" in frames[-1][2][1]
    narrow.give(encoded("channel_close_ok", 1))
    narrow.ask("channel_open", "channel_open_ok", "")
    narrow.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    assert [each[3] for each in narrow.consume("q", arguments={"x-stream-offset": 2})] == [b"behind"]


def test_a_header_of_just_the_size_is_sent():
    broker, wide = broker_with_queue()
    narrow = Narrow(broker)
    narrow.consume("q", no_ack=True)
    room = 4096 - 20 - len(b"\x20\x00" + b"\x00\x00\x00\x00" + b"\x01kS" + b"\x00\x00\x00\x00")
    wide.publish("q", b"x", given={"headers": {"k": "a" * room}})
    assert bodies(narrow) == [b"x"]
    wide.publish("q", b"x", given={"headers": {"k": "a" * (room + 1)}})
    assert narrow.closed_with()[0] == 406


def test_the_weight_of_a_content_header_is_zero_4_2_6_1():
    """A header with another one is a syntax error, whoever wrote it: 502 ends the connection, and no message comes of it."""
    broker = new_broker()
    for weight in (1, 256):
        peer = Peer(broker)
        peer.declare("q")
        publish = encoded("basic_publish", 1, 0, "", "q", False, False)
        header = frame.encode(frame.HEADER, 1, struct.pack(">HHQH", 60, weight, 1, 0))
        peer.give(publish + header + frame.encode(frame.BODY, 1, b"x"))
        frames = peer.frames()
        assert [each[0] for each in frames] == ["connection_close"] and frames[0][2][0] == 502 and "weight" in frames[0][2][1], frames
        assert broker.queues["q"].message_count() == 0
