"""Brokers for the Spark tests: real processes of our own on free ports, Leveret and, where it is installed, RabbitMQ."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time

RABBITMQ_SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
START_S = 90
PATIENCE_MS = 120_000  # of a test's own connection: the machine may be busy


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Broker:
    """A started broker. `port` on 127.0.0.1; `end()` ends its whole process group."""

    def __init__(self, processes, port):
        self._processes = processes
        self.port = port
        self.url = f"amqp://127.0.0.1:{port}"

    def end(self):
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout:
                process.stdout.close()


def start_leveret(listen_port=0, more=()):
    """A broker; `more`: further arguments. `more_ports`: those of the listeners among them."""
    process = subprocess.Popen(
        [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", f"amqp://127.0.0.1:{listen_port}", *more],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    ports = []
    for _ in range(1 + more.count("--listen")):
        words = process.stdout.readline().split()
        assert words[:1] == ["ready"], f"leveret serve said {words}"
        ports.append(int(words[1].partition("?")[0].rpartition(":")[2]))
    broker = Broker([process], ports[0])
    broker.more_ports = ports[1:]
    return broker


def rabbitmq_installed():
    return os.path.exists(RABBITMQ_SERVER) and shutil.which("epmd") is not None


def start_rabbitmq(folder):
    """A node of our own with its own name daemon, data and ports, all under `folder`."""
    port, names_port = free_port(), free_port()
    environment = dict(
        os.environ,
        HOME=folder,
        ERL_EPMD_PORT=str(names_port),
        RABBITMQ_NODENAME=f"spark{port}@localhost",
        RABBITMQ_MNESIA_BASE=f"{folder}/mnesia",
        RABBITMQ_LOG_BASE=f"{folder}/log",
        RABBITMQ_NODE_PORT=str(port),
        RABBITMQ_NODE_IP_ADDRESS="127.0.0.1",
        RABBITMQ_DIST_PORT=str(free_port()),
        RABBITMQ_ENABLED_PLUGINS_FILE=f"{folder}/plugins",
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment, "start_new_session": True}
    names = subprocess.Popen(["epmd", "-port", str(names_port)], **quiet)
    server = subprocess.Popen([RABBITMQ_SERVER], cwd=folder, **quiet)
    broker = Broker([server, names], port)
    if not wait_for_amqp(port, START_S, server):
        broker.end()
        raise AssertionError(f"rabbitmq-server did not answer in {START_S} s (its log: {folder}/log)")
    return broker


def wait_for_amqp(port, seconds, process):
    """True when something at the port answers the protocol header with connection.start."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 2) as probe:
                probe.sendall(b"AMQP\0\0\x09\x01")
                if probe.recv(1) == b"\x01":
                    return True
        except OSError:
            time.sleep(0.2)
    return False
