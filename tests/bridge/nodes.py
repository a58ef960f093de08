"""Brokers, the bridge and a breakable link, each as the tests of the bridge need them.

Brokers keep their port, and RabbitMQ its data, over kill and start: that is what a bridge has to live with.
Laws: loopback only; only processes started here are ended, by their own process group.
"""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

RABBITMQ_SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
RABBITMQ_CONTROL = "/usr/lib/rabbitmq/bin/rabbitmqctl"
START_TIMEOUT_S = 180


def free_port():
    """A port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, timeout_s, what):
    """The first true value of `condition()`. Raises AssertionError naming what did not happen."""
    limit = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < limit, "not in %s s: %s" % (timeout_s, what)
        time.sleep(0.05)


def taken(client, queue, quiet_ms):
    """Yields the messages of a queue that `client` consumes, until nothing comes and the broker says that it is empty."""
    while True:
        yield from client.messages(quiet_ms)
        if client.queue_declare(queue, passive=True)[1] == 0:
            break
    yield from client.messages(quiet_ms)  # what came before that answer


class Node:
    """A broker process on a port of its own; `start`, `kill` (no farewell) and `stop` may be called again and again."""

    protocol = ""  # what a bridge's URL says behind the port
    exchange = "%s"  # what a bridge's exchange is for one of that name

    def __init__(self):
        self.port = free_port()
        self.url = "amqp://guest:guest@127.0.0.1:%d/" % self.port
        self.directory = tempfile.mkdtemp(prefix="bridge_test_")
        self.process = None
        try:
            self.start()
        except BaseException:  # nothing that was started stays behind
            if self.process is not None:
                if self.process.poll() is None:
                    self.kill()
                self.stop()
            raise

    def start(self):
        with open(os.path.join(self.directory, "output"), "ab") as output:
            self.process = subprocess.Popen(self.command(), env=self.environment(), stdout=output, stderr=output, start_new_session=True)
        wait_until(self.answers, START_TIMEOUT_S, "%s answers on port %d" % (type(self).__name__, self.port))

    def answers(self):
        """Ready is: connection.start comes back."""
        assert self.process.poll() is None, self.output()
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as peer:
                peer.sendall(b"AMQP\x00\x00\x09\x01")
                return peer.recv(1) != b""
        except OSError:
            return False

    def output(self):
        with open(os.path.join(self.directory, "output"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)
        shutil.rmtree(self.directory, ignore_errors=True)


class RabbitMQ(Node):
    """A private RabbitMQ."""

    def __init__(self):
        self.distribution_port = free_port()
        self.name_daemon_port = free_port()
        self.name_daemon = subprocess.Popen(["epmd", "-address", "127.0.0.1", "-port", str(self.name_daemon_port)])
        Node.__init__(self)

    def command(self):
        with open(os.path.join(self.directory, "enabled_plugins"), "w") as file:
            file.write("[].\n")
        return [RABBITMQ_SERVER]

    def environment(self):
        place = {name: os.path.join(self.directory, name) for name in ("mnesia", "log", "pid", "rabbitmq", "enabled_plugins")}
        return dict(
            os.environ,
            HOME=self.directory,
            ERL_EPMD_PORT=str(self.name_daemon_port),
            ERL_EPMD_ADDRESS="127.0.0.1",
            RABBITMQ_NODENAME="bridge%d@localhost" % self.port,
            RABBITMQ_NODE_IP_ADDRESS="127.0.0.1",
            RABBITMQ_NODE_PORT=str(self.port),
            RABBITMQ_DIST_PORT=str(self.distribution_port),
            RABBITMQ_MNESIA_BASE=place["mnesia"],
            RABBITMQ_LOG_BASE=place["log"],
            RABBITMQ_PID_FILE=place["pid"],
            RABBITMQ_CONFIG_FILE=place["rabbitmq"],
            RABBITMQ_ENABLED_PLUGINS_FILE=place["enabled_plugins"],
        )

    def control(self, *arguments):
        """rabbitmqctl."""
        subprocess.run(
            [RABBITMQ_CONTROL, "-n", "bridge%d@localhost" % self.port] + list(arguments),
            env=self.environment(),
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=60,
        )

    def stop(self):
        Node.stop(self)
        self.name_daemon.terminate()
        self.name_daemon.wait(60)


class Leveret(Node):
    """`leveret serve`, in memory. `draft`: the version of 2005 that its listener names, or ""."""

    def __init__(self, draft=""):
        self.draft = draft
        Node.__init__(self)

    def command(self):
        place = "amqp://127.0.0.1:%d%s" % (self.port, "?version=" + self.draft if self.draft else "")
        return [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", place, "--memory"]

    def environment(self):
        return dict(os.environ)


class BridgeProcess:
    """`leveret bridge`; a status line every 0.2 s."""

    def __init__(self, source_url, target_url, exchange="telemetry", arguments=()):
        self.directory = tempfile.mkdtemp(prefix="bridge_test_")
        command = [
            sys.executable,
            "-m",
            "leveret.tools.cli",
            "bridge",
            "--from",
            source_url,
            "--queue",
            "uplink",
            "--to",
            target_url,
            "--exchange",
            exchange,
            "--status-seconds",
            "0.2",
        ]
        with open(self.path("status"), "wb") as status, open(self.path("said"), "wb") as said:
            self.process = subprocess.Popen(command + list(arguments), stdout=status, stderr=said)

    def path(self, name):
        return os.path.join(self.directory, name)

    def said(self):
        """The sentences for people."""
        with open(self.path("said"), encoding="utf-8") as file:
            return file.read()

    def status(self):
        """The last whole status line, {} before the first."""
        with open(self.path("status"), encoding="utf-8") as file:
            lines = [line for line in file if line.endswith("\n")]
        return json.loads(lines[-1]) if lines else {}

    def wait_for(self, condition, timeout_s, what):
        """Wait until `condition(status)`."""

        def met():
            assert self.process.poll() is None, "the bridge ended:\n" + self.said()
            status = self.status()
            return status if status and condition(status) else None

        try:
            return wait_until(met, timeout_s, what)
        except AssertionError as error:
            raise AssertionError("%s; status %r; said:\n%s" % (error, self.status(), self.said())) from None

    def stop(self):
        """SIGTERM: (exit status, seconds it took, last status line)."""
        started = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        return code, time.monotonic() - started, self.status()

    def clean(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)
        shutil.rmtree(self.directory, ignore_errors=True)


class Relay:
    """A slow TCP link to `port`, about 400 KB/s; `url` leads through it.

    `cut()` resets every connection, octets under way are lost; `hold()` carries nothing any more, as a link that hangs.
    """

    def __init__(self, port):
        self._port = port
        self._held = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = "amqp://guest:guest@127.0.0.1:%d/" % self._listening.getsockname()[1]
        self._pairs = {}  # socket -> the one its octets go to
        self._cut = False
        self._over = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def cut(self):
        self._cut = True
        wait_until(lambda: not self._cut, 10, "the link is cut")

    def hold(self):
        self._held = True

    def close(self):
        self._over = True
        self._thread.join(60)

    def _run(self):
        while not self._over:
            if self._cut:
                self._drop()
                self._cut = False
            time.sleep(0.01)
            for ready in select.select([] if self._held else [self._listening] + list(self._pairs), [], [], 0.01)[0]:
                if ready is self._listening:
                    self._accept()
                elif ready in self._pairs:
                    self._carry(ready)
        self._drop()
        self._listening.close()

    def _accept(self):
        near = self._listening.accept()[0]
        try:
            far = socket.create_connection(("127.0.0.1", self._port), 5)
        except OSError:
            near.close()
            return
        self._pairs[near] = far
        self._pairs[far] = near

    def _carry(self, ready):
        other = self._pairs[ready]
        try:
            octets = ready.recv(4096)
            if octets:
                other.sendall(octets)
                return
        except OSError:
            pass
        for each in (ready, other):
            self._pairs.pop(each).close()

    def _drop(self):
        for each in list(self._pairs):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            each.close()
        self._pairs.clear()
