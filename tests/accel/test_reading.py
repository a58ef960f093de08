"""Reading a stream in both forms of the hot path: the same octets, whatever its messages are, and the same places in the tables."""

import random

from peer import content, encoded
from test_same import PROPERTIES, SEEDS, c_form, drain, prepared, row_of

from leveret.core.memory import layout

VALUES = ("a", "b", "\u00e4", "", 7, None, b"\xff", ["a"], True)
READERS = (
    ("all", 5, {"x-stream-offset": "first"}),
    ("tail", 40, {}),
    ("some", 9, {"x-stream-offset": "first", "x-stream-filter": "a"}),
    ("none", 20, {"x-stream-offset": "first", "x-stream-filter": ["b", ""]}),
    ("more", 300, {"x-stream-offset": "first", "x-stream-filter": ["b", "\u00e4"], "x-stream-match-unfiltered": True}),
)

assert c_form  # pytest looks for fixtures by name


def given(random_):
    """Properties with a value to filter by, or none."""
    made = dict(random_.choice(PROPERTIES))
    made.pop("user_id", None)
    if random_.random() < 0.7:
        made["headers"] = dict(made.get("headers", {}), **{"x-stream-filter-value": random_.choice(VALUES)})
    return made


def run(side):
    """A round. Where octets were read last is left out: for a filter Python copies properties, and C need not."""
    side.broker.run()
    for place in (layout.STATE_CURSOR_BLOCK, layout.STATE_CURSOR_OFFSET):
        side.broker.tables.state[place] = 0


def test_a_reader_gets_the_same_whatever_is_in_the_stream():
    for seed in range(max(SEEDS // 2, 8)):
        random_ = random.Random(seed)
        tag, prefetch, arguments = READERS[seed % len(READERS)]
        pair = prepared(durable=bool(seed & 4), arena_size=131072, consumer_count_max=64, frame_size_max=8192 if seed & 8 else 4096)
        assert sum(row_of(side).read_stream is not None for side in pair.sides) == 1
        pair.give(2, encoded("channel_open", 9, ""))
        pair.give(2, encoded("basic_qos", 9, 0, prefetch, False))
        pair.give(2, encoded("basic_consume", 9, 0, "stream", tag, False, False, False, False, arguments))
        for _ in range(25):
            for _ in range(random_.randrange(6)):
                body = bytes(random_.choice((0, 1, 40, 64, 300, 5000)))
                pair.give(0, content(1, "", "stream", body, given(random_)))
            pair.both(run)
            most = random_.choice((50, 1000, 100000))
            pair.both(lambda side, most=most: side.take(2, most))
            if random_.random() < 0.5:
                pair.give(2, encoded("basic_ack", 9, 0, True))
            pair.both(run)
        for _ in range(60):
            drain(pair)
            pair.give(2, encoded("basic_ack", 9, 0, True))
            pair.both(run)
        for side in pair.sides:
            stream = side.broker.queues["stream"]
            assert [consumer.cursor_offset for consumer in stream.consumers] == [stream.next_offset()]


def test_a_reader_far_from_the_end_gets_the_same_windows_from_the_log():
    """Records of many messages, some of them for another stream, some in both, in windows of a small broker."""
    for seed in range(6):
        random_ = random.Random(seed)
        pair = prepared(durable=True, arena_size=65536, consumer_count_max=64, chunk_count_max=256, frame_size_max=8192)
        assert sum(side.broker.tables.engine.read_window is not None for side in pair.sides) == 1
        pair.give(1, encoded("queue_declare", 1, 0, "other", False, True, False, False, False, {"x-queue-type": "stream"}))
        for name in ("stream", "other"):
            pair.give(1, encoded("queue_bind", 1, 0, name, "amq.direct", "both", False, {}))
        for _ in range(3):
            pair.both(run)
            drain(pair)
        for _ in range(80):
            for _ in range(random_.randrange(1, 12)):
                where = random_.choice((("", "stream"), ("", "stream"), ("", "other"), ("amq.direct", "both"), ("", "one")))
                body = bytes(random_.choice((0, 1, 40, 64, 300, 1200)))
                pair.give(0, content(1, *where, body, {"delivery_mode": random_.choice((1, 2)), "message_id": "m" * random_.randrange(9)}))
            pair.both(run)
            drain(pair)
        pair.give(2, encoded("channel_open", 9, ""))
        pair.give(2, encoded("basic_qos", 9, 0, random_.choice((3, 50)), False))
        pair.give(2, encoded("basic_consume", 9, 0, "stream", "far", False, False, False, False, {"x-stream-offset": "first"}))
        for _ in range(300):
            pair.both(run)
            drain(pair)
            pair.give(2, encoded("basic_ack", 9, 0, True))
        for side in pair.sides:
            stream = side.broker.queues["stream"]
            assert side.broker.queues["other"].next_offset() > 50
            assert stream.next_offset() > 150 and stream.consumers[-1].cursor_offset == stream.next_offset()
            assert stream.following - stream.tables.queues[stream.handle + layout.QUEUE_LENGTH] > 50, "not all of it was in memory"


def test_a_queue_gets_the_same_back_from_the_log():
    """Records of many messages, some of them for other queues, some transient or with a lifetime, in turns of a small broker."""
    read_on = 0
    for seed in range(6):
        random_ = random.Random(seed)
        pair = prepared(durable=True, arena_size=65536, consumer_count_max=64, chunk_count_max=256, frame_size_max=8192)
        given = {} if seed % 3 else {"x-max-length": 900}
        pair.give(1, encoded("queue_declare", 1, 0, "far", False, True, False, False, False, given))
        for name in ("far", "one"):
            pair.give(1, encoded("queue_bind", 1, 0, name, "amq.direct", "both", False, {}))
        for _ in range(3):
            pair.both(run)
            drain(pair)
        for _ in range(60):
            for _ in range(random_.randrange(1, 20)):
                where = random_.choice((("", "far"), ("", "far"), ("", "far"), ("amq.direct", "both"), ("", "one")))
                body = bytes(random_.choice((0, 1, 40, 64, 300, 1200)))
                made = {"delivery_mode": random_.choice((1, 2, 2, 2, 2)), "message_id": "m" * random_.randrange(9)}
                if seed == 5 and random_.random() < 0.02:
                    made["expiration"] = "100000"
                pair.give(0, content(1, *where, body, made))
            pair.both(run)
            drain(pair)
        assert all(side.broker.queues["far"].pages.count > 50 for side in pair.sides), "not all of it was in memory"
        engine = pair.sides[1].broker.tables.engine
        inner = engine.read_on

        def counted(*given, inner=inner):
            nonlocal read_on
            answer = inner(*given)
            read_on += answer[0]
            return answer

        engine.read_on = counted
        pair.give(2, encoded("channel_open", 9, ""))
        pair.give(2, encoded("basic_qos", 9, 0, random_.choice((3, 50)), False))
        pair.give(2, encoded("basic_consume", 9, 0, "far", "far", False, False, False, False, {}))
        for _ in range(300):
            pair.both(run)
            drain(pair)
            pair.give(2, encoded("basic_ack", 9, 0, True))
        for side in pair.sides:
            assert side.broker.queues["far"].message_count() == 0
            assert side.broker.journal.log.counters["log_unreadable"] == 0
    assert read_on > 200
