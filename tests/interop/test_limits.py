"""What one connection cannot do to the others: it is refused with a clear word and the broker goes on serving (issue: fixed memory).

RabbitMQ 3.10 has no such limits but its memory watermark; these tests are Leveret's own, run with its default limits.
"""

import struct
import time

import psutil
import pytest
from amqp_wire import BODY, METHOD, Closed, frame, header, method

pytestmark = pytest.mark.usefixtures("only_leveret")


@pytest.fixture
def only_leveret(broker):
    if broker.kind != "leveret":
        pytest.skip("RabbitMQ's only limit is its memory watermark")


def resident(broker):
    return psutil.Process(broker.server_pid).memory_info().rss


def works(connect):
    """A publish and a delivery on a new connection."""
    peer = connect()
    queue = peer.declare_queue(exclusive=True)
    peer.call("basic.consume-ok", 1, "basic.consume", queue=queue, no_ack=True)
    peer.publish("", queue, b"served")
    assert peer.read_content("basic.deliver").body == b"served"
    peer.close()


def refused(peer, *codes):
    """channel.close or connection.close with one of these codes and a text; True when the connection is gone with it."""
    got = peer.read_frame()
    while got.name not in ("channel.close", "connection.close"):
        got = peer.read_frame()
    assert got["reply_code"] in codes and got["reply_text"], got
    peer.send(method(got.channel, got.name + "-ok"))
    return got.name == "connection.close"


def test_ten_thousand_queues_on_one_connection(connect, broker):
    peer = connect()
    before = resident(broker)
    made = 0
    for number in range(10000):
        peer.send(method(1, "queue.declare", queue="t.many.%d" % number, exclusive=True))
        got = peer.read_frame()
        if got.name != "queue.declare-ok":
            break
        made += 1
    assert 0 < made < 10000, "no limit was met"
    assert got["reply_code"] == 506 and "RESOURCE_ERROR" in got["reply_text"], got
    works(connect)
    assert resident(broker) - before < 32 << 20
    peer.socket.close()
    works(connect)


@pytest.mark.parametrize("what", ["channel.open", "exchange.declare", "queue.bind", "basic.consume"])
def test_a_flood_of_anything_ends_in_a_refusal(connect, broker, what, name):
    peer = connect(channels=1)
    queue = peer.declare_queue(exclusive=True)
    exchanges = 0
    for number in range(70000):
        if what == "channel.open":
            octets = method(number % 65535 + 2, "channel.open")
        elif what == "exchange.declare":
            octets = method(1, what, exchange="%s.%d" % (name, number), type="fanout", no_wait=True)
        elif what == "queue.bind":
            octets = method(1, what, queue=queue, exchange="amq.direct", routing_key="%s.%d" % (name, number), no_wait=True)
        else:
            octets = method(1, what, queue=queue, consumer_tag=str(number), no_wait=True)
        exchanges = number
        peer.send(octets)
        if number % 100 == 99 and answered(peer):
            break
    refused(peer, 506, 504, 530)
    works(connect)
    peer.socket.close()
    if what == "exchange.declare":
        other = connect()
        for number in range(exchanges + 1):
            other.send(method(1, "exchange.delete", exchange="%s.%d" % (name, number), no_wait=True))
        other.call("basic.qos-ok", 1, "basic.qos")
    works(connect)


def answered(peer):
    """Whether a close is waiting (channel.open-ok and the like are read away)."""
    peer.socket.settimeout(0.001)
    try:
        data = peer.socket.recv(1 << 20)
        if not data:
            raise Closed(b"")
        peer.buffer += data
    except TimeoutError:
        pass
    at = 0
    while at + 11 <= len(peer.buffer):
        size = struct.unpack(">I", peer.buffer[at + 3 : at + 7])[0]
        if peer.buffer[at + 7 : at + 11] in (struct.pack(">HH", 20, 40), struct.pack(">HH", 10, 50)):
            return True
        at += size + 8
    return False


def test_a_body_larger_than_allowed_is_311_before_it_is_sent(connect, broker):
    peer = connect()
    before = resident(broker)
    peer.send(method(1, "basic.publish", exchange="amq.direct") + header(1, 1 << 40))
    peer.expect_channel_close(311, "CONTENT_TOO_LARGE", method_of="basic.publish")
    assert resident(broker) - before < 8 << 20
    peer.call("channel.open-ok", 1, "channel.open")
    works(connect)


def test_what_is_left_of_a_refused_body_is_dropped(connect):
    """A client that has begun cannot stop at once: its body frames are on the way when the close arrives."""
    peer = connect(channels=2)
    peer.send(method(1, "basic.publish", exchange="amq.direct") + header(1, 1 << 40))
    for _ in range(20):
        peer.send(frame(BODY, 1, b"x" * 100000))
    peer.expect_channel_close(311)
    peer.call("basic.qos-ok", 2, "basic.qos")
    peer.call("channel.open-ok", 1, "channel.open")


def test_properties_larger_than_allowed_are_refused(connect):
    peer = connect()
    peer.send(method(1, "basic.publish", exchange="amq.direct") + header(1, 1, {"headers": {"h": "x" * 60000}}) + frame(BODY, 1, b"x"))
    refused(peer, 311, 501, 506)
    works(connect)


def test_a_body_without_end_holds_no_more_than_its_share(connect, broker):
    """Many connections begin a large body and go on without finishing: the others are served all the while."""
    before = resident(broker)
    greedy = [connect() for _ in range(8)]
    for peer in greedy:
        peer.socket.settimeout(0.2)
        try:
            peer.socket.sendall(method(1, "basic.publish", exchange="amq.direct") + header(1, 30 << 20))
            for _ in range(8):
                peer.socket.sendall(frame(BODY, 1, b"x" * 131064))
        except (TimeoutError, OSError):
            pass  # the broker stopped reading, or refused: both hold the line
    works(connect)
    assert resident(broker) - before < 160 << 20
    for peer in greedy:
        peer.socket.close()
    time.sleep(0.1)
    works(connect)


def test_an_endless_protocol_header_and_endless_login(connect):
    peer = connect(opened=False)
    peer.send(b"AMQP\x00\x00\x09")
    other = connect(opened=False)
    other.start()
    other.send(struct.pack(">BHI", METHOD, 0, 100000) + b"\0\x0a\0\x0b" + b"\xff" * 3000)
    works(connect)
    try:
        got = other.read_frame(3)
        assert got.name == "connection.close", got
    except (Closed, TimeoutError):
        pass  # it waits for the rest, within its receive buffer; the login time-out ends it


def test_the_unread_replies_of_a_client_are_bounded(connect, broker):
    """A peer that asks and never reads: replies do not pile up in the broker."""
    before = resident(broker)
    peer = connect(receive_buffer=4096)
    request = method(1, "queue.declare", queue="", passive=False, exclusive=True, auto_delete=True)
    question = method(1, "exchange.declare", exchange="amq.direct", type="direct", durable=True) * 1000
    peer.socket.settimeout(0.5)
    try:
        peer.socket.sendall(request)
        for _ in range(400):
            peer.socket.sendall(question)
    except TimeoutError:
        pass  # the broker has stopped reading
    works(connect)
    assert resident(broker) - before < 16 << 20


def test_a_queue_filled_to_the_brim_slows_the_publisher_and_not_the_others(connect, broker, name):
    """More than the arena holds is published: the publisher waits, another connection drains, everything arrives in order."""
    before = resident(broker)
    publisher, consumer = connect(), connect(timeout_s=30)
    consumer.declare_queue(name)
    body = b"f" * 65536
    messages = [method(1, "basic.publish", routing_key=name) + header(1, len(body) + 4) for _ in range(1)]
    publisher.socket.settimeout(1)
    whole = 0
    rest = b""
    try:
        for number in range(2000):
            octets = messages[0] + frame(BODY, 1, struct.pack(">I", number) + body)
            sent = 0
            while sent < len(octets):
                sent += publisher.socket.send(octets[sent:])
            whole += 1
    except TimeoutError:
        rest = octets[sent:]
    assert whole < 2000, "125 MB went into a broker of 64"
    works_while_full(connect)
    assert resident(broker) - before < 128 << 20
    tag = consumer.call("basic.consume-ok", 1, "basic.consume", queue=name, no_ack=True)["consumer_tag"]
    total = whole + (1 if rest else 0)
    for number in range(total):
        if number == 5 and rest:
            publisher.socket.settimeout(20)
            publisher.socket.sendall(rest)
        got = consumer.read_content("basic.deliver")
        assert struct.unpack(">I", got.body[:4])[0] == number and len(got.body) == len(body) + 4
    consumer.call("basic.cancel-ok", 1, "basic.cancel", consumer_tag=tag)
    consumer.call("queue.delete-ok", 1, "queue.delete", queue=name)
    works(connect)


def works_while_full(connect):
    """With no room for content, everything but publishing still works."""
    peer = connect()
    peer.declare_queue(exclusive=True)
    peer.call("basic.qos-ok", 1, "basic.qos", prefetch_count=1)
    peer.close()
