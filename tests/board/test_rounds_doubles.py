"""firmware/rounds.py over doubles: what one round waits, reads, sends, tells and asks of poll."""

import types

import pytest

from leveret.firmware import rounds
from leveret.firmware.rounds import Rounds
from leveret.ports.slots import IN, OUT, TICK_MS

HUNG_UP = 16


def fails(*_):
    raise RuntimeError("ours")


class Broker:
    """A broker of which a round asks; `turns`: how often it still has what to deliver."""

    def __init__(self):
        self.jobs, self.active, self.due, self.turns, self.runs = [], False, 5000, 0, 0
        self.times, self.connections = [], []
        self.guard = types.SimpleNamespace(told=[], trouble=lambda *words: self.guard.told.append(words))

    def has_active(self):
        return self.active

    def due_in(self, now):
        return self.due

    def pass_time(self, now, seconds):
        self.times.append((now, seconds))

    def run(self):
        self.runs += 1
        self.turns -= 1
        self.active = self.turns > 0


class Out:
    def __init__(self, octets):
        self.octets, self.start, self.end = memoryview(octets), 0, len(octets)


class Endpoint:
    """An endpoint with `out` to send; it reads `room` octets at a time."""

    def __init__(self, out=b"", room=4):
        self.out, self.room, self.closed, self.told, self.fails = Out(out), bytearray(room), False, [], False

    def writable(self):
        return self.room

    def is_read(self):
        return bool(self.room)

    def out_buffer(self):
        return self.out if self.out.end > self.out.start else None

    def received(self, size):
        self.told.append(("received", size))
        if self.fails:
            raise RuntimeError("ours")

    def sent(self, size):
        self.out.start += size

    def tick(self, now):
        self.told.append(("tick", now))
        if self.fails:
            raise RuntimeError("ours")


class Stream:
    """A stream whose reads and writes do in turn what the test says; None then."""

    pollable, name, from_loopback, address = "line", "line", True, ""

    def __init__(self, reads=(), writes=()):
        self.reads, self.writes, self.written, self.is_closed = list(reads), list(writes), b"", False

    def read_into(self, view):
        return self.reads.pop(0) if self.reads else None

    def write_part(self, octets, at, size):
        count = self.writes.pop(0) if self.writes else None
        self.written += bytes(octets[at : at + (count or 0)])
        return count

    def close(self):
        self.is_closed = True


class Poller:
    def __init__(self):
        self.asked = []

    def register(self, pollable, mask):
        self.asked.append(("register", mask))

    def modify(self, pollable, mask):
        self.asked.append(("modify", mask))

    def unregister(self, pollable):
        self.asked.append(("unregister", 0))

    def poll(self, wait_ms):
        return []


@pytest.fixture
def clock(monkeypatch):
    """The clocks of a board: `now` in ms, `seconds`."""
    made = types.SimpleNamespace(now=1000, seconds=70)
    monkeypatch.setattr(rounds.clock, "now_ms", lambda: made.now)
    monkeypatch.setattr(rounds.clock, "since_2020", lambda: made.seconds)
    monkeypatch.setattr(rounds.select, "poll", Poller)
    return made


def with_one(endpoint, stream):
    """(loop, broker) of one stream in slot 0."""
    broker = Broker()
    loop = Rounds(2, broker)
    loop.add(stream, endpoint)
    (slot,) = loop.used
    return loop, broker, slot


def test_a_poller_that_makes_nothing_is_taken_where_there_is_one():
    one = types.SimpleNamespace(poll="poll", ipoll="ipoll")
    assert rounds.waiting(one) == "ipoll" and rounds.waiting(types.SimpleNamespace(poll="poll")) == "poll"


def test_a_round_waits_until_the_next_tick_or_what_is_due_and_not_at_all_with_work(clock):
    broker = Broker()
    loop = Rounds(1, broker)
    assert broker.times == [(1000, 70)]
    assert loop.wait_ms(7) == 7 and loop.wait_ms(99999) == TICK_MS
    clock.now += 30
    assert loop.wait_ms(99999) == TICK_MS - 30
    broker.due = 3
    assert loop.wait_ms(99999) == 3
    broker.due = -4
    assert loop.wait_ms(99999) == 0
    broker.due = 50
    broker.jobs.append(1)
    assert loop.wait_ms(99999) == 0
    broker.jobs, broker.active = [], True
    assert loop.wait_ms(99999) == 0


def test_what_poll_says_is_noted_by_slot_and_listeners_are_kept_for_later(clock):
    loop, broker, slot = with_one(Endpoint(), Stream())
    listener = object()
    loop.by_key = {4: slot, 5: listener, "line": slot}
    loop.wait = lambda wait_ms: [(4, IN), (5, IN), (6, IN)]
    loop.hear(0)
    assert loop.flags[slot] == IN and loop.knocked == [listener]
    loop.wait = lambda wait_ms: [("line", OUT)]
    loop.hear(0)
    assert loop.flags[slot] == OUT


def test_seconds_are_asked_for_once_in_a_second(clock):
    broker = Broker()
    loop = Rounds(1, broker)
    clock.seconds = 71
    loop.tell_broker(1999)
    loop.tell_broker(2000)
    clock.seconds = 72
    loop.tell_broker(2999)
    assert broker.times[1:] == [(1999, 70), (2000, 71), (2999, 71)]


def test_a_stream_is_read_while_it_fills_the_room_and_nothing_can_be_delivered(clock):
    endpoint = Endpoint(room=4)
    loop, broker, slot = with_one(endpoint, Stream(reads=[4, 4, 4, 4, 4, 4]))
    loop.read(slot, IN)
    assert endpoint.told == [("received", 4)] * rounds.READS
    endpoint.told.clear()
    broker.active = True
    loop.read(slot, IN)
    assert endpoint.told == [("received", 4)], "what can be delivered goes first"
    broker.active = False
    for reads, told in (([4, 2], [4, 2]), ([None], []), ([0], [0])):
        endpoint.told.clear()
        loop.streams[slot].reads = list(reads)
        loop.read(slot, IN)
        assert endpoint.told == [("received", each) for each in told]


def test_who_does_not_read_hears_of_a_hangup_alone(clock):
    endpoint = Endpoint(room=0)
    loop, _, slot = with_one(endpoint, Stream())
    for flags, told in ((IN, []), (IN | OUT, []), (HUNG_UP, [("received", 0)]), (IN | HUNG_UP, [("received", 0)])):
        endpoint.told.clear()
        assert loop.read_once(slot, flags) is False and endpoint.told == told
    loop.endpoints[slot] = None
    assert loop.read_once(slot, IN) is False


def test_an_error_of_ours_ends_one_connection_alone(clock, monkeypatch):
    endpoint = Endpoint()
    loop, broker, slot = with_one(endpoint, Stream(reads=[1]))
    broke = []
    monkeypatch.setattr(loop, "broke", lambda slot, error: broke.append((slot, str(error))))
    endpoint.fails = True
    loop.read(slot, IN)
    loop.tell_endpoints(5)
    endpoint.out_buffer = endpoint.is_read = fails
    assert loop.flush_all() is False
    loop.arm()
    assert broke == [(slot, "ours")] * 4


def test_octets_go_out_until_the_stream_takes_no_more(clock):
    for writes, answer, written, told in (
        ([6], True, b"octets", []),
        ([2, None], True, b"oc", []),  # fewer than there were: it is full
        ([None], False, b"", []),
        ([0], False, b"", [("received", 0)]),
    ):
        endpoint = Endpoint(b"octets")
        loop, _, slot = with_one(endpoint, Stream(writes=writes))
        assert loop.flush_all() is answer and loop.streams[slot].written == written and endpoint.told == told
        assert loop.flush(slot) is False


def test_octets_behind_others_go_out_in_the_same_round(clock):
    endpoint = Endpoint(b"octets")

    def sent(size):
        endpoint.out = Out(b"more" if endpoint.out.end == 6 else b"")

    endpoint.sent = sent
    loop, _, slot = with_one(endpoint, Stream(writes=[6, 4]))
    assert loop.flush(slot) is True and loop.streams[slot].written == b"octetsmore"


def test_sending_lets_the_broker_deliver_again_so_often(clock):
    loop, broker, slot = with_one(Endpoint(), Stream())
    broker.turns = 3
    loop.flush_all = lambda: True
    loop.deliver()
    assert broker.runs == 3
    broker.turns, broker.runs = 99, 0
    loop.deliver()
    assert broker.runs == rounds.DELIVERIES
    broker.turns, broker.runs = 99, 0
    loop.flush_all = lambda: False
    loop.deliver()
    assert broker.runs == 1


def test_poll_is_asked_for_what_an_endpoint_wants_once_for_each_change(clock):
    endpoint = Endpoint()
    loop, _, slot = with_one(endpoint, Stream())
    loop.arm()
    poller = loop.poller
    poller.asked.clear()
    loop.arm()
    assert poller.asked == []
    endpoint.out = Out(b"x")
    loop.arm()
    endpoint.room = b""
    loop.arm()
    endpoint.out = Out(b"")
    loop.arm()
    loop.arm()
    assert poller.asked == [("modify", IN | OUT), ("modify", OUT), ("modify", 0)] and loop.masks[slot] == 0


def test_a_bridges_client_is_asked_in_its_own_words(clock):
    class Client:
        closed, room, out = False, b"12", b""

        def writable(self):
            return self.room

        def pending(self):
            return self.out

        def tick(self, now):
            pass

    endpoint = Client()
    loop, _, slot = with_one(endpoint, Stream())
    loop.arm_slot(slot)
    loop.poller.asked.clear()
    endpoint.out = b"x"
    loop.arm_slot(slot)
    endpoint.room = b""
    loop.arm_slot(slot)
    assert loop.poller.asked == [("modify", IN | OUT), ("modify", OUT)]


def test_a_closed_endpoint_sends_its_last_octets_and_goes(clock):
    for is_broken in (False, True):
        endpoint = Endpoint(b"octets")
        stream = Stream(writes=[6])
        loop, _, slot = with_one(endpoint, stream)
        endpoint.closed = True
        if is_broken:
            loop.flush = fails
            with pytest.raises(RuntimeError):
                loop.arm_slot(slot)
        else:
            loop.arm()
        assert stream.written == (b"" if is_broken else b"octets") and stream.is_closed and loop.endpoints[slot] is None


def test_a_round_reads_accepts_tells_the_time_and_clears_its_notes(clock):
    endpoint = Endpoint(room=4)
    loop, broker, slot = with_one(endpoint, Stream(reads=[2]))
    knocks, waits = [], []
    loop.accept_from = knocks.append
    loop.by_key = {4: slot, 5: "listener"}

    def wait(wait_ms):
        waits.append(wait_ms)
        return [(4, IN), (5, IN)]

    loop.wait = wait
    loop.round(5)
    assert waits == [5] and endpoint.told == [("received", 2)] and knocks == ["listener"] and loop.knocked == []
    assert broker.times[1:] == [(1000, 70)] and broker.runs == 1 and loop.flags[slot] == 0
    loop.wait = lambda wait_ms: [(4, OUT)]
    loop.streams[slot].reads = [1]
    clock.now += TICK_MS - 1
    loop.round(5)
    assert endpoint.told[1:] == [], "room to write is no reason to read, and it is no time for a tick"
    clock.now += 1
    loop.round(5)
    clock.now += 1
    loop.round(5)
    assert endpoint.told[1:] == [("tick", 1000 + TICK_MS)]
