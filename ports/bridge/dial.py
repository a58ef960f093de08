"""How a side of a bridge gets its connection over TCP or TLS; pipe.py has the way in memory to the broker of this process.

A dial: `begin()` starts an attempt; the side calls `finish(loop, client)` until it returns true: `client` is connected (or connecting);
None: the attempt goes on. It raises OSError, with a sentence, when the attempt has failed. `place` is for messages. Laws: nothing waits. A
thread resolves a host's name where the interpreter has threads: a resolver that does not answer must not hold up a broker. Each attempt
tries one address of a name, in turn.
"""

import socket

from ..sockets import SocketStream, would_block

if False:  # for the type checker alone
    from typing import Any

    from ..url import Url

try:
    import threading
except ImportError:
    threading = None  # type: ignore[assignment]  # a build without threads (stm32f4): `begin` looks the name up at once


class NetworkDial:
    """To a Url of ports/url.py."""

    def __init__(self, url: "Url") -> None:
        self.url = url
        self.place = url.place()
        self.pipe = None
        self._attempts = 0
        self._addresses: "list[Any] | None" = None
        self._stream: "Any" = None

    def begin(self) -> None:
        """Look up the host."""
        addresses: "list[Any]" = []
        self._addresses = addresses
        self._stream = None
        host, port = self.url.host, self.url.port
        if threading is None or is_numeric(host):
            look_up(host, port, addresses)
        else:
            threading.Thread(target=look_up, args=(host, port, addresses), daemon=True).start()

    def finish(self, loop: "Any", client: "Any") -> bool | None:
        """Connect when the address is known."""
        if not self._addresses:
            return None
        if isinstance(self._addresses[0], OSError):
            raise OSError("%s: no such host: %s" % (self.place, self._addresses[0]))
        addresses = self._addresses[0]
        family, _, _, _, address = addresses[self._attempts % len(addresses)]
        self._attempts += 1
        connecting = socket.socket(family, socket.SOCK_STREAM)
        try:
            stream = self._stream = self._stream_on(connecting)
            try:
                connecting.connect(address)
            except OSError as error:
                if not would_block(error):
                    raise
            loop.add(stream, client)
        except OSError:
            connecting.close()
            raise
        return True

    def _stream_on(self, connecting: "socket.socket") -> "Any":
        if self.url.tls is None:
            return SocketStream(connecting, self.place)
        from ..tls import TlsClientStream, TlsFailed, client_context

        try:
            return TlsClientStream(connecting, self.place, client_context(self.url.tls), self.url.tls["name"])
        except TlsFailed as error:
            raise OSError(str(error)) from None

    def failure(self) -> str:
        """The stream's reason for its end, or ""."""
        return getattr(self._stream, "failure", "")

    def login(self) -> dict[str, str]:
        """The log-in for core's Client."""
        return self.url.login()


def is_numeric(host: str) -> bool:
    """True for an address that needs no resolver."""
    try:
        socket.getaddrinfo(host, 0, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
        return True
    except OSError:
        return False


def look_up(host: str, port: int, addresses: "list[Any]") -> None:
    """Put the addresses of a host, or the OSError, into the list `addresses`."""
    try:
        addresses.append(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
    except OSError as error:
        addresses.append(error)
