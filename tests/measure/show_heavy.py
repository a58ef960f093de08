"""The table of the heavy rows, for show.py: large bodies, TLS, handshakes; latency beside others; what a message and a connection take."""

import statistics
import textwrap

import rows_1_0
import rows_heavy
import rows_latency
from run import connection_kb, verdict

BEGIN, END = "<!-- bench of heavy rows: written by tests/measure/show.py -->", "<!-- end of bench of heavy rows -->"
TITLES = ("Leveret (C)", "Leveret (plain Python)", "RabbitMQ", "C relay (limit)")


def block(found, measured):
    """The block for tests/measure/README.md. `found`: of rows_heavy.measure; `measured`: a sentence."""
    head = ("messages/s", *TITLES, "C / RabbitMQ", "goal", "by CPU", "relay / RabbitMQ")
    lines = [BEGIN, textwrap.fill(measured, 140, break_on_hyphens=False), "", row_of(head), "|---|" + "---:|" * (len(head) - 1)]
    lines += [row_of(figures(found["rates"], name, title)) for name, title, _, _ in rows_heavy.SCENARIOS]
    head = ("CPU of", *TITLES)
    lines += ["", row_of(head), "|---|" + "---:|" * (len(head) - 1)]
    lines += [row_of(costs(found["rates"], name, title)) for name, title, _, _ in rows_heavy.SCENARIOS]
    head = ("latency, ms", "Leveret (C)", "RabbitMQ", "C relay (limit)", "goal", "")
    lines += ["", row_of(head), "|---|" + "---:|" * (len(head) - 2) + "---|"]
    lines += [row_of(latency(found["latency"], rate, each)) for rate in rows_latency.RATES for each in rows_latency.PERCENTILES]
    lines += ["", *memory(found)]
    if found["failed"]:
        lines += ["", "Runs that did not end well: %s." % "; ".join(found["failed"])]
    return "\n".join(lines + [END])


def row_of(cells):
    return "| %s |" % " | ".join(cells)


def figures(rows, name, title):
    """The cells of a row: rates, C beside RabbitMQ by rate and by CPU, and the goal of that; the relay beside RabbitMQ."""
    rates = [rows_1_0.rate(rows, name, column) for column in rows_heavy.COLUMNS]
    ratios = {told[0]: told[3] for told in rows_heavy.ratios({"rates": rows})}
    cells = ["-" if rate is None else "{:,.0f}".format(rate) for rate in rates]
    goal = rows_heavy.GOALS.get(name)
    limit = rates[rows_heavy.COLUMNS.index("relay")]
    theirs = rates[rows_heavy.COLUMNS.index("rabbitmq")]
    beside = [ratios.get(name), goal, ratios.get(name + ", CPU"), limit / theirs if limit and theirs else None]
    return [title] + cells + ["-" if each is None else "%.2f" % each for each in beside]


def costs(rows, name, title):
    """Microseconds of each broker's CPU for a message."""
    cells = [rows.get(name, {}).get(column) for column in rows_heavy.COLUMNS]
    return [title] + ["%.1f us" % statistics.median(cell["cpu_us"]) if cell and cell["cpu_us"] else "-" for cell in cells]


def latency(found, rate, percentile):
    """The cells of a percentile at a rate, with its goal and whether that was met."""
    cells = ["p%s at %s messages/s" % (percentile, "{:,}".format(rate))]
    for column in rows_latency.COLUMNS:
        told = found.get(column, {}).get(str(rate))
        cells.append("%.2f" % (told[percentile] / 1000) if told else "-")
    goal = rows_latency.goal_of(found, rate, percentile) if percentile != "50" else None
    return cells + (["", ""] if goal is None else ["%.2f" % (goal[0] / 1000), verdict(goal[1])])


def memory(found):
    """Lines of what a queued message and an idle connection take."""
    own = found["memory"]["leveret"]
    beyond = connection_kb(own) - connection_kb(own, "buffers")
    octets, many = own["message_octets"], found["many"]
    told = "A queued message of 256 octets takes %d octets (goal %d, %s), an idle connection %.1f KiB beyond its buffers (goal %d, %s); "
    told %= (
        octets,
        rows_heavy.MESSAGE_GOAL,
        verdict(octets <= rows_heavy.MESSAGE_GOAL),
        beyond,
        rows_heavy.CONNECTION_GOAL,
        verdict(beyond <= rows_heavy.CONNECTION_GOAL),
    )
    told += "{:,} idle connections, really opened, {:,.0f} octets each, and {:.1f} % of a core.".format(
        many["count"], many["octets"], many["cpu_percent"]
    )
    return textwrap.wrap(told, 140, break_on_hyphens=False)
