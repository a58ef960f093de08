"""The bench's rows of AMQP 1.0: Leveret beside ActiveMQ Artemis, Qpid Broker-J and RabbitMQ's plugin; a publisher, a consumer, a queue.

Columns, all in one run, in turns, each idle while another works:
    leveret    the hot functions in C          plain      the same broker with LEVERET_ACCEL=0
    0-9-1      Leveret in C, the same row over AMQP 0-9-1: no acknowledgements, or confirms and acks
    artemis, broker-j, rabbitmq                the peers of tests/interop_1_0, where they can be had; the two in Java with both compilers
               and 2 GiB, and after one run that is not counted
Messages: bodies of 256 octets, or varied (`leveret perf --vary`: 128 to 384 octets, ids, application properties, 100 subjects). Presettled:
nobody answers anything. Unsettled: at most 200 messages without their outcome, credit 200, a disposition for ten deliveries. The rows on a
disk have durable messages and queues: Leveret with --data, Artemis with its journal, Broker-J with Derby, RabbitMQ as it is.
"""

import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, os.pardir, "interop_1_0"))

import peers  # noqa: E402 - the path above has to be set first
from loading import RunFailed, add_run, perf, say  # noqa: E402 - beside the import above

COLUMNS = ("leveret", "plain", "0-9-1", "artemis", "broker-j", "rabbitmq")
PEERS = ("artemis", "broker-j", "rabbitmq")
ADDRESSES = {"artemis": "%s", "broker-j": "%s", "rabbitmq": "/amq/queue/%s"}  # of a queue that `leveret perf` may have declared
OURS = "/queues/%s"
UNSETTLED = ("--confirm", 200, "--ack-every", 10, "--prefetch", 200)

# name, title, arguments of `leveret perf`, whether it is on a disk
SCENARIOS = (
    ("presettled", "presettled, bodies of 256 octets", (), False),
    ("unsettled", "unsettled, bodies of 256 octets", UNSETTLED, False),
    ("presettled_varied", "presettled, varied", ("--vary",), False),
    ("unsettled_varied", "unsettled, varied", ("--vary", *UNSETTLED), False),
    ("presettled_disk", "presettled, varied, on a disk", ("--vary", "--persistent"), True),
    ("unsettled_disk", "unsettled, varied, on a disk", ("--vary", "--persistent", *UNSETTLED), True),
)

# (column, compared with, at least this ratio); "best" is the best of the peers.
GOALS = (("leveret", "best", 10.0), ("leveret", "0-9-1", 0.5), ("plain", "best", 1.0))


def start_all(start):
    """{(column, on a disk): a broker}. `start(kind, durable)` starts a Leveret. What cannot be had is told and left out."""
    brokers: dict = {}
    try:
        for durable in (False, True):
            for kind in ("leveret", "plain"):
                brokers[kind, durable] = start(kind, durable)
            brokers["0-9-1", durable] = brokers["leveret", durable]
            for kind in PEERS:
                missing = [component for component in peers.NEEDS[kind] if not component.present()]
                if missing:
                    say("%s is left out: %s" % (kind, missing[0].sentence()))
                elif kind == "rabbitmq" and durable:
                    brokers[kind, True] = brokers[kind, False]
                else:
                    brokers[kind, durable] = peers.start(kind, durable, for_long=True)
                    brokers[kind, durable].column = kind
    except BaseException:  # nothing that was started stays behind
        stop_all(brokers)
        raise
    return brokers


def stop_all(brokers):
    for broker in set(brokers.values()):
        broker.stop()


def run_of(broker, column, seconds, arguments):
    """One run, over AMQP 1.0 but for the column of 0-9-1."""
    if column == "0-9-1":
        return perf(broker, broker.url, seconds, *arguments)
    return perf(broker, broker.url + "?protocol=1.0", seconds, "--address", ADDRESSES.get(column, OURS), *arguments)


def measure(start, seconds, runs):
    """({scenario: {column: {"rates": [...], "cpu_us": [...]}}}, what peers failed at, as lines). `start`: of run.py. Raises RunFailed for a
    column of Leveret's; a peer that does not end a run well has no figure of it."""
    rows: dict = {}
    failed = []
    brokers = start_all(start)
    try:
        for (column, _), broker in brokers.items():
            if column in ("artemis", "broker-j"):
                run_of(broker, column, seconds, UNSETTLED)
        for name, title, arguments, durable in SCENARIOS:
            row = rows[name] = {}
            for number in range(runs):
                for column in COLUMNS:
                    broker = brokers.get((column, durable))
                    if broker is None:
                        continue
                    try:
                        add_run(row, column, title, number, run_of(broker, column, seconds, arguments))
                    except RunFailed as error:
                        if column not in PEERS:
                            raise
                        failed.append("%s, %s: %s" % (title, column, str(error).strip().splitlines()[-1]))
                        say("  " + failed[-1])
    finally:
        stop_all(brokers)
    return rows, failed


def rate(rows, scenario, column):
    """The median of a cell, None where there is none; of "best" the best of the peers."""
    if column == "best":
        return max((found for found in (rate(rows, scenario, peer) for peer in PEERS) if found), default=None)
    cell = rows.get(scenario, {}).get(column)
    return statistics.median(cell["rates"]) if cell else None


def median(rows, scenario, column):
    """The median of a cell's CPU us for a message, None where there is none."""
    cell = rows.get(scenario, {}).get(column)
    return statistics.median(cell["cpu_us"]) if cell else None


def columns_of(rows, known=COLUMNS):
    return [column for column in known if any(column in row for row in rows.values())]


def table(rows, subject="AMQP 1.0", scenarios=SCENARIOS, known=COLUMNS):
    """The figures as lines of text."""
    columns = columns_of(rows, known)
    lines = ["%-42s" % (subject + ", messages a second") + "".join("%12s" % column for column in columns)]
    for what, title, _, _ in scenarios:
        figures = [rate(rows, what, column) for column in columns]
        lines.append("%-42s" % title + "".join("%12s" % ("-" if each is None else "%d" % each) for each in figures))
    for what, title, _, _ in scenarios:
        cells = [rows[what].get(column) for column in columns]
        lines.append(
            "%-42s" % ("CPU us, " + title)
            + "".join("%12s" % ("-" if cell is None else "%.2f" % statistics.median(cell["cpu_us"])) for cell in cells)
        )
    return lines


def ratios(rows):
    """[(scenario, column, compared with, ratio, goal)]."""
    found = []
    for scenario, _, _, _ in SCENARIOS:
        for column, other, goal in GOALS:
            mine, theirs = rate(rows, scenario, column), rate(rows, scenario, other)
            if mine and theirs:
                found.append((scenario, column, other, mine / theirs, goal))
    return found
