"""AMQP over a serial line, both ways: `leveret serve --listen serial://...` at one end, our client at the other, noise between them."""

import os
import select
import signal
import subprocess
import sys
import time

import pytest
from noisy_cable import noisy_cable

from leveret.ports.client import ConnectionLost
from leveret.ports.serial_line import connect_serial

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BAUD = 115200


class Server:
    """`leveret serve` on one end of the cable."""

    def __init__(self, device):
        command = [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", "serial://%s?baud=%d" % (device, BAUD)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._asked = False
        ready, _, _ = select.select([self._process.stdout], [], [], 20)
        line = self._process.stdout.readline() if ready else ""
        assert line == "ready serial://%s?baud=%d\n" % (device, BAUD), (line, self.kill())

    def kill(self):
        """The end without warning; what it said on standard error."""
        self._process.kill()
        return self._process.communicate()[1]

    def end(self):
        """(exit status, what it said on standard error) after SIGTERM."""
        if not self._asked:
            self.ask_to_end()
        said = self._process.communicate(timeout=120)[1]
        return self._process.returncode, said

    def ask_to_end(self):
        self._asked = True
        self._process.send_signal(signal.SIGTERM)

    def running(self):
        return self._process.poll() is None


@pytest.fixture
def serve():
    servers = []

    def start(device):
        servers.append(Server(device))
        return servers[-1]

    yield start
    for server in servers:
        if server.running():
            server.kill()


def body(number):
    return b"%d:" % number + bytes([(number + index * 7) & 0xFF for index in range(900)])


@pytest.mark.parametrize("seed, error_rate", [(200, 0), (202, 1e-4), (204, 1e-3)])
def test_every_message_arrives_once_and_in_order(serve, seed, error_rate):
    count = 100
    with noisy_cable(seed, error_rate) as cable:
        server = serve(cable.ends[0])
        client = connect_serial(cable.ends[1], BAUD, timeout_ms=60000)
        client.queue_declare("readings")
        for number in range(count):
            client.publish("", "readings", body(number), {"message_id": str(number)}, confirm=False)
        client.wait_confirmed()
        client.consume("readings", no_ack=False)
        got = []
        limit = time.monotonic() + 60
        while len(got) < count and time.monotonic() < limit:
            for message in client.poll(1000):
                got.append(message.body)
                client.ack(message)
        assert client.queue_declare("readings", passive=True)[1] == 0
        client.close()
        assert [bytes(each) for each in got] == [body(number) for number in range(count)], "seed %d" % seed
        assert (cable.damages > 0) == (error_rate > 0)
        status, said = server.end()
        assert status == 0 and "Traceback" not in said, said


def test_an_idle_server_ends_its_connection_over_the_line_with_the_handshake(serve):
    with noisy_cable(210, 0) as cable:
        server = serve(cable.ends[0])
        client = connect_serial(cable.ends[1], BAUD)
        server.ask_to_end()
        with pytest.raises(ConnectionLost) as caught:
            for _ in range(10):
                client.poll(1000)
        assert caught.value.code == 320
        assert server.end()[0] == 0


def test_a_killed_server_is_noticed_and_a_new_one_serves_the_same_line(serve):
    with noisy_cable(212, 1e-4) as cable:
        server = serve(cable.ends[0])
        client = connect_serial(cable.ends[1], BAUD)
        client.queue_declare("before")
        server.kill()
        serve(cable.ends[0])
        with pytest.raises(ConnectionLost):
            client.publish("", "before", b"to nobody")
        client = connect_serial(cable.ends[1], BAUD)
        client.publish("", client.queue_declare()[0], b"again")
        client.close()


def test_a_client_that_vanishes_makes_room_for_the_next(serve):
    with noisy_cable(214, 0) as cable:
        serve(cable.ends[0])
        for _number in range(3):
            client = connect_serial(cable.ends[1], BAUD)
            client.queue_declare("mine", exclusive=True)
            client._stream.close()  # as when the process is killed


def test_an_unplugged_adapter_is_the_end_of_the_connection(serve):
    with noisy_cable(216, 0) as cable:
        server = serve(cable.ends[0])
        client = connect_serial(cable.ends[1], BAUD)
        cable.unplug(1)
        with pytest.raises(ConnectionLost):
            client.poll(5000)
        assert server.running()
