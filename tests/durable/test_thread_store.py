"""The file store whose syncs are done in a thread: nobody waits for a slow disk but those whose messages are on the way to it."""

import errno
import os
import threading
import time

import pytest
from peer import Peer, new_broker

from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import Limits
from leveret.core.recovery.opening import make_durable
from leveret.ports.client import connect
from leveret.ports.store_file import FileStore
from leveret.ports.store_thread import ThreadedFileStore
from leveret.ports.tcp import Loop

PERSISTENT = {"delivery_mode": 2}
SLOW_S = 0.3  # a memory card that is busy with itself
PATIENCE_S = 60


class SlowStore(ThreadedFileStore):
    """Syncs take their time, and none ends while `open` is not set; `fails`: so many of them fail."""

    slow_s = SLOW_S
    fails = 0

    def __init__(self, *arguments):
        ThreadedFileStore.__init__(self, *arguments)
        self.open = threading.Event()
        self.open.set()

    def sync(self, number):
        if threading.current_thread() is not threading.main_thread():
            time.sleep(self.slow_s)
            self.open.wait(PATIENCE_S)
            if self.fails:
                self.fails -= 1
                raise OSError(errno.EIO, "input/output error")
        ThreadedFileStore.sync(self, number)


class Served:
    """A broker on a store behind a real listener, in a thread of its own."""

    def __init__(self, store, mode="each"):
        self.broker = Broker(Limits(), b"nonce")
        make_durable(self.broker, store, mode, 5, 1 << 18, 1 << 20, 1 << 26)
        self.loop = Loop(20, self.broker)
        if hasattr(store, "pollable"):
            self.loop.watch(store)
        self.store = store
        self.ending = False
        host, port = self.loop.listen("127.0.0.1", 0, lambda stream: Connection(self.broker, stream.name, True))
        self.url = f"amqp://guest:guest@{host}:{port}/"
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.ending:
            self.loop.step(min(100, self.broker.journal.wait_ms()))

    def close(self):
        self.ending = True
        self.thread.join()
        self.loop.close()
        self.good = self.broker.journal.finish()
        self.store.close()


@pytest.fixture
def serve():
    made = []

    def start(store, mode="each"):
        made.append(Served(store, mode))
        return made[-1]

    yield start
    for each in made:
        if not each.ending:
            each.close()


def test_others_are_served_while_the_disk_is_slow(serve, tmp_path):
    store = SlowStore(str(tmp_path))
    served = serve(store)
    durable, other = connect(served.url), connect(served.url)
    durable.queue_declare("kept", durable=True)
    other.queue_declare("quick")
    for number in range(3):
        store.open.clear()
        durable.publish("", "kept", b"%d" % number, PERSISTENT, confirm=False)
        for _ in range(5):
            other.publish("", "quick", b"ping", confirm=False)
            assert other.get("quick", no_ack=True).body == b"ping"
        assert durable.poll(100) == [] and durable._channel.unconfirmed == 1
        store.open.set()
        durable.wait_confirmed()
    other.close()
    durable.close()


def test_confirms_leave_with_the_sync_that_covers_them_though_more_keeps_coming(serve, tmp_path):
    """A publisher that never pauses is confirmed all the same, message by message as they become durable."""
    store = SlowStore(str(tmp_path))
    store.slow_s = 0.02
    served = serve(store)
    client = connect(served.url)
    client.queue_declare("kept", durable=True)
    count = 0
    limit = time.monotonic() + PATIENCE_S
    while count - client._channel.unconfirmed <= 200:
        assert time.monotonic() < limit, "%d of %d are confirmed" % (count - client._channel.unconfirmed, count)
        client.publish("", "kept", b"%d" % count, PERSISTENT, confirm=False)
        client.poll(1)
        count += 1
    client.wait_confirmed()
    client.close()


def test_a_confirm_is_on_the_disk(serve, tmp_path):
    """Whatever a copy of the directory holds at the moment of the confirm has the message."""
    served = serve(SlowStore(str(tmp_path / "data")))
    client = connect(served.url)
    client.queue_declare("kept", durable=True)
    synced = []
    before = served.store.sync
    served.store.sync = lambda number: (before(number), synced.append(os.path.getsize(served.store.name(number))))
    client.publish("", "kept", bytes(5000), PERSISTENT)
    assert synced and synced[-1] > 5000
    client.close()


def test_a_sync_that_fails_in_the_thread_is_written_again(serve, tmp_path):
    store = SlowStore(str(tmp_path))
    store.slow_s = 0.01
    served = serve(store)
    client = connect(served.url)
    client.queue_declare("kept", durable=True)
    store.fails = 2
    for number in range(5):
        client.publish("", "kept", b"%d" % number, PERSISTENT)
    client.close()
    served.close()
    assert served.good and served.broker.journal.log.counters["log_troubles"] == 2
    again = serve(FileStore(str(tmp_path)))
    client = connect(again.url)
    assert [int(bytes(client.get("kept", no_ack=True).body)) for _ in range(5)] == list(range(5))
    client.close()


def test_what_is_under_way_at_the_end_is_waited_for(tmp_path):
    broker = new_broker()
    store = SlowStore(str(tmp_path))
    make_durable(broker, store, "each", 5, 65536, 65536, 1 << 20)
    broker.topology.make_queue(Peer(broker).connection, "q", True, False, False, {})
    broker.run()
    assert broker.journal.log.is_busy()
    assert broker.journal.finish() and not broker.journal.log.is_busy()
    store.close()


def test_segments_are_removed_in_the_thread(serve, tmp_path):
    store = SlowStore(str(tmp_path))
    store.slow_s = 0.001
    where = []
    remove = store.remove
    store.remove = lambda number: (where.append(threading.current_thread() is threading.main_thread()), remove(number))
    served = serve(store)
    client = connect(served.url)
    client.queue_declare("kept", durable=True)
    for _ in range(30):
        client.publish("", "kept", bytes(200000), PERSISTENT)
        client.get("kept", no_ack=True)
    client.close()
    assert len(where) > 3 and not any(where)
    assert len(store.numbers()) < 6


def test_the_reserve_goes_when_the_disk_is_full_and_comes_back(tmp_path, monkeypatch):
    """What was begun is written once more in the room it leaves; without it the log refuses messages, and only them."""
    store = FileStore(str(tmp_path))
    store.keep_reserve(40000)
    path = tmp_path / "reserve"
    assert path.stat().st_size == 40000 and store.reserved
    write = os.write
    full = []

    def no_space(file, view):
        if os.path.exists(path):
            full.append(True)
            raise OSError(errno.ENOSPC, "no space left")
        return write(file, view)

    monkeypatch.setattr(os, "write", no_space)
    store.append(1, b"0123456789")
    assert full == [True] and not path.exists() and not store.reserved and store.free() == store.left - 40000
    assert store.read(1, 0, 100)[-10:] == b"0123456789"
    monkeypatch.setattr(os, "write", write)
    store.append(2, b"x")
    assert path.stat().st_size == 40000 and store.reserved
    store.close()
