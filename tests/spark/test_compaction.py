"""Small files become one, and whoever reads meanwhile, or after a crash, finds each row once."""

import os
import threading

import pandas
import pyarrow
import pyarrow.parquet
import pytest

from leveret.ports.spark import compaction
from leveret.ports.spark.tables import ALERTS, RAW, TOTALS, WINDOWS, Tables

DAYS = ("2026-01-01", "2026-01-30", "2026-01-31")


def write(tables, batch, day, gateway="north", rows=2):
    """One batch's file in a partition of raw: rows with numbers of their own."""
    staged = tables.stage()
    folder = os.path.join(staged, f"date={day}", f"gateway={gateway}")
    os.makedirs(folder)
    first = 100 * batch + 10 * DAYS.index(day)
    found = {"sequence": list(range(first, first + rows)), "device": [day] * rows}
    pyarrow.parquet.write_table(pyarrow.table(found), os.path.join(folder, "part-0.parquet"))
    tables.publish_batch(RAW, batch, staged)


def record(tables, batch):
    tables.record(batch, {**dict.fromkeys(TOTALS, 0), "newest": None})


def compact(tables):
    return sum(compaction.compact_folder(tables, *one) for one in compaction.crowded(tables))


def rows(tables):
    return sorted(pandas.read_parquet(tables.at(RAW)).sequence)


def names(tables, day, gateway="north"):
    return sorted(os.listdir(tables.at(RAW, f"date={day}", f"gateway={gateway}")))


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A folder with as many files of the newest day as are merged, two of the day before, three of one long ago, each batch recorded."""
    monkeypatch.setattr(compaction, "FILES", 12)
    made = Tables(str(tmp_path / "out"))
    for batch in range(compaction.FILES):
        write(made, batch, DAYS[2])
        for day, batches in ((DAYS[1], (3, 5)), (DAYS[0], (0, 1, 7))):
            if batch in batches:
                write(made, batch, day)
        record(made, batch)
    yield made
    made.close()


def test_a_day_with_many_files_and_one_that_is_over_have_one_file_each(tables, monkeypatch):
    before, last = rows(tables), compaction.FILES - 1
    assert compact(tables) == compaction.FILES + 3
    assert names(tables, DAYS[2]) == [f"batches-00000000-{last:08}.parquet"]
    assert names(tables, DAYS[0]) == ["batches-00000000-00000007.parquet"] and len(names(tables, DAYS[1])) == 2
    assert rows(tables) == before and tables.rows(RAW) == len(before)
    assert compact(tables) == 0 and len(os.listdir(tables.at("_staging"))) == 2
    monkeypatch.setattr(compaction, "LISTED_S", 0)
    assert compact(tables) == 0 and os.listdir(tables.at("_staging")) == []
    write(tables, compaction.FILES, DAYS[0])
    record(tables, compaction.FILES)
    assert compact(tables) == 2 and names(tables, DAYS[0]) == [f"batches-00000000-{compaction.FILES:08}.parquet"]


def test_a_folder_that_was_left_by_another_run_is_looked_at(tables):
    tables.close()
    again = Tables(tables.path)
    assert compact(again) == compaction.FILES + 3
    again.close()


def test_a_batch_that_is_not_recorded_is_not_merged_and_may_be_written_again(tables):
    unfinished = compaction.FILES
    write(tables, unfinished, DAYS[2])
    compact(tables)
    assert f"batch-{unfinished:08}-0.parquet" in names(tables, DAYS[2])
    write(tables, unfinished, DAYS[2])
    assert len(rows(tables)) == len(set(rows(tables))) == 2 * (unfinished + 1 + 2 + 3)


def test_what_ends_in_the_middle_has_changed_nothing(tables, monkeypatch):
    before = rows(tables), names(tables, DAYS[2])
    for name in ("_merge", "_exchange"):
        with monkeypatch.context() as patch:
            patch.setattr(compaction, name, None)  # calling it raises: as far as it got, the process ends there
            with pytest.raises(TypeError):
                compaction.compact_folder(tables, tables.at(RAW, f"date={DAYS[2]}", "gateway=north"), 2)
        assert (rows(tables), names(tables, DAYS[2])) == before
    tables.close()
    again = Tables(tables.path)
    assert os.listdir(again.at("_staging")) == [] and rows(again) == before[0]
    again.close()


def test_a_file_system_that_cannot_exchange_folders_is_left_alone(tables, monkeypatch):
    before = names(tables, DAYS[2])
    monkeypatch.setattr(compaction, "_exchange", lambda left, right: False)
    assert compact(tables) == 0 and names(tables, DAYS[2]) == before


def test_who_is_in_the_middle_of_listing_a_folder_finds_all_of_it(tables):
    """The folder that was opened is another one by then."""
    before = names(tables, DAYS[2])
    opened = os.open(tables.at(RAW, f"date={DAYS[2]}", "gateway=north"), os.O_RDONLY)
    try:
        assert compact(tables)
        assert sorted(os.listdir(opened)) == before != names(tables, DAYS[2])
    finally:
        os.close(opened)


def test_readers_meanwhile_find_each_row_once_or_a_file_gone(tables):
    wanted, seen, ending = len(rows(tables)), set(), threading.Event()

    def read():
        last = False
        while not last:
            last = ending.is_set()
            try:
                seen.add(tables.rows(RAW))
            except FileNotFoundError:
                seen.add(None)

    reader = threading.Thread(target=read)
    reader.start()
    folder = tables.at(RAW, f"date={DAYS[2]}", "gateway=north")
    for batch in range(compaction.FILES, compaction.FILES + 20):
        compaction.compact_folder(tables, folder, 2)
        staged = tables.stage()
        os.makedirs(os.path.join(staged, f"date={DAYS[2]}", "gateway=north"))
        tables.publish_batch(RAW, batch, staged)
        record(tables, batch)
        _split(tables, folder, batch)
    ending.set()
    reader.join()
    assert seen <= {wanted, None} and wanted in seen


def _split(tables, folder, batch):
    """The one file as two again, in one step."""
    (name,) = os.listdir(folder)
    whole, beside = pyarrow.parquet.read_table(os.path.join(folder, name), partitioning=None), tables.stage()
    os.makedirs(beside)
    for part, piece in enumerate((whole.slice(0, 3), whole.slice(3))):
        pyarrow.parquet.write_table(piece, os.path.join(beside, f"batch-{batch:08}-{part}.parquet"))
    assert compaction._exchange(folder, beside)


def test_alerts_and_closed_windows_are_merged_beside_the_open_ones(tables):
    for number in range(compaction.FILES):
        tables.publish_table(ALERTS, number, pyarrow.table({"sequence": [number]}))
        staged = tables.stage()
        os.makedirs(staged)
        pyarrow.parquet.write_table(pyarrow.table({"count": [number + 1]}), os.path.join(staged, "part.parquet"))
        tables.close_windows(staged, (number + 1) * 60)
    staged = tables.stage()
    os.makedirs(staged)
    pyarrow.parquet.write_table(pyarrow.table({"count": [1000]}), os.path.join(staged, "part.parquet"))
    tables.publish_windows(staged)
    before, until = sorted(tables.window_counts()), compaction.FILES * 60
    assert compact(tables) == 3 * compaction.FILES + 3
    assert sorted(os.listdir(tables.at(WINDOWS))) == ["_closed.json", f"closed-0-{until}.parquet", "windows.parquet"]
    assert sorted(tables.window_counts()) == before and tables.closed_until() == until
    assert len(os.listdir(tables.at(ALERTS))) == 1 and tables.rows(ALERTS) == compaction.FILES
    tables.close()
    again = Tables(tables.path)
    assert sorted(again.window_counts()) == before
    again.close()
