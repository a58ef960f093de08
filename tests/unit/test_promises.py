"""A reply that says that something is durable waits for the very record of the log that says so, and no other reply does (core/SPEC.md,
"Durability"): beside another session that waits for the same record or for another, with a store whose sync takes long."""

from memory_store import PERSISTENT, SlowStore, bodies, durable_broker
from peer import Patient, content, encoded
from test_commit_turns import ROOM, TURN, commit, finish, in_short_turns, step

CANCEL = {"consumer_cancel_notify": True}


def told(peer):
    """The names of what has come."""
    return [name for name, _, _ in peer.frames()]


@in_short_turns
def test_a_long_commit_waits_for_its_sync_also_when_another_session_waits_for_the_same_record():
    """Seeds 300065 and 310325: what a commit logs in its earlier turns is what another promises; its last turn logs nothing more."""
    store = SlowStore()
    broker, _ = durable_broker(store, segment_size=1 << 20, size_max=1 << 24, **ROOM)
    long, short = Patient(broker), Patient(broker)
    long.declare("q", durable=True)
    for peer in (long, short):
        peer.ask("tx_select", "tx_select_ok")
    long.give(b"".join([content(1, "", "q", b"%d" % each, PERSISTENT if each < TURN else None) for each in range(4 * TURN)]))
    finish(broker)
    commit(long)
    while broker.commit is None or not broker.journal.log.gathered.count:
        step(broker)
    store.stalls = True
    commit(short)
    while broker.commit is not None:
        step(broker)
    for _ in range(3):
        broker.run()
    assert told(long) == told(short) == [] and durable_broker(store.cut(), **ROOM)[0].queues["q"].message_count() == 0
    store.stalls = False
    for _ in range(3):
        broker.run()
    assert told(long) == told(short) == ["tx_commit_ok"]
    assert durable_broker(store.cut(), **ROOM)[0].queues["q"].message_count() == TURN


def test_a_binding_that_is_there_is_told_when_it_is_durable_whatever_its_queue_is_called_by():
    """queue.bind without a name is for the last queue that the channel has declared (0-9-1 section 1.7.2.3)."""
    store = SlowStore()
    broker, _ = durable_broker(store)
    one, other = Patient(broker), Patient(broker)
    for peer in (one, other):
        peer.declare("q", durable=True)
    store.stalls = True
    for peer, name in ((one, "q"), (other, "")):
        peer.give(encoded("queue_bind", 1, 0, name, "amq.direct", "k", False, {}))
    assert told(one) == told(other) == []
    store.stalls = False
    broker.run()
    assert told(one) == told(other) == ["queue_bind_ok"]


def test_what_was_made_while_the_log_was_writing_waits_for_the_write_behind_it():
    """The sync that ends covers what had been logged when it began."""
    store = SlowStore()
    broker, _ = durable_broker(store)
    one, two, other = Patient(broker), Patient(broker), Patient(broker)
    store.stalls = True
    for peer, name in ((one, "first"), (two, "second")):
        peer.give(encoded("queue_declare", 1, 0, name, False, True, False, False, False, {}))
    store.stalls = False
    assert broker.journal.log.poll()
    store.stalls = True
    broker.journal.ended()
    other.give(encoded("queue_declare", 1, 0, "second", False, True, False, False, False, {}))
    assert told(one) == ["queue_declare_ok"] and told(two) == told(other) == []
    store.stalls = False
    for _ in range(3):
        broker.run()
    assert told(two) == told(other) == ["queue_declare_ok"]


def test_what_has_gone_is_told_when_that_is_durable():
    """not-found, for the exchange that another has deleted: it is not there after a power cut either."""
    store = SlowStore()
    broker, _ = durable_broker(store)
    one, other = Patient(broker), Patient(broker)
    one.ask("exchange_declare", "exchange_declare_ok", 0, "ex", "direct", False, True, False, False, False, {})
    other.declare("q", durable=True)
    store.stalls = True
    one.give(encoded("exchange_delete", 1, 0, "ex", False, False))
    other.give(encoded("queue_bind", 1, 0, "q", "ex", "k", False, {}))
    assert told(one) == told(other) == []
    store.stalls = False
    broker.run()
    assert told(one) == ["exchange_delete_ok"] and told(other) == ["channel_close"]


def test_what_others_wait_for_delays_no_other_reply():
    """While a declaration waits for its sync: what is told of things in memory, gets, deliveries, and the end of a transient queue."""
    store = SlowStore()
    broker, _ = durable_broker(store)
    slow, other, reader = Patient(broker), Patient(broker), Patient(broker, capabilities=CANCEL)
    other.declare("t")
    other.declare("u")
    other.declare("kept", durable=True)
    reader.consume("t")
    other.publish("kept", b"a", given=PERSISTENT)
    broker.run()
    store.stalls = True
    slow.give(encoded("queue_declare", 1, 0, "new", False, True, False, False, False, {}))
    assert told(slow) == []
    assert bodies(other, "kept") == [b"a"]
    other.publish("t", b"b")
    assert [body for _, _, _, body in reader.contents()] == [b"b"]
    for name, arguments, reply in (
        ("basic_qos", (0, 5, False), "basic_qos_ok"),
        ("queue_declare", (0, "v", False, False, False, False, False, {}), "queue_declare_ok"),
        ("queue_declare", (0, "kept", True, False, False, False, False, {}), "queue_declare_ok"),
        ("queue_bind", (0, "u", "amq.direct", "k", False, {}), "queue_bind_ok"),
        ("queue_purge", (0, "u", False), "queue_purge_ok"),
        ("queue_delete", (0, "t", False, False, False), "queue_delete_ok"),
    ):
        other.ask(name, reply, *arguments)
    assert told(reader) == ["basic_cancel"]
    reader.ask("basic_qos", "basic_qos_ok", 0, 5, False)
    assert told(slow) == []
    store.stalls = False
    broker.run()
    assert told(slow) == ["queue_declare_ok"]
