"""How a side of a bridge gets its connection (ports/bridge/dial.py): addresses in turn, and what goes wrong at once."""

import socket

import pytest

from leveret.ports.bridge import dial as module
from leveret.ports.bridge.dial import NetworkDial
from leveret.ports.url import read_url


class Loop:
    def __init__(self):
        self.added = []

    def add(self, stream, client):
        self.added.append((stream, client))


def ends(loop):
    for stream, _ in loop.added:
        stream.close()


@pytest.fixture
def listening():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen(5)
        yield made


def test_an_address_in_numbers_is_dialled_at_once(listening):
    dial = NetworkDial(read_url("amqp://me:secret@127.0.0.1:%d/" % listening.getsockname()[1]))
    dial.begin()
    loop = Loop()
    assert dial.finish(loop, "client") is True
    ((stream, client),) = loop.added
    assert client == "client" and stream.name == dial.place == "127.0.0.1:%d" % listening.getsockname()[1]
    assert dial.failure() == "" and dial.login()["user"] == "me"
    listening.accept()[0].close()
    ends(loop)


def test_a_name_is_looked_up_beside_and_waited_for(monkeypatch, listening):
    begun = []
    monkeypatch.setattr(module, "look_up", lambda host, port, found: begun.append((host, port, found)))
    dial = NetworkDial(read_url("amqp://broker.example:5672/"))
    dial.begin()
    while not begun:
        pass  # the thread begins at once
    ((host, port, found),) = begun
    loop = Loop()
    assert (host, port) == ("broker.example", 5672) and dial.finish(loop, None) is None and loop.added == []
    found.append(OSError("no such name"))
    with pytest.raises(OSError, match="broker.example:5672: no such host: no such name"):
        dial.finish(loop, None)


def test_all_addresses_of_a_name_are_tried_in_turn(monkeypatch, listening):
    """One in each attempt; one that cannot be reached is an error at once, and its socket is closed."""
    dial = NetworkDial(read_url("amqp://127.0.0.1:5672/"))
    connected = []

    class Socket(socket.socket):
        def connect(self, address):
            connected.append((address, self))
            if address[1] == 1:
                raise OSError(101, "Network is unreachable")
            raise BlockingIOError(115, "in progress")

    monkeypatch.setattr(module.socket, "socket", Socket)
    family = socket.AF_INET
    addresses = [(family, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in (1, 2)]
    loop = Loop()
    for _ in range(2):
        dial._addresses = [addresses]
        with pytest.raises(OSError, match="unreachable"):
            dial.finish(loop, None)
        assert loop.added == [] and connected[-1][1].fileno() == -1
        assert dial.finish(loop, None) is True
        ends(loop)
        loop.added.clear()
    assert [address[1] for address, _ in connected] == [1, 2, 1, 2]


@pytest.mark.parametrize("host, numeric", [("127.0.0.1", True), ("::1", True), ("broker.example", False), ("1.2.3.4.5", False)])
def test_addresses_in_numbers_need_no_resolver(host, numeric):
    assert module.is_numeric(host) == numeric


def test_a_look_up_gives_addresses_or_the_error():
    found = []
    module.look_up("127.0.0.1", 5672, found)
    module.look_up("no name", 5672, found)
    assert found[0][0][4] == ("127.0.0.1", 5672) and isinstance(found[1], OSError)
