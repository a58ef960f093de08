"""ports/files_0_10.py over a folder and a connection that says what the test says: what lies where, and when a file has its name."""

import hashlib
import json
import os

import pytest

from leveret.ports import files_0_10
from leveret.ports.client_errors import ClientError, ConnectionLost
from leveret.ports.files_0_10 import CHECKSUM, Part, Refused, checksum, place

BODY = b"0123456789"
RIGHT = {CHECKSUM: hashlib.sha256(BODY).hexdigest()}


def part(path, progress=None):
    return Part(str(path), lambda at, size: None if progress is None else progress.append((at, size)))


def test_a_file_has_its_name_when_it_is_whole_and_its_checksum_right(tmp_path):
    path, progress = tmp_path / "got", []
    sink = part(path, progress)
    assert sink.begin("id", 10) == 0 and not sink.is_named
    sink.write(BODY[:4])
    sink.write(BODY[4:])
    assert progress == [(4, 10), (10, 10)] and json.loads((tmp_path / "got.part.json").read_text()) == {"identifier": "id", "size": 10}
    assert not path.exists()
    assert sink.whole({"headers": RIGHT, "filename": "sent"}, False) is True
    assert (sink.name, sink.is_named, sink.trouble, sink.resumed_at) == ("sent", True, "", 0) and sink.file.closed
    assert path.read_bytes() == BODY and os.listdir(tmp_path) == ["got"]


def test_a_file_without_a_checksum_is_whole_by_its_size_and_one_with_a_wrong_one_goes(tmp_path):
    for properties, octets, is_whole in (
        ({}, BODY, True),
        ({"headers": {}}, BODY, True),
        ({"headers": {}}, BODY[1:], False),
        ({"headers": {CHECKSUM: "0" * 64}}, BODY, False),
        ({"headers": RIGHT}, BODY[::-1], False),
    ):
        sink = part(tmp_path / "got")
        sink.begin("id", 10)
        sink.write(octets)
        assert sink.whole(properties, False) is is_whole and sink.is_named is is_whole and sink.name == ""
        said = "" if is_whole else f"{tmp_path}/got.part has another checksum than the file that was sent"
        assert sink.trouble == said and os.listdir(tmp_path) == (["got"] if is_whole else [])
        for name in os.listdir(tmp_path):
            os.remove(tmp_path / name)


def begun(path, octets, said):
    """What an attempt before has left."""
    (path / "got.part").write_bytes(octets)
    (path / "got.part.json").write_text(said)


@pytest.mark.parametrize(
    "said, size, here",
    [
        ('{"identifier": "id", "size": 10}', 10, 4),
        ('{"identifier": "id", "size": 11}', 10, 0),
        ('{"identifier": "other", "size": 10}', 10, 0),
        ("no JSON", 10, 0),
        ('{"identifier": "id", "size": 3}', 3, 3),  # more octets than it has: cut
    ],
)
def test_what_is_here_of_the_same_file_is_kept(tmp_path, said, size, here):
    begun(tmp_path, b"0123", said)
    sink = part(tmp_path / "got")
    assert sink.begin("id", size) == here and (sink.at, sink.resumed_at, sink.size) == (here, here, size)
    assert (tmp_path / "got.part").read_bytes() == b"0123"[:here]
    sink.write(b"x")
    assert (tmp_path / "got.part").read_bytes() == b"0123"[:here] + b"x"
    sink.file.close()


def test_what_is_said_of_a_part_that_has_gone_is_not_believed(tmp_path):
    begun(tmp_path, b"", '{"identifier": "id", "size": 10}')
    sink = part(tmp_path / "got")
    assert sink.known() == {"identifier": "id", "size": 10}
    os.remove(tmp_path / "got.part")
    assert sink.known() is None
    begun(tmp_path, b"", "{")
    assert sink.known() is None


def test_a_folder_takes_files_by_their_own_names_and_no_path(tmp_path):
    (tmp_path / "folder").mkdir()
    sink = part(tmp_path)
    assert sink.part == f"{tmp_path}/received.part"
    for name, base in (
        ("a.bin", "a.bin"),
        ("/etc/passwd", "passwd"),
        ("..", "received"),
        (".", "received"),
        ("", "received"),
        ("x/", "received"),
        ("a\0b", "received"),
        ("n" * 255, "n" * 255),
        ("n" * 256, "received"),
        ("ü" * 128, "received"),
        ("folder", "received"),
    ):
        assert place(str(tmp_path), name) == f"{tmp_path}/{base}"
    assert place(f"{tmp_path}/other", "name") == f"{tmp_path}/other"
    sink.begin("id", 10)
    sink.write(BODY)
    assert sink.whole({"headers": RIGHT, "filename": "../up"}, False) and (tmp_path / "up").read_bytes() == BODY


def test_a_checksum_is_of_all_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(files_0_10, "PIECE", 3)
    (tmp_path / "file").write_bytes(BODY)
    assert checksum(str(tmp_path / "file")) == RIGHT[CHECKSUM]


class File:
    """What a connection's events go to."""

    def __init__(self):
        self.told = []

    def command(self, *given):
        self.told.append(("command", *given))

    def content(self, *given):
        self.told.append(("content", *given))

    def completed(self, *given):
        self.told.append(("completed", *given))

    def body(self, *given):
        self.told.append(("body", *given))

    def room(self):
        self.told.append(("room",))


class Stream:
    closed = False

    def close(self):
        self.closed = True


class Connection(files_0_10.Connection):
    """A connection without a broker: each step runs one of `steps`, or raises it."""

    def __init__(self, *steps):
        self._stream, self.steps, self.waits, self._waits = Stream(), list(steps), [], -1

    def step(self, timeout_ms):
        self.waits.append(timeout_ms)
        done = self.steps.pop(0)
        if isinstance(done, Exception):
            raise done
        done()


def say_all(connection):
    connection.command("name", {"a": 1})
    connection.content("name", {"b": 2}, b"header")
    connection.body(b"octets", True)
    connection.completed(7)
    connection.room()


def test_events_go_to_the_file_of_the_connection_and_octets_to_one_that_is_received(monkeypatch):
    connection = Connection()
    say_all(connection)  # nobody is there yet: nothing happens
    heard = [("command", "name", {"a": 1}), ("content", "name", {"b": 2}, b"header"), ("completed", 7)]
    for name, more in (("Receiving", [("body", b"octets")]), ("Sending", [("room",)])):
        monkeypatch.setattr(files_0_10, "Receiving", type("Nobody", (), {}))
        monkeypatch.setattr(files_0_10, "Sending", type("Nobody", (), {}))
        monkeypatch.setattr(files_0_10, name, File)
        connection.file = File()
        say_all(connection)
        assert sorted(connection.file.told, key=str) == sorted(heard + more, key=str)


def clock(monkeypatch, *times):
    """The seconds that pass between the looks at the clock."""
    left = list(times)
    monkeypatch.setattr(files_0_10.time, "monotonic", lambda: left.pop(0) if len(left) > 1 else left[0])


def test_it_goes_on_while_there_is_news_and_is_lost_after_so_long_without(monkeypatch):
    at = [0]

    def news():
        at[0] += 1

    def nothing():
        pass

    connection = Connection(news, nothing, news)
    clock(monkeypatch, 0, 5, 5, 15, 30, 30)  # news at 5 s: what is 10 s later is in time; news at 30 s
    connection.move(lambda: at[0] == 2, lambda: at[0], 10)
    assert connection.waits == [1000] * 3 and not connection._stream.closed
    connection = Connection(nothing, nothing)
    clock(monkeypatch, 0, 10, 11)
    with pytest.raises(ConnectionLost, match="^nothing has come for 10 s$") as lost:
        connection.move(lambda: False, lambda: 1, 10)
    assert (lost.value.code, lost.value.text) == (0, "") and connection._stream.closed and len(connection.waits) == 2


def test_an_exception_of_the_brokers_is_a_refusal_and_its_stop_a_loss():
    for code, kind, said in (
        (404, Refused, "^the broker says: no queue \\(404\\)$"),
        (320, ConnectionLost, "^over$"),
        (0, ConnectionLost, "^over$"),
    ):
        connection = Connection(ConnectionLost("over", code, "no queue"))
        with pytest.raises(ClientError, match=said) as raised:
            connection.move(lambda: False, lambda: 0, 10)
        assert type(raised.value) is kind
