"""What the log tells of its writing and of the life of its medium (core/log/figures.py), and when it wants to be run again."""

from memory_store import PERSISTENT, MemoryStore, SlowStore, durable_broker
from peer import Peer, encoded, new_broker

from leveret.core.log import figures
from leveret.core.log.journal import IDLE_MS, SETTLED_MS

BODY = bytes(200)
MINUTE_MS = 60000


class Flash(MemoryStore):
    """A store that knows its medium: pages of 256 octets, erased in blocks of 4096."""

    def __init__(self):
        MemoryStore.__init__(self)
        self.capacity = 1 << 20
        self.cycles = 1000
        self.medium_octets = 0

    def append(self, number, octets):
        MemoryStore.append(self, number, octets)
        self.medium_octets += (len(octets) + 255) // 256 * 256

    @property
    def erases(self):
        return self.medium_octets // 4096


def written(store, count=20, **options):
    """A broker that has logged so many messages, each with a sync of its own."""
    broker, _ = durable_broker(store, **options)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    for _ in range(count):
        peer.publish("q", BODY, given=PERSISTENT)
    return broker


def test_the_figures_are_those_of_the_store_and_of_the_messages():
    store = Flash()
    broker = written(store)
    found = broker.journal.figures()
    assert found["sync"] == "each" and found["window_ms"] == broker.journal.window_ms
    assert found["log_syncs"] >= 20 and found["log_trouble"] == ""
    assert found["log_size"] == sum([store.size(number) for number in store.numbers()]) == found["log_octets"]
    assert found["log_size_max"] == 1 << 20 and found["log_segments"] == len(store.numbers()) == 2
    assert found["log_message_octets"] == 20 * (len(BODY) + 3 + len(b"\x00\x01q"))  # body, properties, exchange and key
    assert found["medium_octets"] == store.medium_octets > found["log_octets"] and found["erases"] == store.erases == 2
    assert found["amplification"] == store.medium_octets / found["log_message_octets"]


def test_a_store_without_a_medium_counts_what_it_was_given():
    found = written(MemoryStore()).journal.figures()
    assert found["medium_octets"] == found["log_octets"] and found["erases"] == 0 and found["life_years"] is None
    assert written(MemoryStore(), 0).journal.figures()["amplification"] is None


def test_the_life_of_the_medium_is_that_at_the_rate_since_the_start_after_a_minute():
    store = Flash()
    broker = written(store)
    broker.tick(broker.now + MINUTE_MS - 1, 0)
    assert broker.journal.figures()["life_years"] is None
    broker.tick(broker.now + MINUTE_MS + 1, 0)
    years = broker.journal.figures()["life_years"]
    wanted = 1000 * (1 << 20) / (store.medium_octets / 120) / 31557600
    assert abs(years - wanted) < wanted / 1000
    assert figures.life_years(1 << 20, 0, 5, MINUTE_MS) is figures.life_years(0, 5, 5, MINUTE_MS) is None
    assert figures.life_years(1 << 20, 5, 0, MINUTE_MS) is None and figures.life_years(1 << 20, 5, 5, MINUTE_MS) > 0


def test_management_shows_each_name_with_two_places():
    assert figures.shown(None) is figures.shown(new_broker().journal) is None
    journal = written(MemoryStore(), 0).journal
    journal.message_octets, journal.log.counters["log_octets"] = 3, 10
    found = figures.shown(journal)
    assert sorted(found) == sorted(figures.SHOWN)
    assert found["amplification"] == 3.33 and found["octets"] == 10 and found["syncs"] == journal.log.counters["log_syncs"]


def test_a_batch_is_run_again_when_its_time_is_over_and_no_sooner():
    """sync = batch: what is written waits batch_ms for company; the other modes and a busy store have nothing to wait for."""
    broker, _ = durable_broker(MemoryStore(), "batch", batch_ms=100)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    broker.tick(broker.now + 200, 0)
    broker.run()
    journal = broker.journal
    assert not journal.was_dirty and journal.wait_ms() == IDLE_MS
    peer.publish("q", BODY, given=PERSISTENT)
    began = broker.now
    assert journal.was_dirty and journal.wait_ms() == 100 and not journal.due()
    broker.tick(began + 99, 0)
    assert journal.wait_ms() == 1 and not journal.due()
    broker.tick(began + 100, 0)
    assert journal.wait_ms() == 0 and journal.due()
    broker.tick(began + 130, 0)
    assert journal.wait_ms() == 0
    broker.run()
    assert journal.wait_ms() == IDLE_MS
    journal.goes_on = True
    assert journal.wait_ms() == 0
    journal.log.trouble = "the log cannot be written"
    assert journal.wait_ms() == IDLE_MS


def test_while_the_store_syncs_beside_us_there_is_nothing_to_run_for():
    store = SlowStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.give(encoded("queue_declare", 1, 0, "q", False, True, False, False, False, {}))
    idle_rounds(broker)
    store.stalls = True
    peer.publish("q", BODY, given=PERSISTENT)
    broker.journal.goes_on = True
    assert broker.journal.log.is_busy() and broker.journal.wait_ms() == IDLE_MS
    store.stalls = False
    idle_rounds(broker)
    assert not broker.journal.log.is_busy() and broker.queues["q"].message_count() == 1


def acknowledged(store):
    """A broker whose consumer has acknowledged a message, while the write that made it durable is still under way."""
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.give(encoded("queue_declare", 1, 0, "q", False, True, False, False, False, {}))
    peer.give(encoded("basic_consume", 1, 0, "q", "c", False, False, False, False, {}))
    idle_rounds(broker)
    store.stalls = True
    peer.publish("q", BODY, given=PERSISTENT)
    broker.run()
    peer.give(encoded("basic_ack", 1, 1, False))
    broker.run()
    assert broker.journal.log.is_busy()
    store.stalls = False
    return broker, peer


def synced(broker):
    return broker.journal.log.counters["log_syncs"]


def test_settlements_alone_wait_behind_a_write_and_no_longer_than_they_should():
    """Else a publisher's next window waits for their sync, and then for its own (beyond 0-9-1: an acknowledgement has no answer)."""
    broker, peer = acknowledged(SlowStore())
    broker.run()  # the write has ended; the settlement is not written yet
    before = synced(broker)
    idle_rounds(broker)
    assert synced(broker) == before and broker.journal.settled.identities
    assert broker.due_in(broker.now) == broker.journal.wait_ms() == SETTLED_MS
    broker.tick(broker.now + SETTLED_MS - 1, 0)
    broker.run()
    assert synced(broker) == before and broker.due_in(broker.now) == 1
    broker.tick(broker.now + 1, 0)
    idle_rounds(broker)
    assert synced(broker) == before + 1 and not broker.journal.settled.identities and broker.due_in(broker.now) > SETTLED_MS


def test_settlements_are_written_with_the_messages_that_come():
    broker, peer = acknowledged(SlowStore())
    broker.run()
    before = synced(broker)
    peer.publish("q", BODY, given=PERSISTENT)
    idle_rounds(broker)
    assert synced(broker) == before + 1 and not broker.journal.settled.identities


def test_settlements_that_somebody_waits_for_do_not_wait():
    broker, peer = acknowledged(SlowStore())
    broker.run()
    before = synced(broker)
    peer.give(encoded("queue_declare", 1, 0, "other", False, True, False, False, False, {}))  # its answer is for what is durable
    idle_rounds(broker)
    assert synced(broker) == before + 1 and not broker.journal.settled.identities


def idle_rounds(broker):
    for _ in range(5):
        broker.run()
