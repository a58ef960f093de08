"""What the broker does for bridges: moves from a queue into a stream, streams that hold, positions in the log, statuses (core/SPEC.md)."""

import json

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer, encoded, idle, new_broker

from leveret.core.access.permissions import User
from leveret.core.bridge.requests import move
from leveret.core.memory import layout
from leveret.core.stream.stream import EPOCH

KEY = "amq.leveret.management"
REPLY = "amq.rabbitmq.reply-to"
ROOM = {
    "management_size_max": 16384,
    "content_size_max": 16384,
    "arena_size": 131072,
    "argument_size_max": 1024,
    "bridge_count_max": 4,
    "message_count_max": 256,
    "entry_count_max": 512,
}
OUTBOX = {"x-queue-type": "stream", "x-stream-hold": "b", "x-max-length-bytes": 20000}


def ask(broker, request, **given):
    """One management request by a peer of its own, and the answer."""
    peer = Peer(broker)
    peer.consume(REPLY, no_ack=True)
    peer.publish(KEY, json.dumps(dict(given, request=request)).encode("utf-8"), given={"reply_to": REPLY})
    ((_, _, _, body),) = peer.contents()
    peer.connection.received(0)
    return json.loads(str(body, "utf-8"))


def round_of(broker, **given):
    values = {"name": "b", "stream": "out", "consumer": "b", "queue": "q", "count": 100, "status": None}
    values.update(given)
    return ask(broker, "bridge", **values)


def with_queue(count, broker=None, arguments=None, **overrides):
    """A broker with queue q that has `count` messages, and the outbox."""
    if broker is None:
        broker = new_broker(**dict(ROOM, **overrides))
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments=arguments)
    peer.declare("out", durable=True, arguments=OUTBOX)
    for number in range(count):
        peer.publish("q", b"%d" % number, given=PERSISTENT)
    return broker, peer


def stream_bodies(broker, offset="first"):
    peer = Peer(broker)
    peer.ask("basic_qos", "basic_qos_ok", 0, 200, False)
    return [each[3] for each in peer.consume("out", arguments={"x-stream-offset": offset})]


def test_messages_are_moved_in_order_and_the_answer_counts():
    broker, peer = with_queue(10)
    broker.tick(0, EPOCH + 77)
    answer = round_of(broker, count=4)
    assert (answer["moved"], answer["queued"], answer["first"], answer["next"], answer["position"]) == (4, 6, 0, 4, None), answer
    assert answer["oldest"] == EPOCH and answer["logged"] is False
    answer = round_of(broker)
    assert (answer["moved"], answer["queued"], answer["next"]) == (6, 0, 10)
    assert stream_bodies(broker) == [b"%d" % number for number in range(10)] and broker.counters["moved"] == 10
    peer.publish("q", b"x")
    assert bodies(peer, "q") == [b"x"]


def test_a_round_without_a_queue_moves_nothing_and_says_where_the_stream_stands():
    """The first round of a bridge asks for its position alone: 0 messages moved, none queued."""
    broker, _ = with_queue(3)
    answer = round_of(broker, queue=None)
    assert (answer["ok"], answer["moved"], answer["queued"], answer["next"]) == (True, 0, 0, 0)
    assert broker.queues["q"].message_count() == 3


def test_what_is_unsettled_or_expired_is_not_moved():
    broker, peer = with_queue(3, arguments={"x-message-ttl": 1000})
    peer.ask("basic_qos", "basic_qos_ok", 0, 1, False)
    peer.consume("q")
    broker.tick(500, EPOCH)
    peer.publish("q", b"late")
    broker.tick(1200, EPOCH)
    assert round_of(broker)["moved"] == 1 and stream_bodies(broker) == [b"late"]


def test_a_stream_that_holds_takes_no_more_than_it_has_room_for_and_drops_only_what_is_settled():
    broker, peer = with_queue(100, arena_size=262144)
    broker.queues["out"].octets_max = 400
    first = round_of(broker)
    assert 0 < first["moved"] < 100 and first["queued"] == 100 - first["moved"]
    assert round_of(broker)["moved"] == 0
    reader = Peer(broker)
    reader.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    found = reader.consume("out", arguments={"x-stream-offset": "first", "x-stream-consumer": "b"})
    assert [each[3] for each in found] == [b"%d" % number for number in range(10)]
    assert round_of(broker)["moved"] == 0  # delivered is not settled
    reader.give(encoded("basic_ack", 1, 5, True))
    answer = round_of(broker)
    assert (answer["first"], answer["position"]) == (5, 5) and answer["moved"] > 0, answer
    assert broker.counters["retained_out"] == 0  # nothing was lost


def test_publishers_of_a_stream_that_holds_wait_and_go_on():
    broker = new_broker(**ROOM)
    peer = Peer(broker)
    peer.declare("out", durable=True, arguments=OUTBOX)
    broker.queues["out"].octets_max = 3000
    count = 0
    while not broker.held:
        peer.publish("out", bytes(100))
        count += 1
    assert broker.queues["out"].message_count() < 30
    reader = Peer(broker)
    reader.ask("basic_qos", "basic_qos_ok", 0, 100, False)
    seen = reader.consume("out", arguments={"x-stream-offset": "first", "x-stream-consumer": "b"})
    while seen:
        last = seen[-1][1][1]
        reader.give(encoded("basic_ack", 1, last, True))
        idle(broker)
        peer.take()
        seen = reader.contents()
    assert broker.queues["out"].next_offset() == count and not broker.held


def test_memory_that_others_want_does_not_push_out_what_is_held():
    broker, peer = with_queue(0)
    for _number in range(40):
        peer.publish("out", bytes(400))
    before = broker.queues["out"].first_offset, broker.queues["out"].message_count()
    for _number in range(400):
        peer.publish("q", bytes(400))
    assert (broker.queues["out"].first_offset, broker.queues["out"].message_count()) == before and before[0] == 0


def test_a_move_is_all_or_nothing_over_a_power_cut_at_every_moment():
    for mode in ("each", "batch"):
        store = MemoryStore()
        broker, _ = durable_broker(store, mode, **ROOM)
        with_queue(20, broker)
        cuts = []
        append = store.append

        def appended(number, octets, append=append, cuts=cuts, store=store):
            append(number, octets)
            cuts.append({each: bytes(store.segments[each]) for each in store.segments})

        store.append = appended
        for _ in range(4):
            round_of(broker, count=5)
            for _ in range(3):
                broker.tick((broker.now + 100) & 0x3FFFFFFF, EPOCH)
                broker.run()
        assert cuts
        for segments in cuts:
            after = MemoryStore()
            after.segments = dict(segments)
            after.durable = dict(segments)
            again, _ = durable_broker(after, mode, **ROOM)
            moved = stream_bodies(again)
            left = bodies(Peer(again), "q")
            assert moved + left == [b"%d" % number for number in range(20)], (moved, left)
            assert again.queues["out"].next_offset() == len(moved)


def test_what_a_queue_has_only_in_the_log_is_moved_too():
    store = MemoryStore()
    values = dict(ROOM)
    values.update({"message_count_max": 64, "entry_count_max": 128})
    broker, _ = durable_broker(store, "each", **values)
    _, peer = with_queue(300, broker)
    assert broker.queues["q"].is_paging()
    reader = Peer(broker)
    reader.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    found = [int(each[3]) for each in reader.consume("out", arguments={"x-stream-offset": "first", "x-stream-consumer": "b"})]
    for _turn in range(200):
        broker.tick((broker.now + 20) & 0x3FFFFFFF, EPOCH)
        round_of(broker, count=20)
        broker.run()
        reader.take()
        got = reader.contents()
        if got:
            found += [int(each[3]) for each in got]
            reader.give(encoded("basic_ack", 1, got[-1][1][1], True))
        if len(found) == 300:
            break
    assert found == list(range(300)) and broker.queues["q"].message_count() == 0


def test_positions_are_in_the_log_every_second_and_offsets_are_not_given_twice():
    store = MemoryStore()
    broker, _ = durable_broker(store, **ROOM)
    with_queue(10, broker)
    round_of(broker)
    reader = Peer(broker)
    reader.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    reader.consume("out", arguments={"x-stream-offset": "first", "x-stream-consumer": "b"})
    reader.give(encoded("basic_ack", 1, 7, True))
    for _ in range(25):
        broker.tick((broker.now + 50) & 0x3FFFFFFF, EPOCH)
        broker.run()
    again, _ = durable_broker(store.cut(), **ROOM)
    assert again.queues["out"].kept == {"b": 7} and round_of(again, queue=None)["position"] == 7
    assert again.queues["out"].next_offset() == 10
    octets = broker.journal.log.counters["log_octets"]
    for _ in range(100):
        broker.tick((broker.now + 50) & 0x3FFFFFFF, EPOCH)
        broker.run()
    assert broker.journal.log.counters["log_octets"] == octets  # who stands still writes nothing


def test_a_bridge_is_told_when_its_position_is_in_the_log():
    """What a cut leaves when an answer's synced is as large as what was noted."""
    store = MemoryStore()
    broker, _ = durable_broker(store, **ROOM)
    with_queue(10, broker)
    assert round_of(broker)["noted"] is None  # nobody asked
    reader = Peer(broker)
    reader.ask("basic_qos", "basic_qos_ok", 0, 10, False)
    reader.consume("out", arguments={"x-stream-offset": "first", "x-stream-consumer": "b"})
    reader.give(encoded("basic_ack", 1, 7, True))
    noted = round_of(broker, note=True)
    assert noted["position"] == 7 and noted["noted"] > 0
    left = 20
    while round_of(broker)["synced"] < noted["noted"] and left:
        broker.run()
        left -= 1
    assert left and durable_broker(store.cut(), **ROOM)[0].queues["out"].kept == {"b": 7}
    broker = with_queue(1)[0]
    answer = round_of(broker, note=True)
    assert answer["noted"] is None and answer["synced"] is None and not answer["logged"]  # in memory alone


def test_who_may_and_what_is_wrong():
    broker, peer = with_queue(3)
    for given, text in (
        ({"stream": "nonesuch"}, "no queue 'nonesuch'"),
        ({"stream": "q"}, "is no stream"),
        ({"queue": "out"}, "is a stream"),
        ({"queue": 5}, "no queue '5'"),
        ({"count": -1}, "count must be"),
        ({"count": 1001}, "count must be"),
        ({"name": "", "status": {}}, "has a name"),
        ({"status": {"x": "y" * 5000}}, "status of at most"),
    ):
        answer = round_of(broker, **given)
        assert not answer["ok"] and text in answer["error"], (given, answer)
    broker.access.put(User("watcher", None, ("monitoring",), ("", "^amq", "^amq")))
    broker.access.put(User("guest", broker.access.users["guest"].stored, ("monitoring",), ("^amq", "^amq", "^amq")))
    watcher = Peer(broker)
    watcher.consume(REPLY, no_ack=True)
    request = {"request": "bridge", "name": "b", "stream": "out", "consumer": "b", "queue": "q", "count": 10}
    watcher.publish(KEY, json.dumps(request).encode("utf-8"), given={"reply_to": REPLY})
    assert watcher.expect("channel_close")[0] == 403 and broker.queues["q"].message_count() == 3


def test_statuses_are_kept_and_the_longest_silent_goes_first():
    broker, _ = with_queue(0, bridge_count_max=2)
    round_of(broker, status={"state": "running"})
    broker.tick(100, EPOCH)
    answer = ask(broker, "report-bridge", name="down", status={"state": "blocked"})
    assert answer["ok"], answer
    broker.tick(350, EPOCH)
    assert ask(broker, "bridges")["names"] == ["b", "down"]
    answer = ask(broker, "bridges", name="b")
    assert answer["status"] == {"state": "running"} and answer["reported_ms_ago"] == 350
    assert ask(broker, "report-bridge", name="third", status={})["ok"]
    assert ask(broker, "bridges")["names"] == ["down", "third"]
    assert "no bridge 'b'" in ask(broker, "bridges", name="b")["error"]


def test_a_move_to_a_queue_comes_once_through_a_power_cut_and_stops_at_what_is_refused():
    """Out of the one and into the other in one commit: whatever is cut, each message is in exactly one of them, in order."""
    for sent in (0, 3, 6):
        store = MemoryStore()
        broker, _ = durable_broker(store, **ROOM)
        peer = Peer(broker)
        peer.declare("a", durable=True)
        peer.declare("b", durable=True, arguments={"x-max-length": 4, "x-overflow": "reject-publish"})
        for number in range(6):
            peer.publish("a", b"%d" % number, given=PERSISTENT)
        for _ in range(3):
            broker.run()
        assert move(broker, broker.queues["a"], broker.queues["b"], sent) == min(sent, 4)
        before = [bodies_at(broker, name) for name in ("a", "b")]
        assert before == [[b"%d" % each for each in range(min(sent, 4), 6)], [b"%d" % each for each in range(min(sent, 4))]]
        cut, _ = durable_broker(store.cut(), **ROOM)  # nothing of the move is written yet: all is in the first one
        assert [bodies_at(cut, name) for name in ("a", "b")] == [[b"%d" % each for each in range(6)], []]
        for _ in range(3):
            broker.run()
        again, _ = durable_broker(store.cut(), **ROOM)
        assert [bodies_at(again, name) for name in ("a", "b")] == before, sent


def bodies_at(broker, name):
    """The bodies of a queue's ready messages, which stay."""
    tables, entry, bodies_ = broker.tables, broker.queues[name].head(), []
    while entry != layout.NONE:
        message = tables.entries[entry + layout.ENTRY_MESSAGE]
        size = tables.messages[message + layout.MESSAGE_BODY]
        bodies_.append(tables.octets(message, tables.size_of(message) - size, size))
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    return bodies_
