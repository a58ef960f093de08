"""The folder that the pipeline writes: what every Parquet reader may read at any moment, and counts that are exact.

    raw/date=2026-01-31/gateway=north/batch-00000012-0.parquet    readings, each once, with their anomaly score
    raw/date=2026-01-30/gateway=north/batches-00000000-00000011.parquet    those of many batches (compaction.py)
    dead_letters/batch-00000012-0.parquet   what was no reading: stream, offset, part, reason, payload, routing key
    alerts/batch-00000012-0.parquet         readings whose score is an alarm
    windows/windows.parquet                 aggregates of the windows that may still change; closed-*.parquet those that do not
    _batches/00000012.json                  what batch 12 was, and the sums over all up to it; the last KEPT of them
    _detector/ _checkpoint/ _staging/ _lock the detector's states; Spark's; unfinished writes; one writer at a time
    _gone/                                  how many rows went because they were old (retention.py)

Laws: a batch is written to _staging and its files appear under names that follow from the batch, so a batch that is done again after a
crash replaces its own files by equal ones and changes nothing. The counts of a batch are read from the footers of its files. What a
batch wrote, and what Spark noted of it, is on the disk before it is recorded. A local (POSIX) folder, or one that all machines of a
cluster share.
"""

import ctypes
import datetime
import fcntl
import json
import os
import shutil
import uuid
from typing import Any

import pyarrow.parquet

Noted = dict[str, Any]
RAW, DEAD_LETTERS, ALERTS, WINDOWS = "raw", "dead_letters", "alerts", "windows"
KEPT = 100
TOTALS = ("rows_read", "records", "readings", "duplicates", "dead_letters", "late", "alerts", "lost")


class InUse(Exception):
    """Another pipeline writes this folder."""


class Tables:
    """The folder at `path`, locked for this process until it ends."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        for name in (RAW, DEAD_LETTERS, ALERTS, WINDOWS, "_batches", "_staging"):
            os.makedirs(self.at(name), exist_ok=True)
        self._lock = open(self.at("_lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise InUse(f"another pipeline is writing {self.path}") from None
        self.written: set[str] = set()  # folders of tables that may have small files
        self.replaced: list[tuple[float, str]] = []  # (when, folder) that merged files stand in the place of: see compaction.py
        for name in os.listdir(self.at("_staging")):
            shutil.rmtree(self.at("_staging", name), ignore_errors=True)
        self._forget_unbegun()
        self._forget_unfinished()

    def _forget_unbegun(self) -> None:
        """Removes a checkpoint that was left before its first batch was planned: Spark refuses it for the half-written file in it."""
        planned = self.at("_checkpoint", "offsets")
        if os.path.isdir(planned) and not any(name.isdigit() for name in os.listdir(planned)) and self.newest() is None:
            shutil.rmtree(self.at("_checkpoint"))

    def _forget_unfinished(self) -> None:
        """Removes the files of a batch that was being written, and of windows that were being closed."""
        newest = self.newest()
        unfinished = f"batch-{newest['batch'] + 1 if newest else 0:08}-"
        for table in (RAW, DEAD_LETTERS, ALERTS):
            for folder, _, names in os.walk(self.at(table)):
                for name in names:
                    if name.startswith(unfinished):
                        os.remove(os.path.join(folder, name))
                if len(names) > 1:
                    self.written.add(folder)
        for file in parquet_files(self.at(WINDOWS)):
            name = os.path.basename(file)
            if name.startswith("closed-") and int(name[7:-8].partition("-")[2]) > self.closed_until():
                os.remove(file)

    def close(self) -> None:
        """Lets another pipeline have the folder."""
        self._lock.close()

    def identity(self) -> str:
        """A text that belongs to this folder as long as it lives."""
        path = self.at("_identity")
        if not os.path.exists(path):
            self.replace(path, uuid.uuid4().hex)
        with open(path, encoding="utf-8") as file:
            text: str = json.load(file)
        return text

    def at(self, *names: str) -> str:
        """A path inside the folder."""
        return os.path.join(self.path, *names)

    def glob(self, table: str) -> str:
        """The pattern of paths for a Parquet reader."""
        if table == WINDOWS:
            return self.at(WINDOWS, "windows.parquet" if len(parquet_files(self.at(WINDOWS))) < 2 else "*.parquet")
        return self.at(table, "*", "*", "*.parquet") if table == RAW else self.at(table, "*.parquet")

    def stage(self) -> str:
        """A new path to write to; nothing is there yet."""
        return self.at("_staging", uuid.uuid4().hex)

    def publish_batch(self, table: str, batch: int, staged: str) -> int:
        """Moves what is staged (folders of partitions, or files) to its place as batch `batch` of `table`. Returns its rows."""
        rows = 0
        for folder, _, _ in os.walk(staged):
            target = os.path.normpath(self.at(table, os.path.relpath(folder, staged)))
            for number, file in enumerate(parquet_files(folder)):
                count = rows_of(file)
                if count:
                    os.makedirs(target, exist_ok=True)
                    os.replace(file, os.path.join(target, f"batch-{batch:08}-{number}.parquet"))
                    self.written.add(target)
                rows += count
        shutil.rmtree(staged, ignore_errors=True)
        return rows

    def publish_table(self, table: str, batch: int, rows: Any) -> int:
        """As publish_batch, of an Arrow table."""
        staged = self.stage()
        os.makedirs(staged)
        pyarrow.parquet.write_table(rows, os.path.join(staged, "part.parquet"), use_deprecated_int96_timestamps=False)
        return self.publish_batch(table, batch, staged)

    def publish_windows(self, staged: str, name: str = "windows.parquet") -> None:
        """Puts the one staged file among the aggregates."""
        (file,) = parquet_files(staged)
        os.replace(file, self.at(WINDOWS, name))
        shutil.rmtree(staged)

    def close_windows(self, staged: str, until: int) -> None:
        """Puts the staged windows among those that do not change any more; they end at `until`, in microseconds since 1970."""
        (file,) = parquet_files(staged)
        if rows_of(file):
            self.publish_windows(staged, f"closed-{self.closed_until()}-{until}.parquet")
            self.written.add(self.at(WINDOWS))
        else:
            shutil.rmtree(staged)
        self.replace(self.at(WINDOWS, "_closed.json"), {"until": until})

    def days_since(self, time_us: int) -> list[str]:
        """The folders of raw with readings from `time_us` (microseconds since 1970) on, or raw itself; Spark lists all that it is given."""
        day = datetime.datetime.fromtimestamp(time_us // 1_000_000, datetime.timezone.utc).strftime("date=%Y-%m-%d")
        return [self.at(RAW, name) for name in sorted(os.listdir(self.at(RAW))) if name >= day] or [self.at(RAW)]

    def closed_until(self) -> int:
        """Where the windows that may still change begin, in microseconds since 1970; 0: all may."""
        try:
            with open(self.at(WINDOWS, "_closed.json"), encoding="utf-8") as file:
                until: int = json.load(file)["until"]
        except FileNotFoundError:
            return 0
        return until

    def planned(self, batch: int) -> tuple[Noted | None, Noted]:
        """(start, end) of a batch as Spark planned it, from the offset log in the checkpoint; start None: the first batch."""
        return self._offsets(batch - 1) if batch else None, self._offsets(batch)

    def _offsets(self, batch: int) -> Noted:
        with open(self.at("_checkpoint", "offsets", str(batch)), encoding="utf-8") as file:
            offsets: Noted = json.loads(file.read().splitlines()[-1])
        return offsets

    def record(self, batch: int, counts: dict[str, Any]) -> None:
        """Notes what a batch was; the last step of a batch. The sums go on from the newest before it."""
        before = self.newest() or {}
        totals = before.get("totals", dict.fromkeys(TOTALS, 0))
        newest = [time for time in (before.get("newest_ever"), counts["newest"]) if time is not None]
        counts = dict(
            counts, batch=batch, totals={name: totals[name] + counts[name] for name in TOTALS}, newest_ever=max(newest, default=None)
        )
        self.sync()
        self.replace(self.at("_batches", f"{batch:08}.json"), counts)
        for number in self._recorded_numbers()[:-KEPT]:
            os.remove(self.at("_batches", f"{number:08}.json"))

    def sync(self) -> None:
        """Waits until what was written to this file system is on the disk."""
        if getattr(ctypes.CDLL(None), "syncfs", lambda file: -1)(self._lock.fileno()):
            os.sync()

    def replace(self, path: str, value: object) -> None:
        """Writes a JSON file, whole or not at all, also when the power goes."""
        temporary = self.at("_staging", uuid.uuid4().hex + ".json")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)

    def recorded(self, batch: int) -> Noted | None:
        """The record of a batch, None while it is unfinished."""
        try:
            with open(self.at("_batches", f"{batch:08}.json"), encoding="utf-8") as file:
                noted: Noted = json.load(file)
        except FileNotFoundError:
            return None
        return noted

    def newest(self) -> Noted | None:
        """The record of the newest batch, None when there is none."""
        numbers = self._recorded_numbers()
        return self.recorded(numbers[-1]) if numbers else None

    def totals(self) -> dict[str, int]:
        """The sums over all batches, by TOTALS."""
        newest = self.newest()
        return dict(newest["totals"]) if newest else dict.fromkeys(TOTALS, 0)

    def _recorded_numbers(self) -> list[int]:
        return sorted(int(name[:8]) for name in os.listdir(self.at("_batches")) if name.endswith(".json"))

    def window_counts(self) -> list[int]:
        """The readings in each window, read back from the files."""
        counts = []
        for file in parquet_files(self.at(WINDOWS)):
            counts += pyarrow.parquet.read_table(file, columns=["count"], partitioning=None).column("count").to_pylist()
        return counts

    def rows(self, table: str) -> int:
        """Rows in the files of a table, from their footers."""
        return sum(rows_of(file) for folder, _, _ in os.walk(self.at(table)) for file in parquet_files(folder))


def parquet_files(folder: str) -> list[str]:
    """The Parquet files directly in a folder; [] when there is no such folder."""
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".parquet")]


def rows_of(file: str) -> int:
    """Rows in a Parquet file."""
    count: int = pyarrow.parquet.read_metadata(file).num_rows
    return count
