"""Sensor clients against a real broker: every reading arrives, also over a line that is cut again and again."""

import collections
import json
import socket
import subprocess
import sys
import threading
import time

import pytest

from leveret.ports.client import connect


@pytest.fixture
def broker():
    """URL of a broker with exchange `sensors` and queue `uplink` for all of it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", "amqp://127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    url = process.stdout.readline().split()[1]
    connection = connect(url)
    connection.exchange_declare("sensors", "topic", durable=True)
    connection.queue_declare("uplink", durable=True)
    connection.queue_bind("uplink", "sensors", "#")
    connection.close()
    yield url
    process.terminate()
    process.communicate(timeout=120)


class CuttingRelay:
    """Passes a TCP connection on to `target` and cuts it after `size` octets from the client; `cuts` times, then no more."""

    def __init__(self, target, size, cuts):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "amqp://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.cut_count = 0
        self._target = target
        self._size = size
        self._cuts = cuts
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            limit = self._size if self.cut_count < self._cuts else 1 << 40
            server = socket.create_connection(self._target)
            back = threading.Thread(target=self._carry, args=(server, client, 1 << 40), daemon=True)
            back.start()
            self._carry(client, server, limit)
            back.join()
            client.close()
            server.close()

    def _carry(self, source, target, limit):
        carried = 0
        while carried < limit:
            try:
                octets = source.recv(min(4096, limit - carried))
                target.sendall(octets)
            except OSError:
                break
            if not octets:
                break
            carried += len(octets)
        if carried >= limit:
            self.cut_count += 1
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other direction has cut it already


def sensor(url, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "leveret.tools.sensors", "--to", url, "--device", "d", *arguments],
        capture_output=True,
        text=True,
        timeout=180,
    )


def arrived(url):
    """Messages that are in the queue, with their properties."""
    connection = connect(url)
    found = []
    while (message := connection.get("uplink", no_ack=True)) is not None:
        found.append(message)
    connection.close()
    return found


def test_every_reading_arrives_once_as_the_demo_agreed(broker):
    began = time.time()
    done = sensor(broker, "--seconds", "1", "--interval", "0.2", "--read", "memory,disk")
    summary = json.loads(done.stdout)
    metrics = {"memory_percent": 5, "disk_used_percent": 5}
    assert summary == {"device": "d", "published": 10, "confirmed": 10, "resent": 0, "metrics": metrics}, done.stderr
    messages = arrived(broker)
    assert len(messages) == 10
    for message in messages:
        body = json.loads(message.body)
        assert list(body) == ["device", "metric", "sequence", "time", "value"] and began <= body["time"] <= time.time()
        assert message.routing_key == "d." + body["metric"]
        assert message.properties == {
            "content_type": "application/json",
            "delivery_mode": 2,
            "message_id": "d/%s/%d" % (body["metric"], body["sequence"]),
        }


def test_a_recorded_series_keeps_its_times(broker, tmp_path):
    path = tmp_path / "series.csv"
    path.write_text("timestamp,value\n2020-01-01 00:00:00,1.5\n2020-01-01 00:05:00,-2\n")
    assert sensor(broker, "--seconds", "0.5", "--csv", str(path)).returncode == 0
    bodies = [json.loads(message.body) for message in arrived(broker)]
    assert [(body["time"], body["value"], body["sequence"]) for body in bodies] == [(1577836800, 1.5, 1), (1577837100, -2, 2)]


def test_cut_lines_lose_nothing(broker, tmp_path):
    path = tmp_path / "series.csv"
    path.write_text("timestamp,value\n" + "".join(f"2020-01-01 00:{n // 60:02}:{n % 60:02},{n}\n" for n in range(3000)))
    host, port = broker.removeprefix("amqp://").split(":")
    relay = CuttingRelay((host, int(port)), 40000, 5)
    done = sensor(relay.url, "--seconds", "2", "--csv", str(path))
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert relay.cut_count == 5 and summary["published"] == summary["confirmed"] == 3000 and summary["resent"] > 0
    copies = collections.Counter(message.properties["message_id"] for message in arrived(broker))
    assert set(copies) == {f"d/value/{number}" for number in range(1, 3001)}
    assert sum(copies.values()) <= 3000 + summary["resent"]


def test_a_gateway_without_a_queue_is_an_error_and_no_silent_loss(broker):
    connection = connect(broker)
    connection.queue_delete("uplink")
    connection.close()
    done = sensor(broker, "--seconds", "1", "--read", "memory")
    assert done.returncode == 1 and "NO_ROUTE" in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("url, words", [("amqp://127.0.0.1:9", "no broker answers at 127.0.0.1:9"), ("serial:///dev/null", "/dev/null")])
def test_a_gateway_that_is_not_there_is_one_sentence(url, words, monkeypatch):
    from leveret.ports.client import ConnectFailed
    from leveret.tools import sensors

    monkeypatch.setattr(sensors, "CONNECT_SECONDS_MAX", 1)
    began = time.monotonic()
    with pytest.raises(ConnectFailed, match=words):
        sensors.Publisher(sensors.opener(url))
    assert time.monotonic() - began < 15


def test_a_gateway_that_starts_later_is_waited_for_with_pauses_that_grow(monkeypatch):
    """From 100 ms, to three times the pause before and 2 s at most by chance, for 20 s; then the last refusal is the answer."""
    from leveret.ports.client import ConnectFailed
    from leveret.tools import sensors

    now, pauses = [1000.0], []

    def sleep(pause_s):
        pauses.append(pause_s)
        now[0] += pause_s

    monkeypatch.setattr(sensors.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sensors.time, "sleep", sleep)
    attempts = []

    def opening():
        attempts.append(now[0])
        if len(attempts) <= failures:
            raise ConnectFailed("nobody")
        return "connection"

    failures = 8
    monkeypatch.setattr(sensors.random, "randrange", lambda most: 0)
    assert sensors.Publisher(opening)._connection == "connection" and pauses == [0.1] * 8
    attempts.clear()
    monkeypatch.setattr(sensors.random, "randrange", lambda most: chance.pop())
    chance, failures = [2600, 800, 200, 0], 4
    assert sensors.Publisher(opening)._connection == "connection" and pauses[8:] == [0.1, 0.3, 0.9, 2.0]
    monkeypatch.setattr(sensors.random, "randrange", lambda most: 0)
    failures, before = 1000, now[0]
    with pytest.raises(ConnectFailed):
        sensors.Publisher(opening)
    assert 19.85 < now[0] - before < 20.05
