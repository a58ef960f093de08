"""TLS that a peer turns on by AMQP 1.0's TLS header (part 5, section 5.2), under a stream of a listener that has a certificate.

    peer  AMQP 2 1 0 0      we  AMQP 2 1 0 0      both  TLS      peer  the header that would have begun a stream without it

On an `amqp://` listener another first octet, or another header, is a stream without TLS; on an `amqps://` listener a first octet that is
not AMQP's begins TLS at once, and a header without TLS is refused. Laws: nothing waits; the stream keeps at most eight
octets from before the choice, and the endpoint gets those that are its own.
"""

import select
import socket
import ssl
from collections.abc import Callable
from typing import Any

from .sockets import SocketStream
from .tls import TlsStream

HEADER = b"AMQP\x02\x01\x00\x00"


class TlsHeaderStream(TlsStream):
    """An accepted socket, as TlsStream. `is_plain`: a stream that does not begin with the TLS header goes on without TLS, and
    `plain(stream)` is called then; else it is TLS, or refused."""

    def __init__(
        self,
        connected: socket.socket,
        name: str,
        from_loopback: bool,
        address: str,
        context: ssl.SSLContext,
        refused: Callable[[TlsStream, str], object],
        plain: Callable[["TlsHeaderStream"], object] | None = None,
    ) -> None:
        self._context = context
        self._plain = plain
        self._first = b""  # octets that were read before the choice
        self._chosen = False
        TlsStream.__init__(self, connected, name, from_loopback, address, context, refused)

    def _wrapped(self, connected: socket.socket, context: ssl.SSLContext) -> socket.socket:
        return connected  # until the peer has chosen

    def read_into(self, view: memoryview | bytearray) -> int | None:
        """Octets read; 0: the peer is gone; None: nothing now."""
        if not self._chosen:
            state = self._choose()
            if state != 1:
                return state
        if self._first:
            return self._hand_over(view)
        return TlsStream.read_into(self, view)

    def _choose(self) -> int | None:
        """1: the stream's kind is known; None: not yet; 0: the peer is gone."""
        try:
            if not self._first and self.pollable.recv(1, socket.MSG_PEEK) not in (b"", HEADER[:1]) and self._plain is None:
                return self._begin_tls()  # no octet of TLS's was read
            octets = self.pollable.recv(len(HEADER) - len(self._first))
        except BlockingIOError:
            return None
        except OSError:
            return 0
        if not octets:
            return 0
        self._first += octets
        if self._first == HEADER:
            self._first = b""
            try:
                if self.pollable.send(HEADER) != len(HEADER):  # the first octets of the connection: there is room for them
                    return 0
            except OSError:
                return 0
            return self._begin_tls()
        if HEADER.startswith(self._first):
            return None
        if self._plain is None:
            self.refused(self, "it begins without TLS, and has not asked for it by the TLS header")
            try:
                self.pollable.send(HEADER)  # the header that is served here (part 2, section 2.2)
            except OSError:
                pass
            return 0
        self._chosen = True
        return 1

    def _begin_tls(self) -> int:
        """Begin TLS on the socket; its handshake follows."""
        try:
            self.pollable = self._context.wrap_socket(self.pollable, server_side=True, do_handshake_on_connect=False)
        except (OSError, ValueError):
            return 0  # the peer has gone already
        self._chosen = True
        return 1

    def _hand_over(self, view: memoryview | bytearray) -> int:
        """Give the endpoint the octets that were read; behind them it is a stream without TLS."""
        size = min(len(view), len(self._first))
        view[:size] = self._first[:size]
        self._first = self._first[size:]
        if self._first:
            self.needs = select.POLLIN
            return size
        self.needs = 0
        stream = SocketStream(self.pollable, self.name, self.from_loopback, self.address)
        self.descriptor = stream.descriptor
        self.read_into, self.write, self.close = stream.read_into, stream.write, stream.close  # type: ignore[method-assign]  # for good
        if self._plain is not None:
            self._plain(self)
        return size


def is_plain(loop: Any, stream: TlsHeaderStream) -> None:
    """A stream of a loop has no TLS, and never will: it is read and written as those of listeners without a certificate."""
    slot = loop.by_key[stream.pollable.fileno()]
    loop.needy.discard(slot)
    loop.unread.discard(slot)
    buffer: Any = getattr(loop.endpoints[slot], "send", None)
    if hasattr(buffer, "gather") and buffer.slot == slot:
        buffer.gather()
        loop.gathering[slot] = buffer
