"""Who gets in and what each may do: permissions in RabbitMQ's words, TLS, certificates as users, SCRAM, and what keeps guessers slow.

The permissions and certificates run against RabbitMQ too, with the same users; the rest is Leveret's own.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import pika
import pika.exceptions
import pytest
from amqp_wire import PROTOCOL_HEADER, Closed, RawClient, method
from broker_process import BrokerProcess, free_port
from certificates import Authority
from conftest import KIND

RIGHTS = {"root": (".*", ".*", ".*"), "limited": ("^c", "^(w|amq\\.default)", "^r"), "mute": ("", "", ""), "outsider": None}
CLIENT_SUBJECT = "/O=Test, Inc./OU=sensors/CN=client"
CLIENT_NAME = "CN=client,OU=sensors,O=Test\\, Inc."

leveret_only = pytest.mark.skipif(KIND != "leveret", reason="Leveret's own")


def rabbit_hash(password):
    salt = os.urandom(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def toml(users, more=""):
    """Leveret's configuration with these users: {name: (password hash or None, permissions or None)}."""
    text = more
    for name, (stored, rights) in users.items():
        text += "\n[[user]]\nname = %s\n" % json.dumps(name)
        if stored is not None:
            text += "password_hash = %s\n" % json.dumps(stored)
        if rights is not None:
            text += "".join("%s = %s\n" % (key, json.dumps(value)) for key, value in zip(("configure", "write", "read"), rights))
    return text


def definitions(users):
    """The same for RabbitMQ."""
    return {
        "vhosts": [{"name": "/"}],
        "users": [
            {"name": name, "password_hash": stored or "", "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""}
            for name, (stored, _) in users.items()
        ],
        "permissions": [
            {"user": name, "vhost": "/", "configure": rights[0], "write": rights[1], "read": rights[2]}
            for name, (_, rights) in users.items()
            if rights is not None
        ],
    }


@contextlib.contextmanager
def started(directory, users, more="", arguments=(), configuration="", plugins=""):
    """A broker of the kind under test, with users. It must end well and write no traceback."""
    path = directory / "leveret.toml"
    path.write_text(toml(users, more))
    listed = directory / "definitions.json"
    listed.write_text(json.dumps(definitions(users)))
    process = BrokerProcess(
        KIND,
        arguments=("--config", str(path), *arguments),
        configuration="load_definitions = %s\n%s" % (listed, configuration),
        plugins=plugins,
    )
    try:
        yield process
        assert process.alive(), process.error_text()
        assert "Traceback" not in process.error_text(), process.error_text()
    finally:
        process.stop()


def parameters(process, user, password=None, **more):
    return pika.ConnectionParameters(
        process.host,
        process.port,
        credentials=pika.PlainCredentials(user, password or user),
        heartbeat=0,
        socket_timeout=60,
        blocked_connection_timeout=60,
        **more,
    )


@contextlib.contextmanager
def connected(process, user, **more):
    connection = pika.BlockingConnection(parameters(process, user, **more))
    try:
        yield connection
    finally:
        if connection.is_open:
            connection.close()


# Permissions


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    users = {name: (rabbit_hash(name), rights) for name, rights in RIGHTS.items()}
    with started(tmp_path_factory.mktemp("guarded"), users) as process:
        with connected(process, "root") as connection:
            channel = connection.channel()
            for name in ("c", "w", "r", "x"):
                channel.exchange_declare(name, "topic")
                channel.queue_declare(name)
        yield process


def refused(process, user, action):
    """The text of the 403 that `action(channel)` meets, "" when it is taken."""
    with connected(process, user) as connection:
        channel = connection.channel()
        try:
            action(channel)
            channel.queue_declare("r", passive=True)  # what has no answer has been looked at when this has
        except pika.exceptions.ChannelClosedByBroker as error:
            assert error.reply_code == 403, error
            return error.reply_text
    return ""


def denied(kind, name, user="limited"):
    return "ACCESS_REFUSED - access to %s '%s' in vhost '/' refused for user '%s'" % (kind, name, user)


TAKEN = {
    "declare-exchange": lambda channel: channel.exchange_declare("c1", "direct"),
    "declare-exchange-passive": lambda channel: channel.exchange_declare("x", "topic", passive=True),
    "delete-exchange": lambda channel: channel.exchange_delete("c1"),
    "declare-queue": lambda channel: channel.queue_declare("c1"),
    "declare-queue-passive": lambda channel: channel.queue_declare("x", passive=True),
    "delete-queue": lambda channel: channel.queue_delete("c1"),
    "bind": lambda channel: channel.queue_bind("w", "r", "k"),
    "unbind": lambda channel: channel.queue_unbind("w", "r", "k"),
    "bind-exchanges": lambda channel: channel.exchange_bind("w", "r", "k"),
    "unbind-exchanges": lambda channel: channel.exchange_unbind("w", "r", "k"),
    "publish": lambda channel: channel.basic_publish("w", "k", b"x"),
    "publish-default": lambda channel: channel.basic_publish("", "x", b"x"),
    "get": lambda channel: channel.basic_get("r", auto_ack=True),
    "consume": lambda channel: channel.basic_consume("r", lambda *_: None, auto_ack=True),
    "purge": lambda channel: channel.queue_purge("r"),
}

DENIED = {
    "declare-exchange": (lambda channel: channel.exchange_declare("x1", "direct"), denied("exchange", "x1")),
    "declare-exchange-that-is-there": (lambda channel: channel.exchange_declare("x", "topic"), denied("exchange", "x")),
    "alternate-read": (
        lambda channel: channel.exchange_declare("c2", "direct", arguments={"alternate-exchange": "w"}),
        denied("exchange", "c2"),
    ),
    "delete-exchange": (lambda channel: channel.exchange_delete("x"), denied("exchange", "x")),
    "delete-exchange-that-is-not-there": (lambda channel: channel.exchange_delete("nope"), denied("exchange", "nope")),
    "declare-queue": (lambda channel: channel.queue_declare("x1"), denied("queue", "x1")),
    "dead-letter-read": (lambda channel: channel.queue_declare("c2", arguments={"x-dead-letter-exchange": "w"}), denied("queue", "c2")),
    "delete-queue": (lambda channel: channel.queue_delete("x"), denied("queue", "x")),
    "delete-queue-that-is-not-there": (lambda channel: channel.queue_delete("nope"), denied("queue", "nope")),
    "bind-queue": (lambda channel: channel.queue_bind("x", "r", "k"), denied("queue", "x")),
    "bind-exchange": (lambda channel: channel.queue_bind("w", "x", "k"), denied("exchange", "x")),
    "unbind-queue": (lambda channel: channel.queue_unbind("x", "r", "k"), denied("queue", "x")),
    "unbind-exchange": (lambda channel: channel.queue_unbind("w", "x", "k"), denied("exchange", "x")),
    "bind-destination": (lambda channel: channel.exchange_bind("x", "r", "k"), denied("exchange", "x")),
    "bind-source": (lambda channel: channel.exchange_bind("w", "x", "k"), denied("exchange", "x")),
    "publish": (lambda channel: channel.basic_publish("x", "k", b"x"), denied("exchange", "x")),
    "publish-nowhere": (lambda channel: channel.basic_publish("nope", "k", b"x"), denied("exchange", "nope")),
    "get": (lambda channel: channel.basic_get("x"), denied("queue", "x")),
    "consume": (lambda channel: channel.basic_consume("x", lambda *_: None), denied("queue", "x")),
    "purge": (lambda channel: channel.queue_purge("x"), denied("queue", "x")),
}


@pytest.mark.parametrize("action", TAKEN)
def test_what_a_user_may_is_done(guarded, action):
    assert refused(guarded, "limited", TAKEN[action]) == ""


@pytest.mark.parametrize("case", DENIED)
def test_what_a_user_may_not_closes_the_channel_in_rabbitmqs_words(guarded, case):
    action, text = DENIED[case]
    assert refused(guarded, "limited", action) == text


def test_who_may_nothing_still_gets_in(guarded):
    assert refused(guarded, "mute", lambda channel: None) == ""
    assert refused(guarded, "mute", lambda channel: channel.basic_publish("", "x", b"")) == denied("exchange", "amq.default", "mute")
    told = refused(guarded, "mute", lambda channel: channel.queue_declare("", exclusive=True))
    assert told.startswith("ACCESS_REFUSED - access to queue 'amq.gen-"), told


def test_a_user_without_permissions_has_no_way_into_the_virtual_host(guarded):
    with RawClient(guarded.host, guarded.port) as peer:
        tune = peer.log_in("outsider", "outsider")
        peer.send(method(0, "connection.tune-ok", channel_max=tune["channel_max"], frame_max=tune["frame_max"], heartbeat=0))
        peer.send(method(0, "connection.open", virtual_host="/"))
        peer.expect_connection_close(530, "NOT_ALLOWED - access to vhost '/' refused for user 'outsider'")


def test_update_secret_is_answered(guarded):
    with RawClient(guarded.host, guarded.port) as peer:
        peer.open(user="root", password="root")
        peer.call("connection.update-secret-ok", 0, "connection.update-secret", new_secret="new", reason="because")
        peer.declare_queue("c3")


# Log-ins that fail


def wrong(process, source=None, user="root", capabilities=None):
    """One wrong password from an address of this machine: (frame or None, seconds)."""
    began = time.monotonic()
    with RawClient(process.host, process.port) as peer:
        if source is not None:
            peer.socket.close()
            peer.socket = socket.create_connection((process.host, process.port), 10, (source, 0))
        try:
            return peer.log_in(user, "wrong", capabilities), time.monotonic() - began
        except Closed:
            return None, time.monotonic() - began


@leveret_only
def test_a_wrong_password_is_answered_after_a_pause_that_slows_nobody_else(guarded):
    with connected(guarded, "root") as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        found = []
        guessers = [threading.Thread(target=lambda: found.append(wrong(guarded, "127.0.0.9"))) for _ in range(20)]
        for guesser in guessers:
            guesser.start()
        times = []
        while any(guesser.is_alive() for guesser in guessers):
            began = time.monotonic()
            channel.basic_publish("", queue, b"x")
            assert channel.basic_get(queue, auto_ack=True)[2] == b"x"
            times.append(time.monotonic() - began)
    # A broker that waits would make nearly every round trip as long as the pause; the slowest tenth is the machine's other work.
    times.sort()
    assert times[len(times) * 9 // 10] < 0.1, times
    assert len(found) == 20
    for frame, seconds in found:
        assert frame["reply_code"] == 403 and frame["reply_text"].startswith("ACCESS_REFUSED - Login was refused"), frame
        assert seconds >= 0.5, seconds


@leveret_only
def test_an_address_that_keeps_failing_is_refused_for_a_while_and_the_others_are_not(tmp_path):
    users = {"root": (rabbit_hash("root"), RIGHTS["root"])}
    limits = "[limits]\nlogin_failure_max = 4\nlogin_refusal_ms = 3000\nlogin_pause_ms = 100\n"
    with started(tmp_path, users, limits) as process:
        for _ in range(4):
            assert wrong(process, "127.0.0.2")[0]["reply_code"] == 403
        refused = [wrong(process, "127.0.0.2") for _ in range(5)]
        assert [frame for frame, _ in refused] == [None] * 5 and min(seconds for _, seconds in refused) < 0.1, refused
        with connected(process, "root") as connection:
            assert connection.is_open
        assert wrong(process, "127.0.0.3")[0]["reply_code"] == 403
        limit = time.monotonic() + 30
        while (answer := wrong(process, "127.0.0.2")[0]) is None:
            assert time.monotonic() < limit, "it is refused for ever"
            time.sleep(0.1)
        assert answer["reply_code"] == 403
        told = process.error_text()
    assert "4 log-ins from 127.0.0.2 have failed: it is refused for 3 s" in told, told
    assert told.count("the log-in of 'root' from 127.0.0.2:") == 5 and "PLAIN" in told and "the password is wrong" in told, told
    assert "wrong" not in told.replace("the password is wrong", ""), "a password in the log"


# SCRAM, and hashes of Leveret's own


def scram(peer, user, password):
    """A SCRAM log-in by a client written from RFC 5802: the frame after its final message."""
    bare = "n=%s,r=%s" % (user, base64.b64encode(os.urandom(18)).decode())
    challenge = peer.log_in(mechanism="SCRAM-SHA-256", response="n,," + bare)
    assert challenge.name == "connection.secure", challenge
    first = challenge["challenge"].decode()
    fields = dict(part.split("=", 1) for part in first.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    client = hmac.digest(salted, b"Client Key", "sha256")
    without = "c=biws,r=" + fields["r"]
    message = ",".join((bare, first, without)).encode()
    signature = hmac.digest(hashlib.sha256(client).digest(), message, "sha256")
    proof = base64.b64encode(bytes(left ^ right for left, right in zip(client, signature))).decode()
    peer.send(method(0, "connection.secure-ok", response=without + ",p=" + proof))
    last = peer.read_frame()
    if last.name == "connection.secure":
        server = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), message, "sha256")
        assert last["challenge"] == b"v=" + base64.b64encode(server)
        peer.send(method(0, "connection.secure-ok", response=""))
        last = peer.read_frame()
    return last, int(fields["i"])


def made_hash(password, *arguments):
    """What `leveret password` prints."""
    command = [sys.executable, "-m", "leveret.tools.cli", "password", *arguments]
    return subprocess.run(command, input=password + "\n", capture_output=True, text=True, check=True).stdout.strip()


@leveret_only
def test_scram_and_plain_with_the_hash_that_the_password_command_makes(tmp_path):
    users = {"s": (made_hash("gr\u00fcn", "--rounds", "5000"), RIGHTS["root"]), "r": (rabbit_hash("r"), RIGHTS["root"])}
    with started(tmp_path, users) as process:
        with RawClient(process.host, process.port) as peer:
            last, rounds = scram(peer, "s", "gr\u00fcn")
            assert last.name == "connection.tune" and rounds == 5000
        for user, password in (("s", "grun"), ("nobody", "x"), ("r", "r")):
            with RawClient(process.host, process.port) as peer:
                last, _ = scram(peer, user, password)
                assert last["reply_code"] == 403 and "SCRAM-SHA-256" in last["reply_text"]
        with connected(process, "s", password="gr\u00fcn") as connection:
            assert connection.is_open
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            pika.BlockingConnection(parameters(process, "guest"))


@leveret_only
def test_anonymous_is_off_unless_it_is_configured(tmp_path):
    users = {"visitor": (None, ("", "", "^public$"))}
    for more, expected in (("", "connection.close"), ("anonymous = 'visitor'\n", "connection.tune")):
        with started(tmp_path, users, more) as process, RawClient(process.host, process.port) as peer:
            assert (b"ANONYMOUS" in peer.start()["mechanisms"].split()) == bool(more)
        with started(tmp_path, users, more) as process, RawClient(process.host, process.port) as peer:
            assert peer.log_in(mechanism="ANONYMOUS", response="me").name == expected


@leveret_only
def test_without_a_configuration_guest_can_use_scram(broker):
    with RawClient(broker.host, broker.port) as peer:
        last, rounds = scram(peer, "guest", "guest")
        assert last.name == "connection.tune" and rounds >= 4096


# TLS


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
            socket_timeout=10,
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
                assert b"AMQP" not in peer.recv(1000)
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
