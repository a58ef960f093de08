"""How fast a backlog drains, and in how much memory: beside the speed at which the same upstream takes messages from a plain publisher.

    python tests/bridge/backlog.py --count 1000000 --upstream rabbitmq [--source stream] [--data DIR [--room 20000]]

A `leveret serve` is filled while its uplink leads nowhere; then the upstream appears. Figures are printed as JSON. Nothing is asserted but
that all arrive: it is a measurement, to be read as ratios.
"""

import argparse
import json
import os
import sys
import threading
import time

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from nodes import Leveret, RabbitMQ, free_port  # noqa: E402 - the path above has to be set first

from leveret.ports.client import connect  # noqa: E402 - the path above has to be set first

BODY = bytes(64)


class Gateway(Leveret):
    """`leveret serve` with room for `room` messages in memory and one [[bridge]]."""

    def __init__(self, port, source, room, data):
        self.upstream_port = port
        self.source = source
        self.room = room
        self.data = data
        Leveret.__init__(self)

    def command(self):
        config = os.path.join(self.directory, "config.toml")
        room = self.room
        with open(config, "w", encoding="utf-8") as file:
            file.write(
                "[limits]\nblock_size = 256\ncontent_size_max = 65536\n"
                "arena_size = %d\nmessage_count_max = %d\nentry_count_max = %d\n" % (room * 256, room, room * 2)
            )
            file.write(
                '[[bridge]]\nname = "up"\ngateway = "gw"\n%s = "uplink"\nupstream = "amqp://127.0.0.1:%d"\n'
                'exchange = "telemetry"\nreconnect_seconds_max = 1\n' % (self.source, self.upstream_port)
            )
        where = ["--data", self.data] if self.data else ["--memory"]
        place = "amqp://127.0.0.1:%d" % self.port
        return [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", place, "--config", config] + where

    def rss(self):
        """Resident octets."""
        with open("/proc/%d/statm" % self.process.pid, encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fill(url, queue, count, arguments=None, exchange=""):
    """Publish with confirms: messages a second."""
    client = connect(url)
    if not exchange:
        client.queue_declare(queue, durable=True, arguments=arguments)
    began = time.monotonic()
    for _ in range(count):
        client.publish(exchange, queue, BODY, {"delivery_mode": 2}, confirm=False)
    client.wait_confirmed()
    rate = count / (time.monotonic() - began)
    client.close()
    return rate


class Drain(threading.Thread):
    """Takes what comes upstream, so that the upstream holds nothing."""

    def __init__(self, url):
        threading.Thread.__init__(self, daemon=True)
        self.client = connect(url)
        self.client.exchange_declare("telemetry", "topic", durable=True)
        self.client.queue_declare("readings", durable=True)
        self.client.queue_bind("readings", "telemetry", "#")
        self.client.qos(5000)
        self.client.consume("readings")
        self.count = 0
        self.over = False
        self.start()

    def run(self):
        while not self.over:
            messages = self.client.poll(100)
            if messages:
                self.count += len(messages)
                self.client.ack(messages[-1], multiple=True)
        self.client.close()


def main():
    parser = argparse.ArgumentParser(description="How fast a backlog drains.")
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--upstream", choices=("leveret", "rabbitmq"), default="rabbitmq")
    parser.add_argument("--source", choices=("queue", "stream"), default="stream")
    parser.add_argument("--data", metavar="DIR")
    parser.add_argument("--room", type=int, help="messages that fit into memory (default: all of them, and half as many again)")
    options = parser.parse_args()
    node = RabbitMQ() if options.upstream == "rabbitmq" else Leveret()
    drain = Drain(node.url)
    plain = fill(node.url, "x", min(options.count, 100000), exchange="telemetry")
    while drain.count < min(options.count, 100000):
        time.sleep(0.05)
    drain.count = 0
    nowhere = free_port()
    from faults import FaultyLink

    gateway = Gateway(nowhere, options.source, options.room or options.count * 3 // 2, options.data)
    fill(gateway.url, "uplink", options.count, {"x-queue-type": "stream"} if options.source == "stream" else None)
    full = gateway.rss()
    link = FaultyLink(node.port, None, 0, 0, nowhere)
    peak = full
    began = None
    while drain.count < options.count:
        time.sleep(0.05)
        began = began or (time.monotonic() if drain.count else None)
        peak = max(peak, gateway.rss())
    rate = options.count / (time.monotonic() - began)
    print(
        json.dumps(
            {
                "count": options.count,
                "upstream": options.upstream,
                "source": options.source,
                "room": options.room,
                "plain_publisher_per_s": round(plain),
                "backlog_per_s": round(rate),
                "ratio": round(rate / plain, 2),
                "rss_full_mib": full >> 20,
                "rss_grown_while_draining_mib": (peak - full) >> 20,
            }
        ),
        flush=True,
    )
    drain.over = True
    drain.join(60)
    link.close()
    gateway.stop()
    node.stop()


if __name__ == "__main__":
    main()
