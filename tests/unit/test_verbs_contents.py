"""The broker's verbs of publishing and getting, without a codec: contents of unknown size, promises, transactions, get, time-outs."""

from memory_store import MemoryStore, durable_broker
from peer import new_broker
from same_random import Random
from test_verbs import DURABLE, answers, deliveries, outcomes, refused, wait
from toy_family import ToyPeer, installed

from leveret.core.broker import transaction
from leveret.core.memory import invariants, layout
from leveret.core.outcomes import ACCEPTED, MODIFIED, REFUSED, TAKEN, UNROUTABLE


def free_blocks(broker):
    """Blocks of the arena that nobody has."""
    return broker.tables.state[layout.POOL_BLOCKS + 2]


def in_parts(peer, key, *parts):
    """Publish a content of unknown size."""
    peer.ask("begin", "", key, {})
    for part in parts:
        peer.ask("more", part)
    return answers(peer, "end")


def test_a_content_of_unknown_size_comes_in_pieces_and_is_one_message():
    with installed():
        broker = new_broker()
        peer = ToyPeer(broker)
        peer.ask("queue", "q")
        before = free_blocks(broker)
        assert in_parts(peer, "q") == [TAKEN]
        assert in_parts(peer, "q", "x" * 300, "", "y" * 200, "z") == [TAKEN]
        assert in_parts(peer, "nowhere", "x") == [UNROUTABLE]
        invariants.check(broker.tables)
        assert [body for _, _, body in deliveries(peer.ask("subscribe", "q", "t", 0, True))] == ["", "x" * 300 + "y" * 200 + "z"]
        assert free_blocks(broker) == before and broker.growing.contents == []


def test_half_written_contents_never_wait_for_each_other():
    """Many peers write contents as large as any at once, in pieces, in random order: all come to their end, in at most half of the arena,
    while contents of known size have the other half."""
    with installed():
        for seed in range(20):
            chance = Random(seed)
            largest = chance.choice((1500, 3000, 6000))
            broker = new_broker(arena_size=16384, content_size_max=largest, receive_buffer_size=8192, send_buffer_size=16384)
            reader, known = ToyPeer(broker), ToyPeer(broker)
            reader.ask("queue", "q")
            reader.ask("subscribe", "q", "t", 0, True)
            reader.ask("queue", "kept")
            assert answers(known, "publish", "", "kept", "k" * largest, {}) == [TAKEN], seed
            peers = [ToyPeer(broker) for _ in range(8)]
            left = {peer: ["begin"] + [chance.choice((1, 40, largest // 8)) for _ in range(6)] + ["rest", "end"] for peer in peers}
            sizes = dict.fromkeys(peers, 0)
            done = []
            steps = 0
            while any(left.values()):
                steps += 1
                assert steps < 4000, "seed %d: they wait for each other: %r" % (seed, [each for each in left.values() if each])
                peer = chance.choice([each for each in peers if left[each]])
                if not peer.connection.reading:
                    continue  # it waits, and goes on by itself
                step = left[peer].pop(0)
                if step == "begin":
                    peer.ask("begin", "", "q", {})
                elif step == "end":
                    done += outcomes(peer.ask("end"))
                else:
                    size = largest - sizes[peer] if step == "rest" else step
                    sizes[peer] += size
                    peer.ask("more", "x" * size)
                growing = broker.growing
                assert sum([growing.blocks_of(each) for each in growing.contents]) <= growing.most, seed
                invariants.check(broker.tables)
                assert answers(known, "publish", "", "q", "k" * 100, {}) == [TAKEN], seed
                reader.heard()
            for _ in range(10):  # the last ones have waited for room in the queue
                reader.heard()
                done += sum([outcomes(peer.heard()) for peer in peers], [])
            assert done == [TAKEN] * 8 and broker.growing.contents == [], (seed, done)


def test_a_content_of_unknown_size_that_stops_ends_its_connection_and_lets_the_next_go_on():
    with installed():
        broker = new_broker(arena_size=16384, content_size_max=6000, receive_buffer_size=8192, send_buffer_size=16384)
        stopped, other = ToyPeer(broker), ToyPeer(broker)
        other.ask("queue", "q")
        before = free_blocks(broker)
        stopped.ask("begin", "", "q", {})
        stopped.ask("more", "x" * 3000)
        other.ask("begin", "", "q", {})
        other.ask("more", "y" * 5000)
        assert not other.connection.reading
        broker.tick(broker.limits.content_timeout_ms // 2, 0)
        stopped.connection.tick(broker.now)
        assert not stopped.connection.ending
        broker.tick(broker.limits.content_timeout_ms + 1, 0)
        stopped.connection.tick(broker.now)
        assert [each[1] for each in stopped.heard() if each[0] == "error"] == ["resource-error"] and stopped.connection.ending
        stopped.connection.received(0)
        broker.run()
        assert other.connection.reading and answers(other, "end") == [TAKEN]
        assert other.ask("get", "q", True) == [["got", 1, "y" * 5000]] and free_blocks(broker) == before


def test_a_content_of_unknown_size_is_refused_when_it_gets_too_large_and_gives_all_back():
    with installed():
        broker = new_broker(content_size_max=2000, receive_buffer_size=4096)
        peer = ToyPeer(broker)
        peer.ask("queue", "q")
        before = free_blocks(broker)
        peer.ask("begin", "", "q", {})
        peer.ask("more", "x" * 2000)
        assert free_blocks(broker) < before
        assert refused(peer, "more", "x") == ["content-too-large"]
        peer.connection.received(0)
        broker.run()
        assert free_blocks(broker) == before
        peer = ToyPeer(broker)
        peer.ask("begin", "", "q", {})
        peer.ask("more", "x" * 2000)
        peer.connection.received(0)  # it is gone in the middle
        assert free_blocks(broker) == before and broker.growing.contents == []


def test_a_session_has_one_content_of_unknown_size_at_a_time():
    with installed():
        broker = new_broker()
        peer = ToyPeer(broker)
        peer.ask("begin", "", "q", {})
        session = peer.connection.session.session
        before, session.incoming = session.incoming, type(session.incoming)(session)
        assert refused(peer, "begin", "", "q", {}) == ["resource-error"]
        session.incoming = before


def test_a_content_goes_where_its_user_may_publish_and_says_whose_it_is():
    with installed():
        broker = new_broker()
        peer = ToyPeer(broker)
        peer.ask("queue", "q")
        incoming = peer.connection.session.session.incoming
        incoming.check_user("guest")
        assert refused(ToyPeer(broker), "publish", "nowhere", "q", "x", {}) == ["not-found"]
        broker.access.users["guest"].permit(("", "^other$", ""))
        assert refused(ToyPeer(broker), "publish", "", "q", "x", {}) == ["access-refused"]


def test_promises_are_ranges_of_publishes_whose_sync_is_done():
    with installed():
        store = MemoryStore()
        broker, _ = durable_broker(store)
        peer = ToyPeer(broker)
        peer.ask("queue", "q", True, {"x-max-length": 3, "x-overflow": "reject-publish"})
        peer.ask("queue", "transient")
        lines = [("publish", "", "q", str(number), DURABLE) for number in range(5)] + [("publish", "", "transient", "t", {})] * 2

        def give(requests):
            peer.give(b"".join([str(list(each)).replace("'", '"').encode() + b"\n" for each in requests]))

        give(lines)
        assert peer.heard() == [["answer", TAKEN, 1, 3], ["answer", REFUSED, 4, 5], ["answer", TAKEN, 6, 7]]
        store.full = True
        broker.queues["q"].purge()
        give(lines[5:6] + lines[:1] + lines[5:6])
        assert peer.heard() == [["answer", TAKEN, 8, 8]]  # nothing of it is logged; what comes behind one that is waits with it
        store.full = False
        for _ in range(10):
            broker.tick(broker.now + 200, 0)
            broker.run()
        assert peer.heard() == [["answer", TAKEN, 9, 10]]


def test_a_commit_takes_effect_at_once_and_a_rollback_not_at_all():
    with installed():
        store = MemoryStore()
        broker, _ = durable_broker(store)
        peer, other = ToyPeer(broker), ToyPeer(broker)
        other.ask("queue", "q", True)
        other.ask("publish", "", "q", "old", DURABLE)
        ((tag, _, _),) = deliveries(peer.ask("subscribe", "q", "t", 1))
        peer.ask("cancel", "t")
        peer.ask("select")
        for number in range(3):
            assert peer.ask("publish", "", "q", str(number), DURABLE, True) == []
        peer.ask("settle", tag, tag, ACCEPTED)
        assert other.ask("get", "q", True) == [["empty"]]
        peer.ask("rollback")
        assert broker.queues["q"].unsettled_count() == 1 and broker.queues["q"].message_count() == 0
        in_parts(peer, "q", "1", "2")
        peer.ask("publish", "", "nowhere", "lost", {}, True)
        peer.ask("settle", tag, tag, MODIFIED)
        assert peer.ask("commit") == [["returned", "nowhere"], ["committed"], ["answer", TAKEN, 1, 1], ["answer", UNROUTABLE, 2, 2]]
        again, _ = durable_broker(store.cut())
        assert again.queues["q"].message_count() == 1  # a toy's properties said nothing of durable but for the one that came back
        assert [other.ask("get", "q", True)[0][2] for _ in range(2)] == ["old", "12"]
        invariants.check(broker.tables)


def test_a_commit_goes_in_turns():
    with installed():
        before, transaction.TURN = transaction.TURN, 4
        try:
            broker = new_broker()
            peer = ToyPeer(broker)
            peer.ask("queue", "q")
            peer.ask("select")
            for number in range(30):
                peer.ask("publish", "", "q", str(number), {})
            answer = peer.ask("commit")
            for _ in range(30):
                broker.run()
                answer += peer.heard()
            assert [each[0] for each in answer].count("committed") == 1
            assert [each[2] for each in sum([peer.ask("get", "q", True) for _ in range(30)], [])] == [str(number) for number in range(30)]
        finally:
            transaction.TURN = before


def test_get_comes_behind_the_consumers_and_gives_one():
    with installed():
        broker = new_broker()
        peer, other = ToyPeer(broker), ToyPeer(broker)
        peer.ask("queue", "q")
        assert peer.ask("get", "q") == [["empty"]]
        for number in range(3):
            other.ask("publish", "", "q", str(number), {"expiration": "100"} if number == 2 else {})
        other.heard()
        ((tag, _, body),) = deliveries(other.ask("subscribe", "q", "t", 1))
        assert body == "0"
        assert peer.ask("get", "q") == [["got", 1, "1"]] and broker.queues["q"].unsettled_count() == 2
        wait(broker, 200)
        assert peer.ask("get", "q") == [["empty"]]
        peer.ask("settle", 1, 1, MODIFIED)
        assert peer.ask("get", "q", True) == [["got", 2, "1"]]
        other.ask("settle", tag, tag, ACCEPTED)
        assert broker.queues["q"].unsettled_count() == 0


def test_a_delivery_that_is_not_settled_in_time_ends_its_session():
    with installed():
        broker = new_broker(consumer_timeout_ms=1000)
        peer = ToyPeer(broker)
        peer.ask("queue", "q")
        peer.ask("publish", "", "q", "m", {})
        peer.ask("subscribe", "q", "t", 1)
        for ms, ends in ((0, False), (900, False), (1100, True)):
            wait(broker, ms)
            peer.connection.tick(broker.now)
            assert peer.connection.ending == ends, ms
        assert broker.counters["settle_timeouts"] == 1
