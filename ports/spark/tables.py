"""The folder that the pipeline writes: what every Parquet reader may read at any moment, and counts that are exact.

    raw/batch=00000012/part-*.parquet            readings, each once
    dead_letters/batch=00000012/part-*.parquet   what was no reading: offset, reason, payload, routing key
    windows/windows.parquet                      aggregates
    _batches/00000012.json                       what batch 12 was: its offsets and counts
    _checkpoint/ _staging/ _lock                 Spark's; unfinished writes; one writer at a time

Laws: a batch is written to _staging and appears by one rename, whole; a batch that is done again after a crash finds itself there
and changes nothing. The counts of a batch are read from the footers of the files that appeared. A local (POSIX) folder only.
"""
import fcntl
import json
import os
import shutil
import uuid

import pyarrow.parquet

RAW, DEAD_LETTERS, WINDOWS = "raw", "dead_letters", "windows"


class InUse(Exception):
    """Another pipeline writes this folder."""


class Tables:
    """The folder at `path`, locked for this process until it ends."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        for name in (RAW, DEAD_LETTERS, WINDOWS, "_batches", "_staging"):
            os.makedirs(self.at(name), exist_ok=True)
        self._lock = open(self.at("_lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise InUse(f"another pipeline is writing {self.path}") from None
        for name in os.listdir(self.at("_staging")):
            shutil.rmtree(self.at("_staging", name))
        self._forget_unbegun()

    def _forget_unbegun(self):
        """Removes a checkpoint that was left before its first batch was planned: Spark refuses it for the half-written file in it."""
        planned = self.at("_checkpoint", "offsets")
        if os.path.isdir(planned) and not any(name.isdigit() for name in os.listdir(planned)) and not os.listdir(self.at("_batches")):
            shutil.rmtree(self.at("_checkpoint"))

    def close(self):
        """Lets another pipeline have the folder."""
        self._lock.close()

    def at(self, *names):
        """A path inside the folder."""
        return os.path.join(self.path, *names)

    def glob(self, table):
        """What to give to a Parquet reader."""
        return self.at(table, "windows.parquet") if table == WINDOWS else self.at(table, "*", "*.parquet")

    def stage(self):
        """A new path to write to; nothing is there yet."""
        return self.at("_staging", uuid.uuid4().hex)

    def publish_batch(self, table, batch, staged):
        """Makes a staged folder batch `batch` of `table`, unless that is there already or nothing is in it. Returns its rows."""
        target = self.at(table, f"batch={batch:08}")
        if not os.path.exists(target) and rows_in(staged):
            os.rename(staged, target)
        else:
            shutil.rmtree(staged)
        return rows_in(target)

    def publish_windows(self, staged):
        """Puts the one staged file in the place of the old aggregates."""
        (file,) = parquet_files(staged)
        os.replace(file, self.glob(WINDOWS))
        shutil.rmtree(staged)

    def offsets_of(self, batch, stream):
        """[start, end) of a batch as Spark planned it, from the offset log in the checkpoint."""
        end = self._planned(batch)[stream]
        return (self._planned(batch - 1)[stream]["next"] if batch else end["start"]), end["next"]

    def _planned(self, batch):
        with open(self.at("_checkpoint", "offsets", str(batch)), encoding="utf-8") as file:
            return json.loads(file.read().splitlines()[-1])

    def record(self, batch, counts):
        """Notes what a batch was; the last step of a batch."""
        temporary = self.at("_staging", uuid.uuid4().hex + ".json")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(counts, file)
        os.replace(temporary, self.at("_batches", f"{batch:08}.json"))

    def recorded(self, batch):
        """The counts of one batch, None when it is not done."""
        try:
            with open(self.at("_batches", f"{batch:08}.json"), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def totals(self):
        """The sums over all batches: rows_read, readings, duplicates, dead_letters."""
        totals = dict.fromkeys(("rows_read", "readings", "duplicates", "dead_letters"), 0)
        for name in os.listdir(self.at("_batches")):
            counts = self.recorded(int(name.partition(".")[0]))
            for total in totals:
                totals[total] += counts[total]
        return totals

    def window_counts(self):
        """The readings in each window, read back from the file."""
        return pyarrow.parquet.read_table(self.glob(WINDOWS), columns=["count"]).column("count").to_pylist()

    def rows(self, table):
        """Rows in the files of a table, from their footers."""
        return sum(rows_in(folder) for folder, _, _ in os.walk(self.at(table)))


def parquet_files(folder):
    """The Parquet files directly in a folder; [] when there is no such folder."""
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".parquet")]


def rows_in(folder):
    """Rows in the Parquet files directly in a folder."""
    return sum(pyarrow.parquet.read_metadata(file).num_rows for file in parquet_files(folder))
