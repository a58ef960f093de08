"""What the API costs an idle broker: at most 8 MiB with it, nothing without it."""

import os
import signal
import subprocess
import sys
import time

from api import Api, Served
from broker_process import BrokerProcess

MORE_KB_MAX = 8 * 1024


def resident_kb(process):
    with open(f"/proc/{process.server_pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def test_an_idle_broker_with_the_api_takes_at_most_8_mib_more(tmp_path):
    without = BrokerProcess("leveret")
    with_it = Served()
    try:
        Api(with_it.http_port, "guest").get("/overview")
        Api(with_it.http_port, "guest").call("GET", "/metrics")
        time.sleep(1)
        more = resident_kb(with_it) - resident_kb(without)
        print(f"\nwith the API {resident_kb(with_it)} KiB, without {resident_kb(without)} KiB: {more} KiB more")
        assert more < MORE_KB_MAX
    finally:
        with_it.stop()
        without.stop()


def test_a_broker_without_it_imports_nothing_of_it():
    command = [sys.executable, "-X", "importtime", "-m", "leveret.tools.cli", "serve", "--listen", "amqp://127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))
    try:
        assert process.stdout.readline().startswith(b"ready amqp")
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert b"leveret.tools.memory" in errors
    for name in (b"h11", b"leveret.ports.http", b"leveret.tools.web", b"urllib.request", b"wsproto"):
        assert name not in errors, name
