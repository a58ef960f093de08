"""A board's module machine for the long run (long_run.py): pins and buses that answer, and a watchdog that tells how the heap is.

The firmware feeds its watchdog once a round. Each TELL_MS the double collects garbage and prints "FIELD ROUNDS FREE HOLE": rounds of the
loop so far, octets of heap that are free, and of the largest piece of it. When the file is there that LEVERET_STOP in the environment
names it raises what Ctrl-C raises: a signal would come in the middle of a collection too, where a board's Ctrl-C never does.
"""

import gc
import io
import os
import sys
import time

TELL_MS = 3000
EXACT = 16  # the largest piece is told to a 16th of itself
PWRON_RESET = 1
MP_STREAM_POLL = 3
STOP = os.getenv("LEVERET_STOP") if hasattr(os, "getenv") else ""  # the WebAssembly build has no environment, and is told by JavaScript


def reset_cause():
    """The power came."""
    return PWRON_RESET


def reset():
    """Start anew: this process ends."""
    sys.exit()


def largest(free):
    """Octets of the largest piece of heap, or up to a 16th less."""
    least, most = 0, free
    while most - least > most // EXACT + 16:
        middle = (least + most) // 2
        try:
            bytearray(middle)
            least = middle
        except MemoryError:
            most = middle
    return least


def is_there(path):
    """Whether there is a file."""
    try:
        os.stat(path)
        return True
    except OSError:
        return False


def tell(rounds):
    """Print how the heap is."""
    gc.collect()
    free = gc.mem_free()
    print("FIELD", rounds, free, largest(free))


class WDT:
    """The watchdog."""

    def __init__(self, timeout):
        self.rounds = 0
        self.told_at = time.ticks_ms()

    def feed(self):
        """A round of the loop, or a timer's turn."""
        self.rounds += 1
        now = time.ticks_ms()
        if time.ticks_diff(now, self.told_at) >= TELL_MS:
            self.told_at = now
            tell(self.rounds)
            if STOP and is_there(STOP):
                raise KeyboardInterrupt


class Timer:
    """Never comes: what it would feed is a double."""

    ONE_SHOT = 0

    def __init__(self, number):
        self.number = number

    def init(self, **given):
        """Begin."""

    def deinit(self):
        """End."""


class RTC:
    """The clock of the interpreter cannot be set."""

    def datetime(self, given):
        """Set it."""


class Pin:
    """A pin."""

    def __init__(self, name):
        self.name = name


class ADC:
    """A pin whose voltage rises from look to look."""

    def __init__(self, pin):
        self.value = 0

    def read_u16(self):
        """0 to 65535."""
        self.value = (self.value + 77) & 0xFFFF
        return self.value


class I2C:
    """A bus with one device, which does not answer now and then."""

    def __init__(self, bus, **pins):
        self.reads = 0

    def readfrom_mem_into(self, address, register, octets):
        """Read a register. Raises OSError each 50th time."""
        self.reads += 1
        if self.reads % 50 == 0:
            raise OSError(5)
        for index in range(len(octets)):
            octets[index] = self.reads & 0x7F


class UART(io.IOBase):
    """A serial line: the terminal whose path LEVERET_UART in the environment names, which nobody waits at when it is read."""

    def __init__(self, number, baudrate, rxbuf, timeout, **pins):
        import select

        self.line = open(os.getenv("LEVERET_UART"), "r+b")
        poll = select.poll()
        poll.register(self.line, select.POLLIN | select.POLLOUT)
        self.ready = poll.ipoll

    def ioctl(self, request, argument):
        """What poll asks."""
        if request == MP_STREAM_POLL:
            for _, flags in self.ready(0):
                return flags & argument
        return 0

    def readinto(self, view):
        """Octets read; 0 or None: none now."""
        return self.line.readinto(view)

    def write(self, octets, at, size):
        """Octets written, of octets[at:at + size]."""
        return self.line.write(octets, at, size)

    def deinit(self):
        """Give the pins back."""
        self.line.close()
