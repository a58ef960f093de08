"""Everything that holds messages, users or keys is for its owner alone, whatever the directory and the umask are."""

import os

import pytest
from peer import Peer, new_broker

from leveret.core.recovery import opening
from leveret.ports.store_file import FileStore
from leveret.ports.store_thread import ThreadedFileStore
from leveret.tools import data, definitions


@pytest.fixture(autouse=True)
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def broker_on(store):
    broker = new_broker()
    report = opening.make_durable(broker, store, "each", 100, 65536, 2000, 1 << 20)
    return broker, report


def fill(path):
    """A log of several files in a directory that everybody may read and write."""
    path.mkdir(mode=0o777)
    store = FileStore(str(path))
    broker, _ = broker_on(store)
    store.keep_reserve(4096)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    for _ in range(60):
        peer.publish("q", bytes(100), given={"delivery_mode": 2})
    broker.journal.finish()
    store.close()


def modes(path):
    return {name: (path / name).stat().st_mode & 0o777 for name in os.listdir(path)}


def test_all_files_of_a_log_are_private(tmp_path):
    """Segments, what says which there are, the reserve, the lock; what a start puts aside: damaged ends, messages of lost queues."""
    path = tmp_path / "data"
    fill(path)
    os.remove(path / "00000001.log")
    octets = bytearray((path / "00000003.log").read_bytes())
    octets[-5] ^= 1
    (path / "00000003.log").write_bytes(octets)
    store = FileStore(str(path))
    broker_on(store)
    store.close()
    found = modes(path)
    kinds = (".damaged-", ".orphans", ".log", "segments", "lock", "reserve")
    for kind in kinds:
        assert [name for name in found if kind in name], (kind, found)
    assert set(found.values()) == {0o600}, found


def test_files_of_an_earlier_version_are_made_private_with_a_sentence(tmp_path):
    path = tmp_path / "data"
    fill(path)
    (path / "00000001-16.damaged-20260101T000000").write_bytes(b"users")
    (path / "of-another-program").write_bytes(b"")
    for name in os.listdir(path):
        os.chmod(path / name, 0o644)
    broker = new_broker()
    chosen = data.Data(
        {"directory": str(path), "sync": "each", "batch_ms": 5, "batch_octets": 65536, "disk_max": 1 << 20, "segment_size": 2000}
    )
    store, report = chosen.open(broker)
    assert isinstance(store, ThreadedFileStore)
    store.close()
    found = modes(path)
    assert found.pop("of-another-program") == 0o644 and set(found.values()) == {0o600}, found
    assert "; others could read " in report and "(0600)" in report, report


class Manager:
    """Answers as a broker with one user does."""

    def pages(self, _):
        return {}, {"users": [{"name": "u", "password_hash": "secret", "hashing_algorithm": "leveret"}]}

    def ask(self, _):
        return {"overview": {"virtual_host": "/"}}


def test_exported_definitions_are_private_also_over_an_older_export(tmp_path):
    path = tmp_path / "definitions.json"
    definitions.export_to(str(path), Manager())
    assert path.stat().st_mode & 0o777 == 0o600 and "secret" in path.read_text()
    os.chmod(path, 0o644)
    definitions.export_to(str(path), Manager())
    assert path.stat().st_mode & 0o777 == 0o600
