"""Metrics in the text format of Prometheus (version 0.0.4), with RabbitMQ's names where the meaning is the same, and leveret_* otherwise.

    /metrics                       the broker's own, no label names an object
    /metrics/per-object            and a line for each queue, connection, channel
    /metrics/detailed?family=...   rabbitmq_detailed_* of the families that are asked for; vhost=... is of the one that there is

A row of a table below is (name, type, words, value); a family's lines stand together, as the format wants it, and go out piece by piece.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...core.broker import parameters
from ...core.log import figures
from ...core.management import overview, statistics
from ...core.memory import layout
from ...core.version import VERSION
from .. import troubles
from ..peers import channel_name
from . import machine, sockets
from .answers import Answer, Piece
from .call import Call
from .counts import of_broker
from .views import COMPATIBLE

KIND = "text/plain; version=0.0.4; charset=utf-8"
AT_ONCE = 100  # lines that are made before others have their turn
PROTOCOL = {"protocol": "amqp"}  # all families of protocols together

Labels = dict[str, str]
Sample = tuple[Labels, float]
GAUGE, COUNTER = "gauge", "counter"

# The broker's counters, and counts.SOURCES, that have a name in RabbitMQ
GLOBAL = (
    ("messages_received_total", "published", "Total number of messages received from publishers"),
    ("messages_delivered_total", "deliver_get", "Total number of messages delivered to consumers"),
    ("messages_delivered_get_manual_ack_total", "got", "Total number of messages delivered to basic.get with acknowledgement"),
    ("messages_delivered_get_auto_ack_total", "got_no_ack", "Total number of messages delivered to basic.get without acknowledgement"),
    ("messages_acknowledged_total", "settled", "Total number of message acknowledgements received from consumers"),
    ("messages_redelivered_total", "redelivered", "Total number of messages redelivered to consumers"),
    ("messages_unroutable_dropped_total", "unroutable", "Total number of messages published as non-mandatory, that were dropped"),
    ("messages_unroutable_returned_total", "returned", "Total number of messages published as mandatory, that were returned"),
    ("messages_dead_lettered_total", "dead_lettered", "Total number of messages dead-lettered"),
)


def aggregated(call: Call) -> Answer:
    """/metrics."""
    return Answer(200, pieces(of_all(call)), kind=KIND)


def per_object(call: Call) -> Answer:
    """/metrics/per-object."""
    families = [*OBJECTS["queue_coarse_metrics"], *OBJECTS["queue_consumer_count"], *OBJECTS["queue_metrics"]]
    families += [*OBJECTS["connection_metrics"], *OBJECTS["channel_metrics"]]
    return Answer(200, pieces(both(of_all(call, False), of_objects(call, families, "rabbitmq_"))), kind=KIND)


def detailed(call: Call) -> Answer:
    """/metrics/detailed: of the families that are asked for."""
    families: dict[Row, None] = {}
    host = call.query.get("vhost", call.broker.virtual_host)
    if host == call.broker.virtual_host or host in call.broker.virtual_host_aliases:
        for name in call.queries.get("family", ()):
            families.update(dict.fromkeys(OBJECTS.get(name, ())))  # once each, however often it is asked for
    return Answer(200, pieces(both(identity(call), of_objects(call, families, "rabbitmq_detailed_"))), kind=KIND)


def both(first: Iterable[str], then: Iterable[str]) -> Iterator[str]:
    """Lines of both."""
    yield from first
    yield from then


def pieces(lines: Iterable[str]) -> Iterator[Piece]:
    """Lines as octets, AT_ONCE a piece."""
    waiting = []
    for line in lines:
        waiting.append(line)
        if len(waiting) >= AT_ONCE:
            yield "".join(waiting).encode()
            waiting = []
    if waiting:
        yield "".join(waiting).encode()


def family(name: str, kind: str, words: str, samples: Iterable[Sample]) -> Iterator[str]:
    """A family's lines."""
    yield f"# TYPE {name} {kind}\n# HELP {name} {words}\n"
    for labels, value in samples:
        yield f"{name}{labelled(labels)} {number(value)}\n"


def labelled(labels: Labels) -> str:
    """Labels as they stand behind a name."""
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def escaped(text: str) -> str:
    """A label's value: backslash, quotation mark and line feed have a backslash before them."""
    if "\\" not in text and '"' not in text and "\n" not in text:
        return text
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: float) -> str:
    """A value."""
    if isinstance(value, int):
        return str(int(value))
    return "NaN" if math.isnan(value) else repr(value)


def one(value: float, **labels: str) -> list[Sample]:
    """The samples of a family with one line."""
    return [(labels, value)]


def identity(call: Call) -> Iterator[str]:
    """The metric of the broker's identity, with which RabbitMQ's dashboards join all others."""
    node, cluster = call.server.node, parameters.cluster_name(call.broker)
    about = {"rabbitmq_node": node, "rabbitmq_cluster": cluster, "rabbitmq_cluster_permanent_id": parameters.cluster_id(call.broker)}
    yield from family("rabbitmq_identity_info", GAUGE, "RabbitMQ node & cluster identity info", [(about, 1)])
    about = {"rabbitmq_version": COMPATIBLE, "prometheus_plugin_version": COMPATIBLE, "prometheus_client_version": "", "erlang_version": ""}
    yield from family(
        "rabbitmq_build_info", GAUGE, "The API's version", [(about | {"product_name": "Leveret", "product_version": VERSION}, 1)]
    )


def of_all(call: Call, with_queues: bool = True) -> Iterator[str]:
    """The broker's own metrics. `with_queues`: the sums over queues, which have the names of single queues' metrics."""
    yield from identity(call)
    broker = call.broker
    counts = of_broker(broker)
    totals = overview.totals(broker)
    counters = overview.counters(broker)
    churn = call.server.churn.counts
    used, most = machine.descriptors()
    for name, kind, value, words in (
        ("connections", GAUGE, sum(each.user is not None for each in broker.connections), "Connections currently open"),
        ("channels", GAUGE, totals["channels"], "Channels currently open"),
        ("consumers", GAUGE, totals["consumers"], "Consumers currently connected"),
        ("queues", GAUGE, totals["queues"], "Queues available"),
        ("exchanges", GAUGE, totals["exchanges"], "Exchanges available"),
        ("connections_opened_total", COUNTER, counts["connection_created"], "Total number of connections opened"),
        ("connections_closed_total", COUNTER, counts["connection_closed"], "Total number of connections closed or terminated"),
        ("channels_opened_total", COUNTER, churn["channel_created"], "Total number of channels opened"),
        ("channels_closed_total", COUNTER, churn["channel_closed"], "Total number of channels closed"),
        ("queues_declared_total", COUNTER, churn["queue_declared"], "Total number of queues declared"),
        ("queues_created_total", COUNTER, churn["queue_created"], "Total number of queues created"),
        ("queues_deleted_total", COUNTER, churn["queue_deleted"], "Total number of queues deleted"),
        ("process_open_fds", GAUGE, used, "Open file descriptors"),
        ("process_max_fds", GAUGE, most, "Open file descriptors limit"),
        ("process_open_tcp_sockets", GAUGE, len(broker.connections), "Open TCP sockets"),
        ("process_max_tcp_sockets", GAUGE, broker.limits.connection_count_max, "Open TCP sockets limit"),
        ("process_resident_memory_bytes", GAUGE, machine.resident(), "Memory used in bytes"),
        ("resident_memory_limit_bytes", GAUGE, broker.octets_max or machine.memory(), "Memory high watermark in bytes"),
        ("disk_space_available_bytes", GAUGE, machine.disk(call.server.directory), "Disk space available in bytes"),
        ("disk_space_available_limit_bytes", GAUGE, 0, "Free disk space low watermark in bytes"),
        ("erlang_uptime_seconds", GAUGE, (broker.uptime_ms - (broker.began_ms or 0)) / 1000, "Node uptime"),
    ):
        yield from family("rabbitmq_" + name, kind, words, one(value))
    if with_queues:
        yield from family("rabbitmq_channel_consumers", GAUGE, "Consumers on a channel", one(totals["consumers"]))
        for name, key in (("ready", "messages_ready"), ("unacked", "messages_unacknowledged")):
            yield from family(f"rabbitmq_queue_messages_{name}", GAUGE, f"Messages {name} of all queues", one(counts[key]))
        yield from family("rabbitmq_queue_messages", GAUGE, "Sum of ready and unacknowledged messages", one(counts["messages"]))
    known = counters | counts
    for name, source, words in GLOBAL:
        yield from family("rabbitmq_global_" + name, COUNTER, words, one(known[source], **PROTOCOL))
    consumers = one(totals["consumers"], **PROTOCOL)
    yield from family("rabbitmq_global_consumers", GAUGE, "The current number of consumers", consumers)
    routed = counters["published"] - counters["unroutable"] - counters["returned"]
    yield from family("rabbitmq_global_messages_routed_total", COUNTER, "Total number of messages routed", one(routed, **PROTOCOL))
    yield from alarms(call)
    yield from of_leveret(call, counters)


def alarms(call: Call) -> Iterator[str]:
    """Metrics of what keeps publishers waiting."""
    there = [name for name, _ in troubles.alarms(call.broker)]
    for name, key in (("memory_used_watermark", "memory"), ("free_disk_space_watermark", "disk")):
        yield from family("rabbitmq_alarms_" + name, GAUGE, f"is 1 if the {key} alarm is in effect", one(int(key in there)))


def of_leveret(call: Call, counters: dict[str, int]) -> Iterator[str]:
    """Metrics that only this broker has: every counter, every limit, the log and its medium, bridges."""
    broker = call.broker
    for name, value in sorted(counters.items()):
        yield from family(f"leveret_{name}_total", COUNTER, f"The counter {name} since the start", one(value))
    pools = statistics.pools(broker)
    yield from family("leveret_limit_used", GAUGE, "How much of a limit is used", [({"limit": name}, used) for name, used, _ in pools])
    yield from family("leveret_limit_max", GAUGE, "The limit", [({"limit": name}, most) for name, _, most in pools])
    yield from family("leveret_publishers_waiting", GAUGE, "Connections that are not read until there is room", one(len(broker.held)))
    yield from family("leveret_http_connections", GAUGE, "Connections of this API", one(len(call.server.connections)))
    if broker.journal is not None:
        shown = figures.shown(broker.journal)
        for name in ("size", "size_max", "segments", "message_octets", "medium_octets", "erases", "amplification", "life_years"):
            if shown[name] is not None:
                yield from family("leveret_log_" + name, GAUGE, f"The log: {name}", one(shown[name]))
        yield from family("leveret_log_trouble", GAUGE, "is 1 while the log cannot be written", one(int(bool(shown["trouble"]))))
    lines = [line.figures() for line in call.server.lines]
    for key in ("sessions", "sent", "sent_again", "received", "discarded", "damaged", "foreign", "own") if lines else ():
        samples = [({"line": row["line"]}, row[key]) for row in lines]
        yield from family(f"leveret_line_{key}_total", COUNTER, f"Frames of a serial line: {key.replace('_', ' ')}", samples)
    if lines:
        samples = [({"line": row["line"]}, int(row["plugged_in"])) for row in lines]
        yield from family("leveret_line_plugged_in", GAUGE, "is 1 while the serial device is there", samples)
    reports = {name: {"report_age_ms": broker.uptime_ms - at, **report} for name, (at, report) in broker.bridges.items()}
    keys = sorted({key for report in reports.values() for key, value in report.items() if isinstance(value, (int, float))})
    for key in keys:
        samples = [({"bridge": name}, report[key]) for name, report in reports.items() if isinstance(report.get(key), (int, float))]
        yield from family("leveret_bridge_" + "".join(each if each.isalnum() else "_" for each in key), GAUGE, f"A bridge's {key}", samples)


# Of single objects: (kind of object, name, words, value of (server, object)). A scrape asks thousands of objects for each: a value is one
# call, a whole number, and makes nothing that is thrown away.

Row = tuple[str, str, str, Callable[[Any, Any], int | None]]


def ready_of(server: Any, queue: Any) -> int:
    """Ready messages."""
    return int(queue.message_count())


def undone_of(server: Any, queue: Any) -> int:
    """Messages that are delivered and not settled."""
    return int(queue.unsettled_count())


def messages_of(server: Any, queue: Any) -> int:
    """Ready and unsettled messages."""
    return int(queue.message_count() + queue.unsettled_count())


def octets_of(server: Any, queue: Any) -> int:
    """Octets of the ready bodies, as core/management/statistics.py has them."""
    return int(queue.size if queue.is_stream else queue.octets())


def paged_of(server: Any, queue: Any) -> int:
    """Messages that are only in the log."""
    return 0 if queue.pages is None or queue.is_stream else int(queue.pages.count)


def unsettled_of(server: Any, session: Any) -> int:
    """Deliveries that are not settled, and what a get has taken."""
    channels, handle = server.broker.tables.channels, session.handle
    return int(channels[handle + layout.CHANNEL_UNSETTLED] + channels[handle + layout.CHANNEL_GOT])


def prefetch_of(server: Any, session: Any) -> int:
    """Most unsettled deliveries of all the channel's consumers."""
    return max(int(server.broker.tables.channels[session.handle + layout.CHANNEL_PREFETCH]), 0)


def traffic_of(name: str) -> Callable[[Any, Any], int | None]:
    """What the system has counted for a connection's socket; None: nothing."""
    return lambda server, connection: sockets.traffic(server.peers.stream_of(connection)).get(name)


QUEUE, CONNECTION, CHANNEL = "queue", "connection", "channel"
OBJECTS: dict[str, tuple[Row, ...]] = {
    "queue_coarse_metrics": (
        (QUEUE, "queue_messages_ready", "Messages ready to be delivered to consumers", ready_of),
        (
            QUEUE,
            "queue_messages_unacked",
            "Messages delivered to consumers but not yet acknowledged",
            lambda server, queue: queue.unsettled_count(),
        ),
        (
            QUEUE,
            "queue_messages",
            "Sum of ready and unacknowledged messages",
            lambda server, queue: queue.message_count() + queue.unsettled_count(),
        ),
    ),
    "queue_consumer_count": ((QUEUE, "queue_consumers", "Consumers on a queue", lambda server, queue: len(queue.consumers)),),
    "queue_metrics": (
        (QUEUE, "queue_messages_bytes", "Size in bytes of ready messages", octets_of),
        (
            QUEUE,
            "queue_messages_ram_bytes",
            "Octets of memory that a queue's messages take",
            lambda server, queue: statistics.octets_held(queue),
        ),
        (QUEUE, "queue_messages_paged_out", "Messages that are only in the log", paged_of),
    ),
    "connection_metrics": (
        (CONNECTION, "connection_channels", "Channels on a connection", lambda server, connection: len(connection.sessions())),
    ),
    "channel_metrics": (
        (CHANNEL, "channel_consumers", "Consumers on a channel", lambda server, session: len(session.consumers)),
        (CHANNEL, "channel_messages_unacked", "Delivered but not yet acknowledged messages", unsettled_of),
        (CHANNEL, "channel_prefetch", "Total limit of unacknowledged messages for all consumers on a channel", prefetch_of),
    ),
}
OBJECTS["connection_coarse_metrics"] = (
    *OBJECTS["connection_metrics"],
    (CONNECTION, "connection_incoming_bytes_total", "Total number of bytes received on a connection", traffic_of("recv_oct")),
    (CONNECTION, "connection_outgoing_bytes_total", "Total number of bytes sent on a connection", traffic_of("send_oct")),
)


def of_objects(call: Call, families: Iterable[Row], prefix: str) -> Iterator[str]:
    """A line for each object of each family."""
    server, broker = call.server, call.broker
    for kind, name, words, value in families:
        yield f"# TYPE {prefix}{name} {COUNTER if name.endswith('_total') else GAUGE}\n# HELP {prefix}{name} {words}\n"
        if kind == QUEUE:
            begin = f'{prefix}{name}{{vhost="{escaped(broker.virtual_host)}",queue="'
            for queue in list(broker.queues.values()):
                if broker.queues.get(queue.name) is queue:
                    yield f'{begin}{escaped(queue.name)}"}} {value(server, queue)}\n'
            continue
        begin = f'{prefix}{name}{{{kind}="'
        for connection in list(broker.connections):
            if connection.closed or connection.user is None:
                continue
            if kind == CONNECTION:
                number = value(server, connection)
                if number is not None:
                    yield f'{begin}{escaped(connection.name)}"}} {number}\n'
                continue
            for session in connection.sessions():
                if not session.closing:
                    yield f'{begin}{escaped(channel_name(session))}"}} {value(server, session)}\n'
