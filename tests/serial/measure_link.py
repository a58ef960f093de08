"""What the link makes of a line's speed: `python tests/serial/measure_link.py [--seconds N] [--seed N]`.

Two ends in virtual time over a line of 115,200 baud (11,520 octets a second each way) whose devices hold `queue` octets before they go on
the line, as drivers do; bodies of 1 KiB, random octets or JSON. `efficiency`: octets that arrived of those the line can carry in
the time. `on the line`: octets of the bodies of those sent. An error rate counts damaged octets (bit flipped, lost or doubled);
a bit error rate of 1e-5 is about 1e-4 of the octets.
"""

import argparse
import json
import random

from leveret.ports.serial_line import PAYLOAD_SIZE, WINDOW, new_link

BAUD = 115200
BODY_SIZE = 1024
STEP_MS = 1


class Source:
    """The inner endpoint: sends bodies without end, counts what arrives, and compares it with what was sent."""

    def __init__(self, bodies, sending):
        self._bodies = memoryview(bodies)
        self._at = 0
        self._sending = sending
        self._room = memoryview(bytearray(4096))
        self.arrived = 0
        self.closed = False

    def writable(self):
        return self._room

    def received(self, size):
        if size == 0:
            raise AssertionError("the session was lost")
        wanted = bytes(self._bodies[self.arrived % len(self._bodies):][:size])
        assert bytes(self._room[:len(wanted)]) == wanted, "altered"
        self.arrived += size

    def pending(self):
        return self._bodies[self._at % len(self._bodies):] if self._sending else self._bodies[:0]

    def sent(self, size):
        self._at += size

    def tick(self, now):
        pass


class Way:
    """One direction: the device's queue, the line's speed, the noise."""

    def __init__(self, queue_size, error_rate, seed):
        self.queue = bytearray()
        self.queue_size = queue_size
        self.error_rate = error_rate
        self.random = random.Random(seed)
        self.budget = 0.0
        self.carried = 0

    def load(self, link):
        while len(self.queue) < self.queue_size:
            view = link.pending()[:self.queue_size - len(self.queue)]
            if not view:
                return
            self.queue += view
            link.sent(len(view))

    def unload(self, link):
        self.budget += BAUD / 10 * STEP_MS / 1000
        count = min(int(self.budget), len(self.queue))
        self.budget -= int(self.budget)
        octets = self.damaged(self.queue[:count])
        del self.queue[:count]
        self.carried += count
        if octets:
            link.writable()[:len(octets)] = octets
            link.received(len(octets))

    def damaged(self, octets):
        out = bytearray()
        for octet in octets:
            way = self.random.randrange(3) if self.random.random() < self.error_rate else 3
            out += (b"", bytes((octet, octet)), bytes((octet ^ 1 << self.random.randrange(8),)), bytes((octet,)))[way]
        return out


def measure(bodies, both, error_rate, queue_size, seconds, seed):
    """(efficiency, share of bodies on the line, frames sent again) of the way forth."""
    ends = [Source(bodies, True), Source(bodies, both)]
    links = [new_link(lambda: ends[0], BAUD, active=True), new_link(lambda: ends[1], BAUD)]
    ways = [Way(queue_size, error_rate, seed), Way(queue_size, error_rate, seed + 1)]
    for now in range(0, seconds * 1000, STEP_MS):
        for link in links:
            link.tick(now)
        for index in (0, 1):
            ways[index].load(links[index])
        for index in (0, 1):
            ways[index].unload(links[1 - index])
    assert links[0].session_count == 1, "the session was lost"
    return ends[1].arrived / (seconds * BAUD / 10), ends[1].arrived / ways[0].carried, links[0].resent_count


def random_bodies(seed):
    return random.Random(seed).randbytes(BODY_SIZE * 64)


def json_bodies():
    reading = {"device": "greenhouse", "metric": "temperature", "sequence": 1234, "time": 1737936000.125, "value": 21.5}
    text = json.dumps([reading] * 16).encode()[:BODY_SIZE]
    return text * 64


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="of the line's time, for each row")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.seconds} s at {BAUD} baud, window {WINDOW}, payload {PAYLOAD_SIZE}")
    print(f"{'bodies':8}{'ways':6}{'queue':>6}{'errors':>9}{'efficiency':>12}{'on the line':>13}{'again':>7}{'octets/s':>10}")
    for name, bodies in (("random", random_bodies(options.seed)), ("json", json_bodies())):
        for both in (False, True):
            for queue_size in (64, 4096):
                for error_rate in (0, 1e-4, 1e-3):
                    share, on_line, again = measure(bodies, both, error_rate, queue_size, options.seconds, options.seed)
                    print(f"{name:8}{'both' if both else 'one':6}{queue_size:6}{error_rate:9g}{share:12.1%}{on_line:13.1%}"
                          f"{again:7}{share * BAUD / 10:10.0f}", flush=True)


if __name__ == "__main__":
    main()
