"""kill -9 of the driver, of a Python worker and of the broker, again and again, under `leveret pipeline run` on one folder.

    python tests/spark/kills.py --times 100 [--seed N] [--minutes N]     # after N minutes no more kills, but the comparison

A publisher sends readings with x-gateway and x-sequence, and sends again what was not confirmed when the broker died: doubles are meant
to be there. In the end: every reading is in raw exactly once, the windows are those computed from what was published, the scores are those
of the detector over all of each series in one go, and each alarm is one message in the alert queue.
"""

import argparse
import collections
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy
import pandas
import psutil
from brokers import free_port
from telemetry import TIME_S

from leveret.ports.client import ClientError, connect
from leveret.ports.spark.detector import new_states, score_rows

WINDOW_S = 10
RATE = 400
DEVICES = 5
STEP_S = 1 / 8
FINISH_S = 900
LAUNCH = """
import sys
from leveret.ports.spark import compaction
from leveret.tools import cli, pipeline
compaction.FILES, pipeline.WINDOWS_EVERY_S = 5, 2  # small files are merged in the time between two kills
sys.exit(cli.main(["pipeline", "run"] + sys.argv[1:]))
"""
VICTIMS = ("driver", "worker", "broker")
STREAM, ALARMS, GATEWAY = "readings", "alarms", "north"


class Broker:
    """`leveret serve --data` on one port and folder, killed and started again."""

    def __init__(self, folder):
        self._folder, self.port = folder, free_port()
        self.url = f"amqp://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", self.url, "--data", self._folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        told = self._process.stdout.readline()
        assert told.startswith("ready"), "leveret serve did not start"

    def kill(self):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()


class Publisher(threading.Thread):
    """Publishes RATE readings a second in blocks, each until it is confirmed. `readings`: (device, sequence, time, value)."""

    def __init__(self, url, chance):
        super().__init__(daemon=True)
        self._url, self._chance = url, chance
        self._ending = threading.Event()
        self._connection = None
        self.readings, self.again = [], 0

    def run(self):
        while not self._ending.wait(0.1):
            block = [self._next() for _ in range(RATE // 10)]
            while not self._publish(block):
                self.again += 1
                time.sleep(0.2)
        self._connection.close()

    def end(self):
        self._ending.set()
        self.join()

    def _next(self):
        number = len(self.readings)
        value = 20 + math.sin(number / 500) + self._chance.random() + (50 if self._chance.random() < 0.001 else 0)
        self.readings.append((f"device-{number % DEVICES}", number, TIME_S + number * STEP_S, value))
        return self.readings[-1]

    def _publish(self, block):
        try:
            if self._connection is None:
                self._connection = connect(self._url)
            for device, number, time_s, value in block:
                body = json.dumps({"device": device, "metric": "temperature", "sequence": number, "time": time_s, "value": value}).encode()
                self._connection.publish(
                    "",
                    STREAM,
                    body,
                    {
                        "delivery_mode": 2,
                        "content_type": "application/json",
                        "headers": {"x-gateway": GATEWAY, "x-sequence": ("l", number)},
                    },
                    confirm=False,
                )
            self._connection.wait_confirmed()
            return True
        except ClientError:
            self._connection = None
            return False


class Driver:
    """`leveret pipeline run` as a process group of its own."""

    def __init__(self, config, out, *more):
        self._out = out
        self._log = open(f"{out}.log", "a+", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, "--config", config, *more],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )

    def newest(self):
        """The number of the newest batch that is done, -1 before the first."""
        try:
            return max((int(name[:8]) for name in os.listdir(f"{self._out}/_batches") if name.endswith(".json")), default=-1)
        except FileNotFoundError:
            return -1

    def wait_for_batch(self, number):
        """Until a batch after `number` is done; raises when the driver ends before, or takes FINISH_S."""
        until = time.monotonic() + FINISH_S
        while self.newest() <= number:
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"the driver ended with {self.process.poll()}, or is stuck:\n{self.told()}")
            time.sleep(0.02)

    def workers(self):
        """The Python processes under the driver's Java."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        return [one for one in below if one.is_running() and "python" in one.name().lower()]

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self._log.close()

    def summary(self):
        told, _ = self.process.communicate(timeout=FINISH_S)
        assert self.process.returncode == 0, self.told()
        return json.loads(told)

    def told(self):
        self._log.seek(0)
        return self._log.read()[-3000:]


def kill_worker(driver, chance):
    """kill -9 of one of the Python workers. Says which."""
    workers = driver.workers()
    if not workers:
        return "worker: there was none"
    victim = chance.choice(workers)
    try:
        shown = " ".join(victim.cmdline()[-2:])
        os.kill(victim.pid, signal.SIGKILL)
    except (psutil.NoSuchProcess, ProcessLookupError):
        return "worker: it had ended"
    return f"worker {shown}"


def run(times, seed, folder, say=print, seconds=math.inf):
    """
    The whole run; no kill after `seconds`. Returns the summary of the last driver; raises AssertionError for anything that is not as it
    must be.
    """
    chance = random.Random(seed)
    broker = Broker(f"{folder}/broker")
    admin = connect(broker.url)
    admin.queue_declare(STREAM, durable=True, arguments={"x-queue-type": "stream"})
    admin.queue_declare(ALARMS, durable=True)
    admin.close()
    config, out = f"{folder}/pipeline.toml", f"{folder}/out"
    with open(config, "w", encoding="utf-8") as file:
        file.write(
            f'out = "{out}"\n[source]\nurl = "{broker.url}"\nstreams = "{STREAM}"\n[windows]\nlength_s = {WINDOW_S}\n'
            f'[spark]\nmaster = "local[2]"\ntrigger_s = 0.3\n[alerts]\nurl = "{broker.url}"\nrouting_key = "{ALARMS}"\n'
        )
    publisher = Publisher(broker.url, chance)
    publisher.start()
    driver, until = Driver(config, out), time.monotonic() + seconds
    try:
        for number in range(times):
            if time.monotonic() > until:
                break
            driver.wait_for_batch(driver.newest())
            time.sleep(chance.random())
            victim = VICTIMS[number % 3] if number < 3 else chance.choice(VICTIMS)
            told = victim
            if victim == "worker":
                told = kill_worker(driver, chance)
            elif victim == "broker":
                broker.kill()
                time.sleep(chance.random() * 2)
                broker.start()
            else:
                driver.kill()
                driver = Driver(config, out)
            say(f"kill {number + 1}: {told}; {driver.newest() + 1} batches done, {len(publisher.readings)} readings published")
        driver.wait_for_batch(driver.newest())
        publisher.end()
        driver.kill()
        driver = Driver(config, out, "--available-now")
        summary = driver.summary()
        check(summary, publisher.readings, broker.url, out)
        return dict(summary, published=len(publisher.readings), blocks_sent_again=publisher.again)
    finally:
        if driver.process.poll() is None:
            driver.kill()
        broker.kill()


def check(summary, readings, url, out):
    """Compares the tables and the alert queue with what was published."""
    assert summary["readings"] == len(readings) and summary["dead_letters"] == summary["late"] == 0, summary
    raw = pandas.read_parquet(f"{out}/raw")
    found = sorted(zip(raw.device, raw.sequence, raw.value))
    assert found == sorted((device, number, value) for device, number, _, value in readings), "raw is not what was published"
    windows = pandas.read_parquet(f"{out}/windows")
    groups = collections.defaultdict(list)
    for device, _, time_s, value in readings:
        groups[device, int(time_s // WINDOW_S) * WINDOW_S].append(value)
    told = {
        (device, int(start.timestamp())): each
        for device, start, *each in zip(
            windows.device, windows.window_start, windows["count"], windows["min"], windows["max"], windows["mean"]
        )
    }
    assert told.keys() == groups.keys(), "there are other windows than there must be"
    for key, values in groups.items():
        count, least, most, mean = told[key]
        assert (count, least, most) == (len(values), min(values), max(values)), key
        assert math.isclose(mean, math.fsum(values) / len(values), rel_tol=1e-9), key
    check_scores(raw, readings)
    check_alarms(raw, url)


def check_scores(raw, readings):
    """The detector knew, at each reading, exactly the readings before it."""
    series = numpy.array([number % DEVICES for _, number, _, _ in readings])
    scores = score_rows(new_states(DEVICES), series, [row[2] for row in readings], [row[3] for row in readings])
    in_raw = dict(zip(raw.sequence, raw.score))
    assert all(math.isclose(in_raw[number], scores[number], abs_tol=1e-9) for number in range(len(readings))), "scores differ"


def check_alarms(raw, url):
    """Each alarm of raw is one message."""
    connection, alarms = connect(url), []
    while (message := connection.get(ALARMS, no_ack=True)) is not None:
        alarms.append(json.loads(message.body)["sequence"])
    connection.close()
    assert sorted(alarms) == sorted(raw.sequence[raw.score >= 0.5]), "the alert queue is not what raw says"
    assert alarms, "there was nothing to alarm about: the run was too short"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        summary = run(options.times, options.seed, folder, lambda text: print(text, flush=True), 60 * options.minutes)
        print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
