"""Publishes to streams that the hot path takes: each has its offset, is in the index, and is read when the log has it."""

from memory_store import MemoryStore, durable_broker
from peer import Peer, assemble, content, encoded

from leveret.core.log import chunk_index
from leveret.core.memory import layout

STREAM = {"x-queue-type": "stream"}


def streams(*names, store=None, given=None):
    """A broker with a log and these streams: (broker, peer)."""
    broker, _ = durable_broker(store or MemoryStore(), chunk_count_max=128)
    peer = Peer(broker)
    for name in names:
        peer.declare(name, durable=True, arguments=dict(STREAM, **(given or {})))
    return broker, peer


def give(peer, octets):
    """Hand octets to a connection, all of them."""
    while octets:
        octets = octets[peer.give(octets) :]
        peer.broker.run()


def read(broker, name):
    """The bodies of a stream from its first message on, each with its offset."""
    peer = Peer(broker)
    peer.ask("basic_qos", "basic_qos_ok", 0, 500, False)
    found = peer.consume(name, "c", arguments={"x-stream-offset": "first"})
    taken = []
    for _ in range(40):
        taken += [(each[2]["headers"]["x-stream-offset"], each[3]) for each in found]
        peer.give(encoded("basic_ack", 1, 0, True))
        broker.run()
        found = assemble(peer.frames())
    return taken


def test_publishes_of_one_read_have_their_offsets_and_their_places_in_the_log():
    broker, peer = streams("s")
    bodies = [b"%04d" % number + bytes(number % 200) for number in range(700)]
    for first in range(0, 700, 5):
        give(peer, b"".join([content(1, "", "s", body) for body in bodies[first : first + 5]]))
    stream = broker.queues["s"]
    assert stream.message_count() == stream.pages.count == 700 and stream.next_offset() == 700
    broker.run()
    assert stream.durable_offset == 700
    chunks, chunk, end = broker.tables.chunks, stream.pages.head, 0
    while chunk != layout.NONE:
        assert stream.pages.position(chunk) == end and chunks[chunk + chunk_index.COUNT] <= 512
        end += chunks[chunk + chunk_index.COUNT]
        chunk = chunks[chunk + chunk_index.NEXT]
    assert end == 700 and stream.size == sum([len(body) + 5 for body in bodies])
    assert read(broker, "s") == list(enumerate(bodies))


def test_a_restart_finds_what_the_hot_path_appended():
    store = MemoryStore()
    names = ["s%d" % number for number in range(12)]  # more than the runs that are looked through
    broker, peer = streams(*names, store=store)
    for number in range(10):
        give(peer, b"".join([content(1, "", name, b"%s-%d" % (name.encode(), number)) for name in names]))
    broker.run()
    broker.journal.finish()
    again, _ = durable_broker(store, chunk_count_max=128)
    for name in names:
        assert read(again, name) == [(number, b"%s-%d" % (name.encode(), number)) for number in range(10)]


def test_a_named_publisher_repeats_without_a_double():
    broker, peer = streams("s")
    named = {"headers": {"x-publisher-id": "p", "x-publisher-sequence": 7}}
    for given in (named, {}, named, {"message_id": "x-publisher-id"}):
        peer.give(content(1, "", "s", b"x", given))
    broker.run()
    assert len(read(broker, "s")) == 3 and broker.queues["s"].publishers.doubles == 1


def test_a_message_that_is_not_persistent_goes_to_the_log_for_the_queues_beside_the_stream_too():
    broker, peer = streams("s")
    peer.declare("q", durable=True)
    for name in ("s", "q"):
        peer.ask("queue_bind", "queue_bind_ok", 0, name, "amq.fanout", "", False, {})
    for given in ({}, {"delivery_mode": 2}, {}):
        peer.give(content(1, "amq.fanout", "k", b"x", given))
    broker.run()
    state = broker.tables
    entry, kept = broker.queues["q"].head(), 0
    while entry != layout.NONE:
        kept += 1 if state.messages[state.entries[entry] + layout.MESSAGE_SEGMENT] else 0
        entry = state.entries[entry + layout.ENTRY_NEXT]
    assert kept == 3 and len(read(broker, "s")) == 3


def test_retention_by_octets_is_exact_for_messages_of_one_read():
    broker, peer = streams("s", given={"x-max-length-bytes": 500})
    for _ in range(10):
        peer.give(b"".join([content(1, "", "s", bytes(95)) for _ in range(7)]))
    stream = broker.queues["s"]
    assert stream.size == 500 and stream.first_offset == 65 and stream.message_count() == 5
    broker.run()
    assert [offset for offset, _ in read(broker, "s")] == [65, 66, 67, 68, 69]


def test_what_the_log_did_not_get_has_had_no_offset():
    broker, peer = streams("s")
    peer.give(content(1, "", "s", b"first"))
    broker.run()

    def fails(count, octets):
        raise OSError("no")

    place_for_written, broker.journal.log.place_for_written = broker.journal.log.place_for_written, fails
    peer.give(content(1, "", "s", b"lost") + content(1, "", "s", b"lost too"))
    broker.journal.log.place_for_written = place_for_written
    stream = broker.queues["s"]
    assert stream.next_offset() == 1 and stream.pages.count == 1 and broker.tables.state[layout.STATE_LOGGED_HEAD] == layout.NONE
    other = Peer(broker)
    other.give(content(1, "", "s", b"second"))
    broker.run()
    assert read(broker, "s") == [(0, b"first"), (1, b"second")]
