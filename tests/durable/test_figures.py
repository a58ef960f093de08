"""What the log tells of its writing: octets, syncs, amplification, and how long flash bears it."""

from flash_device import RamFlash
from peer import Peer, new_broker

from leveret.core.log import figures
from leveret.core.recovery import opening
from leveret.ports.store_file import FileStore
from leveret.ports.store_flash import FlashStore

BODY = bytes(200)


def figures_of(store, count):
    """The figures after `count` messages, one sync each, and two minutes."""
    broker = new_broker(arena_size=1 << 20, message_count_max=4096, entry_count_max=4096)
    broker.tick(123456, 0)
    opening.make_durable(broker, store, "each", 5, 65536, 16384, 1 << 20)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    for _ in range(count):
        peer.publish("q", BODY, given={"delivery_mode": 2})
    early = broker.journal.figures()
    assert early["life_years"] is None
    broker.tick(123456 + 120000, 0)
    return broker.journal.figures()


def test_a_file_is_counted_in_pages(tmp_path):
    store = FileStore(str(tmp_path))
    found = figures_of(store, 50)
    assert found["sync"] == "each" and found["log_syncs"] >= 50 and found["log_trouble"] == ""
    assert found["log_message_octets"] == 50 * (len(BODY) + 3 + len(b"\x00\x01q"))
    assert found["medium_octets"] >= 50 * 4096 and found["amplification"] == found["medium_octets"] / found["log_message_octets"]
    assert found["log_size"] == sum(store.size(number) for number in store.numbers()) == found["log_octets"]
    years = store.capacity * store.cycles / (found["medium_octets"] / 120) / 31557600
    assert abs(found["life_years"] - years) < years / 1000


def test_flash_is_counted_in_erased_blocks():
    device = RamFlash(64)
    found = figures_of(FlashStore(device), 50)
    assert found["erases"] == sum(device.erased) > 1 and found["medium_octets"] == found["erases"] * 4096
    assert 2 < found["amplification"] < 3  # a sync of one such message programs two units of 256 octets


def test_nothing_is_said_about_life_without_a_medium_or_before_a_minute():
    assert figures.life_years(0, 1000, 5, 120000) is None
    assert figures.life_years(1 << 30, 1000, 0, 120000) is None
    assert figures.life_years(1 << 30, 1000, 5, 59000) is None


def test_what_management_shows_is_short_and_has_all_it_names(tmp_path):
    broker = new_broker()
    assert figures.shown(broker.journal) is None
    opening.make_durable(broker, FileStore(str(tmp_path)), "each", 5, 65536, 16384, 1 << 20)
    assert tuple(figures.shown(broker.journal)) == figures.SHOWN
    broker.journal.log.store.medium_octets = 0  # what was written before there was a message
    broker.journal.message_octets, broker.journal.log.counters["log_octets"] = 3, 10
    assert figures.shown(broker.journal)["amplification"] == 3.33
