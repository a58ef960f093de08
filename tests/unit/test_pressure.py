"""Publishers that wait for long are told to the operator: once when it begins, with what is full and what to do, and once when it ends."""

import json

from memory_store import PERSISTENT, MemoryStore, durable_broker
from peer import Peer, content, encoded, new_broker

from leveret.core.broker import pressure
from leveret.core.management import overview


def world(**limits):
    broker = new_broker(**limits)
    broker.tick(1000, 1700000000)
    broker.lines = []
    broker.log = broker.lines.append
    return broker, Peer(broker), Peer(broker)


def pass_time(broker, duration_ms):
    for _ in range(duration_ms // 50):
        broker.tick(broker.now + 50, 1700000000)
        broker.run()


def fill(peer, key, body=b"x" * 500, given=None, most=1000):
    """Publish until the broker reads no more."""
    octets = content(1, "", key, body, given)
    for _ in range(most):
        if peer.give(octets) < len(octets):
            return
    raise AssertionError("it takes everything")


def test_a_full_memory_is_told_once_with_what_to_do_and_once_that_it_is_over():
    broker, publisher, consumer = world()
    publisher.declare("q", arguments={})
    fill(publisher, "q")
    assert broker.held
    pass_time(broker, pressure.BEGINS_MS)
    assert broker.lines == [], "a moment is nothing to tell"
    pass_time(broker, 60000)
    (line,) = broker.lines
    assert line.startswith("publishers wait: a queue has all that it may have: have consumers take messages, or give it a lifetime"), line
    assert line.endswith("; queue 'q' has %d messages" % broker.queues["q"].message_count())
    shown = overview.overview(broker)["publishers"]
    assert shown["waiting"] == 1 and shown["reason"] == line[len("publishers wait: ") :] and shown["since_ms"] >= 60000
    json.dumps(shown)
    consumer.consume("q", no_ack=True)
    consumer.frames()
    publisher.frames()
    pass_time(broker, pressure.ENDS_MS - 100)
    assert len(broker.lines) == 1
    pass_time(broker, 200)
    assert broker.lines[1:] == ["publishers go on: there is room again; they waited for 60 s"]
    assert overview.overview(broker)["publishers"] == {"waiting": 0, "reason": "", "since_ms": 0}
    assert broker.counters["publishers_blocked"] == 1


def test_who_waits_again_and_again_is_told_once():
    """A consumer that is a little too slow: publishers wait and go on many times a second."""
    broker, publisher, consumer = world()
    publisher.declare("q", arguments={"x-max-length": 3, "x-overflow": "block"})
    for number in range(200):
        publisher.publish("q", b"x")
        pass_time(broker, 50)
        if number % 2:
            consumer.give(encoded("basic_get", 1, 0, "q", True))
            consumer.frames()
    assert len(broker.lines) == 1 and "queue 'q' has 3 messages" in broker.lines[0], broker.lines
    assert broker.counters["publishers_blocked"] == 1


def test_what_is_full_is_named():
    """The pool that has run out, whoever fills it: many queues, each with its share."""
    broker, publisher, _ = world(message_count_max=32, entry_count_max=64, queue_count_max=32, queue_share_max=32)
    for number in range(31):
        publisher.declare("q%d" % number)
    for number in range(31):
        publisher.give(content(1, "", "q%d" % number, b"x"))
    fill(publisher, "q1", b"x")
    pass_time(broker, 2000)
    assert broker.lines and broker.lines[0].startswith("publishers wait: memory is full (message_count_max)"), broker.lines
    assert broker.lines[0].count("; queue '") == 3


def test_a_disk_that_is_full_or_broken_is_named():
    """With a log: its own limit, the disk's, and a medium that fails."""
    for free, size_max, fails, words in (
        (None, 40000, False, "the log on disk is full ("),
        (500, 1 << 20, False, "the disk is full ("),
        (None, 1 << 20, True, "the log cannot be written: "),
    ):
        store = MemoryStore()
        broker, _ = durable_broker(store, size_max=size_max)
        broker.tick(1000, 1700000000)
        broker.lines = []
        broker.log = broker.lines.append
        publisher = Peer(broker)
        publisher.give(encoded("queue_declare", 1, 0, "q", False, True, False, False, False, {}))
        pass_time(broker, 100)
        publisher.frames()
        if free is not None:
            broker.journal.log.free = lambda free=free: free
        store.sync_fails = fails
        for _ in range(200):
            publisher.give(content(1, "", "q", b"x" * 400, PERSISTENT))
            pass_time(broker, 50)
        told = [line for line in broker.lines if line.startswith("publishers wait: ")]
        assert len(told) == 1 and words in told[0], (words, broker.lines)


def test_a_name_of_any_length_gives_a_sentence_that_fits():
    broker, publisher, _ = world(name_size_max=255, send_buffer_size=2048)
    publisher.declare("q" * 255, arguments={"x-max-length": 1, "x-overflow": "block"})
    for _ in range(2):
        publisher.publish("q" * 255, b"x")
    pass_time(broker, 2000)
    assert len(broker.lines[0]) < 400
