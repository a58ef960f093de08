"""`leveret status` of a board: its heap, its largest hole, its starts and their reasons, over a serial line, `leveret attach` and TCP.

With a real MicroPython behind a pseudo-terminal, and with the firmware on CPython for boards that carry no management.
"""

import json
import re
import subprocess
import sys
import threading

import pytest
from board import WasmBoard
from test_firmware import board  # noqa: F401 - a fixture: the modules of a board

from leveret.core.access import passwords
from leveret.core.broker import broker as broker_module
from leveret.core.outcomes import nobody
from leveret.firmware import gateway, resets, status_page
from leveret.tools import cli

KEPT = '1700000000 start 41: the voltage was too low\n1700000100 ended by ValueError: a "quoted" text\n'
LEVERET = (sys.executable, "-m", "leveret.tools.cli")
CONSOLE = {"board": "unix", "name": "shed", "serial": {"line": "console"}}


def told(output):
    """{name: value} of the lines of a board, and its reasons under "reasons"."""
    rows = [line.split(" ", 2)[1:] for line in output.splitlines() if line.startswith("board ")]
    return dict(rows, reasons=[value for name, value in rows if name == "reason"])


def test_a_boards_status_over_its_serial_line_and_through_attach(webassembly, flashed):
    (flashed / "settings.json").write_text(json.dumps(CONSOLE))
    (flashed / "resets.txt").write_text(KEPT)
    with WasmBoard(*webassembly, flashed) as there:
        direct = subprocess.run([*LEVERET, "status", f"serial://{there.device}?baud=115200"], capture_output=True, text=True, timeout=120)
        assert direct.returncode == 0, direct.stderr
        page = told(direct.stdout)
        assert page["board"] == '"unix"' and page["name"] == '"shed"' and page["starts"] == "42" and page["faults"] == "0"
        assert 0 < int(page["heap_hole"]) <= int(page["heap_free"]) < int(page["heap"])
        assert page["reasons"][0] == '2023-11-14T22:13:20Z "start 41: the voltage was too low"'
        assert page["reasons"][1] == '2023-11-14T22:15:00Z "ended by ValueError: a \\"quoted\\" text"'
        assert re.fullmatch('.*Z "start 42: .*"', page["reasons"][2]) and len(page["reasons"]) == 3
        assert "memory blocks_free " in direct.stdout and "total connections 1" in direct.stdout
        attach = subprocess.Popen(
            [*LEVERET, "attach", there.device, "--listen", "amqp://127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            url = attach.stdout.readline().split()[1]
            through = subprocess.run([*LEVERET, "status", url, "--json"], capture_output=True, text=True, timeout=120)
        finally:
            attach.terminate()
            attach.communicate(timeout=30)
        assert through.returncode == 0, through.stderr
        page = json.loads(through.stdout)
        assert page["board"]["starts"] == 42 and page["board"]["reasons"][0] == KEPT.split("\n")[0] and "overview" in page


class Serving:
    """A Gateway that serves in a thread: `url`."""

    def __init__(self, wanted):
        self.gateway = gateway.Gateway(wanted)
        self._ending = False
        self._thread = threading.Thread(target=self._serve)
        port = self.gateway.loop.listeners[0].pollable.getsockname()[1]
        self.url = "amqp://guest:guest@127.0.0.1:%d/" % port

    def _serve(self):
        while not self._ending:
            self.gateway.step()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ending = True
        self._thread.join()
        self.gateway.stop()


@pytest.fixture
def wanted(board):  # noqa: F811 - the fixture of test_firmware
    """Settings that serve a free port of loopback, on a board that has started 41 times before."""
    (board / "resets.txt").write_text(KEPT)
    resets.started()
    return dict(gateway.settings.DEFAULTS, board="stm32f4", name="shed", listen={"host": "127.0.0.1", "port": 0})


@pytest.fixture
def without_management(monkeypatch):
    """As a build that does not carry it."""
    for module in (broker_module, status_page):
        real = module.part
        monkeypatch.setattr(module, "part", lambda name, real=real: None if name == "management.requests" else real(name))


def test_a_board_without_management_answers_with_its_page_alone(wanted, without_management, capsys):
    with Serving(wanted) as serving:
        serving.gateway.broker.topology.declare_queue(nobody, "sensors", False, False, False, False, {})
        assert cli.main(["status", serving.url]) == 0
        said = capsys.readouterr().out
        assert cli.main(["status", serving.url, "--json"]) == 0
        page = json.loads(capsys.readouterr().out)
        assert cli.main(["definitions", "export", "--from", serving.url, "-"]) == 1
        assert "this board has no management" in capsys.readouterr().err
    assert told(said)["starts"] == "42" and told(said)["connections"] == "1" and 'queue "sensors" messages 0' in said
    assert told(said)["heap"] == "-", "CPython does not say"
    assert list(page) == ["board"] and page["board"]["queues"]["sensors"] == 0


def test_a_board_with_management_has_both(wanted, capsys):
    with Serving(wanted) as serving:
        assert cli.main(["status", serving.url]) == 0
    said = capsys.readouterr().out
    assert told(said)["starts"] == "42" and "total queues " in said and "connections" not in told(said)


@pytest.mark.parametrize("tags, right", ((("monitoring",), True), ((), False)))
def test_only_who_may_look_sees_it(wanted, without_management, capsys, tags, right):
    stored = passwords.hashed(b"secret", b"12345678", 1000).text()
    wanted["users"] = [{"name": "u", "password_hash": stored, "tags": list(tags), "configure": ".*", "write": ".*", "read": ".*"}]
    with Serving(wanted) as serving:
        assert cli.main(["status", serving.url.replace("guest:guest", "u:secret")]) == (0 if right else 1)
    said = capsys.readouterr()
    assert "board starts 42" in said.out if right else "it needs the tag administrator or" in said.err


def test_a_page_that_is_too_long_leaves_out_queues_and_the_oldest_reasons(wanted, without_management, monkeypatch):
    made = gateway.Gateway(wanted)
    try:
        full = status_page.figures(made, 4096)
        assert len(full["reasons"]) == 3
        for _ in range(resets.KEPT):
            resets.note("x" * resets.SIZE_MAX)
        for number in range(4):
            made.broker.topology.declare_queue(nobody, "queue%d" % number, False, False, False, False, {})
        text = json.dumps(status_page.figures(made, 700))
        short = json.loads(text)
        assert short["queues"] == {} and 0 < len(short["reasons"]) < resets.KEPT and len(text) < 900
        assert status_page.figures(made, 10)["reasons"] == []
    finally:
        made.stop()


def test_the_largest_hole_is_told_to_a_sixteenth(monkeypatch):
    for hole in (0, 100, 5000, 90000, 100000):
        tried = []

        def allocate(size, hole=hole, tried=tried):
            tried.append(size)
            if size > hole:
                raise MemoryError

        monkeypatch.setattr(status_page, "bytearray", allocate, raising=False)
        assert 0 <= hole - status_page.largest(100000) <= max(100000 // 16 if hole == 100000 else hole // 15, 17)
        assert len(tried) <= 20 and max(tried) <= 100000
