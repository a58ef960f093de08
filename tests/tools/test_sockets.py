"""ports/sockets.py over sockets that do what the test says: octets, errors, and who is refused when connections come."""

import socket

import pytest

from leveret.ports import sockets
from leveret.ports.sockets import Listener, SocketStream


class Socket:
    """A connected socket: each call does in turn what `script` says: a number, or an exception; `options`: as they were set."""

    def __init__(self, *script, options_work=True):
        self.script, self.options_work = list(script), options_work
        self.options, self.blocks, self.closed, self.calls = [], None, 0, []

    def setblocking(self, blocks):
        self.blocks = blocks

    def setsockopt(self, *option):
        if not self.options_work:
            raise OSError(92, "no such option")
        self.options.append(option)

    def fileno(self):
        return 7

    def play(self, view):
        self.calls.append(bytes(view))
        done = self.script.pop(0)
        if isinstance(done, Exception):
            raise done
        return done

    recv_into = send = play

    def close(self):
        self.closed += 1


class BareSocket:
    """A socket as MicroPython's unix port has it: neither recv_into nor descriptors."""

    def setblocking(self, blocks):
        self.blocks = blocks

    def readinto(self, view):
        view[:2] = b"in"
        return 2

    def write(self, view):
        return len(view)


def test_a_socket_waits_for_nothing_and_sends_small_segments_at_once():
    connected = Socket()
    stream = SocketStream(connected, "1.2.3.4:5", True, "1.2.3.4")
    assert connected.blocks is False and connected.options == [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    assert (stream.name, stream.from_loopback, stream.address, stream.descriptor) == ("1.2.3.4:5", True, "1.2.3.4", 7)
    assert stream.pollable is connected
    stream = SocketStream(Socket(options_work=False), "x")
    assert (stream.from_loopback, stream.address, stream.descriptor) == (False, "", 7)


def test_a_socket_without_descriptors_is_read_and_written_by_its_own_words():
    bare = BareSocket()
    stream = SocketStream(bare, "x")
    room = bytearray(3)
    assert bare.blocks is False and not hasattr(stream, "descriptor")
    assert stream.read_into(room) == 2 and room == b"in\0" and stream.write(b"abc") == 3


@pytest.mark.parametrize("number", [11, 35, 36, 115, 119])
def test_an_error_that_says_later_is_none_and_every_other_one_the_end(number):
    later, gone = OSError(number, "later"), OSError(104, "reset")
    stream = SocketStream(Socket(later, gone, BlockingIOError(0, "x"), 4), "x")
    assert [stream.read_into(bytearray(4)) for _ in range(4)] == [None, 0, None, 4]
    stream = SocketStream(Socket(later, gone, BlockingIOError(0, "x"), 4), "x")
    assert [stream.write(b"1234") for _ in range(4)] == [None, 0, None, 4]


def test_a_part_is_written_from_its_place():
    connected = Socket(2, OSError(32, "pipe"))
    stream = SocketStream(connected, "x")
    assert stream.write_part(memoryview(b"abcdef"), 1, 3) == 2 and connected.calls == [b"bcd"]
    assert stream.write_part(memoryview(b"abcdef"), 4, 2) == 0 and connected.calls[1] == b"ef"
    stream.close()
    assert connected.closed == 1


class Endpoint:
    def __init__(self, closed=False):
        self.closed, self.ends = closed, []

    def received(self, size):
        self.ends.append(size)


class Loop:
    """A loop with room for `slots` connections; `lets_go`: it gives up an idle one for a new one."""

    def __init__(self, slots=9, lets_go=False):
        self.slots, self.lets_go = slots, lets_go
        self.added, self.troubles, self.asked = [], [], 0

    def has_slot(self):
        return self.slots > len(self.added)

    def let_go(self):
        self.asked += 1
        return self.lets_go

    def add(self, stream, endpoint):
        self.added.append((stream, endpoint))

    def trouble(self, where, error):
        self.troubles.append((where, str(error)))


class Listening:
    """A listening socket at which `waiting` connections wait: (socket, address)."""

    def __init__(self, *waiting):
        self.waiting, self.blocks = list(waiting), None

    def setblocking(self, blocks):
        self.blocks = blocks

    def accept(self):
        if not self.waiting:
            raise BlockingIOError(11, "nobody")
        return self.waiting.pop(0)


def accepted(loop, *waiting, make_endpoint=lambda stream: Endpoint(), make_stream=SocketStream):
    listening = Listening(*waiting)
    Listener(listening, make_endpoint, make_stream).accept(loop)
    assert listening.blocks is False and not listening.waiting
    return loop


def test_all_that_wait_are_accepted_with_their_names():
    loop = accepted(Loop(), (Socket(), ("127.0.0.1", 80)), (Socket(), ("::1", 81, 0, 0)), (Socket(), b"/path"))
    told = [(stream.name, stream.from_loopback, stream.address) for stream, _ in loop.added]
    assert told == [("127.0.0.1:80", True, "127.0.0.1"), ("::1:81", True, "::1"), ("peer", False, "")] and loop.asked == 0


def test_who_gets_no_endpoint_or_a_closed_one_is_closed():
    for endpoint in (None, Endpoint(closed=True)):
        connected = Socket()
        loop = accepted(Loop(), (connected, ("1.1.1.1", 1)), make_endpoint=lambda stream, made=endpoint: made)
        assert connected.closed == 1 and not loop.added and not loop.troubles


def test_without_a_slot_an_idle_one_is_let_go_or_the_new_one_ends():
    loop = accepted(Loop(0, lets_go=True), (Socket(), ("1.1.1.1", 1)))
    assert len(loop.added) == 1 and loop.asked == 1
    connected, endpoint = Socket(), Endpoint()
    loop = accepted(Loop(0), (connected, ("1.1.1.1", 1)), make_endpoint=lambda stream: endpoint)
    assert not loop.added and endpoint.ends == [0] and connected.closed == 1


def test_a_peer_that_has_gone_is_closed_and_an_error_of_ours_is_told_and_the_next_is_served():
    for error, told in ((OSError(107, "gone"), []), (ValueError("ours"), [("a new connection", "ours")])):
        bad, good = Socket(), Socket()

        def make(connected, *words, bad=bad, error=error):
            if connected is bad:
                raise error
            return SocketStream(connected, *words)

        loop = accepted(Loop(), (bad, ("1.1.1.1", 1)), (good, ("2.2.2.2", 2)), make_stream=make)
        assert bad.closed == 1 and good.closed == 0 and loop.troubles == told
        assert [stream.name for stream, _ in loop.added] == ["2.2.2.2:2"]


def test_an_endpoint_that_cannot_be_made_or_added_is_told_and_ended():
    class Full(Loop):
        def add(self, stream, endpoint):
            raise RuntimeError("no room")

    def fails(stream):
        raise RuntimeError("no room")

    connected, endpoint = Socket(), Endpoint()
    loop = accepted(Full(), (connected, ("1.1.1.1", 1)), make_endpoint=lambda stream: endpoint)
    assert endpoint.ends == [0] and connected.closed == 1 and loop.troubles == [("a new connection", "no room")]
    connected = Socket()
    loop = accepted(Loop(), (connected, ("1.1.1.1", 1)), make_endpoint=fails)
    assert connected.closed == 1 and loop.troubles == [("a new connection", "no room")]


def test_what_a_peers_address_says():
    addresses = [("127.9.9.9", 1), ("::1", 1), ("::ffff:127.0.0.1", 1), ("128.0.0.1", 1), ("::ffff:10.0.0.1", 1), ("::12", 1), b"x", None]
    assert [sockets.is_loopback(each) for each in addresses] == [True, True, True, False, False, False, False, False]
    assert sockets.host_of(("a", 5)) == "a" and sockets.host_of(b"a") == "" and sockets.name_of(("a", 5)) == "a:5"


def test_what_poll_gives_back_is_the_descriptor_where_there_is_one():
    bare = BareSocket()
    assert sockets.key_of(Socket()) == 7 and sockets.key_of(bare) is bare


def test_a_host_is_resolved_as_octets_unless_it_is_international(monkeypatch):
    asked = []

    def getaddrinfo(*given):
        asked.append(given)
        return [] if given[1] == 9 else ["first", "second"]

    monkeypatch.setattr(sockets.socket, "getaddrinfo", getaddrinfo)
    assert sockets.resolve("here", 5) == "first" and sockets.resolve("bücher", 6) == "first"
    assert asked == [(b"here", 5, 0, socket.SOCK_STREAM), ("bücher", 6, 0, socket.SOCK_STREAM)]
    with pytest.raises(OSError, match="^no address for here$"):
        sockets.resolve("here", 9)
