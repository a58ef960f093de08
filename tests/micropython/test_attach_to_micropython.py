"""pika -> `leveret attach` -> a pseudo-terminal -> link and broker inside MicroPython (WebAssembly build), as with a board on USB."""

import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import tty

import pika
import pytest
from micropython_brokers import WasmBroker
from pika.exceptions import AMQPError

TIMEOUT_S = 120
HEAP_KB = 160
NOISE = b"\r\nMicroPython v1.27.0\r\n>>> \x7e\x41\x42\x7e"


class CableToSocket:
    """A pseudo-terminal whose octets go to a TCP port and back, after what a board says when it boots."""

    def __init__(self, port):
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.device = os.ttyname(self._slave)
        self._far = socket.create_connection(("127.0.0.1", port))
        os.write(self._master, NOISE)
        self._stopping = False
        self._thread = threading.Thread(target=self._carry, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def _carry(self):
        while not self._stopping:
            readable, _, _ = select.select([self._master, self._far], [], [], 0.1)
            if self._master in readable:
                self._far.sendall(os.read(self._master, 4096))
            if self._far in readable:
                octets = self._far.recv(4096)
                while octets:
                    octets = octets[os.write(self._master, octets) :]

    def __exit__(self, *_):
        self._stopping = True
        self._thread.join()
        self._far.close()
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture(scope="module", params=[0, HEAP_KB], ids=["wasm", "wasm-heap-%d-KiB" % HEAP_KB])
def port(request):
    """The TCP port of `leveret attach`."""
    with WasmBroker("wasm_link", heap_kb=request.param) as broker, CableToSocket(broker.port) as cable:
        attached = subprocess.Popen(
            [sys.executable, "-m", "leveret.tools.cli", "attach", cable.device, "--listen", "amqp://127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            found, _, _ = select.select([attached.stdout], [], [], TIMEOUT_S)
            line = attached.stdout.readline() if found else ""
            assert line.startswith("ready amqp://127.0.0.1:"), line
            yield int(line.rsplit(":", 1)[1])
        finally:
            attached.send_signal(signal.SIGTERM)
            said = attached.communicate(timeout=TIMEOUT_S)[1]
        assert attached.returncode == 0 and "Traceback" not in said, said


def connect(port):
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            "127.0.0.1",
            port,
            blocked_connection_timeout=TIMEOUT_S,
            connection_attempts=1,
            socket_timeout=TIMEOUT_S,
            stack_timeout=TIMEOUT_S,
        )
    )


def test_several_clients_publish_and_consume_over_the_line(port):
    connections = [connect(port) for _ in range(3)]
    for number, connection in enumerate(connections):
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("line-%d" % number)
        for count in range(8):
            channel.basic_publish("", "line-%d" % number, b"%d:" % count + bytes(range(256)) * 3, mandatory=True)
    for number, connection in enumerate(connections):
        channel = connection.channel()
        got = []
        for method, _, body in channel.consume("line-%d" % (2 - number), inactivity_timeout=TIMEOUT_S):
            assert method is not None, "only %d messages came" % len(got)
            channel.basic_ack(method.delivery_tag)
            got.append(body)
            if len(got) == 8:
                break
        assert got == [b"%d:" % count + bytes(range(256)) * 3 for count in range(8)]
    with pytest.raises(AMQPError):
        connect(port)  # the board has room for three
    for number, connection in enumerate(connections):
        connection.channel().queue_delete("line-%d" % number)
        connection.close()


def test_connections_come_and_go_without_end(port):
    for number in range(20):
        connection = connect(port)
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, b"%d" % number)
        assert channel.basic_get(queue, auto_ack=True)[2] == b"%d" % number
        connection.close()
