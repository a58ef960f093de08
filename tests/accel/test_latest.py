"""x-last-value-key and x-group-key with publishes in C: queues hold, say and count the same as in plain Python, whoever reads a header."""

import gc
import random

import peer_0_10
import pytest
from peer import content, encoded
from test_homes import said
from test_same import Side

from leveret import c_accel
from leveret.c_accel import framing
from leveret.core.amqp_0_9 import session
from leveret.core.broker import engine
from leveret.core.queue.identities import pool_of
from leveret.core.serial_link import frame, stuffing

FORMS = (engine.Plain, c_accel.Engine)
QUEUES = (
    ("one", {"x-last-value-key": "k"}),
    ("two", {"x-last-value-key": "k", "x-max-length": 6, "x-message-ttl": 60000}),
    ("other", {"x-last-value-key": "a\u00e4", "x-deduplication": 5}),
    ("groups", {"x-group-key": "k"}),
    ("none", {}),
)
VALUES = ["v%d" % number for number in range(12)] + ["", "\u00e4", None, 7, True, b"v1", ["v1"], {"v": 1}]


def answered(side):
    """Have the broker answer the publisher's last method."""
    for _ in range(100):
        if said(side, 0):
            return
        side.broker.run()
    raise AssertionError("no answer")


def give_whole(side, octets):
    """Hand the publisher's octets over to the last one: while its turn is used up the broker reads nothing, and the rest waits."""
    taken = 0
    for _ in range(100):
        taken += side.give(0, octets[taken:])
        if taken == len(octets):
            return
        side.broker.run()
    raise AssertionError("the broker reads no further")


def prepared(form, durable, **limits):
    """A side with a publisher in confirm mode and two consumers, and these queues bound to one exchange."""
    side = Side(form, durable, **limits)
    for number in range(3):
        side.connect(number)
    side.give(0, encoded("confirm_select", 1, False))
    answered(side)
    for name, arguments in QUEUES:
        side.give(0, encoded("queue_declare", 1, 0, name, False, durable, False, False, False, arguments))
        answered(side)  # with a log a queue has to be there before the next method is taken
        side.give(0, encoded("queue_bind", 1, 0, name, "amq.fanout", "", False, {}))
        answered(side)
    for number, name in enumerate(("one", "groups"), 1):
        side.give(number, encoded("basic_qos", 1, 0, 3, False))
        side.give(number, encoded("basic_consume", 1, 0, name, name, False, False, False, False, {}))
    for number in range(3):
        said(side, number)
    return side


def held(side):
    """The bodies' sizes in each queue, how many values have places, and what was counted."""
    broker, queues = side.broker, side.body_sizes()
    pool = pool_of(broker.tables)
    return (
        queues,
        pool.left,
        pool.values,
        [broker.counters[name] for name in ("replaced", "published", "settled", "dropped_head", "rejected_publishes")],
    )


def last_confirms(frames):
    """{method: the highest tag}: how many a confirm is for differs, since what Python and C have taken is told of one after the other."""
    assert {frame[0] for frame in frames} <= {"basic_ack", "basic_nack"}, frames
    return {frame[0]: max(each[2][0] for each in frames if each[0] == frame[0]) for frame in frames}


def published(draws, number):
    """The octets of one or several publishes to one of the queues, or all of them: what stands in one piece has one pass of the log."""
    octets = b""
    for further in range(draws.choice((1, 1, 4))):
        exchange, key = draws.choice((("", "one"), ("", "two"), ("", "other"), ("", "groups"), ("", "none"), ("amq.fanout", "")))
        value = draws.choice(VALUES)
        headers = {"b": 1, "k": value, "a\u00e4": "x"} if draws.random() < 0.8 else {"k" * draws.choice((1, 2)): value}
        given = {"delivery_mode": draws.choice((1, 2)), "message_id": "m%d" % (number % 9)}
        if draws.random() < 0.9:
            given["headers"] = headers
        octets += content(1, exchange, key, bytes(number + 10 * further), given, False, draws.choice((4096, 4096, 100)))
    return octets


@pytest.mark.parametrize("durable", (False, True))
@pytest.mark.parametrize("places", (9, 5000))
def test_last_values_and_groups_are_the_same_in_both_forms(monkeypatch, places, durable):
    """Values of any type, places that run out, messages that are delivered, returned, purged and written to the log meanwhile."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    draws = random.Random(seed)
    sides = [
        prepared(form, durable, identity_count_max=places, arena_size=1 << 20, message_count_max=4000, entry_count_max=8000)
        for form in FORMS
    ]
    frames = {side.broker: 0 for side in sides}
    one_frame = session.Session.one_frame

    def counting(taken):
        frames[taken.broker] += 1
        return one_frame(taken)

    monkeypatch.setattr(session.Session, "one_frame", counting)
    for number in range(250):
        octets = published(draws, number)
        purge = encoded("queue_purge", 1, 0, draws.choice(QUEUES)[0], True) if draws.random() < 0.05 else b""
        answers = []
        for side in sides:
            give_whole(side, octets + purge)
            side.broker.run()
            for consumer in (1, 2):
                side.give(consumer, encoded("basic_ack", 1, 0, True) if number % 3 else encoded("basic_nack", 1, 0, True, True))
            side.broker.run()
            answers.append((last_confirms(said(side, 0)), said(side, 1), said(side, 2), held(side)))
        assert answers[0] == answers[1], (seed, number)
    by_python, in_c = [frames[side.broker] for side in sides]
    assert in_c < by_python, "ingest took nothing"
    for side in sides:
        for queue in list(side.broker.queues.values()):
            side.broker.topology.drop_queue(queue)
        assert side.broker.tables.identities.left == places and side.broker.tables.identities.values == 0


def test_a_value_that_comes_twice_in_one_piece_is_taken_in_c(monkeypatch):
    """A message that replaces one which the log has not seen yet waits until it has, and no frame goes through Python for it."""
    side = prepared(c_accel.Engine, True)
    frames = []
    one_frame = session.Session.one_frame
    monkeypatch.setattr(session.Session, "one_frame", lambda taken: frames.append(1) or one_frame(taken))
    given = {"delivery_mode": 2, "headers": {"k": "v"}}
    give_whole(side, content(1, "", "two", b"0", given))
    del frames[:]
    give_whole(side, b"".join(content(1, "", "two", b"x" * number, given) for number in range(2, 8)))
    assert frames == [] and held(side)[0]["two"] == [7]
    side.broker.run()
    assert last_confirms(said(side, 0)) == {"basic_ack": 7}


def test_values_of_messages_that_are_gone_are_forgotten_in_c():
    """`Latest` stays at about the size of its queue: values from the begin, the middle and the end of the list go."""
    side = prepared(c_accel.Engine, False, identity_count_max=1000)
    latest = side.broker.queues["two"].rules.features[-1].latest
    assert latest is not None
    for number in range(300):
        side.give(0, content(1, "", "two", b"x", {"headers": {"k": "w%d" % number}}))
        assert said(side, 0)
        assert len(latest) <= 2 * 7 + 16
        for value in (number, number - 5):
            assert value < 0 or latest.newest(latest.key_of("w%d" % value)) is not None
    assert latest.table.fresh <= 2 * 7 + 17


def test_what_0_10_publishes_without_c_is_remembered_and_replaced_too(monkeypatch):
    """Its hot path is none of C's: queues whose rules C keeps take no publish from it unread."""
    monkeypatch.setattr(engine, "chosen", c_accel.Engine)
    broker = peer_0_10.new_broker()
    peer = peer_0_10.Peer(broker)
    assert broker.tables.engine.name == "C"
    for name, argument, given in (("latest", "x-last-value-key", "k"), ("ids", "x-deduplication", 100), ("groups", "x-group-key", "k")):
        peer.do("queue_declare", queue=name, arguments={argument: given})
        for number in range(4):
            header = {"application_headers": {"k": "v"}, "message_id": b"0123456789abcdef"}
            peer.publish(b"%d" % number, key=name, header=header)
    assert [broker.queues[name].message_count() for name in ("latest", "ids", "groups")] == [1, 1, 4]


@pytest.mark.parametrize("durable", (False, True))
def test_c_keeps_the_address_of_no_view(monkeypatch, durable):
    """The garbage collector clears a view before what hangs on it: in CPython before 3.11.9 and 3.12.3 that ends the process (gh-77894).
    What is exported cannot be released: no view is, with queues that remember ids and values, a stream, a log and a line."""
    others = {id(each): each for each in gc.get_objects() if isinstance(each, memoryview)}  # held, so that no new one has an id of these
    side = prepared(c_accel.Engine, durable, identity_count_max=100)
    side.give(0, encoded("queue_declare", 1, 0, "kept", False, durable, False, False, False, {"x-queue-type": "stream"} if durable else {}))
    answered(side)
    for name in ("kept", "one", "two", "other"):
        side.give(0, content(1, "", name, b"x", {"headers": {"k": "v"}, "message_id": "m"}))
        side.broker.run()
    monkeypatch.setattr(stuffing, "chosen", framing.Framing)
    line = [end(100, frame.FrameChecks(True)) for end in (frame.FrameReader, frame.FrameWriter)]
    views = [each for each in gc.get_objects() if isinstance(each, memoryview) and id(each) not in others]
    assert len(views) > 10 and all(any(each.octets is view for view in views) for each in line)
    exported = 0
    for view in views:
        try:
            view.release()
        except BufferError:
            exported += 1
    assert exported == 0
