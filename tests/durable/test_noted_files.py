"""The file that says which segments there are to be (core/log/segment_list.py), in a directory: a program that is killed, or a disk that
refuses, at any call of the system leaves a log that is whole and tells no loss; a file that is taken away is told."""

import errno
import os

import pytest
from peer import Peer, new_broker

from leveret.core.recovery import opening
from leveret.ports import store_file
from leveret.ports.store_file import FileStore

CALLS = ("write", "fsync", "fdatasync", "rename", "remove", "open")
SEGMENT_SIZE = 1500
COUNT = 26


class Killed(BaseException):
    """The program ends here."""


class System:
    """Stands for `os` in the store: the call number `at`, counted from 1, does not happen, or (`behind`) nothing after it."""

    def __init__(self, at, behind=False, error=None):
        self.left = at
        self.behind = behind
        self.error = error
        self.dead = False

    def __getattr__(self, name):
        action = getattr(os, name)
        return self.counted(action) if name in CALLS else action

    def counted(self, action):
        def run(*given, **named):
            if self.dead:
                raise Killed
            self.left -= 1
            if self.left == 0 and not self.behind:
                self.stop()
            done = action(*given, **named)
            if self.left == 0:
                self.stop()
            return done

        return run

    def stop(self):
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        self.dead = True
        raise Killed


def broker_on(store):
    broker = new_broker(arena_size=1 << 16)
    return broker, opening.make_durable(broker, store, "each", 100, 65536, SEGMENT_SIZE, 1 << 20)


def work(broker, confirmed):
    """Segments come and go: COUNT messages, of which all but the last four are settled."""
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.ask("confirm_select", "confirm_select_ok", False)
    for number in range(COUNT):
        peer.publish("q", b"%03d" % number + bytes(150), given={"delivery_mode": 2})
        for tick in range(1, 200):
            if broker.journal.log.synced == broker.journal.log.appended:
                break
            broker.tick(broker.now + tick * 10, 1700000000)
            broker.run()
        if [frame for frame in peer.frames() if frame[0] == "basic_ack"]:
            confirmed.append(number)
        if number >= 4:
            broker.queues["q"].drop(broker.queues["q"].pop())
    return peer


def numbers_of(broker):
    return [int(each[3][:3]) for each in Peer(broker).consume("q")] if "q" in broker.queues else []


def one(path, monkeypatch, system):
    """A day until `system` ends it: (confirmed, true when it came to the end)."""
    confirmed = []
    store = FileStore(str(path))
    monkeypatch.setattr(store_file, "os", system)
    try:
        broker, _ = broker_on(store)
        work(broker, confirmed)
        whole = not system.dead
    except Killed:
        whole = False
    finally:
        monkeypatch.setattr(store_file, "os", os)
        store.close()
    return confirmed, whole


@pytest.mark.parametrize("behind", [False, True])
def test_a_program_that_is_killed_at_any_call_leaves_a_log_that_tells_no_loss(tmp_path, monkeypatch, behind):
    at = 0
    whole = False
    while not whole:
        at += 1
        path = tmp_path / str(at)
        confirmed, whole = one(path, monkeypatch, System(at, behind))
        store = FileStore(str(path))
        broker, report = broker_on(store)
        for word in ("missing", "empty", "lists", "defines"):
            assert word not in report, (at, report)
        numbers = numbers_of(broker)
        assert not [number for number in confirmed[-4:] if number not in numbers], (at, confirmed, numbers)
        broker.journal.finish()
        store.close()
        again = FileStore(str(path))
        assert ";" not in broker_on(again)[1]
        again.close()
    assert at > 80, at


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_refuses_one_call_costs_nothing(tmp_path, monkeypatch, error):
    """Neither at work nor at the next start."""
    at, refused, system = 20, 0, System(0)
    while system.left <= 0:
        at += 2
        path = tmp_path / str(at)
        system = System(at, error=error)
        confirmed, whole = one(path, monkeypatch, system)
        assert whole and confirmed, at
        refused += system.left <= 0
        store = FileStore(str(path))
        broker, report = broker_on(store)
        for word in ("missing", "empty", "lists", "defines"):
            assert word not in report, (at, report)
        assert numbers_of(broker)[-4:] == list(range(COUNT - 4, COUNT)), (at, report)
        store.close()
    assert refused > 20, refused


def test_each_file_that_is_taken_away_is_told_by_its_number(tmp_path):
    path = tmp_path / "data"
    store = FileStore(str(path))
    broker, _ = broker_on(store)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    for number in range(60):
        peer.publish("q", b"%03d" % number + bytes(150), given={"delivery_mode": 2})
    broker.journal.finish()
    numbers = store.numbers()
    store.close()
    assert len(numbers) > 5
    for number in numbers:
        aside = tmp_path / "aside"
        os.rename(path / ("%08d.log" % number), aside)
        for empty in (False, True):
            if empty:
                (path / ("%08d.log" % number)).write_bytes(b"")
            store = FileStore(str(path))
            assert "; segment %d is %s" % (number, "empty" if empty else "missing") in broker_on(store)[1]
            store.close()
        os.rename(aside, path / ("%08d.log" % number))
    os.remove(path / "segments")
    store = FileStore(str(path))
    broker, report = broker_on(store)
    assert "the file that lists the segments is lost" in report and numbers_of(broker) == list(range(60)), report
    store.close()
