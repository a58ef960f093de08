"""The log: records, damage, segments; and a broker that comes back from it. The store is octets in memory."""

from leveret.core import durability, layout, log
from leveret.core.amqp_0_9 import properties
from leveret.core.policies import Policy
from leveret.core.recovery_fill import TooSmall
from leveret.core.stream import EPOCH
from peer import Peer, content, encoded, idle, new_broker, taken


class MemoryStore:
    """Segments in memory; `durable` is what a power cut leaves."""

    def __init__(self):
        self.segments = {}
        self.durable = {}
        self.aside = []
        self.full = False
        self.sync_fails = False

    def numbers(self):
        return sorted(self.segments)

    def size(self, number):
        return len(self.segments[number])

    def read(self, number, offset, size):
        return bytes(self.segments[number][offset:offset + size])

    def append(self, number, octets):
        if self.full:
            self.segments[number] = self.segments.get(number, b"") + bytes(octets[:len(octets) // 2])
            raise OSError(28, "no space")
        self.segments[number] = self.segments.get(number, b"") + bytes(octets)

    def sync(self, number):
        if self.sync_fails:
            self.segments[number] = self.durable.get(number, b"") + bytes(len(self.segments[number]) - len(self.durable.get(number, b"")))
            raise OSError(5, "input/output error")
        self.durable[number] = self.segments[number]

    def remove(self, number):
        del self.segments[number]
        self.durable.pop(number, None)

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
    return [body for _, body in taken(peer, queue)]


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
        assert damage is not None or cut in (0, 27, 46, 66, 87, 109), cut
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
    broker.run()
    again, _ = durable_broker(store.cut())
    assert sorted(again.queues) == ["q"] and "dropped" not in again.exchanges and again.binding_count == 2
    assert again.queues["q"].effective == {"x-max-length": 3, "x-message-ttl": 60000}
    peer = Peer(again)
    peer.publish("a.b", b"x", "ex")
    assert bodies(peer, "q") == [b"x"]


def test_streams_come_back_with_their_offsets_and_show_only_what_is_durable():
    """The id, the first and the next offset, kept offsets; a reader never sees what a cut could take."""
    store = MemoryStore()
    broker, _ = durable_broker(store, "batch", segment_size=16384)
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
    store.append(9, log.record(0, log.HEAD, (log.MAGIC, b"\x00\x09something new"), 19))
    kept = dict(store.segments)
    try:
        durable_broker(store)
    except log.NewerLog as error:
        assert "version 9" in str(error)
    else:
        raise AssertionError("a newer log was taken")
    assert store.segments == kept


def test_a_log_that_does_not_fit_the_limits_says_which():
    """recovery_fill.TooSmall."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments={"x-max-priority": 2})
    for _ in range(40):
        peer.publish("q", b"x", given=PERSISTENT)
    try:
        durable_broker(store, message_count_max=16, entry_count_max=16)
    except TooSmall as error:
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


def test_a_message_with_a_lifetime_of_its_own_has_it_after_recovery_too():
    """0-9-1 section 1.8.1, expiration: also in a queue without rules, whose lifetimes nobody looked at before."""
    store = MemoryStore()
    peer = Peer(durable_broker(store)[0])
    peer.declare("q", durable=True)
    peer.give(content(1, "", "q", b"stays", {"delivery_mode": 2}))
    peer.give(content(1, "", "q", b"goes", {"delivery_mode": 2, "expiration": "1000"}))
    again, _ = durable_broker(store.cut())
    again.tick(900, EPOCH)
    assert again.queues["q"].message_count() == 2
    again.tick(1100, EPOCH)
    assert bodies(Peer(again), "q") == [b"stays"]


def test_a_transient_queue_beside_a_durable_one_does_not_free_its_segment():
    """A fanout to both: what the transient queue settles is not counted against the log."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=512)
    peer = Peer(broker)
    peer.declare("kept", durable=True)
    peer.declare("passing")
    peer.declare("passing too")
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for queue in ("kept", "passing", "passing too", "s"):
        peer.ask("queue_bind", "queue_bind_ok", 0, queue, "amq.fanout", "", False, {})
    peer.publish("", b"persistent", "amq.fanout", PERSISTENT)
    peer.publish("", b"transient", "amq.fanout")
    assert bodies(peer, "passing") == bodies(peer, "passing too") == [b"persistent", b"transient"]
    broker.run()
    assert sum([segment.live for segment in broker.journal.log.segments]) == 4
    peer.ask("queue_unbind", "queue_unbind_ok", 0, "kept", "amq.fanout", "", {})
    for _ in range(60):
        peer.publish("kept", bytes(250), given=PERSISTENT)
    found = peer.consume("kept")
    for each in found[2:]:
        peer.give(encoded("basic_ack", 1, each[1][1], False))
    again, _ = durable_broker(store.cut())
    assert again.queues["kept"].message_count() == 2 and again.queues["s"].message_count() == 2
    assert bodies(Peer(again), "kept") == [b"persistent", b"transient"]


def test_a_failed_sync_is_not_trusted_later():
    """What it should have made durable is written again, elsewhere, before the confirm."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.ask("confirm_select", "confirm_select_ok", False)
    store.sync_fails = True
    peer.publish("q", b"a", given=PERSISTENT)
    assert peer.frames() == []
    store.sync_fails = False
    broker.tick(2000, EPOCH)
    broker.run()
    assert peer.expect("basic_ack") == [1, False]
    again, report = durable_broker(store.cut())
    assert bodies(Peer(again), "q") == [b"a"] and "aside" not in report, report


def test_replies_that_promise_wait_for_the_log():
    """queue.declare-ok and tx.commit-ok do not come while the disk is full; queues that are there can be consumed."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.ask("tx_select", "tx_select_ok")
    peer.publish("q", b"a", given=PERSISTENT)
    store.full = True
    peer.give(encoded("tx_commit", 1))
    other = Peer(broker)
    other.declare("q", durable=True)
    other.give(encoded("queue_declare", 1, 0, "new", False, True, False, False, False, {}))
    assert peer.frames() == [] and other.frames() == []
    assert "new" not in durable_broker(store.cut())[0].queues
    store.full = False
    broker.tick(2000, EPOCH)
    for _ in range(3):
        broker.run()
    assert peer.frames()[0][0] == "tx_commit_ok" and other.frames()[0][0] == "queue_declare_ok"
    again, _ = durable_broker(store.cut())
    assert sorted(again.queues) == ["new", "q"] and bodies(Peer(again), "q") == [b"a"]


def test_a_dead_letter_that_overtakes_its_cause_has_a_position_of_its_own():
    """A message goes to two queues; in the second it pushes out an older one, whose dead letter comes to the first, behind it."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("a", durable=True)
    peer.declare("b", durable=True, arguments={"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "a"})
    for queue in ("a", "b"):
        peer.ask("queue_bind", "queue_bind_ok", 0, queue, "amq.fanout", "", False, {})
    for number in range(4):
        peer.publish("", str(number).encode(), "amq.fanout", PERSISTENT)
    again, _ = durable_broker(store.cut())
    before, after = bodies(peer, "a"), bodies(Peer(again), "a")
    assert len(before) == 7 and after == before, (before, after)
    assert bodies(Peer(again), "b") == [b"3"]


def test_a_message_that_its_queue_drops_at_once_does_not_come_back():
    """A maximum below the message's size; another queue keeps it."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("small", durable=True, arguments={"x-max-length-bytes": 2})
    peer.declare("large", durable=True)
    for queue in ("small", "large"):
        peer.ask("queue_bind", "queue_bind_ok", 0, queue, "amq.fanout", "", False, {})
    peer.publish("", b"too long", "amq.fanout", PERSISTENT)
    again, _ = durable_broker(store.cut())
    assert again.queues["small"].message_count() == 0 and bodies(Peer(again), "large") == [b"too long"]


def test_a_transient_queue_that_is_deleted_leaves_its_record_clean():
    """What was settled of it is not taken for the queue that gets its record next."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("kept", durable=True)
    peer.declare("passing")
    for queue in ("kept", "passing"):
        peer.ask("queue_bind", "queue_bind_ok", 0, queue, "amq.fanout", "", False, {})
    for _ in range(3):
        peer.publish("", b"x", "amq.fanout", PERSISTENT)
    peer.give(encoded("queue_delete", 1, 0, "passing", False, False, True)
              + encoded("queue_declare", 1, 0, "next", False, True, False, False, True, {})
              + content(1, "", "next", b"y", PERSISTENT))
    again, _ = durable_broker(store.cut())
    assert bodies(Peer(again), "next") == [b"y"] and again.queues["kept"].message_count() == 3


def test_many_definitions_in_small_segments_come_to_rest():
    """All definitions together are larger than a segment; freeing segments does not go on for ever, and the log stays small."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=512, size_max=65536)
    peer = Peer(broker)
    for number in range(8):
        peer.declare("durable-%d" % number, durable=True, arguments={"x-max-length": 100, "x-message-ttl": 1000000})
    for _ in range(150):
        peer.publish("durable-0", bytes(60), given=PERSISTENT)
        bodies(peer, "durable-0")
    assert sum([len(each) for each in store.segments.values()]) < 16384
    assert sorted(durable_broker(store.cut())[0].queues) == ["durable-%d" % number for number in range(8)]


def test_a_segment_whose_removal_was_taken_back_is_not_believed():
    """A cut brings back an old segment, and not the one with the acknowledgements of its messages."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=512)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.publish("q", b"old", given=PERSISTENT)
    first = dict(store.segments)
    for _ in range(40):
        bodies(peer, "q")
        peer.publish("q", bytes(80), given=PERSISTENT)
    assert 1 not in store.segments
    after = store.cut()
    after.segments[1] = first[1]
    again, _ = durable_broker(after)
    assert bodies(Peer(again), "q") == [bytes(80)] and 1 not in after.segments


def test_offsets_kept_for_consumers_come_back_and_publishers_are_known():
    """x-stream-consumer, and a publisher that publishes again what it is not sure of."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    again = {"headers": {"x-publisher-id": "p", "x-publisher-sequence": 5}}
    for given in ({}, {}, again):
        peer.publish("s", b"x", given=given)
    peer.ask("basic_qos", "basic_qos_ok", 0, 2, False)
    peer.consume("s", arguments={"x-stream-offset": "first", "x-stream-consumer": "reader"})
    peer.give(encoded("basic_ack", 1, 1, False))
    peer.take()
    peer.give(encoded("basic_cancel", 1, "c", False))
    broker, _ = durable_broker(store.cut())
    assert broker.queues["s"].kept == {"reader": 1}
    Peer(broker).publish("s", b"x", given=again)
    assert broker.queues["s"].next_offset() == 3


def test_a_bit_that_turned_costs_what_is_behind_it_and_is_named():
    """Definitions whose parts are gone do not come back later to others of their names."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=40)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "ex", "fanout", False, True, False, False, False, {})
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "ex", "", False, {})
    number = [each for each in store.segments if b'"kind": "exchange"' in store.segments[each]][0]
    whole = bytearray(store.segments[number])
    assert b'"kind": "binding"' not in whole
    whole[40] ^= 1
    store.segments[number] = bytes(whole)
    broker, report = durable_broker(store)
    assert "segment %d: a record whose CRC does not fit" % number in report and "put aside" in report and "ex" not in broker.exchanges
    broker.run()
    peer = Peer(broker)
    peer.declare("q", durable=True)
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "ex", "fanout", False, True, False, False, False, {})
    assert not durable_broker(store.cut())[0].exchanges["ex"].bindings


def test_a_message_to_more_queues_than_an_octet_counts():
    """300 durable queues get one message."""
    store = MemoryStore()
    broker, _ = durable_broker(store, queue_count_max=310, queue_share_max=310, entry_count_max=400, binding_count_max=310,
                               binding_share_max=310, arena_size=65536, segment_size=65536)
    peer = Peer(broker)
    for number in range(300):
        peer.declare("q%d" % number, durable=True)
        peer.ask("queue_bind", "queue_bind_ok", 0, "q%d" % number, "amq.fanout", "", False, {})
    peer.publish("", b"x", "amq.fanout", PERSISTENT)
    again, report = durable_broker(store.cut(), queue_count_max=310, queue_share_max=310, entry_count_max=400, binding_count_max=310,
                                   binding_share_max=310, arena_size=65536)
    assert "recovered 300 messages" in report, report


def test_delayed_messages_of_queues_with_rules_wait_on_after_recovery():
    """They are in no level and replace nothing before they come."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.ask("exchange_declare", "exchange_declare_ok", 0, "late", "x-delayed-message", False, True, False, False, False,
             {"x-delayed-type": "fanout"})
    peer.declare("p", durable=True, arguments={"x-max-priority": 3})
    peer.declare("v", durable=True, arguments={"x-last-value-key": "key"})
    for queue in ("p", "v"):
        peer.ask("queue_bind", "queue_bind_ok", 0, queue, "late", "", False, {})
    given = {"delivery_mode": 2, "priority": 2, "headers": {"key": "a", "x-delay": 10000}}
    peer.publish("", b"late", "late", given)
    again, _ = durable_broker(store.cut())
    before = again.tables.state[layout.POOL_ENTRIES + 2]
    peer = Peer(again)
    for number in range(3):
        for queue in ("p", "v"):
            peer.publish(queue, b"%d" % number, given={"headers": {"key": "a"}, "priority": 2})
    assert bodies(peer, "p") == [b"0", b"1", b"2"] and bodies(peer, "v") == [b"2"]
    assert again.tables.state[layout.POOL_ENTRIES + 2] == before
    again.tick(11000, EPOCH)
    assert bodies(peer, "p") == [b"late"] and bodies(peer, "v") == [b"late"]
