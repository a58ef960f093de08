"""Publishers and consumers of `leveret perf` that speak AMQP 0-8 or 0-9: perf_worker.py's, with those versions' methods and tickets.

There are no confirms: with --confirm N a publisher sends transactions of N messages, and waits for each tx.commit-ok; the time that a
commit takes is in no latency.
"""

from leveret.core.amqp_0_9 import method, spec_0_8, spec_0_9
from leveret.ports.client import connect
from leveret.ports.url_older import read_url_older
from leveret.tools import perf_worker

METHODS = {"0-8": spec_0_8.METHODS, "0-9": spec_0_9.METHODS}


class TemplatesOlder(perf_worker.Templates):
    """The publishes of every route, with the ticket that `settings` have beside the usual."""

    made: dict = {}

    @classmethod
    def of_ticket(cls, settings, frame_size_max, ticket, version):
        """The templates of a connection that was granted a ticket."""
        key = version, frame_size_max, ticket
        if key not in cls.made:
            cls.made[key] = cls(dict(settings, ticket=ticket, version=version), frame_size_max)
        return cls.made[key]

    def octets_of(self, settings, frame_size_max):
        """The rows of publish_octets: the ticket stands behind frame header, class and method."""
        ticket = settings["ticket"]
        rows = perf_worker.Templates.octets_of(self, settings, frame_size_max)
        return [(octets[:11] + ticket.to_bytes(2, "big") + octets[13:], stamp, digits) for octets, stamp, digits in rows]


class Committing(perf_worker.Publisher):
    """A publisher whose messages are kept when their transaction is committed. `batch`: messages of one; 0: there are none. `kind`: of its
    templates."""

    kind = TemplatesOlder
    version = ""

    def __init__(self, connection, settings, number):
        if settings["confirm"]:
            connection.tx_select()
        self.ticket = connection.ticket
        perf_worker.Side.__init__(self, connection)
        self.rate, self.window, self.count = settings["rate"], 0, settings["count"]
        self.batch = settings["confirm"]
        self.asked = 0  # messages before the last tx.commit
        self.templates = self.kind.of_ticket(settings, self.frame_size_max, self.ticket, self.version)
        self.prepare(settings, number)

    def may(self, now):
        allowed = perf_worker.Publisher.may(self, now)
        if not self.batch:
            return allowed
        return 0 if self.asked > self.perf.confirmed else min(allowed, self.batch - (self.perf.published - self.asked))

    def work(self, now):
        busy = perf_worker.Publisher.work(self, now)
        published = self.perf.published
        if self.batch and not len(self.pending) and published > self.asked == self.perf.confirmed:
            self.asked = published
            self.send(self.encode("tx_commit", 1))
        return busy

    def answered(self, name, arguments):
        if name == "tx_commit_ok":
            self.perf.confirmed = self.asked
        perf_worker.Publisher.answered(self, name, arguments)

    def done(self, now):
        if self.batch and not self.given_up and self.perf.confirmed < self.perf.published:
            return False
        return perf_worker.Publisher.done(self, now)


def classes_of(protocol):
    """(publisher, consumer) of a version."""

    class PublisherOlder(Committing):
        """A publisher."""

        methods = METHODS[protocol]

    class ConsumerOlder(perf_worker.Consumer):
        """A consumer of some queues."""

        methods = METHODS[protocol]

        def __init__(self, connection, settings, queues):
            self.ticket = connection.ticket
            perf_worker.Consumer.__init__(self, connection, settings, queues)

        def subscribe(self, settings, queues):
            """As of 0-9-1, with a ticket, and in 0-8 with Qpid's table only where there are arguments."""
            row = method.named(self.methods, "basic_consume")
            arguments: tuple = self.ticket, "", "", False, self.ack_every == 0, False, False, settings["arguments"]
            if row[method.FIELDS].endswith("f") and not settings["arguments"]:
                row = row[: method.FIELDS] + (row[method.FIELDS][:-1],) + row[method.SENDER :]
                arguments = arguments[:-1]
            for queue in queues:
                self.send(method.encode(row, 1, (self.ticket, queue) + arguments[2:]))

    return PublisherOlder, ConsumerOlder


def open_side(settings, number):
    """A publisher or consumer of the URL's version, connected."""
    connection = connect(settings["url"])
    publisher, consumer = classes_of(read_url_older(settings["url"]).protocol)
    if settings["role"] == "publisher":
        return publisher(connection, settings, number)
    return consumer(connection, settings, settings["queues"][number])
