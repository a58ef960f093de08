"""The load programs of the bench's further rows (tests/measure/verbs_load.py) do what their rows say: a run of each against a broker."""

import json
import os
import subprocess
import sys

import pytest
from test_serve import Serve

MEASURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "measure")
sys.path.append(MEASURE)

import rows_verbs  # noqa: E402 - the path above has to be set first

SMALLER = {"--publishers": {1000: 20}, "--queues": {1000: 30}}
FEW = 400


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    server = Serve("--listen", "amqp://127.0.0.1:0", "--data", str(tmp_path_factory.mktemp("rows")))
    yield server
    server.end()


@pytest.mark.parametrize("row", [row for row in rows_verbs.SCENARIOS if row[0] not in ("topic", "cycles")], ids=lambda row: row[0])
def test_a_run_of_each_row_moves_all_of_its_messages(broker, row):
    options = list(row[2])
    for place, option in enumerate(options[:-1]):
        options[place + 1] = SMALLER.get(option, {}).get(options[place + 1], options[place + 1])
    if "--count" not in options:
        options += ["--count", FEW // (options[options.index("--publishers") + 1] if "--publishers" in options else 1)]
    options = ["--json", "-", "--server-pid", broker.process.pid, *options]
    done = subprocess.run(
        [sys.executable, os.path.join(MEASURE, "verbs_load.py"), broker.urls[0], *map(str, options)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["trouble"] == []
    summary = document["summary"]
    least = 4000 if row[0].startswith("get") else FEW
    assert summary["received"] >= least and summary["server_cpu_s"] >= 0
    assert summary["cpu_s"]["consumer"] > 0


def test_cycles_make_and_delete_their_queues(broker):
    options = ["--form", "cycles", "--vary", "--publishers", 2, "--consumers", 0, "--confirm", 1, "--seconds", 1]
    options += ["--json", "-", "--server-pid", broker.process.pid]
    done = subprocess.run(
        [sys.executable, os.path.join(MEASURE, "verbs_load.py"), broker.urls[0], *map(str, options)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)["summary"]
    assert summary["confirmed"] == summary["published"] > 0
