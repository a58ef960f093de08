"""The bench's rows of what applications declare: arguments of queues, consumers and messages, each beside RabbitMQ and beside no arguments.

Columns: leveret and plain with --data, and rabbitmq, where it has the feature. One publisher, one consumer, confirms with a window of
200, acknowledgements, persistent messages of 256 octets on average, no two alike (`leveret perf --vary`).
"""

import rows_1_0
from loading import RunFailed, add_run, perf, say

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
    ("stream", "a stream, read at its end", STREAM, None),
    ("stream_publish", "a stream, only published to", STREAM, None),
)
GOALS = (("leveret", "rabbitmq", 5.0), ("plain", "rabbitmq", 0.5))
OF_PLAINEST = 0.5  # of the row without arguments


def measure(brokers, seconds, runs):
    """({scenario: {column: {"rates": [...], "cpu_us": [...]}}}, what RabbitMQ failed at, as lines). `brokers`: durable ones."""
    rows: dict = {}
    failed = []
    for name, title, options, columns in SCENARIOS:
        row = rows[name] = {}
        form = (*CONFIRMS, "--consumers", 0) if name == "stream_publish" else USUAL
        for number in range(runs):
            for broker in brokers:
                if broker.column not in (columns or COLUMNS):
                    continue
                try:
                    add_run(row, broker.column, title, number, perf(broker, broker.url, seconds, *form, *options))
                except RunFailed as error:
                    if broker.column in OURS:
                        raise
                    failed.append("%s, %s: %s" % (title, broker.column, str(error).strip().splitlines()[-1]))
                    say("  " + failed[-1])
    return rows, failed


def table(rows):
    """The figures as lines of text."""
    return rows_1_0.table(rows, "with features", SCENARIOS, COLUMNS)


def ratios(rows):
    """[(scenario, column, compared with, ratio, goal)]; "none" is the same column's row without arguments."""
    found = []
    for scenario, _, _, _ in SCENARIOS:
        compared = [(mine, (scenario, other), other, goal) for mine, other, goal in GOALS]
        compared.append(("leveret", ("none", "leveret"), "none", OF_PLAINEST))
        for mine, place, other, goal in compared:
            rate, theirs = rows_1_0.rate(rows, scenario, mine), rows_1_0.rate(rows, *place)
            if rate and theirs:
                found.append((scenario, mine, other, rate / theirs, goal))
    return found
