"""`leveret pipeline report`: one HTML page about the tables of a pipeline, with nothing outside itself.

    leveret pipeline report --out DIR [--html FILE] [--series N]

It shows the counts, and for each series (those with most alerts first, `--series` of them at most) the aggregates by window: the mean, the
band from least to most, and every alert as a mark; then the alerts as a table, and what did not decode, by reason. It reads what any
Parquet reader may read, also while the pipeline runs. Needs matplotlib and pyarrow, not Spark. Exit status: 0 done, 1 there are no
tables or the page cannot be written, 2 wrong arguments.
"""

import glob
import html
import io
import json
import math
import os
import sys

from .usage import UsageError

SERIES = 12
ALERTS_SHOWN = 200
GAP = 6  # usual distances between windows without one: the line is broken
POINTS_MAX = 2000  # drawn of a series; of more windows several are one
VOID = {"mean": math.nan, "min": math.nan, "max": math.nan}  # a row that draws nothing
STYLE = """body{font:15px/1.5 sans-serif;margin:2em auto;max-width:62em;padding:0 1em;color:#222}h1{font-size:1.5em}h2{font-size:1.15em;
margin-top:2em}table{border-collapse:collapse}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:left}td.n{text-align:right}
svg{width:100%;height:auto}.quiet{color:#777}"""


class NoTables(Exception):
    """There is nothing to report; the text is a sentence."""


def add_arguments(parser):
    """The options of `leveret pipeline report`."""
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder with the tables, as given to `run`")
    parser.add_argument("--html", metavar="FILE", help="the page (default DIR/report.html)")
    parser.add_argument("--series", type=int, default=SERIES, metavar="N", help=f"series that are drawn (default {SERIES})")


def run(options):
    """The exit status."""
    if options.series < 0:
        raise UsageError("--series must be 0 or more")
    try:
        import matplotlib  # noqa: F401 - only to see whether it is there
        import pyarrow  # noqa: F401 - likewise
    except ImportError as error:
        raise UsageError(f"{error.name} is missing; install it with: pip install '.[spark]' in Leveret's folder") from None
    target = options.html or os.path.join(options.out, "report.html")
    try:
        text = page(options.out, options.series)
        with open(target + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(target + ".new", target)
    except (NoTables, OSError) as error:
        print(f"leveret pipeline report: {error}", file=sys.stderr)
        return 1
    print(target)
    return 0


def page(folder, series_max):
    """The HTML. Raises NoTables."""
    windows = table(folder, "windows/*.parquet")
    if windows is None:
        raise NoTables(f"{folder} holds no aggregates: is it the --out of `leveret pipeline run`, and has that read anything yet?")
    alerts = table(folder, "alerts/*.parquet")
    alerts = sorted(alerts.to_pylist(), key=lambda row: row["time"]) if alerts is not None else []
    series = by_series(windows)
    marked: dict = {}
    for row in alerts:
        marked.setdefault(key_of(row), []).append(row)
    order = sorted(series, key=lambda key: (-len(marked.get(key, ())), key))
    shown = order[:series_max]
    parts = [head(folder, series, windows, alerts)]
    if len(order) > len(shown):
        parts.append(f'<p class="quiet">{len(shown)} of {len(order)} series are drawn, those with most alerts first (--series).</p>')
    for key in shown:
        parts.append(f"<h2>{html.escape(title(key))}</h2>{plot(series[key], marked.get(key, []))}")
    parts += [alert_table(alerts), dead_letter_table(folder)]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Leveret: {html.escape(os.path.basename(os.path.abspath(folder)))}'
        f"</title><style>{STYLE}</style><body>{''.join(parts)}</body></html>\n"
    )


def table(folder, pattern):
    """All rows of a table's files, None when there is none."""
    import pyarrow
    import pyarrow.parquet

    tables = []
    for file in sorted(glob.glob(os.path.join(glob.escape(folder), pattern))):
        tables.append(pyarrow.parquet.ParquetFile(file).read())
    return pyarrow.concat_tables(tables, promote_options="default") if tables else None


def key_of(row):
    """The key of a series; aggregates and alerts may name a missing gateway differently."""
    return row["gateway"] or "-", row["device"], row["metric"]


def title(key):
    return " · ".join(part for part in key if part not in ("", "-"))


def by_series(windows):
    """{key: rows in the order of time}."""
    groups: dict = {}
    for row in windows.to_pylist():
        groups.setdefault(key_of(row), []).append(row)
    for rows in groups.values():
        rows.sort(key=lambda row: row["window_start"])
    return groups


def head(folder, series, windows, alerts):
    """The title and the counts."""
    counts = totals(folder)
    counts["series"], counts["windows"] = len(series), windows.num_rows
    counts["alerts"] = len(alerts)
    starts, ends = windows.column("window_start").to_pylist(), windows.column("window_end").to_pylist()
    span = f"{min(starts):%Y-%m-%d %H:%M} to {max(ends):%Y-%m-%d %H:%M} UTC" if starts else "no readings"
    rows = "".join(f'<tr><td>{html.escape(name.replace("_", " "))}</td><td class="n">{count:,}</td></tr>' for name, count in counts.items())
    return f"<h1>What was measured: {span}</h1><table>{rows}</table>"


def totals(folder):
    """The sums over all batches, of the newest batch's record; {} when there is none."""
    names = sorted(glob.glob(os.path.join(glob.escape(folder), "_batches", "*.json")))
    if not names:
        return {}
    with open(names[-1], encoding="utf-8") as file:
        counts = json.load(file)
    return {name: count for name, count in counts.get("totals", {}).items() if isinstance(count, int)}


def plot(rows, alerts):
    """The aggregates and alerts of one series as SVG."""
    from matplotlib import dates
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 2.8), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    rows = with_gaps(thinned(rows))
    times = [row["window_start"] for row in rows]
    axes.fill_between(
        times, [row["min"] for row in rows], [row["max"] for row in rows], color="#2a7f3f", alpha=0.18, linewidth=0, label="least to most"
    )
    axes.plot(times, [row["mean"] for row in rows], color="#2a7f3f", linewidth=1.1, label="mean of a window")
    alone = [
        row
        for before, row, behind in zip([VOID] + rows, rows, rows[1:] + [VOID])
        if math.isnan(before["mean"]) and math.isnan(behind["mean"]) and not math.isnan(row["mean"])
    ]
    if alone:
        axes.errorbar(
            [row["window_start"] for row in alone],
            [row["mean"] for row in alone],
            [[row["mean"] - row["min"] for row in alone], [row["max"] - row["mean"] for row in alone]],
            fmt=".",
            color="#2a7f3f",
        )
    if len(rows) == 1:
        start, end = rows[0]["window_start"], rows[0]["window_end"]
        axes.set_xlim(start - (end - start), end)
    if alerts:
        axes.scatter(
            [row["time"] for row in alerts],
            [row["value"] for row in alerts],
            s=[18 + 60 * row["score"] ** 4 for row in alerts],
            facecolors="none",
            edgecolors="#c22",
            linewidths=1.4,
            zorder=3,
            label="anomaly",
        )
    locator = dates.AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", fontsize=8, frameon=False, ncols=3)
    target = io.StringIO()
    figure.savefig(target, format="svg", metadata={"Date": None})
    text = target.getvalue()
    return text[text.index("<svg") :]


def thinned(rows):
    """The rows, several made one where there are more than POINTS_MAX: nothing that was least or most is lost."""
    step = len(rows) // POINTS_MAX + 1
    points = []
    for part in (rows[at : at + step] for at in range(0, len(rows), step)):
        count = sum(row["count"] for row in part)
        points.append(
            {
                "window_start": part[0]["window_start"],
                "window_end": part[-1]["window_end"],
                "min": min(row["min"] for row in part),
                "max": max(row["max"] for row in part),
                "mean": sum(row["mean"] * row["count"] for row in part) / count,
            }
        )
    return points


def with_gaps(rows):
    """The rows, with one that draws nothing wherever several windows are missing."""
    windows: list = []
    usual = sorted(behind["window_start"] - row["window_start"] for row, behind in zip(rows, rows[1:]))
    for row in rows:
        if windows and row["window_start"] - windows[-1]["window_start"] > GAP * usual[len(usual) // 2]:
            windows.append(dict(VOID, window_start=windows[-1]["window_end"]))
        windows.append(row)
    return windows


def alert_table(alerts):
    """The last alerts."""
    if not alerts:
        return "<h2>Anomalies</h2><p>None.</p>"
    rows = "".join(
        f"<tr><td>{row['time']:%Y-%m-%d %H:%M:%S}</td><td>{html.escape(title(key_of(row)))}</td>"
        f'<td class="n">{row["value"]:g}</td><td class="n">{row["score"]:.2f}</td></tr>'
        for row in reversed(alerts[-ALERTS_SHOWN:])
    )
    note = f'<p class="quiet">The last {ALERTS_SHOWN} of {len(alerts)}.</p>' if len(alerts) > ALERTS_SHOWN else ""
    return f"<h2>Anomalies</h2>{note}<table><tr><th>time (UTC)</th><th>series</th><th>value</th><th>score</th></tr>{rows}</table>"


def dead_letter_table(folder):
    """Undecodable messages, by reason."""
    letters = table(folder, "dead_letters/*.parquet")
    if letters is None or not letters.num_rows:
        return ""
    counts: dict = {}
    for reason in letters.column("reason").to_pylist():
        counts[reason] = counts.get(reason, 0) + 1
    rows = "".join(
        f'<tr><td>{html.escape(str(reason))}</td><td class="n">{count:,}</td></tr>'
        for reason, count in sorted(counts.items(), key=lambda pair: -pair[1])
    )
    return f"<h2>What was no reading</h2><table><tr><th>reason</th><th>messages</th></tr>{rows}</table>"
