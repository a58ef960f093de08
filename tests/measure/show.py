"""Puts the figures of a bench into tests/measure/README.md and draws them: `python tests/measure/show.py [build/bench.json]`. The rows of
AMQP 1.0, of 0-10, those of features and the heavy ones are tables of their own, and one may be there without the others (`dev.py bench
--only 1.0`); `dev.py bench --show` does all this behind its measuring.

The table stands between two marks there (tools/generate_readme.py takes a few of its rows into the front README); the plot (messages a
second, one group of bars for a scenario, logarithmic) is tests/measure/bench.svg. Both say when and on what they were measured, and with
which command.
"""

import json
import math
import os
import re
import statistics
import sys
import textwrap

import rows_0_10
import rows_1_0
import rows_features
import show_features
import show_heavy
from run import BLIND, SCENARIOS, STREAM, connection_kb, rate

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
README = os.path.join(ROOT, "tests", "measure", "README.md")
PLOT = os.path.join(ROOT, "tests", "measure", "bench.svg")
PLOT_FEATURES = os.path.join(ROOT, "tests", "measure", "features.svg")
BEGIN, END = "<!-- bench: written by tests/measure/show.py -->", "<!-- end of bench -->"
TITLES = {"leveret": "Leveret (C)", "plain": "Leveret (plain Python)", "rabbitmq": "RabbitMQ", "relay": "C relay (limit)"}
COLOURS = {"leveret": "#2a7f3f", "plain": "#9ccfa8", "rabbitmq": "#e07b39", "relay": "#b8b8b8"}
BEGIN_0_10, END_0_10 = "<!-- bench of AMQP 0-10: written by tests/measure/show.py -->", "<!-- end of bench of AMQP 0-10 -->"
BEGIN_1_0, END_1_0 = "<!-- bench of AMQP 1.0: written by tests/measure/show.py -->", "<!-- end of bench of AMQP 1.0 -->"
TITLES_1_0 = {"0-9-1": "Leveret (C), 0-9-1", "artemis": "Artemis 2.55", "broker-j": "Broker-J 10.1", "rabbitmq": "RabbitMQ's plugin"}
BAR, GAP, LEFT, TOP, WIDTH = 13, 12, 270, 40, 420


def measured(result):
    """One sentence: when, on what, how."""
    return machine_told(result) + "; one publisher and one consumer, %s; %s" % (STREAM, runs_told(result))


def machine_told(result):
    """When, and on what."""
    machine = result["machine"]
    load = machine["load_average"]
    busy = " beside other work (load average %.0f: compare columns, not other days)" % load if load > machine["cpu_count"] else ""
    return "%s, %d cores (%s)%s, Python %s" % (machine["date"], machine["cpu_count"], machine["cpu"], busy, machine["python"])


def runs_told(result):
    many = "medians of %d runs" % result["runs"] if result["runs"] > 1 else "one run"
    return "%s of %d s" % (many, result["seconds"])


def rows(result):
    """(title, figure of each column as text)."""
    kinds = result["columns"]
    for name, title, _, _ in SCENARIOS:
        found = [rate(result, name, kind) for kind in kinds]
        yield title + ", messages/s", ["-" if figure is None else "{:,.0f}".format(figure) for figure in found]
    yield "CPU a message, no acknowledgements", ["%.2f us" % statistics.median(result["rates"]["no_ack"][kind]["cpu_us"]) for kind in kinds]
    for percentile in ("50", "99"):
        found = [result["latency_us"][kind][percentile] / 1000 for kind in kinds]
        yield "latency p%s at 1,000 messages/s" % percentile, ["%.2f ms" % figure for figure in found]
    yield "start to first answer", cells(result["ready_s"], kinds, lambda found: "%.2f s" % statistics.median(found))
    yield "resident memory, idle", cells(result["memory"], kinds, lambda found: "%.1f MiB" % (found["idle_kb"] / 1024))
    yield "a connection more", cells(result["memory"], kinds, lambda found: "%.1f KiB" % connection_kb(found))
    yield (
        "the same beyond its buffers",
        cells(result["memory"], kinds, lambda found: "%.1f KiB" % (connection_kb(found) - connection_kb(found, "buffers"))),
    )
    yield "a queued message more", cells(result["memory"], kinds, lambda found: "%d octets" % found["message_octets"])
    yield "CPU when idle", cells(result["idle_cpu"], kinds, lambda found: "%.1f %%" % found)


def relay_told(result):
    """What the relay does, and does not, for who reads its column."""
    text = (
        "The relay is one C loop that turns a publish into a delivery (tests/measure/relay.c): no queue, no memory, no checks. With acks "
        "it too has at most 200 messages unacknowledged at a time, and waits for the consumer like the brokers"
    )
    blind = rate(result, "acks", BLIND)
    if blind:
        text += "; when it does not wait, and so does less than was asked, it moves {:,.0f} in that row".format(blind)
    return text + "."


def cells(found, kinds, text):
    return [text(found[kind]) if kind in found else "-" for kind in kinds]


def readme_table(result):
    """The block for README.md."""
    kinds = result["columns"]
    told = "Measured %s: `python3 tools/dev.py bench`, then `python tests/measure/show.py`." % measured(result)
    lines = [
        BEGIN,
        textwrap.fill(told, 140, break_on_hyphens=False),
        "",
        "| | " + " | ".join(TITLES[kind] for kind in kinds) + " |",
        "|---|" + "---:|" * len(kinds),
    ]
    lines += ["| %s | %s |" % (title, " | ".join(figures)) for title, figures in rows(result)]
    lines += ["", textwrap.fill(relay_told(result), 140, break_on_hyphens=False)]
    return "\n".join(lines + ["", "![messages a second](bench.svg)", END])


def readme_table_1_0(result):
    """The block of AMQP 1.0 for README.md: messages a second, and Leveret's beside the best peer and beside its own 0-9-1."""
    rows = result["rates_1_0"]
    columns = rows_1_0.columns_of(rows)
    told = "Measured %s; a publisher, a consumer, a queue; %s: `python3 tools/dev.py bench --only 1.0`, `python tests/measure/show.py`."
    titles = [dict(TITLES, **TITLES_1_0)[column] for column in columns]
    lines = [
        BEGIN_1_0,
        textwrap.fill(told % (machine_told(result), runs_told(result)), 140, break_on_hyphens=False),
        "",
        "| messages/s | " + " | ".join(titles) + " | C / best peer | plain / best peer | C / 0-9-1 |",
        "|---|" + "---:|" * (len(columns) + 3),
    ]
    ratios = {found[:3]: found[3] for found in rows_1_0.ratios(rows)}
    for name, title, _, _ in rows_1_0.SCENARIOS:
        figures = [rows_1_0.rate(rows, name, column) for column in columns]
        cells = ["-" if each is None else "{:,.0f}".format(each) for each in figures]
        beside = [ratios.get((name, *pair)) for pair in (("leveret", "best"), ("plain", "best"), ("leveret", "0-9-1"))]
        cells += ["-" if each is None else "%.2f" % each for each in beside]
        lines.append("| %s | %s |" % (title, " | ".join(cells)))
    for name, title, _, _ in rows_1_0.SCENARIOS:
        cells = [rows[name].get(column) for column in columns]
        cells = ["-" if each is None else "%.2f us" % statistics.median(each["cpu_us"]) for each in cells]
        lines.append("| CPU a message, %s | %s |  |  |  |" % (title, " | ".join(cells)))
    if result["failed_1_0"]:
        lines += ["", "Runs that did not end well: %s." % "; ".join(result["failed_1_0"])]
    return "\n".join(lines + [END_1_0])


def readme_table_0_10(result):
    """The block of AMQP 0-10 for README.md: messages a second, the broker's CPU time for each, and how much less of that Leveret takes."""
    rows = result["rates_0_10"]
    columns = rows_1_0.columns_of(rows, rows_0_10.COLUMNS)
    told = "Measured %s; a publisher, a consumer, a queue; %s: `python3 tools/dev.py bench --only 0-10`, `python tests/measure/show.py`."
    lines = [
        BEGIN_0_10,
        textwrap.fill(told % (machine_told(result), runs_told(result)), 140, break_on_hyphens=False),
        "",
        "| messages/s | " + " | ".join([dict(TITLES, **TITLES_1_0)[column] for column in columns]) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for name, title, _, _ in rows_0_10.SCENARIOS:
        figures = [rows_1_0.rate(rows, name, column) for column in columns]
        lines.append("| %s | %s |" % (title, " | ".join(["-" if each is None else "{:,.0f}".format(each) for each in figures])))
    for name, title, _, _ in rows_0_10.SCENARIOS:
        cells = [rows_1_0.median(rows, name, column) for column in columns]
        lines.append("| CPU a message, %s | %s |" % (title, " | ".join(["-" if each is None else "%.2f us" % each for each in cells])))
    ratios = {found[:3]: found[3] for found in rows_0_10.ratios(rows)}
    goals = rows_0_10.GOALS
    lines += [
        "",
        "| CPU time of the second, divided by that of the first | " + " | ".join(["%s, %s" % goal[:2] for goal in goals]) + " |",
        "|---|" + "---:|" * len(goals),
    ]
    for name, title, _, _ in rows_0_10.SCENARIOS:
        found = [ratios.get((name, *goal[:2])) for goal in goals]
        lines.append("| %s | %s |" % (title, " | ".join(["-" if each is None else "%.1f" % each for each in found])))
    if result["failed_0_10"]:
        lines += ["", "Runs that did not end well: %s." % "; ".join(result["failed_0_10"])]
    return "\n".join(lines + [END_0_10])


def plot(result):
    """The plot of the rows of 0-9-1."""
    return drawn(
        result["columns"],
        [
            (title, [(kind, rate(result, name, kind)) for kind in result["columns"] if rate(result, name, kind)])
            for name, title, _, _ in SCENARIOS
        ],
        measured(result),
    )


def plot_features(result):
    """The plot of the rows of features."""
    rows, kinds = result["rates_features"], rows_features.COLUMNS
    groups = [
        (title, [(kind, rows_1_0.rate(rows, name, kind)) for kind in kinds if rows_1_0.rate(rows, name, kind)])
        for name, title, _, _ in rows_features.all_rows()
    ]
    return drawn(kinds, groups, measured_features(result))


def measured_features(result):
    """One sentence: when, on what, how the rows of features were measured."""
    return (
        "Measured %s; one publisher and one consumer, persistent messages of 256 octets varying by half, ids varying, confirms with a "
        "window of 200, acks, --data, where the row does not say otherwise; runs of %d s, medians where there are several; a queue beyond "
        "memory has %d MiB through a sixteenth: `python3 tools/dev.py bench --only features heavy --show`."
        % (machine_told(result), result["seconds"], result["beyond_mib"])
    )


def measured_heavy(result):
    """The same of the heavy rows."""
    return (
        "Measured %s; a publisher and a consumer, bodies varying by half, no log; %s (rows_heavy.py). Latency (rows_latency.py): of 4 s at "
        "least, beside 1,000 idle connections, a stream that is replayed, a queue beyond memory and a log that is compacted; the relay has "
        "nothing beside it. `python3 tools/dev.py bench --only features heavy --show`." % (machine_told(result), runs_told(result))
    )


def drawn(kinds, found, told):
    """A plot as SVG: a group of bars for each of `found`, (title, [(kind, figure)])."""
    top = max(figure for _, bars in found for _, figure in bars)
    parts, y = [], TOP
    for title, bars in found:
        parts.append('<text x="%d" y="%d" text-anchor="end">%s</text>' % (LEFT - 8, y + len(bars) * BAR / 2 + 4, title))
        for kind, figure in bars:
            length = WIDTH * max(math.log10(figure) - 2, 0.01) / (math.log10(top) - 2)
            parts.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (LEFT, y, length, BAR - 2, COLOURS[kind]))
            parts.append('<text x="%.1f" y="%d" font-size="10">%s</text>' % (LEFT + length + 4, y + BAR - 4, "{:,.0f}".format(figure)))
            y += BAR
        y += GAP
    for place, kind in enumerate(kinds):
        parts.append(
            '<rect x="%d" y="10" width="11" height="11" fill="%s"/><text x="%d" y="20">%s</text>'
            % (10 + 180 * place, COLOURS[kind], 26 + 180 * place, TITLES[kind])
        )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">'
        '<title>messages a second, logarithmic from 100; %s</title><rect width="100%%" height="100%%" fill="white"/>%s</svg>\n'
        % (LEFT + WIDTH + 80, y, told, "".join(parts))
    )


def replaced(text, begin, end, block):
    """The page with another block between two marks."""
    whole = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not whole.search(text):
        sys.exit("tests/measure/README.md has no place for the figures: it needs the lines %s and %s" % (begin, end))
    return whole.sub(lambda _: block, text)


def main():
    """Write both of a file of figures."""
    with open(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "bench.json"), encoding="utf-8") as file:
        write(json.load(file))


def write(result):
    """Write the tables and plots of what was measured into the page."""
    with open(README, encoding="utf-8") as file:
        text = file.read()
    for measured_here, begin, end, block in (
        ("rates", BEGIN, END, readme_table),
        ("rates_1_0", BEGIN_1_0, END_1_0, readme_table_1_0),
        ("rates_0_10", BEGIN_0_10, END_0_10, readme_table_0_10),
    ):
        if measured_here in result:
            text = replaced(text, begin, end, block(result))
    if "rates_features" in result:
        block = show_features.block(result, measured_features(result))
        text = replaced(text, show_features.BEGIN, show_features.END, block)
    if "heavy" in result:
        text = replaced(text, show_heavy.BEGIN, show_heavy.END, show_heavy.block(result["heavy"], measured_heavy(result)))
    with open(README, "w", encoding="utf-8") as file:
        file.write(text)
    for name, path, make in (("rates", PLOT, plot), ("rates_features", PLOT_FEATURES, plot_features)):
        if name in result:
            with open(path, "w", encoding="utf-8") as file:
                file.write(make(result))


if __name__ == "__main__":
    main()
