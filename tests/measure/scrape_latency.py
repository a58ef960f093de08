"""Latency of deliveries beside who looks: `python tests/measure/scrape_latency.py --queues 1000 --connections 1000`.

A client publishes to itself on a broker with so many queues and connections, each message after the one before, and notes how long each
takes. So for each of: nobody looks; /metrics/per-object is scraped every second; the page's requests come every 5 s, one after the other.
The rounds are interleaved, because other work on the machine changes. It prints p50 and p99 of each, and the ratio of p99 to nobody's.
"""

import argparse
import os
import resource
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "interop"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "http"))

from amqp_wire import RawClient
from api import Api, Served

from leveret.ports.client import connect

PATIENCE_MS = 60000
PAGE = ("/api/overview", "/api/queues?page=1&page_size=100", "/api/connections?page=1&page_size=100", "/api/leveret/limits", "/api/nodes")
LOOKS = {"nobody": ((), 0), "scrape": (("/metrics/per-object",), 1), "page": (PAGE, 5)}
PAUSE_S = 0.001


def latencies(url, seconds):
    """How long messages take, in milliseconds, for so many seconds."""
    client = connect(url, timeout_ms=PATIENCE_MS)
    client.queue_declare("latency", exclusive=True)
    client.consume("latency", no_ack=True)
    taken = []
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        began = time.perf_counter()
        client.publish("", "latency", b"x" * 256)
        assert client.poll(PATIENCE_MS)
        taken.append(1000 * (time.perf_counter() - began))
        time.sleep(PAUSE_S)
    client.close()
    return taken


def look(port, paths, every_s, ended):
    """Ask for these pages, one after the other, every so many seconds until `ended`."""
    api = Api(port, "guest")
    while not ended.is_set():
        for path in paths:
            status, _, _ = api.call("GET", path)
            assert status == 200, path
        ended.wait(every_s)


def share(values, part):
    """The value below which this part of them lies."""
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--queues", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * options.connections + 1000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(f"[limits]\nconnection_count_max = {options.connections + 50}\nqueue_count_max = {options.queues + 50}\n")
        file.flush()
        broker = Served("--config", file.name)
    clients = []
    try:
        api = Api(broker.http_port, "guest")
        for number in range(options.queues):
            api.call("PUT", f"/api/queues/%2F/q{number}", {})
        clients = [RawClient(broker.host, broker.port).open() for _ in range(options.connections)]
        taken = {name: [] for name in LOOKS}
        for _ in range(options.rounds):
            for name, (paths, every_s) in LOOKS.items():
                ended = threading.Event()
                looking = threading.Thread(target=look, args=(broker.http_port, paths, every_s, ended))
                if paths:
                    looking.start()
                taken[name] += latencies(broker.url, options.seconds)
                ended.set()
                if paths:
                    looking.join()
        for name, values in taken.items():
            ratio = share(values, 0.99) / share(taken["nobody"], 0.99)
            figures = f"p50 {share(values, 0.5):.2f} ms, p99 {share(values, 0.99):.2f} ms"
            print(f"{name}: {figures}, {ratio:.2f} of nobody's p99, {len(values)} messages", flush=True)
    finally:
        for client in clients:
            client.socket.close()
        broker.stop()


if __name__ == "__main__":
    main()
