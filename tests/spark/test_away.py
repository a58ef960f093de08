"""A broker that is away ends no job that has no end: it is waited for, said so, and nothing is missing afterwards."""

import json
import signal
import subprocess
import sys
import time

import brokers
from telemetry import Stream

PATIENCE_S = 180  # of this test; the job waits without an end


def await_line(process, words):
    """Read the process's standard error up to a line with these words. The test's own time-out ends a process that says nothing."""
    for line in process.stderr:
        if words in line:
            return line
    raise AssertionError(f"it ended without saying {words!r}")


def test_a_job_goes_on_when_its_broker_is_back_and_ends_in_order(java, tmp_path):
    port, kept = brokers.free_port(), ("--data", str(tmp_path / "data"))
    broker = brokers.start_leveret(port, kept)
    stream = Stream(broker, "telemetry")
    stream.readings(0, 50)
    job = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "leveret.tools.cli",
            "pipeline",
            "run",
            "--source",
            broker.url,
            "--stream",
            stream.name,
            "--out",
            str(tmp_path / "out"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert "50 readings" in await_line(job, "50 rows read")
        broker.end()
        assert f"127.0.0.1:{port}" in await_line(job, "it is asked again")
        assert job.poll() is None
        broker = brokers.start_leveret(port, kept)
        stream = Stream(broker, "telemetry")
        stream.readings(50, 80)
        assert "80 readings" in await_line(job, "80 rows read")
        job.send_signal(signal.SIGTERM)
        told, _ = job.communicate(timeout=PATIENCE_S)
        summary = json.loads(told)
        assert (job.returncode, summary["readings"], summary["duplicates"], summary["lost"]) == (0, 80, 0, 0)
    finally:
        job.kill()
        job.communicate()
        broker.end()


def test_a_run_with_an_end_gives_up_after_the_patience_of_its_file(java, tmp_path):
    path = tmp_path / "pipeline.toml"
    path.write_text(f'out = "{tmp_path}/out"\n[source]\nurl = "amqp://127.0.0.1:1"\nstreams = "s"\npatience_s = 1\n')
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "leveret.tools.cli", "pipeline", "run", "--config", str(path), "--available-now"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1 and "127.0.0.1:1" in done.stderr.splitlines()[-1], done.stderr
    assert time.monotonic() - began < PATIENCE_S and "Traceback" not in done.stderr
