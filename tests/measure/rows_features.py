"""The bench's rows of what applications declare: arguments of queues, consumers and messages, each beside RabbitMQ and beside no arguments.

Columns: leveret and plain with --data, and rabbitmq, where it has the feature. One publisher, one consumer, confirms with a window of
200, acknowledgements, persistent messages of 256 octets on average, no two alike (`leveret perf --vary`).
"""

import time

import rows_1_0
import rows_verbs
from loading import FAILURES, add_run, perf, say

COLUMNS = ("leveret", "plain", "rabbitmq")
OURS = ("leveret", "plain")
CONFIRMS = ("--vary", "--persistent", "--confirm", 200)
USUAL = (*CONFIRMS, "--ack-every", 50, "--prefetch", 200)


def given(*arguments):
    """Options of `leveret perf` for arguments of the queues."""
    return tuple(option for argument in arguments for option in ("--argument", argument))


DEAD = "x-dead-letter-exchange=amq.fanout"
FULL = "x-max-length=100000"
STREAM = given("x-queue-type=stream")

# name, title, further options of `leveret perf`, the columns that can do it (None: all)
SCENARIOS = (
    ("none", "no arguments", (), None),
    ("ttl", "x-message-ttl", given("x-message-ttl=600000"), None),
    ("expiration", "expiration in each message", ("--expiration", 600000), None),
    ("dead", "x-dead-letter-exchange", given(DEAD), None),
    ("ttl_dead", "x-message-ttl and x-dead-letter-exchange", given("x-message-ttl=600000", DEAD), None),
    ("drop_head", "x-max-length, drop-head", given(FULL), None),
    ("reject", "x-max-length, reject-publish", given(FULL, "x-overflow=reject-publish"), None),
    ("reject_dead", "x-max-length, reject-publish-dlx", given(FULL, "x-overflow=reject-publish-dlx", DEAD), None),
    ("priority", "x-max-priority 10, priorities 0 to 9", (*given("x-max-priority=10"), "--priorities", 10), None),
    ("single", "x-single-active-consumer", given("x-single-active-consumer=true"), None),
    ("consumer", "two consumers with x-priority 5", ("--consumers", 2, "--consumer-argument", "x-priority=5"), None),
    ("limit", "x-delivery-limit (quorum queues)", given("x-queue-type=quorum", "x-delivery-limit=20"), None),
    ("groups", "x-group-key, 2,000 groups", given("x-group-key=device"), OURS),
    ("deduplication", "x-deduplication, the last 1,000 ids", given("x-deduplication=1000"), OURS),
    ("last_value", "x-last-value-key, 2,000 values, only published to", given("x-last-value-key=device"), OURS),
    ("stream", "a stream, read at its end", STREAM, None),
    ("stream_publish", "a stream, only published to", STREAM, None),
)
GOALS = (("leveret", "rabbitmq", 5.0), ("plain", "rabbitmq", 0.5))
OF_PLAINEST = 0.5  # of the row without arguments


def all_rows():
    """Every row of the table: those of `leveret perf`, then those of verbs_load.py."""
    return SCENARIOS + rows_verbs.SCENARIOS + rows_verbs.BEYOND


class Bench:
    """The runs of all rows. `rows`: {scenario: {column: {"rates": [...], "cpu_us": [...], "load_us": [...]}}}; `failed`: what did not end
    well, as lines; a row that fails does not keep the others from running."""

    def __init__(self, brokers, start, seconds, minutes, mib):
        """`brokers`: durable ones; `start(kind, limits)` starts one more; `minutes` for all; `mib`: of a queue beyond memory."""
        self.brokers, self.start = brokers, start
        self.seconds, self.mib = seconds, mib
        self.end = time.monotonic() + 60 * minutes
        self.rows: dict = {name: {} for name, _, _, _ in all_rows()}
        self.failed: list = []

    def measure(self, runs):
        """Every row once, then every row again while there is time: `runs` times at most. A row that its first run shows to be long is
        not begun again when that would pass the end."""
        took: dict = {}
        for number in range(runs):
            for scenario in SCENARIOS + rows_verbs.SCENARIOS:
                began = time.monotonic()
                if number and began + 1.2 * took[scenario[0]] > self.end:
                    continue
                for broker in self.brokers:
                    self.attempt(number, broker, scenario)
                took[scenario[0]] = time.monotonic() - began
            if number == 0:
                self.beyond()

    def attempt(self, number, broker, scenario):
        """One run of one cell."""
        name, title, options, columns = scenario
        if broker.column not in (columns or COLUMNS):
            return
        try:
            if scenario in SCENARIOS:
                form = (*CONFIRMS, "--consumers", 0) if name in ("stream_publish", "last_value") else USUAL
                measured = perf(broker, broker.url, self.seconds, *form, *options)
            else:
                measured = rows_verbs.run_of(broker, self.seconds, options)
            add_run(self.rows[name], broker.column, title, number, measured)
        except FAILURES as error:
            self.fail(title, broker, error)

    def fail(self, title, broker, error):
        """Note what did not end well."""
        self.failed.append("%s, %s: %s" % (title, broker.column, (str(error).strip() or repr(error)).splitlines()[-1]))
        say("  " + self.failed[-1])

    def beyond(self):
        """The rows beyond memory, once, each Leveret with its memory for messages."""
        for broker in self.brokers:
            own = None
            try:
                if broker.column in OURS:
                    own = self.start(broker.column, rows_verbs.limits_beyond(self.mib))
                measured = rows_verbs.beyond(own or broker, self.mib)
                for (name, title, _, _), one in zip(rows_verbs.BEYOND, measured, strict=True):
                    add_run(self.rows[name], broker.column, title, 0, one)
            except FAILURES as error:
                self.fail(rows_verbs.BEYOND[0][1], broker, error)
            finally:
                if own:
                    own.stop()


def table(rows):
    """The figures as lines of text."""
    return rows_1_0.table(rows, "with features", all_rows(), COLUMNS)


def ratios(rows):
    """[(scenario, column, compared with, ratio, goal)]; "none" is the same column's row without arguments."""
    found = []
    for scenario, _, _, _ in all_rows():
        compared = [(mine, (scenario, other), other, goal) for mine, other, goal in GOALS]
        if scenario not in rows_verbs.NOT_COMPARED:
            compared.append(("leveret", ("none", "leveret"), "none", OF_PLAINEST))
        for mine, place, other, goal in compared:
            rate, theirs = rows_1_0.rate(rows, scenario, mine), rows_1_0.rate(rows, *place)
            if rate and theirs:
                found.append((scenario, mine, other, rate / theirs, goal))
    return found
