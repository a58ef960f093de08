"""TLS as its users meet it: messages both ways, certificates as users, peers that stall or speak something else, certificates read anew.

Certificates run against RabbitMQ too, with the same users; the rest is Leveret's own.
"""

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import time

import pika
import pika.exceptions
import pytest
from access_brokers import RIGHTS, rabbit_hash, started
from amqp_wire import PROTOCOL_HEADER, RawClient
from broker_process import free_port
from certificates import Authority
from conftest import KIND

CLIENT_SUBJECT = "/O=Test, Inc./OU=sensors/CN=client"
CLIENT_NAME = "CN=client,OU=sensors,O=Test\\, Inc."

leveret_only = pytest.mark.skipif(KIND != "leveret", reason="Leveret's own")

TLS_HEADER = b"AMQP\x02\x01\x00\x00"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority(tmp_path_factory.mktemp("authority"))
    made.server = made.issue("server", "/CN=localhost")
    made.client = made.issue("client", CLIENT_SUBJECT)
    made.common = made.issue("common", "/O=elsewhere/CN=common")
    made.nobody = made.issue("nobody", "/CN=nobody")
    return made


def trusting(authority, identity=None):
    """A client's context."""
    context = ssl.create_default_context(cafile=authority.certificate)
    if identity is not None:
        context.load_cert_chain(*identity)
    return context


@contextlib.contextmanager
def with_tls(directory, authority, more="", settings="", certificate=None):
    """A broker with a second listener, with TLS: its `tls_port`. Clients are asked for certificates; `settings`: more of the listener."""
    users = {"root": (rabbit_hash("root"), RIGHTS["root"]), CLIENT_NAME: (None, RIGHTS["root"])}
    if KIND == "leveret":
        users["common"] = (None, RIGHTS["root"])
    certificate, key = certificate or authority.server
    url = "amqps://127.0.0.1:0?cert=%s&key=%s&ca=%s%s" % (certificate, key, authority.certificate, settings)
    port = free_port()
    configuration = (
        "\n".join(
            (
                "listeners.ssl.default = 127.0.0.1:%d" % port,
                "ssl_options.cacertfile = " + authority.certificate,
                "ssl_options.certfile = " + certificate,
                "ssl_options.keyfile = " + key,
                "ssl_options.verify = verify_peer",
                "ssl_options.fail_if_no_peer_cert = %s" % ("true" if settings else "false"),
                "auth_mechanisms.1 = EXTERNAL",
                "auth_mechanisms.2 = PLAIN",
            )
        )
        + "\n"
    )
    with started(directory, users, more, ("--listen", url), configuration, "rabbitmq_auth_mechanism_ssl") as process:
        if KIND == "leveret":
            line = process.process.stdout.readline().decode().strip()
            assert line.startswith("ready amqps://127.0.0.1:"), line
            port = int(line.rsplit(":", 1)[1])
        process.tls_port = port
        yield process


def over_tls(process, context, credentials=None):
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            "127.0.0.1",
            process.tls_port,
            ssl_options=pika.SSLOptions(context, "localhost"),
            heartbeat=0,
            socket_timeout=60,
            credentials=credentials or pika.PlainCredentials("root", "root"),
            blocked_connection_timeout=20,
        )
    )


@pytest.fixture(scope="module")
def secured(tmp_path_factory, authority):
    with with_tls(tmp_path_factory.mktemp("secured"), authority) as process:
        yield process


def test_tls_carries_messages_of_every_size_both_ways(secured, authority):
    connection = over_tls(secured, trusting(authority))
    channel = connection.channel()
    channel.confirm_delivery()
    queue = channel.queue_declare("", exclusive=True).method.queue
    bodies = [os.urandom(size) for size in (0, 1, 100, 16383, 16384, 16385, 65536, 131072, 3000000)]
    bodies += [b"%d" % number for number in range(300)]
    for body in bodies:
        channel.basic_publish("", queue, body)
    channel.basic_qos(prefetch_count=50)
    got = []
    for frame, _, body in channel.consume(queue, inactivity_timeout=120):
        assert frame is not None, "%d of %d came" % (len(got), len(bodies))
        got.append(body)
        channel.basic_ack(frame.delivery_tag)
        if len(got) == len(bodies):
            break
    assert got == bodies
    connection.close()


def test_a_client_that_asks_for_much_and_reads_late_gets_it_all(secured, authority):
    """More is under way than all buffers on the way hold, so the broker's TLS has to wait for the socket again and again."""
    connection = over_tls(secured, trusting(authority))
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    body = os.urandom(1000000)
    for _ in range(8):
        channel.basic_publish("", queue, body)
    got = []
    channel.basic_consume(queue, lambda *given: got.append(given[3]), auto_ack=True)
    time.sleep(1)
    limit = time.monotonic() + 60
    while len(got) < 8 and time.monotonic() < limit:
        connection.process_data_events(1)
    assert got == [body] * 8
    connection.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_certificate_is_a_user_by_its_distinguished_name(secured, authority, version):
    context = trusting(authority, authority.client)
    context.minimum_version = context.maximum_version = version
    connection = over_tls(secured, context, pika.credentials.ExternalCredentials())
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.basic_publish("", queue, b"x", pika.BasicProperties(user_id=CLIENT_NAME))
    assert channel.basic_get(queue, auto_ack=True)[2] == b"x"
    connection.close()


@leveret_only
def test_a_certificate_is_a_user_by_its_common_name_too(secured, authority):
    over_tls(secured, trusting(authority, authority.common), pika.credentials.ExternalCredentials()).close()


def test_external_wants_a_certificate_that_names_a_user(secured, authority):
    for identity in (None, authority.nobody):
        with pytest.raises((pika.exceptions.AMQPConnectionError, pika.exceptions.StreamLostError)):
            over_tls(secured, trusting(authority, identity), pika.credentials.ExternalCredentials())


def test_external_without_tls_is_not_offered(secured):
    with RawClient(secured.host, secured.port) as peer:
        mechanisms = peer.start()["mechanisms"].split()
        assert b"PLAIN" in mechanisms and (KIND == "rabbitmq" or b"EXTERNAL" not in mechanisms)


def test_a_certificate_of_another_authority_is_refused(secured, authority, tmp_path):
    stranger = Authority(tmp_path, "authority").issue("client", CLIENT_SUBJECT)
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        over_tls(secured, trusting(authority, stranger), pika.credentials.ExternalCredentials())
    over_tls(secured, trusting(authority)).close()


def test_where_certificates_are_required_nobody_gets_in_without_one(tmp_path, authority):
    with with_tls(tmp_path, authority, settings="&verify=peer") as process:
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            over_tls(process, trusting(authority))
        over_tls(process, trusting(authority, authority.client), pika.credentials.ExternalCredentials()).close()
        over_tls(process, trusting(authority, authority.client)).close()
        if KIND == "leveret":
            assert "the TLS handshake of 127.0.0.1:" in process.error_text() and "did not return a certificate" in process.error_text()


def test_plain_octets_on_the_tls_port_and_tls_on_the_plain_one_harm_nobody(secured, authority):
    for octets in (PROTOCOL_HEADER, b"\x16\x03\x01\xff\xff" + os.urandom(200), b"\x80" * 300, b"GET / HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", secured.tls_port), 10) as peer:
            peer.sendall(octets)
            with contextlib.suppress(OSError):  # it may be closed already
                peer.shutdown(socket.SHUT_WR)
                answer = peer.recv(1000)
                # a header without TLS is answered with the one that is served here (AMQP 1.0, section 2.2), all else with TLS's alert
                assert answer in (TLS_HEADER, b"") if octets == PROTOCOL_HEADER else b"AMQP" not in answer
    with socket.create_connection(("127.0.0.1", secured.port), 10) as peer, pytest.raises((ssl.SSLError, ConnectionError)):
        trusting(authority).wrap_socket(peer, server_hostname="localhost")
    over_tls(secured, trusting(authority)).close()


def certificate_of(process, authority):
    """The certificate that the broker shows, in binary."""
    with socket.create_connection(("127.0.0.1", process.tls_port), 10) as peer:
        with trusting(authority).wrap_socket(peer, server_hostname="localhost") as wrapped:
            return wrapped.getpeercert(True)


@leveret_only
def test_a_peer_that_stalls_in_the_handshake_holds_its_place_until_the_time_out_and_slows_nobody(tmp_path, authority):
    limits = "[limits]\nlogin_timeout_ms = 5000\n"
    with with_tls(tmp_path, authority, limits) as process:
        stalled = [socket.create_connection(("127.0.0.1", process.tls_port), 10) for _ in range(30)]
        outgoing = ssl.MemoryBIO()
        hello = trusting(authority).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            hello.do_handshake()
        octets = outgoing.read()
        for number, peer in enumerate(stalled):
            peer.sendall((b"", octets[:1], octets[:-1], octets)[number % 4])
        began = time.monotonic()
        over_tls(process, trusting(authority)).close()
        assert time.monotonic() - began < 5
        for peer in stalled:
            with contextlib.suppress(ConnectionError):
                while peer.recv(65536):
                    pass
        assert 4 < time.monotonic() - began < 20
        assert process.error_text().count("refused") == 0, process.error_text()


@leveret_only
def test_certificates_are_read_anew_on_sighup_and_connections_stay(tmp_path, authority):
    certificate, key = authority.issue("reloaded", "/CN=localhost")
    with with_tls(tmp_path, authority, certificate=(certificate, key)) as process:
        connection = over_tls(process, trusting(authority))
        before = certificate_of(process, authority)
        authority.issue("reloaded", "/CN=localhost")
        assert certificate_of(process, authority) == before
        process.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "is used from now on" in process.error_text())
        after = certificate_of(process, authority)
        assert after != before
        with open(certificate, "w", encoding="ascii") as file:
            file.write("this is no certificate\n")
        process.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "the certificates stay as they are: " in process.error_text())
        assert certificate_of(process, authority) == after
        os.unlink(key)
        process.process.send_signal(signal.SIGHUP)
        wait_for(lambda: process.error_text().count("the certificates stay as they are: ") == 2)
        assert "cannot be read: No such file" in process.error_text()
        assert certificate_of(process, authority) == after
        connection.channel().queue_declare("", exclusive=True)
        connection.close()


def wait_for(condition, seconds=30):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


@leveret_only
@pytest.mark.parametrize(
    "query, status, words",
    [
        ("cert=%(cert)s&key=%(other)s", 1, "are not a certificate and its key"),
        ("cert=/nowhere.pem&key=%(key)s", 1, "/nowhere.pem cannot be read"),
        ("cert=%(key)s&key=%(key)s", 1, "are not a certificate and its key"),
        ("cert=%(cert)s&key=%(key)s&ca=%(key)s", 1, "holds no certificate of an authority"),
        ("cert=%(cert)s", 2, "names no key"),
        ("", 2, "names no cert"),
        ("cert=%(cert)s&key=%(key)s&verify=peer", 2, "needs ca"),
        ("cert=%(cert)s&key=%(key)s&ca=%(ca)s&verify=none", 2, "can only be peer"),
        ("cert=%(cert)s&key=%(key)s&x=1", 2, "no setting 'x'"),
    ],
)
def test_a_listener_with_tls_that_cannot_be_is_one_sentence(authority, query, status, words):
    named = {"cert": authority.server[0], "key": authority.server[1], "other": authority.client[1], "ca": authority.certificate}
    command = [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", "amqps://127.0.0.1:0?" + query % named]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == status and words in done.stderr and done.stderr.count("\n") == 1, done.stderr
