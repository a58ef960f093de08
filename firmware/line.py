"""A serial line of a board as a stream (core/DESIGN.md section 2): a UART, or the console itself, beside the REPL's own text.

On the console Ctrl-C still ends the broker and gives the REPL back: links keep that octet off the line, and text between two
frames does no harm.
"""

import os
import select
import sys

from ..core.serial_link.link import NONCE_MAX, Link
from . import hardware
from .rounds import waiting

if False:  # for the type checker alone
    from typing import Any

CONSOLE = "console"
BAUD = 115200
UART_BUFFER = 1024  # octets in the driver's buffer while the broker is busy: 90 ms at 115200 baud
WINDOW_SIZE = 1024  # octets on their way: 90 ms at 115200 baud
PAYLOAD_SIZE = 512  # with 256 the frames take more than 5 % of the line
RECEIVE_SIZE = 256
BITS = 10  # on the line for each octet
KEEPALIVE_MS, DEAD_MS = 2000, 60000


class Console:
    """The REPL's line. Input is taken octet by octet, because a longer read would wait until it is full."""

    name = CONSOLE

    def __init__(self):
        self.pollable = sys.stdin
        self._input: "Any" = sys.stdin.buffer
        self._output: "Any" = sys.stdout.buffer
        self._octet = memoryview(bytearray(1))
        ready = select.poll()
        ready.register(sys.stdin, select.POLLIN)
        self._ready = waiting(ready)

    def read_into(self, view):
        """Octets read; None: nothing now."""
        count = 0
        octet = self._octet
        while count < len(view) and self._has_more():
            if not self._input.readinto(octet):
                break
            view[count] = octet[0]
            count += 1
        return count or None

    def _has_more(self):
        for _ in self._ready(0):
            return True
        return False

    def write_part(self, octets, at, size):
        """Octets written, of octets[at:at + size]."""
        return self._output.write(octets, at, size)

    def close(self):
        """The console stays."""


class Uart:
    """A UART of the board. Raises hardware.Absent, or ValueError of the driver for pins or a speed that it does not have."""

    def __init__(self, number, baud, tx, rx):
        machine = hardware.module("machine", "UART %s" % number)
        arguments: dict = {}
        if tx is not None:
            arguments = {"tx": machine.Pin(tx), "rx": machine.Pin(rx)}
        made = hardware.part(machine, "UART", "UART %s" % number)
        try:
            uart = made(number, baudrate=baud, rxbuf=UART_BUFFER, timeout=0, **arguments)
        except TypeError:  # an STM32's pins belong to its UART, and it takes none
            uart = made(number, baudrate=baud, rxbuf=UART_BUFFER, timeout=0)
        self.name = "UART %s" % number
        self._uart: "Any" = uart
        self.pollable = uart

    def read_into(self, view):
        """Octets read; None: nothing now."""
        return self._uart.readinto(view) or None

    def write_part(self, octets, at, size):
        """Octets written, of octets[at:at + size]; None: no room now."""
        return self._uart.write(octets, at, size) or None

    def close(self):
        """Give the pins back."""
        self._uart.deinit()


def open_line(wanted):
    """(stream, baud) of the settings' `serial`. Raises as Uart does."""
    baud = wanted.get("baud", BAUD)
    if wanted["line"] == CONSOLE:
        return Console(), baud
    return Uart(wanted["line"], baud, wanted.get("tx"), wanted.get("rx")), baud


def new_link(make_inner, baud, limits):
    """The board's end of a line: it waits for sessions. Times fit the speed."""
    retransmit_ms = 100 + 4 * WINDOW_SIZE * BITS * 1000 // baud
    keepalive_ms = max(KEEPALIVE_MS, 2 * retransmit_ms)
    nonce = int.from_bytes(os.urandom(4), "big") % NONCE_MAX + 1
    return Link(
        make_inner,
        nonce,
        window_size=WINDOW_SIZE,
        payload_size_max=PAYLOAD_SIZE,
        receive_size=RECEIVE_SIZE,
        retransmit_ms=retransmit_ms,
        keepalive_ms=keepalive_ms,
        dead_ms=max(DEAD_MS, 4 * keepalive_ms),
        stream_count=limits.line_connection_count_max,
        stream_room=limits.line_connection_room,
    )
