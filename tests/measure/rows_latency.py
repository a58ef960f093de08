"""The bench's rows of latency at a fixed rate (rows_heavy.py): the last percentiles, beside what a broker has to do at the same time.

Beside the messages that are measured: 1,000 idle connections; a stream that a reader has from its first message again and again; a queue
beyond its share of the memory, published to and read from; and one of whose messages each fiftieth stays, so that its log is compacted.
RabbitMQ has the same beside it; the relay, which is the limit, has nothing beside it.
"""

import statistics
import threading
import time

from amqp_wire import RawClient, encode_properties, method, publish
from loading import FAILURES, perf, say

COLUMNS = ("leveret", "rabbitmq", "relay")
RATES = (1000, 20000)
PERCENTILES = ("50", "99", "99.9")
IDLE = 1000
SETTLE_S = 3  # after what is beside has begun
BATCH = 50  # messages of what is beside, every PAUSE_S
PAUSE_S = 0.1
BODY = bytes(1024)
STREAM_MESSAGES = 20000
BEYOND = 20000  # messages of the queue beyond memory, with LIMITS twice its share
LIMITS = "arena_size = 16777216\ncontent_size_max = 8388608\n"
WITHIN_US = 100  # of the relay's


class Client(RawClient):
    """One that reads past what a broker says of its memory or disk: who publishes beside others may have to wait, which is no failure."""

    def read_frame(self, timeout_s=None, heartbeats=False):
        """As RawClient's, but for connection.blocked and connection.unblocked."""
        while True:
            got = RawClient.read_frame(self, timeout_s, heartbeats)
            if got.name not in ("connection.blocked", "connection.unblocked"):
                return got


class Beside:
    """What a broker does while others are measured; `stop` ends it and raises what went wrong in it."""

    def __init__(self, broker):
        self.broker = broker
        self.persistent = encode_properties({"delivery_mode": 2})
        self.ending = False
        self.failed: list = []
        self.done = {"replayed": 0, "beyond": 0, "compacted": 0}
        self.idle = [RawClient(broker.host, broker.port).open() for _ in range(IDLE)]
        self.fill("beside.stream", STREAM_MESSAGES, arguments={"x-queue-type": "stream"})
        self.fill("beside.beyond", BEYOND)
        self.fill("beside.compacted", 0)
        self.threads = [threading.Thread(target=self.guarded, args=(each,)) for each in (self.replay, self.beyond, self.compacted)]
        for thread in self.threads:
            thread.start()
        time.sleep(SETTLE_S)

    def client(self):
        return Client(self.broker.host, self.broker.port, timeout_s=60).open()

    def fill(self, name, count, **declared):
        client = self.client()
        client.declare_queue(name, durable=True, **declared)
        for _ in range(count):
            client.send(publish(1, "", name, BODY, self.persistent))
        client.wait_for_count(name, count, 120)
        client.socket.close()

    def guarded(self, work):
        try:
            work()
        except (OSError, AssertionError) as error:
            self.failed.append(error)

    def replay(self):
        """Read the stream to its end, BATCH messages at a time, and again."""
        while not self.ending:
            client = self.client()
            client.call("basic.qos-ok", 1, "basic.qos", prefetch_count=BATCH)
            client.call("basic.consume-ok", 1, "basic.consume", queue="beside.stream", arguments={"x-stream-offset": "first"})
            for _ in range(STREAM_MESSAGES // BATCH):
                if self.ending:
                    break
                self.done["replayed"] += self.have(client, BATCH)
                time.sleep(PAUSE_S / 4)
            client.socket.close()

    def have(self, client, count):
        """Read and acknowledge so many deliveries."""
        for _ in range(count):
            tag = client.read_content("basic.deliver")["delivery_tag"]
        client.send(method(1, "basic.ack", delivery_tag=tag, multiple=True))
        return count

    def beyond(self):
        """Publish to the queue beyond memory as much as is read from it."""
        reader, writer = self.client(), self.client()
        reader.call("basic.qos-ok", 1, "basic.qos", prefetch_count=BATCH)
        reader.call("basic.consume-ok", 1, "basic.consume", queue="beside.beyond")
        while not self.ending:
            writer.send(b"".join([publish(1, "", "beside.beyond", BODY, self.persistent)] * BATCH))
            self.done["beyond"] += self.have(reader, BATCH)
            time.sleep(PAUSE_S)
        reader.socket.close()
        writer.socket.close()

    def compacted(self):
        """Publish, and acknowledge all but one of BATCH."""
        client = self.client()
        client.call("basic.consume-ok", 1, "basic.consume", queue="beside.compacted")
        while not self.ending:
            client.send(b"".join([publish(1, "", "beside.compacted", BODY, self.persistent)] * BATCH))
            for number in range(BATCH):
                tag = client.read_content("basic.deliver")["delivery_tag"]
                if number:
                    client.send(method(1, "basic.ack", delivery_tag=tag))
            self.done["compacted"] += BATCH
            time.sleep(PAUSE_S)
        client.socket.close()

    def stop(self):
        self.ending = True
        for thread in self.threads:
            thread.join()
        for client in self.idle:
            client.socket.close()
        if self.failed:
            raise self.failed[0]
        return self.done


def measure(start, seconds, runs):
    """({column: {rate: {percentile: microseconds, the median of `runs`}, "beside": {work: messages}}}, what did not end well, as lines).
    `start(column, durable, limits)`: of run.py."""
    found: dict = {}
    failed: list = []
    for column in COLUMNS:
        try:
            found[column] = beside_others(start, column, max(seconds, 4), runs)
        except FAILURES as error:
            failed.append("latency beside other work, %s: %s" % (column, (str(error).strip() or repr(error)).splitlines()[-1]))
            say("  " + failed[-1])
    return found, failed


def beside_others(start, column, seconds, runs):
    """One column of `measure`."""
    broker = start(column, column == "leveret", LIMITS)
    try:
        beside = Beside(broker) if column != "relay" else None
        row: dict = {}
        try:
            for rate in RATES:
                told = [perf(broker, broker.url, seconds, "--vary", "--rate", rate)[0]["latency_us"] for _ in range(runs)]
                row[str(rate)] = {key: statistics.median([each[key] for each in told]) for key in PERCENTILES}
                say("  latency at %d/s, %s: %s us" % (rate, column, row[str(rate)]))
        finally:
            row["beside"] = beside.stop() if beside else {}
        return row
    finally:
        broker.stop()


def goal_of(found, rate, percentile):
    """(microseconds that a percentile is to be below, whether it is); None where a column lacks it."""
    if not {"leveret", "rabbitmq", "relay"} <= set(found):
        return None
    mine, theirs, limit = (found[column][str(rate)][percentile] for column in ("leveret", "rabbitmq", "relay"))
    most = min(theirs, limit + WITHIN_US)
    return most, mine < theirs and mine <= limit + WITHIN_US


def table(found):
    """The figures as lines of text."""
    lines = ["%-42s" % "latency (us) beside other work" + "".join("%12s" % column for column in found)]
    for rate in RATES:
        for percentile in PERCENTILES:
            figures = [found[column][str(rate)][percentile] for column in found]
            lines.append("%-42s" % ("p%s at %d messages/s" % (percentile, rate)) + "".join("%12d" % figure for figure in figures))
            goal = goal_of(found, rate, percentile) if percentile != "50" else None
            if goal is not None:
                met = "met" if goal[1] else "missed"
                lines[-1] += "  (goal: below RabbitMQ's and the relay's + %d) %s" % (WITHIN_US, met)
    return lines
