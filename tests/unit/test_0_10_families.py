"""Messages of AMQP 0-10 in one broker with 0-9-1 and 1.0: what each family's receivers read of the others' (core/SPEC.md, AMQP 0-10)."""

from peer import Peer, new_broker, taken
from peer_0_10 import Peer as Peer010
from peer_0_10 import frame, structs
from peer_1_0 import Peer as Peer10

from leveret.core.amqp_0_10 import properties
from leveret.core.amqp_1_0 import sections
from leveret.core.amqp_1_0.properties import facts

UUID = bytes(range(16))
TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"
HEADERS = {"a": "b", "n": ("I", 5), "l": ("l", 1 << 40), "t": True, "d": 2.5, "m": {"x": None}, "list": [("I", 1), "y"]}
SAID = {
    "message_id": UUID,
    "correlation_id": b"corr",
    "reply_to": {"exchange": "", "routing_key": "answers"},
    "content_type": "text/plain",
    "content_encoding": "gzip",
    "user_id": b"guest",
    "app_id": b"app",
    "application_headers": dict(HEADERS, **{"x-jms-type": "kind"}),
}
DELIVERY = {"priority": 3, "delivery_mode": 2, "ttl": 60000, "timestamp": 1_700_000_000_000}
BASIC = {
    "message_id": TEXT,
    "correlation_id": "corr",
    "reply_to": "answers",
    "content_type": "text/plain",
    "content_encoding": "gzip",
    "user_id": "guest",
    "app_id": "app",
    "type": "kind",
    "priority": 3,
    "delivery_mode": 2,
    "expiration": "60000",
    "timestamp": 1_700_000_000,
    "headers": {"a": "b", "n": 5, "l": 1 << 40, "t": True, "d": 2.5, "m": {"x": None}, "list": [1, "y"]},
}


def three():
    """A broker with a queue q, a peer of each family."""
    broker = new_broker(properties_size_max=1024, receive_buffer_size=8192, send_buffer_size=8192)
    basic = Peer(broker)
    basic.declare("q", True)
    return basic, Peer10(broker), Peer010(broker)


def test_0_10_to_0_10_octet_for_octet_where_nothing_more_has_to_be_said():
    _, _, peer = three()
    octets = structs.write(properties.DELIVERY, dict(DELIVERY, exchange="", routing_key="q")) + structs.write(properties.MESSAGE, SAID)
    octets += b"\x00\x00\x00\x06\x7f\x01\x00\x00zz"  # a struct that nobody knows
    parts = [frame.segment(frame.FIRST_SEGMENT, frame.COMMAND, 0, structs.write_command("message_transfer", {"accept_mode": 1}), 65535)]
    parts.append(frame.segment(0, frame.HEADER, 0, octets, 65535) + frame.segment(frame.LAST_SEGMENT, frame.BODY, 0, b"body", 65535))
    peer.give(b"".join(parts))
    peer.ids += 1
    peer.subscribe()
    came = [(header, body) for name, _, header, body, _ in peer.all() if name == "message_transfer"]
    assert came == [(octets, b"body")]


def test_0_10_to_0_9_1_and_to_1_0():
    basic, ten, peer = three()
    peer.publish(b"body", delivery=DELIVERY, header=SAID)
    assert taken(basic, "q") == [(BASIC, b"body")]
    peer.publish(b"body", delivery=DELIVERY, header=SAID)
    ten.receiver()
    (octets,) = [payload for name, _, payload, _ in ten.frames() if name == "transfer"]
    at, _, _ = sections.split(octets, 0, len(octets))
    said = facts(octets, 0, at)
    assert octets[at:] == b"body"
    assert said["properties"]["message-id"] == ("uuid", UUID) and said["properties"]["reply-to"] == "/queues/answers"
    assert said["header"]["priority"] == 3 and said["header"]["durable"] is True
    assert said["application-properties"]["n"] == ("int", 5) and said["application-properties"]["l"] == 1 << 40


def test_0_9_1_to_0_10():
    basic, _, peer = three()
    basic.publish("q", b"body", given=BASIC)
    peer.subscribe()
    ((said, body),) = peer.transfers()
    assert body == b"body"
    message = dict(said[properties.MESSAGE])
    headers = message.pop("application_headers")
    assert headers == dict(BASIC["headers"], **{"x-jms-type": "kind"})
    wanted = dict(SAID)
    del wanted["application_headers"]
    assert message == dict(wanted, content_length=None)
    delivery = said[properties.DELIVERY]
    assert (delivery["priority"], delivery["delivery_mode"], delivery["ttl"], delivery["timestamp"]) == (3, 2, 60000, 1_700_000_000_000)


def test_1_0_to_0_10():
    _, ten, peer = three()
    ten.sender()
    ten.send(0, b"body", header={"durable": True, "priority": 6})
    peer.subscribe()
    ((said, body),) = peer.transfers()
    assert body == b"body" and said[properties.DELIVERY]["priority"] == 6 and said[properties.DELIVERY]["delivery_mode"] == 2


def test_every_split_of_a_conversation_comes_to_the_same():
    """Frames come in any pieces: octet by octet, and in pieces of seven."""
    told = []
    for step in (0, 1, 7):
        peer = Peer010(new_broker(), step)
        peer.do("queue_declare", queue="q")
        peer.publish(b"b" * 3000, header=SAID)
        peer.subscribe(accept=0)
        peer.do("message_accept", transfers=[(0, 0)])
        peer.do("queue_query", queue="q")
        told.append([each for each in peer.all() if each[0] != "session_completed"])
    assert told[0] == told[1] == told[2] and len(told[0]) >= 3
