"""ports/slots.py and ports/alarms.py over streams that do what the test says: slots, listeners, faults of ours, who hears the time."""

import errno
import types

import pytest

from leveret.ports import slots
from leveret.ports.alarms import Alarms
from leveret.ports.slots import IN, OUT, Slots


def fails(given):
    raise RuntimeError(given)


class Poller:
    def __init__(self):
        self.asked = {}

    def register(self, pollable, mask):
        assert pollable not in self.asked
        self.asked[pollable] = mask

    def unregister(self, pollable):
        del self.asked[pollable]


class Stream:
    def __init__(self, name, writes=()):
        self.pollable, self.writes, self.written, self.closes = name, list(writes), b"", 0

    def write(self, view):
        count = self.writes.pop(0) if self.writes else None
        self.written += bytes(view[: count or 0])
        return count

    def close(self):
        self.closes += 1


class Endpoint:
    def __init__(self, *parts, closed=False):
        self.parts, self.closed, self.told = [memoryview(part) for part in parts], closed, []

    def pending(self):
        return self.parts[0] if self.parts else memoryview(b"")

    def sent(self, count):
        self.parts[0] = self.parts[0][count:]
        if not self.parts[0]:
            self.parts.pop(0)

    def received(self, size):
        self.told.append(size)


class Telling(Endpoint):
    """An endpoint that tells its peer of a fault of ours; `error`: it fails at that."""

    error = None

    def broke(self, error):
        self.told.append(str(error))
        if self.error:
            raise self.error


def new(count=3, has_broker=True):
    """(Slots, the faults that its broker was told)."""
    told: list = []
    guard = types.SimpleNamespace(trouble=lambda form, subject, error: told.append((form, subject, str(error))))
    return Slots(count, types.SimpleNamespace(guard=guard) if has_broker else None, Poller()), told


def test_slots_are_taken_and_freed_and_the_first_free_one_is_next():
    loop, _ = new(2)
    first, second = Stream("a"), Stream("b")
    assert loop.slot_for(first, "one") == 0 and loop.has_slot() and loop.slot_for(second, "two") == 1 and not loop.has_slot()
    assert loop.poller.asked == {"a": IN | OUT, "b": IN | OUT} and loop.masks == [IN | OUT] * 2 and loop.by_key == {"a": 0, "b": 1}
    with pytest.raises(OSError, match="^all 2 stream slots are taken$"):
        loop.add(Stream("c"), "three")
    loop.broken.add(0)
    loop.remove(0)
    assert first.closes == 1 and loop.used == {1} and not loop.broken and loop.poller.asked == {"b": IN | OUT}
    assert (loop.streams, loop.endpoints, loop.by_key) == ([None, second], [None, "two"], {"b": 1})
    loop.remove(0)  # half removed: nothing is there any more
    assert first.closes == 1
    loop.add(Stream("c"), "three")
    assert loop.by_key == {"b": 1, "c": 0}
    loop.close()
    assert not loop.used and not loop.poller.asked and second.closes == 1


def test_octets_go_out_until_the_stream_takes_no_more():
    for parts, writes, moved, written, told in (
        ((b"octets", b"more"), [6, 4], True, b"octetsmore", []),
        ((b"octets", b"more"), [2, 4], True, b"oc", []),
        ((b"octets",), [None], False, b"", []),
        ((b"octets",), [0], False, b"", [0]),
        ((b"one", b"two"), [3, 0], True, b"one", [0]),
        ((b"one", b"two"), [3, None], True, b"one", []),
        ((), [], False, b"", []),
    ):
        loop, _ = new()
        stream, endpoint = Stream("a", writes), Endpoint(*parts)
        loop.add(stream, endpoint)
        assert loop.flush(0) is moved and stream.written == written and endpoint.told == told


def test_closed_ones_are_let_go_with_their_last_octets():
    loop, _ = new(2)
    stream = Stream("a", [3])
    loop.add(stream, Endpoint(b"bye", closed=True))
    loop.add(Stream("b"), Endpoint())
    assert loop.let_go() is True and stream.written == b"bye" and stream.closes == 1 and loop.used == {1}
    loop.add(Stream("c"), Endpoint())
    assert loop.let_go() is False


def test_a_fault_of_ours_is_told_to_its_peer_once_and_the_second_one_closes():
    loop, told = new()
    stream, endpoint = Stream("a"), Telling()
    loop.add(stream, endpoint)
    loop.broke(0, ValueError("ours"))
    assert endpoint.told == ["ours"] and not told and loop.used == {0}
    loop.broke(0, ValueError("again"))
    assert endpoint.told == ["ours", 0] and told == [("a stream%s", "", "again")] and not loop.used and stream.closes == 1
    loop.broke(0, ValueError("late"))
    assert told[1:] == [("a connection that had ended%s", "", "late")]


def test_an_endpoint_without_words_or_that_fails_at_them_is_freed_all_the_same():
    for endpoint, said in ((Endpoint(), ["ours"]), (Telling(), ["twice"])):
        endpoint.error = KeyError("twice")
        loop, told = new()
        loop.add(Stream("a"), endpoint)
        loop.broke(0, ValueError("ours"))
        assert [text.strip("'") for _, _, text in told] == said and not loop.used


def test_a_clients_loop_gives_faults_to_its_caller():
    loop, _ = new(has_broker=False)
    with pytest.raises(ValueError, match="ours"):
        loop.broke(0, ValueError("ours"))
    loop.trouble("nobody", ValueError("ours"))
    loop.round = fails
    with pytest.raises(RuntimeError, match="5"):
        loop.step(5)
    assert loop.has_active() is False
    loop.broker = types.SimpleNamespace(has_active=lambda: True)
    assert loop.has_active() is True


def test_rounds_that_raise_are_told_and_a_thousand_in_a_row_are_the_end(monkeypatch):
    monkeypatch.setattr(slots, "_FAILURES_MAX", 3)
    loop, told = new()
    rounds = [ValueError("1"), ValueError("2"), None, ValueError("3"), ValueError("4"), ValueError("5")]
    waited = []

    def round_(timeout_ms):
        waited.append(timeout_ms)
        error = rounds.pop(0)
        if error:
            raise error

    loop.round = round_
    for _ in range(5):
        loop.step(7)
    with pytest.raises(ValueError, match="5"):
        loop.step(7)
    assert waited == [7] * 6 and told == [("a round of the loop%s", "", str(number)) for number in range(1, 6)]


def test_a_listener_that_fails_is_told():
    loop, told = new()
    seen = []
    loop.accept_from(types.SimpleNamespace(accept=seen.append))

    loop.accept_from(types.SimpleNamespace(accept=fails))
    assert seen == [loop] and told == [("a listener%s", "", str(loop))]


class Socket:
    """A socket that is made; `fails`: {call: what it raises}."""

    made: list = []
    fails: dict = {}

    def __init__(self, family, kind):
        self.calls = [(family, kind)]
        Socket.made.append(self)

    def __getattr__(self, name):
        def call(*given):
            self.calls.append((name, *given))
            if name in Socket.fails:
                raise Socket.fails[name]
            return ("0.0.0.0", 4321) if name == "getsockname" else 9

        return call


@pytest.fixture
def sockets(monkeypatch):
    monkeypatch.setattr(Socket, "made", [])
    monkeypatch.setattr(Socket, "fails", {})
    real = slots.socket
    words = {name: getattr(real, name) for name in ("SOL_SOCKET", "SO_REUSEADDR", "IPPROTO_TCP", "TCP_NODELAY")}
    monkeypatch.setattr(slots, "socket", types.SimpleNamespace(socket=Socket, **words))
    monkeypatch.setattr(slots, "resolve", lambda host, port: ("family", "kind", 0, "", (host, port)))
    return real


def test_a_listener_is_bound_heard_and_closed(sockets):
    loop, _ = new()
    assert loop.listen("here", 0, "endpoint") == ("here", 4321)
    (made,) = Socket.made
    reuse = ("setsockopt", sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    assert made.calls[:4] == [("family", "kind"), reuse, ("bind", ("here", 0)), ("listen", 128)]
    (listener,) = loop.listeners
    assert loop.by_key == {9: listener} and loop.poller.asked == {made: IN} and listener.make_endpoint == "endpoint"
    loop.stop_listening()
    assert loop.listeners == [] and loop.by_key == {} and loop.poller.asked == {} and made.calls[-1] == ("close",)
    Socket.fails = {"bind": OSError(errno.EADDRINUSE, "in use")}
    with pytest.raises(OSError, match="in use"):
        loop.listen("here", 5, "endpoint")
    assert Socket.made[1].calls[-1] == ("close",) and loop.listeners == []


def test_a_connection_is_begun_without_waiting(sockets):
    for error, used in ((None, {0}), (OSError(errno.EINPROGRESS, "begun"), {0}), (OSError(errno.ECONNREFUSED, "refused"), set())):
        Socket.fails = {"connect": error} if error else {}
        loop, _ = new()
        if used:
            loop.connect("there", 5, "endpoint")
            assert loop.streams[0].name == "there:5" and loop.endpoints[0] == "endpoint"
        else:
            with pytest.raises(OSError, match="refused"):
                loop.connect("there", 5, "endpoint")
            assert Socket.made[-1].calls[-1] == ("close",)
        assert loop.used == used and ("connect", ("there", 5)) in Socket.made[-1].calls


# Who hears the time


def test_alarms_are_due_once_at_their_time_and_the_last_one_set_counts():
    alarms = Alarms(3)
    alarms.set(0, 100)
    alarms.set(1, 50)
    alarms.set(1, 200)  # later: the earlier entry is looked at, and set again
    assert alarms.due(49) == set() and alarms.due(50) == set() and alarms.due(100) == {0} and alarms.due(199) == set()
    assert alarms.due(200) == {1} and alarms.due(999) == set()
    alarms.set(2, 300)
    alarms.set(2, 250)
    assert alarms.due(250) == {2} and alarms.due(300) == set()


def test_soon_is_heard_at_the_next_tick_and_a_free_slot_never():
    alarms = Alarms(2)
    alarms.soon.update((0, 1))
    alarms.set(1, 10)
    alarms.forget(1)
    assert alarms.due(20) == {0} and alarms.soon == set() and alarms.due(20) == set()


def test_the_heap_holds_no_more_than_twice_the_slots():
    alarms = Alarms(4)
    for time in range(100, 0, -1):
        alarms.set(0, time)
        assert len(alarms.heap) <= 9
    alarms.set(1, 500)
    assert alarms.due(1) == {0} and alarms.due(499) == set() and alarms.due(500) == {1}
