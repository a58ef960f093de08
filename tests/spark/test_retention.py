"""keep_days: old dates of raw and old dead letters go, counted, whatever ends in between; nothing else goes."""

import os

import pyarrow
import pyarrow.parquet
import pytest

from leveret.ports.spark import compaction, retention
from leveret.ports.spark.tables import DEAD_LETTERS, RAW, TOTALS, Tables

DAY_S = 86400
FIRST_S = 1_767_225_600  # 2026-01-01


def write(tables, batch, day, rows=10):
    """One batch's file in the partition of a day, counted from 2026-01-01."""
    staged = tables.stage()
    folder = os.path.join(staged, f"date=2026-01-{day + 1:02}", "gateway=north")
    os.makedirs(folder)
    pyarrow.parquet.write_table(pyarrow.table({"sequence": list(range(rows))}), os.path.join(folder, "part-0.parquet"))
    tables.publish_batch(RAW, batch, staged)


def record(tables, batch, newest_day):
    tables.record(batch, {**dict.fromkeys(TOTALS, 0), "newest": FIRST_S + newest_day * DAY_S + 3600})


def close_until(tables, day):
    """All windows before the day are closed."""
    staged = tables.stage()
    os.makedirs(staged)
    pyarrow.parquet.write_table(pyarrow.table({"count": [1]}), os.path.join(staged, "part.parquet"))
    tables.close_windows(staged, (FIRST_S + day * DAY_S) * 1_000_000)


def dates(tables):
    return sorted(int(name[-2:]) - 1 for name in os.listdir(tables.at(RAW)))


def kept_and_gone(tables):
    return tables.rows(RAW) + retention.gone(tables)["rows"].get(RAW, 0)


@pytest.fixture
def tables(tmp_path):
    """Ten days, one batch each, the windows of the first eight closed."""
    made = Tables(str(tmp_path / "out"))
    for day in range(10):
        write(made, day, day)
        record(made, day, day)
    close_until(made, 8)
    yield made
    made.close()


def test_whole_dates_older_than_keep_days_go_and_are_counted(tables):
    assert retention.forget(tables, 4) == 50 and dates(tables) == [5, 6, 7, 8, 9]
    assert retention.gone(tables) == {"number": 5, "rows": {RAW: 50}} and kept_and_gone(tables) == 100
    assert os.listdir(tables.at("_gone")) == ["sum.json"] and os.listdir(tables.at("_staging")) == []
    assert retention.forget(tables, 4) == 0
    write(tables, 10, 0, rows=3)
    record(tables, 10, 9)
    assert retention.forget(tables, 4) == 3 and retention.gone(tables)["rows"] == {RAW: 53}
    assert compaction.crowded(tables) == [] or sum(compaction.compact_folder(tables, *one) for one in compaction.crowded(tables)) == 0


def test_a_reading_from_the_future_takes_nothing_away(tables):
    record(tables, 10, 70_000)  # the year 2217
    close_until(tables, 69_000)
    assert retention.forget(tables, 10_000) == 0 and dates(tables) == list(range(10))


def test_a_date_with_windows_that_may_still_change_stays(tables):
    assert retention.forget(tables, 1) == 80 and dates(tables) == [8, 9]


def test_a_date_that_a_batch_is_not_done_with_stays(tables):
    write(tables, 10, 2)
    assert retention.forget(tables, 4) == 40 and dates(tables) == [2, 5, 6, 7, 8, 9]
    write(tables, 10, 2)
    record(tables, 10, 9)
    assert retention.forget(tables, 4) == 20 and dates(tables) == [5, 6, 7, 8, 9]


def test_a_merged_date_goes_as_well(tables):
    for batch in (10, 11):
        write(tables, batch, 0)
        record(tables, batch, 9)
    assert sum(compaction.compact_folder(tables, *one) for one in compaction.crowded(tables)) == 3
    assert retention.forget(tables, 8) == 30 and dates(tables) == list(range(1, 10))


@pytest.mark.parametrize("step", ["os.rename", "tables.replace", "shutil.rmtree"])
def test_what_ends_in_the_middle_is_finished_by_the_next_run(tables, monkeypatch, step):
    class Killed(BaseException):
        pass

    def die(*arguments):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr({"os": retention.os, "shutil": retention.shutil, "tables": tables}[step.split(".")[0]], step.split(".")[1], die)
        with pytest.raises(Killed):
            retention.forget(tables, 4)
    tables.close()
    again = Tables(tables.path)
    retention.finish(again)
    assert kept_and_gone(again) == 100
    before = again.rows(RAW)
    assert before == (100 if step == "os.rename" else 90) and retention.forget(again, 4) == before - 50
    assert kept_and_gone(again) == 100 and os.listdir(again.at("_gone")) == ["sum.json"]
    again.close()


def test_dead_letters_go_when_nothing_was_written_to_them_for_so_long(tables):
    for batch in (3, 9):
        tables.publish_table(DEAD_LETTERS, batch, pyarrow.table({"reason": ["not JSON"] * 4}))
    old = tables.at(DEAD_LETTERS, "batch-00000003-0.parquet")
    os.utime(old, (1_700_000_000, 1_700_000_000))
    assert retention.forget(tables, 30) == 4 and not os.path.exists(old) and tables.rows(DEAD_LETTERS) == 4
    assert retention.gone(tables)["rows"] == {DEAD_LETTERS: 4}
