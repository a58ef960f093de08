"""x-group-key with deliveries in C (c_accel/groups.c): each consumer gets what plain Python gives it, in the same order, whoever reads
the group. core/queue/features/groups.py has the rule."""

import random

import pytest
from peer import content, encoded, split
from test_homes import said
from test_latest import answered, give_whole
from test_same import Side

from leveret import c_accel
from leveret.core.broker import engine
from leveret.core.memory import layout
from leveret.core.queue.features import groups

FORMS = (engine.Plain, c_accel.Engine)
PRIORITIES = (({}, {}, {}), ({"x-priority": 5}, {"x-priority": 5}, {}))
TEXTS = ["g%d" % number for number in range(6)]
ODD = [7, True, "\u00e4", b"g1", None, ["g1"], ""]


def prepared(form, priorities, durable):
    """A side with a queue with groups, a publisher and three consumers that get two to nine messages at a time. Their buffers have room for
    these: a consumer without has a message brought to the head all the same, and then it matters who is asked next, and in which form."""
    side = Side(form, durable, arena_size=1 << 20, message_count_max=2000, entry_count_max=4000, send_buffer_size=65536)
    for number in range(4):
        side.connect(number)
    side.give(0, encoded("queue_declare", 1, 0, "q", False, durable, False, False, False, {"x-group-key": "g"}))
    answered(side)
    for number, arguments in enumerate(priorities, 1):
        side.give(number, encoded("basic_qos", 1, 0, (2, 9, 4)[number - 1], False))
        side.give(number, encoded("basic_consume", 1, 0, "q", "c%d" % number, False, False, False, False, arguments))
        said(side, number)
    return side


def until_idle(side):
    """Rounds of the broker until no queue has a turn, then all octets go out, until none are left; what the consumers got. How much a
    round delivers differs between the forms, and is not to say who is read first."""
    octets = [b"", b"", b""]
    while True:
        for _ in range(200):
            side.broker.run()
            if not side.broker.has_active():
                break
        assert not side.broker.has_active(), "the broker does not come to an end"
        before = sum(map(len, octets))
        for at in range(3):
            while more := side.take(at + 1, 1 << 20):
                octets[at] += more
        if sum(map(len, octets)) == before:
            return [[frame for frame in split(each)[0] if frame[0] == "basic_deliver"] for each in octets]


def ready(side):
    """The positions of the ready messages, in their order."""
    tables, queue = side.broker.tables, side.broker.queues["q"]
    found, entry = [], queue.head()
    while entry != layout.NONE:
        found.append(tables.entries[entry + layout.ENTRY_POSITION])
        entry = tables.entries[entry + layout.ENTRY_NEXT]
    return found


@pytest.mark.parametrize("durable", (False, True))
@pytest.mark.parametrize("priorities", PRIORITIES)
@pytest.mark.parametrize("odd", (False, True))
def test_each_consumer_gets_the_same_in_both_forms(monkeypatch, priorities, durable, odd):
    """Publishes, acknowledgements and returns in any order, a purge, messages without a group and of groups that Python reads."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    draws = random.Random(seed)
    asked = {}
    bring = groups.Rule.bring

    def counting(rule, broker, queue, consumer):
        asked[broker] = asked.get(broker, 0) + 1
        return bring(rule, broker, queue, consumer)

    monkeypatch.setattr(groups.Rule, "bring", counting)
    sides = [prepared(form, priorities, durable) for form in FORMS]
    held = [set(), set(), set()]  # of each consumer: its tags
    for step in range(150):
        pieces, answers = [], b""  # one by one: who gets which depends on what is there, and a form reads more at once than the other
        for _ in range(draws.choice((0, 1, 12)) if sides[0].broker.queues["q"].message_count() < 100 else 0):
            value = draws.choice(ODD) if odd and draws.random() < 0.2 else draws.choice(TEXTS)
            given = {} if draws.random() < 0.05 else {"headers": {"a": 1, "g": value, "padding": "p" * draws.choice((1, 150))}}
            pieces.append(content(1, "", "q", b"x" * draws.choice((1, 400, 5000 if odd else 100)), given))
        if draws.random() < 0.03:
            pieces.append(encoded("queue_purge", 1, 0, "q", True))
        number = draws.randrange(3)
        tags = sorted(held[number])
        if tags:
            tag = draws.choice(tags)
            multiple, back = draws.random() < 0.3, draws.random() < 0.2
            answers = encoded("basic_nack", 1, tag, multiple, True) if back else encoded("basic_ack", 1, tag, multiple)
            held[number] -= {each for each in tags if each == tag or multiple and each < tag}
        seen = []
        for side in sides:
            got = []
            for piece in pieces:
                give_whole(side, piece)
                got.append(until_idle(side))
            side.give(number + 1, answers)
            got.append(until_idle(side))
            seen.append((got, ready(side), side.broker.queues["q"].unsettled_count()))
        assert seen[0] == seen[1], (seed, step)
        for got in seen[0][0]:
            for at in range(3):
                held[at] |= {frame[2][1] for frame in got[at]}
    by_python, in_c = [asked.get(side.broker, 0) for side in sides]
    assert by_python > 100 and (in_c == 0 if not odd else in_c < by_python), (seed, by_python, in_c)


def one_with_groups(**limits):
    """A side in C with a queue with groups, a publisher and one consumer without a limit."""
    side = Side(c_accel.Engine, message_count_max=2000, entry_count_max=4000, arena_size=1 << 20, **limits)
    side.connect(0)
    side.connect(1)
    side.give(0, encoded("queue_declare", 1, 0, "q", False, False, False, False, False, {"x-group-key": "g"}))
    answered(side)
    side.give(1, encoded("basic_consume", 1, 0, "q", "c", False, False, False, False, {}))
    said(side, 1)
    return side


def test_groups_whose_messages_are_settled_are_forgotten():
    """What C knows stays at about the groups that are somebody's: the others are found in passing, two with each delivery."""
    side = one_with_groups()
    owners = side.broker.queues["q"].rules.groups.owners
    for number in range(1000):
        side.give(0, content(1, "", "q", b"x", {"headers": {"g": "w%d" % number}}))
        side.broker.run()
        side.give(1, encoded("basic_ack", 1, 0, True))
        said(side, 1)
        assert len(owners) <= 3, number
    assert owners.table.fresh <= 4


def test_a_queue_of_the_same_name_and_place_begins_with_no_groups():
    """Another queue in the place of a deleted one, with another header: its messages are of the groups that this one names."""
    side = one_with_groups()
    for _ in range(3):
        side.give(0, content(1, "", "q", b"x", {"headers": {"g": "a", "h": "b"}}))
    side.broker.run()
    assert len([each for each in said(side, 1) if each[0] == "basic_deliver"]) == 3
    side.give(0, encoded("queue_delete", 1, 0, "q", False, False, False))
    answered(side)
    side.connect(2)
    side.give(0, encoded("queue_declare", 1, 0, "q", False, False, False, False, False, {"x-group-key": "h"}))
    answered(side)
    for number in (1, 2):
        side.give(number, encoded("basic_qos", 1, 0, 1, False))
        side.give(number, encoded("basic_consume", 1, 0, "q", "d", False, False, False, False, {}))
        said(side, number)
    for given in ({"g": "a", "h": "x"}, {"g": "b", "h": "y"}, {"g": "a", "h": "x"}):
        side.give(0, content(1, "", "q", b"x", {"headers": given}))
    side.broker.run()
    until = [[each[0] for each in said(side, number)].count("basic_deliver") for number in (1, 2)]
    assert until == [1, 1] and side.broker.queues["q"].message_count() == 1


def test_a_search_over_messages_of_others_costs_effort():
    """What a search passes over shortens the turn: deliveries behind 150 messages of a group that waits for its owner are fewer in one."""
    made = []
    for others in (0, 150):
        side = one_with_groups(send_buffer_size=65536)
        side.connect(2)
        side.give(1, encoded("basic_qos", 1, 0, 1, True))
        side.give(2, encoded("basic_qos", 1, 0, 500, False) + encoded("basic_consume", 1, 0, "q", "d", False, False, False, False, {}))
        said(side, 1), said(side, 2)
        for group in ["a"] * (1 + others):  # one for the first consumer, the others wait for it
            side.give(0, content(1, "", "q", b"x", {"headers": {"g": group}}))
            side.broker.run()
        octets = b"".join(content(1, "", "q", b"x", {"headers": {"g": "n%d" % number}}) for number in range(60))
        give_whole(side, octets)
        before = side.broker.queues["q"].message_count()
        side.broker.tables.engine.begin_round(1, 2048)
        assert side.broker.tables.engine.next_turn() == layout.NONE
        made.append(before - side.broker.queues["q"].message_count())
    assert made[0] == 60 and 5 <= made[1] <= 20, made
