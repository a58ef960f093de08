"""The bridge downwards from brokers of AMQP 1.0, through faulty links (down_faults.py) and over `kill -9` of an upstream with --data."""

import os
import random
import sys
import time

import down_faults
import pytest

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bridge"))

from nodes import Leveret
from test_exactly_once import Upstream

from leveret.ports.client import connect

RUNS = int(os.environ.get("LEVERET_FAULT_RUNS", "3"))
KILLS = int(os.environ.get("LEVERET_KILLS", "4"))
COUNT = 2000
DURABLE = {"delivery_mode": 2}


class Below(Leveret):
    """`leveret serve` with a [[bridge]] that brings the queue `commands` of an upstream to its queue `mine`."""

    def __init__(self, upstream_url):
        self.upstream_url = upstream_url
        Leveret.__init__(self)

    def command(self):
        config = os.path.join(self.directory, "config.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(
                '[[bridge]]\nname = "down"\ndirection = "down"\nupstream = "%s?protocol=1.0"\nqueue = "/queues/commands"\nexchange = ""\n'
                'routing_key = "mine"\nprefetch = 100\nreconnect_seconds_min = 0.05\nreconnect_seconds_max = 0.2\n' % self.upstream_url
            )
        return [*Leveret.command(self), "--config", config]


@pytest.mark.parametrize("kind", ["artemis", "broker-j", "rabbitmq", "leveret"])
def test_nothing_is_missing_whatever_the_link_does(request, kind):
    """At least once; exactly once from a Leveret to the broker that has the bridge within it."""
    request.getfixturevalue(kind.replace("-", "_"))  # skips where it cannot be had
    node, kind_of_run = down_faults.node_of(kind)
    try:
        failed, runs = down_faults.faults.run_many(node, range(2, 2 + RUNS), kind=kind_of_run)
    finally:
        node.stop()
    assert not failed, "\n".join("%s %s" % (run.describe(), "; ".join(wrong)) for run, wrong in failed)
    assert sum(sum(run.faults.values()) for run in runs)


def test_each_message_comes_once_though_upstream_is_killed():
    """Section 2.6.13, with unsettled deliveries in upstream's log: what had come before the kill is not sent anew."""
    chance = random.Random(7)
    upstream = gateway = None
    try:
        upstream = Upstream()
        client = connect(upstream.url)
        client.queue_declare("commands", durable=True)
        client.confirm_select()
        for number in range(COUNT):
            client.publish("", "commands", b"%d" % number, DURABLE, confirm=False)
        client.wait_confirmed()
        client.close()
        gateway = Below(upstream.url)
        here = connect(gateway.url, timeout_ms=60000)
        here.queue_declare("mine", durable=True)
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.02, 0.15))
            upstream.kill()
            upstream.start()
        bodies = arrived(here)
        here.close()
        assert sorted(bodies) == list(range(COUNT))
        assert "each message arrives exactly once while this bridge runs" in gateway.output()
    finally:
        for node in (gateway, upstream):
            if node is not None:
                node.stop()


def arrived(client):
    """The numbers of everything that comes, until nothing more does."""
    client.consume("mine", no_ack=True)
    found = []
    limit = time.monotonic() + 120
    quiet = 0
    while time.monotonic() < limit and quiet < 3:
        messages = client.poll(1000)
        found += [int(message.body) for message in messages]
        quiet = quiet + 1 if not messages and len(set(found)) >= COUNT else 0
    return found
