"""Who gets in and what each may do: permissions in RabbitMQ's words, SCRAM, and what keeps guessers slow.

The permissions run against RabbitMQ too, with the same users; the rest is Leveret's own.
"""

import base64
import hashlib
import hmac
import os
import socket
import subprocess
import sys
import threading
import time

import pika
import pika.exceptions
import pytest
from access_brokers import RIGHTS, connected, parameters, rabbit_hash, started
from amqp_wire import Closed, RawClient, method
from conftest import KIND

leveret_only = pytest.mark.skipif(KIND != "leveret", reason="Leveret's own")


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
