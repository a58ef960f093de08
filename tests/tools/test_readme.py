"""What the pages show works as it stands: the clients' examples against a real broker, configuration files, the service."""

import contextlib
import os
import re
import subprocess
import sys

import pika
import pytest

from leveret.core.amqp_0_9.drafts import family
from leveret.core.wire import registry
from leveret.tools import cli, config, memory, serve
from leveret.tools.devtool import pages
from leveret.tools.devtool.pages import ROOT, read

LINES_MAX = 130
CLIENTS = "ports/CLIENTS.md"
# What a board has and CPython has not, for the example of a board that only publishes: it ends after three readings.
BOARD = {
    "network.py": """
STA_IF = 0
class WLAN:
    def __init__(self, kind): pass
    def active(self, on): pass
    def connect(self, name, password): pass
""",
    "machine.py": """
class ADC:
    readings = [1, 2, 3]
    def __init__(self, pin): pass
    def read_u16(self):
        if not self.readings:
            raise SystemExit
        return self.readings.pop(0)
""",
}


def examples(page):
    """The fenced blocks of a page, as text."""
    return pages.fences(read(page), "python", "toml", "ini", "sh")


def example(words, page):
    found = [block for block in examples(page) if words in block]
    assert len(found) == 1, (words, found)
    return found[0]


@contextlib.contextmanager
def broker(*options):
    """The port of a broker that runs meanwhile."""
    process = subprocess.Popen([sys.executable, "-m", "leveret.tools.cli", "serve", *options], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip().rsplit(":", 1)[1]
    finally:
        process.terminate()
        process.communicate(timeout=120)


@pytest.fixture(scope="module")
def port():
    with broker("--listen", "amqp://127.0.0.1:0") as listening:
        yield listening


def run_example(program, port):
    done = subprocess.run([sys.executable, "-c", program.replace(":5672", ":" + port)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_front_page_is_short_and_begins_with_how_to_install_and_start():
    text = read("README.md")
    assert len(text.splitlines()) <= LINES_MAX
    first = pages.fences(text, "sh", "python", "toml")[0]
    assert "pip install" in first and "leveret serve" in first


def test_the_front_page_and_the_help_of_serve_say_what_the_two_ambiguous_headers_mean():
    """Each as a listener takes it: the published version, and the draft only where its URL says so."""
    done = subprocess.run([sys.executable, "-m", "leveret.tools.cli", "serve", "--help"], capture_output=True, text=True, check=True)
    said = {"page": " ".join(read("README.md").split()), "help": " ".join(done.stdout.split())}
    assert "`AMQP 1 1 0 9` is 0-9 and `AMQP 1 1 9 1` is 0-8, unless the listener names the draft" in said["page"]
    for draft, header, published in (("0.9a5", b"AMQP\x01\x01\x00\x09", "0-9"), ("0.9r1", b"AMQP\x01\x01\x09\x01", "0-8")):
        numbers = "AMQP " + " ".join(str(octet) for octet in header[4:])
        assert [registry.sniff(header, families)[1].name for families in (registry.FAMILIES, family.families(draft))] == [
            "AMQP " + published,
            family.families(draft)[0].name,
        ]
        assert (
            f"?version={draft}" in said["page"] and f"{numbers} is {published}, or the draft {draft} with version={draft}" in said["help"]
        )


@pytest.mark.parametrize("page", ["README.md", CLIENTS])
def test_pika(port, page):
    assert run_example(example("basic_get", page), port) == "b'21.5'\n"


def test_the_user_of_the_front_page_may_do_what_its_example_does(tmp_path):
    """The configuration file and the example belong together: declare, publish to the default exchange, get (SPEC.md, Access)."""
    command = [sys.executable, "-m", "leveret.tools.cli", "password"]
    hashed = subprocess.run(command, input="secret\n", capture_output=True, text=True).stdout
    settings = example("[[user]]", "README.md").replace("...", hashed.strip()).replace("0.0.0.0:5672", "127.0.0.1:0")
    (tmp_path / "leveret.toml").write_text(settings)
    with broker("--config", str(tmp_path / "leveret.toml")) as listening:
        assert run_example(example("basic_get", "README.md").replace("guest:guest", "sensors:secret"), listening) == "b'21.5'\n"


def test_aio_pika(port):
    assert run_example(example("import aio_pika", CLIENTS), port) == "b'21.5'\n"


def test_kombu(port):
    # Its own queue: the one of the other examples is durable and holds other things.
    assert run_example(example("from kombu", CLIENTS).replace('"readings"', '"kombu"'), port) == "{'celsius': 21.5}\n"
    channel = pika.BlockingConnection(pika.URLParameters("amqp://guest:guest@127.0.0.1:%s/" % port)).channel()
    assert channel.queue_declare("kombu", passive=True).method.message_count == 0  # an example leaves nothing behind
    channel.connection.close()


def test_a_stream(port):
    assert run_example(example("x-stream-offset", CLIENTS), port) == "0 b'21.5'\n"


def test_our_own_client(port):
    assert run_example(example("from leveret.ports.client import", CLIENTS), port) == "b'21.5'\n"


def test_our_own_client_of_1_0(port):
    channel = pika.BlockingConnection(pika.URLParameters("amqp://guest:guest@127.0.0.1:%s/" % port)).channel()
    channel.queue_delete("sensors")
    channel.queue_declare("sensors", durable=True)
    channel.connection.close()
    assert run_example(example("from leveret.ports.client_1_0 import", CLIENTS), port) == "b'21.5'\n"


def test_the_files_of_a_board_that_publishes_over_1_0_are_enough(tmp_path):
    """Its example imports the client; -S: this tree's own package is out of sight."""
    prepare = example("cp --parents core/{errors,shim,states}.py core/amqp_1_0", "boards/README.md")
    commands = "".join(line for line in prepare.splitlines(keepends=True) if "mpremote" not in line)
    done = subprocess.run(["bash", "-ec", commands.replace("client/lib", str(tmp_path / "lib"))], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first = example("from leveret.ports.client_1_0 import", "boards/README.md").splitlines()[0]
    program = (
        first
        + "\ntry:\n    connect('amqp://guest:guest@127.0.0.1:1/')\nexcept (ClientError, OSError) as error:\n    print(type(error).__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], env={"PYTHONPATH": str(tmp_path / "lib")}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stdout == "ConnectFailed\n", (done.stdout, done.stderr)


def test_a_board_that_only_publishes(port, tmp_path):
    """The files that boards/README.md has copied are enough, and main.py publishes; -S: this tree's own package is out of sight."""
    prepare = example("cp --parents core/{errors,shim,states}.py core/amqp_0_9", "boards/README.md")
    commands = "".join(line for line in prepare.splitlines(keepends=True) if "mpremote" not in line)
    done = subprocess.run(["bash", "-ec", commands.replace("client/lib", str(tmp_path / "lib"))], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, text in BOARD.items():
        (tmp_path / "lib" / name).write_text(text)
    program = example("wifi.connect", "boards/README.md").replace("sensors:secret@192.168.1.10:5672", "guest:guest@127.0.0.1:" + port)
    done = subprocess.run(
        [sys.executable, "-S", "-c", program.replace('"readings"', '"light"').replace("poll(1000)", "poll(1)")],
        env={"PYTHONPATH": str(tmp_path / "lib")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and done.stdout == "", (done.stdout, done.stderr)
    channel = pika.BlockingConnection(pika.URLParameters("amqp://guest:guest@127.0.0.1:%s/" % port)).channel()
    assert [channel.basic_get("light", auto_ack=True)[2] for _ in range(4)] == [b"1", b"2", b"3", None]
    channel.connection.close()


def test_the_service_starts_the_broker_with_options_that_there_are():
    command = re.search(r"^ExecStart=(.*)$", example("[Service]", "tools/SERVE.md"), re.MULTILINE)[1].split()
    assert os.path.basename(command[0]) == "leveret"
    options = cli.make_parser("serve").parse_args(command[1:])
    assert options.data and options.config and options.run is serve.run


def test_the_configuration_file(tmp_path):
    path = tmp_path / "leveret.toml"
    path.write_text(example("arena_size", "tools/SERVE.md"))
    urls, limits = config.load(str(path))
    assert len(urls) == 2 and limits.arena_size == 16777216
    given, most = config.given_limits(str(path))
    assert memory.total(memory.fitting(given, most)) <= most == 160 << 20
