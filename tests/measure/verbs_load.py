"""Load in forms that `leveret perf` has not: `python tests/measure/verbs_load.py URL FORM [TOPOLOGY] [options of leveret perf]`.

FORM is a row of verbs_worker.FORMS: plain, transactions (of --confirm messages), get (basic.get, --confirm on their way; the queue is
filled before), rejects and returns (by the consumer), replies (requests and direct replies, --confirm on their way), cycles (a queue of its
own for each message), turns (many publishers, a message each in turn). TOPOLOGY is a row of TOPOLOGIES below: what lies between publisher
and queue. With --server-pid the
summary has the broker's CPU seconds without the making of queues and bindings.

    --first       consumers begin when the publishers have ended; the summary has both rates
"""

import argparse
import os
import sys

import psutil

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from verbs_worker import FORMS  # noqa: E402 - the path above has to be set first

from leveret.tools import perf  # noqa: E402 - the path above has to be set first

BINDINGS_HEADERS, BINDINGS_TOPIC = 100, 10000


class Topology:
    """An exchange of leveret perf's own kinds, or none."""

    kind: "str | None" = None  # of the exchange
    keys: "tuple[str, ...]" = ()  # of the messages; none: as leveret perf has them
    queues = 1
    properties: "dict[str, object]" = {}
    deliveries = 1  # of each message

    @staticmethod
    def make(client, exchange, queues):
        """Declare and bind the exchange."""


class Headers(Topology):
    """A headers exchange with 100 bindings of one queue, each of another site; messages are from 39 of these sites."""

    keys = ("",)
    kind = "headers"

    @staticmethod
    def make(client, exchange, queues):
        client.exchange_declare(exchange, "headers")
        for number in range(1, BINDINGS_HEADERS + 1):
            client.queue_bind(queues[0], exchange, "", {"x-match": "all", "site": "site-%d" % number})


class Topic(Topology):
    """A topic exchange with 10,000 bindings of one queue with wildcards; each of 10,000 keys fits one of them."""

    kind = "topic"
    keys = tuple("building.%d.device.%d.celsius" % (number % 40, number) for number in range(BINDINGS_TOPIC))

    @staticmethod
    def make(client, exchange, queues):
        client.exchange_declare(exchange, "topic")
        for number in range(BINDINGS_TOPIC):
            client.queue_bind(queues[0], exchange, "building.*.device.%d.#" % number)


class Alternate(Topology):
    """A direct exchange without a binding; its alternate exchange, a fanout, has the queue."""

    kind = "direct"
    keys = tuple("key.%d" % number for number in range(100))

    @staticmethod
    def make(client, exchange, queues):
        client.exchange_declare(exchange + "-alternate", "fanout", durable=True, auto_delete=True)
        client.queue_bind(queues[0], exchange + "-alternate")
        client.exchange_declare(exchange, "direct", durable=True, arguments={"alternate-exchange": exchange + "-alternate"})


class SenderSelected(Topology):
    """Each message names a second queue in its header CC."""

    queues = 2
    deliveries = 2

    def __init__(self, name):
        self.keys = (name + "-1",)
        self.properties = {"headers": {"CC": [name + "-2"]}}


class Readers(Topology):
    """Five readers of one stream."""

    deliveries = 5


class Filtered(Topology):
    """Each message has the value that a stream's reader filters by."""

    properties = {"headers": {"x-stream-filter-value": "site-7"}}


class Dying(Topology):
    """A queue that nobody consumes and whose messages all die; the consumed queue gets them as dead letters."""

    kind = "direct"
    keys = ("dying",)

    def __init__(self, argument):
        self.argument = argument

    def make(self, client, exchange, queues):  # type: ignore[override]  # it has an argument of its own
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queues[0], "x-expires": 60000, **self.argument}
        client.queue_delete(exchange + "-dying")  # an earlier run's, with other arguments
        client.queue_declare(exchange + "-dying", durable=True, arguments=arguments)
        client.exchange_declare(exchange, "direct", durable=True)
        client.queue_bind(exchange + "-dying", exchange, "dying")


class Rejected(Topology):
    """Two queues; a consumer rejects what comes to the first, another one gets the dead letters from the second."""

    queues = 2
    deliveries = 2

    def __init__(self, name):
        self.keys = (name + "-1",)


class Returned(Topology):
    """Each message is delivered, returned, and delivered again."""

    deliveries = 2


class Measurement(perf.Measurement):
    """One run, in a form and with a topology."""

    def __init__(self, options, out, topology):
        perf.Measurement.__init__(self, options, out)
        self.PROGRAM = (os.path.join(HERE, "verbs_worker.py"), options.form)
        self.topology = topology
        if topology.kind:
            self.exchange = "%s-%s" % (options.queue, topology.kind)
        if topology.keys:
            self.keys = list(topology.keys)

    def make_exchange(self, client):
        if self.topology.kind:
            self.topology.make(client, self.exchange, self.queues)
        else:
            perf.Measurement.make_exchange(self, client)

    def settings(self, role, connections):
        made = perf.Measurement.settings(self, role, connections)
        if self.options.form == "get" and role == "consumer":
            made["get"] = self.options.window
        return dict(made, properties=self.topology.properties)

    def expected(self):
        return self.topology.deliveries * perf.Measurement.expected(self)

    def server_cpu_s(self):
        times = psutil.Process(self.options.server_pid).cpu_times()
        return times.user + times.system

    def follow(self):
        """One after the other with --first, together without."""
        cpu = self.server_cpu_s()
        if self.options.first:
            consumers = self.options.consumers
            self.options.consumers = 0
            perf.Measurement.follow(self)
            self.first = dict(self.last["publisher"], server_cpu_s=self.server_cpu_s() - cpu)
            cpu = self.server_cpu_s()
            self.options.consumers = consumers
            self.workers.pop("publisher").wait()
            self.start("consumer", consumers)
            self.tell("consumer", "start")
            self.tell("consumer", "expect %d" % self.expected())
            self.options.seconds, self.series = 0, []
            perf.Measurement.follow(self)
        else:
            perf.Measurement.follow(self)
        self.cpu_s = self.server_cpu_s() - cpu

    def run(self):
        if not self.options.first:
            return perf.Measurement.run(self)
        self.make()
        self.start("publisher", self.options.publishers)
        self.tell("publisher", "start")
        self.follow()
        return self.summarise()

    def write(self, everything):
        """The JSON, with the broker's CPU seconds; a message counts once, however many deliveries are made of it."""
        summary = everything["summary"]
        summary["server_cpu_s"] = self.cpu_s
        if "received" in summary:
            summary["received"] /= self.topology.deliveries
            summary["received_per_s"] /= self.topology.deliveries
        if self.options.first:
            consumed, first = self.last["consumer"], self.first
            summary["received_per_s"] = consumed["received"] / consumed["moved_s"]
            summary["first"] = {
                "confirmed": first["confirmed"],
                "confirmed_per_s": first["confirmed"] / first["moved_s"],
                "server_cpu_s": first["server_cpu_s"],
                "cpu_s": {"publisher": first["cpu_s"]},
            }
            del summary["confirmed_per_s"]
        perf.Measurement.write(self, everything)


TOPOLOGIES = {  # made of the name of the run's queues
    "headers": lambda name: Headers(),
    "topic": lambda name: Topic(),
    "alternate": lambda name: Alternate(),
    "cc": SenderSelected,
    "readers": lambda name: Readers(),
    "filtered": lambda name: Filtered(),
    "expired": lambda name: Dying({"x-message-ttl": 0}),
    "over_length": lambda name: Dying({"x-max-length": 0}),
    "rejected": Rejected,
    "returned": lambda name: Returned(),
}


def main():
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    perf.add_arguments(parser)
    parser.add_argument("--form", choices=sorted(FORMS), default="plain")
    parser.add_argument("--topology", choices=sorted(TOPOLOGIES))
    parser.add_argument("--first", action="store_true", help="the consumers begin when the publishers have ended")
    parser.add_argument("--window", type=int, default=1, help="basic.get on their way")
    parser.add_argument("--server-pid", type=int, required=True)
    options = parser.parse_args()
    perf.check(options)
    topology = TOPOLOGIES[options.topology](options.queue) if options.topology else Topology()
    options.queues = max(options.queues, topology.queues)
    measurement = Measurement(options, sys.stderr, topology)
    try:
        return measurement.run()
    except perf.Failed as error:
        print("verbs_load: %s" % error, file=sys.stderr)
        return 1
    finally:
        measurement.clean_up()


if __name__ == "__main__":
    sys.exit(main())
