"""ports/moving.py over sockets and streams that do what the test says: which address is taken, when TLS is given up, how octets move."""

import select
import types

import pytest

from leveret.ports import moving
from leveret.ports.client_errors import ConnectFailed, ConnectionLost, Timeout, TlsRefused
from leveret.ports.moving import Moving


class Poll:
    """A poll that says `ready`; `asked`: what it waited for, and how long."""

    def __init__(self, ready=()):
        self.ready, self.asked, self.masks = list(ready), [], []

    def register(self, pollable, mask):
        self.masks.append(mask)

    modify = register

    def poll(self, wait_ms):
        self.asked.append(wait_ms)
        return self.ready.pop(0) if self.ready else []


class Client:
    """An endpoint with octets to send; `calls`: what it was told."""

    def __init__(self, *parts):
        self.parts, self.calls = list(parts), []

    def pending(self):
        return self.parts[0] if self.parts else b""

    def sent(self, count):
        self.parts[0] = self.parts[0][count:]
        if not self.parts[0]:
            self.parts.pop(0)

    def writable(self):
        return bytearray(8)

    def received(self, count):
        self.calls.append(("received", count))

    def tick(self, now):
        self.calls.append(("tick", now))


class Stream:
    pollable, name = "pollable", "there:5"

    def __init__(self, reads=(), writes=()):
        self.reads, self.writes, self.written, self.closed = list(reads), list(writes), b"", False

    def read_into(self, view):
        return self.reads.pop(0) if self.reads else None

    def write(self, view):
        count = self.writes.pop(0) if self.writes else None
        self.written += bytes(view[: count or 0])
        return count

    def close(self):
        self.closed = True


@pytest.fixture
def clock(monkeypatch):
    """`now` in ms; each look at it lets `step` pass."""
    made = types.SimpleNamespace(now=1000, step=0)

    def now_ms():
        made.now += made.step
        return made.now

    monkeypatch.setattr(moving, "now_ms", now_ms)
    return made


def connected(monkeypatch, client, stream, ready=()):
    poll = Poll(ready)
    monkeypatch.setattr(moving.select, "poll", lambda: poll)
    made = Moving(stream, 500)
    made._client = client
    return made, poll


def test_a_step_sends_waits_reads_and_sends_again(monkeypatch, clock):
    client, stream = Client(b"octets"), Stream([3], [6])
    made, poll = connected(monkeypatch, client, stream, [["ready"]])
    made.step(70)
    assert stream.written == b"octets" and client.calls == [("received", 3), ("tick", 1000)]
    assert poll.masks == [select.POLLIN, select.POLLIN] and poll.asked == [70]
    made.step(99999)
    assert poll.asked[1] == 1000 and client.calls[2:] == [("tick", 1000)], "nothing has come"


def test_what_a_stream_does_not_take_waits_for_room(monkeypatch, clock):
    client, stream = Client(b"octets", b"more"), Stream([], [6, None, 4])
    made, poll = connected(monkeypatch, client, stream)
    made.step(70)
    assert poll.masks[-1] == select.POLLIN | select.POLLOUT and stream.written == b"octetsmore"
    made.step(70)
    assert poll.masks[-1] == select.POLLIN


def test_a_stream_that_is_gone_is_told_to_the_client(monkeypatch, clock):
    client, stream = Client(b"octets"), Stream([], [0, 0])
    made, _ = connected(monkeypatch, client, stream)
    made.step(70)
    assert client.calls.count(("received", 0)) == 2 and stream.written == b""


def test_octets_that_are_deciphered_already_are_read_without_a_wait(monkeypatch, clock):
    client, stream = Client(), Stream([4])
    stream.needs = select.POLLIN | select.POLLOUT
    made, poll = connected(monkeypatch, client, stream)
    made.step(70)
    assert client.calls[0] == ("received", 4) and poll.asked == []
    stream.needs = select.POLLOUT
    made.step(70)
    assert poll.asked == [70]


def test_the_end_is_one_sentence_with_its_code_and_closes_the_stream(monkeypatch, clock):
    client, stream = Client(b"octets"), Stream([], [6])
    made, poll = connected(monkeypatch, client, stream)
    made._end = 320, "CONNECTION_FORCED"
    with pytest.raises(ConnectionLost, match="^the connection to there:5 is over: CONNECTION_FORCED$") as lost:
        made.step(70)
    assert (lost.value.code, lost.value.text) == (320, "CONNECTION_FORCED") and stream.closed
    assert stream.written == b"" and poll.asked == [] and client.calls == []


def test_a_wait_ends_when_it_is_done_and_after_its_time(monkeypatch, clock):
    client, stream = Client(), Stream()
    made, poll = connected(monkeypatch, client, stream)
    looks = []
    made._look = lambda: looks.append(1)
    made.wait(lambda: len(looks) == 3)
    assert looks == [1, 1, 1] and poll.asked == [500] * 3
    made.wait(lambda: True)
    assert len(looks) == 3
    clock.step = 100
    with pytest.raises(Timeout, match="^no answer from there:5 in 500 ms$"):
        made.wait(lambda: False)
    assert len(looks) == 5 and poll.asked[3:] == [400, 200]


class Socket:
    """A socket of an address; those of `refusing` refuse."""

    made: list = []
    refusing: tuple = ()

    def __init__(self, family, kind):
        self.family, self.kind, self.closed, self.timeout = family, kind, False, None
        Socket.made.append(self)

    def settimeout(self, seconds):
        self.timeout = seconds

    def connect(self, address):
        if address in Socket.refusing:
            raise OSError(111, "refused by %s" % address)

    def close(self):
        self.closed = True


@pytest.fixture
def addresses(monkeypatch):
    monkeypatch.setattr(Socket, "made", [])
    monkeypatch.setattr(moving.socket, "socket", Socket)
    monkeypatch.setattr(moving, "SocketStream", lambda connected, name: (connected, name))
    rows = [("f1", "k1", 0, "", "one"), ("f2", "k2", 0, "", "two")]
    monkeypatch.setattr(moving.socket, "getaddrinfo", lambda host, port, family, kind: rows if kind == moving.socket.SOCK_STREAM else [])
    return rows


def test_the_first_address_that_answers_is_taken(monkeypatch, addresses):
    for refusing, taken in (((), "f1"), (("one",), "f2")):
        Socket.made.clear()
        monkeypatch.setattr(Socket, "refusing", refusing)
        connected_, name = moving.open_tcp("there", 5, 1500)
        assert connected_.family == taken and name == "there:5" and connected_.timeout == 1.5 and not connected_.closed
        assert [each.closed for each in Socket.made] == [True] * len(refusing) + [False]


def test_the_last_refusal_is_told_and_no_address_is_one(monkeypatch, addresses):
    monkeypatch.setattr(Socket, "refusing", ("one", "two"))
    with pytest.raises(OSError, match="refused by two"):
        moving.open_tcp("there", 5, 1500)
    assert [each.closed for each in Socket.made] == [True, True]
    place = types.SimpleNamespace(tls=None, host="there", port=5, place=lambda: "amqp://there")
    with pytest.raises(ConnectFailed, match="^no broker answers at amqp://there: .*refused by two$"):
        moving.open_stream(place, 1500)
    addresses.clear()
    with pytest.raises(OSError, match="^no address for it$"):
        moving.open_tcp("there", 5, 1500)


class Secure:
    """A TLS stream whose reads do in turn what `reads` says: "open", 0 (the peer has gone) or None."""

    reads: list = []
    failure_of_it = ""

    def __init__(self, connected, name, context, server_name):
        self.pollable, self.name, self.given = connected, name, (context, server_name)
        self.open, self.failure, self.needs, self.closed = False, "", 0, False
        Secure.last = self

    def read_into(self, view):
        assert len(view) == 0
        done = Secure.reads.pop(0) if Secure.reads else None
        if done == "open":
            self.open = True
            return None
        if done == 0:
            self.failure = Secure.failure_of_it
        self.needs = select.POLLOUT if done == "write" else 0
        return done if done == 0 else None

    def close(self):
        self.closed = True


@pytest.fixture
def secure(monkeypatch, clock):
    from leveret.ports import tls

    poll = Poll()
    monkeypatch.setattr(moving.select, "poll", lambda: poll)
    monkeypatch.setattr(tls, "TlsClientStream", Secure)
    monkeypatch.setattr(tls, "client_context", lambda given: "context")
    monkeypatch.setattr(moving, "open_tcp", lambda host, port, timeout_ms: types.SimpleNamespace(pollable="socket", name="there:5"))
    monkeypatch.setattr(Secure, "failure_of_it", "")
    return types.SimpleNamespace(clock=clock, poll=poll, tls=tls)


PLACE = types.SimpleNamespace(tls={"name": "there.example"}, host="there", port=5, place=lambda: "amqps://there")


def test_tls_is_waited_for_by_what_its_handshake_needs(secure, monkeypatch):
    monkeypatch.setattr(Secure, "reads", [None, "write", "open"])
    stream = moving.open_stream(PLACE, 500)
    assert stream is Secure.last and stream.given == ("context", "there.example") and not stream.closed
    assert secure.poll.masks == [select.POLLIN, select.POLLIN, select.POLLOUT] and secure.poll.asked == [50, 50]


def test_no_tls_is_one_sentence_whatever_it_was(secure, monkeypatch):
    monkeypatch.setattr(Secure, "reads", [0])
    with pytest.raises(ConnectFailed, match="^there:5 ended the TLS handshake$"):
        moving.open_stream(PLACE, 500)
    assert Secure.last.closed
    monkeypatch.setattr(Secure, "reads", [None, 0])
    monkeypatch.setattr(Secure, "failure_of_it", "TLS with there failed: why")
    with pytest.raises(TlsRefused, match="^TLS with there failed: why$"):
        moving.open_stream(PLACE, 500)
    monkeypatch.setattr(Secure, "reads", [])
    secure.clock.step = 100
    with pytest.raises(ConnectFailed, match="^there:5: no TLS handshake in 500 ms$"):
        moving.open_stream(PLACE, 500)
    assert Secure.last.closed

    def fails(given):
        raise secure.tls.TlsFailed("no such file")

    monkeypatch.setattr(secure.tls, "client_context", fails)
    with pytest.raises(TlsRefused, match="^no such file$"):
        moving.open_stream(PLACE, 500)
