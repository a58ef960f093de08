"""Lifetimes and ages count on a clock that does not jump, and end when they end (core/SPEC.md, lifetimes)."""

from memory_store import PERSISTENT, MemoryStore, bodies, durable_broker
from peer import Peer, content, encoded, new_broker

from leveret.core.broker.ages import FRAMES_MAX, Ages
from leveret.core.memory.layout import MASK
from leveret.core.stream.stream import EPOCH

YEAR = 365 * 86400
DAY = 86400
BEGIN = EPOCH + 6 * YEAR


class Clocks:
    """Both clocks of a broker."""

    def __init__(self, broker, seconds=BEGIN):
        self.broker = broker
        self.now_ms = broker.now
        self.seconds = seconds
        broker.tick(self.now_ms & MASK, int(self.seconds))

    def go(self, seconds):
        """Time passes, at most a day a step."""
        while seconds > 0:
            step = min(seconds, DAY)
            seconds -= step
            self.now_ms += int(step * 1000)
            self.seconds += step
            self.broker.tick(self.now_ms & MASK, int(self.seconds))
            self.broker.run()

    def jump(self, seconds):
        """The wall clock is set."""
        self.seconds += seconds
        self.go(0.2)


def test_a_clock_that_jumps_a_year_ahead_and_back_ends_no_lifetime_early_and_none_late():
    """x-message-ttl and expiration of more than three days, in both orders of the jumps; RabbitMQ counts Erlang's monotonic time."""
    for first in (YEAR, -YEAR):
        broker = new_broker()
        clocks = Clocks(broker)
        peer = Peer(broker)
        peer.declare("q", arguments={"x-message-ttl": 24 * DAY * 1000})
        peer.declare("own")
        peer.publish("q", b"x")
        peer.publish("own", b"x", given={"expiration": str(24 * DAY * 1000)})

        def counts(broker=broker):
            return [broker.queues[name].message_count() for name in ("q", "own")]

        clocks.jump(first)
        assert counts() == [1, 1]
        clocks.go(10 * DAY)
        clocks.jump(-first)
        clocks.go(14 * DAY - 10)
        assert counts() == [1, 1]
        clocks.go(15)
        assert counts() == [0, 0]


def test_a_jump_lets_no_message_of_a_stream_go_and_is_told_once():
    """x-max-age counts what the clocks agree on; a Raspberry Pi has no clock until NTP comes."""
    told = []
    broker = new_broker()
    broker.log = told.append
    clocks = Clocks(broker, EPOCH + 100)
    peer = Peer(broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream", "x-max-age": "7D"})
    peer.publish("s", b"0")
    stream = broker.queues["s"]
    clocks.jump(6 * YEAR)
    assert stream.message_count() == 1 and len(told) == 1 and "the clock went ahead by %d s" % (6 * YEAR) in told[0], told
    clocks.go(3 * DAY)
    peer.publish("s", b"1")
    clocks.jump(YEAR)
    peer.publish("s", b"2")
    clocks.jump(-YEAR)
    assert stream.message_count() == 3 and len(told) == 3 and "back" in told[2]
    clocks.go(4 * DAY - 20)
    assert stream.first_offset == 0
    clocks.go(40)
    assert stream.first_offset == 1, "a message of seven days"
    clocks.go(3 * DAY - 40)
    assert stream.first_offset == 1
    clocks.go(100)
    assert stream.message_count() == 0


def test_ages_of_a_stream_in_the_log_go_on_over_restarts_and_jumps():
    """A stop of at most a day is time, a longer one and a clock that is set back are none; what jumped in an earlier run is known."""
    store = MemoryStore()

    def start(seconds):
        """A broker whose wall clock says so at the start: (clocks, stream)."""
        broker, _ = durable_broker(store)
        clocks = Clocks(broker, seconds)
        return clocks, broker.queues.get("s")

    clocks, _ = start(EPOCH + 100)
    peer = Peer(clocks.broker)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream", "x-max-age": "7D"})
    peer.publish("s", b"0")
    clocks.jump(6 * YEAR)
    peer.publish("s", b"1")
    clocks.go(2)
    clocks, stream = start(clocks.seconds + 0.9 * DAY)
    clocks.go(1)
    assert (stream.first_offset, stream.next_offset()) == (0, 2)
    peer = Peer(clocks.broker)
    peer.publish("s", b"2")
    clocks.go(2)
    clocks, stream = start(clocks.seconds + YEAR)
    clocks.go(1)
    assert stream.first_offset == 0
    Peer(clocks.broker).publish("s", b"3")
    clocks.go(2)
    clocks, stream = start(EPOCH)
    Peer(clocks.broker).publish("s", b"4")
    clocks.go(6 * DAY)
    assert stream.first_offset == 0
    clocks.go(0.2 * DAY)
    assert stream.first_offset > 0, "0.9 days of a stop and 6.2 since then"
    assert bool(stream.message_count())


def test_delivery_times_of_what_is_only_in_the_log_do_not_follow_the_clock():
    """x-message-ttl of a message that is read back (core/DESIGN.md section 5)."""
    store = MemoryStore()
    broker, _ = durable_broker(store, message_count_max=16, entry_count_max=24, chunk_count_max=64)
    clocks = Clocks(broker)
    peer = Peer(broker)
    peer.declare("q", durable=True, arguments={"x-message-ttl": 24 * DAY * 1000})
    for number in range(60):
        peer.publish("q", b"%03d" % number + bytes(200), given=PERSISTENT)
    assert broker.queues["q"].is_paging()
    clocks.go(5 * DAY)
    clocks.jump(YEAR)
    clocks.go(1)
    found = []
    while broker.queues["q"].message_count():
        found += bodies(peer, "q")
        clocks.go(0.1)
    assert [int(body[:3]) for body in found] == list(range(60)) and broker.counters["expired"] == 0


def test_frames_are_few_and_what_is_older_than_them_stays_longer():
    ages = Ages()
    seconds, uptime_ms = 1000, 0
    ages.tick(seconds, uptime_ms)
    for _ in range(3 * FRAMES_MAX):
        seconds, uptime_ms = seconds + 1010, uptime_ms + 10000
        assert ages.tick(seconds, uptime_ms) == 1000
        assert ages.age_s(seconds) == 0 and ages.age_s(seconds - 1010) == 10
    assert len(ages.frames) == FRAMES_MAX
    assert ages.age_s(1000) <= 10 * FRAMES_MAX
    for ahead in range(1, 2000):
        assert ages.tick(seconds + ahead, uptime_ms + ahead * 1001) == 0, "a clock that is a little slow does not jump"


def test_a_lifetime_of_0_is_over_where_no_consumer_takes_the_message_at_once():
    """x-message-ttl 0, expiration "0" (RabbitMQ, TTL): basic.get right behind the publish, in the same octets, gets nothing; nor does a
    consumer that comes then, and queue.declare counts none. One that waits gets it."""
    for arguments, given in (({"x-message-ttl": 0}, {}), ({}, {"expiration": "0"}), ({"x-message-ttl": 1000}, {"expiration": "0"})):
        broker = new_broker()
        broker.tick(1000, BEGIN)
        peer = Peer(broker)
        peer.declare("q", arguments=arguments)
        for _ in range(3):
            peer.give(content(1, "", "q", b"x", given) + encoded("basic_get", 1, 0, "q", True))
            assert peer.frames()[0][0] == "basic_get_empty"
        peer.give(content(1, "", "q", b"x", given) + encoded("queue_declare", 1, 0, "q", True, False, False, False, False, {}))
        assert peer.frames()[0][2][1] == 0
        peer.give(content(1, "", "q", b"x", given) + encoded("basic_consume", 1, 0, "q", "t", False, True, False, False, {}))
        assert [frame[0] for frame in peer.frames()] == ["basic_consume_ok"] and broker.counters["expired"] == 5
        peer.give(content(1, "", "q", b"y", given) + encoded("basic_get", 1, 0, "q", True))
        assert [frame[0] for frame in peer.frames() if frame[0].startswith("basic")] == ["basic_deliver", "basic_get_empty"]


def test_a_lifetime_of_0_that_comes_back_is_over_within_the_same_millisecond():
    """RabbitMQ, TTL: what comes back with a lifetime of 0 expires, also where a consumer waits: rejected, nacked, recovered, left."""
    for arguments, given in (
        ({"x-message-ttl": 0}, {}),
        ({}, {"expiration": "0"}),
        ({"x-message-ttl": 0, "x-delivery-limit": 3}, {}),
        ({"x-message-ttl": 0, "x-max-priority": 3}, {}),
    ):
        for back in (("basic_reject", 1, True), ("basic_nack", 1, False, True), ("basic_recover", True), ("channel_close", 200, "", 0, 0)):
            broker = new_broker()
            broker.tick(1000, BEGIN)
            peer, other = Peer(broker), Peer(broker)
            peer.declare("q", arguments=arguments)
            peer.give(encoded("basic_consume", 1, 0, "q", "t", False, False, False, False, {}))
            other.give(encoded("basic_consume", 1, 0, "q", "u", False, False, False, False, {}))
            other.frames()
            peer.give(content(1, "", "q", b"x", given))
            assert [frame[0] for frame in peer.frames()][:2] == ["basic_consume_ok", "basic_deliver"]
            peer.give(encoded(back[0], 1, *back[1:]))
            broker.run()
            broker.tick(1000, BEGIN)
            delivered = [frame[0] for one in (peer, other) for frame in one.frames()]
            assert "basic_deliver" not in delivered and broker.counters["expired"] == 1, (arguments, back)


def test_the_broker_says_when_the_next_lifetime_ends_and_lets_go_then():
    """Not in steps of its rules: between two of them, and for delays too (Loop.step waits no longer than `due_in`)."""
    broker = new_broker()
    peer = Peer(broker)
    peer.declare("q", arguments={"x-message-ttl": 77})
    peer.declare("own")
    broker.tick(1000, BEGIN)
    assert broker.due_in(1000) == 1000, "nothing is due"
    peer.publish("q", b"x")
    assert broker.due_in(1000) == 78
    peer.publish("own", b"x", given={"expiration": "33"})
    assert broker.due_in(1000) == broker.due_in(1030) + 30 == 34
    for now, left in ((1033, 2), (1034, 1), (1077, 1), (1078, 0)):
        broker.tick(now, BEGIN)
        assert broker.queues["q"].message_count() + broker.queues["own"].message_count() == left, now
    assert broker.due_in(1078) == 1000
    peer.publish("q", b"x")
    peer.consume("q", no_ack=True)
    for now in range(1079, 1400):
        broker.tick(now, BEGIN)
        assert broker.due_in(now) > 0, "a deadline of a message that has gone is looked at once"


def test_many_queues_are_not_looked_at_each_millisecond():
    broker = new_broker(queue_count_max=200, queue_share_max=150)
    peer = Peer(broker)
    for number in range(130):
        peer.declare("q%d" % number, arguments={"x-message-ttl": 20})
    looks = [0]
    end_lifetimes = broker.end_lifetimes

    def counted():
        looks[0] += 1
        end_lifetimes()

    broker.end_lifetimes = counted
    for now in range(2000, 2200):
        broker.tick(now, BEGIN)
        peer.publish("q%d" % (now % 130), b"x")
    assert 20 < looks[0] <= 200 // 3 + 1, looks
