"""A broker whose places are all taken: by peers that never log in, with and without TLS, and by those who have (core/SPEC.md, "Access").

Leveret's own: RabbitMQ has no such limits but those of its host.
"""

import socket
import ssl

import amqp
import pika
import pika.exceptions
import pytest
from amqp_wire import PROTOCOL_HEADER, RawClient
from broker_process import BrokerProcess
from certificates import Authority
from conftest import KIND

PLACES = 12
SURPLUS = 4

pytestmark = pytest.mark.skipif(KIND != "leveret", reason="Leveret's own")


@pytest.fixture
def small(tmp_path):
    """A broker of PLACES connections, with TLS on a second port; it must be there at the end, without a traceback."""
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", "/CN=localhost")
    path = tmp_path / "leveret.toml"
    path.write_text("[limits]\nconnection_count_max = %d\nsurplus_count_max = %d\nlogin_timeout_ms = 60000\n" % (PLACES, SURPLUS))
    process = BrokerProcess(
        "leveret", arguments=("--config", str(path), "--listen", "amqps://127.0.0.1:0?cert=%s&key=%s" % (certificate, key))
    )
    process.tls_port = int(process.process.stdout.readline().decode().strip().rsplit(":", 1)[1])
    process.authority = authority
    try:
        yield process
        assert process.alive() and "Traceback" not in process.error_text(), process.error_text()
    finally:
        process.stop()


def logged_in(process):
    return pika.BlockingConnection(pika.URLParameters(process.url + "?heartbeat=0&socket_timeout=60"))


def hello(authority):
    """The first octets of a TLS handshake."""
    outgoing = ssl.MemoryBIO()
    peer = ssl.create_default_context(cafile=authority.certificate).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        peer.do_handshake()
    return outgoing.read()


def test_peers_that_never_log_in_keep_nobody_out_and_disturb_nobody(small):
    """Silent ones, such that say only the header, and TLS handshakes that never end, many more than there are places."""
    worker = logged_in(small)
    channel = worker.channel()
    channel.queue_declare("q")
    started = hello(small.authority)
    silent = []
    for number in range(3 * PLACES):
        port = (small.port, small.tls_port)[number % 2]
        peer = socket.create_connection((small.host, port), 60)
        peer.sendall((b"", b"", PROTOCOL_HEADER, started[:-1], PROTOCOL_HEADER[:3], started)[number % 6])
        silent.append(peer)
        if number % 4 == 3:
            channel.basic_publish("", "q", b"%d" % number)
            assert channel.basic_get("q", auto_ack=True)[2] == b"%d" % number
    guests = [logged_in(small) for _ in range(PLACES - 1)]
    for guest in guests:
        assert guest.channel().queue_declare("q", passive=True).method.message_count == 0
    for peer in silent:
        peer.settimeout(60)
        try:
            while peer.recv(65536):
                pass
        except ConnectionError:
            pass  # it was closed with octets of it unread
    for guest in guests + [worker]:
        guest.close()


def test_one_connection_too_many_is_told_so_in_its_clients_words_and_bounded(small):
    guests = [logged_in(small) for _ in range(PLACES)]
    words = r"\(506\).*this broker holds %d connections at most \(connection_count_max\)" % PLACES
    with pytest.raises(pika.exceptions.AMQPConnectionError, match=words):
        logged_in(small)
    with pytest.raises(amqp.ResourceError, match="this broker holds %d connections at most" % PLACES):
        amqp.Connection("%s:%d" % (small.host, small.port), connect_timeout=60).connect()
    waiting = [socket.create_connection((small.host, small.port), 60) for _ in range(SURPLUS + 6)]
    for peer in waiting[:6]:
        peer.settimeout(60)
        try:
            assert peer.recv(1) == b"", "the oldest of them give way"
        except ConnectionError:
            pass
    with RawClient(small.host, small.port) as peer:
        assert peer.log_in().name == "connection.close"
    guests.pop().close()
    logged_in(small).close()
    for guest in guests:
        assert guest.is_open
        guest.channel().queue_declare("", exclusive=True)
        guest.close()
