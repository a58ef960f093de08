"""The log: records, damage, segments, what is written and synced when. The store is octets in memory."""

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer, content, encoded, idle

from leveret.core.log import segments
from leveret.core.log.read_back import Damaged, ReadBack
from leveret.core.memory import hot, layout
from leveret.core.stream.stream import EPOCH


def test_records_are_read_back_and_damage_is_found_wherever_it_is():
    """Every cut and every flipped octet: what is in front is read, what is behind is not believed."""
    store = MemoryStore()
    writer = segments.Log(store, 1000, 100000)
    writer.begin(1, 5)
    for number in range(5):
        writer.append(segments.MESSAGE, (b"record", str(number).encode() * number))
        writer.commit()
    whole = store.segments[1]

    def read():
        reader = segments.Reader(store, 1)
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
        assert found == everything[: len(found)] and len(found) < 5, cut
        assert damage is not None or cut in (0, 39, 58, 78, 99, 121), cut
        broken = bytearray(whole)
        broken[cut] ^= 0x10
        store.segments[1] = bytes(broken)
        found, damage = read()
        assert damage is not None and found == everything[: len(found)], cut


def test_a_file_that_begins_with_another_record_is_no_segment_and_one_that_is_damaged_says_where():
    store = MemoryStore()
    writer = segments.Log(store, 1000, 100000)
    writer.begin(1, 5)
    writer.append(segments.MESSAGE, (b"record",))
    writer.commit()
    whole = bytes(store.segments[1])
    record = segments.Reader(store, 1)
    assert record.head()
    size = record.offset
    store.segments[1] = whole[size:]
    reader = segments.Reader(store, 1)
    assert not reader.head() and reader.sequence is None
    assert (reader.damage.number, reader.damage.offset, reader.damage.octets) == (1, 0, len(whole) - size)
    assert reader.damage.reason == "no log segment"
    store.segments[1] = whole[: size - 1] + bytes((whole[size - 1] ^ 1,)) + whole[size:]
    reader = segments.Reader(store, 1)
    assert not reader.head() and reader.damage.reason != "no log segment", "what its reader saw goes before"


def test_a_broker_that_ends_has_everything_synced_in_every_mode():
    """Mode none syncs nothing while it runs; at the end it does, and says so when that fails."""
    for mode in ("none", "batch", "each"):
        store = MemoryStore()
        broker, _ = durable_broker(store, mode)
        peer = Peer(broker)
        peer.declare("q", durable=True)
        peer.publish("q", b"a", given=PERSISTENT)
        if mode == "none":
            assert "q" not in durable_broker(store.cut())[0].queues
        assert broker.journal.finish() is True, mode
        again, _ = durable_broker(store.cut())
        assert bodies(Peer(again), "q") == [b"a"], mode
        if mode != "each":  # there it is synced when it is published
            peer.publish("q", b"b", given=PERSISTENT)
            store.sync_fails = True
            assert broker.journal.finish() is False, mode


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


def test_a_newer_log_is_left_alone():
    """OtherLog, and not an octet changed."""
    store = MemoryStore()
    durable_broker(store)
    store.append(9, segments.record(0, segments.HEAD, (segments.MAGIC, b"\x00\x09something new"), 19))
    kept = dict(store.segments)
    try:
        durable_broker(store)
    except segments.OtherLog as error:
        assert "version 9" in str(error)
    else:
        raise AssertionError("a newer log was taken")
    assert store.segments == kept


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
    assert "new" not in broker.queues  # what a log that cannot be written would have to hold does not pile up
    assert "new" not in durable_broker(store.cut())[0].queues
    store.full = False
    broker.tick(2000, EPOCH)
    for _ in range(3):
        broker.run()
    assert peer.frames()[0][0] == "tx_commit_ok" and other.frames()[0][0] == "queue_declare_ok"
    again, _ = durable_broker(store.cut())
    assert sorted(again.queues) == ["new", "q"] and bodies(Peer(again), "q") == [b"a"]


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
    peer.give(
        encoded("queue_delete", 1, 0, "passing", False, False, True)
        + encoded("queue_declare", 1, 0, "next", False, True, False, False, True, {})
        + content(1, "", "next", b"y", PERSISTENT)
    )
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


def test_a_segment_that_is_shorter_than_what_is_asked_of_it_is_damaged():
    """A store gives less than it was asked for, as files do: the rest is asked for, until there is none."""
    store = MemoryStore()
    store.segments[1] = b"0123456789"
    read, asked = store.read, []

    def in_pieces(number, offset, size):
        asked.append((offset, size))
        return read(number, offset, min(size, 3))

    store.read = in_pieces
    reader = ReadBack(store, 4)
    at = reader.at(1, 2, 7)
    assert bytes(reader.buffer[at : at + 7]) == b"2345678" and asked == [(2, 7), (5, 4), (8, 1)]
    try:
        reader.at(1, 8, 5)
        told = ""
    except Damaged as error:
        told = str(error)
    assert told == "segment 1 ends at octet 10"


def test_marks_of_a_chunk_are_forgotten_and_no_others():
    """A chunk that is given back before it is written, in what waits and in what is in flight; None: all chunks of the queue."""
    log = segments.Log(MemoryStore(), 1000, 100000)
    one, other = object(), object()

    class Flight:
        marks = [(one, 1), (other, 1), (one, 2)]

    log.flight = Flight
    log.gathered.marks = [(other, 2), (one, 1), (one, 3)]
    log.forget_marks(one, (1,))
    assert log.gathered.marks == [(other, 2), (one, 3)] and Flight.marks == [(other, 1), (one, 2)]
    log.forget_marks(one, [3, 2])
    assert log.gathered.marks == [(other, 2)] and Flight.marks == [(other, 1)]


def test_small_persistent_messages_in_large_blocks_are_all_taken_by_the_engine():
    """The log's room is counted in the octets of their records, not of their blocks: 100 of these have 12 KiB, their blocks 50."""
    places = {"message_count_max": 256, "entry_count_max": 256, "receive_buffer_size": 32768}
    broker, _ = durable_broker(MemoryStore(), "batch", 65536, 1 << 24, block_size=512, arena_size=1 << 18, **places)
    peer = Peer(broker)
    peer.ask("queue_declare", "queue_declare_ok", 0, "q", False, True, False, False, False, {})
    one = content(1, "", "q", b"x" * 60, PERSISTENT)
    peer.give(one)  # this one finds out where the route leads
    alone = []
    publish = broker.publish
    broker.publish = lambda *given: alone.append(1) or publish(*given)
    peer.give(one * 100)
    assert broker.queues["q"].message_count() == 101
    assert broker.journal.log.gathered.size < broker.journal.log.gathered_max < 100 * 512
    assert alone == []


def test_a_dead_letter_does_not_take_the_entry_that_the_next_queue_of_a_publish_needs():
    """Two entries are free for a publish to two queues; the first sends its old message on meanwhile, whose entry the log is yet to see."""
    broker, _ = durable_broker(MemoryStore())
    entries, state = broker.tables.entries, broker.tables.state
    peer = Peer(broker)
    peer.declare("dead", durable=True)
    peer.declare("first", durable=True, arguments={"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.declare("second", durable=True)
    for queue in ("first", "second"):
        peer.ask("queue_bind", "queue_bind_ok", 0, queue, "amq.fanout", "", False, {})
    peer.publish("first", b"old", given=PERSISTENT)
    broker.run()
    others = [hot.allocate(entries, state, layout.POOL_ENTRIES, layout.ENTRY_WIDTH) for _ in range(state[layout.POOL_ENTRIES + 2] - 2)]
    peer.publish("", b"new", exchange="amq.fanout", given=PERSISTENT)
    assert broker.queues["second"].message_count() == 1
    for entry in others:
        hot.give(entries, state, layout.POOL_ENTRIES, entry)
    for now in range(100, 3000, 100):
        broker.tick(now, 0)
        broker.run()
    assert [broker.queues[name].message_count() for name in ("first", "second", "dead")] == [1, 1, 1]
    assert broker.counters["internal_errors"] == 0


def test_a_commit_is_durable_unless_it_is_said_not_to_be():
    """And one without a sync is made good by the next that has one."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    log = broker.journal.log
    number = log.current().number
    log.append(segments.KEPT, (b"first",))
    assert log.commit() and store.durable[number] == store.segments[number] and b"first" in store.durable[number]
    log.append(segments.KEPT, (b"second",))
    assert log.commit(False) and b"second" in store.segments[number] and b"second" not in store.durable[number]
    log.append(segments.KEPT, (b"third",))
    assert log.commit(True) and b"second" in store.durable[number] and b"third" in store.durable[number]
    written = len(store.segments[number])
    assert log.commit() and len(store.segments[number]) == written, "nothing was appended"
