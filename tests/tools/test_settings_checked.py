"""Every setting is looked at where it comes in: the file, the command line, URLs. What cannot be is one sentence with its name, its range
and its unit (tools/config.py)."""

import socket
import subprocess
import sys

import pytest

from leveret.core.limits import ROWS
from leveret.ports.bridge.settings import Settings
from leveret.ports.url import read_url
from leveret.tools import address, cli, config
from leveret.tools.usage import UsageError, meant

LIMITS = [row[0] for row in ROWS]
LONG = "n" * 256
BRIDGE = {"name": "up", "gateway": "gw", "queue": "q", "exchange": "x", "upstream": ["amqp://127.0.0.1/"]}


def write(directory, text):
    path = directory / "leveret.toml"
    path.write_text(text)
    return str(path)


def served(path, *arguments):
    """The exit status, standard output and standard error of a `leveret serve` that is to end by itself."""
    command = [sys.executable, "-m", "leveret.tools.cli", "serve", "--config", path, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "text, words",
    [
        ("anonymous = {}", ("anonymous is {}", "[[user]]")),
        ("anonymous = 5", ("anonymous is 5",)),
        ('[data]\ndirectory = "a\\u0000b"', ("directory", "NUL")),
        ('listen = ["amqp://a..b"]', ("'a..b'", "1 to 63 octets")),
        ('listen = ["amqp://%s"]' % ("a" * 64), ("1 to 63 octets",)),
        ('listen = ["amqps://h?cert=%00&key=k"]', ("cert has a NUL",)),
        ("a = " + "[" * 20000, ("not TOML",)),
        ("a = " + "9" * 5000, ("not TOML",)),
        ('[limits]\narena_size = "64X"', ("arena_size is '64X'", "64M")),
        ('[limits]\narena_size = "1K"', ("arena_size is 1024", "from 4096 to")),
        ('[limits]\nqueue_count_max = "5K"', ("queue_count_max is '5K'", "whole number from 1 to 65535")),
        ('[[policy]]\nname = "p"\npattern = ""\ndefinition = {message-ttl = 1e3}', ("policy 'p'", "expected integer, got double")),
        ('[[policy]]\nname = "p"\npattern = ""\ndefinition = {message-ttl = 4611686018427387904}', ("0 to 315360000000 ms",)),
        ('[[policy]]\nname = "p"\npattern = ""\ndefinition = {max-length = 1979-05-27}', ("expected integer",)),
        ('[[bridge]]\nname = "%s"\n' % LONG, ("name has 256 octets", "200")),
        ("[[bridge]]\nconnect_seconds = inf", ("connect_seconds is inf", "from 0.01 to 86400")),
        ('[[bridge]]\nname = "b"\nqueue = "q"\ngateway = "g"\nexchange = "e"\nupstream = "amqp://a..b"', ("'a..b'",)),
    ],
)
def test_a_setting_that_cannot_be_is_one_sentence_and_status_2(tmp_path, text, words):
    status, output, errors = served(write(tmp_path, text), "--listen", "amqp://127.0.0.1:0")
    if "listen" in text:
        status, output, errors = served(write(tmp_path, text))
    assert status == 2 and output == "" and "Traceback" not in errors, errors
    for word in words:
        assert word in errors, errors


@pytest.mark.parametrize(
    "name, values",
    [
        ("connect_seconds", (float("inf"), float("nan"), 0, -1, 1e300, 86401, "5", True, None.__class__)),
        ("stall_seconds", (float("inf"), 0.001, 1 << 70)),
        ("reconnect_seconds_min", (0.0001, 0, 1e9)),
        ("reconnect_seconds_max", (float("inf"), 0.1)),
        ("heartbeat_seconds", (3601, 1.5, -1)),
        ("buffer_size", (2047, 1 << 40)),
        ("frame_size_max", (8191, 1 << 30)),
        ("prefetch", (0, 4001)),
        ("replay_messages_per_second", (-1, 1 << 62)),
        ("backlog_octets_max", (1023, 1 << 62)),
        ("name", ("", LONG, 5)),
        ("queue", (LONG, 5)),
        ("exchange", (LONG,)),
        ("gateway", (LONG, "")),
        ("header_prefix", ("p" * 128,)),
        ("routing_key", ("{0}", "{256}", "{\u00b2}", "{x", 5)),
        ("headers", ({"x-hops": "1"}, {"": "1"}, {"a": 1}, [])),
        ("backlog_age_max", ("\u00b2D", "1", 5)),
        (
            "upstream",
            (
                [],
                "http://x",
                "amqp://h:0",
                "amqp://h:99999999",
                "amqp://h:\u00b2",
                "amqp://%zz@h",
                "amqp://%ff@h",
                "amqp://a b/",
                "amqp://u:%s@h/" % ("p" * 400),
                "amqp://h/" + LONG,
                "amqps://h/?ca=%00",
            ),
        ),
    ],
)
def test_a_setting_of_a_bridge_has_a_range(name, values):
    for value in values:
        with pytest.raises(ValueError) as caught:
            Settings(dict(BRIDGE, **{name: value}))
        assert "\n" not in str(caught.value) and "invalid literal" not in str(caught.value), (value, caught.value)


def test_the_ends_of_the_ranges_are_taken():
    Settings(
        dict(
            BRIDGE,
            connect_seconds=86400,
            stall_seconds=0.01,
            reconnect_seconds_min=0.01,
            reconnect_seconds_max=86400,
            prefetch=4000,
            queue="q" * 255,
            exchange="e" * 255,
            name="n" * 200,
            routing_key="{255}",
        )
    )


def test_sizes_may_be_texts_in_limits_as_in_data(tmp_path):
    _, limits = config.load(write(tmp_path, '[limits]\narena_size = "16M"\ncontent_size_max = "1m"\nmessage_count_max = 16384'))
    assert (limits.arena_size, limits.content_size_max) == (16 << 20, 1 << 20)


def test_a_device_is_named_by_its_whole_path():
    assert address.parse("serial:///tmp/ttyA?baud=9600").device == "/tmp/ttyA"
    for url in ("serial://ttyA", "serial:///", "serial:///tmp/", "serial:///dev/tty%00", "serial://host/dev/ttyA"):
        with pytest.raises(UsageError):
            address.parse(url if "%" not in url else url.replace("%00", "\0"))


@pytest.mark.parametrize(
    "written, said",
    [
        ("max_connections", "connection_count_max"),
        ("connections", "connection_count_max"),
        ("queue_max", "queue_count_max"),
        ("frame_max", "frame_size_max"),
        ("heartbeat", "heartbeat_s"),
        ("arena", "arena_size"),
        ("arena_sise", "arena_size"),
        ("users_max", "user_count_max"),
        ("body_size_max", ""),
        ("max_memory", "memory_max"),
        ("size_max", ""),
        ("zzz", ""),
    ],
)
def test_a_misspelt_limit_is_told_the_one_with_its_words(written, said):
    assert meant(written, ("memory_max", *LIMITS)) == (f" (is it {said}?)" if said else "")


def test_a_user_without_a_password_and_a_tag_without_a_meaning_are_told(tmp_path):
    path = write(tmp_path, '[[user]]\nname = "a"\ntags = ["admin"]\n[[user]]\nname = "b"\npassword = "b"\ntags = ["monitoring"]\n')
    told = config.remarks(path)
    assert len(told) == 2 and "user 'a' has no password" in told[0] and "'admin'" in told[1] and "(is it administrator?)" in told[1]
    assert config.remarks("") == []


def test_no_listener_is_ready_until_all_are(tmp_path):
    """Who reads the first ready line may connect and go on: a second listener that fails would end that."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, output, errors = served(
            write(tmp_path, ""), "--listen", "amqp://127.0.0.1:0", "--listen", "amqp://127.0.0.1:%d" % taken.getsockname()[1]
        )
    assert status == 1 and output == "" and "in use" in errors


def test_urls_of_clients_are_looked_at_before_they_are_used():
    for url in ("amqp://a..b", "amqp://u:p@h\x00/", "amqp://h:\u0665/", "amqp://%+f@h", "amqp://" + "h" * 300):
        with pytest.raises(ValueError):
            read_url(url)
    assert read_url("amqp://broker.example.:5672/%2f").virtual_host == "/"
    assert cli.main(["status", "amqp://a..b"]) != 0
