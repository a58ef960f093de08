"""A broker comes back from its log with what it promised to keep. The store is octets in memory."""

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer, content, encoded

from leveret.core.broker.policies import Policy
from leveret.core.log import segments
from leveret.core.memory import layout
from leveret.core.recovery.first_pass import LogContents, first_pass
from leveret.core.recovery.record_check import IDENTITY_MAX
from leveret.core.recovery.second_pass import TooSmall
from leveret.core.stream.stream import EPOCH


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
    assert sorted(again.queues) == ["q"] and "dropped" not in again.exchanges and again.topology.binding_count == 2
    assert again.queues["q"].effective == {"x-max-length": 3, "x-message-ttl": 60000}
    peer = Peer(again)
    peer.publish("a.b", b"x", "ex")
    assert bodies(peer, "q") == [b"x"]


def test_a_power_cut_behind_definitions_written_anew_does_not_have_them_written_anew_again():
    """Only the segment with the last definition of something, or the last offset kept, is needed for it: so cuts one after the other, each
    before the oldest segments have gone, do not let the log grow."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.declare("q", durable=True)
    peer.declare("dropped", durable=True)
    peer.ask("queue_delete", "queue_delete_ok", 0, "dropped", False, False, False)
    broker.queues["s"].kept["reader"] = 5
    broker.journal.kept(broker.queues["s"], "reader")
    broker.journal.finish()
    old = broker.journal.log.current().number
    assert [segment.defines for segment in first_pass(store.cut()).segments] == [True]
    broker.journal.log.begin(old + 1, broker.journal.log.sequence)
    broker.journal.snapshot()
    broker.journal.finish()
    again = first_pass(store.cut())
    assert [(segment.number, segment.defines) for segment in again.segments[:2]] == [(old, False), (old + 1, True)]
    broker.journal.log.begin(old + 2, broker.journal.log.sequence)
    broker.journal.kept(broker.queues["s"], "reader")
    broker.journal.finish()
    assert [segment.defines for segment in first_pass(store.cut()).segments[:3]] == [False, True, True]
    assert durable_broker(store.cut())[0].queues["s"].kept == {"reader": 5}


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


def test_a_log_that_does_not_fit_the_limits_says_which():
    """second_pass.TooSmall."""
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
    broker, _ = durable_broker(
        store,
        queue_count_max=310,
        queue_share_max=310,
        entry_count_max=400,
        binding_count_max=310,
        binding_share_max=310,
        arena_size=65536,
        segment_size=65536,
    )
    peer = Peer(broker)
    for number in range(300):
        peer.declare("q%d" % number, durable=True)
        peer.ask("queue_bind", "queue_bind_ok", 0, "q%d" % number, "amq.fanout", "", False, {})
    peer.publish("", b"x", "amq.fanout", PERSISTENT)
    again, report = durable_broker(
        store.cut(),
        queue_count_max=310,
        queue_share_max=310,
        entry_count_max=400,
        binding_count_max=310,
        binding_share_max=310,
        arena_size=65536,
    )
    assert "recovered 300 messages" in report, report


def test_delayed_messages_of_queues_with_rules_wait_on_after_recovery():
    """They are in no level and replace nothing before they come."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare_delaying("late")
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


def test_a_record_or_a_definition_that_cannot_be_taken_over_costs_that_alone_and_stays():
    """SPEC.md, "Faults of the broker's own": told at each start, never the end of one; messages, other definitions and the log go on."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    broker.journal.log.append(segments.DEFINED, (b"no JSON at all",))
    broker.journal.define(
        {"kind": "exchange", "name": "x", "type": "of tomorrow", "auto_delete": False, "internal": False, "arguments": {}}
    )
    broker.journal.define({"kind": "binding", "source": "x", "to": "queue", "name": "q", "key": b"k", "arguments": {}})
    broker.journal.log.append(segments.DEFINED, (b'{"kind": "queue", "id": 7}',))
    peer.publish("q", b"kept", given=PERSISTENT)
    broker.run()
    for count in (1, 2, 3):
        again, report = durable_broker(store.cut())
        assert "exchange 'x' could not be made again" in report and "its definition stays in the log" in report, report
        assert report.count("a record at octet") == 2 or count > 1, report  # their segment may have gone behind the first snapshot
        assert again.queues["q"].message_count() == count
        assert sorted([each["kind"] for each in again.unrestored]) == ["binding", "exchange"]
        again.journal.snapshot()
        Peer(again).publish("q", b"kept", given=PERSISTENT)
        again.run()
        store = again.journal.log.store
    assert bodies(Peer(again), "q") == [b"kept"] * 4


def test_a_last_value_that_came_back_is_replaced_by_the_next():
    """x-last-value-key: one message for each value over a restart too; messages without the header stay beside them."""
    store = MemoryStore()
    broker, _ = durable_broker(store)
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments={"x-last-value-key": "sensor"})
    for sensor, body in (("a", b"a1"), (None, b"n1"), ("b", b"b1")):
        peer.publish("q", body, given=dict(PERSISTENT, headers={} if sensor is None else {"sensor": sensor}))
    again, _ = durable_broker(store.cut())
    peer = Peer(again)
    for sensor, body in (("a", b"a2"), (None, b"n2")):
        peer.publish("q", body, given=dict(PERSISTENT, headers={} if sensor is None else {"sensor": sensor}))
    again.fold_counters()
    assert bodies(peer, "q") == [b"n1", b"b1", b"a2", b"n2"] and again.counters["replaced"] == 1


def test_a_number_that_the_broker_never_assigns_does_not_become_the_number_of_a_queue():
    """record_check.IDENTITY_MAX: a damaged record may name a queue by a number of the upper half; new queues have higher ones than old."""
    contents = LogContents()
    for identity, highest in (
        (7, 7),
        (3, 7),
        (IDENTITY_MAX // 2, 7),
        (IDENTITY_MAX - 1, 7),
        (IDENTITY_MAX // 2 - 1, IDENTITY_MAX // 2 - 1),
    ):
        contents.note_queue_id(identity)
        assert contents.queue_ids == highest, identity
