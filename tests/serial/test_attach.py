"""`leveret attach` over pseudo-terminals, with pika: several clients, pulled cables, a broker that begins anew, a shared wire."""

import queue
import signal
import socket
import subprocess
import sys
import threading
import time

import pika
import pytest
from noisy_cable import noisy_cable
from pika.exceptions import AMQPError
from pluggable_cable import PluggableCable

from leveret.ports.serial_line import DEAD_MS

BAUD = 115200
READY_S = 120
BODY = bytes(range(256)) * 4


class Command:
    """A `leveret` command; `ready`: its ready lines so far."""

    def __init__(self, *arguments):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "leveret.tools.cli", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._said = []
        self._ready = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read, args=(self._process.stderr, self._said.append), daemon=True),
            threading.Thread(target=self._read, args=(self._process.stdout, self._ready.put), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, file, take):
        for line in file:
            take(line)

    def said(self):
        return "".join(self._said)

    def wait_for(self, text, times=1):
        limit = time.monotonic() + READY_S
        while self.said().count(text) < times:
            assert time.monotonic() < limit and self.running(), (text, self.said())
            time.sleep(0.02)

    def ready(self, seconds=READY_S):
        """The next ready line's URL."""
        try:
            line = self._ready.get(timeout=seconds)
        except queue.Empty:
            line = ""
        assert line.startswith("ready "), (line, self.said())
        return line.split()[1]

    def running(self):
        return self._process.poll() is None

    def end(self, number=signal.SIGTERM):
        """(exit status, what it said)."""
        if self.running():
            self._process.send_signal(number)
        status = self._process.wait(60)
        for reader in self._readers:
            reader.join(60)
        self._process.stdout.close()
        return status, self.said()


@pytest.fixture
def start():
    commands = []

    def run(*arguments):
        commands.append(Command(*arguments))
        return commands[-1]

    yield run
    for command in commands:
        _, said = command.end()
        assert "Traceback" not in said, said


def serve(start, device, extra=""):
    server = start("serve", "--listen", "serial://%s?baud=%d%s" % (device, BAUD, extra))
    server.ready()
    return server


def attach(start, device, *more):
    attached = start("attach", device, "--baud", str(BAUD), "--listen", "amqp://127.0.0.1:0", *more)
    return attached, port_of(attached.ready())


def port_of(url):
    return int(url.rsplit(":", 1)[1])


def connect(port, **more):
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", port, blocked_connection_timeout=30, stack_timeout=30, socket_timeout=30, **more)
    )


def publish(channel, queue, numbers):
    for number in numbers:
        channel.basic_publish("", queue, b"%d:" % number + BODY, mandatory=True)


def consume(channel, queue, count):
    got = []
    for method, _, body in channel.consume(queue, inactivity_timeout=30):
        assert method is not None, "only %d of %d messages came" % (len(got), count)
        got.append(body)
        channel.basic_ack(method.delivery_tag)
        if len(got) == count:
            break
    channel.cancel()
    return got


@pytest.mark.parametrize("seed, error_rate, extra", [(300, 0, ""), (301, 1e-3, ""), (302, 0, "&crc=16&frame=64&window=512")])
def test_several_clients_use_the_broker_at_the_other_end(start, seed, error_rate, extra):
    with noisy_cable(seed, error_rate) as cable:
        serve(start, cable.ends[0], extra)
        attached, port = attach(start, cable.ends[1])
        connections = [connect(port) for _ in range(4)]
        for number, connection in enumerate(connections):
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("q%d" % number)
            publish(channel, "q%d" % number, range(10))
        for number, connection in enumerate(connections):
            got = consume(connection.channel(), "q%d" % (3 - number), 10)
            assert got == [b"%d:" % count + BODY for count in range(10)]
            connection.close()
        status, said = attached.end()
        assert status == 0 and said == "", said
        assert (cable.damages > 0) == (error_rate > 0)


def test_a_client_that_does_not_read_stops_no_other(start):
    with noisy_cable(400, 0) as cable:
        serve(start, cable.ends[0])
        _, port = attach(start, cable.ends[1])
        slow, quick = connect(port, heartbeat=0), connect(port)
        channel = slow.channel()
        channel.queue_declare("much")
        channel.basic_consume("much", lambda *_: None, auto_ack=True)
        own = quick.channel()
        own.confirm_delivery()
        for number in range(300):
            own.basic_publish("", "much", BODY * 8)
            if number % 50 == 0:
                own.queue_declare("own")
                own.basic_publish("", "own", b"%d" % number)
                assert own.basic_get("own", auto_ack=True)[2] == b"%d" % number
        quick.close()
        slow.close()


def test_a_cable_that_is_pulled_and_put_back_loses_nothing(start):
    with PluggableCable() as cable:
        server = serve(start, cable.ends[0])
        attached, port = attach(start, cable.ends[1])
        connection = connect(port)
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q")
        publisher = threading.Thread(target=publish, args=(channel, "q", range(60)), daemon=True)
        publisher.start()
        for end, command, times in ((1, attached, 1), (0, server, 1), (1, attached, 2)):
            carried = cable.carried
            while cable.carried < carried + 3000 and publisher.is_alive():
                time.sleep(0.01)
            assert publisher.is_alive(), "all was over before the cable was pulled"
            cable.unplug(end)
            command.wait_for("was unplugged", times)
            cable.plug(end)
            command.wait_for("line is back", times)
        publisher.join(60)
        assert not publisher.is_alive()
        assert consume(connection.channel(), "q", 60) == [b"%d:" % number + BODY for number in range(60)]
        connection.close()


def test_a_broker_that_begins_anew_ends_the_connections_and_takes_new_ones(start):
    with noisy_cable(400, 0) as cable:
        server = serve(start, cable.ends[0])
        attached, port = attach(start, cable.ends[1])
        connection = connect(port)
        channel = connection.channel()
        server.end(signal.SIGKILL)
        serve(start, cable.ends[0])
        attached.wait_for("began anew")
        with pytest.raises(AMQPError):
            channel.queue_declare("gone")
        again = connect(port)
        again.channel().queue_declare("new")
        again.close()


def test_a_client_that_vanishes_and_one_too_many(start):
    with noisy_cable(400, 0) as cable:
        serve(start, cable.ends[0])
        attached, port = attach(start, cable.ends[1])
        connections = [connect(port) for _ in range(16)]
        with pytest.raises(AMQPError):
            connect(port, connection_attempts=1)
        attached.wait_for("16 are open")
        connections[0].channel().queue_declare("mine", exclusive=True)
        connections[0]._impl._transport._sock.shutdown(socket.SHUT_RDWR)  # as when the process is killed
        limit = time.monotonic() + READY_S
        while True:
            try:
                connection = connect(port, connection_attempts=1)
                break
            except AMQPError:
                assert time.monotonic() < limit
        connection.channel().queue_declare("mine", exclusive=True)
        connection.close()


def test_an_end_that_is_told_to_end_lets_the_other_one_go(start):
    with noisy_cable(400, 0) as cable:
        server = serve(start, cable.ends[0])
        attached, port = attach(start, cable.ends[1])
        connection = connect(port)
        connection.channel().queue_declare("mine", exclusive=True)
        assert attached.end()[0] == 0
        attached, port = attach(start, cable.ends[1])
        again = connect(port)
        again.channel().queue_declare("mine", exclusive=True)
        assert server.end()[0] == 0
        ended = time.monotonic()
        with pytest.raises(AMQPError) as caught:
            again.process_data_events(10)
        assert getattr(caught.value, "reply_code", 320) == 320
        attached.wait_for("nobody answers")
        assert time.monotonic() - ended < DEAD_MS / 1000, "it was not told, and found out by a minute of silence"


def test_the_ends_agree_on_a_higher_speed(start):
    with noisy_cable(400, 0) as cable:
        serve(start, cable.ends[0], "&speed=460800")
        _, port = attach(start, cable.ends[1], "--speed", "921600")
        connection = connect(port)
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q")
        publish(channel, "q", range(20))
        assert len(consume(channel, "q", 20)) == 20
        connection.close()


def run(*arguments):
    done = subprocess.run([sys.executable, "-m", "leveret.tools.cli", "attach", *arguments], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stderr.strip(), done.stdout


@pytest.mark.parametrize(
    "status, words, arguments",
    [
        (1, "there is no serial device /dev/ttyNone: plug it in", ("/dev/ttyNone",)),
        (1, "/dev/null is not a serial device", ("/dev/null",)),
        (2, "'x' is not a whole number from 1 to 4000000", ("/dev/ttyNone", "--baud", "x")),
        (2, "clients come over TCP", ("/dev/ttyNone", "--listen", "serial:///dev/tty0")),
        (2, "one --listen URL for each --address", ("/dev/ttyNone", "--address", "1", "--address", "2")),
        (2, "given twice", ("/dev/ttyNone", "--address", "1", "--address", "1", "--listen", "amqp://127.0.0.1:0")),
        (2, "have one speed", ("/dev/ttyNone", "--address", "1", "--speed", "9600")),
    ],
)
def test_what_cannot_be_is_one_clear_sentence(status, words, arguments):
    got, said, out = run(*arguments)
    assert got == status and words in said and said.count("\n") == 0 and out == "", said


def test_a_device_that_is_in_use_and_one_where_nobody_answers(start):
    with noisy_cable(400, 0) as cable:
        server = serve(start, cable.ends[0])
        status, said, _ = run(cable.ends[0], "--listen", "amqp://127.0.0.1:0")
        assert status == 1 and "is in use by another program" in said
        server.end(signal.SIGKILL)
        attached = start("attach", cable.ends[1], "--listen", "amqp://127.0.0.1:0")
        attached.wait_for("nobody answers at %s yet" % cable.ends[1])
        serve(start, cable.ends[0])
        connect(port_of(attached.ready())).close()


@pytest.mark.parametrize("echo", [False, True], ids=["silent", "echoing"])
def test_several_boards_share_one_wire(start, echo):
    """RS-485: a master polls two stations; adapters may give back what they send; a third station is not there."""
    with PluggableCable(3, echo) as wire:
        for number in (1, 2):
            serve(start, wire.ends[number], "&address=%d" % number)
        listeners = [word for number in (1, 2, 9) for word in ("--address", str(number), "--listen", "amqp://127.0.0.1:0")]
        attached = start("attach", wire.ends[0], "--baud", str(BAUD), *listeners)
        connections = [connect(port_of(attached.ready())) for _ in range(2)] * 2
        attached.wait_for("nobody answers at %s, station 9 yet" % wire.ends[0])
        for number, connection in enumerate(connections):
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("q%d" % number)
            publish(channel, "q%d" % number, range(10))
        for number, connection in enumerate(connections):
            assert consume(connection.channel(), "q%d" % number, 10) == [b"%d:" % count + BODY for count in range(10)]
        with pytest.raises(AMQPError) as caught:
            connections[0].channel().queue_declare("q1", passive=True)
        assert caught.value.reply_code == 404, "that one is at the other station"
        for connection in connections[:2]:
            connection.close()
