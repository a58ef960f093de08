"""What README.md shows works as it stands: the clients' examples against a real broker, the configuration file, the commands."""
import os
import re
import subprocess
import sys

import pytest

from leveret.tools import config

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ("README.md", "boards/README.md", "ports/SERIAL.md", "ports/bridge/README.md", "ports/spark/README.md", "core/DESIGN.md")
STREAM_BEFORE = """
import pika
channel = pika.BlockingConnection(pika.URLParameters("amqp://guest:guest@127.0.0.1:5672/")).channel()
offsets = []
def callback(channel, method, properties, body):
    offsets.append(properties.headers["x-stream-offset"])
    channel.basic_ack(method.delivery_tag)
    if len(offsets) == 3:
        channel.stop_consuming()
"""
STREAM_AFTER = """
for number in range(3):
    channel.basic_publish("", "log", str(number).encode())
channel.connection.call_later(10, channel.stop_consuming)
channel.start_consuming()
assert offsets == [0, 1, 2], offsets
"""


def read(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def examples():
    """The indented blocks of README.md, as text."""
    text = read("README.md")
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)
    return ["".join(line[4:] or "\n" for line in block.splitlines(keepends=True)) for block in blocks]


def example(words):
    found = [block for block in examples() if words in block]
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
    assert run_example(example("import pika") + "\nprint(body)\n", port) == "b'21.5'\n"


def test_aio_pika(port):
    assert run_example(example("import aio_pika"), port) == "b'21.5'\n"


def test_kombu(port):
    # Its own queue: the one of the other examples is durable and holds other things.
    assert run_example(example("from kombu").replace('"readings"', '"kombu"'), port) == "{'celsius': 21.5}\n"


def test_a_stream(port):
    run_example(STREAM_BEFORE + example("x-stream-offset") + STREAM_AFTER, port)


def test_the_configuration_file(tmp_path):
    path = tmp_path / "leveret.toml"
    path.write_text(example("[limits]"))
    urls, limits = config.load(str(path))
    assert len(urls) == 2 and limits.arena_size == 16777216


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
