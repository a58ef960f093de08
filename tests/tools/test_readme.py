"""What README.md shows works as it stands: the clients' examples against a real broker, the configuration file, the commands."""
import os
import re
import subprocess
import sys

import pika
import pytest

from leveret.tools import cli, config, memory, serve

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ("README.md", "boards/README.md", "ports/SERIAL.md", "ports/bridge/README.md", "ports/spark/README.md", "core/DESIGN.md")
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
"""}


def read(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def examples(page):
    """The indented blocks of a page, as text."""
    text = read(page)
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)
    return ["".join(line[4:] or "\n" for line in block.splitlines(keepends=True)) for block in blocks]


def example(words, page="README.md"):
    found = [block for block in examples(page) if words in block]
    assert len(found) == 1, (words, found)
    return found[0]


@pytest.fixture(scope="module")
def port():
    process = subprocess.Popen([sys.executable, "-m", "leveret.tools.cli", "serve", "--listen", "amqp://127.0.0.1:0"],
                               stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip().rsplit(":", 1)[1]
    process.terminate()
    process.communicate(timeout=120)


def run_example(program, port):
    done = subprocess.run([sys.executable, "-c", program.replace(":5672", ":" + port)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pika(port):
    assert run_example(example("basic_get") + "\nprint(body)\n", port) == "b'21.5'\n"


def test_aio_pika(port):
    assert run_example(example("import aio_pika"), port) == "b'21.5'\n"


def test_kombu(port):
    # Its own queue: the one of the other examples is durable and holds other things.
    assert run_example(example("from kombu").replace('"readings"', '"kombu"'), port) == "{'celsius': 21.5}\n"
    channel = pika.BlockingConnection(pika.URLParameters("amqp://guest:guest@127.0.0.1:%s/" % port)).channel()
    assert channel.queue_declare("kombu", passive=True).method.message_count == 0  # an example leaves nothing behind
    channel.connection.close()


def test_a_stream(port):
    assert run_example(example("x-stream-offset"), port) == "0 b'21.5'\n"


def test_a_board_that_only_publishes(port, tmp_path):
    """The files that boards/README.md has copied are enough, and main.py publishes; -S: this tree's own package is out of sight."""
    prepare = example("cp --parents", "boards/README.md")
    commands = "".join(line for line in prepare.splitlines(keepends=True) if "mpremote" not in line)
    done = subprocess.run(["bash", "-ec", commands.replace("client/lib", str(tmp_path / "lib"))], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, text in BOARD.items():
        (tmp_path / "lib" / name).write_text(text)
    program = example("wifi.connect", "boards/README.md").replace("sensors:secret@192.168.1.10:5672", "guest:guest@127.0.0.1:" + port)
    done = subprocess.run([sys.executable, "-S", "-c", program.replace('"readings"', '"light"').replace("poll(1000)", "poll(1)")],
                          env={"PYTHONPATH": str(tmp_path / "lib")}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "", (done.stdout, done.stderr)
    channel = pika.BlockingConnection(pika.URLParameters("amqp://guest:guest@127.0.0.1:%s/" % port)).channel()
    assert [channel.basic_get("light", auto_ack=True)[2] for _ in range(4)] == [b"1", b"2", b"3", None]
    channel.connection.close()


def test_the_service_starts_the_broker_with_options_that_there_are():
    command = re.search(r"^ExecStart=(.*)$", example("[Service]"), re.MULTILINE)[1].split()
    assert os.path.basename(command[0]) == "leveret"
    options = cli.make_parser("serve").parse_args(command[1:])
    assert options.data and options.config and options.run is serve.run


def test_the_configuration_file(tmp_path):
    path = tmp_path / "leveret.toml"
    path.write_text(example("[limits]"))
    urls, limits = config.load(str(path))
    assert len(urls) == 2 and limits.arena_size == 16777216
    given, most = config.given_limits(str(path))
    assert memory.total(memory.fitting(given, most)) <= most == 160 << 20


def test_the_commands_are_those_that_there_are():
    help_text = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "dev.py"), "--help"], capture_output=True, text=True).stdout
    named = set(re.findall(r"python3 tools/dev\.py (\w+)", "".join(read(page) for page in PAGES)))
    assert {"demo", "test"} <= named and all(f"    {name} " in help_text for name in named), (named, help_text)


def test_what_the_pages_point_to_is_there():
    """Links to files, and the programs of this tree that they tell to run."""
    for page in PAGES:
        text, folder = read(page), os.path.dirname(page)
        named = [os.path.join(folder, path) for path in re.findall(r"\]\(([^):#]+)\)", text)]
        named += re.findall(r"python (tests/[\w/]+\.py)", text) + re.findall(r"`((?:tools|ports|tests|core)/[\w/]+\.py)", text)
        assert named
        for path in named:
            assert os.path.exists(os.path.join(ROOT, path)), (page, path)
