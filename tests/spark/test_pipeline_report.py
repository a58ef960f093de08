"""`leveret pipeline report`: one page with nothing outside itself, what it says of the tables, and what of a folder without."""

import datetime
import json
import re
import subprocess
import sys

import pyarrow
import pyarrow.parquet
import pytest

from leveret.tools import pipeline_report

START = datetime.datetime(2026, 1, 31, tzinfo=datetime.timezone.utc)


def report(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "leveret.tools.cli", "pipeline", "report", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def minutes(count):
    return START + datetime.timedelta(minutes=count)


@pytest.fixture
def tables(tmp_path):
    """A folder as the pipeline leaves it: two series, one with a name that is markup, three alerts, two dead letters."""
    folder = tmp_path / "tables"
    for name in ("windows", "alerts", "dead_letters", "_batches"):
        (folder / name).mkdir(parents=True)
    windows = [
        {
            "gateway": gateway,
            "device": device,
            "metric": "temperature",
            "window_start": minutes(at),
            "window_end": minutes(at + 1),
            "count": 60,
            "min": 19.0,
            "max": 22.0,
            "mean": 20.5,
            "stddev": 0.5,
            "last": 20.0,
        }
        for gateway, device in (("north", "kiln-1"), ("south", "<b>&"))
        for at in range(90)
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(windows[:100]), folder / "windows" / "closed-0-5.parquet")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(windows[100:]), folder / "windows" / "windows.parquet")
    alerts = [
        {"gateway": "south", "device": "<b>&", "metric": "temperature", "time": minutes(at), "value": 77.25 + at, "score": 0.91}
        for at in (3, 40, 41)
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(alerts), folder / "alerts" / "batch-00000001-0.parquet")
    letters = [{"reason": "not JSON"}, {"reason": "not JSON"}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(letters), folder / "dead_letters" / "batch-00000001-0.parquet")
    (folder / "_batches" / "00000001.json").write_text(json.dumps({"totals": {"rows_read": 12345, "late": 7}}))
    return folder


def test_the_page_shows_counts_plots_and_alerts_and_needs_nothing_else(tables):
    done = report("--out", tables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tables / "report.html")
    page = (tables / "report.html").read_text()
    assert "2026-01-31 00:00 to 2026-01-31 01:30 UTC" in page
    for name, count in (("rows read", "12,345"), ("late", "7"), ("alerts", "3"), ("series", "2"), ("windows", "180")):
        assert f'<tr><td>{name}</td><td class="n">{count}</td></tr>' in page
    assert page.count("<svg") == 2
    assert re.search(r"2026-01-31 00:40:00</td><td>south · &lt;b&gt;&amp; · temperature</td><td class=\"n\">117.25</td>", page)
    assert '<td>not JSON</td><td class="n">2</td>' in page
    assert page.index("&lt;b&gt;&amp; · temperature</h2>") < page.index("kiln-1 · temperature</h2>")  # the one with alerts first
    assert "<b>&" not in page
    outside = re.findall(r'(?:src|href)="(?!#)[^"]*"|url\((?!#)[^)]*\)|@import|<script', page)
    assert outside == []


def rows_at(*places):
    return [{"window_start": minutes(at), "window_end": minutes(at + 1), "count": 2, "min": 1.0, "max": 3.0, "mean": 2.0} for at in places]


def test_a_window_without_neighbours_is_a_mark_of_its_own():
    """A line between windows shows nothing of one that stands alone, in a series of one window or between gaps."""
    line, one, island = (pipeline_report.plot(rows_at(*places), []) for places in ((0, 1, 2, 3), (0,), (0, 1, 2, 3, 50, 90, 91)))
    assert [page.count('id="LineCollection_1"') for page in (line, one, island)] == [0, 1, 1]
    assert "2022" not in one


def test_of_more_windows_than_are_drawn_no_extreme_is_lost():
    rows = rows_at(*range(3 * pipeline_report.POINTS_MAX))
    rows[4001]["max"], rows[4002]["min"] = 99.0, -99.0
    thin = pipeline_report.thinned(rows)
    assert len(thin) <= pipeline_report.POINTS_MAX
    assert (max(row["max"] for row in thin), min(row["min"] for row in thin)) == (99.0, -99.0)
    assert thin[0]["window_start"] == minutes(0) and thin[-1]["window_end"] == minutes(3 * pipeline_report.POINTS_MAX)


def test_series_that_are_not_drawn_are_counted(tables):
    target = tables.parent / "page.html"
    assert report("--out", tables, "--series", 1, "--html", target).returncode == 0
    page = target.read_text()
    assert "1 of 2 series are drawn" in page and page.count("<svg") == 1


def test_a_folder_without_tables_and_wrong_arguments_are_sentences(tmp_path, tables):
    for arguments, status, sentence in (
        (("--out", tmp_path / "none"), 1, "holds no aggregates"),
        (("--out", tables, "--series", -1), 2, "0 or more"),
        (("--out", tables, "--html", tmp_path / "no" / "page.html"), 1, "page.html"),
    ):
        done = report(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (status, 1) and sentence in done.stderr, done.stderr
