"""`leveret log`: what check counts and finds, what dump prints, and a compaction that is killed at any operation of the store."""

import base64
import json
import os
import shutil
import subprocess
import sys

import old_log
import pytest
from peer import Peer, content, encoded, new_broker

from leveret.core.log import segments
from leveret.core.log.definition_records import rich
from leveret.core.recovery import opening
from leveret.ports.store_file import FileStore
from leveret.tools import log as tool

PERSISTENT = {"delivery_mode": 2, "headers": {"n": 1}}


def broker_on(directory, segment_size=2000):
    """(broker, store, report)."""
    store = FileStore(str(directory))
    broker = new_broker(arena_size=1 << 20, message_count_max=4096, entry_count_max=4096)
    return broker, store, opening.make_durable(broker, store, "each", 100, 65536, segment_size, 1 << 24)


def fill(directory):
    """A log with two queues, a stream, a deleted queue, many acks, and a few messages that are wanted."""
    broker, store, _ = broker_on(directory)
    peer = Peer(broker)
    for name in ("q", "other", "gone"):
        peer.declare(name, durable=True)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream", "x-max-length-bytes": 3000})
    for number in range(120):
        for queue in ("q", "s", "gone"):
            peer.publish(queue, b"%d " % number + bytes(50), given=PERSISTENT)
        if number % 40 == 0:
            peer.publish("other", b"%d " % number + b"\xff", given=PERSISTENT)
        if number >= 10:
            peer.give(encoded("basic_get", 1, 0, "q", False))
            peer.frames()
            peer.give(encoded("basic_ack", 1, number - 9, False))
    peer.ask("queue_delete", "queue_delete_ok", 0, "gone", False, False, False)
    broker.journal.finish()
    store.close()


def state(directory):
    """What a broker that starts on the directory has."""
    broker, store, _ = broker_on(directory)
    found = {name: [] for name in ("q", "other")}
    for name in found:
        peer = Peer(broker)
        found[name] = [int(each[3].split(b" ")[0]) for each in peer.consume(name)]
    stream = broker.queues["s"]
    store.close()
    return found, sorted(broker.queues), stream.id, stream.first_offset, stream.next_offset()


def leveret_log(*arguments):
    """(exit status, standard output, standard error)."""
    command = [sys.executable, "-m", "leveret.tools.cli", "log", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def directory(tmp_path):
    fill(tmp_path / "data")
    return tmp_path / "data"


def contents(directory):
    return {name: (directory / name).read_bytes() for name in os.listdir(directory)}


def test_check_counts_and_changes_nothing(directory):
    before = contents(directory)
    status, told, errors = leveret_log("check", directory)
    assert status == 0 and errors == "" and "damage: none" in told, told
    assert "\n  q: 10\n" in told and "\n  other: 3\n" in told and "queue 3" in told, told
    assert contents(directory) == before


def test_check_shows_the_first_damage(directory):
    last = sorted(name for name in os.listdir(directory) if name.endswith(".log"))[-2]
    octets = bytearray((directory / last).read_bytes())
    octets[500] ^= 1
    (directory / last).write_bytes(octets)
    status, told, _ = leveret_log("check", directory)
    assert status == 1 and f"damage: segment {int(last[:8])} at octet " in told and "CRC does not fit" in told, told
    status, told, errors = leveret_log("compact", directory)
    assert status == 1 and "is damaged" in errors and errors.count("\n") == 1
    status, told, _ = leveret_log("dump", directory)
    lines = [json.loads(line) for line in told.splitlines()]
    assert status == 1 and [line for line in lines if "damage" in line][0]["segment"] == int(last[:8])


def test_dump_prints_every_record_as_a_line_of_json(directory):
    status, told, _ = leveret_log("dump", directory)
    lines = [json.loads(line) for line in told.splitlines()]
    assert status == 0 and {line["type"] for line in lines} == {"message", "settled", "defined"}
    messages = [line for line in lines if line["type"] == "message" and line["routing_key"] == "other"]
    assert {"hex": (b"80 \xff").hex()} in [line["body"] for line in messages] and messages[0]["properties"]["headers"] == {"n": 1}
    names = {line["definition"]["name"] for line in lines if line["type"] == "defined"}
    assert {"q", "s", "gone", "other"} <= names


def test_a_dead_letter_is_told_as_receivers_get_it(tmp_path):
    """dump and salvage: the broker's annotations over the properties (core/message/annotations.py); nobody sees BCC."""
    for number, octets in old_log.kept(segments.VERSION).segments.items():
        (tmp_path / ("%08d.log" % number)).write_bytes(octets)
    status, told, _ = leveret_log("dump", tmp_path)
    lines = [json.loads(line) for line in told.splitlines()]
    dead = [line for line in lines if line["type"] == "message" and line["body"] == "dead" and line["routing_key"] == "q"]
    assert status == 0 and len(dead) == 1
    wanted = tool.Wanted(FileStore(str(tmp_path)))
    [payload] = [payload for _, payload in wanted.messages() if payload.endswith(b"dead")]
    salvaged = tool.salvaged(payload, 1, 0)
    assert base64.b64decode(salvaged["body_base64"]) == b"dead"
    for given in (dead[0]["properties"], rich(salvaged["properties"])):
        headers = given["headers"]
        assert headers["x-death"][0]["queue"] == "from" and headers["b"] == "two" and "BCC" not in headers
        assert given["message_id"] == "m" and "expiration" not in given


def test_compact_keeps_what_is_wanted_and_no_more(directory):
    shutil.copytree(directory, str(directory) + ".copy")
    before, wanted = sum(map(len, contents(directory).values())), state(str(directory) + ".copy")
    status, told, errors = leveret_log("compact", directory)
    after = sum(map(len, contents(directory).values()))
    assert status == 0 and errors == "" and after < before / 2, (told, errors, before, after)
    assert leveret_log("check", directory)[0] == 0
    assert state(directory) == wanted
    assert wanted[0] == {"q": list(range(110, 120)), "other": [0, 40, 80]} and wanted[4] == 120


class Killed(BaseException):
    """The program ends here."""


def cut_store(directory, count):
    """A store whose operation `count` does not happen; nor does anything after it."""
    store = FileStore(str(directory))
    left = [count]

    def counted(action):
        def run(*arguments):
            left[0] -= 1
            if left[0] <= 0:
                raise Killed
            action(*arguments)

        return run

    for name in ("append", "sync", "remove"):
        setattr(store, name, counted(getattr(store, name)))
    return store, left


def test_a_compaction_may_be_killed_anywhere(directory, tmp_path):
    shutil.copytree(directory, tmp_path / "copy")
    wanted = state(tmp_path / "copy")
    kills = 0
    while True:
        shutil.rmtree(tmp_path / "copy")
        shutil.copytree(directory, tmp_path / "copy")
        store, _ = cut_store(tmp_path / "copy", kills + 1)
        try:
            tool.compact(store, "copy")
            break
        except Killed:
            kills += 1
        finally:
            store.close()
        assert state(tmp_path / "copy") == wanted, kills
        assert state(tmp_path / "copy") == wanted, kills
    assert kills > 5 and state(tmp_path / "copy") == wanted


def test_a_disk_without_room_changes_nothing(directory, tmp_path):
    before = contents(directory)
    store = FileStore(str(directory))

    def full(number, octets):
        raise OSError(28, "No space left on device")

    store.append = full
    with pytest.raises(tool.LogFailed, match="nothing was changed"):
        tool.compact(store, str(directory))
    store.close()
    assert contents(directory) == before


def test_a_disk_that_has_not_kept_what_was_written_changes_nothing(directory):
    """Before the old segments go the new ones are read: one octet that came back otherwise is enough."""
    before = contents(directory)
    store = FileStore(str(directory))
    append = store.append

    def other(number, octets):
        octets = bytearray(b"".join(octets) if isinstance(octets, (list, tuple)) else octets)
        octets[-1] ^= 1
        return append(number, octets)

    store.append = other
    with pytest.raises(tool.LogFailed, match="nothing was changed: what was written cannot be read back"):
        tool.compact(store, str(directory))
    store.close()
    assert contents(directory) == before


def test_what_cannot_be_looked_at_is_one_sentence(directory, tmp_path):
    held = FileStore(str(directory))
    for action in ("check", "dump", "compact"):
        status, told, errors = leveret_log(action, directory)
        assert (status, told) == (1, "") and "in use by another broker" in errors and errors.count("\n") == 1
    held.append(9999, segments.record(0, segments.HEAD, (segments.MAGIC, b"\x00\x63" + bytes(8)), 14))
    held.close()
    status, _, errors = leveret_log("check", directory)
    assert status == 1 and "version 99" in errors and errors.count("\n") == 1
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "install.log").write_text("of another program")
    assert "there is no log" in leveret_log("check", tmp_path / "other")[2]
    assert os.listdir(tmp_path / "other") == ["install.log"]
    assert "No such file" in leveret_log("check", tmp_path / "absent")[2]


def test_memory_does_not_grow_with_the_log(tmp_path):
    """Twenty times the messages: the same memory, within a few MiB."""
    sizes = []
    for count in (500, 10000):
        path = tmp_path / str(count)
        store = FileStore(str(path))
        writer = segments.Log(store, 1 << 20, 1 << 40)
        writer.begin(1, 0)
        for _ in range(count):
            writer.append(segments.MESSAGE, (b"\x00\x00" + bytes(14), bytes(1000)))
            if writer.gathered.size > 50000:
                writer.commit(False)
        writer.commit()
        store.close()
        code = (
            "import resource, sys; from leveret.tools.cli import main; status = main(); "
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code, "log", "check", str(path)], capture_output=True, text=True, timeout=60)
        sizes.append(int(done.stderr))
    assert sizes[1] < sizes[0] + 4096, sizes


def lost_first(directory):
    """Take the first segment, with all definitions: how many messages there are in the others."""
    first = sorted(name for name in os.listdir(directory) if name.endswith(".log"))[0]
    os.remove(directory / first)


def salvaged(*arguments):
    """The lines of salvage, as objects."""
    status, told, errors = leveret_log("salvage", *arguments)
    assert status == 0 and errors == "", errors
    return [json.loads(line) for line in told.splitlines()]


def small_log(path):
    """A log in many segments; every message has properties of all kinds and octets that are no text."""
    broker, store, _ = broker_on(path)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    for number in range(60):
        peer.publish(
            "q",
            b"%03d\xff" % number + bytes(100),
            given={"delivery_mode": 2, "timestamp": 7, "headers": {"n": number, "octets": b"\xff\x00", "when": ("T", 5), "list": [1, "a"]}},
        )
    broker.journal.finish()
    store.close()


def test_a_lost_first_segment_is_told_by_check_and_its_messages_are_salvaged_once(tmp_path):
    """Also behind a start, which puts them aside, and behind a compaction; published again they are what they were."""
    small_log(tmp_path / "data")
    directory = tmp_path / "data"
    assert leveret_log("check", directory)[0] == 0 and salvaged(directory) == []
    lost_first(directory)
    before = contents(directory)
    status, told, _ = leveret_log("check", directory)
    assert status == 1 and "segment 1 is missing (there were" in told and "nothing defines (queue id 1: " in told, told
    found = salvaged(directory)
    assert contents(directory) == before and len(found) > 40
    shutil.copytree(directory, tmp_path / "compacted")
    broker, store, report = broker_on(directory)
    assert "segment 1 is missing" in report and "were put in 00000002.orphans" in report, report
    peer = Peer(broker)
    for _ in range(3):
        for _number in range(60):
            peer.declare("other", durable=True)
            peer.publish("other", bytes(200), given=PERSISTENT)
        peer.ask("queue_purge", "queue_purge_ok", 0, "other", False)
    broker.journal.finish()
    assert min(store.numbers()) > 10
    store.close()
    assert salvaged(directory) == found
    status, told, _ = leveret_log("check", directory)
    assert status == 0 and "put aside earlier: 00000002.orphans" in told and "leveret log salvage" in told, told
    status, told, errors = leveret_log("compact", tmp_path / "compacted")
    assert status == 0 and salvaged(tmp_path / "compacted") == found, errors
    broker, store, _ = broker_on(tmp_path / "again")
    peer = Peer(broker)
    peer.declare("q", durable=True)
    for line in found:
        peer.give(content(1, line["exchange"], line["routing_key"], base64.b64decode(line["body_base64"]), rich(line["properties"])))
    got = [(each[2], each[3]) for each in peer.consume("q")]
    store.close()
    assert [int(body[:3]) for _, body in got] == [line["position"] for line in found]
    for given, body in got:
        assert body[3:] == b"\xff" + bytes(100) and given["timestamp"] == 7
        assert given["headers"] == {"n": int(body[:3]), "octets": b"\xff\x00", "when": ("T", 5), "list": [1, "a"]}


def test_salvage_writes_a_file_that_only_its_owner_can_read(tmp_path):
    small_log(tmp_path / "data")
    lost_first(tmp_path / "data")
    before = os.umask(0)
    try:
        assert salvaged(tmp_path / "data", "--file", tmp_path / "found") == []
    finally:
        os.umask(before)
    assert (tmp_path / "found").stat().st_mode & 0o777 == 0o600
    assert [json.loads(line) for line in (tmp_path / "found").read_text().splitlines()] == salvaged(tmp_path / "data")
    status, _, errors = leveret_log("salvage", tmp_path / "data", "--file", tmp_path / "found")
    assert status == 1 and "is there already" in errors


def test_files_that_are_no_segments_are_named_and_left_alone(tmp_path):
    """A name that ends as a segment's does stops no start."""
    directory = tmp_path / "data"
    small_log(directory)
    for name in ("0.log", "1.log", "000000001.log", "99999999999.log", "20240101120000.log", "00000000.log"):
        (directory / name).write_text("of another program")
    (directory / "00000777.log").mkdir()
    strays = "0.log, 00000000.log, 000000001.log, 00000777.log, 1.log, 20240101120000.log, 99999999999.log"
    status, told, _ = leveret_log("check", directory)
    assert status == 0 and f"left alone: {strays}" in told, told
    broker, store, report = broker_on(directory)
    assert broker.queues["q"].message_count() == 60 and ";" not in report, report
    store.close()
    assert (directory / "0.log").read_text() == (directory / "1.log").read_text() == "of another program"


def test_check_of_a_directory_without_a_log_is_a_failure(tmp_path):
    status, _, errors = leveret_log("check", tmp_path)
    assert status == 1 and "there is no log in" in errors
