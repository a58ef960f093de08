"""`leveret perf [URL]`: load for any broker of AMQP 0-8 to 1.0, and what it makes of it: rates, latencies, losses.

Publishers and consumers run in a process each; what happens to a message happens in C (c_accel/perf.c). Queues (and the exchange) are
made at the start and deleted at the end; somebody else's queue is left alone. A line each second; at the end a summary, or with
`--json FILE` (`-`: standard output) all of it as JSON. Exit status: 0; 1 messages were lost, doubled or refused, or it could not go on;
2 wrong arguments; 130 interrupted, 143 terminated.
"""

import json
import os
import random
import selectors
import signal
import subprocess
import sys
import time

from leveret import c_accel

from .usage import UsageError

URL_DEFAULT = "amqp://guest:guest@127.0.0.1:5672/"
WINDOW_MAX = 65535  # c_accel/perf.h
SIZE_MAX = 1 << 27
NAME_MAX = 240  # octets of --queue: numbers and the exchange's kind come behind it
OWN_NAME = "leveret-perf"
NOT_FOUND = 404
TERMINATED = 128 + signal.SIGTERM
DRAIN_S = 30.0  # how long nothing may move at the end before the rest is given up
PERCENTILES = (0, 50, 75, 95, 99, 99.9, 100)
KINDS = ("default", "direct", "topic", "fanout")
FAMILIES = {"1.0": "1_0", "0-10": "0_10", "0-8": "older", "0-9": "older", "0.9a5": "drafts", "0.9r1": "drafts"}
KEYS_MAX = 100000
VARIETIES = 1024  # messages that differ in more than their id, with --vary
VARIETIES_SIZE = 1 << 24  # octets of their bodies together: fewer of large ones


def whole(least, most):
    """A whole number in a range, for argparse."""

    def read(text):
        if not (text.isascii() and text.isdigit()) or not least <= int(text) <= most:
            import argparse

            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


def queue_name(text):
    """The begin of the queues' names, for argparse."""
    if not text.isprintable() or not 0 < len(text.encode()) <= NAME_MAX:
        import argparse

        raise argparse.ArgumentTypeError(f"{text!r} is not a name of 1 to {NAME_MAX} octets")
    return text


def argument(text):
    """(name, value) of NAME=VALUE, for argparse: a whole number, true, false or a text."""
    import argparse

    name, sign, value = text.partition("=")
    if not sign or not 0 < len(name.encode()) < 256:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    if value.removeprefix("-").isdecimal() and len(value) < 19:
        return name, int(value)
    return name, {"true": True, "false": False}.get(value, value)


def add_arguments(parser):
    """The subcommand's arguments."""
    add = parser.add_argument
    add("url", nargs="?", default=URL_DEFAULT, metavar="URL", help="the broker, amqp:// or amqps:// (default %(default)s)")
    add("--publishers", type=whole(0, 10000), default=1, metavar="N", help="connections that publish (1)")
    add("--consumers", type=whole(0, 10000), default=1, metavar="N", help="connections that consume (1)")
    add("--queues", type=whole(1, 10000), default=1, metavar="N", help="queues; consumers share them out (1)")
    add("--exchange", choices=KINDS, default="default", help="how messages reach the queues; fanout: each message all of them (default)")
    add("--routing-keys", type=whole(1, KEYS_MAX), metavar="N", help="keys for direct and topic, bound to the queues in turn (one each)")
    add("--random", action="store_true", help="draw the routing key of each message instead of taking them in turn")
    add("--size", type=whole(0, SIZE_MAX), default=256, metavar="OCTETS", help="of a body; latencies are measured from 8 on (256)")
    add("--vary", action="store_true", help="no two messages alike: sizes from half of --size to half more, ids, headers, keys")
    add("--seed", type=whole(1, 10**6), default=1, metavar="N", help="of what --vary and --random draw: the same messages each time (1)")
    add("--rate", type=whole(1, 10**8), default=0, metavar="N", help="messages a second of each publisher (as many as go)")
    add("--confirm", type=whole(1, WINDOW_MAX), default=0, metavar="N", help="publisher confirms, at most N open for each publisher")
    add("--ack-every", type=whole(1, 65535), default=0, metavar="N", help="acknowledge each N deliveries at once (no acknowledgements)")
    add("--prefetch", type=whole(1, 65535), metavar="N", help="unacknowledged deliveries of a consumer (200, with --ack-every)")
    add("--persistent", action="store_true", help="durable queues, persistent messages")
    given = {"type": argument, "action": "append", "default": [], "metavar": "NAME=VALUE"}
    add("--argument", **given, help="an argument of the queues, as x-max-priority=10; several times")
    add("--consumer-argument", **given, help="an argument of the consumers, as x-priority=1")
    add("--priorities", type=whole(1, 256), default=0, metavar="N", help="the messages have priorities 0 to N-1, in turn")
    add("--expiration", type=whole(0, 2**32 - 1), metavar="MS", help="the messages have this expiration")
    bound = parser.add_mutually_exclusive_group()
    bound.add_argument("--seconds", type=whole(1, 10**6), default=0, metavar="N", help="publish for N seconds (10)")
    bound.add_argument("--count", type=whole(1, 10**12), default=0, metavar="N", help="publish N messages with each publisher")
    add("--queue", type=queue_name, default=OWN_NAME, metavar="NAME", help="begin of the queues' names (%(default)s)")
    add("--address", metavar="TEMPLATE", help="of a queue with ?protocol=1.0 in URL, as /queues/%%s for Leveret and RabbitMQ 4 (%%s)")
    add("--json", metavar="FILE", help="write everything as JSON to FILE; - for standard output")


def check(options):
    """Raise UsageError for options that make no sense together; fill in those that follow from others."""
    if not options.publishers and not options.consumers:
        raise UsageError("--publishers 0 and --consumers 0: there is nothing to do")
    if not options.publishers and options.count:
        raise UsageError("--count is of the publishers, and there is none")
    if not options.publishers and (options.rate or options.confirm):
        raise UsageError("--rate and --confirm are of the publishers, and there is none")
    if options.ack_every and not options.consumers or options.prefetch and not options.ack_every:
        raise UsageError("--ack-every needs consumers, and --prefetch needs --ack-every")
    options.prefetch = options.prefetch or (max(200, options.ack_every) if options.ack_every else 0)
    if options.ack_every > options.prefetch:
        raise UsageError(f"--ack-every {options.ack_every} with --prefetch {options.prefetch}: the broker would wait for ever")
    if options.routing_keys and options.exchange == "default":
        raise UsageError("--routing-keys needs --exchange direct, topic or fanout")
    if options.routing_keys and options.routing_keys < options.queues:
        raise UsageError(f"{options.routing_keys} routing keys for {options.queues} queues: some would get nothing")
    if options.consumers and 0 < options.consumers % options.queues and options.consumers > options.queues:
        raise UsageError(f"{options.consumers} consumers for {options.queues} queues: take a multiple, or fewer than queues")
    if max(templates(options), options.publishers) * (options.size + 300) > SIZE_MAX * 2:
        raise UsageError("so many routing keys or publishers with so large bodies do not fit in memory")
    is_1_0 = protocol_of(options) == "1_0"
    if options.address and (not is_1_0 or options.address.count("%") != 1 or "%s" not in options.address):
        raise UsageError("--address has one %s, for the queue, and is for a URL with ?protocol=1.0")
    if is_1_0 and (options.exchange != "default" or options.random):
        raise UsageError("over AMQP 1.0 each publisher sends to one queue: without --exchange and --random")
    if is_1_0 and (options.consumer_argument or options.priorities):
        raise UsageError("over AMQP 1.0: without --consumer-argument and --priorities")
    if protocol_of(options) == "drafts" and (options.argument or options.consumer_argument):
        raise UsageError("over a draft of 2005: without --argument and --consumer-argument, which it has no place for")
    options.address = (options.address or "%s") if is_1_0 else None
    if options.json not in (None, "-") and (os.path.isdir(options.json) or not os.access(os.path.dirname(options.json) or ".", os.W_OK)):
        raise UsageError(f"--json {options.json}: no file can be written there")
    options.seconds = options.seconds or (0 if options.count else 10)


def protocol_of(options):
    """The protocol of the URL, as the workers' files have it in their names; "": 0-9-1."""
    query = options.url.partition("?")[2]
    asked = [part[9:] for part in query.split("&") if part.startswith("protocol=")]
    return FAMILIES.get(asked[0], "") if asked else ""


def templates(options):
    """How many messages are made beforehand: each key has one at least."""
    keys = options.routing_keys or options.queues
    return max(keys, min(VARIETIES, VARIETIES_SIZE // (options.size + 1))) if options.vary else keys


def run(options):
    """The exit status."""
    check(options)
    if c_accel.STALE:
        raise UsageError(c_accel.why_plain())
    try:
        from leveret.c_accel import _perf  # type: ignore[attr-defined]  # noqa: F401 - only to see whether it is there
    except ImportError:
        raise UsageError(c_accel.why_plain()) from None
    out = sys.stderr if options.json == "-" else sys.stdout
    measurement = Measurement(options, out)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        return measurement.run()
    except Failed as error:
        print(f"leveret perf: {error}", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)
        measurement.clean_up()


class Failed(Exception):
    """The measurement could not go on; the text is a sentence."""


class Measurement:
    """One run: the queues, the two processes, what they say."""

    PROGRAM: tuple = ("-m", "leveret.tools.perf_worker")  # of the processes

    def __init__(self, options, out):
        self.options = options
        self.out = out
        self.token = "%08x" % random.getrandbits(32)
        self.workers = {}
        self.last = {}
        self.series = []
        self.made = []
        self.exchange = "" if options.exchange == "default" else f"{options.queue}-{options.exchange}"
        self.queues = [options.queue if options.queues == 1 else f"{options.queue}-{number}" for number in range(1, options.queues + 1)]
        if options.exchange == "fanout" and not options.routing_keys:
            self.keys = [""]
        elif options.exchange == "default":
            self.keys = self.queues
        else:
            self.keys = [f"key.{number}" for number in range(1, (options.routing_keys or options.queues) + 1)]

    def run(self):
        """Make it all, let it run, say what came out: the exit status."""
        self.make()
        if self.options.consumers:
            self.start("consumer", self.options.consumers)
        if self.options.publishers:
            self.start("publisher", self.options.publishers)
        for role in self.workers:
            self.tell(role, "start")
        self.follow()
        return self.summarise()

    # The broker's side

    def client(self):
        """A connection for the control plane. Raises Failed."""
        from leveret.ports.client import connect
        from leveret.ports.client_errors import ClientError

        protocol = protocol_of(self.options)
        try:
            return connect(self.options.url.partition("?")[0] if protocol in ("1_0", "0_10") else self.options.url)
        except (ClientError, ValueError) as error:
            if protocol != "0_10":
                raise Failed(str(error)) from None
        from .perf_worker_0_10 import Declaring

        try:
            return Declaring(self.options.url)
        except (ClientError, ValueError) as error:
            raise Failed(str(error)) from None

    def make(self):
        """Declare the queues, declare and bind the exchange. Raises Failed."""
        from leveret.ports.client_errors import ClientError

        try:
            client = self.client()
        except Failed:
            if self.options.address:
                return  # it speaks 1.0 alone, and makes queues when they are used
            raise
        try:
            for queue in self.queues:
                if queue.startswith(OWN_NAME):
                    client.queue_delete(queue)  # what an earlier run that was killed has left
                else:
                    self.refuse_if_there(client, queue)
                client.queue_declare(queue, durable=self.options.persistent, arguments=dict(self.options.argument))
                self.made.append(queue)
            if self.exchange:
                if self.exchange.startswith(OWN_NAME):
                    client.exchange_delete(self.exchange)
                self.make_exchange(client)
            client.close()
        except ClientError as error:
            raise Failed(f"the queues cannot be made: {error}") from None

    def make_exchange(self, client):
        """Declare and bind the exchange."""
        client.exchange_declare(self.exchange, self.options.exchange, durable=self.options.persistent)
        keys = [""] if self.options.exchange == "fanout" else self.keys
        for number in range(max(len(keys), len(self.queues))):
            client.queue_bind(self.queues[number % len(self.queues)], self.exchange, keys[number % len(keys)])

    @staticmethod
    def refuse_if_there(client, queue):
        """Somebody else's queue is not emptied and deleted. Raises Failed."""
        from leveret.ports.client_errors import ChannelClosed

        try:
            _, messages, _ = client.queue_declare(queue, passive=True)
        except ChannelClosed as error:
            if error.code == NOT_FOUND:
                return
            raise
        raise Failed(f"the queue {queue} is there already (messages: {messages}); this would empty and delete it: take another --queue")

    def clean_up(self):
        """End the processes that still run; delete what was made."""
        from leveret.ports.client_errors import ClientError

        for worker in self.workers.values():
            if worker.poll() is None:
                worker.kill()
            worker.wait()
        if not self.made:
            return
        try:
            client = self.client()
            for queue in self.made:
                client.queue_delete(queue)
            if self.exchange:
                client.exchange_delete(self.exchange)
            client.close()
        except (ClientError, Failed) as error:
            print(f"leveret perf: the queues {self.options.queue}* are left behind: {error}", file=sys.stderr)

    # The processes

    def settings(self, role, connections):
        """The settings for a process with all publishers or all consumers."""
        options = self.options
        shared: list = [[] for _ in range(connections)]
        for number in range(max(connections, len(self.queues))):
            shared[number % connections].append(self.queues[number % len(self.queues)])
        return {
            "role": role,
            "properties": {},
            "url": options.url,
            "connections": connections,
            "size": options.size,
            "rate": options.rate,
            "confirm": options.confirm,
            "count": options.count,
            "persistent": options.persistent,
            "random": options.random,
            "ack_every": options.ack_every,
            "prefetch": options.prefetch,
            "queues": shared,
            "seed": options.seed,
            "address": options.address,
            "protocol": protocol_of(options),
            "vary": templates(options) if options.vary else 0,
            "arguments": dict(options.consumer_argument),
            "priorities": options.priorities,
            "expiration": options.expiration,
            "routes": [(self.exchange, key) for key in self.keys] if role == "publisher" else [],
        }

    def start(self, role, connections):
        """A process with all publishers or all consumers; returns when it is connected. Raises Failed."""
        worker = subprocess.Popen([sys.executable, *self.PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.workers[role] = worker
        self.tell(role, json.dumps(self.settings(role, connections)))
        line = self.workers[role].stdout.readline().decode()
        if line != "ready\n":
            raise Failed(f"the {role}s cannot start: {json.loads(line)['failed'] if line else 'their process ended'}")

    def tell(self, role, line):
        """A line for a process. One that has ended is noticed by its output."""
        try:
            os.write(self.workers[role].stdin.fileno(), line.encode() + b"\n")
        except BrokenPipeError:
            return

    def follow(self):
        """Read what the processes say until both are done. Raises Failed."""
        selector = selectors.DefaultSelector()
        for role, worker in self.workers.items():
            selector.register(worker.stdout, selectors.EVENT_READ, role)
        began = time.monotonic()
        next_line = began + 1
        stop_at = began + self.options.seconds if self.options.seconds else None
        moved, moved_at = None, began
        done: set = set()
        while len(done) < len(self.workers):
            for key, _ in selector.select(0.05):
                line = self.workers[key.data].stdout.readline()
                report = json.loads(line) if line else {"failed": "their process ended"}
                if "failed" in report:
                    raise Failed(f"the {key.data}s: {report['failed']}")
                self.last[key.data] = report
                if report["done"]:
                    done.add(key.data)
                    selector.unregister(key.fileobj)
                    if key.data == "publisher" and "consumer" in self.workers:
                        self.tell("consumer", f"expect {self.expected()}")
            now = time.monotonic()
            if stop_at and now >= stop_at:
                stop_at = None
                self.tell("publisher" if "publisher" in self.workers else "consumer", "stop" if "publisher" in self.workers else "expect 0")
            before, moved = moved, [side["moved_s"] for side in self.last.values()]
            if moved != before or not self.is_over(stop_at):
                moved_at = now
            elif now - moved_at > DRAIN_S and "publisher" not in done:
                self.tell("publisher", "quit")
            if now >= next_line:
                next_line += 1
                self.line(now - began)

    def is_over(self, stop_at):
        """Whether the publishers have no more to publish. `stop_at`: None when they were told so, or when --count says so."""
        published = self.last.get("publisher", {}).get("published", 0)
        return published == self.options.count * self.options.publishers if self.options.count else stop_at is None

    def expected(self):
        """Deliveries that there must be."""
        return self.last["publisher"]["published"] * (len(self.queues) if self.options.exchange == "fanout" else 1)

    def line(self, seconds):
        """The counts of the last second."""
        state = self.state(seconds)
        before = self.series[-1]["totals"] if self.series else dict.fromkeys(state["totals"], 0)
        parts = [f"{name} {state['totals'][name] - before[name]:,}/s" for name in self.names()]
        recent = state["latency"]
        if self.series:
            recent = {place: count - self.series[-1]["latency"].get(place, 0) for place, count in recent.items()}
        latencies = percentiles(recent)
        if latencies:
            parts.append("latency in ms: " + ", ".join(f"p{key} {latencies[key] / 1000:.2f}" for key in (50, 95, 99)))
        if state["blocked"]:
            parts.append("blocked by the broker")
        self.series.append(state)
        print(f"{seconds:6.1f} s  " + "  ".join(parts), file=self.out, flush=True)

    def names(self):
        """The counts that this run has."""
        options = self.options
        return ([] if not options.publishers else ["published"] + (["confirmed"] if options.confirm else [])) + (
            ["received"] if options.consumers else []
        )

    def state(self, seconds):
        """The counts now."""
        sides = {"published": "publisher", "confirmed": "publisher", "received": "consumer"}
        return {
            "seconds": round(seconds, 3),
            "totals": {name: self.last.get(sides[name], {}).get(name, 0) for name in self.names()},
            "latency": {int(place): count for place, count in self.last.get("consumer", {}).get("latency", {}).items()},
            "blocked": self.last.get("publisher", {}).get("blocked", 0),
        }

    # What came out

    def summarise(self):
        """Print the summary: the exit status."""
        publisher, consumer = self.last.get("publisher", {}), self.last.get("consumer", {})
        seconds = max([side["moved_s"] for side in self.last.values()] + [1e-9])
        summary = {"seconds": round(seconds, 3), "cpu_s": {role: round(side["cpu_s"], 3) for role, side in self.last.items()}}
        for name, side in (("published", publisher), ("confirmed", publisher), ("received", consumer)):
            if name in self.names():
                summary[name] = side[name]
                summary[name + "_per_s"] = round(side[name] / seconds, 1)
        summary["octets_per_s"] = round(consumer.get("octets", 0) / seconds, 1)
        summary["refused"] = publisher.get("refused", 0)
        summary["latency_us"] = percentiles({int(place): count for place, count in consumer.get("latency", {}).items()})
        summary["confirm_latency_us"] = percentiles({int(place): count for place, count in publisher.get("confirm_latency", {}).items()})
        trouble = self.trouble(publisher, consumer)
        self.show(summary, trouble)
        if self.options.json:
            settings = {name: value for name, value in vars(self.options).items() if name not in ("run", "command", "url", "json")}
            self.write(
                {
                    "settings": settings,
                    "summary": summary,
                    "trouble": trouble,
                    "series": [{"seconds": each["seconds"], **each["totals"]} for each in self.series],
                }
            )
        return 1 if trouble else 0

    def trouble(self, publisher, consumer):
        """The disagreements, as sentences."""
        faults = []
        if publisher.get("refused"):
            faults.append(f"{publisher['refused']} messages were refused by the broker (basic.nack)")
        if self.options.confirm and publisher["confirmed"] < publisher["published"]:
            faults.append(f"{publisher['published'] - publisher['confirmed']} messages were never confirmed")
        if publisher.get("held"):
            faults.append(f"{publisher['held']} publishers could not hand over all they had: the broker took nothing for {DRAIN_S:.0f} s")
        if publisher and consumer:
            missing = self.expected() - consumer["received"]
            if missing:
                faults.append(f"{abs(missing)} messages " + ("were lost" if missing > 0 else "came too many"))
        return faults

    def show(self, summary, trouble):
        """The summary in words."""
        for name in self.names():
            print(f"{name} {summary[name]:,} in {summary['seconds']:.2f} s: {summary[name + '_per_s']:,.0f}/s", file=self.out)
        for title, name in (("latency", "latency_us"), ("confirm latency", "confirm_latency_us")):
            if summary[name]:
                words = {0: "least", 100: "most"}
                text = ", ".join(f"{words.get(key, 'p%g' % key)} {value / 1000:.3f}" for key, value in summary[name].items())
                print(f"{title} in ms: {text}", file=self.out)
        for sentence in trouble:
            print(f"leveret perf: {sentence}", file=sys.stderr)

    def write(self, everything):
        """The JSON. Raises Failed."""
        text = json.dumps(everything, indent=1) + "\n"
        if self.options.json == "-":
            sys.stdout.write(text)
            return
        try:
            with open(self.options.json, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise Failed(f"--json {self.options.json}: {error}") from None


def percentiles(bins):
    """{percentile: microseconds} of counted latencies (bins as in c_accel/perf.h; 3 % wide), {} when there is none."""
    total = sum(bins.values())
    latencies = {}
    if total:
        wanted = list(PERCENTILES)
        seen = 0
        for place in sorted(bins):
            seen += bins[place]
            while bins[place] and wanted and seen >= max(wanted[0] / 100 * total, 1):
                latencies[wanted.pop(0)] = place if place < 32 else (32 + place % 32) << (place // 32 - 1)
    return latencies
