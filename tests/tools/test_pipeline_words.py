"""What `leveret pipeline run` makes of Spark's errors, without Spark: which are final, and what the user is told."""

from leveret.tools import pipeline

BUSY = """[STREAM_FAILED] Query [id = 2, runId = 3] terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 2, runId = 3]
Current State: INITIALIZING"""
AWAY = """[STREAM_FAILED] Query [id = 1] terminated with exception:
Traceback (most recent call last):
leveret.ports.spark.stream_client.StreamUnavailable: no broker answers at 127.0.0.1:1"""
LOST = BUSY.replace("Python worker failed to connect back", "the executor is lost")
WRONG = AWAY.replace("StreamUnavailable: no broker answers at 127.0.0.1:1", "DataLoss: offset 3 is gone")


def test_a_machine_that_is_too_busy_is_one_sentence_and_not_final():
    told = pipeline.cause(Exception(BUSY))
    assert "too busy" in told and "\n" not in told and not pipeline.is_final(Exception(BUSY))


def test_the_source_s_own_sentence_is_what_is_told():
    assert pipeline.cause(Exception(AWAY)) == "no broker answers at 127.0.0.1:1" and not pipeline.is_final(Exception(AWAY))
    assert pipeline.cause(Exception(WRONG)) == "offset 3 is gone" and pipeline.is_final(Exception(WRONG))


def test_a_busy_machine_is_given_longer_pauses(monkeypatch):
    paused = []
    monkeypatch.setattr(pipeline.time, "sleep", paused.append)
    for text in (BUSY, LOST):
        give_up(run_that_fails(text))
    most = pipeline.FAILURES_MAX
    assert paused == [10 * number for number in range(1, most + 1)] + list(range(1, most + 1))


def test_a_broker_that_is_away_is_waited_for_as_long_as_patience_has_it(monkeypatch, capsys):
    clock = [1000.0]
    monkeypatch.setattr(pipeline.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(pipeline.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    give_up(run_that_fails(AWAY, patience_s=60))
    assert 1060 - pipeline.RETRY_S <= clock[0] <= 1060
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "pipeline: no broker answers at 127.0.0.1:1; away for 10 s, it is asked again" and len(told) >= 5


def test_patience_begins_anew_with_a_batch_and_0_is_without_end(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(pipeline.time, "monotonic", lambda: clock[0])
    away = pipeline.Away(60)
    for batch in (1, 2, 3):
        assert not away.over(batch)
        clock[0] += 45
        assert not away.over(batch)
    clock[0] += 10
    assert away.over(3)
    endless = pipeline.Away(0)
    assert not endless.over(1)
    clock[0] += 10**9
    assert not endless.over(1)


def test_a_signal_while_the_broker_is_away_ends_the_run_in_order(monkeypatch):
    run = run_that_fails(AWAY, patience_s=0)
    monkeypatch.setattr(pipeline.time, "sleep", lambda _: setattr(run, "_stopping", True))
    assert run._keep_on({}, None) is None


def run_that_fails(text, patience_s=0):
    """A Run whose every query ends with `text`."""
    run = object.__new__(pipeline.Run)
    run._job, run._tables, run._stopping, run._checked, run._patience_s = Job, Tables, False, -1, patience_s
    run._start = lambda: fail(text)
    return run


def give_up(run):
    try:
        run._keep_on({}, None)
    except Failed:
        return
    raise AssertionError("it must give up")


class Failed(Exception):
    """Stands for Spark's own."""


class Job:
    SPARK_ERRORS = (Failed,)


class Tables:
    @staticmethod
    def newest():
        return None


def fail(text):
    raise Failed(text)
