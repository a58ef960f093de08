"""The time of day: from NTP where there is a network; otherwise it goes on from the newest known time, so that it never runs back.

A board forgets the time with its power. The newest time known is kept in a file, once an hour, and set again at the start when the clock
says an earlier one: the times of messages, and the retention of streams by age, stay in order.
"""

import struct
import time

from ..core.shim import elapsed
from ..ports.clock import seconds
from . import hardware, watchdog

if False:  # for the type checker alone
    from typing import Any

KEPT = "time.txt"
KEEP_MS = 3600000
ASK_MS = 6 * 3600000  # between two answers of the time server
AGAIN_MS = 30000  # after no answer
ANSWER_MS = 2000
RESOLVE_MS = 20000  # looking up a name may block so long
PORT = 123
_FROM_1900 = 2208988800  # seconds between NTP's epoch and 1970
_SANE = 1704067200  # 2024-01-01: no answer of a server is earlier


def kept():
    """The newest known time in seconds since 1970; 0: there is none."""
    try:
        with open(KEPT) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def keep(path=KEPT):
    """Keep the present time."""
    with open(path, "w") as file:
        file.write(str(seconds()))


def set_clock(since_1970):
    """Set the board's clock. Raises hardware.Absent."""
    machine = hardware.module("machine", "setting the clock")
    year, month, day, hour, minute, second, weekday = time.gmtime(since_1970 - (seconds() - int(time.time())))[:7]
    hardware.part(machine, "RTC", "setting the clock")().datetime((year, month, day, weekday, hour, minute, second, 0))


class Clock:
    """`server`: the name of an NTP server, "": none. `say` takes a sentence."""

    def __init__(self, server, say):
        self.server = server
        self.say = say
        self.right = False  # NTP has set the clock in this run
        self.trouble = ""
        self._socket: "Any" = None
        self._asked_at = None
        self._wait_ms = 0
        self._kept_at = None
        last = kept()
        if last > seconds():
            self._set(last)

    def _set(self, since_1970):
        try:
            set_clock(since_1970)
            return True
        except (hardware.Absent, OSError) as error:
            self._trouble(str(error))
            return False

    def _trouble(self, text):
        if text != self.trouble:
            self.trouble = text
            self.say("the clock cannot be set: %s" % text)

    def tick(self, now, has_network):
        """Ask the server when that is due, read its answer, and keep the newest time once an hour."""
        if self._kept_at is None:
            self._kept_at = now
        elif elapsed(now, self._kept_at) >= KEEP_MS:
            self._keep(now)
        if self._socket is not None:
            self._read_answer(now)
        elif self.server and has_network and (self._asked_at is None or elapsed(now, self._asked_at) >= self._wait_ms):
            self._ask(now)

    def _keep(self, now):
        self._kept_at = now
        try:
            keep()
        except OSError as error:
            self.say("%s cannot be written: %s" % (KEPT, error))

    def _ask(self, now):
        """Send a client's packet (RFC 4330 section 5: version 4, mode 3) without waiting for the answer."""
        self._asked_at = now
        self._wait_ms = AGAIN_MS
        watchdog.keep_fed(RESOLVE_MS)
        try:
            import socket

            address = socket.getaddrinfo(self.server, PORT)[0][-1]
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._socket.sendto(b"\x23" + bytes(47), address)
        except OSError as error:
            self._trouble("no answer from %s (%s)" % (self.server, error))
            self._close()

    def _read_answer(self, now):
        try:
            answer = self._socket.recv(48)
        except OSError:
            answer = b""
        if len(answer) == 48 and answer[0] & 7 == 4:
            self._close()
            self._set_clock(struct.unpack(">I", answer[40:44])[0] - _FROM_1900)
        elif elapsed(now, self._asked_at) >= ANSWER_MS:
            self._close()
            self._trouble("no answer from %s" % self.server)

    def _set_clock(self, since_1970):
        if since_1970 < 0 or since_1970 < _SANE:
            since_1970 += 1 << 32  # NTP's seconds begin again in 2036
        if self._set(since_1970):
            self._wait_ms = ASK_MS
            self.right = True
            self.trouble = ""
            self._keep(self._asked_at)
            self.say("the time is %04d-%02d-%02d %02d:%02d:%02d UTC" % time.gmtime(time.time())[:6])

    def _close(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None
