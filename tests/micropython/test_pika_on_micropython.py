"""Unmodified pika against the broker that runs inside MicroPython with BOARD limits.

Each test runs on the WebAssembly build (sockets carried by node) with all the memory it wants, on the same with a heap of HEAP_KB KiB that
cannot grow, and on a `micropython` binary (ports/tcp.py, real sockets) where one is on the PATH.
"""

import os
import socket
import struct
import threading

import pika
import pytest
from micropython_brokers import kinds
from pika.exceptions import ChannelClosedByBroker, ProbableAuthenticationError, UnroutableError

HEAP_KB = 128
TIMEOUT_S = 120
FRAME_SIZE_MAX = 4096
CONTENT_SIZE_MAX = 12288
SOCKET_BUFFER_SIZE = 4096
HEADER = b"AMQP\x00\x00\x09\x01"


KINDS = kinds(HEAP_KB)


@pytest.fixture(scope="module", params=[make for _, make in KINDS], ids=[name for name, _ in KINDS])
def bridge(request):
    with request.param() as bridge:
        yield bridge


@pytest.fixture
def connection(bridge):
    connection = connect(bridge)
    yield connection
    if connection.is_open:
        connection.close()


def connect(bridge):
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            "127.0.0.1", bridge.port, blocked_connection_timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S, stack_timeout=TIMEOUT_S
        )
    )


def consume(channel, queue, count, auto_ack=False):
    """`count` messages of `queue` as (method, properties, body), acknowledged one by one."""
    got = []
    for method, properties, body in channel.consume(queue, auto_ack=auto_ack, inactivity_timeout=TIMEOUT_S):
        assert method is not None, "only %d of %d messages came in %d s" % (len(got), count, TIMEOUT_S)
        got.append((method, properties, body))
        if not auto_ack:
            channel.basic_ack(method.delivery_tag)
        if len(got) == count:
            break
    channel.cancel()
    return got


def test_messages_are_confirmed_and_come_out_in_order(connection):
    channel = connection.channel()
    channel.confirm_delivery()
    queue = channel.queue_declare("", exclusive=True).method.queue
    for number in range(50):
        properties = pika.BasicProperties(
            delivery_mode=2, content_type="application/json", message_id="m/%d" % number, headers={"number": number, "text": "\u00e9"}
        )
        channel.basic_publish("", queue, b'{"value": %d}' % number, properties, mandatory=True)
    channel.basic_qos(prefetch_count=7)
    for number, (method, properties, body) in enumerate(consume(channel, queue, 50)):
        assert body == b'{"value": %d}' % number
        assert properties.message_id == "m/%d" % number
        assert properties.headers == {"number": number, "text": "\u00e9"}
        assert properties.delivery_mode == 2 and properties.content_type == "application/json"
        assert not method.redelivered
    assert channel.queue_declare(queue, passive=True).method.message_count == 0


def test_topic_bindings_route(connection):
    channel = connection.channel()
    channel.confirm_delivery()
    channel.exchange_declare("sensors", "topic", durable=True)
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "sensors", "room.*.temperature")
    channel.basic_publish("sensors", "room.1.temperature", b"21.5", mandatory=True)
    with pytest.raises(UnroutableError):
        channel.basic_publish("sensors", "room.1.humidity", b"40", mandatory=True)
    ((method, _, body),) = consume(channel, queue, 1)
    assert (method.exchange, method.routing_key, body) == ("sensors", "room.1.temperature", b"21.5")
    channel.exchange_delete("sensors")


def test_not_found_closes_the_channel_and_the_connection_goes_on(connection):
    channel = connection.channel()
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_declare("not-there", passive=True)
    assert caught.value.reply_code == 404
    assert "NOT_FOUND - no queue 'not-there' in vhost '/'" in caught.value.reply_text
    other = connection.channel()
    assert other.queue_declare("", exclusive=True).method.queue


def test_an_unknown_delivery_tag_closes_the_channel(connection):
    channel = connection.channel()
    channel.basic_ack(99)
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_declare("", exclusive=True)
    assert caught.value.reply_code == 406


@pytest.mark.parametrize("size", [0, 1, FRAME_SIZE_MAX - 8, FRAME_SIZE_MAX - 7, 3 * FRAME_SIZE_MAX - 24, CONTENT_SIZE_MAX])
def test_a_body_larger_than_a_frame_comes_out_identical(connection, size):
    channel = connection.channel()
    channel.confirm_delivery()
    queue = channel.queue_declare("", exclusive=True).method.queue
    body = os.urandom(size)
    channel.basic_publish("", queue, body, mandatory=True)
    ((_, _, got),) = consume(channel, queue, 1)
    assert got == body


def test_a_body_that_is_too_large_is_refused(connection):
    channel = connection.channel()
    channel.confirm_delivery()
    queue = channel.queue_declare("", exclusive=True).method.queue
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.basic_publish("", queue, bytes(CONTENT_SIZE_MAX + 1))
    assert caught.value.reply_code == 311
    assert connection.channel().queue_declare(queue, passive=True).method.message_count == 0


def test_rejected_messages_come_again_in_their_place(connection):
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    for number in range(3):
        channel.basic_publish("", queue, b"%d" % number)
    got = [channel.basic_get(queue) for _ in range(2)]
    channel.basic_nack(got[0][0].delivery_tag, requeue=True)
    channel.basic_reject(got[1][0].delivery_tag, requeue=False)
    again = consume(channel, queue, 2)
    assert [(method.redelivered, body) for method, _, body in again] == [(True, b"0"), (False, b"2")]


def test_more_messages_than_the_arena_holds_pass_through(bridge):
    """A publisher that does not wait is slowed, not refused: all arrive, once, in order."""
    count = 3000
    with connect(bridge) as consumer:
        channel = consumer.channel()
        channel.queue_declare("flow")
        publisher = threading.Thread(target=publish_many, args=(bridge, "flow", count), daemon=True)
        publisher.start()
        channel.basic_qos(prefetch_count=20)
        got = consume(channel, "flow", count)
        assert [body[:6] for _, _, body in got] == [b"%06d" % number for number in range(count)]
        publisher.join(TIMEOUT_S)
        assert not publisher.is_alive()
        assert channel.queue_delete("flow").method.message_count == 0


def publish_many(bridge, queue, count):
    with connect(bridge) as connection:
        channel = connection.channel()
        for number in range(count):
            channel.basic_publish("", queue, b"%06d" % number + b"x" * 250)


def raw(bridge):
    """A plain socket with small buffers, so that it soon shows when the broker does not read or is not read."""
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_SIZE)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_SIZE)
    stream.settimeout(TIMEOUT_S)
    stream.connect(("127.0.0.1", bridge.port))
    return stream


def method_frame(channel, class_id, method_id, arguments):
    payload = struct.pack(">HH", class_id, method_id) + arguments
    return struct.pack(">BHI", 1, channel, len(payload)) + payload + b"\xce"


def opened(stream):
    """Log in on a plain socket."""
    response = b"\x00guest\x00guest"
    stream.sendall(HEADER)
    stream.recv(65536)
    stream.sendall(
        method_frame(0, 10, 11, struct.pack(">I", 0) + b"\x05PLAIN" + struct.pack(">I", len(response)) + response + b"\x05en_US")
    )
    stream.recv(65536)
    stream.sendall(method_frame(0, 10, 31, struct.pack(">HIH", 8, FRAME_SIZE_MAX, 0)) + method_frame(0, 10, 40, b"\x01/\x00\x00"))
    stream.recv(65536)


def until_end(stream):
    """All that the broker still sends before it ends the stream."""
    data = b""
    while True:
        part = stream.recv(65536)
        if not part:
            return data
        data += part


def still_serves(bridge):
    with connect(bridge) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, b"still here", mandatory=True)
        assert channel.basic_get(queue, auto_ack=True)[2] == b"still here"


def test_a_wrong_header_is_answered_with_ours(bridge):
    with raw(bridge) as stream:
        stream.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert until_end(stream) == HEADER
    still_serves(bridge)


@pytest.mark.parametrize(
    "octets, code",
    [
        (b"\x01\x00\x01\x00\xff\xff\xff", 501),  # a frame above frame-max: refused before its payload
        (b"\x01\x00\x01\x00\x00\x00\x05\x00\x14\x00\x0a\x00X", 501),  # no frame end
        (b"\x09\x00\x00\x00\x00\x00\x00\xce", 501),  # a frame type that is none
        (b"\x03\x00\x01\x00\x00\x00\x01x\xce", 504),  # a body on a channel that is not open
    ],
    ids=["oversized", "no-end", "unknown-type", "body-unasked"],
)
def test_one_bad_peer_is_told_why_and_a_second_client_goes_on(bridge, octets, code):
    with raw(bridge) as stream, connect(bridge) as neighbour:
        channel = neighbour.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        opened(stream)
        stream.sendall(octets)
        answer = stream.recv(65536)
        assert answer[7:11] == struct.pack(">HH", 10, 50), answer
        assert struct.unpack(">H", answer[11:13])[0] == code, answer
        channel.basic_publish("", queue, b"on")
        assert channel.basic_get(queue, auto_ack=True)[2] == b"on"
    still_serves(bridge)


def publish_frames(queue, body):
    name = queue.encode()
    return (
        method_frame(1, 60, 40, b"\x00\x00\x00" + bytes((len(name),)) + name + b"\x00")
        + struct.pack(">BHIHHQH", 2, 1, 14, 60, 0, len(body), 0)
        + b"\xce"
        + struct.pack(">BHI", 3, 1, len(body))
        + body
        + b"\xce"
    )


def test_a_peer_that_does_not_read_and_one_that_floods_do_not_stop_a_third(bridge):
    with connect(bridge) as quick, raw(bridge) as slow, raw(bridge) as flood:
        channel = quick.channel()
        channel.queue_declare("slow")
        own = channel.queue_declare("", exclusive=True).method.queue
        opened(slow)
        slow.sendall(method_frame(1, 20, 10, b"\x00") + method_frame(1, 60, 20, b"\x00\x00\x04slow\x00\x02\x00\x00\x00\x00"))
        opened(flood)
        flood.sendall(method_frame(1, 20, 10, b"\x00"))
        flood.recv(65536)
        assert sent_until_slowed(flood, publish_frames("slow", b"y" * 4000)) > 20
        for number in range(50):
            channel.basic_publish("", own, b"%d" % number)
            assert channel.basic_get(own, auto_ack=True)[2] == b"%d" % number
    with connect(bridge) as after:
        after.channel().queue_delete("slow")
    still_serves(bridge)


def sent_until_slowed(stream, octets):
    """Send the same octets again and again until nothing is taken for a second: how often. A broker that takes all has no bound."""
    stream.settimeout(1)
    most = 64 * 1024 * 1024 // len(octets)
    for count in range(most):
        try:
            stream.sendall(octets)
        except TimeoutError:
            return count
    raise AssertionError("the broker took %d octets and never slowed the publisher" % (most * len(octets)))


def test_a_wrong_password_is_refused(bridge):
    with pytest.raises(ProbableAuthenticationError):
        pika.BlockingConnection(
            pika.ConnectionParameters(
                "127.0.0.1", bridge.port, credentials=pika.PlainCredentials("guest", "wrong"), socket_timeout=TIMEOUT_S
            )
        )
    still_serves(bridge)
