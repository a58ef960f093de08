"""`leveret pipeline run --config`: from SenML and JSON with gateway headers to every table; streaming and over files."""

import glob
import json
import math
import os

import pandas
import pyarrow.parquet
import pytest
from telemetry import TIME_S

from leveret.ports.client import connect
from leveret.ports.spark.detector import new_states, score_rows
from leveret.tools import cli, pipeline
from leveret.tools.usage import UsageError

LATENESS_S = 3600
SOURCE = "[source]\nurl = 'amqp://h'\nstreams = 's'\n"


def config_of(folder, **sections):
    """A configuration file of these sections, and `out` in the folder: its path."""
    lines = [f'out = "{folder}/out"']
    for section, keys in sections.items():
        lines.append(f"[{section.replace('__', '.')}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    path = folder / "pipeline.toml"
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture
def run(spark, capsys, monkeypatch):
    """run(config, ...): one run with --available-now in the tests' session: its summary."""
    monkeypatch.setattr(pipeline, "start_spark", lambda *settings: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)

    def run(config, *more):
        capsys.readouterr()
        status = pipeline.run(cli.make_parser("pipeline").parse_args(["pipeline", "run", "--config", config, *more]))
        told = capsys.readouterr()
        assert status == 0, told.err
        return json.loads(told.out)

    return run


def table(summary, name):
    folder = summary["files"]["raw"].partition("/raw/")[0]
    return pandas.read_parquet(os.path.join(folder, name))


def series(device, count):
    """(device, second, value): a daily curve every five minutes with one jump far out of it near the end."""
    return [
        (device, number * 300, 20 + 5 * math.sin(number / 288 * 2 * math.pi) + (number * 7 % 11) / 10 + (40 if number == count - 5 else 0))
        for number in range(count)
    ]


def test_senml_with_gateway_headers_to_every_table_and_to_the_alert_queue(run, leveret, make_stream, tmp_path):
    stream, other = make_stream(leveret), make_stream(leveret)
    alerts = connect(leveret.url)
    alerts.queue_declare("alarms", durable=True)
    readings = series("kiln", 600)
    packs = [
        [{"bn": "kiln/", "bt": TIME_S, "bu": "degF", "n": "temperature", "t": second, "v": value * 1.8 + 32} for _, second, value in part]
        for part in (readings[start : start + 20] for start in range(0, 600, 20))
    ]
    for number, pack in enumerate(packs):
        for _ in range(1 + (number % 10 == 0)):  # every tenth twice, as after a lost confirm
            stream.publish(
                [json.dumps(pack).encode()], content_type="application/senml+json", headers={"x-gateway": "north", "x-sequence": number}
            )
    other.publish([b"5 degrees", b'[{"n":"kiln/temperature","u":"Cel","v":9000,"t":%d}]' % TIME_S])
    config = config_of(
        tmp_path,
        source={"url": leveret.url, "streams": [stream.name, other.name]},
        windows={"length_s": 600, "lateness_s": LATENESS_S},
        metrics__temperature={"unit": "Cel", "max": 1000},
        alerts={"url": leveret.url, "routing_key": "alarms"},
    )
    summary = run(config, "--available-now")
    assert {name: summary[name] for name in ("rows_read", "records", "readings", "duplicates", "dead_letters", "late", "windows")} == {
        "rows_read": 35,
        "records": 662,
        "readings": 600,
        "duplicates": 60,
        "dead_letters": 2,
        "late": 0,
        "windows": 300,
    }
    raw = table(summary, "raw").sort_values("time")
    assert set(raw.gateway.astype(str)) == {"north"} and set(raw.unit) == {"Cel"} and raw.score.between(0, 1).all()
    assert [round(value, 6) for value in raw.value] == [round(value, 6) for _, _, value in readings]
    seconds = [moment.timestamp() for moment in raw.time]
    assert list(raw.score) == list(score_rows(new_states(1), [0] * len(raw), seconds, raw.value)), "Spark scores otherwise"
    assert len(glob.glob(f"{tmp_path}/out/raw/date=2023-11-1*/gateway=north/*.parquet")) >= 2
    assert sorted(table(summary, "dead_letters").reason) == ["not JSON", "temperature is 9000, outside  to 1000"]
    windows = table(summary, "windows").sort_values("window_start").rename(columns={"count": "readings"})
    for row, pair in zip(windows.itertuples(), zip(readings[::2], readings[1::2])):
        values = [value for _, _, value in pair]
        assert (row.readings, row.gateway, row.device) == (2, "north", "kiln")
        spread = abs(values[0] - values[1]) / 2
        assert math.isclose(row.mean, sum(values) / 2, rel_tol=1e-9) and math.isclose(row.stddev, spread, abs_tol=1e-9)
        document, wanted = (row.min, row.max, row.last), (min(values), max(values), values[1])
        assert [round(value, 6) for value in document] == [round(value, 6) for value in wanted]
    document = []
    while (message := alerts.get("alarms", no_ack=True)) is not None:
        document.append(json.loads(message.body))
    assert len(document) == summary["alerts"] == (raw.score >= 0.5).sum() >= 1
    assert any(alert["time"] == TIME_S + 595 * 300 and alert["gateway"] == "north" for alert in document)
    late_comes_and_is_counted(run, config, stream, summary)
    alerts.queue_delete("alarms")
    alerts.close()


def late_comes_and_is_counted(run, config, stream, before):
    """A reading for a closed window is in raw and not in the windows; one within the lateness changes its window."""
    for number, second in ((1000, 0), (1001, 599 * 300 - LATENESS_S // 2)):
        body = b'[{"n":"kiln/temperature","v":1,"t":%d}]' % (TIME_S + second)
        stream.publish([body], headers={"x-gateway": "north", "x-sequence": number})
    after = run(config, "--available-now")
    assert (after["readings"], after["late"], after["windows"]) == (before["readings"] + 2, 1, before["windows"])
    assert table(after, "windows")["count"].sum() == after["readings"] - 1
    assert pyarrow.parquet.read_table(glob.glob(after["files"]["windows"].replace("*", "closed-*"))[0]).num_rows > 250


def test_the_same_job_over_old_files_gives_what_streaming_gave(run, leveret, make_stream, tmp_path):
    bodies = [
        json.dumps({"device": device, "metric": "speed", "sequence": second, "time": TIME_S + second, "value": value}).encode()
        for device in ("a", "b")
        for _, second, value in series(device, 300)
    ]
    stream = make_stream(leveret)
    stream.publish(bodies + bodies[:50] + [b"no reading"])
    streamed, filed = tmp_path / "streamed", tmp_path / "filed"
    streamed.mkdir()
    filed.mkdir()
    first = run(config_of(streamed, source={"url": leveret.url, "streams": stream.name}), "--available-now")
    (filed / "old.jsonl").write_bytes(b"\n".join(bodies + bodies[:50] + [b"no reading"]))
    config = config_of(filed, source={"files": str(filed / "*.jsonl")})
    second = run(config)
    assert run(config) == second
    for name in ("rows_read", "readings", "duplicates", "dead_letters", "alerts", "windows"):
        assert first[name] == second[name], name
    columns = ["device", "time", "value", "score"]
    left, right = (table(summary, "raw")[columns].sort_values(["device", "time"]).reset_index(drop=True) for summary in (first, second))
    pandas.testing.assert_frame_equal(left, right)


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("x = 1", "there is no setting 'x'"),
        ("[source]\nurl = 'amqp://h'", "needs url and streams, or files"),
        ("[source]\nfile = 'x'", "no setting 'file'"),
        ("[source]\nfiles = []", "source.files must be a text or a list of texts"),
        ("[metrics.t]\nunits = 'C'", "has no setting 'units'"),
        ("[decode]\nformat = 'xml'", "decode.format is one of auto, json"),
        ("[windows]\nlength_s = 0", "windows.length_s must be a whole number"),
        ("[alerts]\nurl = 'amqp://h'", "needs url and routing_key"),
        ("a b", "is not TOML"),
        ("[detector]\nenabled = 1", "must be true or false"),
        ("source = 1", "source is a table, written"),
        ("out = ''", "out must be a text that is not empty"),
        ("keep_days = 0", "keep_days must be a whole number from 1"),
        (SOURCE + "keep_days = 1", "source.* has no setting 'keep_days'"),
        ("keep_days = 9\n[windows]\nlateness_s = 0\n" + SOURCE, "keep_days needs windows that close"),
        ("[detector]\nenabled = true", "has no .source., and there is no --source"),
        ("[windows]\nlateness_s = -1", "windows.lateness_s must be a number from 0"),
        ("[detector]\nalarm = nan", "detector.alarm must be a number above 0, at most 1"),
        ("[detector]\nalarm = 1.5", "detector.alarm must be a number above 0, at most 1"),
        ("[spark]\ntrigger_s = -0.5", "spark.trigger_s must be a number from 0"),
        ("[spark]\ntrigger_s = '1'", "spark.trigger_s must be a number from 0"),
        ("[spark]\nmaster = 'here'\n" + SOURCE, "the Spark master is local.N., spark://HOST:PORT, .* not 'here'"),
        ("[spark]\nmaster = 'local[0]'\n" + SOURCE, "the Spark master is"),
        ("[spark.settings]\nspark.driver.memory = '2g'", "names in quotes"),
        ("[metrics.t]\nmin = 5\nmax = 4\n" + SOURCE, "metrics.t.min is above its max"),
        ("metrics = { t = 1 }", "metrics.t must be a table"),
        ("[metrics.t]\nmax = inf", "metrics.t.max must be a number"),
        ("[doubles]\nby = 'time'", "doubles.by is one of gateway, reading"),
        ("[doubles]\nwatermark = 1.5", "doubles.watermark must be a whole number from 1"),
        ("[source]\nfiles = 'x'\nurl = 'amqp://h'", "has files or url and streams, not both"),
        (SOURCE + "starting_offsets = 'yesterday'", "source.: startingOffsets is earliest, latest, a number or a time"),
        ("[source]\nurl = 'amqp://u:p@h'\nstreams = 's'", "source.: no password in the url"),
        ("[source]\nurl = 'http://h'\nstreams = 's'", "source.: option url must be amqp"),
        ("[source]\nurl = 'amqp://u@h'\nstreams = 's'", "source.: user u needs passwordEnv or passwordFile"),
        ("[source]\nurl = 'amqp://h'\nstreams = ['s', 's']", "source.: a stream or a broker is named twice"),
        (SOURCE + "password_env = 'A'\npassword_file = 'b'", "source.: either passwordEnv or passwordFile, not both"),
        (SOURCE + "max_rows_per_trigger = 0", "source.max_rows_per_trigger must be a whole number from 1"),
        (SOURCE + "[alerts]\nurl = 'amqp://h,amqp://i'\nrouting_key = 'k'", "alerts.: the sink writes to one broker"),
        (SOURCE + "[alerts]\nurl = 'h:1'\nrouting_key = 'k'", "alerts.: option url must be amqp"),
        (SOURCE + "[alerts]\nurl = 'amqp://h'\nrouting_key = 'k'\nkey = 1", "alerts. has no setting 'key'"),
    ],
)
def test_a_mistake_in_the_configuration_is_one_sentence_before_anything_starts(text, sentence, tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline, "java_version", lambda: pipeline.JAVA_OLDEST)
    path = tmp_path / "pipeline.toml"
    path.write_text(text)
    options = cli.make_parser("pipeline").parse_args(["pipeline", "run", "--config", str(path), "--out", str(tmp_path / "out")])
    with pytest.raises(UsageError, match=sentence) as refusal:
        pipeline.run(options)
    assert "\n" not in str(refusal.value) and not (tmp_path / "out").exists()
