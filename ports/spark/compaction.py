"""Many small Parquet files made one: a batch leaves one for each gateway and day, and a year of batches millions.

A folder of a table is merged when it has FILES of them; that of a day that is over (two days before the newest) when it has two.
Laws: whoever lists a folder finds each row once, at any moment and after a crash: the merged file is made beside, and the two folders
change places in one step; the old one goes LISTED_S later, when nobody is in the middle of listing it. A reader that listed it before
finds its files gone, and lists again. Rows and their types stay; a batch that is not recorded is left out, because it may be written
again. A folder is not looked at again before a batch has written to it. What the file system cannot do (renameat2, which network file
systems have not) is left alone.
"""

import ctypes
import os
import shutil
import time
from typing import Any

import pyarrow
import pyarrow.parquet

from .tables import RAW, Tables, parquet_files, rows_of

FILES = 100
SMALL_OCTETS = 64 << 20
MERGED_OCTETS = 256 << 20
GROUP_ROWS = 200_000
LISTED_S = 60  # nobody takes so long to list a folder
DAYS_OPEN = 2  # the newest dates, which batches write to usually
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


def compact_folder(tables: Tables, folder: str, files_min: int) -> int:
    """Merges the small files of a folder if there are `files_min`. Returns how many it merged."""
    small: list[str] = []
    octets = 0
    done = {"closed": tables.closed_until(), "batch": (tables.newest() or {"batch": -1})["batch"]}
    done["batches"] = done["batch"]
    for file in parquet_files(folder):
        size, span = os.path.getsize(file), span_of(file)
        if span is not None and span[2] <= done[span[0]] and size < SMALL_OCTETS and octets + size <= MERGED_OCTETS:
            small.append(file)
            octets += size
    if len(small) < files_min:
        return 0
    schema = pyarrow.parquet.read_schema(small[0])
    small = [file for file in small if pyarrow.parquet.read_schema(file) == schema]
    if len(small) < 2:
        return 0
    beside = tables.stage()
    os.makedirs(beside)
    for name in os.listdir(folder):
        if os.path.join(folder, name) not in small:
            os.link(os.path.join(folder, name), os.path.join(beside, name))
    _merge(small, os.path.join(beside, _merged_name(small)), schema)
    if not _exchange(folder, beside):
        shutil.rmtree(beside)
        return 0
    tables.replaced.append((time.monotonic(), beside))
    return len(small)


def remove_replaced(tables: Tables) -> None:
    """Removes the folders that changed places with merged ones long enough ago."""
    while tables.replaced and time.monotonic() - tables.replaced[0][0] >= LISTED_S:
        shutil.rmtree(tables.replaced.pop(0)[1])


def crowded(tables: Tables) -> list[tuple[str, int]]:
    """[(folder, files at which it is merged)] of the folders that batches wrote to, as far as they are worth a look; forgets the others."""
    remove_replaced(tables)
    newest = sorted(name for name in os.listdir(tables.at(RAW)) if name.startswith("date="))[-DAYS_OPEN:]
    folders = []
    for folder in sorted(tables.written):
        day = os.path.relpath(folder, tables.at(RAW)).split(os.sep)[0]
        over = day.startswith("date=") and day not in newest
        if over or len(parquet_files(folder)) >= FILES:
            folders.append((folder, 2 if over else FILES))
        if over:
            tables.written.discard(folder)
    return folders


def span_of(file: str) -> tuple[str, int, int] | None:
    """(table's word, first, last) in the name of a file that may be merged, else None."""
    word, _, numbers = os.path.basename(file)[: -len(".parquet")].partition("-")
    parts = numbers.split("-")
    if word in ("batch", "batches", "closed") and len(parts) == 2 and all(part.isdigit() for part in parts):
        return word, int(parts[0]), int(parts[0] if word == "batch" else parts[1])
    return None


def _merged_name(files: list[str]) -> str:
    spans = [span for span in map(span_of, files) if span is not None]
    first, last = min(span[1] for span in spans), max(span[2] for span in spans)
    return f"closed-{first}-{last}.parquet" if spans[0][0] == "closed" else f"batches-{first:08}-{last:08}.parquet"


def _merge(files: list[str], target: str, schema: Any) -> None:
    with pyarrow.parquet.ParquetWriter(target, schema) as writer:
        waiting, rows = [], 0
        for file in files:
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches(GROUP_ROWS):
                waiting.append(batch)
                rows += batch.num_rows
                if rows >= GROUP_ROWS:
                    writer.write_table(pyarrow.Table.from_batches(waiting), GROUP_ROWS)
                    waiting, rows = [], 0
        if waiting:
            writer.write_table(pyarrow.Table.from_batches(waiting), GROUP_ROWS)
    with open(target, "rb") as merged:
        os.fsync(merged.fileno())
    if rows_of(target) != sum(map(rows_of, files)):
        raise OSError(f"{target} has other rows than what was merged into it")


def _exchange(left: str, right: str) -> bool:
    """Exchange two folders in one step; False where the file system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return rename is not None and rename(_HERE, os.fsencode(left), _HERE, os.fsencode(right), _EXCHANGE) == 0
