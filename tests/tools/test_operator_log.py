"""What `leveret serve` tells its operator: time and level, or journald's priorities; bounded, one line a sentence; it waits for nobody."""

import datetime
import io
import json
import os
import re
import socket
import subprocess
import threading
import time

import amqp
import pika
import pytest
from test_serve import COMMAND, serve  # noqa: F401 - serve is a fixture

from leveret.tools import operator_log
from leveret.tools.operator_log import BURST, ERROR, INFO, SENTENCE_MAX, TELL_EVERY_S, WARNING, OperatorLog

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d (INFO|WARNING|ERROR) \S.*")


class Clock:
    seconds = 1000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def log():
    wall = datetime.datetime(2026, 3, 1, 7, 30, 0, 123456, datetime.timezone(datetime.timedelta(hours=1)))
    return OperatorLog(io.StringIO(), clock=Clock(), wall=lambda: wall)


def lines(log):
    return log.stream.getvalue().splitlines()


def test_a_line_has_its_time_with_the_distance_from_utc_and_its_level(log):
    """ISO 8601."""
    log.say("it begins")
    log.say("a file is gone", ERROR)
    assert lines(log) == ["2026-03-01T07:30:00.123+01:00 INFO it begins", "2026-03-01T07:30:00.123+01:00 ERROR a file is gone"]


def test_journald_gets_priorities_and_no_time():
    """sd-daemon(3): the level in angle brackets; journald has the time itself."""
    log = OperatorLog(io.StringIO(), operator_log.JOURNALD, clock=Clock())
    log.say("it begins")
    log.peer("somebody fails")
    assert lines(log) == ["<6>it begins", "<4>somebody fails"]


def test_json_is_an_object_a_line_whatever_the_sentence(log):
    log.format = operator_log.JSON
    log.peer('"a\nb" \u00e9 failed')
    (line,) = lines(log)
    assert json.loads(line) == {"time": "2026-03-01T07:30:00.123+01:00", "level": "WARNING", "text": '"a\\nb" \u00e9 failed'}


def test_sentences_of_less_weight_than_the_level_are_not_told(log):
    for level, told in ((INFO, 3), (WARNING, 2), (ERROR, 1)):
        log.least = level
        before = len(lines(log))
        log.say("it begins")
        log.peer("somebody fails")
        log.say("a file is gone", ERROR)
        assert len(lines(log)) - before == told, level


def test_a_broker_has_the_level_and_the_format_that_it_was_told(serve):  # noqa: F811 - a fixture
    quiet = serve("--listen", "amqp://127.0.0.1:0", "--log-level", "warning")
    quiet.connect().close()
    assert quiet.end()[2] == ""
    told = serve("--listen", "amqp://127.0.0.1:0", "--log-format", "json")
    told.connect().close()
    rows = [json.loads(line) for line in told.end()[2].splitlines()]
    assert len(rows) > 5 and {row["level"] for row in rows} == {"INFO"} and rows[1]["text"] == "it listens on " + told.urls[0]
    with pytest.raises(AssertionError, match="invalid choice: 'loud'"):
        serve("--listen", "amqp://127.0.0.1:0", "--log-level", "loud")


def test_a_sentence_is_one_line_of_bounded_length_whatever_a_peer_is_called(log):
    log.peer("the log-in of 'a\n2026-03-01T07:30:00.123+01:00 INFO all is well\x1b[2J\u2028' failed")
    log.peer("x" * 100000)
    assert len(lines(log)) == 2 and "\\n2026" in lines(log)[0] and "\\x1b" in lines(log)[0] and "\x1b" not in lines(log)[0]
    assert len(lines(log)[1]) < SENTENCE_MAX + 50


def test_what_peers_cause_has_a_share_and_what_is_left_out_is_counted_and_told(log):
    """A peer that errs for ever does not fill the disk, and hides nothing that the broker says of itself."""
    for _ in range(60):
        for number in range(500):
            log.peer("error %d" % number)
            log.event("somebody comes")
        log.clock.seconds += 1
        log.tick()
    log.say("the broker speaks", WARNING)
    told = lines(log)
    about = [line for line in told if "error" in line]
    assert BURST <= len(about) <= BURST + 60 * operator_log.A_SECOND
    counts = [int(re.search(r"(\d+) sentences were left out", line).group(1)) for line in told if "left out" in line]
    assert len(counts) == 2 * (60 // TELL_EVERY_S)
    log.clock.seconds += TELL_EVERY_S
    log.tick()
    assert sum(int(re.search(r"(\d+) sentences", line).group(1)) for line in lines(log) if "left out" in line) + 2 * len(about) == 60000
    assert told[-1].endswith("WARNING the broker speaks")


def test_a_pipe_that_nobody_reads_holds_nothing_up():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "w") as stream:
        log = OperatorLog(stream)
        for number in range(20000):
            log.say("sentence %d that nobody reads, and more and more of them come" % number)
        assert log.shares[INFO].left_out > 10000
        assert reader.read1(100).startswith(b"2")


def test_a_reader_that_has_gone_ends_nothing():
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w")
    log = OperatorLog(stream)
    log.say("to nobody")
    log.say("to nobody")
    with pytest.raises(BrokenPipeError):
        stream.close()


def test_a_broker_without_standard_error_serves():
    """Started with 2>&-: there is nobody to tell, and nothing of it comes to standard output."""
    with subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND, "--listen", "amqp://127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("ready amqp://127.0.0.1:"), line
            port = int(line.strip().rsplit(":", 1)[1])
            pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)).close()
        finally:
            process.terminate()
        assert process.stdout.read() == "" and process.wait(60) == 0


def test_connections_and_errors_are_told_by_a_running_broker(serve):  # noqa: F811 - a fixture
    """Who comes, what ends a channel or connection and why, a virtual host that is not there, an end without connection.close."""
    server = serve("--listen", "amqp://127.0.0.1:0")
    connection = server.connect()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        connection.channel().queue_declare("nowhere", passive=True)
    connection.close()
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        pika.BlockingConnection(pika.URLParameters("amqp://guest:guest@127.0.0.1:%d/production" % server.port))
    lost = amqp.Connection("127.0.0.1:%d" % server.port)
    lost.connect()
    lost.collect()  # the socket closes, without a word
    server.connect().close()
    _, _, errors, _ = server.end()
    told = errors.splitlines()
    assert all(LINE.fullmatch(line) for line in told), told
    for words in (
        r"INFO 127\.0\.0\.1:\d+: user 'guest' has opened a connection",
        r"WARNING 127\.0\.0\.1:\d+: channel 1 of user 'guest' closed with 404 NOT_FOUND - no queue 'nowhere' in vhost '/'",
        r"INFO 127\.0\.0\.1:\d+: the connection of user 'guest' has ended",
        r"WARNING 127\.0\.0\.1:\d+: connection of user 'guest' closed with 530 NOT_ALLOWED - vhost production not found",
        r"INFO 127\.0\.0\.1:\d+: the connection of user 'guest' has ended without connection\.close",
    ):
        assert any(re.search(words + "$", line) for line in told), (words, told)


def test_under_systemd_the_lines_are_journalds():
    """JOURNAL_STREAM names the device and inode of what standard error is (systemd.exec(5)); one that is not ours changes nothing."""
    for is_ours in (True, False):
        reading, writing = socket.socketpair()
        with reading, writing:
            found = os.fstat(writing.fileno())
            place = "%d:%d" % (found.st_dev, found.st_ino + (0 if is_ours else 1))
            done = subprocess.Popen(
                [*COMMAND, "--listen", "amqp://127.0.0.1:0"],
                stdout=subprocess.PIPE,
                stderr=writing,
                text=True,
                env=dict(os.environ, JOURNAL_STREAM=place),
            )
            try:
                assert done.stdout.readline().startswith("ready ")
                reading.settimeout(60)
                first = reading.recv(4096).decode()
                assert first.startswith("<6>") if is_ours else LINE.fullmatch(first.splitlines()[0]), first
            finally:
                done.terminate()
                done.communicate(timeout=60)


def parted(line, format_):
    """(level, text) of a line in one of the formats."""
    if format_ == operator_log.JSON:
        row = json.loads(line)
        assert set(row) == {"time", "level", "text"}
        return row["level"], row["text"]
    if format_ == operator_log.JOURNALD:
        level, text = re.fullmatch(r"<(\d)>(\S.*)", line).groups()
        return operator_log.NAMES[int(level)], text
    return re.fullmatch(r"\S+ (INFO|WARNING|ERROR) (\S.*)", line).groups()


FILLED = ["filled.%d" % number for number in range(10)]  # queues: one alone has a share, and its own sentence


def fill(server):
    """Publish 6 MB to a broker that has room for less; in a thread, because it waits."""
    connection = server.connect()
    channel = connection.channel()
    for number in range(2000):
        channel.basic_publish("", FILLED[number % len(FILLED)], bytes(3000), pika.BasicProperties(delivery_mode=2))
    connection.close()


def purged(channel):
    """True, when the queues are empty."""
    for name in FILLED:
        channel.queue_purge(name)
    return True


def reason_of(server):
    """Why publishers wait, as management has it; "": they do not."""
    url = server.urls[0].replace("amqp://", "amqp://guest:guest@")
    told = subprocess.run([*COMMAND[:-1], "status", "--json", url], capture_output=True, text=True, timeout=60, check=True).stdout
    return json.loads(told)["overview"]["publishers"]["reason"]


def until(condition):
    """Wait until it is so."""
    limit = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.1)


def test_each_sentence_comes_once_in_every_format(serve, tmp_path):  # noqa: F811 - a fixture
    """Refusals, channel errors, publishers that wait for memory or for the disk and go on: however often they are tried again."""
    small = tmp_path / "small.toml"
    small.write_text("[limits]\narena_size = 1048576\ncontent_size_max = 65536\n")
    rows = [(format_, "memory is full \\(arena_size\\)", ()) for format_ in operator_log.FORMATS]
    rows.append((operator_log.TEXT, "the log on disk is full", ("--data", str(tmp_path / "data"), "--disk-max", "4M")))
    servers = [serve("--listen", "amqp://127.0.0.1:0", "--config", str(small), "--log-format", row[0], *row[2]) for row in rows]
    publishers, connections = [], []
    for server in servers:
        connections.append(server.connect())
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            connections[-1].channel().queue_declare("nowhere", passive=True)
        channel = connections[-1].channel()
        for name in FILLED:
            channel.queue_declare(name, durable=True)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            pika.BlockingConnection(pika.URLParameters("amqp://guest:wrong@127.0.0.1:%d/" % server.port))
        publishers.append(threading.Thread(target=fill, args=(server,), daemon=True))
        publishers[-1].start()
    for server in servers:
        until(lambda server=server: reason_of(server))
    for publisher, connection in zip(publishers, connections):
        channel = connection.channel()
        until(lambda channel=channel, publisher=publisher: purged(channel) and not publisher.is_alive())
    for server in servers:
        until(lambda server=server: not reason_of(server))
    for server, (format_, full, _) in zip(servers, rows):
        told = [parted(line, format_) for line in server.end()[2].splitlines()]
        for level, words in (
            ("WARNING", r"the log-in of 'guest' from \S+ with mechanism 'PLAIN' was refused: the password is wrong"),
            ("WARNING", r"\S+: channel 1 of user 'guest' closed with 404 NOT_FOUND - no queue 'nowhere' in vhost '/'"),
            ("WARNING", "publishers wait: " + full + ".*"),
            ("WARNING", r"publishers go on: there is room again; they waited for \d+ s"),
        ):
            found = [each[0] for each in told if re.fullmatch(words, each[1])]
            assert found == [level], (format_, words, [each for each in told if "publishers" in each[1]])
