"""The log: records, damage, segments; and a broker that comes back from it. The store is octets in memory."""

from leveret.core import durability, layout, log, recovery
from leveret.core.amqp_0_9 import properties
from leveret.core.policies import Policy
from leveret.core.stream import EPOCH
from peer import Peer, assemble, content, encoded, idle, new_broker


class MemoryStore:
    """Segments in memory; `durable` is what a power cut leaves."""

    def __init__(self):
        self.segments = {}
        self.durable = {}
        self.aside = []
        self.full = False

    def numbers(self):
        return sorted(self.segments)

    def size(self, number):
        return len(self.segments[number])

    def read(self, number, offset, size):
        return bytes(self.segments[number][offset:offset + size])

    def append(self, number, octets):
        if self.full:
            raise OSError(28, "no space")
        self.segments[number] = self.segments.get(number, b"") + bytes(octets)

    def sync(self, number):
        self.durable[number] = self.segments[number]

    def remove(self, number):
        del self.segments[number]
        del self.durable[number]

    def keep_aside(self, number, offset):
        self.aside.append((number, self.segments[number][offset:]))
        self.segments[number] = self.segments[number][:offset]

    def cut(self):
        """The store after a power cut."""
        after = MemoryStore()
        after.segments = dict(self.durable)
        after.durable = dict(self.durable)
        return after


def durable_broker(store, mode="each", segment_size=4096, size_max=1 << 20, batch_ms=100, **overrides):
    """A broker on a store: (broker, report)."""
    broker = new_broker(**overrides)
    broker.read_messages_with(properties)
    report = durability.make_durable(broker, store, mode, batch_ms, 65536, segment_size, size_max)
    return broker, report


PERSISTENT = {"delivery_mode": 2}


def bodies(peer, queue):
    """What basic.get takes out of a queue."""
    found = []
    while True:
        peer.give(encoded("basic_get", 1, 0, queue, True))
        frames = peer.frames()
        if frames[0][0] == "basic_get_empty":
            return found
        found.append(assemble(frames)[0][3])


def test_records_are_read_back_and_damage_is_found_wherever_it_is():
    """Every cut and every flipped octet: what is in front is read, what is behind is not believed."""
    store = MemoryStore()
    writer = log.Log(store, 1000, 100000)
    writer.begin(1, 5)
    for number in range(5):
        writer.append(log.MESSAGE, (b"record", str(number).encode() * number))
    writer.commit()
    whole = store.segments[1]

    def read():
        reader = log.Reader(store, 1)
        found = []
        if reader.head():
            record = reader.next()
            while record is not None:
                found.append(record[1])
                record = reader.next()
        return found, reader.damage

    everything = [b"record" + str(number).encode() * number for number in range(5)]
    assert read() == (everything, None)
    for cut in range(len(whole)):
        store.segments[1] = whole[:cut]
        found, damage = read()
        assert found == everything[:len(found)] and len(found) < 5, cut
        assert damage is not None or cut in (0, 23, 42, 62, 83, 105), cut
        broken = bytearray(whole)
        broken[cut] ^= 0x10
        store.segments[1] = bytes(broken)
        found, damage = read()
        assert damage is not None and found == everything[:len(found)], cut


def test_persistent_messages_in_durable_queues_come_back_and_nothing_else():
    """Durable queue and persistent message and not settled: there, in order, redelivered; transient ones cost no write."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("kept", durable=True)
    peer.declare("gone")
    before = broker.journal.log.appended
    peer.publish("kept", b"transient")
    peer.publish("gone", b"x", given=PERSISTENT)
    assert broker.journal.log.appended == before
    for number in range(5):
        peer.publish("kept", str(number).encode(), given=PERSISTENT)
    tags = [each[1][1] for each in peer.consume("kept")]
    peer.give(encoded("basic_ack", 1, tags[2], False) + encoded("basic_ack", 1, tags[4], False))
    again, report = durable_broker(store.cut())
    assert sorted(again.queues) == ["kept"] and "recovered 3 messages in 1 queues" in report, report
    found = Peer(again).consume("kept")
    assert [(each[1][2], each[3], each[2]) for each in found] == [(True, body, PERSISTENT) for body in (b"0", b"2", b"4")]


def test_a_confirm_leaves_after_the_sync_that_covers_its_message():
    """Mode batch: not before batch_ms; what is not confirmed may be lost, what is confirmed is there."""
    store = MemoryStore()
    broker, _ = durable_broker(store, "batch")
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.ask("confirm_select", "confirm_select_ok", False)
    peer.publish("q", b"a", given=PERSISTENT)
    assert peer.frames() == [] and durable_broker(store.cut())[0].queues["q"].message_count() == 0
    broker.tick(99, EPOCH)
    broker.run()
    assert peer.frames() == []
    broker.tick(101, EPOCH)
    broker.run()
    assert peer.expect("basic_ack") == [1, False]
    assert durable_broker(store.cut())[0].queues["q"].message_count() == 1
    peer.publish("q", b"transient")
    assert peer.expect("basic_ack") == [2, False]


def test_definitions_come_back():
    """Exchanges, queues, bindings (also between exchanges), policies; removed ones do not."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    for name in ("ex", "ex2", "dropped"):
        peer.ask("exchange_declare", "exchange_declare_ok", 0, name, "topic", False, True, False, False, False, {})
    peer.declare("q", durable=True, arguments={"x-max-length": 3})
    peer.declare("dropped", durable=True)
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "ex2", "a.#", False, {"n": 1})
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "ex2", "removed", False, {})
    peer.ask("queue_bind", "queue_bind_ok", 0, "dropped", "ex", "#", False, {})
    peer.ask("exchange_bind", "exchange_bind_ok", 0, "ex2", "ex", "#", False, {})
    peer.ask("queue_unbind", "queue_unbind_ok", 0, "q", "ex2", "removed", {})
    peer.ask("queue_delete", "queue_delete_ok", 0, "dropped", False, False, False)
    peer.ask("exchange_delete", "exchange_delete_ok", 0, "dropped", False, False)
    broker.policies.set(broker, Policy("p", "q", {"message-ttl": 60000}))
    again, _ = durable_broker(store.cut())
    assert sorted(again.queues) == ["q"] and "dropped" not in again.exchanges and again.binding_count == 2
    assert again.queues["q"].effective == {"x-max-length": 3, "x-message-ttl": 60000}
    peer = Peer(again)
    peer.publish("a.b", b"x", "ex")
    assert bodies(peer, "q") == [b"x"]


def test_streams_come_back_with_their_offsets_and_show_only_what_is_durable():
    """The id, the first and the next offset, kept offsets; a reader never sees what a cut could take."""
    store = MemoryStore()
    broker, _ = durable_broker(store, "batch")
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream", "x-max-length-bytes": 800})
    for number in range(40):
        peer.publish("s", str(number).encode() + bytes(30))
    peer.ask("basic_qos", "basic_qos_ok", 0, 100, False)
    assert peer.consume("s", arguments={"x-stream-offset": "first"}) == []
    broker.tick(200, EPOCH)
    broker.run()
    assert len(peer.contents()) == broker.queues["s"].message_count()
    peer.publish("s", b"not durable")
    again, _ = durable_broker(store.cut())
    one, two = broker.queues["s"], again.queues["s"]
    assert (two.id, two.first_offset, two.next_offset(), two.size) == (one.id, one.first_offset, 40, one.size - len(b"not durable") - 5)
    peer = Peer(again)
    peer.publish("s", b"40")
    again.tick(200, EPOCH)
    again.run()
    third, _ = durable_broker(again.journal.log.store.cut())
    assert third.queues["s"].next_offset() == 41


def test_segments_are_freed_and_stragglers_do_not_pin_them():
    """Many messages through a queue while one old one stays: the log stays small, and the old one is still there at the end."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("old", durable=True)
    peer.declare("q", durable=True)
    peer.publish("old", b"straggler", given=PERSISTENT)
    for _ in range(60):
        for _ in range(5):
            peer.publish("q", bytes(200), given=PERSISTENT)
        peer.ask("queue_purge", "queue_purge_ok", 0, "q", False)
    assert sum([len(each) for each in store.segments.values()]) < 5 * 4096, store.numbers()
    assert broker.journal.log.counters["log_copied_forward"] > 0
    again, report = durable_broker(store.cut())
    assert bodies(Peer(again), "old") == [b"straggler"] and again.queues["q"].message_count() == 0, report


def test_a_full_disk_slows_publishers_and_service_comes_back():
    """OSError of the store: no confirm, no crash; when there is space again the same messages are written."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.ask("confirm_select", "confirm_select_ok", False)
    store.full = True
    peer.publish("q", b"a", given=PERSISTENT)
    peer.publish("q", b"b", given=PERSISTENT)
    assert peer.frames() == [] and not peer.connection.reading
    store.full = False
    broker.tick(2000, EPOCH)
    broker.run()
    broker.run()
    assert peer.frames()[-1][2][0] == 2
    assert bodies(Peer(durable_broker(store.cut())[0]), "q") == [b"a", b"b"]


def test_the_log_has_a_size_and_refuses_beyond_it():
    """size_max: publishers wait; a consumer makes room again."""
    store = MemoryStore()
    broker, _ = durable_broker(store, size_max=20000, arena_size=65536)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    count = 0
    while peer.connection.reading and count < 200:
        peer.publish("q", bytes(300), given=PERSISTENT)
        count += 1
    assert 40 < count < 70 and sum([len(each) for each in store.segments.values()]) <= 20000
    reader = Peer(broker)
    tag = reader.consume("q")[-1][1][1]
    reader.give(encoded("basic_ack", 1, tag, True))
    for _ in range(6):
        broker.run()
    assert peer.connection.reading


def test_a_transaction_comes_back_whole_or_not_at_all():
    """Every cut inside the group of a commit."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    for name in ("a", "b"):
        peer.declare(name, durable=True)
    peer.publish("a", b"old", given=PERSISTENT)
    peer.ask("tx_select", "tx_select_ok")
    peer.consume("a")
    before = dict(store.segments)
    for name in ("a", "b"):
        peer.publish(name, b"new", given=PERSISTENT)
    peer.give(encoded("basic_ack", 1, 1, False) + encoded("tx_commit", 1))
    assert peer.frames()[0][0] == "tx_commit_ok"
    number = max(store.segments)
    assert number == max(before)
    for size in range(len(before[number]), len(store.segments[number]) + 1):
        cut = MemoryStore()
        cut.segments = dict(store.segments)
        cut.segments[number] = store.segments[number][:size]
        again, _ = durable_broker(cut)
        counts = bodies(Peer(again), "a"), bodies(Peer(again), "b")
        whole = size == len(store.segments[number])
        assert counts == (([b"new"], [b"new"]) if whole else ([b"old"], [])), size


def test_a_newer_log_is_left_alone():
    """NewerLog, and not an octet changed."""
    store = MemoryStore()
    durable_broker(store)
    writer = log.Log(store, 1000, 100000)
    writer.segments.append(log.Segment(9))
    writer.append(log.HEAD, (log.MAGIC, b"\x00\x09\x00\x00\x00\x09"))
    writer.commit()
    kept = dict(store.segments)
    try:
        durable_broker(store)
    except log.NewerLog as error:
        assert "version 9" in str(error)
    else:
        raise AssertionError("a newer log was taken")
    assert store.segments == kept


def test_a_log_that_does_not_fit_the_limits_says_which():
    """recovery.TooSmall."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    for _ in range(40):
        peer.publish("q", b"x", given=PERSISTENT)
    try:
        durable_broker(store, message_count_max=16, entry_count_max=16)
    except recovery.TooSmall as error:
        assert "message_count_max (16)" in str(error)
    else:
        raise AssertionError("it fitted")


def test_deliveries_and_dead_letters_of_logged_messages_leave_nothing_behind():
    """Rejects, expiry, dead letters, purge, delete: after a restart only what is left is there, and all pools agree."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    before = idle(broker)
    peer = Peer(broker)
    peer.declare("dead", durable=True)
    peer.declare("q", durable=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-max-length": 3})
    for number in range(5):
        peer.publish("q", str(number).encode(), given=PERSISTENT)
    found = peer.consume("q")
    peer.give(encoded("basic_reject", 1, found[0][1][1], False))
    again, _ = durable_broker(store.cut())
    other = Peer(again)
    assert bodies(other, "dead") == [b"0", b"1", b"2"] and bodies(other, "q") == [b"3", b"4"]
    for name in ("q", "dead"):
        other.ask("queue_delete", "queue_delete_ok", 0, name, False, False, False)
    other.connection.received(0)
    assert idle(again) == before
    assert durable_broker(again.journal.log.store.cut())[0].queues == {}


def test_idle_writes_nothing():
    """No message, no octet."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    octets = dict(store.segments)
    for now in range(0, 5000, 50):
        broker.tick(now, EPOCH)
        broker.run()
    assert store.segments == octets and broker.tables.state[layout.STATE_SETTLED_LIST] == layout.NONE


def test_priorities_and_lifetimes_are_restored():
    """Rules work on what came out of the log."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("p", durable=True, arguments={"x-max-priority": 3})
    peer.declare("t", durable=True, arguments={"x-message-ttl": 1000})
    for priority in (1, 3, 2, 3):
        peer.give(content(1, "", "p", str(priority).encode(), {"delivery_mode": 2, "priority": priority}))
    peer.publish("t", b"x", given=PERSISTENT)
    again, _ = durable_broker(store.cut())
    assert bodies(Peer(again), "p") == [b"3", b"3", b"2", b"1"]
    again.tick(1100, EPOCH)
    assert again.queues["t"].message_count() == 0
