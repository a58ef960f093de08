"""Bridges inside `leveret serve --data` ([[bridge]]) and a real upstream: nothing missing, and nothing double after de-duplication.

The gateway is killed and started again, RabbitMQ is killed, stopped by its memory alarm and started again; TLS and small frames.
"""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from certificates import Authority
from nodes import Leveret, free_port, wait_until
from test_bridge import depth, take_all
from test_tls import Secure

from leveret.ports.client import ClientError, connect


class Gateway(Leveret):
    """`leveret serve --data` with one [[bridge]]; `more`: further lines of its table."""

    def __init__(self, upstream_url, more='queue = "uplink"', sync="batch", exchange="telemetry"):
        self.upstream_url = upstream_url
        self.more = more
        self.sync = sync
        self.exchange = exchange
        Leveret.__init__(self)

    def command(self):
        config = os.path.join(self.directory, "config.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(
                '[[bridge]]\nname = "up"\ngateway = "gw7"\nupstream = ["%s"]\nexchange = "%s"\nreconnect_seconds_min = 0.1\n'
                "reconnect_seconds_max = 1\n%s\n" % (self.upstream_url, self.exchange, self.more)
            )
        return [
            sys.executable,
            "-m",
            "leveret.tools.cli",
            "serve",
            "--listen",
            "amqp://127.0.0.1:%d" % self.port,
            "--config",
            config,
            "--data",
            os.path.join(self.directory, "data"),
            "--sync",
            self.sync,
        ]

    def status(self):
        """What `leveret bridge status` prints of it."""
        done = subprocess.run(
            [sys.executable, "-m", "leveret.tools.cli", "bridge", "status", "--json", self.url], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else {}

    def wait_for(self, condition, timeout_s, what):
        def met():
            status = self.status()
            return status if status and condition(status) else None

        try:
            return wait_until(met, timeout_s, what)
        except AssertionError as error:
            raise AssertionError("%s; status %r; said:\n%s" % (error, self.status(), self.output()[-3000:])) from None


@pytest.fixture
def gateway_of():
    made = []

    def make(*arguments, **values):
        made.append(Gateway(*arguments, **values))
        return made[-1]

    yield make
    for each in made:
        each.stop()


class Sensor:
    """Publishes m0, m1 ... to a queue and knows which were confirmed; an unconfirmed one is published again (a double of its own)."""

    def __init__(self, gateway, arguments=None):
        self.gateway = gateway
        self.arguments = arguments
        self.count = 0

    def publish(self, count):
        while count:
            try:
                client = connect(self.gateway.url, 3000)
                client.queue_declare("uplink", durable=True, arguments=self.arguments)
                while count:
                    batch = min(count, 100)
                    for number in range(self.count, self.count + batch):
                        client.publish("", "uplink", b"%d" % number, {"delivery_mode": 2}, confirm=False)
                    client.wait_confirmed()
                    self.count += batch
                    count -= batch
                client.close()
            except ClientError:
                time.sleep(0.1)


def is_empty(status):
    """Everything has been sent and confirmed."""
    return status["backlog"] == 0 and status["unconfirmed"] == 0


def judge(messages, count, republished=False):
    """Every number is there; each (gateway, sequence) has one body, sequences are dense, and only they tell doubles."""
    places = {}
    for message in messages:
        headers = message.properties["headers"]
        place = headers["x-gateway"], headers["x-sequence"]
        assert places.setdefault(place, message.body) == message.body, "two messages have the place %r" % (place,)
    assert {place[0] for place in places} == {"gw7"}
    numbers = [int(body) for body in places.values()]
    missing = sorted(set(range(count)) - set(numbers))
    assert not missing, "%d of %d missing, first %d" % (len(missing), count, missing[0])
    if not republished:
        assert len(numbers) == count, "%d double after de-duplication" % (len(numbers) - count)
    assert sorted(place[1] for place in places) == list(range(len(places))), "the sequence has gaps"
    return len(messages) - len(places)


@pytest.mark.parametrize("source", ["queue", "stream"])
def test_a_gateway_that_is_killed_again_and_again_loses_nothing_and_gives_no_number_twice(rabbitmq, gateway_of, source):
    arguments = {"x-queue-type": "stream"} if source == "stream" else None
    gateway = gateway_of(rabbitmq.url, '%s = "uplink"\nprefetch = 100' % source)
    sensor = Sensor(gateway, arguments)
    for _ in range(4):
        sensor.publish(700)
        time.sleep(0.3)
        gateway.kill()
        gateway.start()
    sensor.publish(100)
    gateway.wait_for(lambda status: is_empty(status) and status["state"] == "running", 40, "all is sent")
    wait_until(lambda: depth(rabbitmq.url, "readings") >= sensor.count, 20, "all has arrived")
    judge(take_all(rabbitmq.url), sensor.count, republished=True)


def test_an_upstream_that_is_killed_and_one_that_is_blocked_by_its_memory_alarm(rabbitmq, gateway_of):
    gateway = gateway_of(rabbitmq.url)
    sensor = Sensor(gateway)
    sensor.publish(3000)
    gateway.wait_for(lambda status: status["bridged"] > 100, 20, "it is at work")
    rabbitmq.kill()
    sensor.publish(2000)
    status = gateway.wait_for(lambda status: status["backlog"] >= 1000 and status["state"] in ("backing off", "connecting"), 20, "noticed")
    assert status["last_error"] and (status["state"] == "connecting" or status["reason"].startswith("until ")), status
    assert status["oldest_age_s"] is not None and status["backlog_octets"] > 0
    rabbitmq.start()
    gateway.wait_for(lambda status: is_empty(status) and status["state"] == "running", 60, "all is sent")
    rabbitmq.control("set_vm_memory_high_watermark", "0")
    try:
        sensor.publish(500)
        status = gateway.wait_for(lambda status: status["state"] == "blocked", 20, "it is told")
        assert "connection.blocked: low on memory" in status["reason"] and status["blocked"] == 1
    finally:
        rabbitmq.control("set_vm_memory_high_watermark", "0.4")
    status = gateway.wait_for(is_empty, 40, "all is sent")
    assert status["reconnects"] >= 1 and status["stalls"] == 0
    judge(take_all(rabbitmq.url), 5500)


def test_a_memory_alarm_that_lasts_is_no_stall(rabbitmq, gateway_of):
    gateway = gateway_of(rabbitmq.url, 'queue = "uplink"\nstall_seconds = 1\nheartbeat_seconds = 4')
    sensor = Sensor(gateway)
    sensor.publish(100)
    gateway.wait_for(lambda status: status["bridged"] == 100, 20, "it is at work")
    rabbitmq.control("set_vm_memory_high_watermark", "0")
    try:
        sensor.publish(200)
        gateway.wait_for(lambda status: status["state"] == "blocked", 20, "it is told")
        before = gateway.status()  # until RabbitMQ said so, the second of stall_seconds may have been over
        time.sleep(6)
        status = gateway.status()
    finally:
        rabbitmq.control("set_vm_memory_high_watermark", "0.4")
    assert status["state"] == "blocked", status
    assert (status["stalls"], status["reconnects"]) == (before["stalls"], before["reconnects"]), status
    gateway.wait_for(is_empty, 20, "all is sent")
    judge(take_all(rabbitmq.url), 300)


def test_upwards_with_tls_and_a_certificate_as_the_log_in(tmp_path, gateway_of):
    upstream = Secure(Authority(tmp_path / "authority"))
    try:
        client = connect(upstream.url)
        client.exchange_declare("telemetry", "topic", durable=True)
        client.queue_declare("readings", durable=True)
        client.queue_bind("readings", "telemetry", "#")
        client.close()
        wrong = upstream.secure_url(login="", auth="external", name="other.example")
        right = upstream.secure_url(login="", auth="external")
        gateway = gateway_of('%s", "%s' % (wrong, right))
        sensor = Sensor(gateway)
        sensor.publish(300)
        status = gateway.wait_for(lambda status: status["bridged"] == 300, 20, "all is sent")
        assert "other.example" in status["last_error"]  # the first place was refused for its name, the second taken
        assert judge(take_all(upstream.url), 300) == 0
    finally:
        upstream.stop()


def test_frames_of_8192_and_small_buffers_and_large_messages(rabbitmq, gateway_of):
    gateway = gateway_of(rabbitmq.url, 'queue = "uplink"\nframe_size_max = 8192\nbuffer_size = 2048')
    client = connect(gateway.url)
    client.queue_declare("uplink", durable=True)
    bodies = [b"%d " % number + bytes(size) for number, size in enumerate((0, 2000, 8185, 8192, 100000, 500000, 3))]
    for body in bodies:
        client.publish("", "uplink", body, {"delivery_mode": 2})
    client.close()
    gateway.wait_for(lambda status: status["bridged"] == len(bodies), 30, "all is sent")
    assert [message.body for message in take_all(rabbitmq.url)] == bodies


def test_a_process_of_its_own_with_the_bridge_of_a_brokers_file(leveret, gateway_of, tmp_path):
    file = tmp_path / "bridges.toml"
    file.write_text(
        '[[bridge]]\nname = "b1"\ngateway = "gw7"\nqueue = "uplink"\nupstream = ["%s", "%s"]\nexchange = "telemetry"\n'
        'reconnect_seconds_min = 0.1\nheaders = { site = "7" }\nrouting_key = "s7.{key}"\n'
        '[[bridge]]\nname = "d1"\ndirection = "down"\nqueue = "commands"\nupstream = "%s"\nexchange = ""\n'
        'routing_key = "orders"\n' % ("amqp://127.0.0.1:%d" % free_port(), leveret.url, leveret.url)
    )
    gateway = gateway_of(leveret.url, 'queue = "not there yet"')
    Sensor(gateway).publish(500)
    local, upstream = connect(gateway.url), connect(leveret.url)
    local.queue_declare("orders")
    upstream.queue_declare("commands")
    upstream.publish("", "commands", b"open")
    command = [sys.executable, "-m", "leveret.tools.cli", "bridge", "--config", str(file), "--from", gateway.url, "--status-seconds", "0.3"]
    processes = [subprocess.Popen(command + ["--name", name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for name in ("b1", "d1")]
    try:
        wait_until(lambda: depth(leveret.url, "readings") == 500, 30, "all has arrived")
        assert wait_until(lambda: local.get("orders"), 20, "the command has come down").body == b"open"
        statuses = wait_until(lambda: statuses_of(gateway, 3), 20, "all three report")
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, process.stderr.read()
    assert statuses["d1"]["direction"] == "down" and statuses["b1"]["gateway"] == "gw7"
    assert "no queue 'not there yet'" in statuses["up"]["last_error"] and statuses["up"]["state"] in ("backing off", "connecting")
    found = take_all(leveret.url)
    assert judge(found, 500) == 0 and found[0].routing_key == "s7.uplink" and found[0].properties["headers"]["site"] == "7"


def statuses_of(gateway, count):
    """By name, when there are so many."""
    command = [sys.executable, "-m", "leveret.tools.cli", "bridge", "status", gateway.url]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60)
    read = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert read.returncode == 0 and "  since start " in read.stdout or not done.stdout, read
    found = {each["bridge"]: each for each in [json.loads(line) for line in done.stdout.splitlines()]}
    return found if len(found) == count else None


def test_the_file_says_what_is_wrong_with_a_bridge(tmp_path):
    good = 'queue = "q"\nexchange = "e"\nupstream = "amqp://h"\n'
    named = '[[bridge]]\nname = "%s"\ngateway = "g"\n' + good
    for text, words in (
        ('[[bridge]]\nname = "a"\n' + good, "'a': it needs a gateway"),
        ('[bridge]\nname = "a"\n', "bridge must be tables, each written [[bridge]]"),
        (named % "a" + named % "b", "the same gateway"),
        (named % "a" + (named % "a").replace('"g"', '"h"'), "two [[bridge]] of the name 'a'"),
    ):
        (tmp_path / "config.toml").write_text(text)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "leveret.tools.cli",
                "serve",
                "--listen",
                "amqp://127.0.0.1:0",
                "--config",
                str(tmp_path / "config.toml"),
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr
