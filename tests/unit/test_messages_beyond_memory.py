"""Messages beyond memory: a durable queue goes on in the log when its share of memory is used up, and comes back in order."""

from memory_store import PERSISTENT, MemoryStore, SlowStore, durable_broker
from peer import Peer, assemble, content, encoded, idle

from leveret.core.log import chunk_index
from leveret.core.log.settled_positions import PAGE, Settled
from leveret.core.memory import invariants, layout
from leveret.core.stream.stream import EPOCH

COUNT = 400
CHUNKS = {"chunk_count_max": 256}


def numbered(number, size=100):
    """A body that begins with its number."""
    return (b"%06d" % number) + bytes(size)


def numbers(found):
    """The numbers of bodies."""
    return [int(body[:6]) for body in found]


def fill(peer, queue, count, given=None, first=0, size=100):
    """Publish `count` numbered messages; all have to be taken."""
    for number in range(first, first + count):
        octets = content(1, "", queue, numbered(number, size), PERSISTENT if given is None else given)
        assert peer.give(octets) == len(octets), number
    peer.broker.run()


def drain(peer, queue):
    """What basic.get takes out of a queue, waiting for what is read back."""
    found = []
    while True:
        peer.give(encoded("basic_get", 1, 0, queue, True))
        frames = peer.frames()
        while not frames:
            peer.broker.run()
            frames = peer.frames()
        if frames[0][0] == "basic_get_empty":
            return found
        found.append(assemble(frames)[0][3])


def paging(count=COUNT, store=None, **declared):
    """A broker with `count` messages in queue q, of which most are only in the log: (broker, peer, queue)."""
    broker, _ = durable_broker(MemoryStore() if store is None else store, **CHUNKS)
    peer = Peer(broker)
    peer.declare("q", durable=True, **declared)
    fill(peer, "q", count)
    assert broker.queues["q"].is_paging()
    return broker, peer, broker.queues["q"]


def test_one_turn_reads_back_no_more_than_its_messages():
    """`bring_chunk`: others wait for the turn's end; what is left of the chunk comes in the next one."""
    _, peer, queue = paging()
    for _ in range(120):
        peer.give(encoded("basic_get", 1, 0, "q", True))
    peer.contents()
    ready, below = queue.tables.queues[queue.handle + layout.QUEUE_LENGTH], queue.pages.count
    count, octets = queue.pages.pager.bring_chunk(queue, queue.pages.head, 3, 1 << 18)
    assert (count, queue.tables.queues[queue.handle + layout.QUEUE_LENGTH]) == (3, ready + 3)
    assert octets >= 3 * 106 and queue.pages.count == below - 3


def test_a_write_that_fails_beside_others_leaves_every_message_where_the_index_has_it():
    """A store that syncs beside the broker: what was under way is written once more, before the messages that came meanwhile."""
    store = SlowStore()
    broker, _ = durable_broker(store, **CHUNKS)
    peer = Peer(broker)
    for name in ("q", "other"):
        peer.give(encoded("queue_declare", 1, 0, name, False, True, False, False, False, {}))
        broker.run()
        peer.expect("queue_declare_ok")
    fill(peer, "q", COUNT)
    broker.run()
    assert broker.queues["q"].is_paging()
    store.stalls = True
    fill(peer, "q", 1, first=COUNT)
    fill(peer, "other", 1, size=33)  # so that the place of the next is none of the first write's own
    fill(peer, "q", 12, first=COUNT + 1)
    assert broker.journal.log.is_busy() and broker.journal.log.gathered.marks, "some are under way, others wait with their places"
    store.stalls, store.sync_fails = False, True
    broker.run()
    assert broker.journal.log.trouble
    store.sync_fails = False
    for second in range(1, 4):
        broker.tick(second * 1000, EPOCH + second)
        broker.run()
    assert not broker.journal.log.trouble and not broker.journal.log.is_busy()
    assert numbers(drain(peer, "q")) == list(range(COUNT + 13))


def test_far_more_than_memory_is_taken_and_delivered_in_order():
    """Ten times the arena, by publishes that are all confirmed; the count is told whole; afterwards nothing is left anywhere."""
    broker, _ = durable_broker(MemoryStore(), **CHUNKS)
    peer = Peer(broker)
    before = idle(broker)
    peer.declare("q", durable=True)
    fill(peer, "q", COUNT * 4)
    queue = broker.queues["q"]
    assert queue.is_paging() and queue.message_count() == COUNT * 4
    assert queue.octets() == COUNT * 4 * 106
    assert numbers(drain(peer, "q")) == list(range(COUNT * 4))
    assert not queue.is_paging() and queue.tables.queues[queue.handle + layout.QUEUE_PLAIN] == layout.PLAIN_LOGGED
    broker.topology.delete_queue(None, "q", False, False)
    broker.run()
    assert idle(broker) == before and broker.tables.chunk_pool[2] == broker.limits.chunk_count_max


def test_a_consumer_gets_all_of_it_while_more_comes():
    """Deliveries with acknowledgements, in order, with publishes between them."""
    broker, peer, _ = paging()
    found = [each[3] for each in peer.consume("q")]
    sent = COUNT
    while len(found) < sent or sent < 2 * COUNT:
        if sent < 2 * COUNT:
            fill(peer, "q", 5, first=sent)
            sent += 5
        peer.give(encoded("basic_ack", 1, 0, True))
        broker.run()
        more = assemble(peer.frames())
        assert more, len(found)
        found.extend([each[3] for each in more])
    assert numbers(found) == list(range(sent)) and sent == 2 * COUNT


def test_transient_messages_keep_their_place_and_do_not_outlive_the_run():
    """Among persistent ones they come in order; a restart forgets them, and only them."""
    store = MemoryStore()
    broker, _ = durable_broker(store, **CHUNKS)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    for number in range(COUNT):
        fill(peer, "q", 1, {} if number % 2 else PERSISTENT, number)
    after, _ = durable_broker(store.cut(), **CHUNKS)
    assert after.queues["q"].message_count() == COUNT // 2
    assert numbers(drain(Peer(after), "q")) == list(range(0, COUNT, 2))
    assert numbers(drain(peer, "q")) == list(range(COUNT))
    for _ in range(50):
        broker.tick(broker.now + 100, 1700000000)
        broker.run()
    live = [segment.live for segment in broker.journal.log.segments]
    assert set(live) == {0}, "nothing of any segment is wanted any more, and they have %s" % live


def test_what_is_only_in_the_log_comes_back_after_a_crash_in_an_index():
    """Half of it delivered and every second acknowledged: what is left, in order, redelivered, and memory holds none of it at first."""
    store = MemoryStore()
    broker, peer, _ = paging(store=store)
    tags = []
    while len(tags) < COUNT // 2:
        got = peer.consume("q") if not tags else assemble(peer.frames())
        for each in got:
            tags.append((each[1][1], int(each[3][:6])))
            if len(tags) % 2:
                peer.give(encoded("basic_ack", 1, each[1][1], False))
        broker.run()
    acked = [number for index, (_, number) in enumerate(tags) if index % 2 == 0]
    again, report = durable_broker(store.cut(), **CHUNKS)
    queue = again.queues["q"]
    left = [number for number in range(COUNT) if number not in acked]
    assert queue.message_count() == len(left) and again.tables.queues[queue.handle + layout.QUEUE_LENGTH] == 0, report
    assert numbers(drain(Peer(again), "q")) == left
    third, _ = durable_broker(again.journal.log.store.cut(), **CHUNKS)
    assert third.queues["q"].message_count() == 0


def test_what_is_only_in_the_log_goes_to_a_consumer_after_a_restart():
    """Nothing of the queue is in memory then, and nobody publishes or gets: the pager begins by itself, and leaves nothing behind."""
    store = MemoryStore()
    paging(store=store)
    again, _ = durable_broker(store.cut(), **CHUNKS)
    queue = again.queues["q"]
    assert queue.is_paging() and again.tables.queues[queue.handle + layout.QUEUE_LENGTH] == 0
    peer = Peer(again)
    got = peer.consume("q", no_ack=True)
    for _ in range(COUNT):
        again.run()
        got += peer.contents()
    assert numbers([each[3] for each in got]) == list(range(COUNT))
    assert not queue.is_paging() and queue.message_count() == 0


def test_an_exchange_that_delays_brings_nothing_else_into_memory_at_a_start():
    """x-delayed-message: what waits for its time is known at once after a restart; a backlog that came another way stays in the log."""
    store = MemoryStore()
    broker, peer, _ = paging(store=store)
    peer.declare_delaying("later")
    peer.ask("queue_bind", "queue_bind_ok", 0, "q", "later", "", False, {})
    peer.publish("", numbered(COUNT), "later", {"delivery_mode": 2, "headers": {"x-delay": 60000}})
    broker.run()
    again, _ = durable_broker(store.cut(), **CHUNKS)
    queue = again.queues["q"]
    assert queue.is_paging() and again.tables.queues[queue.handle + layout.QUEUE_LENGTH] == 0 and queue.message_count() == COUNT
    assert numbers(drain(Peer(again), "q")) == list(range(COUNT))
    again.tick(again.now + 60001, 0)
    again.run()
    assert numbers(drain(Peer(again), "q")) == [COUNT]


def test_lifetimes_of_messages_are_known_after_a_crash_when_they_are_read_back():
    """A message with an expiration that was only in the log is not delivered when its time is over."""
    store = MemoryStore()
    broker, peer, _ = paging(store=store)
    fill(peer, "q", 3, {"delivery_mode": 2, "expiration": "1000"}, first=COUNT)
    fill(peer, "q", 1, first=COUNT + 3)
    again, _ = durable_broker(store.cut(), **CHUNKS)
    for now in range(0, 5000, 500):
        again.tick(now, EPOCH + now // 1000)
        again.run()
    assert numbers(drain(Peer(again), "q")) == list(range(COUNT)) + [COUNT + 3]


def test_purge_and_delete_settle_what_is_only_in_the_log():
    """The count is told; a restart does not bring it back; the segments go."""
    for deed, name in (("queue_purge", "queue_purge_ok"), ("queue_delete", "queue_delete_ok")):
        store = MemoryStore()
        broker, peer, _ = paging(store=store)
        given = (0, "q", False) if deed == "queue_purge" else (0, "q", False, False, False)
        assert peer.ask(deed, name, *given) == [COUNT]
        broker.run()
        assert broker.tables.chunk_pool[2] == broker.limits.chunk_count_max
        assert len(store.segments) <= 3, sorted(store.segments)
        again, _ = durable_broker(store.cut(), **CHUNKS)
        assert "q" not in again.queues or again.queues["q"].message_count() == 0


def test_a_few_that_are_left_are_copied_forward_without_coming_into_memory():
    """A second queue drains and pins nothing: the disk holds little more than what is wanted, and the order stays, also after a crash."""
    store = MemoryStore()
    broker, _ = durable_broker(store, **CHUNKS)
    peer = Peer(broker)
    for name in ("q", "r"):
        peer.declare(name, durable=True)
    for number in range(COUNT):
        fill(peer, "q" if number % 10 == 0 else "r", 1, first=number)
    for number in range(COUNT, COUNT + 200):
        fill(peer, "q", 1, first=number)
    assert broker.queues["q"].is_paging() and broker.queues["r"].is_paging()
    wanted = list(range(0, COUNT, 10)) + list(range(COUNT, COUNT + 200))
    assert numbers(drain(peer, "r")) == [number for number in range(COUNT) if number % 10]
    fill(peer, "q", 1, first=COUNT + 200)
    assert broker.journal.log.counters["log_copied_forward"] > 0
    assert sum([len(octets) for octets in store.segments.values()]) < 240 * 220 + 3 * 4096
    again, _ = durable_broker(store.cut(), **CHUNKS)
    assert numbers(drain(Peer(again), "q")) == wanted + [COUNT + 200]
    assert numbers(drain(peer, "q")) == wanted + [COUNT + 200]


def test_what_cannot_be_read_back_is_counted_and_told_and_the_next_is_there():
    """A flipped bit in a record that is only in the log: what is in that record is lost, the rest comes in order, and nothing hangs."""
    store = MemoryStore()
    broker, peer, found = paging(store=store)
    said = []
    broker.log = said.append
    chunks = broker.tables.chunks
    chunk = chunks[found.pages.head + chunk_index.NEXT]
    number, at = chunks[chunk + chunk_index.SEGMENT], chunks[chunk + chunk_index.OFFSET]
    octets = bytearray(store.segments[number])
    octets[at + 40] ^= 1
    store.segments[number] = bytes(octets)
    numbers_found = numbers(drain(peer, "q"))
    lost = broker.journal.log.counters["log_unreadable"]
    assert 0 < lost < 30 and len(numbers_found) == COUNT - lost and numbers_found == sorted(numbers_found)
    assert [line for line in said if "CRC" in line] and [line for line in said if "could not be read back" in line], said
    assert found.message_count() == 0 and not found.is_paging()


def test_a_store_that_fails_to_read_is_tried_again():
    """Two errors and then it works: nothing is lost."""
    store = MemoryStore()
    broker, peer, _ = paging(store=store)
    read, failures = store.read, [OSError(5, "input/output error")] * 2

    def failing(number, offset, size):
        if failures:
            raise failures.pop()
        return read(number, offset, size)

    store.read = failing
    moments = [broker.now]
    run = broker.run

    def later():
        moments[0] += 50
        broker.tick(moments[0], 0)
        run()

    broker.run = later
    assert numbers(drain(peer, "q")) == list(range(COUNT)) and not failures
    assert broker.journal.log.counters["log_unreadable"] == 0


def test_lengths_count_what_is_only_in_the_log():
    """reject-publish refuses at the maximum; drop-head keeps the newest."""
    broker, peer, found = paging(arguments={"x-max-length": COUNT, "x-overflow": "reject-publish"})
    peer.ask("confirm_select", "confirm_select_ok", False)
    peer.give(content(1, "", "q", b"one too many", PERSISTENT))
    broker.run()
    assert peer.frames()[0][0] == "basic_nack" and found.message_count() == COUNT
    broker, _ = durable_broker(MemoryStore(), **CHUNKS)
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments={"x-max-length": 300})
    fill(peer, "q", 2 * COUNT)
    for _ in range(5):
        broker.run()
    assert broker.queues["q"].message_count() == 300
    assert numbers(drain(peer, "q")) == list(range(2 * COUNT - 300, 2 * COUNT))


def test_a_queue_that_looks_at_all_of_its_messages_keeps_them_in_memory():
    """With priorities its publisher waits, as before."""
    broker, _ = durable_broker(MemoryStore(), **CHUNKS)
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments={"x-max-priority": 3})
    octets = b"".join([content(1, "", "q", numbered(number), PERSISTENT) for number in range(COUNT)])
    assert peer.give(octets) < len(octets) and broker.queues["q"].pages is None


def test_one_message_larger_than_a_piece_of_the_store():
    """It is read in pieces into its blocks."""
    broker, peer, _ = paging()
    fill(peer, "q", 3, first=COUNT, size=9000)
    octets = drain(peer, "q")
    assert numbers(octets) == list(range(COUNT + 3)) and [len(body) for body in octets[-3:]] == [9006] * 3


def test_a_board_comes_back_with_what_it_had_in_as_many_places_as_it_had_it():
    """Persistent and transient messages in turn, in many queues and segments, with a board's few chunks: loaded, in order."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=1024)
    peer = Peer(broker)
    for queue in range(10):
        peer.declare("q%d" % queue, durable=True)
    for number in range(120):
        peer.publish("q%d" % (number % 10), numbered(number, 20), given=PERSISTENT if number // 10 % 2 else {})
    broker.run()
    again, report = durable_broker(store.cut(), segment_size=1024)
    assert "recovered 60 messages in 10 queues" in report, report
    reader = Peer(again)
    for queue in range(10):
        assert not again.queues["q%d" % queue].is_paging()
        assert numbers(drain(reader, "q%d" % queue)) == list(range(10 + queue, 120, 20))


def test_a_queue_too_large_for_half_of_memory_is_listed_from_its_first_message_on():
    """Some of it was loaded before that showed; transient messages between those in memory cost no chunk each."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=65536)
    peer = Peer(broker)
    peer.declare("q", durable=True)
    for number in range(COUNT):
        fill(peer, "q", 1, {} if number % 2 else PERSISTENT, number)
    again, _ = durable_broker(store.cut(), segment_size=65536)
    queue = again.queues["q"]
    assert queue.is_paging() and again.tables.queues[queue.handle + layout.QUEUE_LENGTH] == 0
    assert again.limits.chunk_count_max - again.tables.chunk_pool[2] < 8
    assert numbers(drain(Peer(again), "q")) == list(range(0, COUNT, 2))


def test_small_queues_stay_in_memory_when_the_index_has_few_places():
    """A large queue that lies together is listed; four small ones in many segments would take more pieces than there are."""
    few = {"chunk_count_max": 16, "message_count_max": 48, "entry_count_max": 64}
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=512, **few)
    peer = Peer(broker)
    names = ["s%d" % number for number in range(4)]
    for name in ["big"] + names:
        peer.declare(name, durable=True)
    fill(peer, "big", 22)
    for number in range(6):
        for name in names:
            fill(peer, name, 1, first=number)
    again, report = durable_broker(store.cut(), segment_size=512, **few)
    assert again.queues["big"].is_paging(), report
    assert [again.queues[name].is_paging() for name in names] == [False] * 4
    for name, count in [("big", 22)] + [(name, 6) for name in names]:
        assert numbers(drain(Peer(again), name)) == list(range(count))


def test_a_start_that_needs_more_pieces_than_the_limit_has_them():
    """Two queues lie in more segments than the index has pieces, and fill memory: each message is there behind two power cuts."""
    few = {"chunk_count_max": 16, "message_count_max": 48, "entry_count_max": 64}
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=512, **few)
    peer = Peer(broker)
    for name in "ab":
        peer.declare(name, durable=True)
    for number in range(23):
        for name in "ab":
            fill(peer, name, 1, first=number, size=400)
    for _ in range(2):
        again, report = durable_broker(store.cut(), segment_size=512, **few)
        assert "the index of the log has 32 pieces" in report, report
        assert again.tables.chunk_count == 32 and len(again.tables.chunks) == 32 * layout.CHUNK_WIDTH
        invariants.check(again.tables)
        store = again.journal.log.store
    for name in "ab":
        assert numbers(drain(Peer(again), name)) == list(range(23))
    assert again.tables.chunk_pool[2] == 32


def test_settled_positions_take_no_more_memory_than_two_bits_each():
    """Every second of many: pages of bits; all of them: one range."""
    settled = Settled()
    for position in range(1, 10 * PAGE, 2):
        settled.add(position, position + 1)
    assert len(settled.pages) == 10 and not settled.ranges and settled.end == 10 * PAGE
    assert settled.has(PAGE + 1) and not settled.has(PAGE) and not settled.covers(PAGE + 1, PAGE + 3)
    for position in range(0, 10 * PAGE, 2):
        settled.add(position, position + 1)
    assert not settled.pages and settled.ranges == [(0, 10 * PAGE)] and settled.covers(0, 10 * PAGE)
    settled.add(10 * PAGE + 5, 13 * PAGE + 7)
    assert settled.has(11 * PAGE) and settled.has(13 * PAGE + 6) and not settled.has(13 * PAGE + 7) and not settled.has(10 * PAGE + 4)
    settled.forget_below(12 * PAGE)
    assert settled.has(12 * PAGE) and list(settled.pages) == [13]


def test_a_dead_letter_for_the_queue_that_a_message_is_on_its_way_to():
    """The log has the dead letter first, in the same group; its place in the queue is the later one."""
    broker, peer, found = paging()
    peer.declare("small", durable=True, arguments={"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    for name in ("q", "small"):
        peer.ask("queue_bind", "queue_bind_ok", 0, name, "amq.fanout", "", False, {})
    octets = b"".join([content(1, "amq.fanout", "", numbered(COUNT + number, 10), PERSISTENT) for number in range(4)])
    while octets:
        octets = octets[peer.give(octets) :]
    broker.run()
    got = numbers(drain(peer, "q"))
    assert got[:COUNT] == list(range(COUNT)) and broker.journal.log.counters["log_unreadable"] == 0
    assert sorted(got[COUNT:]) == sorted(list(range(COUNT, COUNT + 4)) + list(range(COUNT, COUNT + 3)))
