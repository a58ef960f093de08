"""The brokers of these tests as processes: `leveret`, `artemis` (ActiveMQ), `broker-j` (Qpid), `rabbitmq` (3.10 with its plugin).

Each is the real thing, in memory (or with its own store on the disk: `durable`), on a port of its own on the loopback, for guest with the
password guest, and is ended by its id.
What differs between them is in a row of PEERS: how a queue, a topic and a subscription to a topic are addressed.

    peer = peers.start("artemis"); ...; peer.stop()
"""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "interop"))

import brought
from broker_process import BrokerProcess, free_port

from leveret.tools import components


class JavaBroker:
    """A broker that runs in a JVM of its own: kind, host, port; `stop()` ends it."""

    host = "127.0.0.1"

    def __init__(self, kind, name, arguments, flags):
        """`arguments` of the Java program behind its port, out of the directory that is its own."""
        self.kind = kind
        self.port = free_port()
        self.directory = tempfile.mkdtemp(prefix="broker_%s_" % kind)
        self.error_path = os.path.join(self.directory, "stderr")
        command = brought.java(name, str(self.port), *arguments(self.directory), flags=flags)
        with open(self.error_path, "wb") as errors:
            self.process = subprocess.Popen(command, cwd=self.directory, stdout=subprocess.PIPE, stderr=errors)

    @property
    def url(self):
        return "amqp://guest:guest@%s:%d/" % (self.host, self.port)

    @property
    def server_pid(self):
        return self.process.pid

    def wait_until_ready(self):
        """Read what it prints up to `ready`."""
        for line in self.process.stdout:
            if line.strip() == b"ready":
                return self
        self.process.wait(60)
        raise RuntimeError("%s did not start:\n%s" % (self.kind, self.error_text()))

    def error_text(self):
        with open(self.error_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        """End it. What it keeps goes with its directory, so it is not asked for an orderly end."""
        if self.alive():
            self.process.kill()
        self.process.wait(60)
        self.process.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Kind:
    """How one kind of broker is started (`start(durable, flags of the JVM)` may return before it is ready), what it is addressed with."""

    def __init__(self, start, queue, topic, subscription, jms_topic="%s"):
        self.start = start
        self.queue = queue
        self.topic = topic
        self.subscription = subscription
        self.jms_topic = jms_topic


def _start_artemis(durable, flags):
    return JavaBroker("artemis", "ArtemisPeer", lambda directory: [directory] if durable else [], flags)


MEMORY = r"{\"type\": \"Memory\", "  # as broker_j.json has it, JSON within a string of JSON
DERBY = r"{\"type\": \"DERBY\", \"storePath\": \"${qpid.work_dir}/store\", "


def _start_broker_j(durable, flags):
    def arguments(directory):
        """A copy of the configuration, with a store on the disk where it is asked for."""
        with open(os.path.join(brought.HERE, "broker_j.json")) as file:
            text = file.read()
        if durable:
            assert MEMORY in text and r"\"attributes\": {}" in text
            text = text.replace(MEMORY, DERBY).replace(r"\"attributes\": {}", r"\"attributes\": {\"durable\": \"true\"}")
        path = os.path.join(directory, "broker_j.json")
        with open(path, "w") as file:
            file.write(text)
        return [path, directory]

    return JavaBroker("broker-j", "BrokerJPeer", arguments, flags)


def _start_rabbitmq(durable, flags):
    """It keeps durable queues on the disk anyway."""
    return BrokerProcess("rabbitmq", plugins="rabbitmq_amqp1_0")


def _start_leveret(durable, flags):
    """In memory, and with ANONYMOUS, which it does not allow unless it is told to."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as configuration:
        configuration.write('anonymous = "guest"\n')
        configuration.flush()
        return BrokerProcess("leveret", arguments=("--config", configuration.name))


PEERS = {
    "leveret": Kind(_start_leveret, "/queues/%s", "/exchanges/amq.topic/%s", "/topic/%s"),
    "artemis": Kind(_start_artemis, "%s", "topic://%s", "topic://%s"),
    "broker-j": Kind(_start_broker_j, "%s", "amq.topic/%s", "amq.topic/%s", "amq.topic/%s"),
    "rabbitmq": Kind(_start_rabbitmq, "/queue/%s", "/topic/%s", "/topic/%s"),
}


NEEDS = {
    "artemis": (components.JDK, components.MAVEN),
    "broker-j": (components.JDK, components.MAVEN),
    "rabbitmq": (components.RABBITMQ,),
    "leveret": (),
}


def start(kind, durable=False, for_long=False):
    """A broker of this kind that answers. `for_long`: a JVM with all that it can have, for measuring."""
    broker = PEERS[kind].start(durable, brought.LONG if for_long else brought.BRIEF)
    if isinstance(broker, JavaBroker):
        try:
            broker.wait_until_ready()
        except BaseException:  # nothing that was started stays behind
            broker.stop()
            raise
    return broker
