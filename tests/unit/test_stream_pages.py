"""Streams beyond memory: a stream in the log keeps there what memory has no room for, and readers get it from any place."""

from memory_store import MemoryStore, durable_broker
from peer import Peer, assemble, content, encoded, idle

from leveret.core.amqp_0_9 import packed
from leveret.core.log import chunk_index
from leveret.core.memory import layout
from leveret.core.stream.stream import EPOCH

COUNT = 600
SIZE = 100
RECORD = 6 + SIZE + 3 + 2  # with route and properties
TOGETHER = 9  # messages of one second and one commit
CHUNKS = {"chunk_count_max": 128}


def numbered(number, size=SIZE):
    """A body that begins with its number."""
    return (b"%06d" % number) + bytes(size)


def fill(peer, count, first=0, name="s", given=None, together=TOGETHER):
    """Publish numbered messages, `together` at a time, a second each after those before; publishers are never held for long."""
    broker = peer.broker
    for number in range(first, first + count, together):
        broker.tick(number * 1000 & layout.MASK, EPOCH + 1000 + number)
        numbers = range(number, min(number + together, first + count))
        octets = b"".join([content(1, "", name, numbered(each), given or {}) for each in numbers])
        while octets:
            octets = octets[peer.give(octets) :]
            broker.run()


def stream_of(count=COUNT, store=None, together=TOGETHER, **arguments):
    """A broker with a log and a stream "s" of that many messages: (broker, peer, stream)."""
    broker, _ = durable_broker(MemoryStore() if store is None else store, **CHUNKS)
    peer = Peer(broker)
    given = {"x-queue-type": "stream"}
    given.update({"x-" + name.replace("_", "-"): arguments[name] for name in arguments})
    peer.declare("s", durable=True, arguments=given)
    fill(peer, count, together=together)
    return broker, peer, broker.queues["s"]


def reader(broker, prefetch=50, tag="c", **arguments):
    """A consumer of the stream: (peer, what it got at first)."""
    peer = Peer(broker)
    peer.ask("basic_qos", "basic_qos_ok", 0, prefetch, False)
    return peer, peer.consume("s", tag, arguments={"x-stream-" + name.replace("_", "-"): arguments[name] for name in arguments})


def more(peer):
    """What comes when all is acknowledged."""
    peer.give(encoded("basic_ack", 1, 0, True))
    peer.broker.run()
    return assemble(peer.frames())


def offsets(found):
    """The offset of each delivery, after seeing that the body belongs to it."""
    for each in found:
        assert int(each[3][:6]) == each[2]["headers"]["x-stream-offset"], each
    return [each[2]["headers"]["x-stream-offset"] for each in found]


def rest(peer, found, idle_rounds=3):
    """All offsets that a reader gets, with those it got at first, until nothing comes any more."""
    all_of_them = offsets(found)
    left = idle_rounds
    while left:
        found = offsets(more(peer))
        all_of_them += found
        left = idle_rounds if found else left - 1
    return all_of_them


def packs(found):
    """The offsets of the records in packs, after seeing that they belong there."""
    records = [record for each in found for record in packed.unpack(each[3])]
    for record in records:
        assert int(record[5][:6]) == record[0]
    return [record[0] for record in records]


def test_a_stream_of_many_times_the_memory_is_read_from_everywhere():
    """first, an offset, a time, last, next; memory has a part of it, the log all."""
    broker, _, stream = stream_of()
    assert stream.message_count() == COUNT and stream.size == COUNT * RECORD
    assert broker.tables.queues[stream.handle + layout.QUEUE_LENGTH] < COUNT // 4
    for place, begin in (("first", 0), (250, 250), (("T", EPOCH + 1000 + 333), 333), ("last", COUNT - 1), ("next", COUNT)):
        peer, found = reader(broker, offset=place)
        assert rest(peer, found) == list(range(begin, COUNT)), place
        peer.connection.received(0)
    assert not stream.pages.windows.rows


def test_packs_are_read_from_the_log():
    """Dense, each once, to the end, and then as they come."""
    broker, peer, _ = stream_of()
    other, found = reader(broker, prefetch=3, offset="first", pack_records=100)
    got = packs(found)
    while len(got) < COUNT:
        found = packs(more(other))
        assert found, len(got)
        got += found
    assert got == list(range(COUNT))
    fill(peer, 5, COUNT)
    assert packs(more(other)) == list(range(COUNT, COUNT + 5))


def test_filters_pass_over_what_is_only_in_the_log():
    """A filter finds the few that fit."""
    broker, peer, _ = stream_of(0)
    for number in range(COUNT):
        fill(peer, 1, number, given={"headers": {"x-stream-filter-value": "a" if number % 50 == 7 else "b"}})
    other, found = reader(broker, offset="first", filter="a")
    assert rest(other, found, 30) == list(range(7, COUNT, 50))


def test_readers_near_each_other_share_and_far_ones_do_not_disturb():
    """Five readers from different places, in turn, while more is published: each gets everything, in bounded memory."""
    broker, peer, stream = stream_of()
    readers = [reader(broker, 20, offset=place) for place in (0, 5, 200, 210, 590)]
    got = [offsets(found) for _, found in readers]
    for turn in range(120):
        if turn % 10 == 0:
            fill(peer, 5, COUNT + turn // 2)
        for index, (each, _) in enumerate(readers):
            if index != 1 or turn % 3 == 0:
                got[index] += offsets(more(each))
        assert len(stream.pages.windows.rows) <= 5
        held = sum([window.end - window.first for window in stream.pages.windows])
        assert held <= broker.limits.message_count_max
    for index, (each, _) in enumerate(readers):
        got[index] += rest(each, [])
        begin = (0, 5, 200, 210, 590)[index]
        assert got[index] == list(range(begin, COUNT + 60)), index


def test_a_reader_that_gets_no_further_keeps_no_memory_from_others():
    """Its window is given up for a message that needs the room, and read again."""
    broker, peer, stream = stream_of()
    slow, found = reader(broker, 5, offset="first")
    assert offsets(found) == [0, 1, 2, 3, 4] and stream.pages.windows.rows
    names = ("q0", "q1", "q2", "q3")
    for name in names:
        peer.declare(name)
    for number in range(400):
        if peer.connection.reading:
            peer.give(content(1, "", names[number % 4], bytes(500)))
    assert not peer.connection.reading and sum([broker.queues[name].message_count() for name in names]) > 25
    for name in names:
        broker.queues[name].purge()
    broker.run()
    assert rest(slow, []) == list(range(5, COUNT))


def test_a_stream_that_gets_no_place_in_the_index_keeps_no_message_and_goes_on():
    """chunk_count_max: the index is full of other streams' chunks. The message is settled in the log: neither lost without a word later
    nor back after a restart."""
    store = MemoryStore()
    broker, peer, _ = stream_of(20, store)
    peer.declare("t", durable=True, arguments={"x-queue-type": "stream"})
    other = broker.queues["t"]
    pool = broker.tables.chunk_pool
    free, pool[2] = pool[2], 0
    peer.publish("t", numbered(0))
    idle(broker)
    assert (other.message_count(), other.first_offset, other.following) == (0, 1, 1)
    pool[2] = free
    peer.publish("t", numbered(1))
    idle(broker)
    assert (other.message_count(), other.first_offset) == (1, 1)
    again = Peer(durable_broker(store, **CHUNKS)[0])
    stream = again.broker.queues["t"]
    assert (stream.message_count(), stream.first_offset, stream.following) == (1, 1, 2)
    again.ask("basic_qos", "basic_qos_ok", 0, 50, False)
    assert offsets(again.consume("t", "c", arguments={"x-stream-offset": "first"})) == [1]


def test_retention_counts_what_is_on_disk():
    """x-max-length-bytes: octets in the log, many times the memory; x-max-age: by chunk; offsets stay."""
    broker, _, stream = stream_of(max_length_bytes=400 * RECORD)
    assert 390 <= stream.message_count() <= 400 and stream.size <= 400 * RECORD
    peer, found = reader(broker, offset="first")
    assert rest(peer, found) == list(range(stream.first_offset, COUNT))
    broker, _, stream = stream_of(max_age="100s")
    assert 100 <= stream.message_count() <= 100 + chunk_index.MESSAGES
    broker.tick((COUNT + 101) * 1000, EPOCH + 1000 + COUNT + 101)
    assert stream.message_count() == 0 and broker.tables.chunk_pool[2] == broker.limits.chunk_count_max


def test_a_reader_is_overtaken_in_the_log_as_in_memory():
    """It goes on at the first message that is left; a strict one is told."""
    broker, peer, stream = stream_of(max_length_bytes=400 * RECORD)
    first = stream.first_offset
    slow, found = reader(broker, 3, offset="first")
    strict, _ = reader(broker, 3, offset="first", strict=True)
    assert offsets(found) == [first, first + 1, first + 2]
    fill(peer, 300, COUNT)
    assert rest(slow, []) == list(range(stream.first_offset, COUNT + 300))
    strict.give(encoded("basic_ack", 1, 0, True))
    assert "retention went past consumer 'c': stream 's' begins at offset" in strict.expect("channel_close")[1]


def test_a_restart_reads_an_index_and_goes_on():
    """Nothing is loaded; offsets, kept offsets and publishers are known; what was let go stays so."""
    store = MemoryStore()
    broker, peer, stream = stream_of(store=store, max_length_bytes=400 * RECORD)
    other, found = reader(broker, offset="first", consumer="job")
    assert len(found) == 50
    for _ in range(2):
        more(other)
    other.ask("basic_cancel", "basic_cancel_ok", "c", False)
    broker.run()
    first = stream.first_offset
    again, report = durable_broker(store.cut(), **CHUNKS)
    stream = again.queues["s"]
    assert again.tables.queues[stream.handle + layout.QUEUE_LENGTH] == 0, report
    assert (stream.first_offset, stream.next_offset()) == (first, COUNT) and stream.size <= 400 * RECORD
    other, found = reader(again, consumer="job")
    assert rest(other, found) == list(range(first + 100, COUNT))
    fill(Peer(again), 10, COUNT)
    other, found = reader(again, offset=COUNT - 3)
    assert rest(other, found) == list(range(COUNT - 3, COUNT + 10))


def test_publishers_are_known_after_a_restart():
    """x-publisher-sequence, of messages that are only in the log."""
    store = MemoryStore()
    _, peer, stream = stream_of(0, store)
    for number in range(1, COUNT):
        fill(peer, 1, number - 1, given={"headers": {"x-publisher-id": "p", "x-publisher-sequence": number}})
    again, _ = durable_broker(store.cut(), **CHUNKS)
    fill(Peer(again), 1, COUNT, given={"headers": {"x-publisher-id": "p", "x-publisher-sequence": COUNT - 1}})
    assert again.queues["s"].next_offset() == COUNT - 1 == stream.next_offset()


def test_what_is_deleted_or_purged_leaves_nothing():
    """Memory, index and log."""
    for deed, name, given in (
        ("queue_purge", "queue_purge_ok", (0, "s", False)),
        ("queue_delete", "queue_delete_ok", (0, "s", False, False, False)),
    ):
        store = MemoryStore()
        broker, peer, stream = stream_of(store=store)
        other, _ = reader(broker, 5, offset="first")
        assert peer.ask(deed, name, *given) == [COUNT]
        broker.run()
        assert broker.tables.chunk_pool[2] == broker.limits.chunk_count_max and len(store.segments) <= 3
        again, _ = durable_broker(store.cut(), **CHUNKS)
        assert deed == "queue_delete" or again.queues["s"].next_offset() == again.queues["s"].first_offset == COUNT
        for each in (peer, other):
            each.connection.received(0)
        if deed == "queue_delete":
            fresh, _ = durable_broker(MemoryStore(), **CHUNKS)
            assert idle(broker) == idle(fresh)


def test_what_cannot_be_read_is_a_hole_that_is_told():
    """One record damaged at work: counted, offsets stay, readers go on behind it, a strict one is told; a restart knows it."""
    store = MemoryStore()
    broker, _, stream = stream_of(store=store)
    said = []
    broker.log = said.append
    chunks = broker.tables.chunks
    chunk = chunks[stream.pages.head + chunk_index.NEXT]
    number, offset = chunks[chunk + chunk_index.SEGMENT], chunks[chunk + chunk_index.OFFSET]
    octets = bytearray(store.segments[number])
    octets[offset + 60] ^= 4
    store.segments[number] = bytes(octets)
    strict, _ = reader(broker, 2, offset="first", strict=True)
    broker.run()
    peer, found = reader(broker, offset="first")
    got = rest(peer, found)
    lost = [each for each in range(COUNT) if each not in got]
    assert lost and lost == list(range(lost[0], lost[-1] + 1)) and len(lost) < 20 and got == sorted(got)
    assert broker.journal.log.counters["log_unreadable"] == len(lost)
    assert "offsets %d to %d of stream 's' could not be read back from the log" % (lost[0], lost[-1]) in said
    frames = strict.frames()
    while not [each for each in frames if each[0] == "channel_close"]:
        strict.give(encoded("basic_ack", 1, 0, True))
        broker.run()
        frames = strict.frames()
    assert "before offset %d cannot be read any more" % (lost[-1] + 1) in [each for each in frames if each[0] == "channel_close"][0][2][1]


def test_a_stream_whose_first_messages_cannot_be_read_begins_behind_them_before_and_after_a_restart():
    """The first offset is that of a message; a reader from the first on begins there."""
    store = MemoryStore()
    broker, _, stream = stream_of(store=store)
    chunks = broker.tables.chunks
    number, offset = chunks[stream.pages.head + chunk_index.SEGMENT], chunks[stream.pages.head + chunk_index.OFFSET]
    octets = bytearray(store.segments[number])
    octets[offset + 60] ^= 4
    store.segments[number] = bytes(octets)  # `durable` has it as it was: this is a medium that reads wrongly
    peer, found = reader(broker, offset="first")
    got = rest(peer, found)
    assert got[0] > 0 and broker.journal.log.counters["log_unreadable"] == got[0]
    assert stream.first_offset == got[0]
    again, _ = durable_broker(store.cut(), **CHUNKS)
    assert again.queues["s"].first_offset == got[0]


def test_segments_are_freed_around_a_stream():
    """A stream in the oldest segments does not keep what others have there: little is written twice."""
    store = MemoryStore()
    broker, peer, stream = stream_of(100, store)
    peer.declare("q", durable=True)
    for number in range(2000):
        peer.give(content(1, "", "q", numbered(number), {"delivery_mode": 2}) + encoded("basic_get", 1, 0, "q", True))
        peer.frames()
        broker.run()
    counters = broker.journal.log.counters
    assert counters["log_segments_removed"] > 10
    assert counters["log_copied_forward"] < 2000 // 2 and broker.journal.log.octets < 10 * 100 * RECORD
    other, found = reader(broker, offset="first")
    assert rest(other, found) == list(range(100))


def test_a_dead_letter_that_comes_to_the_stream_for_the_same_message_keeps_the_order():
    """A full queue lets its first message go to the stream, for one that goes to both."""
    store = MemoryStore()
    broker, _ = durable_broker(store, **CHUNKS)
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments={"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "s"})
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for name in ("s", "q"):
        peer.ask("queue_bind", "queue_bind_ok", 0, name, "amq.fanout", "", False, {})
    for number in range(20):
        peer.give(content(1, "amq.fanout", "", numbered(number), {"delivery_mode": 2}))
        broker.run()
    pages = broker.queues["s"].pages
    chunks, chunk, following = broker.tables.chunks, pages.head, 0
    while chunk != layout.NONE:
        assert pages.position(chunk) == following
        following += chunks[chunk + chunk_index.SPAN]
        chunk = chunks[chunk + chunk_index.NEXT]
    assert following == 39
    broker, _ = durable_broker(store, **CHUNKS)
    found = reader(broker, offset="first")[1]
    assert [each[2]["headers"]["x-stream-offset"] for each in found] == list(range(39))
    assert sorted([int(each[3][:6]) for each in found]) == sorted(list(range(20)) + list(range(19)))


def packs_of(broker, name, count):
    """How many packed deliveries the first `count` records of a stream take."""
    peer = Peer(broker)
    peer.ask("basic_qos", "basic_qos_ok", 0, 5, False)
    found = peer.consume(name, "c", arguments={"x-stream-offset": "first", "x-stream-pack-records": 10000})
    deliveries, records = 0, []
    while len(records) < count:
        assert found, "%d records of stream '%s' came, then none" % (len(records), name)
        for each in found:
            deliveries += 1
            records += [record[0] for record in packed.unpack(each[3])]
        found = more(peer)
    assert records == list(range(count))
    peer.connection.received(0)
    return deliveries


def test_every_stream_is_read_in_packs_however_many_have_filled_memory_before():
    """x-stream-pack-records: the streams of a broker hold no more of its message table than leaves their readers whole packs."""
    broker, _ = durable_broker(
        MemoryStore(), message_count_max=2048, entry_count_max=4096, chunk_count_max=256, arena_size=1 << 20, send_buffer_size=65536
    )
    peer = Peer(broker)
    for number in range(4):
        peer.declare("s%d" % number, durable=True, arguments={"x-queue-type": "stream"})
        fill(peer, 1000, name="s%d" % number)
    packs = [packs_of(broker, "s%d" % number, 1000) for number in range(4)]
    assert max(packs) <= 2 * min(packs), packs


def test_a_stream_is_read_in_packs_where_queues_have_filled_memory():
    """x-stream-pack-records: what a window may have is a share of what is free, and never one record while there is more."""
    broker, _ = durable_broker(
        MemoryStore(), message_count_max=2048, entry_count_max=4096, chunk_count_max=256, arena_size=1 << 20, send_buffer_size=65536
    )
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    fill(peer, 1500)
    state = broker.tables.state
    for name in ("one", "two"):
        peer.declare(name)
        while state[layout.POOL_MESSAGES + 2] > 160 and len(peer.connection.writable()):
            peer.publish(name, b"x")
        peer = Peer(broker)
    assert state[layout.POOL_MESSAGES + 2] == 160, "less than the eighth that windows leave free where they can"
    assert packs_of(broker, "s", 1500) <= 2 * 1500 // (160 // 4)


def test_readers_with_priorities_read_what_only_the_log_has():
    """x-priority makes a stream's turns those that look at each delivery; whether a message is at the head in memory says nothing there."""
    store = MemoryStore()
    stream_of(store=store)
    for priorities in ((5,), (5, 1)):
        broker, _ = durable_broker(store.cut(), **CHUNKS)
        assert broker.queues["s"].head() == layout.NONE
        readers, found = [], []
        for priority in priorities:
            peer = Peer(broker)
            peer.ask("basic_qos", "basic_qos_ok", 0, 50, False)
            readers.append(peer)
            found.append(offsets(peer.consume("s", arguments={"x-stream-offset": "first", "x-priority": priority})))
        for _ in range(COUNT):
            for peer, each in zip(readers, found):
                each += offsets(more(peer))
        assert found == [list(range(COUNT))] * len(priorities)
