"""Who waits for a slow disk: `python tests/measure/slow_disk.py [--sync-ms N]... [--seconds N] [--json FILE]`

A broker on a file store whose every sync takes `--sync-ms` longer (10, 50 and 200 unless given), as a memory card's does; two publishers of
persistent messages with confirms in a window of 50, and meanwhile one client that sends itself transient messages, one at a time. Printed:
the median, the 99th part of a hundred and the most of its round trips, and confirmed persistent messages per second, with the store that
syncs in the broker's loop and with the one that does so in a thread. The broker has a process of its own.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import tempfile
import threading
import time

from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import Limits
from leveret.core.recovery.opening import make_durable
from leveret.ports.client import connect
from leveret.ports.store_file import FileStore
from leveret.ports.store_thread import ThreadedFileStore
from leveret.ports.tcp import Loop

SYNC_MS = (10, 50, 200)
WINDOW = 50
BODY = bytes(256)


def slow(class_, seconds):
    """A store class whose syncs take so much longer."""

    class Slow(class_):
        def sync(self, number):
            time.sleep(seconds)
            class_.sync(self, number)

    return Slow


def broker(class_, seconds, directory, port_out):
    """The broker's process, until it is ended."""
    store = slow(class_, seconds)(directory)
    served = Broker(Limits(), b"nonce")
    make_durable(served, store, "each", 5, 1 << 18, 8 << 20, 1 << 30)
    loop = Loop(20, served)
    if hasattr(store, "pollable"):
        loop.watch(store)
    port_out.send(loop.listen("127.0.0.1", 0, lambda stream: Connection(served, stream.name, True))[1])
    while True:
        loop.step(min(100, served.journal.wait_ms()))


def publish(url, queue, ends, counts):
    """Persistent messages until `ends`; the number that was confirmed."""
    client = connect(url)
    client.queue_declare(queue, durable=True, arguments={"x-max-length": 1000})
    count = 0
    while time.monotonic() < ends:
        for _ in range(WINDOW):
            client.publish("", queue, BODY, {"delivery_mode": 2}, confirm=False)
        client.wait_confirmed()
        count += WINDOW
    counts.append(count)
    client.close()


def round_trips(url, ends):
    """Seconds of each, rising."""
    client = connect(url)
    client.queue_declare("quick")
    client.consume("quick", no_ack=True)
    found = []
    while time.monotonic() < ends:
        began = time.monotonic()
        client.publish("", "quick", b"ping", confirm=False)
        while not client.poll(100):
            pass
        found.append(time.monotonic() - began)
        time.sleep(0.002)
    client.close()
    return sorted(found)


def measure(class_, sync_ms, seconds):
    """One row of the table."""
    directory = tempfile.mkdtemp(prefix="slow_disk_")
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=broker, args=(class_, sync_ms / 1000, directory, there), daemon=True)
    process.start()
    try:
        url = f"amqp://guest:guest@127.0.0.1:{here.recv()}/"
        ends = time.monotonic() + seconds
        counts = []
        publishers = [threading.Thread(target=publish, args=(url, f"kept{number}", ends, counts)) for number in range(2)]
        for each in publishers:
            each.start()
        found = round_trips(url, ends)
        for each in publishers:
            each.join()
    finally:
        process.kill()
        process.join()
        shutil.rmtree(directory, ignore_errors=True)
    return {
        "sync_ms": sync_ms,
        "store": class_.__name__,
        "round_trips": len(found),
        "median_ms": found[len(found) // 2] * 1000,
        "p99_ms": found[len(found) * 99 // 100] * 1000,
        "most_ms": found[-1] * 1000,
        "confirmed_per_s": sum(counts) / seconds,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sync-ms", type=float, action="append", metavar="N")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", default=os.path.join("build", "slow_disk.json"), metavar="FILE")
    options = parser.parse_args()
    rows = [
        measure(class_, sync_ms, options.seconds) for sync_ms in options.sync_ms or SYNC_MS for class_ in (FileStore, ThreadedFileStore)
    ]
    os.makedirs(os.path.dirname(options.json) or ".", exist_ok=True)
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    print("%8s  %-18s %10s %10s %10s %14s" % ("sync", "store", "median ms", "p99 ms", "most ms", "confirmed/s"))
    for row in rows:
        print(
            "%5g ms  %-18s %10.1f %10.1f %10.1f %14.0f"
            % (row["sync_ms"], row["store"], row["median_ms"], row["p99_ms"], row["most_ms"], row["confirmed_per_s"])
        )


if __name__ == "__main__":
    main()
