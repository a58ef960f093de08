"""The modules socket and select of a client in the WebAssembly build: one connection, that of client_alone.mjs. Copied to both names."""

import js
import uctypes

SOCK_STREAM = SOL_SOCKET = SO_REUSEADDR = IPPROTO_TCP = TCP_NODELAY = 0
POLLIN, POLLOUT, POLLERR, POLLHUP = 1, 4, 8, 16
_read, _write, _wait = js.leveret_wire.read, js.leveret_wire.write, js.leveret_wire.wait


def getaddrinfo(host, port, *rest):
    return [(2, 1, 0, "", (host, port))]


class socket:
    """A stream to the one place there is."""

    def __init__(self, *kinds):
        pass

    def settimeout(self, seconds):
        pass

    setblocking = connect = settimeout

    def setsockopt(self, *values):
        pass

    def readinto(self, view):
        """Octets read, 0 at the end; None: nothing now."""
        if not _wait(0):
            return None
        return _read(uctypes.addressof(view), len(view))

    def write(self, view):
        _write(uctypes.addressof(view), len(view))
        return len(view)

    def close(self):
        pass


class poll:
    """Waits for the one socket."""

    def register(self, pollable, flags):
        self.pollable = pollable

    def modify(self, pollable, flags):
        pass

    def poll(self, timeout_ms):
        return [(self.pollable, POLLIN)] if _wait(timeout_ms) else []
