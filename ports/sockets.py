"""Sockets as streams (core/DESIGN.md section 2), listeners, and what both know of addresses. On CPython and MicroPython alike."""

from ..core.shim import MICROPYTHON

if False:  # for the type checker alone
    from typing import Any, Callable

    Transfer = Callable[[memoryview | bytearray], int | None]

try:
    import socket
except ImportError:
    socket = None  # type: ignore[assignment]  # a board with serial lines only


class SocketStream:
    """A connected (or connecting) socket as a stream. `from_loopback`: the peer is this machine; `address`: its host, "" when not known."""

    def __init__(self, connected: "Any", name: str, from_loopback: bool = False, address: str = "") -> None:
        connected.setblocking(False)
        self.pollable = connected
        self.name = name
        self.from_loopback = from_loopback
        self.address = address
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, AttributeError):
            pass  # MicroPython's unix port has no such option; the socket works without
        if hasattr(connected, "recv_into"):
            self.descriptor = connected.fileno()  # octets may be sent past `write`
            self._read: "Transfer" = connected.recv_into
            self._write: "Transfer" = connected.send
        else:
            self._read = connected.readinto
            self._write = connected.write

    def read_into(self, view: "memoryview | bytearray") -> int | None:
        """Octets read; 0: the peer is gone; None: nothing now."""
        try:
            return self._read(view)
        except OSError as error:
            return None if would_block(error) else 0

    def write(self, view: "memoryview | bytearray") -> int | None:
        """Octets written; None: none now; 0: the peer is gone."""
        try:
            return self._write(view)
        except OSError as error:
            return None if would_block(error) else 0

    def write_part(self, octets: "memoryview", at: int, size: int) -> int | None:
        """As `write`, of octets[at:at + size]."""
        if not MICROPYTHON:
            return self.write(octets[at : at + size])
        try:
            return self._write(octets, at, size)  # MicroPython's own: a view would be heap
        except OSError as error:
            return None if would_block(error) else 0

    def close(self) -> None:
        """Close the socket."""
        self.pollable.close()


class Listener:
    """A listening socket; `make_endpoint(stream)` gives the endpoint of an accepted connection, or None to refuse it.

    `make_stream(socket, name, from_loopback, address)` makes its stream, or raises OSError when the peer has gone.
    """

    def __init__(
        self, listening: "Any", make_endpoint: "Callable[[Any], Any]", make_stream: "Callable[[Any, str, bool, str], Any]"
    ) -> None:
        listening.setblocking(False)
        self.pollable = listening
        self.make_endpoint = make_endpoint
        self.make_stream = make_stream

    def accept(self, loop: "Any") -> None:
        """Accept all connections that wait."""
        while True:
            try:
                connected, address = self.pollable.accept()
            except OSError:
                return
            try:
                stream = self.make_stream(connected, name_of(address), is_loopback(address), host_of(address))
            except OSError:
                connected.close()
                continue
            except Exception as error:  # an error of ours: told, and the others are served
                loop.trouble("a new connection", error)
                connected.close()
                continue
            endpoint = None
            try:
                endpoint = self.make_endpoint(stream)
                if endpoint is None or endpoint.closed:
                    stream.close()
                elif loop.has_slot() or loop.let_go():
                    loop.add(stream, endpoint)
                else:
                    endpoint.received(0)
                    stream.close()
            except Exception as error:  # an error of ours: told, and the others are served
                loop.trouble("a new connection", error)
                if endpoint is not None:
                    endpoint.received(0)
                stream.close()


def key_of(pollable: "Any") -> "Any":
    """The object that `poll` returns for a pollable: its descriptor where there is one, else itself."""
    return pollable.fileno() if hasattr(pollable, "fileno") else pollable


def would_block(error: OSError) -> bool:
    """True for EAGAIN (11), EINPROGRESS (115, 36), EWOULDBLOCK (35) and the like."""
    return error.args[0] in (11, 35, 36, 115, 119) or isinstance(error, BLOCKING)


try:
    BLOCKING: "tuple[type[OSError], ...]" = (BlockingIOError,)
except NameError:
    BLOCKING = ()


def resolve(host: str, port: int) -> "tuple[Any, ...]":
    """The first address of a host: (family, type, protocol, name, address). Raises OSError."""
    octets = host.encode()  # for a text CPython loads its codec of international names, which stays: half a MiB
    addresses = socket.getaddrinfo(octets if len(octets) == len(host) else host, port, 0, socket.SOCK_STREAM)
    if not addresses:
        raise OSError("no address for %s" % host)
    return addresses[0]


def name_of(address: object) -> str:
    """A peer's address as text."""
    return "%s:%d" % (address[0], address[1]) if isinstance(address, tuple) else "peer"


def host_of(address: object) -> str:
    """A peer's host as text, "" where the interpreter does not tell."""
    return address[0] if isinstance(address, tuple) else ""


def is_loopback(address: object) -> bool:
    """True when a peer is this machine: 127.0.0.0/8 or ::1. MicroPython's unix port gives no readable address; there nobody is."""
    if not isinstance(address, tuple):
        return False
    host: str = address[0]
    return host.startswith("127.") or host == "::1" or host.startswith("::ffff:127.")
