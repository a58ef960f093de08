"""The stores for a board: power cut at every operation of a flash chip that refuses what flash cannot do; wear, full, bad blocks.

The flash store runs on CPython; with littlefs the sweep runs in a `micropython` binary (micropython_littlefs.py).
"""

import os
import shutil
import subprocess

import pytest
from flash_device import RamFlash
from peer import Peer
from power_cuts import make_broker, sweep

from leveret.core.log import segments
from leveret.ports.store_flash import FlashStore
from leveret.ports.store_littlefs import FolderStore

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


@pytest.mark.parametrize("block_count, block_size, program_size", [(14, 1024, 16), (14, 1024, 64), (11, 4096, 256)])
def test_raw_flash_loses_nothing_wherever_the_power_goes(block_count, block_size, program_size):
    made = []

    def make_device():
        made.append(RamFlash(block_count, block_size, program_size))
        return made[-1]

    cuts = sweep(make_device, lambda device: FlashStore(device, program_size), lambda store: None, 30000)
    assert cuts > 150 and max(max(device.erased) for device in made) > (1 if block_size == 1024 else 0)
    print(cuts, "cuts")


class TooEarly(FlashStore):
    """Says that it has synced when it has gathered enough."""

    def sync(self, number):
        if self.waiting_size > 400:
            FlashStore.sync(self, number)


class NewestFirst(FlashStore):
    """Takes the block that was freed last, before a head says that its segment has gone."""

    def begin_block(self, part):
        self.free_blocks.insert(0, self.free_blocks.pop())
        return FlashStore.begin_block(self, part)


def test_the_sweep_catches_a_store_that_says_synced_too_early():
    with pytest.raises(AssertionError, match="missing"):
        sweep(lambda: RamFlash(14, 1024, 64), lambda device: TooEarly(device, 64), lambda store: None, 30000)


def test_the_sweep_catches_a_store_that_erases_too_early():
    with pytest.raises(AssertionError, match="came back"):
        sweep(lambda: RamFlash(14, 1024, 64), lambda device: NewestFirst(device, 64), lambda store: None, 30000)


def log_of(store, segment_size=2000, size_max=1 << 30):
    writer = segments.Log(store, segment_size, size_max)
    writer.begin((store.numbers() or [0])[-1] + 1, 0)
    return writer


def records(store):
    """(all payloads of messages, damages) of a store."""
    found, damages = [], []
    for number in store.numbers():
        reader = segments.Reader(store, number)
        if reader.head():
            record = reader.next()
            while record is not None:
                found.extend(
                    [bytes(payload) for _, payload in (segments.ungrouped(record[1]) if record[0] == segments.GROUP else [record])]
                )
                record = reader.next()
        if reader.damage is not None:
            damages.append(reader.damage)
    return found, damages


@pytest.mark.parametrize("size", [1, 100, 249, 250, 251, 4000, 9000])
def test_records_of_every_size_come_back_from_raw_flash(size):
    device = RamFlash(64)
    writer = log_of(FlashStore(device), 20000)
    wanted = []
    for number in range(20):
        wanted.append(bytes([number]) * size)
        writer.append(segments.MESSAGE, (wanted[-1],))
        if number % 3 == 0:
            assert writer.commit()
    assert writer.commit()
    assert records(FlashStore(device)) == (wanted, [])


def test_wear_goes_round_all_blocks_and_little_is_written_twice():
    device = RamFlash(32)
    store = FlashStore(device)
    writer = log_of(store, 8000)
    payload = 0
    while min(device.erased) < 20:
        writer.append(segments.MESSAGE, (bytes(700),))
        payload += 700
        assert writer.commit()
        while len(writer.segments) > 3:
            assert writer.remove_oldest()
    assert max(device.erased) - min(device.erased) <= 1
    assert device.programmed < 1.6 * payload and store.erases * device.block_size < 1.7 * payload


def test_a_full_chip_refuses_and_takes_again_when_segments_go():
    device = RamFlash(8)
    store = FlashStore(device)
    writer = log_of(store, 4000)
    while writer.commit():
        writer.append(segments.MESSAGE, (bytes(500),))
    assert "28" in writer.trouble and writer.full()
    kept, damages = records(FlashStore(device))
    assert not damages and len(kept) > 25
    assert writer.remove_oldest() and writer.remove_oldest()
    assert writer.commit() and not writer.trouble


def test_a_broker_on_a_full_chip_waits_and_goes_on():
    """Publishers are not read while there is no room; acks make room."""
    broker, _ = make_broker(FlashStore(RamFlash(14)), 1 << 20)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    count = 0
    while peer.connection.reading:
        peer.publish("q", bytes(200), given={"delivery_mode": 2})
        count += 1
        assert count < 300
    assert not broker.journal.log.trouble
    reader = Peer(broker)
    reader.ask("queue_purge", "queue_purge_ok", 0, "q", False)
    for _ in range(4):
        broker.run()
    assert peer.connection.reading


def test_a_block_that_cannot_be_written_is_left_out():
    device = RamFlash(16)
    device.refuses = (0, 3, 4)
    writer = log_of(FlashStore(device), 4000)
    wanted = []
    for number in range(60):
        wanted.append(bytes([number]) * 300)
        writer.append(segments.MESSAGE, (wanted[-1],))
        assert writer.commit() or writer.commit()
        if number == 30:
            device.refuses = (0, 3, 4, writer.store.blocks[writer.current().number][-1])
    assert records(FlashStore(device)) == (wanted, [])


def test_a_flipped_bit_on_raw_flash_is_damage_and_is_told_once():
    device = RamFlash(16)
    writer = log_of(FlashStore(device), 50000)
    for number in range(20):
        writer.append(segments.MESSAGE, (bytes([number]) * 100,))
        assert writer.commit()
    device.octets[10 * 256 + 40] ^= 4
    store = FlashStore(device)
    found, damages = records(store)
    assert found == [bytes([number]) * 100 for number in range(len(found))] and 5 < len(found) < 12 and len(damages) == 1
    store.keep_aside(damages[0].number, damages[0].offset)
    assert records(FlashStore(device)) == (found, [])


def test_a_folder_puts_a_damaged_end_aside_and_keeps_only_a_few(tmp_path):
    path = tmp_path / "log"
    store = FolderStore(str(path))
    for number in range(1, 6):
        store.append(number, b"good and bad")
        store.sync(number)
    store.close()
    for number in range(1, 6):
        store.keep_aside(number, 4)
    assert [store.read(number, 0, 100) for number in store.numbers()] == [b"good"] * 5
    assert len([name for name in os.listdir(path) if ".damaged-20" in name]) == 2 and not (path / "copy.new").exists()


def micropython_binary():
    return os.environ.get("LEVERET_MICROPYTHON") or shutil.which("micropython")


def test_littlefs_loses_nothing_wherever_the_power_goes(tmp_path):
    binary = micropython_binary()
    if binary is None:
        pytest.skip("there is no `micropython` binary (the WebAssembly build has no littlefs)")
    (tmp_path / "leveret").mkdir()
    for name in ("core", "ports"):
        (tmp_path / "leveret" / name).symlink_to(os.path.join(ROOT, name))
    path = ":".join([str(tmp_path), HERE, os.path.join(ROOT, "tests", "unit"), ".frozen"])
    done = subprocess.run(
        [binary, "-X", "heapsize=8M", os.path.join(HERE, "micropython_littlefs.py")],
        capture_output=True,
        text=True,
        timeout=300,
        env={"MICROPYPATH": path},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    print(done.stdout)
    assert int(done.stdout.split()[0]) > 100
