"""Starts the broker under test as a process of its own, on a free loopback port.

Two kinds: `leveret` (the command `leveret serve`) and `rabbitmq` (a private RabbitMQ node: own name, directories,
ports and name daemon). The interop tests and the bench use it. RabbitMQ is the oracle: the same tests run on both.

Laws: only processes started here are ended, by their id; nothing listens off the loopback unless a host is given.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

RABBITMQ_SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
RABBITMQ_CONTROL = "/usr/lib/rabbitmq/bin/rabbitmqctl"
START_TIMEOUT_S = 180
CONTROL_TIMEOUT_S = 300  # rabbitmqctl starts an Erlang of its own: on a busy machine that took more than a minute


def free_port(host="127.0.0.1"):
    """A port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def rabbitmq_installed():
    return os.path.exists(RABBITMQ_SERVER)


class BrokerProcess:
    """kind, host, port, process; `stop()` ends it. `ready_s`: seconds from start to the first answer."""

    def __init__(self, kind, host="127.0.0.1", arguments=(), configuration="", plugins="", variables=None):
        """`arguments`: more for `leveret serve`, `variables`: for its environment; `configuration`, `plugins`: the text of RabbitMQ's
        rabbitmq.conf, and its plugins."""
        self.kind = kind
        self.host = host
        self.directory = tempfile.mkdtemp(prefix="broker_%s_" % kind)
        self.helpers = []
        self.error_path = os.path.join(self.directory, "stderr")
        started = time.monotonic()
        try:
            if kind == "leveret":
                self._start_leveret(list(arguments), dict(os.environ, **(variables or {})))
            elif kind == "rabbitmq":
                self._start_rabbitmq(configuration, plugins)
            else:
                raise ValueError("no such broker: %r" % kind)
            self._wait_for_answer(started)
        except BaseException:  # nothing that was started stays behind
            self.stop()
            raise
        self.ready_s = time.monotonic() - started

    @property
    def url(self):
        return "amqp://guest:guest@%s:%d/" % (self.host, self.port)

    @property
    def server_pid(self):
        """The process whose memory is the broker's (RabbitMQ: the Erlang machine, a child of the script)."""
        if self.kind == "leveret":
            return self.process.pid
        import psutil

        script = psutil.Process(self.process.pid)
        for process in [script] + script.children(recursive=True):
            if process.name().startswith("beam"):
                return process.pid
        raise RuntimeError("no Erlang process under %d" % self.process.pid)

    def error_text(self):
        with open(self.error_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def alive(self):
        return self.process.poll() is None

    def control(self, *arguments):
        """What rabbitmqctl says on standard output; an AssertionError with the rest when it fails."""
        done = subprocess.run(
            [RABBITMQ_CONTROL, *arguments], env=self.environment, capture_output=True, text=True, timeout=CONTROL_TIMEOUT_S
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def stop(self):
        """Ends the broker and its helpers; returns the broker's exit status (None: it never started)."""
        status = None
        process = getattr(self, "process", None)
        if process is not None:
            self._end(process)
            status = process.returncode
        for helper in self.helpers:
            self._end(helper)
        shutil.rmtree(self.directory, ignore_errors=True)
        return status

    def _end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)
        if process.stdout:
            process.stdout.close()

    def _start_leveret(self, arguments, environment):
        command = [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", "amqp://%s:0" % self.host]
        with open(self.error_path, "wb") as errors:
            self.process = subprocess.Popen(command + arguments, stdout=subprocess.PIPE, stderr=errors, env=environment)
        line = self.process.stdout.readline().decode()
        if not line.startswith("ready amqp://"):
            self.process.wait(60)
            raise RuntimeError("no ready line but %r; standard error:\n%s" % (line, self.error_text()))
        self.port = int(line.split()[1].rsplit(":", 1)[1].rstrip("/"))

    def _start_rabbitmq(self, configuration, plugins):
        self.port = free_port()
        self.environment = dict(os.environ)
        name_daemon_port = free_port()
        self.environment.update(
            {
                "HOME": self.directory,
                "ERL_EPMD_PORT": str(name_daemon_port),
                "ERL_EPMD_ADDRESS": "127.0.0.1",
                "RABBITMQ_NODENAME": "test%d@localhost" % self.port,
                "RABBITMQ_NODE_IP_ADDRESS": self.host,
                "RABBITMQ_NODE_PORT": str(self.port),
                "RABBITMQ_DIST_PORT": str(free_port()),
                "RABBITMQ_MNESIA_BASE": os.path.join(self.directory, "mnesia"),
                "RABBITMQ_LOG_BASE": os.path.join(self.directory, "log"),
                "RABBITMQ_PID_FILE": os.path.join(self.directory, "pid"),
                "RABBITMQ_CONFIG_FILE": os.path.join(self.directory, "rabbitmq"),
                "RABBITMQ_ENABLED_PLUGINS_FILE": os.path.join(self.directory, "enabled_plugins"),
            }
        )
        with open(os.path.join(self.directory, "enabled_plugins"), "w") as file:
            file.write("[%s].\n" % plugins)
        if configuration:
            with open(os.path.join(self.directory, "rabbitmq.conf"), "w", encoding="utf-8") as file:
                file.write(configuration)
        with open(self.error_path, "wb") as errors:
            self.helpers.append(subprocess.Popen(["epmd", "-port", str(name_daemon_port)], stdout=errors, stderr=errors))
            self.process = subprocess.Popen([RABBITMQ_SERVER], env=self.environment, stdout=errors, stderr=errors)

    def _wait_for_answer(self, started):
        """Ready is: connection.start comes back."""
        while True:
            try:
                with socket.create_connection((self.host, self.port), 1) as peer:
                    peer.sendall(b"AMQP\x00\x00\x09\x01")
                    if peer.recv(1):
                        return
            except OSError:
                pass
            if not self.alive() or time.monotonic() - started > START_TIMEOUT_S:
                raise RuntimeError("%s did not start:\n%s" % (self.kind, self.error_text()))
            time.sleep(0.02)
