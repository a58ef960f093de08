"""Measures Leveret's plain Python path beside RabbitMQ: `tools/dev.py bench`, or `python tests/bench/run.py [--json FILE] [--seconds N]`.

One publisher process, one consumer process, 256-octet transient messages over loopback, one queue: without acknowledgement, with it
(prefetch 200, one ack for 50), with publisher confirms (200 open at most; the consumer does not acknowledge). Both brokers run at the same
time, take turns, and stand idle while the other works; figures are medians of three runs. A run that loses or doubles a message fails.
Beside that: seconds from start to the first answer, resident memory idle and with 100 connections.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "interop"))

import psutil  # noqa: E402 - the path of amqp_wire has to be set first; one block of imports is easier to read

from amqp_wire import RawClient  # noqa: E402 - the path above has to be set first
from broker_process import BrokerProcess, rabbitmq_installed  # noqa: E402 - the path above has to be set first

LOAD = os.path.join(HERE, "load.py")
RUNS = 3
STARTS = 3
CONNECTIONS = 100
MODES = (
    ("no_ack", "no ack"),
    ("acks", "acks, prefetch 200"),
    ("confirms", "confirms, window 200"),
)
WARM_UP_COUNT = 4000
COUNT_MAX = 400000


def say(text):
    print(text, file=sys.stderr, flush=True)


class LoadFailed(Exception):
    """A side of a measurement ended badly; the text is what it said."""


def start_side(role, broker, queue, count, mode):
    command = [sys.executable, LOAD, role, broker.host, str(broker.port), queue, str(count), mode]
    side = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if side.stdout.readline() != "ready\n":
        raise LoadFailed("%s: %s" % (role, side.communicate()[1]))
    return side


def finish_side(role, side, timeout_s):
    try:
        output, errors = side.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        side.kill()
        raise LoadFailed("%s: no end after %d s" % (role, timeout_s)) from None
    if side.returncode:
        raise LoadFailed("%s: %s" % (role, errors))
    return json.loads(output)


def measure(broker, mode, count):
    """Messages per second from the first octet published to the last delivered, and how busy the load generator was (0 to 1)."""
    queue = "bench.%s" % mode
    with RawClient(broker.host, broker.port) as control:
        control.open()
        control.declare_queue(queue)
        consumer = start_side("consumer", broker, queue, count, mode)
        publisher = start_side("publisher", broker, queue, count, mode)
        for side in (consumer, publisher):
            side.stdin.write("start\n")
            side.stdin.flush()
        sent = finish_side("publisher", publisher, 120)
        got = finish_side("consumer", consumer, 120)
        left = control.call("queue.delete-ok", 1, "queue.delete", queue=queue)["message_count"]
        if left:
            raise LoadFailed("%d messages were left in the queue" % left)
    seconds = max(got["ended"], sent["ended"] if mode == "confirms" else 0) - sent["started"]
    busy = max(sent["cpu_s"] / (sent["ended"] - sent["started"]), got["cpu_s"] / (got["ended"] - got["started"]))
    return count / seconds, busy


def throughput(brokers, seconds):
    """{mode: {kind: [rates]}}; also how busy the generator was at most."""
    rates = {mode: {broker.kind: [] for broker in brokers} for mode, _ in MODES}
    busy = {broker.kind: 0.0 for broker in brokers}
    for mode, text in MODES:
        counts = {}
        for broker in brokers:
            warm, _ = measure(broker, mode, WARM_UP_COUNT)
            counts[broker.kind] = max(WARM_UP_COUNT, min(COUNT_MAX, int(warm * seconds) // 100 * 100))
        for number in range(RUNS):
            for broker in brokers:
                rate, share = measure(broker, mode, counts[broker.kind])
                rates[mode][broker.kind].append(rate)
                busy[broker.kind] = max(busy[broker.kind], share)
                say("  %-22s run %d  %-9s %8d msg/s  (%d messages)" % (text, number + 1, broker.kind, rate, counts[broker.kind]))
    return rates, busy


def resident_kb(broker):
    return psutil.Process(broker.server_pid).memory_info().rss // 1024


def memory(broker):
    """Resident KiB idle, and with CONNECTIONS open connections of one channel each."""
    time.sleep(1)
    idle = resident_kb(broker)
    clients = [RawClient(broker.host, broker.port).open() for _ in range(CONNECTIONS)]
    time.sleep(1)
    full = resident_kb(broker)
    for client in clients:
        client.close()
    return {"idle_kb": idle, "connections_kb": full}


def ready_seconds(kind):
    seconds = []
    for _ in range(STARTS - 1):
        broker = BrokerProcess(kind)
        seconds.append(broker.ready_s)
        broker.stop()
    return seconds


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(), "cpu_count": os.cpu_count(), "system": platform.platform(),
        "python": platform.python_version(), "load_average": os.getloadavg()[0],
    }


def table(result):
    """The figures as text, one column for each broker."""
    kinds = list(result["ready_s"])
    lines = ["%-34s" % "" + "".join("%14s" % kind for kind in kinds)]

    def row(text, values, form):
        lines.append("%-34s" % text + "".join("%14s" % (form % value) for value in values))

    for mode, text in MODES:
        row(text + " (msg/s)", [statistics.median(result["rates"][mode][kind]) for kind in kinds], "%d")
    row("start to ready (s)", [statistics.median(result["ready_s"][kind]) for kind in kinds], "%.2f")
    row("resident, idle (MiB)", [result["memory"][kind]["idle_kb"] / 1024 for kind in kinds], "%.1f")
    row("resident, %d connections (MiB)" % CONNECTIONS, [result["memory"][kind]["connections_kb"] / 1024 for kind in kinds], "%.1f")
    row("load generator busy at most (%)", [100 * result["generator_busy"][kind] for kind in kinds], "%d")
    return "\n".join(lines)


def run(seconds):
    """The whole measurement: a dict that JSON can hold."""
    kinds = ["leveret"]
    if rabbitmq_installed():
        kinds.append("rabbitmq")
    else:
        say("RabbitMQ is not installed, so there is nothing to compare with; apt install rabbitmq-server brings it.")
    result = {"machine": machine(), "ready_s": {}, "memory": {}}
    for kind in kinds:
        say("Starting %s %d times" % (kind, STARTS))
        result["ready_s"][kind] = ready_seconds(kind)
    brokers = []
    try:
        for kind in kinds:
            brokers.append(BrokerProcess(kind))
            result["ready_s"][kind].append(brokers[-1].ready_s)
        for broker in brokers:
            say("Memory of %s" % broker.kind)
            result["memory"][broker.kind] = memory(broker)
        say("Messages: %d runs of about %g s for each broker and mode" % (RUNS, seconds))
        result["rates"], result["generator_busy"] = throughput(brokers, seconds)
    finally:
        for broker in brokers:
            broker.stop()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", default=os.path.join("build", "bench.json"), metavar="FILE",
                        help="where the figures go (default build/bench.json)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one run (default 3)")
    options = parser.parse_args()
    result = run(options.seconds)
    os.makedirs(os.path.dirname(options.json) or ".", exist_ok=True)
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    say("")
    print(table(result))
    print("All figures: %s" % options.json)


if __name__ == "__main__":
    main()
