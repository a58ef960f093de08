"""basic.get that C answers (0-9-1 section 1.8.3.10): the same octets and tables as from plain Python after every step, in any order with
publishes, confirms, settlements, consumers, lifetimes and small windows of the peer; and what C must leave to Python."""

import random

import pytest
from peer import Peer, content, encoded
from test_letters_same import new_side
from test_same import PROPERTIES, SEEDS, Pair, c_form

from leveret import c_accel
from leveret.c_accel import amqp_0_9
from leveret.core.amqp_0_9 import verbs

__all__ = ["c_form"]  # a fixture

QUEUES = (
    ("plain", {}),
    ("brief", {"x-message-ttl": 30}),
    ("gone", {"x-message-ttl": 0}),
    ("few", {"x-max-length": 3}),
    ("ranked", {"x-max-priority": 3}),
    ("dead", {"x-message-ttl": 20, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "plain"}),
    ("expires", {"x-expires": 10000}),
)
NAMES = [name for name, _ in QUEUES]


@pytest.fixture
def asked(monkeypatch):
    """How many basic.get came to Python, of which form."""
    counts = {}
    get = verbs.basic_get

    def counted(session, *given):
        name = session.broker.tables.engine.name
        counts[name] = counts.get(name, 0) + 1
        return get(session, *given)

    monkeypatch.setattr(verbs, "basic_get", counted)
    return counts


def getting(durable=False, **limits):
    """Two connections with a channel each, and the second one's third, which is transactional."""
    pair = Pair(durable=durable, **limits)
    for number in (0, 1):
        pair.both(lambda side, number=number: side.connect(number))
    ask(pair, 0, *[encoded("queue_declare", 1, 0, name, False, durable, False, False, False, given) for name, given in QUEUES])
    ask(pair, 0, encoded("channel_open", 2, ""), encoded("confirm_select", 2, False))
    ask(pair, 1, encoded("channel_open", 2, ""), encoded("channel_open", 3, ""), encoded("tx_select", 3))
    return pair


def ask(pair, number, *frames, most=100000):
    """Give frames in one piece; what was answered."""
    pair.give(number, b"".join(frames))
    pair.both(lambda side: side.broker.run())
    return pair.both(lambda side: side.take(number, most))


def a_get(name, no_ack=False, channel=1):
    return encoded("basic_get", channel, 0, name, no_ack)


def a_step(pair, random_):
    kind = random_.randrange(12)
    name = random_.choice(NAMES)
    number = random_.randrange(2)
    most = random_.choice((0, 50, 400, 100000))
    if kind < 4:
        size = random_.choice((0, 1, 100, 255, 256, 257, 700, 5000))
        sent = [
            content(random_.choice((1, 2)), "", name, b"b" * size, random_.choice(PROPERTIES[:10])) for _ in range(random_.choice((1, 5)))
        ]
        ask(pair, 0, *sent, most=most)
    elif kind < 9:
        gets = [
            a_get(random_.choice((name, name, "plain")), random_.random() < 0.4, random_.choice((1, 1, 2)))
            for _ in range(random_.choice((1, 3, 9)))
        ]
        if random_.random() < 0.3:
            gets.insert(1, content(2, "", name, b"between"))
        ask(pair, number, *gets, most=most)
    elif kind == 9:
        method = random_.choice(("basic_ack", "basic_nack"))
        pair.give(number, encoded(method, 1, 0, True) if method == "basic_ack" else encoded(method, 1, 0, True, random_.random() < 0.7))
    elif kind == 10:
        tag = "c%d" % random_.randrange(2)
        if random_.random() < 0.4:
            ask(pair, 1, encoded("basic_consume", 3, 0, name, tag, False, True, False, False, {}), encoded("basic_cancel", 3, tag, False))
        else:
            ask(pair, 1, a_get(name, True, 3), content(3, "", name, b"in a transaction"), encoded("tx_commit", 3))
    else:
        pair.now = getattr(pair, "now", 1000) + random_.choice((1, 7, 40))
        pair.tick(pair.now)


@pytest.mark.parametrize("durable", (False, True))
@pytest.mark.parametrize("seed", range(max(SEEDS // 8, 1)))
def test_the_same_in_any_order(seed, durable, asked):
    pair = getting(durable)
    pair.tick(1000)
    random_ = random.Random(seed)
    for _ in range(150):
        a_step(pair, random_)
    assert asked["C"] < asked["plain Python"]


def test_python_is_asked_once_for_a_queue(asked):
    """With messages, without any, with and without acknowledgement."""
    pair = getting()
    for no_ack in (False, True, False):
        ask(pair, 0, *[content(1, "", "plain", b"%d" % number) for number in range(20)])
        for _ in range(25):
            ask(pair, 1, a_get("plain", no_ack))
    assert asked == {"plain Python": 75, "C": 1}
    assert pair.sides[1].broker.queues["plain"].message_count() == 0
    pair.give(1, encoded("basic_ack", 1, 40, True))


CHANGES = (
    lambda pair: ask(pair, 0, encoded("queue_delete", 1, 0, "plain", False, False, False)),
    lambda pair: ask(pair, 1, encoded("basic_consume", 2, 0, "plain", "c", False, True, False, False, {})),
)


@pytest.mark.parametrize("change", CHANGES)
def test_what_c_knows_of_a_queue_is_forgotten_when_it_changes(change, asked):
    """A queue that was deleted is not found (section 1.8.3.10), and a consumer goes first."""
    pair = getting()
    for _ in range(3):
        ask(pair, 1, a_get("plain"))
    assert asked["C"] == 1
    change(pair)
    ask(pair, 0, content(1, "", "ranked", b"x"))
    ask(pair, 1, a_get("plain"))
    assert asked["C"] == 2


def test_a_queue_that_may_be_read_no_more_is_refused():
    """RabbitMQ's access control, for the next method of each session."""
    broker, _ = new_side(c_accel.Engine, False)
    peer = Peer(broker)
    peer.declare("q")
    for _ in range(3):
        peer.give(a_get("q"))
        assert peer.frames()[0][0] == "basic_get_empty"
    peer.connection.user.permit((".*", ".*", "none"))
    peer.give(a_get("q"))
    (name, _, arguments), *_ = peer.frames()
    assert name == "channel_close" and arguments[0] == 403


def test_confirms_of_one_piece_go_before_the_reply():
    """RabbitMQ's order: what a client has published before it asks is confirmed before the answer."""
    pair = getting()
    for _ in range(3):
        ask(pair, 0, content(2, "", "plain", b"x"), a_get("plain", True, 2), content(2, "", "plain", b"y"), a_get("plain", True, 2))


def test_a_message_is_in_the_log_before_it_is_got():
    """One of the same piece, persistent and without confirms."""
    pair = getting(True)
    for _ in range(6):
        ask(pair, 0, content(1, "", "plain", b"x", {"delivery_mode": 2}), a_get("plain", True), a_get("plain"))


def test_names_beyond_those_that_are_kept(asked):
    pair = getting()
    for _ in range(5):
        for name in NAMES[:3]:
            ask(pair, 1, a_get(name))
    assert asked["C"] == 3
    more = ["m%d" % number for number in range(amqp_0_9.GOTTEN_MAX + 1)] + ["n" * 255]
    for name in more:
        ask(pair, 0, encoded("queue_declare", 1, 0, name, False, False, False, False, False, {}), content(1, "", name, name.encode()))
    for _ in range(3):
        for name in more:
            ask(pair, 1, a_get(name, True), a_get(name[:-1]) if name[:-1] in more else b"")
