"""What blocking clients (client.py, client_1_0.py) have in common: a stream to a Url, and bytes moved between it and an endpoint of core/.

    class Connection(Moving): ...
    Moving.__init__(self, stream, timeout_ms); self._client = an endpoint; self.step(100)

Bytes move only inside calls. `_end` is set by who inherits, when the endpoint says that the connection is over.
"""

import select
import socket

from ..core.shim import elapsed
from .client_errors import ConnectFailed, ConnectionLost, Timeout, TlsRefused
from .clock import now_ms
from .sockets import SocketStream

if False:  # for the type checker alone
    from typing import Any, Callable

    from .tls import TlsClientStream
    from .url import Url

STEP_MS_MAX = 1000  # heartbeats are due at least so often


def open_tcp(host: str, port: int, timeout_ms: int) -> SocketStream:
    """A connected stream to the first address of `host` that answers in `timeout_ms`. Raises OSError when none does."""
    refusal = OSError("no address for it")
    for address in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
        connecting = socket.socket(address[0], address[1])
        try:
            connecting.settimeout(timeout_ms / 1000)
            connecting.connect(address[-1])
            return SocketStream(connecting, "%s:%d" % (host, port))
        except OSError as error:
            connecting.close()
            refusal = error
    raise refusal


def open_tls(url: "Url", timeout_ms: int) -> "TlsClientStream":
    """A connected stream with TLS to the broker of a Url. Raises OSError, ConnectFailed, TlsRefused: what is wrong with certificates."""
    from .tls import TlsClientStream, TlsFailed, client_context

    tls: "Any" = url.tls  # not None: `connect` asks for it only then
    try:
        context = client_context(tls)
    except TlsFailed as error:
        raise TlsRefused(str(error)) from None
    plain = open_tcp(url.host, url.port, timeout_ms)
    stream = TlsClientStream(plain.pollable, plain.name, context, tls["name"])
    started = now_ms()
    poll = select.poll()
    poll.register(stream.pollable, select.POLLIN)
    while not stream.open:
        if stream.read_into(bytearray(0)) == 0 and not stream.open:
            stream.close()
            if stream.failure:
                raise TlsRefused(stream.failure)
            raise ConnectFailed("%s ended the TLS handshake" % stream.name)
        if elapsed(now_ms(), started) > timeout_ms:
            stream.close()
            raise ConnectFailed("%s: no TLS handshake in %d ms" % (stream.name, timeout_ms))
        if not stream.open:
            poll.modify(stream.pollable, stream.needs or select.POLLIN)
            poll.poll(50)
    return stream


def open_stream(place: "Url", timeout_ms: int) -> "SocketStream | TlsClientStream":
    """A connected stream to the broker of a Url. Raises ConnectFailed, and TlsRefused where it is the certificates."""
    try:
        return open_tls(place, timeout_ms) if place.tls else open_tcp(place.host, place.port, timeout_ms)
    except OSError as error:
        raise ConnectFailed("no broker answers at %s: %s" % (place.place(), error)) from None


class Moving:
    """A stream and the endpoint that is its client. `timeout_ms` bounds every `wait`."""

    _client: "Any"

    def __init__(self, stream: "Any", timeout_ms: int) -> None:
        self._stream = stream
        self._timeout_ms = timeout_ms
        self._end: "tuple[Any, str] | None" = None  # (code or condition, text) when the connection is over
        self._poll = select.poll()
        self._poll.register(stream.pollable, select.POLLIN)

    def step(self, timeout_ms: int) -> None:
        """Send what is pending, wait for something to read and take it. Raises ConnectionLost at the end.

        Waits at most `timeout_ms`, and 1 s: heartbeats are due meanwhile.
        """
        client = self._client
        stream = self._stream
        writing = self._end is None and self._flush()
        if self._end is None:
            self._poll.modify(stream.pollable, select.POLLIN | select.POLLOUT if writing else select.POLLIN)
            unread = getattr(stream, "needs", 0) & select.POLLIN  # deciphered already: poll knows nothing of it
            if unread or self._poll.poll(min(timeout_ms, STEP_MS_MAX)):
                self._read()
            client.tick(now_ms())
            self._flush()
        if self._end is not None:
            stream.close()
            raise ConnectionLost("the connection to %s is over: %s" % (stream.name, self._end[1]), self._end[0], self._end[1])

    def _read(self) -> None:
        count = self._stream.read_into(self._client.writable())
        if count is not None:
            self._client.received(count)

    def _flush(self) -> bool:
        """Write until nothing is pending or the stream takes no more; True when something is left."""
        client = self._client
        pending = client.pending()
        while len(pending):
            count = self._stream.write(pending)
            if count is None:
                return True
            if count == 0:
                client.received(0)
                return False
            client.sent(count)
            pending = client.pending()
        return False

    def wait(self, done: "Callable[[], object]") -> None:
        """Step until `done()`. Raises Timeout when nothing comes, and what `_look` raises: then only `close` makes sense."""
        started = now_ms()
        while not done():
            left_ms = self._timeout_ms - elapsed(now_ms(), started)
            if left_ms <= 0:
                raise Timeout("no answer from %s in %d ms" % (self._stream.name, self._timeout_ms))
            self.step(left_ms)
            self._look()

    def _look(self) -> None:
        """See after each step whether something went wrong: raise it."""
