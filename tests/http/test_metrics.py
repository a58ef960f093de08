"""Metrics: read by prometheus_client's own parser; names are RabbitMQ's where the meaning is, and each family comes once."""

import os
import pty
import time
import tty

import pika
import pytest
from api import Api, Served, queue
from prometheus_client.parser import text_string_to_metric_families

from leveret.core.broker.broker import Broker
from leveret.core.limits import Limits
from leveret.core.outcomes import nobody
from leveret.ports.http import metrics
from leveret.ports.http.call import Call
from leveret.ports.http.server import HttpServer

# What RabbitMQ's public dashboard reads and this broker has; the rest is in ports/http/README.md.
DASHBOARD = (
    "identity_info build_info connections channels consumers queues channel_consumers connections_opened connections_closed "
    "queue_messages_ready queue_messages_unacked process_max_fds process_open_fds process_max_tcp_sockets "
    "process_open_tcp_sockets process_resident_memory_bytes resident_memory_limit_bytes disk_space_available_bytes "
    "global_messages_acknowledged global_messages_received global_messages_redelivered global_messages_routed "
    "global_messages_unroutable_dropped global_messages_unroutable_returned global_messages_delivered erlang_uptime_seconds"
).split()
HOSTILE = 'a"b\\c\nd{}e=, #'


def families(text):
    """The families of a text by name; each is there once."""
    made = list(text_string_to_metric_families(text))
    names = [each.name for each in made]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    return {each.name: each for each in made}


def scrape(api, path="/metrics"):
    status, headers, body = api.call("GET", path)
    assert status == 200 and headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8", (status, body)
    return families(body.decode())


@pytest.fixture
def client(served, api):
    api.put_queue(HOSTILE)
    connection = pika.BlockingConnection(pika.URLParameters(served.url))
    channel = connection.channel()
    channel.queue_declare("metrics.q")
    for _ in range(5):
        channel.basic_publish("", "metrics.q", b"x")
    channel.basic_get("metrics.q")
    yield connection
    connection.close()
    for name in api.get("/queues?columns=name"):
        api.do("DELETE", queue(name["name"]))


def test_the_aggregated_metrics_are_what_dashboards_read(api, client):
    told = scrape(api)
    assert {"rabbitmq_" + name for name in DASHBOARD} <= told.keys()

    def value(name):
        return sum(sample.value for sample in told[name].samples)

    assert value("rabbitmq_connections") == 1 and value("rabbitmq_channels") == 1 and value("rabbitmq_queues") == 2
    assert value("rabbitmq_queue_messages_ready") == 4 and value("rabbitmq_queue_messages_unacked") == 1
    assert value("rabbitmq_global_messages_received") >= 5 and value("leveret_published") == value("rabbitmq_global_messages_received")
    (sample,) = told["rabbitmq_identity_info"].samples
    assert set(sample.labels) == {"rabbitmq_node", "rabbitmq_cluster", "rabbitmq_cluster_permanent_id"}
    assert {sample.labels["limit"] for sample in told["leveret_limit_max"].samples} > {"arena_size", "connection_count_max"}
    assert not any("queue" in sample.labels for each in told.values() for sample in each.samples)


def test_single_objects_with_any_name(api, client):
    told = scrape(api, "/metrics/per-object")
    ready = {sample.labels["queue"]: sample.value for sample in told["rabbitmq_queue_messages_ready"].samples}
    # A name of a queue has no line feeds (core/SPEC.md)
    assert ready == {"metrics.q": 4, HOSTILE.replace("\n", ""): 0}
    assert [sample.value for sample in told["rabbitmq_connection_channels"].samples] == [1]
    assert [sample.value for sample in told["rabbitmq_channel_messages_unacked"].samples] == [1]


def test_octets_of_single_connections_are_told_to_who_asks_for_them(api, client):
    limit = time.monotonic() + 30
    while True:  # octets are counted as sent when the peer's system has acknowledged them, between two looks perhaps
        told = scrape(api, "/metrics/detailed?family=connection_coarse_metrics")
        (row,) = api.get("/connections")
        octets = [told[f"rabbitmq_detailed_connection_{way}_bytes"] for way in ("incoming", "outgoing")]  # the parser takes _total off
        if [each.samples[0].value for each in octets] == [row["recv_oct"], row["send_oct"]]:
            break
        assert time.monotonic() < limit, (octets, row)
    for each in octets:
        assert each.type == "counter" and [sample.labels for sample in each.samples] == [{"connection": row["name"]}]


def test_the_families_that_are_asked_for(api, client):
    told = scrape(api, "/metrics/detailed?family=queue_coarse_metrics&family=queue_consumer_count&vhost=%2F")
    ours = {name for name in told if name.startswith("rabbitmq_detailed_")}
    assert ours == {"rabbitmq_detailed_queue_" + name for name in ("messages_ready", "messages_unacked", "messages", "consumers")}
    assert not any(name.startswith("rabbitmq_detailed_") for name in scrape(api, "/metrics/detailed"))
    again = "&family=connection_metrics&family=connection_coarse_metrics" * 2
    _, _, text = api.call("GET", "/metrics/detailed?" + again)
    assert text.count(b"# TYPE rabbitmq_detailed_connection_channels ") == 1
    told = scrape(api, "/metrics/detailed?family=queue_coarse_metrics&vhost=other")
    assert not any(name.startswith("rabbitmq_detailed_") for name in told)


def test_who_may_scrape(served, api):
    caller = Api(served.http_port, "x")
    caller.header = ""
    for path_ in ("/metrics", "/metrics/per-object"):
        assert caller.call("GET", path_, headers={"Authorization": ""})[0] == 200  # this machine needs no user
    assert Api(served.http_port, "viewer").call("GET", "/metrics")[0] == 401
    assert Api(served.http_port, "watcher").call("GET", "/metrics")[0] == 200
    assert Api(served.http_port, "guest", "wrong").call("GET", "/metrics")[0] == 401


def test_a_durable_broker_tells_of_its_log(tmp_path):
    process = Served("--data", str(tmp_path))
    try:
        told = scrape(Api(process.http_port, "guest"))
        assert {"leveret_log_size", "leveret_log_size_max", "leveret_log_syncs", "leveret_log_octets"} <= told.keys()
    finally:
        process.stop()


def test_a_serial_line_tells_of_its_errors():
    """Octets that are no frame are counted as damaged, for Prometheus and for the page."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    device = os.ttyname(slave)
    process = Served("--listen", "serial://" + device)
    try:
        api = Api(process.http_port, "guest")
        os.write(master, b"\x7eno frame of ours\x7e" * 3)
        limit = time.monotonic() + 60
        (line,) = api.get("/leveret/status")["lines"]
        while not line["damaged"] + line["foreign"]:
            assert time.monotonic() < limit, line
            (line,) = api.get("/leveret/status")["lines"]
        assert line["line"] == device and line["plugged_in"] and line["trouble"] == "" and (line["open"], line["sent"]) == (0, 0)
        told = scrape(api)
        (sample,) = told["leveret_line_damaged"].samples
        assert sample.labels == {"line": device} and sample.value == line["damaged"]
        assert told["leveret_line_plugged_in"].samples[0].value == 1
    finally:
        assert process.stop() == 0
        os.close(master)
        os.close(slave)


def test_lines_come_in_pieces_of_many():
    """A scrape of many objects is neither one large text nor a write to the socket for each line."""
    for count in (0, 1, metrics.AT_ONCE, metrics.AT_ONCE + 1):
        made = [piece.count(b"\n") for piece in metrics.pieces("line\n" for _ in range(count))]
        assert made == [metrics.AT_ONCE] * (count // metrics.AT_ONCE) + [count % metrics.AT_ONCE] * (count % metrics.AT_ONCE > 0)


def test_a_scrape_goes_out_in_pieces_that_hold_nobody_up():
    """However many objects there are, a piece is a hundred lines; a name with quotation marks, backslashes and line feeds is one label."""
    broker = Broker(Limits())
    names = ['a"b', "a\\b", *(f"q{number}" for number in range(300))]
    for name in names:
        broker.topology.declare_queue(nobody, name, False, False, False, False, {})
    answer = metrics.per_object(Call(HttpServer(broker, b"secret"), None, None, "GET", b"/metrics/per-object", b"", b"", {}))
    pieces = list(answer.body)
    assert max(piece.count(b"\n") for piece in pieces) <= 2 * metrics.AT_ONCE  # a head is two lines
    families = {family.name: family for family in text_string_to_metric_families(b"".join(pieces).decode())}
    for name in ("rabbitmq_queue_messages_ready", "rabbitmq_queue_messages_paged_out", "rabbitmq_queue_consumers"):
        assert [sample.labels["queue"] for sample in families[name].samples] == names
