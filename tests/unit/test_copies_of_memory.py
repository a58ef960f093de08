"""Messages in memory are copied out of a segment in turns, each with all of its places (core/log/copy_forward.py)."""

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer, encoded

from leveret.core.log import chunk_index, copy_forward
from leveret.core.memory import layout

COUNT = 40
NAMES = ("a", "b", "c")


def shared():
    """A broker with COUNT messages in three queues, and one queue that the log does not know: (store, broker, peer)."""
    store = MemoryStore()
    broker, _ = durable_broker(store, segment_size=1024)
    peer = Peer(broker)
    for name in NAMES:
        peer.declare(name, durable=True)
        peer.give(encoded("queue_bind", 1, 0, name, "amq.fanout", "", True, {}))
    peer.declare("passing")
    peer.give(encoded("queue_bind", 1, 0, "passing", "amq.fanout", "", True, {}))
    for number in range(COUNT):
        peer.publish("", b"%06d" % number, given=PERSISTENT, exchange="amq.fanout")
    broker.run()
    return store, broker, peer


def copy(broker, left=512, between=lambda: None):
    """Copy every segment but the newest one, `left` of effort a turn: how many turns."""
    journal = broker.journal
    turns = 0
    for segment in journal.log.segments[:-1]:
        while True:
            turns += 1
            assert turns < 2000
            journal.pager.left = left
            if journal.pager.copy_forward(segment, {}):
                break
            assert journal.pager.left <= 0, "the journal takes the rest for a failure"
            between()
    return turns


def lives(broker):
    """Live places, as the segments count them."""
    return sum([segment.live for segment in broker.journal.log.segments])


def segments_of(broker):
    """The segments of messages in memory that the log has."""
    numbers = [each.number for each in broker.journal.log.segments]
    return [numbers.index(broker.tables.messages[handle + layout.MESSAGE_SEGMENT]) for handle in in_use(broker)]


def in_use(broker):
    """The messages of queue a."""
    found, entries = [], broker.tables.entries
    entry = broker.queues["a"].head()
    while entry != layout.NONE:
        found.append(entries[entry + layout.ENTRY_MESSAGE])
        entry = entries[entry + layout.ENTRY_NEXT]
    return found


def test_messages_in_many_queues_are_copied_in_turns_with_all_their_places():
    for left, most in ((512, 4096), (1, 4096), (7, 5)):
        before, copy_forward.SHARED_MAX = copy_forward.SHARED_MAX, most
        store, broker, peer = shared()
        old = len(broker.journal.log.segments) - 1
        assert old > 3 and lives(broker) == 3 * COUNT
        try:
            turns = copy(broker, left)
        finally:
            copy_forward.SHARED_MAX = before
        assert turns > COUNT or left > 1
        assert lives(broker) == 3 * COUNT and min(segments_of(broker)) >= old
        assert broker.journal.log.counters["log_copied_forward"] <= COUNT, "each once, with its three places"
        broker.journal.commit(True)
        again, report = durable_broker(store.cut(), segment_size=1024)
        for name in NAMES:
            assert bodies(Peer(again), name) == [b"%06d" % number for number in range(COUNT)], report


def test_what_is_settled_between_two_turns_is_not_copied():
    store, broker, peer = shared()
    gone = []

    def settle():
        """One message less in each queue, from the newest."""
        for name in NAMES:
            queue = broker.queues[name]
            entry = broker.tables.queues[queue.handle + layout.QUEUE_TAIL]
            if entry != layout.NONE:
                queue.unlink(entry)
                queue.drop(entry)
                gone.append(name)
        broker.journal.gather_settled()

    copy(broker, 8, settle)
    broker.journal.commit(True)
    assert 9 < len(gone) < 60 and lives(broker) == 3 * COUNT - len(gone), (len(gone), lives(broker))
    again, report = durable_broker(store.cut(), segment_size=1024)
    for name in NAMES:
        assert bodies(Peer(again), name) == [b"%06d" % number for number in range(COUNT - gone.count(name))], report


def test_a_place_in_a_queue_that_is_being_removed_is_not_copied_and_not_counted():
    """Else what the other queues have in that segment would count as gone when the removal gets to the place."""
    store, broker, peer = shared()
    broker.tables.state[layout.STATE_LEFT] = 0
    broker.topology.drop_queue(broker.queues["b"])
    assert broker.jobs, "the rest is removed in the next rounds"
    copy(broker)
    for _ in range(20):
        broker.run()
    assert not broker.jobs
    broker.journal.commit(True)
    assert lives(broker) == 2 * COUNT
    again, report = durable_broker(store.cut(), segment_size=1024)
    assert bodies(Peer(again), "a") == bodies(Peer(again), "c") == [b"%06d" % number for number in range(COUNT)], report


def test_the_walk_through_the_index_goes_in_turns_and_passes_chunks_that_go_meanwhile():
    broker, _ = durable_broker(MemoryStore(), chunk_count_max=256)
    peer = Peer(broker)
    for name in NAMES:
        peer.declare(name, durable=True)
        for at in range(20):
            broker.queues[name].pages.begin(broker.queues[name].pages.tail, at % 2, 100 + at, 0, 10 * at, 1, 0)
    segment, pager = broker.journal.log.segments[0], broker.journal.pager
    segment.number = 1
    before, copy_forward.CHUNKS_TURN = copy_forward.CHUNKS_TURN, 7
    try:
        turns = 0
        while True:
            turns += 1
            here = pager.chunks_in(segment)
            if here is not None:
                break
            for name in NAMES:
                pages = broker.queues[name].pages
                if turns == 3 and broker.tables.chunk_pool[3] != layout.NONE:
                    gone = broker.tables.chunk_pool[3]
                    queue = pager.walks
                    queue.pages.remove(gone)
                    queue.pages.remove(broker.tables.chunk_pool[3])
                    break
    finally:
        copy_forward.CHUNKS_TURN = before
    assert turns == 9, turns
    for name in NAMES:
        pages, wanted = broker.queues[name].pages, []
        chunk = pages.head
        while chunk != layout.NONE:
            wanted += [chunk] * (broker.tables.chunks[chunk + chunk_index.SEGMENT] == 1)
            chunk = broker.tables.chunks[chunk + chunk_index.NEXT]
        assert here[broker.queues[name].id_in_log] == (broker.queues[name], wanted), name
    pages.remove(wanted[0])
    assert pager.chunks_in(segment)[broker.queues[name].id_in_log][1] == wanted[1:]
