"""The bench's rows of what is heavy: large bodies, TLS, latency beside other work, memory; `dev.py bench --only heavy`.

Columns as in run.py. Large bodies: a publisher and a consumer without acknowledgements, and with confirms. TLS: confirms, and handshakes
one after another, in full and with a session of before. Latency at a fixed rate (rows_latency.py). Memory: a queued message of 256 octets,
an idle connection, and ten thousand. On a machine that others use the CPU time of a message is the comparison that holds; a rate is not.
"""

import contextlib
import resource
import socket
import ssl
import tempfile
import time

import rows_1_0
import rows_latency
from amqp_wire import RawClient
from broker_process import BrokerProcess, free_port
from certificates import Authority
from loading import FAILURES, RunFailed, add_run, cpu_seconds, perf, say

COLUMNS = ("leveret", "plain", "rabbitmq", "relay")
SERVED = ("leveret", "plain", "rabbitmq")

# name, title, options of `leveret perf`, the columns that can do it (None: all; a message of the relay's is smaller than its buffer)
BODIES = (
    ("64k", "bodies of 64 KiB on average", ("--size", 65536), None),
    ("64k_confirms", "the same with confirms, window 100", ("--size", 65536, "--confirm", 100), None),
    ("1m", "bodies of 1 MiB on average", ("--size", 1 << 20), None),
    ("1m_confirms", "the same with confirms, window 10", ("--size", 1 << 20, "--confirm", 10), None),
    ("8m", "bodies of 8 MiB on average", ("--size", 8 << 20), SERVED),
    ("8m_confirms", "the same with confirms, window 2", ("--size", 8 << 20, "--confirm", 2), SERVED),
)
TLS = (
    ("tls_256", "TLS, 256 octets, confirms, window 200", ("--confirm", 200), SERVED),
    ("tls_64k", "TLS, 64 KiB, confirms, window 100", ("--size", 65536, "--confirm", 100), SERVED),
)
HANDSHAKES = (("tls_full", "TLS handshakes a second", False, SERVED), ("tls_again", "the same with the session of before", True, SERVED))
SCENARIOS = BODIES + TLS + HANDSHAKES
GOALS = {"64k": 3.0, "64k_confirms": 3.0, "1m": 1.3, "1m_confirms": 1.3, "8m": 1.3, "8m_confirms": 1.3, "tls_256": 3.0, "tls_64k": 1.0}

MANY = 10000  # idle connections
MESSAGE_GOAL, CONNECTION_GOAL = 450, 6.0  # octets of a queued message; KiB of an idle connection beyond its buffers


def start_tls(column, authority, identity):
    """A broker with TLS: `tls_url`, `tls_port`."""
    certificate, key = identity
    port = free_port()
    if column == "rabbitmq":
        options = ("cacertfile = " + authority.certificate, "certfile = " + certificate, "keyfile = " + key)
        lines = ["listeners.ssl.default = 127.0.0.1:%d" % port] + ["ssl_options." + option for option in options]
        broker = BrokerProcess("rabbitmq", configuration="\n".join(lines) + "\n")
    else:
        listener = "amqps://127.0.0.1:%d?cert=%s&key=%s" % (port, certificate, key)
        variables = {"LEVERET_ACCEL": "0"} if column == "plain" else {}
        broker = BrokerProcess("leveret", arguments=["--listen", listener], variables=variables)
    broker.column = column
    broker.tls_port = port
    broker.tls_url = "amqps://guest:guest@127.0.0.1:%d/?ca=%s" % (port, authority.certificate)
    return broker


def handshakes(broker, authority, seconds, again):
    """A summary as `perf` has it, and the CPU seconds of the broker: connections that end behind their handshake, one after another, with
    TLS 1.2, where a client has its session at once; `again`: each takes up that of the first."""
    context = ssl.create_default_context(cafile=authority.certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    session, count, cpu, busy = None, 0, cpu_seconds(broker), time.process_time()
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        with socket.create_connection(("127.0.0.1", broker.tls_port)) as plain:
            with context.wrap_socket(plain, server_hostname="localhost", session=session) as client:
                session = client.session if again and session is None else session
                if again and count and not client.session_reused:
                    raise RunFailed("%s: a session was not taken up" % broker.column)
        count += 1
    rate = count / (time.monotonic() - began)
    told = {"received": count, "received_per_s": rate, "cpu_s": {"client": time.process_time() - busy}}
    return told, cpu_seconds(broker) - cpu


def measure_rows(brokers, scenarios, runs, run_of):
    """({scenario: {column: cell}}, what did not end well, as lines). `run_of(broker, options)`: a run."""
    rows, failed = {}, []
    for name, title, options, columns in scenarios:
        row = rows[name] = {}
        for number in range(runs):
            for broker in brokers:
                if broker.column not in (columns or COLUMNS):
                    continue
                try:
                    add_run(row, broker.column, title, number, run_of(broker, options))
                except FAILURES as error:
                    failed.append("%s, %s: %s" % (title, broker.column, (str(error).strip() or repr(error)).splitlines()[-1]))
                    say("  " + failed[-1])
    return rows, failed


def many_connections(start):
    """{"count", "octets": resident ones of each of MANY idle connections in C, beyond its buffers, "cpu_percent": of a core}."""
    from run import buffers_kb, resident_kb

    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    limits = 'connection_count_max = %d\nchannel_count_max = %d\nmemory_max = "16G"\n' % (MANY + 100, MANY + 100)
    broker = start("leveret", False, limits)
    clients = []
    try:
        before = resident_kb(broker) - buffers_kb(broker)
        for _ in range(MANY):
            clients.append(RawClient(broker.host, broker.port).open())
        time.sleep(1)
        taken = (resident_kb(broker) - buffers_kb(broker) - before) * 1024 / MANY
        cpu = cpu_seconds(broker)
        time.sleep(3)
        return {"count": MANY, "octets": taken, "cpu_percent": 100 * (cpu_seconds(broker) - cpu) / 3}
    finally:
        for client in clients:
            client.socket.close()
        broker.stop()


def measure(start, seconds, runs):
    """{"rates", "failed", "latency", "memory", "many"}. `start(column, durable, limits)`: of run.py."""
    from run import memory

    found: dict = {"rates": {}, "failed": [], "memory": {}}
    with contextlib.ExitStack() as stack:

        def kept(broker):
            stack.callback(broker.stop)
            return broker

        brokers = [kept(start(column)) for column in COLUMNS]
        for broker in brokers:
            if broker.column in SERVED:
                say("Memory of %s" % broker.column)
                found["memory"][broker.column] = memory(broker)
        rows, failed = measure_rows(brokers, BODIES, runs, lambda broker, options: perf(broker, broker.url, seconds, "--vary", *options))
        found["rates"].update(rows)
        found["failed"] += failed
        authority = Authority(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench_tls_")))
        identity = authority.issue("server", "/CN=localhost")
        with_tls = [kept(start_tls(column, authority, identity)) for column in SERVED]
        for rows, failed in (
            measure_rows(with_tls, TLS, runs, lambda broker, options: perf(broker, broker.tls_url, seconds, "--vary", *options)),
            measure_rows(with_tls, HANDSHAKES, runs, lambda broker, again: handshakes(broker, authority, seconds, again)),
        ):
            found["rates"].update(rows)
            found["failed"] += failed
    found["latency"], failed = rows_latency.measure(start, seconds, runs)
    found["failed"] += failed
    found["many"] = many_connections(start)
    return found


def table(found):
    """The figures as lines of text."""
    from run import connection_kb

    lines = rows_1_0.table(found["rates"], "heavy", SCENARIOS, COLUMNS)
    for column, memory in found["memory"].items():
        beyond = connection_kb(memory) - connection_kb(memory, "buffers")
        told = (column, memory["message_octets"], beyond)
        lines.append("%s: a queued message %d octets, an idle connection %.1f KiB beyond its buffers" % told)
    many = found["many"]
    lines.append("leveret: %(count)d idle connections, %(octets)d octets each beyond buffers, %(cpu_percent).1f %% of a core" % many)
    return lines + rows_latency.table(found["latency"])


def ratios(found):
    """[(scenario, column, compared with, ratio, goal)]: rates, and what of it the CPU time of a message says."""
    told = []
    rows = found["rates"]
    for scenario, goal in GOALS.items():
        mine, theirs = rows_1_0.rate(rows, scenario, "leveret"), rows_1_0.rate(rows, scenario, "rabbitmq")
        if mine and theirs:
            told.append((scenario, "leveret", "rabbitmq", mine / theirs, goal))
            cpu = [min(rows[scenario][column]["cpu_us"]) for column in ("rabbitmq", "leveret")]
            told.append((scenario + ", CPU", "leveret", "rabbitmq", cpu[0] / cpu[1], goal))
    return told
