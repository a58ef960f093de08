"""Files over a real `leveret serve --data` that is killed while they are staged and while they are delivered: `leveret file` goes on
where it stopped, and what comes is what was sent. At every write and call of the store: tests/unit/test_0_10_staged.py; 1 GiB:
tests/measure/file_through.py.
"""

import hashlib
import os
import subprocess
import sys
import threading
import time

import pytest

from leveret.ports import files_0_10
from leveret.ports.client import connect
from leveret.ports.client_errors import ClientError

SIZE = 6000000
CUTS = (1, 1500000, 4000000)  # octets after which the broker is killed
LIMITS = "[limits]\ncontent_size_max = 1048576\nstaged_size_max = 16777216\nstaged_share_max = 100\n"
PATIENCE_S = 60
FILE = [sys.executable, "-m", "leveret.tools.cli", "file"]


class Cut(Exception):
    """The broker was killed at this moment."""


@pytest.fixture
def image(tmp_path):
    """A file whose octets do not repeat."""
    path = tmp_path / "image.bin"
    octets = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(SIZE // 32))
    path.write_bytes(octets)
    return path


@pytest.fixture
def settings(tmp_path):
    """Arguments of a broker in which the image is larger than a message."""
    path = tmp_path / "limits.toml"
    path.write_text(LIMITS)
    return ("--config", path)


def ready(broker):
    """Messages in the queue `images`."""
    client = connect(broker.url)
    try:
        return client.queue_declare("images", passive=True)[1]
    finally:
        client.close()


def killed(broker):
    """kill -9."""
    broker.process.kill()
    broker.process.wait()


def killing(broker, cuts, far):
    """A function that is shown how far a file is: it kills the broker at the next of `cuts`. `far(at)`: how far it is in truth."""
    left = list(cuts)

    def shown(at, size):
        if left and far(at) >= left[0]:
            left.pop(0)
            killed(broker[0])
            raise Cut

    return shown


def on_disk(directory):
    """Octets of all staged contents."""
    folder = directory / "staged"
    return sum(os.path.getsize(folder / each) for each in os.listdir(folder)) if folder.exists() else 0


def until_done(call, restart):
    """Call until it ends without a cut: (what it returned, how often it was cut)."""
    cuts = 0
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call(), cuts
        except (Cut, ClientError):
            assert time.monotonic() < deadline
            cuts += 1
            restart()


def test_kills_cost_no_file_and_little_of_the_way(start, tmp_path, image, settings):
    """What the store had is not sent again, but for what it was writing."""
    broker = [start(tmp_path / "data", *settings)]

    def restart():
        broker[0] = start(tmp_path / "data", *settings)

    client = connect(broker[0].url)
    client.queue_declare("images", durable=True)
    client.close()
    shown = killing(broker, CUTS, lambda at: on_disk(tmp_path / "data"))
    resumed, cuts = until_done(lambda: files_0_10.send(broker[0].url, str(image), "", "images", shown=shown), restart)
    assert cuts == len(CUTS) and CUTS[-1] - 500000 <= resumed <= SIZE
    killed(broker[0])
    restart()
    held = ready(broker[0])
    assert held == 1 or held == 2 and resumed == SIZE, "all of it was there, published, and the answer was cut off: it was sent again"
    shown = killing(broker, CUTS, lambda at: at)
    got = tmp_path / "got.bin"
    (name, resumed), cuts = until_done(lambda: files_0_10.receive(broker[0].url, "images", str(got), shown, timeout_ms=60000), restart)
    assert cuts == len(CUTS) and name == "image.bin" and resumed >= CUTS[-1]
    assert got.read_bytes() == image.read_bytes() and sorted(os.listdir(tmp_path)) == ["data", "got.bin", "image.bin", "limits.toml"]
    assert ready(broker[0]) == held - 1
    if held == 2:
        return
    deadline = time.monotonic() + PATIENCE_S
    while [each for each in os.listdir(tmp_path / "data" / "staged") if each.endswith(".log")]:
        assert time.monotonic() < deadline, "a content stays that no message refers to"
        time.sleep(0.2)


def test_the_command_waits_for_the_broker_and_says_what_is_wrong(start, tmp_path, image, settings):
    broker = start(tmp_path / "data", *settings)
    client = connect(broker.url)
    client.queue_declare("images", durable=True)
    client.close()

    def command(*arguments):
        return subprocess.run([*FILE, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    done = command("send", broker.url, image, "--queue", "images", "--quiet")
    assert done.returncode == 0 and "octets are in the broker's hands" in done.stdout and not done.stderr
    folder = tmp_path / "here"
    folder.mkdir()
    done = command("receive", broker.url, folder, "--queue", "images")
    assert done.returncode == 0 and "checksum right" in done.stdout and "(100 %)" in done.stderr
    assert (folder / "image.bin").read_bytes() == image.read_bytes() and os.listdir(folder) == ["image.bin"]
    for arguments, status, part in (
        (("send", broker.url, image, "--queue", "none"), 1, "the broker has no queue 'none'"),
        (("send", broker.url, image), 2, "either --queue, or --exchange"),
        (("send", broker.url, tmp_path / "no", "--queue", "images"), 2, "there is no file"),
        (("receive", broker.url, folder, "--queue", "none"), 1, "no queue 'none'"),
        (("receive", broker.url, folder, "--queue", "images", "--wait", "1", "--retry", "1"), 1, "nothing has come"),
        (("send", broker.url.replace("guest:guest", "guest:wrong"), image, "--queue", "images"), 1, "refuses the log-in"),
    ):
        done = command(*arguments, "--quiet")
        assert done.returncode == status and part in done.stderr, (arguments, done.stderr)


def test_a_file_with_another_checksum_is_not_taken(start, tmp_path, image):
    broker = start(tmp_path / "data")
    client = connect(broker.url)
    client.queue_declare("images", durable=True)
    client.publish("", "images", b"no such image", {"headers": {files_0_10.CHECKSUM: "0" * 64}})
    with pytest.raises(files_0_10.Refused, match="another checksum"):
        files_0_10.receive(broker.url, "images", str(tmp_path / "got"))
    assert not os.path.exists(tmp_path / "got") and not os.path.exists(tmp_path / "got.part")
    assert client.queue_declare("images", passive=True)[1] == 1
    client.close()


def test_a_part_that_is_not_what_came_is_received_anew(start, tmp_path, image, settings):
    """A power cut may cost octets of it: the file is no other's fault, and a further call begins again."""
    broker = start(tmp_path / "data", *settings)
    client = connect(broker.url)
    client.queue_declare("images", durable=True)
    client.close()
    files_0_10.send(broker.url, str(image), "", "images")

    def cut(at, size):
        if at > SIZE // 2:
            raise Cut

    got = tmp_path / "got"
    with pytest.raises(Cut):
        files_0_10.receive(broker.url, "images", str(got), cut)
    with open(tmp_path / "got.part", "r+b") as part:
        part.write(bytes(4096))
    with pytest.raises(ClientError, match="another checksum") as caught:
        files_0_10.receive(broker.url, "images", str(got))
    assert not isinstance(caught.value, files_0_10.Refused)
    assert files_0_10.receive(broker.url, "images", str(got)) == ("image.bin", 0)
    assert got.read_bytes() == image.read_bytes()


def test_two_files_at_once(start, tmp_path, image, settings):
    """The store writes for one content at a time: both come whole."""
    broker = start(tmp_path / "data", *settings)
    client = connect(broker.url)
    client.queue_declare("images", durable=True)
    client.close()
    other = tmp_path / "other.bin"
    other.write_bytes(image.read_bytes()[::-1])
    senders = [threading.Thread(target=files_0_10.send, args=(broker.url, str(each), "", "images")) for each in (image, other)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(PATIENCE_S)
    for _ in range(2):
        name, _ = files_0_10.receive(broker.url, "images", str(tmp_path / "got"))
        assert (tmp_path / "got").read_bytes() == (tmp_path / name).read_bytes()


def test_a_file_that_is_here_is_received_though_the_acknowledgement_is_lost(start, tmp_path, image, monkeypatch):
    """It has its name, durably, before the broker is told; a further call would put the next file in its place."""
    broker = start(tmp_path / "data")
    client = connect(broker.url)
    client.queue_declare("images", durable=True)
    client.publish("", "images", b"the first", {"delivery_mode": 2})
    client.publish("", "images", b"the second", {"delivery_mode": 2})
    client.close()
    got = tmp_path / "got"
    seen = []

    def cut(folder):
        seen.append((folder, got.read_bytes()))
        killed(broker)

    monkeypatch.setattr(files_0_10, "sync_folder", cut)
    files_0_10.receive(broker.url, "images", str(got))
    assert seen == [(str(tmp_path), b"the first")] and got.read_bytes() == b"the first"
    assert sorted(os.listdir(tmp_path)) == ["data", "got", "image.bin"]


def test_a_broker_that_stops_refuses_nothing(start, tmp_path, image, settings):
    """connection-forced: who sends goes on when the broker is back."""
    broker = start(tmp_path / "data", *settings)
    client = connect(broker.url)
    client.queue_declare("images", durable=True)
    client.close()

    def shown(at, size):
        if at > SIZE // 2:
            broker.process.terminate()

    with pytest.raises(ClientError) as caught:
        files_0_10.send(broker.url, str(image), "", "images", shown=shown)
    assert not isinstance(caught.value, files_0_10.Refused)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--queue", "no such queue"), "the broker has no queue 'no such queue'"),
        (("--exchange", "no such exchange", "--key", "k"), "the broker has no exchange 'no such exchange'"),
        (("--exchange", "amq.topic", "--key", "nobody's"), "the broker returns the file: no queue takes the message (312)"),
    ],
)
def test_a_file_that_goes_nowhere_is_refused_before_it_is_sent(start, tmp_path, image, settings, given, told):
    """queue.query and exchange.query; whether a key has a binding is known when the file is published (file.return)."""
    broker = start(tmp_path / "data", *settings)
    done = subprocess.run([*FILE, "send", broker.url, str(image), *given], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and done.stderr.endswith(f"leveret file: {told}\n"), done.stderr
    if "has no" in told:
        assert done.stderr.count("\n") == 1, "octets of the file were sent"


def test_a_file_that_changes_while_it_is_sent_is_not_sent(start, tmp_path, image, settings):
    """Its checksum would be another's."""
    broker = start(tmp_path / "data", *settings)
    client = connect(broker.url)
    client.queue_declare("images", durable=True)

    def shown(at, size):
        if 0 < at < SIZE:  # at the first news: all of it may be read soon
            with open(image, "r+b") as file:
                file.seek(SIZE - 9)
                file.write(b"otherwise")

    with pytest.raises(files_0_10.Refused, match="has changed"):
        files_0_10.send(broker.url, str(image), "", "images", shown=shown)
    assert client.queue_declare("images", passive=True)[1] == 0
    client.close()


def test_names_of_files_that_come_to_a_folder(tmp_path):
    """No sender chooses another folder, or a name that no file can have."""
    (tmp_path / "there").mkdir()
    for name, base in (("a.bin", "a.bin"), ("/etc/a", "a"), ("../a", "a")):
        assert files_0_10.place(str(tmp_path), name) == str(tmp_path / base)
    for name in ("", ".", "..", "a/", "a\0b", "a" * 256, "there"):
        assert files_0_10.place(str(tmp_path), name) == str(tmp_path / "received")
    assert files_0_10.place(str(tmp_path / "new"), "a.bin") == str(tmp_path / "new")
