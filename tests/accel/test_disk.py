"""The store whose writes are done by a thread of C (c_accel/disk.py): the contract of core/log/segments.py, and what a system refuses."""

import errno
import os
import select

import pytest
from peer import Peer, new_broker

from leveret import c_accel
from leveret.core.recovery.opening import make_durable
from leveret.ports.store_file import PAGE, FileStore

pytestmark = pytest.mark.skipif(c_accel.lib is None, reason="a C compiler is not installed")
RESERVE = 40000


@pytest.fixture
def store(tmp_path):
    """A store with an open segment of ten octets."""
    from leveret.c_accel.disk import DiskStore

    made = DiskStore(str(tmp_path))
    made.begin(1, b"0123456789")
    assert made.writing is None  # a new segment is the other thread's
    outcome(made)
    yield made
    made.close()


def outcome(store):
    """Wait for what was begun; it raises what that raised. The loop hears of it each time."""
    while True:
        store.wait()
        assert select.select([store.pollable], [], [], 60)[0]
        store.accept(None)
        if store.ended():
            return


def test_what_is_begun_is_written_at_the_end_and_synced(store):
    medium, left = store.medium_octets, store.left
    store.begin(1, b"abc")
    assert store.writing == b"abc"
    outcome(store)
    assert store.writing is None and store.unsynced == 0 and store.read(1, 0, 100) == b"0123456789abc"
    assert store.medium_octets == medium + 2 * PAGE and store.left == left - 3


def test_much_at_once_and_the_next_segment(store):
    octets = bytes(range(256)) * 40000
    store.begin(1, octets)
    outcome(store)
    store.begin(2, b"next")
    outcome(store)
    store.begin(2, b" and more")
    outcome(store)
    assert store.read(1, 10, len(octets) + 1) == octets and store.read(2, 0, 100) == b"next and more"
    assert store.numbers() == [1, 2]


def test_a_full_disk_takes_the_rest_from_the_reserve(store):
    """What the file lacks is the other thread's: it gives the reserve up, and says what is left to say."""
    store.keep_reserve(RESERVE)
    path = os.path.join(store.path, "reserve")
    assert os.path.getsize(path) == RESERVE
    kept = os.dup(store.file)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, store.file)
    left = store.left
    store.begin(1, b"abc")
    with pytest.raises(OSError) as refused:
        outcome(store)
    assert refused.value.errno == errno.ENOSPC and not os.path.exists(path) and store.left == left - 3
    os.dup2(kept, store.file)
    store.begin(1, b"abc")  # a reserve is owed: the other thread's, which writes it first
    assert store.writing is None
    outcome(store)
    assert store.read(1, 0, 100) == b"0123456789abc" and os.path.getsize(path) == RESERVE
    for each in (kept, full):
        os.close(each)


@pytest.mark.parametrize("number", (errno.EBADF, errno.EINVAL))
def test_what_else_the_system_refuses_is_told(store, number):
    """A write and a sync that fail; nobody tries a sync again, which might say that lost octets are there."""
    reads, writes = os.pipe()
    os.dup2(reads if number == errno.EBADF else writes, store.file)  # no write there, and no sync
    store.begin(1, b"abc")
    with pytest.raises(OSError) as refused:
        outcome(store)
    assert refused.value.errno == number and store.writing is None
    for each in (reads, writes):
        os.close(each)


def test_a_broker_has_its_log_in_it(tmp_path):
    """What one run has written is there in the next one, over several segments."""
    from leveret.c_accel.disk import DiskStore

    for number in range(3):
        broker = new_broker()
        store = DiskStore(str(tmp_path))
        make_durable(broker, store, "each", 5, 65536, 4096, 1 << 20)
        assert len(broker.queues) == 5 * number
        connection = Peer(broker).connection
        for each in range(5 * number, 5 * number + 5):
            broker.topology.make_queue(connection, "q%d" % each, True, False, False, {})
            broker.run()
        assert broker.journal.finish()
        store.close()
    with_files = FileStore(str(tmp_path))
    assert len(with_files.numbers()) >= 3
    with_files.close()
