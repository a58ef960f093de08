"""The processor time of a message in the engine, without sockets: `python tests/measure/engine_rounds.py [CLONE...]`.

A publisher and a consumer of one process give and take the octets of connections directly: 200 messages a round, no two alike (as
`leveret perf --vary` makes them), with acknowledgements of 50 at a time where the row has them. Printed is the least of many rounds in
nanoseconds a message, which a loaded machine changes little. Each CLONE is another checkout of this project, with its own `.venv` where
`pip install -e .` has built the C modules: all checkouts are measured in turns, and the ratio of their times is printed. A clone may be as
old as commit 824af94, whose modules had other places.
"""

import os
import random
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODES = ("no_ack", "acks", "confirms", "both")
TURNS, WARM, ROUNDS, REPEATED, MESSAGES = 5, 5, 40, 50, 200
ACK_EVERY, PREFETCH = 50, 200


class Pair:
    """A publisher and a consumer of one broker in this process, of the checkout `tree`, which this interpreter imports."""

    def __init__(self, tree, mode):
        sys.path.insert(0, os.path.join(tree, "tests", "unit"))
        import peer  # of the checkout that is measured

        from leveret import c_accel
        from leveret.core.limits import GATEWAY, Limits

        try:
            from leveret.core.broker.broker import Broker
        except ImportError:  # before the rooms
            from leveret.core.broker import Broker
        assert c_accel.install() == "the hot functions run in C", tree
        self.encoded = peer.encoded
        self.broker = Broker(Limits(**GATEWAY), b"engine_rounds")
        self.publisher, self.consumer = peer.Peer(self.broker), peer.Peer(self.broker)
        self.acks, self.tag = mode in ("acks", "both"), 0
        self.publisher.ask("queue_declare", "queue_declare_ok", 0, "q", False, False, False, False, False, {})
        if self.acks:
            self.consumer.ask("basic_qos", "basic_qos_ok", 0, PREFETCH, False)
        self.consumer.ask("basic_consume", "basic_consume_ok", 0, "q", "c", False, not self.acks, False, False, {})
        if mode in ("confirms", "both"):
            self.publisher.ask("confirm_select", "confirm_select_ok", False)
        draw = random.Random(1)
        self.octets = b"".join([peer.content(1, "", "q", *message(draw)) for _ in range(MESSAGES)])

    def give(self, end, octets):
        """Have the broker read all `octets`."""
        at = 0
        while at < len(octets):
            view = end.connection.writable()
            size = min(len(view), len(octets) - at)
            view[:size] = octets[at : at + size]
            end.connection.received(size)
            at += size
            self.broker.run()

    def take(self, end):
        """Take all that the broker has for this end; how many octets came."""
        count = 0
        while size := len(end.connection.pending()):
            count += size
            end.connection.sent(size)
            self.broker.run()
        return count

    def round(self):
        """MESSAGES go through the broker."""
        self.give(self.publisher, self.octets)
        came = self.take(self.consumer)
        self.take(self.publisher)
        for _ in range(MESSAGES // ACK_EVERY if self.acks else 0):
            self.tag += ACK_EVERY
            self.give(self.consumer, self.encoded("basic_ack", 1, self.tag, True))
        came += self.take(self.consumer)
        assert came > len(self.octets) // 2, came


def message(draw):
    """(body, properties), the properties of `leveret perf --vary`."""
    device = "device-%d" % draw.randrange(1, 2000)
    headers = {"device": device, "site": "site-%d" % draw.randrange(1, 40), "sequence": draw.randrange(1 << 31)}
    if draw.random() < 0.5:
        headers["quality"] = draw.random()
    return draw.randbytes(draw.randint(128, 384)), {
        "content_type": draw.choice(("application/json", "application/cbor", "text/plain")),
        "headers": headers,
        "correlation_id": "%x" % draw.getrandbits(draw.choice((32, 64, 128))),
        "message_id": "%s/%010d" % (device, draw.randrange(10**10)),
    }


def measured(tree, mode):
    """Nanoseconds of the processor a message, the least of ROUNDS."""
    pair = Pair(tree, mode)
    for _ in range(WARM):
        pair.round()
    least = None
    for _ in range(ROUNDS):
        begin = time.process_time_ns()
        for _ in range(REPEATED):
            pair.round()
        taken = time.process_time_ns() - begin
        least = taken if least is None else min(least, taken)
    return least / (REPEATED * MESSAGES)


def main(arguments):
    """Measure one checkout's mode (as a process of its own), or all; the exit status."""
    if arguments[:1] == ["--one"]:
        print(measured(*arguments[1:]))
        return 0
    trees = [ROOT, *[os.path.abspath(each) for each in arguments]]
    for mode in MODES:
        times: dict = {tree: [] for tree in trees}
        for turn in range(TURNS):
            for tree in trees if turn % 2 else reversed(trees):
                python = os.path.join(tree, ".venv", "bin", "python")
                command = [python, os.path.abspath(__file__), "--one", tree, mode]
                environment = dict(os.environ, PYTHONHASHSEED="0")
                times[tree].append(float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout))
        mine = min(times[ROOT])
        others = ["%.0f (rate here %.2f of it)" % (min(times[tree]), min(times[tree]) / mine) for tree in trees[1:]]
        print("%-9s" % mode, "%.0f ns a message" % mine, *others, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
