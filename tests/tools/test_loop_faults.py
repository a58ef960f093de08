"""What raises at one connection of the port's loop ends that connection and nobody else's (core/DESIGN.md section 1)."""

import errno
import socket

import pytest

from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import BOARD, Limits
from leveret.firmware.rounds import Rounds
from leveret.ports import slots
from leveret.ports.sockets import SocketStream
from leveret.ports.tcp import Loop

HEADER = b"AMQP\x00\x00\x09\x01"


class Fault(Exception):
    """What no code of the broker expects."""


class Served:
    """A broker behind a loop, and what it told."""

    def __init__(self, kind):
        self.told = []
        self.broker = Broker(Limits(**dict(BOARD, connection_count_max=8)), b"loop", None, self.told.append)
        self.loop = kind(8, self.broker)
        _, self.port = self.loop.listen("127.0.0.1", 0, self.accept)
        self.made = []

    def accept(self, stream):
        made = Connection(self.broker, stream.name, True)
        self.made.append(made)
        return None if made.closed else made

    def connect(self):
        """A client's socket; its connection is accepted."""
        made = socket.create_connection(("127.0.0.1", self.port))
        made.settimeout(5)
        for _ in range(100):
            self.loop.step(10)
            if len(self.made) and self.made[-1].name.endswith(":%d" % made.getsockname()[1]):
                break
        return made

    def serves(self):
        """True when a client is answered."""
        client = self.connect()
        client.sendall(HEADER)
        for _ in range(20):
            self.loop.step(10)
        octets = client.recv(4096)
        client.close()
        return octets[:1] == b"\x01"

    def ends(self, client):
        """What a client hears until its stream ends."""
        client.setblocking(False)
        heard = b""
        for _ in range(500):
            self.loop.step(10)
            try:
                octets = client.recv(4096)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                return heard
            if not octets:
                return heard
            heard += octets
        raise AssertionError("the stream does not end")


@pytest.fixture(params=[Loop, Rounds])
def served(request):
    """A broker behind a computer's loop, and behind a board's."""
    made = Served(request.param)
    yield made
    made.loop.close()


def raising(*given):
    raise Fault("here")


@pytest.mark.parametrize("method", ["writable", "received", "pending", "sent", "tick"])
def test_a_method_of_an_endpoint_that_raises_costs_its_connection(served, method):
    """Each of the endpoint contract, once and for ever: the stream ends, its place is free, others are served. A board's loop sends from
    the buffer where it is."""
    if method == "pending" and isinstance(served.loop, Rounds):
        method = "out_buffer"
    client = served.connect()
    client.sendall(HEADER)
    served.loop.step(10)
    setattr(served.made[-1], method, raising)
    client.sendall(b"\x01" * 8)
    served.ends(client)
    assert served.broker.connections == [] and len(served.loop.used) == 0
    assert served.broker.counters["internal_errors"] > 0 and any("Fault: here" in each for each in served.told), served.told
    assert served.serves()


@pytest.mark.parametrize("method", ["read_into", "write"])
def test_a_stream_that_raises_ends(served, method, monkeypatch):
    """As a TLS library might."""
    client = served.connect()
    slot = next(iter(served.loop.used))
    monkeypatch.setattr(served.loop.streams[slot], method, raising)
    client.sendall(HEADER)
    served.ends(client)
    assert served.broker.connections == [] and served.serves()


def test_a_connection_that_cannot_be_made_is_closed(served, monkeypatch):
    """No memory for a connection, or for its stream: the socket is closed, the listener goes on."""
    for error in (MemoryError("heap"), Fault("x")):
        for owner, _name in ((Served, "accept"), (SocketStream, "__init__")):

            def fails(*given, error=error):
                raise error

            before = len(served.broker.connections)
            if owner is Served:
                listener = served.loop.listeners[0]
                monkeypatch.setattr(listener, "make_endpoint", fails)
            else:
                monkeypatch.setattr(served.loop.listeners[0], "make_stream", fails)
            client = socket.create_connection(("127.0.0.1", served.port))
            assert served.ends(client) == b"" and len(served.broker.connections) == before
            monkeypatch.undo()
    assert served.serves()


def test_an_endpoint_that_the_loop_cannot_serve_is_told_that_its_peer_is_gone(served, monkeypatch):
    """Without a place, and after a fault of ours: its record in the broker is free again, and the client's stream ends."""
    for name, given in (("add", raising), ("has_slot", lambda: False)):
        with monkeypatch.context() as patch:
            patch.setattr(served.loop, name, given)
            patch.setattr(served.loop, "let_go", lambda: False)
            client = socket.create_connection(("127.0.0.1", served.port))
            assert served.ends(client) == b""
            client.close()
        assert served.broker.connections == [] and len(served.loop.used) == 0, name
    assert served.serves()


def test_a_round_that_raises_is_not_the_end_until_nothing_works_any_more(served, monkeypatch):
    """A fault of the loop's own is told; one that never ends is raised, rather than to spin for ever."""
    with monkeypatch.context() as patch:
        patch.setattr(served.loop, "read_bulky", raising, raising=False)
        patch.setattr(served.loop, "deliver", raising)
        served.loop.step(0)
    assert served.broker.counters["internal_errors"] == 1 and served.serves()
    monkeypatch.setattr(served.loop, "deliver", raising)
    monkeypatch.setattr(slots, "_FAILURES_MAX", 3)
    served.loop.step(0)
    served.loop.step(0)
    with pytest.raises(Fault):
        served.loop.step(0)


def test_rounds_that_raise_count_in_a_row_only(served, monkeypatch):
    """One good round, and as many may raise again."""
    raising = [True]

    def round_of(timeout_ms):
        if raising[0]:
            raise Fault

    monkeypatch.setattr(slots, "_FAILURES_MAX", 3)
    monkeypatch.setattr(served.loop, "round", round_of)
    for _ in range(2):
        served.loop.step(0)
    raising[0] = False
    served.loop.step(0)
    raising[0] = True
    for _ in range(2):
        served.loop.step(0)
    with pytest.raises(Fault):
        served.loop.step(0)


@pytest.mark.parametrize("kind", [Loop, Rounds])
def test_a_loop_without_a_free_slot_takes_no_stream(kind):
    loop = kind(1, Broker(Limits(**BOARD), b"loop"))
    one, other = socket.socketpair()
    loop.add(SocketStream(one, "one"), Endpoint())
    with pytest.raises(OSError, match="all 1 stream slots are taken"):
        loop.add(SocketStream(other, "other"), Endpoint())
    loop.close()
    other.close()


class Endpoint:
    """An endpoint that wants nothing."""

    closed = False

    def writable(self):
        return memoryview(b"")

    pending = writable

    def received(self, size):
        self.closed = True


def test_a_port_that_another_has_is_an_error_of_listen_and_leaves_nothing_behind(served):
    before = len(served.loop.listeners), len(served.loop.by_key)
    with pytest.raises(OSError) as told:
        served.loop.listen("127.0.0.1", served.port, served.accept)
    assert told.value.errno == errno.EADDRINUSE and (len(served.loop.listeners), len(served.loop.by_key)) == before
    assert served.serves()
    served.loop.stop_listening()
    assert served.loop.listen("127.0.0.1", served.port, served.accept) == ("127.0.0.1", served.port), "at once, by SO_REUSEADDR"
    assert served.serves()
