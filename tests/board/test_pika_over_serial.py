"""pika and a board that `leveret flash` has flashed, over the same line: `leveret attach` on the computer, the broker beside the prompt.

Real MicroPython (board.py), real mpremote, real pika; the board publishes its own readings meanwhile.
"""

import json
import select
import signal
import subprocess
import sys
import time

import pika
import pytest
from board import WasmBoard
from conftest import flash, put

from leveret.tools.flash_board import BoardPort

ATTACH = (sys.executable, "-m", "leveret.tools.cli", "attach")
CONFIG = """
[board]
name = "greenhouse"
[board.store]
path = "log"
[board.sensor]
every_ms = 50
keep = 20
"""
COUNT = 60


class Attached:
    """`leveret attach` for a device: `url`."""

    def __init__(self, device):
        self.process = subprocess.Popen(
            [*ATTACH, device, "--listen", "amqp://127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __enter__(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        line = self.process.stdout.readline() if ready else ""
        if not line.startswith("ready amqp://"):
            self.process.kill()
            raise AssertionError((line, self.process.communicate()[1]))
        self.url = line.split()[1]
        return self

    def __exit__(self, kind, error, trace):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.said = self.process.communicate(timeout=120)[1]
        finally:
            self.process.kill()


@pytest.fixture
def greenhouse(make_board, flashed, tmp_path):
    """A board flashed by the command, with a store and the board's own sensor."""
    (tmp_path / "gateway.toml").write_text(CONFIG)
    with make_board(flashed) as board:
        done = flash("--port", board.device, "--config", tmp_path / "gateway.toml")
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.splitlines()[-1] == f"ready serial://{board.device}?baud=115200"
        yield board


def bodies():
    return [bytes([number & 0xFF]) * (1 + 37 * number % 900) for number in range(COUNT)]


def test_pika_publishes_to_a_flashed_board_and_gets_back_what_it_sent_and_what_the_board_read(greenhouse):
    with Attached(greenhouse.device) as attached:
        connection = pika.BlockingConnection(pika.URLParameters(attached.url))
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("readings", durable=True)
        for body in bodies():
            channel.basic_publish("", "readings", body, pika.BasicProperties(delivery_mode=2), mandatory=True)
        got = []
        for method, _, body in channel.consume("readings", inactivity_timeout=120):
            assert method is not None, "%d of %d came" % (len(got), COUNT)
            got.append(body)
            channel.basic_ack(method.delivery_tag)
            if len(got) == COUNT:
                break
        channel.cancel()
        assert got == bodies()
        _, properties, reading = channel.basic_get("sensors", auto_ack=True)
        assert properties.delivery_mode == 2 and properties.content_type == "application/json"
        assert sorted(json.loads(reading)) == ["gateway", "number", "time"] and json.loads(reading)["gateway"] == "greenhouse"
        channel.basic_publish("", "readings", b"kept", pika.BasicProperties(delivery_mode=2))
        connection.close()
    # The prompt is still there beside the broker, and what was confirmed survives the reset that it is given.
    port = BoardPort(greenhouse.device)
    try:
        port.enter()
        assert port.run("print(6 * 7)").strip() == "42"
        port.restart()
        lines = [port.line(30) for _ in range(4)]
    finally:
        port.close()
    assert [line for line in lines if line and "recovered" in line and not line.startswith("leveret: recovered 0 ")], lines
    with Attached(greenhouse.device) as attached:
        connection = pika.BlockingConnection(pika.URLParameters(attached.url))
        method, _, body = connection.channel().basic_get("readings", auto_ack=True)
        assert body == b"kept"
        connection.close()
    assert "Traceback" not in bytes(greenhouse.heard).decode("utf-8", "replace")


def test_mpremote_itself_finds_the_prompt_of_a_board_whose_broker_runs(webassembly, tmp_path, flashed_files):
    """The command that people have interrupts the broker. (MicroPython's unix build drops what has come when its prompt begins.)"""
    put(tmp_path, flashed_files)
    (tmp_path / "settings.json").write_text(json.dumps({"board": "unix", "serial": {"line": "console"}}))
    with WasmBoard(*webassembly, tmp_path) as board:
        limit = time.monotonic() + 120
        while b"leveret: ready serial" not in board.heard and time.monotonic() < limit:
            time.sleep(0.05)
        command = [sys.executable, "-m", "mpremote", "connect", board.device, "resume", "exec", "import os; print(os.listdir())"]
        listed = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert "settings.json" in listed.stdout, listed.stdout + listed.stderr
        assert b"leveret: stopped; Ctrl-D starts it again" in board.heard
