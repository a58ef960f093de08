"""Publishers and consumers of `leveret perf` that speak a draft of 2005: perf_worker_older.py's, with the draft's frames.

Headers that are doubles are left out: no table of a draft has any.
"""

import time
from typing import Any

from leveret.core.amqp_0_9.client.draft_wire import BODY, METHOD, Wire9a5, Wire9r1
from leveret.core.errors import ProtocolError
from leveret.ports.client import connect
from leveret.ports.url_older import read_url_older
from leveret.tools import perf_worker
from leveret.tools.perf_worker import ID_DIGITS, Failed, lib, messages
from leveret.tools.perf_worker_older import Committing, TemplatesOlder

WIRES = {"0.9a5": Wire9a5(), "0.9r1": Wire9r1()}
JMS = 7


def publish_octets(wire, ticket, frame_size_max, exchange, key, body, given):
    """(frames of one publish, where the first eight octets of its body lie, where the digits of its id do; 0: it has none)."""
    given = dict(given)
    if "headers" in given:
        given["headers"] = {name: value for name, value in given["headers"].items() if not isinstance(value, float)}
    if wire.version == "0.9a5":
        given["destination"] = key
        octets = wire.method("jms_publish", 1, (ticket, exchange, False))
    else:
        octets = wire.method("jms_publish", 1, (ticket, exchange, key, False, False))
    octets += wire.header(1, JMS, 0, len(body), given)
    digits = octets.index(ID_DIGITS.encode()) if "message_id" in given else 0
    most = frame_size_max - wire.overhead
    frames = [wire.frame(BODY, 1, body[at : at + most]) for at in range(0, len(body), most)]
    stamp = len(octets) + len(frames[0]) - min(len(body), most) - 1 if len(body) >= 8 else 0
    return octets + b"".join(frames), stamp, digits


class TemplatesOfDraft(TemplatesOlder):
    """The publishes of every route."""

    made: dict = {}

    def octets_of(self, settings, frame_size_max):
        wire, ticket = WIRES[settings["version"]], settings["ticket"]
        return [publish_octets(wire, ticket, frame_size_max, *row) for row in messages(settings)]


class Reading(perf_worker.Side):
    """A reader of a draft's frames. `wire`: the draft's."""

    wire: Any

    def scan(self, at):
        """As of 0-9-1, by the draft's frames."""
        is_0_9a5 = int(self.wire.version == "0.9a5")
        return lib.leveret_perf_scan_draft(self.perf, is_0_9a5, self.address, at, self.end, time.monotonic_ns(), self.other)

    def other_frame(self, at):
        """Take the frame at `at`, which is neither delivery nor content: where it ends. Raises Failed."""
        try:
            kind, _, start, stop = self.wire.head(self.view, at, self.end)
            if kind == METHOD:
                row = [row for row in self.wire.spec.METHODS if row[0] == self.wire.code(self.octets, start)][0]
                self.answered(row[1], self.wire.arguments(row, self.view, start + 4, stop))
        except ProtocolError as error:
            raise Failed("the broker sent a frame that cannot be: %s" % error.text) from None
        return stop + 1

    def encode(self, name, number, *arguments):
        """The frame of a method."""
        return self.wire.method(name, number, arguments)


class PublisherOfDraft(Reading, Committing):
    """A publisher."""

    kind = TemplatesOfDraft

    def __init__(self, connection, settings, number, wire):
        self.wire, self.heartbeat, self.version = wire, wire.heartbeat, wire.version
        Committing.__init__(self, connection, settings, number)


class ConsumerOfDraft(Reading, perf_worker.Consumer):
    """A consumer of some queues."""

    def __init__(self, connection, settings, queues, wire):
        self.wire, self.heartbeat = wire, wire.heartbeat
        self.ticket = connection.ticket
        self.prefetch = settings["prefetch"]
        perf_worker.Consumer.__init__(self, connection, settings, queues)

    def subscribe(self, settings, queues):
        """jms.consume of each queue."""
        for queue in queues:
            place = (self.ticket, "", queue) if self.wire.version == "0.9a5" else (self.ticket, queue)
            self.send(self.encode("jms_consume", 1, *place, 0, self.prefetch, False, self.ack_every == 0, False))

    def work(self, now):
        """Acknowledge what is due."""
        if self.ack_every and self.perf.tag - self.acknowledged >= (self.ack_every if self.expected is None else 1):
            self.acknowledged = self.perf.tag
            self.send(self.encode("jms_ack", 1, self.perf.tag, True))
        elif len(self.pending):
            self.send()
        return False


def open_side(settings, number):
    """A publisher or consumer of the URL's draft, connected."""
    connection = connect(settings["url"])
    wire = WIRES[read_url_older(settings["url"]).protocol]
    if settings["role"] == "publisher":
        return PublisherOfDraft(connection, settings, number, wire)
    return ConsumerOfDraft(connection, settings, settings["queues"][number], wire)
