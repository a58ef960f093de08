"""A directory of segments, call by call: what is in which file, for whom, and what it costs the medium (ports/store_file.py)."""

import os
import stat

import pytest

from leveret.core.log import segment_list
from leveret.ports import store_file
from leveret.ports.store_file import PAGE, DirectoryInUse, FileStore, is_ours, number_of


@pytest.fixture
def store(tmp_path):
    made = FileStore(str(tmp_path / "log"))
    yield made
    made.close()


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def files(store):
    return sorted(os.listdir(store.path))


def test_a_new_directory_is_its_owners_alone_and_one_programs_at_a_time(store):
    assert mode(store.path) == 0o700 and store.numbers() == [] and store.noted() == (0, []) and store.repaired == 0
    assert files(store) == ["lock", segment_list.FILE]
    with pytest.raises(DirectoryInUse, match="is in use by another broker or by leveret log"):
        FileStore(store.path)
    store.close()
    again = FileStore(store.path)
    assert again.number is None and again.file is None and again.unsynced == 0 and again.medium_octets == 0 and again.reserve_size == 0
    again.close()
    store.__init__(store.path)


def test_a_directory_that_is_only_looked_at_is_not_made(tmp_path):
    with pytest.raises(OSError):
        FileStore(str(tmp_path / "nowhere"), make=False)
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "there").mkdir()
    looked = FileStore(str(tmp_path / "there"), make=False)
    assert looked.noted() is None and files(looked) == ["lock"]
    looked.close()


def test_octets_go_to_the_end_of_their_segment_and_come_back_from_anywhere(store):
    store.append(3, b"one")
    store.append(3, memoryview(b"two"))
    store.append(7, b"other")
    store.append(3, bytearray(b"three"))
    assert store.numbers() == [3, 7] and (store.size(3), store.size(7)) == (11, 5)
    assert (
        store.read(3, 0, 99) == b"onetwothree"
        and store.read(3, 3, 3) == b"two"
        and store.read(3, 9, 9) == b"ee"
        and store.read(3, 11, 5) == b""
    )
    assert mode(store.name(3)) == mode(store.name(7)) == 0o600 and os.path.basename(store.name(3)) == "00000003.log"


def test_a_sync_makes_a_segment_and_its_name_durable_and_counts_pages(store):
    """What was written, up to a page, and one more; the directory a page, and the note of the segment one more and the directory again."""
    assert store.medium_octets == 2 * PAGE, "the note of no segments, and the directory"
    store.medium_octets = 0
    store.append(3, b"x" * (PAGE + 1))
    assert store.fresh and store.unsynced == PAGE + 1 and store.noted() == (0, [])
    store.sync(3)
    assert store.medium_octets == 3 * PAGE + PAGE + 2 * PAGE
    assert not store.fresh and store.unsynced == 0
    assert store.noted() == segment_list.Noted(store.read_file(segment_list.FILE)).known() == (0, [(3, 4)])
    before = store.medium_octets
    store.append(3, b"x" * PAGE)
    store.sync(3)
    assert store.medium_octets == before + 2 * PAGE, "its name is durable"
    store.append(4, b"y")
    before = store.medium_octets
    store.sync(3)
    assert store.medium_octets == before + PAGE, "another than the one that is written to"


def test_a_segment_that_is_removed_is_noted_no_more(store):
    for number in (1, 2, 3):
        store.append(number, b"x")
        store.sync(number)
    for number in (3, 1):
        store.remove(number)
    assert store.numbers() == [2] and store.number is None and store.file is None
    again = segment_list.Noted(store.read_file(segment_list.FILE))
    assert again.known() == store.noted() and "00000002.log" in files(store) and "00000001.log" not in files(store)


def test_the_room_is_that_of_the_file_system_asked_now_and_then(store, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(store_file.time, "monotonic", lambda: now[0])
    first = store.free()
    store.append(1, b"x" * 1000)
    assert store.free() == first - 1000, "what was written since"
    store.left = 5
    now[0] += store_file.MEASURE_S / 2
    assert store.free() == 5
    now[0] += store_file.MEASURE_S
    assert store.free() > 5
    store.reserve_size = 3
    assert store.free() == store.left - 3
    store.reserved = True
    assert store.free() == store.left


def test_the_reserve_is_a_file_of_its_size(store):
    store.keep_reserve(10000)
    path = os.path.join(store.path, store_file.RESERVE)
    assert store.reserved and os.path.getsize(path) == 10000 and mode(path) == 0o600
    assert store.give_reserve() and not store.reserved and not os.path.exists(path) and not store.give_reserve()
    store.append(1, b"x")
    assert store.reserved and os.path.getsize(path) == 10000, "it comes back with the next write"
    store.give_reserve()
    store.append(2, b"x")
    store.give_reserve()
    store.remove(1)
    assert store.reserved


def test_a_damaged_end_is_kept_and_cut_off(store):
    store.append(5, b"good" + b"bad" * 50000)
    store.keep_aside(5, 4)
    assert store.read(5, 0, 99) == b"good"
    (kept,) = [name for name in files(store) if store_file.DAMAGED in name]
    assert kept.startswith("00000005-4.damaged-") and mode(os.path.join(store.path, kept)) == 0o600
    assert store.read_file(kept) == b"bad" * 50000


def test_what_belongs_to_nobody_is_set_aside_once(store):
    assert store.set_aside(5, [b"a", b"b"]) == "00000005.orphans" and store.read_file("00000005.orphans") == b"ab"
    assert store.set_aside(5, [b"ab"]) == "00000005.orphans", "an earlier start has"
    assert store.set_aside(5, [b"other"]) == "00000005-2.orphans" and store.set_aside(5, [b"more of it"]) == "00000005-3.orphans"
    assert store.set_aside(5, [b"OTHER"]) == "00000005-2.orphans"
    assert [name for name in files(store) if name.endswith(store_file.NEW)] == []


def test_files_that_others_could_read_are_made_private_and_no_others(store):
    store.append(1, b"x")
    for name in ("00000001.log", "mine.txt"):
        path = os.path.join(store.path, name)
        open(path, "a").close()
        os.chmod(path, 0o644)
    os.chmod(os.path.join(store.path, "lock"), 0o640)
    store.close()
    looked = FileStore(store.path, make=False)
    assert looked.repaired == 0 and mode(looked.name(1)) == 0o644
    looked.close()
    store.__init__(store.path)
    assert mode(store.name(1)) == mode(os.path.join(store.path, "lock")) == 0o600 and mode(os.path.join(store.path, "mine.txt")) == 0o644
    assert store.repaired >= 1


def test_a_segments_name_is_its_number_in_eight_digits(store):
    for name, number in (
        ("00000001.log", 1),
        ("99999999.log", 99999999),
        ("123456789.log", 123456789),
        ("1073741823.log", 1073741823),
        ("1073741824.log", 0),
        ("00000000.log", 0),
        ("1.log", 0),
        ("000000001.log", 0),
        ("0000000x.log", 0),
        ("٠٠٠٠٠٠٠١.log", 0),
        ("00000001.log.new", 0),
        (".log", 0),
    ):
        assert number_of(name) == number, name
    for name in ("1.log", "x.log"):
        open(os.path.join(store.path, name), "w").close()
    os.mkdir(os.path.join(store.path, "00000009.log"))
    assert store.strays() == ["00000009.log", "1.log", "x.log"] and store.numbers() == []
    assert is_ours("00000001.log") and is_ours("lock") and not is_ours("mine.txt")


def test_a_file_that_cannot_be_written_whole_is_not_there(store, monkeypatch):
    store.write_file("thing", [b"old"])

    def fail(descriptor):
        raise OSError(5, "input/output error")

    monkeypatch.setattr(store_file.os, "fsync", fail)
    with pytest.raises(OSError):
        store.write_file("thing", [b"new", b"er"])
    monkeypatch.undo()
    assert store.read_file("thing") == b"old" and "thing.new" not in files(store) and store.read_file("nowhere") == b""


def test_what_a_removed_segment_gives_back_is_room_at_once(store, monkeypatch):
    """Not only after MEASURE_S: publishers wait for it."""
    monkeypatch.setattr(store_file.time, "monotonic", lambda: 100.0)
    store.append(1, b"x")
    store.sync(1)
    assert store.free() > 5
    store.left = 5
    store.append(2, b"")
    assert store.free() == 5
    store.remove(1)
    assert store.free() > 5
