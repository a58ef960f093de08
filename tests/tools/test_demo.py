"""The demo fails on any loss or double, says what was left out, and leaves no process behind. Real processes; without Java, to be quick.

The whole way with Spark is what `dev.py demo` runs; here faults are put in from outside while it runs.
"""

import os
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

from leveret.ports.client import connect


class RunningDemo:
    """`python -m leveret.tools.demo` with a Java that is not there."""

    def __init__(self, directory, *arguments):
        self.directory = directory
        environment = {**os.environ, "JAVA_HOME": "/there/is/no/java", "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "leveret.tools.demo", "--keep", str(directory), *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        self.told = ""

    def wait_for(self, words):
        while words not in self.told:
            line = self.process.stdout.readline()
            assert line, self.told
            self.told += line
        return self.told

    def gateway(self):
        """A connection to its gateway, when the sensors have begun."""
        self.wait_for("sensors: ")
        return connect(re.search(r"gateway broker: (amqp://\S+)", self.told).group(1))

    def end(self):
        """(exit status, everything it said)."""
        self.told += self.process.communicate(timeout=90)[0]
        return self.process.returncode, self.told


@pytest.fixture
def demo(tmp_path):
    started = []

    def start(*arguments):
        started.append(RunningDemo(tmp_path / "files", *arguments))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            running.process.terminate()
            running.process.communicate(timeout=120)


def publish(connection, message_id):
    connection.publish("sensors", "machine.cpu_percent", b"{}", {"message_id": message_id, "delivery_mode": 2}, mandatory=True)


def test_without_java_everything_else_runs_and_the_verdict_says_so(demo):
    status, told = demo("--seconds", "2").end()
    assert status == 0, told
    published = int(re.search(r"VERDICT: passed, (\d+) readings at every stage", told).group(1))
    assert published >= 40 and "the Spark stage was left out (Java 17 or newer is missing)" in told
    assert "sudo apt-get install -y openjdk-17-jre-headless" in told


def test_a_recorded_series_is_replayed_whole(demo, tmp_path):
    path = tmp_path / "boiler.csv"
    path.write_text(
        "timestamp,value\n"
        + "".join(f"2020-01-01 {hour:02}:{minute:02}:00,{hour}.{minute}\n" for hour in range(24) for minute in range(60))
    )
    status, told = demo("--seconds", "2", "--csv", str(path)).end()
    assert status == 0 and re.search(r"sensor boiler +published +1440 ", told), told


def test_a_reading_that_comes_twice_makes_it_fail(demo):
    running = demo("--seconds", "3")
    connection = running.gateway()
    publish(connection, "machine/cpu_percent/1")
    connection.close()
    status, told = running.end()
    assert status == 1 and "VERDICT: FAILED" in told and "1 doubled, as machine/cpu_percent/1" in told, told


def test_a_message_that_no_sensor_sent_makes_it_fail(demo):
    running = demo("--seconds", "3")
    connection = running.gateway()
    publish(connection, "nobody/knows/1")
    connection.close()
    status, told = running.end()
    assert status == 1 and "1 there though never published, as nobody/knows/1" in told, told


def test_a_reading_that_is_lost_makes_it_fail(demo):
    running = demo("--seconds", "4")
    connection = running.gateway()
    connection.consume("uplink", no_ack=True)  # takes its turn beside the bridge, and what it takes is gone
    limit = time.monotonic() + 60
    taken = []
    while not taken and time.monotonic() < limit:
        taken = connection.poll(500)
    connection.close()
    assert taken, "the gateway gave us no message"
    status, told = running.end()
    assert status == 1 and re.search(r"the upstream stream: \d+ lost, as \w+/\w+/\d+", told), told


def test_a_broker_that_dies_makes_it_fail_with_the_log_named(demo):
    running = demo("--seconds", "30")
    running.wait_for("sensors: ")
    gateway = next(child for child in psutil.Process(running.process.pid).children() if "serial://" in " ".join(child.cmdline()))
    gateway.kill()
    status, told = running.end()
    assert status == 1 and "VERDICT: FAILED, gateway ended with exit status -9" in told and "gateway.err)" in told, told
    assert (running.directory / "gateway.err").exists()


@pytest.mark.parametrize("number, expected", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_no_process_is_left_behind(demo, number, expected):
    running = demo("--seconds", "30")
    running.wait_for("sensors: ")
    limit = time.monotonic() + 30
    while len(children := psutil.Process(running.process.pid).children(recursive=True)) < 5 and time.monotonic() < limit:
        time.sleep(0.05)
    assert len(children) == 5, children  # two brokers, the bridge, two sensors
    running.process.send_signal(number)
    status, told = running.end()
    assert status == expected and "Traceback" not in told, told
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
