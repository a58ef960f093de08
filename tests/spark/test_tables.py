"""The folder that the pipeline writes: its counts, its files under names that follow from the batch, one writer (ports/spark/tables.py)."""

import json
import os

import pyarrow
import pyarrow.parquet
import pytest

from leveret.ports.spark import tables as module
from leveret.ports.spark.tables import ALERTS, KEPT, RAW, TOTALS, WINDOWS, InUse, Tables, parquet_files, rows_of


@pytest.fixture
def tables(tmp_path):
    made = Tables(str(tmp_path / "out"))
    yield made
    made.close()


def rows(*numbers):
    return pyarrow.table({"count": list(numbers)})


def staged(tables, **files):
    """A staged folder with a Parquet file of so many rows under each name; `a__b` is the file b in the folder a."""
    folder = tables.stage()
    for name, count in files.items():
        path = os.path.join(folder, *name.split("__")) + ".parquet"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        pyarrow.parquet.write_table(rows(*range(count)), path)
    return folder


def counts(number, newest=None):
    return dict(dict.fromkeys(TOTALS, number), newest=newest)


def test_one_pipeline_writes_a_folder_at_a_time(tables):
    with pytest.raises(InUse, match="another pipeline is writing .*out"):
        Tables(tables.path)
    tables.close()
    Tables(tables.path).close()


def test_a_batch_that_is_done_again_replaces_its_files_and_is_counted_from_them(tables):
    for _ in range(2):
        assert tables.publish_batch(RAW, 3, staged(tables, day__one=2, day__two=3, other__none=0, top=1)) == 6
    found = sorted(os.path.relpath(file, tables.at(RAW)) for folder, _, _ in os.walk(tables.at(RAW)) for file in parquet_files(folder))
    assert found == ["batch-00000003-0.parquet", "day/batch-00000003-0.parquet", "day/batch-00000003-1.parquet"]
    assert tables.rows(RAW) == 6 and os.listdir(tables.at("_staging")) == []
    assert tables.written == {tables.at(RAW), tables.at(RAW, "day")}
    assert tables.publish_table(ALERTS, 4, rows(1, 2, 3)) == 3 and tables.rows(ALERTS) == 3
    assert rows_of(tables.at(ALERTS, "batch-00000004-0.parquet")) == 3


def test_the_sums_go_on_from_batch_to_batch(tables):
    """And the newest reading ever is that of any batch; a batch that is recorded again counts once."""
    assert tables.newest() is None and tables.totals() == dict.fromkeys(TOTALS, 0) and tables.recorded(0) is None
    for batch, newest, ever in ((0, None, None), (1, 70, 70), (2, 50, 70), (3, None, 70), (4, 80, 80)):
        tables.record(batch, counts(batch, newest))
        assert tables.newest() == tables.recorded(batch)
        assert (tables.newest()["batch"], tables.newest()["newest_ever"], tables.newest()["readings"]) == (batch, ever, batch)
    assert tables.totals() == dict.fromkeys(TOTALS, 10)
    assert os.listdir(tables.at("_staging")) == []


def test_the_last_batches_are_kept(tables, monkeypatch):
    monkeypatch.setattr(module, "KEPT", 3)
    for batch in range(5):
        tables.record(batch, counts(1))
        assert len(os.listdir(tables.at("_batches"))) == min(batch + 1, 3)
    assert [tables.recorded(batch) is not None for batch in range(5)] == [False, False, True, True, True]
    assert tables.totals()["readings"] == 5 and KEPT == 100


def test_what_a_batch_was_planned_to_read_stands_in_the_checkpoint(tables):
    os.makedirs(tables.at("_checkpoint", "offsets"))
    for batch in range(2):
        with open(tables.at("_checkpoint", "offsets", str(batch)), "w", encoding="utf-8") as file:
            file.write('v1\n{"batchWatermarkMs":0}\n%s\n' % json.dumps({"s": 10 * batch}))
    assert tables.planned(0) == (None, {"s": 0}) and tables.planned(1) == ({"s": 0}, {"s": 10})


def test_a_pipeline_that_ended_in_the_middle_leaves_nothing_of_its_batch(tables):
    """Files of the batch behind the newest one that is recorded, of windows that were being closed, and what was staged."""
    for batch in range(3):
        tables.publish_table(RAW, batch, rows(batch))
    tables.record(1, counts(1))
    tables.close_windows(staged(tables, part=1), 100)
    tables.publish_windows(staged(tables, part=1), "closed-100-200.parquet")
    tables.publish_windows(staged(tables, part=2))
    staged(tables, part=1)
    tables.close()
    again = Tables(tables.path)
    assert [os.path.basename(file) for file in parquet_files(again.at(RAW))] == ["batch-00000000-0.parquet", "batch-00000001-0.parquet"]
    assert [os.path.basename(file) for file in parquet_files(again.at(WINDOWS))] == ["closed-0-100.parquet", "windows.parquet"]
    assert os.listdir(again.at("_staging")) == [] and again.written == {again.at(RAW)}
    again.close()


def test_without_a_batch_the_first_one_is_unfinished(tables):
    for batch in range(2):
        tables.publish_table(ALERTS, batch, rows(batch))
    tables.close()
    again = Tables(tables.path)
    assert [os.path.basename(file) for file in parquet_files(again.at(ALERTS))] == ["batch-00000001-0.parquet"]
    again.close()


def test_windows_that_are_closed_stand_beside_the_open_ones(tables):
    assert tables.closed_until() == 0 and tables.window_counts() == [] and tables.glob(WINDOWS).endswith("windows.parquet")
    tables.publish_windows(staged(tables, part=3))
    assert tables.window_counts() == [0, 1, 2] and tables.glob(WINDOWS).endswith("windows.parquet")
    tables.close_windows(staged(tables, part=2), 500)
    assert tables.closed_until() == 500 and os.path.exists(tables.at(WINDOWS, "closed-0-500.parquet"))
    assert sorted(tables.window_counts()) == [0, 0, 1, 1, 2] and tables.glob(WINDOWS).endswith("*.parquet")
    assert tables.written == {tables.at(WINDOWS)}
    tables.close_windows(staged(tables, part=0), 900)
    assert tables.closed_until() == 900 and len(parquet_files(tables.at(WINDOWS))) == 2, "nothing was to be closed"
    tables.close_windows(staged(tables, part=1), 1000)
    assert os.path.exists(tables.at(WINDOWS, "closed-900-1000.parquet"))


def test_the_days_from_a_time_on(tables):
    """2026-01-31 begins at 1769817600 seconds since 1970."""
    begin = 1769817600 * 1_000_000
    assert tables.days_since(begin) == [tables.at(RAW)]
    for day in ("date=2026-01-30", "date=2026-01-31", "date=2026-02-01"):
        os.makedirs(tables.at(RAW, day))
    assert tables.days_since(begin - 1) == [tables.at(RAW, "date=2026-01-%s" % day) for day in (30, 31)] + [
        tables.at(RAW, "date=2026-02-01")
    ]
    assert tables.days_since(begin) == [tables.at(RAW, "date=2026-01-31"), tables.at(RAW, "date=2026-02-01")]
    assert tables.days_since(begin + 9 * 86400 * 1_000_000) == [tables.at(RAW)]


def test_a_folder_keeps_its_identity(tables, tmp_path):
    first = tables.identity()
    assert tables.identity() == first and len(first) == 32
    tables.close()
    again, other = Tables(tables.path), Tables(str(tmp_path / "other"))
    assert again.identity() == first != other.identity()
    again.close()
    other.close()


def test_what_a_reader_is_given(tables):
    assert tables.glob(RAW) == tables.at("raw", "*", "*", "*.parquet") and tables.glob(ALERTS) == tables.at("alerts", "*.parquet")
    assert parquet_files(tables.at("nowhere")) == []
