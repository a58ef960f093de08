"""What systemd is told by a service of Type=notify: datagrams to the socket of NOTIFY_SOCKET (sd_notify(3), sd_watchdog_enabled(3)).

Laws: who does not read holds nothing up (a datagram that finds no room is lost, and the watchdog's next one comes in time all the same);
nothing raises. Only a broker that a service manager has started imports this file.
"""

from __future__ import annotations

import socket

if False:  # for the type checker alone: `typing` takes 200 KB of a broker that is idle
    from collections.abc import Mapping

SOCKET = "NOTIFY_SOCKET"
WATCHDOG_US = "WATCHDOG_USEC"
WATCHDOG_PROCESS = "WATCHDOG_PID"


class ServiceManager:
    """`path`: of the socket, one that begins with @ is abstract (unix(7)); `watchdog_ms`: how often it wants to hear of us, 0: never."""

    def __init__(self, path: str, watchdog_ms: int = 0) -> None:
        self.place = "\0" + path[1:] if path.startswith("@") else path
        self.every_ms = watchdog_ms // 2  # as sd_watchdog_enabled(3) recommends
        self.told_ms: int | None = None
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.setblocking(False)

    @classmethod
    def of(cls, variables: Mapping[str, str], process: int) -> ServiceManager | None:
        """The one that the environment names for this process, or None."""
        path = variables.get(SOCKET, "")
        if not path.startswith(("/", "@")):
            return None
        microseconds = variables.get(WATCHDOG_US, "")
        is_ours = variables.get(WATCHDOG_PROCESS, str(process)) == str(process)
        return cls(path, int(microseconds) // 1000 if is_ours and microseconds.isascii() and microseconds.isdigit() else 0)

    def tell(self, *lines: str) -> bool:
        """Send one datagram of `NAME=value` lines; false when it is lost."""
        try:
            self.socket.sendto("\n".join(lines).encode(), self.place)
        except OSError:
            return False
        return True

    def ready(self, status: str) -> None:
        """All listeners are open. `status`: a line for `systemctl status`."""
        self.tell("READY=1", "STATUS=" + status)

    def stopping(self) -> None:
        """The end has begun."""
        self.tell("STOPPING=1", "STATUS=closing connections")

    def tick(self, now_ms: int) -> None:
        """Time passes in the loop that serves: twice in each interval the watchdog hears of it. `now_ms` only grows."""
        if self.every_ms and (self.told_ms is None or now_ms - self.told_ms >= self.every_ms):
            if self.tell("WATCHDOG=1"):
                self.told_ms = now_ms

    def close(self) -> None:
        """Free the socket."""
        self.socket.close()
