"""What a TLS stream tells the loop (core/DESIGN.md section 2), where OpenSSL wants to read before it writes, or the other way round."""

import select
import ssl

import pytest

from leveret.ports.tls import TlsStream


class Secure:
    """An ssl.SSLSocket whose calls do in turn what `script` says: each raises an exception, or returns a number of octets."""

    def __init__(self, *script):
        self.script = list(script)
        self.calls = []
        self.left = 0  # octets decrypted and not read yet

    def setblocking(self, blocks):
        self.blocks = blocks

    def play(self, call):
        self.calls.append(call)
        done = self.script.pop(0) if self.script else ssl.SSLWantReadError()
        if isinstance(done, Exception):
            raise done
        return done

    def do_handshake(self):
        self.play("do_handshake")

    def recv_into(self, view):
        size = self.play("recv_into")
        view[:size] = b"x" * size
        return size

    def send(self, view):
        return min(self.play("send"), len(view))

    def pending(self):
        return self.left

    def unwrap(self):
        self.play("unwrap")

    def getpeercert(self):
        return {"subject": ((("commonName", "peer"),),)}

    def close(self):
        self.calls.append("close")


class Stream(TlsStream):
    """A TlsStream over such a socket; `told`: what its `refused` was called with."""

    def __init__(self, *script, shaken=True):
        self.told = []
        TlsStream.__init__(self, Secure(*script), "peer", False, "192.0.2.1", None, lambda stream, text: self.told.append(text))
        self.open = shaken

    def _wrapped(self, connected, context):
        return connected


@pytest.fixture
def room():
    return memoryview(bytearray(10))


@pytest.mark.parametrize(
    "fault, answer, needs, said",
    [
        (ssl.SSLWantReadError(), None, 0, []),
        (ssl.SSLWantWriteError(), None, select.POLLOUT, []),
        (ssl.SSLEOFError(), 0, 0, []),
        (ConnectionResetError(), 0, 0, []),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), 0, 0, ["[ssl: wrong version number]"]),
    ],
)
def test_a_handshake_that_is_not_done(room, fault, answer, needs, said):
    """The loop waits for what the handshake needs; a peer that just leaves is not worth a word."""
    stream = Stream(fault, shaken=False)
    stream.needs = select.POLLOUT
    assert stream.read_into(room) is answer or stream.told
    assert (stream.needs, [text.lower() for text in stream.told], stream.open, stream.identities()) == (needs, said, False, [])
    assert stream.write(memoryview(b"octets")) is None and stream.pollable.calls == ["do_handshake"] and not stream.pollable.blocks
    stream.close()
    assert stream.pollable.calls == ["do_handshake", "close"], "TLS's goodbye is said after a handshake alone"


def test_octets_are_read_as_soon_as_the_handshake_is_done(room):
    stream = Stream(None, 4, shaken=False)
    assert stream.read_into(room) == 4 and bytes(room[:4]) == b"xxxx" and stream.open and stream.identities()[-1] == "peer"
    stream.close()
    assert stream.pollable.calls == ["do_handshake", "recv_into", "recv_into", "unwrap", "close"]


@pytest.mark.parametrize(
    "script, left, answer, needs",
    [
        ((3, 4), 0, 7, 0),  # a record at a time
        ((3, 7), 5, 10, select.POLLIN),  # the view is full: OpenSSL holds more, of which poll knows nothing
        ((), 0, None, 0),
        ((), 2, None, select.POLLIN),
        ((ssl.SSLWantWriteError(),), 0, None, select.POLLOUT),
        ((2, ssl.SSLWantWriteError()), 3, 2, select.POLLOUT | select.POLLIN),
        ((0,), 0, 0, 0),
        ((5, 0), 4, 5, 0),  # what came before the end is read first
        ((ConnectionResetError(),), 0, 0, 0),
        ((6, ConnectionResetError()), 4, 6, 0),
    ],
)
def test_reading_goes_on_until_nothing_is_left_and_says_what_it_waits_for(room, script, left, answer, needs):
    stream = Stream(*script)
    stream.pollable.left, stream.needs = left, select.POLLOUT
    assert (stream.read_into(room), stream.needs) == (answer, needs)


@pytest.mark.parametrize(
    "script, answer",
    [
        ((4, 4), 6),
        ((4,), 4),
        ((), None),
        ((ssl.SSLWantWriteError(),), None),
        ((5, ssl.SSLWantWriteError()), 5),
        ((BrokenPipeError(),), 0),
        ((2, BrokenPipeError()), 2),
    ],
)
def test_writing_says_how_much_of_it_is_on_its_way(script, answer):
    assert Stream(*script).write(memoryview(b"octets")) == answer


def test_a_peer_that_is_gone_hinders_no_close():
    for fault in (OSError("gone"), ValueError("closed"), ssl.SSLWantReadError()):
        stream = Stream(fault)
        stream.close()
        assert stream.pollable.calls == ["unwrap", "close"]
