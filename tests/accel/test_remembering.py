"""x-deduplication with ids in C's memory: what queues keep and count is the same as in plain Python, whoever looks an id up."""

import random

import pytest
from peer import content, encoded
from test_homes import said
from test_same import Side

from leveret import c_accel
from leveret.core.amqp_0_9 import session
from leveret.core.broker import engine
from leveret.core.queue.identities import pool_of

FORMS = (engine.Plain, c_accel.Engine)
QUEUES = (("few", {"x-deduplication": 3}), ("many", {"x-deduplication": 1000, "x-max-length": 30}), ("none", {}))
IDS = [None, "", "\u00e4", "i" * 90] + ["id%d" % number for number in range(40)]


def prepared(form, **limits):
    """A side with a publisher in confirm mode, and these queues bound to one exchange."""
    side = Side(form, **limits)
    side.connect(0)
    side.give(0, encoded("confirm_select", 1, False))
    for name, arguments in QUEUES:
        side.give(0, encoded("queue_declare", 1, 0, name, False, False, False, False, False, arguments))
        side.give(0, encoded("queue_bind", 1, 0, name, "amq.fanout", "", False, {}))
    side.take(0, 1 << 20)
    return side


def held(side):
    """The bodies' sizes in each queue, how many ids have places, and what was counted."""
    broker, queues = side.broker, side.body_sizes()
    return queues, pool_of(broker.tables).left, broker.counters["deduplicated"], broker.counters["published"]


# An odd number: the two queues never remember equally many when one has to make way.
@pytest.mark.parametrize("places", (7, 21, 5000))
def test_ids_are_remembered_the_same_in_both_forms(monkeypatch, places):
    """Windows that fill, a pool that is empty, ids of any size, bodies that come frame by frame, one message for several queues."""
    random_ = random.Random(random.randrange(1 << 30))
    sides = [prepared(form, identity_count_max=places) for form in FORMS]
    frames = {side.broker: 0 for side in sides}
    one_frame = session.Session.one_frame

    def counting(taken):
        frames[taken.broker] += 1
        return one_frame(taken)

    monkeypatch.setattr(session.Session, "one_frame", counting)
    for number in range(200):
        identity = random_.choice(IDS)
        exchange, key = random_.choice((("", "few"), ("", "many"), ("amq.fanout", "")))
        given = {} if identity is None else {"message_id": identity, "headers": {"a": 1}, "correlation_id": "c"}
        octets = content(1, exchange, key, bytes(number), given, False, random_.choice((4096, 4096, 100)))
        answers = []
        for side in sides:
            side.give(0, octets)
            side.broker.run()
            answers.append((said(side, 0), held(side)))
        assert answers[0] == answers[1]
        if random_.random() < 0.1:
            name = random_.choice(("few", "none"))
            for side in sides:
                side.give(0, encoded("queue_purge", 1, 0, name, True))
    by_python, in_c = [frames[side.broker] for side in sides]
    assert in_c < by_python, "ingest took nothing"
    for side in sides:
        for queue in list(side.broker.queues.values()):
            side.broker.topology.drop_queue(queue)
        assert side.broker.tables.identities.left == places


def test_an_id_forgotten_is_new_again():
    """A chain of the table loses one of its middle; the place is used again."""
    side = prepared(c_accel.Engine)
    recent = side.broker.queues["few"].rules.features[0].recent
    for number in range(2000):
        if len(recent) == 3:
            recent.forget_oldest()
        key = recent.key_of("id%d" % number)
        assert key not in recent
        recent.add(key, 0)
        assert key in recent and (number < 3 or recent.key_of("id%d" % (number - 3)) not in recent)
    assert recent.table.fresh == 3
