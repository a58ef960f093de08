"""A disk that is really full: a small file system in memory, mounted for the test.

The disk is filled by the log itself, and by somebody else. Publishers wait, consumers go on, nothing is lost, and service comes back.
"""

import os
import subprocess
import time

import pytest
from broker_process import BrokerProcess

from leveret.ports.client import connect
from leveret.ports.client_errors import Timeout

PERSISTENT = {"delivery_mode": 2}
DISK = 4 << 20
SIZES = ("--segment-size", "64K", "--disk-max", "64M")
LIMITS = "[limits]\ncontent_size_max = 65536\n"


@pytest.fixture
def disk(tmp_path):
    """A directory on a file system of DISK octets."""
    path = tmp_path / "disk"
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(path)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("mount is not permitted here")
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
def start(tmp_path, disk):
    settings = tmp_path / "leveret.toml"
    settings.write_text(LIMITS)
    started = []

    def run():
        started.append(BrokerProcess("leveret", arguments=["--data", str(disk / "data"), "--config", str(settings), *SIZES]))
        return started[-1]

    yield run
    for broker in started:
        broker.stop()


def free(path):
    space = os.statvfs(path)
    return space.f_bavail * space.f_frsize


def fill(client, count, size=1000):
    """Publish until all is confirmed or nothing goes on: the number confirmed."""
    number = 0
    try:
        while number < count:
            client.publish("", "q", b"%d " % number + bytes(size), PERSISTENT)
            number += 1
    except Timeout:
        pass
    return number


def take_all(client):
    """The numbers of all messages; each is acknowledged."""
    bodies = []
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 1:
        message = client.get("q")
        if message is not None:
            bodies.append(int(bytes(message.body).split(b" ")[0]))
            client.ack(message)
            quiet_since = time.monotonic()
    return bodies


def others_fill(disk):
    """Somebody else takes what is left of the disk."""
    with open(disk / "other", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
    assert free(disk) == 0


def test_publishers_wait_before_the_disk_is_full_and_go_on_when_there_is_room(start, disk):
    broker = start()
    client = connect(broker.url, timeout_ms=1500)
    client.queue_declare("q", durable=True)
    count = fill(client, 6000)
    assert 2000 < count < 6000 and free(disk) > 0
    reader = connect(broker.url)
    assert take_all(reader)[:count] == list(range(count))
    again = connect(broker.url)
    again.queue_declare("q", durable=True)
    assert fill(again, 300) == 300
    assert "cannot be written" not in broker.error_text()


def test_acknowledgements_make_room_on_a_disk_that_others_have_filled(start, disk):
    """The reserve goes, what was settled is noted, its files are removed: publishers go on though the other file stays."""
    broker = start()
    client = connect(broker.url, timeout_ms=1500)
    client.queue_declare("q", durable=True)
    assert fill(client, 1000) == 1000
    assert os.path.getsize(disk / "data" / "reserve") == 65536
    others_fill(disk)
    assert fill(client, 50) < 50
    assert take_all(connect(broker.url))[:1000] == list(range(1000))
    again = connect(broker.url)
    again.queue_declare("q", durable=True)
    assert fill(again, 300) == 300
    broker.process.kill()
    broker.process.wait(60)
    assert len(take_all(connect(start().url))) >= 300
    assert os.path.getsize(disk / "data" / "reserve") == 65536


def test_service_comes_back_when_others_give_room(start, disk):
    """Nothing that was confirmed is missing after the disk was full to the last octet, without anybody who consumes."""
    broker = start()
    client = connect(broker.url, timeout_ms=1500)
    client.queue_declare("q", durable=True)
    assert fill(client, 500) == 500
    others_fill(disk)
    assert fill(client, 500) < 500
    assert connect(broker.url).queue_declare("q", passive=True)[1] >= 500
    os.remove(disk / "other")
    again = connect(broker.url)
    assert fill(again, 100) == 100
    broker.process.kill()
    broker.process.wait(60)
    found = take_all(connect(start().url))
    assert found[:500] == list(range(500)) and found[-100:] == list(range(100))
