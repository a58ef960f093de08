"""`leveret pipeline`: what goes in is a reading, a double or a dead letter, each counted exactly.

LEVERET_SPARK_SEED repeats a run's choices.
"""

import collections
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import pandas
import pytest
from telemetry import TIME_S, body

from leveret.ports.spark import job
from leveret.tools import cli, pipeline, pipeline_config
from leveret.tools.usage import UsageError

SEED = int(os.environ.get("LEVERET_SPARK_SEED", random.randrange(2**32)))
WINDOW_S = 10
RATE = 400


def options_of(stream, out, *more):
    return cli.make_parser("pipeline").parse_args(
        ["pipeline", "--source", stream.url, "--stream", stream.name, "--out", str(out), "--window", str(WINDOW_S), *more]
    )


@pytest.fixture
def run_here(spark, capsys, monkeypatch):
    """run_here(stream, out): one run with --available-now in the tests' session: (exit status, summary, standard error)."""
    monkeypatch.setattr(pipeline, "start_spark", lambda *settings: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def run(stream, out, *more):
        capsys.readouterr()
        status = pipeline.run(options_of(stream, out, *(more or ("--available-now",))))
        told = capsys.readouterr()
        return status, json.loads(told.out) if told.out else None, told.err

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def tables_of(summary):
    """The tables as pandas sees them when it is given the whole folder; None where nothing is."""
    out = summary["files"]["raw"].partition("/raw/")[0]
    return {
        name: pandas.read_parquet(os.path.join(out, name)) if summary[name if name != "raw" else "readings"] else None
        for name in ("raw", "dead_letters", "alerts", "windows")
    }


def counts(rows_read, readings, duplicates, dead_letters, windows, late=0):
    """What a summary without files is when each message was one record."""
    return {
        "rows_read": rows_read,
        "records": rows_read,
        "readings": readings,
        "duplicates": duplicates,
        "dead_letters": dead_letters,
        "late": late,
        "alerts": 0,
        "lost": 0,
        "windows": windows,
        "removed": {},
    }


def windows_from(readings):
    """The windows as they must be, computed from (device, metric, sequence, time, value) in plain Python."""
    groups = collections.defaultdict(list)
    for device, metric, sequence, time_s, value in readings:
        groups[device, metric, int(time_s // WINDOW_S) * WINDOW_S].append((time_s, sequence, value))
    return {key: aggregate([row[2] for row in rows], max(rows)[2]) for key, rows in groups.items()}


def aggregate(values, last):
    return len(values), min(values), max(values), math.fsum(values) / len(values), last


def assert_windows(frame, readings):
    found = {(row.device, row.metric, int(row.window_start.timestamp())): row for row in frame.itertuples()}
    wanted = windows_from(readings)
    assert found.keys() == wanted.keys()
    for key, (count, least, most, mean, last) in wanted.items():
        row = found[key]
        assert (row.count_, row.min, row.max, row.last) == (count, least, most, last) and math.isclose(row.mean, mean, rel_tol=1e-12)
        assert int(row.window_end.timestamp()) == key[2] + WINDOW_S


def test_readings_doubles_and_dead_letters_are_each_where_they_belong(run_here, broker, make_stream, tmp_path):
    stream = make_stream(broker)
    good = [("kiln", "temperature", number, TIME_S + number, number / 4) for number in range(40)]
    good += [("fan", "speed", number, TIME_S - 5000 * number, float(number % 7)) for number in range(40)]
    late = ("fan", "speed", 40, TIME_S - 40_000_000, 3.0)
    bad = [
        b"",
        b"{",
        b"\xff",
        body("kiln", "temperature", 5, value=float("nan")),
        body("kiln", "temperature", -1),
        body("", "temperature", 1),
        body("kiln", "temperature", 6, time_s=12),
    ]
    stream.publish([body(*reading) for reading in good])
    stream.publish(bad)
    stream.publish([body(*reading) for reading in good[:15]])
    status, summary, _ = run_here(stream, tmp_path)
    assert status == 0
    stream.publish([body(*reading) for reading in good[10:20]] + [body(*late)] * 2 + [b"later"])
    status, summary, _ = run_here(stream, tmp_path)
    assert status == 0
    tables = tables_of(summary)
    del summary["files"]
    readings = good + [late]
    assert summary == counts(115, 81, 26, 8, len(windows_from(good)), late=1)  # its window was closed when it came
    raw = tables["raw"]
    found = sorted(zip(raw.device, raw.metric, raw.sequence, (moment.timestamp() for moment in raw.time), raw.value))
    assert found == sorted(readings)
    assert_windows(tables["windows"].rename(columns={"count": "count_"}), good)
    dead = tables["dead_letters"].sort_values("offset")
    assert list(dead.offset) == list(range(80, 87)) + [114] and list(dead.payload) == bad + [b"later"]
    assert list(dead.reason) == [
        "not JSON",
        "not JSON",
        "not UTF-8",
        "value is not finite",
        "sequence is not a whole number from 0 to 2^63 - 1",
        "device is empty or longer than 255 octets",
        "time is before the year 2000",
        "not JSON",
    ]
    assert set(dead.routing_key) == {stream.name}


def test_an_empty_stream_is_a_summary_of_zeros(run_here, leveret, make_stream, tmp_path):
    status, summary, _ = run_here(make_stream(leveret), tmp_path)
    files = summary.pop("files")
    assert status == 0 and summary == counts(0, 0, 0, 0, 0)
    assert len(pandas.read_parquet(files["windows"])) == 0


def test_a_double_is_recognised_as_far_back_as_the_watermark_says_and_then_forgotten(run_here, leveret, make_stream, tmp_path):
    stream = make_stream(leveret)
    for first, end in ((0, 100), (100, 300), (290, 300), (0, 1)):
        stream.readings(first, end)
        status, summary, _ = run_here(stream, tmp_path, "--available-now", "--watermark", "140")
        assert status == 0
    assert (summary["readings"], summary["duplicates"]) == (301, 10)


def test_data_loss_ends_the_pipeline_with_one_sentence_that_names_the_offsets(run_here, leveret, make_stream, tmp_path):
    stream = make_stream(leveret, **{"x-max-length-bytes": 20_000})
    stream.readings(0, 10)
    assert run_here(stream, tmp_path)[0] == 0
    stream.readings(10, 3000)
    status, summary, error = run_here(stream, tmp_path)
    assert (status, summary) == (1, None)
    assert error.splitlines()[-1].startswith(f"leveret pipeline: stream '{stream.name}': offsets 10 to ") and "are gone" in error


def test_a_batch_that_comes_when_the_query_is_to_be_stopped_is_done_by_the_next_run(run_here, leveret, make_stream, tmp_path, monkeypatch):
    stream = make_stream(leveret)
    stream.readings(0, 20)
    with monkeypatch.context() as patch:
        patch.setattr(job.BatchWriter, "begin", job.BatchWriter.end)
        status, summary, error = run_here(stream, tmp_path)
    assert (status, summary) == (1, None) and "the query is being stopped" in error
    assert (tmp_path / "_checkpoint" / "offsets" / "0").exists() and not list((tmp_path / "_batches").iterdir())
    status, summary, _ = run_here(stream, tmp_path)
    assert (status, summary["readings"], summary["duplicates"]) == (0, 20, 0)


def test_an_endless_run_keeps_its_windows_fresh_and_ends_in_order_on_sigterm(run_here, leveret, make_stream, tmp_path):
    stream = make_stream(leveret)
    stream.readings(0, 200)

    def end_it():
        while not list(tmp_path.glob("_batches/*.json")) or not (tmp_path / "windows" / "windows.parquet").exists():
            time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_it, daemon=True).start()
    status, summary, error = run_here(stream, tmp_path, "--watermark", "1000")
    assert (status, summary["readings"]) == (0, 200)
    assert re.search(
        r"^pipeline: batch 0: 200 rows read, 200 readings, 0 duplicates, 0 dead letters, 0 late, 0 alerts; 0 behind; "
        r"\d+ rows/s, batch of 200 in \d+\.\d s$",
        error,
        re.MULTILINE,
    ), error


def test_a_bounded_run_takes_all_that_came_while_it_ran(run_here, leveret, make_stream, tmp_path):
    stream = make_stream(leveret)
    publisher = Publisher(stream, random.Random(SEED))
    publisher.start()
    threading.Timer(2, publisher.end).start()
    status, summary, _ = run_here(stream, tmp_path, "--seconds", "3")
    publisher.end()
    assert status == 0 and len(publisher.readings) > RATE
    assert (summary["readings"], summary["duplicates"], summary["dead_letters"]) == (
        len(publisher.readings),
        publisher.duplicates,
        publisher.bad,
    )


def test_two_pipelines_do_not_write_one_folder(tmp_path):
    plan = pipeline_config.Plan(pipeline_config.DEFAULTS)
    plan.out = str(tmp_path)
    first = pipeline.open_tables(plan)
    with pytest.raises(UsageError, match="another pipeline is writing"):
        pipeline.open_tables(plan)
    first.close()
    pipeline.open_tables(plan).close()


def test_without_java_it_is_one_sentence_with_the_command_and_status_3(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "leveret.tools.cli", "pipeline", "--out", str(tmp_path / "out"), "--available-now"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
    )
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr == f"leveret pipeline: {pipeline.NO_JAVA}\n" and "apt-get install" in ended.stderr


@pytest.mark.parametrize("source", ["http://host", "127.0.0.1:5672", "amqp://", "amqp://host:port"])
def test_a_source_that_is_no_url_is_refused_before_anything_starts(source, tmp_path):
    with pytest.raises(UsageError, match="--source"):
        pipeline.run(cli.make_parser("pipeline").parse_args(["pipeline", "--source", source, "--out", str(tmp_path / "out")]))
    assert not (tmp_path / "out").exists()


def test_a_command_line_means_the_same_job_as_a_file_that_says_as_much(tmp_path):
    path = tmp_path / "pipeline.toml"
    path.write_text(f'out = "{tmp_path}/out"\n[source]\nurl = "amqp://h:1"\nstreams = "s"\n')
    arguments = ["--source", "amqp://h:1", "--stream", "s", "--out", f"{tmp_path}/out"], ["--config", str(path)]
    plans = [pipeline_config.of_arguments(cli.make_parser("pipeline").parse_args(["pipeline", "run", *given])) for given in arguments]
    assert vars(plans[0]) == vars(plans[1])
    assert (plans[0].by, plans[0].detector) == ("gateway", True)


def test_what_a_bridge_brings_is_readings_with_the_commands_defaults(run_here, leveret, make_stream, tmp_path):
    """Bare numbers and readings without a sequence of their own, as sensors send them: the bridge's headers number them."""
    stream = make_stream(leveret)
    for number in range(24):
        stream.publish(
            [b'{"device":"kiln","metric":"t","time":%d,"value":21.5}' % (TIME_S + number)],
            headers={"x-gateway": "gw7", "x-sequence": number},
        )
        stream.publish(
            [b"21.5"], headers={"x-gateway": "gw8", "x-sequence": number}, content_type="text/plain", timestamp=int(TIME_S) + number
        )
    status, summary, _ = run_here(stream, tmp_path)
    assert (status, summary["readings"], summary["dead_letters"]) == (0, 48, 0)


def test_a_doubled_piece_of_garbage_is_one_dead_letter(run_here, leveret, make_stream, tmp_path):
    """By its gateway's number, as a reading; what has no number cannot be told from another of the same octets."""
    stream = make_stream(leveret)
    for number in (1, 2, 1):
        stream.publish([b"garbage"], headers={"x-gateway": "gw7", "x-sequence": number})
    stream.publish([b"garbage"] * 2)
    status, summary, _ = run_here(stream, tmp_path)
    assert (status, summary["dead_letters"], summary["duplicates"], summary["readings"]) == (0, 4, 1, 0)


def test_the_archive_is_all_of_leveret_that_spark_needs(tmp_path):
    """In a Python that finds the packages of `.[spark]`, but no leveret: neither installed nor in the place where it is built."""
    archive, launcher = pipeline.write_submission(str(tmp_path))
    needed = (
        "import sys; sys.path[:0] = sys.argv[1:]; import leveret.ports.spark.job, leveret.ports.spark.alerts; "
        "import leveret.ports.spark.queue_source, leveret.tools.cli as cli; print(cli.__file__)"
    )
    packages = os.path.dirname(os.path.dirname(pandas.__file__))
    done = subprocess.run([sys.executable, "-S", "-I", "-c", needed, archive, packages], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(archive)
    compile(open(launcher, encoding="utf-8").read(), launcher, "exec")


def test_the_password_leaves_the_url():
    assert pipeline_config.split_source("amqp://me:p%40ss@broker:1234/farm") == ("amqp://me@broker:1234/farm", "p@ss")
    assert pipeline_config.split_source("amqp://[::1]") == ("amqp://[::1]:5672", None)


class Publisher(threading.Thread):
    """Publishes RATE messages a second until told to end: mostly readings, some of them again, some that are none. Keeps count of each."""

    def __init__(self, stream, chance):
        super().__init__()
        self._stream = stream
        self._chance = chance
        self._ending = threading.Event()
        self.readings = []
        self.duplicates = self.bad = 0

    def run(self):
        while not self._ending.wait(0.1):
            self._stream.publish([self._next() for _ in range(RATE // 10)])

    def end(self):
        self._ending.set()
        self.join()

    def _next(self):
        kind = self._chance.random()
        if kind < 0.02:
            self.bad += 1
            return b"bad %d" % self.bad
        if kind < 0.1 and self.readings:
            self.duplicates += 1
            return body(*self._chance.choice(self.readings))
        sequence = len(self.readings)
        self.readings.append((f"device-{sequence % 5}", "temperature", sequence, TIME_S + sequence / 8, sequence / 4))
        return body(*self.readings[-1])
