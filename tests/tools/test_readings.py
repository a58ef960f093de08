"""Readings: the machine's own are real, a recorded series is replayed whole and in order; a broken file is named with its line."""

import math

import psutil
import pytest

from leveret.tools import readings
from leveret.tools.usage import UsageError


def write(directory, text):
    path = directory / "series.csv"
    path.write_text(text)
    return str(path)


def test_the_machine_is_read_every_interval():
    rounds = list(readings.Machine(["memory", "disk"], 0.5, 2.0))
    assert [due for due, _ in rounds] == [0.5, 1.0, 1.5, 2.0]
    values = {metric: value for metric, value, _ in rounds[0][1]()}
    assert values.keys() == {"memory_percent", "disk_used_percent"}
    assert abs(values["disk_used_percent"] - psutil.disk_usage("/").percent) < 5


def test_every_group_gives_finite_numbers_and_no_temperature_is_invented():
    found = {metric: value for metric, value, moment in readings.Machine(readings.GROUPS, 1, 1).read() if moment is None}
    assert {"cpu_percent", "memory_percent", "disk_used_percent"} <= found.keys()
    assert all(math.isfinite(value) for value in found.values())
    sensors = sum(len(entries) for entries in psutil.sensors_temperatures().values())
    assert len([name for name in found if name.startswith("temperature_")]) == sensors


def test_a_series_is_replayed_in_order_within_the_seconds(tmp_path):
    path = write(tmp_path, "timestamp,value\n2020-01-01 00:00:00,1\n2020-01-01 00:10:00,2.5\n2020-01-01 01:40:00,-3\n")
    rounds = [(due, read()) for due, read in readings.Replay(path, "celsius", 10)]
    first = 1577836800  # 2020-01-01 in UTC
    assert rounds == [(0.0, [("celsius", 1.0, first)]), (1.0, [("celsius", 2.5, first + 600)]), (10.0, [("celsius", -3.0, first + 6000)])]


def test_times_with_a_zone_and_out_of_order_are_put_in_order(tmp_path):
    path = write(tmp_path, "timestamp,value\n2020-01-01T02:00:00+01:00,2\n2020-01-01T00:30:00,1\n")
    assert [read()[0][1] for _, read in readings.Replay(path, "x", 1)] == [1.0, 2.0]


def test_a_series_of_one_moment_comes_at_once(tmp_path):
    assert [due for due, _ in readings.Replay(write(tmp_path, "timestamp,value\n2020-01-01,1\n2020-01-01,2\n"), "x", 9)] == [0.0, 0.0]


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "first line"),
        ("time,value\n", "first line"),
        ("timestamp,value\n", "no readings"),
        ("timestamp,value\n2020-01-01,1\nyesterday,1\n", "line 3"),
        ("timestamp,value\n2020-01-01,warm\n", "line 2"),
        ("timestamp,value\n2020-01-01,nan\n", "line 2"),
        ("timestamp,value\n2020-01-01,1,2\n", "line 2"),
        ("timestamp,value\n\n", "line 2"),
    ],
)
def test_a_broken_file_is_refused_in_one_sentence(tmp_path, text, words):
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        readings.read_series(path)
    assert path in str(caught.value) and words in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        readings.read_series(str(tmp_path / "absent.csv"))
