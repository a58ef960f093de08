"""Where a sensor's readings come from: this machine (psutil) or a recorded `timestamp,value` file.

A source is an iterable of rounds; a round is (due_s, read): seconds after the start at which it is due, and what to call then for its
[(metric, value, time), ...]; time is in epoch seconds, or None for now.
A recorded series is replayed in time-lapse: its own gaps, shortened by one factor so that all of it fits into the seconds given; each
reading keeps the time it was recorded with.
Nothing is invented: what a machine does not have (temperatures) is not among its metrics. No clock is read here.
"""

import csv
import datetime
import math

from .usage import UsageError


def psutil_or_refuse():
    try:
        import psutil
    except ImportError:
        raise UsageError("reading this machine needs psutil; install it with: pip install '.[demo]' in Leveret's folder") from None
    return psutil


class Machine:
    """This machine's own readings; `groups` of cpu, memory, disk, network, temperature."""

    def __init__(self, groups, interval_s, seconds):
        self._psutil = psutil_or_refuse()
        self._groups = [getattr(self, "_" + group) for group in groups]
        self._interval_s = interval_s
        self._seconds = seconds
        self._psutil.cpu_percent()  # the first call has nothing to compare with and gives 0

    def __iter__(self):
        count = int(self._seconds / self._interval_s)
        for number in range(1, count + 1):
            yield number * self._interval_s, self.read

    def read(self):
        """[(metric, value, None)] now."""
        return [(metric, value, None) for group in self._groups for metric, value in group()]

    def _cpu(self):
        return [("cpu_percent", self._psutil.cpu_percent())]

    def _memory(self):
        return [("memory_percent", self._psutil.virtual_memory().percent)]

    def _disk(self):
        return [("disk_used_percent", self._psutil.disk_usage("/").percent)]

    def _network(self):
        counters = self._psutil.net_io_counters()
        return [("network_received_bytes", counters.bytes_recv), ("network_sent_bytes", counters.bytes_sent)] if counters else []

    def _temperature(self):
        sensors: dict = getattr(self._psutil, "sensors_temperatures", dict)()  # psutil has it on Linux only
        return [
            (f"temperature_{chip}_{number}_celsius", sensor.current)
            for chip, entries in sorted(sensors.items())
            for number, sensor in enumerate(entries)
        ]


GROUPS = tuple(sorted(name[1:] for name in ("_cpu", "_memory", "_disk", "_network", "_temperature")))


def read_series(path):
    """[(epoch seconds, value)] of a `timestamp,value` file (times without a zone are UTC). Raises UsageError with the line number."""
    series = []
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            if next(lines, None) != ["timestamp", "value"]:
                raise UsageError(f"{path}: the first line must be timestamp,value")
            for number, line in enumerate(lines, 2):
                series.append(_point(path, number, line))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text") from None
    if not series:
        raise UsageError(f"{path} holds no readings")
    return series


def _point(path, number, line):
    try:
        text, value = line
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.timezone.utc)
        number_read = float(value)
        if math.isfinite(number_read):
            return moment.timestamp(), number_read
        raise ValueError("not finite")
    except ValueError:
        raise UsageError(f"{path}, line {number}: {','.join(line)!r} is not a timestamp and a value") from None


class Replay:
    """A recorded series as `metric`, the whole of it in `seconds`."""

    def __init__(self, path, metric, seconds):
        self._series = sorted(read_series(path), key=lambda point: point[0])
        self._metric = metric
        self._first, last = self._series[0][0], self._series[-1][0]
        self._factor = seconds / (last - self._first) if last > self._first else 0.0

    def __iter__(self):
        for moment, value in self._series:
            yield (moment - self._first) * self._factor, lambda moment=moment, value=value: [(self._metric, value, moment)]
