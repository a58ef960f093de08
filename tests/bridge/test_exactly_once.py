"""The bridge to a Leveret of AMQP 1.0, both with --data, both killed (kill -9) again and again: each message arrives exactly once. Over
0-8, where transactions are what keeps messages, none is missing, and a double has the gateway and the sequence of the first.

By hand, for more of it: python tests/bridge/test_exactly_once.py KILLS
"""

import collections
import os
import random
import sys
import time

from nodes import Leveret, wait_until
from test_gateway import Gateway

from leveret.ports.client import connect

KILLS = int(os.environ.get("LEVERET_KILLS", "8"))
DURABLE = {"delivery_mode": 2}


class Upstream(Leveret):
    """`leveret serve --data`."""

    def command(self):
        place = os.path.join(self.directory, "data")
        return [*Leveret.command(self)[:-1], "--data", place]  # and not --memory


def killed(kills, seed, count=6000, protocol="1.0", exchange="/queues/readings"):
    """(bodies that were confirmed at the gateway, bodies and places as upstream has them) after so many kills while they move."""
    chance = random.Random(seed)
    upstream = gateway = None
    try:
        upstream = Upstream()
        client = connect(upstream.url)
        client.queue_declare("readings", durable=True)
        client.queue_bind("readings", "amq.topic", "#")
        client.close()
        more = 'queue = "uplink"\nprefetch = 100\n'
        gateway = Gateway("%s?protocol=%s" % (upstream.url, protocol), more, exchange=exchange)
        client = connect(gateway.url, timeout_ms=60000)
        client.queue_declare("uplink", durable=True)
        client.confirm_select()
        sent = 0
        for _ in range(kills):
            for _ in range(count // kills):
                client.publish("", "uplink", b"%d" % sent, DURABLE, confirm=False)
                sent += 1
            client.wait_confirmed()
            time.sleep(chance.uniform(0, 0.6))
            victim = chance.choice((gateway, upstream))
            victim.kill()
            time.sleep(chance.choice((0, 0.3)))
            victim.start()
            if victim is gateway:
                client = connect(gateway.url, timeout_ms=60000)
                client.confirm_select()
        return sent, arrived(upstream, sent), gateway.output()
    finally:
        for node in (gateway, upstream):
            if node is not None:
                node.stop()


def arrived(upstream, least):
    """[(body, gateway and sequence)] of everything upstream, when nothing more comes."""
    client = connect(upstream.url, timeout_ms=60000)

    def has_come():
        count = client.queue_declare("readings", passive=True)[1]
        return count if count >= least else None

    wait_until(has_come, 120, "%d messages upstream" % least)
    time.sleep(1.5)  # for doubles
    found = []
    client.consume("readings", no_ack=True)
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        messages = client.poll(1000)
        for message in messages:
            headers = message.properties["headers"]
            found.append((message.body, (headers["x-gateway"], headers["x-sequence"])))
        if not messages and len(found) >= least:
            break
    client.close()
    return found


def problems(sent, found):
    """Sentences: what is missing, what came twice."""
    counts = collections.Counter(int(body) for body, _ in found)
    missing = [number for number in range(sent) if number not in counts]
    twice = [number for number in counts if counts[number] > 1]
    wrong = []
    if missing:
        wrong.append("%d of %d missing, as %s" % (len(missing), sent, missing[:5]))
    if twice:
        wrong.append("%d came twice, as %s" % (len(twice), sorted(twice)[:5]))
    if [int(body) for body, _ in found] != sorted(counts):
        wrong.append("not in order")
    return wrong


def test_each_message_arrives_exactly_once_whoever_is_killed():
    sent, found, said = killed(KILLS, 1)
    assert problems(sent, found) == []
    assert "each message arrives exactly once" in said


def test_nothing_is_missing_over_0_8_whoever_is_killed():
    sent, found, _ = killed(KILLS, 2, 3000, "0-8", "amq.topic")
    bodies = {place: int(body) for body, place in found}
    assert sorted(bodies.values()) == list(range(sent))


if __name__ == "__main__":
    for seed in range(int(sys.argv[1])):
        sent, found, said = killed(KILLS, seed)
        print(seed, sent, len(found), problems(sent, found) or "exactly once", flush=True)
