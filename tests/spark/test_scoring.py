"""The detector's states between batches: the same scores as in one go, also after a crash, and no more series than a bucket holds."""

import os

import numpy
import pyarrow
import pytest

from leveret.ports.spark import detector, scoring

MOMENT_US = 1_700_000_000_000_000


def readings(first, end, devices=("kiln",)):
    """An Arrow table as the job hands over: a reading of each device each minute, an unusual one every 150."""
    rows = [(device, number) for number in range(first, end) for device in devices]
    return pyarrow.table(
        {
            "gateway": pyarrow.array(["north"] * len(rows)),
            "device": pyarrow.array([device for device, _ in rows]),
            "metric": pyarrow.array(["t"] * len(rows)),
            "time": pyarrow.array([MOMENT_US + number * 60_000_000 for _, number in rows], pyarrow.timestamp("us", tz="UTC")),
            "value": pyarrow.array([number * 7 % 11 + (300.0 if number % 150 == 149 else 0.0) for _, number in rows]),
            "offset": pyarrow.array(range(len(rows)), pyarrow.int64()),
            "part": pyarrow.array([0] * len(rows), pyarrow.int32()),
        }
    )


def score(table, folder, batch):
    return list(scoring.score_bucket(table, str(folder), batch))


@pytest.fixture(params=["same worker", "another worker"])
def between_batches(request, monkeypatch):
    """Called between two batches: another worker has nothing in its memory."""
    return scoring._known.clear if request.param == "another worker" else lambda: None


def test_batches_and_batches_done_again_give_the_scores_of_one_go(tmp_path, between_batches):
    whole, seconds = readings(0, 600), numpy.arange(600) * 60 + MOMENT_US / 1e6
    wanted = list(detector.score_rows(detector.new_states(1), [0] * 600, seconds, whole.column("value").to_numpy()))
    assert max(wanted) >= detector.ALARM
    found = []
    for batch in range(6):
        part = readings(100 * batch, 100 * batch + 100)
        first = score(part, tmp_path, batch)
        between_batches()
        assert score(part, tmp_path, batch) == first
        found += first
        between_batches()
    assert found == wanted
    assert sorted(os.listdir(tmp_path)) == [f"{batch:08}.npz" for batch in (3, 4, 5)]


def test_of_more_series_than_a_bucket_holds_those_that_were_silent_longest_are_forgotten(tmp_path, monkeypatch, between_batches):
    monkeypatch.setattr(scoring, "SERIES_MAX", 4)
    whole = score(readings(0, 400), tmp_path / "alone", 0)
    score(readings(0, 200, ["old-1", "kiln", "old-2", "old-3"]), tmp_path / "many", 0)
    between_batches()
    score(readings(200, 300, ["new-1", "kiln", "new-2", "new-3"]), tmp_path / "many", 1)
    between_batches()
    assert list(scoring._load(str(tmp_path / "many"), 2)[0]) == [f"north\n{name}\nt" for name in ("kiln", "new-1", "new-2", "new-3")]
    assert score(readings(300, 400), tmp_path / "many", 2) == whole[300:]
