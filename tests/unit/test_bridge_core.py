"""What a bridge decides (core/bridge_*.py): marks and templates, ranges, buckets, and the mover's laws (core/DESIGN.md, the bridge)."""

from leveret.core.amqp_0_9 import properties
from leveret.core.amqp_0_9.bridge_marks import Marks, Template
from leveret.core.bridge.bucket import Bucket
from leveret.core.bridge.mover import LIVE, REPLAY, Delivery, Mover
from leveret.core.bridge.ranges import Ranges
from leveret.core.exchange import chance


class Chance:
    """The same numbers on both interpreters."""

    def __init__(self, seed):
        self.seed = seed
        self.count = 0

    def below(self, bound):
        self.count += 1
        return chance.number(self.seed, self.count) % bound


def headers_of(octets):
    return properties.decode(octets, 0, len(octets)).get("headers")


def fails(action, *arguments, **named):
    try:
        action(*arguments, **named)
    except ValueError as error:
        return str(error)
    raise AssertionError("it did not fail")


# Marks


def test_a_message_gets_gateway_sequence_and_hops_and_keeps_everything_else():
    marks = Marks("gw7")
    for given in ({}, {"message_id": "m", "priority": 3}, {"headers": {"a": 1, "t": ("T", 5)}, "app_id": "x"}, {"content_type": "x-gate"}):
        octets = properties.encode(given)
        after = marks.put(octets, 1 << 40, b"", b"k")
        found = properties.decode(after, 0, len(after))
        headers = found.pop("headers")
        expected = dict(given)
        expected_headers = dict(expected.pop("headers", {}))
        expected_headers.update({"x-gateway": "gw7", "x-sequence": 1 << 40, "x-hops": 1})
        assert found == expected and headers == expected_headers, (found, headers)


def test_a_message_from_a_gateway_below_keeps_its_place_and_counts_its_hops():
    first = Marks("below").put(properties.encode({"headers": {"a": "b"}}), 5, b"", b"k")
    second = Marks("above").put(first, 99, b"", b"k")
    assert headers_of(second) == {"a": "b", "x-gateway": "below", "x-sequence": 5, "x-hops": 2}


def test_a_message_bears_the_time_at_which_the_first_gateway_got_it():
    """core/SPEC.md, marks of a bridge: x-arrived; the property timestamp and other headers stay, and so does what a gateway below said."""
    arrived = 1790000000
    for marks in (Marks("gw"), Marks("gw", headers={"from": "{exchange}"}), Marks("gw", header_prefix="p-")):
        octets = properties.encode({"timestamp": 7, "headers": {"a": 1}})
        first = marks.put(octets, 5, b"ex", b"k", arrived)
        assert headers_of(first)["x-arrived"] == ("T", arrived)
        assert properties.decode(first, 0, len(first))["timestamp"] == 7
        assert headers_of(marks.put(first, 6, b"ex", b"k", arrived + 100))["x-arrived"] == ("T", arrived)
        assert "x-arrived" not in headers_of(marks.put(octets, 5, b"ex", b"k"))
    mine = properties.encode({"headers": {"x-arrived": "at noon"}})
    assert headers_of(Marks("gw").put(mine, 1, b"", b"k", arrived))["x-arrived"] == "at noon"
    assert "cannot be set" in fails(Marks, "gw", None, {"x-arrived": "1"})


def test_a_circle_is_cut():
    marks = Marks("gw", hops_max=3)
    octets = properties.encode({})
    for _ in range(3):
        octets = marks.put(octets, 1, b"", b"k")
        assert octets is not None
    assert marks.put(octets, 1, b"", b"k") is None


def test_a_hops_header_that_is_none_counts_as_none():
    for hops in ("many", -4, None, 1.5):
        octets = Marks("gw").put(properties.encode({"headers": {"x-hops": hops}}), 1, b"", b"k")
        assert headers_of(octets)["x-hops"] == 1


def test_templates():
    fill = Template("site.{gateway}.{exchange}/{2}-{9}.{key}").fill
    assert fill(b"gw", b"ex", b"a.b.c") == b"site.gw.ex/b-.a.b.c"
    assert Template("").fill(b"", b"", b"a") == b"" and Template("{key}").fill(b"", b"", b"\xff") == b"\xff"
    for text in ("{", "{nonsense}", "a{key", "{0}", "{-1}"):
        assert "template" in fails(Template, text)


def test_routing_key_and_headers_by_template_and_prefix():
    marks = Marks("gw", "up.{key}", {"from": "{exchange}", "word": "{1}"}, "local-")
    octets = marks.put(properties.encode({"headers": {"a": 1, "word": "old"}, "type": "t"}), 7, b"ex", b"k.l")
    assert properties.decode(octets, 0, len(octets)) == {
        "type": "t",
        "headers": {"local-a": 1, "local-word": "old", "from": "ex", "word": "k", "x-gateway": "gw", "x-sequence": 7, "x-hops": 1},
    }
    assert marks.key(b"ex", b"k.l") == b"up.k.l" and marks.key(b"", b"k" * 252) == b"up." + b"k" * 252
    assert marks.key(b"", b"k" * 253) is None
    assert "cannot be set" in fails(Marks, "gw", None, {"x-sequence": "1"})


# Ranges and buckets


def test_ranges_are_a_set():
    chance = Chance(b"ranges")
    ranges = Ranges(1000)
    plain = set()
    for _ in range(2000):
        offset = chance.below(300)
        ranges.add(offset)
        plain.add(offset)
    for offset in range(-1, 302):
        assert ranges.has(offset) == (offset in plain)
    ranges.forget_below(150)
    assert [offset for offset in range(302) if ranges.has(offset)] == sorted([offset for offset in plain if offset >= 150])


def test_ranges_have_no_empty_range_wherever_they_begin_anew():
    """An empty one would count among the most that are kept, and cost another its offsets."""
    for offset, left in (
        (9, [[10, 12], [20, 21]]),
        (10, [[10, 12], [20, 21]]),
        (11, [[11, 12], [20, 21]]),
        (12, [[20, 21]]),
        (20, [[20, 21]]),
        (21, []),
        (99, []),
    ):
        ranges = Ranges()
        for each in (10, 11, 20):
            ranges.add(each)
        ranges.forget_below(offset)
        assert ranges.ranges == left, offset


def test_ranges_join_those_between_which_an_offset_was_missing():
    ranges = Ranges()
    for offset, left in (
        (5, [[5, 6]]),
        (5, [[5, 6]]),
        (7, [[5, 6], [7, 8]]),
        (6, [[5, 8]]),
        (4, [[4, 8]]),
        (8, [[4, 9]]),
        (2, [[2, 3], [4, 9]]),
        (8, [[2, 3], [4, 9]]),
        (3, [[2, 9]]),
    ):
        ranges.add(offset)
        assert ranges.ranges == left, offset


def test_ranges_forget_rather_than_grow():
    ranges = Ranges(3)
    for offset in (0, 1, 2, 10, 11, 20, 30, 31):
        ranges.add(offset)
    assert ranges.ranges == [[0, 3], [10, 12], [30, 32]] and not ranges.has(20)


def test_a_bucket_gives_its_rate():
    bucket = Bucket(100)
    spent = 0
    for now in range(0, 10000, 7):
        while bucket.allows(now):
            bucket.spend(1)
            spent += 1
    assert 1090 <= spent <= 1101, spent  # a second's worth at once, and then the rate
    assert Bucket(0).allows(0)


def test_a_bucket_lets_one_large_message_through_and_then_waits_for_it():
    bucket = Bucket(1000)
    assert bucket.allows(0)
    bucket.spend(5000)
    assert not bucket.allows(3999) and bucket.allows(4002)


# The mover


class Upstream:
    """Takes what it is given while `room` lasts."""

    def __init__(self, mover):
        self.mover = mover
        self.sent = []
        self.room = 1 << 30
        self.published = 0

    def put(self, record):
        if self.room == 0:
            return 0
        self.room -= 1
        self.published += 1
        self.sent.append(record.number)
        return self.published


def new_mover(dense=True, **options):
    mover = Mover(Marks("gw"), dense, **options)
    return mover, Upstream(mover)


def give(mover, numbers, lane=REPLAY, tag=1, each=1):
    """One delivery for every `each` numbers."""
    numbers = list(numbers)
    deliveries = []
    for at in range(0, len(numbers), each):
        part = numbers[at : at + each]
        deliveries.append(Delivery(1, tag + at // each, 1, part[0], len(part)))
        for number in part:
            mover.record(lane, number if mover.dense else None, b"", b"k", b"\x00\x00", b"body %d" % number, deliveries[-1])
    return deliveries


def settled(mover):
    tags = [delivery.tag for delivery in mover.settled]
    mover.settled = []
    return tags


def test_nothing_is_settled_before_its_confirm():
    mover, upstream = new_mover()
    give(mover, range(10), each=5)
    assert mover.publish(0, upstream.put) and upstream.sent == list(range(10)) and settled(mover) == []
    for number in (1, 2, 3, 4, 6, 7, 8, 9, 10):
        mover.confirmed(number, True, 0)
    assert settled(mover) == [2]
    mover.confirmed(5, True, 0)
    assert settled(mover) == [1] and mover.records == {}


def test_what_comes_twice_is_sent_once_and_settled_twice():
    mover, upstream = new_mover()
    give(mover, range(4), tag=1)
    mover.publish(0, upstream.put)
    give(mover, range(4), tag=11)  # in flight
    mover.confirmed(1, True, 0)
    assert settled(mover) == [1, 11]
    give(mover, range(4), tag=21)  # one is done, three are in flight
    assert settled(mover) == [21]
    for number in (2, 3, 4):
        mover.confirmed(number, True, 0)
    assert sorted(settled(mover)) == [2, 3, 4, 12, 13, 14, 22, 23, 24]
    assert not mover.publish(0, upstream.put) and upstream.sent == [0, 1, 2, 3]


def test_a_lost_upstream_has_the_unconfirmed_sent_again_in_order():
    mover, upstream = new_mover()
    give(mover, range(6))
    upstream.room = 4
    mover.publish(0, upstream.put)
    mover.confirmed(2, True, 0)
    mover.target_lost()
    upstream.room = 100
    mover.publish(0, upstream.put)
    assert upstream.sent == [0, 1, 2, 3, 0, 2, 3, 4, 5]


def test_live_goes_ahead_of_a_replay_that_obeys_its_bucket():
    mover, upstream = new_mover(replay_messages=10)
    mover.live = True
    give(mover, range(100))
    give(mover, range(1000, 1005), LIVE)
    mover.publish(0, upstream.put)
    assert upstream.sent == list(range(1000, 1005)) + list(range(10))
    give(mover, [1005], LIVE, tag=500)
    mover.publish(500, upstream.put)
    assert upstream.sent[15:] == [1005] + list(range(10, 15))
    mover.live = False
    mover.publish(500, upstream.put)
    assert upstream.sent[21:] == list(range(15, 100))


def test_a_refused_message_does_not_block_the_others_and_goes_to_the_side_at_last():
    mover, upstream = new_mover(attempts=3, retry_ms=1000)
    give(mover, range(3))
    mover.publish(0, upstream.put)
    now = 0
    for number, positive in ((1, False), (2, True), (3, True)):
        mover.confirmed(number, positive, now)
    assert settled(mover) == [2, 3] and mover.parting == []
    for pause in (1000, 2000):
        mover.publish(now + pause - 1, upstream.put)
        before = upstream.published
        now += pause
        mover.publish(now, upstream.put)
        assert upstream.published == before + 1
        mover.confirmed(upstream.published, False, now)
    assert [record.number for record in mover.parting] == [0] and settled(mover) == [] and mover.counters["nacked"] == 3
    mover.parted(mover.parting.pop())
    assert settled(mover) == [1] and mover.counters["refused"] == 1


class Returned:
    reply_code = 312
    reply_text = "NO_ROUTE"
    routing_key = "k"
    routing_key_octets = b"k"

    def __init__(self, body, octets):
        self.body = body
        self.properties_octets = octets
        self.properties = properties.decode(octets, 0, len(octets))


def test_a_returned_message_is_told_by_its_place_even_when_its_octets_were_written_anew():
    mover, upstream = new_mover()
    first = Delivery(1, 1, 1, 0, 2)
    for number in (0, 1):
        mover.record(REPLAY, number, b"", b"k", b"\x00\x00", b"same", first)
    mover.publish(0, upstream.put)
    octets = properties.encode({"priority": 1, "headers": {"x-hops": 1, "x-sequence": ("l", 1), "x-gateway": "gw"}})
    mover.returned(Returned(b"same", octets))
    mover.confirmed(1, True, 0)
    mover.confirmed(2, True, 0)
    assert [record.number for record in mover.retry] == [1] and mover.counters["bridged"] == 1


def test_too_many_hops_and_a_key_that_is_too_long_are_parted_with_at_once():
    mover = Mover(Marks("gw", "x" * 250 + "{key}", hops_max=2), True)
    upstream = Upstream(mover)
    delivery = Delivery(1, 1, 1, 0, 3)
    mover.record(REPLAY, 0, b"", b"k" * 10, b"\x00\x00", b"", delivery)
    mover.record(REPLAY, 1, b"", b"k", properties.encode({"headers": {"x-hops": 2}}), b"", delivery)
    mover.record(REPLAY, 2, b"", b"k", b"\x00\x00", b"", delivery)
    mover.publish(0, upstream.put)
    assert upstream.sent == [2]
    assert [record.reason for record in mover.parting] == ["its routing key would be longer than 255 octets", "it has passed 2 bridges"]


def test_a_lost_source_without_numbers_forgets_what_is_not_in_flight():
    mover, upstream = new_mover(dense=False)
    give(mover, range(5))
    upstream.room = 2
    mover.publish(0, upstream.put)
    mover.source_lost()
    give(mover, range(5), tag=11)
    upstream.room = 100
    mover.publish(0, upstream.put)
    for number in range(1, 8):
        mover.confirmed(number, True, 0)
    assert settled(mover) == [11, 12, 13, 14, 15] and mover.counters["bridged"] == 7


def test_random_faults_lose_nothing_and_settle_only_what_is_confirmed():
    chance = Chance(b"mover")
    for _ in range(60):
        mover, upstream = new_mover(attempts=0)
        arrived, confirmed, waiting, tags = 0, set(), {}, {}
        low, tag, now, seen = 0, 0, 0, 0
        while len(confirmed) < 60:
            now += 500
            if arrived < 60 and chance.below(2):
                size = min(1 + chance.below(6), 60 - arrived)
                tag += 1
                tags[tag] = range(arrived, arrived + size)
                give(mover, range(arrived, arrived + size), chance.below(2), tag, size)
                arrived += size
            upstream.room = chance.below(8)
            mover.publish(now, upstream.put)
            for number in upstream.sent[seen:]:
                waiting[seen + 1] = number
                seen += 1
            for number in sorted(waiting):
                if chance.below(3) == 0:
                    positive = chance.below(4) != 0
                    record = waiting.pop(number)
                    mover.confirmed(number, positive, now)
                    if positive:
                        confirmed.add(record)
            for each in settled(mover):
                assert not [number for number in tags.pop(each) if number not in confirmed]
            event = chance.below(12)
            if event == 0:
                waiting = {}
                mover.target_lost()
            elif event == 1:  # everything that is not settled is delivered again
                mover.source_lost()
                low = min([tags[each][0] for each in tags]) if tags else arrived
                tags = {}
                tag += 1
                if low < arrived:
                    tags[tag] = range(low, arrived)
                    give(mover, range(low, arrived), REPLAY, tag, arrived - low)
        assert confirmed == set(range(60)) and not mover.records
