"""The bridge through faulty links to an upstream of AMQP 1.0 or 0-10: tests/bridge/faults.py with brokers of peers.py.

    python tests/interop_1_0/bridge_faults.py --runs 100 --first 0 --upstream artemis broker-j rabbitmq leveret [--canary] [--verbose]

`broker-j-0-10` and `leveret-0-10` are spoken to in AMQP 0-10. What the upstream has is read with the client of
ports/client_1_0.py, or of reader_0_10.py. RabbitMQ 3.10 and Leveret have their nodes from tests/bridge (an
exchange and a queue, declared over 0-9-1).
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE, os.path.join(os.path.dirname(HERE), "bridge")]

import faults  # noqa: E402 - the path above has to be set first
import nodes  # noqa: E402 - the path above has to be set first
import peers  # noqa: E402 - the path above has to be set first
from reader_0_10 import Reader  # noqa: E402 - the path above has to be set first

from leveret.ports.client import connect as connect_0_9_1  # noqa: E402 - the path above has to be set first
from leveret.ports.client_1_0 import connect  # noqa: E402 - the path above has to be set first

QUIET_MS = 1500
FURTHER = ("once", "leveret-0-10", "broker-j-0-10", "leveret-0-8", "leveret-0-9", "rabbitmq-0-8")  # upstreams beside those of peers.PEERS


class Found:
    """A message that was read, as faults.py looks at it."""

    def __init__(self, body, headers):
        self.body = body
        self.properties = {"headers": headers}


class Queue:
    """A queue of an upstream of AMQP 1.0: the address of one run's link."""

    def __init__(self, node, seed):
        self.node = node
        self.exchange = node.address % ("faults%d" % seed)
        client = connect(node.url_1_0)
        client.sender(self.exchange).close()  # Artemis and Broker-J make the queue
        client.close()

    def bind(self):
        """Nothing: the address is the queue's."""

    def take(self):
        """Everything that is there, in order."""
        return self.read(self.exchange)

    def read(self, address):
        """Everything that a receiver from an address gets, in order."""
        client = connect(self.node.url_1_0)
        receiver = client.receiver(address, 500)
        found = []
        while True:
            messages = client.poll(QUIET_MS)
            if not messages:
                break
            for message in messages:
                found.append(Found(message.body, message.application_properties))
                receiver.accept(message)
        client.close()
        return found


class QueueBehindAKey:
    """A queue of a broker of AMQP 0-10, which is sent to by its default exchange with the queue's name as the key."""

    exchange = ""

    def __init__(self, node, seed):
        self.node = node
        self.queue = "faults%d" % seed
        client = Reader(node.url + node.protocol)
        client.do("queue_declare", queue=self.queue)
        client.close()

    def bind(self):
        """Nothing: the default exchange has it."""

    def take(self):
        """Everything that is there, in order."""
        client = Reader(self.node.url + self.node.protocol)
        found = client.read(self.queue, QUIET_MS / 1000)
        client.close()
        return [Found(body, headers) for body, headers in found]


class Node:
    """A broker of peers.py, as faults.py wants one."""

    def __init__(self, kind):
        self.peer = peers.start(kind)
        self.port = self.peer.port
        self.url = self.peer.url
        self.address = peers.PEERS[kind].queue
        self.protocol = "?protocol=1.0" + ("&node=queue" if kind == "artemis" else "")
        self.url_1_0 = "amqp://guest:guest@127.0.0.1:%d/%s" % (self.port, self.protocol)

    def stop(self):
        self.peer.stop()


class RabbitMQ(nodes.RabbitMQ):
    """RabbitMQ with its plugin."""

    protocol = "?protocol=1.0"
    exchange = "/exchange/%s"
    queue = "/amq/queue/%s"

    def command(self):
        command = nodes.RabbitMQ.command(self)
        with open(os.path.join(self.directory, "enabled_plugins"), "w") as file:
            file.write("[rabbitmq_amqp1_0].\n")
        return command


class Leveret(nodes.Leveret):
    """Leveret, spoken to in AMQP 1.0."""

    protocol = "?protocol=1.0"
    exchange = "/exchanges/%s"
    queue = "/queues/%s"


class Leveret010(nodes.Leveret):
    """Leveret, spoken to in AMQP 0-10."""

    protocol = "?protocol=0-10"
    exchange = "%s"


class Exchange(faults.Upstream):
    """An exchange and a queue behind it; the bridge sends to one, the other is read in AMQP 1.0."""

    read = Queue.read

    def __init__(self, node, seed):
        node.url_1_0 = node.url + node.protocol
        faults.Upstream.__init__(self, node, seed)
        if isinstance(node, RabbitMQ):
            self.bind()  # the plugin of 3.10 accepts what has no route, and drops it

    def take(self):
        found = self.read(self.node.queue % self.name)
        client = connect_0_9_1(self.node.url)
        client.queue_delete(self.name)
        client.exchange_delete(self.name)
        client.close()
        return found


class RunOfExchange(faults.Run):
    """A run against RabbitMQ or Leveret; on Leveret some bind late, so that messages are released for want of a route."""

    upstream_of = Exchange


class RunOnce(RunOfExchange):
    """A run in one lane, with numbers, against an upstream that keeps what is unsettled: nothing is double on the wire either."""

    def __init__(self, node, seed, canary=False):
        RunOfExchange.__init__(self, node, seed, canary)
        self.plain = False

    def settings(self):
        settings = RunOfExchange.settings(self)
        settings.replay_messages_per_second = 0
        return settings

    def judge(self, publisher, found, bridge):
        wrong = faults.Run.judge(self, publisher, found, bridge)
        if self.doubles:
            wrong.append("%d double on the wire" % self.doubles)
        return wrong


class Run(faults.Run):
    """A run against a queue; nothing durable, since Broker-J is in memory and refuses it so."""

    upstream_of = Queue
    given = {"content_type": "text/plain"}


class Run010(Run):
    """A run against a queue of a broker that is spoken to in AMQP 0-10, and whose sessions end with their connections."""

    upstream_of = QueueBehindAKey

    def settings(self):
        settings = Run.settings(self)
        settings.routing_key = self.upstream.queue
        return settings


class RunOfSession(faults.Run):
    """A run against Leveret in AMQP 0-10, whose session outlives its connections: nothing is double on the wire, whatever the lanes."""

    def __init__(self, node, seed, canary=False):
        faults.Run.__init__(self, node, seed, canary)
        self.plain = False

    judge = RunOnce.judge


def node_of(kind):
    """(the upstream, the class of its runs). `once`: Leveret, which keeps what is unsettled."""
    if kind == "leveret-0-10":
        return Leveret010(), RunOfSession
    if kind[-4:] in ("-0-8", "-0-9"):  # transactions say what is kept
        older = (nodes.RabbitMQ if kind.startswith("rabbitmq") else nodes.Leveret)()
        older.protocol = "?protocol=" + kind[-3:]
        return older, faults.Run
    if kind == "broker-j-0-10":
        node = Node("broker-j")
        node.protocol = "?protocol=0-10"
        return node, Run010
    if kind == "once":
        return Leveret(), RunOnce
    if kind in ("rabbitmq", "leveret"):
        return (RabbitMQ if kind == "rabbitmq" else Leveret)(), RunOfExchange
    return Node(kind), Run


if __name__ == "__main__":
    sys.exit(faults.main("the bridge to an upstream of AMQP 1.0", (*peers.PEERS, *FURTHER), "artemis", node_of))
