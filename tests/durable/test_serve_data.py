"""`leveret serve --data` as its user meets it: what it says, what it refuses, a stop and a start, a full disk, a damaged log."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from broker_process import BrokerProcess

from leveret.core.access import passwords
from leveret.core.log import segments
from leveret.ports.client import Timeout, connect
from leveret.ports.store_file import FileStore

COMMAND = [sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", "amqp://127.0.0.1:0"]
PERSISTENT = {"delivery_mode": 2}
SMALL = "[limits]\ncontent_size_max = 65536\n"


def refused(*arguments):
    """(exit status, the one sentence) of a broker that does not start."""
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "" and "Traceback" not in done.stderr and done.stderr.count("\n") == 1, (done.stdout, done.stderr)
    return done.returncode, done.stderr


def contents(directory):
    """{name: octets} of a directory."""
    found = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as file:
            found[name] = file.read()
    return found


def fill(broker, queue, count, size=100, arguments=None):
    """Publish `count` messages, each beginning with its number and confirmed before the next, so that each is a record of its own."""
    client = connect(broker.url)
    client.queue_declare(queue, durable=True, arguments=arguments)
    for number in range(count):
        client.publish("", queue, str(number).encode() + b" " + bytes(size), PERSISTENT)
    client.close()


def numbers(broker, queue):
    """The numbers of the messages in a queue, which is empty then."""
    client = connect(broker.url)
    bodies = []
    message = client.get(queue, no_ack=True)
    while message is not None:
        bodies.append(int(bytes(message.body).split(b" ")[0]))
        message = client.get(queue, no_ack=True)
    client.close()
    return bodies


def only_segment(directory):
    """The path of the newest segment that has messages."""
    found = sorted(name for name in os.listdir(directory) if name.endswith(".log"))
    sizes = [os.path.getsize(os.path.join(directory, name)) for name in found]
    return os.path.join(directory, found[sizes.index(max(sizes))])


def test_a_stop_and_a_start_change_nothing_in_any_mode(start, tmp_path):
    for mode in ("each", "batch", "none"):
        directory = tmp_path / mode
        broker = start(directory, "--sync", mode)
        fill(broker, "q", 300)
        client = connect(broker.url)
        client.qos(100)
        client.consume("q")
        messages = []
        while len(messages) < 100:
            messages += client.poll(2000)
        client.ack(messages[99], multiple=True)
        client.close()
        assert broker.stop() == 0
        broker = start(directory, "--sync", mode)
        told = broker.error_text()
        assert numbers(broker, "q") == list(range(100, 300)), mode
        assert "recovered 200 messages in 1 queues" in told, told
        assert broker.stop() == 0


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((), "loses nothing that was confirmed; every round"),
        (("--sync", "batch", "--batch-ms", "7", "--batch-octets", "64K"), "confirms wait up to 7 ms (or until there are 65536 octets)"),
        (("--sync", "none"), "may take the last"),
    ],
)
def test_the_window_is_told_at_start(start, tmp_path, arguments, words):
    told = start(tmp_path / "data", *arguments).error_text()
    assert words in told and "recovered 0 messages" in told


def test_what_the_log_writes_is_told_at_start_and_by_status(start, tmp_path):
    broker = start(tmp_path / "data", "--sync", "none", "--disk-max", "256M")
    assert "the log takes 0 MiB in 1 file, 256 MiB at most; `leveret status` tells" in broker.error_text()
    fill(broker, "q", 30, 1000)
    done = subprocess.run([*COMMAND[:3], "status", broker.url], capture_output=True, text=True, timeout=120)
    told = dict(line.split(" ")[1:] for line in done.stdout.splitlines() if line.startswith("log "))
    assert told["sync"] == "none" and int(told["window_ms"]) >= 1000 and told["trouble"] == '""'
    assert int(told["octets"]) > int(told["message_octets"]) > 30000 and int(told["size"]) >= 30000 and told["size_max"] == str(254 << 20)
    assert float(told["amplification"]) > 1 and told["life_years"] == "-"
    broker.stop()
    broker = start(tmp_path / "data")
    done = subprocess.run([*COMMAND[:3], "status", broker.url], capture_output=True, text=True, timeout=120)
    assert "log sync each\nlog window_ms 0\n" in done.stdout


def test_a_user_imported_into_a_running_broker_logs_in_after_a_restart(start, tmp_path):
    path = tmp_path / "definitions.json"
    hashed = subprocess.run([*COMMAND[:3], "password"], input="s3cret-word", capture_output=True, text=True, timeout=60).stdout.strip()
    item = {
        "name": "sensor",
        "tags": "",
        "hashing_algorithm": passwords.Pbkdf2.algorithm,
        "password_hash": passwords.base64(hashed.encode()),
    }
    broker = start(tmp_path / "data")
    permission = {"user": "sensor", "vhost": "/", "configure": "q", "write": ".*", "read": "q"}
    path.write_text(json.dumps({"users": [item], "permissions": [permission]}))
    done = subprocess.run(
        [*COMMAND[:3], "definitions", "import", "--to", broker.url, str(path)], capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 0 and "loaded 1 users, 1 permissions" in done.stdout, done.stderr
    broker.process.kill()
    broker.process.wait(60)
    broker = start(tmp_path / "data")
    client = connect(broker.url.replace("guest:guest", "sensor:s3cret-word"))
    client.queue_declare("q", durable=True)
    client.close()
    assert not any(b"s3cret-word" in octets for octets in contents(tmp_path / "data").values())


def test_a_directory_in_use_is_refused(start, tmp_path):
    start(tmp_path / "data")
    status, told = refused("--data", tmp_path / "data")
    assert status == 1 and "in use by another broker" in told and str(tmp_path) in told


def test_a_directory_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    status, told = refused("--data", tmp_path / "file" / "data")
    assert status == 1 and "it lies below a file" in told
    status, told = refused("--data", tmp_path / "file")
    assert status == 1 and "it is a file" in told
    status, told = refused("--data", "/proc/leveret")
    assert status == 1 and "/proc/leveret cannot be used" in told


def test_a_newer_log_is_refused_and_not_touched(start, tmp_path):
    directory = tmp_path / "data"
    broker = start(directory)
    fill(broker, "q", 3)
    broker.stop()
    store = FileStore(str(directory))
    store.append(9, segments.record(0, segments.HEAD, (segments.MAGIC, b"\x00\x09", bytes(8)), 14))
    store.close()
    before = contents(directory)
    status, told = refused("--data", directory)
    assert status == 1 and "version 9" in told and contents(directory) == before


def test_a_log_larger_than_the_limits_is_refused_and_not_touched(start, tmp_path):
    directory = tmp_path / "data"
    broker = start(directory)
    fill(broker, "q", 400, arguments={"x-max-priority": 2})  # such a queue is kept in memory
    assert broker.stop() == 0
    before = contents(directory)
    small = tmp_path / "small.toml"
    small.write_text("[limits]\nmessage_count_max = 100\nentry_count_max = 100\n")
    status, told = refused("--data", directory, "--config", small)
    assert status == 1 and "message_count_max (100)" in told and contents(directory) == before
    small.write_text("[limits]\nqueue_count_max = 1\nqueue_share_max = 1\n")
    broker = start(directory, "--config", small)
    assert numbers(broker, "q") == list(range(400))


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--sync", "batch"), "--data DIR"),
        (("--data", "D", "--memory"), "not allowed with"),
        (("--data", ""), "name of a directory"),
        (("--data", "D", "--sync", "often"), "invalid choice"),
        (("--data", "D", "--batch-ms", "0"), "--batch-ms is '0'; it must be a whole number of milliseconds from 1 to 60000"),
        (("--data", "D", "--disk-max", "lots"), "--disk-max is 'lots'"),
        (("--data", "D", "--disk-max", "-5"), "--disk-max is '-5'"),
        (("--data", "D", "--segment-size", "1K"), "--segment-size is '1K'"),
        (("--data", "D", "--disk-max", "1M", "--segment-size", "512K"), "less than 4 files"),
        (
            ("--data", "D", "--disk-max", "100M"),
            "less than 4 messages of the largest size (33554432 octets, content_size_max): raise --disk-max to 128M, or make messages "
            "smaller with --config, as in [limits] content_size_max = 26214400",
        ),
    ],
)
def test_a_wrong_option_is_one_sentence(arguments, words):
    status, told = refused(*arguments)
    assert status == 2 and words in told and not os.path.exists("D"), told


@pytest.mark.parametrize(
    "text, words",
    [
        ("data = 5", "a table, written [data]"),
        ("[data]\ncolour = 1", "'colour' in [data]; there are directory, sync"),
        ("[data]\nsync = 'each'", "sync is for messages that are kept on disk"),
        ("[data]\ndirectory = 5", "directory must be"),
        ("[data]\ndirectory = 'D'\nsync = 'x'", "one of each, batch, none"),
        ("[data]\ndirectory = 'D'\nbatch_ms = 2.5", "[data] batch_ms is 2.5"),
        ("[data]\ndirectory = 'D'\ndisk_max = true", "[data] disk_max is True"),
        ("[data]\ndirectory = 'D'\nsegment_size = '8X'", "[data] segment_size is '8X'"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(tmp_path, text, words):
    path = tmp_path / "leveret.toml"
    path.write_text(text)
    status, told = refused("--config", path)
    assert status == 2 and words in told and not os.path.exists("D"), told


def test_the_file_says_where_and_how(tmp_path):
    path = tmp_path / "leveret.toml"
    path.write_text(f"[data]\ndirectory = '{tmp_path}/data'\nsync = 'batch'\nbatch_ms = 9\ndisk_max = '2M'\nsegment_size = 65536\n" + SMALL)
    broker = BrokerProcess("leveret", arguments=["--config", str(path)])
    try:
        assert "up to 9 ms" in broker.error_text() and os.path.exists(tmp_path / "data" / "lock")
    finally:
        broker.stop()


def test_idle_writes_nothing(start, tmp_path):
    broker = start(tmp_path / "data")
    client = connect(broker.url)
    before = contents(tmp_path / "data")
    client.poll(500)
    assert contents(tmp_path / "data") == before


@pytest.mark.parametrize("cut", [1, 7, 50])
def test_a_damaged_tail_is_put_aside_and_told(start, tmp_path, cut):
    directory = tmp_path / "data"
    broker = start(directory)
    fill(broker, "q", 20)
    broker.stop()
    path = only_segment(directory)
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - cut)
    broker = start(directory)
    assert "recovered 19 messages" in broker.error_text() and "put aside" in broker.error_text(), broker.error_text()
    assert [name for name in os.listdir(directory) if ".damaged-20" in name]
    assert numbers(broker, "q") == list(range(19))
    broker.stop()
    assert "put aside" not in start(directory).error_text()


def test_a_flipped_octet_costs_what_is_behind_it_and_no_more(start, tmp_path):
    directory = tmp_path / "data"
    broker = start(directory)
    fill(broker, "q", 20)
    broker.stop()
    path = only_segment(directory)
    with open(path, "r+b") as file:
        octets = bytearray(file.read())
        at = octets.index(b"7 " + bytes(100))
        octets[at + 5] ^= 1
        file.seek(0)
        file.write(octets)
    broker = start(directory)
    assert "a record whose CRC does not fit" in broker.error_text()
    assert numbers(broker, "q") == list(range(7))
    kept = [name for name in os.listdir(directory) if ".damaged-20" in name]
    with open(directory / kept[0], "rb") as file:
        assert b"19 " + bytes(100) in file.read()


def test_a_full_log_makes_publishers_wait_and_a_consumer_makes_room(start, tmp_path):
    (tmp_path / "small.toml").write_text(SMALL)
    broker = start(tmp_path / "data", "--disk-max", "512K", "--segment-size", "32K", "--config", tmp_path / "small.toml")
    client = connect(broker.url, timeout_ms=1500)
    client.queue_declare("q", durable=True)
    with pytest.raises(Timeout):
        for number in range(2000):
            client.publish("", "q", b"%d " % number + bytes(1000), PERSISTENT, confirm=False)
        client.wait_confirmed()
    size = sum(map(len, contents(tmp_path / "data").values()))
    assert 350 << 10 < size <= 512 << 10
    reader = connect(broker.url)
    bodies = []
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 1:  # what the publisher has sent comes as room is made
        message = reader.get("q", no_ack=True)
        if message is not None:
            bodies.append(int(bytes(message.body).split(b" ")[0]))
            quiet_since = time.monotonic()
    assert bodies[:350] == list(range(350))
    fill(broker, "other", 100, 1000)
    assert broker.alive()


def test_a_disk_that_takes_no_more_is_told_and_service_comes_back(tmp_path, start):
    """RLIMIT_FSIZE stands in for the disk: a file may not grow beyond it (EFBIG)."""
    directory = tmp_path / "data"
    broker = start(directory, "--sync", "batch", "--batch-ms", "5")
    pid = broker.process.pid
    fill(broker, "q", 10)
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (os.path.getsize(only_segment(directory)) + 700, hard))
    client = connect(broker.url, timeout_ms=1000)
    with pytest.raises(Timeout):
        for number in range(10, 40):
            client.publish("", "q", b"%d " % number + bytes(100), PERSISTENT, confirm=False)
        client.wait_confirmed()
    assert broker.alive() and "the log cannot be written" in broker.error_text()
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
    client.poll(300)
    assert client.unconfirmed == 0 and "the log can be written again" in broker.error_text()
    broker.process.send_signal(signal.SIGKILL)
    broker.process.wait(60)
    assert numbers(start(directory), "q") == list(range(40))
