"""`leveret serve` as a process: ready lines, refusals in one sentence, and an end with the protocol's handshake."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import pika
import pytest

from leveret.core.amqp_0_9 import method
from leveret.core.amqp_0_9.spec_0_9_1 import HEADER, METHODS
from leveret.ports.serial_line import connect_serial
from leveret.tools.cable import Cable

COMMAND = [sys.executable, "-m", "leveret.tools.cli", "serve"]


class Serve:
    """A broker process with its ready lines."""

    def __init__(self, *arguments, count=1, **variables):
        began = time.monotonic()
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **variables)
        )
        self.urls = []
        for _ in range(count):
            line = self.process.stdout.readline()
            if not line.startswith("ready "):
                raise AssertionError((line, self.process.communicate(timeout=60)[1]))
            self.urls.append(line.split()[1])
        self.seconds_to_ready = time.monotonic() - began

    @property
    def port(self):
        return int(self.urls[0].rsplit(":", 1)[1])

    def connect(self):
        return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port))

    def end(self, number=signal.SIGTERM):
        """(exit status, rest of standard output, standard error, seconds) after a signal."""
        began = time.monotonic()
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=300)
        return self.process.returncode, output, errors, time.monotonic() - began


@pytest.fixture
def serve():
    started = []

    def start(*arguments, **options):
        started.append(Serve(*arguments, **options))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


def refused(*arguments):
    """(exit status, the one sentence) of a broker that cannot start."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr and done.stderr.count("\n") == 1, done.stderr
    return done.returncode, done.stderr


def test_a_configuration_is_checked_without_a_broker(tmp_path):
    """Nothing listens and nothing is made: also where a broker serves already."""
    path = tmp_path / "l.toml"
    path.write_text(f'listen = ["amqp://127.0.0.1:5672"]\n[data]\ndirectory = "{tmp_path / "data"}"\n[limits]\nmemory_max = "128M"\n')
    done = subprocess.run([*COMMAND, "--config", str(path), "--check-config"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "") and not (tmp_path / "data").exists()
    start, size, end = re.fullmatch(r"(.*: at most )(\d+)( MiB when every limit is reached\n)", done.stdout).groups()
    assert start == f"{path} can be served: at most " and 100 < int(size) <= 128, done.stdout
    path.write_text("[limits]\nqueue_count = 3\n")
    status, sentence = refused("--config", str(path), "--check-config")
    assert status == 2 and "(is it queue_count_max?)" in sentence
    assert refused("--definitions", str(tmp_path / "none.json"), "--check-config")[0] == 2


def test_every_listener_says_ready_with_its_real_port_and_takes_clients(serve):
    server = serve("--listen", "amqp://127.0.0.1:0", "--listen", "amqp://[::1]:0", "--memory", count=2)
    assert [url.rsplit(":", 1)[0] for url in server.urls] == ["amqp://127.0.0.1", "amqp://[::1]"]
    for url in server.urls:
        connection = pika.BlockingConnection(pika.URLParameters(url.replace("amqp://", "amqp://guest:guest@") + "/%2F"))
        connection.close()
    status, output, errors, _ = server.end()
    assert (status, output) == (0, "") and "Traceback" not in errors


def test_up_and_accepting_within_a_second(serve):
    """The best of a few, without the time that it waited for a processor: other work on the machine is not the broker's start."""

    def seconds():
        server = serve("--listen", "amqp://127.0.0.1:0")
        with open(f"/proc/{server.process.pid}/schedstat") as file:
            waited_ns = int(file.read().split()[1])
        return server.seconds_to_ready - waited_ns / 1e9

    assert any(seconds() < 1 for _ in range(10))


def test_without_arguments_it_listens_on_5672_of_loopback():
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 5672))
            taken.listen()
        except OSError:
            pass  # somebody else has it, which does as well
        status, told = refused()
    assert status == 1 and "amqp://127.0.0.1:5672" in told and "in use" in told


def test_the_file_names_listeners_and_limits(serve, tmp_path):
    path = tmp_path / "leveret.toml"
    path.write_text('listen = ["amqp://127.0.0.1:0"]\n[limits]\nqueue_count_max = 2\nqueue_share_max = 2\n')
    server = serve("--config", str(path))
    connection = server.connect()
    channel = connection.channel()
    channel.queue_declare("a")
    channel.queue_declare("b")
    with pytest.raises((pika.exceptions.ChannelClosedByBroker, pika.exceptions.ConnectionClosedByBroker)) as caught:
        channel.queue_declare("c")
    assert caught.value.reply_code == 506


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--listen", "amqp://there.is.no.such.host.invalid:0"), "no such host"),
        (("--listen", "amqp://192.0.2.1:0"), "not one of this machine"),
        (("--listen", "serial:///dev/ttyLeveretIsNotThere"), "/dev/ttyLeveretIsNotThere"),
        (("--listen", "serial:///dev/null"), "not a serial device"),
    ],
)
def test_a_listener_that_cannot_be_opened_is_one_sentence_and_exit_status_1(arguments, words):
    status, told = refused(*arguments)
    assert status == 1 and words in told, told


def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, told = refused("--listen", f"amqp://127.0.0.1:{port}")
    assert status == 1 and f"amqp://127.0.0.1:{port}" in told and "in use by another program" in told


def test_a_system_that_allows_fewer_files_than_connections_is_told_before_the_start(tmp_path):
    command = "ulimit -n 100; exec " + " ".join(COMMAND) + " --listen amqp://127.0.0.1:0"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "ulimit -n" in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_closes_connections_with_320_and_ends_with_0(serve, number):
    server = serve("--listen", "amqp://127.0.0.1:0")
    connection = server.connect()
    connection.channel().queue_declare("q", exclusive=True)
    server.process.send_signal(number)
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as caught:
        connection.process_data_events(30)
    assert caught.value.reply_code == 320 and caught.value.reply_text.startswith("CONNECTION_FORCED")
    output, errors = server.process.communicate(timeout=300)
    assert server.process.returncode == 0 and "Traceback" not in errors


def test_a_peer_that_does_not_answer_the_close_holds_the_end_up_for_two_seconds_only(serve):
    server = serve("--listen", "amqp://127.0.0.1:0")
    connection = server.connect()  # pika answers only while it is being run, and nobody runs it
    status, _, errors, seconds = server.end()
    assert status == 0 and 1.5 < seconds < 20 and "Traceback" not in errors, (seconds, errors)
    assert connection.is_open


LOG_IN = method.encode(method.named(METHODS, "connection_start_ok"), 0, ({}, "PLAIN", b"\0guest\0guest", "en_US"))


@pytest.mark.parametrize("said", ([], [HEADER[:4]], [HEADER], [HEADER, LOG_IN]), ids=("nothing", "half a header", "a header", "a log-in"))
def test_a_connection_that_is_not_open_does_not_hold_the_end_up(serve, said):
    def seconds_to_end(connections):
        server = serve("--listen", "amqp://127.0.0.1:0")
        peers = [socket.create_connection(("127.0.0.1", server.port), 60) for _ in range(connections)]
        for peer in peers:
            for octets in said:
                peer.sendall(octets)
                if len(octets) >= len(HEADER):
                    assert peer.recv(4096)[0] == 1  # the broker's answer: it has read that
        time.sleep(0.2)
        status, _, _, seconds = server.end()
        for peer in peers:
            peer.close()
        assert status == 0
        return seconds

    assert any(seconds_to_end(1) < seconds_to_end(0) + 1.5 for _ in range(10))  # it would be two seconds more each time


def test_a_broker_on_a_serial_line_takes_a_client_and_says_goodbye(serve):
    cable = Cable()
    try:
        server = serve("--listen", f"serial://{cable.ends[0]}?baud=115200")
        assert server.urls == [f"serial://{cable.ends[0]}?baud=115200"]
        connection = connect_serial(cable.ends[1], 115200)
        connection.queue_declare("readings")
        connection.publish("", "readings", b"21.5", {"message_id": "1"}, mandatory=True)
        assert connection.get("readings", no_ack=True).body == b"21.5"
        connection.close()
        status, _, errors, _ = server.end()
        assert status == 0 and "Traceback" not in errors
    finally:
        cable.close()


def test_a_thousand_short_connections_leave_no_descriptor_behind(serve):
    server = serve("--listen", "amqp://127.0.0.1:0")

    def descriptors():
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    def come_and_go(count):
        for _ in range(count):
            with socket.create_connection(("127.0.0.1", server.port)) as peer:
                peer.sendall(b"AMQP\x00\x00\x09\x01")
                assert peer.recv(1)

    come_and_go(10)
    before = descriptors()
    come_and_go(1000)
    limit = time.monotonic() + 30
    while descriptors() > before and time.monotonic() < limit:
        time.sleep(0.05)
    assert descriptors() <= before


def test_the_first_words_say_what_where_who_what_is_kept_and_how_to_end_it(serve, tmp_path):
    server = serve("--listen", "amqp://127.0.0.1:0")
    server.connect().close()
    _, _, errors, _ = server.end()
    words = [line.split(" INFO ", 1)[1] for line in errors.splitlines()[:5]]
    assert words[0].startswith("Leveret 0.1.0 speaks AMQP 0-9-1, 1.0, 0-10, 0-8, 0-9; the hot functions run ") and words[0].endswith(
        "is reached"
    )
    assert words[1] == "it listens on " + server.urls[0]
    assert words[2].startswith("guest may log in with the password guest, from this machine alone; [[user]]")
    assert words[3] == "messages are in memory only, and are gone when it ends; --data DIR keeps them"
    assert words[4].startswith("Ctrl-C or SIGTERM ends it; --http 127.0.0.1:15672 would serve a page")
    path = tmp_path / "l.toml"
    path.write_text("".join('[[user]]\nname = "u%d"\npassword = "p"\n' % number for number in range(7)))
    server = serve(
        "--listen", "amqp://127.0.0.1:0", "--http", "127.0.0.1:0", "--config", str(path), "--data", str(tmp_path / "data"), count=2
    )
    _, _, errors, _ = server.end()
    words = [line.split(" INFO ", 1)[1] for line in errors.splitlines() if " INFO " in line]
    assert "7 users may log in: u0, u1, u2, u3, u4 and 2 more" in words
    assert f"durable queues, persistent messages and streams are kept in {tmp_path / 'data'} (sync each)" in words
    assert f"Ctrl-C or SIGTERM ends it; SIGHUP reads {path} again; the page is {server.urls[1]}/" in words


@pytest.mark.parametrize("variable,said", (("1", "hot functions run in C"), ("0", "hot functions run as plain Python (LEVERET_ACCEL=0)")))
def test_the_start_says_which_form_of_the_hot_functions_is_used(serve, variable, said):
    server = serve("--listen", "amqp://127.0.0.1:0", LEVERET_ACCEL=variable)
    connection = server.connect()
    channel = connection.channel()
    channel.queue_declare("q")
    for number in range(100):
        channel.basic_publish("", "q", b"%d" % number)
    assert [channel.basic_get("q", auto_ack=True)[2] for _ in range(100)] == [b"%d" % number for number in range(100)]
    connection.close()
    status, _, errors, _ = server.end()
    assert status == 0 and said in errors, errors


def test_the_collector_of_python_leaves_alone_what_the_start_has_made():
    """It would look at all of it in one step of the loop, whenever many connections have come."""
    program = "import gc; from leveret.tools import serve; serve.spare_the_start(); print(gc.get_freeze_count(), len(gc.get_objects()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    frozen, left = map(int, done.stdout.split())
    assert frozen > 100 * left, done.stderr
