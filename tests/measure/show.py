"""Puts the figures of a bench into tests/measure/README.md and draws them: `python tests/measure/show.py [build/bench.json]`.

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

from run import BLIND, SCENARIOS, STREAM, connection_kb, rate

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
README = os.path.join(ROOT, "tests", "measure", "README.md")
PLOT = os.path.join(ROOT, "tests", "measure", "bench.svg")
BEGIN, END = "<!-- bench: written by tests/measure/show.py -->", "<!-- end of bench -->"
TITLES = {"leveret": "Leveret (C)", "plain": "Leveret (plain Python)", "rabbitmq": "RabbitMQ", "relay": "C relay (limit)"}
COLOURS = {"leveret": "#2a7f3f", "plain": "#9ccfa8", "rabbitmq": "#e07b39", "relay": "#b8b8b8"}
BAR, GAP, LEFT, TOP, WIDTH = 13, 12, 270, 40, 420


def measured(result):
    """One sentence: when, on what, how."""
    machine = result["machine"]
    load = machine["load_average"]
    busy = " beside other work (load average %.0f: compare columns, not other days)" % load if load > machine["cpu_count"] else ""
    return "%s, %d cores (%s)%s, Python %s; one publisher and one consumer, %s; %s of %d s" % (
        machine["date"],
        machine["cpu_count"],
        machine["cpu"],
        busy,
        machine["python"],
        STREAM,
        "medians of %d runs" % result["runs"] if result["runs"] > 1 else "one run",
        result["seconds"],
    )


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


def plot(result):
    """The plot as SVG."""
    kinds = result["columns"]
    found = [(title, [(kind, rate(result, name, kind)) for kind in kinds if rate(result, name, kind)]) for name, title, _, _ in SCENARIOS]
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
        % (LEFT + WIDTH + 80, y, measured(result), "".join(parts))
    )


def main():
    """Write both."""
    with open(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "bench.json"), encoding="utf-8") as file:
        result = json.load(file)
    with open(README, encoding="utf-8") as file:
        text = file.read()
    whole = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not whole.search(text):
        sys.exit("tests/measure/README.md has no place for the figures: it needs the lines %s and %s" % (BEGIN, END))
    with open(README, "w", encoding="utf-8") as file:
        file.write(whole.sub(lambda _: readme_table(result), text))
    with open(PLOT, "w", encoding="utf-8") as file:
        file.write(plot(result))


if __name__ == "__main__":
    main()
