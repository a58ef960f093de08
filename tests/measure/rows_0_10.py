"""The bench's rows of AMQP 0-10: Leveret beside Qpid Broker-J; a publisher, a consumer, a queue, all in memory.

Columns, all in one run, in turns, each idle while another works:
    leveret    the hot functions in C          plain      the same broker with LEVERET_ACCEL=0
    0-9-1      Leveret in C, the same row over AMQP 0-9-1: no acknowledgements, or confirms and acks
    broker-j   the peer of tests/interop_1_0, where it can be had, with both compilers and 2 GiB
Each begins with a run that is not counted: of Broker-J its compilers' time, of Leveret what it loads with its first connection of 0-10.
Accept-mode none: nobody accepts anything, credit without limit. Explicit: at most 200 transfers that are not completed, window mode with
200 messages, message.accept for ten deliveries. Bodies of 256 octets, or varied (`leveret perf --vary`).
"""

import rows_1_0
from loading import RunFailed, add_run, perf, say

COLUMNS = ("leveret", "plain", "0-9-1", "broker-j")
PEER = "broker-j"
SCENARIOS = (
    ("none", "accept-mode none, bodies of 256 octets", (), False),
    ("explicit", "accept-mode explicit, bodies of 256 octets", rows_1_0.UNSETTLED, False),
    ("none_varied", "accept-mode none, varied", ("--vary",), False),
    ("explicit_varied", "accept-mode explicit, varied", ("--vary", *rows_1_0.UNSETTLED), False),
)
GOALS = (("leveret", PEER, 10.0), ("plain", PEER, 1.0), ("leveret", "0-9-1", 0.5))  # the last is no goal of an issue


def start_all(start):
    """{column: a broker}. `start(kind)` starts a Leveret."""
    brokers: dict = {}
    try:
        for kind in ("leveret", "plain"):
            brokers[kind] = start(kind)
        brokers["0-9-1"] = brokers["leveret"]
        missing = [component for component in rows_1_0.peers.NEEDS[PEER] if not component.present()]
        if missing:
            say("%s is left out: %s" % (PEER, missing[0].sentence()))
        else:
            brokers[PEER] = rows_1_0.peers.start(PEER, for_long=True)
            brokers[PEER].column = PEER
    except BaseException:  # nothing that was started stays behind
        rows_1_0.stop_all(brokers)
        raise
    return brokers


def run_of(broker, column, seconds, arguments):
    """One run, over AMQP 0-10 but for the column of 0-9-1."""
    return perf(broker, broker.url + ("" if column == "0-9-1" else "?protocol=0-10"), seconds, *arguments)


def measure(start, seconds, runs):
    """As rows_1_0.measure: (rows, what the peer failed at)."""
    rows: dict = {}
    failed = []
    brokers = start_all(start)
    try:
        for column, broker in brokers.items():
            run_of(broker, column, seconds, rows_1_0.UNSETTLED)
        for name, title, arguments, _ in SCENARIOS:
            row = rows[name] = {}
            for number in range(runs):
                for column, broker in brokers.items():
                    try:
                        add_run(row, column, title, number, run_of(broker, column, seconds, arguments))
                    except RunFailed as error:
                        if column != PEER:
                            raise
                        failed.append("%s, %s: %s" % (title, column, str(error).strip().splitlines()[-1]))
                        say("  " + failed[-1])
    finally:
        rows_1_0.stop_all(brokers)
    return rows, failed


def table(rows):
    """The figures as lines of text."""
    return rows_1_0.table(rows, "AMQP 0-10", SCENARIOS, COLUMNS)


def ratios(rows, scenarios=SCENARIOS, goals=GOALS):
    """[(scenario, column, compared with, ratio, goal)], of CPU time of the broker for a message: the machine may be loaded."""
    lines = []
    for scenario, _, _, _ in scenarios:
        for column, other, goal in goals:
            mine, theirs = (rows_1_0.median(rows, scenario, each) for each in (column, other))
            if mine and theirs:
                lines.append((scenario, column, other, theirs / mine, goal))
    return lines
