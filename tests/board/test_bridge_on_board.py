"""A bridge on a flashed board: [[bridge]] of gateway.toml -> settings.json -> firmware -> a real upstream behind a link with faults.

The firmware's own code runs on a `micropython` binary with real sockets, where there is one, and on CPython. What upstream has is read:
nothing missing, and nothing double after de-duplication on (x-gateway, x-sequence).
"""

import json
import os
import random
import subprocess
import sys
import threading
import time

import pytest
from board import UnixBoard
from conftest import flash
from test_flash_files import options

from leveret.firmware import gateway
from leveret.firmware import uplink as uplink_of_board
from leveret.ports.client import connect
from leveret.ports.client_errors import ClientError
from leveret.tools import boards, flash_settings
from leveret.tools.usage import UsageError

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bridge"))

from faults import FaultyLink, Upstream  # noqa: E402 - in tests/bridge
from nodes import Leveret, free_port, wait_until  # noqa: E402 - the path above has to be set first

STATUS = (sys.executable, "-m", "leveret.tools.cli", "bridge", "status", "--json")
COUNT = 150
FAULTS = 4
TIMEOUT_S = 120
CONFIG = """
[[user]]
name = "sensor"
password = "s"
configure = ".*"
write = ".*"
read = ".*"
tags = ["monitoring"]
[[bridge]]
name = "uplink"
gateway = "gw7"
queue = "readings"
upstream = "amqp://guest:guest@127.0.0.1:%d/"
exchange = "%s"
heartbeat_seconds = 1
connect_seconds = 2
stall_seconds = 1
reconnect_seconds_min = 0.01
reconnect_seconds_max = 0.1
refusal_attempts = 0
[board]
listen = "127.0.0.1:%d"
ethernet = { kind = "LAN" }
ntp = ""
watchdog_ms = 0
"""
STORE = """
[board.store]
kind = "folder"
path = "log"
size = 1048576
"""


def settings_of(path, board="unix"):
    """What `leveret flash` would write; on a computer the network is there without an interface to bring up."""
    settings = flash_settings.wanted(boards.load(board), options(config=str(path)), None)
    del settings["ethernet"]
    return settings


@pytest.fixture(scope="module")
def node():
    found = Leveret()
    yield found
    found.stop()


@pytest.fixture
def uplink(node, tmp_path, request):
    """(Upstream, link, the board's settings, URL of the board's broker)."""
    seed = getattr(request, "param", 1)
    upstream = Upstream(node, 900 + seed)
    upstream.bind()
    link = FaultyLink(node.port, random.Random(seed), FAULTS, 20000)
    port = free_port()
    (tmp_path / "gateway.toml").write_text(CONFIG % (link.port, upstream.name, port) + STORE)
    yield upstream, link, settings_of(tmp_path / "gateway.toml"), "amqp://sensor:s@127.0.0.1:%d/" % port
    link.close()


def publish(url, numbers):
    """Messages of these numbers to the board's broker, each confirmed."""
    client = wait_until(lambda: connected(url), TIMEOUT_S, "the board's broker answers")
    client.queue_declare("readings", durable=True)
    for number in numbers:
        client.publish("", "readings", b"%d " % number + bytes((0, 10, 300, 2000)[number % 4]), {"delivery_mode": 2})
    client.close()


def connected(url):
    try:
        return connect(url)
    except ClientError:
        return None


def drained(url):
    """The status of a bridge that has nothing left to send, or None."""
    status = status_of(url)
    return status if status.get("bridged") and status["backlog"] == 0 and status["state"] == "running" else None


def collect(upstream):
    """{(x-gateway, x-sequence): set of the numbers that came with it}, until every message has come."""
    client = connect(upstream.node.url)
    client.consume(upstream.name)
    places = {}
    limit = time.monotonic() + TIMEOUT_S
    while len(set().union(*places.values())) < COUNT and time.monotonic() < limit:
        for message in client.poll(500):
            headers = message.properties["headers"]
            places.setdefault((headers["x-gateway"], headers["x-sequence"]), set()).add(int(message.body.split(b" ")[0]))
            client.ack(message)
    client.close()
    return places


def judge(url, upstream):
    """Everything is upstream, once after de-duplication, with dense numbers; and the board says that nothing is left."""
    places = collect(upstream)
    assert sorted(places) == [("gw7", number) for number in range(COUNT)]
    assert sorted(places.values(), key=min) == [{number} for number in range(COUNT)]
    status = wait_until(lambda: drained(url), TIMEOUT_S, "the board's backlog is gone")
    assert status["internal_errors"] == 0 and status["gateway"] == "gw7", status
    upstream.take()


def status_of(url):
    """What `leveret bridge status` shows; {} before the board has said anything."""
    done = subprocess.run([*STATUS, url], capture_output=True, text=True, timeout=TIMEOUT_S)
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else {}


@pytest.mark.parametrize("uplink", [1, 2], indirect=True)
def test_the_firmware_on_micropython_brings_every_message_upstream_through_faults_and_a_power_cut(unix_binary, flashed, uplink):
    upstream, link, settings, url = uplink
    (flashed / "settings.json").write_text(json.dumps(settings))
    with UnixBoard(unix_binary, flashed) as board:
        publish(url, range(COUNT // 2))
        board.process.kill()  # the power is cut; it comes back at once
        publish(url, range(COUNT // 2, COUNT))
        judge(url, upstream)
        said = board.heard.decode(errors="replace")
    assert sum(link.faults.values()) >= 1, "the link did nothing"
    assert "leveret: bridge uplink: upstream 127.0.0.1:%d is ready" % link.port in said and "Traceback" not in said, said


class RunningGateway:
    """The firmware's gateway on CPython, in a thread: `said` as the console shows it."""

    def __init__(self, settings, folder, monkeypatch):
        self.settings, self.said, self.over = settings, [], False
        (folder / "settings.json").write_text(json.dumps(settings))
        monkeypatch.chdir(folder)
        for place in (gateway, uplink_of_board):
            monkeypatch.setattr(place, "say", self.said.append)

    def __enter__(self):
        self.gateway = gateway.start()
        assert self.gateway is not None, self.said
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        while not self.over:
            self.gateway.step()
        self.gateway.stop()

    def __exit__(self, kind, error, trace):
        self.over = True
        self.thread.join(TIMEOUT_S)


def test_the_firmware_s_own_code_does_so_on_cpython_and_says_on_the_console_how_it_is(uplink, tmp_path, monkeypatch):
    upstream, link, settings, url = uplink
    with RunningGateway(settings, tmp_path, monkeypatch) as running:
        publish(url, range(COUNT))
        judge(url, upstream)
    assert "bridge uplink: upstream 127.0.0.1:%d is ready" % link.port in running.said, running.said
    assert sum(link.faults.values()) >= 1


BRIDGE = """
[[bridge]]
name = "uplink"
gateway = "gw7"
queue = "readings"
upstream = "amqp://gw7:nobody%20may%20read%20this@broker.example/"
exchange = "telemetry"
"""


def flashed_with(text, path, board="esp32_s3", network=("--wifi", "home")):
    path.write_text(text)
    return flash("--dry-run", *network, "--config", path, board=board, environment={flash_settings.PASSWORD_VARIABLE: "x"})


def test_bridges_go_into_the_board_s_settings_and_no_password_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv(flash_settings.PASSWORD_VARIABLE, "x")
    done = flashed_with(BRIDGE, tmp_path / "gateway.toml")
    assert done.returncode == 0 and "ports/bridge/bridge.mpy" in done.stdout and "firmware/uplink.mpy" in done.stdout, done.stderr
    assert "nobody" not in done.stdout + done.stderr
    settings = flash_settings.wanted(boards.load("esp32_s3"), options(wifi="home", config=str(tmp_path / "gateway.toml")), None)
    assert [table["name"] for table in settings["bridges"]] == ["uplink"] and settings["limits"]["bridge_count_max"] == 2


@pytest.mark.parametrize(
    "change, board, said",
    [
        (("exchange", "interchange"), "esp32_s3", "there is no setting 'interchange'"),
        (("amqp://", "amqps://"), "esp32_s3", "a board has no TLS"),
        (('example/"', 'example/?protocol=1.0"'), "esp32_s3", "this board does not carry the way to upstreams of AMQP 1.0"),
        (('example/"', 'example/?protocol=0-8"'), "esp32_s3", "no board carries the way to upstreams of other versions"),
        (("amqp://", "http://"), "esp32_s3", "not an amqp:// or amqps:// URL: http://...@broker.example/"),
        (("upstream = ", "upstream = 7 # "), "esp32_s3", "upstream must be a URL or a list of URLs"),
        (('"gw7"\n', '"gw7"\nprefetch = 4000\n'), "esp32_s3", "or prefetch in [[bridge]]"),
        (("\n[[bridge]]", "\n[limits]\nbridge_count_max = 0\n[[bridge]]"), "esp32_s3", "bridge_count_max is 0"),
        (("", ""), "pico_w", "bridges needs the part 'bridge', which pico_w does not carry"),
    ],
)
def test_a_bridge_that_a_board_cannot_have_is_refused_in_one_sentence(tmp_path, monkeypatch, change, board, said):
    monkeypatch.setenv(flash_settings.PASSWORD_VARIABLE, "x")
    path = tmp_path / "gateway.toml"
    path.write_text(BRIDGE.replace(*change, 1))
    with pytest.raises(UsageError) as caught:
        flash_settings.wanted(boards.load(board), options(wifi="home", config=str(path)), None)
    assert said in str(caught.value) and "\n" not in str(caught.value) and "nobody" not in str(caught.value)


def test_a_bridge_without_a_network_is_refused_by_the_command_in_one_sentence(tmp_path):
    done = flashed_with(BRIDGE, tmp_path / "gateway.toml", network=())
    assert done.returncode == 2 and "a [[bridge]] needs a network" in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert "nobody" not in done.stderr
