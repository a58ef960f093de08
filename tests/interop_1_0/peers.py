"""The brokers of these tests as processes: `leveret`, `artemis` (ActiveMQ), `broker-j` (Qpid), `rabbitmq` (3.10 with its plugin).

Each is the real thing, in memory, on a port of its own on the loopback, for guest with the password guest, and is ended by its id.
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


class JavaBroker:
    """A broker that runs in a JVM of its own: kind, host, port; `stop()` ends it."""

    host = "127.0.0.1"

    def __init__(self, kind, name, *arguments):
        self.kind = kind
        self.port = free_port()
        self.directory = tempfile.mkdtemp(prefix="broker_%s_" % kind)
        self.error_path = os.path.join(self.directory, "stderr")
        command = brought.java(name, str(self.port), *[self.directory if part is None else part for part in arguments])
        with open(self.error_path, "wb") as errors:
            self.process = subprocess.Popen(command, cwd=self.directory, stdout=subprocess.PIPE, stderr=errors)

    def wait_until_ready(self):
        """Read what it prints up to `ready`."""
        for line in self.process.stdout:
            if line.strip() == b"ready":
                return self
        self.process.wait(10)
        raise RuntimeError("%s did not start:\n%s" % (self.kind, self.error_text()))

    def error_text(self):
        with open(self.error_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        """End it. It keeps nothing, so it is not asked for an orderly end."""
        if self.alive():
            self.process.kill()
        self.process.wait(10)
        self.process.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Kind:
    """How one kind of broker is started (`start()` may return before it is ready), what it is addressed with."""

    def __init__(self, start, queue, topic, subscription, jms_topic="%s"):
        self.start = start
        self.queue = queue
        self.topic = topic
        self.subscription = subscription
        self.jms_topic = jms_topic


def _start_artemis():
    return JavaBroker("artemis", "ArtemisPeer")


def _start_broker_j():
    return JavaBroker("broker-j", "BrokerJPeer", os.path.join(brought.HERE, "broker_j.json"), None)


def _start_leveret():
    """With ANONYMOUS, which it does not allow unless it is told to."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as configuration:
        configuration.write('anonymous = "guest"\n')
        configuration.flush()
        return BrokerProcess("leveret", arguments=("--config", configuration.name))


PEERS = {
    "leveret": Kind(_start_leveret, "/queues/%s", "/exchanges/amq.topic/%s", "/topic/%s"),
    "artemis": Kind(_start_artemis, "%s", "topic://%s", "topic://%s"),
    "broker-j": Kind(_start_broker_j, "%s", "amq.topic/%s", "amq.topic/%s", "amq.topic/%s"),
    "rabbitmq": Kind(lambda: BrokerProcess("rabbitmq", plugins="rabbitmq_amqp1_0"), "/queue/%s", "/topic/%s", "/topic/%s"),
}


def start(kind):
    """A broker of this kind that answers."""
    broker = PEERS[kind].start()
    if isinstance(broker, JavaBroker):
        try:
            broker.wait_until_ready()
        except BaseException:  # nothing that was started stays behind
            broker.stop()
            raise
    return broker
