"""What `leveret pipeline run` makes of Spark's errors, without Spark: which are final, and what the user is told."""
from leveret.tools import pipeline

BUSY = """[STREAM_FAILED] Query [id = 2, runId = 3] terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 2, runId = 3]
Current State: INITIALIZING"""
AWAY = """[STREAM_FAILED] Query [id = 1] terminated with exception:
Traceback (most recent call last):
leveret.ports.spark.stream_client.StreamUnavailable: no broker answers at 127.0.0.1:1"""
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
    for text in (BUSY, AWAY):
        run = object.__new__(pipeline.Run)
        run._job, run._tables, run._stopping = Job, Tables, False
        run._start = lambda text=text: fail(text)
        try:
            run._keep_on({}, None)
            raise AssertionError("it must give up")
        except Failed:
            pass
    most = pipeline.FAILURES_MAX
    assert paused == [10 * number for number in range(1, most + 1)] + list(range(1, most + 1))


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
