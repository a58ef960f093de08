"""Old rows go away: `keep_days` in pipeline.toml.

Whole dates of raw go when they lie `keep_days` before the newest reading and all their windows are closed; files of dead letters, when
nothing was written to them for `keep_days`. Windows, alerts and the counts stay.

    _gone/00000007-raw-1200    what is the 7th to go: 1200 rows of raw
    _gone/sum.json             {"number": 7, "rows": {"raw": 8400}}: how many rows went, up to and with the 7th

Laws: what goes leaves its table in one rename, to a name that tells its rows; then they are counted; then it is removed. A run that was
killed in between is finished by the next one from that name: rows in the files + rows that went = rows noted, always. What holds rows of
a batch that is not recorded stays: it may be written again. How old a date is follows from the readings' time: a job that stood still for
a year loses nothing by it. The clock is their bound: a sensor that says 2099 takes nothing away. A reader that listed a date before finds
its files gone, as with compaction.
"""

import datetime
import json
import os
import shutil
import time
from typing import Any

from .compaction import span_of
from .tables import DEAD_LETTERS, RAW, Tables, parquet_files, rows_of

DAY_S = 86400
_FOLDER, _SUM = "_gone", "sum.json"


def forget(tables: Tables, keep_days: int) -> int:
    """Removes what is older than `keep_days`. Returns how many rows that was. Not while a batch is being written."""
    rows = 0
    for table, path in _old_dates(tables, keep_days) + _old_dead_letters(tables, keep_days):
        count = sum(map(rows_of, _files_under(path)))
        name = f"{gone(tables)['number'] + 1:08}-{table}-{count}"
        os.makedirs(tables.at(_FOLDER), exist_ok=True)
        os.rename(path, tables.at(_FOLDER, name))
        tables.sync()
        _count_and_remove(tables, name)
        rows += count
    return rows


def finish(tables: Tables) -> None:
    """What a run that was killed left half removed: counted, if it was not, and removed. Before anything is counted."""
    if os.path.isdir(tables.at(_FOLDER)):
        for name in sorted(os.listdir(tables.at(_FOLDER))):
            if name != _SUM:
                _count_and_remove(tables, name)


def gone(tables: Tables) -> dict[str, Any]:
    """{"number": how many dates and files went, "rows": {table: how many rows}}."""
    try:
        with open(tables.at(_FOLDER, _SUM), encoding="utf-8") as file:
            so_far: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return {"number": 0, "rows": {}}
    return so_far


def _old_dates(tables: Tables, keep_days: int) -> list[tuple[str, str]]:
    noted = tables.newest()
    if noted is None or noted["newest_ever"] is None:
        return []
    border = min(min(noted["newest_ever"], time.time()) - keep_days * DAY_S, tables.closed_until() / 1e6)
    border = datetime.datetime.fromtimestamp(border, datetime.timezone.utc).strftime("date=%Y-%m-%d")
    old = [tables.at(RAW, name) for name in sorted(os.listdir(tables.at(RAW))) if name.startswith("date=") and name < border]
    return [(RAW, path) for path in old if all(_is_recorded(file, noted["batch"]) for file in _files_under(path))]


def _old_dead_letters(tables: Tables, keep_days: int) -> list[tuple[str, str]]:
    noted, border = tables.newest(), time.time() - keep_days * DAY_S
    return [
        (DEAD_LETTERS, file)
        for file in parquet_files(tables.at(DEAD_LETTERS))
        if noted is not None and _is_recorded(file, noted["batch"]) and os.path.getmtime(file) < border
    ]


def _is_recorded(file: str, newest: int) -> bool:
    span = span_of(file)
    return span is not None and span[2] <= newest


def _files_under(path: str) -> list[str]:
    """The Parquet files of a date, or the one that the path is."""
    return [file for folder, _, _ in os.walk(path) for file in parquet_files(folder)] if os.path.isdir(path) else [path]


def _count_and_remove(tables: Tables, name: str) -> None:
    path, so_far = tables.at(_FOLDER, name), gone(tables)
    number, table, rows = name.split("-")
    if int(number) > so_far["number"]:
        counts = dict(so_far["rows"], **{table: so_far["rows"].get(table, 0) + int(rows)})
        tables.replace(tables.at(_FOLDER, _SUM), {"number": int(number), "rows": counts})
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        os.remove(path)
