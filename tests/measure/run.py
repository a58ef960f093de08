"""Measures Leveret beside RabbitMQ and beside a limit: `tools/dev.py bench`, or `python tests/measure/run.py [--json FILE] [--seconds N]`.

Columns, all in one run, in turns, each idle while another works:
    leveret    the hot functions in C          plain      the same broker with LEVERET_ACCEL=0
    rabbitmq   where it is installed           relay      relay.c: one C loop that only rewrites frames
Messages are as people's: all columns get the same stream of them, drawn from one seed (`leveret perf --vary`), in which no two are alike:
sizes from half to one and a half of what the row says, a message-id, a correlation-id, a table of headers, and KEYS routing keys.
The relay keeps to prefetch as brokers do. `blind` is the same relay without that, in the scenario with acknowledgements only: what the wait
for acknowledgements costs anybody. Each row is a run of `leveret perf` (rows of SCENARIOS; of AMQP 1.0 and 0-10 those of
rows_1_0.py and rows_0_10.py, before 0-9-1 rows_old.py's, of what queues and messages can have those of rows_features.py);
a figure is the median of `--runs` runs; a run that loses or doubles a message fails. Beside that: latency at 1,000 messages a second, CPU
for each message, seconds to the first answer, resident memory. The ratios at the end are the goals of the C data plane;
tests/measure/show.py puts the figures into README.md.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "interop"))

import psutil  # noqa: E402 - the path of amqp_wire has to be set first; one block of imports is easier to read
from amqp_wire import RawClient, publish  # noqa: E402 - the path above has to be set first
from broker_process import BrokerProcess, rabbitmq_installed  # noqa: E402 - the path above has to be set first

sys.path.insert(0, HERE)
import rows_0_10  # noqa: E402, I001 - rows_1_0 sets the path that it needs
import rows_1_0  # noqa: E402 - the path above has to be set first
import rows_features  # noqa: E402 - the path above has to be set first
import rows_heavy  # noqa: E402 - the path above has to be set first
import rows_old  # noqa: E402 - the path above has to be set first
from loading import add_run, cpu_seconds, perf, say  # noqa: E402 - the path above has to be set first

STARTS = 3
CONNECTIONS = (100, 1000)
QUEUED = 10000  # messages of 256 octets, for the memory of one
FILES = 8192  # open files, for a thousand connections
MANY = """[limits]
connection_count_max = 1100
queue_count_max = 1400
queue_share_max = 1100
binding_count_max = 65536
binding_share_max = 65536
"""
KINDS = ("leveret", "plain", "rabbitmq", "relay")
BLIND = "blind"  # beside them, in the scenario "acks" only

GROUPS = ("0-9-1", "features", "1.0", "0-10", "old", "heavy")  # of rows

KEYS = 100
USUAL = ("--exchange", "direct", "--routing-keys", KEYS)
NO_RELAY = ("leveret", "plain", "rabbitmq")

# name, title, arguments of `leveret perf`, the columns that can do it (None: all)
SCENARIOS = (
    ("no_ack", "no acknowledgements", USUAL, None),
    ("acks", "acks, prefetch 200", (*USUAL, "--ack-every", 50, "--prefetch", 200), None),
    ("confirms", "confirms, window 200", (*USUAL, "--confirm", 200), None),
    ("persistent", "durable, persistent, confirms, window 200", (*USUAL, "--confirm", 200, "--persistent"), NO_RELAY),
    (
        "usual",
        "the same with acks, prefetch 200",
        (*USUAL, "--confirm", 200, "--persistent", "--ack-every", 50, "--prefetch", 200),
        NO_RELAY,
    ),
    ("fanout", "fan-out to 10 queues (deliveries)", ("--exchange", "fanout", "--routing-keys", KEYS, "--queues", 10), None),
    ("keys", "1,000 routing keys of a topic exchange", ("--exchange", "topic", "--routing-keys", 1000), None),
    ("queues", "100 queues", ("--queues", 100), None),
    ("idle", "1,000 idle connections beside", USUAL, NO_RELAY),
    ("size_0", "bodies of 0", (*USUAL, "--size", 0), None),
    ("size_16", "bodies of 16 on average", (*USUAL, "--size", 16), None),
    ("size_4k", "bodies of 4 KiB on average", (*USUAL, "--size", 4096), None),
    ("size_64k", "bodies of 64 KiB on average", (*USUAL, "--size", 65536), None),
    ("size_1m", "bodies of 1 MiB on average", (*USUAL, "--size", 1048576), None),
)
DURABLE = ("persistent", "usual")  # the rows for which a Leveret has a log on the disk

# What is the same in all rows, for who reads the table.
STREAM = (
    "no two messages alike: sizes from half to one and a half of the average (256 octets unless said), a message-id of its own, "
    "correlation-id, content-type and a table of headers, %d routing keys of a direct exchange unless said; every column gets the "
    "same stream of them (`leveret perf --vary`)" % KEYS
)

# The goals: (scenario, column compared with, at least this ratio).
GOALS = (
    ("no_ack", "rabbitmq", 5.0),
    ("acks", "rabbitmq", 5.0),
    ("confirms", "rabbitmq", 10.0),
    *((scenario, "relay", 1 / 3) for scenario in ("no_ack", "acks", "confirms", "fanout", "keys", "queues")),
)
PLAIN_GOAL, PLAIN_GOALS = 0.5, ("no_ack", "acks", "confirms", "persistent", "usual")  # of RabbitMQ
SPREAD_GOAL = 0.7  # many keys or queues, of one


class Relay:
    """relay.c, compiled and running. `column`: "relay", or "blind" when it is not to wait for acknowledgements."""

    host = "127.0.0.1"

    def __init__(self, column):
        self.column = column
        self.directory = tempfile.TemporaryDirectory(prefix="relay_")
        program = os.path.join(self.directory.name, "relay")
        subprocess.run(["gcc", "-O2", "-o", program, os.path.join(HERE, "relay.c")], check=True)
        command = [program] + [BLIND] * (column == BLIND)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.server_pid = self.process.pid
        self.url = "amqp://127.0.0.1:%d/" % self.port

    def stop(self):
        self.process.communicate()
        self.directory.cleanup()


def start(kind, durable=False, limits="", more=()):
    """A broker for a column; `durable`: with a log on the disk; of a Leveret, `limits`: further lines of its configuration, `more`: further
    arguments."""
    if kind in ("relay", BLIND):
        return Relay(kind)
    if kind == "rabbitmq":
        broker = BrokerProcess("rabbitmq")
        broker.column = kind
        return broker
    kept = tempfile.TemporaryDirectory(prefix="bench_data_", ignore_cleanup_errors=True)  # until the end of this process
    directory = kept.name
    config = os.path.join(directory, "leveret.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(("[limits]\n" if "connection_count_max" in limits else MANY) + limits)
    data = ["--data", os.path.join(directory, "log"), "--disk-max", "64G"]
    arguments = ["--config", config, *more] + (data if durable else [])
    broker = BrokerProcess("leveret", arguments=arguments, variables={"LEVERET_ACCEL": "0"} if kind == "plain" else {})
    broker.kept = kept
    broker.column = kind
    return broker


def varied(broker, seconds, *arguments):
    """A run of the stream that all columns get."""
    return perf(broker, broker.url, seconds, "--vary", *arguments)


def measure(brokers, durable, seconds, runs):
    """{scenario: {column: {"rates": [...], "cpu_us": [...]}}}."""
    found = {}
    for name, title, arguments, kinds in SCENARIOS:
        row = found[name] = {}
        able = [
            broker
            for broker in (durable if name in DURABLE else brokers)
            if (kinds is None or broker.column in kinds) and (broker.column != BLIND or name == "acks")
        ]
        for number in range(runs):
            for broker in able:
                idle = [RawClient(broker.host, broker.port).open() for _ in range(CONNECTIONS[1])] if name == "idle" else []
                measured = varied(broker, seconds, *arguments)
                for client in idle:
                    client.socket.close()
                add_run(row, broker.column, title, number, measured)
    return found


def latencies(brokers, seconds):
    """{column: {percentile: microseconds}} at 1,000 messages a second."""
    return {
        broker.column: varied(broker, max(seconds, 3), "--rate", 1000, *USUAL)[0]["latency_us"]
        for broker in brokers
        if broker.column != BLIND
    }


def resident_kb(broker):
    return psutil.Process(broker.server_pid).memory_info().rss / 1024


def buffers_kb(broker):
    """Resident KiB of a Leveret's connection buffers (receive_buffer_size, send_buffer_size): the only memory that is mapped as shared and
    grows with connections. 0 for another broker."""
    if broker.kind != "leveret":
        return 0
    with open("/proc/%d/status" % broker.server_pid, encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssShmem:"))


def memory(broker):
    """Resident KiB: idle, with CONNECTIONS open (and what of it are their buffers), and for each of QUEUED messages."""
    time.sleep(1)
    found = {"idle_kb": resident_kb(broker)}
    clients = []
    for count in CONNECTIONS:
        clients += [RawClient(broker.host, broker.port).open() for _ in range(count - len(clients))]
        time.sleep(1)
        found["connections_%d_kb" % count] = resident_kb(broker)
        found["buffers_%d_kb" % count] = buffers_kb(broker)
    client = clients.pop()
    client.declare_queue("bench.memory")
    before = resident_kb(broker)
    for _ in range(QUEUED):
        client.send(publish(1, "", "bench.memory", bytes(256)))
    client.declare_queue("bench.memory")
    found["message_octets"] = (resident_kb(broker) - before) * 1024 / QUEUED
    client.call("queue.delete-ok", 1, "queue.delete", queue="bench.memory")
    for each in clients + [client]:
        each.socket.close()
    return found


def connection_kb(found, what="connections"):
    """What one connection more takes, of a dict of `memory`; `what`: of that its "buffers"."""
    return (found["%s_%d_kb" % (what, CONNECTIONS[1])] - found["%s_%d_kb" % (what, CONNECTIONS[0])]) / (CONNECTIONS[1] - CONNECTIONS[0])


def ready_seconds(kind):
    seconds = []
    for _ in range(STARTS):
        broker = start(kind)
        seconds.append(broker.ready_s)
        broker.stop()
    return seconds


def idle_cpu(broker):
    """The share of one core that an idle broker takes, in percent."""
    cpu, began = cpu_seconds(broker), time.monotonic()
    time.sleep(5)
    return 100 * (cpu_seconds(broker) - cpu) / (time.monotonic() - began)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "cpu_count": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d"),
    }


def rate(result, scenario, kind):
    """The median of a cell, None where there is none."""
    cell = result["rates"].get(scenario, {}).get(kind)
    return statistics.median(cell["rates"]) if cell else None


def table(result):
    """The figures as text, one column for each broker."""
    kinds = result["columns"]
    lines = textwrap.wrap(STREAM[0].upper() + STREAM[1:] + ".", 90)
    lines.append("%-42s" % "messages a second" + "".join("%12s" % kind for kind in kinds))

    def row(text, values, form):
        lines.append("%-42s" % text + "".join("%12s" % ("-" if value is None else form % value) for value in values))

    for name, title, _, _ in SCENARIOS:
        row(title, [rate(result, name, kind) for kind in kinds], "%d")
    row("CPU a message, no acks (us)", [statistics.median(result["rates"]["no_ack"][kind]["cpu_us"]) for kind in kinds], "%.2f")
    for percentile in ("50", "99"):
        row("latency p%s at 1,000/s (us)" % percentile, [result["latency_us"].get(kind, {}).get(percentile) for kind in kinds], "%d")
    row("start to ready (s)", [statistics.median(result["ready_s"][kind]) if kind in result["ready_s"] else None for kind in kinds], "%.2f")
    found = [result["memory"].get(kind) for kind in kinds]
    row("resident, idle (MiB)", [each and each["idle_kb"] / 1024 for each in found], "%.1f")
    row("resident, a connection more (KiB)", [each and connection_kb(each) for each in found], "%.1f")
    row("  beyond its buffers (KiB)", [each and connection_kb(each) - connection_kb(each, "buffers") for each in found], "%.1f")
    row("resident, a queued message (octets)", [each and each["message_octets"] for each in found], "%d")
    row("CPU when idle (%)", [result["idle_cpu"].get(kind) for kind in kinds], "%.1f")
    return "\n".join(lines)


def goals(result):
    """What was asked and what came out, as lines."""
    asked = [(scenario, "leveret", other, least) for scenario, other, least in GOALS]
    asked += [(scenario, "plain", "rabbitmq", PLAIN_GOAL) for scenario in PLAIN_GOALS]
    lines = []
    for scenario, kind, other, least in asked:
        mine, theirs = rate(result, scenario, kind), rate(result, scenario, other)
        if mine and theirs:
            ratio = mine / theirs
            lines.append("%-9s %s / %s: %.2f (goal %.2f) %s" % (scenario, kind, other, ratio, least, verdict(ratio >= least)))
    mine, theirs = rate(result, "acks", "leveret"), rate(result, "acks", BLIND)
    if theirs:
        lines.append("%-9s leveret / a relay that waits for no acknowledgement: %.2f (no goal)" % ("acks", mine / theirs))
    for scenario in ("keys", "queues"):
        share = rate(result, scenario, "leveret") / rate(result, "no_ack", "leveret")
        lines.append("%-9s / one key: %.2f (goal %.2f) %s" % (scenario, share, SPREAD_GOAL, verdict(share >= SPREAD_GOAL)))
    found = result["memory"]["leveret"]
    beyond = connection_kb(found) - connection_kb(found, "buffers")
    lines.append("idle, resident: %.1f MiB (goal 25) %s" % (found["idle_kb"] / 1024, verdict(found["idle_kb"] < 25 * 1024)))
    lines.append("an idle connection beyond its buffers: %.1f KiB (goal 10) %s" % (beyond, verdict(beyond < 10)))
    return lines


def verdict(met):
    return "met" if met else "missed"


def run(seconds, runs):
    """The rows of AMQP 0-9-1: a dict that JSON can hold."""
    kinds = [kind for kind in KINDS if kind != "rabbitmq" or rabbitmq_installed()]
    if "rabbitmq" not in kinds:
        say("RabbitMQ is not installed, so there is nothing to compare with; apt install rabbitmq-server brings it.")
    result: dict = {"columns": kinds, "ready_s": {}, "memory": {}, "idle_cpu": {}}
    served = [kind for kind in kinds if kind != "relay"]
    for kind in served:
        say("Starting %s %d times" % (kind, STARTS))
        result["ready_s"][kind] = ready_seconds(kind)
    brokers, durable = [], []
    try:
        brokers = [start(kind) for kind in kinds + [BLIND]]
        durable = [start(kind, True) for kind in ("leveret", "plain")] + [broker for broker in brokers if broker.column == "rabbitmq"]
        for broker in brokers:
            if broker.column in served:
                say("Memory of %s" % broker.column)
                result["idle_cpu"][broker.column] = idle_cpu(broker)
                result["memory"][broker.column] = memory(broker)
        result["latency_us"] = latencies(brokers, seconds)
        result["rates"] = measure(brokers, durable, seconds, runs)
    finally:
        for broker in brokers + [broker for broker in durable if broker not in brokers]:
            broker.stop()
    return result


def features(seconds, runs, minutes, mib):
    """The rows of rows_features.py, and what did not end well there."""
    brokers = []
    try:
        for kind in rows_features.COLUMNS:
            if kind != "rabbitmq" or rabbitmq_installed():
                brokers.append(start(kind, kind != "rabbitmq"))
        bench = rows_features.Bench(brokers, lambda kind, limits: start(kind, True, limits), seconds, minutes, mib)
        bench.measure(runs)
        return bench.rows, bench.failed
    finally:
        for broker in brokers:
            broker.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--json", default=os.path.join("build", "bench.json"), metavar="FILE", help="where the figures go (default build/bench.json)"
    )
    parser.add_argument("--seconds", type=int, default=2, help="length of one run (default 2)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each scenario (default 3)")
    parser.add_argument(
        "--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="ROWS", help="of %s (default: all)" % ", ".join(GROUPS)
    )
    parser.add_argument("--show", action="store_true", help="put the figures into the pages, and draw them")
    parser.add_argument(
        "--minutes",
        type=float,
        default=10,
        help="for the rows of features; what is left of them after one run each goes to further ones (default 10)",
    )
    parser.add_argument(
        "--beyond-mib",
        type=int,
        default=64,
        metavar="MIB",
        help="size of a queue beyond memory, 16 times the memory (default 64; issue 15 has 1024)",
    )
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, FILES), most))  # the brokers inherit it; Erlang takes memory for each
    result = {"machine": machine(), "seconds": options.seconds, "runs": options.runs, "beyond_mib": options.beyond_mib}
    if "0-9-1" in options.only:
        result.update(run(options.seconds, options.runs))
    if "features" in options.only:
        result["rates_features"], result["failed_features"] = features(options.seconds, options.runs, options.minutes, options.beyond_mib)
    if "1.0" in options.only:
        result["rates_1_0"], result["failed_1_0"] = rows_1_0.measure(start, options.seconds, options.runs)
    if "0-10" in options.only:
        result["rates_0_10"], result["failed_0_10"] = rows_0_10.measure(start, options.seconds, options.runs)
    if "old" in options.only:
        result["rates_old"], result["failed_old"] = rows_old.measure(start, options.seconds, options.runs)
    if "heavy" in options.only:
        result["heavy"] = rows_heavy.measure(start, options.seconds, options.runs)
    os.makedirs(os.path.dirname(options.json) or ".", exist_ok=True)
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    say("")
    if "rates" in result:
        print(table(result))
        print("\n".join(goals(result)))
    for name, rows in (("features", rows_features), ("1_0", rows_1_0), ("0_10", rows_0_10), ("old", rows_old)):
        if "rates_" + name not in result:
            continue
        print("\n".join(rows.table(result["rates_" + name])))
        print("\n".join(result["failed_" + name]))
        for *told, ratio, goal in rows.ratios(result["rates_" + name]):
            print("%-18s %s / %s: %.2f (goal %.2f) %s" % (*told, ratio, goal, verdict(ratio >= goal)))
    if "heavy" in result:
        print("\n".join(rows_heavy.table(result["heavy"]) + result["heavy"]["failed"]))
        for *told, ratio, goal in rows_heavy.ratios(result["heavy"]):
            print("%-18s %s / %s: %.2f (goal %.2f) %s" % (*told, ratio, goal, verdict(ratio >= goal)))
    print("All figures: %s" % options.json)
    if options.show:
        subprocess.run([sys.executable, os.path.join(HERE, "show.py"), options.json], check=True)
        subprocess.run([sys.executable, os.path.join(HERE, os.pardir, os.pardir, "tools", "generate_readme.py")], check=True)


if __name__ == "__main__":
    main()
