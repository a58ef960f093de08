"""Settling in any order (0-9-1 section 1.8.3.13): the same tables in all forms, and a cost that does not grow with what is unsettled."""

import random

import pytest
from peer import content, encoded
from test_same import Pair

from leveret.core.limits import Limits, tag_slots
from leveret.core.memory import hot, layout

COUNT = 300
ROOM = {"message_count_max": 2048, "entry_count_max": 2048, "arena_size": 1 << 17, "receive_buffer_size": 8192, "send_buffer_size": 65536}


def prepared():
    """Two channels that read one queue of COUNT messages, all delivered: two halves, their tags taken in turn."""
    pair = Pair(**ROOM)
    pair.both(lambda side: side.connect(0))
    pair.give(0, encoded("queue_declare", 1, 0, "q", False, False, False, False, True, {}))
    pair.give(0, encoded("channel_open", 2, ""))
    for number in (1, 2):
        pair.give(0, encoded("basic_consume", number, 0, "q", "c", False, False, False, True, {}))
    for _ in range(COUNT):
        pair.give(0, content(1, "", "q", b"x"))
        pair.both(lambda side: side.broker.run())
        pair.both(lambda side: side.take(0, 1 << 20))
    return pair


def unsettled(pair):
    return pair.both(lambda side: side.broker.queues["q"].unsettled_count())


def fields(side, field):
    """A field of the records of both channels."""
    return [side.broker.tables.channels[number * layout.CHANNEL_WIDTH + field] for number in (0, 1)]


@pytest.mark.parametrize("order", ("forward", "backward", "random", "from the middle"))
@pytest.mark.parametrize("name", ("basic_ack", "basic_nack", "basic_reject"))
def test_any_order_settles_the_same_in_all_forms(name, order):
    pair = prepared()
    assert unsettled(pair) == COUNT
    held = pair.both(lambda side: fields(side, layout.CHANNEL_UNSETTLED))
    tags = [(number + 1, tag) for number in (0, 1) for tag in range(1, held[number] + 1)]
    if order == "backward":
        tags.reverse()
    elif order == "random":
        random.Random(5).shuffle(tags)
    elif order == "from the middle":
        tags = tags[COUNT // 2 :] + tags[: COUNT // 2]
    for at, (channel, tag) in enumerate(tags):
        if name == "basic_ack":
            octets = encoded(name, channel, tag, at % 40 == 39)  # now and then all up to it; those are then unknown: the channel stays
            if at % 40 == 39:
                octets = b""
        else:
            octets = encoded(name, channel, tag, at % 2 == 0) if name == "basic_reject" else encoded(name, channel, tag, False, at % 3 == 0)
        pair.give(0, octets)
    left = COUNT // 40 if name == "basic_ack" else 0
    assert unsettled(pair) == left
    if left:
        pair.give(0, encoded("basic_ack", 1, 0, True) + encoded("basic_ack", 2, 0, True))
        assert unsettled(pair) == 0
    indexed = pair.both(lambda side: fields(side, layout.CHANNEL_INDEXED))
    assert indexed == [layout.NONE, layout.NONE]
    assert pair.both(lambda side: any(side.broker.tables.channels[side.broker.tables.state[layout.STATE_TAGS] :][:1024])) is False


def test_an_unknown_tag_is_refused_whatever_is_in_the_index():
    """406 (RabbitMQ): a tag that was settled in the middle, and one that was never given."""
    for unknown in (100, 5000):
        pair = prepared()
        pair.give(0, encoded("basic_ack", 1, 100, False) + encoded("basic_ack", 1, 90, False))
        pair.give(0, encoded("basic_ack", 1, unknown, False))
        octets = pair.both(lambda side: side.take(0, 1 << 16))
        assert b"PRECONDITION_FAILED - unknown delivery tag %d" % unknown in octets


class Counting:
    """A table that counts how often it is read."""

    def __init__(self, table):
        self.table = table
        self.reads = 0

    def __getitem__(self, place):
        self.reads += 1
        return self.table[place]

    def __setitem__(self, place, value):
        self.table[place] = value


def steps(count):
    """Reads of entries to find each of `count` deliveries once, in random order."""
    limits = Limits(entry_count_max=8192, message_count_max=8192, arena_size=1 << 26, channel_count_max=8)
    state = [0] * layout.STATE_WIDTH
    state[layout.STATE_TAGS] = layout.CHANNEL_WIDTH
    state[layout.STATE_TAG_MASK] = tag_slots(limits) - 1
    entries = Counting([0] * (layout.ENTRY_WIDTH * count))
    channels = [layout.NONE] * layout.CHANNEL_WIDTH + [0] * (tag_slots(limits) + count)
    queues, consumers = [0] * layout.QUEUE_WIDTH, []
    channels[layout.CHANNEL_TAG] = channels[layout.CHANNEL_UNSETTLED] = 0
    for number in range(count):
        channels[layout.CHANNEL_TAG] += 1
        hot.hold(entries, queues, channels, 0, number * layout.ENTRY_WIDTH, layout.NONE)
    entries.reads = 0
    tags = list(range(1, count + 1))
    random.Random(3).shuffle(tags)
    for tag in tags:
        entry = hot.find_tag(entries, channels, state, 0, tag)
        assert entry == (tag - 1) * layout.ENTRY_WIDTH
        hot.unhold(entries, queues, channels, consumers, state, 0, entry)
    return entries.reads


def test_settling_in_random_order_costs_the_same_however_much_is_unsettled():
    few, many = steps(1000), steps(4000)
    assert many < 5 * few, (few, many)
    assert many < 40 * 4000
