"""What the demo says at the end: the stages side by side, the aggregates, and every disagreement.

The Parquet files are read back here with pyarrow, without Spark, and the windows are counted again from the raw rows: three numbers
that have to be the same come from three programs. pyarrow is imported only when there are files.
"""

import collections
import glob
import math

from rich import box
from rich.table import Table

TOLD_MAX = 3


class Parquet:
    """The files of the pipeline's summary, read back. `window_s`: length of a window in seconds."""

    def __init__(self, files, window_s):
        self.copies: collections.Counter = collections.Counter()  # of "device/metric/sequence"
        self.counted: collections.Counter = collections.Counter()  # rows by (device, metric, start of the window), counted again
        for row in read_rows(files["raw"]):
            self.copies[f"{row['device']}/{row['metric']}/{row['sequence']}"] += 1
            start = math.floor(row["time"].timestamp() / window_s) * window_s
            self.counted[row["device"], row["metric"], start] += 1
        self.windows = read_rows(files["windows"])
        self.dead_letters = read_rows(files["dead_letters"])

    def window_counts(self):
        """The counts in the files, in the form of `counted`."""
        return {(row["device"], row["metric"], int(row["window_start"].timestamp())): row["count"] for row in self.windows}


def read_rows(pattern):
    """Every row of the Parquet files that fit the pattern, as dicts."""
    from pyarrow.parquet import ParquetFile

    return [row for path in sorted(glob.glob(pattern)) for row in ParquetFile(path).read().to_pylist()]


def faults(stages):
    """One sentence for each disagreement; [] when everything agrees."""
    faults = []
    expected = stages.expected()
    for sensor in stages.sensors:
        faults += differ(f"sensor {sensor['device']}: published and confirmed", sensor["published"], sensor["confirmed"])
        faults += differ(f"sensor {sensor['device']}: sent again", sensor["resent"], 0)
    faults += differ("published and distinct readings", stages.published, len(expected))
    faults += differ("published and bridged", stages.published, stages.bridge["bridged"])
    faults += compare("the upstream stream", expected, stages.upstream)
    if stages.pipeline is not None:
        faults += pipeline_faults(stages, expected)
    if not expected:
        faults.append("the sensors published nothing")
    return faults


def pipeline_faults(stages, expected):
    """Disagreements of the Spark stage with what was published."""
    job, parquet = stages.pipeline, stages.parquet
    faults = differ("published and rows read by Spark", stages.published, job["rows_read"])
    faults += differ("rows and readings after cleaning", job["rows_read"], job["readings"])
    faults += differ("duplicates", job["duplicates"], 0)
    faults += differ("dead letters", len(parquet.dead_letters), 0)
    faults += compare("the Parquet files", expected, parquet.copies)
    faults += differ("windows said and windows in the files", job["windows"], len(parquet.windows))
    if parquet.window_counts() != dict(parquet.counted):
        faults.append("the windows' counts are not those of the rows they were made from")
    return faults


def differ(subject, one, other):
    return [] if one == other else [f"{subject}: {one} and {other}"]


def compare(where, expected, copies):
    """Lost, doubled and unknown message ids."""
    faults = []
    for subject, identities in (
        ("lost", expected - copies.keys()),
        ("doubled", {name for name, count in copies.items() if count > 1}),
        ("there though never published", copies.keys() - expected),
    ):
        if identities:
            names = ", ".join(str(name) for name in sorted(identities, key=str)[:TOLD_MAX])
            faults.append(f"{where}: {len(identities)} {subject}, as {names}")
    return faults


def stage_table(stages):
    """Every stage with what it counted."""
    table = Table("stage", "what", "count", title="What went in and what came out", title_justify="left", box=box.SIMPLE_HEAD)
    table.columns[2].justify = "right"
    for sensor in stages.sensors:
        table.add_row("sensor " + sensor["device"], "published", str(sensor["published"]))
        table.add_row("", "confirmed by the gateway", str(sensor["confirmed"]))
    table.add_row("bridge", "bridged (confirmed upstream)", str(stages.bridge["bridged"]))
    table.add_row("upstream", "messages in the stream", str(sum(stages.upstream.values())))
    table.add_row("", "distinct readings", str(len(stages.upstream)))
    if stages.pipeline is None:
        table.add_row("Spark", "left out", "-")
        return table
    for name in ("rows_read", "duplicates", "dead_letters", "readings"):
        table.add_row("Spark" if name == "rows_read" else "", name.replace("_", " "), str(stages.pipeline[name]))
    table.add_row("Parquet", "rows", str(sum(stages.parquet.copies.values())))
    table.add_row("", "windows", str(len(stages.parquet.windows)))
    return table


def aggregate_table(parquet):
    """The windows, summed up per device and metric."""
    table = Table(
        "device",
        "metric",
        "windows",
        "readings",
        "least",
        "mean",
        "most",
        "last",
        title="Aggregates over all windows of a metric",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.columns[1].no_wrap = True
    for column in table.columns[2:]:
        column.justify = "right"
    groups = collections.defaultdict(list)
    for row in parquet.windows:
        groups[row["device"], row["metric"]].append(row)
    for (device, metric), rows in sorted(groups.items()):
        count = sum(row["count"] for row in rows)
        mean = sum(row["mean"] * row["count"] for row in rows) / count
        last = max(rows, key=lambda row: row["window_start"])["last"]
        numbers = (min(row["min"] for row in rows), mean, max(row["max"] for row in rows), last)
        table.add_row(device, metric, str(len(rows)), str(count), *[f"{number:.5g}" for number in numbers])
    return table
