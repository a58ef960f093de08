"""The `leveret` command and its helpers refuse wrong arguments in one sentence with exit status 2, and load only what is asked for."""

import os
import subprocess
import sys

import pytest

from leveret.ports.url import read_url
from leveret.tools import bridge, cli

SERVE = ("leveret.tools.cli", "serve")


def run(*arguments):
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("leveret.tools.cli", "dance"), ("'dance'", "serve")),
        (("leveret.tools.cli", "--quiet"), ("--help",)),
        ((*SERVE, "--listen"), ("--listen", "expected one argument")),
        ((*SERVE, "--listen", "http://127.0.0.1"), ("http://127.0.0.1", "amqp://HOST:PORT")),
        ((*SERVE, "--port", "5"), ("--port",)),
        ((*SERVE, "--sync", "batch"), ("--sync", "--data DIR")),
        ((*SERVE, "--data", "/tmp/x", "--memory"), ("not allowed with",)),
        ((*SERVE, "--config", "TABLE"), ("TABLE: [data] sync is for messages that are kept on disk", "directory = ")),
        ((*SERVE, "--config", "/there/is/none.toml"), ("/there/is/none.toml", "No such file")),
        (("leveret.tools.sensors", "--device", "d"), ("--to",)),
        (("leveret.tools.sensors", "--device", "d", "--to", "tcp://x"), ("tcp://x",)),
        (("leveret.tools.sensors", "--device", "d", "--to", "amqp://127.0.0.1", "--read", "cpu,smell"), ("'smell'", "cpu")),
        (("leveret.tools.sensors", "--device", "d", "--to", "amqp://127.0.0.1", "--seconds", "0"), ("--seconds", "greater than 0")),
        (("leveret.tools.sensors", "--device", "d", "--to", "amqp://127.0.0.1", "--csv", "/none.csv"), ("/none.csv",)),
        (("leveret.tools.demo", "--seconds", "soon"), ("--seconds", "'soon'")),
        (("leveret.tools.demo", "--csv", "/none.csv"), ("/none.csv",)),
        (("leveret.tools.demo", "--upstream", "rabbit"), ("--upstream", "'rabbit'")),
        (("leveret.tools.demo", "--keep", "/etc"), ("/etc", "not empty")),
    ],
)
def test_wrong_arguments_are_one_sentence_and_exit_status_2(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "TABLE").write_text('[data]\nsync = "each"\n')
    done = run(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_limits_that_do_not_fit_the_machine_are_refused(tmp_path):
    path = tmp_path / "huge.toml"
    path.write_text("[limits]\nconnection_count_max = 65535\nreceive_buffer_size = 16777216\nsend_buffer_size = 16777216\n")
    done = run(*SERVE, "--config", str(path))
    assert done.returncode == 2 and "the limits add up to" in done.stderr and done.stderr.count("\n") == 1


def test_the_version():
    done = run("leveret.tools.cli", "--version")
    assert done.returncode == 0 and done.stdout == "leveret 0.1.0\n"


@pytest.mark.parametrize("command", ["serve", "bridge", "pipeline"])
def test_every_subcommand_has_help(command):
    done = run("leveret.tools.cli", command, "--help")
    assert done.returncode == 0 and done.stdout.startswith(f"usage: leveret {command}")


def test_the_broker_over_tcp_needs_no_package_but_the_standard_library():
    program = (
        "import sys; from leveret.tools import serve; "
        "print([name for name in ('serial', 'pyspark', 'psutil', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_a_series_too_long_for_the_upstreams_memory_is_refused(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("timestamp,value\n" + "2020-01-01 00:00:00,1\n" * 50001)
    done = run("leveret.tools.demo", "--csv", str(path))
    assert done.returncode == 2 and "holds 50001 readings; at most 50000" in done.stderr


def test_the_command_alone_shows_the_help():
    done = run("leveret.tools.cli")
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("usage: leveret")
    for name in ("serve", "status", "bridge"):
        assert "\n    " + name in done.stdout


@pytest.mark.parametrize(
    "arguments", [("flash", "--dry-run", "--board", "pico_w", "--wifi", "home"), (), ("log", "--help"), ("--version",)]
)
def test_a_reader_that_goes_ends_a_command_without_a_traceback(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    command = subprocess.Popen(
        [sys.executable, "-m", "leveret.tools.cli", *arguments],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ, LEVERET_WIFI_PASSWORD="12345678", PYTHONUNBUFFERED=""),
    )
    os.close(writing)
    told = command.communicate(timeout=300)[1]
    assert (command.returncode, told) == (141, "")


BRIDGE = '[[bridge]]\nname = "b"\ngateway = "g"\nqueue = "q"\nexchange = "e"\nupstream = "amqp://127.0.0.1:1/"\n'


@pytest.mark.parametrize(
    "text, given, expected",
    [
        ("", None, "amqp://guest:guest@127.0.0.1:5672/"),
        ('listen = ["amqp://127.0.0.1:5673", "amqp://127.0.0.1:5674"]', None, "amqp://guest:guest@127.0.0.1:5673/"),
        ('listen = ["serial:///dev/ttyUSB0?baud=9600", "amqp://0.0.0.0:5673"]', None, "amqp://guest:guest@127.0.0.1:5673/"),
        ('listen = ["amqp://[::]:5673"]', None, "amqp://guest:guest@[::1]:5673/"),
        ('listen = ["amqp://127.0.0.1:5673"]', "amqp://127.0.0.1:9/", "amqp://127.0.0.1:9/"),
    ],
)
def test_a_bridge_of_a_file_comes_to_the_broker_of_the_file(tmp_path, text, given, expected):
    path = tmp_path / "leveret.toml"
    path.write_text(text + "\n" + BRIDGE)
    options = cli.make_parser("bridge").parse_args(["bridge", "--config", str(path), *(["--from", given] if given else [])])
    assert bridge.source_of(options) == expected
    assert read_url(expected).port == int(expected.rsplit(":", 1)[1].strip("/"))


@pytest.mark.parametrize(
    "text, word",
    [
        ('listen = ["serial:///dev/ttyUSB0?baud=9600"]', "no listener"),
        ('listen = ["amqp://127.0.0.1:0"]', "no listener"),
        ('[[user]]\nname = "u"\npassword = "p"\n', "names the users"),
    ],
)
def test_a_bridge_of_a_file_whose_broker_it_cannot_find_asks_for_from(tmp_path, text, word):
    path = tmp_path / "leveret.toml"
    path.write_text(text + "\n" + BRIDGE)
    done = run("leveret.tools.cli", "bridge", "--config", str(path))
    assert done.returncode == 2 and word in done.stderr and "--from amqp://USER" in done.stderr and done.stderr.count("\n") == 1
