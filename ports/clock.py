"""The two clocks that ports read and the core is told: wrapping milliseconds, and seconds since 1970."""

import time

if hasattr(time, "ticks_ms"):

    def now_ms() -> int:
        """Monotonic milliseconds in 30 bits."""
        return time.ticks_ms() & 0x3FFFFFFF  # type: ignore[attr-defined, no-any-return]  # MicroPython has it
else:

    def now_ms() -> int:
        """Monotonic milliseconds in 30 bits."""
        return int(time.monotonic() * 1000) & 0x3FFFFFFF


# MicroPython boards count from 2000-01-01, CPython and the unix port from 1970-01-01.
_OFFSET = 946684800 if time.gmtime(0)[0] == 2000 else 0


def seconds() -> int:
    """Seconds since 1970."""
    return int(time.time()) + _OFFSET


_FROM_2020 = 1577836800 - _OFFSET  # where a board counts from 2000 all of these fit in its small numbers, which take no heap


def since_2020() -> int:
    """Seconds since 2020-01-01, as the broker counts them."""
    return int(time.time()) - _FROM_2020
