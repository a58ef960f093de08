"""TLS that a peer turns on by the TLS header (part 5, section 5.2), with Python's ssl: on `amqp://` listeners with a certificate, beside
peers without TLS, and on `amqps://` listeners, beside those that begin with TLS."""

import os
import socket
import ssl
import sys
import time

import brought
import pika
import pytest

sys.path.append(os.path.join(os.path.dirname(brought.HERE), "interop"))

from broker_process import BrokerProcess
from certificates import Authority

from leveret.core.amqp_1_0 import composites, frame
from leveret.core.amqp_1_0.spec_1_0 import HEADER_AMQP, HEADER_SASL, HEADER_TLS

WAIT_S = 10
BODY = os.urandom(300000)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """`mixed_port`: amqp:// with a certificate; `secure_port`: amqps://; `port` has none."""
    authority = Authority(tmp_path_factory.mktemp("tls"))
    certificate, key = authority.issue("server", "/CN=localhost")
    query = "?cert=%s&key=%s&ca=%s" % (certificate, key, authority.certificate)
    process = BrokerProcess("leveret", arguments=("--listen", "amqp://127.0.0.1:0" + query, "--listen", "amqps://127.0.0.1:0" + query))
    try:
        lines = [process.process.stdout.readline().decode().strip() for _ in range(2)]
        assert lines[0].startswith("ready amqp://") and lines[1].startswith("ready amqps://"), lines
        process.mixed_port, process.secure_port = (int(line.rsplit(":", 1)[1]) for line in lines)
        process.context = ssl.create_default_context(cafile=authority.certificate)
        process.context.load_cert_chain(*authority.issue("client", "/CN=guest"))
        yield process
        assert process.alive() and "Traceback" not in process.error_text(), process.error_text()
    finally:
        process.stop()


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)


def exactly(stream, size):
    octets = b""
    while len(octets) < size:
        more = stream.recv(size - len(octets))
        if not more:
            raise EOFError("the broker has closed behind %r" % octets)
        octets += more
    return octets


def one_frame(stream):
    """(name, fields) of the next frame."""
    octets = exactly(stream, 4)
    octets += exactly(stream, int.from_bytes(octets, "big") - 4)
    _, _, at, end = frame.read(octets, 0, len(octets), 1 << 20)
    name, fields, _ = composites.read(octets, at, end)
    return name, fields


def log_in(stream, mechanism="PLAIN", response=b"\0guest\0guest"):
    """The layers behind TLS, each with its own header; the names of the mechanisms."""
    stream.sendall(HEADER_SASL)
    assert exactly(stream, 8) == HEADER_SASL
    name, fields = one_frame(stream)
    assert name == "sasl-mechanisms"
    stream.sendall(frame.write(frame.SASL, 0, composites.write("sasl-init", {"mechanism": mechanism, "initial-response": response})))
    assert one_frame(stream)[1]["code"] == 0
    stream.sendall(HEADER_AMQP + frame.write(frame.AMQP, 0, composites.write("open", {"container-id": "tls"})))
    assert exactly(stream, 8) == HEADER_AMQP and one_frame(stream)[0] == "open"
    return fields["sasl-server-mechanisms"]


def test_the_header_is_answered_then_comes_tls_then_a_new_header(broker):
    for port in (broker.mixed_port, broker.secure_port):
        for step in (8, 1):
            raw = connected(port)
            for at in range(0, 8, step):
                raw.sendall(HEADER_TLS[at : at + step])
                time.sleep(0.02 if step == 1 else 0)
            assert exactly(raw, 8) == HEADER_TLS
            with broker.context.wrap_socket(raw, server_hostname="localhost") as stream:
                assert "EXTERNAL" in [str(name) for name in log_in(stream)]


def test_the_certificate_behind_the_header_is_a_log_in(broker):
    raw = connected(broker.mixed_port)
    raw.sendall(HEADER_TLS)
    assert exactly(raw, 8) == HEADER_TLS
    with broker.context.wrap_socket(raw, server_hostname="localhost") as stream:
        log_in(stream, "EXTERNAL", b"")


def test_other_peers_of_such_listeners_are_served_as_before(broker):
    """0-9-1 and 1.0 without TLS on amqp://, with large bodies both ways; TLS from the first octet on amqps://."""
    options = pika.SSLOptions(broker.context, "localhost")
    for port, more in ((broker.mixed_port, {}), (broker.secure_port, {"ssl_options": options})):
        with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, **more)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            queue = channel.queue_declare("", exclusive=True).method.queue
            for _ in range(20):
                channel.basic_publish("", queue, BODY)
            for _ in range(20):
                assert channel.basic_get(queue, auto_ack=True)[2] == BODY
    with connected(broker.mixed_port) as raw:
        log_in(raw)


def test_who_may_not_go_on_is_told(broker):
    """Section 5.2, part 2 section 2.2: without a certificate the header is answered with what is served; amqps:// wants TLS; the
    handshake must follow the header."""
    with connected(broker.port) as raw:
        raw.sendall(HEADER_TLS)
        assert exactly(raw, 8) == HEADER_SASL and raw.recv(1) == b""
    assert "asks for TLS by its header, and this listener has no certificate" in broker.error_text()
    with connected(broker.secure_port) as raw:
        raw.sendall(HEADER_SASL)
        assert exactly(raw, 8) == HEADER_TLS and raw.recv(1) == b""
    with connected(broker.mixed_port) as raw:
        raw.sendall(HEADER_TLS + HEADER_SASL)
        assert exactly(raw, 8) == HEADER_TLS
        try:
            while raw.recv(100):
                pass
        except ConnectionError:
            pass
    for port in (broker.mixed_port, broker.secure_port):  # a second TLS within TLS is none
        raw = connected(port)
        raw.sendall(HEADER_TLS)
        exactly(raw, 8)
        with broker.context.wrap_socket(raw, server_hostname="localhost") as stream:
            stream.sendall(HEADER_TLS)
            assert exactly(stream, 8) == HEADER_SASL


def test_half_a_header_costs_the_broker_nothing(broker):
    """It waits, without being looked at again and again, and loses its place by login_timeout_ms."""

    def used():
        with open("/proc/%d/stat" % broker.process.pid) as file:
            return sum(int(each) for each in file.read().rsplit(")", 1)[1].split()[11:13])

    with connected(broker.mixed_port) as one, connected(broker.secure_port) as two:
        one.sendall(HEADER_TLS[:5])
        two.sendall(HEADER_TLS[:1])
        before = used()
        time.sleep(1)
        assert used() - before < 20  # hundredths of a second
