"""Measures what durability costs: `python tests/measure/durable.py [--json FILE] [--seconds N] [--recover COUNT]...`

One publisher process, persistent messages of 256 octets to a durable queue, confirms with a window of 200, nobody consuming;
Leveret in each mode of --sync and RabbitMQ in turn, each standing idle while the other works; medians of RUNS. Beside them what
the disk allows: windows of messages appended to a file, one fdatasync for each. The octets on disk are the system's
own count for the broker's process.
Then recovery: a log of COUNT such messages written by a broker in this process, and seconds and memory of a process that recovers it
with the usual limits; with --half every second message is acknowledged.
"""

import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "interop"))

import psutil  # noqa: E402 - the path of amqp_wire has to be set first
from amqp_wire import RawClient, frame, header, method  # noqa: E402 - the path above has to be set first
from broker_process import BrokerProcess, rabbitmq_installed  # noqa: E402 - the path above has to be set first
from load import BODY_SIZE, WINDOW, Publisher  # noqa: E402 - the path above has to be set first
from run import machine  # noqa: E402 - the path above has to be set first

RUNS = 3
WARM_UP_COUNT = 4000
QUEUE = "bench.durable"
MODES = ("each", "batch", "none")


class PersistentPublisher(Publisher):
    """Publisher of load.py with delivery mode 2."""

    def __init__(self, client, count):
        Publisher.__init__(self, client, QUEUE, 1, "confirms")
        one = method(1, "basic.publish", routing_key=QUEUE) + header(1, BODY_SIZE, {"delivery_mode": 2})
        one += frame(3, 1, bytes(BODY_SIZE))
        self.count = count
        self.octets, self.size = memoryview(one * count), len(one)


def publish(host, port, count):
    """The publisher's process: prints its seconds."""
    client = RawClient(host, port, timeout_s=120).open()
    side = PersistentPublisher(client, count)
    started = time.monotonic()
    side.run()
    print(json.dumps(time.monotonic() - started), flush=True)
    client.close()


def measure(broker, count):
    """Confirmed messages per second."""
    with RawClient(broker.host, broker.port) as control:
        control.open()
        control.declare_queue(QUEUE, durable=True)
        command = [sys.executable, __file__, "publish", broker.host, str(broker.port), str(count)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(done.stderr)
        control.call("queue.purge-ok", 1, "queue.purge", queue=QUEUE)
    return count / json.loads(done.stdout)


def written(broker):
    """Octets that the broker's process has made the system write to disk so far."""
    return psutil.Process(broker.server_pid).io_counters().write_bytes


def disk_rate(directory, seconds):
    """Windows per second that are appended and synced, one after the other."""
    path = os.path.join(directory, "probe")
    window = bytes((BODY_SIZE + 50) * WINDOW)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    count, started = 0, time.monotonic()
    while time.monotonic() - started < seconds:
        os.write(file, window)
        os.fdatasync(file)
        count += 1
    rate = count / (time.monotonic() - started)
    os.close(file)
    os.remove(path)
    return rate


def rates(seconds):
    """{name: {"rates": [...], "amplification": ...}} of the brokers, and of the disk."""
    directory = tempfile.mkdtemp(prefix="durable_")
    found = {}
    brokers = {}
    try:
        for mode in MODES:
            data = os.path.join(directory, mode)
            brokers["leveret " + mode] = BrokerProcess("leveret", arguments=["--data", data, "--sync", mode])
        if rabbitmq_installed():
            brokers["rabbitmq"] = BrokerProcess("rabbitmq")
        counts = {}
        for name, broker in brokers.items():
            counts[name] = max(WARM_UP_COUNT, min(100000, int(measure(broker, WARM_UP_COUNT) * seconds)))
            found[name] = {"rates": [], "octets": 0, "messages": 0}
        found["disk"] = {"rates": []}
        for _ in range(RUNS):
            found["disk"]["rates"].append(disk_rate(directory, seconds) * WINDOW)
            for name, broker in brokers.items():
                before = written(broker)
                found[name]["rates"].append(measure(broker, counts[name]))
                found[name]["octets"] += written(broker) - before
                found[name]["messages"] += counts[name]
    finally:
        for broker in brokers.values():
            broker.stop()
        shutil.rmtree(directory, ignore_errors=True)
    return found


def fill(directory, count, half):
    """A log of `count` messages, written by a broker; `half`: every second is settled."""
    from leveret.core.broker.broker import Broker
    from leveret.core.limits import Limits
    from leveret.core.memory import layout
    from leveret.core.outcomes import TAKEN, nobody
    from leveret.core.recovery import opening
    from leveret.ports.store_file import FileStore

    broker = Broker(Limits())
    store = FileStore(directory)
    opening.make_durable(broker, store, "none", 5, 1 << 18, 8 << 20, 1 << 40)
    found = broker.topology.make_queue(nobody, QUEUE, True, False, False, {})
    broker.journal.queue_made(found)
    tables = broker.tables
    route = b"\x00" + bytes([len(QUEUE)]) + QUEUE.encode()
    octets = memoryview(struct.pack(">HB", 0x1000, 2) + bytes(BODY_SIZE))
    for number in range(count):
        message = tables.new_message(route, 3, BODY_SIZE, 0, layout.KIND_DURABLE)
        tables.append(message, octets, 0, len(octets))
        if broker.put(message, [found]) != TAKEN:
            raise RuntimeError("message %d found no room" % number)
        tables.release(message)
        if number % WINDOW == 0:
            broker.journal.run()
    for position in range(0, count if half else 0, 2):
        broker.journal.note_settled(found, position, position + 1)
        if position % 5000 == 0:
            broker.journal.run()
    broker.journal.finish()
    store.close()


def recover(count, half):
    """Seconds and MiB of a `leveret serve` that recovers `count` messages, or all but every second of them."""
    directory = tempfile.mkdtemp(prefix="recover_")
    try:
        data = os.path.join(directory, "data")
        command = [sys.executable, __file__, "fill", data, str(count)] + (["half"] if half else [])
        fill_apart = subprocess.run(command, capture_output=True, text=True, timeout=900)
        if fill_apart.returncode:
            raise RuntimeError(fill_apart.stderr)
        broker = BrokerProcess("leveret", arguments=["--data", data, "--disk-max", "64G"])
        try:
            told = broker.error_text()
            if f"recovered {count // 2 if half else count} messages" not in told:
                raise RuntimeError(told)
            resident = psutil.Process(broker.server_pid).memory_info().rss
        finally:
            broker.stop()
        size = sum(os.path.getsize(os.path.join(data, name)) for name in os.listdir(data))
        return {"messages": count, "half": half, "seconds": broker.ready_s, "resident_mib": resident >> 20, "log_mib": size >> 20}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def table(result):
    """The figures as text."""
    lines = ["%-16s %12s %26s" % ("", "confirmed/s", "octets on disk for a message")]
    for name, found in result["rates"].items():
        each = "%26.0f" % (found["octets"] / found["messages"]) if found.get("messages") else ""
        lines.append("%-16s %12.0f %s" % (name, statistics.median(found["rates"]), each))
    for found in result["recovery"]:
        half = ", every second one acknowledged" if found["half"] else ""
        lines.append(
            "recovery of %(messages)d messages (%(log_mib)d MiB)" % found
            + half
            + ": %(seconds).1f s, %(resident_mib)d MiB resident" % found
        )
    return "\n".join(lines)


def main():
    if sys.argv[1:2] == ["publish"]:
        publish(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    if sys.argv[1:2] == ["fill"]:
        fill(sys.argv[2], int(sys.argv[3]), sys.argv[4:] == ["half"])
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", default=os.path.join("build", "durable.json"), metavar="FILE")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one run (default 3)")
    parser.add_argument("--recover", type=int, action="append", default=[], metavar="COUNT", help="measure recovery of COUNT messages too")
    parser.add_argument("--half", action="store_true", help="with --recover: every second message is acknowledged")
    options = parser.parse_args()
    recovery = [recover(count, options.half) for count in options.recover]
    result = {"machine": machine(), "rates": rates(options.seconds), "recovery": recovery}
    os.makedirs(os.path.dirname(options.json) or ".", exist_ok=True)
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    print(table(result))


if __name__ == "__main__":
    main()
