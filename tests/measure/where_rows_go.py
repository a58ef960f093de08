"""Where the broker's processor time goes in each row of features and each heavy row: `python tests/measure/where_rows_go.py [--seconds N]`,
as root (perf). The table, with each row's limit and what would be next (rows_reasons.py), goes into tests/measure/LIMITS.md.

`perf record` watches a Leveret with C while the row's load runs; where_time_goes.py says what the groups of samples are.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import textwrap

import rows_features
import rows_heavy
import rows_verbs
from certificates import Authority
from loading import FAILURES, cpu_seconds, perf, say
from rows_reasons import LIMITS
from run import HERE, machine, start
from where_time_goes import COPY, DELIVER, KERNEL, KERNEL_COPY, KERNEL_PAGES, PYTHON, RECORDS, SCAN, THREAD, shares, watched

PAGE = os.path.join(HERE, "LIMITS.md")
BEGIN, END = "<!-- rows: written by tests/measure/where_rows_go.py -->", "<!-- end of rows -->"
SAMPLES_A_SECOND = 1999
COLUMNS = (
    ("C", (SCAN, DELIVER, RECORDS, COPY)),
    ("Python", (PYTHON,)),
    ("kernel", (KERNEL, KERNEL_COPY, KERNEL_PAGES)),
    ("log", (THREAD,)),
)
BEYOND_MIB = 16


def profile(broker, load):
    """(CPU microseconds of a message, {group: share}) while `load` runs: a function that answers how many messages went through."""
    with tempfile.TemporaryDirectory() as directory:
        recorded = os.path.join(directory, "perf.data")
        command = ["perf", "record", "-F", str(SAMPLES_A_SECOND), "-p", str(broker.server_pid), "-o", recorded]
        before = cpu_seconds(broker)
        count = watched(command, load)
        return 1e6 * (cpu_seconds(broker) - before) / count, shares(recorded, broker.server_pid)


def count_of(summary):
    """The messages of a run."""
    return summary.get("received") or summary["confirmed"]


def feature_rows(seconds):
    """(name, title, profile) of each row of features."""
    broker = start("leveret", True)
    try:
        for name, title, options, _ in rows_features.SCENARIOS:
            form = (*rows_features.CONFIRMS, "--consumers", 0) if name in ("stream_publish", "last_value") else rows_features.USUAL
            given = (*form, *options)
            yield name, title, lambda given=given: profile(broker, lambda: count_of(perf(broker, broker.url, seconds, *given)[0]))
        for name, title, options, _ in rows_verbs.SCENARIOS:
            yield name, title, lambda given=options: profile(broker, lambda: count_of(rows_verbs.run_of(broker, seconds, given)[0]))
    finally:
        broker.stop()
    broker = start("leveret", True, rows_verbs.limits_beyond(BEYOND_MIB))
    try:
        title = "a queue beyond memory, filled and drained"
        yield "beyond", title, lambda: profile(broker, lambda: count_of(rows_verbs.beyond(broker, BEYOND_MIB)[1][0]))
    finally:
        broker.stop()


def heavy_rows(seconds):
    """The same of each heavy row."""
    broker = start("leveret")
    try:
        for name, title, options, _ in rows_heavy.BODIES:
            given = ("--vary", *options)
            yield name, title, lambda given=given: profile(broker, lambda: count_of(perf(broker, broker.url, seconds, *given)[0]))
    finally:
        broker.stop()
    with tempfile.TemporaryDirectory(prefix="bench_tls_") as directory:
        authority = Authority(directory)
        broker = rows_heavy.start_tls("leveret", authority, authority.issue("server", "/CN=localhost"))
        try:
            for name, title, options, _ in rows_heavy.TLS:
                given = ("--vary", *options)
                yield name, title, lambda given=given: profile(broker, lambda: count_of(perf(broker, broker.tls_url, seconds, *given)[0]))
            for name, title, again, _ in rows_heavy.HANDSHAKES:
                yield (
                    name,
                    title,
                    lambda again=again: profile(broker, lambda: count_of(rows_heavy.handshakes(broker, authority, seconds, again)[0])),
                )
        finally:
            broker.stop()


def table(found, seconds):
    """The block for LIMITS.md, of [(name, title, CPU microseconds, shares)]."""
    told = machine()
    text = (
        "Measured %s, %d cores, Python %s, load average %.0f, %d s each; a message's CPU time of the broker while it is watched, and its "
        "parts: C (scan, routes, queues, deliveries, records, copies), Python (the loop, sessions, calls of C and of the system), the "
        "kernel (sockets, waking others) and the log's thread. What a row makes before its messages (bindings, 1,000 queues or "
        "connections) is in its CPU time and parts: README.md has a message's alone."
        % (told["date"], told["cpu_count"], told["python"], told["load_average"], seconds)
    )
    lines = [
        BEGIN,
        textwrap.fill(text, 140),
        "",
        "| row | CPU | %s | the limit, and what would be next |" % " | ".join([name for name, _ in COLUMNS]),
    ]
    lines.append("|---|---:|%s---|" % ("---:|" * len(COLUMNS)))
    for name, title, cpu, share in found:
        parts = ["%.0f %%" % (100 * sum([share.get(group, 0) for group in groups])) for _, groups in COLUMNS]
        lines.append("| %s | %.1f us | %s | %s |" % (title, cpu, " | ".join(parts), LIMITS[name]))
    return "\n".join([*lines, END])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, default=2, help="length of each watched run (default 2)")
    options = parser.parse_args()
    if shutil.which("perf") is None:
        sys.exit("this needs perf: apt install linux-perf")
    found = []
    for rows in (feature_rows, heavy_rows):
        for name, title, measure in rows(options.seconds):
            try:
                found.append((name, title, *measure()))
            except FAILURES as error:
                sys.exit("%s: %s" % (title, error))
            say("%s: %.2f us" % found[-1][1:3])
    block = table(found, options.seconds)
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: block, text, flags=re.DOTALL))


if __name__ == "__main__":
    main()
