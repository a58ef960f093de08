"""ports/web_socket.py over a stream that reads and writes what the test says: what quick and polite clients do not show."""

import base64
import select

import pytest

web_socket = pytest.importorskip("leveret.ports.web_socket", reason="the extra `web` is not installed")
HANDSHAKE_MAX, READ_SIZE, WebSocketStream = web_socket.HANDSHAKE_MAX, web_socket.READ_SIZE, web_socket.WebSocketStream

REQUEST = (
    "GET / HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: %s\r\n%s\r\n"
)
GOODBYE = 8


class Inner:
    """A stream: `comes`: what each read gives, in turn (octets, or 0: the peer is gone); `room`: octets that writes take, or None: it is
    gone; `written`: what it took."""

    name, from_loopback, address, pollable = "inner", True, "127.0.0.1", None

    def __init__(self, *comes, room=1 << 20):
        self.comes, self.room, self.written, self.closed = list(comes), room, b"", False

    def read_into(self, view):
        if not self.comes:
            return None
        octets = self.comes.pop(0)
        if octets == 0:
            return 0
        view[: len(octets)] = octets
        return len(octets)

    def write(self, view):
        if self.room is None:
            return 0
        count = min(len(view), self.room)
        self.room -= count
        self.written += bytes(view[:count])
        return count or None

    def close(self):
        self.closed = True


def handshake(protocols="Sec-WebSocket-Protocol: amqp\r\n"):
    return (REQUEST % (base64.b64encode(b"0123456789abcdef").decode(), protocols)).encode()


def message(octets, code=2, size=None):
    """A frame of a client's with a mask of zeros, shorter than 126 octets (RFC 6455 section 5.2)."""
    return bytes((0x80 | code, 0x80 | (len(octets) if size is None else size))) + bytes(4) + octets


def opened(*comes, room=1 << 20):
    """(stream whose handshake is done, its inner stream, whose `written` is empty)."""
    inner = Inner(handshake(), *comes)
    stream = WebSocketStream(inner, lambda each, text: pytest.fail(text))
    assert stream.read_into(bytearray(16)) is None and inner.written.startswith(b"HTTP/1.1 101")
    inner.written, inner.room = b"", room
    return stream, inner


def read(stream, size=64):
    room = bytearray(size)
    count = stream.read_into(room)
    return count if not count else bytes(room[:count])


def test_octets_go_through_both_ways_however_they_are_cut():
    octets = message(b"AMQP") + message(b"\0\1") + message(b"")
    for cut in range(len(octets)):
        stream, inner = opened(octets[:cut], octets[cut:])
        came = b"".join(part for part in (read(stream, 3) for _ in range(6)) if part)
        assert came == b"AMQP\0\1", cut
    assert stream.write(b"12345") == 5 and inner.written == b"\x82\x0512345"


def test_a_peer_that_is_gone_is_told_to_reader_and_writer():
    """A write that finds no peer is 0 at each call, of the reader too, which would wait for ever otherwise."""
    stream, inner = opened(room=0)
    assert stream.write(b"1234") == 4 and not inner.written
    inner.room = None
    assert read(stream) == 0
    assert stream.write(b"5") == 0
    assert stream.needs & select.POLLIN, "the loop reads once more, and closes it"
    stream, inner = opened(0)
    assert read(stream) == 0


def test_what_the_socket_does_not_accept_waits_and_is_not_lost():
    stream, inner = opened(room=3)
    body = bytes(range(100))
    assert stream.write(body) == 100 and stream.write(b"more") is None
    assert stream.needs & select.POLLOUT
    inner.room = 1000
    assert not stream.needs & select.POLLOUT
    assert inner.written == bytes((0x82, 100)) + body
    large = bytes(READ_SIZE + 1)
    inner.room, inner.written = 1 << 20, b""
    assert stream.write(large) == len(large)
    assert inner.written[:4] == b"\x82\x7e" + READ_SIZE.to_bytes(2, "big"), "a message of READ_SIZE, then the rest"


@pytest.mark.parametrize(
    ("octets", "code"),
    [(message(b"no", code=1), 1003), (message(b"", code=3), 1002), (b"\x82\x05hello", 1002)],
    ids=["text", "opcode", "mask"],
)
def test_a_fault_of_the_peers_ends_with_its_code_and_nothing_more_is_sent(octets, code):
    """RFC 6455 sections 5.1, 5.2 and 7.4.1."""
    stream, inner = opened(octets)
    assert read(stream) == 0
    assert inner.written[0] == 0x80 | GOODBYE and int.from_bytes(inner.written[2:4], "big") == code
    assert stream.write(b"later") == 0
    sent = inner.written
    stream.close()
    assert inner.closed and inner.written == sent, "one goodbye"


def test_a_goodbye_is_answered_and_then_the_stream_is_at_its_end():
    stream, inner = opened(message((1000).to_bytes(2, "big"), code=GOODBYE), room=0)
    assert read(stream) is None, "the answer waits for room"
    assert stream.needs & select.POLLOUT
    inner.room = 100
    assert stream.needs & select.POLLIN and inner.written[0] == 0x80 | GOODBYE
    assert read(stream) == 0


def test_of_pings_before_one_can_be_answered_the_last_is_answered():
    """Section 5.5.3."""
    stream, inner = opened(message(b"one", code=9) + message(b"two", code=9), room=0)
    assert read(stream) is None
    inner.room = 100
    assert read(stream) is None and inner.written == b"\x8a\x03two"


@pytest.mark.parametrize(
    ("request_", "words", "status"),
    [
        (handshake("Sec-WebSocket-Protocol: mqtt\r\n"), "other subprotocols", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * HANDSHAKE_MAX, "more than 8192 octets", b"431 Request Header"),
        (handshake("X: " + "y" * HANDSHAKE_MAX + "\r\n"), "more than 8192 octets", b"431 Request Header"),
        (handshake().replace(b"13", b"12"), "", b"426 Upgrade Required"),
    ],
    ids=["subprotocol", "endless", "long", "version"],
)
def test_a_handshake_that_cannot_be_served_is_refused_with_its_reason(request_, words, status):
    told = []
    inner = Inner(request_)
    stream = WebSocketStream(inner, lambda each, text: told.append((each, text)))
    assert read(stream) == 0
    assert told[0][0] is stream and words in told[0][1]
    assert inner.written.startswith(b"HTTP/1.1 " + status) and inner.written.endswith(told[0][1].encode() + b"\n")
    assert (b"Sec-WebSocket-Version: 13\r\n" in inner.written) == status.startswith(b"426")
    length = inner.written.split(b"Content-Length: ")[1].split(b"\r\n")[0]
    assert int(length) == len(inner.written.split(b"\r\n\r\n", 1)[1])
    assert stream.write(b"AMQP") is None, "nothing of AMQP's goes to a stream that was not opened"


def test_a_client_without_subprotocols_is_served_and_closing_says_goodbye_once():
    inner = Inner(handshake(""), message(b"AMQP"))
    stream = WebSocketStream(inner, lambda each, text: pytest.fail(text))
    assert read(stream) is None and b"Sec-WebSocket-Protocol" not in inner.written
    assert read(stream) == b"AMQP"
    inner.written = b""
    stream.close()
    assert inner.closed and inner.written == b"\x88\x02" + (1000).to_bytes(2, "big")


def test_needs_say_what_lies_between_and_identities_are_the_inner_streams():
    stream, inner = opened(message(b"AMQP"))
    assert stream.needs == 0 and stream.identities() == []
    assert read(stream, 1) == b"A" and stream.needs == select.POLLIN, "octets wait for the endpoint's room"
    inner.identities = lambda: ["sensor"]
    assert stream.identities() == ["sensor"]
