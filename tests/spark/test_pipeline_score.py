"""`leveret pipeline score` as a user runs it: what it writes, and what it says of files that are no series."""

import csv
import subprocess
import sys

import pytest

from leveret.ports.spark import detector


def leveret_score(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "leveret.tools.cli", "pipeline", "score", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def write_series(path, values, begin="2014-02-14 14:{:02d}:00"):
    path.write_text("timestamp,value\n" + "".join(f"{begin.format(at % 60)},{value}\n" for at, value in enumerate(values)))
    return path


def test_one_series_to_standard_output_with_its_text_as_it_came(tmp_path):
    values = ["1.50", "", "2", "1e1"] + ["1.5"] * 300 + ["99.000"] + ["1.5"] * 9
    done = leveret_score("--csv", write_series(tmp_path / "one.csv", values))
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["value"] for row in rows] == values
    assert list(rows[0]) == ["timestamp", "value", "anomaly_score"] and rows[1]["timestamp"] == "2014-02-14 14:01:00"
    scores = [float(row["anomaly_score"]) for row in rows]
    assert all(0 <= score <= 1 for score in scores)
    assert [at for at, score in enumerate(scores) if score >= detector.ALARM] == [304]


def test_several_series_go_to_a_folder_each_as_if_alone(tmp_path):
    first = write_series(tmp_path / "a.csv", [at % 7 for at in range(500)] + [50])
    second = write_series(tmp_path / "b.csv", [at % 3 for at in range(200)])
    assert leveret_score("--csv", first, second, "--out", tmp_path / "scores").returncode == 0
    for path in (first, second):
        assert (tmp_path / "scores" / path.name).read_text() == leveret_score("--csv", path).stdout
    assert leveret_score("--csv", first, "--out", tmp_path / "alone.csv").returncode == 0
    assert (tmp_path / "alone.csv").read_text() == (tmp_path / "scores" / "a.csv").read_text()


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("time,value\n1,2\n", "the first line is 'time,value'"),
        ("", "the first line is ''"),
        ("timestamp,value\n2014-02-14 14:00:00,1\n2014-02-14,x\n", "line 3: value 'x' is not a number"),
        ("timestamp,value\nyesterday,1\n", "line 2: timestamp 'yesterday' is neither ISO 8601 nor seconds"),
        ("timestamp,value\n1,2,3\n", "line 2: 3 columns"),
    ],
)
def test_what_is_no_series_is_named_with_its_line(tmp_path, text, sentence):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    done = leveret_score("--csv", path)
    assert done.returncode == 1 and done.stdout == ""
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_wrong_arguments_are_sentences(tmp_path):
    first = write_series(tmp_path / "a.csv", [1, 2])
    (tmp_path / "other").mkdir()
    same = write_series(tmp_path / "other" / "a.csv", [1, 2])
    for arguments, status, sentence in (
        (("--csv", first, same, "--out", tmp_path / "o"), 2, "the same name"),
        (("--csv", first, tmp_path / "none.csv"), 2, "--out FOLDER"),
        (("--csv", tmp_path / "none.csv"), 1, "none.csv"),
        (("--csv", first, "--out", first), 1, "the series itself"),
    ):
        done = leveret_score(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (status, 1) and sentence in done.stderr, done.stderr
    assert first.read_text().endswith(",2\n")


def test_a_timestamp_may_be_seconds_or_have_a_zone(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text("timestamp,value\n1400000000,1\n2014-05-13T16:53:20Z,2\n2014-05-13T18:53:20+02:00,3\n")
    assert leveret_score("--csv", path).stdout.splitlines()[1:] == [
        "1400000000,1,0.000000",
        "2014-05-13T16:53:20Z,2,0.000000",
        "2014-05-13T18:53:20+02:00,3,0.000000",
    ]
