"""The client that runs on a board, inside MicroPython, against `leveret serve` on CPython.

The sans-IO client of core/ runs in the WebAssembly build (wasm_client.py), the blocking one of ports/ on a `micropython` binary where one
is on the PATH (unix_client.py). The broker is a process of its own, on a free loopback port.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile

import pytest
import stage
import toolchain

TIMEOUT_S = 120
MESSAGES = 200


@pytest.fixture(scope="module")
def port():
    command = [sys.executable, "-m", "leveret.tools.cli", "serve", "--memory", "--listen", "amqp://127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert line.startswith("ready amqp://"), line
    yield int(line.strip().rstrip("/").rsplit(":", 1)[1])
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 0
    process.stdout.close()


def outcome_of(command, environment=None):
    """The JSON line that a client program ends with."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_client_in_the_webassembly_build_publishes_consumes_and_reconnects(port):
    node, package = toolchain.webassembly()
    with tempfile.TemporaryDirectory() as staged:
        stage.make(staged)
        told = outcome_of([*node, os.path.join(stage.HERE, "client_bridge.mjs"), package, staged, "wasm_client", "0", str(port), "2"])
    assert told["published"] == told["confirmed"] == told["received"] == MESSAGES
    assert told["wrong"] == [] and told["redelivered"] == 0
    assert told["closed_channels"] == [404]
    assert [code for code, _ in told["ends"]] == [200, 200]


def binary():
    try:
        return toolchain.unix()
    except toolchain.Missing:
        return None


UNIX = binary()

if UNIX:  # a test that would run nothing is not there

    def test_the_blocking_client_on_the_unix_build_does_too(port):
        with tempfile.TemporaryDirectory() as staged:
            stage.make(staged)
            told = outcome_of(
                [UNIX, os.path.join(stage.HERE, "unix_client.py"), "amqp://guest:guest@127.0.0.1:%d/" % port],
                dict(os.environ, MICROPYPATH=os.path.join(staged, "lib")),
            )
        assert told == {"received": MESSAGES, "wrong": 0, "closed_with": 404, "left": 0}
