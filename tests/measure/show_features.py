"""The table and the drawing of the rows of features, for show.py: every row of rows_features.all_rows, and for each that misses a goal by
how much, and why."""

import statistics
import textwrap

import rows_1_0
import rows_features
from rows_reasons import REASONS
from rows_verbs import NOT_COMPARED

BEGIN, END = "<!-- bench of features: written by tests/measure/show.py -->", "<!-- end of bench of features -->"
HEAD = ("messages/s", "Leveret (C)", "Leveret (plain Python)", "RabbitMQ", "runs", "C / RabbitMQ", "plain / RabbitMQ", "C / no arguments")
COSTS = ("CPU of", "Leveret (C)", "Leveret (plain Python)", "RabbitMQ", "the load", "RabbitMQ / C", "RabbitMQ / plain", "no arguments / C")
PAIRS = (("leveret", "rabbitmq"), ("plain", "rabbitmq"), ("leveret", "none"))
NAMES = {"leveret": "C", "plain": "plain", "rabbitmq": "RabbitMQ", "none": "no arguments"}


def block(result, measured):
    """The block for tests/measure/README.md. `measured`: a sentence."""
    rows = result["rates_features"]
    lines = [BEGIN, textwrap.fill(measured, 140, break_on_hyphens=False), "", row_of(HEAD), "|---|" + "---:|" * (len(HEAD) - 1)]
    lines += [row_of(figures(rows, name, title)) for name, title, _, _ in rows_features.all_rows()]
    lines += ["", "![messages a second with features](features.svg)", "", row_of(COSTS), "|---|" + "---:|" * (len(COSTS) - 1)]
    lines += [row_of(costs(rows, name, title)) for name, title, _, _ in rows_features.all_rows()]
    lines += ["", "Rows that miss a goal (5 times RabbitMQ and half of no arguments in C, half of RabbitMQ in plain Python):"]
    lines += misses(rows) or ["none."]
    if result["failed_features"]:
        lines += ["", "Runs that did not end well: %s." % "; ".join(result["failed_features"])]
    return "\n".join(lines + [END])


def row_of(cells):
    return "| %s |" % " | ".join(cells)


def figures(rows, name, title):
    """The cells of a row: rates, the fewest runs that a rate is the median of, ratios."""
    rates = [rows_1_0.rate(rows, name, column) for column in rows_features.COLUMNS]
    cells = ["-" if rate is None else "{:,.0f}".format(rate) for rate in rates]
    cells.append(str(min((len(cell["rates"]) for cell in rows.get(name, {}).values()), default=0)))
    ratios = {(mine, other): ratio for row, mine, other, ratio, _ in rows_features.ratios(rows) if row == name}
    return [title] + cells + ["%.2f" % ratios[pair] if pair in ratios else "-" for pair in PAIRS]


def costs(rows, name, title):
    """Microseconds of CPU for a message: of each broker, and of the busier process of the load, the least of all columns; and these beside
    each other, which a busy machine changes less than rates."""
    cells = [rows.get(name, {}).get(column) for column in rows_features.COLUMNS]
    own, plain, other = [statistics.median(cell["cpu_us"]) if cell and cell["cpu_us"] else None for cell in cells]
    told = ["-" if each is None else "%.1f us" % each for each in (own, plain, other)]
    load = [min(cell["load_us"]) for cell in cells if cell and cell.get("load_us")]
    told.append("%.1f us" % min(load) if load else "-")
    none = rows.get("none", {}).get("leveret", {}).get("cpu_us") if name not in NOT_COMPARED else None
    pairs = (other, own), (other, plain), (statistics.median(none) if none else None, own)
    return [title] + told + ["%.2f" % (one / by) if one and by else "-" for one, by in pairs]


def misses(rows):
    """A line for each row that misses a goal, or has no figure."""
    titles = {name: title for name, title, _, _ in rows_features.all_rows()}
    missed: dict = {}
    for name, mine, other, ratio, goal in rows_features.ratios(rows):
        if ratio < goal:
            missed.setdefault(name, []).append("%s / %s %.2f of %g" % (NAMES[mine], NAMES[other], ratio, goal))
    lines = []
    for name, title in titles.items():
        parts = missed.get(name, [])
        if rows_1_0.rate(rows, name, "leveret") is None:
            parts = ["no figure"]
        if parts:
            lines.append("- %s: %s. %s" % (title, ", ".join(parts), REASONS.get(name, "")))
    return [line.rstrip() for line in lines]
