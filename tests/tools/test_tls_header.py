"""ports/tls_header.py over a socket that gives what the test says: which kind of stream each first octet begins (AMQP 1.0 part 5, 5.2)."""

import select
import socket

import pytest

from leveret.ports import tls_header
from leveret.ports.tls_header import HEADER, TlsHeaderStream

PLAIN_HEADER = b"AMQP\x00\x01\x00\x00"


class Socket:
    """A socket whose peer has sent `comes`: octets, or exceptions; b"" when it has closed. `room`: octets that a send takes."""

    def __init__(self, *comes, room=99):
        self.comes, self.room, self.sent, self.closed = list(comes), room, b"", False

    def setblocking(self, blocks):
        self.blocks = blocks

    def setsockopt(self, *option):
        pass

    def fileno(self):
        return 5

    def recv(self, size, flags=0):
        if not self.comes:
            raise BlockingIOError(11, "nothing")
        if isinstance(self.comes[0], Exception):
            raise self.comes[0]
        octets = self.comes[0][:size]
        if flags != socket.MSG_PEEK:
            self.comes[0] = self.comes[0][size:]
            if not self.comes[0]:
                self.comes.pop(0)
        return octets

    def recv_into(self, view):
        octets = self.recv(len(view))
        view[: len(octets)] = octets
        return len(octets)

    def send(self, octets):
        if isinstance(self.room, Exception):
            raise self.room
        octets = bytes(octets[: self.room])
        self.sent += octets
        return len(octets)

    def close(self):
        self.closed = True


class Wrapped(Socket):
    """What a context makes of a socket: its handshake is done at once, and one record has come."""

    def __init__(self):
        Socket.__init__(self, b"secret")

    def do_handshake(self):
        self.shaken = True

    def recv_into(self, view):
        if not self.comes:
            raise tls_header.ssl.SSLWantReadError()
        return Socket.recv_into(self, view)

    def pending(self):
        return 0


class Context:
    def __init__(self, error=None):
        self.error, self.asked = error, []

    def wrap_socket(self, connected, **options):
        if self.error:
            raise self.error
        self.asked.append((connected, options))
        return Wrapped()


def new(*comes, allows_plain=True, room=99, error=None):
    """(stream, socket, context, what it told)."""
    told = []
    connected, context = Socket(*comes, room=room), Context(error)
    plain = (lambda stream: told.append("plain")) if allows_plain else None
    stream = TlsHeaderStream(connected, "peer", True, "127.0.0.1", context, lambda stream, text: told.append(text), plain)
    return stream, connected, context, told


def read(stream, size=16):
    room = bytearray(size)
    count = stream.read_into(memoryview(room))
    return bytes(room[:count]) if count else count


@pytest.mark.parametrize("allows_plain", [True, False])
@pytest.mark.parametrize("cut", range(9))
def test_the_header_is_answered_by_itself_and_tls_begins_on_either_listener(cut, allows_plain):
    stream, connected, context, told = new(*(part for part in (HEADER[:cut], HEADER[cut:]) if part), allows_plain=allows_plain)
    came = read(stream)
    assert came == (b"secret" if cut in (0, 8) else None)
    assert read(stream) == (None if came else b"secret")
    assert connected.sent == HEADER and not told and stream.open and stream.pollable.shaken
    assert context.asked == [(connected, {"server_side": True, "do_handshake_on_connect": False})]


@pytest.mark.parametrize("room", [7, OSError(32, "gone")])
def test_an_answer_that_does_not_go_out_whole_ends_the_stream(room):
    stream, _, context, _ = new(HEADER, room=room)
    assert read(stream) == 0 and not context.asked


def test_a_first_octet_of_tls_begins_it_at_once_where_plain_streams_are_refused():
    stream, connected, context, told = new(b"\x16\x03\x01", allows_plain=False)
    assert read(stream) == b"secret" and connected.sent == b"" and not told
    assert context.asked[0][0].comes == [b"\x16\x03\x01"], "no octet of TLS's was read"


def test_another_header_is_refused_where_tls_is_asked_for_and_told_ours():
    for room, sent in ((99, HEADER), (OSError(32, "gone"), b"")):
        stream, connected, _, told = new(PLAIN_HEADER, allows_plain=False, room=room)
        assert read(stream) == 0 and connected.sent == sent
        assert told == ["it begins without TLS, and has not asked for it by the TLS header"]


def test_a_peer_that_is_silent_leaves_or_breaks_has_begun_nothing():
    for allows_plain in (True, False):
        for comes, answer in (((), None), ((b"",), 0), ((OSError(104, "reset"),), 0), ((b"AM",), None)):
            stream, connected, context, told = new(*comes, allows_plain=allows_plain)
            assert read(stream) == answer and not told and not context.asked and connected.sent == b""


def test_a_context_that_cannot_wrap_is_a_peer_that_has_gone():
    for error in (OSError(107, "gone"), ValueError("closed")):
        assert read(new(HEADER, error=error)[0]) == 0


def test_a_plain_stream_gets_what_was_read_and_is_a_socket_from_then_on():
    stream, connected, context, told = new(PLAIN_HEADER + b"frames")
    assert read(stream, 3) == b"AMQ" and stream.needs == select.POLLIN and not told
    assert read(stream, 3) == b"P\0\x01" and stream.needs == select.POLLIN
    assert read(stream, 3) == b"\0\0" and stream.needs == 0 and told == ["plain"] and stream.descriptor == 5
    assert read(stream) == b"frames" and read(stream) is None and not context.asked
    assert stream.write(b"out") == 3 and connected.sent == b"out"
    stream.close()
    assert connected.closed


class Buffer:
    def __init__(self, slot):
        self.slot, self.gathered = slot, 0

    def gather(self):
        self.gathered += 1


class Endpoint:
    def __init__(self, send):
        self.send = send


class Loop:
    def __init__(self, endpoint):
        self.by_key, self.needy, self.unread = {5: 3}, {3, 4}, {3, 4}
        self.endpoints, self.gathering = {3: endpoint}, {}


def test_a_plain_stream_is_served_by_the_loop_as_those_that_never_had_tls():
    stream = new(PLAIN_HEADER)[0]
    for buffer, gathers in ((Buffer(3), True), (Buffer(4), False), (object(), False)):
        loop = Loop(Endpoint(buffer))
        tls_header.is_plain(loop, stream)
        assert loop.needy == {4} and loop.unread == {4} and loop.gathering == ({3: buffer} if gathers else {})
        assert getattr(buffer, "gathered", 0) == gathers
