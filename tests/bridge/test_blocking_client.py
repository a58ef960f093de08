"""The blocking client (ports/client.py) against RabbitMQ and Leveret, on CPython and, where there is a binary, on MicroPython."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from nodes import Leveret, wait_until

import leveret.core
from leveret.ports.client import ChannelClosed, ConnectionLost, NotConfirmed, Timeout, Unroutable, connect
from leveret.ports.url import read_url

SCRIPT = os.path.join(os.path.dirname(__file__), "board_client.py")


@pytest.fixture(params=["rabbitmq", "leveret"])
def broker(request):
    return request.getfixturevalue(request.param)


def run_script(command, environment=None):
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and result.stdout == "done\n", result.stdout + result.stderr


def test_everything_with_small_buffers_on_cpython(broker):
    run_script([sys.executable, SCRIPT, broker.url])


def test_everything_with_small_buffers_on_micropython(broker, tmp_path):
    if shutil.which("micropython") is None:
        pytest.skip("no micropython binary on the PATH: build ports/unix of MicroPython >= 1.24 and put it there")
    root = os.path.dirname(os.path.realpath(list(leveret.core.__path__)[0]))
    (tmp_path / "leveret").mkdir()
    for name in ("core", "ports"):
        (tmp_path / "leveret" / name).symlink_to(os.path.join(root, name))
    run_script(["micropython", "-X", "heapsize=512k", SCRIPT, broker.url], dict(os.environ, MICROPYPATH="%s:.frozen" % tmp_path))


def test_a_long_wait_keeps_the_heartbeats_going(broker):
    client = connect(broker.url, heartbeat_s=1)
    assert client.poll(4500) == []
    assert client.queue_declare(exclusive=True)[1] == 0
    client.close()


def test_a_broker_that_stops_reading_and_answering_is_a_timeout_or_lost(leveret):
    client = connect(leveret.url, timeout_ms=1000)
    leveret.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(Timeout, match="no answer from 127.0.0.1"):
            client.queue_declare("q")
    finally:
        leveret.process.send_signal(signal.SIGCONT)


def test_a_broker_that_dies_is_a_lost_connection_for_every_later_call(leveret):
    client = connect(leveret.url)
    client.publish("", "readings", b"x")
    leveret.kill()
    for ask in (lambda: client.poll(2000), lambda: client.publish("", "q", b""), lambda: client.ack(1), lambda: client.queue_declare("q")):
        with pytest.raises(ConnectionLost):
            ask()
    client.close()


def test_a_broker_that_ends_in_good_order_says_why(leveret):
    client = connect(leveret.url)
    ending = threading.Timer(0.3, lambda: leveret.process.send_signal(signal.SIGTERM))
    ending.start()
    with pytest.raises(ConnectionLost) as caught:
        client.poll(30000)
    ending.join()
    assert caught.value.code == 320 and "CONNECTION_FORCED" in caught.value.text


def test_messages_that_are_not_taken_are_told(rabbitmq):
    client = connect(rabbitmq.url)
    client.queue_declare("full", exclusive=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.publish("", "full", b"1")
    with pytest.raises(NotConfirmed, match="did not take 1 messages"):
        client.publish("", "full", b"2")
    client.publish("", "full", b"3", confirm=False)
    with pytest.raises(NotConfirmed):
        client.poll(30000)
    client.close()


def test_an_error_of_an_unconfirmed_publish_is_raised_by_a_later_call(broker):
    client = connect(broker.url)
    client.publish("nonesuch", "k", b"", confirm=False)
    with pytest.raises(Exception, match="404 NOT_FOUND - no exchange 'nonesuch'"):
        for _ in range(1500):
            client.publish("", "readings", b"", confirm=False)
            time.sleep(0.02)
    client.publish("", "readings", b"")
    client.close()


def test_a_blocked_broker_is_told_and_publishing_waits(rabbitmq):
    client = connect(rabbitmq.url, timeout_ms=1500)
    rabbitmq.control("set_vm_memory_high_watermark", "0")
    try:
        client.publish("", "readings", b"x", confirm=False)
        wait_until(lambda: client.poll(100) or client.blocked_text, 10, "the client is told")
        assert client.blocked_text == "low on memory"
        with pytest.raises(Timeout):
            client.publish("", "readings", b"x")
    finally:
        rabbitmq.control("set_vm_memory_high_watermark", "0.4")
    wait_until(lambda: client.poll(100) or client.blocked_text is None, 10, "the client is told")
    client.publish("", "readings", b"x")
    client.close()


def test_a_consumer_whose_queue_is_deleted_is_told(broker):
    client, other = connect(broker.url), connect(broker.url)
    client.queue_declare("passing")
    tag = client.consume("passing")
    other.queue_delete("passing")
    wait_until(lambda: client.poll(100) or client.cancelled_consumers, 30, "the client is told")
    assert client.cancelled_consumers == [tag]
    client.close()
    other.close()


def test_urls():
    def parts(text):
        url = read_url(text)
        return url.host, url.port, url.user, url.password, url.virtual_host

    assert parts("amqp://") == ("127.0.0.1", 5672, "guest", "guest", "/")
    assert parts("amqp://h:1/") == ("h", 1, "guest", "guest", "/")
    assert parts("amqp://u%40x:p%3a%2F@h/v%2Fw") == ("h", 5672, "u@x", "p:/", "v/w")
    assert parts("amqp://[::1]:7/%C3%A4") == ("::1", 7, "guest", "guest", "\u00e4")
    assert parts("amqps://h") == ("h", 5671, "guest", "guest", "/")
    assert read_url("amqp://h").tls is None and read_url("amqps://h").tls == {"ca": None, "cert": None, "key": None, "name": "h"}
    secure = read_url("amqps://h/?ca=/a%20b.pem&cert=c&key=k&name=broker.example&auth=external")
    assert secure.tls == {"ca": "/a b.pem", "cert": "c", "key": "k", "name": "broker.example"} and secure.external
    for url in (
        "http://h/",
        "amqp://h:x/",
        "amqp://u:%zz@h/",
        "amqp://h:0/",
        "amqp://h:70000",
        "amqp://h/?ca=x",
        "amqps://h/?verify=no",
        "amqps://h/?cert=x",
        "amqps://h/?auth=external",
        "amqps://h/?cert=a&key=b&auth=plain",
    ):
        with pytest.raises(ValueError):
            read_url(url)


@pytest.mark.parametrize("protocol", ["0-8", "0-9"])
def test_publishes_of_older_versions_are_in_their_queue_when_publish_returns(broker, protocol):
    client = connect(broker.url + "?protocol=" + protocol)
    queue = client.queue_declare(exclusive=True)[0]
    client.publish("", queue, b"kept")
    client.publish("", queue, b"not yet", confirm=False)
    assert client.unconfirmed == 1 and client.queue_declare(queue, passive=True)[1] == 1
    with pytest.raises(Unroutable, match="312"):
        client.publish("", "no such queue", b"back", mandatory=True)
    assert client.unconfirmed == 0 and client.queue_declare(queue, passive=True)[1] == 2
    with pytest.raises(ChannelClosed, match="404"):
        client.publish("no such exchange", "", b"void")
    client.publish("", queue, b"after")
    bodies = []
    client.consume(queue)
    while len(bodies) < 3:
        bodies += [message.body for message in client.poll(5000)]
    assert bodies == [b"kept", b"not yet", b"after"]
    with pytest.raises(ValueError, match="has no confirm.select"):
        client.confirm_select()
    client.close()


@pytest.mark.parametrize("draft", ["0.9a5", "0.9r1"])
def test_the_drafts_of_2005(draft):
    broker = Leveret(draft)
    try:
        client = connect(broker.url + "?protocol=" + draft)
        queue = client.queue_declare("readings")[0]
        client.exchange_declare("x", "topic")
        client.queue_bind(queue, "x", "a.*")
        client.publish("x", "a.b", b"kept", {"headers": {"n": 1}, "delivery_mode": 2})
        client.publish("x", "a.c", bytes(300000), confirm=False)
        assert client.queue_declare(queue, passive=True)[1:] == (1, 0)
        client.wait_confirmed()
        message = client.get(queue)
        assert (message.body, message.routing_key, message.properties["headers"]) == (b"kept", "a.b", {"n": 1})
        with pytest.raises(ValueError, match="has no basic.nack"):
            client.nack(message)
        client.ack(message)
        client.qos(1)
        client.consume(queue)
        (message,) = client.poll(5000)
        assert message.body == bytes(300000)
        client.ack(message)
        if draft == "0.9r1":
            with pytest.raises(Unroutable, match="310"):
                client.publish("", "no such queue", b"back", mandatory=True)
        with pytest.raises(ChannelClosed, match="404"):
            client.publish("no such exchange", "", b"void")
        client.close()
    finally:
        broker.stop()
