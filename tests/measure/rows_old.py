"""The bench's rows of the versions before 0-9-1: 0-8, 0-9 and the drafts of 2005 beside Leveret's own 0-9-1; all in memory.

Columns, all in one run, in turns, each idle while another works: a version each, with the hot functions in C, and with `plain` before its
name the same with LEVERET_ACCEL=0. The drafts have listeners of their own. A publisher, a consumer, a queue. Confirms are publisher
confirms of 0-9-1, at most 200 open, and transactions of 200 messages of the others, which have no confirms; with the acks each tenth
delivery is acknowledged, for all up to it.
"""

import rows_0_10
import rows_1_0
from broker_process import free_port
from loading import add_run, perf

VERSIONS = ("0-9-1", "0-8", "0-9", "0.9a5", "0.9r1")
DRAFTS = ("0.9a5", "0.9r1")
COLUMNS = VERSIONS + tuple("plain " + version for version in VERSIONS)
SCENARIOS = (
    ("no_ack", "no acknowledgements, bodies of 256 octets", (), False),
    ("no_ack_varied", "no acknowledgements, varied", ("--vary",), False),
    ("kept_varied", "confirms or transactions, and acks, varied", ("--vary", *rows_1_0.UNSETTLED), False),
)
GOALS = tuple(
    (plain + version, plain + "0-9-1", 0.5 if version in DRAFTS else 0.95) for plain in ("", "plain ") for version in VERSIONS[1:]
)


def measure(start, seconds, runs):
    """As rows_1_0.measure: (rows, nothing that failed). `start(kind, durable, limits, arguments)` starts a Leveret."""
    rows: dict = {}
    brokers: dict = {}
    places: dict = {}
    try:
        for kind in ("leveret", "plain"):
            ports = {version: free_port() for version in DRAFTS}
            listeners = [part for version in DRAFTS for part in ("--listen", f"amqp://127.0.0.1:{ports[version]}?version={version}")]
            brokers[kind] = start(kind, False, "", listeners)
            for version in VERSIONS:
                place = f"amqp://guest:guest@127.0.0.1:{ports[version]}/" if version in DRAFTS else brokers[kind].url
                query = "" if version == "0-9-1" else "?protocol=" + version
                places[("plain " if kind == "plain" else "") + version] = brokers[kind], place + query
        for name, title, arguments, _ in SCENARIOS:
            row = rows[name] = {}
            for number in range(runs):
                for column in COLUMNS:
                    broker, url = places[column]
                    add_run(row, column, title, number, perf(broker, url, seconds, *arguments))
    finally:
        rows_1_0.stop_all(brokers)
    return rows, []


def table(rows):
    """The figures as lines of text."""
    return rows_1_0.table(rows, "Versions before 0-9-1", SCENARIOS, COLUMNS)


def ratios(rows):
    """As of rows_0_10; transactions are not measured against confirms."""
    return rows_0_10.ratios(rows, SCENARIOS[:-1], GOALS)
